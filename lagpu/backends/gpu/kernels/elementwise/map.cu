// Entry by entry: apply, select, assign; with mask, accumulator and replace.
//
//   map:             w<m>[i] = f(u[i], s) or f(s, u[i])
//   select_entries:  w<m>[i] = u[i] where f(u[i], s, i, 0)
//   fill:            w<m>[i] = s
//   apply_values:    as map, for a matrix' entries
//
// common/entries.cuh has the form of vectors and of their writes.
#include "common/entries.cuh"
#include "common/places.cuh"
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
#ifndef LG_PTR
#define LG_PTR i32
#endif
#ifndef LG_IDX
#define LG_IDX i32
#endif

extern "C" __global__ void map(i64 n, const u32* u_words, const LG_U* u_values, LG_U u_iso,
                               LG_T scalar, bool scalar_left, const u32* m_words, bool complement,
                               bool replace, const u32* region, u32* w_words, LG_W* w_values,
                               u64* nvals) {
  const Output<LG_W> w{w_words, w_values, m_words, complement, replace, region};
  const Mapped<LG_OP, LG_T, LG_Z, LG_U> f{u_words, u_values, u_iso, scalar, scalar_left};
  add_total(write_all<ChosenAccum, LG_Z>(n, w, f), nvals);
}

extern "C" __global__ void select_entries(i64 n, const u32* u_words, const LG_U* u_values,
                                          LG_U u_iso, LG_T thunk, const u32* m_words,
                                          bool complement, bool replace, u32* w_words,
                                          LG_W* w_values, u64* nvals) {
  const Output<LG_W> w{w_words, w_values, m_words, complement, replace, nullptr};
  const Selected<LG_OP, LG_T, LG_U> f{u_words, u_values, u_iso, thunk};
  add_total(write_all<ChosenAccum, LG_U>(n, w, f), nvals);
}

extern "C" __global__ void fill(i64 n, LG_W scalar, const u32* m_words, bool complement,
                                bool replace, const u32* region, u32* w_words, LG_W* w_values,
                                u64* nvals) {
  const Output<LG_W> w{w_words, w_values, m_words, complement, replace, region};
  add_total(write_all<ChosenAccum, LG_W>(n, w, Filled<LG_W>{scalar}), nvals);
}

// out[k] = values[k], cast; one thread a value, grid stride.
extern "C" __global__ void cast_values(i64 count, const LG_U* __restrict__ values,
                                       LG_W* __restrict__ out) {
  for (i64 k = global_thread(); k < count; k += global_threads()) out[k] = cast<LG_W>(values[k]);
}

// out[p] = f(values[p], s) for the entries of a matrix by columns; one thread an entry.
extern "C" __global__ void apply_values(i64 nvals, i64 ncols, const LG_PTR* __restrict__ col_ptr,
                                        const LG_IDX* __restrict__ row_idx,
                                        const LG_U* __restrict__ values, LG_U iso, LG_T scalar,
                                        bool scalar_left, LG_W* __restrict__ out) {
  each_entry(nvals, ncols, col_ptr, [&](i64, i64 p, i64 j, bool mine) {
    if (!mine) return;
    const Entry<LG_U> x = load_entry(true, values, iso, p);
    const i64 i = row_idx[p];
    out[p] = cast<LG_W>(mapped<LG_OP, LG_T, LG_Z>(x, scalar, scalar_left, i, j).value);
  });
}
