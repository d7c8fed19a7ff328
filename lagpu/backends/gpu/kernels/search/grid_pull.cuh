// Pull of a grid search: unvisited vertices look for predecessors in the frontier; see
// search/grid.cu.
#ifndef LAGPU_SEARCH_GRID_PULL_CUH
#define LAGPU_SEARCH_GRID_PULL_CUH
#include "search/grid_sums.cuh"

const u32 kLook = 16;      // predecessors that a lane looks at alone
const u32 kDeferred = 32;  // hubs that a block keeps for later
const u32 kBatch = 4;      // predecessors at once
const u32 kLong = LG_SPREAD ? LG_SPREAD : kHub;
// Without sums these are what a warp with kMuch to look at has found in none of kVain predecessors:
// the others are parts of kPart.
const bool kShares = LG_SPREAD && !LG_SUM;
const u32 kMuch = 2 * LG_SPREAD, kVain = LG_SPREAD / 16, kPart = LG_SPREAD / 8;

#if !LG_SUM
// Take the product of the first of those predecessors i[q] of vertex j that are `there`, at least
// one, whose entries are at p, p + step, ...
LG_DEVICE void take_product(const Search& s, LG_PTR p, u32 step, const i32 (&i)[kBatch], u32 there,
                            i32 j, bool* hit, LG_Z* sum) {
  if constexpr (Chosen::iso) {
    *sum = product(s, s.in_values, p, i[0], j);
    *hit = true;
  } else {
    for (u32 q = 0; q < kBatch && !*hit; ++q) {
      if (!(there >> q & 1)) continue;
      *sum = product(s, s.in_values, p + LG_PTR(q * step), i[q], j);
      *hit = true;
    }
  }
}

// Look at predecessors p .. p + count of vertex j, kBatch at a time so that their loads overlap,
// until the first in the frontier. Returns how many it has looked at. Where fewer are left the last
// is loaded again: loads after a branch would wait for one another.
LG_DEVICE u32 look(const Search& s, LG_PTR p, u32 count, i32 j, bool* hit, LG_Z* sum) {
  u32 done = 0;
  for (; done < count && !*hit; done += kBatch) {
    i32 i[kBatch];
    u32 word[kBatch];
    for (u32 q = 0; q < kBatch; ++q)
      i[q] = i32(load_ro(&s.in_idx[p + LG_PTR(done + q < count ? done + q : count - 1)]));
    for (u32 q = 0; q < kBatch; ++q) word[q] = s.frontier()[i[q] / 32];
    u32 there = 0;
    for (u32 q = 0; q < kBatch; ++q) there |= (word[q] >> (i[q] % 32) & 1) << q;
    if (count - done < kBatch) there &= (1u << (count - done)) - 1;
    if (there) take_product(s, p + LG_PTR(done), 1, i, there, j, hit, sum);
  }
  return done < count ? done : count;
}

// The first product of each `width` lanes, on each of them. Where none is `found`, what is returned
// is none.
LG_DEVICE LG_Z first_of(bool* found, LG_Z mine, u32 width) {
  const u32 who = warp_ballot(*found) & team_of(width);
  *found = who != 0;
  return warp_shfl(mine, who ? bit_ffs(who) - 1 : 0);
}

