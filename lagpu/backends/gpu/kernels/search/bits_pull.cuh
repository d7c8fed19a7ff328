// Pull of a bit-parallel search: vertices look for the bits they lack; see search/bits.cu.
#ifndef LAGPU_SEARCH_BITS_PULL_CUH
#define LAGPU_SEARCH_BITS_PULL_CUH
#include "search/bits_state.cuh"

// Clear bits of a word in shared memory. There is no atomic for a u64, so each half takes one.
LG_DEVICE void clear_shared(u32* word, u32 bits) { atomic_and(word, ~bits); }
LG_DEVICE void clear_shared(u64* word, u64 bits) {
  u32* const half = reinterpret_cast<u32*>(word);
  if (u32(bits)) atomic_and(half, ~u32(bits));
  if (u32(bits >> 32)) atomic_and(half + 1, ~u32(bits >> 32));
}

#if LG_LOG
// Entries of a quad in p .. end.
LG_DEVICE u64 entries_of(LG_PTR quad, LG_PTR p, LG_PTR end) {
  const LG_PTR first = quad * 4 < p ? p : quad * 4, last = end - quad * 4 < 4 ? end : quad * 4 + 4;
  return first < last ? u64(last - first) : 0;
}
#endif

// The warp goes through quads first .. last of all its lanes together, 32 at a time:
// use(task, load(task)), where the indices of the next 32 are on their way while these are used.
// Every lane calls it, load and use.
template <class Load, class Use>
LG_DEVICE void through_quads(LG_PTR first, LG_PTR last, Load load, Use use) {
  const Quads quads(first, last);
  if (!quads.total) return;
  Task next = quads.task(lane_id());
  Quad ready = load(next);
  for (u32 base = LG_WARP;; base += LG_WARP) {
    const Task now = next;
    const Quad q = ready;
    if (base < quads.total) {
      next = quads.task(base + lane_id());
      ready = load(next);
    }
    use(now, q);
    if (base >= quads.total) break;
  }
}

template <bool ranked>
LG_DEVICE Quad indices(const Search& s, LG_PTR quad) {
  return load_quad(s, ranked ? s.ranked.idx : s.in.idx, quad);
}

// The union of the frontier's words of group g at those of a quad's indices in p .. end.
template <bool ranked>
LG_DEVICE Word gather(const Search& s, const Buffers& b, const Quad& q, LG_PTR quad, LG_PTR p,
                      LG_PTR end, u32 g) {
  const LG_PTR skip = p - quad * 4, rest = end - quad * 4;
  const Word* const words = ranked ? s.ranked.words : b.frontier;
  Word x[4];
#pragma unroll
  for (u32 t = 0; t < 4; ++t) {
    const bool in = LG_PTR(t) >= skip && LG_PTR(t) < rest;
    x[t] = in ? words[u32(q.i[t]) * kGroups + g] : Word(0);
  }
  return (x[0] | x[1]) | (x[2] | x[3]);
}

// The next of a block's tasks, for one warp: those of all blocks take turns. A warp that had little
// to do takes more of them.
LG_DEVICE u32 take(u32* taken) {
  u32 k = 0;
  if (lane_id() == 0) k = atomic_add(taken, 1u);
  return warp_shfl(k, 0) * grid_blocks() + block_index();
}

// The warp pulls into word `at` from p .. end, a chunk of its column.
template <bool ranked>
LG_DEVICE void pull_chunk(const Search& s, const Buffers& b, u32 at, LG_PTR p, LG_PTR end,
                          Tally* tally) {
  const u32 g = at % kGroups;
  Word missing = ~load_cg(&s.visited[at]) & s.pulled[g];
  missing = warp_shfl(missing, 0);  // another warp may have written between two lanes' loads
  if (!missing) return;
  if (lane_id() == 0) atomic_add(s.looked_at, 1u);
  Word got = 0;
  const LG_PTR stop = quads_end(end);
  for (LG_PTR base = p / 4; base < stop && (got & missing) != missing; base += 64) {
    Word x = 0;
#pragma unroll
    for (u32 step = 0; step < 64; step += 32) {
      const LG_PTR quad = base + LG_PTR(step + lane_id());
      if (quad < stop) x |= gather<ranked>(s, b, indices<ranked>(s, quad), quad, p, end, g);
      LG_LOGGED(if (quad < stop) tally->looked += entries_of(quad, p, end);)
    }
    got |= warp_reduce(x, LgOr());
  }
  got &= missing;
  if (lane_id() == 0 && got) discover(s, b, at, got, tally);
}

