// Kernels that only the tests of the device layer launch.
#include "common/collectives.cuh"

#ifndef LG_X
#define LG_X i32
#endif
#ifndef LG_S
#define LG_S i32
#endif

// One warp: every shuffle and vote of value[lane].
extern "C" __global__ void warp_shuffles(const LG_S* value, LG_S* up, LG_S* down, LG_S* flipped,
                                         LG_S* from_3) {
  const u32 lane = lane_id();
  up[lane] = warp_shfl_up(value[lane], 1);
  down[lane] = warp_shfl_down(value[lane], 2);
  flipped[lane] = warp_shfl_xor(value[lane], 5);
  from_3[lane] = warp_shfl(value[lane], 3);
}

extern "C" __global__ void warp_votes(const bool* pred, u32* ballot, bool* any, bool* all,
                                      u32* rank) {
  const u32 lane = lane_id();
  const u32 votes = warp_ballot(pred[lane]);
  any[lane] = warp_any(pred[lane]);
  all[lane] = warp_all(pred[lane]);
  ballot[lane] = votes;
  rank[lane] = bit_popc(votes & lanes_below());
  warp_sync();
}

extern "C" __global__ void block_votes(const bool* pred, bool* any, bool* all, u32* count) {
  const u32 thread = block_thread();
  any[thread] = block_any(pred[thread]);
  all[thread] = block_all(pred[thread]);
  count[thread] = block_count(pred[thread]);
}

// One block reverses x through shared memory.
extern "C" __global__ void reverse(LG_X* x) {
  LG_SHARED(LG_X, kept, 1024);
  const u32 thread = block_thread();
  kept[thread] = x[thread];
  block_sync();
  x[thread] = kept[block_threads() - 1 - thread];
}

// The sum of 0 .. count - 1, through shared memory that the launch asked for.
extern "C" __global__ void sum_dynamic(u32 count, u64* total) {
  LG_DYNAMIC_SHARED(u32, kept);
  for (u32 k = block_thread(); k < count; k += block_threads()) kept[count - 1 - k] = k;
  block_sync();
  u64 sum = 0;
  for (u32 k = block_thread(); k < count; k += block_threads()) sum += kept[k];
  sum = block_reduce(sum, u64(0), LgPlus());
  if (block_thread() == 0) *total = sum;
}

extern "C" __global__ void fold(const LG_X* x, LG_X* total, LG_X* scanned) {
  const u32 thread = block_thread();
  total[thread] = block_reduce(x[thread], LG_X(0), LgPlus());
  scanned[thread] = warp_scan(x[thread], LgPlus());
}

// All threads of all blocks at the same few cells.
extern "C" __global__ void contend(i64 n, LG_X* added, LG_X* least, LG_X* most, LG_X* updated,
                                   LG_X* swapped) {
  for (i64 i = global_thread(); i < n; i += global_threads()) {
    const LG_X x = LG_X(i % 100);
    atomic_add(added, x);
    atomic_min(least, x);
    atomic_max(most, x);
    atomic_update(updated, [](LG_X old) { return LG_X(old + 1); });
    LG_X seen = load_volatile(swapped);
    for (;;) {
      const LG_X before = atomic_cas(swapped, seen, LG_X(seen + 1));
      if (before == seen) break;
      seen = before;
    }
  }
}

extern "C" __global__ void contend_bits(i64 n, u64* ored, u64* anded, u64* xored, u64* last) {
  for (i64 i = global_thread(); i < n; i += global_threads()) {
    atomic_or(ored, 1ull << i % 64);
    atomic_and(anded, ~(1ull << i % 64));
    atomic_xor(xored, u64(i));
    atomic_exch(last, u64(i));
  }
}

// Eight neighbours in two words, each set once by somebody.
extern "C" __global__ void contend_bools(bool* cells, u32* winners) {
  const u32 cell = u32(global_thread() % 8);
  const bool old = atomic_update(&cells[cell], [](bool) { return true; });
  if (!old) atomic_add(winners, 1);
}

extern "C" __global__ void bits(const u64* x, u32* popc, u32* ffs, u32* clz) {
  const u32 i = block_thread();
  popc[i] = bit_popc(x[i]) + bit_popc(u32(x[i]));
  ffs[i] = bit_ffs(x[i]) + bit_ffs(u32(x[i]));
  clz[i] = bit_clz(x[i]) + bit_clz(u32(x[i]));
}

// Who came when: order[ticket] = thread.
extern "C" __global__ void arrive(u32* ticket, u32* order) {
  order[atomic_add(ticket, 1)] = u32(global_thread());
}

// Each round every block adds what all wrote in the round before.
extern "C" __global__ void rounds(i32 nrounds, u64* cells, GridBarrier* barrier) {
  for (i32 round = 1; round <= nrounds; ++round) {
    if (block_thread() == 0) {
      u64 sum = 1;
      for (u32 block = 0; block < grid_blocks(); ++block)
        sum += load_cg(&cells[u64(round - 1) * grid_blocks() + block]);
      cells[u64(round) * grid_blocks() + block_index()] = sum;
    }
    grid_sync(barrier);
  }
}

// A flag that one block raises and the others wait for.
extern "C" __global__ void spin(u32* flag, u32* seen) {
  if (global_thread() == 0) store_volatile(flag, 1);
  while (load_volatile(flag) == 0) {
  }
  atomic_add(seen, 1);
}

extern "C" __global__ void divergent_warp(i32* x) {
  if (lane_id() < 16) x[0] = i32(warp_ballot(true));
  block_sync();
}

extern "C" __global__ void exited_threads(i32* x) {
  x[0] = 1;
  if (block_thread() % 2) block_sync();
}

extern "C" __global__ void mixed_barriers(i32* x) {
  x[0] = 1;
  if (block_thread() % 2) {
    block_sync();
  } else {
    block_any(true);
  }
}

extern "C" __global__ void exited_block(GridBarrier* barrier) {
  if (block_index() == 1) return;
  grid_sync(barrier);
}

extern "C" __global__ void exited_lane(i32* x) {
  if (lane_id() == 3) return;
  x[lane_id()] = warp_shfl(i32(lane_id()), 3);
}

extern "C" __global__ void scalars(bool b, i32 i, u32 u, i64 l, u64 k, f32 f, f64 d, f64* out) {
  const f64 values[7] = {f64(b), f64(i), f64(u), f64(l), f64(k), f64(f), d};
  if (global_thread() == 0)
    for (i32 n = 0; n < 7; ++n) out[n] = values[n];
}

extern "C" __global__ void is_null(const i32* x, bool* answer) { answer[0] = x == nullptr; }

extern "C" __global__ void fill(LG_X* x, i64 n, LG_X value) {
  for (i64 i = global_thread(); i < n; i += global_threads()) x[i] = value;
}
