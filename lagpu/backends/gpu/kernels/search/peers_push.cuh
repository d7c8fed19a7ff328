// Push of a search over several devices, and how the frontier is sent; see search/peers.cu.
#ifndef LAGPU_SEARCH_PEERS_PUSH_CUH
#define LAGPU_SEARCH_PEERS_PUSH_CUH
#include "search/grid_pull.cuh"
#include "search/grid_push.cuh"

const Counter kListed = kLevel;  // slots listed for a turn; no block searches alone here
#ifndef LG_ADDS  // 1: a push adds up, as sums are the same in any order; else a pull does it later
#define LG_ADDS 0
#endif
const bool kPullsLater = LG_SUM && !LG_ADDS;
// Whether all levels leave the vertices that they find in found_words.
const bool kClaims = LG_SUM || LG_SENDS_VALUES;

// 16 bytes, which are sent together.
struct alignas(16) FourWords {
  u32 word[4];
};

// What a search keeps in each window, behind the posts: the words of all slots, in two buffers, and
// two sets of lists, by turns, of the slots that each piece has found in a push; and, where
// products read the frontier's values, the value of each vertex.
struct Pieces {
  Peers peers;
  u32 run;    // 1 << run words, one behind the other, are a piece's
  i64 words;  // of all slots, a multiple of 4
  u32 room;   // slots of a list

  LG_DEVICE u32* slot_words(u32 at, bool second) const {
    return reinterpret_cast<u32*>(peers.window(at) + kPosts) + (second ? words : 0);
  }
  LG_DEVICE i32* list(u32 at, u32 from, u32 turn) const {
    return reinterpret_cast<i32*>(slot_words(at, true) + words) +
           u64((turn & 1) * LG_PEERS + from) * room;
  }
  LG_DEVICE LG_F* values(u32 at) const {
    return reinterpret_cast<LG_F*>(list(at, 0, 1) + LG_PEERS * u64(room));
  }
  // Where word w of the piece's own is among the words of all slots.
  LG_DEVICE i64 place_of(i64 w) const {
    return ((w >> run) * LG_PEERS + peers.piece) << run | (w & ((i64(1) << run) - 1));
  }
  LG_DEVICE i32 slot_of(i32 v) const { return i32(place_of(v / 32) * 32) + v % 32; }
};

// List those of the warp's own vertices v[q] whose bit q is in `there`, for `turn`, in every
// window. A warp asks for room once, as one counter has few answers a time.
template <u32 N>
LG_DEVICE void send_to_all(const Search& s, const Pieces& all, u32 turn, u32 there,
                           const i32 (&v)[N]) {
  u32 who[N], total = 0;
  for (u32 q = 0; q < N; ++q) total += bit_popc(who[q] = warp_ballot(there >> q & 1));
  if (!total) return;
  u32 at = 0;
  if (lane_id() == 0) at = u32(atomic_add(counter(s, turn, kListed), u64(total)));
  at = warp_shfl(at, 0);
  for (u32 q = 0; q < N; ++q) {
    const u32 to = at + bit_popc(who[q] & lanes_below());
    at += bit_popc(who[q]);
    if (!(there >> q & 1)) continue;
    const i32 slot = all.slot_of(v[q]);
    for (u32 p = 0; p < LG_PEERS; ++p) all.list(p, all.peers.piece, turn)[to] = slot;
  }
}

// Put the value of an own vertex into every window. Each is found once, and its value is not
// written again, so one place a vertex is enough.
LG_DEVICE void send_value(const Search& s, const Pieces& all, i32 v, LG_F z) {
  const i32 slot = all.slot_of(v);
  const i32 vertex = s.names ? load_ro(&s.names[slot]) : slot;
  for (u32 p = 0; p < LG_PEERS; ++p) all.values(p)[vertex] = z;
}

// Put the values of the vertices that a level has found into every window: a warp a word, from 32
// words that it loads at once.
LG_DEVICE void publish_values(const Search& s, const Pieces& all) {
  const u32 nwords = u32((s.n + 31) / 32), warps = u32(global_warps());
  for (u32 w0 = u32(global_warp()); w0 < nwords; w0 += LG_WARP * warps) {
    const u32 w = w0 + lane_id() * warps, bits = w < nwords ? load_cg(&s.found_words[w]) : 0;
    for (u32 rest = warp_ballot(bits != 0); rest; rest &= rest - 1) {
      const u32 from = bit_ffs(rest) - 1, its = warp_shfl(bits, from);
      const i32 v = i32((w0 + from * warps) * 32 + lane_id());
      if (its >> lane_id() & 1) send_value(s, all, v, load_cg(&s.own_values[v]));
    }
  }
}

