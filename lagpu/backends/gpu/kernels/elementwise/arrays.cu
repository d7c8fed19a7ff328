// Plain steps on arrays for which CuPy would compile a kernel of its own. One thread an element,
// grid stride.
#include "common/places.cuh"
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

// How many of `size` elements that rise are below x, or with `upto` up to x.
template <class T>
LG_DEVICE i64 bound_in(const T* __restrict__ rising, i64 size, i64 x, bool upto) {
  return bound(size, x, upto, [&](i64 k) { return rising[k]; });
}

// Bit k of `words` = holds(k), for count bits: a warp for each word, grid stride.
template <class F>
LG_DEVICE void write_bits(i64 count, u32* __restrict__ words, F holds) {
  for (i64 w = global_warp(); w * 32 < count; w += global_warps()) {
    const i64 k = w * 32 + lane_id();
    const u32 bits = warp_ballot(k < count && holds(k));
    if (lane_id() == 0) words[w] = bits;
  }
}

struct Highest {
  LG_DEVICE u64 operator()(u64 x, u64 y) const { return x > y ? x : y; }
};

// out[k] = first + at[k], where a null `at` has k.
extern "C" __global__ void count_up(i64 count, i64 first, const i64* __restrict__ at,
                                    LG_T* __restrict__ out) {
  for (i64 k = global_thread(); k < count; k += global_threads())
    out[k] = LG_T(first + (at ? at[k] : k));
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

// out[k] = high[a[k]] * each + low[b[k]], where a null a or b has k: the inverse of
// split_positions.
extern "C" __global__ void join_positions(i64 count, i64 each, const LG_T* __restrict__ high,
                                          const i64* __restrict__ a, const LG_U* __restrict__ low,
                                          const i64* __restrict__ b, i64* __restrict__ out) {
  for (i64 k = global_thread(); k < count; k += global_threads())
    out[k] = i64(high[a ? a[k] : k]) * each + i64(low[b ? b[k] : k]);
}

// out[k] = how many elements are below x, or with `upto` up to x, less minus[k] unless null;
// x = wanted[k], or first + k if `wanted` is null.
extern "C" __global__ void bounds(i64 count, i64 size, const LG_T* __restrict__ rising, i64 first,
                                  const LG_I* __restrict__ wanted, bool upto,
                                  const i64* __restrict__ minus, LG_U* __restrict__ out) {
  for (i64 k = global_thread(); k < count; k += global_threads()) {
    const i64 x = wanted ? i64(wanted[k]) : first + k;
    out[k] = LG_U(bound_in(rising, size, x, upto) - (minus ? minus[k] : 0));
  }
}

// Bit k = whether wanted[k] is among elements that rise, or with `complement` is not.
extern "C" __global__ void find_bits(i64 count, const i64* __restrict__ wanted, i64 size,
                                     const i64* __restrict__ rising, bool complement,
                                     u32* __restrict__ words) {
  write_bits(count, words, [&](i64 k) {
    const i64 at = bound_in(rising, size, wanted[k], false);
    return (at < size && rising[at] == wanted[k]) != complement;
  });
}

// Bit k = whether x[k], or y[k] unless null, differs from the one before; the first one does.
extern "C" __global__ void run_bits(i64 count, const i64* __restrict__ x, const i64* __restrict__ y,
                                    u32* __restrict__ words) {
  write_bits(count, words,
             [&](i64 k) { return k == 0 || x[k] != x[k - 1] || (y && y[k] != y[k - 1]); });
}

// Bit k = whether low <= x[k] < high.
extern "C" __global__ void range_bits(i64 count, const LG_T* __restrict__ x, i64 low, i64 high,
                                      u32* __restrict__ words) {
  write_bits(count, words, [&](i64 k) { return low <= i64(x[k]) && i64(x[k]) < high; });
}

// Things in order of their owners, ends[o] of them up to owner o: owner[k], and place[k] =
// starts[owner[k]] + the number of thing k among those of its owner.
extern "C" __global__ void expand(i64 count, i64 owners, const i64* __restrict__ ends,
                                  const i64* __restrict__ starts, i64* __restrict__ owner,
                                  i64* __restrict__ place) {
  for (i64 k = global_thread(); k < count; k += global_threads()) {
    const i64 o = bound_in(ends, owners, k, true);
    owner[k] = o;
    place[k] = starts[o] + k - (o ? ends[o - 1] : 0);
  }
}

// One of two launches that merge arrays which rise and have no number in common.
extern "C" __global__ void merge(i64 count, const i64* __restrict__ own, i64 size,
                                 const i64* __restrict__ other, i64* __restrict__ out) {
  for (i64 k = global_thread(); k < count; k += global_threads())
    out[k + bound_in(other, size, own[k], false)] = own[k];
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
