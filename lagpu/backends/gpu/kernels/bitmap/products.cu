// A block: k x n, k small, stored vertex by vertex. Word v * per + g has the presence bits of rows
// 32 g .. 32 g + 31 of column v, values lie at 32 * (v * per + g) + lane; `per` words hold k bits,
// or an even number of words where k > 32. Bits past k are 0.
//
//   block_fill      C<M> = s                       block_reduce_columns  w[j] = (+)_i C[i, j]
//   block_bits      C<M> = Q (+.x) A, bits alone, pulled or pushed
//   block_sums      C<M> = Q (+.x) A with values   block_sums_long       the same, a block a column
//
// A pull goes through the columns of A (its in-neighbours), a push through its rows. Columns longer
// than kLongColumn are cut into chunks, which are listed: no warp works longer than on one of them.
//
// edges is where entries of A that are looked at are counted, for a word of Q or C each; LG_EDGES.
//
// Source: Then et al. 2014 (multi-source search); Beamer, Asanovic and Patterson 2012 (directions).
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

#define FIRST 8  // entries that one thread looks at before its warp helps
#define WORD_BITS i64(8 * sizeof(LG_WORD))

// C<M> = s. A warp takes 32 words; the values of each word that is written lie side by side. If
// w_values is null none is written, as all entries are s.
extern "C" __global__ void block_fill(i64 nwords, i64 per, i64 k, LG_W scalar, const u32* m_words,
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
extern "C" __global__ void block_reduce_columns(i64 n, i64 per, const u32* words,
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

// A product of bits, C<M> = Q (+.x) A: `ptr` and `idx` are A by columns (pull) or rows (push), with
// the chunks of its long ones; `out` is zeroed; `q_alive`, unless null, has the bits of Q's rows
// that are not empty, and `alive` gets those of C's.
struct Bits {
  i64 n, groups, k;
  const LG_PTR* ptr;
  const LG_IDX* idx;
  const LG_WORD *q, *mask;
  bool complement;
  const u64* q_alive;
  const LG_PTR* lengths;
  i64 chunks;
  const i64 *chunk_column, *chunk_start;
  LG_WORD* out;
  u64* alive;

  LG_DEVICE LG_WORD kept(i64 at, i64 g) const { return wanted(mask, complement, at, g, k); }

  LG_DEVICE i64 chunk_end(i64 c) const {
    const i64 p = chunk_start[c], last = ptr[chunk_column[c] + 1];
    return p + kLongColumn < last ? p + kLongColumn : last;
  }

  // What has been found in word `at` is counted, and which rows are alive.
  LG_DEVICE void note(LG_WORD fresh, bool is_first, i64 v, i64 g, Tallied* tally) const {
    tally->found += bit_popc(fresh);
    if (is_first && lengths) tally->leaving += u64(lengths[v + 1] - lengths[v]);
    if ((load_volatile(&alive[g]) & fresh) != fresh) atomic_or(&alive[g], u64(fresh));
  }

  // The union of words of group g at indices p .. end, until all of `want` is found; by a warp.
  LG_DEVICE LG_WORD gather(i64 p, i64 end, i64 g, LG_WORD want, Tallied* tally) const {
    LG_WORD all = 0;
    for (i64 base = p; base < end; base += 128) {
      LG_WORD x = 0;
#pragma unroll
      for (i64 step = 0; step < 128; step += 32) {
        const i64 e = base + step + lane_id();
        if (e < end) x |= q[i64(idx[e]) * groups + g];
        if (LG_EDGES) tally->looked_at += e < end;
      }
      all |= warp_reduce(x, LgOr());
      if ((all & want) == want) break;
    }
    return all & want;
  }

  // The outputs at indices p .. end get the bits x; by a warp.
  LG_DEVICE void scatter(LG_WORD x, i64 p, i64 end, i64 g, Tallied* tally) const {
    for (i64 e = p + lane_id(); e < end; e += 32) {
      const i64 v = i64(idx[e]), at = v * groups + g;
      if (LG_EDGES) ++tally->looked_at;
      const LG_WORD add = x & kept(at, g);
      if (!add || !(add & ~load_volatile(&out[at]))) continue;
      const LG_WORD old = atomic_or(&out[at], add);
      if (add & ~old) note(LG_WORD(add & ~old), old == 0, v, g, tally);
    }
  }
};

// By the columns of A.
LG_DEVICE void pull_bits(const Bits& b, Tallied* tally) {
  for (i64 t = global_warp(); t < b.chunks * b.groups; t += global_warps()) {
    const i64 c = t / b.groups, g = t - c * b.groups, v = b.chunk_column[c], at = v * b.groups + g;
    LG_WORD want = b.kept(at, g) & ~load_volatile(&b.out[at]);
    if (b.q_alive) want &= LG_WORD(b.q_alive[g]);
    want = warp_shfl(want, 0);  // another warp may have written between two lanes' loads
    if (!want) continue;
    const LG_WORD got = b.gather(b.chunk_start[c], b.chunk_end(c), g, want, tally);
    if (lane_id() == 0 && got) {
      const LG_WORD old = atomic_or(&b.out[at], got);
      b.note(got & ~old, old == 0, v, g, tally);
    }
  }
  const i64 items = b.n * b.groups;
  for (i64 base = global_warp() * 32; base < items; base += global_warps() * 32) {
    const i64 at = base + lane_id(), v = at / b.groups, g = at - v * b.groups;
    LG_WORD want = 0, got = 0;
    i64 p = 0, end = 0;
    if (at < items) {
      p = b.ptr[v];
      end = b.ptr[v + 1];
      if (end > p && end - p <= kLongColumn) want = b.kept(at, g);
      if (b.q_alive && want) want &= LG_WORD(b.q_alive[g]);
    }
    const i64 soon = p + FIRST < end ? p + FIRST : end;
    if (want) {
      if (LG_EDGES) tally->looked_at -= u64(p);
      for (; p < soon && (got & want) != want; ++p) got |= b.q[i64(b.idx[p]) * b.groups + g];
      if (LG_EDGES) tally->looked_at += u64(p);
      got &= want;
    }
    for (u32 rest = warp_ballot(got != want && p < end); rest; rest &= rest - 1) {
      const u32 from = bit_ffs(rest) - 1;
      const LG_WORD missing = warp_shfl(LG_WORD(want & ~got), from);
      const LG_WORD more =
          b.gather(warp_shfl(p, from), warp_shfl(end, from), warp_shfl(g, from), missing, tally);
      if (lane_id() == from) got |= more;
    }
    if (got) {
      b.out[at] = got;
      b.note(got, true, v, g, tally);
    }
  }
}

// From the entries of Q by the rows of A.
LG_DEVICE void push_bits(const Bits& b, Tallied* tally) {
  for (i64 t = global_warp(); t < b.chunks * b.groups; t += global_warps()) {
    const i64 c = t / b.groups, g = t - c * b.groups;
    const LG_WORD x = b.q[b.chunk_column[c] * b.groups + g];
    if (x) b.scatter(x, b.chunk_start[c], b.chunk_end(c), g, tally);
  }
  const i64 items = b.n * b.groups;
  for (i64 base = global_warp() * 32; base < items; base += global_warps() * 32) {
    const i64 at = base + lane_id(), u = at / b.groups, g = at - u * b.groups;
    const LG_WORD x = at < items ? b.q[at] : LG_WORD(0);
    i64 p = 0, end = 0;
    if (x) {
      p = b.ptr[u];
      end = b.ptr[u + 1];
    }
    for (u32 some = warp_ballot(end > p && end - p <= kLongColumn); some; some &= some - 1) {
      const u32 from = bit_ffs(some) - 1;
      b.scatter(warp_shfl(x, from), warp_shfl(p, from), warp_shfl(end, from), warp_shfl(g, from),
                tally);
    }
  }
}

// See Bits; LG_PUSH says which way.
extern "C" __global__ void block_bits(i64 n, i64 groups, i64 k, const LG_PTR* __restrict__ ptr,
                                      const LG_IDX* __restrict__ idx,
                                      const u32* __restrict__ q_words, const u32* m_words,
                                      bool complement, const u64* q_alive, const LG_PTR* lengths,
                                      i64 chunks, const i64* chunk_column, const i64* chunk_start,
                                      u32* out_words, u64* alive, u64* counts, u64* signal,
                                      u64 serial, u64* edges) {
  const Bits b{n,
               groups,
               k,
               ptr,
               idx,
               reinterpret_cast<const LG_WORD*>(q_words),
               reinterpret_cast<const LG_WORD*>(m_words),
               complement,
               q_alive,
               lengths,
               chunks,
               chunk_column,
               chunk_start,
               reinterpret_cast<LG_WORD*>(out_words),
               alive};
  Tallied tally{0, 0, 0};
  if constexpr (LG_PUSH) {
    push_bits(b, &tally);
  } else {
    pull_bits(b, &tally);
  }
  add_counts(tally, counts, signal, serial, LG_EDGES ? edges : nullptr);
}

// C<M> = Q (+.x) A with values, by the columns of A that are not long. A warp a word.
extern "C" __global__ void block_sums(i64 n, i64 per, i64 k, const LG_PTR* __restrict__ col_ptr,
                                      const LG_IDX* __restrict__ row_idx,
                                      const LG_A* __restrict__ a_values, LG_A a_iso,
                                      const u32* __restrict__ q_words,
                                      const LG_U* __restrict__ q_values, LG_U q_iso,
                                      const u32* m_words, bool complement, const LG_PTR* lengths,
                                      u32* out_words, LG_Z* out, u64* counts, u64* signal,
                                      u64 serial, u64* edges) {
  const BlockProduct<Chosen> x{{col_ptr, row_idx, a_values, a_iso},
                               {q_words, q_values, q_iso},
                               {n, per, k},
                               m_words,
                               complement,
                               {out_words, out}};
  Tallied tally{0, 0, 0};
  sum_short_columns(x, lengths, &tally);
  add_counts(tally, counts, signal, serial, LG_EDGES ? edges : nullptr);
}

// The same for the listed long columns, a block a word; it runs before.
extern "C" __global__ void __launch_bounds__(1024)
    block_sums_long(i64 listed, const i64* columns, i64 per, i64 k,
                    const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
                    const LG_A* __restrict__ a_values, LG_A a_iso, const u32* __restrict__ q_words,
                    const LG_U* __restrict__ q_values, LG_U q_iso, const u32* m_words,
                    bool complement, const LG_PTR* lengths, u32* out_words, LG_Z* out, u64* counts,
                    u64* edges) {
  LG_SHARED(LG_Z, sums, 1024);
  LG_SHARED(u32, found, 32);
  const BlockProduct<Chosen> x{{col_ptr, row_idx, a_values, a_iso},
                               {q_words, q_values, q_iso},
                               {0, per, k},
                               m_words,
                               complement,
                               {out_words, out}};
  Tallied tally{0, 0, 0};
  sum_long_columns(x, listed, columns, sums, found, lengths, &tally);
  add_total(tally.found, &counts[0]);
  add_total(tally.leaving, &counts[1]);
  if (LG_EDGES) add_total(tally.looked_at, edges);
}
