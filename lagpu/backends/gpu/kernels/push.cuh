// Masked products that start from the entries of u: w<m> = A (+.x) u by the columns of A.
//
//   w[j] = (+)_i A[j,i] (x) u[i]   for every column i where u has an entry
//
// A by columns, u and w as in product.cuh; products meet in w by atomics. Work is handed out in two
// phases with a barrier of the grid between them: first the columns are listed, then their entries
// are followed. w's words are zero before the second phase, and its values the identity.
#ifndef LAGPU_PUSH_CUH
#define LAGPU_PUSH_CUH
#include "product.cuh"

const u32 kSmall = 32;   // a column with more entries is followed in chunks
const u32 kChunk = 256;  // entries a chunk, a warp takes one

// Columns with the place of their entries, so that who takes one need not ask for it.
template <class PTR>
struct List {
  i32* vertex;
  PTR* start;
  u32* degree;
};

// Lanes with `won` put their column, whose entries are start .. stop, into the lists: short ones
// into `small`, chunks (number << 32 | column) of others into `chunks`.
template <class PTR>
LG_DEVICE void enqueue(const List<PTR>& small, u64* chunks, u64* num_small, u64* num_chunks,
                       bool won, i32 v, PTR start, PTR stop) {
  const u32 lane = lane_id();
  const u64 degree = u64(stop - start);
  const bool is_small = won && degree <= kSmall;
  const u32 smalls = warp_ballot(is_small);
  if (smalls) {
    u64 at = 0;
    if (lane == 0) at = atomic_add(num_small, bit_popc(smalls));
    at = warp_shfl(at, 0) + bit_popc(smalls & lanes_below());
    if (is_small) {
      small.vertex[at] = v;
      small.start[at] = start;
      small.degree[at] = u32(degree);
    }
  }
  u32 larges = warp_ballot(won && !is_small);
  if (!larges) return;
  const u32 mine = won && !is_small ? u32((degree + kChunk - 1) / kChunk) : 0;
  const u32 upto = warp_scan(mine, LgPlus());
  u64 base = 0;
  if (lane == 31) base = atomic_add(num_chunks, upto);
  base = warp_shfl(base, 31);
  for (; larges; larges &= larges - 1) {  // the warp writes each column's chunks together
    const u32 from = bit_ffs(larges) - 1;
    const i32 vertex = warp_shfl(v, from);
    const u32 count = warp_shfl(mine, from), end = warp_shfl(upto, from);
    for (u32 c = lane; c < count; c += 32)
      chunks[base + end - count + c] = u64(c) << 32 | u32(vertex);
  }
}

// Call follow(valid, entry, column) for every entry of the listed columns, a lane each: a warp
// takes a chunk, or up to 32 short columns whose entries its lanes share. Work goes round the
// blocks first, so that a short list has many processors.
template <class PTR, class Follow>
LG_DEVICE void follow_lists(const PTR* ptr, const List<PTR>& small, const u64* chunks,
                            u64 num_small, u64 num_chunks, Follow follow) {
  const u64 warp = u64(block_warp()) * grid_blocks() + block_index();
  const u64 warps = u64(global_warps());
  for (u64 q = warp; q < num_chunks; q += warps) {
    const u64 chunk = load_cg(&chunks[q]);
    const i32 i = i32(u32(chunk));
    const i64 begin = i64(ptr[i]) + i64(chunk >> 32) * kChunk;
    const i64 stop = i64(ptr[i + 1]);
    const i64 end = begin + kChunk < stop ? begin + kChunk : stop;
    for (i64 p = begin; p < end; p += 32) follow(p + lane_id() < end, p + lane_id(), i);
  }
  u32 group = 32;  // columns a warp: fewer where that keeps more warps busy
  while (group > 4 && num_small <= warps * (group / 2)) group /= 2;
  for (u64 q = warp * group; q < num_small; q += warps * group) {
    i32 i = 0;
    i64 start = 0;
    u32 degree = 0;
    if (lane_id() < group && q + lane_id() < num_small) {
      i = load_cg(&small.vertex[q + lane_id()]);
      start = load_cg(&small.start[q + lane_id()]);
      degree = load_cg(&small.degree[q + lane_id()]);
    }
    const u32 upto = warp_scan(degree, LgPlus());
    const u32 before = upto - degree, total = warp_shfl(upto, 31);
    for (u32 e0 = 0; e0 < total; e0 += 32) {
      const u32 e = e0 + lane_id();
      u32 owner = 0;  // the last lane whose entries begin at or before e
      for (u32 step = 16; step; step /= 2) {
        const u32 begins = warp_shfl(before, owner + step);
        if (begins <= e) owner += step;
      }
      const i64 owner_start = warp_shfl(start, owner);
      const u32 owner_before = warp_shfl(before, owner);
      const i32 owner_vertex = warp_shfl(i, owner);
      follow(e < total, owner_start + (e - owner_before), owner_vertex);
    }
  }
}

