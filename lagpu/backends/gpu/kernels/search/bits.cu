// The bit-parallel search: breadth-first searches of all rows at once, as one cooperative kernel.
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
// an operation on a word; bitmap/expand.cu makes numbers of them at the end, each written once.
//
// A frontier is words, and `some` has a bit for each word that is not 0. Three of both take turns:
// read, filled, and zeroed; a launch finds all of them zero and leaves them so.
//
// Pull: a vertex looks for the bits it lacks, of the active rows (`alive`), those whose frontier is
// not empty. A warp takes the entries of its 32 words together, four indices (one load of 16
// bytes) a lane. `open` has a bit for each word that still lacks bits; where few do, the next pull
// goes through these alone. While few bits have been found a pull is bound by the frontier's words
// that it looks at; they may then be taken by ranks, the heaviest vertices first, so that those
// looked at most share lines of L1.
//
// Push: a vertex gives its bits to its successors, by an atomic for each entry whose result is
// not read; a thread block shares the entries of all its words among its threads. After a barrier
// of the grid one thread settles each word.
//
// in_* is A by columns (predecessors), out_* by rows (successors); columns of more than kLongColumn
// entries are listed, cut into chunks of so many, and any warp takes the next chunk.
//
// Sources: Then et al. 2014 (bits of many searches in a word, sections 3 and 4); Beamer, Asanovic
// and Patterson 2012 (directions); O'Neil and Quass 1997 (bit-sliced numbers).
#include "search/bits_pull.cuh"
#include "search/bits_push.cuh"

// A level is pushed or pulled.
union Room {
  PushRoom push;
  Word missing[LG_BLOCK];  // in a pull, each thread's
};

// What a search has done so far; each block has it in shared memory, where it takes no registers.
struct SoFar {
  u64 found, open, rows;  // entries, words that the last pull has left open, rows in the beginning
  u32 pushes, pulls, both;  // levels, and those in both directions among the pulls
  bool pulled;              // the last one
};

