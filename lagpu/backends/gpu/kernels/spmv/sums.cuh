// Sums to which every entry of the matrix adds: w = A' (+.x) u without a mask, where u has an
// entry for each row that A has one in.
//
// Where no column has more than kSmall entries, a lane takes columns. Elsewhere each warp takes as
// many entries as any other, 4 in a row a lane, whatever columns they are of. A bit for each entry
// says whether it begins a column, so lanes know what to add up and where sums end; inside a long
// column each lane adds up by itself. The loads of a tile begin before the products of the one
// before are added. A column that several warps have parts of is put together after a barrier, in
// the order of the warps: a sum does not depend on the order of threads. Mul takes no positions.
//
// Source: segmented sums by Blelloch, Heroux and Zagha, CMU-CS-93-173.
#ifndef LAGPU_SPMV_SUMS_CUH
#define LAGPU_SPMV_SUMS_CUH
#include "spmv/pull.cuh"

const u32 kRow = kSumTile / 32;  // entries in a row that a lane takes

// Where the columns of a matrix begin, and what its sums need; made once a matrix.
template <class S>
struct Whole {
  const u32* heads;   // bits of the entries that begin a column, for whole tiles
  const u32* before;  // how many are before each tile of kSumTile entries; in the end all
  const i32* column;  // the columns that have entries, rising
  const u32* there;   // presence bits of these
  bool are_short;     // whether none has more than kSmall entries
  i64 nvals, n, nrows;
  typename S::Z* parts;        // room for a sum of each warp
  const typename S::IDX* idx;  // rows by the places where u's values are: ranks, if there are any
  const i32* rank;
  typename S::U* by_rank;  // room for u's values by ranks
  u32 near;                // how many of the first values, the heaviest rows', shared memory holds
};

template <class X>
struct alignas(16) Four {
  X x[kRow];
};

// Entries p .. p + 4, where p is a multiple of 4; of those past `end` the last one.
template <bool all, class X>
LG_DEVICE void load_row(const X* from, i64 p, i64 end, X (&x)[kRow]) {
  if constexpr (all && sizeof(X) >= 4) {
    const Four<X> row = load_once(reinterpret_cast<const Four<X>*>(from + p));
    for (u32 q = 0; q < kRow; ++q) x[q] = row.x[q];
  } else {
    for (u32 q = 0; q < kRow; ++q) x[q] = load_ro(&from[p + q < end ? p + q : end - 1]);
  }
}

// A warp's way through its entries, a tile of 128 after the other.
template <class S, class W>
struct Summing {
  typedef typename S::Z Z;
  typedef typename S::U U;
  typedef typename S::A A;
  typedef typename S::MUL Mul;

  const Columns<S>& a;
  const Operand<S>& u;
  const Whole<S>& all;
  W* values;
  Z* part;     // for the sum of a column that another warp begins
  u32 first;   // columns that begin before this warp's entries,
  u32 begun;   // and before the next ones
  Z sum;       // of the last one's entries that this warp has seen
  bool open;   // whether there are any
  Z own;       // of those of tiles that lie inside the last column, a sum of each lane;
  bool apart;  // whether there are any
  typename S::IDX i[kRow];  // rows of the next tile,
  u32 heads;                // and the word of this lane's bits that say where columns begin in it

  // The last of `count` columns has ended, and this is its sum.
  LG_DEVICE void put(u32 count, Z z) const {
    if (count == first) {
      *part = z;
    } else {
      values[load_ro(&all.column[count - 1])] = cast<W>(z);
    }
  }

  // Add up what lanes have apart.
  LG_DEVICE void gather_lanes() {
    if (!apart) return;
    for (u32 step = 16; step; step /= 2) own = add<typename S::ADD>(own, warp_shfl_xor(own, step));
    own = warp_shfl(own, 0);
    sum = open ? add<typename S::ADD>(sum, own) : own;
    open = true;
    apart = false;
  }

  // Load what the tile at p begins with.
  LG_DEVICE void load_tile(i64 p) {
    constexpr bool reads_u = S::flip ? Mul::reads_x : Mul::reads_y;
    const i64 row = p + lane_id() * kRow;
    if (reads_u && p + kSumTile <= all.nvals) {
      load_row<true>(a.idx, row, all.nvals, i);
    } else if (reads_u) {
      load_row<false>(a.idx, row, all.nvals, i);
    }
    heads = load_ro(&all.heads[p / 32 + lane_id() * kRow / 32]);
  }

