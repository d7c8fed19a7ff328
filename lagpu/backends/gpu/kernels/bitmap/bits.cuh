// Presence bits of k x n bitmap matrices, and products of bits: C<M> = Q (+.x) A where all sums
// have one value. The kernel bitmap_mxm_bits and generated loops share this code.
//
// A bitmap matrix is stored vertex by vertex: 32-bit word v * per + g has the presence bits of rows
// 32 g .. 32 g + 31 of column v, and values lie at 32 * (v * per + g) + lane. Bits past k are 0.
// Where k > 32, `per` is even, so a product of bits takes pairs of words: its Word is a u64 then.
//
// Source: Then et al. 2014 (multi-source search); Beamer, Asanovic and Patterson 2012 (directions).
#ifndef LAGPU_BITMAP_BITS_CUH
#define LAGPU_BITMAP_BITS_CUH
#include "common/product.cuh"

const i64 kLookAlone = 8;  // entries that one thread of a pull looks at before its warp helps

// The bits of group g's rows, of k rows in all.
template <class Word>
LG_DEVICE Word rows_of(i64 g, i64 k) {
  const i64 bits = 8 * sizeof(Word), rest = k - g * bits;
  if (rest >= bits) return ~Word(0);
  return rest <= 0 ? Word(0) : (Word(1) << rest) - 1;
}

// The bits that the mask keeps of word `at`, group g.
template <class Word>
LG_DEVICE Word wanted(const Word* mask, bool complement, i64 at, i64 g, i64 k) {
  return kept_bits(mask, complement, at) & rows_of<Word>(g, k);
}

// Add bits of group g to those of the rows that are not empty; other threads add theirs.
template <class Word>
LG_DEVICE void note_alive(u64* alive, i64 g, Word bits) {
  if ((load_volatile(&alive[g]) & bits) != bits) atomic_or(&alive[g], u64(bits));
}

// The n columns of a matrix. A column of more than kLongColumn entries is cut into chunks, so that
// no warp works longer than on one of them: chunk c begins at entry start[c], of column column[c].
template <class Ptr, class Idx>
struct CutColumns {
  i64 n;
  const Ptr* ptr;
  const Idx* idx;
  i64 chunks;
  const i64 *column, *start;

  LG_DEVICE i64 begin(i64 v) const { return i64(ptr[v]); }
  LG_DEVICE i64 end(i64 v) const { return i64(ptr[v + 1]); }
  LG_DEVICE i64 row(i64 entry) const { return i64(idx[entry]); }
  LG_DEVICE i64 chunk_end(i64 c) const {
    const i64 whole = end(column[c]), cut = start[c] + kLongColumn;
    return cut < whole ? cut : whole;
  }
};

// A product of bits; a column of Q, M and C has `groups` Words. A null mask without `complement` is
// none at all. The last three may be null: `q_alive` has the bits of Q's rows that are not empty,
// `alive` gets those of C's, and of `lengths` a product adds up the columns that it finds.
template <class Word, class Ptr>
struct BitProduct {
  i64 groups, k;
  const u32 *q, *mask;
  bool complement;
  u32* out;  // C's bits, all 0 before
  const u64* q_alive;
  u64* alive;
  const Ptr* lengths;

  LG_DEVICE Word q_word(i64 at) const { return reinterpret_cast<const Word*>(q)[at]; }
  LG_DEVICE Word* out_word(i64 at) const { return reinterpret_cast<Word*>(out) + at; }
  LG_DEVICE Word kept(i64 at, i64 g) const {
    return wanted(reinterpret_cast<const Word*>(mask), complement, at, g, k);
  }
  // What a pull looks for: no row of C has a bit where Q's row is empty.
  LG_DEVICE Word missing(i64 at, i64 g) const {
    const Word want = kept(at, g);
    return want && q_alive ? want & Word(q_alive[g]) : want;
  }

  // This thread has found bits of a word; the first ones in it, if is_first.
  LG_DEVICE void note(Word fresh, bool is_first, i64 v, i64 g, Tallied* tally) const {
    tally->found += bit_popc(fresh);
    if (is_first && lengths) tally->frontier_edges += u64(lengths[v + 1] - lengths[v]);
    if (alive) note_alive(alive, g, fresh);
  }
};

// A warp joins Q's words of group g at entries p .. end of A, until it has found all of `want`.
template <class Word, class Ptr, class Idx>
LG_DEVICE Word gather(const BitProduct<Word, Ptr>& b, const CutColumns<Ptr, Idx>& a, i64 p, i64 end,
                      i64 g, Word want, Tallied* tally) {
  Word all = 0;
  for (i64 base = p; base < end; base += 128) {
    Word x = 0;
#pragma unroll
    for (i64 step = 0; step < 128; step += 32) {
      const i64 e = base + step + lane_id();
      if (e < end) x |= b.q_word(a.row(e) * b.groups + g);
      tally->looked_at += e < end;
    }
    all |= warp_reduce(x, LgOr());
    if ((all & want) == want) break;
  }
  return all & want;
}

