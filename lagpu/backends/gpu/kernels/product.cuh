// One product of a semiring, as the kernels of mxv and vxm share it.
//
//   LG_ADD LG_MUL  functors        LG_U LG_A  types of the vector's and the matrix' values
//   LG_T  domain   LG_Z  type of the sum   LG_W  type of the output's values
//   LG_PTR LG_IDX  types of col_ptr and row_idx
//   LG_FLIP 1 if the vector is the left operand   LG_ISO 1 if every sum has one known value
#ifndef LAGPU_PRODUCT_CUH
#define LAGPU_PRODUCT_CUH
#include "entries.cuh"
// what is not given; the file compiles by itself
#ifndef LG_ADD
#define LG_ADD AnyOf
#endif
#ifndef LG_MUL
#define LG_MUL Pair
#endif
#ifndef LG_U
#define LG_U bool
#endif
#ifndef LG_A
#define LG_A bool
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
#ifndef LG_FLIP
#define LG_FLIP 1
#endif
#ifndef LG_ISO
#define LG_ISO 1
#endif

// The product at matrix entry `entry`; `inner` is the index summed over, `outer` the output's.
LG_DEVICE LG_Z multiply(const LG_U* u_values, LG_U u_iso, const LG_A* values, LG_A a_iso, i64 entry,
                        i64 inner, i64 outer) {
  constexpr bool reads_u = LG_FLIP ? LG_MUL::reads_x : LG_MUL::reads_y;
  constexpr bool reads_a = LG_FLIP ? LG_MUL::reads_y : LG_MUL::reads_x;
  LG_T u = LG_T(0), a = LG_T(0);
  if constexpr (reads_u) u = entry_value<LG_T>(u_values, u_iso, inner);
  if constexpr (reads_a) a = entry_value<LG_T>(values, a_iso, entry);
  if constexpr (LG_FLIP) return LG_MUL::call<LG_Z, LG_T>(u, a, 0, inner, outer);
  if constexpr (!LG_FLIP) return LG_MUL::call<LG_Z, LG_T>(a, u, outer, inner, 0);
}

// *nvals += entries of the output, *edges += matrix entries looked at (unless it is null).
LG_DEVICE void add_counts(u64 found, u64 looked_at, u64* nvals, u64* edges) {
  found = block_reduce(found, u64(0), LgPlus());
  if (block_thread() == 0 && found) atomic_add(nvals, found);
  if (edges) {
    looked_at = block_reduce(looked_at, u64(0), LgPlus());
    if (block_thread() == 0 && looked_at) atomic_add(edges, looked_at);
  }
}

#endif  // LAGPU_PRODUCT_CUH