  // Add the products of the `count` entries from p on, whose loads have begun, all of 128 if
  // `whole`; begin those of the next tile.
  template <bool whole>
  LG_DEVICE void add_tile(i64 p, u32 count, bool more) {
    constexpr bool reads_u = S::flip ? Mul::reads_x : Mul::reads_y;
    constexpr bool reads_a = S::flip ? Mul::reads_y : Mul::reads_x;
    const u32 bits = heads;
    U x[kRow];
    A y[kRow];
    for (u32 q = 0; q < kRow; ++q) x[q] = u.iso;
    for (u32 q = 0; q < kRow; ++q) y[q] = a.iso;
    if constexpr (reads_u) {
      // Lanes whose values are near load one far value together: no load waits for a branch.
      LG_DYNAMIC_SHARED(const U, near);
      const typename S::IDX size = all.near;
      if (u.values)
        for (u32 q = 0; q < kRow; ++q) x[q] = u.values[i[q] < size ? size : i[q]];
      if (u.values && size) {
        for (u32 q = 0; q < kRow; ++q) {
          const U value = near[i[q] < size ? i[q] : 0];
          if (i[q] < size) x[q] = value;
        }
      }
    }
    if constexpr (reads_a)
      if (a.values) load_row<whole>(a.values, p + lane_id() * kRow, all.nvals, y);
    if (more) load_tile(p + kSumTile);  // which overlaps with the loads of this tile
    Z z[kRow];
    for (u32 q = 0; q < kRow; ++q) z[q] = multiply<S>(x, u.iso, y, a.iso, q, 0, 0, q, 0);
    if (whole && !warp_any(bits != 0)) {
      Z all_of_row = z[0];
      for (u32 q = 1; q < kRow; ++q) all_of_row = add<typename S::ADD>(all_of_row, z[q]);
      own = apart ? add<typename S::ADD>(own, all_of_row) : all_of_row;
      apart = true;
    } else {
      gather_lanes();
      add_row<whole>(bits, count, z);
    }
  }

  // The same where a column begins, or not all lanes have entries.
  template <bool whole>
  LG_DEVICE void add_row(u32 bits, u32 count, const Z (&z)[kRow]) {
    const u32 lane = lane_id(), shift = lane * kRow % 32;
    const u32 mine = count > lane * kRow ? count - lane * kRow : 0;
    u32 before = bit_popc(bits & ((1u << shift) - 1)), total = 0;
    for (u32 word = 0; word < kRow; ++word) {
      if (lane * kRow / 32 == word) before += total;
      total += bit_popc(warp_shfl(bits, word * 32 / kRow));
    }
    const u32 begins = bits >> shift & 15;

    // The sum of what this lane leaves open, with that of the lanes before that have the column.
    Z tail = z[0];
    for (u32 q = 1; q < kRow; ++q)
      if (whole || q < mine) tail = begins >> q & 1 ? z[q] : add<typename S::ADD>(tail, z[q]);
    if (lane == 0 && open && !begins) tail = add<typename S::ADD>(sum, tail);
    const u32 upto = warp_ballot(begins != 0) & (lanes_below() | 1u << lane);
    const u32 from = upto ? 31 - bit_clz(upto) : 0;  // the lane where it begins
    for (u32 step = 1; step < 32; step *= 2) {
      const Z other = warp_shfl_up(tail, step);
      if (lane >= from + step) tail = add<typename S::ADD>(other, tail);
    }
    Z run = warp_shfl_up(tail, 1);
    if (begins) {
      bool some = lane != 0 || open;
      if (lane == 0) run = sum;
      u32 k = begun + before;
      for (u32 q = 0; q < kRow; ++q) {
        if (begins >> q & 1) {
          if (some) put(k, run);
          ++k;
          run = z[q];
        } else {
          run = some ? add<typename S::ADD>(run, z[q]) : z[q];
        }
        some = true;
      }
    }
    sum = warp_shfl(tail, (count - 1) / kRow);
    open = true;
    begun += total;
  }
};

const u32 kSide = 2;               // columns side by side that a lane takes
const u32 kLoaded = kSide * kRow;  // entries of these that it loads at once

// Short columns that a lane takes together. Past the end a lane loads what others load too.
template <class S>
struct Short {
  typename S::PTR begin[kSide];
  u32 length[kSide];

  LG_DEVICE Short(const Columns<S>& a, i64 j, i64 n) {
    for (u32 c = 0; c < kSide; ++c) {
      const i64 k = j + c * LG_WARP;
      begin[c] = load_ro(&a.ptr[k < n ? k : n]);
      length[c] = u32(load_ro(&a.ptr[k < n ? k + 1 : n]) - begin[c]);
    }
  }
  LG_DEVICE bool has(u32 step, u32 q) const { return step + q % kRow < length[q / kRow]; }
  LG_DEVICE i64 place(u32 step, u32 q) const {
    const i64 at = begin[q / kRow] + i64(step + q % kRow);  // not in a branch
    return has(step, q) ? at : 0;
  }
};

