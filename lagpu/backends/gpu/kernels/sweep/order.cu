// The levels in a k x n bitmap matrix: the least and the largest, one level as bits, and the
// vertices of each row by level. Entry (i, j) is at place j * stride + i, so in the first two
// kernels, which go over all words, neighbouring lanes look at rows of one vertex; the last one
// gives each row to one thread block.
//
//   level_ends   the least and the largest level      cut_level    where the level is d
//   level_rows   the levels row by row                order_rows   a counting sort of each row
#include "common/entries.cuh"
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

const u32 kPitch = 33;  // of a tile in shared memory: columns lie in different banks

// levels[i * n + v] is the level of v in row i, -1 if it has none; stride is 32 * per. 32 rows and
// 32 vertices at a time, so that whole lines are read and written.
extern "C" __global__ void level_rows(i64 rows, i64 n, i64 per, const u32* words,
                                      const LG_U* values, LG_U iso, i32* levels) {
  LG_SHARED(i32, tile, 32 * kPitch);
  const i64 tiles = (n + 31) / 32 * per;
  for (i64 t = block_index(); t < tiles; t += grid_blocks()) {
    const i64 v0 = t / per * 32, group = t % per;
    for (u32 c = block_warp(); c < 32 && v0 + c < n; c += block_warps()) {
      const i64 word = (v0 + c) * per + group, at = word * 32 + lane_id();
      i32 level = -1;
      if (words[word] >> lane_id() & 1) level = i32(entry_value<LG_U>(values, iso, at));
      tile[lane_id() * kPitch + c] = level;
    }
    block_sync();
    for (u32 r = block_warp(); r < 32 && group * 32 + r < rows; r += block_warps()) {
      const i64 v = v0 + lane_id();
      if (v < n) levels[(group * 32 + r) * n + v] = tile[r * kPitch + lane_id()];
    }
    block_sync();
  }
}

// visit(v, level) for each vertex of a row that has a level, by the threads of the block.
template <class Visit>
LG_DEVICE void for_levels(i64 n, const i32* levels, Visit visit) {
  for (i64 v0 = block_thread(); v0 < n; v0 += i64(kAhead) * block_threads()) {
    i32 level[kAhead];
    for (u32 q = 0; q < kAhead; ++q) {
      const i64 v = v0 + i64(q) * block_threads();
      level[q] = v < n ? levels[v] : -1;
    }
    for (u32 q = 0; q < kAhead; ++q)
      if (level[q] >= 0) visit(i32(v0 + i64(q) * block_threads()), level[q]);
  }
}

// Row i gets its vertices by level in order[i * n ..], level d at offsets[d] .. offsets[d + 1] of
// the row's deepest + 2 offsets; last[i] is its deepest level, -1 if it has none. ranks has levels,
// at most `deepest`, and gets the place of each vertex in the row's order, -1 if it has none. A
// block a row; vertices rise in a level but for those that one block looks at together.
extern "C" __global__ void __launch_bounds__(kOrderThreads)
    order_rows(i64 rows, i64 n, i64 deepest, i32* order, i32* offsets, i32* last, i32* ranks) {
  for (i64 row = block_index(); row < rows; row += grid_blocks()) {
    i32* const starts = offsets + row * (deepest + 2);
    i32* const next = starts + 1;  // of each level: how many, then where the next one goes
    i32* const mine = ranks + row * n;
    for (i64 d = block_thread(); d < deepest + 2; d += block_threads()) starts[d] = 0;
    block_sync();
    i32 most = -1;
    for_levels(n, mine, [&](i32, i32 level) {
      atomic_add(&next[level], 1);
      most = level > most ? level : most;
    });
    most = block_reduce(most, -1, [](i32 x, i32 y) { return y > x ? y : x; });
    if (block_thread() == 0) last[row] = most;
    u64 before = 0;
    for (i64 d0 = 0; d0 <= deepest; d0 += block_threads()) {
      const i64 d = d0 + block_thread();
      u64 total;
      const u64 start = block_scan(d <= deepest ? u64(load_cg(&next[d])) : 0, &total);
      if (d <= deepest) next[d] = i32(before + start);
      before += total;
    }
    block_sync();
    for_levels(n, mine, [&](i32 v, i32 level) {
      mine[v] = atomic_add(&next[level], 1);
      order[row * n + mine[v]] = v;
    });
    block_sync();  // before the next row
  }
}
