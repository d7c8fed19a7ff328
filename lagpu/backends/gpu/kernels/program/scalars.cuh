// Scalars of a generated loop, and sums over a whole vector.
//
// Each thread holds every scalar, and all threads hold the same: a sum ends with every block adding
// up the sums of all blocks, in one order. So no atomic makes a sum differ from run to run, a
// scalar is read without a barrier, and a branch on one is the grid's.
#ifndef LAGPU_PROGRAM_SCALARS_CUH
#define LAGPU_PROGRAM_SCALARS_CUH
#include "common/entries.cuh"

// In memory a scalar is kScalarWords: its value, and whether it has one. `from` is null for one
// that the host knows.
template <class T>
LG_DEVICE Entry<T> load_scalar(const u64* from, bool there, T value) {
  if (!from) return {there, value};
  return {from[1] != 0, *reinterpret_cast<const T*>(from)};
}

template <class T>
LG_DEVICE void store_scalar(u64* to, const Entry<T>& scalar) {
  *reinterpret_cast<T*>(to) = scalar.value;
  to[1] = scalar.there;
}

// The value of a scalar as a number; whole numbers become floats as on the host, through f64.
template <class T, class X>
LG_DEVICE T number_of(const Entry<X>& scalar) {
  if constexpr (Limits<T>::is_float && !Limits<X>::is_float) return T(f64(scalar.value));
  return cast<T>(scalar.value);
}

template <class Add, class Z>
LG_DEVICE Entry<Z> join(const Entry<Z>& x, const Entry<Z>& y) {
  return written<Accum<Add, Z, Z>>(x, y, 0);
}

// The fold over the warp, the same on every lane though `Add` may take one of its operands.
template <class Add, class Z>
LG_DEVICE Entry<Z> warp_fold(Entry<Z> x) {
  for (u32 step = LG_WARP / 2; step; step /= 2)
    x = join<Add>(x, Entry<Z>{warp_shfl_xor(x.there, step), warp_shfl_xor(x.value, step)});
  return {warp_shfl(x.there, 0), warp_shfl(x.value, 0)};
}

template <class Add, class Z>
LG_DEVICE Entry<Z> block_fold(Entry<Z> x) {
  LG_SHARED(Z, values, LG_WARP);
  LG_SHARED(bool, there, LG_WARP);
  x = warp_fold<Add>(x);
  if (lane_id() == 0) {
    values[block_warp()] = x.value;
    there[block_warp()] = x.there;
  }
  block_sync();
  const bool one = lane_id() < block_warps() && there[lane_id()];
  x = warp_fold<Add>(Entry<Z>{one, one ? values[lane_id()] : Z(0)});
  block_sync();  // before the next call writes to values again
  return x;
}

// The sum of what the threads of this block summed goes to `partial`, which has kScalarWords a
// block.
template <class Add, class Z>
LG_DEVICE void leave_sum(Entry<Z> sum, u64* partial) {
  sum = block_fold<Add>(sum);
  if (block_thread() == 0) store_scalar(partial + kScalarWords * block_index(), sum);
}

// The sum of so many parts, on every thread.
template <class Add, class Z>
LG_DEVICE Entry<Z> sum_of_parts(const u64* partial, u32 count) {
  Entry<Z> sum{false, Z(0)};
  for (u32 b = block_thread(); b < count; b += block_threads())
    sum = join<Add>(
        sum, Entry<Z>{load_volatile(partial + kScalarWords * b + 1) != 0,
                      load_volatile(reinterpret_cast<const Z*>(partial + kScalarWords * b))});
  return block_fold<Add>(sum);
}

// The sum of what all blocks have left, on every thread; a barrier of the grid stands between.
template <class Add, class Z>
LG_DEVICE Entry<Z> sum_of_blocks(const u64* partial) {
  return sum_of_parts<Add, Z>(partial, grid_blocks());
}

// The sum of a vector's entries on every thread, empty if there are none. A lane takes the indices
// that it takes in write_all, so no barrier is needed before; there is one inside. No two sums that
// follow each other have the same `partial`.
template <class Add, class Z, class U>
LG_DEVICE Entry<Z> reduce_all(i64 n, const u32* words, const U* values, U iso, u64* partial,
                              GridBarrier* barrier) {
  Entry<Z> sum{false, Z(0)};
  each_tile(n, [&](i64 k, bool mine) {
    const u32 some = mine ? entry_bits(words, k, n) : 0;
    each_words(some, k, [&](const u32(&from)[kWords], const i64(&i)[kWords]) {
      Entry<U> x[kWords];
      for (u32 q = 0; q < kWords; ++q) {
        const bool there = from[q] < LG_WARP && warp_shfl(some, from[q] % LG_WARP) >> lane_id() & 1;
        x[q] = load_entry(there, values, iso, i[q]);
      }
      for (u32 q = 0; q < kWords; ++q)
        if (x[q].there) sum = join<Add>(sum, Entry<Z>{true, cast<Z>(x[q].value)});
    });
  });
  leave_sum<Add>(sum, partial);
  grid_sync(barrier);
  return sum_of_blocks<Add, Z>(partial);
}

#endif  // LAGPU_PROGRAM_SCALARS_CUH
