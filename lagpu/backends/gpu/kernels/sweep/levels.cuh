// A sweep over the levels of a search as one kernel, the farthest level first: over a vector by a
// cooperative grid, over a k x n bitmap matrix row by row, each by one thread block alone.
//
// The body it runs; its statements are written as one function of a vertex:
//
//     for here, above in sweep(levels):
//         ... at here          element-wise: x gets entries there and nowhere else
//         y(above.S, replace=True) << x (+.x) A      one product, or with A'
//         ... at above         element-wise
//
// A vertex has one level, so it is visited once: it sums over its matrix entries whose x was made
// in the level before, runs the statements at `above`, then those at `here` of the next iteration,
// all in one thread. Only x is read by others, so a level ends with one barrier.
// marks[v] is the level of v once x has an entry there, 0 before: level 0 is never `here`. Where
// entries are in the order of levels there are ranks in place of marks.
//
// order has the vertices by level, rising in each; level k is at offsets[k] .. offsets[k + 1].
// Small levels are run by one block alone with barriers of a block; others by the whole grid: short
// columns by a lane each, longer ones by a warp, the longest by a block. Sums need no atomics, so
// those of floats do not depend on the order of threads.
//
// Rows of a bitmap matrix share nothing but presence words, so a sweep of many rows has no barrier
// of the grid: it takes hardly longer than that of one row, as long as each has a multiprocessor.
//
// Work: each vertex with a level and each entry of its column once, in each row.
// Source: Brandes 2001 (the backward sweep); degree classes by Merrill, Garland and Grimshaw, PPoPP
// 2012.
#ifndef LAGPU_SWEEP_LEVELS_CUH
#define LAGPU_SWEEP_LEVELS_CUH
#include "sweep/vertex.cuh"
#ifndef LG_BLOCK  // threads a block
#define LG_BLOCK 1024
#endif

// A level that one block runs alone. More would wait for what one multiprocessor can gather from
// L2, for longer than the barrier of the grid takes that it saves.
const i64 kSoloVertices = LG_BLOCK / 2;
const u32 kSoloEntries = 4 * LG_BLOCK;
const u32 kBatch = 4;            // entries a lane looks at at once, so that their loads overlap
const u32 kLane = 16;            // entries of a column that one lane sums alone: four rounds
const i64 kLong = 4 * LG_BLOCK;  // from which the whole block does: one round, and 32 of a warp
const u32 kDeferred = LG_BLOCK / 16;  // such columns a block keeps for later; warps sum the others

// ---- the product

// A vertex with its column, and its number in the order.
template <class S, class AT>
struct Place {
  i32 v;  // -1 for none
  typename AT::Rank rank;
  typename S::PTR begin, end;
};

// Columns that are summed by the whole block. Levels count by turns, so that a warp may begin the
// next one while others still read how many there are in this.
template <class S, class AT>
struct Later {
  Place<S, AT> place[kDeferred];
  Entry<typename S::Z> partial[LG_WARP];
  u32 count[2];
};

// All that does not change in a sweep. `a` has the columns of the outputs, `x` the operand's
// values; order and offsets are those of one row.
template <class S, class AT>
struct Swept {
  Columns<S> a;
  const typename S::U* x;
  const i32* order;
  const typename AT::Offset* offsets;
  u32* entries;  // of the small levels' columns, where blocks share a sweep
  AT at;
};

template <class S>
LG_DEVICE Entry<typename S::Z> joined(Entry<typename S::Z> x, Entry<typename S::Z> y) {
  typedef typename S::Z Z;
  if (!y.there) return x;
  return {true, x.there ? add<typename S::ADD, Z>(x.value, y.value) : y.value};
}

