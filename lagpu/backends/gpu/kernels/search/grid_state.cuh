// The state of a grid search, shared by push and pull, and how a vertex enters the frontier.
//
// search/grid.cu has the loop that it runs, and explains the words used here. In a search over
// several devices (LG_PEERS, search/peers.cu) a piece has the vertices that it finds, by position,
// and all vertices of the frontier, by slot.
#ifndef LAGPU_SEARCH_GRID_STATE_CUH
#define LAGPU_SEARCH_GRID_STATE_CUH
#include "search/assignments.cuh"
#include "common/hint.cuh"
#include "common/log.cuh"
#include "common/stop.cuh"
#include "spmv/push.cuh"
#ifndef LG_SUM  // 1: products of one level add up; 0: the first product of a vertex counts
#define LG_SUM 0
#endif
#ifndef LG_BLOCK  // most threads a block
#define LG_BLOCK 1024
#endif
#ifndef LG_F  // type of the frontier's values
#define LG_F bool
#endif
#ifndef LG_FEW  // with clusters: the largest frontier that one block searches alone, <= `solo`
#define LG_FEW 128
#endif
#ifndef LG_RANKS  // 1: sums are of counts, and there are indices by ranks; see grid_counts.cuh
#define LG_RANKS 0
#endif
#ifndef LG_RULE  // by which directions are chosen
#define LG_RULE kByEdges
#endif
#ifndef LG_HAD  // 1: a log counts new entries, since an assigned vector had some before
#define LG_HAD 0
#endif
#ifndef LG_PLACED  // vertices of a list that have places; those of several devices all have
#ifdef LG_PEERS
#define LG_PLACED ~0u
#else
#define LG_PLACED kPlaced
#endif
#endif
#ifndef LG_KEEP  // 1: the frontier's values are stored, because they are read or wanted
#define LG_KEEP 0
#endif
#ifndef LG_SENDS_VALUES  // 1: products read them, so that all devices need them
#define LG_SENDS_VALUES LG_KEEP
#endif

const i32 kOpen = 0x7fffffff;  // the level of a vertex that is not found, where products are summed

#ifndef LG_SPREAD  // if not 0, all blocks share vertices of many predecessors; see grid_pull.cuh
#define LG_SPREAD 0
#endif
// Counters of a turn. kLevel is the depth that a block searching alone has reached, or the parts
// that a pull has left.
enum Counter : u32 { kNumSmall, kNumChunks, kFound, kEdges, kLevel, kCounters };
static_assert(kCounters <= kSearchCounters);

typedef List<LG_PTR, LG_PLACED> Vertices;

// One of two lists in the same arrays, number by number: choosing between their addresses would put
// them in memory.
LG_DEVICE Vertices pick(bool second, const Vertices& a, const Vertices& b) {
  return {a.vertex,
          a.start,
          a.degree,
          second ? b.back : a.back,
          second ? b.room : a.room,
          second ? b.places : a.places};
}

#if LG_SUM
// The frontier's bits in shared memory, for a pull; see search/grid_sums.cuh.
struct Near {
  u32 most;     // words that there is room for, a power of two, or 0
  bool exact;   // it has all
  bool copied;  // in this level
  bool counts;  // in this level there are counts by ranks instead; see search/grid_counts.cuh
};
#endif

// The state of a grid search; pointers as in the kernel's parameters.
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
  u64 *chunks_a, *chunks_b;   // (chunk number << 32) | vertex; from the end where the list is
  u64* counters;
  u32 solo;  // vertices of a frontier that shared memory has room for
  const u64* stop;
  // Which of two buffers holds the frontier and which its successor. A flag, not exchanged
  // pointers: those would take registers, while these stay in the constants of the launch.
  bool words_turned, lists_turned;
  LG_LOGGED(LoopLog* log; u64 * memory; const u32* had[3];)  // words of vectors that had entries
#if LG_SUM
  u64 nvals;
  Near near;
  const LG_IDX* ranked_idx;  // in_idx by ranks of degree
  const i32* rank;
  u32* counts;  // the frontier's values by ranks, 0 for others; the last: whether one is no count
#endif

#ifdef LG_PEER_ROWS
  const struct Places* places;
#endif
#ifdef LG_PEERS
  // f_values has the values of all vertices, and these are the piece's own, by position.
  LG_F* own_values;
  u32* found_words;  // of the piece's own vertices
  const i32* names;  // the vertex of each slot; null: slots are vertices
  bool claimed;      // a pull is into the vertices of found_words alone
  i64 slots;         // of all vertices
  const struct Pieces* all;
#endif

  LG_DEVICE u32* frontier() const { return words_turned ? words_b : words_a; }
