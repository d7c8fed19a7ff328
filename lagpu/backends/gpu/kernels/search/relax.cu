// Relaxation: the best lengths of paths from one vertex, as one cooperative kernel.
//
// The loop it runs, where (+) chooses one of two numbers, and (x) makes none a better one:
//
//     while f has entries:
//         f(~worse.V, replace=True) << f
//         d(f.S) << f
//         f << f (+.x) A
//         worse << f.ewise_mult(d, "is not better")
//
// Whenever edges are relaxed, and with whatever number their vertex has by then, d ends as it does
// there: each number is that of a path, and the loop ends once no edge has a better one. So the
// kernel takes the newest number of a vertex, and needs one barrier a turn. With LG_STEPS a vertex
// whose number is beyond `limit` waits until few others are left; then the limit moves by a step.
// Where too many are left, it comes back half of the way.
//
// out_* is A by rows. f and worse have no entry in the end. In `result` are the turns, how often
// the limit has moved, and come back, and whether the host has stopped it: what it has written is
// of no use then. Work: an edge each time that its vertex has got a better number and been listed.
// Sources: Bellman 1958; Ford 1956; waiting vertices: Davidson, Baxter, Garland and Owens, IPDPS
// 2014 ("near-far"), after Meyer and Sanders 2003.
#ifndef LG_ADD  // what is not given; the file compiles by itself
#define LG_ADD Min
#define LG_MUL Plus
#define LG_U i64
#define LG_A i64
#define LG_T i64
#define LG_Z i64
#define LG_ISO 0
#endif
#include "common/stop.cuh"
#include "spmv/push.cuh"

#ifndef LG_BLOCK  // most threads a block
#define LG_BLOCK 1024
#endif
#ifndef LG_F  // type of the numbers
#define LG_F i64
#endif
#ifndef LG_AHEAD  // edges that a turn goes beyond the vertices in its lists
#define LG_AHEAD 0
#endif
#ifndef LG_STEPS  // 1: vertices wait; needs (x) = plus
#define LG_STEPS 1
#endif

const u32 kAheadDegree = 8;  // of a vertex whose edges are relaxed before it is in the lists

// Counters of a turn, two on a line: vertices and chunks in its lists, and whether a vertex has
// begun to wait; beside them, those that waiting ones have added, and whether one still waits.
enum Counter : u32 { kNumSmall, kNumChunks, kWaits, kCounters };
static_assert(kCounters <= kSearchCounters);

struct Relaxation {
  i64 n;
  Columns<Chosen> a;
  LG_F* d;
  i32* listed;   // the last turn that has the vertex in its lists because it got better
  u32* waiting;  // a bit for each vertex that waits, or has got better than the limit since
  List<LG_PTR> small_a, small_b;
  u64 *chunks_a, *chunks_b;
  u64* counters;

  LG_DEVICE u64* counter(u32 turn, Counter which) const {
    return counters + (turn % kTurns * kCounters + which) * kCounterStride;
  }
  LG_DEVICE u64* beside(u32 turn, Counter which) const { return counter(turn, which) + 1; }
  // The lists of a turn, after the first so many; pointer by pointer, as in search/grid_state.cuh.
  LG_DEVICE List<LG_PTR> small(u32 turn, u64 after) const {
    const bool second = turn & 1;
    return {(second ? small_b.vertex : small_a.vertex) + after,
            (second ? small_b.start : small_a.start) + after,
            (second ? small_b.degree : small_a.degree) + after};
  }
  LG_DEVICE u64* chunks(u32 turn, u64 after) const {
    return (turn & 1 ? chunks_b : chunks_a) + after;
  }
};

LG_DEVICE bool is_better(LG_F x, LG_F y) { return IsSame<LG_ADD, Min>::value ? x < y : x > y; }

LG_DEVICE void improve(LG_F* p, LG_F x) {
  static_assert(IsSame<LG_ADD, Min>::value || IsSame<LG_ADD, Max>::value, "(+) chooses");
  if constexpr (IsSame<LG_ADD, Min>::value) atomic_min(p, x);
  if constexpr (IsSame<LG_ADD, Max>::value) atomic_max(p, x);
}

// The limit after a step, which never comes back.
LG_DEVICE LG_F moved(LG_F limit, LG_F step) {
  typedef wrapping<LG_F> W;
  const LG_F to = LG_F(W(limit) + W(step));
  return is_better(limit, to) ? to : LG_ADD::template identity<LG_F>();
}

