// Pieces of a loop that runs as one cooperative kernel; program.py writes the kernel around them.
//
// Between element-wise pieces no barrier is needed: a warp always takes the same words and a lane
// the same indices. A product reads what other warps wrote, so it has barriers before and behind.
#ifndef LAGPU_PROGRAM_CUH
#define LAGPU_PROGRAM_CUH
#include "looplog.cuh"
#include "pull.cuh"
#include "push.cuh"

const u32 kFar = 16;  // u64 a cache line: counters do not share one

// When to pull, as edges of the frontier against all: a sum that ends with its first product finds
// that soon; one that needs all products saves but the atomics of a push.
const f32 kPullFirst = 14, kPullSums = 3;

// *total += entries among n.
LG_DEVICE void count_entries(i64 n, const u32* words, u64* total) {
  u64 count = 0;
  for (i64 k = global_warp(); k < (n + 31) / 32; k += global_warps())
    if (lane_id() == 0) count += bit_popc(words[k]);
  count = block_reduce(count, u64(0), LgPlus());
  if (block_thread() == 0 && count) atomic_add(total, count);
}

// Copy n entries; *changes += those that were not the same before, unless it is null.
template <class X>
LG_DEVICE void remember(i64 n, const u32* words, const X* values, u32* old_words, X* old_values,
                        u64* changes) {
  u64 count = 0;
  for (i64 k = global_warp(); k < (n + 31) / 32; k += global_warps()) {
    const i64 i = k * 32 + lane_id();
    const u32 now = words[k], before = changes ? old_words[k] : 0;
    const bool there = now >> lane_id() & 1;
    bool same = true;
    if (i < n && there) {
      same = (before >> lane_id() & 1) && values[i] == old_values[i];
      old_values[i] = values[i];
    } else if (before >> lane_id() & 1) {
      same = false;
    }
    count += !same;
    warp_sync();  // all lanes have read the word
    if (lane_id() == 0) old_words[k] = now;
  }
  if (!changes) return;
  count = block_reduce(count, u64(0), LgPlus());
  if (block_thread() == 0 && count) atomic_add(changes, count);
}

// A product into t, by the form that serves better; null pointers for a form that is not there.
template <class S>
struct Multiplication {
  Columns<S> in, out;  // by the columns of the outputs, and of the inputs
  u64 nvals;
  Operand<S> u;
  i64 n_u;
  Mask mask;
  Sums<typename S::Z> t;
  List<typename S::PTR> small;
  u64* chunks;
};

// Begins and ends with a barrier. counters: three numbers, each on its line, that are 0; with a log
// a fourth, for the edges looked at. Returns whether it pulled.
template <class S>
LG_DEVICE bool multiply_all(const Multiplication<S>& x, u64* counters, GridBarrier* barrier,
                            PutOff* later) {
  const typename S::PTR* const no_lengths = nullptr;
  if (x.in.ptr && x.out.ptr) {
    u64 leaving = 0;
    for (i64 k = global_warp(); k < (x.n_u + 31) / 32; k += global_warps()) {
      const i64 i = k * 32 + lane_id();
      if (entry_bits(x.u.words, k, x.n_u) >> lane_id() & 1)
        leaving += u64(load_ro(&x.out.ptr[i + 1]) - load_ro(&x.out.ptr[i]));
    }
    leaving = block_reduce(leaving, u64(0), LgPlus());
    if (block_thread() == 0 && leaving) atomic_add(counters, leaving);
  }
  grid_sync(barrier);
  const f32 leaving = f32(load_volatile(counters));
  const bool pulls =
      x.in.ptr &&
      (!x.out.ptr || leaving * (takes_first<S> ? kPullFirst : kPullSums) > f32(x.nvals));
  Tallied tally{};
  if (pulls) {
    pull_bitmap<S>(x.in, x.u, x.mask, x.t, nullptr, nullptr, no_lengths, later, &tally);
  } else {
    clear_sums<S>(x.t, x.mask.n);
    list_columns<S>(x.out, x.u.words, x.n_u, x.small, x.chunks, counters + kFar,
                    counters + 2 * kFar);
    grid_sync(barrier);
    follow_lists(x.out.ptr, x.small, x.chunks, load_volatile(counters + kFar),
                 load_volatile(counters + 2 * kFar), [&](bool valid, i64 p, i32 i) {
                   if (valid) add_entry<S>(x.out, x.u, x.mask, x.t, no_lengths, p, i, &tally);
                 });
  }
  LG_LOGGED(add_total(tally.looked_at, counters + 3 * kFar);)
  grid_sync(barrier);
  return pulls;
}

#endif  // LAGPU_PROGRAM_CUH