// Pull into the long columns, a chunk a warp; what the first chunks find, later ones leave out. A
// lane asks whether a chunk's column lacks bits.
template <bool ranked>
LG_DEVICE void pull_chunks(const Search& s, const Buffers& b, Tally* tally) {
  const u32 warps = u32(global_warps()), tasks = s.in.chunks * kGroups;
  for (u32 base = u32(global_warp()); base < tasks; base += warps * LG_WARP) {
    const u32 mine = base + lane_id() * warps;
    u32 at = 0;
    bool lacks = false;
    if (mine < tasks) {
      at = u32(s.in.chunk_column[mine / kGroups]) * kGroups + mine % kGroups;
      lacks = (~load_cg(&s.visited[at]) & s.pulled[at % kGroups]) != 0;
    }
    for (u32 rest = warp_ballot(lacks); rest; rest &= rest - 1) {
      const u32 lane = bit_ffs(rest) - 1, its = warp_shfl(at, lane);
      const LG_PTR p = LG_PTR(s.in.chunk_start[(base + lane * warps) / kGroups]);
      const LG_PTR last = s.in.ptr[its / kGroups + 1];
      pull_chunk<ranked>(s, b, its, p, last - p > kLong ? p + kLong : last, tally);
    }
  }
}

// What a pull loads of a word before it looks for the bits it wants.
struct Ahead {
  Word want;
  LG_PTR p, end;
  i32 hint;
};

LG_DEVICE Ahead ahead(const Search& s, u32 at, Word want) {
  Ahead a{want, 0, 0, kNoHint};
  if (want) {
    const u32 v = at / kGroups;
    a.p = load_ro(&s.in.ptr[v]);
    a.end = load_ro(&s.in.ptr[v + 1]);
    const Hint first = hint_from(load_ro(&s.hint[v]));
    a.hint = first.row;
    if (first.only) a.end = a.p;          // nothing is left to look at
    if (a.end - a.p > kLong) a.want = 0;  // its chunks have been, or will be, taken
  }
  return a;
}

// The bits that the warp's words find, each lane's own: first by the hint and one quad for each
// lane, then by all lanes together. missing: room for the warp's words in shared memory.
template <bool ranked>
LG_DEVICE Word look(const Search& s, const Buffers& b, u32 at, const Ahead& now, Word* missing,
                    Tally* tally) {
  const u32 g = at % kGroups;
  Word got = 0;
  LG_PTR quad = now.p / 4;
  if (now.want) {
    const Quad q = indices<ranked>(s, quad);  // on its way while the hint is looked at
    if (now.hint >= 0) got = b.frontier[u32(now.hint) * kGroups + g] & now.want;
    LG_LOGGED(tally->looked += now.hint >= 0;
              if (got != now.want) tally->looked += entries_of(quad, now.p, now.end);)
    if (got != now.want) got |= gather<ranked>(s, b, q, quad, now.p, now.end, g) & now.want;
    ++quad;
  }
  const LG_PTR last = got != now.want ? quads_end(now.end) : quad;
  if (!warp_any(quad < last)) return got;
  missing[lane_id()] = now.want & ~got;
  warp_sync();
  through_quads(
      quad, last,
      [&](const Task& task) {
        const bool open = task.there && load_volatile(&missing[task.from]);
        return open ? indices<ranked>(s, task.quad) : Quad{};
      },
      [&](const Task& task, const Quad& q) {
        const LG_PTR end = warp_shfl(now.end, task.from);
        const u32 its = kGroups == 1 ? 0 : warp_shfl(g, task.from);
        const Word open = task.there ? load_volatile(&missing[task.from]) : Word(0);
        if (!open) return;
        LG_LOGGED(tally->looked += entries_of(task.quad, task.quad * 4, end);)
        const Word x = open & gather<ranked>(s, b, q, task.quad, task.quad * 4, end, its);
        if (x) clear_shared(&missing[task.from], x);
      });
  warp_sync();
  got = now.want & ~load_volatile(&missing[lane_id()]);
  warp_sync();  // before the next words
  return got;
}

LG_DEVICE void note_found(const Search& s, const Buffers& b, u32 at, Word got, Tally* tally) {
  if (!got) return;
  b.next[at] = got;
  tally->edges += degree(s, at / kGroups);
  note_alone(s, at, got, s.visited[at], tally);
}

