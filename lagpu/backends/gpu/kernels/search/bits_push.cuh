// Push of a bit-parallel search: vertices give their bits to their successors; see search/bits.cu.
#ifndef LAGPU_SEARCH_BITS_PUSH_CUH
#define LAGPU_SEARCH_BITS_PUSH_CUH
#include "search/bits_state.cuh"

// Give bits x of group g to the successors in a quad, unless they were visited. Where few bits have
// been found (blind), writing costs less than asking first; `settle` removes the visited ones.
LG_DEVICE void scatter(const Search& s, const Buffers& b, Word x, const Quad& q, LG_PTR quad,
                       LG_PTR p, LG_PTR end, u32 g, bool blind) {
  const LG_PTR skip = p - quad * 4, rest = end - quad * 4;
  u32 at[4];
  Word lacks[4];
#pragma unroll
  for (u32 t = 0; t < 4; ++t) {
    const bool in = LG_PTR(t) >= skip && LG_PTR(t) < rest;
    at[t] = u32(q.i[t]) * kGroups + g;
    lacks[t] = !in ? Word(0) : blind ? x : x & ~load_cg(&s.visited[at[t]]);
  }
#pragma unroll
  for (u32 t = 0; t < 4; ++t)
    if (lacks[t]) atomic_or(&b.next[at[t]], lacks[t]);  // no wait for what it returns
}

// What a thread has its block push: bits x of group g to the successors in p .. end.
struct Row {
  Word x;
  LG_PTR p, end;
  u32 g;
};

// The first of LG_BLOCK numbers that grow which is more than k; the last one is.
LG_DEVICE u32 first_above(const u32* upto, u32 k) {
  u32 at = 0;
  for (u32 step = LG_BLOCK / 2; step; step /= 2)
    if (upto[at + step - 1] <= k) at += step;
  return at;
}

// What a block has in shared memory while it pushes.
struct PushRoom {
  Word bits[LG_BLOCK];      // of each thread's row
  LG_PTR starts[LG_BLOCK];  // p of it
  u32 sizes[LG_BLOCK];      // end - p, and the group
  u32 quads[LG_BLOCK];      // how many this row and those before it have
  u32 words[LG_BLOCK];      // of `some`, each thread's
  u32 items[LG_BLOCK];      // how many rows they and the chunks before them are
};

// The block pushes the rows of all its threads, a quad a thread: none waits for a longer row.
LG_DEVICE void push_rows(const Search& s, const Buffers& b, const Row& row, bool blind,
                         PushRoom* room) {
  u32 mine = block_thread();
  const u32 quads = row.p < row.end ? u32(quads_end(row.end) - row.p / 4) : 0;
  u64 sum;
  room->quads[mine] = u32(block_scan(quads, &sum)) + quads;
  room->bits[mine] = row.x;
  room->starts[mine] = row.p;
  room->sizes[mine] = u32(row.end - row.p) * kGroups + row.g;
  block_sync();
  const u32 total = u32(sum);
  const auto task = [&](u32 k) {
    const u32 from = k < total ? first_above(room->quads, k) : 0;
    const u32 before = from ? room->quads[from - 1] : 0;
    return Task{from, room->starts[from] / 4 + LG_PTR(k - before), k < total};
  };
  const auto load = [&](const Task& t) {
    return t.there ? load_quad(s, s.out.idx, t.quad) : Quad{};
  };
  Task next = task(mine);
  Quad ready = load(next);
  while (next.there) {
    const Task now = next;
    const Quad q = ready;
    next = task(mine += LG_BLOCK);
    ready = load(next);
    const u32 size = room->sizes[now.from];
    const LG_PTR p = room->starts[now.from], end = p + LG_PTR(size / kGroups);
    scatter(s, b, room->bits[now.from], q, now.quad, p, end, size % kGroups, blind);
  }
  block_sync();  // before the next rows are written
}

