// Entries of a vector in memory, and the GraphBLAS rule for writing them.
//
// A vector of n entries at most: `words` has a presence bit for each index (bit i % 32 of word
// i / 32; null means that all are present; bits past n are 0), `values` a value for each index
// (null means that all have the value `iso`).
#ifndef LAGPU_ENTRIES_CUH
#define LAGPU_ENTRIES_CUH
#include "algebra.cuh"
#include "collectives.cuh"

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
  const u32 all = entry_bits(nullptr, w, n);
  return (complement ? ~entry_bits(words, w, n) : entry_bits(words, w, n)) & all;
}

template <class T, class X>
LG_DEVICE T entry_value(const X* values, X iso, i64 i) {
  return cast<T>(values ? values[i] : iso);
}

// the accumulator's functor, domain and result; NoAccum assigns
#ifndef LG_ACCUM
#define LG_ACCUM NoAccum
#endif
#ifndef LG_ACCUM_T
#define LG_ACCUM_T bool
#endif
#ifndef LG_ACCUM_Z
#define LG_ACCUM_Z bool
#endif

struct NoAccum : Functor {
  LG_CALL { return Z(y); }
};

// An accumulator with its domain and result; of NoAccum these do not matter.
template <class Op, class T, class Z>
struct Accum {
  static constexpr bool assigns = IsSame<Op, NoAccum>::value;
  template <class W, class Y>
  LG_DEVICE static W call(W before, Y y, i64 i) {
    return cast<W>(Op::template call<Z, T>(cast<T>(before), cast<T>(y), i, 0, 0));
  }
};
typedef Accum<LG_ACCUM, LG_ACCUM_T, LG_ACCUM_Z> ChosenAccum;

// Write one entry: t says whether the operation has a result z here, `kept` what the mask says, and
// `inside` whether the index belongs to the assigned ones. Returns whether w has an entry after.
template <class Acc, class W, class Z>
LG_DEVICE bool write_entry(W* w_values, i64 i, bool present, bool t, Z z, bool kept, bool inside,
                           bool replace) {
  if (!kept) return present && !replace;
  if (!inside) return present;
  if constexpr (Acc::assigns) {
    if (t) w_values[i] = cast<W>(z);
    return t;
  } else {
    if (t) w_values[i] = present ? Acc::call(w_values[i], z, i) : cast<W>(z);
    return t || present;
  }
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

// w<m> = what result(i, &z) gives for each of n indices; it says whether there is a value. One warp
// a presence word, grid stride. Each thread reads and writes its own index alone, so w may be an
// input, and the mask w. Returns the entries of w that this lane counts.
template <class Acc, class Z, class W, class Result>
LG_DEVICE u64 write_all(i64 n, const Output<W>& w, Result result) {
  u64 total = 0;
  const i64 nwords = (n + 31) / 32;
  for (i64 k = global_warp(); k < nwords; k += global_warps()) {
    const i64 i = k * 32 + lane_id();
    const u32 lane = 1u << lane_id();
    const u32 kept = mask_bits(w.mask, w.complement, k, n);
    const u32 inside = w.region ? w.region[k] : 0xffffffffu;
    const u32 before = w.words[k];
    bool present = false;
    if (i < n) {
      Z z = Z(0);
      const bool t = result(i, &z);
      present =
          write_entry<Acc>(w.values, i, before & lane, t, z, kept & lane, inside & lane, w.replace);
    }
    const u32 bits = warp_ballot(present);
    if (lane_id() == 0) {
      w.words[k] = bits;
      total += bit_popc(bits);
    }
  }
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

  LG_DEVICE bool operator()(i64 i, Z* z) const {
    if (!has_entry(words, i)) return false;
    const T x = entry_value<T>(values, iso, i);
    *z = scalar_left ? Op::template call<Z, T>(scalar, x, i, 0, 0)
                     : Op::template call<Z, T>(x, scalar, i, 0, 0);
    return true;
  }
};

// The entries of a vector that an operator keeps.
template <class Op, class T, class U>
struct Selected {
  const u32* words;
  const U* values;
  U iso;
  T thunk;

  LG_DEVICE bool operator()(i64 i, U* z) const {
    if (!has_entry(words, i)) return false;
    *z = values ? values[i] : iso;
    return Op::template call<bool, T>(cast<T>(*z), thunk, i, 0, 0);
  }
};

// One value everywhere.
template <class W>
struct Filled {
  W value;

  LG_DEVICE bool operator()(i64, W* z) const {
    *z = value;
    return true;
  }
};

// u (+) v or u (x) v, as combine.cu has the modes.
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

  LG_DEVICE bool operator()(i64 i, Z* z) const {
    const bool in_u = has_entry(u_words, i), in_v = has_entry(v_words, i);
    if (mode == 1 ? !(in_u && in_v) : !(in_u || in_v)) return false;
    if (mode == 2 || (in_u && in_v)) {
      *z = Op::template call<Z, T>(in_u ? entry_value<T>(u_values, u_iso, i) : u_default,
                                   in_v ? entry_value<T>(v_values, v_iso, i) : v_default, i, 0, 0);
    } else {
      *z = in_u ? entry_value<Z>(u_values, u_iso, i) : entry_value<Z>(v_values, v_iso, i);
    }
    return true;
  }
};

// *nvals += the block's entries.
LG_DEVICE void add_total(u64 total, u64* nvals) {
  total = block_reduce(total, u64(0), LgPlus());
  if (block_thread() == 0 && total) atomic_add(nvals, total);
}

// out has the bits of n entries (null words: all) whose value is not zero: a mask by value as one
// by structure. One warp a word, grid stride.
template <class U>
LG_DEVICE void write_true_bits(i64 n, const u32* words, const U* values, u32* out) {
  const i64 nwords = (n + 31) / 32;
  for (i64 k = global_warp(); k < nwords; k += global_warps()) {
    const i64 i = k * 32 + lane_id();
    const bool is_true = (entry_bits(words, k, n) >> lane_id() & 1) && cast<bool>(values[i]);
    const u32 bits = warp_ballot(is_true);
    if (lane_id() == 0) out[k] = bits;
  }
}

#endif  // LAGPU_ENTRIES_CUH