#ifdef LG_PEERS
  LG_DEVICE u32* next() const { return found_words; }
  LG_DEVICE LG_F* kept() const { return own_values; }
#else
  LG_DEVICE u32* next() const { return words_turned ? words_a : words_b; }
  LG_DEVICE LG_F* kept() const { return f_values; }
#endif
  LG_DEVICE Vertices small() const { return pick(lists_turned, small_a, small_b); }
  LG_DEVICE Vertices next_small() const { return pick(!lists_turned, small_a, small_b); }
  LG_DEVICE u64* chunks() const { return lists_turned ? chunks_b : chunks_a; }
  LG_DEVICE u64* next_chunks() const { return lists_turned ? chunks_a : chunks_b; }
};

// The vertices that a frontier may have.
LG_DEVICE i64 frontier_size(const Search& s) {
#ifdef LG_PEERS
  return s.slots;
#else
  return s.n;
#endif
}

LG_DEVICE u64* counter(const Search& s, u32 turn, Counter which) {
  return s.counters + (turn % kTurns * kCounters + which) * kCounterStride;
}

template <u32 what, class X>
LG_DEVICE void assign(X* x, i32 v, u32 depth, LG_F z) {
  if constexpr (what == kDepth) x[v] = cast<X>(i32(depth));
  if constexpr (what == kValue && !LG_SUM) x[v] = cast<X>(z);  // a sum is known at the end
}

// The block that searches small frontiers alone and logs: where all push a frontier, it has the
// least to do.
LG_DEVICE bool is_last_block() { return block_index() == grid_blocks() - 1; }

// The cluster of that block.
LG_DEVICE bool is_last_cluster() {
  return block_index() / LG_CLUSTER == grid_blocks() / LG_CLUSTER - 1;
}

#if LG_LOG
// The thread that logs, of the warp that has the least to do where a block searches alone.
LG_DEVICE bool logs() { return is_last_block() && block_thread() == block_threads() - 1; }

// Put the sum of x[0 .. count) into shared memory; done by the warp before that thread's.
LG_DEVICE void note_sum(const u32* x, u32 count, u32* sum) {
  if (block_warp() != block_warps() - 2) return;
  u32 mine = 0;
  for (u32 k = lane_id(); k < count; k += 32) mine += x[k];
  mine = warp_reduce(mine, LgPlus());
  if (lane_id() == 0) *sum = mine;
}

// Count v, assigned in level `depth`, for the vectors that had entries, but not this one. Three
// levels take turns: others may be a level ahead of the thread that logs, and the next clears.
LG_DEVICE void count_new(const Search& s, i32 v, u32 depth) {
  if (!LG_HAD) return;  // known to the compiler: even a branch not taken costs 4 % of a short level
  for (u32 k = 0; k < 3; ++k)
    if (s.had[k] && !has_entry(s.had[k], v)) atomic_add(&s.memory[kLogNew + depth % 3 * 3 + k], 1);
}

// Add the counts of level `depth`, whose assignments have been made.
LG_DEVICE void note_new(const Search& s, u32 depth) {
  if (!LG_HAD) return;
  for (u32 k = 0; k < 3; ++k)
    if (s.had[k])
      s.log->now.added[k] += atomic_exch(&s.memory[kLogNew + depth % 3 * 3 + k], u64(0));
}

// Edges looked at by the pull of a turn; the log has them, as one more counter above would change
// where the others lie: that alone costs 3 % of urand22e16.
LG_DEVICE u64* looked_at(const Search& s, u32 turn) { return &s.memory[kLogLooked + turn % 3]; }

LG_DEVICE void begin_level(const Search& s, u64 how, u32 depth, u64 found, u64 frontier_edges,
                           f32 unexplored) {
  s.log->begin(how, depth, found, frontier_edges, unexplored > 0 ? u64(unexplored) : 0);
  if (s.shift) note_new(s, depth);
}

LG_DEVICE void end_level(const Search& s, u64 found, u64 edges) {
  if (!s.shift) note_new(s, u32(s.log->now.iteration));
  s.log->end(found, edges, 1 + (LG_X0 != 0) + (LG_X1 != 0) + (LG_X2 != 0));
}
#endif

#ifdef LG_PEER_ROWS
// Keep the source by which a target was found, for its owner; see search/rows.cu.
LG_DEVICE void keep_source(const Search& s, i32 v, i32 source);
#elif defined(LG_PEERS)
// Put the value of an own vertex into every window; see search/peers_push.cuh.
LG_DEVICE void send_value(const Search& s, const Pieces& all, i32 v, LG_F z);
#endif

