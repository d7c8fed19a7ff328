// Functions that a generated loop calls; fused/program/ writes the kernel.
//
// Between element-wise statements no barrier is needed: each_tile always gives a warp the same
// words and a lane the same indices. A product reads words that other warps wrote, so it has
// barriers before and after.
#ifndef LAGPU_PROGRAM_CUH
#define LAGPU_PROGRAM_CUH
#include "common/log.cuh"
#include "common/stop.cuh"
#include "spmv/pull.cuh"
#include "spmv/push.cuh"
#include "spmv/sums.cuh"

// The entries among n that this block counts, on all its threads.
LG_DEVICE u64 entries_of_block(i64 n, const u32* words) {
  u64 count = 0;
  each_tile(n, [&](i64 k, bool mine) { count += mine ? bit_popc(words[k]) : 0; });
  return block_reduce(count, u64(0), LgPlus());
}

// Copy n entries; returns how many this block finds that were not the same before, on all its
// threads. At the `first` call none was there.
template <class X>
LG_DEVICE u64 remember(i64 n, const u32* words, const X* values, u32* old_words, X* old_values,
                       bool first) {
  u64 count = 0;
  each_tile(n, [&](i64 k, bool mine) {
    const u32 now = mine ? words[k] : 0, before = mine && !first ? old_words[k] : 0;
    count += bit_popc(before & ~now);
    each_word(now, k, [&](u32 from, i64 i) {
      const u32 lane = 1u << lane_id();
      const bool there = warp_shfl(now, from) & lane, was = warp_shfl(before, from) & lane;
      if (!there || (was && values[i] == old_values[i])) return;
      old_values[i] = values[i];
      ++count;
    });
    if (mine) old_words[k] = now;
  });
  return block_reduce(count, u64(0), LgPlus());
}

// *total += what each block has counted.
LG_DEVICE void add_of_block(u64 count, u64* total) {
  if (block_thread() == 0 && count) atomic_add(total, count);
}

// A vector of n entries, 32 at most, as every warp holds it: a lane has the entry at its own index.
template <class X>
LG_DEVICE Entry<X> load_held(i64 n, const u32* words, const X* values, X iso) {
  const i64 i = lane_id();
  return load_entry(i < n && has_entry(words, i), values, iso, i);
}

// One warp writes it back, as a written vector has words and values.
template <class X>
LG_DEVICE void store_held(const Entry<X>& held, i64, u32* words, X* values, X) {
  if (global_warp() != 0) return;
  const u32 bits = warp_ballot(held.there);
  if (held.there) values[lane_id()] = held.value;
  if (lane_id() == 0) words[0] = bits;
}

// The matrix entries in the columns of n_u entries of u, as this lane counts them: for a word of
// which none lacks by itself, else for one index of each of some words.
template <class S>
LG_DEVICE u64 frontier_edges_of(const typename S::PTR* ptr, const u32* words, i64 n) {
  u64 frontier_edges = 0;
  each_tile(n, [&](i64 k, bool mine) {
    const u32 all = mine ? entry_bits(nullptr, k, n) : 0, some = mine ? entry_bits(words, k, n) : 0;
    if (mine && some == all) {
      const i64 first = k * 32, end = first + bit_popc(all);
      frontier_edges += u64(load_ro(&ptr[end]) - load_ro(&ptr[first]));
    }
    each_words(some == all ? 0 : some, k, [&](const u32(&from)[kWords], const i64(&i)[kWords]) {
      typename S::PTR begin[kWords], end[kWords];
      for (u32 q = 0; q < kWords; ++q) {
        const bool there = from[q] < LG_WARP && warp_shfl(some, from[q] % LG_WARP) >> lane_id() & 1;
        begin[q] = there ? load_ro(&ptr[i[q]]) : 0;
        end[q] = there ? load_ro(&ptr[i[q] + 1]) : 0;
      }
      for (u32 q = 0; q < kWords; ++q) frontier_edges += u64(end[q] - begin[q]);
    });
  });
  return frontier_edges;
}