// The same by teams of `width` lanes, each for one vertex, kBatch predecessors a lane at a time.
// All lanes of a team have the same arguments; `count` is 0 where it has no vertex.
LG_DEVICE void look_together(const Search& s, LG_PTR p, u32 count, i32 j, u32 width, bool* hit,
                             LG_Z* sum, Tally* tally) {
  const u32 lane = lane_id() & (width - 1), team = team_of(width);
  bool found = false, looks = count != 0;
  LG_Z mine = LG_ADD::identity<LG_Z>();
  u32 done = 0;
  while (warp_any(looks)) {
    i32 i[kBatch];
    u32 word[kBatch];
    for (u32 q = 0; q < kBatch; ++q) {
      const u32 at = done + q * width + lane;
      i[q] = i32(load_ro(&s.in_idx[p + LG_PTR(at < count ? at : count ? count - 1 : 0)]));
    }
    for (u32 q = 0; q < kBatch; ++q) word[q] = s.frontier()[i[q] / 32];
    u32 there = 0;
    for (u32 q = 0; q < kBatch; ++q)
      there |= (word[q] >> (i[q] % 32) & u32(done + q * width + lane < count)) << q;
    if (looks && there) take_product(s, p + LG_PTR(done + lane), width, i, there, j, &found, &mine);
    const bool has = warp_ballot(found) & team;
    if (looks) done += kBatch * width;
    looks = looks && done < count && !has;
  }
  LG_LOGGED(if (lane == 0) tally->looked += done < count ? done : count;)
  mine = first_of(&found, mine, width);
  if (!found) return;
  *sum = mine;
  *hit = true;
}
#endif

// The visited bits of word w, not looked at: that would wait for the load.
LG_DEVICE u32 visited_word(const Search& s, u32 w, u32 nwords) {
#ifdef LG_PEERS
  if (LG_SUM && s.claimed) return ~s.found_words[w < nwords ? w : nwords - 1];
#endif
  return s.visited[w < nwords ? w : nwords - 1];
}

// A vertex that is found in level `depth` + 1 by a pull; its bit is set by the caller.
LG_DEVICE void settle(const Search& s, i32 j, u32 depth, LG_Z sum) {
  if (LG_SUM) s.kept()[j] = cast<LG_F>(sum);
#ifndef LG_PEERS
  if (LG_SUM) s.found_in[j] = i32(depth) + 1;
#elif LG_SUM && LG_SENDS_VALUES
  send_value(s, *s.all, j, cast<LG_F>(sum));
#endif
  discover(s, j, depth + s.shift, cast<LG_F>(sum));
}

// 2 ** log words of a group are side by side: up to 8, a sector of memory, as long as all warps
// have some.
LG_DEVICE u32 group_log(u32 nwords) {
  u32 log = 0;
  while (log < 3 && nwords >> (log + 1) >= u32(global_warps())) ++log;
  return log;
}

// Word k of a group that begins with word `first`.
LG_DEVICE u32 word_of_group(u32 first, u32 k, u32 log) {
  return first + (k >> log) * (u32(global_warps()) << log) + (k & ((1u << log) - 1));
}

// The state that the warps of a thread block share in a pull.
struct Shared {
  u32 words;  // taken by warps, beside the first two of each
  // Vertices whose many predecessors one warp would take long to look at: the whole block does.
  i32 vertex[kDeferred];
  u32 count;           // if all blocks share them, the turn whose counter has their number
  LG_Z sums[LG_WARP];  // of the warps; without LG_SUM the first is the first product found
  u32 there;           // which of them
};

#if LG_SPREAD && !LG_SUM
// Leave `rest` predecessors of the lanes' vertices to all blocks, in parts: (part << 32) | vertex
// in chunks_a, which a pull does not use otherwise.
LG_DEVICE void leave_parts(const Search& s, Shared* block, u32 rest, i32 j) {
  const u32 mine = (rest + kPart - 1) / kPart;
  if (!warp_any(mine != 0)) return;
  const u32 upto = warp_scan(mine, LgPlus());
  u32 to = 0;
  if (lane_id() == LG_WARP - 1) to = u32(atomic_add(counter(s, block->count, kLevel), u64(upto)));
  to = warp_shfl(to, LG_WARP - 1) + (upto - mine);
  for (u32 work = warp_ballot(mine != 0); work; work &= work - 1) {
    const u32 from = bit_ffs(work) - 1, first = warp_shfl(to, from), many = warp_shfl(mine, from);
    const u32 vertex = u32(warp_shfl(j, from));
    for (u32 k = lane_id(); k < many; k += LG_WARP) s.chunks_a[first + k] = u64(k) << 32 | vertex;
  }
}
#else
// Have the whole block look at a vertex of very many predecessors later; false if there is no room.
LG_DEVICE bool put_off(const Search& s, Shared* block, i32 j) {
#if LG_SPREAD  // all blocks share them, by chunks_a, which a pull does not use otherwise
  s.chunks_a[atomic_add(counter(s, block->count, kLevel), u64(1))] = u32(j);
  return true;
#endif
  const u32 at = atomic_add(&block->count, 1u);
  if (at >= kDeferred) return false;
  block->vertex[at] = j;
  return true;
}
#endif

