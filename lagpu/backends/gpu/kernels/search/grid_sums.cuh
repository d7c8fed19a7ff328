// Sums of a pull of a grid search: vertices look at all of their predecessors; see search/grid.cu.
//
// A warp takes the entries of its columns together, four in a row a lane. Each asks for a bit of
// the frontier, and where that is set for a value. Shared memory answers such questions, each to a
// line of its own, faster than L1. So where much of the matrix is looked at, each thread block
// first copies the frontier's bits: all of them if there is room; else folded, so that a bit tells
// that one of several vertices may be in the frontier, and those are looked up.
#ifndef LAGPU_SEARCH_GRID_SUMS_CUH
#define LAGPU_SEARCH_GRID_SUMS_CUH
#include "search/grid_counts.cuh"
#if LG_SUM

// A pull copies the frontier's bits where it looks at more than such a part of all entries.
const f32 kMostLeft = 16;

// Copy the bits of the frontier to shared memory; ends with a barrier of the block.
LG_DEVICE void copy_frontier(const Search& s) {
  LG_DYNAMIC_SHARED(u32, near);
  const u32 together = 8, nwords = u32((frontier_size(s) + 31) / 32), most = s.near.most;
  for (u32 fold = 0; fold < nwords; fold += most)
    for (u32 w0 = block_thread(); w0 < most; w0 += together * block_threads()) {
      u32 bits[together];
      for (u32 q = 0; q < together; ++q) {
        const u32 w = fold + w0 + q * block_threads();
        bits[q] = s.frontier()[w < nwords ? w : nwords - 1];
      }
      for (u32 q = 0; q < together; ++q) {
        const u32 w = w0 + q * block_threads();
        if (w < most) near[w] = (fold ? near[w] : 0) | (fold + w < nwords ? bits[q] : 0);
      }
    }
  block_sync();
}

// Which of a quad's indices that a lane wants are in the frontier; every lane of a warp calls it.
LG_DEVICE u32 in_frontier(const Search& s, const Quad& quad, u32 wanted) {
  u32 word[4];
  if (s.near.copied) {
    LG_DYNAMIC_SHARED(u32, near);
    const u32 mask = s.near.most - 1;
    for (u32 t = 0; t < 4; ++t) word[t] = near[u32(quad.i[t]) / 32 & mask];
    if (!s.near.exact) {
      u32 far = 0;
      for (u32 t = 0; t < 4; ++t) far |= (word[t] >> (u32(quad.i[t]) % 32) & 1) << t;
      far &= wanted;
      if (warp_any(far != 0)) {
        u32 there[4];  // the first word where none is asked for: no load waits for a branch
        for (u32 t = 0; t < 4; ++t) there[t] = s.frontier()[far >> t & 1 ? u32(quad.i[t]) / 32 : 0];
        for (u32 t = 0; t < 4; ++t)
          if (far >> t & 1) word[t] = there[t];
      }
    }
  } else {
    for (u32 t = 0; t < 4; ++t) word[t] = s.frontier()[u32(quad.i[t]) / 32];
  }
  u32 there = 0;
  for (u32 t = 0; t < 4; ++t) there |= (word[t] >> (u32(quad.i[t]) % 32) & 1) << t;
  return there & wanted;
}

// Add the products of `count` predecessors of vertex j from `begin` on, each lane's own; every lane
// of a warp calls it. The order of a sum depends on the matrix and on which of the warp's other
// vertices are wanted, not on that of threads.
LG_DEVICE void sum_columns(const Search& s, LG_PTR begin, u32 count, i32 j, bool* hit, LG_Z* sum) {
#if LG_RANKS
  if (s.near.counts) return sum_counts(s, begin, count, hit, sum);
#endif
  const LG_PTR first = begin / 4, end = begin + LG_PTR(count);
  const Quads quads(first, count ? quads_end(end) : first);
  if (!quads.total) return;
  const auto load = [&](const Task& task) {
    return load_quad(s.in_idx, LG_PTR(s.nvals), task.there ? task.quad : 0);
  };
  Task next = quads.task(lane_id());
  Quad ready = load(next);
  bool some = false;  // whether the lane has a part of a sum
  LG_Z part = LG_ADD::identity<LG_Z>();
  for (u32 base = 0; base < quads.total; base += LG_WARP) {
    const Task now = next;
    const Quad quad = ready;
    const bool more = base + LG_WARP < quads.total;
    if (more) {
      next = quads.task(base + LG_WARP + lane_id());
      ready = load(next);
    }
    const LG_PTR at = now.there ? now.quad * 4 : 0;
    const LG_PTR p = warp_shfl(begin, now.from), its_end = warp_shfl(end, now.from);
    u32 wanted = 0;
    for (u32 t = 0; t < 4; ++t)
      wanted |= u32(now.there && at + LG_PTR(t) >= p && at + LG_PTR(t) < its_end) << t;
    const u32 there = in_frontier(s, quad, wanted);
    const i32 outer = LG_MUL::reads_x || LG_MUL::reads_y ? 0 : warp_shfl(j, now.from);
    if (warp_any(there != 0)) {
      LG_Z z[4];
      for (u32 t = 0; t < 4; ++t) {
        const bool counts = there >> t & 1;
        z[t] =
            product(s, s.in_values, counts ? i64(at) + t : 0, counts ? i32(quad.i[t]) : 0, outer);
      }
      for (u32 t = 0; t < 4; ++t) {
        if (!(there >> t & 1)) continue;
        part = some ? add<LG_ADD>(part, z[t]) : z[t];
        some = true;
      }
    }
    // A column that all lanes have, in this round and the next, is added up later.
    if (more && warp_shfl(now.from, 0) == warp_shfl(next.from, LG_WARP - 1)) continue;
    const u32 before = warp_shfl_up(now.from, 1);
    const u32 begins = warp_ballot(lane_id() == 0 || before != now.from);
    const u32 from = 31 - bit_clz(begins & (lanes_below() | 1u << lane_id()));
    for (u32 step = 1; warp_any(lane_id() >= from + step); step *= 2) {
      const LG_Z other = warp_shfl_up(part, step);
      const bool others = warp_shfl_up(some, step);
      if (lane_id() >= from + step && others) {
        part = some ? add<LG_ADD>(other, part) : other;
        some = true;
      }
    }
    // Each lane takes the sum of its own column from the last lane that has a part of it.
    const u32 stop = quads.upto < base + LG_WARP ? quads.upto : base + LG_WARP;
    const bool takes = quads.mine && quads.upto > base && quads.upto - quads.mine < base + LG_WARP;
    // Lanes after the last quad are of the last lane, and may have parts from rounds before.
    const u32 last = lane_id() == LG_WARP - 1 ? lane_id() : takes ? stop - 1 - base : 0;
    const LG_Z its = warp_shfl(part, last);
    const bool there_is = warp_shfl(some, last);
    if (takes && there_is) {
      *sum = *hit ? add<LG_ADD>(*sum, its) : its;
      *hit = true;
    }
    some = false;
  }
}

#endif
#endif  // LAGPU_SEARCH_GRID_SUMS_CUH
