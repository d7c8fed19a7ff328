// A whole traversal as one cooperative kernel: no host round trip a level.
//
// The loop it runs, for any semiring and any number of assignments (LG_X0 .. LG_X2):
//
//     while f has entries and depth < times:
//         x(f.S) << depth, or << f, or << a constant          for each assigned x
//         f(~v.S, replace=True) << f (+.x) A                  v is one of the x
//         depth += 1
//
// Each vertex enters f at most once, so its assignments are made when it is found. The frontier is
// a list while it is pushed and presence words while it is pulled; a small one is searched by one
// block alone, level after level, in shared memory.
//
// out_* is A by rows (a vertex' successors), in_* A by columns (its predecessors); the same arrays
// if A is symmetric. `hint`, if not null, has a predecessor of high degree for each vertex, -1 if
// there is none: most vertices that a pull reaches are reached through it (Hiragushi and Takahashi
// 2013 order all neighbours by degree; one alone does most of it and takes no second index array).
// `empty` has a bit for each vertex without predecessors, which a pull need not look at.
//
// Work: every edge of the component at most once in push; in pull until the first hit of a vertex.
// Sources: direction by Beamer, Asanovic and Patterson, SC 2012; degree classes by Merrill, Garland
// and Grimshaw, PPoPP 2012; bitmap pull as in Hiragushi and Takahashi, ICA3PP 2013.
#include "looplog.cuh"
#include "push.cuh"
#ifndef LG_SUM  // 1: products of one level add up; 0: the first product of a vertex stands
#define LG_SUM 0
#endif
#ifndef LG_BLOCK  // most threads a block
#define LG_BLOCK 1024
#endif
#ifndef LG_F  // type of the frontier's values
#define LG_F bool
#endif
#ifndef LG_KEEP  // 1: the frontier's values are stored, because they are read or wanted
#define LG_KEEP 0
#endif
#ifndef LG_X0  // what an assignment assigns: 0 nothing, 1 the depth, 2 the frontier's value
#define LG_X0 1
#endif
#ifndef LG_X0_T
#define LG_X0_T i32
#endif
#ifndef LG_X1
#define LG_X1 0
#endif
#ifndef LG_X1_T
#define LG_X1_T i32
#endif
#ifndef LG_X2
#define LG_X2 0
#endif
#ifndef LG_X2_T
#define LG_X2_T i32
#endif

const i32 kOpen = 0x7fffffff;  // the level of a vertex that is not found, where products are summed
const u32 kCalm = 2;           // turns with a small frontier before one block goes on alone
const u32 kLook = 8;           // predecessors that a lane looks at alone
const u32 kMany = 2048;        // predecessors from which the whole block looks
const u32 kDeferred = 32;      // such vertices a block keeps for later
const u32 kBatch = 4;          // of them at once
const u32 kLine = 16;          // u64 a cache line: counters do not share one

// Counters of a turn; three turns rotate: read, filled, cleared.
// kLevel is the depth that a block searching alone has reached.
enum Counter : u32 {
  kNumSmall,
  kNumChunks,
  kFound,
  kEdges,
  kLevel,
  LG_LOGGED(kLooked, ) kCounters
};

typedef List<LG_PTR> Vertices;

// One of two lists, pointer by pointer: choosing between their addresses would put them in memory.
LG_DEVICE Vertices pick(bool second, const Vertices& a, const Vertices& b) {
  return {second ? b.vertex : a.vertex, second ? b.start : a.start, second ? b.degree : a.degree};
}

// Everything a traversal knows; pointers as in the kernel's parameters.
struct Search {
  i64 n;
  const LG_PTR *out_ptr, *in_ptr;
  const LG_IDX *out_idx, *in_idx;
  const LG_A *out_values, *in_values;
  LG_A a_iso;
  LG_F f_iso;
  const i32* hint;
  LG_F* f_values;
  LG_X0_T* x0;
  LG_X1_T* x1;
  LG_X2_T* x2;
  u32 shift;  // 1: found in level d, assigned d + 1
  u32* visited;
  i32* found_in;  // with sums, the level a vertex was found in: it takes products of that level on
  u32 *words_a, *words_b;     // presence words
  Vertices small_a, small_b;  // vertices of degree <= kSmall
  u64 *chunks_a, *chunks_b;   // (chunk number << 32) | vertex
  u64* counters;
  u32 solo;  // largest frontier that one block searches alone
  // Which of two buffers holds the frontier and which its successor. A flag, not exchanged
  // pointers: those would take registers, while these stay in the constants of the launch.
  bool words_turned, lists_turned;
  LG_LOGGED(LoopLog* log; u64 * memory; const u32* had[3];
            bool any_had;)  // the words of assigned vectors that had entries

