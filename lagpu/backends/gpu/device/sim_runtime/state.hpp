// The state that the sim device's runtime and a compiled kernel share. One fiber is a CUDA thread.
//
// Kernels see this file, so it includes nothing: a specialisation must compile in a moment.
// A kernel holds one pointer to `Sim` and calls the runtime through it, so it links to nothing.
#pragma once

namespace sim {

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr u32 kWarp = 32;
constexpr u32 kSharedBytes = 48 * 1024;   // what CUDA grants a block without asking
constexpr u32 kDynamicBytes = 64 * 1024;  // what a launch may ask for on top

// What a fiber waits at. Threads that must meet have to meet at the same one.
enum class Wait : u32 {
  none,
  warp_sync,
  warp_vote,
  warp_shfl,
  block_sync,
  block_vote,
  cluster_sync,
  grid_sync
};

// What the lanes of a warp, or the threads of a block, hand each other when they meet.
// There are two a warp, used in turn: a thread cannot reach the meeting after next, which reuses
// its buffer, before all have read this one on their way to the next.
struct Exchange {
  u64 value[kWarp];  // by lane, for shuffles
  u32 votes;         // lanes that voted yes
  u32 present;       // lanes that came
};

struct Block;
struct Fiber;
struct Device;

// The masks of a warp are by slot: the shuffled order in which its lanes run.
struct Warp {
  Exchange exchange[2];
  u32 phase;
  u32 live, ready, arrived;
  Wait wait;  // what `arrived` wait at
  u32 slot;   // in its block
  Block* block;
  Fiber* fibers;  // by slot
};

struct Block {
  u32 index;        // blockIdx.x
  u32 place;        // among the resident blocks
  Device* device;   // whose launch it is of
  u32 live;         // threads not exited
  u32 ready_warps;  // by warp slot: warps with a ready lane
  u32 arrived;      // threads waiting at the block's barrier
  u32 phase;
  u32 at_cluster;  // threads waiting at the cluster's barrier
  Wait wait;       // what they wait at
  u32 votes[2];    // threads that voted yes, by phase
  Warp* warps;     // by slot
  alignas(16) unsigned char shared[kSharedBytes];
  alignas(16) unsigned char dynamic[kDynamicBytes];
};

struct Fiber {
  u32 thread;  // threadIdx.x
  u32 lane;
  u32 slot;  // in its warp
  Warp* warp;
  Block* block;
  char* stack;    // its top; null until it first runs
  void* context;  // where it goes on
};

struct Sim {
  Fiber* current;
  u32 block_threads, grid_blocks;  // of each device, where several run together
  u32 fuse;  // atomics and fences left until the current fiber gives way unasked

  // The runtime's entry points.
  void (*give_way)();
  const Exchange* (*meet_warp)(Wait, u64 value, bool vote);
  u32 (*meet_block)(Wait, bool vote);
  void (*meet_cluster)(u32 blocks);
  void (*meet_grid)();
  const void* (*shared_of)(const void* mine, u32 block);  // a place in another block's memory
  [[noreturn]] void (*fail)(const char* fact);
  u64 (*clock_ns)();
};

}  // namespace sim
