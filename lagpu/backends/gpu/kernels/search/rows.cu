// A search over rows and columns of devices of one host: all levels as one cooperative launch each.
//
// Sources: Bisson and others 2016, algorithm 2; Bernaschi and others 2018, section 3.
//
// Device i + LG_PEER_ROWS * j is in row i and column j. It has the edges from its sources, the
// vertices that column j owns, to its targets, those that row i owns. In both, the vertices of one
// owner fill runs of words, the owners' by turns, so a word has one owner. A level is:
//
//   expansion  each device follows the edges from the frontier's sources to targets that it has not
//              visited, by a push or by a pull, whichever it chooses;
//   fold       it sends what it has found to the owners, in its row;
//   update     owners visit what is new, and assign;
//   expand     they send it to the devices of their column, whose sources these vertices are.
//
// Fold and expand write into the windows of the receivers: words with a bit a vertex, or, where the
// frontier has no more edges than a list has room, lists, which are no longer than those words
// then. A barrier of all devices (common/peers.cuh) ends the fold, and another one the level; the
// latter sums the vertices of the next frontier and the edges that leave it.
//
// With LG_KEEP the source by which each target was found is kept: sent to the owner's window with
// the vertex (LG_LATE 0), or in the finder's own, from where the owner reads it at the end.
#ifndef LG_PEER_ROWS  // devices of a column
#define LG_PEER_ROWS 1
#endif
#include "common/peers.cuh"
#include "search/peers_push.cuh"
#ifndef LG_LATE
#define LG_LATE 1
#endif

const u32 kRows = LG_PEER_ROWS, kColumns = LG_PEERS / LG_PEER_ROWS;
const bool kLate = LG_KEEP && LG_LATE;
const i32 kGiven = -1;  // a source, whose value is known

// Where things are in each window, behind the posts; sizes are multiples of 4 words.
struct Places {
  Peers peers;
  u32 run;                    // 1 << run words, one behind the other, are of one owner
  i64 sources, targets, own;  // words, each of an owner's included
  u32 room;                   // vertices of a list

  LG_DEVICE u32 row() const { return peers.piece % kRows; }
  LG_DEVICE u32 column() const { return peers.piece / kRows; }
  LG_DEVICE u32 in_column(u32 r) const { return column() * kRows + r; }
  LG_DEVICE u32 in_row(u32 q) const { return q * kRows + row(); }
  // The frontier's bits by source; what each column sends of the own vertices; and what owners have
  // visited of the targets.
  LG_DEVICE u32* frontier(u32 at) const {
    return reinterpret_cast<u32*>(peers.window(at) + kPosts);
  }
  LG_DEVICE u32* inbox(u32 at, u32 from) const { return frontier(at) + sources + from * own; }
  LG_DEVICE u32* known(u32 at) const { return inbox(at, kColumns); }
  // The same as lists: how many each column sends, which, and the frontier by rows.
  LG_DEVICE u32* counts(u32 at) const { return known(at) + targets; }
  LG_DEVICE i32* folded(u32 at, u32 from) const {
    return reinterpret_cast<i32*>(counts(at) + kMostPeers) + u64(from) * room;
  }
  LG_DEVICE i32* expanded(u32 at, u32 from) const {
    return folded(at, kColumns) + u64(from) * room;
  }
  // The sources by which targets were found: of a device itself, or sent from a column.
  LG_DEVICE i32* sources_of(u32 at, u32 from) const {
    return expanded(at, kRows) + u64(from) * u64(own) * 32;
  }
  // The vertex that is a source of a column, where vertices have no other order.
  LG_DEVICE i32 vertex_of(i32 source, u32 of_column) const {
    const u32 bits = run + 5;
    const i64 block = source >> bits, row = block % kRows;
    return i32((block / kRows * LG_PEERS + of_column * kRows + row) << bits |
               (source & ((i64(1) << bits) - 1)));
  }
  // Where word w of an owner is among `owners` of them, and back.
  LG_DEVICE i64 among(i64 w, u32 owner, u32 owners) const {
    return ((w >> run) * owners + owner) << run | (w & ((i64(1) << run) - 1));
  }
  LG_DEVICE u32 column_of(i64 w) const { return u32((w >> run) % kColumns); }
  LG_DEVICE i64 of_owner(i64 w) const {
    return (w >> run) / kColumns << run | (w & ((i64(1) << run) - 1));
  }
  LG_DEVICE i32 source_of(i32 v) const { return i32(among(v / 32, row(), kRows) * 32) + v % 32; }
  LG_DEVICE i32 target_of(i32 v) const {
    return i32(among(v / 32, column(), kColumns) * 32) + v % 32;
  }
};