#if LG_SUM
// What a pull that adds up loads of 32 vertices before it looks at them.
struct Ahead {
  u32 seen;  // visited, or no vertex
  LG_PTR begin, end;
};

LG_DEVICE Ahead ahead(const Search& s, u32 w, u32 nwords, u32 seen) {
  Ahead a{w < nwords ? seen : 0xffffffffu, 0, 0};
  if (!(a.seen >> lane_id() & 1)) {
    const u32 j = w * 32 + lane_id();
    a.begin = load_ro(&s.in_ptr[j]);
    a.end = load_ro(&s.in_ptr[j + 1]);
  }
  return a;
}

// Share k of the predecessors p .. end of a vertex, one for each warp of a block: its first, and
// how many it has.
LG_DEVICE LG_PTR share_of(i64 p, i64 end, u32 k, u32* count) {
  const i64 share = (end - p + block_warps() - 1) / block_warps(), rest = end - p - share * k;
  *count = rest <= 0 ? 0 : u32(rest < share ? rest : share);
  return LG_PTR(rest <= 0 ? p : p + share * k);
}

// Look at predecessors p .. end of vertex j by all warps; ends with a barrier. Shares in order, so
// that a sum does not depend on the order of threads.
LG_DEVICE void look_as_block(const Search& s, i64 p, i64 end, i32 j, Shared* block, Tally* tally) {
  u32 count = 0;
  const LG_PTR begin = share_of(p, end, block_warp(), &count);
  if (lane_id()) count = 0;
  bool hit = false;
  LG_Z sum = LG_ADD::identity<LG_Z>();
  sum_columns(s, begin, count, j, &hit, &sum);
  LG_LOGGED(tally->looked += count;)
  if (hit) {
    block->sums[block_warp()] = sum;
    atomic_or(&block->there, 1u << block_warp());
  }
  block_sync();
}

// The sum of the lanes' sums, on each of them. Where none is `found`, what is returned is none.
LG_DEVICE LG_Z fold(bool* found, LG_Z mine) {
  for (u32 step = LG_WARP / 2; step; step /= 2) {
    const LG_Z other = warp_shfl_xor(mine, step);
    const bool other_found = warp_shfl_xor(*found, step);
    if (other_found) mine = *found ? add<LG_ADD>(mine, other) : other;
    *found = *found || other_found;
  }
  return mine;
}

#if defined(LG_PEERS) && !LG_ADDS
// What `look_as_block` does, by one warp: which hubs find the block's list full depends on the
// order of threads, and sums do not. Returns whether there is a sum.
LG_DEVICE bool look_in_shares(const Search& s, i64 p, i64 end, i32 j, LG_Z* sum) {
  bool found = false;
  for (u32 k = 0; k < block_warps(); ++k) {
    u32 count = 0;
    const LG_PTR begin = share_of(p, end, k, &count);
    bool its_hit = false;
    LG_Z its = LG_ADD::identity<LG_Z>();
    sum_columns(s, begin, lane_id() ? 0 : count, j, &its_hit, &its);
    its_hit = warp_shfl(its_hit, 0);
    its = warp_shfl(its, 0);
    if (lane_id() != k) continue;
    found = its_hit;
    *sum = its;
  }
  *sum = fold(&found, *sum);
  return found;
}
#endif