// The sum over entries p, p + step, ... before `end` of column v, of those made in level d.
template <class S, class AT>
LG_DEVICE Entry<typename S::Z> sum_entries(const Swept<S, AT>& s, i64 p, i64 end, u32 step, i32 v,
                                           u32 d) {
  typedef typename S::Z Z;
  const auto from = s.at.from(d);
  Entry<Z> sum{false, S::ADD::template identity<Z>()};
  for (; p < end; p += i64(kBatch) * step) {
    i32 i[kBatch];
    typename AT::Seen seen[kBatch];
    bool there[kBatch];
    typename S::U x[kBatch];
    for (u32 q = 0; q < kBatch; ++q) {
      const i64 at = p + i64(q) * step;  // after the end p again: no load waits for a branch
      i[q] = i32(load_ro(&s.a.idx[at < end ? at : p]));
    }
    for (u32 q = 0; q < kBatch; ++q) seen[q] = s.at.see(i[q]);
    for (u32 q = 0; q < kBatch; ++q) there[q] = s.at.is_from(seen[q], from);
    for (u32 q = 1; q < kBatch; ++q) there[q] = there[q] && p + i64(q) * step < end;
    if constexpr (AT::in_order) {  // the values are on their way meanwhile
      for (u32 q = 0; q < kBatch; ++q)
        if (there[q]) x[q] = s.x[s.at.place(i[q], seen[q])];
      for (u32 q = 0; q < kBatch; ++q) there[q] = there[q] && s.at.has_x(s.at.place(i[q], seen[q]));
    }
    for (u32 q = 0; q < kBatch; ++q) {
      if (!there[q]) continue;
      const Z product = multiply<S>(
          AT::in_order ? nullptr : s.x, AT::in_order ? x[q] : typename S::U(0), s.a.values, s.a.iso,
          p + i64(q) * step, i[q], v, s.at.place(i[q], seen[q]), s.at.row());
      sum = joined<S>(sum, {true, product});
    }
    if (takes_first<S> && sum.there) break;
  }
  return sum;
}

// The sum of the lanes' sums, on every lane; which of `any` differs.
template <class S>
LG_DEVICE Entry<typename S::Z> sum_lanes(Entry<typename S::Z> sum) {
  for (u32 step = LG_WARP / 2; step; step /= 2) {
    const typename S::Z value = warp_shfl_xor(sum.value, step);
    const bool there = warp_shfl_xor(sum.there, step);
    sum = joined<S>(sum, {there, value});
  }
  return sum;
}

// ---- levels

// A vertex that a lane is to visit, and its number in the order.
template <class AT>
struct Spot {
  i32 v;  // -1 for none
  typename AT::Rank rank;
};

template <class S, class AT>
LG_DEVICE Place<S, AT> place_of(const Swept<S, AT>& s, const Spot<AT>& of) {
  if (of.v < 0) return {-1, of.rank, 0, 0};
  return {of.v, of.rank, load_ro(&s.a.ptr[of.v]), load_ro(&s.a.ptr[of.v + 1])};
}

// How many vertices a warp takes of so many: fewer where that keeps more warps busy.
LG_DEVICE u32 group_of(i64 count, i64 warps) {
  u32 group = LG_WARP;
  while (group > 1 && count <= warps * (group / 2)) group /= 2;
  return group;
}

// The lane's vertex of the group at q, if there is one.
template <class S, class AT>
LG_DEVICE Spot<AT> vertex_at(const Swept<S, AT>& s, i64 first, i64 last, i64 q, u32 group) {
  const i64 k = first + q + lane_id();
  return {lane_id() < group && k < last ? load_ro(&s.order[k]) : -1, AT::rank(k)};
}

// Visit the lanes' vertices, of level d; later, if not null, gets columns for the whole block.
template <class S, class AT, class Visit>
LG_DEVICE void visit_group(const Swept<S, AT>& s, const Place<S, AT>& mine, u32 d, bool pulls,
                           Later<S, AT>* later, Visit visit) {
  typedef typename S::Z Z;
  typedef typename S::PTR PTR;
  bool here = mine.v >= 0;
  Entry<Z> sum{false, Z(0)};
  if (pulls) {
    const bool is_short = here && mine.end - mine.begin <= PTR(kLane);
    if (is_short) sum = sum_entries(s, mine.begin, mine.end, 1, mine.v, d + 1);
    for (u32 rest = warp_ballot(here && !is_short); rest; rest &= rest - 1) {
      const u32 lane = bit_ffs(rest) - 1;
      const i64 begin = warp_shfl(mine.begin, lane), end = warp_shfl(mine.end, lane);
      const bool is_long = later && end - begin >= kLong;
      if (is_long) {
        u32 at = 0;
        if (lane_id() == lane) at = atomic_add(&later->count[d & 1], 1u);
        at = warp_shfl(at, lane);
        if (at < kDeferred) {
          if (lane_id() == lane) {
            later->place[at] = mine;
            here = false;
          }
          continue;
        }
      }
      // In the order of the whole block: which columns found a place is no matter of the sum.
      const u32 parts = is_long ? block_warps() : 1;
      Entry<Z> total{false, Z(0)};
      for (u32 w = 0; w < parts; ++w)
        total = joined<S>(
            total, sum_lanes<S>(sum_entries(s, begin + w * LG_WARP + lane_id(), end,
                                            parts * LG_WARP, warp_shfl(mine.v, lane), d + 1)));
      if (lane_id() == lane) sum = total;
    }
  }
  if (here) visit(mine, d, sum);
}

