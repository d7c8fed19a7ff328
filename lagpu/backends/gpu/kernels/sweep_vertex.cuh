// One vertex of a sweep: where its entries stand, and the element-wise statements on them; see
// sweep.cuh.
#ifndef LAGPU_SWEEP_VERTEX_CUH
#define LAGPU_SWEEP_VERTEX_CUH
#include "product.cuh"

// ---- where the entries of a vertex stand, and the indices that operators see

// In vectors. MARK holds every level.
template <class MARK>
struct AtVertex {
  typedef MARK Mark;
  typedef i64 Offset;
  static constexpr bool is_dense = true;  // a cache line of words serves many vertices

  LG_DEVICE i64 place(i64 v) const { return v; }
  LG_DEVICE i64 i(i64 v) const { return v; }
  LG_DEVICE i64 j(i64) const { return 0; }
  LG_DEVICE i64 row() const { return 0; }
};

// In row k of blocks, which have `stride` places a vertex.
template <class MARK>
struct InRow {
  typedef MARK Mark;
  typedef i32 Offset;
  static constexpr bool is_dense = false;
  i64 stride, k;

  LG_DEVICE i64 place(i64 v) const { return v * stride + k; }
  LG_DEVICE i64 i(i64) const { return k; }
  LG_DEVICE i64 j(i64 v) const { return v; }
  LG_DEVICE i64 row() const { return k; }
};

// ---- element-wise statements, at one vertex

// What a vector has at one vertex.
template <class U>
struct Entry {
  bool there;
  U value;
};

template <class U>
LG_DEVICE Entry<U> entry_at(const u32* words, const U* values, U iso, i64 place) {
  return {has_entry(words, place), values ? values[place] : iso};
}

template <class Op, class T, class Z, class U>
LG_DEVICE Entry<Z> mapped(Entry<U> u, T scalar, bool scalar_left, i64 i, i64 j) {
  if (!u.there) return {false, Z(0)};
  const T x = cast<T>(u.value);
  return {true, scalar_left ? Op::template call<Z, T>(scalar, x, i, 0, j)
                            : Op::template call<Z, T>(x, scalar, i, 0, j)};
}

template <class Op, class T, class U>
LG_DEVICE Entry<U> chosen(Entry<U> u, T thunk, i64 i, i64 j) {
  return {u.there && Op::template call<bool, T>(cast<T>(u.value), thunk, i, 0, j), u.value};
}

// u (+) v or u (x) v, as combine.cu has the modes.
template <class Op, class T, class Z, class U, class V>
LG_DEVICE Entry<Z> combined(i32 mode, Entry<U> x, Entry<V> y, T x_default, T y_default, i64 i,
                            i64 j) {
  if (mode == 1 ? !(x.there && y.there) : !(x.there || y.there)) return {false, Z(0)};
  if (mode != 2 && !(x.there && y.there))
    return {true, x.there ? cast<Z>(x.value) : cast<Z>(y.value)};
  return {true, Op::template call<Z, T>(x.there ? cast<T>(x.value) : x_default,
                                        y.there ? cast<T>(y.value) : y_default, i, 0, j)};
}

// What w has after t has been written where the mask keeps.
template <class Acc, class W, class Z>
LG_DEVICE Entry<W> written(Entry<W> w, Entry<Z> t, i64 i) {
  if constexpr (Acc::assigns) return {t.there, cast<W>(t.value)};
  if constexpr (!Acc::assigns) {
    if (!t.there) return w;
    return {true, w.there ? Acc::call(w.value, t.value, i) : cast<W>(t.value)};
  }
}

LG_DEVICE void set_bit(u32* words, i64 place) { atomic_or(&words[place / 32], 1u << (place % 32)); }

// Put an entry back; its bit is written only if it has changed, as others may write the word.
template <class W>
LG_DEVICE void put_back(u32* words, W* values, i64 place, Entry<W> w, bool was_there) {
  if (w.there) values[place] = w.value;
  if (w.there && !was_there) set_bit(words, place);
  if (!w.there && was_there) atomic_and(&words[place / 32], ~(1u << (place % 32)));
}

#endif  // LAGPU_SWEEP_VERTEX_CUH
