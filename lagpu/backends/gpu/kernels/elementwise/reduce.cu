// The sum of a vector's entries over a monoid:  partial[b] = (+) of the entries that block b takes.
//
// A vector of n entries as in common/entries.cuh. Bit b of `found`, if that is not null, is set if
// there was one: a monoid such as `any` has no identity. A launch of one block, for many entries a
// second one on the partial sums, ends the reduction: it writes the bits of the sum, and whether
// there was an entry, to `ended` and to the host notification, then `serial`.
#include "common/entries.cuh"
// what is not given; the file compiles by itself
#ifndef LG_ADD
#define LG_ADD Plus
#endif
#ifndef LG_U
#define LG_U i32
#endif
#ifndef LG_Z
#define LG_Z i32
#endif
#ifndef LG_OP
#define LG_OP Plus
#endif
#ifndef LG_T
#define LG_T i32
#endif

extern "C" __global__ void reduce_entries(i64 n, const u32* __restrict__ words,
                                          const LG_U* __restrict__ values, LG_U iso,
                                          LG_Z* __restrict__ partial, u32* __restrict__ found,
                                          u64* ended, u64* notification, u64 serial) {
  LG_SHARED(LG_Z, sums, 32);
  LG_SHARED(u32, any_found, 1);
  if (block_thread() == 0) any_found[0] = 0;
  block_sync();
  LG_Z sum = LG_ADD::identity<LG_Z>();
  bool some = false;
  for (i64 i = global_thread(); i < n; i += global_threads()) {
    if (!has_entry(words, i)) continue;
    const LG_Z z = entry_value<LG_Z>(values, iso, i);
    sum = some ? add<LG_ADD>(sum, z) : z;
    some = true;
  }
  for (u32 step = 16; step; step /= 2) {
    const LG_Z other = warp_shfl_xor(sum, step);
    const bool other_some = warp_shfl_xor(some, step);
    if (other_some) sum = some ? add<LG_ADD>(sum, other) : other;
    some = some || other_some;
  }
  if (lane_id() == 0) {
    sums[block_warp()] = sum;
    if (some) atomic_or(&any_found[0], 1u << block_warp());
  }
  block_sync();
  if (block_thread() == 0) {
    bool started = false;
    for (u32 warp = 0; warp < block_warps(); ++warp) {
      if (!(any_found[0] >> warp & 1)) continue;
      sum = started ? add<LG_ADD>(sum, sums[warp]) : sums[warp];
      started = true;
    }
    if (partial) {
      partial[block_index()] = sum;
      if (started) atomic_or(&found[block_index() / 32], 1u << (block_index() % 32));
      return;
    }
    u64 sum_bits = 0;
    memcpy(&sum_bits, &sum, sizeof(sum));
    ended[0] = sum_bits;
    ended[1] = started;
    store_volatile(&notification[0], sum_bits);
    store_volatile(&notification[1], u64(started));
    system_fence();
    store_volatile(&notification[2], serial);
  }
}

// out[r] = f(... f(f(values[starts[r]], next), next) ...), where the next run begins at
// starts[r+1], and the last one ends at `count`; each result is cast. One thread a run, grid
// stride.
extern "C" __global__ void fold_runs(i64 runs, i64 count, const i64* __restrict__ starts,
                                     const LG_U* __restrict__ values, LG_U* __restrict__ out) {
  for (i64 r = global_thread(); r < runs; r += global_threads()) {
    const i64 end = r + 1 < runs ? starts[r + 1] : count;
    LG_U sum = values[starts[r]];
    for (i64 k = starts[r] + 1; k < end; ++k)
      sum = cast<LG_U>(LG_OP::call<LG_Z, LG_T>(cast<LG_T>(sum), cast<LG_T>(values[k]), 0, 0, 0));
    out[r] = sum;
  }
}