// Visit the vertices that were put off, each by the whole block; begins with a barrier of the
// block, and ends with one if there are any.
template <class S, class AT, class Visit>
LG_DEVICE void visit_later(const Swept<S, AT>& s, u32 d, Later<S, AT>* later, Visit visit) {
  block_sync();
  const u32 most = later->count[d & 1], count = most < kDeferred ? most : kDeferred;
  for (u32 k = 0; k < count; ++k) {
    const Place<S, AT> one = later->place[k];
    const auto mine = sum_lanes<S>(sum_entries(s, i64(one.begin) + block_thread(), i64(one.end),
                                               block_threads(), one.v, d + 1));
    if (lane_id() == 0) later->partial[block_warp()] = mine;
    block_sync();
    if (block_thread() == 0) {
      auto sum = later->partial[0];
      for (u32 w = 1; w < block_warps(); ++w) sum = joined<S>(sum, later->partial[w]);
      visit(one, d, sum);
      later->count[d & 1] = 0;  // all have read it
    }
    block_sync();
  }
}

// Whether one block runs a level alone.
template <class S, class AT>
LG_DEVICE bool is_small(const Swept<S, AT>& s, i64 d) {
  return s.offsets[d + 1] - s.offsets[d] <= kSoloVertices && s.entries[d] <= kSoloEntries;
}

// One block visits levels from d on alone, one after the other, while goes(level); `last` is the
// deepest, and `later`, if not null, is for the longest columns. Returns the level that follows.
// What the next level asks for first is loaded before this one's barrier: the time of a level is
// the length of its chain of loads. fetch(place) has the vectors' values there brought near.
template <class S, class AT, class Goes, class Visit, class Fetch>
LG_DEVICE i64 visit_alone(const Swept<S, AT>& s, i64 d, i64 last, Later<S, AT>* later, Goes goes,
                          Visit visit, Fetch fetch) {
  const i64 warps = block_warps();
  const auto first_vertex = [&](i64 level) {
    if (level < 0) return Spot<AT>{-1, AT::rank(0)};
    const i64 first = s.offsets[level], end = s.offsets[level + 1];
    const u32 group = group_of(end - first, warps);
    return vertex_at(s, first, end, i64(block_warp()) * group, group);
  };
  Place<S, AT> now = place_of(s, first_vertex(d));
  Spot<AT> after = first_vertex(d - 1);
  for (; d >= 0 && goes(d); --d) {
    const Place<S, AT> next = place_of(s, after);
    after = first_vertex(d - 2);
    const i64 first = s.offsets[d], end = s.offsets[d + 1];
    const u32 group = group_of(end - first, warps);
    i64 q = i64(block_warp()) * group;
    if (q < end - first) visit_group(s, now, u32(d), d < last, later, visit);
    for (q += warps * group; q < end - first; q += warps * group)
      visit_group(s, place_of(s, vertex_at(s, first, end, q, group)), u32(d), d < last, later,
                  visit);
    if (next.end > next.begin) prefetch(&s.a.idx[next.begin]);
    if (next.v >= 0) fetch(next);
    now = next;
    if (later) {
      visit_later(s, u32(d), later, visit);
    } else {
      block_sync();
    }
  }
  return d;
}