// Add up the products of vertex j, each lane's own, over all of its predecessors.
LG_DEVICE void find(const Search& s, const Ahead& now, bool wanted, i32 j, Shared* block, bool* hit,
                    LG_Z* sum, Tally* tally) {
  u32 count = wanted ? u32(now.end - now.begin) : 0;
  bool stays = count > kLong;
  if (stays && put_off(s, block, j)) {
    stays = false;
    count = 0;
  }
  LG_LOGGED(tally->looked += count;)
#if defined(LG_PEERS) && !LG_ADDS  // else their order does not matter
  for (u32 rest = warp_ballot(stays); rest; rest &= rest - 1) {
    const u32 from = bit_ffs(rest) - 1;
    LG_Z its = LG_ADD::identity<LG_Z>();
    const bool found = look_in_shares(s, i64(warp_shfl(now.begin, from)),
                                      i64(warp_shfl(now.end, from)), warp_shfl(j, from), &its);
    if (lane_id() != from) continue;
    *hit = found;
    *sum = its;
    count = 0;
  }
#endif
  sum_columns(s, now.begin, count, j, hit, sum);
}
#else
// Look at predecessors p .. end of vertex j by all warps, until the first in the frontier; ends
// with a barrier.
LG_DEVICE void look_as_block(const Search& s, i64 p, i64 end, i32 j, Shared* block, Tally* tally) {
  for (; p < end; p += block_threads()) {
    const i64 at = p + block_thread();
    const i32 i = at < end ? i32(load_ro(&s.in_idx[at])) : -1;
    const bool found = i >= 0 && has_entry(s.frontier(), i);
    LG_LOGGED(tally->looked += i >= 0;)
    if (found && !atomic_exch(&block->there, 1u))
      block->sums[0] = product(s, s.in_values, at, i, j);
    if (block_any(found)) break;
  }
  block_sync();
}

LG_DEVICE LG_Z fold(bool* found, LG_Z mine) { return first_of(found, mine, LG_WARP); }

// Look for a predecessor of vertex j in the frontier, each lane's own, which has `count` of them
// from `begin` on: some by each lane, the rest by teams of lanes or the whole warp, or later by the
// block.
LG_DEVICE void find(const Search& s, LG_PTR begin, u32 count, i32 j, Shared* block, bool* hit,
                    LG_Z* sum, Tally* tally) {
  const u32 done = look(s, begin, count < kLook ? count : kLook, j, hit, sum);
  LG_LOGGED(tally->looked += done;)
  bool looks = !*hit && done < count;
#if LG_SPREAD
  const u32 some = looks ? count - done < kMuch ? count - done : kMuch : 0;
  const bool much = warp_any(looks) && warp_reduce(some, LgPlus()) >= kMuch;
#else
  const bool much = false;
  if (looks && count - done > kLong && put_off(s, block, j)) looks = false;
#endif
  // The fewer vertices are left, the more lanes look for each.
  for (u32 rest = warp_ballot(looks); rest;) {
    const u32 left = bit_popc(rest), width = left == 1 ? 32 : left == 2 ? 16 : 8;
    u32 mine = rest;  // from the vertex of this lane's team on
    for (u32 k = lane_id() / width; k; --k) mine &= mine - 1;
    const u32 from = mine ? bit_ffs(mine) - 1 : 0;
    const LG_PTR p = warp_shfl(begin + LG_PTR(done), from);
    const u32 all = warp_shfl(count - done, from), many = much && all > kVain ? kVain : all;
    bool its_hit = false;
    LG_Z its_sum = LG_ADD::identity<LG_Z>();
    look_together(s, p, mine ? many : 0, warp_shfl(j, from), width, &its_hit, &its_sum, tally);
    const u32 team = bit_popc(rest & lanes_below());  // that looks for this lane's vertex
    its_hit = warp_shfl(its_hit, team * width % 32);
    its_sum = warp_shfl(its_sum, team * width % 32);
    if (rest >> lane_id() & 1 && team < 32 / width && its_hit) {
      *sum = its_sum;
      *hit = true;
    }
    for (u32 k = 32 / width; k && rest; --k) rest &= rest - 1;
  }
#if LG_SPREAD
  if (much)
    leave_parts(s, block, looks && !*hit && count - done > kVain ? count - done - kVain : 0, j);
#endif
}
#endif

