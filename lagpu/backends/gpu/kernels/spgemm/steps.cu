// How much work a product of two matrices is, in one way and in another.
//
//   count_rows:      lengths[i] += 1 for each entry in row i
//   count_products:  *total += the products of column k of A and row k of B, over all k
//   count_steps:     total[0] += the shorter of row i of A and column j of B, over a mask's
//   entries;
//                    total[1] += those of columns with a table
#include "common/places.cuh"
#include "spgemm/tables.cuh"
// what is not given; the file compiles by itself
#ifndef LG_LEN
#define LG_LEN i32
#endif
#ifndef LG_PTR
#define LG_PTR i32
#endif
#ifndef LG_IDX
#define LG_IDX i32
#endif
#ifndef LG_B
#define LG_B i32
#endif

extern "C" __global__ void count_rows(i64 nvals, const LG_IDX* __restrict__ row_idx,
                                      LG_LEN* __restrict__ lengths) {
  for (i64 p = global_thread(); p < nvals; p += global_threads())
    atomic_add(&lengths[row_idx[p]], 1);
}

LG_DEVICE void add_block(u64 count, u64* total) {
  count = block_reduce(count, u64(0), LgPlus());
  if (block_thread() == 0 && count) atomic_add(total, count);
}

extern "C" __global__ void count_products(i64 nvals, const LG_IDX* __restrict__ b_idx,
                                          const LG_LEN* __restrict__ a_lengths, u64* total) {
  u64 count = 0;
  for (i64 p = global_thread(); p < nvals; p += global_threads()) count += u64(a_lengths[b_idx[p]]);
  add_block(count, total);
}

extern "C" __global__ void count_steps(i64 nvals, i64 ncols, i64 least, i64 most,
                                       const LG_PTR* __restrict__ col_ptr,
                                       const LG_IDX* __restrict__ row_idx,
                                       const LG_LEN* __restrict__ a_lengths,
                                       const LG_B* __restrict__ b_ptr, u64* total) {
  u64 all = 0, in_tables = 0;
  each_entry(nvals, ncols, col_ptr, [&](i64, i64 p, i64 j, bool mine) {
    if (!mine) return;
    const i64 row = a_lengths[row_idx[p]], column = b_ptr[j + 1] - b_ptr[j];
    const u64 steps = u64(row < column ? row : column);
    all += steps;
    if (has_table(col_ptr[j + 1] - col_ptr[j], column, least, most)) in_tables += steps;
  });
  add_block(all, &total[0]);
  add_block(in_tables, &total[1]);
}