// One block visits all vertices of a row, from its last level on, -1 if it has none. Begins with a
// barrier of the block.
template <class S, class AT, class Visit, class Fetch>
LG_DEVICE void visit_row(const Swept<S, AT>& s, i64 last, Later<S, AT>* later, Visit visit,
                         Fetch fetch) {
  if (block_thread() == 0) later->count[0] = later->count[1] = 0;
  block_sync();
  visit_alone(s, last, last, later, [](i64) { return true; }, visit, fetch);
}

// Visit all vertices, the deepest level first; visit(place, d, sum) is called once for each, by one
// thread. Marks are 0 and `entries` too; begins with a barrier. `level` has the level of each
// place of `order`, of `count`; `reached` is a word for the block that goes on alone.
template <class S, class AT, class Visit, class Fetch>
LG_DEVICE void visit_levels(const Swept<S, AT>& s, const i32* level, i64 count, i64 deepest,
                            i64* reached, Later<S, AT>* later, GridBarrier* barrier, Visit visit,
                            Fetch fetch) {
  if (block_thread() == 0) later->count[0] = later->count[1] = 0;
  grid_sync(barrier);
  // Weigh the levels that are small by their vertices.
  for (i64 k0 = global_warp() * LG_WARP; k0 < count; k0 += global_warps() * LG_WARP) {
    const i64 k = k0 + lane_id();
    const i32 d = k < count ? load_ro(&level[k]) : -1;
    u32 length = 0;
    if (d >= 0 && s.offsets[d + 1] - s.offsets[d] <= kSoloVertices) {
      const Place<S, AT> place = place_of(s, Spot<AT>{load_ro(&s.order[k]), AT::rank(k)});
      const i64 entries = i64(place.end) - i64(place.begin);
      length = entries < kSoloEntries ? u32(entries) : kSoloEntries + 1;
    }
    const i32 one = warp_shfl(d, 0);
    if (warp_all(d == one)) {  // most warps: one atomic instead of 32
      length = warp_reduce(length, LgPlus());
      if (lane_id() == 0 && length) atomic_add(&s.entries[one], length);
    } else if (length) {
      atomic_add(&s.entries[d], length);
    }
  }
  grid_sync(barrier);
  const i64 warp = i64(block_warp()) * grid_blocks() + block_index();
  const auto first_vertex = [&](i64 level) {
    if (level < 0) return Spot<AT>{-1, AT::rank(0)};
    const i64 first = s.offsets[level], last = s.offsets[level + 1];
    const u32 group = group_of(last - first, global_warps());
    return vertex_at(s, first, last, warp * group, group);
  };
  // As when one block is alone, what a level asks for first is loaded during the one before.
  Place<S, AT> now = place_of(s, first_vertex(deepest));
  Spot<AT> after = first_vertex(deepest - 1);
  for (i64 d = deepest; d >= 0;) {
    if (is_small(s, d)) {
      if (block_index() == 0) {
        const i64 next_level = visit_alone(
            s, d, deepest, static_cast<Later<S, AT>*>(nullptr),
            [&](i64 level) { return is_small(s, level); }, visit, fetch);
        if (block_thread() == 0) *reached = next_level;
      }
      grid_sync(barrier);
      d = load_volatile(reached);  // written again only after the barrier of a large level
      now = place_of(s, first_vertex(d));
      after = first_vertex(d - 1);
    } else {
      const Place<S, AT> next = place_of(s, after);
      after = first_vertex(d - 2);
      const i64 first = s.offsets[d], last = s.offsets[d + 1];
      const u32 group = group_of(last - first, global_warps());
      i64 q = warp * group;
      if (q < last - first) visit_group(s, now, u32(d), d < deepest, later, visit);
      for (q += global_warps() * group; q < last - first; q += global_warps() * group)
        visit_group(s, place_of(s, vertex_at(s, first, last, q, group)), u32(d), d < deepest, later,
                    visit);
      if (next.begin < next.end) {
        prefetch(&s.a.idx[next.begin]);
        fetch(next);
      }
      now = next;
      visit_later(s, u32(d), later, visit);
      grid_sync(barrier);
      --d;
    }
  }
}

#endif  // LAGPU_SWEEP_LEVELS_CUH
