// Reductions and scans over a warp or a block, in terms of the primitives.
#ifndef LAGPU_COLLECTIVES_CUH
#define LAGPU_COLLECTIVES_CUH
#include "common/prims.cuh"

struct LgPlus {
  template <class T>
  LG_DEVICE T operator()(T x, T y) const {
    return x + y;
  }
};

struct LgOr {
  template <class T>
  LG_DEVICE T operator()(T x, T y) const {
    return x | y;
  }
};

// The fold of the warp's values, on every lane; f associative and commutative.
template <class T, class F>
LG_DEVICE T warp_reduce(T value, F f) {
  for (u32 step = LG_WARP / 2; step; step /= 2) value = f(value, warp_shfl_xor(value, step));
  return value;
}

// Lane k gets the fold of lanes 0..k.
template <class T, class F>
LG_DEVICE T warp_scan(T value, F f) {
  for (u32 step = 1; step < LG_WARP; step *= 2) {
    const T before = warp_shfl_up(value, step);
    if (lane_id() >= step) value = f(before, value);
  }
  return value;
}

// The lane whose item number k is, another one for each lane, of all items of a warp in the order
// of the lanes: `upto` are those of a lane and of the lanes before it. 31 where there are fewer.
LG_DEVICE u32 warp_owner(u32 upto, u32 k) {
  u32 from = 0;
  for (u32 step = LG_WARP / 2; step; step /= 2)
    if (warp_shfl(upto, from + step - 1) <= k) from += step;
  return from;
}

// The fold of the block's values, on every thread; `identity` stands for warps there are not.
template <class T, class F>
LG_DEVICE T block_reduce(T value, T identity, F f) {
  LG_SHARED(T, partial, LG_WARP);
  value = warp_reduce(value, f);
  if (lane_id() == 0) partial[block_warp()] = value;
  block_sync();
  value = lane_id() < block_warps() ? partial[lane_id()] : identity;
  value = warp_reduce(value, f);
  block_sync();  // before the next call writes to partial again
  return value;
}

// Each thread gets the sum of the values of the threads before it in the block, and *total that of
// all.
LG_DEVICE u64 block_scan(u64 value, u64* total) {
  LG_SHARED(u64, partial, LG_WARP);
  const u64 upto = warp_scan(value, LgPlus());
  if (lane_id() == LG_WARP - 1) partial[block_warp()] = upto;
  block_sync();
  const u64 whole = lane_id() < block_warps() ? partial[lane_id()] : 0;
  const u64 warps = warp_scan(whole, LgPlus());
  const u64 before = block_warp() ? warp_shfl(warps, block_warp() - 1) : 0;
  *total = warp_shfl(warps, block_warps() - 1);
  block_sync();  // before the next call writes to partial again
  return before + upto - value;
}

#endif  // LAGPU_COLLECTIVES_CUH
