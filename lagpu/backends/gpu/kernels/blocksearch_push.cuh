// Push of a search of a block: vertices give their bits to their successors; see blocksearch.cu.
#ifndef LAGPU_BLOCKSEARCH_PUSH_CUH
#define LAGPU_BLOCKSEARCH_PUSH_CUH
#include "blocksearch.cuh"

// Give bits x of group g to the successors in a quad, where they lack them: those that nobody else
// has found enter the next frontier. What is waited for is asked of all four before the first
// answer is looked at.
LG_DEVICE void scatter(const Search& s, const Buffers& b, Word x, const Quad& q, LG_PTR quad,
                       LG_PTR p, LG_PTR end, u32 g, Tally* tally) {
  const LG_PTR skip = p - quad * 4, rest = end - quad * 4;
  u32 at[4];
  Word fresh[4];
#pragma unroll
  for (u32 t = 0; t < 4; ++t) {
    const bool in = LG_PTR(t) >= skip && LG_PTR(t) < rest;
    at[t] = u32(q.i[t]) * kGroups + g;
    fresh[t] = in ? x & ~load_cg(&s.visited[at[t]]) : Word(0);
  }
  if (!(fresh[0] | fresh[1] | fresh[2] | fresh[3])) return;
  Word before[4];
#pragma unroll
  for (u32 t = 0; t < 4; ++t) {
    before[t] = 0;
    if (fresh[t]) before[t] = atomic_or(&s.visited[at[t]], fresh[t]);
  }
#pragma unroll
  for (u32 t = 0; t < 4; ++t) fresh[t] &= ~before[t];
  const Word any = fresh[0] | fresh[1] | fresh[2] | fresh[3];
  if (!any) return;
#pragma unroll
  for (u32 t = 0; t < 4; ++t) {
    before[t] = 1;
    if (fresh[t]) before[t] = atomic_or(&b.next[at[t]], fresh[t]);
  }
#pragma unroll
  for (u32 t = 0; t < 4; ++t) {
    note_depth(s, at[t], fresh[t]);
    tally->found += bit_popc(fresh[t]);
  }
  note_alive(s, g, any);
#pragma unroll
  for (u32 t = 0; t < 4; ++t)
    if (!before[t]) enter_next(s, b, at[t], tally);
}

// Push the frontier's words: the long rows by chunks, the others 32 words a warp.
LG_DEVICE void push(const Search& s, const Buffers& b, Tally* tally) {
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
      scatter(s, b, x, load_quad(s, s.out.idx, quad), quad, p, end, g, tally);
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
              scatter(s, b, bits, q, task.quad, its_p, its_end, (base + task.from) % kGroups,
                      tally);
          });
    }
  }
}

#endif  // LAGPU_BLOCKSEARCH_PUSH_CUH
