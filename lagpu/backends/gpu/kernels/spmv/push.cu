// Masked products by the columns of a sparse vector's entries, one cooperative launch each: the
// strategies push_queue, push_active, push_virtual, push_vertex and, by what the mask keeps,
// pull_active.
//
//   w[j] = (+)_i A[j,i] (x) u[i]   for every column i where u has an entry
//
// A has n_u columns and n_w rows: col_ptr, row_idx and values as in spmv/pull.cu. The same code
// computes w = A' (+.x) u on the row form, or on the column form of a symmetric A. Writes w_words
// whole and w_values where there is an entry; LG_W is LG_Z unless the first product found is a sum.
// counts: [0] and [1] as in spmv/pull.cu; [16], [32] lengths of the lists, zeroed by the caller.
#include "spmv/push.cuh"
#ifndef LG_W
#define LG_W bool
#endif
#ifndef LG_GROUP  // entries a group of push_virtual
#define LG_GROUP 32
#endif
#ifndef LG_EACH  // entries of push_active that a thread takes with one search
#define LG_EACH 0
#endif

// Degree classes. First the columns are listed, then short ones are followed by lanes of a warp
// together, others in chunks by warps.
// Sources: Merrill, Garland and Grimshaw, PPoPP 2012 (two-phase), with the exact bitmap of
// Hiragushi and Takahashi, ICA3PP 2013, section 3.1.
extern "C" __global__ void spmv_push_queue(
    i64 n_u, i64 n_w, const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
    const LG_A* __restrict__ values, LG_A a_iso, const u32* __restrict__ u_words,
    const LG_U* __restrict__ u_values, LG_U u_iso, const u32* __restrict__ m_words, bool complement,
    const LG_PTR* __restrict__ lengths, i32* vertex, LG_PTR* start, u32* degree, u64* chunks,
    u32* w_words, LG_W* w_values, u64* counts, u64* notification, u64 serial, u64* edges,
    GridBarrier* barrier) {
  typedef Chosen S;
  const Columns<S> a{col_ptr, row_idx, values, a_iso};
  const Operand<S> u{u_words, u_values, u_iso};
  const Mask mask{m_words, complement, n_w};
  const Sums<LG_W> w{w_words, w_values};
  const List<LG_PTR> small{vertex, start, degree};
  clear_sums<S>(w, n_w);
  list_columns(a, u_words, n_u, small, chunks, counts + kCounterStride,
               counts + 2 * kCounterStride);
  grid_sync(barrier);
  Tallied tally{};
  follow_lists(col_ptr, small, chunks, load_volatile(counts + kCounterStride),
               load_volatile(counts + 2 * kCounterStride),
               Adder<S, LG_W>{a, u, mask, w, lengths, &tally});
  add_counts(tally, counts, notification, serial, edges);
}

// Active edges: a thread for some entries in a row of all those the columns have together, found
// by binary search in the offsets of the columns. LG_EACH of them with one search, or 0: 32 lanes
// side by side, within the columns of their warp's entries.
// Sources: Bisson and Bernaschi, MGBC: section 3.1, active-edge parallelism; of LG_EACH see
// follow_in_a_row.
extern "C" __global__ void spmv_push_active(
    i64 n_u, i64 n_w, const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
    const LG_A* __restrict__ values, LG_A a_iso, const u32* __restrict__ u_words,
    const LG_U* __restrict__ u_values, LG_U u_iso, const u32* __restrict__ m_words, bool complement,
    const LG_PTR* __restrict__ lengths, u64* shares, i32* vertex, LG_PTR* offset, u32* w_words,
    LG_W* w_values, u64* counts, u64* notification, u64 serial, u64* edges, GridBarrier* barrier) {
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
  constexpr u32 each = LG_EACH ? LG_EACH : 1;  // both branches are compiled
  if constexpr (LG_EACH > 0) {
    follow_in_a_row<each>(col_ptr, active, [&](u64, const Batch<LG_PTR, each>& edges) {
      add_entries(a, u, mask, w, lengths, edges, &tally);
    });
  } else {
    follow_active(col_ptr, active, [&](bool valid, i64 p, i32 i) {
      if (valid) add_entry(a, u, mask, w, lengths, p, i, &tally);
    });
  }
  add_counts(tally, counts, notification, serial, edges);
}

// The same for the columns of the results that the mask keeps: w[j] = (+)_i u[i] (x) A[i,j], A by
// columns of w, n of them. If `listed` is not negative, so many columns are listed already, by
// spmv_push_active with these columns' vector: the offsets of a forward sweep serve the backward
// one.
// Source: Bernaschi and others, Multilevel Parallelism for the Exploration of Large-Scale Graphs,
// section 5.4, the prefix sums of the dependency accumulation.
extern "C" __global__ void spmv_pull_active(
    i64 n, const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
    const LG_A* __restrict__ values, LG_A a_iso, const u32* __restrict__ u_words,
    const LG_U* __restrict__ u_values, LG_U u_iso, const u32* __restrict__ m_words, bool complement,
    const LG_PTR* __restrict__ lengths, u64* shares, i64 listed, i32* vertex, LG_PTR* offset,
    u32* w_words, LG_W* w_values, u64* counts, u64* notification, u64 serial, u64* edges,
    GridBarrier* barrier) {
  typedef Chosen S;
  const Columns<S> a{col_ptr, row_idx, values, a_iso};
  const Operand<S> u{u_words, u_values, u_iso};
  const Mask mask{m_words, complement, n};
  const Sums<LG_W> w{w_words, w_values};
  LG_SHARED(u64, base, 4);
  clear_sums<S>(w, n);
  Active<LG_PTR> active{vertex, offset, u64(listed), 0};
  if (listed > 0) {
    const i32 last = vertex[listed - 1];
    active.entries = u64(offset[listed - 1] + col_ptr[last + 1] - col_ptr[last]);
  }
  if (listed < 0)
    active = list_active(col_ptr, n, vertex, offset, shares, base, barrier,
                         [&](i64 k) { return mask.bits(k); });
  else
    grid_sync(barrier);  // w is clear
  Tallied tally{};
  follow_active(col_ptr, active, [&](bool valid, i64 p, i32 j) {
    gather_entries(a, u, w, lengths, valid, p, j, &tally);
  });
  add_counts(tally, counts, notification, serial, edges);
}