// The middle of two limits, one better than the other.
LG_DEVICE LG_F between(LG_F from, LG_F to) {
  typedef wrapping<LG_F> W;
  if constexpr (Limits<LG_F>::is_float) return from + (to - from) / 2;
  if constexpr (IsSame<LG_ADD, Min>::value) return LG_F(W(from) + W(W(to) - W(from)) / 2);
  return LG_F(W(from) - W(W(from) - W(to)) / 2);
}

// Relaxes a lane's edges, each step for all of them before the next. A vertex that gets better
// enters the lists of the next turn, once, or waits. With `early` the place of its edges is loaded
// before that is known: sooner, but more traffic; and its edges are relaxed right away, AHEAD of
// the turn that has it in its lists, as one has in any case: a turn then finds vertices that are
// some edges away, at less than the price of a barrier.
template <u32 AHEAD>
struct Relaxer {
  const Relaxation& s;
  u32 turn;
  LG_F limit;
  bool early;
  bool* waits;

  template <u32 N>
  LG_DEVICE void operator()(const Batch<LG_PTR, N>& edges) const {
    Found<LG_PTR, N> found;
    i32(&j)[N] = found.vertex;
    LG_F x[N], had[N];
    for (u32 q = 0; q < N; ++q) j[q] = i32(load_ro(&s.a.idx[edges.entry[q]]));
    for (u32 q = 0; q < N; ++q) x[q] = load_cg(&s.d[edges.column[q]]);
    for (u32 q = 0; q < N; ++q) {
      had[q] = load_cg(&s.d[j[q]]);
      if (early) {
        found.start[q] = load_ro(&s.a.ptr[j[q]]);
        found.stop[q] = load_ro(&s.a.ptr[j[q] + 1]);
      }
    }
    for (u32 q = 0; q < N; ++q)
      x[q] = cast<LG_F>(multiply<Chosen>(nullptr, x[q], s.a.values, s.a.iso, edges.entry[q],
                                         edges.column[q], j[q]));
    u32 near = 0;
    for (u32 q = 0; q < N; ++q) {
      if (!(edges.there >> q & 1) || !is_better(x[q], had[q])) continue;
      improve(&s.d[j[q]], x[q]);
      if (!LG_STEPS || is_better(x[q], limit)) {
        near |= u32(atomic_exch(&s.listed[j[q]], i32(turn + 1)) != i32(turn + 1)) << q;
      } else {
        atomic_or(&s.waiting[j[q] / 32], 1u << (j[q] % 32));
        *waits = true;
      }
    }
    if (!warp_any(near != 0)) return;
    if (!early)
      for (u32 q = 0; q < N; ++q) {
        const i32 at = near >> q & 1 ? j[q] : 0;  // no load after a branch
        found.start[q] = load_ro(&s.a.ptr[at]);
        found.stop[q] = load_ro(&s.a.ptr[at + 1]);
      }
    found.there = 0;
    for (u32 q = 0; q < N; ++q)
      found.there |= u32((near >> q & 1) && found.start[q] != found.stop[q]) << q;
    enqueue(s.small(turn + 1, 0), s.chunks(turn + 1, 0), s.counter(turn + 1, kNumSmall),
            s.counter(turn + 1, kNumChunks), found);
    if constexpr (AHEAD != 0)
      if (early) go_on(found);
  }

  // Each lane relaxes the edges of its own vertices, if they are few.
  template <u32 N>
  LG_DEVICE void go_on(const Found<LG_PTR, N>& found) const {
    const Relaxer<AHEAD - 1> next{s, turn, limit, early, waits};
#pragma unroll
    for (u32 q = 0; q < N; ++q) {  // its arrays stay in registers
      const u32 degree = u32(found.stop[q] - found.start[q]);
      u32 left = (found.there >> q & 1) && degree <= kAheadDegree ? degree : 0;
      for (LG_PTR p = found.start[q]; warp_any(left != 0); p += kTogether) {
        Batch<LG_PTR, kTogether> edges;
        edges.there = 0;
        for (u32 r = 0; r < kTogether; ++r) {
          edges.entry[r] = r < left ? p + LG_PTR(r) : 0;
          edges.column[r] = found.vertex[q];
          edges.there |= u32(r < left) << r;
        }
        next(edges);
        left -= left < kTogether ? left : kTogether;
      }
    }
  }
};