  LG_DEVICE u32* frontier() const { return words_turned ? words_b : words_a; }
  LG_DEVICE u32* next() const { return words_turned ? words_a : words_b; }
  LG_DEVICE Vertices small() const { return pick(lists_turned, small_a, small_b); }
  LG_DEVICE Vertices next_small() const { return pick(lists_turned, small_b, small_a); }
  LG_DEVICE u64* chunks() const { return lists_turned ? chunks_b : chunks_a; }
  LG_DEVICE u64* next_chunks() const { return lists_turned ? chunks_a : chunks_b; }
};

LG_DEVICE u64* counter(const Search& s, u32 turn, Counter which) {
  return s.counters + (turn % 3 * kCounters + which) * kLine;
}

template <u32 what, class X>
LG_DEVICE void assign(X* x, i32 v, u32 depth, LG_F z) {
  if constexpr (what == 1) x[v] = cast<X>(i32(depth));
  if constexpr (what == 2 && !LG_SUM) x[v] = cast<X>(z);  // a sum is known at the end
}

#if LG_LOG
// The thread that logs: of the one warp that has the least to do where one block searches alone.
LG_DEVICE bool logs() { return block_index() == 0 && block_thread() == block_threads() - 1; }

// The sum of x[0 .. count), in that thread's warp alone.
LG_DEVICE u64 by_logging_warp(const u32* x, u32 count) {
  u64 sum = 0;
  if (block_warp() != block_warps() - 1) return sum;
  for (u32 k = lane_id(); k < count; k += 32) sum += x[k];
  return warp_reduce(sum, LgPlus());
}

// Count v, assigned in level `depth`, for the vectors that had entries, but not this one. Three
// levels take turns: others may be a level ahead of the thread that logs, and the next clears.
LG_DEVICE void count_new(const Search& s, i32 v, u32 depth) {
  if (!s.any_had) return;
  for (u32 k = 0; k < 3; ++k)
    if (s.had[k] && !has_entry(s.had[k], v)) atomic_add(&s.memory[kLogNew + depth % 3 * 3 + k], 1);
}

// Add the counts of level `depth`, whose assignments have been made.
LG_DEVICE void note_new(const Search& s, u32 depth) {
  if (!s.any_had) return;
  for (u32 k = 0; k < 3; ++k)
    if (s.had[k])
      s.log->now.added[k] += atomic_exch(&s.memory[kLogNew + depth % 3 * 3 + k], u64(0));
}

LG_DEVICE void begin_level(const Search& s, How how, u32 depth, u64 found, u64 leaving,
                           f32 unexplored) {
  s.log->begin(how, depth, found, leaving, unexplored > 0 ? u64(unexplored) : 0);
  if (s.shift) note_new(s, depth);
}

LG_DEVICE void end_level(const Search& s, u64 found, u64 edges) {
  if (!s.shift) note_new(s, u32(s.log->now.iteration));
  s.log->end(found, edges, 1 + (LG_X0 != 0) + (LG_X1 != 0) + (LG_X2 != 0));
}
#endif

// Vertex v enters the frontier of level `depth` with value z.
LG_DEVICE void discover(const Search& s, i32 v, u32 depth, LG_F z) {
  LG_LOGGED(count_new(s, v, depth);)
  if (LG_KEEP && !LG_SUM) s.f_values[v] = z;
  assign<LG_X0>(s.x0, v, depth, z);
  assign<LG_X1>(s.x1, v, depth, z);
  assign<LG_X2>(s.x2, v, depth, z);
}

LG_DEVICE LG_Z product(const Search& s, const LG_A* values, i64 entry, i32 inner, i32 outer) {
  return multiply<Chosen>(LG_KEEP ? s.f_values : nullptr, s.f_iso, values, s.a_iso, entry, inner,
                          outer);
}

// With sums: add the product to vertex j if it is open or was found in this level too, which finds
// vertices of level `at`; whether it is found now.
LG_DEVICE bool accumulate(const Search& s, i64 entry, i32 i, i32 j, i32 at) {
  const i32 before = load_cg(&s.found_in[j]);
  if (before < at) return false;
  atomic_accumulate<LG_ADD, LG_F>(&s.f_values[j],
                                  cast<LG_F>(product(s, s.out_values, entry, i, j)));
  if (before == at || atomic_cas(&s.found_in[j], kOpen, at) != kOpen) return false;
  atomic_or(&s.visited[j / 32], 1u << (j % 32));
  return true;
}

// Put the lanes' vertices into lists and counters of `turn`.
LG_DEVICE void enqueue(const Search& s, u32 turn, const Vertices& small, u64* chunks, bool won,
                       i32 v, LG_PTR start, LG_PTR stop) {
  enqueue(small, chunks, counter(s, turn, kNumSmall), counter(s, turn, kNumChunks), won, v, start,
          stop);
}

