// The one header through which kernels use warp, block, grid and atomic primitives.
//
// Compiled by NVRTC (no include path), by nvcc, and by g++ for the sim device (LAGPU_SIM defined).
// Intrinsics, inline PTX and CUDA's own variables appear here and nowhere else.
//
//   identity   block_thread block_threads block_index grid_blocks lane_id block_warp block_warps
//              global_thread global_threads global_warp global_warps
//   warp       warp_sync warp_ballot warp_any warp_all warp_shfl warp_shfl_{up,down,xor}
//   block      LG_SHARED LG_DYNAMIC_SHARED block_sync block_any block_all block_count
//   cluster    LG_CLUSTER_BLOCKS cluster_rank cluster_sync cluster_sync_shared cluster_shared
//                                                        (LG_CLUSTER blocks each)
//   grid       GridBarrier grid_sync                                    (cooperative launches)
//   memory     load_ro load_cg load_once load_volatile store_volatile prefetch as_stored
//              thread_fence block_fence system_fence
//   devices    load_acquire_system atomic_{add,or,cas}_system
//                                                        (kernels over several devices: LG_PEERS)
//   time       clock_ns
//   atomics    atomic_{add,min,max,and,or,xor,exch,cas,update}, each returns the old value
//   bits       bit_popc bit_ffs bit_clz bit_place lanes_below team_of
//
// Warp operations take the whole warp: every thread of it that has not exited calls the same one.
#ifndef LAGPU_PRIMS_CUH
#define LAGPU_PRIMS_CUH

typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

#include "common/constants.cuh"

#ifndef LG_CLUSTER  // blocks of a cluster, which read each other's shared memory
#define LG_CLUSTER 1
#endif

#define LG_WARP 32
#define LG_DEVICE __device__ __forceinline__

// Alone on its 128-byte line: counters sharing the line cost as much as the barrier itself.
// Zeroed once; grid_sync leaves it ready for the next launch, of whatever grid.
struct GridBarrier {
  u32 word;
  u32 pad[kBarrierWords - 1];
};

#ifdef LG_PEERS
struct alignas(16) TwoWords {
  u64 first, second;
};
#endif

// Takes an argument out of type deduction, so that atomic_add(&counter, 1) finds its type.
template <class T>
struct LgSame {
  typedef T type;
};
template <class T>
using lg_same = typename LgSame<T>::type;

#ifdef LAGPU_SIM
#include "prims.hpp"
#else

// An array in the block's shared memory; uninitialised, at most 48 KiB in all.
#define LG_SHARED(type, name, count) __shared__ type name[count]

// The shared memory that the launch asked for, as much as it asked for; one name a kernel.
#define LG_DYNAMIC_SHARED(type, name)                                \
  extern __shared__ __align__(16) unsigned char lg_dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(lg_dynamic_shared)

LG_DEVICE u32 block_thread() { return threadIdx.x; }
LG_DEVICE u32 block_threads() { return blockDim.x; }
LG_DEVICE u32 block_index() { return blockIdx.x; }
LG_DEVICE u32 grid_blocks() { return gridDim.x; }

// ---- warp

LG_DEVICE void warp_sync() { __syncwarp(); }
LG_DEVICE u32 warp_ballot(bool pred) { return __ballot_sync(0xffffffffu, pred); }
LG_DEVICE bool warp_any(bool pred) { return __any_sync(0xffffffffu, pred); }
LG_DEVICE bool warp_all(bool pred) { return __all_sync(0xffffffffu, pred); }

// Shuffles move 32- and 64-bit values; a bool is moved as an int.
#define LG_SHUFFLE(name, intrinsic)                                                   \
  template <class T>                                                                  \
  LG_DEVICE T name(T value, u32 lane) {                                               \
    if constexpr (sizeof(T) == 1) return T(intrinsic(0xffffffffu, u32(value), lane)); \
    if constexpr (sizeof(T) != 1) return intrinsic(0xffffffffu, value, lane);         \
  }
LG_SHUFFLE(warp_shfl, __shfl_sync)
LG_SHUFFLE(warp_shfl_up, __shfl_up_sync)
LG_SHUFFLE(warp_shfl_down, __shfl_down_sync)
LG_SHUFFLE(warp_shfl_xor, __shfl_xor_sync)
#undef LG_SHUFFLE

