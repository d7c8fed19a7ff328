// Masked products by expanding and contracting, one cooperative launch: the strategy push_merrill.
//
//   w[j] = (+)_i A[j,i] (x) u[i]   for every column i where u has an entry
//
// A, u, the mask, w and the counts as in spmv/push.cu. The columns are listed; their entries become
// an edge frontier in memory: edge_row has the row of each, edge_column its column and edge_place
// its place in A, null where the product reads neither. What is left of it is w.
//
// Sources: Merrill, Garland and Grimshaw, PPoPP 2012, two-phase; the exact bitmap by atomics from
// Hiragushi and Takahashi, ICA3PP 2013, section 3.2.
#include "spmv/push.cuh"
#ifndef LG_W
#define LG_W bool
#endif

const u32 kThreads = 256;   // of a block, at most
const u32 kScratch = 1024;  // short columns' entries that a block spreads at once
const u32 kWarpHash = 128;  // places of a warp for rows that its lanes have at the same time
const u32 kHistory = 1024;  // places of a block for rows that it has met

// A listed column, as the threads of a block know of it.
template <class PTR>
struct Listed {
  PTR start, count, to;  // its entries, and where they go
  i32 column;
  u32 before;  // entries of short columns of the threads before
};

// Call put(to, entry, column) for all entries of these columns. A thread takes a column, and leaves
// one of as many entries as the block has threads to the block, one of 32 and more to its warp; the
// block spreads the entries of the others among its threads.
template <class PTR, class Put>
LG_DEVICE void expand(const PTR* col_ptr, const Active<PTR>& active, Put put) {
  LG_SHARED(Listed<PTR>, listed, kThreads);
  LG_SHARED(u32, scratch, kScratch);
  LG_SHARED(u32, winner, 1);
  const u32 me = block_thread(), threads = block_threads();
  for (u64 tile = u64(block_index()) * threads; tile < active.columns;
       tile += u64(grid_blocks()) * threads) {
    PTR count = 0;
    if (tile + me < active.columns) {
      const i32 i = load_cg(&active.vertex[tile + me]);
      const PTR start = load_ro(&col_ptr[i]);
      count = load_ro(&col_ptr[i + 1]) - start;
      listed[me] = {start, count, load_cg(&active.offset[tile + me]), i, 0};
    }
    while (block_any(count >= PTR(threads))) {
      if (count >= PTR(threads)) winner[0] = me;  // any of them
      block_sync();
      const Listed<PTR> one = listed[winner[0]];
      if (winner[0] == me) count = 0;
      for (PTR q = PTR(me); q < one.count; q += PTR(threads))
        put(one.to + q, one.start + q, one.column);
    }
    for (u32 rest = warp_ballot(count >= 32); rest; rest &= rest - 1) {
      const Listed<PTR> one = listed[block_warp() * 32 + bit_ffs(rest) - 1];
      for (PTR q = PTR(lane_id()); q < one.count; q += 32)
        put(one.to + q, one.start + q, one.column);
    }
    const u32 mine = count < 32 ? u32(count) : 0;
    u64 total;
    u32 next = u32(block_scan(u64(mine), &total));
    const u32 all = u32(total), end = next + mine;
    listed[me].before = next;
    for (u32 first = 0; first < all; first += kScratch) {
      for (; next < end && next < first + kScratch; ++next) scratch[next - first] = me;
      block_sync();
      const u32 some = all - first < kScratch ? all - first : kScratch;
      for (u32 k = me; k < some; k += threads) {
        const Listed<PTR> one = listed[scratch[k]];
        const PTR q = PTR(first + k - one.before);
        put(one.to + q, one.start + q, one.column);
      }
      block_sync();
    }
  }
}

// Of the warp's lanes, one for each row: those with another in their place of the hash table, or
// with none, keep what they have. `rows` has kWarpHash places of the warp.
template <class IDX>
LG_DEVICE bool is_only_of_warp(IDX* rows, bool open, IDX j) {
  IDX* const place = &rows[u64(j) % kWarpHash];
  if (open) store_volatile(place, j);
  warp_sync();
  const bool there = open && load_volatile(place) == j;
  warp_sync();
  if (there) store_volatile(place, IDX(lane_id()));
  warp_sync();
  const bool lost = there && load_volatile(place) != IDX(lane_id());
  warp_sync();
  return open && !lost;
}

// Whether row j is new to the block, as far as it remembers. The thread that gets true goes on with
// the row; the others get false.
template <class IDX>
LG_DEVICE bool is_new_to_block(IDX* history, IDX j) {
  IDX* const place = &history[u64(j) % kHistory];
  if (load_volatile(place) == j) return false;
  store_volatile(place, j);
  return true;
}

extern "C" __global__ void spmv_push_merrill(
    i64 n_u, i64 n_w, const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
    const LG_A* __restrict__ values, LG_A a_iso, const u32* __restrict__ u_words,
    const LG_U* __restrict__ u_values, LG_U u_iso, const u32* __restrict__ m_words, bool complement,
    const LG_PTR* __restrict__ lengths, u64* shares, i32* vertex, LG_PTR* offset, LG_IDX* edge_row,
    i32* edge_column, LG_PTR* edge_place, u32* w_words, LG_W* w_values, u64* counts,
    u64* notification, u64 serial, u64* edges, GridBarrier* barrier) {
  typedef Chosen S;
  const Columns<S> a{col_ptr, row_idx, values, a_iso};
  const Operand<S> u{u_words, u_values, u_iso};
  const Mask mask{m_words, complement, n_w};
  const Sums<LG_W> w{w_words, w_values};
  LG_SHARED(u64, base, 4);
  LG_SHARED(LG_IDX, rows, kThreads / 32 * kWarpHash);
  LG_SHARED(LG_IDX, history, kHistory);
  clear_sums<S>(w, n_w);
  for (u32 k = block_thread(); k < kHistory; k += block_threads()) history[k] = -1;
  const Active<LG_PTR> active = list_active(col_ptr, n_u, vertex, offset, shares, base, barrier,
                                            [&](i64 k) { return entry_bits(u_words, k, n_u); });
  Tallied tally{};
  expand(col_ptr, active, [&](LG_PTR to, LG_PTR p, i32 i) {
    ++tally.looked_at;
    edge_row[to] = load_ro(&row_idx[p]);
    if (edge_column) edge_column[to] = i;
    if (edge_place) edge_place[to] = p;
  });
  grid_sync(barrier);
  // Contract: of the rows that the mask keeps and that w lacks, each is left once or a few times.
  // Sums that need all products keep them all.
  for (u64 first = u64(global_warp()) * 32; first < active.entries;
       first += u64(global_warps()) * 32) {
    const u64 e = first + lane_id();
    bool open = e < active.entries;
    const LG_IDX j = open ? load_cg(&edge_row[e]) : 0;
    const bool seen = open && is_seen(w, j);
    open = open && !(takes_first<S> && seen) && mask.keeps(j);
    if constexpr (takes_first<S>) {
      open = is_only_of_warp(&rows[block_warp() * kWarpHash], open, j);
      open = open && is_new_to_block(history, j);
    }
    if (!open) continue;
    const i64 p = edge_place ? i64(load_cg(&edge_place[e])) : 0;
    const i64 i = edge_column ? i64(load_cg(&edge_column[e])) : 0;
    add_to_row(a, u, w, lengths, p, i, j, seen, &tally);
  }
  add_counts(tally, counts, notification, serial, edges);
}
