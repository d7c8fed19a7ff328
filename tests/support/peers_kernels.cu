// Kernels over several devices that only tests launch.
#include "common/peers.cuh"

// In each of `times` rounds every block writes a number into every window, all meet and count
// something, every block looks at the numbers of all, and all meet again. From round `silent` on
// the device comes to no barrier. result: rounds, wrong numbers, then as a search.
extern "C" __global__ void barriers(u32 piece, u32 times, u32 silent, u32 epoch, u64 patience,
                                    const u64* windows, GridBarrier* barrier, u64* result) {
  Peers peers{piece, epoch, patience, windows};
  const u32 blocks = u32(grid_blocks()), mine = piece * blocks + u32(block_index());
  Totals all{0, 0, 0, 0, 0};
  u32 wrong = 0, round = 0;
  for (; round < times && round < silent; ++round) {
    if (block_thread() == 0)
      for (u32 p = 0; p < LG_PEERS; ++p) peers.window(p)[kPosts + mine] = round * 1000 + mine;
    all = barrier_of_all(&peers, 1, u64(piece) << 33 | 5, true);
    if (all.verdict) break;
    grid_sync(barrier);  // without an end unless all blocks of the device have the same verdict
    const u64* const here = peers.window(piece) + kPosts;
    for (u32 k = block_thread(); k < LG_PEERS * blocks; k += block_threads())
      wrong += load_cg(&here[k]) != round * 1000 + k;
    wrong += all.found != LG_PEERS * blocks || all.own != blocks;
    for (u32 p = 0; p < LG_PEERS; ++p) wrong += peers.found_by(p) != blocks;
    u64 want = 0;
    for (u64 p = 0; p < LG_PEERS; ++p) want += (p << 33 | 5) * blocks;
    wrong += all.edges != want;
    all = barrier_of_all(&peers, 0, 0, false);
    if (all.verdict) break;
  }
  atomic_add(&result[1], u64(wrong));
  grid_sync(barrier);  // all wrong numbers are there when the host hears of it
  if (global_thread() == 0) {
    result[0] = round;
    report_barriers(peers, all, round, result);
  }
}
