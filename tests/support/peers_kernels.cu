// Kernels over several devices that only tests launch.
#include "common/peers.cuh"

// In each of `times` rounds every block writes a number into every window, all meet, every block
// looks at the numbers of all, and all meet again; `found` and `edges` are counted too. From round
// `silent` on the device comes to no meeting. result: rounds, wrong numbers, then as a search.
extern "C" __global__ void meetings(u32 piece, u32 times, u32 silent, u32 epoch, u64 patience,
                                    const u64* windows, u64* own, u64* counted, u64* result) {
  Peers peers{piece, epoch, patience, windows, own};
  const u32 blocks = u32(grid_blocks()), mine = piece * blocks + u32(block_index());
  Totals all{0, 0, 0, 0};
  u32 wrong = 0, round = 0;
  for (; round < times && round < silent; ++round) {
    u64* const found = counted + (round & 1) * 2 * kCounterStride;
    u64* const edges = found + kCounterStride;
    if (block_thread() == 0) {
      for (u32 p = 0; p < LG_PEERS; ++p) peers.window(p)[kPosts + mine] = round * 1000 + mine;
      atomic_add(found, u64(1));
      atomic_add(edges, u64(piece) << 33 | 5);
    }
    all = meet(&peers, found, edges);
    if (all.verdict) break;
    const u64* const here = peers.window(piece) + kPosts;
    for (u32 k = block_thread(); k < LG_PEERS * blocks; k += block_threads())
      wrong += load_cg(&here[k]) != round * 1000 + k;
    wrong += all.found != LG_PEERS * blocks;
    u64 want = 0;
    for (u64 p = 0; p < LG_PEERS; ++p) want += (p << 33 | 5) * blocks;
    wrong += all.edges != want;
    all = meet(&peers, found, edges);
    if (all.verdict) break;
    if (global_thread() == 0) *found = *edges = 0;  // read; and used again in the round after next
  }
  atomic_add(&result[1], u64(wrong));
  if (global_thread() == 0) {
    result[0] = round;
    report_meetings(peers, all, round, result);
  }
}
