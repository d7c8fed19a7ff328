// A barrier of several devices of one host that run one kernel together.
//
// LG_PEERS devices have a cooperative launch each, and each has a window: memory that all of them
// can address. The barrier holds all blocks of all devices, and adds up what they have counted, so
// that all take the same decision. It is one step: every block adds a share and its counts to its
// device's post in every window, and waits until the posts of all devices in its own device's
// window are complete. So a word crosses the wire once, and no block waits for another block of its
// device to send for it.
//
// Every wait for another device has an end. A block that has waited for `patience` nanoseconds
// gives up on the posts that are not complete, by a mark in them. A post is marked only while it is
// not complete, in one step, so all blocks of a device see the same: it is complete, or it is
// marked, for ever. Then they leave the barrier with a verdict, and marks in the next posts make
// the other devices leave too.
//
// Order: what any block has written before a barrier is seen after it by every block: a fence comes
// before a block's shares, and the load that finds the last of them acquires. The fence is one of
// the system, which takes two microseconds, if the block has written to memory of other devices,
// and else one of its device. Both words of a post have shares, so no order between the two is
// needed.
//
// Posts take turns of four epochs. After the barrier of epoch e a device clears the posts of e + 3
// in its own window, whose places are those of e - 1: all its blocks have read these, as they came
// to e. Others write there once they have passed e + 2, or if they give up at e + 2; either way
// this device's blocks have come to e + 1 before.
#ifndef LAGPU_PEERS_CUH
#define LAGPU_PEERS_CUH
#ifndef LG_PEERS  // devices
#define LG_PEERS 2
#endif
#include "common/collectives.cuh"
#include "common/log.cuh"
#include "common/stop.cuh"

static_assert(LG_PEERS <= kMostPeers && kMostPeers == LG_WARP);

const u32 kReached = kEpoch + 1;  // in a report: the vertices that have got assignments

// What all devices have counted. The verdict is 0 unless the kernel has to end.
struct Totals {
  u64 edges;
  u32 found, own;  // by all devices, and by this one
  u32 verdict, missing;
};

struct Peers {
  u32 piece;  // this device's number
  u32 epoch;  // of the last barrier
  u64 patience;
  const u64* windows;  // the address of each device's

  LG_DEVICE u64* window(u32 p) const { return reinterpret_cast<u64*>(load_ro(&windows[p])); }
  // The post of device `from` in the window of device `at`.
  LG_DEVICE TwoWords* post(u32 at, u32 from, u32 of_epoch) const {
    return reinterpret_cast<TwoWords*>(window(at) +
                                       (of_epoch % kPostTurns * LG_PEERS + from) * kPostWords);
  }
  // What device `from` has found by itself, as it posted at the last barrier.
  LG_DEVICE u32 found_by(u32 from) const {
    return u32(load_volatile(&post(piece, from, epoch)->first));
  }
};

// Where what a kernel keeps in windows begins: behind the posts.
const u32 kPosts = kPostTurns * LG_PEERS * kPostWords;

// A word of a post: the sum of the counts in its low bits, above them that of the shares, which is
// kAllShares when all blocks of the device have come, whatever their number, and two marks.
const u32 kCountBits = 48;
const u64 kOfCount = (u64(1) << kCountBits) - 1;
const u64 kAllShares = 1 << 13;  // cooperative launches have fewer blocks
const u64 kGaveUpMark = u64(1) << 63, kEndsMark = u64(1) << 62, kMarks = kGaveUpMark | kEndsMark;

LG_DEVICE bool is_complete(u64 word) { return word >> kCountBits == kAllShares; }

// Mark a word of a post in the own window, unless it is complete or marked.
LG_DEVICE void give_up_on(u64* word) {
  u64 seen = load_volatile(word);
  while (!is_complete(seen) && !(seen & kMarks)) {
    const u64 before = atomic_cas_system(word, seen, seen | kGaveUpMark);
    if (before == seen) return;
    seen = before;
  }
}

