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

// out[j] = the entries of column j, times `sign`. One thread a column, grid stride.
extern "C" __global__ void column_lengths(i64 n, const LG_PTR* __restrict__ col_ptr, i32 sign,
                                          LG_PTR* __restrict__ out) {
  for (i64 j = global_thread(); j < n; j += global_threads())
    out[j] = LG_PTR(sign) * (col_ptr[j + 1] - col_ptr[j]);
}

// counts[i + 1] += the entries of row i. One thread an entry, grid stride.
extern "C" __global__ void count_row_entries(i64 nvals, const LG_IDX* __restrict__ row_idx,
                                             i64* counts) {
  for (i64 p = global_thread(); p < nvals; p += global_threads())
    atomic_add(&counts[row_idx[p] + 1], i64(1));
}

// total += the entries of the columns whose bits are set. One thread a column, grid stride.
extern "C" __global__ void count_entries(i64 n, const u32* __restrict__ words,
                                         const LG_PTR* __restrict__ col_ptr, u64* total) {
  u64 count = 0;
  for (i64 j = global_thread(); j < n; j += global_threads())
    if (words[j / 32] >> (j % 32) & 1) count += u64(col_ptr[j + 1] - col_ptr[j]);
  count = block_reduce(count, u64(0), LgPlus());
  if (block_thread() == 0 && count) atomic_add(total, count);
}

// A bit for each column with entries, and one for each entry that begins a column; `heads` is
// zeroed by the caller. One warp a word of columns, grid stride.
extern "C" __global__ void find_heads(i64 n, const LG_PTR* __restrict__ col_ptr,
                                      u32* __restrict__ there, u32* heads) {
  for (i64 w = global_warp(); w * 32 < n; w += global_warps()) {
    const i64 j = w * 32 + lane_id();
    const bool has = j < n && col_ptr[j] != col_ptr[j + 1];
    if (has) atomic_or(&heads[col_ptr[j] / 32], 1u << (col_ptr[j] % 32));
    const u32 bits = warp_ballot(has);
    if (lane_id() == 0) there[w] = bits;
  }
}

// column[k] = the k-th column with entries, and before[t] = how many begin before tile t of `tile`
// entries, or before the last one's end. `upto` has the bits of `there` up to each word, itself
// included. One thread a column, and one a tile, which searches; grid stride.
extern "C" __global__ void list_heads(i64 n, i64 nvals, i64 tiles, i64 tile,
                                      const LG_PTR* __restrict__ col_ptr,
                                      const u32* __restrict__ there, const i64* __restrict__ upto,
                                      i32* __restrict__ column, u32* __restrict__ before) {
  for (i64 j = global_thread(); j < n; j += global_threads()) {
    const u32 bits = there[j / 32] >> (j % 32);
    if (bits & 1) column[upto[j / 32] - bit_popc(bits)] = i32(j);
  }
  for (i64 t = global_thread(); t <= tiles; t += global_threads()) {
    const i64 end = t * tile < nvals ? t * tile : nvals;
    // the first column that does not begin before the end
    const i64 first = bound(n, end, false, [&](i64 j) { return col_ptr[j]; });
    before[t] = u32(first == n ? upto[(n - 1) / 32]
                               : upto[first / 32] - bit_popc(there[first / 32] >> (first % 32)));
  }
}

// The ranks of vertices in an order, its first kHeavy vertices, and total += the entries of its
// first `most`; `lengths` are negative. One thread a vertex, grid stride.
extern "C" __global__ void rank_vertices(i64 n, i64 most, const i64* __restrict__ order,
                                         const LG_PTR* __restrict__ lengths, i32* __restrict__ rank,
                                         i32* __restrict__ heavy, u64* total) {
  u64 count = 0;
  for (i64 k = global_thread(); k < n; k += global_threads()) {
    const i64 v = order[k];
    rank[v] = i32(k);
    if (k < kHeavy) heavy[k] = i32(v);
    if (k < most) count += u64(-i64(lengths[v]));
  }
  count = block_reduce(count, u64(0), LgPlus());
  if (block_thread() == 0 && count) atomic_add(total, count);
}

// lengths[j + 1] = the entries of column j, or 0 if those are chunks. One thread a column.
extern "C" __global__ void short_lengths(i64 n, const LG_PTR* __restrict__ col_ptr,
                                         i64* __restrict__ lengths) {
  for (i64 j = global_thread(); j < n; j += global_threads()) {
    const i64 length = i64(col_ptr[j + 1]) - i64(col_ptr[j]);
    lengths[j + 1] = length > kLongColumn ? 0 : length;
  }
}

// rounds[b] = minus the rounds of `round` entries in batch b of 32 words, `groups` words a column;
// `before` has the entries before each column. One thread a batch, grid stride.
extern "C" __global__ void batch_rounds(i64 n, i64 batches, i64 groups, i64 round,
                                        const i64* __restrict__ before, i64* __restrict__ rounds) {
  for (i64 b = global_thread(); b < batches; b += global_threads()) {
    const i64 last = ((b + 1) * 32 + groups - 1) / groups;
    rounds[b] = -((before[last < n ? last : n] - before[b * 32 / groups]) / round);
  }
}

// The columns that are chunks, in any order, each with its first entry and its length: found[0] is
// their number, zeroed by the caller. One thread a column, grid stride.
extern "C" __global__ void list_long(i64 n, const LG_PTR* __restrict__ col_ptr, i64* found) {
  for (i64 j = global_thread(); j < n; j += global_threads()) {
    const i64 length = i64(col_ptr[j + 1]) - i64(col_ptr[j]);
    if (length <= kLongColumn) continue;
    i64* const one = found + 1 + 3 * atomic_add(&found[0], i64(1));
    one[0] = j;
    one[1] = col_ptr[j];
    one[2] = length;
  }
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
    const i64 begin = col_ptr[i], end = col_ptr[i + 1];
    const i64 first =
        begin + bound(end - begin, j, false, [&](i64 k) { return row_idx[begin + k]; });
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
    // the first entry whose row is not below i
    out_ptr[i] = LG_PTR(bound(nvals, i, false, [&](i64 k) { return row_idx[order[k]]; }));
  }
  for (i64 k = global_thread(); k < nvals; k += global_threads()) {
    const i64 p = order[k];
    out_idx[k] = LG_OUT(column_of(col_ptr, p, 0, ncols - 1));
    if (values) out_values[k] = values[p];
  }
}
