// Masked products that start from the entries of u: w<m> = A (+.x) u by the columns of A.
//
//   w[j] = (+)_i A[j,i] (x) u[i]   for every column i where u has an entry
//
// A by columns, u and w as in common/product.cuh; products are added into w by atomics. Work is
// shared in two phases with a barrier of the grid between them: first the columns are listed, then
// their entries are followed. w's words are zero before the second phase, and its values the
// identity.
#ifndef LAGPU_SPMV_PUSH_CUH
#define LAGPU_SPMV_PUSH_CUH
#include "common/product.cuh"

const u32 kOwnChunks = 8;  // chunks of a column that one lane lists
const u32 kTogether = 2;   // entries that a lane follows together

// Columns with the place of their entries, so that who takes one need not ask for it. Two lists may
// share arrays: the second goes down from their ends, where its `back` is -1. It has their lengths,
// not pointers of its own, which would take registers. With MOST, only so many columns have places,
// and others are looked up.
template <class PTR, u32 MOST = ~0u>
struct List {
  i32* vertex;
  PTR* start;
  u32* degree;
  i32 back = 0;
  u32 room = 0;    // of `vertex`, from the back
  u32 places = 0;  // of `start` and `degree`

  // Where entry k is, and where chunk k is from a pointer behind the last of a second list.
  LG_DEVICE u32 at(u32 k) const { return u32(chunk(k)) + room; }
  LG_DEVICE i32 chunk(u32 k) const { return i32(k) ^ back; }

  LG_DEVICE void put(u32 k, i32 v, PTR begin, u32 count) const {
    vertex[at(k)] = v;
    if (k >= MOST) return;
    const u32 to = u32(chunk(k)) + places;
    start[to] = begin;
    degree[to] = count;
  }
  // The column of entry k, of a matrix with these pointers, and the place of its entries.
  LG_DEVICE i32 take(u32 k, const PTR* ptr, PTR* begin, u32* count) const {
    const i32 v = load_cg(&vertex[at(k)]);
    if (k < MOST) {
      const u32 from = u32(chunk(k)) + places;
      *begin = load_cg(&start[from]);
      *count = load_cg(&degree[from]);
    } else {
      *begin = load_ro(&ptr[v]);
      *count = u32(load_ro(&ptr[v + 1]) - *begin);
    }
    return v;
  }
};

// Columns that a lane has found, one after the other; bit q of `there` if the q-th is one.
template <class PTR, u32 N>
struct Found {
  i32 vertex[N];
  PTR start[N], stop[N];  // its entries
  u32 there;
};

// Put the lanes' columns into the lists: short ones into `small`, chunks (number << 32 | column) of
// others into `chunks`. A warp asks each list for room once: many ask at the same time.
template <class PTR, u32 MOST, u32 N>
LG_DEVICE void enqueue(const List<PTR, MOST>& small, u64* chunks, u64* num_small, u64* num_chunks,
                       const Found<PTR, N>& found) {
  u32 shorts[N], count[N], total = 0, mine = 0;  // lanes with a short one; chunks of a long one
  for (u32 q = 0; q < N; ++q) {
    const bool there = found.there >> q & 1;
    const u32 degree = u32(found.stop[q] - found.start[q]);
    shorts[q] = warp_ballot(there && degree <= kSmall);
    total += bit_popc(shorts[q]);
    count[q] = there && degree > kSmall ? (degree + kChunk - 1) / kChunk : 0;
    mine += count[q];
  }
  if (total) {
    u32 at = 0;
    if (lane_id() == 0) at = u32(atomic_add(num_small, u64(total)));
    at = warp_shfl(at, 0);
    for (u32 q = 0; q < N; ++q) {
      const u32 to = at + bit_popc(shorts[q] & lanes_below());
      at += bit_popc(shorts[q]);
      if (!(shorts[q] >> lane_id() & 1)) continue;
      small.put(to, found.vertex[q], found.start[q], u32(found.stop[q] - found.start[q]));
    }
  }
  if (!warp_any(mine != 0)) return;
  const u32 upto = warp_scan(mine, LgPlus());
  u32 to = 0;
  if (lane_id() == 31) to = u32(atomic_add(num_chunks, u64(upto)));
  to = warp_shfl(to, 31) + (upto - mine);
  for (u32 q = 0; q < N; ++q) {
    // A lane writes a few chunks; the warp together those of a column that has many.
    for (u32 c = 0; c < count[q] && c < kOwnChunks; ++c)
      chunks[small.chunk(to + c)] = u64(c) << 32 | u32(found.vertex[q]);
    for (u32 rest = warp_ballot(count[q] > kOwnChunks); rest; rest &= rest - 1) {
      const u32 from = bit_ffs(rest) - 1;
      const u32 first = warp_shfl(to, from);
      const u32 vertex = u32(warp_shfl(found.vertex[q], from)), many = warp_shfl(count[q], from);
      for (u32 c = kOwnChunks + lane_id(); c < many; c += 32)
        chunks[small.chunk(first + c)] = u64(c) << 32 | vertex;
    }
    to += count[q];
  }
}

