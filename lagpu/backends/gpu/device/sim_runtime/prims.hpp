// The primitives of prims.cuh for the sim device; the same names, in the same order.
#pragma once
#include "state.hpp"
#include "math.hpp"

#define __global__ inline  // the kernels of the file that nobody launches cost no compile time
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define memcpy __builtin_memcpy  // which CUDA knows without a header

// Set once, when the compiled kernel is loaded.
static sim::Sim* lg_sim;
static u32 lg_shared_used;

// A piece of the block's shared memory: its place is fixed when its declaration first runs.
inline void* lg_shared_at(u32* site, u64 bytes) {
  if (*site == 0) {
    if (lg_shared_used + bytes > sim::kSharedBytes) lg_sim->fail("more than 48 KiB shared memory");
    *site = 1 + lg_shared_used;
    lg_shared_used += u32(bytes + 15) & ~15u;
  }
  return lg_sim->current->block->shared + (*site - 1);
}

#define LG_SHARED(type, name, count) \
  static u32 lg_site_of_##name;      \
  type(&name)[count] =               \
      *static_cast<type(*)[count]>(lg_shared_at(&lg_site_of_##name, sizeof(type[count])))

#define LG_DYNAMIC_SHARED(type, name) \
  type* const name = reinterpret_cast<type*>(lg_sim->current->block->dynamic)

LG_DEVICE u32 block_thread() { return lg_sim->current->thread; }
LG_DEVICE u32 block_threads() { return lg_sim->block_threads; }
LG_DEVICE u32 block_index() { return lg_sim->current->block->index; }
LG_DEVICE u32 grid_blocks() { return lg_sim->grid_blocks; }

// ---- warp

LG_DEVICE void warp_sync() { lg_sim->meet_warp(sim::Wait::warp_sync, 0, false); }

LG_DEVICE u32 warp_ballot(bool pred) {
  return lg_sim->meet_warp(sim::Wait::warp_vote, 0, pred)->votes;
}
LG_DEVICE bool warp_any(bool pred) { return warp_ballot(pred) != 0; }
LG_DEVICE bool warp_all(bool pred) { return warp_ballot(!pred) == 0; }

// All shuffles are one: lane `source` of the warp, asked for by each lane for itself.
template <class T>
LG_DEVICE T lg_shuffle(T value, u32 source) {
  static_assert(sizeof(T) <= 8, "shuffles move at most 64 bits");
  u64 bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  const sim::Exchange* got = lg_sim->meet_warp(sim::Wait::warp_shfl, bits, false);
  if (!(got->present >> source & 1)) lg_sim->fail("a shuffle reads a lane that has exited");
  __builtin_memcpy(&value, &got->value[source], sizeof(T));
  return value;
}
template <class T>
LG_DEVICE T warp_shfl(T value, u32 lane) {
  return lg_shuffle(value, lane % LG_WARP);
}
template <class T>
LG_DEVICE T warp_shfl_up(T value, u32 step) {
  const u32 lane = lg_sim->current->lane;
  return lg_shuffle(value, lane >= step ? lane - step : lane);
}
template <class T>
LG_DEVICE T warp_shfl_down(T value, u32 step) {
  const u32 lane = lg_sim->current->lane;
  return lg_shuffle(value, step < LG_WARP - lane ? lane + step : lane);
}
template <class T>
LG_DEVICE T warp_shfl_xor(T value, u32 mask) {
  return lg_shuffle(value, (lg_sim->current->lane ^ mask) % LG_WARP);
}

// ---- block

LG_DEVICE void block_sync() { lg_sim->meet_block(sim::Wait::block_sync, false); }
LG_DEVICE bool block_any(bool pred) { return lg_sim->meet_block(sim::Wait::block_vote, pred) != 0; }
LG_DEVICE bool block_all(bool pred) {
  return lg_sim->meet_block(sim::Wait::block_vote, !pred) == 0;
}
LG_DEVICE u32 block_count(bool pred) { return lg_sim->meet_block(sim::Wait::block_vote, pred); }

// ---- memory

// Where threads of a GPU may see each other's work, a fiber now and then lets others run.
LG_DEVICE void lg_step() {
  if (--lg_sim->fuse == 0) lg_sim->give_way();
}

LG_DEVICE void prefetch(const void*) {}
LG_DEVICE void thread_fence() { lg_step(); }
LG_DEVICE void block_fence() { lg_step(); }
LG_DEVICE void system_fence() { lg_step(); }

template <class T>
LG_DEVICE T load_ro(const T* p) {
  return *p;
}
template <class T>
LG_DEVICE T load_cg(const T* p) {
  return *static_cast<const volatile T*>(p);
}
template <class T>
LG_DEVICE T as_stored(T x) {
  return x;
}
template <class T>
LG_DEVICE T load_once(const T* p) {
  return *p;
}
template <class T>
LG_DEVICE T load_volatile(const T* p) {
  lg_step();
  return *static_cast<const volatile T*>(p);
}
template <class T>
LG_DEVICE void store_volatile(T* p, lg_same<T> value) {
  *static_cast<volatile T*>(p) = value;
}

#ifdef LG_PEERS
// Who waits for another device looks again and again, so each look lets others run.
LG_DEVICE TwoWords load_acquire_system(const TwoWords* p) {
  lg_sim->give_way();
  return {load_volatile(&p->first), load_volatile(&p->second)};
}
#endif

// ---- time

LG_DEVICE u64 clock_ns() { return lg_sim->clock_ns(); }

// ---- bits

LG_DEVICE u32 bit_popc(u32 x) { return u32(__builtin_popcount(x)); }
LG_DEVICE u32 bit_popc(u64 x) { return u32(__builtin_popcountll(x)); }
LG_DEVICE u32 bit_ffs(u32 x) { return u32(__builtin_ffs(i32(x))); }
LG_DEVICE u32 bit_ffs(u64 x) { return u32(__builtin_ffsll(i64(x))); }
LG_DEVICE u32 bit_clz(u32 x) { return x ? u32(__builtin_clz(x)) : 32; }
LG_DEVICE u32 bit_clz(u64 x) { return x ? u32(__builtin_clzll(x)) : 64; }

// ---- atomics: fibers run one at a time, so reading and writing is one step

template <class T, class F>
LG_DEVICE T atomic_update(T* p, F f) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == sizeof(bool), "4 or 8 bytes");
  lg_step();
  const T old = *static_cast<volatile T*>(p);
  *static_cast<volatile T*>(p) = f(old);
  return old;
}

