// The per-source search: searches of many sources, each by one thread block alone.
//
// The loop it runs, for any semiring and any number of assignments (LG_X0 .. LG_X2), all k x n:
//
//     while f has entries and depth < times:
//         x(f.S) << depth, or << f, or << a constant          for each assigned x
//         f(~v.S, replace=True) << f (+.x) A                  v is one of the x
//         depth += 1
//
// Where every product has one known value (LG_KEEP 0), none is stored, none is assigned, and the
// assignments may follow the product.
//
// No row waits for another one. If the host stops the search, rows are at several levels, and what
// they have found is of no use. Where levels are many and small, a level takes the latency of its
// loads and of one barrier of the thread block, so as many searches as the GPU has multiprocessors
// take hardly longer than one.
//
// While it is searched, each row has arrays of its own: the level each vertex was found in, and its
// value, if it has one; whether it was found is a bit in shared memory if all bits fit (LG_BITS).
// `per_source_write` then turns the arrays into bitmap matrices, 32 rows and 32 vertices at a time;
// so loads and stores are coalesced, and presence words need no atomics.
//
// Work: every edge of a row's component once.
// Source: Merrill, Garland and Grimshaw 2012 (degree classes); Brandes 2001 (counts by level);
// Jia et al. 2011 and McLaughlin and Bader 2014 (a thread block for each source).
#include "common/stop.cuh"
#include "search/assignments.cuh"
#include "spmv/push.cuh"
#ifndef LG_SUM  // 1: products of one level add up; 0: the first product of a vertex counts
#define LG_SUM 0
#endif
#ifndef LG_KEEP  // 1: the frontier's values are stored; 0: all are one known value
#define LG_KEEP 1
#endif
#ifndef LG_BITS  // 1: a bit a vertex, in shared memory, says whether it is found; not with sums
#define LG_BITS 0
#endif
#ifndef LG_LOOK  // 1: look at a vertex before claiming it; 0: claim at once
#define LG_LOOK 0
#endif
#ifndef LG_BLOCK  // most threads a block
#define LG_BLOCK 1024
#endif
#ifndef LG_BLOCKS  // blocks a multiprocessor
#define LG_BLOCKS 1
#endif
#ifndef LG_REST  // 1: the frontier that is left is wanted
#define LG_REST 0
#endif

const i32 kOpen = 0x7fffffff;  // the level of a vertex that is not found
const i32 kExcluded = -1;      // of one that v has
const u32 kAtOnce = 4;         // edges that a lane follows at once
const u32 kPitch = 33;         // of a tile in shared memory: columns lie in different banks

typedef List<LG_PTR> Vertices;

// The row that a thread block searches; pointers as in the kernel's parameters.
struct Row {
  i64 row;
  const LG_PTR* ptr;
  const LG_IDX* idx;
  const LG_A* values;
  LG_A iso;
  i32* found_in;
  LG_U* sums;
  u32 solo;            // vertices of a level that shared memory has room for
  Vertices in_shared;  // the vertices there, of two levels
  Vertices in_global;  // the others, one level after the other
  i32* large;  // of more than kSmall edges, one level after the other; huge ones from the end down
  u32* bits;   // of the vertices that are found or excluded, in shared memory
};

// How many vertices a level has, by the number of their edges; and whether the host stops it.
struct Counts {
  u32 small, large, huge, stops;
};

// The lists of one level: where they begin, and their lengths.
struct Level {
  u32 in_shared, in_global;  // in_shared: 0 or solo, by turns
  i32 *large, *huge;
  Counts* counts;
  bool early;  // whether places of edges are loaded before it is known that they are needed
};

// The product of vertex i with value z and an edge with value y, for vertex j.
LG_DEVICE LG_U product(const Row& s, LG_U z, LG_T y, i32 i, i32 j) {
  LG_T x = LG_T(0);
  if constexpr (LG_MUL::reads_x) x = cast<LG_T>(z);
  return cast<LG_U>(LG_MUL::call<LG_Z, LG_T>(x, y, s.row, i, j));
}

