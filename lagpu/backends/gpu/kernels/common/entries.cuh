// Entries of a vector in memory, and operations on all of them; what holds of one entry is in
// common/entry.cuh.
//
// A vector of n entries at most: `words` has a presence bit for each index (bit i % 32 of word
// i / 32; null means that all are present; bits past n are 0), `values` a value for each index
// (null means that all have the value `iso`).
#ifndef LAGPU_ENTRIES_CUH
#define LAGPU_ENTRIES_CUH
#include "common/collectives.cuh"
#include "common/entry.cuh"

LG_DEVICE bool has_entry(const u32* words, i64 i) {
  return !words || (words[i / 32] >> (i % 32) & 1);
}

// The 32 presence bits of word w of n entries.
LG_DEVICE u32 entry_bits(const u32* words, i64 w, i64 n) {
  if (words) return words[w];
  const i64 rest = n - w * 32;
  return rest >= 32 ? 0xffffffffu : (1u << rest) - 1;
}

// The positions of word w that a mask keeps: `words` null without `complement` is no mask at all,
// and with it keeps nothing.
LG_DEVICE u32 mask_bits(const u32* words, bool complement, i64 w, i64 n) {
  return kept_bits(words, complement, w) & entry_bits(nullptr, w, n);
}

template <class T, class X>
LG_DEVICE T entry_value(const X* values, X iso, i64 i) {
  return cast<T>(values ? values[i] : iso);
}

// The entry at i; a value is loaded only if it is there.
template <class U>
LG_DEVICE Entry<U> load_entry(bool there, const U* values, U iso, i64 i) {
  return {there, there && values ? values[i] : iso};
}

// The output of an element-wise operation, with how it is written: mask (words, complement),
// replace, and region, which, if not null, has a bit for each index that is assigned to.
template <class W>
struct Output {
  u32* words;
  W* values;
  const u32* mask;
  bool complement, replace;
  const u32* region;
};

// How many presence words a warp takes at once, a lane each: as many as leave none idle. Whatever
// goes through n entries in tiles of so many words has the same warp for the same word.
LG_DEVICE u32 words_at_once(i64 nwords) {
  u32 count = 1;
  while (count < LG_WARP && 2 * count * global_warps() <= nwords) count *= 2;
  return count;
}

// The words of this warp, a tile at a time: call each(k, mine) on all lanes, where k is the lane's
// word, or past the last one if it has none; `mine` says whether it has.
template <class Each>
LG_DEVICE void each_tile(i64 n, Each each) {
  const i64 nwords = (n + 31) / 32;
  const i64 tile = words_at_once(nwords);
  for (i64 base = global_warp() * tile; base < nwords; base += global_warps() * tile) {
    const i64 k = base + lane_id();
    each(k, lane_id() < tile && k < nwords);
  }
}

// Call each(from, i) on all lanes for every lane `from` of a tile whose `bits` are not 0: i is the
// calling lane's index in that lane's word k.
template <class Each>
LG_DEVICE void each_word(u32 bits, i64 k, Each each) {
  const i64 base = k - lane_id();
  for (u32 work = warp_ballot(bits != 0); work; work &= work - 1) {
    const u32 from = bit_ffs(work) - 1;
    each(from, (base + from) * 32 + lane_id());
  }
}

const u32 kWords = 4;  // whose values a warp loads before it writes any

// The same with several lanes at once; of those past the last one `from` is 32.
template <u32 words, class Each>
LG_DEVICE void each_words(u32 bits, i64 k, Each each) {
  const i64 base = k - lane_id();
  for (u32 work = warp_ballot(bits != 0); work;) {
    u32 from[words];
    i64 i[words];
    for (u32 q = 0; q < words; ++q, work &= work - 1) {
      from[q] = work ? bit_ffs(work) - 1 : LG_WARP;
      i[q] = (base + from[q]) * 32 + lane_id();
    }
    each(from, i);
  }
}

template <class Each>
LG_DEVICE void each_words(u32 bits, i64 k, Each each) {
  each_words<kWords>(bits, k, each);
}

