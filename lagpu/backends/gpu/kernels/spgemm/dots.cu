// Products of two matrices at the entries of a mask: z[p] = (+)_k A[i,k] (x) B[k,j] for entry p of
// the mask, at (i, j); bits of `found` say where row i and column j meet.
//
//   dot_products:    the shorter of row i and column j is walked, the longer one searched
//   table_products:  column j is put in a table, and row i walked
//   list_parts:      into how many parts table_products divides each column of the mask
//
// A comes by rows and B by columns.
//
// dot_products: a thread walks what is short. What is longer all threads of a warp walk, each 32nd
// entry: they read side by side, and none waits for another's longer row.
//
// table_products: where many entries of the mask are in one column, a thread block puts that column
// of B in a hash table in shared memory, once for kTablePart entries. Teams of kTeam lanes walk
// rows and look in the table, once or twice a step where a search has some ten steps of its own. A
// row that is much longer than the column is searched instead, as in dot_products.
//
// Source: Azad, Buluc and Gilbert 2015 (dot products under a mask); Pandey, Wang, Zhong, Dubey, Liu
// 2021 (TRUST: a hash table of the neighbours that others are compared with).
#include "common/entries.cuh"
#include "common/places.cuh"
#include "spgemm/tables.cuh"
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
#ifndef LG_A_ONE  // 1: each row of A has one entry
#define LG_A_ONE 0
#endif
#ifndef LG_B_ONE  // 1: each column of B has one entry
#define LG_B_ONE 0
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
#ifndef LG_PTR  // of the mask
#define LG_PTR i32
#endif
#ifndef LG_IDX
#define LG_IDX i32
#endif

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

// Columns of B with more rows than `least` and at most `most` are left to table_products, where
// many entries of the mask are in them.
extern "C" __global__ void dot_products(
    i64 least, i64 most, i64 nvals, i64 ncols, const LG_PTR* __restrict__ col_ptr,
    const LG_IDX* __restrict__ row_idx, const LG_APTR* __restrict__ a_ptr,
    const LG_AIDX* __restrict__ a_idx, const LG_A* __restrict__ a_values, LG_A a_iso,
    const LG_BPTR* __restrict__ b_ptr, const LG_BIDX* __restrict__ b_idx,
    const LG_B* __restrict__ b_values, LG_B b_iso, LG_Z* __restrict__ z, u32* __restrict__ found,
    u64* edges) {
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
  each_entry(nvals, ncols, col_ptr, [&](i64 w, i64 r, i64 j, bool is_there) {
    Sides mine{};
    const i64 at_b = is_there ? j : 0;
    const Place q = LG_B_ONE ? Place(at_b) : Place(b_ptr[at_b]);
    const Place q_end = LG_B_ONE ? q + 1 : Place(b_ptr[at_b + 1]);
    if (is_there && most && has_table(col_ptr[j + 1] - col_ptr[j], q_end - q, least, most))
      is_there = false;
    if (is_there) {
      const i64 i = row_idx[r];
      const Place p = LG_A_ONE ? Place(i) : Place(a_ptr[i]);
      const Place p_end = LG_A_ONE ? p + 1 : Place(a_ptr[i + 1]);
      const bool a_walks = p_end - p <= q_end - q;
      mine =
          a_walks ? Sides{i, j, true, p, p_end, q, q_end} : Sides{i, j, false, q, q_end, p, p_end};
    }
    const bool is_long = !LG_A_ONE && !LG_B_ONE && mine.end - mine.at > Place(kShort);
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
    if (is_there) z[r] = sum.value;
    const u32 met = warp_ballot(sum.some);
    if (lane_id() == 0) found[w] = met;
  });
  if (LG_EDGES) add_total(looked_at, edges);
}

// parts[j] = the parts of column j of the mask; one thread a column, grid stride.
extern "C" __global__ void list_parts(i64 ncols, i64 least, i64 most,
                                      const LG_PTR* __restrict__ col_ptr,
                                      const LG_BPTR* __restrict__ b_ptr, i64* __restrict__ parts) {
  for (i64 j = global_thread(); j < ncols; j += global_threads()) {
    const i64 entries = col_ptr[j + 1] - col_ptr[j];
    const bool mine = has_table(entries, b_ptr[j + 1] - b_ptr[j], least, most);
    parts[j] = mine ? (entries + kTablePart - 1) / kTablePart : 0;
  }
}

// A hash table of distinct indices, 1 << bits slots; at least half are free.
struct Table {
  LG_BIDX* keys;
  unsigned short* places;  // of an index, in the order of its column
  u32 bits;