// List the waiting vertices between both limits; those before the old one have been listed already.
LG_DEVICE void leave_wait(const Relaxation& s, u32 turn, u64 num_small, u64 num_chunks, LG_F before,
                          LG_F limit) {
  bool stays = false;
  each_tile(s.n, [&](i64 k, bool mine) {
    const u32 bits = mine ? load_cg(&s.waiting[k]) : 0;
    u32 left = bits;
    each_words(bits, k, [&](const u32(&from)[kWords], const i64(&i)[kWords]) {
      Found<LG_PTR, kWords> found;
      LG_F x[kWords];
      for (u32 q = 0; q < kWords; ++q) {
        const bool there = from[q] < LG_WARP && warp_shfl(bits, from[q] % LG_WARP) >> lane_id() & 1;
        found.vertex[q] = there ? i32(i[q]) : 0;
        x[q] = there ? load_cg(&s.d[i[q]]) : LG_ADD::template identity<LG_F>();
        found.start[q] = load_ro(&s.a.ptr[found.vertex[q]]);
        found.stop[q] = load_ro(&s.a.ptr[found.vertex[q] + 1]);
      }
      found.there = 0;
      for (u32 q = 0; q < kWords; ++q) {
        const u32 later = warp_ballot(!is_better(x[q], limit));
        if (lane_id() == from[q]) left &= later;
        const bool leaves = is_better(x[q], limit) && !is_better(x[q], before);
        found.there |= u32(leaves && found.start[q] != found.stop[q]) << q;
      }
      enqueue(s.small(turn, num_small), s.chunks(turn, num_chunks), s.beside(turn, kNumSmall),
              s.beside(turn, kNumChunks), found);
    });
    if (left != bits) s.waiting[k] = left;
    stays |= left != 0;
  });
  if (warp_any(stays) && lane_id() == 0) store_volatile(s.beside(turn, kWaits), 1);
}

// Put what is before the limit from the lists of a turn into those of the next one; the rest waits.
LG_DEVICE void put_off(const Relaxation& s, u32 turn, u64 num_small, u64 num_chunks, LG_F limit) {
  const List<LG_PTR> small = s.small(turn, 0);
  const u64* const chunks = s.chunks(turn, 0);
  bool waits = false;
  const auto keeps = [&](bool there, i32 v) {
    if (!there || is_better(load_cg(&s.d[v]), limit)) return there;
    atomic_or(&s.waiting[v / 32], 1u << (v % 32));
    waits = true;
    return false;
  };
  for (u64 q0 = u64(global_warp()) * 32; q0 < num_small; q0 += u64(global_warps()) * 32) {
    const u64 q = q0 + lane_id();
    const u64 at = q < num_small ? q : 0;
    const i32 v = load_cg(&small.vertex[at]);
    const LG_PTR start = load_cg(&small.start[at]);
    const LG_PTR stop = start + LG_PTR(load_cg(&small.degree[at]));
    enqueue(s.small(turn + 1, 0), s.chunks(turn + 1, 0), s.counter(turn + 1, kNumSmall),
            s.counter(turn + 1, kNumChunks),
            Found<LG_PTR, 1>{{v}, {start}, {stop}, keeps(q < num_small, v)});
  }
  for (u64 q0 = u64(global_warp()) * 32; q0 < num_chunks; q0 += u64(global_warps()) * 32) {
    const u64 q = q0 + lane_id();
    const u64 chunk = load_cg(&chunks[q < num_chunks ? q : 0]);
    const u32 kept = warp_ballot(keeps(q < num_chunks, i32(u32(chunk))));
    u64 to = 0;
    if (lane_id() == 0 && kept)
      to = atomic_add(s.counter(turn + 1, kNumChunks), u64(bit_popc(kept)));
    to = warp_shfl(to, 0) + bit_popc(kept & lanes_below());
    if (kept >> lane_id() & 1) s.chunks(turn + 1, 0)[to] = chunk;
  }
  if (warp_any(waits) && lane_id() == 0) store_volatile(s.counter(turn + 1, kWaits), 1);
}

// Edges that leave lists, about.
LG_DEVICE u64 edges_of(u64 num_small, u64 num_chunks, u64 degree) {
  return num_small * degree + num_chunks * (kChunk / 2);
}

