// Breadth-first searches of all rows of a block at once, as one cooperative kernel.
//
// The loop it runs, for a frontier f (k x n), a matrix v among the x, and iso products:
//
//     while f has entries and depth < times:
//         x(f.S) << depth, or << a constant                   for each assigned x
//         f(~v.S, replace=True) << f (+.x) A                  v is one of the x
//         depth += 1
//
// A word has the bits of up to 64 rows (LG_WORD) of one vertex; word v * LG_GROUPS + g stands for
// rows of group g. `visited` has the bits that are not searched again. Depths are kept bit-sliced
// while the search runs: plane b has bit b of each entry's depth, so what a level finds is noted by
// an operation on a word; `block_expand` makes numbers of them at the end, each written once.
//
// A frontier is words, and `some` has a bit for each word that is not 0. Three of both take turns:
// read, filled, and zeroed; a launch finds all of them zero and leaves them so. A level ends with
// the one barrier that it has.
//
// Pull: a vertex looks for the bits it has not, of the rows that are alive, the ones whose frontier
// is not empty. Push: a vertex gives its bits to its successors. Either way a warp takes the
// entries of its 32 words together, four indices (one load of 16 bytes) a lane.
//
// in_* is A by columns (predecessors), out_* by rows (successors); columns of more than LONG
// entries are listed, cut into chunks of so many, and any warp takes the next chunk.
//
// Sources: Then et al. 2014 (bits of many searches in a word, sections 3 and 4); Beamer, Asanovic
// and Patterson 2012 (directions); O'Neil and Quass 1997 (bit-sliced numbers).
#include "entries.cuh"
#include "looplog.cuh"
// what is not given; the file compiles by itself
#ifndef LG_WORD
#define LG_WORD u64
#endif
#ifndef LG_GROUPS  // words a vertex
#define LG_GROUPS 1
#endif
#ifndef LG_PTR
#define LG_PTR i32
#endif
#ifndef LG_IDX
#define LG_IDX i32
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
#ifndef LG_X  // type of the expanded values
#define LG_X i32
#endif

#define LONG 1024  // as in block.cu

typedef LG_WORD Word;

const u32 kGroups = LG_GROUPS;
const u32 kLine = 16;  // u64 a cache line: counters do not share one
const u32 kMost = 16;  // groups: 1024 rows
// Numbers told: what the end writes; from kEnds on, when the first levels began and ended, in ns.
const u32 kEnds = 8, kResults = 64;
const bool kLogs = LG_LOG != 0;  // then times are in the log, which begins where they would stand
const u32 kAtHand = 4;           // planes that block_expand keeps in registers

// Counters of a turn, each on a line of its own; behind them a line with the rows that are alive.
enum Counter : u32 { kFound, kEdges, LG_LOGGED(kLooked, ) kAlive, kCounters };

// Clear bits of a word in shared memory; the halves have atomics of their own, a u64 has not.
LG_DEVICE void clear_shared(u32* word, u32 bits) { atomic_and(word, ~bits); }
LG_DEVICE void clear_shared(u64* word, u64 bits) {
  u32* const half = reinterpret_cast<u32*>(word);
  if (u32(bits)) atomic_and(half, ~u32(bits));
  if (u32(bits >> 32)) atomic_and(half + 1, ~u32(bits >> 32));
}

// Four indices that stand side by side, at a multiple of four.
struct alignas(16) Quad {
  LG_IDX i[4];
};

// A matrix by columns, and the chunks of the long ones.
struct Form {
  const LG_PTR* ptr;
  const LG_IDX* idx;
  u32 chunks;
  const i64 *chunk_column, *chunk_start;
};

struct Search {
  u32 items;  // words: n * kGroups
  LG_PTR nvals;
  Form in, out;
  const u32* empty;
  const i32* hint;
  Word *visited, *planes;
  Word *words_a, *words_b, *words_c;
  u32 *some_a, *some_b, *some_c;
  u64* counters;
  // of this level
  u32 depth;  // of what it finds
  // of the block, in shared memory
  Word *alive, *alive_next;  // the rows with a frontier, and with a next one
  u64* tally;                // found, edges, chunks looked at
  u32* taken;  // chunks and batches of words that the block's warps have taken in this pull

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
  const u32* filter;  // `some` in shared memory
  Word* next;
  u32* some_next;
};