// ---- block

LG_DEVICE void block_sync() { __syncthreads(); }
LG_DEVICE bool block_any(bool pred) { return __syncthreads_or(pred); }
LG_DEVICE bool block_all(bool pred) { return __syncthreads_and(pred); }
LG_DEVICE u32 block_count(bool pred) { return u32(__syncthreads_count(pred)); }

// ---- memory

LG_DEVICE void thread_fence() { __threadfence(); }
LG_DEVICE void block_fence() { __threadfence_block(); }
LG_DEVICE void system_fence() { __threadfence_system(); }

// Only for data that is not written while the kernel runs: the read-only path is not coherent.
template <class T>
LG_DEVICE T load_ro(const T* p) {
  if constexpr (sizeof(T) == 1) return T(__ldg(reinterpret_cast<const unsigned char*>(p)));
  if constexpr (sizeof(T) != 1) return __ldg(p);
}

// Past L1, from the cache all blocks share.
template <class T>
LG_DEVICE T load_cg(const T* p) {
  if constexpr (sizeof(T) == 1) return T(__ldcg(reinterpret_cast<const unsigned char*>(p)));
  if constexpr (sizeof(T) != 1) return __ldcg(p);
}

// Past L1's room, which is left to what is read again; 16 bytes or a multiple, aligned to 16. As
// with load_ro, they are not written while the kernel runs.
template <class T>
LG_DEVICE T load_once(const T* p) {
  static_assert(sizeof(T) % 16 == 0 && alignof(T) == 16);
  T x;
  const uint4* const from = reinterpret_cast<const uint4*>(p);
  uint4* const to = reinterpret_cast<uint4*>(&x);
#pragma unroll
  for (u32 k = 0; k < sizeof(T) / 16; ++k)
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[k].x), "=r"(to[k].y), "=r"(to[k].z), "=r"(to[k].w)
                 : "l"(from + k));
  return x;
}

template <class T>
LG_DEVICE T load_volatile(const T* p) {
  return *static_cast<const volatile T*>(p);
}

template <class T>
LG_DEVICE void store_volatile(T* p, lg_same<T> value) {
  *static_cast<volatile T*>(p) = value;
}

// Have the line of an address ready near the processor; nothing is waited for.
LG_DEVICE void prefetch(const void* p) { asm volatile("prefetch.global.L1 [%0];" ::"l"(p)); }

#ifdef LG_PEERS
// Two words, each of which another device of the host may write; one look at both.
LG_DEVICE TwoWords load_acquire_system(const TwoWords* p) {
  TwoWords now;
  asm volatile("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(now.first), "=l"(now.second)
               : "l"(p)
               : "memory");
  return now;
}

// One step for all devices of the host; system_fence orders them.
LG_DEVICE u64 atomic_add_system(u64* p, u64 v) { return atomicAdd_system(p, v); }
LG_DEVICE u64 atomic_or_system(u64* p, u64 v) { return atomicOr_system(p, v); }
LG_DEVICE u64 atomic_cas_system(u64* p, u64 expected, u64 desired) {
  return atomicCAS_system(p, expected, desired);
}
#endif

// ---- time

// Nanoseconds of a clock that all blocks share; some GPUs move it on by a microsecond at a time.
LG_DEVICE u64 clock_ns() {
  u64 ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
  return ns;
}

// ---- bits

LG_DEVICE u32 bit_popc(u32 x) { return u32(__popc(x)); }
LG_DEVICE u32 bit_popc(u64 x) { return u32(__popcll(x)); }
LG_DEVICE u32 bit_ffs(u32 x) { return u32(__ffs(i32(x))); }
LG_DEVICE u32 bit_ffs(u64 x) { return u32(__ffsll(i64(x))); }
LG_DEVICE u32 bit_clz(u32 x) { return u32(__clz(i32(x))); }
LG_DEVICE u32 bit_clz(u64 x) { return u32(__clzll(i64(x))); }

// ---- atomics: the hardware knows i32 u32 u64 everywhere, i64 only as u64, floats only in add

