// Element-wise combinations of two vectors, with mask, accumulator and replace.
//
//   mode 0, ewise_add:    w<m>[i] = u[i] (+) v[i] on the union, one side alone as it is
//   mode 1, ewise_mult:   w<m>[i] = u[i] (x) v[i] on the intersection
//   mode 2, ewise_union:  w<m>[i] = u[i] (+) v[i] on the union, a default for the missing side
//
// Vectors of n entries as in entries.cuh; one warp a presence word, grid stride. Each thread reads
// and writes its own index alone, so w may be any of the inputs.
#include "entries.cuh"
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
  u64 total = 0;
  const i64 nwords = (n + 31) / 32;
  for (i64 w = global_warp(); w < nwords; w += global_warps()) {
    const i64 i = w * 32 + lane_id();
    const u32 lane = 1u << lane_id();
    const u32 kept = mask_bits(m_words, complement, w, n);
    const bool in_u = entry_bits(u_words, w, n) & lane, in_v = entry_bits(v_words, w, n) & lane;
    const u32 before = w_words[w];
    bool present = false;
    if (i < n) {
      const LG_U u = in_u ? (u_values ? u_values[i] : u_iso) : LG_U(0);
      const LG_V v = in_v ? (v_values ? v_values[i] : v_iso) : LG_V(0);
      const bool t = mode == 1 ? in_u && in_v : in_u || in_v;
      LG_Z z = LG_Z(0);
      if ((in_u && in_v) || (t && mode == 2)) {
        z = LG_OP::call<LG_Z, LG_T>(in_u ? cast<LG_T>(u) : u_default,
                                    in_v ? cast<LG_T>(v) : v_default, i, 0, 0);
      } else if (t) {
        z = in_u ? cast<LG_Z>(u) : cast<LG_Z>(v);
      }
      present = write_entry(w_values, i, before & lane, t, z, kept & lane, true, replace);
    }
    const u32 bits = warp_ballot(present);
    if (lane_id() == 0) {
      w_words[w] = bits;
      total += bit_popc(bits);
    }
  }
  total = block_reduce(total, u64(0), LgPlus());
  if (block_thread() == 0 && total) atomic_add(nvals, total);
}