// The post of a device, once both words are complete or one is marked.
LG_DEVICE TwoWords await_post(const Peers& peers, u32 from) {
  TwoWords* const in = peers.post(peers.piece, from, peers.epoch);
  TwoWords now = load_acquire_system(in);
  const u64 since = clock_ns();
  while (!(is_complete(now.first) && is_complete(now.second))) {
    if ((now.first | now.second) & kMarks) break;
    if (clock_ns() - since > peers.patience) {
      give_up_on(&in->first);
      give_up_on(&in->second);
    }
    now = load_acquire_system(in);
  }
  return now;
}

// What this block has counted goes to all, and what all have counted comes back, on every lane; by
// one warp of each block. Lane q exchanges with device q.
LG_DEVICE Totals exchange(const Peers& peers, u64 found, u64 edges, bool wrote) {
  const u32 lane = lane_id(), epoch = peers.epoch;
  const bool is_peer = lane < LG_PEERS;
  const u64 share = block_index() ? 1 : kAllShares - (grid_blocks() - 1);
  // Releases what the whole block wrote: block_sync ordered it before us.
  if (wrote)
    system_fence();
  else
    thread_fence();
  TwoWords theirs{0, 0};
  if (is_peer) {
    TwoWords* const out = peers.post(lane, peers.piece, epoch);
    atomic_add_system(&out->first, share << kCountBits | found);
    atomic_add_system(&out->second, share << kCountBits | edges);
    theirs = await_post(peers, lane);
  }
  const u64 marks = (theirs.first | theirs.second) & kMarks;
  const u32 missing = warp_ballot(marks & kGaveUpMark), ended = warp_ballot(marks & kEndsMark);
  const u64 by_it = theirs.first & kOfCount, by_all = warp_reduce(by_it, LgPlus());
  const u32 stopped = by_all >= kStops ? kStopped : 0;  // all of them see that
  const u32 verdict = missing ? kGaveUp : ended ? kOtherGaveUp : stopped;
  if (verdict && !stopped && is_peer)
    atomic_or_system(&peers.post(lane, peers.piece, epoch + 1)->first, kEndsMark);
  // Every post is complete, so the device's own blocks have all come.
  if (!verdict && is_peer && block_index() == 0) {
    TwoWords* const later = peers.post(peers.piece, lane, epoch + 3);
    store_volatile(&later->first, u64(0));
    store_volatile(&later->second, u64(0));
  }
  return {warp_reduce(theirs.second & kOfCount, LgPlus()), u32(by_all),
          u32(warp_shfl(by_it, peers.piece)), verdict, missing};
}

// Every block of every device waits for every other; `found` and `edges`, which the block has
// counted, are added up over all; `wrote` says whether it has written to memory of other devices
// since the last barrier. If the verdict of what is returned is not 0, all blocks have to end: none
// may wait for another device any more. It is in shared memory, where the next barrier will leave
// its totals too: so no thread carries it in registers.
LG_DEVICE const Totals& barrier_of_all(Peers* peers, u64 found, u64 edges, bool wrote) {
  LG_SHARED(Totals, all, 1);
  ++peers->epoch;
  block_sync();
  if (block_warp() == 0) {
    const Totals made = exchange(*peers, found, edges, wrote);
    if (lane_id() == 0) *all = made;
  }
  block_sync();
  return *all;
}

// Report to the host how the barriers of a device have ended; by one thread of it. A new epoch says
// that all else is there.
LG_DEVICE void report_barriers(const Peers& peers, const Totals& last, u32 turn, u64* result) {
  result[kVerdict] = last.verdict;
  result[kTurn] = turn;
  result[kMissing] = last.missing;
  system_fence();
  store_volatile(&result[kEpoch], u64(peers.epoch));
}

#endif  // LAGPU_PEERS_CUH
