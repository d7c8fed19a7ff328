// Functions that a generated loop over bitmap matrices calls; fused/program/bitmap.py writes the
// kernel. The entries of a bitmap matrix are a vector, so element-wise statements call the
// functions for vectors (program/program.cuh); the functions of this file distinguish rows.
#ifndef LAGPU_PROGRAM_BITMAP_CUH
#define LAGPU_PROGRAM_BITMAP_CUH
#include "bitmap/sums.cuh"
#include "program/program.cuh"

// The entries of `source` at the k rows of a bitmap matrix, none at the other positions of a
// column, which has `stride` of them.
template <class Source>
struct InRows {
  Source source;
  i64 stride, k;

  LG_DEVICE u32 where(i64 word, i64 n) const {
    const u32 per = u32(stride / 32);  // there are fewer than 2^32 words
    return source.where(word, n) & rows_of<u32>(u32(word) % per, k);
  }
  typedef typename Source::Operands Operands;
  LG_DEVICE Operands load(bool there, i64 i) const { return source.load(there, i); }
  LG_DEVICE auto of(const Operands& x, i64 i) const { return source.of(x, i); }
};

// A product into t. Begins and ends with a barrier. `columns` are the long ones; `sums` and `found`
// are shared memory, a number a thread and one a warp. With a log *edges, which is 0, gets how many
// entries of the matrix were looked at.
template <class S>
LG_DEVICE void multiply_bitmap(const BitmapProduct<S>& x, i64 listed, const i64* columns, u64* sums,
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

// A product of bits, by the form that serves better; returns whether it pulled. `columns` is A
// by columns, `rows` A by rows, with null pointers if that form is missing. The product pushes
// unless `cost` times Q's frontier edges exceeds a look at each of A's entries for each word.
//
// Counters, a line each, which are 0: the frontier edges of Q's words, the rows of Q that are not
// empty (a line has a bit for each row that a bitmap matrix may have), and with a log the entries
// of A that were looked at. C has the bits of the last product, or none.
template <class Word, class Ptr, class Idx>
LG_DEVICE bool multiply_bits(BitProduct<Word, Ptr> b, const CutColumns<Ptr, Idx>& columns,
                             const CutColumns<Ptr, Idx>& rows, u64 nvals, u64 cost, u64* counters,
                             GridBarrier* barrier) {
  const i64 parts = sizeof(Word) / 4;  // 32-bit words, which each_tile deals out
  const i64 q_parts = rows.n * b.groups * parts;
  u64* const alive = counters + kCounterStride;
  // below, a thread reads a whole Word of Q: where two warps own its parts, both must have written
  if (words_at_once(q_parts) < parts) grid_sync(barrier);
  u64 frontier_edges = 0;
  each_tile(q_parts * 32, [&](i64 part, bool mine) {
    if (!mine || part % parts) return;
    const i64 at = part / parts, v = at / b.groups;
    const Word bits = b.q_word(at);
    if (!bits) return;
    note_alive(alive, at - v * b.groups, bits);
    if (rows.ptr) frontier_edges += u64(rows.end(v) - rows.begin(v));
  });
  add_total(frontier_edges, counters);
  each_tile(columns.n * b.groups * parts * 32, [&](i64 part, bool mine) {
    if (mine && b.out[part]) b.out[part] = 0;
  });
  grid_sync(barrier);
  b.q_alive = alive;
  const bool pulls = !rows.ptr || load_volatile(counters) * cost > nvals * u64(b.groups);
  Tallied tally{};
  if (pulls) {
    pull_bits(b, columns, &tally);
  } else {
    push_bits(b, rows, &tally);
  }
  LG_LOGGED(add_total(tally.looked_at, counters + 2 * kCounterStride);)
  grid_sync(barrier);
  return pulls;
}

#endif  // LAGPU_PROGRAM_BITMAP_CUH
