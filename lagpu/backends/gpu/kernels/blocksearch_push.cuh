// Push of a search of a block: vertices give their bits to their successors; see blocksearch.cu.
#ifndef LAGPU_BLOCKSEARCH_PUSH_CUH
#define LAGPU_BLOCKSEARCH_PUSH_CUH
#include "blocksearch.cuh"

// Give bits x of group g to the successors in a quad, where they lack them; `settle` counts them.
LG_DEVICE void scatter(const Search& s, const Buffers& b, Word x, const Quad& q, LG_PTR quad,
                       LG_PTR p, LG_PTR end, u32 g) {
  const LG_PTR skip = p - quad * 4, rest = end - quad * 4;
  u32 at[4];
  Word lacks[4];
#pragma unroll
  for (u32 t = 0; t < 4; ++t) {
    const bool in = LG_PTR(t) >= skip && LG_PTR(t) < rest;
    at[t] = u32(q.i[t]) * kGroups + g;
    lacks[t] = in ? x & ~(load_cg(&s.visited[at[t]]) | load_cg(&b.next[at[t]])) : Word(0);
  }
#pragma unroll
  for (u32 t = 0; t < 4; ++t)
    if (lacks[t]) atomic_or(&b.next[at[t]], lacks[t]);  // nobody waits for what it returns
}

// Note what a push has put into the next frontier, once all of it is there.
LG_DEVICE void settle(const Search& s, const Buffers& b, Tally* tally) {
  const u32 together = 4, warps = u32(global_warps()), nsome = (s.items + 31) / 32;
  for (u32 w0 = u32(global_warp()); w0 < nsome; w0 += together * warps) {
    Word fresh[together];
#pragma unroll
    for (u32 q = 0; q < together; ++q) {
      const u32 at = (w0 + q * warps) * 32 + lane_id();
      fresh[q] = w0 + q * warps < nsome && at < s.items ? load_cg(&b.next[at]) : Word(0);
    }
#pragma unroll
    for (u32 q = 0; q < together; ++q) {
      const u32 w = w0 + q * warps, finders = warp_ballot(fresh[q] != 0);
      if (!finders) continue;
      if (fresh[q]) note_alone(s, w * 32 + lane_id(), fresh[q], tally);
      if (lane_id() == 0) b.some_next[w] = finders;
    }
  }
}

// Push the frontier's words: the long rows by chunks, the others 32 words a warp. Then the grid
// meets, and what was found is counted word by word.
LG_DEVICE void push(const Search& s, const Buffers& b, GridBarrier* barrier, Tally* tally) {
  const u32 warp = u32(global_warp()), warps = u32(global_warps());
  const u32 tasks = s.out.chunks * kGroups;
  for (u32 t = warp; t < tasks; t += warps) {
    const u32 c = t / kGroups, g = t % kGroups, u = u32(s.out.chunk_column[c]);
    const Word x = b.frontier[u * kGroups + g];
    if (!x) continue;
    if (lane_id() == 0) atomic_add(s.looked_at, 1u);
    const LG_PTR p = LG_PTR(s.out.chunk_start[c]), last = s.out.ptr[u + 1];
    const LG_PTR end = last - p > LONG ? p + LONG : last;
    const LG_PTR behind = quads_end(end);
    for (LG_PTR quad = p / 4 + LG_PTR(lane_id()); quad < behind; quad += LG_WARP)
      scatter(s, b, x, load_quad(s, s.out.idx, quad), quad, p, end, g);
  }
  // A lane loads one word of `some`, far from its neighbours': entries that stand near to each
  // other are then taken by different warps.
  const u32 nsome = (s.items + 31) / 32;
  for (u32 w0 = warp; w0 < nsome; w0 += warps * LG_WARP) {
    const u64 w = w0 + u64(lane_id()) * warps;
    const u32 word = w < nsome ? b.some[w] : 0;
    for (u32 rest = warp_ballot(word != 0); rest; rest &= rest - 1) {
      const u32 place = bit_ffs(rest) - 1;
      const u32 base = (w0 + place * warps) * 32, at = base + lane_id();
      Word x = 0;
      LG_PTR p = 0, end = 0;
      if (warp_shfl(word, place) >> lane_id() & 1) {
        x = b.frontier[at];
        p = s.out.ptr[at / kGroups];
        end = s.out.ptr[at / kGroups + 1];
        if (end - p > LONG) end = p;
      }
      through_quads(
          p / 4, p < end ? quads_end(end) : p / 4,
          [&](const Task& task) {
            return task.there ? load_quad(s, s.out.idx, task.quad) : Quad{};
          },
          [&](const Task& task, const Quad& q) {
            const Word bits = warp_shfl(x, task.from);
            const LG_PTR its_p = warp_shfl(p, task.from), its_end = warp_shfl(end, task.from);
            if (task.there)
              scatter(s, b, bits, q, task.quad, its_p, its_end, (base + task.from) % kGroups);
          });
    }
  }
  grid_sync(barrier);
  settle(s, b, tally);
}

#endif  // LAGPU_BLOCKSEARCH_PUSH_CUH