// Where the edges of a vertex begin, and how many there are.
struct Edges {
  LG_PTR begin;
  u32 count;
};

LG_DEVICE Edges edges_of(const Row& s, i32 v) {
  const LG_PTR begin = load_ro(&s.ptr[v]);
  return {begin, u32(load_ro(&s.ptr[v + 1]) - begin)};
}

LG_DEVICE void set(const Vertices& list, u32 place, i32 v, Edges edges) {
  list.vertex[place] = v;
  list.start[place] = edges.begin;
  list.degree[place] = edges.count;
}

LG_DEVICE Edges get(const Vertices& list, u32 place, i32* v) {
  *v = list.vertex[place];
  return {list.start[place], list.degree[place]};
}

// Put the vertices that the lanes have won, some each, into the lists of a level. A vertex that has
// not been won, or without edges, needs no place there: its edges are counted as 0.
template <u32 some>
LG_DEVICE void put(const Row& s, const Level& to, const i32* v, const Edges* edges) {
  u32 winners[some], total = 0;
  for (u32 q = 0; q < some; ++q) {
    winners[q] = warp_ballot(edges[q].count - 1 < kSmall);  // 0 - 1 is not
    total += bit_popc(winners[q]);
  }
  u32 at = 0;
  if (total && lane_id() == 0) at = atomic_add(&to.counts->small, total);
  at = warp_shfl(at, 0);
  for (u32 q = 0; q < some; ++q) {
    const u32 mine = at + bit_popc(winners[q] & lanes_below());
    at += bit_popc(winners[q]);
    if (!edges[q].count) continue;
    prefetch(&s.idx[edges[q].begin]);  // it is expanded next
    if (edges[q].count > kHub)
      *(to.huge - atomic_add(&to.counts->huge, 1)) = v[q];
    else if (edges[q].count > kSmall)
      to.large[atomic_add(&to.counts->large, 1)] = v[q];
    else if (mine < s.solo)
      set(s.in_shared, to.in_shared + mine, v[q], edges[q]);
    else
      set(s.in_global, to.in_global + (mine - s.solo), v[q], edges[q]);
  }
}

// Whether vertex j is open, as it seems to one who may claim it: kOpen, or a level below.
LG_DEVICE i32 look(const Row& s, i32 j) {
  if constexpr (LG_BITS) return s.bits[j / 32] >> (j % 32) & 1 ? kExcluded : kOpen;
  return LG_LOOK ? load_cg(&s.found_in[j]) : kOpen;
}

// Claim vertex j for a level; kOpen if it was open.
LG_DEVICE i32 claim(const Row& s, i32 j, i32 level) {
  if constexpr (LG_BITS) {
    const u32 bit = 1u << (j % 32);
    if (atomic_or(&s.bits[j / 32], bit) & bit) return kExcluded;
    s.found_in[j] = level;
    return kOpen;
  }
  return atomic_cas(&s.found_in[j], kOpen, level);
}