LG_DEVICE void keep_source(const Search& s, i32 v, i32 source) {
  const Places& all = *s.places;
  if (kLate) {
    all.sources_of(all.peers.piece, 0)[v] = source;
  } else {
    const u32 owner = all.in_row(all.column_of(v / 32));
    all.sources_of(owner, all.column())[all.of_owner(v / 32) * 32 + v % 32] = source;
  }
}

// Room in a list for the lanes that are `there`, of a counter; a warp asks once.
LG_DEVICE u32 place_in(u64* count, bool there) {
  const u32 who = warp_ballot(there);
  u32 at = 0;
  if (who && lane_id() == 0) at = u32(atomic_add(count, u64(bit_popc(who))));
  return warp_shfl(at, 0) + bit_popc(who & lanes_below());
}

// What an owner does with the vertices that are new to it.
struct Owner {
  const Search& s;
  const Places& all;
  const u32* degrees;  // edges that leave each own vertex, to any device
  i32* giver;          // the column that has found it
  u32 depth;
  u32 found;
  u64 edges;

  // The value of an own vertex that a column has found: the product from the vertex of its source.
  LG_DEVICE LG_F value(i32 v, u32 from) const {
    const i32* const kept = kLate ? &all.sources_of(all.in_row(from), 0)[all.target_of(v)]
                                  : &all.sources_of(all.peers.piece, from)[v];
    const i32 source = load_cg(kept), vertex = s.names ? source : all.vertex_of(source, from);
    return cast<LG_F>(
        multiply<Chosen>(nullptr, s.f_iso, s.in_values, s.a_iso, i64(0), i64(vertex), i64(v)));
  }
  LG_DEVICE void take(i32 v, u32 from, u32 degree) {
    LG_LOGGED(count_new(s, v, depth);)
    if (kLate) giver[v] = i32(from);
    const LG_F z = kLate ? LG_F(0) : LG_KEEP ? value(v, from) : LG_F(1);  // else all products are 1
    assign<LG_X0 == kValue && kLate ? 0 : LG_X0>(s.x0, v, depth, z);
    assign<LG_X1 == kValue && kLate ? 0 : LG_X1>(s.x1, v, depth, z);
    assign<LG_X2 == kValue && kLate ? 0 : LG_X2>(s.x2, v, depth, z);
    edges += degree;
    ++found;
  }
};

// Follows a lane's edges: claims targets, and leaves them in found_words.
struct RowPusher {
  const Search& s;
  u32 depth;
  Tally* tally;

  template <u32 N>
  LG_DEVICE void operator()(const Batch<LG_PTR, N>& edges) const {
    i32 j[N];
    u32 seen[N];
    LG_LOGGED(tally->looked += bit_popc(edges.there);)
    for (u32 q = 0; q < N; ++q) j[q] = i32(load_ro(&s.out_idx[edges.entry[q]]));
    for (u32 q = 0; q < N; ++q) seen[q] = load_cg(&s.visited[j[q] / 32]);
    for (u32 q = 0; q < N; ++q) {
      const u32 bit = 1u << (j[q] % 32);
      if (!(edges.there >> q & 1) || seen[q] & bit) continue;
      if (atomic_or(&s.visited[j[q] / 32], bit) & bit) continue;
      atomic_or(&s.found_words[j[q] / 32], bit);
      discover(s, j[q], depth,
               cast<LG_F>(product(s, s.out_values, edges.entry[q], edges.column[q], j[q])));
      ++tally->found;
    }
  }
};

// Call each(there, vertex) by whole warps for what is in a list.
template <class Each>
LG_DEVICE void each_of(const i32* list, u32 count, Each each) {
  for (u32 k0 = u32(global_warp()) * 32; k0 < count; k0 += u32(global_warps()) * 32) {
    const u32 k = k0 + lane_id();
    each(k < count, k < count ? load_cg(&list[k]) : 0);
  }
}

