// The sim device: runs a kernel's threads as fibers on one operating system thread.
//
// Blocks run one after another in a shuffled order, or all together in a cooperative launch; so do
// the warps of a block and the lanes of a warp. A fiber runs until it meets others at a warp,
// block or grid operation, exits, or has spent its fuse of atomics. When none can go on although
// some have not exited, they wait for ever: a divergent barrier, reported as an error.
//
// Several devices run together as one cooperative launch each: their blocks are resident side by
// side, and each has its own arguments and its own barrier of the grid.

#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

#include "chance.hpp"
#include "context.hpp"
#include "stacks.hpp"
#include "state.hpp"

namespace sim {

typedef void (*Entry)(const void* args);

// A device's launch.
struct Device {
  Entry entry;
  const void* args;
  u32 exited_blocks, waiting_at_grid;
};

namespace {

// ---- one launch, or those of several devices together

Sim state;
std::vector<Device> devices;
std::vector<Block*> blocks;  // resident
std::vector<Fiber> fibers;   // by block, warp slot, slot
std::vector<Warp> warps;     // by block, warp slot
bool cooperative;
u32 mean_fuse;
void* main_context;
char* message;
u32 message_bytes;
bool failed;

void new_fuse() { state.fuse = mean_fuse ? 1 + random_below(2 * mean_fuse) : ~0u; }

// ---- who runs next

// The first set bit of a mask behind `slot`, round and round.
u32 next_slot(u32 mask, u32 slot) {
  const u32 turn = (slot + 1) % 32;
  const u32 turned = turn ? mask >> turn | mask << (32 - turn) : mask;
  return (u32(__builtin_ctz(turned)) + turn) % 32;
}

void make_ready(Warp* warp, u32 slots) {
  warp->ready |= slots;
  if (warp->ready) warp->block->ready_warps |= 1u << warp->slot;
}

void make_waiting(Fiber* fiber) {
  Warp* const warp = fiber->warp;
  warp->ready &= ~(1u << fiber->slot);
  if (!warp->ready) warp->block->ready_warps &= ~(1u << warp->slot);
}

// The first ready fiber behind the given block, warp and lane, or null.
Fiber* ready_behind(u32 place, u32 warp_slot, u32 slot) {
  const u32 count = u32(blocks.size());
  for (u32 step = 0; step < count; ++step) {
    const Block* const block = blocks[(place + step) % count];
    if (!block->ready_warps) continue;
    const Warp* const warp = &block->warps[next_slot(block->ready_warps, warp_slot)];
    return &warp->fibers[next_slot(warp->ready, slot)];
  }
  return nullptr;
}

// The warp's own lanes first, then the block's other warps, then other blocks.
Fiber* pick(const Fiber* from) {
  const Warp* const warp = from->warp;
  if (warp->ready) return &warp->fibers[next_slot(warp->ready, from->slot)];
  return ready_behind(from->block->place, warp->slot, from->slot);
}

void run_fibers();

// Leave the current fiber; `next` null means that nobody can go on, which main looks into.
void go_on_with(Fiber* next, void** here) {
  state.current = next;
  if (!next) return switch_context(here, main_context);
  if (!next->stack) {
    next->stack = take_stack();
    next->context = new_context(next->stack, run_fibers);
  }
  switch_context(here, next->context);
}

void wait() {
  Fiber* const self = state.current;
  make_waiting(self);
  go_on_with(pick(self), &self->context);
}

// For one that is not waiting: it may find itself.
void give_way() {
  new_fuse();
  Fiber* const self = state.current;
  Fiber* const next =
      ready_behind(random_below(u32(blocks.size())), random_below(kWarp), random_below(kWarp));
  if (next != self) go_on_with(next, &self->context);
}

// ---- errors

const char* name_of(Wait wait) {
  static const char* const names[] = {"nothing",        "warp_sync",  "a warp vote",
                                      "a warp shuffle", "block_sync", "a block vote",
                                      "cluster_sync",   "grid_sync"};
  return names[u32(wait)];
}

// The fibers are left where they are: their stacks are simply used anew.
[[noreturn]] void fail(const char* fact) {
  Fiber* const at = state.current;
  snprintf(message, message_bytes, "%s (block %u, thread %u)", fact, at->block->index, at->thread);
  failed = true;
  switch_context(&at->context, main_context);
  __builtin_unreachable();
}

[[noreturn]] void fail_mixed(Wait ours, Wait theirs, const char* whose) {
  char fact[128];
  snprintf(fact, sizeof fact, "divergent barrier: a thread is at %s, others of its %s at %s",
           name_of(ours), whose, name_of(theirs));
  fail(fact);
}

void append(const char* format, u32 count, Wait wait) {
  if (!count) return;
  const size_t length = strlen(message);
  snprintf(message + length, message_bytes - length, format, count, name_of(wait));
}

// Nobody can go on: say who waits where.
void describe_deadlock() {
  u32 at_warp = 0, at_block = 0, at_cluster = 0, at_grid = 0, exited = 0, left = 0;
  Wait warp_wait = Wait::none, block_wait = Wait::none;
  for (const Warp& warp : warps) {
    at_warp += u32(__builtin_popcount(warp.arrived));
    if (warp.arrived) warp_wait = warp.wait;
  }
  for (const Block* block : blocks) {
    left += block->live;
    at_block += block->arrived;
    if (block->arrived) block_wait = block->wait;
    at_cluster += block->at_cluster;
  }
  for (const Device& device : devices) {
    at_grid += device.waiting_at_grid;
    exited += device.exited_blocks;
  }
  message[0] = 0;
  append("divergent barrier: of %u threads left", left, Wait::none);
  append(", %u wait at %s", at_warp, warp_wait);
  append(", %u wait at %s", at_block, block_wait);
  append(", %u wait at %s", at_cluster, Wait::cluster_sync);
  append(", %u wait at %s", at_grid, Wait::grid_sync);
  append("; blocks that have exited: %u", exited, Wait::none);
  failed = true;
}

// ---- time

// The host's clock.
u64 clock_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return u64(now.tv_sec) * 1000000000u + u64(now.tv_nsec);
}

// ---- meetings

void release_warp(Warp* warp) {
  make_ready(warp, warp->arrived);
  warp->arrived = 0;
  warp->phase ^= 1;
  warp->exchange[warp->phase].votes = 0;
  warp->exchange[warp->phase].present = 0;
}

const Exchange* meet_warp(Wait what, u64 value, bool vote) {
  const Fiber* const self = state.current;
  Warp* const warp = self->warp;
  Exchange* const exchange = &warp->exchange[warp->phase];
  if (!warp->arrived) warp->wait = what;
  if (warp->wait != what) fail_mixed(what, warp->wait, "warp");
  exchange->value[self->lane] = value;
  exchange->votes |= u32(vote) << self->lane;
  exchange->present |= 1u << self->lane;
  warp->arrived |= 1u << self->slot;
  if (warp->arrived == warp->live) {
    release_warp(warp);
  } else {
    wait();
  }
  return exchange;
}

void release_all(Block* block) {
  for (u32 slot = 0; slot < state.block_threads / kWarp; ++slot) {
    make_ready(&block->warps[slot], block->warps[slot].live);
  }
}

void release_block(Block* block) {
  release_all(block);  // all that live were waiting here
  block->arrived = 0;
  block->phase ^= 1;
  block->votes[block->phase] = 0;
}

u32 meet_block(Wait what, bool vote) {
  Block* const block = state.current->block;
  u32* const votes = &block->votes[block->phase];
  if (!block->arrived) block->wait = what;
  if (block->wait != what) fail_mixed(what, block->wait, "block");
  *votes += vote;
  block->arrived += 1;
  if (block->arrived == block->live) {
    release_block(block);
  } else {
    wait();
  }
  return *votes;
}

// A block that has exited never comes, on a GPU neither: then nobody is released.
bool all_at_grid(const Device* device) {
  u32 live = 0;
  for (const Block* block : blocks) live += block->device == device ? block->live : 0;
  return device->exited_blocks == 0 && device->waiting_at_grid == live;
}

// The resident block of a number, of the current fiber's device.
Block* block_of(u32 index) {
  const Device* const device = state.current->block->device;
  for (Block* block : blocks)
    if (block->device == device && block->index == index) return block;
  fail("a block of a cluster that is not resident");
}

void meet_cluster(u32 count) {
  if (!cooperative) fail("cluster_sync in a launch that is not cooperative");
  Block* const self = state.current->block;
  self->at_cluster += 1;
  const u32 first = self->index / count * count;
  for (u32 k = 0; k < count; ++k) {
    const Block* const block = block_of(first + k);
    if (block->at_cluster != state.block_threads) return wait();
  }
  for (u32 k = 0; k < count; ++k) {
    Block* const block = block_of(first + k);
    block->at_cluster = 0;
    release_all(block);
  }
}

const void* shared_of(const void* mine, u32 index) {
  const Block* const self = state.current->block;
  const unsigned char* const p = static_cast<const unsigned char*>(mine);
  const Block* const other = block_of(index);
  if (p >= self->shared && p < self->shared + kSharedBytes)
    return other->shared + (p - self->shared);
  if (p >= self->dynamic && p < self->dynamic + kDynamicBytes)
    return other->dynamic + (p - self->dynamic);
  fail("cluster_shared of what is not in shared memory");
}

void release_grid(Device* device) {
  device->waiting_at_grid = 0;
  for (Block* block : blocks)
    if (block->device == device) release_all(block);
}

void meet_grid() {
  if (!cooperative) fail("grid_sync in a launch that is not cooperative");
  Device* const device = state.current->block->device;
  device->waiting_at_grid += 1;
  if (all_at_grid(device)) {
    release_grid(device);
  } else {
    wait();
  }
}

// Those that wait do so for the threads that still live, and one less does.
void exit_thread() {
  Fiber* const self = state.current;
  Warp* const warp = self->warp;
  Block* const block = self->block;
  make_waiting(self);
  warp->live &= ~(1u << self->slot);
  block->live -= 1;
  if (warp->live && warp->arrived == warp->live) release_warp(warp);
  if (block->live && block->arrived == block->live) release_block(block);
  Device* const device = block->device;
  if (block->live == 0) device->exited_blocks += 1;
  if (device->waiting_at_grid && all_at_grid(device)) release_grid(device);
}

// What runs on a stack. A thread that exits lends its stack to the next that has not begun, so
// kernels without meetings need only one, and that stays in the cache.
void run_fibers() {
  for (;;) {
    const Device* const device = state.current->block->device;
    device->entry(device->args);
    Fiber* const self = state.current;
    exit_thread();
    Fiber* const next = pick(self);
    if (next && !next->stack) {
      next->stack = self->stack;
      next->context = self->context;
      state.current = next;
      continue;
    }
    free_stacks.push_back(self->stack);
    go_on_with(next, &self->context);
  }
}

// ---- launch

void prepare_warp(Warp* warp, u32 first_thread) {
  warp->phase = warp->arrived = 0;
  warp->exchange[0].votes = warp->exchange[0].present = 0;
  warp->live = ~0u;
  warp->ready = 0;
  make_ready(warp, ~0u);
  u32 lane_order[kWarp];
  shuffle(lane_order, kWarp);
  for (u32 slot = 0; slot < kWarp; ++slot) {
    const u32 lane = lane_order[slot];
    warp->fibers[slot] =
        Fiber{first_thread + lane, lane, slot, warp, warp->block, nullptr, nullptr};
  }
}

// Block `number` of all devices' blocks.
void prepare_block(Block* block, u32 number) {
  block->index = number % state.grid_blocks;
  block->device = &devices[number / state.grid_blocks];
  block->live = state.block_threads;
  block->ready_warps = block->arrived = block->phase = block->votes[0] = 0;
  block->at_cluster = 0;
  memset(block->shared, 0xCD, kSharedBytes);  // a GPU does not clear it either
  memset(block->dynamic, 0xCD, kDynamicBytes);
  const u32 nwarps = state.block_threads / kWarp;
  u32 warp_order[kWarp];
  shuffle(warp_order, nwarps);
  for (u32 slot = 0; slot < nwarps; ++slot) {
    Warp* const warp = &block->warps[slot];
    warp->slot = slot;
    warp->block = block;
    warp->fibers = &fibers[block->place * state.block_threads + slot * kWarp];
    prepare_warp(warp, warp_order[slot] * kWarp);
  }
}

// Run what is prepared to its end, or to the error that stops it.
void run_prepared() {
  for (Device& device : devices) device.exited_blocks = device.waiting_at_grid = 0;
  go_on_with(&fibers[0], &main_context);
  u32 exited = 0;
  for (const Device& device : devices) exited += device.exited_blocks;
  if (!failed && exited < blocks.size()) describe_deadlock();
  if (!failed) return;
  for (const Fiber& fiber : fibers) {  // give back the stacks of those that never exited
    if (fiber.stack && fiber.warp->live >> fiber.slot & 1) free_stacks.push_back(fiber.stack);
  }
}

bool make_resident(u32 count) {
  while (blocks.size() > count) {
    delete blocks.back();
    blocks.pop_back();
  }
  while (blocks.size() < count) blocks.push_back(new Block);
  const u32 nwarps = state.block_threads / kWarp;
  warps.resize(count * nwarps);
  fibers.resize(count * state.block_threads);
  for (u32 place = 0; place < count; ++place) {
    blocks[place]->place = place;
    blocks[place]->warps = &warps[place * nwarps];
  }
  return reserve_stacks(count * state.block_threads);
}

}  // namespace

