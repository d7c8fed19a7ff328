// One product of a semiring, as the kernels of mxv and vxm share it.
//
//   LG_ADD LG_MUL  functors        LG_U LG_A  types of the vector's and the matrix' values
//   LG_T  domain   LG_Z  type of the sum   LG_W  type of the output's values
//   LG_PTR LG_IDX  types of col_ptr and row_idx
//   LG_FLIP 1 if the vector is the left operand   LG_ISO 1 if every sum has one known value
#ifndef LAGPU_PRODUCT_CUH
#define LAGPU_PRODUCT_CUH
#include "common/entries.cuh"
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

// A column that has more entries, or more left, is a hub: a whole block takes them together.
const u32 kHub = 2048;

// One product's types, by name: code that serves several products in one program takes them all
// from such a struct.
struct Chosen {
  typedef LG_ADD ADD;
  typedef LG_MUL MUL;
  typedef LG_U U;
  typedef LG_A A;
  typedef LG_T T;
  typedef LG_Z Z;
  typedef LG_PTR PTR;
  typedef LG_IDX IDX;
  static constexpr bool flip = LG_FLIP, iso = LG_ISO;
};

// Whether the first product found is as good as the sum of all.
template <class S>
constexpr bool takes_first = S::iso || IsSame<typename S::ADD, AnyOf>::value;

// A matrix by columns: column k has the entries ptr[k] .. ptr[k + 1]. Null values: all equal iso.
template <class S>
struct Columns {
  const typename S::PTR* ptr;
  const typename S::IDX* idx;
  const typename S::A* values;
  typename S::A iso;
};

// The vector that is multiplied, as in common/entries.cuh.
template <class S>
struct Operand {
  const u32* words;
  const typename S::U* values;
  typename S::U iso;
};

// Which of n results are wanted.
struct Mask {
  const u32* words;
  bool complement;
  i64 n;

  LG_DEVICE u32 bits(i64 w) const { return mask_bits(words, complement, w, n); }
  LG_DEVICE bool keeps(i64 i) const { return has_entry(words, i) != complement; }
};

// Where results go.
template <class W>
struct Sums {
  u32* words;
  W* values;
};

// The product at matrix entry `entry`; `inner` is the index summed over, `outer` the output's. The
// operand's value is at `place`: `inner` in a vector, another in row `row` of a bitmap matrix.
template <class S>
LG_DEVICE typename S::Z multiply(const typename S::U* u_values, typename S::U u_iso,
                                 const typename S::A* values, typename S::A a_iso, i64 entry,
                                 i64 inner, i64 outer, i64 place, i64 row) {
  typedef typename S::T T;
  typedef typename S::Z Z;
  typedef typename S::MUL Mul;
  constexpr bool reads_u = S::flip ? Mul::reads_x : Mul::reads_y;
  constexpr bool reads_a = S::flip ? Mul::reads_y : Mul::reads_x;
  T u = T(0), a = T(0);
  if constexpr (reads_u) u = entry_value<T>(u_values, u_iso, place);
  if constexpr (reads_a) a = entry_value<T>(values, a_iso, entry);
  if constexpr (S::flip) return Mul::template call<Z, T>(u, a, row, inner, outer);
  if constexpr (!S::flip) return Mul::template call<Z, T>(a, u, outer, inner, 0);
}

template <class S>
LG_DEVICE typename S::Z multiply(const typename S::U* u_values, typename S::U u_iso,
                                 const typename S::A* values, typename S::A a_iso, i64 entry,
                                 i64 inner, i64 outer) {
  return multiply<S>(u_values, u_iso, values, a_iso, entry, inner, outer, inner, 0);
}

template <class S>
LG_DEVICE typename S::Z multiply(const Columns<S>& a, const Operand<S>& u, i64 entry, i64 inner,
                                 i64 outer) {
  return multiply<S>(u.values, u.iso, a.values, a.iso, entry, inner, outer);
}

// The last of offsets lo .. hi, rising, that is not past `entry`: the column that holds it.
template <class PTR>
LG_DEVICE i64 last_not_after(const PTR* offsets, i64 entry, i64 lo, i64 hi) {
  while (lo < hi) {
    const i64 middle = lo + (hi - lo + 1) / 2;
    if (i64(offsets[middle]) <= entry) {
      lo = middle;
    } else {
      hi = middle - 1;
    }
  }
  return lo;
}

// What a thread counted: entries of the output, entries of the matrix looked at, and the edges that
// leave the vertices found (which a planner asks for next).
struct Tallied {
  u64 found, looked_at, frontier_edges;
};

// `lengths`, if not null, points to columns whose lengths are counted.
template <class PTR>
LG_DEVICE void count_found(const PTR* lengths, i64 j, Tallied* tally) {
  ++tally->found;
  if (lengths) tally->frontier_edges += u64(load_ro(&lengths[j + 1]) - load_ro(&lengths[j]));
}

// counts[0] += entries found, counts[1] += their frontier edges, *edges += entries looked at unless
// null. The last thread block writes both numbers to the host notification, then `serial`;
// counts[2] counts thread blocks. Its first thread calls last() before, when no other thread block
// reads anything more.
template <class Last>
LG_DEVICE void add_counts(const Tallied& tally, u64* counts, u64* notification, u64 serial,
                          u64* edges, Last last) {
  if (edges) {
    const u64 looked_at = block_reduce(tally.looked_at, u64(0), LgPlus());
    if (block_thread() == 0 && looked_at) atomic_add(edges, looked_at);
  }
  const u64 found = block_reduce(tally.found, u64(0), LgPlus());
  const u64 frontier_edges = block_reduce(tally.frontier_edges, u64(0), LgPlus());
  if (block_thread() != 0) return;
  if (found) atomic_add(&counts[0], found);
  if (frontier_edges) atomic_add(&counts[1], frontier_edges);
  thread_fence();  // before the ticket: who draws the last one sees all sums
  if (atomic_add(&counts[2], 1) + 1 != grid_blocks()) return;
  thread_fence();
  last();
  store_volatile(&notification[0], load_volatile(&counts[0]));
  store_volatile(&notification[1], load_volatile(&counts[1]));
  system_fence();
  store_volatile(&notification[2], serial);
}

LG_DEVICE void add_counts(const Tallied& tally, u64* counts, u64* notification, u64 serial,
                          u64* edges) {
  add_counts(tally, counts, notification, serial, edges, [] {});
}

#endif  // LAGPU_PRODUCT_CUH