struct Tally {
  u64 found, edges;
  LG_LOGGED(u32 looked;)  // at edges, in a pull
};

// Follow one edge a lane, from i, where `valid`; new vertices go into the next lists. With `early`
// the place of a vertex' edges is loaded before it is known to be new: sooner, but more traffic.
LG_DEVICE void follow(const Search& s, u32 turn, u32 depth, bool early, bool valid, i64 entry,
                      i32 i, Tally* tally) {
  i32 j = 0;
  LG_PTR start = 0, stop = 0;
  bool won = false;
  if (valid) {
    j = i32(load_ro(&s.out_idx[entry]));
    const u32 bit = 1u << (j % 32);
    const u32 seen = LG_SUM ? 0 : load_cg(&s.visited[j / 32]);
    if (early) {
      start = load_ro(&s.out_ptr[j]);
      stop = load_ro(&s.out_ptr[j + 1]);
    }
    if constexpr (LG_SUM)
      won = accumulate(s, entry, i, j, i32(depth) + 1);
    else
      won = !(seen & bit) && !(atomic_or(&s.visited[j / 32], bit) & bit);
  }
  if (!warp_any(won)) return;
  if (won) {
    if (!early) {
      start = load_ro(&s.out_ptr[j]);
      stop = load_ro(&s.out_ptr[j + 1]);
    }
    if (early && start != stop) prefetch(&s.out_idx[start]);
    discover(s, j, depth + s.shift,
             LG_SUM ? LG_F(0) : cast<LG_F>(product(s, s.out_values, entry, i, j)));
    ++tally->found;
    tally->edges += u64(stop - start);
  }
  enqueue(s, turn + 1, s.next_small(), s.next_chunks(), won, j, start, stop);
}

// Push the frontier's lists.
LG_DEVICE void push(const Search& s, u32 turn, u32 depth, u64 num_small, u64 num_chunks,
                    Tally* tally) {
  const u64 warps = u64(global_warps());
  const bool early = num_small + num_chunks * 8 <= warps * 8;
  follow_lists(
      s.out_ptr, s.small(), s.chunks(), num_small, num_chunks,
      [&](bool valid, i64 p, i32 i) { follow(s, turn, depth, early, valid, p, i, tally); });
}

// Look at predecessors p .. end of vertex j, kBatch at a time so that their loads overlap, and at
// most `most` of them; with LG_SUM 0 until the first in the frontier. Returns where it stopped.
LG_DEVICE i64 look(const Search& s, i64 p, i64 end, i32 j, u32 most, bool* hit, LG_Z* sum) {
  const i64 limit = end - p > most ? p + most : end;
  for (; p < limit && (LG_SUM || !*hit); p += kBatch) {
    i32 i[kBatch];
    bool there[kBatch];
    for (u32 q = 0; q < kBatch; ++q) i[q] = p + q < limit ? i32(load_ro(&s.in_idx[p + q])) : -1;
    for (u32 q = 0; q < kBatch; ++q) there[q] = i[q] >= 0 && has_entry(s.frontier(), i[q]);
    for (u32 q = 0; q < kBatch; ++q) {
      if (!there[q] || (!LG_SUM && *hit)) continue;
      const LG_Z z = product(s, s.in_values, p + q, i[q], j);
      *sum = *hit ? add<LG_ADD>(*sum, z) : z;
      *hit = true;
    }
  }
  return p < limit ? p : limit;
}

// The same by the whole warp for one vertex, 128 predecessors at a time.
LG_DEVICE void look_together(const Search& s, i64 p, i64 end, i32 j, bool* hit, LG_Z* sum,
                             Tally* tally) {
  bool found = false;
  LG_Z mine = LG_ADD::identity<LG_Z>();
  for (; p < end; p += 128) {
    i32 i[4];
    bool there[4];
    for (u32 q = 0; q < 4; ++q) {
      const i64 at = p + q * 32 + lane_id();
      i[q] = at < end ? i32(load_ro(&s.in_idx[at])) : -1;
      LG_LOGGED(tally->looked += at < end;)
    }
    for (u32 q = 0; q < 4; ++q) there[q] = i[q] >= 0 && has_entry(s.frontier(), i[q]);
    for (u32 q = 0; q < 4; ++q) {
      if (!there[q] || (!LG_SUM && found)) continue;
      const LG_Z z = product(s, s.in_values, p + q * 32 + lane_id(), i[q], j);
      mine = found ? add<LG_ADD>(mine, z) : z;
      found = true;
    }
    if (!LG_SUM && warp_any(found)) break;
  }
  const u32 finders = warp_ballot(found);
  if (!finders) return;
  if constexpr (LG_SUM) {
    for (u32 step = 16; step; step /= 2) {
      const LG_Z other = warp_shfl_xor(mine, step);
      const bool other_found = warp_shfl_xor(found, step);
      if (other_found) mine = found ? add<LG_ADD>(mine, other) : other;
      found = found || other_found;
    }
  } else {
    mine = warp_shfl(mine, bit_ffs(finders) - 1);
  }
  *sum = LG_SUM && *hit ? add<LG_ADD>(*sum, mine) : mine;
  *hit = true;
}

