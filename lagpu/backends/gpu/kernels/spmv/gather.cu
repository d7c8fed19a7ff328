// Masked products by columns that thread blocks gather first: the strategy pull_gather.
//
//   w[j] = (+)_i u[i] (x) A[i,j]   for every column j the mask keeps
//
// A, u, the mask, w and the counts as in spmv/pull.cu; `empty` has a bit for each column without
// entries.
//
// Source: Hiragushi and Takahashi, ICA3PP 2013, figure 3; section 3.4 for the empty columns and for
// the one array of shared memory.
#include "spmv/pull.cuh"
#ifndef LG_W
#define LG_W bool
#endif

const u32 kScratch = 1024;   // columns that a block gathers at once: SCRATCH_SIZE of the paper
const u32 kLeastWords = 32;  // words that a block takes at least, so that it has enough to gather

// A block takes a tile of presence words, a thread one at most. It writes the wanted columns, side
// by side, to shared memory, so that no lane idles on others; then a thread takes a gathered column
// until its sum is done. As many rounds as the scratch needs. The place of a column then takes its
// bit, if it has an entry, and its word's thread collects the bits: no atomics.
template <class S, class W>
LG_DEVICE void pull_gather(const Columns<S>& a, const Operand<S>& u, const Mask& mask,
                           const Sums<W>& w, const u32* empty, const typename S::PTR* lengths,
                           Tallied* tally) {
  LG_SHARED(u32, scratch, kScratch);
  const i64 nwords = (mask.n + 31) / 32;
  i64 tile = block_threads();  // fewer where there would be no tile for some blocks
  while (tile > kLeastWords && nwords < tile * grid_blocks()) tile /= 2;
  const u32 me = block_thread();
  for (i64 base = tile * block_index(); base < nwords; base += tile * grid_blocks()) {
    const i64 word = base + me;
    const bool mine = me < tile && word < nwords;
    u32 wanted = mine ? mask.bits(word) & ~empty[word] : 0, found = 0;
    u64 total = 0;
    u32 to = u32(block_scan(u64(bit_popc(wanted)), &total));  // the place of the next wanted one
    const u32 count = u32(total);
    for (u32 first = 0; first < count; first += kScratch) {
      const u32 begin = to;
      for (; wanted && to < first + kScratch; ++to) {
        const u32 bit = 31 - bit_clz(wanted);
        scratch[to - first] = me * 32 + bit;
        wanted ^= 1u << bit;
      }
      block_sync();
      const u32 gathered = count - first < kScratch ? count - first : kScratch;
      for (u32 k = me; k < gathered; k += block_threads()) {
        const i64 j = base * 32 + scratch[k];
        Sum<S> sum;
        pull_column(a, u, load_ro(&a.ptr[j]), load_ro(&a.ptr[j + 1]), j, &sum, tally);
        scratch[k] = sum.found ? 1u << (j % 32) : 0;
        if (!sum.found) continue;
        if (!S::iso) w.values[j] = cast<W>(sum.value);
        count_found(lengths, j, tally);
      }
      block_sync();
      for (u32 k = begin; k < to; ++k) found |= scratch[k - first];
      block_sync();
    }
    if (mine) w.words[word] = found;
  }
}

extern "C" __global__ void spmv_pull_gather(
    i64 n, const LG_PTR* __restrict__ col_ptr, const LG_IDX* __restrict__ row_idx,
    const LG_A* __restrict__ values, LG_A a_iso, const u32* __restrict__ u_words,
    const LG_U* __restrict__ u_values, LG_U u_iso, const u32* __restrict__ m_words, bool complement,
    const u32* __restrict__ empty, const LG_PTR* __restrict__ lengths, u32* __restrict__ w_words,
    LG_W* __restrict__ w_values, u64* counts, u64* notification, u64 serial, u64* edges) {
  Tallied tally{};
  pull_gather<Chosen>({col_ptr, row_idx, values, a_iso}, {u_words, u_values, u_iso},
                      {m_words, complement, n}, Sums<LG_W>{w_words, w_values}, empty, lengths,
                      &tally);
  add_counts(tally, counts, notification, serial, edges);
}
