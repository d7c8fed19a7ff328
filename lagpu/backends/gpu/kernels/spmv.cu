// Masked products by columns: w<m> = A' (+.x) u for A in CSC form, one result a column.
//
//   w[j] = (+)_i u[i] (x) A[i,j]   for every column j the mask keeps
//
// A has n columns: col_ptr (n + 1), row_idx and values (nvals; null values: all equal a_iso).
// The same code computes w = A (+.x) u on the row form, or on the column form of a symmetric A.
// A sum ends at a terminal value, so `any` stops at the first entry found.
// Writes w_words whole and w_values where there is an entry; adds the number of entries to *nvals
// and, if `edges` is not null, the number of matrix entries looked at to *edges.
//
// Source: Artiles and Saeed, TurboBFS, IPDPSW 2021: algorithm 4 (scCSC) and 5 (veCSC), with the
// early stop of 6 (busc) and 7 (buve); the warp per column from Bell and Garland 2008.
#include "product.cuh"

// One thread a column; a warp writes the presence word of its 32 columns. Grid stride over words.
extern "C" __global__ void spmv_csc_scalar(
    i64 n, const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
    const LG_A* __restrict__ values, LG_A a_iso, const u32* __restrict__ u_words,
    const LG_U* __restrict__ u_values, LG_U u_iso, const u32* __restrict__ m_words, bool complement,
    u32* __restrict__ w_words, LG_W* __restrict__ w_values, u64* nvals, u64* edges) {
  u64 total = 0, looked_at = 0;
  const i64 nwords = (n + 31) / 32;
  for (i64 w = global_warp(); w < nwords; w += global_warps()) {
    const i64 j = w * 32 + lane_id();
    const u32 kept = mask_bits(m_words, complement, w, n);
    bool found = false;
    LG_Z sum = LG_ADD::identity<LG_Z>();
    if (kept >> lane_id() & 1) {
      const i64 end = col_ptr[j + 1];
      for (i64 p = col_ptr[j]; p < end; ++p) {
        ++looked_at;
        const i64 i = row_idx[p];
        if (!has_entry(u_words, i)) continue;
        const LG_Z z = multiply(u_values, u_iso, values, a_iso, p, i, j);
        sum = found ? add<LG_ADD>(sum, z) : z;
        found = true;
        if (LG_ADD::is_terminal(sum)) break;
      }
    }
    const u32 bits = warp_ballot(found);
    if (!LG_ISO && found) w_values[j] = cast<LG_W>(sum);
    if (lane_id() == 0) {
      w_words[w] = bits;
      total += bit_popc(bits);
    }
  }
  add_counts(total, looked_at, nvals, edges);
}

// One warp a column; the warps of a block share the 32 columns of a presence word.
extern "C" __global__ void spmv_csc_warp(
    i64 n, const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
    const LG_A* __restrict__ values, LG_A a_iso, const u32* __restrict__ u_words,
    const LG_U* __restrict__ u_values, LG_U u_iso, const u32* __restrict__ m_words, bool complement,
    u32* __restrict__ w_words, LG_W* __restrict__ w_values, u64* nvals, u64* edges) {
  LG_SHARED(u32, found_bits, 2);  // two in turn: a barrier less
  u64 total = 0, looked_at = 0;
  const i64 nwords = (n + 31) / 32;
  u32 turn = 0;
  for (i64 w = block_index(); w < nwords; w += grid_blocks()) {
    const u32 kept = mask_bits(m_words, complement, w, n);
    if (kept == 0) {
      if (block_thread() == 0) w_words[w] = 0;
      continue;
    }
    turn ^= 1;
    if (block_thread() == 0) found_bits[turn] = 0;
    block_sync();
    for (u32 c = block_warp(); c < 32; c += block_warps()) {
      if (!(kept >> c & 1)) continue;
      const i64 j = w * 32 + c;
      const i64 end = col_ptr[j + 1];
      bool found = false;
      LG_Z sum = LG_ADD::identity<LG_Z>();
      for (i64 p = col_ptr[j]; p < end; p += 32) {
        bool done = false;
        if (p + lane_id() < end) {
          ++looked_at;
          const i64 i = row_idx[p + lane_id()];
          if (has_entry(u_words, i)) {
            const LG_Z z = multiply(u_values, u_iso, values, a_iso, p + lane_id(), i, j);
            sum = found ? add<LG_ADD>(sum, z) : z;
            found = true;
            done = LG_ADD::is_terminal(sum);
          }
        }
        if (warp_any(done)) break;
      }
      // Fold the lanes that found something; the others have the identity, which `any` lacks.
      for (u32 step = 16; step; step /= 2) {
        const LG_Z other = warp_shfl_xor(sum, step);
        const bool other_found = warp_shfl_xor(found, step);
        if (other_found) sum = found ? add<LG_ADD>(sum, other) : other;
        found = found || other_found;
      }
      if (found && lane_id() == 0) {
        if (!LG_ISO) w_values[j] = cast<LG_W>(sum);
        atomic_or(&found_bits[turn], 1u << c);
      }
    }
    block_sync();
    if (block_thread() == 0) {
      w_words[w] = found_bits[turn];
      total += bit_popc(found_bits[turn]);
    }
  }
  add_counts(total, looked_at, nvals, edges);
}