// Follow some edges a lane, of vertex i with value z: e, e + step, ... of its edges. Each step is
// done for all of them before the next: a level's time is the length of this chain of loads. So in
// small levels the place of a vertex' edges is loaded while the vertex is being claimed; in larger
// ones, whose time is the number of loads, once it is.
LG_DEVICE void follow(const Row& s, const Level& next, i32 level, Edges all, u32 e, u32 step, i32 i,
                      LG_U z) {
  i32 j[kAtOnce], before[kAtOnce];  // a neighbour, and the level it was found in before
  LG_T y[kAtOnce];
  Edges edges[kAtOnce];
  for (u32 q = 0; q < kAtOnce; ++q) {
    const bool there = e + q * step < all.count;
    const i64 entry = i64(all.begin) + (e + q * step);
    j[q] = there ? i32(load_ro(&s.idx[entry])) : -1;
    y[q] = LG_T(0);
    if constexpr (LG_KEEP && LG_MUL::reads_y)
      if (there) y[q] = entry_value<LG_T>(s.values, s.iso, entry);
  }
  for (u32 q = 0; q < kAtOnce; ++q) {
    before[q] = j[q] < 0 ? kExcluded : look(s, j[q]);
    edges[q] = next.early && j[q] >= 0 ? edges_of(s, j[q]) : Edges{0, 0};
  }
  for (u32 q = 0; q < kAtOnce; ++q)
    if (before[q] == kOpen) before[q] = claim(s, j[q], level);
  for (u32 q = 0; q < kAtOnce; ++q) {
    const bool won = before[q] == kOpen;
    if constexpr (LG_SUM) {
      if (before[q] >= level)
        atomic_accumulate<LG_ADD, LG_U>(&s.sums[j[q]], product(s, z, y[q], i, j[q]));
    } else if constexpr (LG_KEEP) {
      if (won) s.sums[j[q]] = product(s, z, y[q], i, j[q]);
    }
    if (!won) edges[q].count = 0;
    if (won && !next.early) edges[q] = edges_of(s, j[q]);
  }
  put<kAtOnce>(s, next, j, edges);
}

LG_DEVICE LG_U value_of(const Row& s, i32 v) {
  if constexpr (LG_KEEP && LG_MUL::reads_x) return load_cg(&s.sums[v]);
  return LG_U(0);
}

// Follow the edges of one vertex by many threads, of whom this is the `first`.
LG_DEVICE void follow_together(const Row& s, const Level& next, i32 level, i32 i, u32 first,
                               u32 threads) {
  const Edges edges = edges_of(s, i);
  const LG_U z = value_of(s, i);
  for (u32 e = first; warp_any(e < edges.count); e += threads * kAtOnce)
    follow(s, next, level, edges, e, threads, i, z);
}

// Follow the edges of a level's vertices: a lane those of one that has few, a warp or the block
// those of others.
LG_DEVICE void expand(const Row& s, const Level& now, const Counts& counts, const Level& next,
                      i32 level) {
  for (u32 k0 = block_warp() * 32; k0 < counts.small; k0 += block_threads()) {
    const u32 k = k0 + lane_id();
    i32 i = 0;
    Edges edges{0, 0};
    LG_U z = LG_U(0);
    if (k < counts.small) {
      edges = k < s.solo ? get(s.in_shared, now.in_shared + k, &i)
                         : get(s.in_global, now.in_global + (k - s.solo), &i);
      z = value_of(s, i);
    }
    for (u32 e = 0; warp_any(e < edges.count); e += kAtOnce)
      follow(s, next, level, edges, e, 1, i, z);
  }
  for (u32 q = block_warp(); q < counts.large; q += block_warps())
    follow_together(s, next, level, now.large[q], lane_id(), 32);
  for (u32 q = 0; q < counts.huge; ++q)
    follow_together(s, next, level, *(now.huge - q), block_thread(), block_threads());
}

// The bitmap matrices that a search starts from: v, and the frontier as words or as a list. Where
// assignments follow the product, the frontier has not been assigned yet.
struct Given {
  i64 n, stride;
  const u32 *v_words, *f_words;
  u64 num_listed;
  const i64* listed;
  const LG_U* f_values;
  LG_U f_iso;
  bool assigns_after;
};