#define LG_ATOMIC(name, expression)                                 \
  template <class T>                                                \
  LG_DEVICE T name(T* p, lg_same<T> v) {                            \
    static_assert(sizeof(T) >= 4, "a bool has atomic_update only"); \
    return atomic_update(p, [v](T x) -> T { return expression; });  \
  }
LG_ATOMIC(atomic_add, x + v)
LG_ATOMIC(atomic_min, v < x ? v : x)
LG_ATOMIC(atomic_max, v > x ? v : x)
LG_ATOMIC(atomic_and, x& v)
LG_ATOMIC(atomic_or, x | v)
LG_ATOMIC(atomic_xor, x ^ v)
LG_ATOMIC(atomic_exch, (void(x), v))
#undef LG_ATOMIC

// By bits, as the hardware compares: NaN equals itself and 0.0 differs from -0.0.
template <class T>
LG_DEVICE T atomic_cas(T* p, lg_same<T> expected, lg_same<T> desired) {
  static_assert(sizeof(T) >= 4, "a bool has atomic_update only");
  return atomic_update(
      p, [=](T x) -> T { return __builtin_memcmp(&x, &expected, sizeof(T)) == 0 ? desired : x; });
}

#ifdef LG_PEERS
// Another device may be simulated by another process.
LG_DEVICE u64 atomic_add_system(u64* p, u64 v) {
  lg_step();
  return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);
}
LG_DEVICE u64 atomic_or_system(u64* p, u64 v) {
  lg_step();
  return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST);
}
LG_DEVICE u64 atomic_cas_system(u64* p, u64 expected, u64 desired) {
  lg_step();
  __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}
#endif

// ---- cluster

#define LG_CLUSTER_BLOCKS
LG_DEVICE void cluster_sync() {
  if (LG_CLUSTER == 1) return block_sync();
  lg_sim->meet_cluster(LG_CLUSTER);
}
LG_DEVICE void cluster_sync_shared() { cluster_sync(); }
template <class T>
LG_DEVICE const T* cluster_shared(const T* p, u32 rank) {
  if (LG_CLUSTER == 1) return p;
  return static_cast<const T*>(
      lg_sim->shared_of(p, block_index() / LG_CLUSTER * LG_CLUSTER + rank));
}

// ---- grid

LG_DEVICE void grid_sync(GridBarrier* barrier) {
  if (barrier == nullptr) lg_sim->fail("grid_sync on a null barrier");
  lg_sim->meet_grid();
}