#if LG_SPREAD && !LG_SUM
// Look at the `count` parts that all blocks have left, after a barrier, but for those of a vertex
// that another warp has found.
LG_DEVICE void pull_parts(const Search& s, u32 depth, u32 count, Tally* tally) {
  const u32 first = u32(block_warp() * grid_blocks() + block_index());
  for (u32 k = first; k < count; k += u32(global_warps())) {
    const u64 part = load_cg(&s.chunks_a[k]);
    const i32 j = i32(u32(part));
    u32 *const next = &s.next()[j / 32], bit = 1u << (j % 32);
    if (warp_any((load_cg(next) & bit) != 0)) continue;
    const LG_PTR p = load_ro(&s.in_ptr[j]) + LG_PTR(kLook + kVain + (part >> 32) * kPart);
    const LG_PTR rest = load_ro(&s.in_ptr[j + 1]) - p;
    const u32 all = rest < LG_PTR(kPart) ? u32(rest) : kPart, each = (kPart + 31) / 32;
    const u32 from = lane_id() * each, left = from < all ? all - from : 0;
    bool hit = false;
    LG_Z sum = LG_ADD::identity<LG_Z>();
    const u32 looked = look(s, p + LG_PTR(from), left < each ? left : each, j, &hit, &sum);
    LG_LOGGED(tally->looked += looked;)
    sum = first_of(&hit, sum, LG_WARP);
    if (!hit || lane_id() || atomic_or(next, bit) & bit) continue;
    atomic_or(&s.visited[j / 32], bit);
    settle(s, j, depth, sum);
    ++tally->found;
  }
}
#else
// Look at the vertices that were put off, and leave what is found as `pull` does; begins and ends
// with a barrier.
template <class Leave>
LG_DEVICE void pull_deferred(const Search& s, u32 depth, Shared* block, Tally* tally, Leave leave) {
  block_sync();
  u32 count = block->count < kDeferred ? block->count : kDeferred;
  if (LG_SPREAD) count = u32(load_volatile(counter(s, block->count, kLevel)));
  // Blocks share whole vertices, as a sum must not depend on the order of threads.
  for (u32 k = LG_SPREAD ? u32(block_index()) : 0; k < count;
       k += LG_SPREAD ? u32(grid_blocks()) : 1) {
    const i32 j = LG_SPREAD ? i32(u32(load_cg(&s.chunks_a[k]))) : block->vertex[k];
    look_as_block(s, i64(s.in_ptr[j]) + (LG_SUM ? 0 : kLook), i64(s.in_ptr[j + 1]), j, block,
                  tally);
    if (block_warp() == 0) {
      const u32 there = block->there;
      bool found = there >> lane_id() & 1;
      LG_Z sum = found ? block->sums[lane_id()] : LG_ADD::identity<LG_Z>();
      if (there) sum = fold(&found, sum);
      warp_sync();  // all lanes have read what the first one resets
      if (there && lane_id() == 0) {
        const u32 w = u32(j / 32), bit = 1u << (j % 32);
        settle(s, j, depth, sum);
        if (!LG_SPREAD) leave(w, s.next()[w] | bit);  // its own word, written before the barrier
        if (!LG_SPREAD) s.visited[w] |= bit;
        if (LG_SPREAD) atomic_or(&s.next()[w], bit), atomic_or(&s.visited[w], bit);
        ++tally->found;
        block->there = 0;
      }
    }
    block_sync();
  }
  if (block_thread() == 0) block->words = 0;
  if (!LG_SPREAD && block_thread() == 0 && count) block->count = 0;  // all have read it by now
}
#endif

