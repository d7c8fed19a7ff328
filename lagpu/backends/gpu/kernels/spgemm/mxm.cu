// Products of two matrices, one thread or one warp an entry of the result.
//
//   sum_products:  z[r] = (+)_t A[a[t]] (x) B[b[t]]   for t in starts[r] .. starts[r+1]
//   dot_products:  z[r] = (+)_k A[i,k] (x) B[k,j]     for (i, j) = (rows[r], cols[r])
//
// In the first, products were listed and sorted by their entry before: a[t] and b[t] are places in
// the value arrays, b_rows[b[t]] is k. In the second, A comes by rows and B by columns; the
// shorter of row i and column j is walked, the longer one searched; found[r] says whether they
// meet. A thread walks what is short. What is longer all threads of a warp walk, each 32nd entry:
// they read side by side, and none waits for another's longer row.
//
// Source: Dalton, Olson and Bell 2015 (expansion, sorting, compression); Azad, Buluc and Gilbert
// 2015 (dot products under a mask).
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

typedef decltype(LG_APTR() + LG_BPTR()) Place;

// The first place in idx[first .. last-1] whose index is not below k.
template <class Index>
LG_DEVICE Place first_not_below(const Index* idx, Place first, Place last, i64 k) {
  while (first < last) {
    const Place middle = first + (last - first) / 2;
    if (i64(idx[middle]) < k)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

// Row i of A and column j of B: what is left to walk of the shorter, and to search of the longer.
struct Sides {
  i64 i, j;
  bool a_walks;
  Place at, end, low, high;
};

// The sides that another lane has.
LG_DEVICE Sides sides_of(const Sides& s, u32 lane) {
  return Sides{
      warp_shfl(s.i, lane),   warp_shfl(s.j, lane),   bool(warp_shfl(u32(s.a_walks), lane)),
      warp_shfl(s.at, lane),  warp_shfl(s.end, lane), warp_shfl(s.low, lane),
      warp_shfl(s.high, lane)};
}

struct Sum {
  LG_Z value = LG_Z();
  bool some = false;
  LG_DEVICE void add_one(LG_Z x) {
    value = some ? add<LG_ADD>(value, x) : x;
    some = true;
  }
  LG_DEVICE bool is_done() const { return some && LG_ADD::is_terminal<LG_Z>(value); }
};

const u32 kShort = 32;  // steps that a thread takes by itself

extern "C" __global__ void dot_products(
    i64 count, const i64* __restrict__ rows, const i64* __restrict__ cols,
    const LG_APTR* __restrict__ a_ptr, const LG_AIDX* __restrict__ a_idx,
    const LG_A* __restrict__ a_values, LG_A a_iso, const LG_BPTR* __restrict__ b_ptr,
    const LG_BIDX* __restrict__ b_idx, const LG_B* __restrict__ b_values, LG_B b_iso,
    LG_Z* __restrict__ z, bool* __restrict__ found, u64* edges) {
  u64 looked_at = 0;
  // Whether the searched side has entries that are not below the walked one's; adds their product.
  const auto look = [&](Sides* s, Sum* sum) {
    const i64 k = s->a_walks ? i64(a_idx[s->at]) : i64(b_idx[s->at]);
    s->low = s->a_walks ? first_not_below(b_idx, s->low, s->high, k)
                        : first_not_below(a_idx, s->low, s->high, k);
    if (s->low == s->high) return false;
    if (LG_EDGES) looked_at += 2;
    if (k == (s->a_walks ? i64(b_idx[s->low]) : i64(a_idx[s->low]))) {
      const LG_T x = entry_value<LG_T>(a_values, a_iso, s->a_walks ? s->at : s->low);
      const LG_T y = entry_value<LG_T>(b_values, b_iso, s->a_walks ? s->low : s->at);
      sum->add_one(LG_MUL::call<LG_Z, LG_T>(x, y, s->i, k, s->j));
    }
    return true;
  };
  for (i64 base = global_warp() * 32; base < count; base += global_warps() * 32) {
    const i64 r = base + lane_id();
    Sides mine{};
    if (r < count) {
      const i64 i = rows[r], j = cols[r];
      const Place p = a_ptr[i], p_end = a_ptr[i + 1], q = b_ptr[j], q_end = b_ptr[j + 1];
      const bool a_walks = p_end - p <= q_end - q;
      mine =
          a_walks ? Sides{i, j, true, p, p_end, q, q_end} : Sides{i, j, false, q, q_end, p, p_end};
    }
    const bool is_long = mine.end - mine.at > Place(kShort);
    Sum sum;
    if (!is_long)
      for (; mine.at < mine.end && look(&mine, &sum) && !sum.is_done(); ++mine.at) {
      }
    for (u32 rest = warp_ballot(is_long); rest; rest &= rest - 1) {
      const u32 from = bit_ffs(rest) - 1;
      Sides its = sides_of(mine, from);
      its.at += lane_id();  // it has more than a warp's lanes
      Sum part;
      for (bool more = true; warp_any(more) && !warp_any(part.is_done());) {
        if (!more) continue;
        more = look(&its, &part) && its.end - its.at > 32;
        if (more) its.at += 32;
      }
      for (u32 step = 16; step; step /= 2) {
        const LG_Z other = warp_shfl_xor(part.value, step);
        if (warp_shfl_xor(u32(part.some), step)) part.add_one(other);
      }
      if (lane_id() == from) sum = part;
    }
    if (r < count) {
      z[r] = sum.value;
      found[r] = sum.some;
    }
  }
  if (LG_EDGES) add_total(looked_at, edges);
}