// Vertex v enters the frontier of level `depth` with value z.
LG_DEVICE void discover(const Search& s, i32 v, u32 depth, LG_F z) {
  LG_LOGGED(count_new(s, v, depth);)
#ifdef LG_PEER_ROWS  // whose owners assign
  if (LG_KEEP) keep_source(s, v, i32(z));
#else
  if (LG_KEEP && !LG_SUM) s.kept()[v] = z;
  assign<LG_X0>(s.x0, v, depth, z);
  assign<LG_X1>(s.x1, v, depth, z);
  assign<LG_X2>(s.x2, v, depth, z);
#endif
}

LG_DEVICE LG_Z product(const Search& s, const LG_A* values, i64 entry, i32 inner, i32 outer) {
#ifdef LG_PEERS
  if (s.names) inner = load_ro(&s.names[inner]);
#endif
#ifdef LG_PEER_ROWS
  if (LG_KEEP) return LG_Z(inner);  // owners multiply
#endif
  if (LG_SENDS_VALUES && !s.f_values) __builtin_unreachable();  // so there is one copy of each loop
  return multiply<Chosen>(LG_SENDS_VALUES ? s.f_values : nullptr, s.f_iso, values, s.a_iso, entry,
                          inner, outer);
}

// With sums: add the product to vertex j if it is open or was found in this level too, which finds
// vertices of level `at`. `before` is the level it has been found in; kOpen if it is found now.
LG_DEVICE i32 accumulate(const Search& s, i64 entry, i32 i, i32 j, i32 at, i32 before) {
  if (before < at) return before;
  atomic_accumulate<LG_ADD, LG_F>(&s.f_values[j],
                                  cast<LG_F>(product(s, s.out_values, entry, i, j)));
  return before == at ? at : atomic_cas(&s.found_in[j], kOpen, at);
}

// Put the lanes' vertices into lists and counters of `turn`.
template <u32 N>
LG_DEVICE void enqueue(const Search& s, u32 turn, const Vertices& small, u64* chunks,
                       const Found<LG_PTR, N>& found) {
  enqueue(small, chunks, counter(s, turn, kNumSmall), counter(s, turn, kNumChunks), found);
}

LG_DEVICE void enqueue(const Search& s, u32 turn, const Vertices& small, u64* chunks, bool won,
                       i32 v, LG_PTR start, LG_PTR stop) {
  enqueue(s, turn, small, chunks, Found<LG_PTR, 1>{{v}, {start}, {stop}, won});
}

// Whether the words stay beside lists: with sums over several devices a push only finds vertices,
// and a pull into these adds up.
#ifdef LG_PEERS
const bool kKeepsWords = LG_SUM;
#else
const bool kKeepsWords = false;
#endif

struct Tally {
  u64 edges;
  u32 found;
  LG_LOGGED(u32 looked;)  // at edges, in a pull
};

// Whether a level finds nothing, so that it need not run: no vertex is `left` to find, or the
// frontier's edges, if they are counted, all lead back. If A is symmetric, a vertex that was
// found has an edge back to one of the frontier before, which is visited; a source may not be.
LG_DEVICE bool finds_nothing(const Search& s, bool symmetric, u32 depth, u32 left, bool counted,
                             u64 edges, u32 found) {
  const u32 back = symmetric && depth + s.shift > 1 ? found : 0;
  return !left || (counted && edges == back);
}

// The vertices that may still be found, of those with predecessors. A source that is visited is not
// one of them; of several, it is not known which have predecessors.
LG_DEVICE u32 left_to_find(const Search& s, bool symmetric, u32 targets, u64 sources, u64 edges) {
  return targets - u32(symmetric && s.shift && sources == 1 && edges);
}

// The sizes of a turn's frontier.
struct Frontier {
  u32 found, num_small, num_chunks;
  u64 edges;  // frontier edges
  u32 parts;  // that the pull before has left
  bool stops;
};

// All numbers at once, so that their loads overlap.
LG_DEVICE Frontier frontier_of(const Search& s, u32 turn) {
  const u64 found = load_volatile(counter(s, turn, kFound));
  const u64 num_small = load_volatile(counter(s, turn, kNumSmall));
  const u64 num_chunks = load_volatile(counter(s, turn, kNumChunks));
  const u64 edges = load_volatile(counter(s, turn, kEdges));
  const u64 parts = LG_SPREAD && !LG_SUM ? load_volatile(counter(s, turn, kLevel)) : 0;
  return {u32(found), u32(num_small), u32(num_chunks),
          edges,      u32(parts),     LG_STOPS && found >= kStops};
}

#if LG_RANKS
const u32 kMostCount = (1 << 24) - 1;  // sums of the counts of a warp's lanes fit 32 bits

