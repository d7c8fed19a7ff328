// The fibers' stacks, kept from launch to launch.
#pragma once
#include <vector>

#include <sys/mman.h>

#include "state.hpp"

namespace sim {

constexpr u32 kStackBytes = 64 * 1024;
constexpr u32 kGuardBytes = 4096;  // an overrun faults here and corrupts nobody
constexpr u32 kStacksAtOnce = 64;

static std::vector<char*> free_stacks;  // their tops

// Whether there are `count` free stacks now.
inline bool reserve_stacks(u32 count) {
  const u64 each = kStackBytes + kGuardBytes;
  while (free_stacks.size() < count) {
    void* const all = mmap(nullptr, each * kStacksAtOnce, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return false;
    for (u32 i = 0; i < kStacksAtOnce; ++i) {
      char* const base = static_cast<char*>(all) + i * each;
      mprotect(base, kGuardBytes, PROT_NONE);
      // Tops at the same offset in their pages would all fall into the same few cache sets.
      free_stacks.push_back(base + each - i % 16 * 192);
    }
  }
  return true;
}

inline char* take_stack() {
  char* const top = free_stacks.back();
  free_stacks.pop_back();
  return top;
}

}  // namespace sim