// A warp adds bits x to C's words of group g at entries p .. end of A.
template <class Word, class Ptr, class Idx>
LG_DEVICE void scatter(const BitProduct<Word, Ptr>& b, const CutColumns<Ptr, Idx>& a, Word x, i64 p,
                       i64 end, i64 g, Tallied* tally) {
  for (i64 e = p + lane_id(); e < end; e += 32) {
    const i64 v = a.row(e), at = v * b.groups + g;
    ++tally->looked_at;
    const Word add = x & b.kept(at, g);
    if (!add || !(add & ~load_volatile(b.out_word(at)))) continue;
    const Word old = atomic_or(b.out_word(at), add);
    if (add & ~old) b.note(Word(add & ~old), old == 0, v, g, tally);
  }
}

// Pull, where `a` is A by the columns of C: a warp a chunk, and a thread any other word, which its
// warp helps with from entry kLookAlone on.
template <class Word, class Ptr, class Idx>
LG_DEVICE void pull_bits(const BitProduct<Word, Ptr>& b, const CutColumns<Ptr, Idx>& a,
                         Tallied* tally) {
  for (i64 t = global_warp(); t < a.chunks * b.groups; t += global_warps()) {
    const i64 c = t / b.groups, g = t - c * b.groups, v = a.column[c], at = v * b.groups + g;
    Word want = b.missing(at, g) & ~load_volatile(b.out_word(at));
    want = warp_shfl(want, 0);  // another warp may have written between two lanes' loads
    if (!want) continue;
    const Word got = gather(b, a, a.start[c], a.chunk_end(c), g, want, tally);
    if (lane_id() == 0 && got) {
      const Word old = atomic_or(b.out_word(at), got);
      b.note(got & ~old, old == 0, v, g, tally);
    }
  }
  const i64 items = a.n * b.groups;
  for (i64 base = global_warp() * 32; base < items; base += global_warps() * 32) {
    const i64 at = base + lane_id(), v = at / b.groups, g = at - v * b.groups;
    Word want = 0, got = 0;
    i64 p = 0, end = 0;
    if (at < items) {
      p = a.begin(v);
      end = a.end(v);
      if (end > p && end - p <= kLongColumn) want = b.missing(at, g);
    }
    const i64 soon = p + kLookAlone < end ? p + kLookAlone : end;
    if (want) {
      tally->looked_at -= u64(p);
      for (; p < soon && (got & want) != want; ++p) got |= b.q_word(a.row(p) * b.groups + g);
      tally->looked_at += u64(p);
      got &= want;
    }
    for (u32 rest = warp_ballot(got != want && p < end); rest; rest &= rest - 1) {
      const u32 from = bit_ffs(rest) - 1;
      const Word more = gather(b, a, warp_shfl(p, from), warp_shfl(end, from), warp_shfl(g, from),
                               warp_shfl(Word(want & ~got), from), tally);
      if (lane_id() == from) got |= more;
    }
    if (got) {
      *b.out_word(at) = got;
      b.note(got, true, v, g, tally);
    }
  }
}

// Push, where `a` is A by the columns of Q: a warp a chunk, and a warp any other word.
template <class Word, class Ptr, class Idx>
LG_DEVICE void push_bits(const BitProduct<Word, Ptr>& b, const CutColumns<Ptr, Idx>& a,
                         Tallied* tally) {
  for (i64 t = global_warp(); t < a.chunks * b.groups; t += global_warps()) {
    const i64 c = t / b.groups, g = t - c * b.groups;
    const Word x = b.q_word(a.column[c] * b.groups + g);
    if (x) scatter(b, a, x, a.start[c], a.chunk_end(c), g, tally);
  }
  const i64 items = a.n * b.groups;
  for (i64 base = global_warp() * 32; base < items; base += global_warps() * 32) {
    const i64 at = base + lane_id(), u = at / b.groups, g = at - u * b.groups;
    const Word x = at < items ? b.q_word(at) : Word(0);
    i64 p = 0, end = 0;
    if (x) {
      p = a.begin(u);
      end = a.end(u);
    }
    for (u32 some = warp_ballot(end > p && end - p <= kLongColumn); some; some &= some - 1) {
      const u32 from = bit_ffs(some) - 1;
      scatter(b, a, warp_shfl(x, from), warp_shfl(p, from), warp_shfl(end, from),
              warp_shfl(g, from), tally);
    }
  }
}

#endif  // LAGPU_BITMAP_BITS_CUH
