// Kernels over presence words: bit i % 32 of word i / 32 says whether entry i is there.
#include "common/entries.cuh"
#include "common/hint.cuh"
// default: the file compiles by itself
#ifndef LG_PTR
#define LG_PTR i32
#endif
#ifndef LG_IDX
#define LG_IDX i32
#endif
#ifndef LG_U
#define LG_U bool
#endif

// total += number of set bits in words[0..nwords).
// Grid stride, one thread a word; one atomic a block. total is zeroed by the caller.
extern "C" __global__ void count_bits(const u32* __restrict__ words, i64 nwords, u64* total) {
  u64 count = 0;
  for (i64 i = global_thread(); i < nwords; i += global_threads()) count += bit_popc(words[i]);
  count = block_reduce(count, u64(0), LgPlus());
  if (block_thread() == 0 && count) atomic_add(total, count);
}

// See write_true_bits.
extern "C" __global__ void true_bits(i64 n, const u32* __restrict__ words,
                                     const LG_U* __restrict__ values, u32* __restrict__ out) {
  write_true_bits(n, words, values, out);
}

// Set the bits of a list of indices in `words`, and values[indices[k]] = packed[k] unless null.
// One thread an index, grid stride.
extern "C" __global__ void scatter_entries(i64 count, const i64* __restrict__ indices,
                                           const LG_U* __restrict__ packed, u32* words,
                                           LG_U* __restrict__ values) {
  for (i64 k = global_thread(); k < count; k += global_threads()) {
    const i64 i = indices[k];
    if (words) atomic_or(&words[i / 32], 1u << (i % 32));
    if (packed) values[i] = packed[k];
  }
}

// to[i] = from[i] where the bit of entry i is set. One thread an entry, grid stride.
extern "C" __global__ void copy_entries(i64 n, const u32* __restrict__ words,
                                        const LG_U* __restrict__ from, LG_U* __restrict__ to) {
  for (i64 i = global_thread(); i < n; i += global_threads())
    if (has_entry(words, i)) to[i] = from[i];
}

// The presence words of n entries of which only `index` is there. One thread a word, grid stride.
extern "C" __global__ void single_entry(i64 n, i64 index, u32* __restrict__ words) {
  const i64 nwords = (n + 31) / 32;
  for (i64 w = global_thread(); w < nwords; w += global_threads())
    words[w] = w == index / 32 ? 1u << (index % 32) : 0;
}

// Bits of the first n entries of words[0..ceil(n / 32)) are set, those past n are not.
extern "C" __global__ void set_all_bits(i64 n, u32* __restrict__ words) {
  const i64 nwords = (n + 31) / 32;
  for (i64 w = global_thread(); w < nwords; w += global_threads())
    words[w] = entry_bits(nullptr, w, n);
}

// counts[b] = set bits among the kGroupWords words of group b; one block a group, grid stride.
extern "C" __global__ void count_groups(i64 nwords, const u32* __restrict__ words,
                                        i64* __restrict__ counts) {
  const i64 groups = (nwords + kGroupWords - 1) / kGroupWords;
  for (i64 g = block_index(); g < groups; g += grid_blocks()) {
    i64 count = 0;
    for (i64 w = g * kGroupWords + block_thread(); w < nwords && w < (g + 1) * kGroupWords;
         w += block_threads())
      count += bit_popc(words[w]);
    count = block_reduce(count, i64(0), LgPlus());
    if (block_thread() == 0) counts[g] = count;
  }
}

// Bits of a word that one thread lists; more of them have a lane each, and are written together.
constexpr u32 kFewBits = 2;

