// Plain steps on arrays for which CuPy would compile a kernel of its own. One thread an element,
// grid stride.
#include "common/collectives.cuh"
// default: the file compiles by itself
#ifndef LG_T
#define LG_T i32
#endif
#ifndef LG_U
#define LG_U i32
#endif
#ifndef LG_I
#define LG_I i64
#endif

struct Highest {
  LG_DEVICE u64 operator()(u64 x, u64 y) const { return x > y ? x : y; }
};

// out[k] = k.
extern "C" __global__ void count_up(i64 count, LG_T* __restrict__ out) {
  for (i64 k = global_thread(); k < count; k += global_threads()) out[k] = LG_T(k);
}

// out[k] = value.
extern "C" __global__ void fill_array(i64 count, LG_T value, LG_T* __restrict__ out) {
  for (i64 k = global_thread(); k < count; k += global_threads()) out[k] = value;
}

// out[k] = from[at[k]].
extern "C" __global__ void gather(i64 count, const LG_I* __restrict__ at,
                                  const LG_U* __restrict__ from, LG_T* __restrict__ out) {
  for (i64 k = global_thread(); k < count; k += global_threads()) out[k] = LG_T(from[at[k]]);
}

// cols[k] and rows[k] = the column and the row of position at[k], where a column has `each`.
extern "C" __global__ void split_positions(i64 count, i64 each, const i64* __restrict__ at,
                                           i64* __restrict__ cols, LG_T* __restrict__ rows) {
  for (i64 k = global_thread(); k < count; k += global_threads()) {
    cols[k] = at[k] / each;
    rows[k] = LG_T(at[k] - at[k] / each * each);
  }
}

// out[b] = the first place in an array that rises whose element is not below b.
extern "C" __global__ void lower_bounds(i64 bounds, i64 count, const LG_T* __restrict__ rising,
                                        i64* __restrict__ out) {
  for (i64 b = global_thread(); b < bounds; b += global_threads()) {
    i64 first = 0, last = count;
    while (first < last) {
      const i64 middle = first + (last - first) / 2;
      if (i64(rising[middle]) < b)
        first = middle + 1;
      else
        last = middle;
    }
    out[b] = first;
  }
}

// What is wrong with compressed arrays of `count` indices, found[] being zeros before:
//   found[0] how many faults the pointer has     found[2] the largest index plus one
//   found[1] how far the least index is below 0   found[3] how many do not rise in their column
// A warp takes a column.
extern "C" __global__ void compressed_faults(i64 columns, i64 count, const LG_I* __restrict__ ptr,
                                             const LG_T* __restrict__ idx, u64* found) {
  u64 faults = global_thread() == 0 && (ptr[0] != 0 || ptr[columns] != count);
  u64 below = 0, end = 0, falls = 0;
  for (i64 j = global_warp(); j < columns; j += global_warps()) {
    const i64 first = i64(ptr[j]), last = i64(ptr[j + 1]);
    if (first < 0 || last < first || last > count) {
      faults += lane_id() == 0;
      continue;
    }
    for (i64 k = first + lane_id(); k < last; k += LG_WARP) {
      const i64 i = i64(idx[k]);
      if (i < 0) below = 0 - u64(i) > below ? 0 - u64(i) : below;
      if (i >= 0) end = u64(i) + 1 > end ? u64(i) + 1 : end;
      falls += k > first && i <= i64(idx[k - 1]);
    }
  }
  const u64 highest = warp_reduce(end, Highest());
  if (faults) atomic_add(&found[0], faults);
  if (below) atomic_max(&found[1], below);
  if (lane_id() == 0 && highest) atomic_max(&found[2], highest);
  if (falls) atomic_add(&found[3], falls);
}
