// Masked products by scattering and compacting, one cooperative launch: the strategy push_scatter.
//
//   w[j] = (+)_i A[j,i] (x) u[i]   for every column i where u has an entry
//
// A, u, the mask, w and the counts as in spmv/push.cu; edge_row, edge_column and edge_place as in
// spmv/merrill.cu, for the entries in the order of the listed columns. Of the entries of one row
// that meet, the one is taken whose number a plain store has left in `map`: any of them, which no
// atomic has to settle. map and chosen have n_w places; map keeps what earlier products left.
//
// Source: the expansion with benign races, an integer map and a compact primitive of Bernaschi
// and Mastrostefano, as Bisson, Bernaschi and Mastrostefano compare with it (section 2.1, figure
// 9).
#include "spmv/push.cuh"
#ifndef LG_W
#define LG_W bool
#endif

// List the numbers e of 0 .. total for which is_chosen(e), rising; the barrier is passed twice. A
// block counts its share, then writes it after those of the blocks before it. Returns how many.
template <class PTR, class IsChosen>
LG_DEVICE u64 compact(u64 total, PTR* list, u64* shares, GridBarrier* barrier, IsChosen is_chosen) {
  const u64 share = (total + grid_blocks() - 1) / grid_blocks();
  const u64 begin = share * block_index();
  const u64 end = begin + share < total ? begin + share : total;
  u64 mine = 0;
  for (u64 e = begin + block_thread(); e < end; e += block_threads()) mine += is_chosen(e);
  mine = block_reduce(mine, u64(0), LgPlus());
  if (block_thread() == 0) shares[block_index()] = mine;
  grid_sync(barrier);
  u64 before = 0, all = 0;
  for (u32 b = block_thread(); b < grid_blocks(); b += block_threads()) {
    const u64 count = load_cg(&shares[b]);
    before += b < block_index() ? count : 0;
    all += count;
  }
  before = block_reduce(before, u64(0), LgPlus());
  all = block_reduce(all, u64(0), LgPlus());
  for (u64 tile = begin; tile < end; tile += block_threads()) {
    const u64 e = tile + block_thread();
    const bool chosen = e < end && is_chosen(e);
    u64 count;
    const u64 to = before + block_scan(u64(chosen), &count);
    if (chosen) list[to] = PTR(e);
    before += count;
  }
  grid_sync(barrier);
  return all;
}

extern "C" __global__ void spmv_push_scatter(
    i64 n_u, i64 n_w, const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
    const LG_A* __restrict__ values, LG_A a_iso, const u32* __restrict__ u_words,
    const LG_U* __restrict__ u_values, LG_U u_iso, const u32* __restrict__ m_words, bool complement,
    const LG_PTR* __restrict__ lengths, u64* shares, i32* vertex, LG_PTR* offset, LG_IDX* edge_row,
    i32* edge_column, LG_PTR* edge_place, LG_PTR* map, LG_PTR* chosen, u32* w_words, LG_W* w_values,
    u64* counts, u64* notification, u64 serial, u64* edges, GridBarrier* barrier) {
  typedef Chosen S;
  const Columns<S> a{col_ptr, row_idx, values, a_iso};
  const Operand<S> u{u_words, u_values, u_iso};
  const Mask mask{m_words, complement, n_w};
  const Sums<LG_W> w{w_words, w_values};
  LG_SHARED(u64, base, 4);
  clear_sums<S>(w, n_w);
  const Active<LG_PTR> active = list_active(col_ptr, n_u, vertex, offset, shares, base, barrier,
                                            [&](i64 k) { return entry_bits(u_words, k, n_u); });
  Tallied tally{};
  follow_in_a_row<1>(col_ptr, active, [&](u64 e, const Batch<LG_PTR, 1>& edge) {
    ++tally.looked_at;
    const LG_IDX j = load_ro(&row_idx[edge.entry[0]]);
    const bool kept = mask.keeps(j);
    edge_row[e] = kept ? j : LG_IDX(-1);
    if (!kept) return;
    if (takes_first<S>) map[j] = LG_PTR(e);  // the last of those that store is taken
    if (edge_column) edge_column[e] = edge.column[0];
    if (edge_place) edge_place[e] = edge.entry[0];
  });
  grid_sync(barrier);
  u64 total = active.entries;
  if constexpr (takes_first<S>)
    total = compact(active.entries, chosen, shares, barrier, [&](u64 e) {
      const LG_IDX j = load_cg(&edge_row[e]);
      return j >= 0 && load_cg(&map[j]) == LG_PTR(e);
    });
  // Sums that need all products take all that the mask keeps, by atomics.
  for (u64 k = u64(global_thread()); k < total; k += u64(global_threads())) {
    const u64 e = takes_first<S> ? u64(load_cg(&chosen[k])) : k;
    const LG_IDX j = load_cg(&edge_row[e]);
    if (j < 0) continue;
    const i64 p = edge_place ? i64(load_cg(&edge_place[e])) : 0;
    const i64 i = edge_column ? i64(load_cg(&edge_column[e])) : 0;
    add_to_row(a, u, w, lengths, p, i, j, false, &tally);
  }
  add_counts(tally, counts, notification, serial, edges);
}
