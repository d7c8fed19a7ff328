// The runtime's random numbers: xorshift64*, seeded for each launch.
#pragma once
#include "state.hpp"

namespace sim {

static u64 random_state;

// Never zero, and near seeds lie far apart.
inline void seed_random(u64 seed) { random_state = (2 * seed + 1) * 0x9E3779B97F4A7C15ull; }

inline u32 random_below(u32 n) {
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return u32((random_state * 2685821657736338717ull >> 32) * n >> 32);
}

// The numbers below n in random order.
inline void shuffle(u32* order, u32 n) {
  for (u32 i = 0; i < n; ++i) order[i] = i;
  for (u32 i = n; i > 1; --i) {
    const u32 j = random_below(i), kept = order[j];
    order[j] = order[i - 1];
    order[i - 1] = kept;
  }
}

}  // namespace sim
