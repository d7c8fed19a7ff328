// The grid search over several devices of a host: all levels as one cooperative launch a device.
//
// It runs the loop of search/grid.cu, and decides as that does. Each vertex is owned by a piece,
// one a device: a piece has all edges that lead to its own vertices, so it alone finds them, and
// keeps what is assigned to them. What all need to know of a level is the frontier and its size.
//
// The frontier is replicated. Its words have a bit for each slot: the slots of a piece fill whole
// words, so that each word has one writer; mostly slots are vertices. A pull reads the words of all
// slots, finds vertices of its own, and writes each word into the window of every device as it has
// found it. A push follows the edges from the frontier to its own vertices, and lists the slots of
// those it finds in every window. A push of many edges finds words, and a pull that can find but
// few vertices finds lists. A barrier (common/peers.cuh) ends each turn: it orders these writes,
// and adds up the counts that choose the direction, so that all devices take the same one.
//
// Where products read the frontier's values, these are sent too: a piece writes the values of the
// vertices that it has found into every window, by vertex; sums as a pull has them, others after
// the level.
//
// Products that add up are added by the piece that has the vertex. Sums that depend on their order
// have that of a pull, not of threads: a push claims vertices, and a pull into these alone adds.
// With LG_ADDS a push adds: counts, and what is the same in any order.
//
// words_a and words_b are the words of all slots in this device's own window.
// in_* has, by own vertex, the slots of its predecessors; out_*, by slot, its successors among the
// own vertices. `degrees` counts all edges that leave each own vertex. Edges lead to some of the
// first `reach` own vertices alone: these are looked at, and only these are sent. In all
// pieces num_targets vertices have predecessors. It is the whole matrix that is `symmetric`.
//
// A device that gives up in a barrier, or that another one marks, ends the kernel: what it has
// written is of no use then. All end together where the host of one stops them.
#include "common/peers.cuh"
#include "search/peers_push.cuh"

// So few slots, with so few edges, are not listed for a push: see follow_few.
const u32 kFew = LG_WARP;
const u64 kFewEdges = 1 << 30;