// w without entries, each of its n values the identity if sums begin there.
template <class S, class W>
LG_DEVICE void clear_sums(const Sums<W>& w, i64 n) {
  for (i64 k = global_thread(); k < (n + 31) / 32; k += global_threads()) w.words[k] = 0;
  if constexpr (!takes_first<S>)
    for (i64 k = global_thread(); k < n; k += global_threads())
      w.values[k] = empty_sum<typename S::ADD, W>();
}

// Put u's entries, of n columns, into the lists.
template <class S>
LG_DEVICE void list_columns(const Columns<S>& a, const u32* u_words, i64 n,
                            const List<typename S::PTR>& small, u64* chunks, u64* num_small,
                            u64* num_chunks) {
  typedef typename S::PTR PTR;
  const i64 nwords = (n + 31) / 32;
  for (i64 w0 = global_warp() * 32; w0 < nwords; w0 += global_warps() * 32) {
    const i64 w = w0 + lane_id();
    u32 bits = w < nwords ? entry_bits(u_words, w, n) : 0;
    while (warp_any(bits != 0)) {
      const bool there = bits != 0;
      i32 v = 0;
      PTR start = 0, stop = 0;
      if (there) {
        v = i32(w * 32) + i32(bit_ffs(bits)) - 1;
        bits &= bits - 1;
        start = load_ro(&a.ptr[v]);
        stop = load_ro(&a.ptr[v + 1]);
      }
      enqueue(small, chunks, num_small, num_chunks, there && start != stop, v, start, stop);
    }
  }
}

// The entries that some columns have together, numbered in one row: vertex and offset list the
// columns, rising, with the number of entries before each.
// Source: Bisson and Bernaschi, MGBC: section 3.1, active-edge parallelism.
template <class PTR>
struct Active {
  i32* vertex;
  PTR* offset;
  u64 columns, entries;
};