struct Tally {
  u32 found;
  u64 edges;
  LG_LOGGED(u64 looked;)  // entries that a pull looks at
};

#if LG_LOG
// Entries of a quad in p .. end.
LG_DEVICE u64 entries_of(LG_PTR quad, LG_PTR p, LG_PTR end) {
  const LG_PTR first = quad * 4 < p ? p : quad * 4, last = end - quad * 4 < 4 ? end : quad * 4 + 4;
  return first < last ? u64(last - first) : 0;
}
#endif

LG_DEVICE u64* counter(u64* counters, u32 turn, Counter which) {
  return counters + (turn % 3 * kCounters + which) * kLine;
}

LG_DEVICE Quad load_quad(const Search& s, const LG_IDX* idx, LG_PTR quad) {
  const LG_PTR first = quad * 4;
  if ((reinterpret_cast<u64>(idx) & 15) == 0 && s.nvals - first >= 4)
    return reinterpret_cast<const Quad*>(idx)[quad];
  Quad q;
  for (u32 t = 0; t < 4; ++t) q.i[t] = idx[LG_PTR(t) < s.nvals - first ? first + LG_PTR(t) : first];
  return q;
}

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

// The quad behind the last one that has entries before `end`, which is not 0.
LG_DEVICE LG_PTR quads_end(LG_PTR end) { return (end - 1) / 4 + 1; }

// A quad that a lane is to look at, for another lane.
struct Task {
  u32 from;  // whose it is
  LG_PTR quad;
  bool there;
};

// The warp goes through quads first .. last of all its lanes together, 32 at a time:
// use(task, load(task)), where the indices of the next 32 are on their way while these are used.
// Every lane calls it, load and use.
template <class Load, class Use>
LG_DEVICE void through_quads(LG_PTR first, LG_PTR last, Load load, Use use) {
  const u32 mine = first < last ? u32(last - first) : 0;
  const u32 end = warp_scan(mine, LgPlus());
  const u32 total = warp_shfl(end, LG_WARP - 1);
  const LG_PTR shift = first - LG_PTR(end - mine);
  const auto task = [&](u32 k) {
    u32 from = 0;  // the first lane with an end behind k
    for (u32 step = LG_WARP / 2; step; step /= 2)
      if (warp_shfl(end, from + step - 1) <= k) from += step;
    return Task{from, warp_shfl(shift, from) + LG_PTR(k), k < total};
  };
  if (!total) return;
  Task next = task(lane_id());
  Quad ready = load(next);
  for (u32 base = LG_WARP;; base += LG_WARP) {
    const Task now = next;
    const Quad q = ready;
    if (base < total) {
      next = task(base + lane_id());
      ready = load(next);
    }
    use(now, q);
    if (base >= total) break;
  }
}

LG_DEVICE void note_alive(const Search& s, u32 g, Word fresh) {
  if (fresh & ~load_volatile(&s.alive_next[g])) atomic_or(&s.alive_next[g], fresh);
}

LG_DEVICE u64 degree(const Search& s, u32 v) { return u64(s.out.ptr[v + 1] - s.out.ptr[v]); }

// Bits that word `at` may lack: those that nobody else has found enter the next frontier.
LG_DEVICE void discover(const Search& s, const Buffers& b, u32 at, Word bits, Tally* tally) {
  const Word fresh = bits & ~atomic_or(&s.visited[at], bits);
  if (!fresh) return;
  for (u32 rest = s.depth; rest; rest &= rest - 1)
    atomic_or(&s.planes[u64(bit_ffs(rest) - 1) * s.items + at], fresh);
  tally->found += bit_popc(fresh);
  if (atomic_or(&b.next[at], fresh) == 0) {
    tally->edges += degree(s, at / kGroups);
    atomic_or(&b.some_next[at / 32], 1u << (at % 32));
  }
  note_alive(s, at % kGroups, fresh);
}

