// The state of a bit-parallel search, shared by push and pull: how entries are loaded, and how new
// bits are recorded.
//
// search/bits.cu has the loop that it runs, and explains the words used here.
#ifndef LAGPU_SEARCH_BITS_STATE_CUH
#define LAGPU_SEARCH_BITS_STATE_CUH
#include "common/entries.cuh"
#include "common/hint.cuh"
#include "common/log.cuh"
#include "common/stop.cuh"
#include "common/quads.cuh"
#ifndef LG_WORD
#define LG_WORD u64
#endif
#ifndef LG_GROUPS  // words a vertex
#define LG_GROUPS 1
#endif
#ifndef LG_BLOCK  // threads a block, and the blocks a multiprocessor is to hold at least
#define LG_BLOCK 1024
#endif
#ifndef LG_BLOCKS
#define LG_BLOCKS 1
#endif
#ifndef LG_ROWS  // statements of the loop, as a log counts them
#define LG_ROWS 2
#endif

typedef LG_WORD Word;

const u32 kGroups = LG_GROUPS;
// A pull is early, and a push blind, while less than such a part of all bits has been found; a pull
// goes through the open words alone where they are less than such a part of all words.
const u64 kEarly = 3, kBlind = 8;
const u32 kFew = 4;
const LG_PTR kLong = kLongColumn;  // as a place in idx
const u32 kMost = kMostRows / 64;  // groups

// Counters of a turn, each on a cache line of its own; the last line has the active rows.
enum Counter : u32 { kFound, kEdges, kOpen, LG_LOGGED(kLooked, ) kAlive, kCounters };
static_assert(kCounters <= kSearchCounters && kMost <= kCounterStride);

// A matrix by columns, and the chunks of the long ones.
struct Form {
  const LG_PTR* ptr;
  const LG_IDX* idx;
  u32 chunks;
  const i64 *chunk_column, *chunk_start;
};

// Vertices by out-degree, the largest first, so that the words that are looked at most share cache
// lines; all null if ranks do not pay.
struct Ranked {
  const i32* rank;    // of each vertex
  const LG_IDX* idx;  // in.idx by ranks
  Word* words;        // room for a frontier's words by ranks
  const i32* heavy;   // the first kHeavy vertices
};

struct Search {
  u32 items;  // words: n * kGroups
  LG_PTR nvals;
  Form in, out;
  Ranked ranked;
  const u32* empty;  // the vertices without predecessors
  const u32* order;  // of batches of 32 words in a pull: `batches` of storage/workspaces.py
  const i32* hint;
  Word *visited, *planes;
  Word *words_a, *words_b, *words_c;
  u32 *some_a, *some_b, *some_c, *open;
  u64* counters;
  // of this level
  u32 depth;  // of what it finds
  // of the block, in shared memory
  Word *alive, *alive_next;  // the rows with a frontier, and with a next one
  Word* pulled;              // those of `alive` that this level pulls; it pushes the others
  u32* mixed;                // whether it does both
  u64* tally;                // of each warp: bits found, then edges, then words still open
  u32* looked_at;            // chunks
  u32* taken;                // tasks that the block's warps have taken in this pull

  LG_DEVICE u32 nsome() const { return (items + 31) / 32; }

  LG_DEVICE Word* words(u32 turn) const {
    return turn % 3 == 0 ? words_a : turn % 3 == 1 ? words_b : words_c;
  }
  LG_DEVICE u32* some(u32 turn) const {
    return turn % 3 == 0 ? some_a : turn % 3 == 1 ? some_b : some_c;
  }
};

struct Buffers {
  const Word* frontier;
  const u32* some;
  Word* next;
  u32* some_next;
  Word* given;  // what a level that also pulls has pushed
};

struct Tally {
  u32 found;
  u64 edges;
  u32 open;               // words that a pull has left open
  LG_LOGGED(u64 looked;)  // entries that a pull looks at
};

LG_DEVICE u64* counter(u64* counters, u32 turn, Counter which) {
  return counters + (turn % kTurns * kCounters + which) * kCounterStride;
}

LG_DEVICE Quad load_quad(const Search& s, const LG_IDX* idx, LG_PTR quad) {
  return load_quad(idx, s.nvals, quad);
}

// The place of the k-th set bit of a word that has more.
LG_DEVICE u32 nth_bit(u32 word, u32 k) {
  u32 at = 0;
  for (u32 half = 16; half; half /= 2) {
    const u32 below = u32(bit_popc(word >> at & ((1u << half) - 1)));
    if (below <= k) {
      k -= below;
      at += half;
    }
  }
  return at;
}

LG_DEVICE void note_alive(const Search& s, u32 g, Word fresh) {
  if (fresh & ~load_volatile(&s.alive_next[g])) atomic_or(&s.alive_next[g], fresh);
}

LG_DEVICE u64 degree(const Search& s, u32 v) {
  return u64(load_ro(&s.out.ptr[v + 1]) - load_ro(&s.out.ptr[v]));
}

// Record bits that word `at` lacked when the level began; those that no other thread has found in
// this level are new.
LG_DEVICE void discover(const Search& s, const Buffers& b, u32 at, Word bits, Tally* tally) {
  const Word before = atomic_or(&b.next[at], bits), fresh = bits & ~before;
  if (!fresh) return;
  atomic_or(&s.visited[at], fresh);
  for (u32 rest = s.depth; rest; rest &= rest - 1)
    atomic_or(&s.planes[u64(bit_ffs(rest) - 1) * s.items + at], fresh);
  tally->found += bit_popc(fresh);
  if (!before) {
    tally->edges += degree(s, at / kGroups);
    atomic_or(&b.some_next[at / 32], 1u << (at % 32));
  }
  note_alive(s, at % kGroups, fresh);
}

// Record new bits of the next frontier, in a word that no other thread writes now and that had
// `visited`.
LG_DEVICE void note_alone(const Search& s, u32 at, Word fresh, Word visited, Tally* tally) {
  s.visited[at] = visited | fresh;
  // Of a word that had no bits, and in a plane that this level is the first to use, all are zero.
  const bool zero = !visited || !(s.depth & (s.depth - 1));
  for (u32 rest = s.depth; rest; rest &= rest - 1) {
    Word* const plane = &s.planes[u64(bit_ffs(rest) - 1) * s.items + at];
    *plane = fresh | (zero ? Word(0) : *plane);
  }
  tally->found += bit_popc(fresh);
  note_alive(s, at % kGroups, fresh);
}

#endif  // LAGPU_SEARCH_BITS_STATE_CUH