// What a pull loads of 32 vertices before it looks at them.
struct Ahead {
  u32 seen;  // visited, or past the last vertex
  i32 hint;
  LG_PTR begin, end;
};

LG_DEVICE u32 visited_word(const Search& s, i64 w, i64 nwords) {
  return w < nwords ? s.visited[w] | ~entry_bits(nullptr, w, s.n) : 0xffffffffu;
}

LG_DEVICE Ahead ahead(const Search& s, i64 w, u32 seen) {
  Ahead a{seen, -1, 0, 0};
  if (!(seen >> lane_id() & 1)) {
    const i64 j = w * 32 + lane_id();
    if (!LG_SUM && s.hint) a.hint = load_ro(&s.hint[j]);
    a.begin = load_ro(&s.in_ptr[j]);
    a.end = load_ro(&s.in_ptr[j + 1]);
  }
  return a;
}

// Vertices whose many predecessors one warp would take long to look at: the whole block does.
struct Deferred {
  i64 begin[kDeferred], end[kDeferred];
  i32 vertex[kDeferred];
  u32 count;
  LG_Z value;
  u32 taken;  // whether `value` has been given
};

// Look at the deferred vertices, each by all warps of the block; ends with a barrier.
LG_DEVICE void look_as_block(const Search& s, Deferred* later, u32 depth, Tally* tally) {
  block_sync();
  const u32 count = later->count < kDeferred ? later->count : kDeferred;
  for (u32 k = 0; k < count; ++k) {
    const i32 j = later->vertex[k];
    if (block_thread() == 0) later->taken = 0;
    block_sync();
    bool found = false;
    for (i64 p = later->begin[k]; p < later->end[k]; p += block_threads()) {
      const i64 at = p + block_thread();
      const i32 i = at < later->end[k] ? i32(load_ro(&s.in_idx[at])) : -1;
      LG_LOGGED(tally->looked += i >= 0;)
      if (i >= 0 && has_entry(s.frontier(), i)) {
        found = true;
        if (!atomic_exch(&later->taken, 1u)) later->value = product(s, s.in_values, at, i, j);
      }
      if (block_any(found)) break;
    }
    block_sync();
    if (block_thread() == 0 && later->taken) {
      discover(s, j, depth + s.shift, cast<LG_F>(later->value));
      s.next()[j / 32] |= 1u << (j % 32);  // the block's own word, written before the barrier
      s.visited[j / 32] |= 1u << (j % 32);
      ++tally->found;
    }
    block_sync();
  }
  if (count && block_thread() == 0) later->count = 0;  // all have read it: there were barriers
}

// Pull into every vertex that is not visited: 32 vertices a warp, first the hint, then some
// predecessors by each lane, the rest by the whole warp.
LG_DEVICE void pull(const Search& s, u32 depth, Deferred* later, Tally* tally) {
  const i64 nwords = (s.n + 31) / 32;
  // Two words ahead the visited bits are loaded, one word ahead what those ask for.
  Ahead next = ahead(s, global_warp(), visited_word(s, global_warp(), nwords));
  u32 seen_after = visited_word(s, global_warp() + global_warps(), nwords);
  for (i64 w = global_warp(); w < nwords; w += global_warps()) {
    const Ahead now = next;
    next = ahead(s, w + global_warps(), seen_after);
    seen_after = visited_word(s, w + 2 * global_warps(), nwords);
    if (now.seen == 0xffffffffu) {
      if (lane_id() == 0) s.next()[w] = 0;
      continue;
    }
    const i32 j = i32(w * 32) + i32(lane_id());
    const bool wanted = !(now.seen >> lane_id() & 1);
    bool hit = false;
    LG_Z sum = LG_ADD::identity<LG_Z>();
    i64 p = now.begin;
    const i64 end = now.end;
    if (wanted) {
      if (now.hint >= 0 && has_entry(s.frontier(), now.hint)) {
        sum = product(s, s.in_values, 0, now.hint, j);
        hit = true;
        LG_LOGGED(++tally->looked;)
      } else {
        p = look(s, p, end, j, kLook, &hit, &sum);
        LG_LOGGED(tally->looked += u32(p - now.begin);)
      }
    }
    for (u32 rest = warp_ballot(wanted && (LG_SUM || !hit) && p < end); rest; rest &= rest - 1) {
      const u32 from = bit_ffs(rest) - 1;
      if (!LG_SUM && warp_shfl(end, from) - warp_shfl(p, from) > kMany) {
        u32 at = 0;
        if (lane_id() == from) {
          at = atomic_add(&later->count, 1u);
          if (at < kDeferred) {
            later->begin[at] = p;
            later->end[at] = end;
            later->vertex[at] = j;
          }
        }
        if (warp_shfl(at, from) < kDeferred) continue;
      }
      bool its_hit = warp_shfl(hit, from);
      LG_Z its_sum = warp_shfl(sum, from);
      look_together(s, warp_shfl(p, from), warp_shfl(end, from), warp_shfl(j, from), &its_hit,
                    &its_sum, tally);
      if (lane_id() == from) {
        hit = its_hit;
        sum = its_sum;
      }
    }
    const u32 bits = warp_ballot(hit);
    if (hit) {
      if (LG_SUM) s.f_values[j] = cast<LG_F>(sum);
      if (LG_SUM) s.found_in[j] = i32(depth) + 1;
      discover(s, j, depth + s.shift, cast<LG_F>(sum));
    }
    if (lane_id() == 0) {
      s.next()[w] = bits;
      s.visited[w] = now.seen | bits;
      tally->found += bit_popc(bits);
    }
  }
}