// Take the bits that were pushed to word `at` in this level; return the new ones, unless they are a
// long column's: other warps may write that word, so they are recorded here.
LG_DEVICE Word take_given(const Search& s, const Buffers& b, u32 at, Tally* tally) {
  const Word given = load_cg(&b.given[at]);
  if (!given) return 0;
  b.given[at] = 0;
  const Word fresh = given & ~load_cg(&s.visited[at]);
  if (s.in.ptr[at / kGroups + 1] - s.in.ptr[at / kGroups] <= kLong) return fresh;
  if (fresh) discover(s, b, at, fresh, tally);
  return 0;
}

// The bits of `rows` that word `at` lacks.
LG_DEVICE Word lacking(const Search& s, u32 at, const Word* rows) {
  return at < s.items && !(s.empty[at / kGroups / 32] >> (at / kGroups % 32) & 1)
             ? ~s.visited[at] & rows[at % kGroups]
             : Word(0);
}

LG_DEVICE Word wanted(const Search& s, u32 at) { return lacking(s, at, s.pulled); }

// Pull into every word that lacks bits of rows that are pulled, 32 words a warp, those with most
// entries first. `open` gets a bit for each word that still lacks some, of any active row.
template <bool ranked>
LG_DEVICE void pull_all(const Search& s, const Buffers& b, Word* missing, Tally* tally) {
  const u32 nsome = s.nsome();
  const auto place = [&](u32 task) { return task < nsome ? load_ro(&s.order[task]) : nsome; };
  // Three turns ahead the warp has its place, two turns ahead the visited bits are loaded, one turn
  // ahead what those ask for.
  u32 w = place(take(s.taken)), w_after = place(take(s.taken)), w_then = place(take(s.taken));
  Ahead next = ahead(s, w * LG_WARP + lane_id(), wanted(s, w * LG_WARP + lane_id()));
  Word want_after = wanted(s, w_after * LG_WARP + lane_id());
  while (w < nsome) {
    const Ahead now = next;
    const u32 here = w, at = here * LG_WARP + lane_id();
    w = w_after;
    next = ahead(s, w * LG_WARP + lane_id(), want_after);
    w_after = w_then;
    want_after = wanted(s, w_after * LG_WARP + lane_id());
    w_then = place(take(s.taken));
    u32 open = 0;
    const bool mixed = ranked && *s.mixed;
    if (mixed || warp_any(now.want != 0)) {
      Word got = look<ranked>(s, b, at, now, missing, tally);
      open = warp_ballot(got != now.want);
      if (mixed && at < s.items) got |= take_given(s, b, at, tally);
      note_found(s, b, at, got, tally);
      const u32 finders = warp_ballot(got != 0);
      if (lane_id() == 0 && finders) atomic_or(&b.some_next[here], finders);
      if (mixed) open = warp_ballot(lacking(s, at, s.alive) != 0);
    }
    if (lane_id() == 0) {
      s.open[here] = open;
      tally->open += bit_popc(open);
    }
  }
}

// The set bits of 32 words, one of each lane, which the warp goes through together.
struct SetBits {
  u32 word, upto, total;  // upto: how many this lane and those before it have
};

LG_DEVICE SetBits set_bits(u32 word) {
  const u32 upto = warp_scan(u32(bit_popc(word)), LgPlus());
  return {word, upto, warp_shfl(upto, LG_WARP - 1)};
}

struct Bit {
  u32 from, place;  // the lane whose word has it, and where
  bool there;
};

// The k-th of them; every lane calls it.
LG_DEVICE Bit bit_of(const SetBits& bits, u32 k) {
  u32 from = 0;  // the first lane with an end after k
  for (u32 step = LG_WARP / 2; step; step /= 2)
    if (warp_shfl(bits.upto, from + step - 1) <= k) from += step;
  const u32 word = warp_shfl(bits.word, from);
  const u32 before = warp_shfl(bits.upto - u32(bit_popc(bits.word)), from);
  return {from, nth_bit(word, k - before), k < bits.total};
}

// How many of the words that have bits for 32 words each a warp is to take at once, so that there
// is something for all warps: from 1 to 32.
LG_DEVICE u32 words_a_warp(const Search& s) {
  const u32 warps = u32(global_warps()), each = (s.nsome() + warps - 1) / warps;
  return each < LG_WARP ? each : LG_WARP;
}