// The same for a word that no other thread writes in this level.
LG_DEVICE void discover_alone(const Search& s, const Buffers& b, u32 at, Word fresh, Tally* tally) {
  b.next[at] = fresh;
  s.visited[at] |= fresh;
  for (u32 rest = s.depth; rest; rest &= rest - 1)
    s.planes[u64(bit_ffs(rest) - 1) * s.items + at] |= fresh;
  tally->found += bit_popc(fresh);
  tally->edges += degree(s, at / kGroups);
  note_alive(s, at % kGroups, fresh);
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
    if (lane_id() == 0) atomic_add(&s.tally[2], u64(1));
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
    if (got) discover_alone(s, b, at, got, tally);
    if (lane_id() == 0 && finders) atomic_or(&b.some_next[base / 32], finders);
  }
}

// Give bits x of group g to the successors in a quad, where they lack them.
LG_DEVICE void scatter(const Search& s, const Buffers& b, Word x, const Quad& q, LG_PTR quad,
                       LG_PTR p, LG_PTR end, u32 g, Tally* tally) {
  const LG_PTR skip = p - quad * 4, rest = end - quad * 4;
  Word lacks[4];
#pragma unroll
  for (u32 t = 0; t < 4; ++t) {
    const bool in = LG_PTR(t) >= skip && LG_PTR(t) < rest;
    lacks[t] = in ? x & ~load_cg(&s.visited[u32(q.i[t]) * kGroups + g]) : Word(0);
  }
#pragma unroll
  for (u32 t = 0; t < 4; ++t)
    if (lacks[t]) discover(s, b, u32(q.i[t]) * kGroups + g, lacks[t], tally);
}

// Push the frontier's words: the long rows by chunks, the others 32 words a warp.
LG_DEVICE void push(const Search& s, const Buffers& b, Tally* tally) {
  const u32 warp = u32(global_warp()), warps = u32(global_warps());
  const u32 tasks = s.out.chunks * kGroups;
  for (u32 t = warp; t < tasks; t += warps) {
    const u32 c = t / kGroups, g = t % kGroups, u = u32(s.out.chunk_column[c]);
    const Word x = b.frontier[u * kGroups + g];
    if (!x) continue;
    if (lane_id() == 0) atomic_add(&s.tally[2], u64(1));
    const LG_PTR p = LG_PTR(s.out.chunk_start[c]), last = s.out.ptr[u + 1];
    const LG_PTR end = last - p > LONG ? p + LONG : last;
    const LG_PTR behind = quads_end(end);
    for (LG_PTR quad = p / 4 + LG_PTR(lane_id()); quad < behind; quad += LG_WARP)
      scatter(s, b, x, load_quad(s, s.out.idx, quad), quad, p, end, g, tally);
  }
  // A lane loads one word of `some`, far from its neighbours': entries that stand near to each
  // other are then taken by different warps.
  const u32 nsome = (s.items + 31) / 32;
  for (u32 w0 = warp; w0 < nsome; w0 += warps * LG_WARP) {
    const u64 w = w0 + u64(lane_id()) * warps;
    const u32 word = w < nsome ? b.some[w] : 0;
    for (u32 rest = warp_ballot(word != 0); rest; rest &= rest - 1) {
      const u32 place = bit_ffs(rest) - 1;
      const u32 base = (w0 + place * warps) * 32, at = base + lane_id();
      Word x = 0;
      LG_PTR p = 0, end = 0;
      if (warp_shfl(word, place) >> lane_id() & 1) {
        x = b.frontier[at];
        p = s.out.ptr[at / kGroups];
        end = s.out.ptr[at / kGroups + 1];
        if (end - p > LONG) end = p;
      }
      through_quads(
          p / 4, p < end ? quads_end(end) : p / 4,
          [&](const Task& task) {
            return task.there ? load_quad(s, s.out.idx, task.quad) : Quad{};
          },
          [&](const Task& task, const Quad& q) {
            const Word bits = warp_shfl(x, task.from);
            const LG_PTR its_p = warp_shfl(p, task.from), its_end = warp_shfl(end, task.from);
            if (task.there)
              scatter(s, b, bits, q, task.quad, its_p, its_end, (base + task.from) % kGroups,
                      tally);
          });
    }
  }
}

