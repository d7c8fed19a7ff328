// A masked product that pushes as push_queue or pulls as pull_bitmap, by what the product before it
// counted: nobody waits until the host has read that. One cooperative launch.
//
//   w[j] = (+)_i u[i] (x) A[i,j]   for every column j the mask keeps
//
// in_* is A by its n_w outputs, out_* by its n_u inputs; values and the mask as in spmv/pull.cu,
// lists as in spmv/push.cu. `before` has the counts of the product that made u: entries, edges that
// leave them, and where a kernel of this file made it, at kExplored and kPulled the edges of the
// frontiers before, which add to `explored`, and whether it pulled, which adds to `pulled`. Writes
// the same for w behind counts[0], [1] and [2]; [16] and [32] are lengths of the lists, zeroed by
// the caller.
//
// Source: Beamer, Asanovic and Patterson 2012: section 5.1, alpha and beta; see plan.py.
#include "spmv/pull.cuh"
#include "spmv/push.cuh"
#ifndef LG_W
#define LG_W bool
#endif

const u32 kLine = 16;                  // u64 a cache line: counters do not share one
const u32 kExplored = 3, kPulled = 4;  // places in counts

extern "C" __global__ void spmv_either(
    i64 n_u, i64 n_w, i64 nvals, f64 alpha, f64 beta, const LG_PTR* __restrict__ in_ptr,
    const LG_IDX* __restrict__ in_idx, const LG_A* __restrict__ in_values,
    const LG_PTR* __restrict__ out_ptr, const LG_IDX* __restrict__ out_idx,
    const LG_A* __restrict__ out_values, LG_A a_iso, const u32* __restrict__ u_words,
    const LG_U* __restrict__ u_values, LG_U u_iso, const u32* __restrict__ m_words, bool complement,
    const u64* __restrict__ before, i64 explored, bool pulled, const u32* __restrict__ empty,
    const i32* __restrict__ hint, const LG_PTR* __restrict__ lengths, i32* vertex, LG_PTR* start,
    u32* degree, u64* chunks, u32* w_words, LG_W* w_values, u64* counts, u64* signal, u64 serial,
    u64* edges, GridBarrier* barrier) {
  typedef Chosen S;
  LG_SHARED(PutOff, later, 1);
  const Operand<S> u{u_words, u_values, u_iso};
  const Mask mask{m_words, complement, n_w};
  const Sums<LG_W> w{w_words, w_values};
  const u64 found = before[0], leaving = before[1], seen = u64(explored) + before[kExplored];
  const u64 unexplored = u64(nvals) > seen + leaving ? u64(nvals) - seen - leaving : 0;
  const bool pulls = pulled || before[kPulled] ? f64(found) * beta >= f64(n_u)
                                               : f64(leaving) * alpha > f64(unexplored);
  Tallied tally{};
  if (pulls) {
    const Columns<S> a{in_ptr, in_idx, in_values, a_iso};
    pull_bitmap<S>(a, u, mask, w, empty, hint, lengths, later, &tally);
  } else {
    const Columns<S> a{out_ptr, out_idx, out_values, a_iso};
    const List<LG_PTR> small{vertex, start, degree};
    clear_sums<S>(w, n_w);
    if (found) {  // the same in all blocks
      list_columns(a, u_words, n_u, small, chunks, counts + kLine, counts + 2 * kLine);
      grid_sync(barrier);
      follow_lists(out_ptr, small, chunks, load_volatile(counts + kLine),
                   load_volatile(counts + 2 * kLine),
                   Adder<S, LG_W>{a, u, mask, w, lengths, &tally});
    }
  }
  add_counts(tally, counts, signal, serial, edges, [&] {
    counts[kExplored] = before[kExplored] + u64(explored) + leaving;
    counts[kPulled] = pulls;
  });
}
