// Masked products that go to each wanted result and look for what adds to it: w<m> = A' (+.x) u.
//
//   w[j] = (+)_i u[i] (x) A[i,j]   for every column j the mask keeps
//
// A by columns, u and w as in common/product.cuh. A sum ends at a terminal value, so `any` stops at
// the first entry found. All write w's presence words whole, and its values where there is an
// entry; `tally` counts.
#ifndef LAGPU_SPMV_PULL_CUH
#define LAGPU_SPMV_PULL_CUH
#include "common/hint.cuh"
#include "common/product.cuh"
#ifndef LG_WHOLE  // 1: no early stop, every entry of a column is looked at
#define LG_WHOLE 0
#endif

// A sum that has not got its first product yet, or has.
template <class S>
struct Sum {
  typename S::Z value;
  bool found;

  LG_DEVICE Sum() : value(S::ADD::template identity<typename S::Z>()), found(false) {}
  LG_DEVICE void add_product(typename S::Z z) {
    value = found ? add<typename S::ADD>(value, z) : z;
    found = true;
  }
  LG_DEVICE bool is_done() const {
    return !LG_WHOLE && found && (takes_first<S> || S::ADD::is_terminal(value));
  }
  // Fold the warp's sums; each lane gets the whole one. Lanes that found nothing do not count:
  // `any` has no identity.
  LG_DEVICE void fold_warp() {
    for (u32 step = 16; step; step /= 2) {
      const typename S::Z other = warp_shfl_xor(value, step);
      const bool other_found = warp_shfl_xor(found, step);
      if (other_found) add_product(other);
    }
  }
};

// Add entries begin .. end of column j to *sum until it is done, by one thread.
template <class S>
LG_DEVICE void pull_column(const Columns<S>& a, const Operand<S>& u, i64 begin, i64 end, i64 j,
                           Sum<S>* sum, Tallied* tally) {
  for (i64 p = begin; p < end; ++p) {
    ++tally->looked_at;
    const i64 i = load_ro(&a.idx[p]);
    if (!has_entry(u.words, i)) continue;
    sum->add_product(multiply(a, u, p, i, j));
    if (sum->is_done()) break;
  }
}

// One thread a column; a warp writes the presence word of its 32 columns. Grid stride over words.
template <class S, class W>
LG_DEVICE void pull_scalar(const Columns<S>& a, const Operand<S>& u, const Mask& mask,
                           const Sums<W>& w, const typename S::PTR* lengths, Tallied* tally) {
  const i64 nwords = (mask.n + 31) / 32;
  for (i64 word = global_warp(); word < nwords; word += global_warps()) {
    const i64 j = word * 32 + lane_id();
    const u32 kept = mask.bits(word);
    Sum<S> sum;
    i64 begin = 0, end = 0;
    if (kept >> lane_id() & 1) {
      begin = load_ro(&a.ptr[j]);
      end = load_ro(&a.ptr[j + 1]);
    }
    pull_column(a, u, begin, end, j, &sum, tally);
    const u32 bits = warp_ballot(sum.found);
    if (sum.found) {
      if (!S::iso) w.values[j] = cast<W>(sum.value);
      count_found(lengths, j, tally);
    }
    if (lane_id() == 0) w.words[word] = bits;
  }
}

// One warp a column; the warps of a block share the 32 columns of a presence word.
template <class S, class W>
LG_DEVICE void pull_warp(const Columns<S>& a, const Operand<S>& u, const Mask& mask,
                         const Sums<W>& w, const typename S::PTR* lengths, Tallied* tally) {
  LG_SHARED(u32, found_bits, 2);  // two in turn: a barrier less
  const i64 nwords = (mask.n + 31) / 32;
  u32 turn = 0;
  for (i64 word = block_index(); word < nwords; word += grid_blocks()) {
    const u32 kept = mask.bits(word);
    if (kept == 0) {
      if (block_thread() == 0) w.words[word] = 0;
      continue;
    }
    turn ^= 1;
    if (block_thread() == 0) found_bits[turn] = 0;
    block_sync();
    for (u32 c = block_warp(); c < 32; c += block_warps()) {
      if (!(kept >> c & 1)) continue;
      const i64 j = word * 32 + c;
      const i64 begin = load_ro(&a.ptr[j]), end = load_ro(&a.ptr[j + 1]);
      Sum<S> sum;
      for (i64 p = begin; p < end; p += 32) {
        if (p + lane_id() < end) {
          ++tally->looked_at;
          const i64 i = load_ro(&a.idx[p + lane_id()]);
          if (has_entry(u.words, i)) sum.add_product(multiply(a, u, p + lane_id(), i, j));
        }
        if (warp_any(sum.is_done())) break;
      }
      sum.fold_warp();
      if (sum.found && lane_id() == 0) {
        if (!S::iso) w.values[j] = cast<W>(sum.value);
        atomic_or(&found_bits[turn], 1u << c);
        count_found(lengths, j, tally);
      }
    }
    block_sync();
    if (block_thread() == 0) w.words[word] = found_bits[turn];
  }
}

