// Masked products by the columns of a sparse vector's entries, one cooperative launch each: the
// strategies push_queue, push_active and push_virtual.
//
//   w[j] = (+)_i A[j,i] (x) u[i]   for every column i where u has an entry
//
// A has n_u columns and n_w rows: col_ptr, row_idx and values as in spmv.cu. The same code computes
// w = A' (+.x) u on the row form, or on the column form of a symmetric A. Writes w_words whole and
// w_values where there is an entry; LG_W is LG_Z unless the first product found is a sum.
// counts: [0] and [1] as in spmv.cu; [16], [32] lengths of the lists, zeroed by the caller.
#include "push.cuh"
#ifndef LG_W
#define LG_W bool
#endif
#ifndef LG_GROUP  // entries a group of push_virtual
#define LG_GROUP 32
#endif

const u32 kLine = 16;  // u64 a cache line: counters do not share one

// Degree classes. First the columns are listed, then short ones are followed by lanes of a warp
// together, others in chunks by warps.
// Sources: Merrill, Garland and Grimshaw, PPoPP 2012 (two-phase), with the exact bitmap of
// Hiragushi and Takahashi, ICA3PP 2013, section 3.1.
extern "C" __global__ void spmv_push_queue(
    i64 n_u, i64 n_w, const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
    const LG_A* __restrict__ values, LG_A a_iso, const u32* __restrict__ u_words,
    const LG_U* __restrict__ u_values, LG_U u_iso, const u32* __restrict__ m_words, bool complement,
    const LG_PTR* __restrict__ lengths, i32* vertex, LG_PTR* start, u32* degree, u64* chunks,
    u32* w_words, LG_W* w_values, u64* counts, u64* signal, u64 serial, u64* edges,
    GridBarrier* barrier) {
  typedef Chosen S;
  const Columns<S> a{col_ptr, row_idx, values, a_iso};
  const Operand<S> u{u_words, u_values, u_iso};
  const Mask mask{m_words, complement, n_w};
  const Sums<LG_W> w{w_words, w_values};
  const List<LG_PTR> small{vertex, start, degree};
  clear_sums<S>(w, n_w);
  list_columns(a, u_words, n_u, small, chunks, counts + kLine, counts + 2 * kLine);
  grid_sync(barrier);
  Tallied tally{};
  follow_lists(col_ptr, small, chunks, load_volatile(counts + kLine),
               load_volatile(counts + 2 * kLine), [&](bool valid, i64 p, i32 i) {
                 if (valid) add_entry(a, u, mask, w, lengths, p, i, &tally);
               });
  add_counts(tally, counts, signal, serial, edges);
}