// Set the state of a row, and list its sources. Ends with a barrier.
LG_DEVICE void begin_row(const Row& s, const Given& g, const Level& first) {
  for (i64 v0 = block_warp() * 32; v0 < g.n; v0 += block_threads()) {
    const i64 v = v0 + lane_id(), at = v * g.stride + s.row;
    Edges edges{0, 0};
    if (v < g.n) {
      const bool there = g.f_words && has_entry(g.f_words, at);
      const bool excluded = g.v_words && has_entry(g.v_words, at);
      s.found_in[v] = there && !g.assigns_after ? 0 : excluded ? kExcluded : kOpen;
      if (there) edges = edges_of(s, i32(v));
      if (LG_KEEP && there)
        s.sums[v] = g.f_values ? g.f_values[at] : g.f_iso;
      else if (LG_SUM)
        s.sums[v] = empty_sum<LG_ADD, LG_U>();
    }
    if constexpr (LG_BITS) {
      const u32 bits = warp_ballot(v < g.n && s.found_in[v] != kOpen);
      if (lane_id() == 0) s.bits[v0 / 32] = bits;
    }
    const i32 vertex = i32(v);
    if (g.f_words) put<1>(s, first, &vertex, &edges);
  }
  block_sync();
  for (u64 q0 = block_warp() * 32; q0 < g.num_listed; q0 += block_threads()) {
    const u64 q = q0 + lane_id();
    const i64 at = q < g.num_listed ? g.listed[q] : -1;
    i32 v = 0;
    Edges edges{0, 0};
    if (at >= 0 && at % g.stride == s.row) {
      v = i32(at / g.stride);
      if (!g.assigns_after) s.found_in[v] = 0;
      if (LG_BITS && !g.assigns_after) atomic_or(&s.bits[v / 32], 1u << (v % 32));
      if (LG_KEEP) s.sums[v] = g.f_values ? g.f_values[q] : g.f_iso;
      edges = edges_of(s, v);
    }
    put<1>(s, first, &v, &edges);
  }
  block_sync();
}

extern "C" __global__ void __launch_bounds__(LG_BLOCK, LG_BLOCKS)
    per_source_search(i64 n, i64 k, i64 stride, const LG_PTR* __restrict__ ptr,
                      const LG_IDX* __restrict__ idx, const LG_A* __restrict__ values, LG_A iso,
                      const u32* __restrict__ v_words, const u32* __restrict__ f_words,
                      u64 num_listed, const i64* __restrict__ listed,
                      const LG_U* __restrict__ f_values, LG_U f_iso, bool assigns_after, i32 times,
                      u32 solo, u32 early, i32* found_in, LG_U* sums, i32* vertex, LG_PTR* start,
                      u32* degree, i32* large, i64 most_large, const u64* stop, u64* stopped) {
  LG_DYNAMIC_SHARED(LG_PTR, shared_start);
  i32* const shared_vertex = reinterpret_cast<i32*>(shared_start + 2 * solo);
  u32* const shared_degree = reinterpret_cast<u32*>(shared_vertex + 2 * solo);
  u32* const bits = shared_degree + 2 * solo;
  LG_SHARED(Counts, counts, 3);  // read, filled, zeroed in turn: so a level has one barrier
  const Given given{n,      stride,   v_words, f_words,      num_listed,
                    listed, f_values, f_iso,   assigns_after};
  const i64 own = block_index();
  for (i64 row = own; row < k; row += grid_blocks()) {
    const Row s{row,
                ptr,
                idx,
                values,
                iso,
                found_in + row * n,
                LG_KEEP ? sums + row * n : nullptr,
                solo,
                Vertices{shared_vertex, shared_start, shared_degree},
                Vertices{vertex + own * n, start + own * n, degree + own * n},
                large + own * most_large,
                bits};
    block_sync();  // all have read the counts that ended the row before
    if (block_thread() < 3) counts[block_thread()] = {0, 0, 0, 0};
    block_sync();
    Level now{0, 0, s.large, s.large + most_large - 1, counts, true};
    begin_row(s, given, now);
    for (i32 depth = 0; depth != times; ++depth) {
      const Counts found = *now.counts;
      if (!found.small && !found.large && !found.huge) break;
      if (found.stops) {
        if (block_thread() == 0) store_volatile(stopped, 1);
        break;
      }
      const u32 turn = u32(depth) % 3;
      if (block_thread() == 0) counts[(turn + 2) % 3] = {0, 0, 0, 0};
      if (block_thread() == 0 && (depth == 0 || looks_alone(u32(depth))))
        counts[(turn + 1) % 3].stops = is_stopped(stop);
      const Level next{
          now.in_shared ^ solo,    now.in_global + (found.small > solo ? found.small - solo : 0),
          now.large + found.large, now.huge - found.huge,
          counts + (turn + 1) % 3, found.small <= early};
      expand(s, now, found, next, depth + 1);
      block_sync();
      now = next;
    }
  }
}

