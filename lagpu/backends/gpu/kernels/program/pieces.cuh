// A generated loop on the pieces of a grid: a kernel on each device; fused/program/pieces.py writes
// it.
//
// A device has its own indices of each vector, and the columns of each matrix that lead to them. A
// product's vector is sent: each device has a copy of the whole one, the ghost, in its window, and
// writes what has changed of its own part into the ghost of every window. Sums are sent as well, a
// part of each block, and all devices add up all parts in one order.
//
// All windows hold the same after a barrier of all, as each write goes to all of them. So a device
// compares with its own ghost what it is about to send.
#ifndef LAGPU_PROGRAM_PIECES_CUH
#define LAGPU_PROGRAM_PIECES_CUH
#include "common/peers.cuh"
#include "program/program.cuh"
#include "program/scalars.cuh"
#include "program/selection.cuh"

// The devices, how their last barrier has ended, and whether this thread has written to windows
// since.
struct Together {
  Peers peers;
  const Totals* last;
  bool wrote;

  // Where a window has what stands `at` so many words of 8 bytes in each.
  template <class X>
  LG_DEVICE X* in_window(u32 p, i64 at) const {
    return reinterpret_cast<X*>(peers.window(p) + at);
  }
  template <class X>
  LG_DEVICE X* in_own(i64 at) const {
    return in_window<X>(peers.piece, at);
  }
};

// Every block of every device waits for every other; `count`, which the block has counted, is added
// up over all. Returns whether the loop goes on: it ends if a device gives up, or the host stops
// it.
LG_DEVICE bool meet(Together* all, u64 count, u32 turn, const u64* stop) {
  LG_SHARED(u64, stops, 1);
  if (block_thread() == 0)
    *stops = block_index() == 0 && looks(turn) && is_stopped(stop) ? kStops : 0;
  const bool wrote = block_any(all->wrote);  // a barrier of the block
  all->wrote = false;
  all->last = &barrier_of_all(&all->peers, count + *stops, 0, wrote);
  return !all->last->verdict;
}

// How the indices of one size are numbered in a ghost: by slots. A piece has whole words of them,
// 1 << run words one behind the other. The tables are null where an index is its own slot.
struct Slots {
  u32 piece, run;
  const i32* slots;  // of each index
  const i32* names;  // the index of each slot

  LG_DEVICE i64 place_of(i64 own_word) const {
    return ((own_word >> run) * LG_PEERS + piece) << run | (own_word & ((i64(1) << run) - 1));
  }
  LG_DEVICE i64 slot_of(i64 own) const { return place_of(own / 32) * 32 + own % 32; }
  LG_DEVICE i64 index_of(i64 own) const {
    const i64 slot = slot_of(own);
    return names ? load_ro(&names[slot]) : slot;
  }
  LG_DEVICE i64 of_index(i64 i) const { return slots ? load_ro(&slots[i]) : i; }
  // The own position of an index, -1 if another piece has it.
  LG_DEVICE i64 own_of(i64 i) const {
    const i64 slot = of_index(i), word = slot / 32, block = word >> run;
    if (block % LG_PEERS != piece) return -1;
    return ((block / LG_PEERS) << run | (word & ((i64(1) << run) - 1))) * 32 + slot % 32;
  }
};

// Whether two numbers have the same bits: -0 is not 0.
template <class X>
LG_DEVICE bool are_same(X x, X y) {
  if constexpr (sizeof(X) == 8)
    return reinterpret_cast<const u64&>(x) == reinterpret_cast<const u64&>(y);
  if constexpr (sizeof(X) == 4)
    return reinterpret_cast<const u32&>(x) == reinterpret_cast<const u32&>(y);
  if constexpr (sizeof(X) < 4) return x == y;
}

