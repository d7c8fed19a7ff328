// Sums of counts in a pull of a grid search, by a table of the vertices of most edges; see
// search/grid.cu.
//
// Where degrees are uneven, most entries that a pull looks at are of few vertices. With indices by
// ranks of degree the first ranks' counts fit shared memory, a byte each: 0 outside the frontier, 1
// to 254, and kFar for what memory has. A byte is bit and value at once, and integers are added in
// any order, so that a sum of a column is the difference of two sums over all lanes.
//
// The first pull of a search alone, if all values of its frontier are whole and from 1 to
// kMostCount: then a sum of some is not 0, and so tells that there are some.
#ifndef LAGPU_SEARCH_GRID_COUNTS_CUH
#define LAGPU_SEARCH_GRID_COUNTS_CUH
#include "common/quads.cuh"
#include "search/grid_state.cuh"
#if LG_RANKS

const u32 kFar = 255;
typedef unsigned char Byte;

// The table: a byte for each of the first 4 * near.most ranks, then kFar for all others, then 0 for
// what is not wanted. Ends with a barrier of the block.
LG_DEVICE void copy_counts(const Search& s) {
  LG_DYNAMIC_SHARED(Byte, table);
  const u32 together = 8, most = 4 * s.near.most, n = u32(frontier_size(s));
  for (u32 r0 = block_thread(); r0 < most; r0 += together * block_threads()) {
    u32 count[together];
    for (u32 q = 0; q < together; ++q) {
      const u32 r = r0 + q * block_threads();
      count[q] = s.counts[r < n ? r : n];
    }
    for (u32 q = 0; q < together; ++q) {
      const u32 r = r0 + q * block_threads();
      if (r < most) table[r] = Byte(count[q] < kFar ? count[q] : kFar);
    }
  }
  if (block_thread() == 0) table[most] = Byte(kFar);
  if (block_thread() == 0) table[most + 1] = 0;
  block_sync();
}

// Add the counts of `count` predecessors of each lane's vertex from `begin` on; every lane of a
// warp calls it.
LG_DEVICE void sum_counts(const Search& s, LG_PTR begin, u32 count, bool* hit, LG_Z* sum) {
  LG_DYNAMIC_SHARED(Byte, table);
  const u32 most = 4 * s.near.most, n = u32(frontier_size(s));
  const LG_PTR first = begin / 4;
  const Quads quads(first, count ? quads_end(begin + LG_PTR(count)) : first);
  if (!quads.total) return;
  const auto load = [&](const Task& task) {
    return load_quad(s.ranked_idx, LG_PTR(s.nvals), task.there ? task.quad : 0);
  };
  Task next = quads.task(lane_id());
  Quad ready = load(next);
  u64 before = 0, upto = 0;  // of all lanes before this round; and up to the lane's last entry
  for (u32 base = 0; base < quads.total; base += LG_WARP) {
    const Task now = next;
    const Quad quad = ready;
    if (base + LG_WARP < quads.total) {
      next = quads.task(base + LG_WARP + lane_id());
      ready = load(next);
    }
    // Entry t of the quad is wanted if t - skipped, which wraps around, is below `wanted`.
    const u32 skipped = u32(warp_shfl(begin, now.from) - now.quad * 4);
    const u32 its = warp_shfl(count, now.from), wanted = now.there ? its : 0;
    u32 part = 0, far = 0;
    for (u32 t = 0; t < 4; ++t) {
      const u32 r = u32(quad.i[t]);
      const u32 c = table[t - skipped < wanted ? (r < most ? r : most) : most + 1];
      part += c;
      far |= u32(c == kFar) << t;
    }
    if (warp_any(far != 0)) {
      u32 c[4];  // that of no vertex, 0, where none is asked for: no load waits for a branch
      for (u32 t = 0; t < 4; ++t) c[t] = s.counts[far >> t & 1 ? u32(quad.i[t]) : n];
      for (u32 t = 0; t < 4; ++t) part += c[t];
      part -= kFar * bit_popc(far);
    }
    const u32 sums = warp_scan(part, LgPlus());
    const u32 last = quads.upto - 1 - base;
    const u32 to_last = warp_shfl(sums, last % LG_WARP);
    if (last < LG_WARP) upto = before + to_last;
    before += warp_shfl(sums, LG_WARP - 1);
  }
  const u64 others = warp_shfl_up(upto, 1);
  const u64 mine = upto - (lane_id() ? others : 0);
  if (mine) {
    *hit = true;
    *sum = LG_Z(mine);
  }
}

#endif
#endif  // LAGPU_SEARCH_GRID_COUNTS_CUH
