// One entry: what an element-wise operation makes of it, and GraphBLAS' rule for writing it.
//
// This is the one place that knows the rule. Whole vectors (common/entries.cuh), the vertices of a
// sweep (sweep/vertex.cuh), the scalars of a loop (program/scalars.cuh) and the filling of a bitmap
// matrix (bitmap/products.cu) differ in where entries are and when they are loaded, and call these
// functions.
#ifndef LAGPU_ENTRY_CUH
#define LAGPU_ENTRY_CUH
#include "common/algebra.cuh"

// What a vector has at one index; `value` is any number where nothing is there.
template <class U>
struct Entry {
  bool there;
  U value;
};

// ---- what operations make

// f(u, s) or f(s, u) at position (i, j).
template <class Op, class T, class Z, class U>
LG_DEVICE Entry<Z> mapped(Entry<U> u, T scalar, bool scalar_left, i64 i, i64 j) {
  if (!u.there) return {false, Z(0)};
  const T x = cast<T>(u.value);
  return {true, scalar_left ? Op::template call<Z, T>(scalar, x, i, 0, j)
                            : Op::template call<Z, T>(x, scalar, i, 0, j)};
}

// u if an operator keeps it.
template <class Op, class T, class U>
LG_DEVICE Entry<U> selected(Entry<U> u, T thunk, i64 i, i64 j) {
  return {u.there && Op::template call<bool, T>(cast<T>(u.value), thunk, i, 0, j), u.value};
}

// Where u and v meet, as `mode` says, of what says where they have entries: a word's bits, or one.
LG_DEVICE u32 met(i32 mode, u32 u, u32 v) { return mode == kEwiseMult ? u & v : u | v; }
LG_DEVICE bool met(i32 mode, bool u, bool v) { return mode == kEwiseMult ? u && v : u || v; }

// u (+) v or u (x) v.
template <class Op, class T, class Z, class U, class V>
LG_DEVICE Entry<Z> combined(i32 mode, Entry<U> u, Entry<V> v, T u_default, T v_default, i64 i,
                            i64 j) {
  if (!met(mode, u.there, v.there)) return {false, Z(0)};
  if (mode == kEwiseAdd && !(u.there && v.there))
    return {true, u.there ? cast<Z>(u.value) : cast<Z>(v.value)};
  return {true, Op::template call<Z, T>(u.there ? cast<T>(u.value) : u_default,
                                        v.there ? cast<T>(v.value) : v_default, i, 0, j)};
}

// ---- what is written

// the accumulator's functor, domain and result; NoAccum assigns
#ifndef LG_ACCUM
#define LG_ACCUM NoAccum
#endif
#ifndef LG_ACCUM_T
#define LG_ACCUM_T bool
#endif
#ifndef LG_ACCUM_Z
#define LG_ACCUM_Z bool
#endif

struct NoAccum : Functor {
  LG_CALL { return Z(y); }
};

// An accumulator with its domain and result; of NoAccum these do not matter.
template <class Op, class T, class Z>
struct Accum {
  static constexpr bool assigns = IsSame<Op, NoAccum>::value;
  template <class W, class Y>
  LG_DEVICE static W call(W before, Y y, i64 i) {
    return cast<W>(Op::template call<Z, T>(cast<T>(before), cast<T>(y), i, 0, 0));
  }
};
typedef Accum<LG_ACCUM, LG_ACCUM_T, LG_ACCUM_Z> ChosenAccum;

// What w has at index i once t is written there: `w` is what it had, and the mask keeps i.
template <class Acc, class W, class Z>
LG_DEVICE Entry<W> written(Entry<W> w, Entry<Z> t, i64 i) {
  if constexpr (Acc::assigns) return {t.there, cast<W>(t.value)};
  if constexpr (!Acc::assigns) {
    if (!t.there) return w;
    return {true, w.there ? Acc::call(w.value, t.value, i) : cast<W>(t.value)};
  }
}

// The same for the bits of a word, with all that may stand around an index: of the entries that w
// had `before`, those that stay where t has none. `kept` are the indices that the mask keeps,
// `inside` those that are assigned to.
template <class Acc>
LG_DEVICE u32 staying(u32 before, u32 kept, u32 inside, bool replace) {
  const u32 stays = Acc::assigns ? before & ~(kept & inside) : before;
  return replace ? stays & kept : stays;
}

// Write t, which is there, to index i, where w may have an entry.
template <class Acc, class W, class Z>
LG_DEVICE void write_entry(W* w_values, i64 i, bool w_there, Entry<Z> t) {
  const Entry<W> w{w_there, w_there ? w_values[i] : W(0)};  // not loaded if t replaces it
  w_values[i] = written<Acc>(w, t, i).value;
}

// The same for an entry in registers, at an index that the mask may not keep: the value is what
// memory would give back. `changed` is set once that is no longer what stands in memory.
template <class Acc, class W, class Z>
LG_DEVICE void write_here(Entry<W>& w, bool& changed, Entry<Z> t, bool kept, bool replace, i64 i) {
  if (kept) {
    w = written<Acc>(w, t, i);
    w.value = as_stored(w.value);
    changed = changed || t.there;
  } else if (replace) {
    w.there = false;
  }
}

// The mask's bits of word `at`: a null mask has all, and complemented none.
template <class Word>
LG_DEVICE Word kept_bits(const Word* mask, bool complement, i64 at) {
  const Word held = mask ? mask[at] : ~Word(0);
  return complement ? ~held : held;
}

#endif  // LAGPU_ENTRY_CUH
