// The levels in a block of k x n: their ends, one of them as bits, and the vertices of each row by
// level. Entry (i, j) stands at place j * stride + i, so neighbouring lanes look at rows of one
// vertex in the first two, which go over all words; the third gives each row to one block.
//
//   level_ends   the least and the largest level      cut_level   where the level is d
//   order_rows   a counting sort of each row
#include "entries.cuh"
// what is not given; the file compiles by itself
#ifndef LG_U
#define LG_U i32
#endif

const u32 kAhead = 4;  // levels that a thread loads at once

// Lower ends[0] to the least level and raise ends[1] to the largest. A warp a word, grid stride.
extern "C" __global__ void level_ends(i64 count, const u32* words, const LG_U* values, LG_U iso,
                                      LG_U* ends) {
  LG_U least = ends[0], largest = ends[1];  // no level is outside of what these are at first
  for (i64 k = global_warp(); k < (count + 31) / 32; k += global_warps()) {
    if (!(entry_bits(words, k, count) >> lane_id() & 1)) continue;
    const LG_U level = entry_value<LG_U>(values, iso, k * 32 + lane_id());
    least = level < least ? level : least;
    largest = level > largest ? level : largest;
  }
  least = warp_reduce(least, [](LG_U x, LG_U y) { return y < x ? y : x; });
  largest = warp_reduce(largest, [](LG_U x, LG_U y) { return y > x ? y : x; });
  if (lane_id() != 0) return;
  atomic_min(&ends[0], least);
  atomic_max(&ends[1], largest);
}

// out has the bits of the entries that are d; *nvals += how many. A warp a word, grid stride.
extern "C" __global__ void cut_level(i64 count, const u32* words, const LG_U* values, LG_U iso,
                                     LG_U d, u32* out, u64* nvals) {
  u64 total = 0;
  for (i64 k = global_warp(); k < (count + 31) / 32; k += global_warps()) {
    const bool there = entry_bits(words, k, count) >> lane_id() & 1;
    const bool here = there && entry_value<LG_U>(values, iso, k * 32 + lane_id()) == d;
    const u32 bits = warp_ballot(here);
    if (lane_id() != 0) continue;
    out[k] = bits;
    total += bit_popc(bits);
  }
  add_total(total, nvals);
}

// visit(v, level) for each vertex that has a level in a row, by the threads of the block.
template <class Visit>
LG_DEVICE void for_levels(i64 n, i64 stride, i64 row, const u32* words, const LG_U* values,
                          LG_U iso, Visit visit) {
  for (i64 v0 = block_thread(); v0 < n; v0 += i64(kAhead) * block_threads()) {
    i64 level[kAhead];
    for (u32 q = 0; q < kAhead; ++q) {
      const i64 v = v0 + i64(q) * block_threads(), at = v * stride + row;
      level[q] = v < n && has_entry(words, at) ? i64(entry_value<LG_U>(values, iso, at)) : -1;
    }
    for (u32 q = 0; q < kAhead; ++q)
      if (level[q] >= 0) visit(i32(v0 + i64(q) * block_threads()), level[q]);
  }
}

// Row i gets its vertices by level in order[i * n ..], level d at offsets[d] .. offsets[d + 1] of
// the row's deepest + 2 offsets; last[i] is its deepest level, -1 if it has none. Levels are at
// most `deepest`. A block a row; vertices rise in a level but for those that one block looks at
// together.
extern "C" __global__ void __launch_bounds__(1024)
    order_rows(i64 rows, i64 n, i64 stride, i64 deepest, const u32* words, const LG_U* values,
               LG_U iso, i32* order, i32* offsets, i32* last) {
  for (i64 row = block_index(); row < rows; row += grid_blocks()) {
    i32* const starts = offsets + row * (deepest + 2);
    i32* const next = starts + 1;  // of each level: how many, then where the next one goes
    for (i64 d = block_thread(); d < deepest + 2; d += block_threads()) starts[d] = 0;
    block_sync();
    i64 most = -1;
    for_levels(n, stride, row, words, values, iso, [&](i32, i64 level) {
      atomic_add(&next[level], 1);
      most = level > most ? level : most;
    });
    most = block_reduce(most, i64(-1), [](i64 x, i64 y) { return y > x ? y : x; });
    if (block_thread() == 0) last[row] = i32(most);
    u64 before = 0;
    for (i64 d0 = 0; d0 <= deepest; d0 += block_threads()) {
      const i64 d = d0 + block_thread();
      u64 total;
      const u64 start = block_scan(d <= deepest ? u64(load_cg(&next[d])) : 0, &total);
      if (d <= deepest) next[d] = i32(before + start);
      before += total;
    }
    block_sync();
    for_levels(n, stride, row, words, values, iso,
               [&](i32 v, i64 level) { order[row * n + atomic_add(&next[level], 1)] = v; });
    block_sync();  // before the next row
  }
}
