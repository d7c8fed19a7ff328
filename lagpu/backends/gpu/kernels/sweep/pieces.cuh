// A sweep over the levels of a vector on the pieces of a grid: one kernel on each device.
//
// A device visits its own vertices, by the columns that lead to them. Its window has x and the mark
// of each vertex, by slots (program/pieces.cuh): a vertex whose x is made is sent to every window,
// by the thread that visits it. So a level ends with a barrier of all devices, and nothing is sent
// twice.
#ifndef LAGPU_SWEEP_PIECES_CUH
#define LAGPU_SWEEP_PIECES_CUH
#include "program/pieces.cuh"
#include "sweep/levels.cuh"

// A vertex is its own position; the rows of the matrix are slots.
template <class MARK>
struct AtPiece : AtVertex<MARK> {
  Slots slots;

  LG_DEVICE i64 i(i64 v) const { return slots.index_of(v); }
};

// Send what was made at a slot in level d to the marks and values in every window.
template <class MARK, class X>
LG_DEVICE void send_made(Together* all, i64 slot, i64 d, X x, i64 marks_at, i64 values_at) {
  for (u32 k = 0; k < LG_PEERS; ++k) {
    const u32 p = (all->peers.piece + k) % LG_PEERS;  // not all into the same one at once
    all->in_window<X>(p, values_at)[slot] = x;
    all->in_window<MARK>(p, marks_at)[slot] = MARK(d);
  }
  all->wrote = true;
}

// Visit all own vertices, as visit_levels does on one device. Returns the number of levels.
template <class S, class AT, class Visit>
LG_DEVICE u32 visit_levels(const Swept<S, AT>& s, i64 deepest, Later<S, AT>* later, Together* all,
                           const u64* stop, Visit visit) {
  const i64 warp = i64(block_warp()) * grid_blocks() + block_index();
  if (block_thread() == 0) later->count[0] = later->count[1] = 0;
  u32 turn = 0;
  for (i64 d = deepest; d >= 0 && meet(all, 0, turn, stop); --d, ++turn) {
    const i64 first = s.offsets[d], last = s.offsets[d + 1];
    const u32 group = group_of(last - first, global_warps());
    for (i64 q = warp * group; q < last - first; q += global_warps() * group)
      visit_group(s, place_of(s, vertex_at(s, first, last, q, group)), u32(d), d < deepest, later,
                  visit);
    visit_later(s, u32(d), later, visit);
  }
  return turn;
}

#endif  // LAGPU_SWEEP_PIECES_CUH
