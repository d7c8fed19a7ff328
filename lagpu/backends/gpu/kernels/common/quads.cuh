// Entries of columns four by four, spread over the lanes of a warp whatever columns they are of.
#ifndef LAGPU_QUADS_CUH
#define LAGPU_QUADS_CUH
#include "common/collectives.cuh"
#ifndef LG_PTR
#define LG_PTR i32
#endif
#ifndef LG_IDX
#define LG_IDX i32
#endif

// Four indices side by side, at a multiple of four.
struct alignas(16) Quad {
  LG_IDX i[4];
};

// Quad number `quad` of nvals indices; of those past the last the quad's first one again.
LG_DEVICE Quad load_quad(const LG_IDX* idx, LG_PTR nvals, LG_PTR quad) {
  const LG_PTR first = quad * 4;
  if ((reinterpret_cast<u64>(idx) & 15) == 0 && nvals - first >= 4)
    return load_once(reinterpret_cast<const Quad*>(idx) + quad);
  Quad q;
  for (u32 t = 0; t < 4; ++t) q.i[t] = idx[LG_PTR(t) < nvals - first ? first + LG_PTR(t) : first];
  return q;
}

// The quad after the last one that has entries before `end`, which is not 0.
LG_DEVICE LG_PTR quads_end(LG_PTR end) { return (end - 1) / 4 + 1; }

// A quad that a lane is to look at, for another lane.
struct Task {
  u32 from;  // whose it is
  LG_PTR quad;
  bool there;
};

// The quads first .. last of all lanes of a warp, in the order of the lanes.
struct Quads {
  u32 mine, upto, total;  // the lane's own, with those of the lanes before it, and of all lanes
  LG_PTR shift;

  LG_DEVICE Quads(LG_PTR first, LG_PTR last)
      : mine(first < last ? u32(last - first) : 0),
        upto(warp_scan(mine, LgPlus())),
        total(warp_shfl(upto, LG_WARP - 1)),
        shift(first - LG_PTR(upto - mine)) {}

  // Number k of them, another one for each lane; every lane calls it.
  LG_DEVICE Task task(u32 k) const {
    const u32 from = warp_owner(upto, k);
    return Task{from, warp_shfl(shift, from) + LG_PTR(k), k < total};
  }
};

#endif  // LAGPU_QUADS_CUH
