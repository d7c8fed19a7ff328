// Products with a selection matrix: of a vector f, the matrix P with an entry (f[j], j) for each
// entry of f. A value that is no row of P selects nothing. P holds true.
//
//   gather    w[j] = u[f[j]] (x) P[f[j], j]
//   scatter   w[i] = (+)_j P[i, j] (x) u[j]   over the j with f[j] = i
//
// f is read in its present form: in a generated loop another statement may have written it. A warp
// goes through the presence words of f, a lane an entry, as common/entries.cuh has it.
#ifndef LAGPU_SPMV_SELECTION_CUH
#define LAGPU_SPMV_SELECTION_CUH
#include "common/product.cuh"

// The vector f of n columns, and how many rows P has.
template <class F>
struct Selector {
  const u32* words;
  const F* values;
  F iso;
  i64 n, nrows;

  // The row of column j's entry, -1 if that is none of P's; of 2**63 and more as well.
  LG_DEVICE i64 row(i64 j) const {
    const i64 i = i64(values ? values[j] : iso);
    return 0 <= i && i < nrows ? i : -1;
  }
};

// The product of P's entry that `inner`, the index summed over, and `outer` belong to.
template <class S>
LG_DEVICE typename S::Z selected(const Operand<S>& u, i64 inner, i64 outer) {
  typedef typename S::A A;
  return multiply<S>(u.values, u.iso, static_cast<const A*>(nullptr), A(1), 0, inner, outer);
}

// Write the gathered entries that the mask keeps, and no entry elsewhere.
template <class S, class Select>
LG_DEVICE void gather_selected(const Select& f, const Operand<S>& u, const Mask& mask,
                               const Sums<typename S::Z>& w, Tallied* tally) {
  each_tile(f.n, [&](i64 k, bool mine) {
    const u32 wanted = mine ? mask.bits(k) & entry_bits(f.words, k, f.n) : 0;
    u32 found = 0;
    each_word(wanted, k, [&](u32 from, i64 j) {
      const i64 i = warp_shfl(wanted, from) >> lane_id() & 1 ? f.row(j) : -1;
      tally->looked_at += i >= 0;
      const bool there = i >= 0 && has_entry(u.words, i);
      if (there) w.values[j] = selected<S>(u, i, j);
      const u32 bits = warp_ballot(there);
      if (lane_id() == from) found = bits;
    });
    if (mine) w.words[k] = found;
    tally->found += bit_popc(found);
  });
}

// Add the entries of u to their rows, where the mask keeps them; w has no entry before, and its
// values are what sums begin with. Many columns may select one row, a hub: the lanes of a warp that
// select the same row as its first one add theirs before, so that not all wait for one address.
template <class S, class Select>
LG_DEVICE void scatter_selected(const Select& f, const Operand<S>& u, const Mask& mask,
                                const Sums<typename S::Z>& w, Tallied* tally) {
  typedef typename S::ADD Add;
  typedef typename S::Z Z;
  each_tile(f.n, [&](i64 k, bool mine) {
    const u32 there = mine ? entry_bits(f.words, k, f.n) & entry_bits(u.words, k, f.n) : 0;
    each_word(there, k, [&](u32 from, i64 j) {
      const i64 i = warp_shfl(there, from) >> lane_id() & 1 ? f.row(j) : -1;
      tally->looked_at += i >= 0;
      const bool adds = i >= 0 && mask.keeps(i);
      const u32 adding = warp_ballot(adds);
      if (!adding) return;
      const u32 first = bit_ffs(adding) - 1, bit = adds ? 1u << (i % 32) : 0;
      u32* const word = &w.words[adds ? i / 32 : 0];
      const bool seen = adds && load_cg(word) & bit;
      if constexpr (takes_first<S>) {
        if (adds && !seen) w.values[i] = selected<S>(u, j, i);  // every writer's value will do
      } else {
        const Z one = adds ? selected<S>(u, j, i) : empty_sum<Add, Z>();
        const i64 hub = warp_shfl(i, first);
        const bool joins = adds && i == hub;
        const Z sum = warp_reduce(joins ? one : empty_sum<Add, Z>(),
                                  [](Z x, Z y) { return add<Add, Z>(x, y); });
        if (lane_id() == first) {
          atomic_accumulate<Add, Z>(&w.values[i], sum);
        } else if (adds && !joins) {
          atomic_accumulate<Add, Z>(&w.values[i], one);
        }
      }
      if (adds && !seen && !(atomic_or(word, bit) & bit)) ++tally->found;
    });
  });
}

#endif  // LAGPU_SPMV_SELECTION_CUH
