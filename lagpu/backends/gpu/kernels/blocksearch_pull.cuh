// Pull of a search of a block: vertices look for the bits they have not; see blocksearch.cu.
#ifndef LAGPU_BLOCKSEARCH_PULL_CUH
#define LAGPU_BLOCKSEARCH_PULL_CUH
#include "blocksearch.cuh"

// Clear bits of a word in shared memory; the halves have atomics of their own, a u64 has not.
LG_DEVICE void clear_shared(u32* word, u32 bits) { atomic_and(word, ~bits); }
LG_DEVICE void clear_shared(u64* word, u64 bits) {
  u32* const half = reinterpret_cast<u32*>(word);
  if (u32(bits)) atomic_and(half, ~u32(bits));
  if (u32(bits >> 32)) atomic_and(half + 1, ~u32(bits >> 32));
}

#if LG_LOG
// Entries of a quad in p .. end.
LG_DEVICE u64 entries_of(LG_PTR quad, LG_PTR p, LG_PTR end) {
  const LG_PTR first = quad * 4 < p ? p : quad * 4, last = end - quad * 4 < 4 ? end : quad * 4 + 4;
  return first < last ? u64(last - first) : 0;
}
#endif

// The frontier's word `at`; it is only looked for where a filter, if there is one, has a bit.
template <bool filtered>
LG_DEVICE Word word_at(const Buffers& b, u32 at) {
  if (filtered && !(b.filter[at / 32] >> (at % 32) & 1)) return 0;
  return b.frontier[at];
}

// The union of the frontier's words of group g at those of a quad's indices in p .. end.
template <bool filtered>
LG_DEVICE Word gather(const Buffers& b, const Quad& q, LG_PTR quad, LG_PTR p, LG_PTR end, u32 g) {
  const LG_PTR skip = p - quad * 4, rest = end - quad * 4;
  Word x[4];
#pragma unroll
  for (u32 t = 0; t < 4; ++t) {
    const bool in = LG_PTR(t) >= skip && LG_PTR(t) < rest;
    x[t] = in ? word_at<filtered>(b, u32(q.i[t]) * kGroups + g) : Word(0);
  }
  return (x[0] | x[1]) | (x[2] | x[3]);
}

// The next of a block's tasks, for one warp: those of all blocks take turns. A warp that had little
// to do takes more of them.
LG_DEVICE u32 take(u32* taken) {
  u32 k = 0;
  if (lane_id() == 0) k = atomic_add(taken, 1u);
  return warp_shfl(k, 0) * grid_blocks() + block_index();
}

// Pull into the long columns, a chunk a warp; what the first chunks find, later ones leave out.
template <bool filtered>
LG_DEVICE void pull_chunks(const Search& s, const Buffers& b, Tally* tally) {
  const u32 tasks = s.in.chunks * kGroups;
  for (u32 t = take(&s.taken[0]); t < tasks; t = take(&s.taken[0])) {
    const u32 c = t / kGroups, g = t % kGroups, v = u32(s.in.chunk_column[c]), at = v * kGroups + g;
    Word missing = ~load_cg(&s.visited[at]) & s.alive[g];
    missing = warp_shfl(missing, 0);  // another warp may have written between two lanes' loads
    if (!missing) continue;
    if (lane_id() == 0) atomic_add(s.looked_at, 1u);
    const LG_PTR p = LG_PTR(s.in.chunk_start[c]), last = s.in.ptr[v + 1];
    const LG_PTR end = last - p > LONG ? p + LONG : last;
    Word got = 0;
    const LG_PTR behind = quads_end(end);
    for (LG_PTR base = p / 4; base < behind && (got & missing) != missing; base += 64) {
      Word x = 0;
#pragma unroll
      for (u32 step = 0; step < 64; step += 32) {
        const LG_PTR quad = base + LG_PTR(step + lane_id());
        if (quad < behind) x |= gather<filtered>(b, load_quad(s, s.in.idx, quad), quad, p, end, g);
        LG_LOGGED(if (quad < behind) tally->looked += entries_of(quad, p, end);)
      }
      got |= warp_reduce(x, LgOr());
    }
    got &= missing;
    if (lane_id() == 0 && got) discover(s, b, at, got, tally);
  }
}

