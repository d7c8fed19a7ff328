// Push of a grid search: the frontier's vertices claim their successors; see search/grid.cu.
#ifndef LAGPU_SEARCH_GRID_PUSH_CUH
#define LAGPU_SEARCH_GRID_PUSH_CUH
#include "search/grid_state.cuh"

#ifndef LG_WIDE  // with sums, 1: a push of many edges finds words, too
#define LG_WIDE 0
#endif

// Whether a push of many edges finds words.
const bool kMayBeWide = LG_RULE == kByEdges && (!LG_SUM || LG_WIDE);
// Whether such a push may leave its assignments to `discover_words`: they have nothing of an edge.
const bool kMayLeave = kMayBeWide && !LG_SUM && !LG_KEEP && !LG_HAD && LG_X0 != kValue &&
                       LG_X1 != kValue && LG_X2 != kValue;

// What a push makes of the vertices that it finds: lists; words; or words alone, whose assignments
// are still to be made.
enum Makes : u32 { kMakesLists, kMakesWords, kUnassigned };

// A push of more edges than such a part of all vertices leaves its assignments; with sums no other
// finds words.
const f32 kLeavesFrom = 8;

// A part 1 / kManyLeft of all vertices is many to look for; a pull of fewer takes microseconds.
const f32 kManyLeft = 32;

// What a turn knows, in shared memory, since the compiler would spill registers for it. Of `left`
// the turn before has the other one, of `unexplored` the two turns before.
struct Course {
  u32 makes;          // what the push makes
  u32 left[2];        // vertices that may still be found
  f32 unexplored[3];  // edges of vertices that have been in no list
};

// Whether so many frontier edges have grown so much since the turn before that a part 1 / delta of
// the unexplored edges may leave the next frontier. Where they have not, as on a mesh, a pull looks
// at most of its edges in vain. The growth is not known after a turn that counted no edges.
LG_DEVICE bool grows(const Course& course, u32 turn, f32 edges, f32 unexplored, f32 delta) {
  const f32 before = course.unexplored[(turn + 1) % 3] - course.unexplored[(turn + 2) % 3];
  return edges * edges * delta > unexplored * before;
}

// Whether a pull has found few of the vertices that were left, and these are many.
LG_DEVICE bool in_vain(u32 found, u32 left, i64 n, f32 delta) {
  return f32(found) * delta < f32(left) && f32(left) * kManyLeft > f32(n);
}

// What a push of so many edges makes. Words of very many edges have several vertices each, whose
// assignments lie side by side.
LG_DEVICE u32 what_it_makes(bool wide, f32 edges, i64 n) {
  if (LG_SUM) return kMayBeWide && wide && edges * kLeavesFrom > f32(n) ? kMakesWords : kMakesLists;
  if (!kMayBeWide || !wide) return kMakesLists;
  return kMayLeave && edges * kLeavesFrom > f32(n) ? kUnassigned : kMakesWords;
}

// Make the assignments that a push has left, of all vertices of its words. In the order of its
// edges each would be a write to some line of memory. With sums they are visited only now, found in
// level `at`.
LG_DEVICE void discover_words(const Search& s, const u32* words, u32 depth, i32 at = 0,
                              Tally* tally = nullptr) {
  each_tile(s.n, [&](i64 w, bool mine) {
    const u32 bits = mine ? load_cg(&words[w]) : 0;
    if (LG_SUM && bits) s.visited[w] |= bits;
    if (LG_SUM) tally->found += bit_popc(bits);
    each_word(bits, w, [&](u32 from, i64 v) {
      if (!(warp_shfl(bits, from) >> lane_id() & 1)) return;
      if (LG_SUM) s.found_in[v] = at;
      discover(s, i32(v), depth, LG_F(0));
    });
  });
}

// With sums into words: add the products of edges to those of their ends that earlier levels have
// not visited, and set their bits. No answer is waited for.
template <u32 N>
LG_DEVICE void add_into_words(const Search& s, const Batch<LG_PTR, N>& edges) {
  i32 j[N];
  u32 seen[N];
  for (u32 q = 0; q < N; ++q) j[q] = i32(load_ro(&s.out_idx[edges.entry[q]]));
  for (u32 q = 0; q < N; ++q) seen[q] = load_cg(&s.visited[j[q] / 32]);
  for (u32 q = 0; q < N; ++q) {
    if (!(edges.there >> q & 1) || seen[q] >> (j[q] % 32) & 1) continue;
    atomic_accumulate<LG_ADD, LG_F>(
        &s.f_values[j[q]],
        cast<LG_F>(product(s, s.out_values, edges.entry[q], edges.column[q], j[q])));
    atomic_or(&s.frontier()[j[q] / 32], 1u << (j[q] % 32));
  }
}