template <int bytes>
struct LgBits;
template <>
struct LgBits<4> {
  typedef u32 type;
};
template <>
struct LgBits<8> {
  typedef u64 type;
};
template <class T>
using lg_bits = typename LgBits<sizeof(T)>::type;

template <class To, class From>
LG_DEVICE To lg_bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

template <class T>
LG_DEVICE T atomic_add(T* p, lg_same<T> v) {
  return atomicAdd(p, v);
}
LG_DEVICE i64 atomic_add(i64* p, i64 v) {
  return i64(atomicAdd(reinterpret_cast<u64*>(p), u64(v)));
}

#define LG_ATOMIC(name, intrinsic)       \
  template <class T>                     \
  LG_DEVICE T name(T* p, lg_same<T> v) { \
    return intrinsic(p, v);              \
  }
LG_ATOMIC(atomic_min, atomicMin)
LG_ATOMIC(atomic_max, atomicMax)
#undef LG_ATOMIC

#define LG_ATOMIC_BITS(name, intrinsic)                                           \
  template <class T>                                                              \
  LG_DEVICE T name(T* p, lg_same<T> v) {                                          \
    typedef lg_bits<T> B;                                                         \
    return lg_bit_cast<T>(intrinsic(reinterpret_cast<B*>(p), lg_bit_cast<B>(v))); \
  }
LG_ATOMIC_BITS(atomic_and, atomicAnd)
LG_ATOMIC_BITS(atomic_or, atomicOr)
LG_ATOMIC_BITS(atomic_xor, atomicXor)
LG_ATOMIC_BITS(atomic_exch, atomicExch)
#undef LG_ATOMIC_BITS

template <class T>
LG_DEVICE T atomic_cas(T* p, lg_same<T> expected, lg_same<T> desired) {
  typedef lg_bits<T> B;
  return lg_bit_cast<T>(
      atomicCAS(reinterpret_cast<B*>(p), lg_bit_cast<B>(expected), lg_bit_cast<B>(desired)));
}

// *p = f(*p) as one step, for any 4- or 8-byte type; nothing is written if f changes no bit.
template <class T, class F>
LG_DEVICE T atomic_update(T* p, F f) {
  typedef lg_bits<T> B;
  B* const word = reinterpret_cast<B*>(p);
  B seen = load_volatile(word);
  for (;;) {
    const B wanted = lg_bit_cast<B>(T(f(lg_bit_cast<T>(seen))));
    if (wanted == seen) return lg_bit_cast<T>(seen);
    const B before = atomicCAS(word, seen, wanted);
    if (before == seen) return lg_bit_cast<T>(seen);
    seen = before;
  }
}

// A bool has no atomic of its own: compare and swap the 32-bit word around it.
template <class F>
LG_DEVICE bool atomic_update(bool* p, F f) {
  const u64 address = reinterpret_cast<u64>(p);
  u32* const word = reinterpret_cast<u32*>(address & ~u64(3));
  const u32 shift = u32(address & 3) * 8;
  u32 seen = load_volatile(word);
  for (;;) {
    const bool old = (seen >> shift) & 0xffu;
    const bool next = f(old);
    if (next == old) return old;
    const u32 before = atomicCAS(word, seen, (seen & ~(0xffu << shift)) | (u32(next) << shift));
    if (before == seen) return old;
    seen = before;
  }
}

LG_DEVICE f32 atomic_min(f32* p, f32 v) {
  return atomic_update(p, [v](f32 x) { return v < x ? v : x; });
}
LG_DEVICE f64 atomic_min(f64* p, f64 v) {
  return atomic_update(p, [v](f64 x) { return v < x ? v : x; });
}
LG_DEVICE f32 atomic_max(f32* p, f32 v) {
  return atomic_update(p, [v](f32 x) { return v > x ? v : x; });
}
LG_DEVICE f64 atomic_max(f64* p, f64 v) {
  return atomic_update(p, [v](f64 x) { return v > x ? v : x; });
}

// ---- cluster

// Of a kernel with clusters, which only devices of compute capability 9.0 and above know.
#if LG_CLUSTER > 1
#define LG_CLUSTER_BLOCKS __cluster_dims__(LG_CLUSTER)