// One block searches alone, level after level, until the frontier is empty, large, or has a vertex
// of high degree; then it hands the frontier over to the next turn. Shared memory holds
// the frontier with the place of each vertex' edges, loaded while the vertex was being claimed.
LG_DEVICE void search_alone(const Search& s, u32 turn, u32 depth, u32 times, u64 num_small) {
  LG_DYNAMIC_SHARED(LG_PTR, starts);
  i32* const vertices = reinterpret_cast<i32*>(starts + 2 * s.solo);
  u32* const degrees = reinterpret_cast<u32*>(vertices + 2 * s.solo);
  LG_SHARED(u32, counts, 2);
  LG_SHARED(u32, is_large, 1);
  u32 side = 0;
  u32 count = u32(num_small);
  bool large = false;
  for (u32 k = block_thread(); k < count; k += block_threads()) {
    vertices[k] = load_cg(&s.small().vertex[k]);
    starts[k] = load_cg(&s.small().start[k]);
    degrees[k] = load_cg(&s.small().degree[k]);
  }
  if (block_thread() == 0) counts[0] = counts[1] = is_large[0] = 0;
  block_sync();
  while (count && count <= s.solo && !large && depth != times) {
    const u32 other = side ^ 1;
    LG_LOGGED(if (logs()) begin_level(s, kPushesAlone, depth, count, kUnknown, 0);)
    LG_LOGGED(const u64 followed = by_logging_warp(degrees + side * s.solo, count);)
    for (u32 k0 = block_warp() * 32; k0 < count; k0 += block_threads()) {
      const u32 k = k0 + lane_id();
      i32 i = 0;
      i64 p = 0, end = 0;
      if (k < count) {
        i = vertices[side * s.solo + k];
        p = starts[side * s.solo + k];
        end = p + degrees[side * s.solo + k];
      }
      // Four edges at a time, each step for all four before the next: a level's time is the length
      // of this chain of loads.
      for (; warp_any(p < end); p += 4) {
        i32 j[4];
        u32 bit[4], old[4];
        LG_PTR start[4], stop[4];
        bool open[4];
        for (u32 q = 0; q < 4; ++q) {
          open[q] = p + q < end;
          j[q] = open[q] ? i32(load_ro(&s.out_idx[p + q])) : 0;
        }
        for (u32 q = 0; q < 4; ++q) {
          bit[q] = 1u << (j[q] % 32);
          old[q] = open[q] ? LG_SUM ? 0 : load_cg(&s.visited[j[q] / 32]) : 0xffffffffu;
          start[q] = open[q] ? load_ro(&s.out_ptr[j[q]]) : 0;
          stop[q] = open[q] ? load_ro(&s.out_ptr[j[q] + 1]) : 0;
        }
        for (u32 q = 0; q < 4; ++q)
          if (!(old[q] & bit[q]))
            old[q] = LG_SUM ? accumulate(s, p + q, i, j[q], i32(depth) + 1) ? 0 : 0xffffffffu
                            : atomic_or(&s.visited[j[q] / 32], bit[q]);
        u32 winners[4], total = 0;
        for (u32 q = 0; q < 4; ++q) {
          winners[q] = warp_ballot(!(old[q] & bit[q]));
          total += bit_popc(winners[q]);
        }
        if (!total) continue;
        u32 at = 0;
        if (lane_id() == 0) at = atomic_add(&counts[other], total);
        at = warp_shfl(at, 0);
        for (u32 q = 0; q < 4; ++q) {
          const u32 mine = at + bit_popc(winners[q] & lanes_below());
          at += bit_popc(winners[q]);
          if (old[q] & bit[q]) continue;
          const u32 degree = u32(stop[q] - start[q]);
          if (degree) prefetch(&s.out_idx[start[q]]);  // it is expanded next
          if (degree > kSmall) is_large[0] = 1;
          discover(s, j[q], depth + s.shift,
                   LG_SUM ? LG_F(0) : cast<LG_F>(product(s, s.out_values, p + q, i, j[q])));
          if (mine < s.solo) {
            vertices[other * s.solo + mine] = j[q];
            starts[other * s.solo + mine] = start[q];
            degrees[other * s.solo + mine] = degree;
          } else {
            s.small().vertex[mine - s.solo] = j[q];  // read above, so free; handed over below
          }
        }
      }
    }
    block_sync();
    side = other;
    ++depth;
    count = counts[side];
    large = is_large[0];  // read between barriers, as all threads must decide alike
    block_sync();
    if (block_thread() == 0) counts[side ^ 1] = 0;
    block_sync();
    LG_LOGGED(if (logs()) end_level(s, count, followed);)  // while others search on
  }
  u64 edges = 0;
  for (u32 k0 = block_warp() * 32; k0 < count; k0 += block_threads()) {
    const u32 k = k0 + lane_id();
    i32 v = 0;
    LG_PTR start = 0, stop = 0;
    if (k < count) {
      v = k < s.solo ? vertices[side * s.solo + k] : load_cg(&s.small().vertex[k - s.solo]);
      start = s.out_ptr[v];
      stop = s.out_ptr[v + 1];
    }
    edges += u64(stop - start);
    enqueue(s, turn + 1, s.next_small(), s.next_chunks(), k < count, v, start, stop);
  }
  edges = block_reduce(edges, u64(0), LgPlus());
  if (block_thread() == 0) {
    *counter(s, turn + 1, kFound) = count;
    *counter(s, turn + 1, kEdges) = edges;
    *counter(s, turn + 1, kLevel) = depth;
  }
}

