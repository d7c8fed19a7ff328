// The grid search: all levels of one search as one cooperative kernel, without a host round trip.
//
// The loop it runs, for any semiring and any number of assignments (LG_X0 .. LG_X2):
//
//     while f has entries and depth < times:
//         x(f.S) << depth, or << f, or << a constant          for each assigned x
//         f(~v.S, replace=True) << f (+.x) A                  v is one of the x
//         depth += 1
//
// Each vertex enters f at most once, so its assignments are made when it is found. Where `times`
// leaves a frontier that the loop has not assigned yet, x gets no entry there, and the caller
// restores the values that x had; see save_values in fused/search_grid.py.
//
// The frontier is a list while it is pushed and presence words while it is pulled, or where many
// edges found it; a small one is searched by one block alone, or one cluster of blocks, level after
// level, in shared memory. So a frontier and its successor have each vertex once, and their lists
// share arrays of num_room and num_places, from both ends; chunks_b is the last place, which no
// chunk has.
//
// out_* is A by rows (a vertex' successors), in_* A by columns (its predecessors); the same arrays
// if A is symmetric. `hint`, if not null, has a predecessor of high degree for each vertex:
// most vertices that a pull reaches are reached through it (Hiragushi and Takahashi 2013 order all
// neighbours by degree; one alone does most of it and takes no second index array).
// `empty` has a bit for each vertex without predecessors, which a pull need not look at.
//
// Directions follow LG_RULE, as common/constants.cuh has it. A search in one direction reads one
// form of the matrix alone: the pointers of the other one, and what serves it, are null.
// num_targets vertices have predecessors, at most. If it `skips`, a level that can find nothing is
// not run; a rule that the user names has all levels.
//
// Work: every edge of the component at most once in push; in pull until the first hit of a vertex.
// Sources: direction by Beamer, Asanovic and Patterson, SC 2012; degree classes by Merrill, Garland
// and Grimshaw, PPoPP 2012; bitmap pull as in Hiragushi and Takahashi, ICA3PP 2013.
#include "search/grid_pull.cuh"
#include "search/grid_push.cuh"

const bool kTwice = LG_SUM ? kMayBeWide : kShares;  // whether a turn may have a second part
const f32 kDoubt = 1.5f;    // a wide push's estimate of edges may be so many times too large
const u32 kSmallTurns = 2;  // turns with a small frontier before one block goes on alone

// Under another rule than kByEdges: whether a frontier of `found` of n vertices is pulled, if the
// one before was pushed, or `pulled`.
LG_DEVICE bool pulls_by_rule(u32 found, i64 unvisited, i64 n, f32 alpha, bool pulled) {
  if (LG_RULE == kByUnvisited) return f32(found) / f32(unvisited) >= alpha;
  if (LG_RULE == kByDensity) return pulled || f32(found) / f32(n) >= alpha;
  return LG_RULE == kOnlyPulls;
}

extern "C" __global__ void __launch_bounds__(LG_BLOCK, 1) LG_CLUSTER_BLOCKS
    grid_search(i64 n, u64 nvals_a, const LG_PTR* __restrict__ out_ptr,
                const LG_IDX* __restrict__ out_idx, const LG_A* __restrict__ out_values,
                const LG_PTR* __restrict__ in_ptr, const LG_IDX* __restrict__ in_idx,
                const LG_A* __restrict__ in_values, LG_A a_iso, const i32* __restrict__ hint,
                const u32* __restrict__ empty, const u32* __restrict__ v_words,
                const i64* __restrict__ sources, const LG_F* __restrict__ source_values, LG_F f_iso,
                i64 source, u64 num_sources, LG_F* f_values, LG_X0_T* x0, LG_X1_T* x1, LG_X2_T* x2,
                u32* x0_words, u32* x1_words, u32* x2_words, u32 blank, u32* f_words, u32 shift,
                u32 times, u32 solo, u32 num_targets, u32 skips, f32 alpha, f32 beta, f32 gamma,
                f32 delta, u32* visited, i32* found_in, u32* words_a, u32* words_b, i32* vertex,
                LG_PTR* start, u32* degree, u32 num_room, u32 num_places, u64* chunks_a,
                u64* chunks_b, u64* counters, GridBarrier* barrier, u32 near,
                const LG_IDX* __restrict__ ranked_idx, const i32* __restrict__ rank, u32* counts,
                const u64* stop, u64* result) {
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
           Vertices{vertex, start, degree},
           Vertices{vertex, start, degree, -1, num_room, num_places},
           chunks_a,
           chunks_b,
           counters,
           solo,
           stop,
           false,
           false};
#if LG_SUM
  s.nvals = nvals_a;
  s.near = Near{near, near >= u32((n + 31) / 32), false, false};
  s.ranked_idx = ranked_idx;
  s.rank = rank;
  s.counts = counts;