// Zero a frontier's words, where there are any, and their bits.
LG_DEVICE void clear(const Search& s, Word* words, u32* some) {
  const u32 nsome = (s.items + 31) / 32;
  for (u32 w = u32(global_warp()); w < nsome; w += u32(global_warps())) {
    const u32 bits = load_cg(&some[w]);
    if (!bits) continue;
    if (bits >> lane_id() & 1) words[w * 32 + lane_id()] = 0;
    warp_sync();  // all have read it
    if (lane_id() == 0) some[w] = 0;
  }
}

// An entry of the first frontier.
LG_DEVICE void enter(const Search& s, bool before, u32 at, Word bits, Tally* tally) {
  tally->found += bit_popc(bits);
  if (before) atomic_or(&s.visited[at], bits);
  if (atomic_or(&s.words_a[at], bits) == 0) {
    tally->edges += degree(s, at / kGroups);
    atomic_or(&s.some_a[at / 32], 1u << (at % 32));
  }
  note_alive(s, at % kGroups, bits);
}

// Add what the block has found to the counters of a turn, and forget it; the grid meets behind it.
LG_DEVICE void add_up(const Search& s, u32 turn, const Tally& tally) {
  if (warp_any(tally.found != 0)) {
    const u64 found = warp_reduce(u64(tally.found), LgPlus());
    const u64 edges = warp_reduce(tally.edges, LgPlus());
    if (lane_id() == 0) {
      atomic_add(&s.tally[0], found);
      atomic_add(&s.tally[1], edges);
    }
  }
  LG_LOGGED(const u64 looked = warp_reduce(tally.looked, LgPlus());
            if (lane_id() == 0 && looked) atomic_add(counter(s.counters, turn, kLooked), looked);)
  block_sync();
  if (block_thread() < kGroups) {
    const Word alive = atomic_exch(&s.alive_next[block_thread()], Word(0));
    if (alive) atomic_or(counter(s.counters, turn, kAlive) + block_thread(), u64(alive));
  }
  if (block_thread() < 2) {  // exchanged: a plain load might be made by all threads beforehand
    const u64 sum = atomic_exch(&s.tally[block_thread()], u64(0));
    if (sum) atomic_add(counter(s.counters, turn, Counter(block_thread())), sum);
  }
}