// Push the frontier's words, bits of rows that are not pulled: the long rows by chunks, the others
// whole. A thread looks at one word of `some` and at one chunk. Those of a thread block lie far
// apart, since neighbouring vertices often share neighbours; the rows found are then shared among
// all threads.
LG_DEVICE void push(const Search& s, const Buffers& b, bool blind, PushRoom* room, Tally* tally) {
  const u32 tasks = s.out.chunks * kGroups, nsome = s.nsome();
  const u32 all = tasks < nsome ? nsome : tasks;
  for (u32 base = block_index(); base < all; base += grid_blocks() * LG_BLOCK) {
    const u32 mine = base + block_thread() * grid_blocks();
    const u32 word = mine < nsome ? b.some[mine] : 0;
    bool chunk = false;
    if (mine < tasks) {
      const u32 u = u32(s.out.chunk_column[mine / kGroups]);
      chunk = b.frontier[u * kGroups + mine % kGroups] != 0;
    }
    const u32 count = u32(bit_popc(word)) + chunk;
    u64 total;
    room->items[block_thread()] = u32(block_scan(count, &total)) + count;
    room->words[block_thread()] = word;
    block_sync();
    for (u32 k = block_thread(); k - block_thread() < u32(total); k += LG_BLOCK) {
      Row row{0, 0, 0, 0};
      if (k < u32(total)) {
        const u32 from = first_above(room->items, k), its = room->words[from];
        const u32 found = base + from * grid_blocks();
        // the chunk, if there is one, comes after the bits
        const u32 bit = k - (from ? room->items[from - 1] : 0), bits = u32(bit_popc(its));
        u32 at;
        if (bit < bits) {
          at = found * 32 + nth_bit(its, bit);
          row.p = s.out.ptr[at / kGroups];
          row.end = s.out.ptr[at / kGroups + 1];
          if (row.end - row.p > kLong) row.end = row.p;
        } else {
          const u32 u = u32(s.out.chunk_column[found / kGroups]);
          at = u * kGroups + found % kGroups;
          row.p = LG_PTR(s.out.chunk_start[found / kGroups]);
          row.end = s.out.ptr[u + 1];
          if (row.end - row.p > kLong) row.end = row.p + kLong;
          atomic_add(s.looked_at, 1u);
        }
        row.g = at % kGroups;
        row.x = b.frontier[at] & ~s.pulled[row.g];
        if (!row.x) row.end = row.p;
        LG_LOGGED(tally->looked += u64(row.end - row.p);)
      }
      push_rows(s, b, row, blind, room);
    }
    block_sync();  // before the next words are written
  }
}

// Note what a push has given to the next frontier, once all of it is there, and take back what had
// been visited.
LG_DEVICE void settle(const Search& s, const Buffers& b, Tally* tally) {
  const u32 together = 4, warps = u32(global_warps()), nsome = s.nsome();
  for (u32 w0 = u32(global_warp()); w0 < nsome; w0 += together * warps) {
    Word given[together], visited[together];
    u64 edges[together];  // all are on their way before one is looked at
#pragma unroll
    for (u32 q = 0; q < together; ++q) {
      const u32 at = (w0 + q * warps) * 32 + lane_id();
      given[q] = w0 + q * warps < nsome && at < s.items ? load_cg(&b.next[at]) : Word(0);
    }
#pragma unroll
    for (u32 q = 0; q < together; ++q) {
      const u32 at = (w0 + q * warps) * 32 + lane_id();
      visited[q] = given[q] ? s.visited[at] : Word(0);
      edges[q] = given[q] ? degree(s, at / kGroups) : 0;
    }
#pragma unroll
    for (u32 q = 0; q < together; ++q) {
      const u32 w = w0 + q * warps, at = w * 32 + lane_id();
      const Word fresh = given[q] & ~visited[q];
      if (fresh != given[q]) b.next[at] = fresh;
      const u32 finders = warp_ballot(fresh != 0);
      if (!finders) continue;
      if (fresh) {
        tally->edges += edges[q];
        note_alone(s, at, fresh, visited[q], tally);
      }
      if (lane_id() == 0) b.some_next[w] = finders;
    }
  }
}

#endif  // LAGPU_SEARCH_BITS_PUSH_CUH
