// Some of a matrix' entries, as a matrix.
//
//   select_places:  bits of the entries that an operator keeps
//   diagonal_places: bits of the entries of one row a column
//   count_places:   the number of bits that are set in each word
//   take_entries:   the matrix of the entries whose bits are set
//
// A word has the bits of 32 entries in a row.
#include "common/entry.cuh"
#include "common/places.cuh"
// what is not given; the file compiles by itself
#ifndef LG_OP
#define LG_OP ValueNe
#endif
#ifndef LG_U
#define LG_U i32
#endif
#ifndef LG_T
#define LG_T i32
#endif
#ifndef LG_PTR
#define LG_PTR i32
#endif
#ifndef LG_IDX
#define LG_IDX i32
#endif

extern "C" __global__ void select_places(i64 nvals, i64 ncols, const LG_PTR* __restrict__ col_ptr,
                                         const LG_IDX* __restrict__ row_idx,
                                         const LG_U* __restrict__ values, LG_U iso, LG_T thunk,
                                         u32* __restrict__ words) {
  each_entry(nvals, ncols, col_ptr, [&](i64 w, i64 p, i64 j, bool mine) {
    bool kept = false;
    if (mine) {
      const Entry<LG_U> u{true, values ? values[p] : iso};
      kept = selected<LG_OP>(u, thunk, i64(row_idx[p]), j).there;
    }
    const u32 bits = warp_ballot(kept);
    if (lane_id() == 0) words[w] = bits;
  });
}

// The row is rows[j] in column j, or j - k if `rows` is null.
extern "C" __global__ void diagonal_places(i64 nvals, i64 ncols, const LG_PTR* __restrict__ col_ptr,
                                           const LG_IDX* __restrict__ row_idx, i64 k,
                                           const i64* __restrict__ rows, u32* __restrict__ words) {
  each_entry(nvals, ncols, col_ptr, [&](i64 w, i64 p, i64 j, bool mine) {
    const u32 bits = warp_ballot(mine && i64(row_idx[p]) == (rows ? rows[j] : j - k));
    if (lane_id() == 0) words[w] = bits;
  });
}

extern "C" __global__ void count_places(i64 nwords, const u32* __restrict__ words,
                                        i64* __restrict__ counts) {
  for (i64 w = global_thread(); w < nwords; w += global_threads()) counts[w] = bit_popc(words[w]);
}

// `upto` has the number of set bits in the words up to each one, itself included.
extern "C" __global__ void take_entries(i64 nvals, i64 ncols, const u32* __restrict__ words,
                                        const i64* __restrict__ upto,
                                        const LG_PTR* __restrict__ col_ptr,
                                        const LG_IDX* __restrict__ row_idx,
                                        const LG_U* __restrict__ values,
                                        LG_PTR* __restrict__ out_ptr, LG_IDX* __restrict__ out_idx,
                                        LG_U* __restrict__ out_values) {
  for (i64 j = global_thread(); j <= ncols; j += global_threads()) {
    const i64 p = col_ptr[j];  // as many stay before it as its column begins at
    const i64 w = p / 32;
    out_ptr[j] =
        LG_PTR(p == nvals ? upto[(nvals - 1) / 32] : upto[w] - bit_popc(words[w] >> (p % 32)));
  }
  for (i64 w = global_warp(); w * 32 < nvals; w += global_warps()) {
    const u32 bits = words[w];
    if (!(bits >> lane_id() & 1)) continue;
    const i64 p = w * 32 + lane_id();
    const i64 to = upto[w] - bit_popc(bits >> lane_id());
    out_idx[to] = row_idx[p];
    if (values) out_values[to] = values[p];
  }
}
