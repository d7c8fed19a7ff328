// One vertex of a sweep: where its entries are, and how they are loaded and stored; see
// sweep/levels.cuh.
#ifndef LAGPU_SWEEP_VERTEX_CUH
#define LAGPU_SWEEP_VERTEX_CUH
#include "common/product.cuh"

// ---- where the entries of a vertex are, and the indices that operators read
//
// Each of these structs has, for vertices and their places in level order (ranks):
//
//   see(v), is_from(seen, from(d))   whether v may have an entry of x that was made in level d
//   place(v, seen)                   the place in x; in level order, only if has_x(place)
//   home(v, rank)                    the place in vectors that are kept or only read
//   in_bitmap(v)                     the place in blank vectors, after the sweep

struct NoRank {};  // where it is not used

// In vectors. MARK holds every level.
template <class MARK>
struct AtVertex {
  typedef MARK Mark, Seen;
  typedef i64 Offset;
  typedef NoRank Rank;
  static constexpr bool in_order = false;
  MARK* marks;

  LG_DEVICE MARK from(u32 d) const { return MARK(d); }
  LG_DEVICE MARK see(i32 v) const { return marks[v]; }
  LG_DEVICE bool is_from(MARK seen, MARK from) const { return seen == from; }
  LG_DEVICE i64 place(i64 v, MARK) const { return v; }
  LG_DEVICE static Rank rank(i64) { return {}; }
  LG_DEVICE i64 home(i64 v, Rank) const { return v; }
  LG_DEVICE i64 in_bitmap(i64 v) const { return v; }
  LG_DEVICE i64 i(i64 v) const { return v; }
  LG_DEVICE i64 j(i64) const { return 0; }
  LG_DEVICE i64 row() const { return 0; }
};

// In row k of bitmap matrices whose entries, except those of blank ones, are in level order
// (sweep/permute.cu), so that a level's entries lie side by side. `offsets` are the row's.
struct InLevelOrder {
  typedef i32 Offset, Rank, Seen;
  static constexpr bool in_order = true;
  struct From {
    i32 first;
    u32 count;
  };
  const i32 *ranks, *offsets;
  const bool* x_has;
  i64 base, stride;  // base: where the row begins
  i32 k;

  LG_DEVICE From from(u32 d) const { return {offsets[d], u32(offsets[d + 1] - offsets[d])}; }
  LG_DEVICE i32 see(i32 v) const { return load_ro(&ranks[base + v]); }
  LG_DEVICE bool is_from(i32 seen, From from) const { return u32(seen - from.first) < from.count; }
  LG_DEVICE i64 place(i64, i32 seen) const { return base + seen; }
  LG_DEVICE bool has_x(i64 place) const { return x_has[place]; }
  LG_DEVICE static i32 rank(i64 k) { return i32(k); }
  LG_DEVICE i64 home(i64, i32 rank) const { return base + rank; }
  LG_DEVICE i64 in_bitmap(i64 v) const { return v * stride + k; }
  LG_DEVICE i64 i(i64) const { return k; }
  LG_DEVICE i64 j(i64 v) const { return v; }
  LG_DEVICE i64 row() const { return k; }
};

// ---- the operands of element-wise statements, at one vertex; common/entry.cuh has what is made

// The entry of a vector at one vertex. Value and bit are loaded together, not one after the other:
// the time of a level is the length of its chain of loads.
template <class U>
LG_DEVICE Entry<U> entry_at(const u32* words, const U* values, U iso, i64 place) {
  return {has_entry(words, place), values ? values[place] : iso};
}

// The same where presence is a byte each.
template <class U>
LG_DEVICE Entry<U> entry_at(const bool* has, const U* values, U iso, i64 place) {
  return {has[place], values ? values[place] : iso};
}

LG_DEVICE void set_bit(u32* words, i64 place) { atomic_or(&words[place / 32], 1u << (place % 32)); }

// Put an entry back; its bit is written only if it has changed, as others may write the word.
template <class W>
LG_DEVICE void put_back(u32* words, W* values, i64 place, Entry<W> w, bool was_there) {
  if (w.there) values[place] = w.value;
  if (w.there && !was_there) set_bit(words, place);
  if (!w.there && was_there) atomic_and(&words[place / 32], ~(1u << (place % 32)));
}

// The same where presence is a byte each.
template <class W>
LG_DEVICE void put_back(bool* has, W* values, i64 place, Entry<W> w, bool was_there) {
  if (w.there) values[place] = w.value;
  if (w.there != was_there) has[place] = w.there;
}

#endif  // LAGPU_SWEEP_VERTEX_CUH