extern "C" {

Sim* sim_state() { return &state; }

// Run the launches of `count` devices, of `grid` blocks each; 0 when they ended, 1 when one failed
// and `error` says why. More than one have to be cooperative.
int sim_launch(const Entry* kernels, const void* const* args, u32 count, u32 grid, u32 block,
               int all_resident, u64 seed, u32 fuse, char* error, u32 error_bytes) {
  devices.clear();
  for (u32 d = 0; d < count; ++d) devices.push_back(Device{kernels[d], args[d], 0, 0});
  cooperative = all_resident != 0;
  seed_random(seed);
  mean_fuse = fuse;
  message = error;
  message_bytes = error_bytes;
  failed = false;
  state.current = nullptr;
  state.block_threads = block;
  state.grid_blocks = grid;
  state.give_way = give_way;
  state.meet_warp = meet_warp;
  state.meet_block = meet_block;
  state.meet_cluster = meet_cluster;
  state.meet_grid = meet_grid;
  state.shared_of = shared_of;
  state.fail = fail;
  state.clock_ns = clock_ns;
  new_fuse();
  const u32 all = count * grid;
  std::vector<u32> order(all);
  shuffle(order.data(), all);
  const u32 resident = cooperative ? all : 1;
  if (!make_resident(resident)) {
    snprintf(error, error_bytes, "no memory for the stacks of %u threads", resident * block);
    return 1;
  }
  for (u32 done = 0; done < all && !failed; done += resident) {
    for (u32 place = 0; place < resident; ++place)
      prepare_block(blocks[place], order[done + place]);
    run_prepared();
  }
  return failed;
}

}  // extern "C"
}  // namespace sim