#endif
  LG_SHARED(u32, found_by, LG_WARP);  // vertices that each warp has found
  LG_SHARED(u64, edges_by, LG_WARP);  // and their edges
  LG_SHARED(Shared, block, 1);
  LG_SHARED(Course, course, 1);
  if (block_thread() == 0) {
    block->words = block->count = block->there = 0;
    course->unexplored[1] = course->unexplored[2] = f32(nvals_a);
  }
  LG_LOGGED(LG_SHARED(LoopLog, log, 1); s.log = log; s.memory = result;
            if (logs()) s.log->open(result, blank & kNewLog);)
  LG_LOGGED(s.had[0] = LG_X0 && !(blank & 1) ? x0_words : nullptr;)
  LG_LOGGED(s.had[1] = LG_X1 && !(blank & 2) ? x1_words : nullptr;)
  LG_LOGGED(s.had[2] = LG_X2 && !(blank & 4) ? x2_words : nullptr;)
  const i64 nwords = (n + 31) / 32;
  // Start: a vertex without predecessors needs no look, one that v has is not wanted, and bits
  // after the last vertex are none. A single source is visited at once, without a barrier.
  const bool at_once = !LG_SUM && !LG_HAD && !sources;
  for (i64 w = global_thread(); w < nwords; w += global_threads()) {
    const u32 first = at_once && shift && w == source / 32 ? 1u << (source % 32) : 0;
    visited[w] = first | (LG_RULE == kOnlyPushes ? 0 : empty[w]) | (v_words ? v_words[w] : 0) |
                 ~entry_bits(nullptr, w, n);
    // While lists hold the frontier, its words are empty.
    s.frontier()[w] = LG_RULE == kOnlyPulls && at_once && num_sources && w == source / 32
                          ? 1u << (source % 32)
                          : 0;
    if (LG_X0 && (blank & 1)) x0_words[w] = first;
    if (LG_X1 && (blank & 2)) x1_words[w] = first;
    if (LG_X2 && (blank & 4)) x2_words[w] = first;
  }
  if (LG_SUM)
    for (i64 v = global_thread(); v < n; v += global_threads()) {
      f_values[v] = empty_sum<LG_ADD, LG_F>();
      found_in[v] = v_words && has_entry(v_words, v) ? 0 : kOpen;
      if (LG_RANKS) counts[v] = 0;
    }
  if (LG_RANKS && global_thread() == 0) counts[n] = 0;
  if (block_index() == 0)
    for (u32 k = block_thread(); k < kTurns * kCounters * kCounterStride; k += block_threads())
      counters[k] = k == kFound * kCounterStride ? num_sources : 0;
  if (at_once)
    block_sync();  // the first block goes on with what is its own
  else
    grid_sync(barrier);
  u64 edges = 0;
  for (u64 q0 = u64(global_warp()) * 32; q0 < num_sources; q0 += u64(global_warps()) * 32) {
    const u64 q = q0 + lane_id();
    const bool there = q < num_sources;
    i32 v = 0;
    LG_PTR start = 0, stop = 0;
    if (there) {
      v = i32(sources ? sources[q] : source);
      if (LG_RULE != kOnlyPulls) {
        start = out_ptr[v];
        stop = out_ptr[v + 1];
      } else if (!at_once) {
        atomic_or(&s.frontier()[v / 32], 1u << (v % 32));
      }
      const LG_F z = source_values ? source_values[q] : f_iso;
      if (LG_KEEP) f_values[v] = z;
      if (LG_SUM) found_in[v] = 0;
      if (shift && LG_SUM && LG_X0 == kValue) x0[v] = cast<LG_X0_T>(z);
      if (shift && LG_SUM && LG_X1 == kValue) x1[v] = cast<LG_X1_T>(z);
      if (shift && LG_SUM && LG_X2 == kValue) x2[v] = cast<LG_X2_T>(z);
      if (shift) {
        atomic_or(&visited[v / 32], 1u << (v % 32));
        discover(s, v, 0, z);
        if (LG_X0) atomic_or(&x0_words[v / 32], 1u << (v % 32));
        if (LG_X1) atomic_or(&x1_words[v / 32], 1u << (v % 32));
        if (LG_X2) atomic_or(&x2_words[v / 32], 1u << (v % 32));
      }
    }
    edges += u64(stop - start);
    if (LG_RULE != kOnlyPulls) enqueue(s, 0, s.small(), s.chunks(), there, v, start, stop);
  }
  edges = block_reduce(edges, u64(0), LgPlus());
  if (block_thread() == 0 && edges) atomic_add(counter(s, 0, kEdges), edges);
  grid_sync(barrier);

  u32 turn = 0, depth = 0, small_turns = 0;
#if LG_RANKS
  bool first_pull = true;  // later ones would find counts of vertices before