extern "C" __global__ void __launch_bounds__(LG_BLOCK, 1)
    peers_search(i64 n, i64 own, i64 reach, u64 nvals_a, const LG_PTR* __restrict__ out_ptr,
                 const LG_IDX* __restrict__ out_idx, const LG_A* __restrict__ out_values,
                 const LG_PTR* __restrict__ in_ptr, const LG_IDX* __restrict__ in_idx,
                 const LG_A* __restrict__ in_values, LG_A a_iso, const i32* __restrict__ hint,
                 const u32* __restrict__ empty, const u32* __restrict__ degrees,
                 const i32* __restrict__ names, const u32* __restrict__ v_words,
                 const i64* __restrict__ sources, const LG_F* __restrict__ source_values,
                 LG_F f_iso, i64 source, u64 num_sources, LG_F* own_values, LG_X0_T* x0,
                 LG_X1_T* x1, LG_X2_T* x2, u32* x0_words, u32* x1_words, u32* x2_words, u32 blank,
                 u32* f_words, u32 shift, u32 times, u32 num_targets, u32 symmetric, f32 alpha,
                 f32 beta, f32 gamma, u32* visited, u32* found_words, u32* words_a, u32* words_b,
                 i32* vertex, LG_PTR* start, u32* degree, u64* chunks, u64* counters,
                 GridBarrier* barrier, u32 run, i64 words, u32 room, u32 near,
                 const LG_IDX* __restrict__ ranked_idx, const i32* __restrict__ rank, u32* counts,
                 u32 piece, u32 epoch, u64 patience, const u64* windows, const u64* stop,
                 u64* result) {
  Pieces all{Peers{piece, epoch, patience, windows}, run, words, room};
  const Vertices lists{vertex, start, degree};
  Search s{reach,  out_ptr, in_ptr,   out_idx, in_idx,  out_values, in_values,
           a_iso,  f_iso,   hint,     nullptr, x0,      x1,         x2,
           shift,  visited, nullptr,  words_a, words_b, lists,      lists,
           chunks, chunks,  counters, 0,       nullptr, false,      false};
  s.f_values = LG_SENDS_VALUES ? all.values(piece) : nullptr;
  s.own_values = own_values;
  s.found_words = found_words;
  s.names = names;
  s.claimed = false;
  s.slots = names ? words * 32 : n;
  s.all = &all;
#if LG_SUM
  s.nvals = u64(load_ro(&in_ptr[own]));
  s.near = Near{near, near >= u32((s.slots + 31) / 32), false, false};
  s.ranked_idx = ranked_idx;
  s.rank = rank;
  s.counts = counts;
#endif
  LG_SHARED(Shared, block, 1);
  LG_SHARED(u32, makes, 1);     // what a push makes of what it finds
  LG_SHARED(u32, assigned, 1);  // own vertices that get assignments
  LG_SHARED(u64, stops, 1);     // for all devices, beside what this one has found
  if (block_thread() == 0) *stops = 0;
  if (block_thread() == 0) block->words = block->count = block->there = 0;
  LG_LOGGED(LG_SHARED(LoopLog, log, 1); s.log = log; s.memory = result;
            if (logs()) s.log->open(result, blank & kNewLog);)
  LG_LOGGED(s.had[0] = LG_X0 && !(blank & 1) ? x0_words : nullptr;)
  LG_LOGGED(s.had[1] = LG_X1 && !(blank & 2) ? x1_words : nullptr;)
  LG_LOGGED(s.had[2] = LG_X2 && !(blank & 4) ? x2_words : nullptr;)
  const i64 nwords = (reach + 31) / 32;
  // Start: a vertex without predecessors needs no look, one that v has is not wanted, and bits
  // after the last vertex are none. No device that has begun before writes any of this.
  for (i64 w = global_thread(); w < (own + 31) / 32; w += global_threads()) {
    if (w < nwords)
      visited[w] = empty[w] | (v_words ? v_words[w] : 0) | ~entry_bits(nullptr, w, own);
    else if (f_words)
      f_words[w] = 0;
    if (LG_X0 && (blank & 1)) x0_words[w] = 0;
    if (LG_X1 && (blank & 2)) x1_words[w] = 0;
    if (LG_X2 && (blank & 4)) x2_words[w] = 0;
  }
  for (i64 w = global_thread(); w < words; w += global_threads()) s.frontier()[w] = 0;
  if constexpr (LG_ADDS)
    for (i64 v = global_thread(); v < own; v += global_threads())
      own_values[v] = empty_sum<LG_ADD, LG_F>();
  if (LG_RANKS)
    for (i64 v = global_thread(); v <= s.slots; v += global_threads()) counts[v] = 0;
  if (block_index() == 0)
    for (u32 k = block_thread(); k < kTurns * kCounters * kCounterStride; k += block_threads())
      counters[k] = 0;
  grid_sync(barrier);
  u64 edges = 0;
  for (u64 q0 = u64(global_warp()) * 32; q0 < num_sources; q0 += u64(global_warps()) * 32) {
    const u64 q = q0 + lane_id();
    const bool there = q < num_sources;
    const i32 v = there ? i32(sources ? sources[q] : source) : 0;
    if (there) {
      const LG_F z = source_values ? source_values[q] : f_iso;
      if (LG_KEEP) own_values[v] = z;
      if (LG_SENDS_VALUES) send_value(s, all, v, z);
      if (shift && LG_SUM && LG_X0 == kValue) x0[v] = cast<LG_X0_T>(z);
      if (shift && LG_SUM && LG_X1 == kValue) x1[v] = cast<LG_X1_T>(z);
      if (shift && LG_SUM && LG_X2 == kValue) x2[v] = cast<LG_X2_T>(z);
      if (shift) {
        atomic_or(&visited[v / 32], 1u << (v % 32));
        discover(s, v, 0, z);
        if (LG_X0) atomic_or(&x0_words[v / 32], 1u << (v % 32));
        if (LG_X1) atomic_or(&x1_words[v / 32], 1u << (v % 32));
        if (LG_X2) atomic_or(&x2_words[v / 32], 1u << (v % 32));
      }
      edges += degrees[v];
    }
    const i32 its[1] = {v};
    send_to_all(s, all, 0, there, its);
  }
  const bool is_first = block_index() == 0;  // posts what is known of the whole device
  u32 turn = 0, depth = 0;
  bool listed = true;  // in lists, with its edges counted; else in words
  bool wide = false;   // words that a push has found
#if LG_RANKS
  bool first_pull = true;  // later ones would find counts of vertices before
#endif
  f32 unexplored = f32(nvals_a);
  LG_LOGGED(note_arrival(s, 0);)
  edges = block_reduce(edges, u64(0), LgPlus());
  const Totals& now =
      barrier_of_all(&all.peers, is_first ? num_sources : 0, edges, num_sources != 0);
  LG_LOGGED(if (logs()) s.log->waited(0, 0, now.own, last_arrival(s, 0));)
  if (block_thread() == 0) *assigned = shift ? now.own : 0;
  u32 left = left_to_find(s, symmetric, num_targets, now.found, now.edges);
  bool ended = false;  // with a level that finds nothing
  while (!now.verdict && now.found && depth != times) {
    bool placed = false;  // whether the lists have the places of edges
    if (listed) unexplored -= f32(now.edges);
    if (left && !listed && !wide && f32(now.found) * beta < f32(n)) {
      clear_found(s);
      Search of_slots = s;
      of_slots.n = words * 32;
      words_to_lists(of_slots, turn, barrier);
      const u64 counted = is_first ? load_volatile(counter(s, turn, kEdges)) : 0;
      barrier_of_all(&all.peers, is_first ? now.own : 0, counted, false);
      if (now.verdict) break;
      unexplored -= f32(now.edges);
      listed = placed = true;
    }
    const f32 active = f32(now.edges);
    LG_LOGGED(if (logs()) begin_level(s, kPulls, depth, now.found, listed ? now.edges : kUnknown,
                                      unexplored);)
    ended = finds_nothing(s, symmetric, depth, left, listed, now.edges, now.found);
    if (ended) {
      LG_LOGGED(if (logs()) {
        s.log->now.how = kFindsNothing;
        s.log->waited(depth + 1, 0, 0, clock_ns());
        end_level(s, 0, 0);
      })
      ++depth;
      break;
    }
    const bool turns = listed && active * alpha > unexplored;
    // So many edges find a frontier that is pulled; see search/grid.cu.
    wide = kMayBeWide && listed && !turns && active * gamma > unexplored;
    *makes = what_it_makes(wide, active, n);
    if (turns) {
      if (placed)
        lists_to_words(s, frontier_of(s, turn), barrier);
      else
        slots_to_words(s, all, turn, barrier);
      listed = false;
#if LG_SUM
      s.near.copied = near && unexplored * kMostLeft > f32(nvals_a);
#if LG_RANKS
      s.near.counts = s.near.copied && first_pull && !load_cg(&counts[s.slots]);
      if (s.near.counts) copy_counts(s);
      first_pull = false;
#endif
      if (s.near.copied && !s.near.counts) copy_frontier(s);
#endif
    }
    const bool few =
        listed && !placed && !kClaims && !wide && now.found <= kFew && now.edges < kFewEdges;
    if (listed && !placed && !few) {
      if (kClaims || wide) clear_found(s);
      slots_to_lists(s, all, turn, barrier);
    }
    if (block_index() == 0 && block_thread() < kCounters)
      *counter(s, turn + 2, Counter(block_thread())) = 0;
    if (looks(turn) && global_thread() == 0 && is_stopped(stop)) *stops = kStops;
    Tally tally{0, 0};
    if (listed) {
      LG_LOGGED(if (logs()) s.log->now.how = wide ? kPushesIntoWords : kPushes;)
      const PeersPusher push{s, all, degrees, turn, depth, makes, &tally};
      const Frontier here = frontier_of(s, turn);
      if (few)
        follow_few(s, all, turn, push);
      else
        follow_lists(s.out_ptr, s.small(), s.chunks(), here.num_small, here.num_chunks, push);
      if (kClaims || wide) grid_sync(barrier);
      if (LG_ADDS)
        for (i64 w = global_thread(); w < nwords; w += global_threads())
          visited[w] |= load_cg(&s.found_words[w]);
    }
    // As few as this come from words to lists; so they are listed at once.
    const bool few_left = !kClaims && !listed && f32(left) * beta < f32(n);
    if (kPullsLater || !listed) {
      s.claimed = listed;
      // Words of sums cross the wires later: they come one by one.
      const bool at_once = !LG_SUM && !few_left, second = !s.words_turned;
      const auto leave = [&](u32 w, u32 found) {
        s.next()[w] = found;
        if (!at_once) return;
        const i64 at = all.place_of(w);
        for (u32 p = 0; p < LG_PEERS; ++p) all.slot_words(p, second)[at] = found;
      };
      if (reach) {
        pull(s, depth, block, &tally, leave);
        pull_deferred(s, depth, block, &tally, leave);
      }
#if LG_SUM
      s.near.copied = s.near.counts = false;
#endif
      if (few_left) tally.edges = send_found(s, all, turn + 1, degrees);
      if (kClaims) grid_sync(barrier);
    }
    const bool summed = LG_SUM && (kPullsLater || !listed);  // by a pull, which has sent the sums
    if (LG_SENDS_VALUES && !summed) publish_values(s, all);
    if (wide) listed = false;
    if (!listed) {
      if (LG_SUM || wide) publish(s, all);
      if (kMayLeave && *makes == kUnassigned) discover_words(s, s.found_words, depth + s.shift);
      s.words_turned = !s.words_turned;
      listed = few_left;
      if (few_left)
        for (i64 w = global_thread(); w < words; w += global_threads()) s.frontier()[w] = 0;
    } else if (kKeepsWords) {
      for (i64 w = global_thread(); w < words; w += global_threads()) s.frontier()[w] = 0;
    }
    LG_LOGGED(const u64 looked = block_reduce(u64(tally.looked), u64(0), LgPlus());
              if (block_thread() == 0) atomic_add(looked_at(s, turn), looked);)
    const u64 found = block_reduce(u64(tally.found), u64(0), LgPlus());
    edges = block_reduce(tally.edges, u64(0), LgPlus());
    ++turn;
    ++depth;
    LG_LOGGED(note_arrival(s, turn);)
    // Who claims a vertex lists it, and who adds its products counts it: not always the same block.
    const bool wrote = !listed || found || kClaims;
    barrier_of_all(&all.peers, found + *stops, edges, wrote);
    left -= now.found;
    if (global_thread() == 0) atomic_add(assigned, now.own);
    LG_LOGGED(if (logs()) {
      s.log->waited(depth, listed ? 0 : u64(nwords), now.own, last_arrival(s, turn));
      end_level(s, now.found, atomic_exch(looked_at(s, turn - 1), u64(0)));
    })
  }
  LG_LOGGED(if (logs()) s.log->close();)
  if (global_thread() == 0) {
    result[0] = depth;
    result[kLeft] = ended ? 0 : now.own;
    result[kReached] = *assigned;
    report_barriers(all.peers, now, turn, result);
  }
  if (now.verdict) return;
  // A frontier that is left, because `times` is reached, has not got its assignments yet if they
  // come before the product in the loop.
  const bool rests = now.found && !ended;
  if (rests && listed) slots_to_words(s, all, turn, barrier);

  // End: what is visited now and was not excluded has got its assignments. An output that had no
  // entries may have its values already.
  const bool apart = own_values != (void*)x0 && own_values != (void*)x1 && own_values != (void*)x2;
  for (i64 w = global_thread(); w < nwords; w += global_threads()) {
    const u32 rest = rests ? load_cg(&s.frontier()[all.place_of(w)]) : 0;
    if (f_words) f_words[w] = rest;
    u32 reached =
        visited[w] & ~empty[w] & ~(v_words ? v_words[w] : 0) & entry_bits(nullptr, w, own);
    reached = shift ? reached & ~rest : reached | rest;
    if (LG_X0) x0_words[w] |= reached;
    if (LG_X1) x1_words[w] |= reached;
    if (LG_X2) x2_words[w] |= reached;
    if constexpr (LG_SUM) {
      for (u32 bits = apart ? reached : 0; bits; bits &= bits - 1) {
        const i32 v = i32(w * 32) + i32(bit_ffs(bits)) - 1;
        if (LG_X0 == kValue) x0[v] = cast<LG_X0_T>(own_values[v]);
        if (LG_X1 == kValue) x1[v] = cast<LG_X1_T>(own_values[v]);
        if (LG_X2 == kValue) x2[v] = cast<LG_X2_T>(own_values[v]);
      }
    }
  }
}
