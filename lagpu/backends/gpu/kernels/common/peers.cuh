// Meetings of several devices of one host that run one kernel together.
//
// LG_PEERS devices have a cooperative launch each, and each has a window: memory that all of them
// can address. A meeting is a barrier of all blocks of all devices, and adds up what each device
// has counted, so that all take the same decision. In two steps: the blocks of a device arrive; the
// one that arrives last posts its device's counts into every window, waits for the posts of the
// others in its own, and lets the blocks of its device go on.
//
// Every wait for another device has an end. A device that hears nothing of another one for
// `patience` nanoseconds gives up: all its blocks leave the meeting with a verdict, and the next
// post tells the others, who then leave too.
//
// Order: what any block has written before a meeting, to memory of any device, is seen after it by
// every block. The blocks' arrivals are ordered by fences of their device, and a post by a fence of
// the system; PTX' causality carries the first over to the second. A post is three words of 8
// bytes, each of which carries the meeting's epoch, so no order among the words is needed.
//
// Posts of even and odd epochs have places of their own. A device is at most one epoch ahead of
// another: to post epoch e + 2 it has to have heard e + 1 of all, who have read e before that.
#ifndef LAGPU_PEERS_CUH
#define LAGPU_PEERS_CUH
#ifndef LG_PEERS  // devices
#define LG_PEERS 2
#endif
#include "common/collectives.cuh"
#include "common/log.cuh"

static_assert(LG_PEERS <= kMostPeers && kMostPeers == LG_WARP);

// What all devices have counted. The verdict is 0 unless the kernel has to end.
struct Totals {
  u64 edges;
  u32 found, verdict, missing;
  LG_LOGGED(u64 arrived;)  // when the last block of this device came
};

struct Peers {
  u32 piece;  // this device's number
  u32 epoch;  // of the last meeting
  u64 patience;
  const u64* windows;  // the address of each device's
  u64* own;            // kMeetWords of this device alone, zeroed once

  LG_DEVICE u64* window(u32 p) const { return reinterpret_cast<u64*>(load_ro(&windows[p])); }
  // The post of a device in the window of another one.
  LG_DEVICE u64* post(u32 at, u32 from, u32 of_epoch) const {
    return window(at) + ((of_epoch & 1) * LG_PEERS + from) * kPostWords;
  }
  LG_DEVICE u32* arrived() const { return reinterpret_cast<u32*>(own); }
  LG_DEVICE u32* met() const { return reinterpret_cast<u32*>(own + kCounterStride); }
  LG_DEVICE Totals* totals() const { return reinterpret_cast<Totals*>(own + 2 * kCounterStride); }
};
static_assert(2 * kCounterStride * sizeof(u64) + sizeof(Totals) <= kMeetWords * sizeof(u64));

// Where what a kernel keeps in windows begins: behind the posts.
const u32 kPosts = 2 * LG_PEERS * kPostWords;

LG_DEVICE u64 tagged(u32 epoch, u32 what) { return u64(epoch) << 32 | what; }

// Post to device `to`; of `edges` 56 bits travel.
LG_DEVICE void tell(const Peers& peers, u32 to, u32 epoch, u32 verdict, u32 found, u64 edges) {
  u64* const out = peers.post(to, peers.piece, epoch);
  store_relaxed_system(&out[0], tagged(epoch, found));
  store_relaxed_system(&out[1], tagged(epoch, verdict << 24 | u32(edges >> 32)));
  store_relaxed_system(&out[2], tagged(epoch, u32(edges)));
}

// What this device has counted goes to all, and what all have counted comes back, on every lane;
// by one warp of the device. Lane q speaks with device q.
LG_DEVICE Totals exchange(const Peers& peers, u32 my_found, u64 my_edges) {
  const u32 lane = lane_id();
  bool waits = lane < LG_PEERS;
  u64 word[3] = {0, 0, 0};
  system_fence();
  if (waits) {
    tell(peers, lane, peers.epoch, 0, my_found, my_edges);
    const u64* const in = peers.post(peers.piece, lane, peers.epoch);
    const u64 since = clock_ns();
    for (;;) {
      for (u32 k = 0; k < 3; ++k) word[k] = load_relaxed_system(&in[k]);
      waits = false;
      for (u32 k = 0; k < 3; ++k) waits = waits || u32(word[k] >> 32) != peers.epoch;
      if (!waits || clock_ns() - since > peers.patience) break;
    }
  }
  system_fence();
  const u32 missing = warp_ballot(waits);
  const u32 told = warp_ballot(!waits && (u32(word[1]) >> 24));
  const u64 edges = u64(u32(word[1]) & 0xffffffu) << 32 | u32(word[2]);
  const Totals all{warp_reduce(waits ? 0 : edges, LgPlus()),
                   warp_reduce(waits ? 0 : u32(word[0]), LgPlus()),
                   missing ? kGaveUp
                   : told  ? kTold
                           : 0,
                   missing};
  if (all.verdict && lane < LG_PEERS) tell(peers, lane, peers.epoch + 1, all.verdict, 0, 0);
  return all;
}

// Every block of every device waits for every other; `found` and `edges`, which the blocks of this
// device have counted before, are added up over the devices. If the verdict of what is returned is
// not 0, all blocks have to end: nobody may wait for another device any more.
LG_DEVICE Totals meet(Peers* peers, const u64* found, const u64* edges) {
  LG_SHARED(Totals, all, 1);
  ++peers->epoch;
  block_sync();
  if (block_warp() == 0) {
    u32 is_last = 0;
    if (lane_id() == 0) {
      thread_fence();  // releases what the whole block wrote: block_sync ordered it before us
      is_last = atomic_add(peers->arrived(), 1u) == grid_blocks() - 1;
      thread_fence();  // and the last to arrive has what all have released
    }
    is_last = warp_shfl(is_last, 0);
    warp_sync();
    if (is_last) {
      LG_LOGGED(const u64 arrived = clock_ns();)
      Totals made = exchange(*peers, u32(load_volatile(found)), load_volatile(edges));
      LG_LOGGED(made.arrived = arrived;)
      warp_sync();
      if (lane_id() == 0) {
        *peers->totals() = made;
        *peers->arrived() = 0;
        store_release(peers->met(), peers->epoch);
      }
    }
    // This wait ends because that of the block that arrived last does.
    if (lane_id() == 0) {
      while (load_acquire(peers->met()) != peers->epoch) {
      }
      *all = *peers->totals();
    }
  }
  block_sync();
  return *all;
}

// Tell the host how the meetings of a device have ended; by one thread of it.
LG_DEVICE void report_meetings(const Peers& peers, const Totals& last, u32 turn, u64* result) {
  result[kVerdict] = last.verdict;
  result[kTurn] = turn;
  result[kMissing] = last.missing;
  result[kEpoch] = peers.epoch;
}

#endif  // LAGPU_PEERS_CUH