#endif
  bool listed = LG_RULE != kOnlyPulls;  // in lists, with its edges counted; else in words
  bool pushed = false;                  // words that a push has found
  i64 unvisited = n;
  Frontier now = frontier_of(s, turn);
  const bool symmetric = out_ptr == in_ptr;
  while (now.found && depth != times && !now.stops) {
    if (LG_RULE == kByUnvisited) unvisited -= now.found;
    f32 unexplored = course->unexplored[(turn + 2) % 3] - (listed ? f32(now.edges) : 0);
    // Of levels that one block searched alone the last is counted: fewer may be left then.
    const u32 left_now = turn ? course->left[turn % 2 ^ 1] - now.found
                              : left_to_find(s, symmetric, num_targets, now.found, now.edges);
    // From words back to lists, which counts the frontier's edges: where a pull has found few, of
    // all vertices or of those that it looked for, and where a wide push has, or may have: its
    // edges led to the same few vertices.
    bool returns = false;  // it is not pulled again at once
    if (!listed && (!skips || left_now) &&
        (LG_RULE != kByEdges ? !pulls_by_rule(now.found, unvisited, n, alpha, true)
         : pushed            ? f32(now.found) * gamma <= kDoubt * unexplored
                             : f32(now.found) * beta < f32(n) ||
                                   (!LG_SUM && in_vain(now.found, left_now, n, delta)))) {
      words_to_lists(s, turn, barrier);
      now = frontier_of(s, turn);
      unexplored -= f32(now.edges);
      listed = true;
      returns = !LG_SUM && !pushed;
    }
    if (block_thread() == 0) {
      course->left[turn % 2] = left_now;
      course->unexplored[turn % 3] = unexplored;
    }
    const f32 active = f32(now.edges);
    LG_LOGGED(if (logs()) begin_level(s, kPulls, depth, now.found, listed ? now.edges : kUnknown,
                                      LG_RULE == kByUnvisited ? f32(unvisited) : unexplored);)
    if (skips && finds_nothing(s, symmetric, depth, left_now, listed, now.edges, now.found)) {
      LG_LOGGED(if (logs()) {
        s.log->now.how = kFindsNothing;
        end_level(s, 0, 0);
      })
      ++depth;
      now.found = 0;
      break;
    }
    const bool wide = listed && (LG_SUM || grows(*course, turn, active, unexplored, delta));
    bool fresh = pushed && !listed;  // words that no pull has read
    if (listed && !returns &&
        (LG_RULE == kByEdges ? wide && active * alpha > unexplored
                             : pulls_by_rule(now.found, unvisited, n, alpha, false))) {
      lists_to_words(s, now, barrier);
      listed = false;
      fresh = true;
    }
#if LG_SUM
    if (fresh) {
      s.near.copied = near && unexplored * kMostLeft > f32(nvals_a);
#if LG_RANKS
      s.near.counts = s.near.copied && first_pull && !load_cg(&counts[n]);
      if (s.near.counts) copy_counts(s);
      first_pull = false;
#endif
      if (s.near.copied && !s.near.counts) copy_frontier(s);
    }
#endif
    // So many edges find a frontier that alpha is likely to pull, so its words are enough, and its
    // edges are not counted. All threads of a block write the same.
    course->makes = what_it_makes(listed && wide && active * gamma > unexplored, active, n);
    if (block_index() == 0 && block_thread() < kCounters)
      *counter(s, turn + 2, Counter(block_thread())) = 0;
    Tally tally{0, 0};
    // One block or cluster alone saves barriers but starts slowly: only once frontiers stay small.
    const bool few = now.num_chunks == 0 && now.num_small <= LG_CLUSTER * solo;
    small_turns = listed && few ? small_turns + 1 : 0;
    const bool alone = small_turns > kSmallTurns;
    if (alone) {
      if (now.num_small <= most_alone(s)) {
        if (is_last_block()) search_alone<1>(s, turn, depth, times, now.num_small);
      } else if (LG_CLUSTER > 1 && is_last_cluster()) {
        search_alone<LG_CLUSTER>(s, turn, depth, times, now.num_small);
      }
    } else if (listed) {
      LG_LOGGED(if (logs()) s.log->now.how =
                    course->makes != kMakesLists ? kPushesIntoWords : kPushes;)
      push(s, turn, depth, now, &course->makes, &tally);
    } else {
      const auto leave = [&](u32 w, u32 found) { s.next()[w] = found; };
      if (LG_SPREAD) block->count = turn + 1;  // by each thread, for itself
      pull(s, depth, block, &tally, leave);
#if LG_SUM || !LG_SPREAD
      if (LG_SPREAD) grid_sync(barrier);
      pull_deferred(s, depth, block, &tally, leave);
#endif
#if LG_SUM
      s.near.copied = s.near.counts = false;
#endif
    }
    if (!alone && looks_seldom(turn) && global_thread() == 0)
      look(stop, counter(s, turn + 1, kFound));
    const bool pulls = !listed;
    if (listed) s.lists_turned = !s.lists_turned;
    pushed = kMayBeWide && !alone && course->makes != kMakesLists;
    if (pushed) listed = false;
    const bool unassigned = kMayLeave && pushed && course->makes == kUnassigned;
    // Once more where a pull has left parts, or a push that adds up has found words.
    for (bool again = false;; again = true) {
#if LG_SPREAD && !LG_SUM
      if (again) pull_parts(s, depth, now.parts, &tally);
#elif LG_SUM
      if (kMayBeWide && again)
        discover_words(s, s.frontier(), depth + s.shift, i32(depth) + 1, &tally);
#endif
      LG_LOGGED(if (pulls) {
        const u64 looked = block_reduce(u64(tally.looked), u64(0), LgPlus());
        if (block_thread() == 0) atomic_add(looked_at(s, turn), looked);
      })
      if (warp_any(tally.found != 0)) {
        tally.found = warp_reduce(tally.found, LgPlus());
        tally.edges = warp_reduce(tally.edges, LgPlus());
      }
      if (lane_id() == 0) {
        found_by[block_warp()] = tally.found;
        edges_by[block_warp()] = tally.edges;
      }
      block_sync();
      if (block_warp() == 0) {
        const bool is_warp = lane_id() < block_warps();
        const u32 found = warp_reduce(is_warp ? found_by[lane_id()] : 0, LgPlus());
        const u64 edges = warp_reduce(is_warp ? edges_by[lane_id()] : 0, LgPlus());
        if (lane_id() == 0 && found) {
          atomic_add(counter(s, turn + 1, kFound), u64(found));
          atomic_add(counter(s, turn + 1, kEdges), edges);
        }
      }
      grid_sync(barrier);
      if (!kTwice) break;
      now = frontier_of(s, turn + 1);
      if (again || !(LG_SUM ? pushed : pulls && now.parts)) break;
      tally = Tally{0, 0};
    }
    if (pulls) s.words_turned = !s.words_turned;
    if (unassigned) discover_words(s, s.frontier(), depth + s.shift);
    ++turn;
    depth = alone ? u32(load_volatile(counter(s, turn, kLevel))) : depth + 1;
    if (!kTwice) now = frontier_of(s, turn);  // above it would take registers
    LG_LOGGED(if (!alone && logs())
                  end_level(s, now.found,
                            s.log->now.how == kPulls ? atomic_exch(looked_at(s, turn - 1), u64(0))
                                                     : s.log->now.frontier_edges);)
  }
  LG_LOGGED(if (logs()) s.log->close();)
  // A frontier that is left, because `times` is reached or the host stops it, has not got its
  // assignments yet if they come before the product in the loop.
  const bool rests = now.found != 0;
  if (rests && listed) lists_to_words(s, now, barrier);

  // End: what is visited now and was not excluded has got its assignments.
  each_tile(n, [&](i64 w, bool mine) {
    u32 reached = 0;
    if (mine) {
      const u32 rest = rests ? load_cg(&s.frontier()[w]) : 0;
      if (f_words) f_words[w] = rest;
      reached = visited[w] & ~(LG_RULE == kOnlyPushes ? 0 : empty[w]) &
                ~(v_words ? v_words[w] : 0) & entry_bits(nullptr, w, n);
      reached = shift ? reached & ~rest : reached | rest;
      if (LG_X0) x0_words[w] |= reached;
      if (LG_X1) x1_words[w] |= reached;
      if (LG_X2) x2_words[w] |= reached;
    }
    if constexpr (LG_SUM && (LG_X0 == kValue || LG_X1 == kValue || LG_X2 == kValue))
      each_words(reached, w, [&](const u32(&from)[kWords], const i64(&v)[kWords]) {
        bool there[kWords];
        LG_F z[kWords];
        for (u32 q = 0; q < kWords; ++q) {
          const u32 bits = warp_shfl(reached, from[q] % LG_WARP);
          there[q] = from[q] < LG_WARP && (bits >> lane_id() & 1);
          z[q] = f_values[there[q] ? v[q] : 0];
        }
        for (u32 q = 0; q < kWords; ++q) {
          if (!there[q]) continue;
          if (LG_X0 == kValue) x0[v[q]] = cast<LG_X0_T>(z[q]);
          if (LG_X1 == kValue) x1[v[q]] = cast<LG_X1_T>(z[q]);
          if (LG_X2 == kValue) x2[v[q]] = cast<LG_X2_T>(z[q]);
        }
      });
  });
  if (global_thread() == 0) {
    result[0] = depth;
    result[kLeft] = now.found;
  }
}
