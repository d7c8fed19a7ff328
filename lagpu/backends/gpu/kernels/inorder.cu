// Entries of a block of k x n in the order of a sweep, and back.
//
// In a block entry (i, v) stands at v * stride + i, stride = 32 * per. In order it stands at
// i * n + ranks[i * n + v], where presence is a byte: each row by itself, its vertices level by
// level. Vertices of rank -1, which have no level, have no place there, and stay as they are.
//
//   put_in_order   a block's entries into arrays of their own      put_back_in_block
//
// A block of threads takes 32 rows and 32 vertices at a time through shared memory, so the block is
// read and written by whole lines. What is in order is not, but neighbouring vertices of a row fill
// the lines of their levels soon after each other.
#include "entries.cuh"
// what is not given; the file compiles by itself
#ifndef LG_U
#define LG_U f64
#endif

const u32 kPitch = 33;  // of a tile in shared memory: columns lie in different banks

// visit(first vertex, group of 32 rows) for each tile, by all threads of a block.
template <class Visit>
LG_DEVICE void for_tiles(i64 n, i64 per, Visit visit) {
  const i64 tiles = (n + 31) / 32 * per;
  for (i64 tile = block_index(); tile < tiles; tile += grid_blocks())
    visit(tile / per * 32, tile % per);
}

// What a block has; `has` is all true before. Values and own are null if all its entries have one
// value.
extern "C" __global__ void put_in_order(i64 n, i64 k, i64 per, const i32* ranks, const u32* words,
                                        const LG_U* values, bool* has, LG_U* own) {
  LG_SHARED(u32, bits, 32);
  LG_SHARED(LG_U, tile, 32 * kPitch);
  for_tiles(n, per, [&](i64 v0, i64 group) {
    for (u32 c = block_warp(); c < 32 && v0 + c < n; c += block_warps()) {
      const i64 word = (v0 + c) * per + group;
      if (lane_id() == 0) bits[c] = words[word];
      if (values && group * 32 + lane_id() < k)
        tile[lane_id() * kPitch + c] = values[word * 32 + lane_id()];
    }
    block_sync();
    for (u32 r = block_warp(); r < 32 && group * 32 + r < k; r += block_warps()) {
      const i64 row = (group * 32 + r) * n, v = v0 + lane_id();
      const i32 rank = v < n ? load_ro(&ranks[row + v]) : -1;
      if (rank < 0) continue;
      if (!(bits[lane_id()] >> r & 1)) has[row + rank] = false;  // most have one
      if (own) own[row + rank] = tile[r * kPitch + lane_id()];
    }
    block_sync();
  });
}

extern "C" __global__ void put_back_in_block(i64 n, i64 k, i64 per, const i32* ranks,
                                             const bool* has, const LG_U* own, u32* words,
                                             LG_U* values) {
  enum State : u32 { kElsewhere, kAbsent, kPresent };
  LG_SHARED(u32, states, 32 * kPitch);
  LG_SHARED(LG_U, tile, 32 * kPitch);
  for_tiles(n, per, [&](i64 v0, i64 group) {
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
  });
}