#if LG_SUM
// The words of 32 vertices that a warp pulls into. With sums warps take very different times, so
// each takes the next of its block's, after two, that none has taken.

// Word q of a thread block's: each takes 32 in turn.
LG_DEVICE u32 word_of_block(u32 q) {
  return (q / 32 * u32(grid_blocks()) + u32(block_index())) * 32 + q % 32;
}

// The word that a warp takes after two.
LG_DEVICE u32 next_word(Shared* block) {
  u32 q = 0;
  if (lane_id() == 0) q = atomic_add(&block->words, 1u);
  return word_of_block(warp_shfl(q, 0) + 2 * block_warps());
}

// Pull into every vertex that is not visited, 32 vertices a warp. leave(w, bits) is called for each
// word w of what is found, by one lane.
template <class Leave>
LG_DEVICE void pull(const Search& s, u32 depth, Shared* block, Tally* tally, Leave leave) {
  const u32 nwords = u32((s.n + 31) / 32);
  // Two words ahead the visited bits are loaded, one word ahead what those ask for.
  u32 w = word_of_block(block_warp()), w_next = word_of_block(block_warps() + block_warp()),
      w_after;
  Ahead next = ahead(s, w, nwords, visited_word(s, w, nwords));
  u32 seen_after = visited_word(s, w_next, nwords);
  for (; w < nwords; w = w_next, w_next = w_after) {
    const Ahead now = next;
    next = ahead(s, w_next, nwords, seen_after);
    w_after = next_word(block);
    seen_after = visited_word(s, w_after, nwords);
    if (now.seen == 0xffffffffu) {
      if (lane_id() == 0) leave(w, 0);
      continue;
    }
    const i32 j = i32(w * 32) + i32(lane_id());
    const bool wanted = !(now.seen >> lane_id() & 1);
    bool hit = false;
    LG_Z sum = LG_ADD::identity<LG_Z>();
    find(s, now, wanted, j, block, &hit, &sum, tally);
    const u32 bits = warp_ballot(hit);
    if (hit) settle(s, j, depth, sum);
    if (lane_id() == 0) {
      leave(w, bits);
#ifdef LG_PEERS
      if (!s.claimed)
#endif
        s.visited[w] = now.seen | bits;
      tally->found += bit_popc(bits);
    }
  }
}
#else
const u32 kNone = 0xffffffff;  // no vertex

// The vertices that a warp pulls into at a time: those of 32 words of visited bits, each known by
// its number among these 1024. In dynamic shared memory, which a push uses too: so L1 has more room
// for the frontier.
struct Group {
  u32 found[LG_WARP];                   // bits of what is found of each word
  unsigned short listed[2 * LG_WARP];   // not visited
  unsigned short waiting[2 * LG_WARP];  // nor answered by their hints
};
static_assert(sizeof(Group) == kGroupBytes, "the launch gives each warp so many");

// A vertex that is found, number v of a group.
LG_DEVICE void settle_in_group(const Search& s, Group* group, u32 v, i32 j, u32 depth, LG_Z sum) {
  settle(s, j, depth, sum);
  atomic_or(&group->found[v / 32], 1u << (v % 32));
}

