// Products whose sums have every entry of the matrix: what pull_bitmap runs for a full vector and
// no mask.
//
//   w[j] = (+)_i u[i] (x) A[i,j]   for every column j that has entries
//
//   spmv_csc_sums:   any products, one cooperative launch
//   spmv_csc_equal:  equal products p, which add up to the length of the column times p
//
// A and w as in spmv/pull.cu; heads, before, column, there and are_short as in spmv/sums.cuh;
// row_idx has ranks if there are any. u_words, m_words and complement are not read. counts[0] +=
// nw, counts[1]
// += frontier_edges, *edges += nvals unless it is null.
#include "spmv/sums.cuh"

extern "C" __global__ void spmv_csc_sums(
    i64 n, i64 nrows, i64 nvals, const LG_PTR* __restrict__ col_ptr,
    const LG_IDX* __restrict__ row_idx, const LG_A* __restrict__ values, LG_A a_iso,
    const u32* __restrict__ u_words, const LG_U* __restrict__ u_values, LG_U u_iso,
    const u32* __restrict__ m_words, bool complement, const u32* __restrict__ heads,
    const u32* __restrict__ before, const i32* __restrict__ column, const u32* __restrict__ there,
    bool are_short, LG_Z* parts, const i32* __restrict__ rank, LG_U* by_rank, u64 nw,
    u64 frontier_edges, u32* w_words, LG_W* __restrict__ w_values, u64* counts, u64* notification,
    u64 serial, u64* edges, GridBarrier* barrier) {
  typedef Chosen S;
  sum_all<S>(Columns<S>{col_ptr, row_idx, values, a_iso}, Operand<S>{nullptr, u_values, u_iso},
             Whole<S>{heads, before, column, there, are_short, nvals, n, nrows, parts, row_idx,
                      rank, by_rank, 0},
             Sums<LG_W>{w_words, w_values}, barrier);
  Tallied tally{};
  if (global_thread() == 0) tally = {nw, u64(nvals), frontier_edges};
  add_counts(tally, counts, notification, serial, edges);
}

// Grid stride over presence words, a lane a column; no entry of the matrix is looked at.
extern "C" __global__ void spmv_csc_equal(i64 n, const LG_PTR* __restrict__ col_ptr, LG_A a_iso,
                                          const u32* __restrict__ u_words,
                                          const LG_U* __restrict__ u_values, LG_U u_iso,
                                          const u32* __restrict__ m_words, bool complement,
                                          u64 frontier_edges, u32* __restrict__ w_words,
                                          LG_W* __restrict__ w_values, u64* counts,
                                          u64* notification, u64 serial, u64* edges) {
  typedef Chosen S;
  const LG_A* const none = nullptr;
  const LG_Z product = multiply<S>(u_values, u_iso, none, a_iso, 0, 0, 0, 0, 0);
  Tallied tally{};
  for (i64 word = global_warp(); word < (n + 31) / 32; word += global_warps()) {
    const i64 j = word * 32 + lane_id();
    const u64 length = j < n ? u64(col_ptr[j + 1] - col_ptr[j]) : 0;
    LG_Z sum;
    if constexpr (Limits<LG_Z>::is_float) {
      sum = LG_Z(length) * product;
    } else {
      sum = LG_Z(length * u64(product));  // modulo its range, as sums are
    }
    if (length) w_values[j] = cast<LG_W>(sum);
    const u32 bits = warp_ballot(length != 0);
    if (lane_id() == 0) w_words[word] = bits;
    tally.found += length != 0;
  }
  if (global_thread() == 0) tally.frontier_edges = frontier_edges;
  add_counts(tally, counts, notification, serial, edges);
}