// Keep the value of a vertex of the frontier by its rank.
LG_DEVICE void keep_count(const Search& s, i32 v) {
#ifdef LG_PEERS
  const LG_F value = load_cg(&s.f_values[s.names ? load_ro(&s.names[v]) : v]);
#else
  const LG_F value = s.f_values[v];
#endif
  const bool fits = value >= LG_F(1) && value <= LG_F(kMostCount);
  const u32 count = fits ? u32(value) : 0;
  if (!fits || LG_F(count) != value) s.counts[frontier_size(s)] = 1;
  s.counts[s.rank[v]] = count;
}
#else
LG_DEVICE void keep_count(const Search&, i32) {}
#endif

// Presence words of the frontier's lists; they are empty before. Ends with a barrier.
LG_DEVICE void lists_to_words(const Search& s, const Frontier& now, GridBarrier* barrier) {
  for (u64 q = global_thread(); q < now.num_small; q += global_threads()) {
    const i32 v = load_cg(&s.small().vertex[s.small().at(q)]);
    atomic_or(&s.frontier()[v / 32], 1u << (v % 32));
    keep_count(s, v);
  }
  for (u64 q = global_thread(); q < now.num_chunks; q += global_threads()) {
    const u64 chunk = load_cg(&s.chunks()[s.small().chunk(q)]);
    const i32 v = i32(u32(chunk));
    if (chunk >> 32) continue;
    atomic_or(&s.frontier()[v / 32], 1u << (v % 32));
    keep_count(s, v);
  }
  grid_sync(barrier);
}

// Words of each lane, and its vertices that are listed together, as a list's counter has few
// answers a time. A search of one device has no registers for more.
#ifdef LG_PEERS
const u32 kListedWords = 4;
#else
const u32 kListedWords = 1;
#endif

// Lists of the frontier's presence words, and its edges, in the counters of this turn; the words
// are empty then, unless they are kept. Ends with a barrier. A warp has the words that it has in
// `each_tile`, so that it may have read them there without a barrier in between.
LG_DEVICE void words_to_lists(const Search& s, u32 turn, GridBarrier* barrier) {
  const i64 nwords = (s.n + 31) / 32;
  u64 edges = 0;
  const i64 tile = kListedWords == 1 ? words_at_once(nwords) : LG_WARP, step = tile * kListedWords;
  for (i64 w0 = global_warp() * step; w0 < nwords; w0 += global_warps() * step) {
    u32 bits[kListedWords], mine = 0;
    for (u32 q = 0; q < kListedWords; ++q) {
      const i64 w = w0 + q * 32 + lane_id();
      bits[q] = lane_id() < tile && w < nwords ? load_cg(&s.frontier()[w]) : 0;
      mine += bit_popc(bits[q]);
    }
    if (!warp_any(mine != 0)) continue;
    for (u32 q = 0; q < kListedWords; ++q)
      if (bits[q] && !kKeepsWords) s.frontier()[w0 + q * 32 + lane_id()] = 0;
    // Lanes share the vertices of all words: a mesh has many in few words, side by side.
    const u32 upto = warp_scan(mine, LgPlus()), total = warp_shfl(upto, LG_WARP - 1);
    for (u32 base = 0; base < total; base += LG_WARP * kListedWords) {
      Found<LG_PTR, kListedWords> found;
      found.there = 0;
      for (u32 q = 0; q < kListedWords; ++q) {
        const u32 k = base + q * LG_WARP + lane_id(), from = warp_owner(upto, k);
        u32 rank = k - warp_shfl(upto - mine, from);
        i32 v = 0;
        for (u32 p = 0; p < kListedWords; ++p) {
          const u32 word = warp_shfl(bits[p], from), count = bit_popc(word);
          if (rank < count) v = i32(w0 + p * 32 + from) * 32 + i32(bit_place(word, rank));
          rank -= count;  // wraps around below 0, where it is found
        }
        found.vertex[q] = v;
        found.there |= u32(k < total) << q;
      }
      for (u32 q = 0; q < kListedWords; ++q) {
        found.start[q] = s.out_ptr[found.vertex[q]];
        found.stop[q] = s.out_ptr[found.vertex[q] + 1];
      }
      for (u32 q = 0; q < kListedWords; ++q)
        if (found.there >> q & 1) edges += u64(found.stop[q] - found.start[q]);
      enqueue(s, turn, s.small(), s.chunks(), found);
    }
  }
  edges = block_reduce(edges, u64(0), LgPlus());
  if (block_thread() == 0 && edges) atomic_add(counter(s, turn, kEdges), edges);
  grid_sync(barrier);
}

#endif  // LAGPU_SEARCH_GRID_STATE_CUH