// Active edges: a thread for some entries in a row of all those the columns have together, found
// by binary search in the offsets of the columns. vertex and offset list the columns, rising, with
// the number of entries before each; a block counts its share of the words, then writes it behind
// those of the blocks before it.
// Source: Bisson and Bernaschi, MGBC: section 3.1, active-edge parallelism.
extern "C" __global__ void spmv_push_active(
    i64 n_u, i64 n_w, const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
    const LG_A* __restrict__ values, LG_A a_iso, const u32* __restrict__ u_words,
    const LG_U* __restrict__ u_values, LG_U u_iso, const u32* __restrict__ m_words, bool complement,
    const LG_PTR* __restrict__ lengths, i32* vertex, LG_PTR* offset, u64* shares, u32* w_words,
    LG_W* w_values, u64* counts, u64* signal, u64 serial, u64* edges, GridBarrier* barrier) {
  typedef Chosen S;
  const Columns<S> a{col_ptr, row_idx, values, a_iso};
  const Operand<S> u{u_words, u_values, u_iso};
  const Mask mask{m_words, complement, n_w};
  const Sums<LG_W> w{w_words, w_values};
  LG_SHARED(u64, base, 4);
  clear_sums<S>(w, n_w);
  // The words of this block, a thread one at a time.
  const i64 nwords = (n_u + 31) / 32;
  const i64 share = (nwords + grid_blocks() - 1) / grid_blocks();
  const i64 begin = share * block_index();
  const i64 end = begin + share < nwords ? begin + share : nwords;
  u64 columns = 0, entries = 0;
  for (i64 k = begin + block_thread(); k < end; k += block_threads()) {
    for (u32 bits = entry_bits(u_words, k, n_u); bits; bits &= bits - 1) {
      const i64 v = k * 32 + bit_ffs(bits) - 1;
      ++columns;
      entries += u64(load_ro(&col_ptr[v + 1]) - load_ro(&col_ptr[v]));
    }
  }
  columns = block_reduce(columns, u64(0), LgPlus());
  entries = block_reduce(entries, u64(0), LgPlus());
  if (block_thread() == 0) {
    shares[2 * block_index()] = columns;
    shares[2 * block_index() + 1] = entries;
  }
  grid_sync(barrier);
  u64 before[4] = {0, 0, 0, 0};  // columns and entries of the blocks before this one, and of all
  for (u32 b = block_thread(); b < grid_blocks(); b += block_threads()) {
    const u64 c = load_cg(&shares[2 * b]), e = load_cg(&shares[2 * b + 1]);
    before[0] += b < block_index() ? c : 0;
    before[1] += b < block_index() ? e : 0;
    before[2] += c;
    before[3] += e;
  }
  for (u32 q = 0; q < 4; ++q) {
    const u64 sum = block_reduce(before[q], u64(0), LgPlus());
    if (block_thread() == 0) base[q] = sum;
  }
  block_sync();
  const u64 all_columns = base[2], all_entries = base[3];
  u64 column_base = base[0], entry_base = base[1];
  for (i64 tile = begin; tile < end; tile += block_threads()) {
    const i64 k = tile + block_thread();
    const u32 mine = k < end ? entry_bits(u_words, k, n_u) : 0;
    u64 length = 0;
    for (u32 bits = mine; bits; bits &= bits - 1) {
      const i64 v = k * 32 + bit_ffs(bits) - 1;
      length += u64(load_ro(&col_ptr[v + 1]) - load_ro(&col_ptr[v]));
    }
    u64 tile_columns, tile_entries;
    u64 c = column_base + block_scan(u64(bit_popc(mine)), &tile_columns);
    u64 e = entry_base + block_scan(length, &tile_entries);
    for (u32 bits = mine; bits; bits &= bits - 1, ++c) {
      const i64 v = k * 32 + bit_ffs(bits) - 1;
      vertex[c] = i32(v);
      offset[c] = LG_PTR(e);
      e += u64(load_ro(&col_ptr[v + 1]) - load_ro(&col_ptr[v]));
    }
    column_base += tile_columns;
    entry_base += tile_entries;
  }
  grid_sync(barrier);
  Tallied tally{};
  const u64 span = 256;  // entries a warp takes at once
  for (u64 first = u64(global_warp()) * span; first < all_entries;
       first += u64(global_warps()) * span) {
    const u64 last = first + span < all_entries ? first + span : all_entries;
    // Lane 0 finds the column of the span's first entry, lane 1 that of its last.
    const i64 bound = lane_id() < 2 ? last_not_after(offset, i64(lane_id() ? last - 1 : first), 0,
                                                     i64(all_columns) - 1)
                                    : 0;
    const i64 lo = warp_shfl(bound, 0), hi = warp_shfl(bound, 1);
    for (u64 e = first + lane_id(); e < last; e += 32) {
      const i64 k = last_not_after(offset, i64(e), lo, hi);
      const i32 i = load_cg(&vertex[k]);
      const i64 p = i64(load_ro(&col_ptr[i])) + i64(e) - i64(load_cg(&offset[k]));
      add_entry(a, u, mask, w, lengths, p, i, &tally);
    }
  }
  add_counts(tally, counts, signal, serial, edges);
}

// Virtual vertices: a column of more than LG_GROUP entries counts as several of at most so many,
// and a thread takes one. groups has (number << 32 | column).
// Source: Wen and Zhang, VBFS.
extern "C" __global__ void spmv_push_virtual(
    i64 n_u, i64 n_w, const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
    const LG_A* __restrict__ values, LG_A a_iso, const u32* __restrict__ u_words,
    const LG_U* __restrict__ u_values, LG_U u_iso, const u32* __restrict__ m_words, bool complement,
    const LG_PTR* __restrict__ lengths, u64* groups, u32* w_words, LG_W* w_values, u64* counts,
    u64* signal, u64 serial, u64* edges, GridBarrier* barrier) {
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
    if (lane_id() == 31 && upto) base = atomic_add(counts + kLine, upto);
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
  const u64 count = load_volatile(counts + kLine);
  for (u64 g = u64(global_thread()); g < count; g += u64(global_threads())) {
    const u64 group = load_cg(&groups[g]);
    const i32 i = i32(u32(group));
    const i64 begin = i64(load_ro(&col_ptr[i])) + i64(group >> 32) * LG_GROUP;
    const i64 stop = i64(load_ro(&col_ptr[i + 1]));
    const i64 end = begin + LG_GROUP < stop ? begin + LG_GROUP : stop;
    for (i64 p = begin; p < end; ++p) add_entry(a, u, mask, w, lengths, p, i, &tally);
  }
  add_counts(tally, counts, signal, serial, edges);
}
