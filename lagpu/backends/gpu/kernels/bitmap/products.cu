// Single statements on bitmap matrices; bitmap/bits.cuh has their layout. `per` is the number of
// 32-bit words of a column.
//
//   bitmap_fill             C<M> = s
//   bitmap_reduce_columns   w[j] = (+)_i C[i, j]
//   bitmap_mxm_bits         C<M> = Q (+.x) A, bits alone, pulled or pushed
//   bitmap_mxm_sums         C<M> = Q (+.x) A with values
//   bitmap_mxm_sums_long    the same for long columns, a thread block a column
//
// With LG_EDGES, *edges counts the entries of A that are looked at, once for each word of Q or C.
#include "bitmap/sums.cuh"
// what is not given; the file compiles by itself
#ifndef LG_WORD
#define LG_WORD u32
#endif
#ifndef LG_PUSH  // 1: from the entries of Q
#define LG_PUSH 0
#endif
#ifndef LG_EDGES  // 1: count the entries of A that are looked at, into *edges
#define LG_EDGES 0
#endif

// C<M> = s. A warp takes 32 words; the values of each word that is written lie side by side. A null
// w_values: no value is written, as all entries are s.
extern "C" __global__ void bitmap_fill(i64 nwords, i64 per, i64 k, LG_W scalar, const u32* m_words,
                                       bool complement, bool replace, u32* w_words, LG_W* w_values,
                                       u64* nvals) {
  u64 total = 0;
  for (i64 base = global_warp() * 32; base < nwords; base += global_warps() * 32) {
    const i64 mine = base + lane_id();
    u32 before = 0, kept = 0;
    if (mine < nwords) {
      before = w_words[mine];
      kept = wanted(m_words, complement, mine, mine % per, k);
      const u32 after = kept | staying<ChosenAccum>(before, kept, 0xffffffffu, replace);
      if (after != before) w_words[mine] = after;
      total += bit_popc(after);
    }
    for (u32 some = w_values ? warp_ballot(kept != 0) : 0; some; some &= some - 1) {
      const u32 from = bit_ffs(some) - 1;
      const u32 bits = warp_shfl(kept, from), old = warp_shfl(before, from);
      const i64 i = (base + from) * 32 + lane_id();
      if (bits >> lane_id() & 1)
        write_entry<ChosenAccum>(w_values, i, old >> lane_id() & 1, Entry<LG_W>{true, scalar});
    }
  }
  add_total(total, nvals);
}

// w[j] = the sum of column j's entries. A warp a column.
extern "C" __global__ void bitmap_reduce_columns(i64 n, i64 per, const u32* words,
                                                 const LG_U* values, LG_U iso, bool* found,
                                                 LG_Z* sums) {
  for (i64 v = global_warp(); v < n; v += global_warps()) {
    LG_Z sum = LG_Z(0);
    bool some = false;
    for (i64 g = 0; g < per; ++g) {
      const i64 at = v * per + g;
      if (!(words[at] >> lane_id() & 1)) continue;
      const LG_Z x = entry_value<LG_Z>(values, iso, at * 32 + lane_id());
      sum = some ? add<LG_ADD>(sum, x) : x;
      some = true;
    }
    for (u32 step = 16; step; step /= 2) {
      const LG_Z other = warp_shfl_xor(sum, step);
      const bool has = warp_shfl_xor(u32(some), step);
      if (has) sum = some ? add<LG_ADD>(sum, other) : other;
      some |= has;
    }
    if (lane_id() == 0) {
      found[v] = some;
      sums[v] = sum;
    }
  }
}

// C<M> = Q (+.x) A, bits alone, into words that are 0: ptr and idx are A by its n columns, or with
// LG_PUSH by its n rows, and the others are as in BitProduct.
extern "C" __global__ void bitmap_mxm_bits(
    i64 n, i64 groups, i64 k, const LG_PTR* __restrict__ ptr, const LG_IDX* __restrict__ idx,
    const u32* __restrict__ q_words, const u32* m_words, bool complement, const u64* q_alive,
    const LG_PTR* lengths, i64 chunks, const i64* chunk_column, const i64* chunk_start,
    u32* out_words, u64* alive, u64* counts, u64* notification, u64 serial, u64* edges) {
  const BitProduct<LG_WORD, LG_PTR> b{groups,    k,       q_words, m_words, complement,
                                      out_words, q_alive, alive,   lengths};
  const CutColumns<LG_PTR, LG_IDX> a{n, ptr, idx, chunks, chunk_column, chunk_start};
  Tallied tally{0, 0, 0};
  if constexpr (LG_PUSH) {
    push_bits(b, a, &tally);
  } else {
    pull_bits(b, a, &tally);
  }
  add_counts(tally, counts, notification, serial, LG_EDGES ? edges : nullptr);
}

// C<M> = Q (+.x) A with values, by the columns of A that are not long. A warp a word.
extern "C" __global__ void bitmap_mxm_sums(
    i64 n, i64 per, i64 k, const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
    const LG_A* __restrict__ a_values, LG_A a_iso, const u32* __restrict__ q_words,
    const LG_U* __restrict__ q_values, LG_U q_iso, const u32* m_words, bool complement,
    const LG_PTR* lengths, u32* out_words, LG_Z* out, u64* counts, u64* notification, u64 serial,
    u64* edges) {
  const BitmapProduct<Chosen> x{{col_ptr, row_idx, a_values, a_iso},
                                {q_words, q_values, q_iso},
                                {n, per, k},
                                m_words,
                                complement,
                                {out_words, out}};
  Tallied tally{0, 0, 0};
  sum_short_columns(x, lengths, &tally);
  add_counts(tally, counts, notification, serial, LG_EDGES ? edges : nullptr);
}

// The same for the listed long columns, a thread block a word; this kernel runs first.
extern "C" __global__ void __launch_bounds__(1024)
    bitmap_mxm_sums_long(i64 listed, const i64* columns, i64 per, i64 k,
                         const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
                         const LG_A* __restrict__ a_values, LG_A a_iso,
                         const u32* __restrict__ q_words, const LG_U* __restrict__ q_values,
                         LG_U q_iso, const u32* m_words, bool complement, const LG_PTR* lengths,
                         u32* out_words, LG_Z* out, u64* counts, u64* edges) {
  LG_SHARED(LG_Z, sums, 1024);
  LG_SHARED(u32, found, 32);
  const BitmapProduct<Chosen> x{{col_ptr, row_idx, a_values, a_iso},
                                {q_words, q_values, q_iso},
                                {0, per, k},
                                m_words,
                                complement,
                                {out_words, out}};
  Tallied tally{0, 0, 0};
  sum_long_columns(x, listed, columns, sums, found, lengths, &tally);
  add_total(tally.found, &counts[0]);
  add_total(tally.frontier_edges, &counts[1]);
  if (LG_EDGES) add_total(tally.looked_at, edges);
}