// Every block of a cluster waits for every other; writes before it are seen after it.
LG_DEVICE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

// The same of shared memory alone: writes to global memory are not waited for.
LG_DEVICE void cluster_sync_shared() {
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1208  // older assemblers lack the fences
  asm volatile(
      "fence.release.sync_restrict::shared::cta.cluster;\n\t"
      "barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.aligned;\n\t"
      "fence.acquire.sync_restrict::shared::cluster.cluster;" ::
          : "memory");
#else
  cluster_sync();
#endif
}

// Where the block of a rank has what this block has at p, in shared memory.
template <class T>
LG_DEVICE const T* cluster_shared(const T* p, u32 rank) {
  u64 there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(p), "r"(rank));
  return reinterpret_cast<const T*>(there);
}
#else
#define LG_CLUSTER_BLOCKS
LG_DEVICE void cluster_sync() { __syncthreads(); }
LG_DEVICE void cluster_sync_shared() { __syncthreads(); }
template <class T>
LG_DEVICE const T* cluster_shared(const T* p, u32) {
  return p;
}
#endif

// x as memory would give it back: no operation before is contracted with one after. The assembler
// contracts too, whatever moves stand between, unless an operation says how it rounds: x + -0 is x.
template <class T>
LG_DEVICE T as_stored(T x) {
  return x;
}
LG_DEVICE f32 as_stored(f32 x) {
  asm("add.rn.f32 %0, %0, 0f80000000;" : "+f"(x));
  return x;
}
LG_DEVICE f64 as_stored(f64 x) {
  asm("add.rn.f64 %0, %0, 0d8000000000000000;" : "+d"(x));
  return x;
}

// ---- grid

LG_DEVICE u32 lg_load_acquire(const u32* p) {
  u32 value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}

// Every block of a cooperative launch waits for every other; writes before it are seen after it.
// Block 0 adds 2^31 - (blocks - 1), the others 1 each: the sum of one round flips the sign bit and
// leaves the rest zero, so the word needs no reset and no generation count.
LG_DEVICE void grid_sync(GridBarrier* barrier) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const u32 sign = 0x80000000u;
    const u32 share = blockIdx.x == 0 ? sign - (gridDim.x - 1) : 1u;
    __threadfence();  // releases what the whole block wrote: __syncthreads ordered it before us
    const u32 before = atomicAdd(&barrier->word, share);
    while (((before ^ lg_load_acquire(&barrier->word)) & sign) == 0) {
    }
  }
  __syncthreads();
}

#endif  // LAGPU_SIM

// ---- derived from the above, the same everywhere

LG_DEVICE u32 cluster_rank() { return block_index() % LG_CLUSTER; }
LG_DEVICE u32 lane_id() { return block_thread() % LG_WARP; }
LG_DEVICE u32 block_warp() { return block_thread() / LG_WARP; }
LG_DEVICE u32 block_warps() { return block_threads() / LG_WARP; }

LG_DEVICE i64 global_thread() { return i64(block_index()) * block_threads() + block_thread(); }
LG_DEVICE i64 global_threads() { return i64(grid_blocks()) * block_threads(); }
LG_DEVICE i64 global_warp() { return global_thread() / LG_WARP; }
LG_DEVICE i64 global_warps() { return global_threads() / LG_WARP; }

// The place of set bit number k of `bits`, which has more than k.
LG_DEVICE u32 bit_place(u32 bits, u32 k) {
  u32 place = 0;
  for (u32 width = 16; width; width /= 2) {
    const u32 count = bit_popc(bits >> place & ((1u << width) - 1));
    if (k < count) continue;
    k -= count;
    place += width;
  }
  return place;
}

// The lanes before this one as a mask: bit_popc(ballot & lanes_below()) is a lane's rank.
LG_DEVICE u32 lanes_below() { return (1u << lane_id()) - 1; }

// The lanes of this one's team as a mask, where each `width` lanes, a power of two, are a team.
LG_DEVICE u32 team_of(u32 width) { return ~0u >> (LG_WARP - width) << (lane_id() & ~(width - 1)); }

#endif  // LAGPU_PRIMS_CUH
