// Masked products by columns, one launch each: the strategies pull_scalar, pull_warp, pull_bitmap.
//
//   w[j] = (+)_i u[i] (x) A[i,j]   for every column j the mask keeps
//
// A has n columns: col_ptr (n + 1), row_idx and values (nvals; null values: all equal a_iso).
// The same code computes w = A (+.x) u on the row form, or on the column form of a symmetric A.
// Writes w_words whole and w_values where there is an entry; counts[0] += the number of entries,
// counts[1] += the lengths, taken from `lengths` unless it is null, of the columns of their
// indices, *edges += the number of matrix entries looked at, unless it is null.
//
// Sources: Artiles and Saeed, TurboBFS, IPDPSW 2021: algorithm 4 (scCSC) and 5 (veCSC), with the
// early stop of 6 (busc) and 7 (buve), without it where LG_WHOLE is 1; the warp per column from
// Bell and Garland 2008. pull_bitmap: Hiragushi and Takahashi, ICA3PP 2013, section 3.2.
#include "spmv/pull.cuh"
#ifndef LG_W
#define LG_W bool
#endif

extern "C" __global__ void spmv_csc_scalar(
    i64 n, const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
    const LG_A* __restrict__ values, LG_A a_iso, const u32* __restrict__ u_words,
    const LG_U* __restrict__ u_values, LG_U u_iso, const u32* __restrict__ m_words, bool complement,
    const LG_PTR* __restrict__ lengths, u32* __restrict__ w_words, LG_W* __restrict__ w_values,
    u64* counts, u64* notification, u64 serial, u64* edges) {
  Tallied tally{};
  pull_scalar<Chosen>({col_ptr, row_idx, values, a_iso}, {u_words, u_values, u_iso},
                      {m_words, complement, n}, Sums<LG_W>{w_words, w_values}, lengths, &tally);
  add_counts(tally, counts, notification, serial, edges);
}

extern "C" __global__ void spmv_csc_warp(
    i64 n, const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
    const LG_A* __restrict__ values, LG_A a_iso, const u32* __restrict__ u_words,
    const LG_U* __restrict__ u_values, LG_U u_iso, const u32* __restrict__ m_words, bool complement,
    const LG_PTR* __restrict__ lengths, u32* __restrict__ w_words, LG_W* __restrict__ w_values,
    u64* counts, u64* notification, u64 serial, u64* edges) {
  Tallied tally{};
  pull_warp<Chosen>({col_ptr, row_idx, values, a_iso}, {u_words, u_values, u_iso},
                    {m_words, complement, n}, Sums<LG_W>{w_words, w_values}, lengths, &tally);
  add_counts(tally, counts, notification, serial, edges);
}

extern "C" __global__ void spmv_csc_bitmap(
    i64 n, const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
    const LG_A* __restrict__ values, LG_A a_iso, const u32* __restrict__ u_words,
    const LG_U* __restrict__ u_values, LG_U u_iso, const u32* __restrict__ m_words, bool complement,
    const u32* __restrict__ empty, const i32* __restrict__ hint, const LG_PTR* __restrict__ lengths,
    u32* w_words, LG_W* __restrict__ w_values, u64* counts, u64* notification, u64 serial,
    u64* edges) {
  LG_SHARED(PutOff, later, 1);
  Tallied tally{};
  pull_bitmap<Chosen>({col_ptr, row_idx, values, a_iso}, {u_words, u_values, u_iso},
                      {m_words, complement, n}, Sums<LG_W>{w_words, w_values}, empty, hint, lengths,
                      later, &tally);
  add_counts(tally, counts, notification, serial, edges);
}