// Send the n own entries of a vector, with their values if `values`, to the ghost whose words are
// at `words_at`, and values at `values_at`; the k-th own slot takes entry order[k], or k if that is
// null. A barrier of all comes before they are read, and another one before they are sent again.
template <bool values, class X>
LG_DEVICE void send_entries(Together* all, const Slots& slots, i64 n, const i32* order,
                            const u32* words, const X* from_values, X iso, i64 words_at,
                            i64 values_at, GridBarrier* barrier) {
  if (order) grid_sync(barrier);  // a warp takes entries that others have written
  const u32* const had_words = all->in_own<u32>(words_at);
  const X* const had_values = all->in_own<X>(values_at);
  each_tile(n, [&](i64 k, bool mine) {
    u32 now = mine && !order ? entry_bits(words, k, n) : 0;
    const u32 some = mine && order ? entry_bits(nullptr, k, n) : now;
    if (values || order)
      each_words(some, k, [&](const u32(&from)[kWords], const i64(&i)[kWords]) {
        X x[kWords], had[kWords];
        i64 slot[kWords], own[kWords];
        bool there[kWords];
        for (u32 q = 0; q < kWords; ++q) {
          there[q] = from[q] < LG_WARP && warp_shfl(some, from[q] % LG_WARP) >> lane_id() & 1;
          own[q] = order && there[q] ? order[i[q]] : i[q];
        }
        for (u32 q = 0; q < kWords; ++q) {  // values need not wait for the words
          slot[q] = slots.slot_of(i[q]);
          x[q] = values && there[q] && from_values ? from_values[own[q]] : iso;
          had[q] = values && there[q] ? had_values[slot[q]] : iso;
          if (order) there[q] = there[q] && has_entry(words, own[q]);
        }
        for (u32 q = 0; q < kWords; ++q) {
          if (order) {
            const u32 bits = warp_ballot(there[q]);
            if (lane_id() == from[q]) now = bits;
          }
          if (!values || !there[q] || are_same(x[q], had[q])) continue;
          for (u32 k = 0; k < LG_PEERS; ++k) {
            const u32 p = (all->peers.piece + k) % LG_PEERS;  // not all into the same one at once
            all->in_window<X>(p, values_at)[slot[q]] = x[q];
          }
          all->wrote = true;
        }
      });
    const i64 at = slots.place_of(k);
    if (mine && had_words[at] != now) {
      for (u32 p = 0; p < LG_PEERS; ++p) all->in_window<u32>(p, words_at)[at] = now;
      all->wrote = true;
    }
  });
}

// Where each block leaves its parts of a sum, in every window; see program/scalars.cuh.
struct PartsInWindows {
  Together* all;
  i64 at;
};

template <class Add, class Z>
LG_DEVICE void leave_sum(Entry<Z> sum, const PartsInWindows& parts) {
  sum = block_fold<Add>(sum);
  if (block_thread() != 0) return;
  const Peers& peers = parts.all->peers;
  const i64 own = parts.at + kScalarWords * (i64(peers.piece) * grid_blocks() + block_index());
  for (u32 p = 0; p < LG_PEERS; ++p) store_scalar(parts.all->in_window<u64>(p, own), sum);
  parts.all->wrote = true;
}

template <class Add, class Z>
LG_DEVICE Entry<Z> sum_of_blocks(const PartsInWindows& parts) {
  return sum_of_parts<Add, Z>(parts.all->in_own<u64>(parts.at), LG_PEERS * grid_blocks());
}

// The selection of a gather, by the slots of the rows that own columns select: it reads a ghost.
template <class F>
struct SlotSelector : Selector<F> {
  Slots rows;

  LG_DEVICE i64 row(i64 j) const {
    const i64 i = Selector<F>::row(j);
    return i < 0 ? i : rows.of_index(i);
  }
};

// That of a scatter, of a ghost of all columns, whose rows are the own ones.
template <class F>
struct OwnSelector : Selector<F> {
  Slots rows;

  LG_DEVICE i64 row(i64 j) const {
    const i64 i = Selector<F>::row(j);
    return i < 0 ? i : rows.own_of(i);
  }
};

// Report how the loop has ended; by one thread.
LG_DEVICE void report(const Together& all, u32 turn, u64* result) {
  if (global_thread() == 0) report_barriers(all.peers, *all.last, turn, result);
}

#endif  // LAGPU_PROGRAM_PIECES_CUH