#if LG_LOG
// Note when the last block of this device comes to the barrier of a turn.
LG_DEVICE void note_arrival(const Search& s, u32 turn) {
  if (block_thread() == 0) atomic_max(&s.memory[kLogArrived + turn % 2], clock_ns());
}

// When it came; after the barrier, by one thread.
LG_DEVICE u64 last_arrival(const Search& s, u32 turn) {
  return atomic_exch(&s.memory[kLogArrived + turn % 2], u64(0));
}
#endif

// Forget what was found in an earlier level, before a push that leaves what it finds.
LG_DEVICE void clear_found(const Search& s) {
  for (i64 w = global_thread(); w < (s.n + 31) / 32; w += global_threads()) s.found_words[w] = 0;
}

// Call each(there, slot) by whole warps for the slots that all pieces have listed for `turn`, which
// began with the last barrier.
template <class Each>
LG_DEVICE void each_listed(const Pieces& all, u32 turn, Each each) {
  const Peers& peers = all.peers;
  for (u32 p = 0; p < LG_PEERS; ++p) {
    const u32 count = peers.found_by(p);
    const i32* const slots = all.list(peers.piece, p, turn);
    for (u32 q0 = u32(global_warp()) * 32; q0 < count; q0 += u32(global_warps()) * 32) {
      const u32 q = q0 + lane_id();
      each(q < count, q < count ? load_cg(&slots[q]) : 0);
    }
  }
}

// The frontier's lists, with the place of each vertex' edges into this piece, and its words if they
// are kept. Ends with a barrier.
LG_DEVICE void slots_to_lists(const Search& s, const Pieces& all, u32 turn, GridBarrier* barrier) {
  each_listed(all, turn, [&](bool there, i32 v) {
    const LG_PTR start = there ? load_ro(&s.out_ptr[v]) : 0;
    const LG_PTR stop = there ? load_ro(&s.out_ptr[v + 1]) : 0;
    enqueue(s, turn, s.small(), s.chunks(), start != stop, v, start, stop);
    if (kKeepsWords && there) atomic_or(&s.frontier()[v / 32], 1u << (v % 32));
  });
  grid_sync(barrier);
}

// Call follow(edges) for the edges of the slots that all pieces have listed for `turn`, LG_WARP at
// most. Each warp looks all of them up and takes a share of their edges, so
// they need not be listed with their places, which saves a wait.
template <class Follow>
LG_DEVICE void follow_few(const Search& s, const Pieces& all, u32 turn, Follow follow) {
  const Peers& peers = all.peers;
  const i32* at = nullptr;
  u32 listed = 0;
  for (u32 p = 0; p < LG_PEERS; ++p) {
    const u32 count = peers.found_by(p), k = lane_id() - listed;
    if (lane_id() >= listed && k < count) at = &all.list(peers.piece, p, turn)[k];
    listed += count;
  }
  const i32 slot = at ? load_cg(at) : 0;
  const LG_PTR start = load_ro(&s.out_ptr[slot]);
  const u32 degree = at ? u32(load_ro(&s.out_ptr[slot + 1]) - start) : 0;
  const u32 upto = warp_scan(degree, LgPlus()), total = warp_shfl(upto, LG_WARP - 1);
  const u32 warps = u32(global_warps()), warp = u32(block_warp() * grid_blocks() + block_index());
  const u32 each = total > warps * LG_WARP ? kTogether * LG_WARP : LG_WARP;
  for (u32 first = warp * each; first < total; first += warps * each) {
    if (each == LG_WARP)
      share<1>(slot, start, upto - degree, first, total, follow);
    else
      share<kTogether>(slot, start, upto - degree, first, total, follow);
  }
}

// The frontier's presence words; they are empty before. Ends with a barrier.
LG_DEVICE void slots_to_words(const Search& s, const Pieces& all, u32 turn, GridBarrier* barrier) {
  each_listed(all, turn, [&](bool there, i32 v) {
    if (!there) return;
    atomic_or(&s.frontier()[v / 32], 1u << (v % 32));
    keep_count(s, v);
  });
  grid_sync(barrier);
}