// listed: the first frontier's `sources` positions (v * stride + row), or null, and then its words.
// v_words: the bits of v's entries, without those of the frontier if assignments come first; or
// null. filter_words: of `some`, if shared memory has room for them, else 0. f_words, unless null:
// what is left of the frontier. before: whether assignments come first; where loops are logged, 2
// more if nothing has been logged yet, and `result` is the log.
extern "C" __global__ void __launch_bounds__(LG_BLOCK, LG_BLOCKS)
    block_search(i64 n, i64 nvals, const LG_PTR* in_ptr, const LG_IDX* in_idx,
                 const LG_PTR* out_ptr, const LG_IDX* out_idx, const i32* hint, const u32* empty,
                 i64 in_chunks, const i64* in_column, const i64* in_start, i64 out_chunks,
                 const i64* out_column, const i64* out_start, i64 sources, const i64* listed,
                 const u32* source_words, const u32* v_words, u32 before, u32 times, u32 push_cost,
                 u32 plane_count, u32 filter_words, u32* visited, u32* planes, u32* words_a,
                 u32* words_b, u32* words_c, u32* some_a, u32* some_b, u32* some_c, u32* f_words,
                 u64* counters, GridBarrier* barrier, u64* result) {
  LG_DYNAMIC_SHARED(u32, filter);
  LG_SHARED(Word, missing, LG_BLOCK);
  LG_SHARED(Word, alive, kMost);
  LG_SHARED(Word, alive_next, kMost);
  LG_SHARED(u64, block_tally, 3);
  LG_SHARED(u32, taken, 2);
  LG_LOGGED(LG_SHARED(LoopLog, log, 1); const bool logs = global_thread() == 0;
            if (logs) log->open(result, before & 2); before &= 1;)
  const u32 items = u32(n) * kGroups;
  Search s{items,
           LG_PTR(nvals),
           Form{in_ptr, in_idx, u32(in_chunks), in_column, in_start},
           Form{out_ptr, out_idx, u32(out_chunks), out_column, out_start},
           empty,
           hint,
           reinterpret_cast<Word*>(visited),
           reinterpret_cast<Word*>(planes),
           reinterpret_cast<Word*>(words_a),
           reinterpret_cast<Word*>(words_b),
           reinterpret_cast<Word*>(words_c),
           some_a,
           some_b,
           some_c,
           counters,
           before,
           alive,
           alive_next,
           block_tally,
           taken};
  const Word* excluded = reinterpret_cast<const Word*>(v_words);
  if (block_thread() < kMost) alive_next[block_thread()] = 0;
  if (block_thread() < 3) block_tally[block_thread()] = 0;
  for (u32 at = u32(global_thread()); at < items; at += u32(global_threads())) {
    s.visited[at] = excluded ? excluded[at] : Word(0);
    if (before) s.planes[at] = 0;  // the first level finds depth 1
  }
  for (u32 k = u32(global_thread()); k < 3 * kCounters * kLine; k += u32(global_threads()))
    counters[k] = 0;
  if (global_thread() == 0) {
    result[4] = 0;
    result[kEnds - 1] = clock_ns();
  }
  grid_sync(barrier);
  Tally tally{};
  if (listed) {
    const u32 bits = 8 * sizeof(Word);
    for (i64 q = global_thread(); q < sources; q += global_threads())
      enter(s, before, u32(listed[q] / bits), Word(1) << (listed[q] % bits), &tally);
  } else {
    const Word* from = reinterpret_cast<const Word*>(source_words);
    for (u32 at = u32(global_thread()); at < items; at += u32(global_threads()))
      if (from[at]) enter(s, before, at, from[at], &tally);
  }
  block_sync();
  add_up(s, 0, tally);
  grid_sync(barrier);
  if (!kLogs && global_thread() == 0) result[kEnds] = clock_ns();

  u32 turn = 0, pushes = 0, pulls = 0, filtered = 0;
  u64 found = load_volatile(counter(counters, 0, kFound));
  while (found && turn != times) {
    const u64 leaving = load_volatile(counter(counters, turn, kEdges));
    if (block_thread() < 2) taken[block_thread()] = 0;
    if (block_thread() < kGroups)
      alive[block_thread()] = Word(load_volatile(counter(counters, turn, kAlive) + block_thread()));
    if (block_index() == 0 && block_thread() < kLine)
      for (u32 k = 0; k < kCounters; ++k)
        counter(counters, turn + 2, Counter(k))[block_thread()] = 0;
    block_sync();
    s.depth = turn + before;
    const Buffers b{s.words(turn), s.some(turn), filter, s.words(turn + 1), s.some(turn + 1)};
    clear(s, s.words(turn + 2), s.some(turn + 2));
    const u32 soon = s.depth + 1;  // a plane is zeroed one level before its first use
    if ((soon & (soon - 1)) == 0 && bit_ffs(soon) <= plane_count) {
      Word* const plane = s.planes + u64(bit_ffs(soon) - 1) * items;
      for (u32 at = u32(global_thread()); at < items; at += u32(global_threads())) plane[at] = 0;
    }
    tally = Tally{};
    const bool pulls_now = leaving * push_cost > u64(nvals) * kGroups;
    LG_LOGGED(if (logs) log->begin(pulls_now ? kPulls : kPushes, turn, found, leaving,
                                   u64(nvals) * kGroups);)
    if (pulls_now) {
      // `leaving` of all entries find a word that is not 0: where these are few, most looks end in
      // shared memory and not in L2.
      if (filter_words && leaving * 2 < u64(nvals) * kGroups) {
        for (u32 w = block_thread(); w < filter_words; w += block_threads())
          filter[w] = load_cg(&b.some[w]);
        block_sync();
        pull<true>(s, b, missing, &tally);
        ++filtered;
      } else {
        pull<false>(s, b, missing, &tally);
      }
      ++pulls;
    } else {
      push(s, b, &tally);
      ++pushes;
    }
    add_up(s, turn + 1, tally);
    grid_sync(barrier);
    ++turn;
    if (!kLogs && global_thread() == 0 && kEnds + turn < kResults)
      result[kEnds + turn] = clock_ns();
    found = load_volatile(counter(counters, turn, kFound));
    LG_LOGGED(if (logs) log->end(
        found, pulls_now ? load_volatile(counter(counters, turn, kLooked)) : leaving, LG_ROWS);)
  }
  LG_LOGGED(if (logs) log->close();)

  // What is left, because `times` is reached, has not been assigned if that comes before the
  // product; and a result's bits are those that v did not have.
  const Word* left = s.words(turn);
  Word* const rest = reinterpret_cast<Word*>(f_words);
  if (f_words || excluded) {
    for (u32 at = u32(global_thread()); at < items; at += u32(global_threads())) {
      const Word its = found ? left[at] : Word(0);
      if (rest) rest[at] = its;
      s.visited[at] &= ~((excluded ? excluded[at] : Word(0)) | (before ? its : Word(0)));
    }
    grid_sync(barrier);  // the words are zeroed now
  }
  clear(s, s.words(turn), s.some(turn));
  clear(s, s.words(turn + 2), s.some(turn + 2));
  if (block_thread() == 0 && block_tally[2]) atomic_add(&result[4], block_tally[2]);
  if (global_thread() == 0) {
    result[0] = turn ? turn - 1 + before : 0;  // the largest depth that may be in the planes
    result[1] = found;
    result[2] = pushes;
    result[3] = pulls;
    result[5] = filtered;
    result[6] = turn;
  }
}