// Zero a frontier's words, where there are any, and their bits.
LG_DEVICE void clear(const Search& s, Word* words, u32* some) {
  const u32 together = 8, warps = u32(global_warps()), nsome = s.nsome();
  for (u32 w0 = u32(global_warp()); w0 < nsome; w0 += together * warps) {
    u32 bits[together];  // all are on their way before one is looked at
#pragma unroll
    for (u32 q = 0; q < together; ++q)
      bits[q] = w0 + q * warps < nsome ? load_cg(&some[w0 + q * warps]) : 0;
    warp_sync();  // all have read them
#pragma unroll
    for (u32 q = 0; q < together; ++q) {
      const u32 w = w0 + q * warps;
      if (!bits[q]) continue;
      if (bits[q] >> lane_id() & 1) words[w * 32 + lane_id()] = 0;
      if (lane_id() == 0) some[w] = 0;
    }
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

// Add the thread block's counts to the counters of a turn, and clear them. A barrier of the grid
// must follow.
LG_DEVICE void add_up(const Search& s, u32 turn, const Tally& tally) {
  const u32 warps = LG_BLOCK / LG_WARP;
  const u64 found = warp_reduce(u64(tally.found), LgPlus());
  const u64 edges = warp_reduce(tally.edges, LgPlus());
  const u64 open = warp_reduce(u64(tally.open), LgPlus());
  if (lane_id() == 0) {
    s.tally[block_warp()] = found;
    s.tally[warps + block_warp()] = edges;
    s.tally[2 * warps + block_warp()] = open;
  }
  LG_LOGGED(const u64 looked = warp_reduce(tally.looked, LgPlus());
            if (lane_id() == 0 && looked) atomic_add(counter(s.counters, turn, kLooked), looked);)
  block_sync();
  if (block_thread() < kGroups) {
    const Word alive = atomic_exch(&s.alive_next[block_thread()], Word(0));
    if (alive) atomic_or(counter(s.counters, turn, kAlive) + block_thread(), u64(alive));
  }
  for (u32 which = block_warp(); which < 3; which += warps) {
    const u64 mine = lane_id() < warps ? s.tally[which * warps + lane_id()] : 0;
    const u64 sum = warp_reduce(mine, LgPlus());
    if (lane_id() == 0 && sum) atomic_add(counter(s.counters, turn, Counter(which)), sum);
  }
}

// listed: the first frontier's `sources` positions (v * stride + row), or null, and then its words.
// v_words: the bits of v's entries, without those of the frontier if assignments come first; or
// null. f_words, unless null: what is left of the frontier. before: whether assignments come first;
// where loops are logged, kNewLog more if nothing has been logged yet, and `result` is the log.
extern "C" __global__ void __launch_bounds__(LG_BLOCK, LG_BLOCKS)
    bits_search(i64 n, i64 nvals, const LG_PTR* in_ptr, const LG_IDX* in_idx, const LG_PTR* out_ptr,
                const LG_IDX* out_idx, const i32* hint, const u32* empty, const u32* order,
                const i32* rank, const LG_IDX* ranked_idx, u32* ranked_words, const i32* heavy,
                i64 in_chunks, const i64* in_column, const i64* in_start, i64 out_chunks,
                const i64* out_column, const i64* out_start, i64 sources, const i64* listed,
                const u32* source_words, const u32* v_words, u32 before, u32 times, u32 push_cost,
                u32 enough, u32 plane_count, u32* visited, u32* planes, u32* words_a, u32* words_b,
                u32* words_c, u32* some_a, u32* some_b, u32* some_c, u32* open, u32* f_words,
                u64* counters, GridBarrier* barrier, const u64* stop, u64* result) {
  LG_SHARED(Room, room, 1);
  LG_SHARED(Word, alive, kMost);
  LG_SHARED(Word, alive_next, kMost);
  LG_SHARED(Word, pulled, kMost);
  LG_SHARED(u32, mixed, 1);
  LG_SHARED(SoFar, so_far, 1);
  LG_SHARED(u32, counts, kGroups * 8 * sizeof(Word));
  LG_SHARED(u64, block_tally, 3 * LG_BLOCK / LG_WARP);
  LG_SHARED(u32, looked_at, 1);
  LG_SHARED(u32, taken, 1);
  LG_LOGGED(LG_SHARED(LoopLog, log, 1); const bool logs = global_thread() == 0;
            if (logs) log->open(result, before & kNewLog); before &= 1;)
  const u32 items = u32(n) * kGroups;
  Search s{items,
           LG_PTR(nvals),
           Form{in_ptr, in_idx, u32(in_chunks), in_column, in_start},
           Form{out_ptr, out_idx, u32(out_chunks), out_column, out_start},
           Ranked{rank, ranked_idx, reinterpret_cast<Word*>(ranked_words), heavy},
           empty,
           order,
           hint,
           reinterpret_cast<Word*>(visited),
           reinterpret_cast<Word*>(planes),
           reinterpret_cast<Word*>(words_a),
           reinterpret_cast<Word*>(words_b),
           reinterpret_cast<Word*>(words_c),
           some_a,
           some_b,
           some_c,
           open,
           counters,
           before,
           alive,
           alive_next,
           pulled,
           mixed,
           block_tally,
           looked_at,
           taken};
  const Word* excluded = reinterpret_cast<const Word*>(v_words);
  if (block_thread() < kMost) alive_next[block_thread()] = 0;
  if (block_thread() == 0) mixed[0] = 0;
  if (block_thread() == 0) looked_at[0] = 0;
  for (u32 at = u32(global_thread()); at < items; at += u32(global_threads())) {
    s.visited[at] = excluded ? excluded[at] : Word(0);
    if (before) s.planes[at] = 0;  // the first level finds depth 1
  }
  for (u32 k = u32(global_thread()); k < kTurns * kCounters * kCounterStride;
       k += u32(global_threads()))
    counters[k] = 0;
  if (global_thread() == 0) result[4] = 0;
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

  u32 turn = 0;
  u64 found;
  if (block_thread() == 0) *so_far = SoFar{0, ~0ull, 0, 0, 0, 0, false};
  for (;;) {
    found = load_volatile(counter(counters, turn, kFound));
    const bool stops = found >= kStops;
    found %= kStops;
    const u64 frontier_edges = load_volatile(counter(counters, turn, kEdges));
    const bool pulls_now = frontier_edges * push_cost > u64(nvals) * kGroups;
    if (block_thread() < kGroups) {
      alive[block_thread()] = Word(load_volatile(counter(counters, turn, kAlive) + block_thread()));
      pulled[block_thread()] = pulls_now ? alive[block_thread()] : Word(0);
    }
    if (block_thread() == 0) {
      if (so_far->pulled) so_far->open = load_volatile(counter(counters, turn, kOpen));
      so_far->both += mixed[0];
      taken[0] = mixed[0] = 0;
    }
    if (!found || turn == times || stops) break;
    if (block_thread() == 0) {
      for (u32 g = 0; turn == 0 && g < kGroups; ++g)
        so_far->rows += u64(bit_popc(load_volatile(counter(counters, turn, kAlive) + g)));
      so_far->found += found;
      so_far->pulled = pulls_now;
      so_far->pushes += !pulls_now;
      so_far->pulls += pulls_now;
    }
    if (block_index() == 0)
      for (u32 k = block_thread(); k < kCounters * kCounterStride; k += LG_BLOCK)
        counter(counters, turn + 2, Counter(0))[k] = 0;
    if (looks(turn) && global_thread() == 0) look(stop, counter(counters, turn + 1, kFound));
    block_sync();
    s.depth = turn + before;
    const Buffers b{s.words(turn), s.some(turn), s.words(turn + 1), s.some(turn + 1),
                    s.words(turn + 2)};
    tally = Tally{};
    LG_LOGGED(if (logs) log->begin(pulls_now ? kPulls : kPushes, turn, found, frontier_edges,
                                   u64(nvals) * kGroups);)
    const bool by_ranks = pulls_now && s.ranked.idx && so_far->found * kEarly < so_far->rows * n;
    if (by_ranks) {
      choose_rows(s, enough, counts);
      rank_words(s, b);
      if (mixed[0]) clear(s, s.words(turn + 2), s.some(turn + 2));
      grid_sync(barrier);
    }
    // those that were ready first do this while the others go on
    const auto tidy = [&]() {
      clear(s, s.words(turn + 2), s.some(turn + 2));
      const u32 soon = s.depth + 1;  // a plane is zeroed one level before its first use
      if ((soon & (soon - 1)) == 0 && bit_ffs(soon) <= plane_count) {
        Word* const plane = s.planes + u64(bit_ffs(soon) - 1) * items;
        for (u32 at = u32(global_thread()); at < items; at += u32(global_threads())) plane[at] = 0;
      }
    };
    if (!pulls_now || mixed[0]) {
      const Buffers to{b.frontier, pulls_now ? s.open : b.some, pulls_now ? b.given : b.next,
                       nullptr, nullptr};
      push(s, to, so_far->found * kBlind < so_far->rows * n, &room->push, &tally);
      if (!pulls_now) tidy();
      grid_sync(barrier);
    }
    if (pulls_now) {
      pull(s, b, by_ranks, so_far->open > items / kFew, room->missing, &tally);
      tidy();
    } else {
      settle(s, b, &tally);
    }
    add_up(s, turn + 1, tally);
    grid_sync(barrier);
    ++turn;
    LG_LOGGED(if (logs) log->end(
        load_volatile(counter(counters, turn, kFound)),
        pulls_now ? load_volatile(counter(counters, turn, kLooked)) : frontier_edges, LG_ROWS);)
  }
  LG_LOGGED(if (logs) log->close();)

  // What is left, because `times` is reached or the host stops it, has not been assigned if that
  // comes before the product; and a result's bits are those that v did not have.
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
  if (block_thread() == 0 && looked_at[0]) atomic_add(&result[4], u64(looked_at[0]));
  if (global_thread() == 0) {
    result[0] = turn ? turn - 1 + before : 0;  // the largest depth that may be in the planes
    result[kLeft] = found;
    result[2] = so_far->pushes;
    result[3] = so_far->pulls;
    result[5] = so_far->both;
  }
}