// Pull into the open words alone, where they are few: a warp goes through the bits of some words of
// `open`.
LG_DEVICE void pull_open(const Search& s, const Buffers& b, Word* missing, Tally* tally) {
  const u32 nsome = s.nsome(), each = words_a_warp(s);
  for (u32 w0 = u32(global_warp()) * each; w0 < nsome; w0 += u32(global_warps()) * each) {
    const u32 w = w0 + lane_id();
    const SetBits bits = set_bits(lane_id() < each && w < nsome ? s.open[w] : 0);
    for (u32 first = 0; first < bits.total; first += LG_WARP) {
      const Bit bit = bit_of(bits, first + lane_id());
      const u32 at = (w0 + bit.from) * 32 + bit.place;
      const Ahead now = ahead(s, at, bit.there ? wanted(s, at) : Word(0));
      const Word got = look<false>(s, b, at, now, missing, tally);
      note_found(s, b, at, got, tally);
      if (got) atomic_or(&b.some_next[at / 32], 1u << (at % 32));
      if (bit.there && got == now.want) atomic_and(&s.open[at / 32], ~(1u << (at % 32)));
      tally->open += bit.there && got != now.want;
    }
  }
}

// The frontier's words by ranks, and in `open` a bit for each that has bits of rows that are not
// pulled; a barrier of the grid must follow.
LG_DEVICE void rank_words(const Search& s, const Buffers& b) {
  const u32 nsome = s.nsome();
  for (u32 w = u32(global_warp()); w < nsome; w += u32(global_warps())) {
    const u32 at = w * LG_WARP + lane_id();
    const Word x = at < s.items ? b.frontier[at] : Word(0);
    if (at < s.items) s.ranked.words[u32(s.ranked.rank[at / kGroups]) * kGroups + at % kGroups] = x;
    const u32 others = warp_ballot((x & ~s.pulled[at % kGroups]) != 0);
    if (lane_id() == 0) s.open[w] = others;
  }
}

// Leave in `pulled` the rows that have found `enough` of the heaviest vertices: a pull finds their
// bits soon, and would look at nearly every entry for those of a row with a small frontier, whose
// few edges are pushed. All blocks find the same. counts: room for each row in shared memory.
LG_DEVICE void choose_rows(const Search& s, u32 enough, u32* counts) {
  const u32 bits = 8 * sizeof(Word), halves = bits / LG_WARP;
  for (u32 k = block_thread(); k < kGroups * bits; k += LG_BLOCK) counts[k] = 0;
  block_sync();
  for (u32 task = block_warp(); task < kHeavy / LG_WARP * kGroups; task += LG_BLOCK / LG_WARP) {
    const u32 g = task % kGroups, k = task / kGroups * LG_WARP + lane_id();
    const Word x =
        k < s.items / kGroups ? s.visited[u32(s.ranked.heavy[k]) * kGroups + g] : Word(0);
    for (u32 half = 0; half < halves; ++half) {
      const u32 its = u32(x >> half * LG_WARP);
      u32 mine = 0;
      for (u32 k = 0; k < LG_WARP; ++k) {
        const u32 have = bit_popc(warp_ballot(its >> k & 1));
        if (lane_id() == k) mine = have;
      }
      if (mine) atomic_add(&counts[g * bits + half * LG_WARP + lane_id()], mine);
    }
  }
  block_sync();
  if (block_warp() == 0) {
    for (u32 g = 0; g < kGroups; ++g) {
      Word rows = 0;
      for (u32 half = 0; half < halves; ++half)
        rows |= Word(warp_ballot(counts[g * bits + half * LG_WARP + lane_id()] >= enough))
                << half * LG_WARP;
      if (lane_id() == 0 && (s.alive[g] & ~rows)) {
        s.pulled[g] &= rows;
        *s.mixed = 1;
      }
    }
  }
  block_sync();
}

// Pull the next frontier. by_ranks: the frontier's words are there by ranks. all: not into
// open words alone.
LG_DEVICE void pull(const Search& s, const Buffers& b, bool by_ranks, bool all, Word* missing,
                    Tally* tally) {
  Word* const mine = missing + block_warp() * LG_WARP;
  if (by_ranks) {
    pull_chunks<true>(s, b, tally);
    pull_all<true>(s, b, mine, tally);
    return;
  }
  pull_chunks<false>(s, b, tally);
  if (all)
    pull_all<false>(s, b, mine, tally);
  else
    pull_open(s, b, mine, tally);
}

#endif  // LAGPU_SEARCH_BITS_PULL_CUH