// C(assigned.S) << the depth, which planes 0 .. bits of result[0] have, or << number.
// A warp takes 32 words of 32 entries; a thread writes four values that lie side by side. If C was
// blank, its words are not set, and what is no entry of it may be written too.
struct alignas(sizeof(LG_X) * 4 < 16 ? sizeof(LG_X) * 4 : 16) Four {
  LG_X x[4];
};

extern "C" __global__ void block_expand(i64 nwords, const u32* assigned, const u32* planes,
                                        const u64* result, bool blank, bool is_depth, LG_X number,
                                        u32* words, LG_X* values, u64* nvals) {
  const u32 depth = u32(result[0]);
  const u32 count = is_depth && depth ? 32 - bit_clz(depth) : 0;
  const u32 shift = lane_id() % 8 * 4;
  u64 total = 0;
  for (i64 base = global_warp() * 32; base < nwords; base += global_warps() * 32) {
    const i64 at = base + lane_id();
    const u32 bits = at < nwords ? assigned[at] : 0;
    if (at < nwords) {
      const u32 after = bits | (blank ? 0 : words[at]);
      words[at] = after;
      total += bit_popc(after);
    }
    if (!warp_any(bits != 0)) continue;
    u32 plane[kAtHand];
#pragma unroll
    for (u32 p = 0; p < kAtHand; ++p) plane[p] = bits && p < count ? planes[p * nwords + at] : 0;
#pragma unroll
    for (u32 step = 0; step < 8; ++step) {
      const u32 from = step * 4 + lane_id() / 8;
      const u32 here = warp_shfl(bits, from) >> shift & 15;
      u32 number_of[4] = {0, 0, 0, 0};
#pragma unroll
      for (u32 p = 0; p < kAtHand; ++p) {
        if (p >= count) break;
        const u32 its = warp_shfl(plane[p], from) >> shift;
#pragma unroll
        for (u32 q = 0; q < 4; ++q) number_of[q] |= (its >> q & 1) << p;
      }
      if (!here) continue;
      for (u32 p = kAtHand; p < count; ++p) {
        const u32 its = planes[p * nwords + base + from] >> shift;
        for (u32 q = 0; q < 4; ++q) number_of[q] |= (its >> q & 1) << p;
      }
      LG_X* const to = values + (base + from) * 32 + shift;
      Four four;
#pragma unroll
      for (u32 q = 0; q < 4; ++q) four.x[q] = is_depth ? cast<LG_X>(i32(number_of[q])) : number;
      if (blank) {
        *reinterpret_cast<Four*>(to) = four;
      } else {
        for (u32 q = 0; q < 4; ++q)
          if (here >> q & 1) to[q] = four.x[q];
      }
    }
  }
  add_total(total, nvals);
}
