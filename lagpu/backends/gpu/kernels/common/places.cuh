// The entries of a matrix by columns, one after the other, with the column of each.
#ifndef LAGPU_PLACES_CUH
#define LAGPU_PLACES_CUH
#include "common/collectives.cuh"

const u32 kWordsAWarp = 8;  // words of 32 entries in a row, among whose columns a warp searches

// How many of the elements at(0) .. at(size - 1), which rise, are below x, or with `upto` up to x.
template <class At>
LG_DEVICE i64 bound(i64 size, i64 x, bool upto, At at) {
  i64 first = 0, last = size;
  while (first < last) {
    const i64 middle = first + (last - first) / 2;
    const i64 y = i64(at(middle));
    if (y < x || (upto && y == x))
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

// The first of the columns first .. last that ends behind entry p; the last one if none does.
template <class Ptr>
LG_DEVICE i64 column_of(const Ptr* __restrict__ col_ptr, i64 p, i64 first, i64 last) {
  return first + bound(last - first, p, true, [&](i64 k) { return col_ptr[first + k + 1]; });
}

// f(w, p, j, mine) for each word of 32 entries: lane k has entry p = 32 w + k of column j, if there
// is one; a whole warp calls f at once. Warps take kWordsAWarp words in turn.
template <class Ptr, class F>
LG_DEVICE void each_entry(i64 nvals, i64 ncols, const Ptr* __restrict__ col_ptr, F f) {
  const i64 share = 32 * kWordsAWarp;
  for (i64 base = global_warp() * share; base < nvals; base += global_warps() * share) {
    const i64 end = base + share < nvals ? base + share : nvals;
    i64 first = column_of(col_ptr, base, 0, ncols - 1);
    const i64 last = column_of(col_ptr, end - 1, first, ncols - 1);
    for (i64 at = base; at < end; at += 32) {
      const i64 p = at + lane_id();
      const i64 j = column_of(col_ptr, p, first, last);
      f(at / 32, p, j, p < end);
      first = warp_shfl(j, 31);
    }
  }
}

#endif  // LAGPU_PLACES_CUH