// List the columns whose bit is set in bits_of(k) for word k, of n; the barrier is passed twice. A
// block counts its share of the words, then writes it behind those of the blocks before it.
template <class PTR, class Bits>
LG_DEVICE Active<PTR> list_active(const PTR* col_ptr, i64 n, i32* vertex, PTR* offset, u64* shares,
                                  u64* base, GridBarrier* barrier, Bits bits_of) {
  // The words of this block, a thread one at a time.
  const i64 nwords = (n + 31) / 32;
  const i64 share = (nwords + grid_blocks() - 1) / grid_blocks();
  const i64 begin = share * block_index();
  const i64 end = begin + share < nwords ? begin + share : nwords;
  u64 columns = 0, entries = 0;
  for (i64 k = begin + block_thread(); k < end; k += block_threads()) {
    for (u32 bits = bits_of(k); bits; bits &= bits - 1) {
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
  const Active<PTR> all{vertex, offset, base[2], base[3]};
  u64 column_base = base[0], entry_base = base[1];
  for (i64 tile = begin; tile < end; tile += block_threads()) {
    const i64 k = tile + block_thread();
    const u32 mine = k < end ? bits_of(k) : 0;
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
      offset[c] = PTR(e);
      e += u64(load_ro(&col_ptr[v + 1]) - load_ro(&col_ptr[v]));
    }
    column_base += tile_columns;
    entry_base += tile_entries;
  }
  grid_sync(barrier);
  return all;
}

// Call follow(valid, entry, column) for every entry of these columns, a lane each, 32 in a row at a
// time by each warp; the column is found by binary search.
template <class PTR, class Follow>
LG_DEVICE void follow_active(const PTR* col_ptr, const Active<PTR>& active, Follow follow) {
  const u64 span = 256;  // entries a warp takes at once
  for (u64 first = u64(global_warp()) * span; first < active.entries;
       first += u64(global_warps()) * span) {
    const u64 last = first + span < active.entries ? first + span : active.entries;
    // Lane 0 finds the column of the span's first entry, lane 1 that of its last.
    const i64 bound = lane_id() < 2
                          ? last_not_after(active.offset, i64(lane_id() ? last - 1 : first), 0,
                                           i64(active.columns) - 1)
                          : 0;
    const i64 lo = warp_shfl(bound, 0), hi = warp_shfl(bound, 1);
    for (u64 e0 = first; e0 < last; e0 += 32) {
      const bool valid = e0 + lane_id() < last;
      const u64 e = valid ? e0 + lane_id() : last - 1;
      const i64 k = last_not_after(active.offset, i64(e), lo, hi);
      const i32 i = load_cg(&active.vertex[k]);
      follow(valid, i64(load_ro(&col_ptr[i])) + i64(e) - i64(load_cg(&active.offset[k])), i);
    }
  }
}

// Add the product of entry p of column i to its result. Sums are made in their own type, so W is
// another one only where the first product is the sum.
template <class S, class W>
LG_DEVICE void add_entry(const Columns<S>& a, const Operand<S>& u, const Mask& mask,
                         const Sums<W>& w, const typename S::PTR* lengths, i64 p, i64 i,
                         Tallied* tally) {
  ++tally->looked_at;
  const i64 j = load_ro(&a.idx[p]);
  const u32 bit = 1u << (j % 32);
  u32* const word = &w.words[j / 32];
  const bool seen = load_cg(word) & bit;
  if ((takes_first<S> && seen) || !mask.keeps(j)) return;
  if constexpr (S::iso) {
  } else if constexpr (takes_first<S>) {
    w.values[j] = cast<W>(multiply(a, u, p, i, j));  // every writer's value will do
  } else {
    static_assert(IsSame<W, typename S::Z>::value, "a sum is made in its own type");
    atomic_accumulate<typename S::ADD, W>(&w.values[j], multiply(a, u, p, i, j));
  }
  if (!seen && !(atomic_or(word, bit) & bit)) count_found(lengths, j, tally);
}

// Add the products of entries p of columns j, a lane each, to their columns' results: lanes of one
// column add theirs first, and the lowest of them writes.
template <class S, class W>
LG_DEVICE void gather_entries(const Columns<S>& a, const Operand<S>& u, const Sums<W>& w,
                              const typename S::PTR* lengths, bool valid, i64 p, i32 j,
                              Tallied* tally) {
  typedef typename S::Z Z;
  const i64 i = valid ? i64(load_ro(&a.idx[p])) : 0;
  tally->looked_at += valid;
  bool some = valid && has_entry(u.words, i);
  Z sum = Z();
  if constexpr (!S::iso)
    if (some) sum = multiply(a, u, p, i, j);
  for (u32 step = 1; step < 32; step *= 2) {
    const u32 from = (lane_id() + step) % 32;
    const i32 column = warp_shfl(j, from);
    const bool other = warp_shfl(u32(some), from) && column == j && lane_id() + step < 32;
    if constexpr (!S::iso) {
      const Z more = warp_shfl(sum, from);
      if (other) sum = some ? add<typename S::ADD>(sum, more) : more;
    }
    some |= other;
  }
  const i32 below = warp_shfl(j, (lane_id() + 31) % 32);
  if (!some || (lane_id() && below == j)) return;
  if constexpr (S::iso) {
  } else if constexpr (takes_first<S>) {
    w.values[j] = cast<W>(sum);
  } else {
    static_assert(IsSame<W, Z>::value, "a sum is made in its own type");
    atomic_accumulate<typename S::ADD, W>(&w.values[j], sum);
  }
  const u32 bit = 1u << (j % 32);
  if (!(atomic_or(&w.words[j / 32], bit) & bit)) count_found(lengths, j, tally);
}

#endif  // LAGPU_PUSH_CUH