// Entries that a lane follows together; bit q of `there` if the q-th is one: else the place is that
// of another, so that it can be loaded all the same.
template <class PTR, u32 N>
struct Batch {
  PTR entry[N];
  i32 column[N];
  u32 there;
};

// Call follow(edges) with entries first .. first + N * 32 of the `total` that the columns of the
// warp's lanes have, those of one lane from `start` on and after `before` of others.
template <u32 N, class PTR, class Follow>
LG_DEVICE void share(i32 column, PTR start, u32 before, u32 first, u32 total, Follow follow) {
  Batch<PTR, N> edges;
  edges.there = 0;
  for (u32 q = 0; q < N; ++q) {
    const u32 place = first + q * 32 + lane_id();
    const u32 e = place < total ? place : total - 1;
    u32 owner = 0;  // the last lane whose entries begin at or before e
    for (u32 step = 16; step; step /= 2) {
      const u32 begins = warp_shfl(before, owner + step);
      if (begins <= e) owner += step;
    }
    edges.entry[q] = warp_shfl(start, owner) + PTR(e - warp_shfl(before, owner));
    edges.column[q] = warp_shfl(column, owner);
    edges.there |= u32(place < total) << q;
  }
  follow(edges);
}

// Call follow(edges) for all entries of the listed columns, some a lane: a warp takes a part of a
// chunk, or up to 32 short columns, whose entries its lanes share. Few chunks are cut into parts,
// and few columns make small groups, so that more warps are busy: a level is a chain of loads, one
// after the other, which each part goes through once. Work goes round the blocks first.
template <class PTR, u32 MOST, class Follow>
LG_DEVICE void follow_lists(const PTR* ptr, const List<PTR, MOST>& small, const u64* chunks,
                            u64 num_small, u64 num_chunks, Follow follow) {
  const u32 warps = u32(global_warps());
  u32 cut = 0;  // a chunk is 1 << cut parts
  while (kChunk >> cut > 32 && num_chunks << (cut + 1) <= warps) ++cut;
  u32 fold = 5;  // 1 << fold columns a warp
  while (fold > 2 && num_small <= u64(warps) << (fold - 1)) --fold;
  const u32 parts = u32(num_chunks << cut);
  const u32 all = parts + u32((num_small + (1u << fold) - 1) >> fold);
  for (u32 q = u32(block_warp() * grid_blocks() + block_index()); q < all; q += warps) {
    i32 i = 0;
    PTR start = 0;
    u32 degree = 0;
    if (q < parts) {
      const u64 chunk = load_cg(&chunks[small.chunk(q >> cut)]);
      i = i32(u32(chunk));
      const PTR stop = ptr[i + 1];
      start =
          ptr[i] + PTR(chunk >> 32) * PTR(kChunk) + PTR(q & ((1u << cut) - 1)) * PTR(kChunk >> cut);
      if (lane_id() == 0 && start < stop)
        degree = stop - start < PTR(kChunk >> cut) ? u32(stop - start) : kChunk >> cut;
    } else {
      const u32 k = ((q - parts) << fold) + lane_id();
      if (lane_id() >> fold == 0 && k < num_small) i = small.take(k, ptr, &start, &degree);
    }
    const u32 upto = warp_scan(degree, LgPlus());
    const u32 before = upto - degree, total = warp_shfl(upto, 31);
    for (u32 first = 0; first < total; first += kTogether * 32) {
      if (total - first <= 32)
        share<1>(i, start, before, first, total, follow);
      else
        share<kTogether>(i, start, before, first, total, follow);
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
      enqueue(small, chunks, num_small, num_chunks,
              Found<PTR, 1>{{v}, {start}, {stop}, there && start != stop});
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
// block counts its share of the words, then writes it after those of the blocks before it.
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

// Call follow(first, edges) for all entries of these columns, N a lane in a row, from the first-th
// of all on: the column of a lane's first entry is found by binary search, those after it by going
// on. Source: Bisson, Bernaschi and Mastrostefano, Parallel Distributed Breadth First Search on the
// Kepler Architecture: section 3.4.1.
template <u32 N, class PTR, class Follow>
LG_DEVICE void follow_in_a_row(const PTR* col_ptr, const Active<PTR>& active, Follow follow) {
  const i64 columns = i64(active.columns);
  for (u64 first = u64(global_thread()) * N; first < active.entries;
       first += u64(global_threads()) * N) {
    Batch<PTR, N> edges;
    edges.there = 0;
    i64 k = last_not_after(active.offset, i64(first), 0, columns - 1);
#pragma unroll
    for (u32 q = 0; q < N; ++q) {
      const u64 e = first + q < active.entries ? first + q : active.entries - 1;
      while (k + 1 < columns && u64(load_cg(&active.offset[k + 1])) <= e) ++k;
      const i32 i = load_cg(&active.vertex[k]);
      edges.entry[q] = load_ro(&col_ptr[i]) + PTR(e) - load_cg(&active.offset[k]);
      edges.column[q] = i;
      edges.there |= u32(first + q < active.entries) << q;
    }
    follow(first, edges);
  }
}

// Whether result j has an entry by now.
template <class W>
LG_DEVICE bool is_seen(const Sums<W>& w, i64 j) {
  return load_cg(&w.words[j / 32]) >> (j % 32) & 1;
}

// Add the product of entry p of column i to the result j of its row, which the mask keeps. Sums are
// made in their own type, so W is another one only where the first product is the sum.
template <class S, class W>
LG_DEVICE void add_to_row(const Columns<S>& a, const Operand<S>& u, const Sums<W>& w,
                          const typename S::PTR* lengths, i64 p, i64 i, i64 j, bool seen,
                          Tallied* tally) {
  if constexpr (S::iso) {
  } else if constexpr (takes_first<S>) {
    w.values[j] = cast<W>(multiply(a, u, p, i, j));  // every writer's value will do
  } else {
    static_assert(IsSame<W, typename S::Z>::value, "a sum is made in its own type");
    atomic_accumulate<typename S::ADD, W>(&w.values[j], multiply(a, u, p, i, j));
  }
  const u32 bit = 1u << (j % 32);
  if (!seen && !(atomic_or(&w.words[j / 32], bit) & bit)) count_found(lengths, j, tally);
}

// Add the product of entry p of column i to its result, if the mask keeps it.
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
  add_to_row(a, u, w, lengths, p, i, j, seen, tally);
}

// The same for entries that a lane follows together.
template <class S, class W>
struct Adder {
  const Columns<S>& a;
  const Operand<S>& u;
  const Mask& mask;
  const Sums<W>& w;
  const typename S::PTR* lengths;
  Tallied* tally;

  template <u32 N>
  LG_DEVICE void operator()(const Batch<typename S::PTR, N>& edges) const {
    for (u32 q = 0; q < N; ++q)
      if (edges.there >> q & 1)
        add_entry(a, u, mask, w, lengths, edges.entry[q], edges.column[q], tally);
  }
};

// The same, with the loads of all entries before the first branch, so that none waits for another.
template <class S, class W, u32 N>
LG_DEVICE void add_entries(const Columns<S>& a, const Operand<S>& u, const Mask& mask,
                           const Sums<W>& w, const typename S::PTR* lengths,
                           const Batch<typename S::PTR, N>& edges, Tallied* tally) {
  i64 j[N];
  bool seen[N], kept[N];
#pragma unroll
  for (u32 q = 0; q < N; ++q) j[q] = load_ro(&a.idx[edges.entry[q]]);
#pragma unroll
  for (u32 q = 0; q < N; ++q) seen[q] = is_seen(w, j[q]);
#pragma unroll
  for (u32 q = 0; q < N; ++q) kept[q] = mask.keeps(j[q]) && (edges.there >> q & 1);
  tally->looked_at += bit_popc(edges.there);
#pragma unroll
  for (u32 q = 0; q < N; ++q)
    if (kept[q] && !(takes_first<S> && seen[q]))
      add_to_row(a, u, w, lengths, edges.entry[q], edges.column[q], j[q], seen[q], tally);
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

#endif  // LAGPU_SPMV_PUSH_CUH
