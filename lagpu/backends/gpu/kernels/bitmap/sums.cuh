// Products of a bitmap matrix with a matrix, C<M> = Q (+.x) A, with values, pulled by the columns
// of A; bitmap/bits.cuh has their layout. A thread block takes a word of a long column, a warp one
// of any other. No sum is made by atomics, so floating-point sums do not depend on the schedule.
#ifndef LAGPU_BITMAP_SUMS_CUH
#define LAGPU_BITMAP_SUMS_CUH
#include "bitmap/bits.cuh"

// The shape of a bitmap matrix: n columns of `per` words, with a bit for each of k rows.
struct BitmapShape {
  i64 n, per, k;
};

// Q (+.x) A into t, where the mask keeps; a null mask without `complement` is none at all. `shape`
// is the result's, and Q has as many rows.
template <class S>
struct BitmapProduct {
  Columns<S> a;
  Operand<S> q;
  BitmapShape shape;
  const u32* mask;
  bool complement;
  Sums<typename S::Z> t;

  LG_DEVICE u32 kept(i64 at, i64 g) const { return wanted(mask, complement, at, g, shape.k); }
};

// A lane's sum for its row; `some` says whether there is one.
template <class S>
struct LaneSum {
  typename S::Z sum;
  bool some;

  LG_DEVICE void take(typename S::Z x) {
    sum = some ? add<typename S::ADD>(sum, x) : x;
    some = true;
  }
};

// Add the products of word (v, g) at those of the 32 matrix entries from `base` on that are `live`.
// Here lanes are rows; a lane has brought one entry's index u, and the bits that Q has there.
template <class S>
LG_DEVICE void add_products(const BitmapProduct<S>& x, i64 v, i64 g, u32 live, u32 bits, i64 u,
                            i64 base, LaneSum<S>* mine) {
  typedef typename S::T T;
  typedef typename S::MUL Mul;
  const i64 row = g * 32 + lane_id();
  while (live) {  // four loads on the way at once
    T left[4], right[4];
    i64 inner[4];
    bool has[4];
#pragma unroll
    for (i32 t = 0; t < 4; ++t) {
      const u32 from = live ? bit_ffs(live) - 1 : 0;
      inner[t] = warp_shfl(u, from);
      has[t] = live && (warp_shfl(bits, from) >> lane_id() & 1);
      left[t] = right[t] = T(0);
      if (has[t]) {
        const i64 at = inner[t] * x.shape.per * 32 + row;
        if constexpr (Mul::reads_x) left[t] = entry_value<T>(x.q.values, x.q.iso, at);
        if constexpr (Mul::reads_y) right[t] = entry_value<T>(x.a.values, x.a.iso, base + from);
      }
      live &= live ? live - 1 : 0;
    }
#pragma unroll
    for (i32 t = 0; t < 4; ++t)
      if (has[t])
        mine->take(Mul::template call<typename S::Z, T>(left[t], right[t], row, inner[t], v));
  }
}

// Add the products of word (v, g) at matrix entries p .. p + 31, and again `step` further, to
// `end`.
template <class S>
LG_DEVICE void sum_column(const BitmapProduct<S>& x, i64 v, i64 g, u32 want, i64 p, i64 end,
                          i64 step, LaneSum<S>* mine, Tallied* tally) {
  for (i64 base = p; base < end && want; base += step) {
    const i64 e = base + lane_id();
    const i64 u = e < end ? i64(load_ro(&x.a.idx[e])) : 0;
    const u32 bits = e < end ? x.q.words[u * x.shape.per + g] & want : 0;
    tally->looked_at += e < end;
    add_products(x, v, g, warp_ballot(bits != 0), bits, u, base, mine);
    want &= ~warp_ballot(mine->some && S::ADD::template is_terminal<typename S::Z>(mine->sum));
  }
}

// Write a word's sums; every lane of the warp calls it. `lengths`, if not null, points to columns
// whose lengths are counted.
template <class S>
LG_DEVICE void write_sums(const BitmapProduct<S>& x, const LaneSum<S>& mine, i64 v, i64 at,
                          const typename S::PTR* lengths, Tallied* tally) {
  if (mine.some) x.t.values[at * 32 + lane_id()] = mine.sum;
  const u32 bits = warp_ballot(mine.some);
  if (lane_id() != 0) return;
  x.t.words[at] = bits;
  tally->found += bit_popc(bits);
  if (bits && lengths) tally->frontier_edges += u64(lengths[v + 1] - lengths[v]);
}

// By the columns of A that are not long. A warp a word, grid stride, as neighbours may all have
// many entries; before, each lane looks whether anything is wanted of one of the warp's next 32
// words.
template <class S>
LG_DEVICE void sum_short_columns(const BitmapProduct<S>& x, const typename S::PTR* lengths,
                                 Tallied* tally) {
  const u32 per = u32(x.shape.per);  // of 2^32 words there would be no room for values
  const i64 nwords = x.shape.n * per, stride = global_warps();
  for (i64 first = global_warp(); first < nwords; first += 32 * stride) {
    const i64 k = first + lane_id() * stride;
    u32 want = 0;
    if (k < nwords) {
      const u32 v = u32(k) / per;
      const i64 length = i64(load_ro(&x.a.ptr[v + 1]) - load_ro(&x.a.ptr[v]));
      if (length && length <= kLongColumn) want = x.kept(k, k - i64(v) * per);
      if (!want && length <= kLongColumn) x.t.words[k] = 0;
    }
    for (u32 some = warp_ballot(want != 0); some; some &= some - 1) {
      const u32 from = bit_ffs(some) - 1;
      const i64 at = first + from * stride, v = u32(at) / per;
      const i64 p = load_ro(&x.a.ptr[v]), end = load_ro(&x.a.ptr[v + 1]);
      LaneSum<S> mine{typename S::Z(0), false};
      sum_column(x, v, at - v * per, warp_shfl(want, from), p, end, 32, &mine, tally);
      write_sums(x, mine, v, at, lengths, tally);
    }
  }
}

// By the listed columns, those that are long. A block a word, grid stride; `sums` and `found` are
// in shared memory, and have room for a number a thread and one a warp.
template <class S>
LG_DEVICE void sum_long_columns(const BitmapProduct<S>& x, i64 listed, const i64* columns,
                                typename S::Z* sums, u32* found, const typename S::PTR* lengths,
                                Tallied* tally) {
  typedef typename S::Z Z;
  const i64 per = x.shape.per;
  for (i64 t = block_index(); t < listed * per; t += grid_blocks()) {
    const i64 v = columns[t / per], g = t % per, at = v * per + g;
    const i64 p = load_ro(&x.a.ptr[v]), end = load_ro(&x.a.ptr[v + 1]);
    const u32 want = x.kept(at, g);
    if (!want) {  // to the whole block
      if (block_thread() == 0) x.t.words[at] = 0;
      continue;
    }
    LaneSum<S> mine{Z(0), false};
    sum_column(x, v, g, want, p + 32 * block_warp(), end, 32 * block_warps(), &mine, tally);
    sums[block_thread()] = mine.sum;
    const u32 bits = warp_ballot(mine.some);
    if (lane_id() == 0) found[block_warp()] = bits;
    block_sync();
    if (block_warp() == 0) {
      for (u32 w = 1; w < block_warps(); ++w)
        if (found[w] >> lane_id() & 1) mine.take(sums[w * 32 + lane_id()]);
      write_sums(x, mine, v, at, lengths, tally);
    }
    block_sync();  // before the next word's sums
  }
}

#endif  // LAGPU_BITMAP_SUMS_CUH
