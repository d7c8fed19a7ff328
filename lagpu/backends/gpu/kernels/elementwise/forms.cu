// What the forms of a matrix need when they are made: once for each matrix, so one launch each.
#include "common/places.cuh"
// default: the file compiles by itself
#ifndef LG_PTR
#define LG_PTR i32
#endif
#ifndef LG_IDX
#define LG_IDX i32
#endif
#ifndef LG_OUT
#define LG_OUT i32
#endif
#ifndef LG_U
#define LG_U i32
#endif

// total += the parts of `size` entries in all columns that are longer than `shortest`.
// One thread a column, grid stride; total is zeroed by the caller.
extern "C" __global__ void count_parts(i64 n, const LG_PTR* __restrict__ col_ptr, i64 shortest,
                                       i64 size, u64* total) {
  u64 count = 0;
  for (i64 j = global_thread(); j < n; j += global_threads()) {
    const i64 length = i64(col_ptr[j + 1]) - i64(col_ptr[j]);
    if (length > shortest) count += u64((length + size - 1) / size);
  }
  count = block_reduce(count, u64(0), LgPlus());
  if (block_thread() == 0 && count) atomic_add(total, count);
}

// total += the walks of two edges, one into a vertex and one out of it: its columns of two forms
// say how many there are of each. One thread a vertex, grid stride; total is zeroed by the caller.
extern "C" __global__ void count_walks(i64 n, const LG_PTR* __restrict__ in_ptr,
                                       const LG_PTR* __restrict__ out_ptr, u64* total) {
  u64 count = 0;
  for (i64 v = global_thread(); v < n; v += global_threads())
    count += u64(in_ptr[v + 1] - in_ptr[v]) * u64(out_ptr[v + 1] - out_ptr[v]);
  count = block_reduce(count, u64(0), LgPlus());
  if (block_thread() == 0 && count) atomic_add(total, count);
}

// total += the places where a and b differ; total is zeroed by the caller.
extern "C" __global__ void count_differences(i64 n, const LG_U* __restrict__ a,
                                             const LG_U* __restrict__ b, u64* total) {
  u64 count = 0;
  for (i64 i = global_thread(); i < n; i += global_threads()) count += a[i] != b[i];
  count = block_reduce(count, u64(0), LgPlus());
  if (block_thread() == 0 && count) atomic_add(total, count);
}

// unmirrored[0] becomes 1 if there is an entry (i, j) below the diagonal of a square matrix without
// an entry (j, i) of the same value, whose bits are compared; unmirrored[1] += the entries below
// the diagonal less those above it. Both are zeroed by the caller, and stay so in a symmetric
// matrix. One thread an entry, grid stride; each searches, until one finds such.
extern "C" __global__ void find_unmirrored(i64 nvals, i64 ncols, const LG_PTR* __restrict__ col_ptr,
                                           const LG_IDX* __restrict__ row_idx,
                                           const LG_U* __restrict__ values, u64* unmirrored) {
  u64 surplus = 0;
  each_entry(nvals, ncols, col_ptr, [&](i64, i64 p, i64 j, bool mine) {
    if (!mine) return;
    const i64 i = row_idx[p];
    surplus += u64(i > j) - u64(i < j);
    if (i <= j || load_volatile(unmirrored)) return;
    i64 first = col_ptr[i], last = col_ptr[i + 1];
    const i64 end = last;
    while (first < last) {
      const i64 middle = first + (last - first) / 2;
      if (i64(row_idx[middle]) < j)
        first = middle + 1;
      else
        last = middle;
    }
    const bool there = first < end && i64(row_idx[first]) == j;
    if (!there || (values && values[first] != values[p])) store_volatile(unmirrored, 1);
  });
  surplus = block_reduce(surplus, u64(0), LgPlus());
  if (block_thread() == 0 && surplus) atomic_add(&unmirrored[1], surplus);
}

// The rows of a matrix: out_ptr[i] = where row i begins among its entries by rows, and out_idx[k]
// and out_values[k] = the column and the value of entry order[k]; values may be null. `order` sorts
// the entries by row and keeps those of a row in order.
// One thread a row, and one an entry, grid stride; both search.
extern "C" __global__ void transposed(i64 nvals, i64 nrows, i64 ncols,
                                      const LG_PTR* __restrict__ col_ptr,
                                      const LG_IDX* __restrict__ row_idx,
                                      const LG_U* __restrict__ values,
                                      const i64* __restrict__ order, LG_PTR* __restrict__ out_ptr,
                                      LG_OUT* __restrict__ out_idx, LG_U* __restrict__ out_values) {
  for (i64 i = global_thread(); i <= nrows; i += global_threads()) {
    i64 first = 0, last = nvals;  // the first entry whose row is not below i
    while (first < last) {
      const i64 middle = first + (last - first) / 2;
      if (i64(row_idx[order[middle]]) < i)
        first = middle + 1;
      else
        last = middle;
    }
    out_ptr[i] = LG_PTR(first);
  }
  for (i64 k = global_thread(); k < nvals; k += global_threads()) {
    const i64 p = order[k];
    i64 first = 0, last = ncols;  // the first column that ends behind p
    while (first < last) {
      const i64 middle = first + (last - first) / 2;
      if (i64(col_ptr[middle + 1]) <= p)
        first = middle + 1;
      else
        last = middle;
    }
    out_idx[k] = LG_OUT(first);
    if (values) out_values[k] = values[p];
  }
}
