// How the host stops a loop that runs on the device: a thread of it looks now and then at a word in
// the host's memory, which an interrupt sets. Null: nothing stops the loop.
#ifndef LAGPU_STOP_CUH
#define LAGPU_STOP_CUH
#include "common/prims.cuh"
#ifndef LG_STOPS  // 0: no look, as the loop ends soon by itself
#define LG_STOPS 1
#endif

// Turns from one look to the next: a look takes two microseconds, and most searches have fewer
// turns; seldom where a turn takes a microsecond or two. On sim a turn takes long enough for a look
// in each.
#ifdef LAGPU_SIM
const u32 kStopEvery = 1, kStopSeldom = kStopEvery;
#else
const u32 kStopEvery = 16, kStopSeldom = 64;
#endif
// The same where a turn may have no barrier of the grid, and take less than a microsecond.
const u32 kStopEveryAlone = 16 * kStopEvery;
// Beside a count of what a turn has found: the loop ends before the next turn.
const u64 kStops = u64(1) << 42;

LG_DEVICE bool looks(u32 turn) { return LG_STOPS && turn % kStopEvery == kStopEvery - 1; }
LG_DEVICE bool looks_seldom(u32 turn) { return LG_STOPS && turn % kStopSeldom == kStopSeldom - 1; }
LG_DEVICE bool looks_alone(u32 turn) {
  return LG_STOPS && turn % kStopEveryAlone == kStopEveryAlone - 1;
}

LG_DEVICE bool is_stopped(const u64* stop) { return stop && load_volatile(stop); }

// Add kStops to the count of the next turn, if the host says so; by one thread, before the barrier
// that ends the turn, so that all threads read the same.
LG_DEVICE void look(const u64* stop, u64* count) {
  if (is_stopped(stop)) atomic_add(count, kStops);
}

// Where there is no such count: two zeroed words take turns, look by look, so that no thread reads
// one that is set for the next look already. A barrier of the grid comes between set and seen.
LG_DEVICE u64* stop_flag(u64* flags, u32 turn, u32 every) { return flags + turn / every % 2; }

LG_DEVICE void set_stop(const u64* stop, u64* flag) {
  if (global_thread() == 0 && is_stopped(stop)) store_volatile(flag, 1);
}

#endif  // LAGPU_STOP_CUH