// Assign to x what 32 rows have at one vertex, whose presence word and values begin at `word`.
template <u32 what, class X>
LG_DEVICE void assign(X* x, u32* words, bool blank, i64 word, u32 reached, i32 level, LG_U z,
                      X number) {
  if constexpr (what != 0) {
    if (lane_id() == 0 && (blank || reached)) words[word] = reached | (blank ? 0 : words[word]);
    if (!(reached >> lane_id() & 1)) return;
    X* const to = &x[word * 32 + lane_id()];
    if constexpr (what == kDepth) *to = cast<X>(level);
    if constexpr (what == kValue) *to = cast<X>(z);
    if constexpr (what == kNumber) *to = number;
  }
}

// Write the state of the rows to bitmap matrices. A vertex found in level `times` stays in the
// frontier; it is assigned, with a level less, if assignments follow the product.
extern "C" __global__ void per_source_write(i64 n, i64 k, i64 per, const i32* found_in,
                                            const LG_U* sums, i32 times, bool assigns_after,
                                            LG_X0_T number0, LG_X1_T number1, LG_X2_T number2,
                                            LG_X0_T* x0, LG_X1_T* x1, LG_X2_T* x2, u32* x0_words,
                                            u32* x1_words, u32* x2_words, u32 blank, u32* f_words,
                                            LG_U* f_values, u64* left) {
  constexpr bool reads_sums =
      LG_KEEP && (LG_REST || LG_X0 == kValue || LG_X1 == kValue || LG_X2 == kValue);
  LG_SHARED(i32, levels, 32 * kPitch);
  LG_SHARED(LG_U, values, reads_sums ? 32 * kPitch : 1);
  u64 total = 0;
  const i64 tiles = (n + 31) / 32 * per;
  for (i64 tile = block_index(); tile < tiles; tile += grid_blocks()) {
    const i64 v0 = tile / per * 32, group = tile % per;
    for (u32 r = block_warp(); r < 32; r += block_warps()) {
      const i64 row = group * 32 + r, v = v0 + lane_id();
      const bool there = row < k && v < n;
      const u32 at = r * kPitch + lane_id();
      levels[at] = there ? found_in[row * n + v] : kOpen;
      if (reads_sums && there) values[at] = sums[row * n + v];
    }
    block_sync();
    for (u32 c = block_warp(); c < 32 && v0 + c < n; c += block_warps()) {
      const u32 at = lane_id() * kPitch + c;
      const i32 level = levels[at];
      const LG_U z = reads_sums ? values[at] : LG_U(0);
      const bool found = level >= 0 && level != kOpen;
      const u32 reached = warp_ballot(found && (assigns_after || level != times));
      const i64 word = (v0 + c) * per + group;
      assign<LG_X0>(x0, x0_words, blank & 1, word, reached, level - assigns_after, z, number0);
      assign<LG_X1>(x1, x1_words, blank & 2, word, reached, level - assigns_after, z, number1);
      assign<LG_X2>(x2, x2_words, blank & 4, word, reached, level - assigns_after, z, number2);
      if constexpr (LG_REST) {
        const u32 rest = warp_ballot(found && level == times);
        if (LG_KEEP && rest >> lane_id() & 1) f_values[word * 32 + lane_id()] = z;
        if (lane_id() == 0) {
          f_words[word] = rest;
          total += bit_popc(rest);
        }
      }
    }
    block_sync();
  }
  if constexpr (LG_REST) add_total(total, left);
}
