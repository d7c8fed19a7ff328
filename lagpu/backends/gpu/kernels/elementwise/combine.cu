// Element-wise combinations of two vectors, with mask, accumulator and replace.
//
//   combine:  w<m>[i] = u[i] (+) v[i]  or  u[i] (x) v[i], as `mode` says; see common/entry.cuh
//
// Vectors of n entries and the way of writing as in common/entries.cuh.
#include "common/entries.cuh"
// what is not given; the file compiles by itself
#ifndef LG_OP
#define LG_OP Plus
#endif
#ifndef LG_U
#define LG_U i32
#endif
#ifndef LG_V
#define LG_V i32
#endif
#ifndef LG_T
#define LG_T i32
#endif
#ifndef LG_Z
#define LG_Z i32
#endif
#ifndef LG_W
#define LG_W i32
#endif

extern "C" __global__ void combine(i64 n, i32 mode, const u32* u_words, const LG_U* u_values,
                                   LG_U u_iso, const u32* v_words, const LG_V* v_values, LG_V v_iso,
                                   LG_T u_default, LG_T v_default, const u32* m_words,
                                   bool complement, bool replace, u32* w_words, LG_W* w_values,
                                   u64* nvals) {
  const Output<LG_W> w{w_words, w_values, m_words, complement, replace, nullptr};
  const Combined<LG_OP, LG_T, LG_Z, LG_U, LG_V> f{mode,     u_words, u_values,  u_iso,    v_words,
                                                  v_values, v_iso,   u_default, v_default};
  add_total(write_all<ChosenAccum, LG_Z>(n, w, f), nvals);
}