// The sums of short columns. The rows of a step are loaded before the products of the one before
// are added, and a tile's columns before those of the one before: so only values are waited for.
template <class S, class W>
LG_DEVICE void sum_columns(const Columns<S>& a, const Operand<S>& u, i64 n, W* values) {
  constexpr bool reads_u = S::flip ? S::MUL::reads_x : S::MUL::reads_y;
  constexpr bool reads_a = S::flip ? S::MUL::reads_y : S::MUL::reads_x;
  const i64 tile = kSide * LG_WARP, stride = global_warps() * tile;
  i64 j = global_warp() * tile + lane_id();
  Short<S> now(a, j, n), next(a, j + stride, n);
  typename S::IDX i[kLoaded];
  const auto load_rows = [&](const Short<S>& of, u32 step) {
    if (reads_u && u.values)
      for (u32 q = 0; q < kLoaded; ++q) i[q] = load_ro(&a.idx[of.place(step, q)]);
  };
  load_rows(now, 0);
  for (; j < n; j += stride) {
    u32 longest = 0;
    for (u32 c = 0; c < kSide; ++c) longest = now.length[c] > longest ? now.length[c] : longest;
    Sum<S> sum[kSide];
    for (u32 step = 0; step < longest || step == 0; step += kRow) {
      typename S::U x[kLoaded];
      typename S::A y[kLoaded];
      for (u32 q = 0; q < kLoaded; ++q) x[q] = u.iso, y[q] = a.iso;
      if (reads_u && u.values)
        for (u32 q = 0; q < kLoaded; ++q) x[q] = u.values[i[q]];
      if (reads_a && a.values)
        for (u32 q = 0; q < kLoaded; ++q) y[q] = load_ro(&a.values[now.place(step, q)]);
      const bool last = step + kRow >= longest;
      Short<S> of = now;
      for (u32 c = 0; c < kSide; ++c) {
        of.begin[c] = last ? next.begin[c] : of.begin[c];
        of.length[c] = last ? next.length[c] : of.length[c];
      }
      load_rows(of, last ? 0 : step + kRow);
      for (u32 q = 0; q < kLoaded; ++q)
        if (now.has(step, q))
          sum[q / kRow].add_product(multiply<S>(x, u.iso, y, a.iso, q, 0, 0, q, 0));
    }
    now = next;
    next = Short<S>(a, j + 2 * stride, n);
    for (u32 c = 0; c < kSide; ++c)
      if (sum[c].found) values[j + c * LG_WARP] = cast<W>(sum[c].value);
  }
}

// All sums, and the presence words. The barrier is passed at most once, or twice where there are
// ranks; what this writes is seen after another one.
template <class S, class W>
LG_DEVICE void sum_all(Columns<S> a, Operand<S> u, const Whole<S>& all, const Sums<W>& w,
                       GridBarrier* barrier) {
  a.idx = all.idx;
  if (all.rank && u.values) {
    for (i64 i = global_thread(); i < all.nrows; i += global_threads())
      if (has_entry(u.words, i)) all.by_rank[load_ro(&all.rank[i])] = u.values[i];
    u.values = all.by_rank;
    grid_sync(barrier);
  }
  if (all.near && u.values) {
    LG_DYNAMIC_SHARED(typename S::U, near);
    for (u32 k = block_thread(); k < all.near; k += block_threads()) near[k] = u.values[k];
    block_sync();
  }
  for (i64 k = global_thread(); k < (all.n + 31) / 32; k += global_threads())
    w.words[k] = all.there[k];
  if (all.are_short) return sum_columns<S>(a, u, all.n, w.values);
  const i64 tiles = (all.nvals + kSumTile - 1) / kSumTile, warps = global_warps();
  const i64 warp = i64(block_warp()) * grid_blocks() + block_index();  // hubs go to all blocks
  const i64 last = tiles * (warp + 1) / warps;
  i64 tile = tiles * warp / warps;
  const u32 first = tile < last ? load_ro(&all.before[tile]) : 0;
  Summing<S, W> mine{a, u, all, w.values, &all.parts[warp], first, first};
  if (tile < last) mine.load_tile(tile * kSumTile);
  for (; tile < last; ++tile) {
    const i64 at = tile * kSumTile, rest = all.nvals - at;
    if (rest >= kSumTile) {
      mine.template add_tile<true>(at, kSumTile, tile + 1 < last);
    } else {
      mine.template add_tile<false>(at, u32(rest), false);
    }
  }
  mine.gather_lanes();
  const i64 stop = last * kSumTile;
  const bool goes_on = mine.open && stop < all.nvals && !(all.heads[stop / 32] & 1);
  const bool whole = mine.begun != first && goes_on;  // a column that begins here and goes on
  if (mine.open && !whole && lane_id() == 0) mine.put(mine.begun, mine.sum);
  grid_sync(barrier);
  if (!whole) return;
  const i64 j = load_ro(&all.column[mine.begun - 1]);
  const i64 end = (i64(load_ro(&a.ptr[j + 1])) - 1) / kSumTile;  // its last tile
  const i64 other = ((end + 1) * warps - 1) / tiles;             // the warp that has it
  Sum<S> rest;
  for (i64 k = warp + 1 + lane_id(); k <= other; k += 32)
    if (tiles * k / warps < tiles * (k + 1) / warps) rest.add_product(load_cg(&all.parts[k]));
  rest.fold_warp();
  if (lane_id() == 0) w.values[j] = cast<W>(add<typename S::ADD>(mine.sum, rest.value));
}

#endif  // LAGPU_SPMV_SUMS_CUH