// Send what is in found_words to the owners, and forget it here: words, or lists, whose lengths are
// counted in `sent`.
LG_DEVICE void fold_word(const Places& all, i64 w, u32 bits) {
  all.inbox(all.in_row(all.column_of(w)), all.column())[all.of_owner(w)] = bits;
}

LG_DEVICE void fold_words(const Search& s, const Places& all) {
  for (i64 w = global_thread(); w < (s.n + 31) / 32; w += global_threads()) {
    const u32 bits = load_cg(&s.found_words[w]);
    fold_word(all, w, bits);
    if (bits) s.found_words[w] = 0;
  }
}

LG_DEVICE void fold_lists(const Search& s, const Places& all, u32 turn, u64* sent,
                          GridBarrier* barrier) {
  each_tile(s.n, [&](i64 w, bool mine) {
    u32 bits = mine ? load_cg(&s.found_words[w]) : 0;
    if (bits) s.found_words[w] = 0;
    for (; warp_any(bits != 0); bits &= bits - 1) {
      const i32 v = bits ? i32(all.of_owner(w) * 32) + i32(bit_ffs(bits)) - 1 : 0;
      for (u32 q = 0; q < kColumns; ++q) {
        const bool there = bits && all.column_of(w) == q;
        const u32 at = place_in(&sent[q * kCounterStride], there);
        LG_LOGGED(if (there && q != all.column()) atomic_add(counter(s, turn, kFound), u64(1));)
        if (there) all.folded(all.in_row(q), all.column())[at] = v;
      }
    }
  });
  grid_sync(barrier);
  if (block_index() == 0 && block_thread() < kColumns) {
    u64* const count = &sent[block_thread() * kCounterStride];
    all.counts(all.in_row(block_thread()))[all.column()] = u32(load_volatile(count));
    *count = 0;
  }
}

// The owner takes what is new of the words, or of the lists, that the columns have sent it; `seen`
// has what it has visited.
LG_DEVICE void update_words(Owner* owner, const Places& all, i64 own, u32* seen, bool share) {
  const u32 me = all.peers.piece;
  each_tile(own, [&](i64 w, bool mine) {
    u32 bits = 0, sent[kColumns];
    for (u32 q = 0; q < kColumns; ++q) bits |= sent[q] = mine ? load_cg(&all.inbox(me, q)[w]) : 0;
    if (mine) {
      const u32 before = seen[w];
      bits &= ~before;
      if (bits) seen[w] = before | bits;
      for (u32 r = 0; r < kRows; ++r)
        all.frontier(all.in_column(r))[all.among(w, all.row(), kRows)] = bits;
      for (u32 q = 0; share && q < kColumns; ++q)
        all.known(all.in_row(q))[all.among(w, all.column(), kColumns)] = before | bits;
    }
    each_words(bits, w, [&](const u32(&from)[kWords], const i64(&v)[kWords]) {
      bool there[kWords];
      u32 column[kWords], degree[kWords];
      for (u32 k = 0; k < kWords; ++k) {
        const u32 lane = from[k] % LG_WARP;
        there[k] = from[k] < LG_WARP && warp_shfl(bits, lane) >> lane_id() & 1;
        column[k] = 0;
        for (u32 q = kColumns; LG_KEEP && q--;)  // the first one's is taken
          if (warp_shfl(sent[q], lane) >> lane_id() & 1) column[k] = q;
      }
      for (u32 k = 0; k < kWords; ++k) degree[k] = load_ro(&owner->degrees[there[k] ? v[k] : 0]);
      for (u32 k = 0; k < kWords; ++k)
        if (there[k]) owner->take(i32(v[k]), column[k], degree[k]);
    });
  });
}

LG_DEVICE void update_lists(Owner* owner, const Places& all, u32* seen, u64* listed) {
  const u32 me = all.peers.piece;
  for (u32 q = 0; q < kColumns; ++q) {
    each_of(all.folded(me, q), load_cg(&all.counts(me)[q]), [&](bool there, i32 v) {
      const u32 bit = 1u << (v % 32);
      const bool won = there && !(atomic_or(&seen[v / 32], bit) & bit);
      const u32 at = place_in(listed, won);
      if (!won) return;
      for (u32 r = 0; r < kRows; ++r)
        all.expanded(all.in_column(r), all.row())[at] = all.source_of(v);
      owner->take(v, q, load_ro(&owner->degrees[v]));
    });
  }
}

