// Pieces of a loop over blocks that runs as one cooperative kernel; blockprogram.py writes the
// kernel around them. The entries of a block are a vector, so its element-wise pieces are those of
// vectors; what is here knows rows.
#ifndef LAGPU_BLOCKPROGRAM_CUH
#define LAGPU_BLOCKPROGRAM_CUH
#include "blockproduct.cuh"
#include "program.cuh"

// What `source` makes, at the k rows of a block alone: each column has `stride` positions.
template <class Source>
struct InRows {
  Source source;
  i64 stride, k;

  LG_DEVICE u32 where(i64 word, i64 n) const {
    const u32 per = u32(stride / 32);  // there are fewer than 2^32 words
    return source.where(word, n) & rows_of<u32>(u32(word) % per, k);
  }
  template <class Z>
  LG_DEVICE bool operator()(i64 i, Z* z) const {
    return source(i, z);
  }
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

#endif  // LAGPU_BLOCKPROGRAM_CUH
