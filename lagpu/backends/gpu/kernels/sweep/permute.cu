// Permute the entries of a k x n bitmap matrix into level order, and back.
//
// In the bitmap matrix entry (i, v) is at v * stride + i, stride = 32 * per. In level order it is
// at i * n + ranks[i * n + v], where presence is a byte: each row by itself, its vertices level by
// level. Vertices of rank -1 have no level and no place there; their entries stay as they are.
//
//   to_level_order     from the bitmap matrix to arrays in level order
//   from_level_order   back
//
// Either kernel writes whole lines, as the store of a single value writes a part of a sector of 32
// bytes, and reads at random. To level order, the whole grid takes one row after the other: a
// sector of the bitmap matrix has values of several rows, and is still in the cache for the next
// ones. Back, a thread block takes 32 rows and 32 vertices at a time through shared memory.
#include "common/entries.cuh"
// what is not given; the file compiles by itself
#ifndef LG_U
#define LG_U f64
#endif

// The entry at each place of each row's level order; level d of row i is at offsets[i, d] ..
// offsets[i, d + 1]. A null `own`: values are not stored. A thread a place, grid stride.
extern "C" __global__ void to_level_order(i64 n, i64 k, i64 stride, i64 deepest, const i32* order,
                                          const i32* offsets, const u32* words, const LG_U* values,
                                          LG_U iso, bool* has, LG_U* own) {
  for (i64 row = 0; row < k; ++row) {
    const i64 count = offsets[(row + 1) * (deepest + 2) - 1];
    for (i64 rank = global_thread(); rank < count; rank += global_threads()) {
      const i64 place = row * n + rank, at = load_ro(&order[place]) * stride + row;
      const bool there = has_entry(words, at);  // no load waits for a store
      const LG_U value = entry_value<LG_U>(values, iso, at);
      has[place] = there;
      if (own) own[place] = value;
    }
  }
}

const u32 kPitch = 33;  // of a tile in shared memory: columns lie in different banks

// The way back; words and values are those of the bitmap matrix.
extern "C" __global__ void from_level_order(i64 n, i64 k, i64 per, const i32* ranks,
                                            const bool* has, const LG_U* own, u32* words,
                                            LG_U* values) {
  enum State : u32 { kElsewhere, kAbsent, kPresent };
  LG_SHARED(u32, states, 32 * kPitch);
  LG_SHARED(LG_U, tile, 32 * kPitch);
  const i64 tiles = (n + 31) / 32 * per;
  for (i64 t = block_index(); t < tiles; t += grid_blocks()) {
    const i64 v0 = t / per * 32, group = t % per;
    for (u32 r = block_warp(); r < 32; r += block_warps()) {
      const i64 row = (group * 32 + r) * n, v = v0 + lane_id();
      const i32 rank = group * 32 + r < k && v < n ? load_ro(&ranks[row + v]) : -1;
      const bool there = rank >= 0 && has[row + rank];
      states[r * kPitch + lane_id()] = rank < 0 ? kElsewhere : there ? kPresent : kAbsent;
      if (there) tile[r * kPitch + lane_id()] = own[row + rank];
    }
    block_sync();
    for (u32 c = block_warp(); c < 32 && v0 + c < n; c += block_warps()) {
      const u32 at = lane_id() * kPitch + c, state = states[at];
      const i64 word = (v0 + c) * per + group;
      const u32 here = warp_ballot(state != kElsewhere), present = warp_ballot(state == kPresent);
      if (lane_id() == 0 && here) words[word] = (words[word] & ~here) | present;
      if (state == kPresent) values[word * 32 + lane_id()] = tile[at];
    }
    block_sync();
  }
}