// Presence words of the frontier's lists. Ends with a barrier.
LG_DEVICE void lists_to_words(const Search& s, u64 num_small, u64 num_chunks,
                              GridBarrier* barrier) {
  const i64 nwords = (s.n + 31) / 32;
  for (i64 w = global_thread(); w < nwords; w += global_threads()) s.frontier()[w] = 0;
  grid_sync(barrier);
  for (u64 q = global_thread(); q < num_small; q += global_threads()) {
    const i32 v = load_cg(&s.small().vertex[q]);
    atomic_or(&s.frontier()[v / 32], 1u << (v % 32));
  }
  for (u64 q = global_thread(); q < num_chunks; q += global_threads()) {
    const u64 chunk = load_cg(&s.chunks()[q]);
    const i32 v = i32(u32(chunk));
    if (chunk >> 32 == 0) atomic_or(&s.frontier()[v / 32], 1u << (v % 32));
  }
  grid_sync(barrier);
}

// Lists of the frontier's presence words, in the counters of this turn. Ends with a barrier.
LG_DEVICE void words_to_lists(const Search& s, u32 turn, GridBarrier* barrier) {
  const i64 nwords = (s.n + 31) / 32;
  u64 edges = 0;
  for (i64 w0 = global_warp() * 32; w0 < nwords; w0 += global_warps() * 32) {
    const i64 w = w0 + lane_id();
    u32 bits = w < nwords ? load_cg(&s.frontier()[w]) : 0;
    while (warp_any(bits != 0)) {
      const bool there = bits != 0;
      i32 v = 0;
      LG_PTR start = 0, stop = 0;
      if (there) {
        v = i32(w * 32) + i32(bit_ffs(bits)) - 1;
        bits &= bits - 1;
        start = s.out_ptr[v];
        stop = s.out_ptr[v + 1];
      }
      edges += u64(stop - start);
      enqueue(s, turn, s.small(), s.chunks(), there, v, start, stop);
    }
  }
  edges = block_reduce(edges, u64(0), LgPlus());
  if (block_thread() == 0 && edges) atomic_add(counter(s, turn, kEdges), edges);
  grid_sync(barrier);
}