  static const LG_BIDX kFree = -1;
  LG_DEVICE u32 slot_of(LG_BIDX k) const {
    return (u32(u64(k) >> 32) ^ u32(k)) * 2654435769u >> (32 - bits);
  }
  LG_DEVICE u32 after(u32 slot) const { return (slot + 1) & ((1u << bits) - 1); }
  LG_DEVICE void add(LG_BIDX k, u32 place) const {
    u32 slot = slot_of(k);
    while (atomic_cas(&keys[slot], kFree, k) != kFree) slot = after(slot);
    places[slot] = (unsigned short)(place);
  }
  // The slot of an index, or of none.
  LG_DEVICE u32 find(LG_BIDX k) const {
    u32 slot = slot_of(k);
    while (keys[slot] != k && keys[slot] != kFree) slot = after(slot);
    return slot;
  }
};

const u32 kTeam = 8;        // lanes that walk a row: 32 bytes of it at once
const u32 kMuchLonger = 4;  // times the column: then the row is searched
const u32 kFewestBits = 5;  // of a table

// `upto` are the parts of the columns up to each one, itself included. A block takes one after the
// other; `next`, zeroed by the caller, counts those that are taken.
extern "C" __global__ void table_products(
    i64 ncols, u32 most_bits, const LG_PTR* __restrict__ col_ptr,
    const LG_IDX* __restrict__ row_idx, const i64* __restrict__ upto,
    const LG_APTR* __restrict__ a_ptr, const LG_AIDX* __restrict__ a_idx,
    const LG_A* __restrict__ a_values, LG_A a_iso, const LG_BPTR* __restrict__ b_ptr,
    const LG_BIDX* __restrict__ b_idx, const LG_B* __restrict__ b_values, LG_B b_iso,
    LG_Z* __restrict__ z, u32* __restrict__ found, u64* next, u64* edges) {
  LG_DYNAMIC_SHARED(LG_BIDX, keys);
  LG_SHARED(i64, taken, 1);
  Table table{keys, reinterpret_cast<unsigned short*>(keys + (1u << most_bits)), 0};
  const i64 parts = upto[ncols - 1];
  u64 looked_at = 0;
  for (;;) {
    block_sync();  // all have left the table
    if (block_thread() == 0) taken[0] = i64(atomic_add(next, 1));
    block_sync();
    const i64 part = taken[0];
    if (part >= parts) break;
    const i64 j = bound(ncols - 1, part, true, [&](i64 k) { return upto[k]; });
    const i64 first = col_ptr[j] + (part - (j ? upto[j - 1] : 0)) * kTablePart;
    const i64 last = first + kTablePart < col_ptr[j + 1] ? first + kTablePart : col_ptr[j + 1];
    const Place q = b_ptr[j], q_end = b_ptr[j + 1];
    for (table.bits = kFewestBits; table.bits < most_bits; ++table.bits)
      if (1u << table.bits >= 4 * u32(q_end - q)) break;
    for (u32 slot = block_thread(); slot < 1u << table.bits; slot += block_threads())
      keys[slot] = Table::kFree;
    block_sync();
    for (Place at = q + block_thread(); at < q_end; at += block_threads())
      table.add(b_idx[at], u32(at - q));
    block_sync();
    if (LG_EDGES && block_thread() == 0) looked_at += u64(q_end - q);
    const u32 of_team = lane_id() % kTeam, teams = LG_WARP / kTeam;
    for (i64 base = first + i64(block_warp()) * teams; base < last; base += block_warps() * teams) {
      const i64 p = base + lane_id() / kTeam;
      Sum sum;
      if (p < last) {
        const i64 i = row_idx[p];
        const auto meet = [&](i64 k, Place in_a, Place in_b) {
          const LG_T x = entry_value<LG_T>(a_values, a_iso, in_a);
          const LG_T y = entry_value<LG_T>(b_values, b_iso, in_b);
          sum.add_one(LG_MUL::call<LG_Z, LG_T>(x, y, i, k, j));
        };
        const Place low = a_ptr[i], end = a_ptr[i + 1];
        const bool searched = end - low > Place(kMuchLonger) * (q_end - q);
        if (!searched)
          for (Place at = low + of_team; at < end && !sum.is_done(); at += kTeam) {
            const LG_BIDX k = LG_BIDX(a_idx[at]);
            if (LG_EDGES) ++looked_at;
            const u32 slot = table.find(k);
            if (keys[slot] == k) meet(k, at, q + table.places[slot]);
          }
        if (searched)
          for (Place at = q + of_team; at < q_end && !sum.is_done(); at += kTeam) {
            const i64 k = b_idx[at];
            const Place there = first_not_below(a_idx, low, end, k);
            if (LG_EDGES) looked_at += 2;
            if (there == end) break;
            if (i64(a_idx[there]) == k) meet(k, there, at);
          }
      }
      for (u32 step = kTeam / 2; step; step /= 2) {
        const LG_Z other = warp_shfl_xor(sum.value, step);
        if (warp_shfl_xor(u32(sum.some), step)) sum.add_one(other);
      }
      if (of_team == 0 && p < last && sum.some) {
        z[p] = sum.value;
        atomic_or(&found[p / 32], 1u << (p % 32));
      }
    }
  }
  if (LG_EDGES) add_total(looked_at, edges);
}
