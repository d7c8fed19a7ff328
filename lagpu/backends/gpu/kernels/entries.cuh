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

// Write one entry: t says whether the operation has a result z here, `kept` what the mask says, and
// `inside` whether the index belongs to the assigned ones. Returns whether w has an entry after.
template <class W, class Z>
LG_DEVICE bool write_entry(W* w_values, i64 i, bool present, bool t, Z z, bool kept, bool inside,
                           bool replace) {
  if (!kept) return present && !replace;
  if (!inside) return present;
  if constexpr (IsSame<LG_ACCUM, NoAccum>::value) {
    if (t) w_values[i] = cast<W>(z);
    return t;
  } else {
    if (t && present) {
      typedef LG_ACCUM_T T;
      w_values[i] =
          cast<W>(LG_ACCUM::call<LG_ACCUM_Z, T>(cast<T>(w_values[i]), cast<T>(z), i, 0, 0));
    } else if (t) {
      w_values[i] = cast<W>(z);
    }
    return t || present;
  }
}

#endif  // LAGPU_ENTRIES_CUH
