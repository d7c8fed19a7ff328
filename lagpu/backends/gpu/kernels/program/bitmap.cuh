// Pieces of a loop over blocks that runs as one cooperative kernel; blockprogram.py writes the
// kernel around them. The entries of a block are a vector, so its element-wise pieces are those of
// vectors; what is here knows rows.
#ifndef LAGPU_BLOCKPROGRAM_CUH
#define LAGPU_BLOCKPROGRAM_CUH
#include "bitmap/sums.cuh"
#include "program/program.cuh"

// What `source` makes, at the k rows of a block alone: each column has `stride` positions.
template <class Source>
struct InRows {
  Source source;
  i64 stride, k;

  LG_DEVICE u32 where(i64 word, i64 n) const {
    const u32 per = u32(stride / 32);  // there are fewer than 2^32 words
    return source.where(word, n) & rows_of<u32>(u32(word) % per, k);
  }
  LG_DEVICE auto operator()(i64 i) const { return source(i); }
};

// A product into t. Begins and ends with a barrier. `columns` are the long ones; `sums` and `found`
// are shared memory, a number a thread and one a warp. With a log *edges, which is 0, gets how many
// entries of the matrix were looked at.
template <class S>
LG_DEVICE void multiply_block(const BlockProduct<S>& x, i64 listed, const i64* columns, u64* sums,
                              u32* found, u64* edges, GridBarrier* barrier) {
  const typename S::PTR* const no_lengths = nullptr;
  Tallied tally{};
  grid_sync(barrier);
  sum_long_columns(x, listed, columns, reinterpret_cast<typename S::Z*>(sums), found, no_lengths,
                   &tally);
  sum_short_columns(x, no_lengths, &tally);
  LG_LOGGED(add_total(tally.looked_at, edges);)
  grid_sync(barrier);
}

// What a push of bits needs: the matrix by the columns of Q, of which there are n, and those that
// are long; null pointers if that form is not there. It pushes unless `cost` times the edges that
// leave Q's words are more than a look at each entry for each word.
template <class S>
struct Pushing {
  Columns<S> a;
  i64 n, listed;
  const i64* columns;
  u64 nvals, cost;
};

// Add the bits of a word of Q, group g, to the outputs at entries p .. p + 31 of its column, and
// again `step` further, to `end`.
template <class S>
LG_DEVICE void push_word(const BlockProduct<S>& x, const Pushing<S>& from, u32 bits, i64 g, i64 p,
                         i64 end, i64 step, Tallied* tally) {
  for (i64 e = p + lane_id(); e < end; e += step) {
    const i64 at = i64(load_ro(&from.a.idx[e])) * x.shape.per + g;
    ++tally->looked_at;
    const u32 add = bits & x.kept(at, g);
    if (add & ~load_volatile(&x.t.words[at])) atomic_or(&x.t.words[at], add);
  }
}

// From the entries of Q into t, whose words are 0: long columns by a block, others by a warp.
template <class S>
LG_DEVICE void push_bits(const BlockProduct<S>& x, const Pushing<S>& from, Tallied* tally) {
  const u32 per = u32(x.shape.per);
  for (i64 t = block_index(); t < from.listed * per; t += grid_blocks()) {
    const i64 v = from.columns[t / per], g = t % per;
    const u32 bits = x.q.words[v * per + g];
    if (bits)
      push_word(x, from, bits, g, from.a.ptr[v] + 32 * block_warp(), from.a.ptr[v + 1],
                32 * block_warps(), tally);
  }
  const i64 nwords = from.n * per, stride = global_warps();
  for (i64 first = global_warp(); first < nwords; first += 32 * stride) {
    const i64 k = first + lane_id() * stride;
    const u32 mine = k < nwords ? x.q.words[k] : 0;
    for (u32 some = warp_ballot(mine != 0); some; some &= some - 1) {
      const u32 lane = bit_ffs(some) - 1;
      const i64 at = first + lane * stride, v = u32(at) / per;
      const i64 p = load_ro(&from.a.ptr[v]), end = load_ro(&from.a.ptr[v + 1]);
      const u32 bits = warp_shfl(mine, lane);
      if (end - p <= kLongColumn) push_word(x, from, bits, at - v * per, p, end, 32, tally);
    }
  }
}

// As multiply_block, of bits, by the form that serves better; returns whether it pulled. Two
// numbers are counted, the edges that leave Q's words, and with a log those looked at. t has the
// bits of the last product, or none.
template <class S>
LG_DEVICE bool multiply_bits(const BlockProduct<S>& x, i64 listed, const i64* columns, u32* found,
                             const Pushing<S>& from, u64* counters, GridBarrier* barrier) {
  const typename S::PTR* const no_lengths = nullptr;
  const i64 per = x.shape.per;
  if (from.a.ptr) {
    u64 leaving = 0;
    each_tile(from.n * per * 32, [&](i64 k, bool mine) {
      if (!mine || !x.q.words[k]) return;
      const u32 v = u32(k) / u32(per);
      leaving += u64(load_ro(&from.a.ptr[v + 1]) - load_ro(&from.a.ptr[v]));
    });
    add_total(leaving, counters);
    each_tile(x.shape.n * per * 32, [&](i64 k, bool mine) {
      if (mine && x.t.words[k]) x.t.words[k] = 0;
    });
  }
  grid_sync(barrier);
  const bool pulls = !from.a.ptr || load_volatile(counters) * from.cost > from.nvals * per;
  Tallied tally{};
  if (pulls) {
    typename S::Z* const no_sums = nullptr;
    sum_long_columns(x, listed, columns, no_sums, found, no_lengths, &tally);
    sum_short_columns(x, no_lengths, &tally);
  } else {
    push_bits(x, from, &tally);
  }
  LG_LOGGED(add_total(tally.looked_at, counters + kFar);)
  grid_sync(barrier);
  return pulls;
}

#endif  // LAGPU_BLOCKPROGRAM_CUH