// Virtual vertices: a column of more than LG_GROUP entries counts as several of at most so many,
// and a thread takes one. groups has (number << 32 | column).
// Source: Wen and Zhang, VBFS.
extern "C" __global__ void spmv_push_virtual(
    i64 n_u, i64 n_w, const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
    const LG_A* __restrict__ values, LG_A a_iso, const u32* __restrict__ u_words,
    const LG_U* __restrict__ u_values, LG_U u_iso, const u32* __restrict__ m_words, bool complement,
    const LG_PTR* __restrict__ lengths, u64* groups, u32* w_words, LG_W* w_values, u64* counts,
    u64* notification, u64 serial, u64* edges, GridBarrier* barrier) {
  typedef Chosen S;
  const Columns<S> a{col_ptr, row_idx, values, a_iso};
  const Operand<S> u{u_words, u_values, u_iso};
  const Mask mask{m_words, complement, n_w};
  const Sums<LG_W> w{w_words, w_values};
  clear_sums<S>(w, n_w);
  const i64 nwords = (n_u + 31) / 32;
  for (i64 k = global_warp(); k < nwords; k += global_warps()) {
    const u32 bits = entry_bits(u_words, k, n_u);
    if (bits == 0) continue;
    const i64 v = k * 32 + lane_id();
    u64 mine = 0;
    if (bits >> lane_id() & 1)
      mine = (u64(load_ro(&col_ptr[v + 1]) - load_ro(&col_ptr[v])) + LG_GROUP - 1) / LG_GROUP;
    const u64 upto = warp_scan(mine, LgPlus());
    u64 base = 0;
    if (lane_id() == 31 && upto) base = atomic_add(counts + kCounterStride, upto);
    base = warp_shfl(base, 31);
    for (u32 rest = warp_ballot(mine != 0); rest; rest &= rest - 1) {  // together, as in enqueue
      const u32 from = bit_ffs(rest) - 1;
      const u64 count = warp_shfl(mine, from), stop = warp_shfl(upto, from);
      for (u64 g = lane_id(); g < count; g += 32)
        groups[base + stop - count + g] = g << 32 | u64(k * 32 + from);
    }
  }
  grid_sync(barrier);
  Tallied tally{};
  const u64 count = load_volatile(counts + kCounterStride);
  for (u64 g = u64(global_thread()); g < count; g += u64(global_threads())) {
    const u64 group = load_cg(&groups[g]);
    const i32 i = i32(u32(group));
    const i64 begin = i64(load_ro(&col_ptr[i])) + i64(group >> 32) * LG_GROUP;
    const i64 stop = i64(load_ro(&col_ptr[i + 1]));
    const i64 end = begin + LG_GROUP < stop ? begin + LG_GROUP : stop;
    for (i64 p = begin; p < end; ++p) add_entry(a, u, mask, w, lengths, p, i, &tally);
  }
  add_counts(tally, counts, notification, serial, edges);
}

// A thread for each column, whether u has an entry there or not: no list, and who takes a column of
// many entries follows them all.
// Source: Wen and Zhang, VBFS: algorithm 1, the baseline. u's words are its GraphMask, w's its
// UpdateGraphMask; no thread exchanges the two, as the next product reads w.
extern "C" __global__ void spmv_push_vertex(
    i64 n_u, i64 n_w, const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
    const LG_A* __restrict__ values, LG_A a_iso, const u32* __restrict__ u_words,
    const LG_U* __restrict__ u_values, LG_U u_iso, const u32* __restrict__ m_words, bool complement,
    const LG_PTR* __restrict__ lengths, u32* w_words, LG_W* w_values, u64* counts,
    u64* notification, u64 serial, u64* edges, GridBarrier* barrier) {
  typedef Chosen S;
  const Columns<S> a{col_ptr, row_idx, values, a_iso};
  const Operand<S> u{u_words, u_values, u_iso};
  const Mask mask{m_words, complement, n_w};
  const Sums<LG_W> w{w_words, w_values};
  clear_sums<S>(w, n_w);
  grid_sync(barrier);
  Tallied tally{};
  for (i64 i = global_thread(); i < n_u; i += global_threads()) {
    if (!has_entry(u_words, i)) continue;
    const i64 end = i64(load_ro(&col_ptr[i + 1]));
    for (i64 p = i64(load_ro(&col_ptr[i])); p < end; ++p)
      add_entry(a, u, mask, w, lengths, p, i, &tally);
  }
  add_counts(tally, counts, notification, serial, edges);
}
