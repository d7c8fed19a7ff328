// Masked products by entries: every stored entry whose vector operand is there adds to its result.
//
//   LG_TRANSPOSE 1:  w[j] = (+)_i u[i] (x) A[i,j]      0:  w[i] = (+)_j A[i,j] (x) u[j]
//
// A in CSC form as in spmv/pull.cu. One thread an entry, no frontier list. spmv_csc_edge searches
// for an entry's column, so that no array of column indices is stored; a warp takes chunks of 1024
// entries. spmv_csc_cooc reads it from such an array, so consecutive threads take consecutive
// entries. w_words is zeroed and w_values holds the identity before (spmv_edge_reset); sums are
// made by atomics, in the type LG_Z. Counts as in spmv/pull.cu.
//
// Source: Artiles and Saeed, TurboBFS, IPDPSW 2021: algorithm 3 (scCOOC).
#include "common/product.cuh"
#ifndef LG_TRANSPOSE
#define LG_TRANSPOSE 1
#endif
#ifndef LG_COL  // type of the stored columns
#define LG_COL i32
#endif

// Add the product of entry p, whose indices are `inner` and `outer`, unless the mask drops it.
LG_DEVICE void add_stored(i64 p, i64 inner, i64 outer, i64 size, const LG_A* values, LG_A a_iso,
                          const LG_U* u_values, LG_U u_iso, const u32* m_words, bool complement,
                          const LG_PTR* lengths, u32* w_words, LG_Z* w_values, Tallied* tally) {
  const u32 bit = 1u << (outer % 32);
  if (!(mask_bits(m_words, complement, outer / 32, size) & bit)) return;
  u32* const word = &w_words[outer / 32];
  const bool seen = load_volatile(word) & bit;
  if (!LG_ISO) {
    // With `any` the first entry found is the result; every other sum goes on.
    if (!seen || !IsSame<LG_ADD, AnyOf>::value)
      atomic_accumulate<LG_ADD, LG_Z>(
          &w_values[outer], multiply<Chosen>(u_values, u_iso, values, a_iso, p, inner, outer));
  }
  if (!seen && !(atomic_or(word, bit) & bit)) count_found(lengths, outer, tally);
}

extern "C" __global__ void spmv_csc_edge(
    i64 nrows, i64 ncols, i64 nvals_a, const LG_PTR* __restrict__ col_ptr,
    const LG_IDX* __restrict__ row_idx, const LG_A* __restrict__ values, LG_A a_iso,
    const u32* __restrict__ u_words, const LG_U* __restrict__ u_values, LG_U u_iso,
    const u32* __restrict__ m_words, bool complement, const LG_PTR* __restrict__ lengths,
    u32* w_words, LG_Z* w_values, u64* counts, u64* notification, u64 serial, u64* edges) {
  const i64 chunk = 1024;
  const i64 size = LG_TRANSPOSE ? ncols : nrows;
  Tallied tally{};
  for (i64 first = global_warp() * chunk; first < nvals_a; first += global_warps() * chunk) {
    const i64 last = first + chunk < nvals_a ? first + chunk : nvals_a;
    // Lane 0 finds the chunk's first column, lane 1 its last.
    const i64 bound =
        lane_id() < 2 ? last_not_after(col_ptr, lane_id() ? last - 1 : first, 0, ncols - 1) : 0;
    const i64 lo = warp_shfl(bound, 0), hi = warp_shfl(bound, 1);
    for (i64 p = first + lane_id(); p < last; p += 32) {
      ++tally.looked_at;
      const i64 i = row_idx[p];
      if (LG_TRANSPOSE && !has_entry(u_words, i)) continue;
      const i64 j = last_not_after(col_ptr, p, lo, hi);
      if (!LG_TRANSPOSE && !has_entry(u_words, j)) continue;
      const i64 inner = LG_TRANSPOSE ? i : j, outer = LG_TRANSPOSE ? j : i;
      add_stored(p, inner, outer, size, values, a_iso, u_values, u_iso, m_words, complement,
                 lengths, w_words, w_values, &tally);
    }
  }
  add_counts(tally, counts, notification, serial, edges);
}

// The same with the column of each entry: COOC, a thread an entry.
extern "C" __global__ void spmv_csc_cooc(
    i64 nrows, i64 ncols, i64 nvals_a, const LG_COL* __restrict__ col_idx,
    const LG_IDX* __restrict__ row_idx, const LG_A* __restrict__ values, LG_A a_iso,
    const u32* __restrict__ u_words, const LG_U* __restrict__ u_values, LG_U u_iso,
    const u32* __restrict__ m_words, bool complement, const LG_PTR* __restrict__ lengths,
    u32* w_words, LG_Z* w_values, u64* counts, u64* notification, u64 serial, u64* edges) {
  const i64 size = LG_TRANSPOSE ? ncols : nrows;
  Tallied tally{};
  for (i64 p = global_thread(); p < nvals_a; p += global_threads()) {
    ++tally.looked_at;
    const i64 inner = LG_TRANSPOSE ? i64(row_idx[p]) : i64(col_idx[p]);
    if (!has_entry(u_words, inner)) continue;
    const i64 outer = LG_TRANSPOSE ? i64(col_idx[p]) : i64(row_idx[p]);
    add_stored(p, inner, outer, size, values, a_iso, u_values, u_iso, m_words, complement, lengths,
               w_words, w_values, &tally);
  }
  add_counts(tally, counts, notification, serial, edges);
}

// Clear presence words and set values (unless null) to the identity, before the kernels above.
extern "C" __global__ void spmv_edge_reset(i64 size, u32* __restrict__ w_words,
                                           LG_Z* __restrict__ w_values) {
  for (i64 i = global_thread(); i < size; i += global_threads()) {
    if (i % 32 == 0) w_words[i / 32] = 0;
    if (w_values) w_values[i] = empty_sum<LG_ADD, LG_Z>();
  }
}
