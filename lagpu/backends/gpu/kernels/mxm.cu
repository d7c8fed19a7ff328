// Products of two matrices, one thread an entry of the result.
//
//   sum_products:  z[r] = (+)_t A[a[t]] (x) B[b[t]]   for t in starts[r] .. starts[r+1]
//   dot_products:  z[r] = (+)_k A[i,k] (x) B[k,j]     for (i, j) = (rows[r], cols[r])
//
// In the first, products were listed and sorted by their entry before: a[t] and b[t] are places in
// the value arrays, b_rows[b[t]] is k. In the second, A comes by rows and B by columns; the
// shorter of row i and column j is walked, the longer one searched; found[r] says whether they
// meet.
//
// Source: Dalton, Olson and Bell 2015 (expansion, sorting, compression); Azad, Buluc and Gilbert
// 2015 (dot products under a mask).
#include "entries.cuh"
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
#ifndef LG_EDGES  // 1: count the entries of A and B that are compared, into *edges
#define LG_EDGES 0
#endif
#ifndef LG_APTR
#define LG_APTR i32
#endif
#ifndef LG_AIDX
#define LG_AIDX i32
#endif
#ifndef LG_BPTR
#define LG_BPTR i32
#endif
#ifndef LG_BIDX
#define LG_BIDX i32
#endif

extern "C" __global__ void sum_products(i64 runs, const i64* __restrict__ starts,
                                        const i64* __restrict__ a, const i64* __restrict__ b,
                                        const LG_A* __restrict__ a_values, LG_A a_iso,
                                        const LG_B* __restrict__ b_values, LG_B b_iso,
                                        const LG_BIDX* __restrict__ b_rows,
                                        const i64* __restrict__ rows, const i64* __restrict__ cols,
                                        LG_Z* __restrict__ z) {
  for (i64 r = global_thread(); r < runs; r += global_threads()) {
    LG_Z sum = LG_Z();
    for (i64 t = starts[r]; t < starts[r + 1]; ++t) {
      const LG_T x = entry_value<LG_T>(a_values, a_iso, a[t]);
      const LG_T y = entry_value<LG_T>(b_values, b_iso, b[t]);
      const LG_Z one = LG_MUL::call<LG_Z, LG_T>(x, y, rows[r], b_rows[b[t]], cols[r]);
      sum = t == starts[r] ? one : add<LG_ADD>(sum, one);
    }
    z[r] = sum;
  }
}

// The first place in idx[first .. last-1] whose index is not below k.
template <class Index>
LG_DEVICE i64 first_not_below(const Index* idx, i64 first, i64 last, i64 k) {
  while (first < last) {
    const i64 middle = first + (last - first) / 2;
    if (idx[middle] < k)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

extern "C" __global__ void dot_products(
    i64 count, const i64* __restrict__ rows, const i64* __restrict__ cols,
    const LG_APTR* __restrict__ a_ptr, const LG_AIDX* __restrict__ a_idx,
    const LG_A* __restrict__ a_values, LG_A a_iso, const LG_BPTR* __restrict__ b_ptr,
    const LG_BIDX* __restrict__ b_idx, const LG_B* __restrict__ b_values, LG_B b_iso,
    LG_Z* __restrict__ z, bool* __restrict__ found, u64* edges) {
  u64 looked_at = 0;
  for (i64 r = global_thread(); r < count; r += global_threads()) {
    const i64 i = rows[r], j = cols[r];
    i64 p = a_ptr[i], q = b_ptr[j];
    const i64 p_end = a_ptr[i + 1], q_end = b_ptr[j + 1];
    const bool a_walks = p_end - p <= q_end - q;
    LG_Z sum = LG_Z();
    bool some = false;
    while (p < p_end && q < q_end) {
      if (a_walks)
        q = first_not_below(b_idx, q, q_end, i64(a_idx[p]));
      else
        p = first_not_below(a_idx, p, p_end, i64(b_idx[q]));
      if (p == p_end || q == q_end) break;
      if (LG_EDGES) looked_at += 2;
      const i64 k = a_walks ? i64(a_idx[p]) : i64(b_idx[q]);
      if (i64(a_idx[p]) == i64(b_idx[q])) {
        const LG_T x = entry_value<LG_T>(a_values, a_iso, p);
        const LG_T y = entry_value<LG_T>(b_values, b_iso, q);
        const LG_Z one = LG_MUL::call<LG_Z, LG_T>(x, y, i, k, j);
        sum = some ? add<LG_ADD>(sum, one) : one;
        some = true;
        if (LG_ADD::is_terminal<LG_Z>(sum)) break;
      }
      if (a_walks)
        ++p;
      else
        ++q;
    }
    z[r] = sum;
    found[r] = some;
  }
  if (LG_EDGES) add_total(looked_at, edges);
}