const u32 kAlone = 8;    // entries of a column that a lane looks at before the warp helps
const u32 kAtOnce = 4;   // of them together, so that their loads overlap
const u32 kPutOff = 32;  // hubs that a block keeps for the end

// Bits of those of `count` rows i that have an entry. All loads come before the first branch:
// those after one would wait for another.
LG_DEVICE u32 which_have(const u32* words, const i64 (&i)[kAtOnce], u32 count) {
  u32 there = 0xffffffffu;
  if (words) {
    u32 word[kAtOnce];
    for (u32 q = 0; q < kAtOnce; ++q) word[q] = words[i[q] / 32];
    there = 0;
    for (u32 q = 0; q < kAtOnce; ++q) there |= (word[q] >> (i[q] % 32) & 1) << q;
  }
  return count < kAtOnce ? there & ((1u << count) - 1) : there;
}

// Look at entries p .. end of column j, at most `most` of them; returns where it stopped. Where
// fewer are left the last is loaded again.
template <class S>
LG_DEVICE i64 pull_alone(const Columns<S>& a, const Operand<S>& u, i64 p, i64 end, i64 j, u32 most,
                         Sum<S>* sum, Tallied* tally) {
  const i64 limit = end - p > most ? p + most : end;
  for (; p < limit && !sum->is_done(); p += kAtOnce) {
    i64 i[kAtOnce];
    for (u32 q = 0; q < kAtOnce; ++q)
      i[q] = i64(load_ro(&a.idx[p + q < limit ? p + q : limit - 1]));
    const u32 count = u32(limit - p < kAtOnce ? limit - p : kAtOnce);
    const u32 there = which_have(u.words, i, count);
    tally->looked_at += count;
    for (u32 q = 0; q < kAtOnce; ++q)
      if ((there >> q & 1) && !sum->is_done()) sum->add_product(multiply(a, u, p + q, i[q], j));
  }
  return p < limit ? p : limit;
}

// Add entries p .. end of column j to *sum, by `lanes` threads, this one being number `lane`; the
// caller folds. A warp's lanes stop together.
template <class S>
LG_DEVICE void pull_together(const Columns<S>& a, const Operand<S>& u, i64 p, i64 end, i64 j,
                             Sum<S>* sum, Tallied* tally) {
  for (p += lane_id(); p - lane_id() < end; p += 32 * kAtOnce) {
    i64 i[kAtOnce];
    for (u32 q = 0; q < kAtOnce; ++q)
      i[q] = i64(load_ro(&a.idx[p + q * 32 < end ? p + q * 32 : end - 1]));
    const i64 left = p < end ? (end - p + 31) / 32 : 0;
    const u32 count = u32(left < kAtOnce ? left : kAtOnce);
    const u32 there = which_have(u.words, i, count);
    tally->looked_at += count;
    for (u32 q = 0; q < kAtOnce; ++q)
      if ((there >> q & 1) && !sum->is_done())
        sum->add_product(multiply(a, u, p + q * 32, i[q], j));
    if (warp_any(sum->is_done())) break;
  }
}

// Columns whose many entries one warp would take long to look at: the whole block does.
struct PutOff {
  i64 begin[kPutOff], end[kPutOff], column[kPutOff];
  u32 count;
};