// What a pull loads of a warp's 32 words before it looks at them.
struct Ahead {
  Word want;
  LG_PTR p, end;
  i32 hint;
};

LG_DEVICE Word wanted(const Search& s, u32 at) {
  return at < s.items && !(s.empty[at / kGroups / 32] >> (at / kGroups % 32) & 1)
             ? ~s.visited[at] & s.alive[at % kGroups]
             : Word(0);
}

LG_DEVICE Ahead ahead(const Search& s, u32 at, Word want) {
  Ahead a{want, 0, 0, -1};
  if (want) {
    const u32 v = at / kGroups;
    a.p = load_ro(&s.in.ptr[v]);
    a.end = load_ro(&s.in.ptr[v + 1]);
    a.hint = load_ro(&s.hint[v]);
    if (a.end - a.p > LONG) a.want = 0;  // its chunks have been, or will be, taken
  }
  return a;
}

// Pull into every word that lacks bits: 32 words a warp, first the hint and one quad by each lane,
// the rest by all together.
template <bool filtered>
LG_DEVICE void pull(const Search& s, const Buffers& b, Word* missing, Tally* tally) {
  pull_chunks<filtered>(s, b, tally);
  Word* const mine = missing + block_thread();
  Word* const warps = missing + block_warp() * LG_WARP;
  const u32 batches = (s.items + LG_WARP - 1) / LG_WARP;
  // Two turns ahead the visited bits are loaded, one turn ahead what those ask for.
  u32 batch = take(&s.taken[1]), batch_after = take(&s.taken[1]);
  Ahead next = ahead(s, batch * LG_WARP + lane_id(), wanted(s, batch * LG_WARP + lane_id()));
  Word want_after = wanted(s, batch_after * LG_WARP + lane_id());
  while (batch < batches) {
    const Ahead now = next;
    const u32 base = batch * LG_WARP, at = base + lane_id();
    batch = batch_after;
    next = ahead(s, batch * LG_WARP + lane_id(), want_after);
    batch_after = take(&s.taken[1]);
    want_after = wanted(s, batch_after * LG_WARP + lane_id());
    if (!warp_any(now.want != 0)) continue;
    Word got = 0;
    LG_PTR quad = now.p / 4;
    if (now.want) {
      const Quad q = load_quad(s, s.in.idx, quad);  // on its way while the hint is looked at
      if (now.hint >= 0)
        got = word_at<filtered>(b, u32(now.hint) * kGroups + at % kGroups) & now.want;
      LG_LOGGED(tally->looked += now.hint >= 0;
                if (got != now.want) tally->looked += entries_of(quad, now.p, now.end);)
      if (got != now.want)
        got |= gather<filtered>(b, q, quad, now.p, now.end, at % kGroups) & now.want;
      ++quad;
    }
    const LG_PTR last = got != now.want ? quads_end(now.end) : quad;
    if (warp_any(quad < last)) {
      *mine = now.want & ~got;
      warp_sync();
      through_quads(
          quad, last,
          [&](const Task& task) {
            const bool open = task.there && load_volatile(&warps[task.from]);
            return open ? load_quad(s, s.in.idx, task.quad) : Quad{};
          },
          [&](const Task& task, const Quad& q) {
            const LG_PTR end = warp_shfl(now.end, task.from);
            const Word open = task.there ? load_volatile(&warps[task.from]) : Word(0);
            if (!open) return;
            LG_LOGGED(tally->looked += entries_of(task.quad, task.quad * 4, end);)
            const Word x = open & gather<filtered>(b, q, task.quad, task.quad * 4, end,
                                                   (base + task.from) % kGroups);
            if (x) clear_shared(&warps[task.from], x);
          });
      warp_sync();
      got = now.want & ~load_volatile(mine);
      warp_sync();  // before the next turn's words
    }
    const u32 finders = warp_ballot(got != 0);
    if (got) {
      b.next[at] = got;
      note_alone(s, at, got, tally);
    }
    if (lane_id() == 0 && finders) atomic_or(&b.some_next[base / 32], finders);
  }
}

#endif  // LAGPU_BLOCKSEARCH_PULL_CUH