// Pull into the vertices of a group that are not visited, those of its words that are `open`. They
// are listed word by word, so that a word with few of them takes no longer than these few. Those of
// the list look at their hints, 32 at a time; those that these do not answer, and that have more
// predecessors, wait until they are 32, which look at all of these.
LG_DEVICE void pull_group(const Search& s, Group* group, u32 first, u32 log, u32 open, u32 depth,
                          Shared* block, Tally* tally) {
  const auto vertex = [&](u32 v) { return i32(word_of_group(first, v / 32, log) * 32 + v % 32); };
  const u32 lane = lane_id();
  u32 listed = 0, waiting = 0, v = kNone;
  i32 hint = kNoHint;
  for (bool last = false; !last;) {
    for (; open && listed < LG_WARP; open &= open - 1) {
      const u32 k = bit_ffs(open) - 1, left = ~s.visited[word_of_group(first, k, log)];
      if (left >> lane & 1)
        group->listed[listed + bit_popc(left & lanes_below())] = (unsigned short)(k * 32 + lane);
      listed += bit_popc(left);
    }
    warp_sync();
    // While the lanes' vertices are looked at, the hints of the next ones are loaded.
    const u32 v_now = v, taken = listed < LG_WARP ? listed : LG_WARP;
    const Hint hint_now = hint_from(hint);
    listed -= taken;
    v = kNone;
    hint = kNoHint;
    if (lane < taken) {
      v = group->listed[listed + lane];
      if (s.hint) hint = load_ro(&s.hint[vertex(v)]);
    }
    const bool answered = hint_now.row >= 0 && has_entry(s.frontier(), hint_now.row);
    if (answered) {
      const i32 j = vertex(v_now);
      settle_in_group(s, group, v_now, j, depth, product(s, s.in_values, 0, hint_now.row, j));
    }
    LG_LOGGED(tally->looked += answered || hint_now.only;)
    const bool waits = v_now != kNone && !answered && !hint_now.only;
    const u32 more = warp_ballot(waits);
    if (waits) group->waiting[waiting + bit_popc(more & lanes_below())] = (unsigned short)v_now;
    waiting += bit_popc(more);
    warp_sync();
    last = !warp_any(v != kNone);
    while (waiting >= LG_WARP || (last && waiting)) {
      const u32 looking = waiting < LG_WARP ? waiting : LG_WARP;
      waiting -= looking;
      const u32 v_then = lane < looking ? group->waiting[waiting + lane] : 0;
      const i32 j = vertex(v_then);
      const LG_PTR begin = lane < looking ? load_ro(&s.in_ptr[j]) : 0;
      const u32 count = lane < looking ? u32(load_ro(&s.in_ptr[j + 1]) - begin) : 0;
      warp_sync();
      bool hit = false;
      LG_Z sum = LG_ADD::identity<LG_Z>();
      find(s, begin, count, j, block, &hit, &sum, tally);
      if (hit) settle_in_group(s, group, v_then, j, depth, sum);
    }
  }
}

// Pull into every vertex that is not visited, 32 words of them a warp at a time. leave(w, bits) is
// called for each word w of what is found, by one lane.
template <class Leave>
LG_DEVICE void pull(const Search& s, u32 depth, Shared* block, Tally* tally, Leave leave) {
  LG_DYNAMIC_SHARED(Group, groups);
  Group* const group = &groups[block_warp()];
  const u32 nwords = u32((s.n + 31) / 32), lane = lane_id();
  const u32 log = group_log(nwords), step = LG_WARP * u32(global_warps());
  u32 first = u32(global_warp()) << log;
  u32 seen = visited_word(s, word_of_group(first, lane, log), nwords);
  for (; first < nwords; first += step) {
    const u32 open = warp_ballot(word_of_group(first, lane, log) < nwords && seen != 0xffffffffu);
    seen = visited_word(s, word_of_group(first + step, lane, log), nwords);
    group->found[lane] = 0;
    if (open) pull_group(s, group, first, log, open, depth, block, tally);
    warp_sync();
    const u32 w = word_of_group(first, lane, log), found = group->found[lane];
    if (w < nwords) {
      leave(w, found);
      if (found) s.visited[w] |= found;
    }
    tally->found += bit_popc(found);
  }
}
#endif

#endif  // LAGPU_SEARCH_GRID_PULL_CUH