// `own` vertices are this device's, `targets` its row's; words of them are `own_words` and so on.
// `open` counts the targets that are not visited; `rule` is kByEdges, kByUnvisited or kOnlyPushes;
// `most` the edges of a frontier, at most, that are folded as lists, and not by a level that pulls
// if that `pulls_words`.
extern "C" __global__ void __launch_bounds__(LG_BLOCK, 1)
    rows_search(i64 n, i64 own, i64 targets, u64 nvals_a, const LG_PTR* __restrict__ out_ptr,
                const LG_IDX* __restrict__ out_idx, const LG_A* __restrict__ out_values,
                const LG_PTR* __restrict__ in_ptr, const LG_IDX* __restrict__ in_idx,
                const LG_A* __restrict__ in_values, LG_A a_iso, const i32* __restrict__ hint,
                const u32* __restrict__ empty, const u32* __restrict__ degrees,
                const i32* __restrict__ names, const u32* __restrict__ v_words,
                const i64* __restrict__ sources, const LG_F* __restrict__ source_values, LG_F f_iso,
                i64 source, u64 num_sources, LG_X0_T* x0, LG_X1_T* x1, LG_X2_T* x2, u32* x0_words,
                u32* x1_words, u32* x2_words, u32 blank, u32 shift, u32 symmetric, u32 rule,
                u32 share, u64 most, u32 pulls_words, f32 alpha, f32 beta, f32 ratio, u32* visited,
                u32* seen, u32* found_words, i32* giver, i32* vertex, LG_PTR* start, u32* degree,
                u64* chunks, u64* counters, u64* sent, u64* open, GridBarrier* barrier, u32 run,
                i64 source_words, i64 target_words, i64 own_words, u32 room, u32 piece, u32 epoch,
                u64 patience, const u64* windows, const u64* stop, u64* result) {
  Places all{
      Peers{piece, epoch, patience, windows}, run, source_words, target_words, own_words, room};
  const Vertices lists{vertex, start, degree};
  u32* const frontier = all.frontier(piece);
  Search s{targets, out_ptr, in_ptr,   out_idx,  in_idx,   out_values, in_values,
           a_iso,   f_iso,   hint,     nullptr,  x0,       x1,         x2,
           shift,   visited, nullptr,  frontier, frontier, lists,      lists,
           chunks,  chunks,  counters, 0,        nullptr,  false,      false};
  s.places = &all;
  s.found_words = found_words;
  s.names = names;
  s.claimed = false;
  LG_SHARED(Shared, block, 1);
  LG_SHARED(u64, stops, 1);
  if (block_thread() == 0) *stops = 0;
  if (block_thread() == 0) block->words = block->count = block->there = 0;
  LG_LOGGED(LG_SHARED(LoopLog, log, 1); s.log = log; s.memory = result;
            if (logs()) s.log->open(result, blank & kNewLog);)
  LG_LOGGED(s.had[0] = LG_X0 && !(blank & 1) ? x0_words : nullptr;)
  LG_LOGGED(s.had[1] = LG_X1 && !(blank & 2) ? x1_words : nullptr;)
  LG_LOGGED(s.had[2] = LG_X2 && !(blank & 4) ? x2_words : nullptr;)
  const i64 words = (targets + 31) / 32, mine = (own + 31) / 32;
  // Start. A target that no source leads to here need not be looked at.
  for (i64 w = global_thread(); w < words; w += global_threads()) {
    visited[w] = empty[w] | ~entry_bits(nullptr, w, targets);
    found_words[w] = 0;
    all.known(piece)[w] = 0;
  }
  for (i64 w = global_thread(); w < mine; w += global_threads()) {
    seen[w] = (v_words ? v_words[w] : 0) | ~entry_bits(nullptr, w, own);
    if (LG_X0 && (blank & 1)) x0_words[w] = 0;
    if (LG_X1 && (blank & 2)) x1_words[w] = 0;
    if (LG_X2 && (blank & 4)) x2_words[w] = 0;
  }
  // Others write theirs, all of their words, and may have begun.
  for (i64 w = global_thread(); w < mine; w += global_threads())
    frontier[all.among(w, all.row(), kRows)] = 0;
  if (block_index() == 0) {
    for (u32 k = block_thread(); k < kTurns * kCounters * kCounterStride; k += block_threads())
      counters[k] = 0;
    for (u32 k = block_thread(); k < kColumns * kCounterStride; k += block_threads()) sent[k] = 0;
    if (block_thread() == 0) *open = u64(targets);
  }
  grid_sync(barrier);
  u64 edges = 0;
  for (u64 q = global_thread(); q < num_sources; q += global_threads()) {
    const i32 v = i32(sources ? sources[q] : source), u = all.source_of(v);
    const LG_F z = source_values ? source_values[q] : f_iso;
    atomic_or(&frontier[u / 32], 1u << (u % 32));
    edges += degrees[v];
    if (!shift) continue;
    const i32 t = all.target_of(v);
    atomic_or(&seen[v / 32], 1u << (v % 32));
    atomic_or(&visited[t / 32], 1u << (t % 32));
    LG_LOGGED(count_new(s, v, 0);)
    if (kLate) giver[v] = kGiven;
    assign<LG_X0>(x0, v, 0, z);
    assign<LG_X1>(x1, v, 0, z);
    assign<LG_X2>(x2, v, 0, z);
  }
  grid_sync(barrier);
  for (i64 w = global_thread(); w < mine; w += global_threads()) {
    const i64 at = all.among(w, all.row(), kRows);
    for (u32 r = 0; r < kRows; ++r)
      if (r != all.row()) all.frontier(all.in_column(r))[at] = load_cg(&frontier[at]);
  }
  const bool is_first = block_index() == 0;
  u32 turn = 0, depth = 0;
  bool listed = false, pulled = false;
  f32 unexplored = f32(nvals_a);
  edges = block_reduce(edges, u64(0), LgPlus());
  LG_LOGGED(note_arrival(s, 1);)
  const Totals& now = barrier_of_all(&all.peers, is_first ? num_sources : 0, edges, true);
  LG_LOGGED(if (logs()) s.log->waited(0, 0, now.own, last_arrival(s, 1));)
  while (!now.verdict && now.found) {
    if (finds_nothing(s, symmetric, depth, 1, true, now.edges, now.found)) {
      LG_LOGGED(if (logs()) {
        begin_level(s, kFindsNothing, depth, now.found, now.edges, unexplored);
        s.log->waited(depth, 0, 0, clock_ns());
        s.log->waited(depth + 1, 0, 0, clock_ns());
        end_level(s, 0, 0);
      })
      ++depth;
      break;
    }
    unexplored -= f32(now.edges);
    u64 here = 0;  // the frontier's vertices that are sources of this column
    for (u32 r = 0; r < kRows; ++r) here += all.peers.found_by(all.in_column(r));
    const u64 left = load_volatile(open);
    const bool dense =
        pulled ? f32(now.found) * beta >= f32(n) : f32(now.edges) * alpha > unexplored;
    const bool pulls =
        rule == kByEdges ? dense : rule == kByUnvisited && f32(here) >= ratio * f32(left);
    pulled = pulls;
    LG_LOGGED(if (logs()) begin_level(s, pulls ? kPulls : kPushes, depth, now.found,
                                      rule == kByUnvisited ? here : now.edges,
                                      rule == kByUnvisited ? f32(left) : unexplored);)
    const bool lists_now = now.edges <= most && !(pulls && pulls_words);
    if (block_index() == 0 && block_thread() < kCounters)
      *counter(s, turn + 2, Counter(block_thread())) = 0;
    Tally tally{0, 0};
    u64 shared = 0;  // targets that others have visited
    if (!pulls && !listed) {
      Search of_sources = s;
      of_sources.n = source_words * 32;
      words_to_lists(of_sources, turn, barrier);
    } else if (listed) {
      for (u32 r = 0; r < kRows; ++r) {
        const u32 count = all.peers.found_by(all.in_column(r));
        each_of(all.expanded(piece, r), count, [&](bool there, i32 v) {
          if (pulls && there) atomic_or(&frontier[v / 32], 1u << (v % 32));
          if (pulls) return;
          const LG_PTR begin = there ? load_ro(&s.out_ptr[v]) : 0;
          const LG_PTR end = there ? load_ro(&s.out_ptr[v + 1]) : 0;
          enqueue(s, turn, s.small(), s.chunks(), begin != end, v, begin, end);
        });
      }
    }
    if (pulls && share) {
      for (i64 w = global_thread(); w < words; w += global_threads()) {
        const u32 before = visited[w], more = load_cg(&all.known(piece)[w]) & ~before;
        if (more) visited[w] = before | more;
        shared += bit_popc(more);
      }
    }
    if (listed || (pulls && share)) grid_sync(barrier);
    if (looks(turn) && global_thread() == 0 && is_stopped(stop)) *stops = kStops;
    if (pulls) {
      const auto leave = [&](u32 w, u32 found) {
        s.found_words[w] = found;
        if (!lists_now) fold_word(all, w, found);  // at once
      };
      pull(s, depth, block, &tally, leave);
      pull_deferred(s, depth, block, &tally, leave);
    } else {
      const Frontier push = frontier_of(s, turn);
      follow_lists(s.out_ptr, s.small(), s.chunks(), push.num_small, push.num_chunks,
                   RowPusher{s, depth, &tally});
    }
    LG_LOGGED(const u64 looked = block_reduce(u64(tally.looked), u64(0), LgPlus());
              if (block_thread() == 0) atomic_add(looked_at(s, turn), looked);)
    grid_sync(barrier);
    const u64 visits = block_reduce(tally.found + shared, u64(0), LgPlus());
    if (block_thread() == 0 && visits) atomic_add(open, u64(0) - visits);
    if (lists_now)
      fold_lists(s, all, turn, sent, barrier);
    else if (!pulls)
      fold_words(s, all);
    LG_LOGGED(note_arrival(s, 0);)
    // Also in one column, where nothing is sent: frontiers are written next.
    barrier_of_all(&all.peers, *stops, 0, true);
    if (now.verdict) break;
    LG_LOGGED(if (logs()) {
      const u64 listed_now = load_volatile(counter(s, turn, kFound));
      s.log->waited(depth, lists_now ? 0 : u64(mine), listed_now, last_arrival(s, 0));
    })
    Owner owner{s, all, degrees, giver, depth + shift, 0, 0};
    if (lists_now)
      update_lists(&owner, all, seen, counter(s, turn + 1, kLevel));
    else
      update_words(&owner, all, own, seen, share != 0);
    if (pulls && !lists_now) clear_found(s);
    // Words that a pull has read are the last frontier's.
    if (lists_now && pulls)
      for (i64 w = global_thread(); w < source_words; w += global_threads()) frontier[w] = 0;
    listed = lists_now;
    ++turn;
    ++depth;
    const u64 found = block_reduce(u64(owner.found), u64(0), LgPlus());
    edges = block_reduce(owner.edges, u64(0), LgPlus());
    LG_LOGGED(note_arrival(s, 1);)
    barrier_of_all(&all.peers, found, edges, true);
    LG_LOGGED(if (logs()) {
      s.log->waited(depth, listed ? 0 : u64(mine), now.own, last_arrival(s, 1));
      end_level(s, now.found, atomic_exch(looked_at(s, turn - 1), u64(0)));
    })
  }
  LG_LOGGED(if (logs()) s.log->close();)
  if (global_thread() == 0) {
    result[0] = depth;
    result[kLeft] = 0;
    report_barriers(all.peers, now, turn, result);
  }
  if (now.verdict) return;
  // End: what is visited now and was not excluded has got its assignments.
  Owner owner{s, all, degrees, giver, 0, 0, 0};
  each_tile(own, [&](i64 w, bool there) {
    u32 reached = 0;
    if (there) {
      reached = seen[w] & ~(v_words ? v_words[w] : 0) & entry_bits(nullptr, w, own);
      if (LG_X0) x0_words[w] |= reached;
      if (LG_X1) x1_words[w] |= reached;
      if (LG_X2) x2_words[w] |= reached;
    }
    if (!kLate) return;
    each_word(reached, w, [&](u32 from, i64 at) {
      const i32 v = i32(at);
      if (!(warp_shfl(reached, from) >> lane_id() & 1) || giver[v] == kGiven) return;
      const LG_F z = owner.value(v, u32(giver[v]));
      if (LG_X0 == kValue) x0[v] = cast<LG_X0_T>(z);
      if (LG_X1 == kValue) x1[v] = cast<LG_X1_T>(z);
      if (LG_X2 == kValue) x2[v] = cast<LG_X2_T>(z);
    });
  });
}
