// Products of two matrices, one thread an entry of the result.
//
//   sum_products:  z[r] = (+)_t A[a[t]] (x) B[b[t]]   for t in starts[r] .. starts[r+1]
//
// The last run ends at `products`, and where[r] is the position of z[r], column by column.
// Products were listed and sorted by their entry before: a[t] and b[t] are places in the value
// arrays, b_rows[b[t]] is k. spgemm/dots.cu has products under a mask.
//
// Source: Dalton, Olson and Bell 2015 (expansion, sorting, compression).
#include "common/entries.cuh"
// what is not given; the file compiles by itself
#ifndef LG_ADD
#define LG_ADD Plus
#endif
#ifndef LG_MUL
#define LG_MUL Times
#endif
#ifndef LG_A
#define LG_A i32
#endif
#ifndef LG_B
#define LG_B i32
#endif
#ifndef LG_T
#define LG_T i32
#endif
#ifndef LG_Z
#define LG_Z i32
#endif
#ifndef LG_BIDX
#define LG_BIDX i32
#endif

extern "C" __global__ void sum_products(i64 runs, i64 products, const i64* __restrict__ starts,
                                        const i64* __restrict__ a, const i64* __restrict__ b,
                                        const LG_A* __restrict__ a_values, LG_A a_iso,
                                        const LG_B* __restrict__ b_values, LG_B b_iso,
                                        const LG_BIDX* __restrict__ b_rows, i64 nrows,
                                        const i64* __restrict__ where, LG_Z* __restrict__ z) {
  for (i64 r = global_thread(); r < runs; r += global_threads()) {
    LG_Z sum = LG_Z();
    const i64 end = r + 1 < runs ? starts[r + 1] : products, col = where[r] / nrows;
    for (i64 t = starts[r]; t < end; ++t) {
      const LG_T x = entry_value<LG_T>(a_values, a_iso, a[t]);
      const LG_T y = entry_value<LG_T>(b_values, b_iso, b[t]);
      const LG_Z one = LG_MUL::call<LG_Z, LG_T>(x, y, where[r] - col * nrows, b_rows[b[t]], col);
      sum = t == starts[r] ? one : add<LG_ADD>(sum, one);
    }
    z[r] = sum;
  }
}