// Follows a lane's edges, each step for all of them before the next: a level's time is the length
// of this chain of loads. New vertices go into the next lists, or, as `makes` says, into presence
// words, and then their edges are not counted: asking where these are is half of what a vertex
// costs where L2 does not hold the pointers. With `early` the place of a vertex' edges is loaded
// before it is known to be new: sooner, but more traffic; and `at_once` vertices are claimed
// without a look at whether they are visited.
struct Pusher {
  const Search& s;
  u32 turn, depth;
  bool early, at_once;
  const u32* makes;
  Tally* tally;

  template <u32 N>
  LG_DEVICE void operator()(const Batch<LG_PTR, N>& edges) const {
    if constexpr (LG_SUM && kMayBeWide)
      if (*makes != kMakesLists) return add_into_words(s, edges);
    Found<LG_PTR, N> found;
    i32(&j)[N] = found.vertex;
    u32 seen[N];
    i32 before[N];
    for (u32 q = 0; q < N; ++q) j[q] = i32(load_ro(&s.out_idx[edges.entry[q]]));
    for (u32 q = 0; q < N; ++q) {
      if (LG_SUM) before[q] = load_cg(&s.found_in[j[q]]);
      if (!LG_SUM) seen[q] = at_once ? 0 : load_cg(&s.visited[j[q] / 32]);
      if (early) {
        found.start[q] = load_ro(&s.out_ptr[j[q]]);
        found.stop[q] = load_ro(&s.out_ptr[j[q] + 1]);
      }
    }
    u32 won = 0;
    for (u32 q = 0; q < N; ++q) {
      const bool there = edges.there >> q & 1;
      const u32 bit = 1u << (j[q] % 32);
      if constexpr (LG_SUM)
        before[q] =
            there ? accumulate(s, edges.entry[q], edges.column[q], j[q], i32(depth) + 1, before[q])
                  : 0;
      else
        seen[q] = there && !(seen[q] & bit) ? atomic_or(&s.visited[j[q] / 32], bit) : bit;
    }
    // After all claims: an answer that is looked at keeps the next claim waiting.
    for (u32 q = 0; q < N; ++q)
      won |= u32(LG_SUM ? before[q] == kOpen : !(seen[q] >> (j[q] % 32) & 1)) << q;
    if (!warp_any(won != 0)) return;
    found.there = won;
    const bool to_words = kMayBeWide && !LG_SUM && *makes != kMakesLists;
    if (!early && !to_words)
      for (u32 q = 0; q < N; ++q) {
        const i32 at = won >> q & 1 ? j[q] : 0;  // no load after a branch
        found.start[q] = load_ro(&s.out_ptr[at]);
        found.stop[q] = load_ro(&s.out_ptr[at + 1]);
      }
    for (u32 q = 0; q < N; ++q) {
      if (!(won >> q & 1)) continue;
      if (to_words) atomic_or(&s.frontier()[j[q] / 32], 1u << (j[q] % 32));
      if (LG_SUM) atomic_or(&s.visited[j[q] / 32], 1u << (j[q] % 32));
      if (early && found.start[q] != found.stop[q]) prefetch(&s.out_idx[found.start[q]]);
      if (!kMayLeave || *makes != kUnassigned)
        discover(s, j[q], depth + s.shift,
                 LG_SUM
                     ? LG_F(0)
                     : cast<LG_F>(product(s, s.out_values, edges.entry[q], edges.column[q], j[q])));
      ++tally->found;
      if (!to_words) tally->edges += u64(found.stop[q] - found.start[q]);
    }
    if (!to_words) enqueue(s, turn + 1, s.next_small(), s.next_chunks(), found);
  }
};

// Push the frontier's lists, into lists or into the frontier's presence words, which are empty.
LG_DEVICE void push(const Search& s, u32 turn, u32 depth, const Frontier& now, const u32* makes,
                    Tally* tally) {
  const u64 warps = u64(global_warps());
  const bool early = now.num_small + u64(now.num_chunks) * 8 <= warps * 8;
  follow_lists(s.out_ptr, s.small(), s.chunks(), now.num_small, now.num_chunks,
               Pusher{s, turn, depth, early, early && !now.num_chunks, makes, tally});
}

// Largest frontier that one block searches alone.
LG_DEVICE u32 most_alone(const Search& s) { return LG_CLUSTER > 1 ? LG_FEW : s.solo; }

const u32 kLarge = 0x80000000u;  // beside a count: the frontier is for all blocks
// Whether a level reads what the one before has written to global memory other than by atomics that
// claim vertices.
const bool kReadsValues =
    LG_SUM || (LG_KEEP && !LG_ISO && (LG_FLIP ? LG_MUL::reads_x : LG_MUL::reads_y));

