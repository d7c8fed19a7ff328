// Plain steps on arrays for which CuPy would compile a kernel of its own. One thread an element,
// grid stride.
#include "common/prims.cuh"
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