// `degree`: entries of a short column, about. Where fewer than `few` edges are to be relaxed,
// waiting vertices join those listed; where more than `many`, the limit comes back, but not nearer
// than `narrow` to the one before: of many vertices the best have to be taken first, or most edges
// are relaxed twice.
extern "C" __global__ void __launch_bounds__(LG_BLOCK, 1)
    relax(i64 n, const LG_PTR* __restrict__ out_ptr, const LG_IDX* __restrict__ out_idx,
          const LG_A* __restrict__ out_values, LG_A a_iso, i64 source, LG_F number, LG_F step,
          LG_F narrow, u64 degree, u64 few, u64 many, LG_F* d, u32* d_words, i32* listed,
          u32* waiting, i32* vertex_a, i32* vertex_b, LG_PTR* start_a, LG_PTR* start_b,
          u32* degree_a, u32* degree_b, u64* chunks_a, u64* chunks_b, u64* counters,
          GridBarrier* barrier, const u64* stop, u64* result) {
  const Relaxation s{n,
                     {out_ptr, out_idx, out_values, a_iso},
                     d,
                     listed,
                     waiting,
                     {vertex_a, start_a, degree_a},
                     {vertex_b, start_b, degree_b},
                     chunks_a,
                     chunks_b,
                     counters};
  const LG_F none = LG_ADD::template identity<LG_F>();
  const i64 nwords = (n + 31) / 32;
  for (i64 v = global_thread(); v < n; v += global_threads()) {
    d[v] = v == source ? number : none;
    listed[v] = 0;
  }
  if (LG_STEPS)
    for (i64 w = global_thread(); w < nwords; w += global_threads()) waiting[w] = 0;
  if (block_index() == 0) {
    for (u32 k = block_thread(); k < kTurns * kCounters * kCounterStride + 2; k += block_threads())
      counters[k] = 0;
    block_sync();
    if (block_warp() == 0) {
      const LG_PTR start = out_ptr[source], stop = out_ptr[source + 1];
      enqueue(s.small(0, 0), s.chunks(0, 0), s.counter(0, kNumSmall), s.counter(0, kNumChunks),
              Found<LG_PTR, 1>{{i32(source)}, {start}, {stop}, lane_id() == 0 && start != stop});
    }
  }
  grid_sync(barrier);

  LG_F limit = moved(number, step), before = number;
  bool some = false;            // vertices may wait
  u32 moves = 0, put_offs = 0;  // of the limit, and back
  u32 turn = 0;
  u64* const flags = counters + kTurns * kCounters * kCounterStride;
  bool stopped = false;
  for (;; ++turn) {
    stopped = turn && looks(turn - 1) && load_volatile(stop_flag(flags, turn - 1, kStopEvery));
    if (stopped) break;
    if (looks(turn)) set_stop(stop, stop_flag(flags, turn, kStopEvery));
    u64 num_small = load_volatile(s.counter(turn, kNumSmall));
    u64 num_chunks = load_volatile(s.counter(turn, kNumChunks));
    some |= LG_STEPS && load_volatile(s.counter(turn, kWaits)) != 0;
    if (block_index() == 0 && block_thread() < kCounters)
      for (u32 k = 0; k < 2; ++k) s.counter(turn + 2, Counter(block_thread()))[k] = 0;
    LG_F stride = step;
    while (some && edges_of(num_small, num_chunks, degree) < few) {
      before = limit;
      limit = moved(limit, stride);
      ++moves;
      leave_wait(s, turn, num_small, num_chunks, before, limit);
      grid_sync(barrier);
      some = load_volatile(s.beside(turn, kWaits)) != 0;
      num_small += load_volatile(s.beside(turn, kNumSmall));
      num_chunks += load_volatile(s.beside(turn, kNumChunks));
      if (num_small + num_chunks || !some) break;
      stride = LG_F(wrapping<LG_F>(stride) + wrapping<LG_F>(stride));  // nothing is that near
      grid_sync(barrier);  // all have read what the next round adds to
    }
    if (LG_STEPS && edges_of(num_small, num_chunks, degree) > many && limit != none &&
        is_better(moved(before, narrow), limit)) {
      ++put_offs;
      limit = between(before, limit);
      put_off(s, turn, num_small, num_chunks, limit);
      grid_sync(barrier);
      continue;
    }
    if (!(num_small + num_chunks)) break;
    bool waits = false;
    follow_lists(out_ptr, s.small(turn, 0), s.chunks(turn, 0), num_small, num_chunks,
                 Relaxer<LG_AHEAD>{s, turn, limit,
                                   num_small + num_chunks * 8 <= u64(global_warps()) * 8, &waits});
    if (LG_STEPS && warp_any(waits) && lane_id() == 0)
      store_volatile(s.counter(turn + 1, kWaits), 1);
    grid_sync(barrier);
  }

  // End: a vertex with a number has been reached.
  for (i64 w0 = global_warp() * kWords; w0 < nwords; w0 += global_warps() * kWords) {
    u32 bits[kWords];
    for (u32 q = 0; q < kWords; ++q) {
      const i64 v = (w0 + q) * 32 + lane_id();
      bits[q] = v < n && load_cg(&d[v]) != none;
    }
    for (u32 q = 0; q < kWords; ++q) {
      bits[q] = warp_ballot(bits[q]);
      if (lane_id() == 0 && w0 + q < nwords) d_words[w0 + q] = bits[q];
    }
  }
  if (global_thread() == 0) {
    result[0] = turn;
    result[1] = moves;
    result[2] = put_offs;
    result[3] = stopped;
  }
}