// w<m> = what `result` gives for each of n indices: result.where(k, n) has a bit for each index of
// word k where there may be an entry, and there result.of(result.load(true, i), i) is it. All loads
// of some words come before the first write. Each thread reads and writes its
// own index alone, and a warp writes its words last, so w may be an input, and the mask w. Returns
// the entries of w that this lane counts.
template <class Acc, class Z, class W, class Result>
LG_DEVICE u64 write_all(i64 n, const Output<W>& w, Result result) {
  u64 total = 0;
  each_tile(n, [&](i64 k, bool mine) {
    u32 before = 0, after = 0, some = 0;
    if (mine) {
      const u32 kept = mask_bits(w.mask, w.complement, k, n);
      const u32 inside = w.region ? w.region[k] : 0xffffffffu;
      before = w.words[k];
      after = staying<Acc>(before, kept, inside, w.replace);
      some = result.where(k, n) & kept & inside;
    }
    each_words(some, k, [&](const u32(&from)[kWords], const i64(&i)[kWords]) {
      bool there[kWords], old[kWords];
      typename Result::Operands x[kWords];
      W had[kWords];
      for (u32 q = 0; q < kWords; ++q) {
        there[q] = from[q] < LG_WARP && warp_shfl(some, from[q] % LG_WARP) >> lane_id() & 1;
        old[q] = warp_shfl(before, from[q] % LG_WARP) >> lane_id() & 1;
        x[q] = result.load(there[q], i[q]);
        had[q] = !Acc::assigns && there[q] && old[q] ? w.values[i[q]] : W(0);
      }
      for (u32 q = 0; q < kWords; ++q) {
        const Entry<Z> t = result.of(x[q], i[q]);
        if (t.there) w.values[i[q]] = written<Acc>(Entry<W>{old[q], had[q]}, t, i[q]).value;
        const u32 new_bits = warp_ballot(t.there);
        if (lane_id() == from[q]) after |= new_bits;
      }
    });
    if (after != before) w.words[k] = after;
    total += bit_popc(after);
  });
  return total;
}

// f(u[i], s) or f(s, u[i]) of a vector's entries.
template <class Op, class T, class Z, class U>
struct Mapped {
  const u32* words;
  const U* values;
  U iso;
  T scalar;
  bool scalar_left;

  typedef Entry<U> Operands;
  LG_DEVICE u32 where(i64 k, i64 n) const { return entry_bits(words, k, n); }
  LG_DEVICE Operands load(bool there, i64 i) const { return load_entry(there, values, iso, i); }
  LG_DEVICE Entry<Z> of(const Operands& x, i64 i) const {
    return mapped<Op, T, Z>(x, scalar, scalar_left, i, 0);
  }
};

// The entries of a vector that an operator keeps.
template <class Op, class T, class U>
struct Selected {
  const u32* words;
  const U* values;
  U iso;
  T thunk;

  typedef Entry<U> Operands;
  LG_DEVICE u32 where(i64 k, i64 n) const { return entry_bits(words, k, n); }
  LG_DEVICE Operands load(bool there, i64 i) const { return load_entry(there, values, iso, i); }
  LG_DEVICE Entry<U> of(const Operands& x, i64 i) const { return selected<Op>(x, thunk, i, 0); }
};

// One value everywhere.
template <class W>
struct Filled {
  W value;

  LG_DEVICE u32 where(i64 k, i64 n) const { return entry_bits(nullptr, k, n); }
  typedef bool Operands;
  LG_DEVICE Operands load(bool there, i64) const { return there; }
  LG_DEVICE Entry<W> of(Operands there, i64) const { return {there, value}; }
};

// u (+) v or u (x) v, as `mode` says.
template <class Op, class T, class Z, class U, class V>
struct Combined {
  i32 mode;
  const u32* u_words;
  const U* u_values;
  U u_iso;
  const u32* v_words;
  const V* v_values;
  V v_iso;
  T u_default, v_default;

  LG_DEVICE u32 where(i64 k, i64 n) const {
    return met(mode, entry_bits(u_words, k, n), entry_bits(v_words, k, n));
  }
  struct Operands {
    Entry<U> u;
    Entry<V> v;
  };
  LG_DEVICE Operands load(bool there, i64 i) const {
    const bool both = mode == kEwiseMult;  // as `where` says
    const bool in_u = there && (both || has_entry(u_words, i));
    const bool in_v = there && (both || has_entry(v_words, i));
    return {load_entry(in_u, u_values, u_iso, i), load_entry(in_v, v_values, v_iso, i)};
  }
  LG_DEVICE Entry<Z> of(const Operands& x, i64 i) const {
    return combined<Op, T, Z>(mode, x.u, x.v, u_default, v_default, i, 0);
  }
};

// *nvals += the block's entries.
LG_DEVICE void add_total(u64 total, u64* nvals) {
  total = block_reduce(total, u64(0), LgPlus());
  if (block_thread() == 0 && total) atomic_add(nvals, total);
}

// out has the bits of n entries (null words: all) whose value is not zero: a mask by value as one
// by structure.
template <class U>
LG_DEVICE void write_true_bits(i64 n, const u32* words, const U* values, u32* out) {
  each_tile(n, [&](i64 k, bool mine) {
    const u32 some = mine ? entry_bits(words, k, n) : 0;
    u32 bits = 0;
    each_word(some, k, [&](u32 from, i64 i) {
      const bool there = warp_shfl(some, from) >> lane_id() & 1;
      const u32 found = warp_ballot(there && cast<bool>(values[i]));
      if (lane_id() == from) bits = found;
    });
    if (mine) out[k] = bits;
  });
}

#endif  // LAGPU_ENTRIES_CUH