// The deferred columns, each by all warps of the thread block. Their words are written already;
// this adds bits.
template <class S, class W>
LG_DEVICE void pull_put_off(const Columns<S>& a, const Operand<S>& u, const Sums<W>& w,
                            const typename S::PTR* lengths, PutOff* later, Tallied* tally) {
  typedef typename S::Z Z;
  LG_SHARED(Z, values, 32);
  LG_SHARED(bool, there, 32);
  block_sync();
  const u32 count = later->count < kPutOff ? later->count : kPutOff;
  for (u32 k = 0; k < count; ++k) {
    const i64 j = later->column[k], begin = later->begin[k], end = later->end[k];
    Sum<S> sum;
    const i64 share = 32 * kAtOnce;
    for (i64 p = begin; p < end; p += share * block_warps()) {
      const i64 mine = p + share * block_warp();
      if (mine < end)
        pull_together(a, u, mine, mine + share < end ? mine + share : end, j, &sum, tally);
      if (block_any(sum.is_done())) break;
    }
    sum.fold_warp();
    if (lane_id() == 0) {
      values[block_warp()] = sum.value;
      there[block_warp()] = sum.found;
    }
    block_sync();
    if (block_thread() == 0) {
      Sum<S> whole;
      for (u32 warp = 0; warp < block_warps(); ++warp)
        if (there[warp]) whole.add_product(values[warp]);
      if (whole.found) {
        if (!S::iso) w.values[j] = cast<W>(whole.value);
        w.words[j / 32] |= 1u << (j % 32);  // the block's own word, written before the barrier
        count_found(lengths, j, tally);
      }
    }
    block_sync();
  }
}

// Wanted columns from presence words, 32 a warp: first the hint, a row of many entries in each
// column, which most sums of `any` end with; then some entries by each lane, then the rest by the
// warp; very long columns by the block at the end. `empty`, if not null, has a bit for each column
// without entries, `hint`, if not null, the hint of each column.
template <class S, class W>
LG_DEVICE void pull_bitmap(const Columns<S>& a, const Operand<S>& u, const Mask& mask,
                           const Sums<W>& w, const u32* empty, const i32* hint,
                           const typename S::PTR* lengths, PutOff* later, Tallied* tally) {
  if (block_thread() == 0) later->count = 0;
  block_sync();
  const i64 nwords = (mask.n + 31) / 32;
  for (i64 word = global_warp(); word < nwords; word += global_warps()) {
    const u32 wanted = mask.bits(word) & (empty ? ~empty[word] : 0xffffffffu);
    if (wanted == 0) {
      if (lane_id() == 0) w.words[word] = 0;
      continue;
    }
    const i64 j = word * 32 + lane_id();
    Sum<S> sum;
    i64 begin = 0, p = 0, end = 0;
    if (wanted >> lane_id() & 1) {
      const Hint first = hint_from(hint ? load_ro(&hint[j]) : kNoHint);
      p = begin = load_ro(&a.ptr[j]);
      end = load_ro(&a.ptr[j + 1]);
      if (first.row >= 0 && has_entry(u.words, first.row)) {
        ++tally->looked_at;
        sum.add_product(multiply(a, u, 0, first.row, j));
      } else if (first.only) {
        ++tally->looked_at;
        p = end;
      } else {
        p = pull_alone(a, u, p, end, j, kAlone, &sum, tally);
      }
    }
    bool open = p < end && !sum.is_done();
    if (open && end - p > kHub) {
      const u32 at = atomic_add(&later->count, 1u);
      if (at < kPutOff) {  // from its beginning: what was summed is forgotten
        later->begin[at] = begin;
        later->end[at] = end;
        later->column[at] = j;
        sum = Sum<S>();
        open = false;
      }
    }
    for (u32 rest = warp_ballot(open); rest; rest &= rest - 1) {
      const u32 from = bit_ffs(rest) - 1;
      Sum<S> shared;
      pull_together(a, u, warp_shfl(p, from), warp_shfl(end, from), warp_shfl(j, from), &shared,
                    tally);
      shared.fold_warp();
      if (lane_id() == from && shared.found) sum.add_product(shared.value);
    }
    const u32 bits = warp_ballot(sum.found);
    if (sum.found) {
      if (!S::iso) w.values[j] = cast<W>(sum.value);
      count_found(lengths, j, tally);
    }
    if (lane_id() == 0) w.words[word] = bits;
  }
  pull_put_off(a, u, w, lengths, later, tally);
}

#endif  // LAGPU_SPMV_PULL_CUH