#if LG_LOG
// The sum of a number that each block of a cluster has.
template <u32 C>
LG_DEVICE u64 edges_of(const u32* followed) {
  u64 sum = 0;
  for (u32 rank = 0; rank < C; ++rank) sum += C > 1 ? *cluster_shared(followed, rank) : *followed;
  return sum;
}
#endif

// A cluster of C blocks, or one block, searches alone, level after level, until the frontier is
// empty, large, or has a vertex of high degree; then it hands the frontier over to the next turn.
// The shared memory of each block holds the vertices that it has found, with the place of each
// vertex' edges, loaded while the vertex was being claimed; all blocks share the vertices out.
template <u32 C>
LG_DEVICE void search_alone(const Search& s, u32 turn, u32 depth, u32 times, u32 num_small) {
  LG_DYNAMIC_SHARED(LG_PTR, starts);
  i32* const vertices = reinterpret_cast<i32*>(starts + 2 * s.solo);
  u32* const degrees = reinterpret_cast<u32*>(vertices + 2 * s.solo);
  // Of three levels in turn, read, filled and cleared: so one barrier a level is enough.
  LG_SHARED(u32, counts, 3);
  LG_LOGGED(LG_SHARED(u32, followed, 2);)  // edges, of two levels by turns
  LG_LOGGED(const u32 first = depth;)
  const u32 rank = C > 1 ? cluster_rank() : 0, most = C > 1 ? C * s.solo : most_alone(s);
  u64* const overflow =
      counter(s, turn + 1, kLevel);  // vertices that shared memory has no room for
  u32 side = 0, now = 0;
  for (u32 k = block_thread(); k * C + rank < num_small; k += block_threads())
    vertices[k] = s.small().take(k * C + rank, s.out_ptr, &starts[k], &degrees[k]);
  if (block_thread() < 3)
    counts[block_thread()] =
        block_thread() || num_small < rank ? 0 : (num_small - rank + C - 1) / C;
  u32 count = num_small, mine = 0, upto = 0;
  for (bool large = false;;) {
    if (C > 1) {
      if (kReadsValues)
        cluster_sync();
      else
        cluster_sync_shared();
      const u32 have = lane_id() < C ? *cluster_shared(&counts[now], lane_id()) : 0;
      large = warp_any(have & kLarge);
      upto = warp_scan(have & ~kLarge, LgPlus());
      count = warp_shfl(upto, C - 1);
    } else {
      block_sync();
      count = counts[now] & ~kLarge;
      large = counts[now] & kLarge;
    }
    LG_LOGGED(if (logs() && depth != first) end_level(s, count, edges_of<C>(&followed[side ^ 1]));)
    mine = counts[now] & ~kLarge;
    if (!count || count > most || large || depth == times) break;
    const u32 other = side ^ 1, next = now == 2 ? 0 : now + 1, last = 3 - now - next;
    const i32 at = i32(depth) + 1;
    if (block_thread() == 0) counts[last] = 0;
    if (looks_alone(depth) && rank == 0 && block_thread() == 0 && is_stopped(s.stop))
      atomic_or(&counts[next], kLarge);
    LG_LOGGED(if (logs()) begin_level(s, C > 1 ? kPushesInCluster : kPushesAlone, depth, count,
                                      kUnknown, 0);)
    LG_LOGGED(note_sum(degrees + side * s.solo, mine, &followed[side]);)
    for (u32 k0 = (block_warp() * C + rank) * 32; k0 < count; k0 += block_threads() * C) {
      const u32 k = k0 + lane_id();
      i32 i = 0;
      LG_PTR p = 0;
      u32 left = 0;  // edges that have not been followed
      if (C > 1) {
        u32 from = 0;  // the block that has the vertex
        for (u32 r = 0; r + 1 < C; ++r) from += warp_shfl(upto, r) <= k;
        const u32 before = warp_shfl(upto, from ? from - 1 : 0);
        const u32 place = side * s.solo + (k < count ? k - (from ? before : 0) : 0);
        i = *cluster_shared(vertices + place, from);
        p = *cluster_shared(starts + place, from);
        left = *cluster_shared(degrees + place, from);
        if (k >= count) left = 0;
      } else if (k < count) {
        i = vertices[side * s.solo + k];
        p = starts[side * s.solo + k];
        left = degrees[side * s.solo + k];
      }
      // Four edges at a time, each step for all four before the next: a level's time is the length
      // of this chain of loads. A lane with fewer edges loads the first entry of all: loads that
      // depend on a condition the compiler makes wait for one another. Where blocks of a cluster
      // share the work, the chain is a look at visited bits shorter: they claim without it.
      while (warp_any(left != 0)) {
        i32 j[4], before[4];
        u32 seen[4], old[4], open = 0;
        LG_PTR entry[4], start[4], stop[4];
        for (u32 q = 0; q < 4; ++q) {
          entry[q] = q < left ? p + LG_PTR(q) : 0;
          j[q] = i32(load_ro(&s.out_idx[entry[q]]));
        }
        for (u32 q = 0; q < 4; ++q) {
          if (LG_SUM) before[q] = load_cg(&s.found_in[j[q]]);
          if (!LG_SUM) seen[q] = C == 1 ? load_cg(&s.visited[j[q] / 32]) : 0;
          start[q] = load_ro(&s.out_ptr[j[q]]);
          stop[q] = load_ro(&s.out_ptr[j[q] + 1]);
        }
        // All looks before the first claim: its answer would be waited for with the next look.
        for (u32 q = 0; q < 4; ++q)
          if (!LG_SUM) open |= u32(q < left && !(seen[q] >> (j[q] % 32) & 1)) << q;
        for (u32 q = 0; q < 4; ++q) {
          old[q] = ~0u;
          if (LG_SUM)
            before[q] = q < left ? accumulate(s, entry[q], i, j[q], at, before[q]) : 0;
          else if (open >> q & 1)
            old[q] = atomic_or(&s.visited[j[q] / 32], 1u << (j[q] % 32));
        }
        p += LG_PTR(left < 4 ? left : 4);
        left -= left < 4 ? left : 4;
        u32 winners[4], total = 0;
        for (u32 q = 0; q < 4; ++q) {
          winners[q] = warp_ballot(LG_SUM ? before[q] == kOpen : !(old[q] >> (j[q] % 32) & 1));
          total += bit_popc(winners[q]);
        }
        if (!total) continue;
        u32 place = 0;
        if (lane_id() == 0) place = atomic_add(&counts[next], total) & ~kLarge;
        place = warp_shfl(place, 0);
        for (u32 q = 0; q < 4; ++q) {
          const u32 to = place + bit_popc(winners[q] & lanes_below());
          place += bit_popc(winners[q]);
          if (!(winners[q] >> lane_id() & 1)) continue;
          const u32 degree = u32(stop[q] - start[q]);
          if (degree) prefetch(&s.out_idx[start[q]]);  // it is expanded next
          if (degree > kSmall || to >= s.solo) atomic_or(&counts[next], kLarge);
          if (LG_SUM) atomic_or(&s.visited[j[q] / 32], 1u << (j[q] % 32));
          discover(s, j[q], depth + s.shift,
                   LG_SUM ? LG_F(0) : cast<LG_F>(product(s, s.out_values, entry[q], i, j[q])));
          if (to < s.solo) {
            vertices[other * s.solo + to] = j[q];
            starts[other * s.solo + to] = start[q];
            degrees[other * s.solo + to] = degree;
          } else {  // into the frontier's own list, which has been read above
            s.small().vertex[s.small().at(atomic_add(overflow, 1))] = j[q];
          }
        }
      }
    }
    side = other;
    now = next;
    ++depth;
  }
  if (C > 1) cluster_sync();  // all see what has overflowed
  // The frontier is that of the next turn.
  const u32 kept = mine < s.solo ? mine : s.solo, more = u32(load_volatile(overflow));
  const u32 share = more > rank ? (more - rank + C - 1) / C : 0;
  u64 edges = 0;
  for (u32 k0 = block_warp() * 32; k0 < kept + share; k0 += block_threads()) {
    const u32 k = k0 + lane_id();
    i32 v = 0;
    LG_PTR start = 0, stop = 0;
    if (k < kept + share) {
      v = k < kept ? vertices[side * s.solo + k]
                   : load_cg(&s.small().vertex[s.small().at((k - kept) * C + rank)]);
      start = s.out_ptr[v];
      stop = s.out_ptr[v + 1];
    }
    edges += u64(stop - start);
    enqueue(s, turn + 1, s.next_small(), s.next_chunks(), k < kept + share, v, start, stop);
  }
  edges = block_reduce(edges, u64(0), LgPlus());
  if (block_thread() == 0 && edges) atomic_add(counter(s, turn + 1, kEdges), edges);
  if (C > 1)
    cluster_sync();  // all have read how many there are
  else
    block_sync();
  if (rank == 0 && block_thread() == 0) {
    const bool stops = looks_alone(depth - 1) && counts[now] & kLarge && is_stopped(s.stop);
    *counter(s, turn + 1, kFound) = count + (stops ? kStops : 0);
    *overflow = depth;
  }
}

#endif  // LAGPU_SEARCH_GRID_PUSH_CUH