extern "C" __global__ void __launch_bounds__(LG_BLOCK, 1)
    traverse(i64 n, u64 nvals_a, const LG_PTR* __restrict__ out_ptr,
             const LG_IDX* __restrict__ out_idx, const LG_A* __restrict__ out_values,
             const LG_PTR* __restrict__ in_ptr, const LG_IDX* __restrict__ in_idx,
             const LG_A* __restrict__ in_values, LG_A a_iso, const i32* __restrict__ hint,
             const u32* __restrict__ empty, const u32* __restrict__ v_words,
             const i64* __restrict__ sources, const LG_F* __restrict__ source_values, LG_F f_iso,
             i64 source, u64 num_sources, LG_F* f_values, LG_X0_T* x0, LG_X1_T* x1, LG_X2_T* x2,
             u32* x0_words, u32* x1_words, u32* x2_words, u32 blank, u32* f_words, u32 shift,
             u32 times, u32 solo, f32 alpha, f32 beta, u32* visited, i32* found_in, u32* words_a,
             u32* words_b, i32* vertex_a, i32* vertex_b, LG_PTR* start_a, LG_PTR* start_b,
             u32* degree_a, u32* degree_b, u64* chunks_a, u64* chunks_b, u64* counters,
             GridBarrier* barrier, u64* result) {
  Search s{n,
           out_ptr,
           in_ptr,
           out_idx,
           in_idx,
           out_values,
           in_values,
           a_iso,
           f_iso,
           hint,
           f_values,
           x0,
           x1,
           x2,
           shift,
           visited,
           found_in,
           words_a,
           words_b,
           Vertices{vertex_a, start_a, degree_a},
           Vertices{vertex_b, start_b, degree_b},
           chunks_a,
           chunks_b,
           counters,
           solo,
           false,
           false};
  LG_SHARED(u64, block_tally, 2);
  LG_SHARED(Deferred, deferred, 1);
  Deferred& later = deferred[0];
  if (block_thread() == 0) block_tally[0] = block_tally[1] = later.count = 0;
  LG_LOGGED(LG_SHARED(LoopLog, log, 1); s.log = log; s.memory = result;
            if (logs()) s.log->open(result, blank & 8);)
  LG_LOGGED(s.had[0] = LG_X0 && !(blank & 1) ? x0_words : nullptr;)
  LG_LOGGED(s.had[1] = LG_X1 && !(blank & 2) ? x1_words : nullptr;)
  LG_LOGGED(s.had[2] = LG_X2 && !(blank & 4) ? x2_words : nullptr;)
  LG_LOGGED(s.any_had = s.had[0] || s.had[1] || s.had[2];)
  const i64 nwords = (n + 31) / 32;
  // Start: a vertex without predecessors needs no look, one that v has is not wanted.
  for (i64 w = global_thread(); w < nwords; w += global_threads()) {
    visited[w] = empty[w] | (v_words ? v_words[w] : 0);
    if (LG_X0 && (blank & 1)) x0_words[w] = 0;
    if (LG_X1 && (blank & 2)) x1_words[w] = 0;
    if (LG_X2 && (blank & 4)) x2_words[w] = 0;
  }
  if (LG_SUM)
    for (i64 v = global_thread(); v < n; v += global_threads()) {
      f_values[v] = cast<LG_F>(LG_ADD::identity<LG_Z>());
      found_in[v] = v_words && has_entry(v_words, v) ? 0 : kOpen;
    }
  for (i64 k = global_thread(); k < 3 * kCounters * kLine; k += global_threads())
    counters[k] = k == kFound * kLine ? num_sources : 0;
  grid_sync(barrier);
  u64 edges = 0;
  for (u64 q0 = u64(global_warp()) * 32; q0 < num_sources; q0 += u64(global_warps()) * 32) {
    const u64 q = q0 + lane_id();
    const bool there = q < num_sources;
    i32 v = 0;
    LG_PTR start = 0, stop = 0;
    if (there) {
      v = i32(sources ? sources[q] : source);
      start = out_ptr[v];
      stop = out_ptr[v + 1];
      const LG_F z = source_values ? source_values[q] : f_iso;
      if (LG_KEEP) f_values[v] = z;
      if (LG_SUM) found_in[v] = 0;
      if (shift && LG_SUM && LG_X0 == 2) x0[v] = cast<LG_X0_T>(z);
      if (shift && LG_SUM && LG_X1 == 2) x1[v] = cast<LG_X1_T>(z);
      if (shift && LG_SUM && LG_X2 == 2) x2[v] = cast<LG_X2_T>(z);
      if (shift) {
        atomic_or(&visited[v / 32], 1u << (v % 32));
        discover(s, v, 0, z);
        if (LG_X0) atomic_or(&x0_words[v / 32], 1u << (v % 32));
        if (LG_X1) atomic_or(&x1_words[v / 32], 1u << (v % 32));
        if (LG_X2) atomic_or(&x2_words[v / 32], 1u << (v % 32));
      }
    }
    edges += u64(stop - start);
    enqueue(s, 0, s.small(), s.chunks(), there, v, start, stop);
  }
  edges = block_reduce(edges, u64(0), LgPlus());
  if (block_thread() == 0 && edges) atomic_add(counter(s, 0, kEdges), edges);
  grid_sync(barrier);

  u32 turn = 0, depth = 0, pushes = 0, pulls = 0, calm = 0;
  bool listed = true;
  f32 unexplored = f32(nvals_a);
  u64 found = num_sources;
  while (found && depth != times) {
    if (!listed && f32(found) * beta < f32(n)) {
      words_to_lists(s, turn, barrier);
      listed = true;
    }
    const u64 num_small = load_volatile(counter(s, turn, kNumSmall));
    const u64 num_chunks = load_volatile(counter(s, turn, kNumChunks));
    const u64 leaving = load_volatile(counter(s, turn, kEdges));
    const f32 active = f32(leaving);
    if (listed) unexplored -= active;
    LG_LOGGED(if (logs())
                  begin_level(s, kPulls, depth, found, listed ? leaving : kUnknown, unexplored);)
    if (listed && active * alpha > unexplored) {
      lists_to_words(s, num_small, num_chunks, barrier);
      listed = false;
    }
    if (block_index() == 0 && block_thread() < kCounters)
      *counter(s, turn + 2, Counter(block_thread())) = 0;
    Tally tally{0, 0};
    // One block alone saves barriers but starts slowly: only once frontiers stay small.
    calm = listed && num_chunks == 0 && num_small <= solo ? calm + 1 : 0;
    const bool alone = calm > kCalm;
    if (alone) {
      if (block_index() == 0) search_alone(s, turn, depth, times, num_small);
      ++pushes;
    } else if (listed) {
      LG_LOGGED(if (logs()) s.log->now.how = kPushes;)
      push(s, turn, depth, num_small, num_chunks, &tally);
      ++pushes;
    } else {
      pull(s, depth, &later, &tally);
      if (!LG_SUM) look_as_block(s, &later, depth, &tally);
      s.words_turned = !s.words_turned;
      ++pulls;
      LG_LOGGED(const u64 looked = block_reduce(u64(tally.looked), u64(0), LgPlus());
                if (block_thread() == 0) atomic_add(counter(s, turn + 1, kLooked), looked);)
    }
    if (listed) s.lists_turned = !s.lists_turned;
    if (warp_any(tally.found != 0)) {
      tally.found = warp_reduce(tally.found, LgPlus());
      tally.edges = warp_reduce(tally.edges, LgPlus());
      if (lane_id() == 0) {
        atomic_add(&block_tally[0], tally.found);
        atomic_add(&block_tally[1], tally.edges);
      }
    }
    block_sync();
    if (block_thread() == 0) {  // exchanged: a plain load might be made by all threads beforehand
      const u64 block_found = atomic_exch(&block_tally[0], u64(0));
      const u64 block_edges = atomic_exch(&block_tally[1], u64(0));
      if (block_found) {
        atomic_add(counter(s, turn + 1, kFound), block_found);
        atomic_add(counter(s, turn + 1, kEdges), block_edges);
      }
    }
    grid_sync(barrier);
    ++turn;
    depth = alone ? u32(load_volatile(counter(s, turn, kLevel))) : depth + 1;
    found = load_volatile(counter(s, turn, kFound));
    LG_LOGGED(if (!alone && logs())
                  end_level(s, found,
                            s.log->now.how == kPulls ? load_volatile(counter(s, turn, kLooked))
                                                     : s.log->now.leaving);)
  }
  LG_LOGGED(if (logs()) s.log->close();)
  // A frontier that is left, because `times` is reached, has not got its assignments yet if they
  // come before the product in the loop.
  const bool left = found != 0;
  if (left && listed)
    lists_to_words(s, load_volatile(counter(s, turn, kNumSmall)),
                   load_volatile(counter(s, turn, kNumChunks)), barrier);

  // End: what is visited now and was not excluded has got its assignments.
  for (i64 w = global_thread(); w < nwords; w += global_threads()) {
    const u32 rest = left ? load_cg(&s.frontier()[w]) : 0;
    if (f_words) f_words[w] = rest;
    u32 reached = visited[w] & ~empty[w] & ~(v_words ? v_words[w] : 0) & entry_bits(nullptr, w, n);
    reached = shift ? reached & ~rest : reached | rest;
    if (LG_X0) x0_words[w] |= reached;
    if (LG_X1) x1_words[w] |= reached;
    if (LG_X2) x2_words[w] |= reached;
    if constexpr (LG_SUM) {
      for (u32 bits = reached; bits; bits &= bits - 1) {
        const i32 v = i32(w * 32) + i32(bit_ffs(bits)) - 1;
        if (LG_X0 == 2) x0[v] = cast<LG_X0_T>(f_values[v]);
        if (LG_X1 == 2) x1[v] = cast<LG_X1_T>(f_values[v]);
        if (LG_X2 == 2) x2[v] = cast<LG_X2_T>(f_values[v]);
      }
    }
  }
  if (global_thread() == 0) {
    result[0] = depth;
    result[1] = found;
    result[2] = pushes;
    result[3] = pulls;
    result[4] = listed;
    result[5] = turn;
  }
}