// Put the words of found_words into every window.
LG_DEVICE void publish(const Search& s, const Pieces& all) {
  const i64 own = (s.n + 31) / 32;
  const bool second = !s.words_turned;  // the buffer that is not the frontier's
  if (all.run < 2) {
    for (i64 w = global_thread(); w < own; w += global_threads()) {
      const u32 bits = load_cg(&s.found_words[w]);
      for (u32 p = 0; p < LG_PEERS; ++p) all.slot_words(p, second)[all.place_of(w)] = bits;
    }
    return;
  }
  for (i64 q = global_thread(); q < (own + 3) / 4; q += global_threads()) {
    const FourWords bits = reinterpret_cast<const FourWords*>(s.found_words)[q];
    const i64 at = all.place_of(q * 4) / 4;
    for (u32 k = 0; k < LG_PEERS; ++k) {
      const u32 p = (all.peers.piece + k) % LG_PEERS;  // not all into the same one at once
      reinterpret_cast<FourWords*>(all.slot_words(p, second))[at] = bits;
    }
  }
}

// List the vertices of found_words for `turn` in every window, each word by the block that has
// written it; returns the edges of the lane's.
LG_DEVICE u64 send_found(const Search& s, const Pieces& all, u32 turn, const u32* degrees) {
  const u32 nwords = u32((s.n + 31) / 32), log = group_log(nwords);
  u64 edges = 0;
  for (u32 w0 = u32(global_warp()) << log; w0 < nwords; w0 += LG_WARP * u32(global_warps())) {
    const u32 w = word_of_group(w0, lane_id(), log);
    for (u32 found = w < nwords ? s.found_words[w] : 0; warp_any(found != 0); found &= found - 1) {
      const i32 v[1] = {found ? i32(w * 32) + i32(bit_ffs(found)) - 1 : 0};
      if (found) edges += load_ro(&degrees[v[0]]);
      send_to_all(s, all, turn, found != 0, v);
    }
  }
  return edges;
}

// Follows a lane's edges: as `Pusher` of one device, but what is found is sent to all, which look
// up its edges when the next turn begins; or, as `makes` says, left in found_words. A push that
// adds up claims vertices there: the visited ones stay those of before the level.
struct PeersPusher {
  const Search& s;
  const Pieces& all;
  const u32* degrees;  // edges that leave each own vertex, to any piece
  u32 turn, depth;
  const u32* makes;
  Tally* tally;

  template <u32 N>
  LG_DEVICE void operator()(const Batch<LG_PTR, N>& edges) const {
    i32 j[N];
    u32 seen[N], claimed[N], won = 0;
    u32* const claims = LG_ADDS ? s.found_words : s.visited;
    LG_LOGGED(tally->looked += bit_popc(edges.there);)
    for (u32 q = 0; q < N; ++q) j[q] = i32(load_ro(&s.out_idx[edges.entry[q]]));
    for (u32 q = 0; q < N; ++q) seen[q] = load_cg(&s.visited[j[q] / 32]);
    for (u32 q = 0; q < N; ++q) claimed[q] = LG_ADDS ? load_cg(&claims[j[q] / 32]) : seen[q];
    for (u32 q = 0; q < N; ++q) {
      const u32 bit = 1u << (j[q] % 32);
      if (!(edges.there >> q & 1) || seen[q] & bit) continue;
      if constexpr (LG_ADDS)
        atomic_accumulate<LG_ADD, LG_F>(
            &s.own_values[j[q]],
            cast<LG_F>(product(s, s.out_values, edges.entry[q], edges.column[q], j[q])));
      if (!(claimed[q] & bit)) won |= u32(!(atomic_or(&claims[j[q] / 32], bit) & bit)) << q;
    }
    if (!warp_any(won != 0)) return;
    const bool to_words = kMayBeWide && *makes != kMakesLists;
    if (!to_words) send_to_all(s, all, turn + 1, won, j);
    for (u32 q = 0; q < N; ++q) {
      if (!(won >> q & 1)) continue;
      if (!to_words) tally->edges += load_ro(&degrees[j[q]]);
      if ((kClaims && !LG_ADDS) || to_words)
        atomic_or(&s.found_words[j[q] / 32], 1u << (j[q] % 32));
      if (kPullsLater) continue;  // adds up, in an order that does not depend on threads
      if (!kMayLeave || *makes != kUnassigned)
        discover(s, j[q], depth + s.shift,
                 cast<LG_F>(product(s, s.out_values, edges.entry[q], edges.column[q], j[q])));
      ++tally->found;
    }
  }
};

#endif  // LAGPU_SEARCH_PEERS_PUSH_CUH