// indices, rising, of the set bits, and packed[k] = values[indices[k]] unless null; group b begins
// at starts[b]. One block of kGroupWords threads a group, a thread a word, grid stride.
extern "C" __global__ void list_bits(i64 nwords, const u32* __restrict__ words,
                                     const i64* __restrict__ starts, i64* __restrict__ indices,
                                     const LG_U* __restrict__ values, LG_U* __restrict__ packed) {
  const i64 groups = (nwords + kGroupWords - 1) / kGroupWords;
  for (i64 g = block_index(); g < groups; g += grid_blocks()) {
    const i64 w = g * kGroupWords + block_thread();
    u32 bits = w < nwords ? words[w] : 0;
    u64 in_group;
    i64 at = starts[g] + i64(block_scan(bit_popc(bits), &in_group));
    const auto list = [&](i64 i, i64 k) {
      indices[k] = i;
      if (packed) packed[k] = values[i];
    };
    if (warp_any(bit_popc(bits) > kFewBits)) {
#pragma unroll 4
      for (u32 k = 0; k < LG_WARP; ++k) {
        const u32 word = warp_shfl(bits, k);
        const i64 first = warp_shfl(at, k);
        if (word >> lane_id() & 1)
          list((w - lane_id() + k) * 32 + lane_id(), first + bit_popc(word & lanes_below()));
      }
    } else {
      for (; bits; bits &= bits - 1, ++at) list(w * 32 + bit_ffs(bits) - 1, at);
    }
  }
}

// out[k] and its bit = the entry of (words, values) at indices[k], as in extract.
// One warp a word of the output, grid stride; a null `values` writes bits alone.
extern "C" __global__ void gather_entries(i64 count, const i64* __restrict__ indices,
                                          const u32* __restrict__ words,
                                          const LG_U* __restrict__ values,
                                          u32* __restrict__ out_words, LG_U* __restrict__ out) {
  const i64 nwords = (count + 31) / 32;
  for (i64 w = global_warp(); w < nwords; w += global_warps()) {
    const i64 k = w * 32 + lane_id();
    const bool there = k < count && has_entry(words, indices[k]);
    if (there && values) out[k] = values[indices[k]];
    const u32 bits = warp_ballot(there);
    if (lane_id() == 0) out_words[w] = bits;
  }
}

// A bit for each column without entries. One warp a word, grid stride.
extern "C" __global__ void empty_columns(i64 n, const LG_PTR* __restrict__ col_ptr,
                                         u32* __restrict__ out) {
  const i64 nwords = (n + 31) / 32;
  for (i64 w = global_warp(); w < nwords; w += global_warps()) {
    const i64 j = w * 32 + lane_id();
    const u32 bits = warp_ballot(j < n && col_ptr[j] == col_ptr[j + 1]);
    if (lane_id() == 0) out[w] = bits;
  }
}

// The hint of column j is the row among its own whose length is greatest; see common/hint.cuh.
// `lengths_ptr` is the form in which rows are counted. One warp a column, grid stride.
extern "C" __global__ void heaviest_rows(i64 n, const LG_PTR* __restrict__ col_ptr,
                                         const LG_IDX* __restrict__ row_idx,
                                         const LG_PTR* __restrict__ lengths_ptr,
                                         i32* __restrict__ hint) {
  for (i64 j = global_warp(); j < n; j += global_warps()) {
    i64 longest = -1;
    i32 best = -1;
    const i64 end = col_ptr[j + 1];
    for (i64 p = col_ptr[j] + lane_id(); p < end; p += 32) {
      const i32 i = i32(row_idx[p]);
      const i64 length = i64(lengths_ptr[i + 1]) - i64(lengths_ptr[i]);
      if (length > longest) {
        longest = length;
        best = i;
      }
    }
    for (u32 step = 16; step; step /= 2) {
      const i64 other_length = warp_shfl_xor(longest, step);
      const i32 other = warp_shfl_xor(best, step);
      if (other_length > longest || (other_length == longest && other < best)) {
        longest = other_length;
        best = other;
      }
    }
    if (lane_id() == 0) hint[j] = hint_to(best, end - i64(col_ptr[j]) == 1);
  }
}
