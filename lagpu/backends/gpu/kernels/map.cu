// Entry by entry: apply, select, assign; with mask, accumulator and replace.
//
//   map:     w<m>[i] = f(u[i], s)  or  f(s, u[i])      choose:  w<m>[i] = u[i] where f(u[i], s, i,
//   0) fill:    w<m>[i] = s           apply_values, keep_values: the same for a matrix' entries
//
// Vectors of n entries as in entries.cuh; one warp a presence word, grid stride. `region`, if not
// null, has a bit for each index that is assigned to; the others keep what they have.
// Each thread reads and writes its own index alone, so w may be u, and the mask w.
#include "entries.cuh"
// what is not given; the file compiles by itself
#ifndef LG_OP
#define LG_OP Identity
#endif
#ifndef LG_U
#define LG_U bool
#endif
#ifndef LG_T
#define LG_T bool
#endif
#ifndef LG_Z
#define LG_Z bool
#endif
#ifndef LG_W
#define LG_W bool
#endif

// The loop that all three share: `result` gives (t, z) for an index whose u has an entry.
template <class Z, class Result>
LG_DEVICE void write_all(i64 n, const u32* u_words, const u32* m_words, bool complement,
                         bool replace, const u32* region, u32* w_words, LG_W* w_values, u64* nvals,
                         Result result) {
  u64 total = 0;
  const i64 nwords = (n + 31) / 32;
  for (i64 w = global_warp(); w < nwords; w += global_warps()) {
    const i64 i = w * 32 + lane_id();
    const u32 lane = 1u << lane_id();
    const u32 kept = mask_bits(m_words, complement, w, n);
    const u32 there = entry_bits(u_words, w, n);
    const u32 inside = region ? region[w] : 0xffffffffu;
    const u32 before = w_words[w];
    bool present = false;
    if (i < n) {
      Z z = Z(0);
      const bool t = (there & lane) && result(i, &z);
      present = write_entry(w_values, i, before & lane, t, z, kept & lane, inside & lane, replace);
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

extern "C" __global__ void map(i64 n, const u32* u_words, const LG_U* u_values, LG_U u_iso,
                               LG_T scalar, bool scalar_left, const u32* m_words, bool complement,
                               bool replace, const u32* region, u32* w_words, LG_W* w_values,
                               u64* nvals) {
  write_all<LG_Z>(n, u_words, m_words, complement, replace, region, w_words, w_values, nvals,
                  [=](i64 i, LG_Z* z) {
                    const LG_T x = entry_value<LG_T>(u_values, u_iso, i);
                    *z = scalar_left ? LG_OP::call<LG_Z, LG_T>(scalar, x, i, 0, 0)
                                     : LG_OP::call<LG_Z, LG_T>(x, scalar, i, 0, 0);
                    return true;
                  });
}

extern "C" __global__ void choose(i64 n, const u32* u_words, const LG_U* u_values, LG_U u_iso,
                                  LG_T thunk, const u32* m_words, bool complement, bool replace,
                                  u32* w_words, LG_W* w_values, u64* nvals) {
  write_all<LG_U>(n, u_words, m_words, complement, replace, nullptr, w_words, w_values, nvals,
                  [=](i64 i, LG_U* z) {
                    *z = u_values ? u_values[i] : u_iso;
                    return LG_OP::call<bool, LG_T>(cast<LG_T>(*z), thunk, i, 0, 0);
                  });
}

extern "C" __global__ void fill(i64 n, LG_W scalar, const u32* m_words, bool complement,
                                bool replace, const u32* region, u32* w_words, LG_W* w_values,
                                u64* nvals) {
  write_all<LG_W>(n, nullptr, m_words, complement, replace, region, w_words, w_values, nvals,
                  [=](i64, LG_W* z) {
                    *z = scalar;
                    return true;
                  });
}

// out[p] = f(values[p], s) for nvals entries at (rows[p], cols[p]); one thread an entry.
extern "C" __global__ void apply_values(i64 count, const i64* __restrict__ rows,
                                        const i64* __restrict__ cols,
                                        const LG_U* __restrict__ values, LG_U iso, LG_T scalar,
                                        bool scalar_left, LG_W* __restrict__ out) {
  for (i64 p = global_thread(); p < count; p += global_threads()) {
    const LG_T x = entry_value<LG_T>(values, iso, p);
    const i64 i = rows[p], j = cols[p];
    out[p] = cast<LG_W>(scalar_left ? LG_OP::call<LG_Z, LG_T>(scalar, x, i, 0, j)
                                    : LG_OP::call<LG_Z, LG_T>(x, scalar, i, 0, j));
  }
}
