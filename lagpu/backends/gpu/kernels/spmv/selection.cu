// Products with a selection matrix, each in one launch: the formulas are in spmv/selection.cuh.
//
// f has m entries at most, of type LG_F, and P nrows rows; u, the mask and w as in spmv/pull.cu. A
// scatter's w is cleared before by selection_reset, and sums are made by atomics. *count += entries
// of w, *edges += entries of P looked at unless null.
#include "spmv/push.cuh"
#include "spmv/selection.cuh"
#ifndef LG_F
#define LG_F i32
#endif

extern "C" __global__ void selection_gather(i64 m, i64 nrows, const u32* f_words,
                                            const LG_F* f_values, LG_F f_iso, const u32* u_words,
                                            const LG_U* u_values, LG_U u_iso, const u32* m_words,
                                            bool complement, u32* w_words, LG_Z* w_values,
                                            u64* count, u64* edges) {
  Tallied tally{};
  gather_selected<Chosen>(Selector<LG_F>{f_words, f_values, f_iso, m, nrows},
                          Operand<Chosen>{u_words, u_values, u_iso}, Mask{m_words, complement, m},
                          Sums<LG_Z>{w_words, w_values}, &tally);
  add_total(tally.found, count);
  if (edges) add_total(tally.looked_at, edges);
}

extern "C" __global__ void selection_scatter(i64 m, i64 nrows, const u32* f_words,
                                             const LG_F* f_values, LG_F f_iso, const u32* u_words,
                                             const LG_U* u_values, LG_U u_iso, const u32* m_words,
                                             bool complement, u32* w_words, LG_Z* w_values,
                                             u64* count, u64* edges) {
  Tallied tally{};
  scatter_selected<Chosen>(Selector<LG_F>{f_words, f_values, f_iso, m, nrows},
                           Operand<Chosen>{u_words, u_values, u_iso},
                           Mask{m_words, complement, nrows}, Sums<LG_Z>{w_words, w_values}, &tally);
  add_total(tally.found, count);
  if (edges) add_total(tally.looked_at, edges);
}

extern "C" __global__ void selection_reset(i64 nrows, u32* w_words, LG_Z* w_values) {
  clear_sums<Chosen>(Sums<LG_Z>{w_words, w_values}, nrows);
}
