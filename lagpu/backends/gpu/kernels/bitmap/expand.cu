// The depths of a bit-parallel search as numbers; the search has bit-sliced them (search/bits.cu).
#include "common/entries.cuh"
// what is not given; the file compiles by itself
#ifndef LG_X  // type of the values
#define LG_X i32
#endif

const u32 kPlanesInRegisters = 4;  // planes that are kept in registers; their numbers fit in a byte

// The numbers of four neighbouring entries, a byte each, from their bits in a plane.
LG_DEVICE u32 spread(u32 bits) { return ((bits & 15) * 0x204081) & 0x01010101; }

// C(assigned.S) << the depth, which planes 0 .. bits of result[0] have, or << number.
// A warp takes 32 words of 32 entries; a thread writes four values that lie side by side. If C was
// blank, its words are not set, and what is no entry of it may be written too.
struct alignas(sizeof(LG_X) * 4 < 16 ? sizeof(LG_X) * 4 : 16) Four {
  LG_X x[4];
};

extern "C" __global__ void bitmap_expand(i64 nwords, const u32* assigned, const u32* planes,
                                         const u64* result, bool blank, bool is_depth, LG_X number,
                                         u32* words, LG_X* values, u64* nvals) {
  const u32 depth = u32(result[0]);
  const u32 count = is_depth && depth ? 32 - bit_clz(depth) : 0;
  const u32 shift = lane_id() % 8 * 4;
  u64 total = 0;
  for (i64 base = global_warp() * 32; base < nwords; base += global_warps() * 32) {
    const i64 at = base + lane_id();
    const u32 bits = at < nwords ? assigned[at] : 0;
    u32 plane[kPlanesInRegisters];  // loaded before it is known which are needed
#pragma unroll
    for (u32 p = 0; p < kPlanesInRegisters; ++p)
      plane[p] = at < nwords && p < count ? planes[p * nwords + at] : 0;
    if (at < nwords) {
      const u32 after = bits | (blank ? 0 : words[at]);
      words[at] = after;
      total += bit_popc(after);
    }
    if (!warp_any(bits != 0)) continue;
#pragma unroll
    for (u32 step = 0; step < 8; ++step) {
      const u32 from = step * 4 + lane_id() / 8;
      const u32 here = warp_shfl(bits, from) >> shift & 15;
      u32 bytes = 0;
#pragma unroll
      for (u32 p = 0; p < kPlanesInRegisters; ++p) {
        if (p >= count) break;
        bytes |= spread(warp_shfl(plane[p], from) >> shift) << p;
      }
      if (!here) continue;
      u32 number_of[4];
#pragma unroll
      for (u32 q = 0; q < 4; ++q) number_of[q] = bytes >> 8 * q & 255;
#pragma unroll 1
      for (u32 p = kPlanesInRegisters; p < count; ++p) {
        const u32 its = planes[p * nwords + base + from] >> shift;
#pragma unroll
        for (u32 q = 0; q < 4; ++q) number_of[q] |= (its >> q & 1) << p;
      }
      LG_X* const to = values + (base + from) * 32 + shift;
      Four four;
#pragma unroll
      for (u32 q = 0; q < 4; ++q) four.x[q] = is_depth ? cast<LG_X>(i32(number_of[q])) : number;
      if (blank) {
        *reinterpret_cast<Four*>(to) = four;
      } else {
        for (u32 q = 0; q < 4; ++q)
          if (here >> q & 1) to[q] = four.x[q];
      }
    }
  }
  add_total(total, nvals);
}