// t, all of whose n values are identities but those of entries, without entries and so once more.
template <class S, class Z>
LG_DEVICE void empty_sums(const Sums<Z>& t, i64 n) {
  each_tile(n, [&](i64 k, bool mine) {
    const u32 some = mine ? t.words[k] : 0;
    if constexpr (!takes_first<S>)
      each_word(some, k, [&](u32 from, i64 i) {
        if (warp_shfl(some, from) >> lane_id() & 1) t.values[i] = empty_sum<typename S::ADD, Z>();
      });
    if (some) t.words[k] = 0;
  });
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

// A product that never is a sum of all entries, and one that is where each entry of the matrix
// meets an entry of u; without heads it is none.
template <class S>
struct NoWhole {
  static constexpr bool may = false;
  LG_DEVICE bool has() const { return false; }
  LG_DEVICE void operator()(const Multiplication<S>&, GridBarrier*) const {}
};
template <class S>
struct MaybeWhole {
  static constexpr bool may = true;
  Whole<S> all;
  LG_DEVICE bool has() const { return all.heads; }
  LG_DEVICE void operator()(const Multiplication<S>& x, GridBarrier* barrier) const {
    sum_all<S>(x.in, x.u, all, x.t, barrier);
  }
};

// Begins and ends with a barrier, up to which each warp goes on with its own words. t is as
// empty_sums leaves it, or has what the last product into it left. counters: three numbers, each on
// its line, that are 0; with a log a fourth, for the edges looked at. Returns whether it pulled.
template <class S, class Sum>
LG_DEVICE bool multiply_all(const Multiplication<S>& x, const Sum& sum, u64* counters,
                            GridBarrier* barrier, PutOff* later) {
  const typename S::PTR* const no_lengths = nullptr;
  if constexpr (!Sum::may) empty_sums<S>(x.t, x.mask.n);
  // Without the form of the inputs, their entries are counted where all of them make a difference.
  if (x.in.ptr && (x.out.ptr || sum.has())) {
    u64 found = 0;
    if (x.out.ptr) {
      found = frontier_edges_of<S>(x.out.ptr, x.u.words, x.n_u);
    } else {
      each_tile(x.n_u, [&](i64 k, bool mine) {
        found += mine ? bit_popc(entry_bits(x.u.words, k, x.n_u)) : 0;
      });
    }
    found = block_reduce(found, u64(0), LgPlus());
    if (block_thread() == 0 && found) atomic_add(counters, found);
  }
  grid_sync(barrier);
  const u64 found = load_volatile(counters);
  const bool pulls =
      x.in.ptr &&
      (!x.out.ptr || f32(found) * f32(takes_first<S> ? kPullFirst : kPullSums) > f32(x.nvals));
  const bool sums = pulls && sum.has() && found == (x.out.ptr ? x.nvals : u64(x.n_u));
  if (Sum::may && !sums) {  // that writes all there may be; the others find t empty
    empty_sums<S>(x.t, x.mask.n);
    if (pulls) grid_sync(barrier);  // a push has one before it adds
  }
  Tallied tally{};
  if (sums) {
    sum(x, barrier);
    if (global_thread() == 0) tally.looked_at = x.nvals;
  } else if (pulls) {
    pull_bitmap<S>(x.in, x.u, x.mask, x.t, nullptr, nullptr, no_lengths, later, &tally);
  } else {
    list_columns<S>(x.out, x.u.words, x.n_u, x.small, x.chunks, counters + kCounterStride,
                    counters + 2 * kCounterStride);
    grid_sync(barrier);
    follow_lists(x.out.ptr, x.small, x.chunks, load_volatile(counters + kCounterStride),
                 load_volatile(counters + 2 * kCounterStride),
                 Adder<S, typename S::Z>{x.out, x.u, x.mask, x.t, no_lengths, &tally});
  }
  LG_LOGGED(add_total(tally.looked_at, counters + 3 * kCounterStride);)
  grid_sync(barrier);
  return pulls;
}

#endif  // LAGPU_PROGRAM_CUH
