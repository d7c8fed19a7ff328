// Products in a generated loop over matrices that keep to one pattern; fused/program/run.py
// writes the kernel. Entry p of the pattern, by columns, is entry p of a vector for each matrix, so
// element-wise statements call the functions for vectors (program/program.cuh).
//
//   t[p] = (+)_k L[i, k] (x) R[k, j]   at entry p = (i, j) of the pattern that the mask keeps
//
// Row i of L and column j of R are lists of the pattern; one without an entry now is passed over.
// The shorter is walked, the longer searched: by a thread, or if both are long by a warp.
//
// Source: Azad, Buluc and Gilbert 2015 (dot products under a mask).
#ifndef LAGPU_PATTERN_CUH
#define LAGPU_PATTERN_CUH
#include "common/places.cuh"
#include "program/program.cuh"
#include "program/scalars.cuh"

// The rows or the columns of the pattern: list k has the places ptr[k] .. ptr[k + 1] - 1, with
// rising indices. `entry` has the entry's number at each place; null if that is the place.
struct Lists {
  const i32* ptr;
  const i32* idx;
  const i32* entry;

  LG_DEVICE i64 at(i64 place) const { return entry ? entry[place] : place; }
  LG_DEVICE i64 length(i64 k) const { return ptr[k + 1] - ptr[k]; }
};

// The matrix with these entries of the pattern.
template <class U>
struct Within {
  const u32* words;
  const U* values;
  U iso;
};

template <class S>
struct DotProduct {
  typedef typename S::T T;
  typedef typename S::Z Z;
  Lists left, right;
  Within<typename S::U> u;
  Within<typename S::A> a;

  // Adds the products of row i and column j, from the `first` index of the shorter on, each
  // `step`-th.
  LG_DEVICE Entry<Z> sum(i64 i, i64 j, i64 first, i64 step) const {
    const bool left_walks = left.length(i) <= right.length(j);
    const Lists& walked = left_walks ? left : right;
    const Lists& searched = left_walks ? right : left;
    const i64 end = walked.ptr[(left_walks ? i : j) + 1];
    i64 low = searched.ptr[left_walks ? j : i];
    const i64 high = searched.ptr[(left_walks ? j : i) + 1];
    Entry<Z> found{false, Z(0)};
    for (i64 at = walked.ptr[left_walks ? i : j] + first; at < end && low < high; at += step) {
      const i32 k = walked.idx[at];
      for (i64 above = high; low < above;) {  // the first place that is not below k
        const i64 middle = low + (above - low) / 2;
        if (searched.idx[middle] < k)
          low = middle + 1;
        else
          above = middle;
      }
      if (low == high || searched.idx[low] != k) continue;
      const i64 p = left.at(left_walks ? at : low), q = right.at(left_walks ? low : at);
      if (!has_entry(u.words, p) || !has_entry(a.words, q)) continue;
      const T x = entry_value<T>(u.values, u.iso, p), y = entry_value<T>(a.values, a.iso, q);
      found =
          join<typename S::ADD>(found, Entry<Z>{true, S::MUL::template call<Z, T>(x, y, i, k, j)});
    }
    return found;
  }
};

const i64 kShortList = 32;  // indices that a thread walks by itself

// Begins and ends with a barrier. A thread has an entry, but not those of long lists, which stand
// together in the columns of hubs: of these each warp takes some that are far apart. The mask is
// never null.
template <class S>
LG_DEVICE void multiply_within(i64 nvals, i64 ncols, const Lists& columns, const DotProduct<S>& dot,
                               const Mask& mask, const Sums<typename S::Z>& t,
                               GridBarrier* barrier) {
  typedef typename S::Z Z;
  const auto is_long = [&](i64 i, i64 j) {
    return dot.left.length(i) > kShortList && dot.right.length(j) > kShortList;
  };
  grid_sync(barrier);
  for (i64 w = global_warp(); w * 32 < nvals; w += global_warps()) {
    const i64 p = w * 32 + lane_id();
    Entry<Z> sum{false, Z(0)};
    if (p < nvals && mask.keeps(p)) {
      const i64 i = columns.idx[p], j = column_of(columns.ptr, p, 0, ncols - 1);
      if (!is_long(i, j)) sum = dot.sum(i, j, 0, 1);
    }
    if (sum.there) t.values[p] = sum.value;
    const u32 met = warp_ballot(sum.there);
    if (lane_id() == 0) t.words[w] = met;
  }
  grid_sync(barrier);
  for (i64 p = global_warp(); p < nvals; p += global_warps()) {
    const i64 i = columns.idx[p];
    if (!mask.keeps(p) || dot.left.length(i) <= kShortList) continue;
    const i64 j = column_of(columns.ptr, p, 0, ncols - 1);
    if (!is_long(i, j)) continue;
    const Entry<Z> sum = warp_fold<typename S::ADD>(dot.sum(i, j, lane_id(), LG_WARP));
    if (lane_id() != 0 || !sum.there) continue;
    t.values[p] = sum.value;
    atomic_or(&t.words[p / 32], 1u << p % 32);
  }
  grid_sync(barrier);
}

#endif  // LAGPU_PATTERN_CUH
