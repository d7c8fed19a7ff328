// Scalars of a loop that runs as one cooperative kernel, and sums over all of a vector.
//
// Each thread holds every scalar, and all threads hold the same: a sum ends with every block adding
// up the sums of all blocks, in one order. So no atomic makes a sum differ from run to run, a
// scalar is read without a barrier, and a branch on one is the grid's.
#ifndef LAGPU_SCALARS_CUH
#define LAGPU_SCALARS_CUH
#include "common/entries.cuh"

template <class T>
struct Cell {
  T value;
  bool there;
};

// In memory a cell is two words: the value, and whether there is one. `from` is null for a cell
// whose value the host knows.
template <class T>
LG_DEVICE Cell<T> load_cell(const u64* from, T value, bool there) {
  if (!from) return {value, there};
  return {*reinterpret_cast<const T*>(from), from[1] != 0};
}

template <class T>
LG_DEVICE void store_cell(u64* to, const Cell<T>& cell) {
  *reinterpret_cast<T*>(to) = cell.value;
  to[1] = cell.there;
}

// cell = z, or with an accumulator cell (+) z.
template <class Acc, class T, class Z>
LG_DEVICE void write_cell(Cell<T>* cell, const Cell<Z>& z) {
  if constexpr (Acc::assigns) {
    if (z.there) cell->value = cast<T>(z.value);
    cell->there = z.there;
  } else if (z.there) {
    cell->value = cell->there ? Acc::call(cell->value, z.value, 0) : cast<T>(z.value);
    cell->there = true;
  }
}

// A scalar where a number stands; whole numbers become floats as on the host, by way of f64.
template <class T, class X>
LG_DEVICE T number_of(const Cell<X>& cell) {
  if constexpr (Limits<T>::is_float && !Limits<X>::is_float) return T(f64(cell.value));
  return cast<T>(cell.value);
}

template <class Add, class Z>
LG_DEVICE Cell<Z> join(const Cell<Z>& x, const Cell<Z>& y) {
  if (!x.there) return y;
  return {y.there ? add<Add>(x.value, y.value) : x.value, true};
}

// The fold over the warp, the same on every lane though `Add` may take one of its operands.
template <class Add, class Z>
LG_DEVICE Cell<Z> warp_fold(Cell<Z> x) {
  for (u32 step = LG_WARP / 2; step; step /= 2)
    x = join<Add>(x, Cell<Z>{warp_shfl_xor(x.value, step), warp_shfl_xor(x.there, step)});
  return {warp_shfl(x.value, 0), warp_shfl(x.there, 0)};
}

template <class Add, class Z>
LG_DEVICE Cell<Z> block_fold(Cell<Z> x) {
  LG_SHARED(Z, values, LG_WARP);
  LG_SHARED(bool, there, LG_WARP);
  x = warp_fold<Add>(x);
  if (lane_id() == 0) {
    values[block_warp()] = x.value;
    there[block_warp()] = x.there;
  }
  block_sync();
  const bool one = lane_id() < block_warps() && there[lane_id()];
  x = warp_fold<Add>(Cell<Z>{one ? values[lane_id()] : Z(0), one});
  block_sync();  // before the next call writes to values again
  return x;
}

// The sum of a vector's entries on every thread, empty if there are none. A lane takes the indices
// that it takes in write_all, so no barrier is needed before; there is one inside. `partial` has
// two words a block, and no two sums that follow each other have the same.
template <class Add, class Z, class U>
LG_DEVICE Cell<Z> reduce_all(i64 n, const u32* words, const U* values, U iso, u64* partial,
                             GridBarrier* barrier) {
  Cell<Z> sum{Z(0), false};
  each_tile(n, [&](i64 k, bool mine) {
    const u32 some = mine ? entry_bits(words, k, n) : 0;
    each_word(some, k, [&](u32 from, i64 i) {
      if (warp_shfl(some, from) >> lane_id() & 1)
        sum = join<Add>(sum, Cell<Z>{entry_value<Z>(values, iso, i), true});
    });
  });
  sum = block_fold<Add>(sum);
  if (block_thread() == 0) store_cell(partial + 2 * block_index(), sum);
  grid_sync(barrier);
  sum = Cell<Z>{Z(0), false};
  for (u32 b = block_thread(); b < grid_blocks(); b += block_threads())
    sum = join<Add>(sum, Cell<Z>{load_volatile(reinterpret_cast<const Z*>(partial + 2 * b)),
                                 load_volatile(partial + 2 * b + 1) != 0});
  return block_fold<Add>(sum);
}

#endif  // LAGPU_SCALARS_CUH
