// Random numbers by position: number i of a stream depends on the key, the stream and i alone.
//
// Philox4x64-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
// (SC 2011), as `numpy.random.Philox(key=key, counter=[k, stream, 0, 0])` makes them: its block k
// is the function of the counter k + 1. A block is four numbers of 64 bits, which are taken as
// eight of 32, the low half first.
#include "common/prims.cuh"

LG_DEVICE u64 mul_high(u64 a, u64 b) {
  const u64 a0 = u32(a), a1 = a >> 32, b0 = u32(b), b1 = b >> 32;
  const u64 middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + u32(middle);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

// out[k] is number first + k. A thread a block of eight numbers, grid stride.
extern "C" __global__ void random_words(i64 first, i64 count, u64 key0, u64 key1, u64 stream,
                                        u32* out) {
  const i64 begin = first / 8, end = (first + count + 7) / 8;
  for (i64 block = begin + global_thread(); block < end; block += global_threads()) {
    u64 x[4] = {u64(block) + 1, stream, 0, 0}, k0 = key0, k1 = key1;
    for (u32 turn = 0; turn < 10; ++turn) {
      const u64 high0 = mul_high(x[0], 0xD2E7470EE14C6C93), low0 = x[0] * 0xD2E7470EE14C6C93;
      const u64 high1 = mul_high(x[2], 0xCA5A826395121157), low1 = x[2] * 0xCA5A826395121157;
      x[0] = high1 ^ x[1] ^ k0;
      x[1] = low1;
      x[2] = high0 ^ x[3] ^ k1;
      x[3] = low0;
      k0 += 0x9E3779B97F4A7C15;
      k1 += 0xBB67AE8584CAA73B;
    }
    for (u32 k = 0; k < 8; ++k) {
      const i64 at = block * 8 + k - first;
      if (at >= 0 && at < count) out[at] = u32(x[k / 2] >> (k % 2 * 32));
    }
  }
}
