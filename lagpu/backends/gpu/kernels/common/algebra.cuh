// The operators of lagpu's table as functors, and the casts between their types.
//
// Every functor has   Z call<Z, T>(T x, T y, i64 i, i64 k, i64 j)
// with x and y of the domain T and a result of type Z. A unary operator ignores y; an index-unary
// one takes its thunk in y; a positional one looks only at the indices of C[i,j] = x[i,k] (x)
// y[k,j]. reads_x and reads_y say which operand matters, so that the other is not loaded. A
// monoid's functor has identity<Z>() and is_terminal<Z>(z) as well.
#ifndef LAGPU_ALGEBRA_CUH
#define LAGPU_ALGEBRA_CUH
#include "common/prims.cuh"

// ---- types

template <class T>
struct Limits;
template <>
struct Limits<bool> {
  static constexpr bool is_float = false;
  LG_DEVICE static bool smallest() { return false; }
  LG_DEVICE static bool largest() { return true; }
};
template <>
struct Limits<i32> {
  static constexpr bool is_float = false;
  LG_DEVICE static i32 smallest() { return -2147483647 - 1; }
  LG_DEVICE static i32 largest() { return 2147483647; }
};
template <>
struct Limits<u32> {
  static constexpr bool is_float = false;
  LG_DEVICE static u32 smallest() { return 0; }
  LG_DEVICE static u32 largest() { return 0xffffffffu; }
};
template <>
struct Limits<i64> {
  static constexpr bool is_float = false;
  LG_DEVICE static i64 smallest() { return -9223372036854775807ll - 1; }
  LG_DEVICE static i64 largest() { return 9223372036854775807ll; }
};
template <>
struct Limits<u64> {
  static constexpr bool is_float = false;
  LG_DEVICE static u64 smallest() { return 0; }
  LG_DEVICE static u64 largest() { return 0xffffffffffffffffull; }
};
template <>
struct Limits<f32> {
  static constexpr bool is_float = true;
  LG_DEVICE static f32 smallest() { return -f32(1e300 * 1e300); }
  LG_DEVICE static f32 largest() { return f32(1e300 * 1e300); }
};
template <>
struct Limits<f64> {
  static constexpr bool is_float = true;
  LG_DEVICE static f64 smallest() { return -1e300 * 1e300; }
  LG_DEVICE static f64 largest() { return 1e300 * 1e300; }
};

template <class A, class B>
struct IsSame {
  static constexpr bool value = false;
};
template <class A>
struct IsSame<A, A> {
  static constexpr bool value = true;
};

// The integer type that holds results of integer arithmetic without overflow traps: wrapping is
// defined for unsigned types only.
template <class T>
struct Wrapping {
  typedef T type;
};
template <>
struct Wrapping<i32> {
  typedef u32 type;
};
template <>
struct Wrapping<i64> {
  typedef u64 type;
};
template <class T>
using wrapping = typename Wrapping<T>::type;

// As GraphBLAS casts: to BOOL what is not zero; from float to integer toward zero, saturating, NaN
// to 0; between integers modulo 2^n.
template <class Z, class X>
LG_DEVICE Z cast(X x) {
  if constexpr (IsSame<Z, X>::value) {
    return x;
  } else if constexpr (IsSame<Z, bool>::value) {
    return x != X(0);
  } else if constexpr (Limits<X>::is_float && !Limits<Z>::is_float) {
    if (x != x) return Z(0);
    if (x <= X(Limits<Z>::smallest())) return Limits<Z>::smallest();
    if (x >= X(Limits<Z>::largest())) return Limits<Z>::largest();
    return Z(x);
  } else {
    return Z(x);
  }
}

// ---- what functors share

struct Functor {
  static constexpr bool reads_x = true;
  static constexpr bool reads_y = true;
};
struct Ordinary : Functor {  // a monoid without a terminal value
  template <class Z>
  LG_DEVICE static bool is_terminal(Z) {
    return false;
  }
};
#define LG_CALL               \
  template <class Z, class T> \
  LG_DEVICE static Z call(T x, T y, i64 i, i64 k, i64 j)

// ---- unary

struct Identity : Functor {
  LG_CALL { return Z(x); }
};
struct Ainv : Functor {
  LG_CALL {
    if constexpr (Limits<T>::is_float) return Z(-x);
    if constexpr (!Limits<T>::is_float) return Z(wrapping<T>(0) - wrapping<T>(x));
  }
};
struct Abs : Functor {
  LG_CALL {
    if constexpr (Limits<T>::is_float) return Z(fabs(x));
    if constexpr (!Limits<T>::is_float) return Z(x < T(0) ? T(wrapping<T>(0) - wrapping<T>(x)) : x);
  }
};
struct Lnot : Functor {
  LG_CALL { return Z(!x); }
};
struct Minv : Functor {
  LG_CALL { return Z(T(1) / x); }
};
struct One : Functor {
  LG_CALL { return Z(1); }
};
struct Exp : Functor {
  LG_CALL { return Z(exp(x)); }
};
struct Log : Functor {
  LG_CALL { return Z(log(x)); }
};
struct Sqrt : Functor {
  LG_CALL { return Z(sqrt(x)); }
};

// ---- binary, and those of them that are monoids

struct Plus : Ordinary {
  LG_CALL { return Z(wrapping<T>(x) + wrapping<T>(y)); }
  template <class Z>
  LG_DEVICE static Z identity() {
    return Z(0);
  }
};
struct Minus : Functor {
  LG_CALL { return Z(wrapping<T>(x) - wrapping<T>(y)); }
};
struct Times : Ordinary {
  LG_CALL { return Z(wrapping<T>(x) * wrapping<T>(y)); }
  template <class Z>
  LG_DEVICE static Z identity() {
    return Z(1);
  }
};
struct Truediv : Functor {
  LG_CALL { return Z(x / y); }
};
struct Min : Functor {
  LG_CALL { return Z(x < y || y != y ? x : y); }  // a NaN gives way, as in fmin
  template <class Z>
  LG_DEVICE static Z identity() {
    return Limits<Z>::largest();
  }
  template <class Z>
  LG_DEVICE static bool is_terminal(Z z) {
    return z == Limits<Z>::smallest();
  }
};
struct Max : Functor {
  LG_CALL { return Z(x > y || y != y ? x : y); }
  template <class Z>
  LG_DEVICE static Z identity() {
    return Limits<Z>::smallest();
  }
  template <class Z>
  LG_DEVICE static bool is_terminal(Z z) {
    return z == Limits<Z>::largest();
  }
};
struct First : Functor {
  static constexpr bool reads_y = false;
  LG_CALL { return Z(x); }
};
struct Second : Functor {
  static constexpr bool reads_x = false;
  LG_CALL { return Z(y); }
};
struct Pair : Functor {
  static constexpr bool reads_x = false, reads_y = false;
  LG_CALL { return Z(1); }
};
struct AnyOf : Functor {  // any value will do, so the first one found ends the sum
  LG_CALL { return Z(x); }
  template <class Z>
  LG_DEVICE static Z identity() {
    return Z(0);
  }
  template <class Z>
  LG_DEVICE static bool is_terminal(Z) {
    return true;
  }
};
struct Land : Functor {
  LG_CALL { return Z(x && y); }
  template <class Z>
  LG_DEVICE static Z identity() {
    return Z(1);
  }
  template <class Z>
  LG_DEVICE static bool is_terminal(Z z) {
    return !z;
  }
};
struct Lor : Functor {
  LG_CALL { return Z(x || y); }
  template <class Z>
  LG_DEVICE static Z identity() {
    return Z(0);
  }
  template <class Z>
  LG_DEVICE static bool is_terminal(Z z) {
    return bool(z);
  }
};
struct Lxor : Ordinary {
  LG_CALL { return Z(!x != !y); }
  template <class Z>
  LG_DEVICE static Z identity() {
    return Z(0);
  }
};
struct Lxnor : Ordinary {
  LG_CALL { return Z(!x == !y); }
  template <class Z>
  LG_DEVICE static Z identity() {
    return Z(1);
  }
};
struct Eq : Functor {
  LG_CALL { return Z(x == y); }
};
struct Ne : Functor {
  LG_CALL { return Z(x != y); }
};
struct Lt : Functor {
  LG_CALL { return Z(x < y); }
};
struct Le : Functor {
  LG_CALL { return Z(x <= y); }
};
struct Gt : Functor {
  LG_CALL { return Z(x > y); }
};
struct Ge : Functor {
  LG_CALL { return Z(x >= y); }
};

// ---- positional

struct Positional : Functor {
  static constexpr bool reads_x = false, reads_y = false;
};
struct Firsti : Positional {
  LG_CALL { return Z(i); }
};
struct Firstj : Positional {
  LG_CALL { return Z(k); }
};
struct Secondi : Positional {
  LG_CALL { return Z(k); }
};
struct Secondj : Positional {
  LG_CALL { return Z(j); }
};

// ---- index-unary: x the value, y the thunk, i the row or index, j the column or 0

struct RowIndex : Functor {
  LG_CALL { return Z(i + i64(y)); }
};
struct ColIndex : Functor {
  LG_CALL { return Z(j + i64(y)); }
};
struct DiagIndex : Functor {
  LG_CALL { return Z(j - i - i64(y)); }
};
struct Tril : Functor {
  LG_CALL { return Z(j <= i + i64(y)); }
};
struct Triu : Functor {
  LG_CALL { return Z(j >= i + i64(y)); }
};
struct Diag : Functor {
  LG_CALL { return Z(j == i + i64(y)); }
};
struct Offdiag : Functor {
  LG_CALL { return Z(j != i + i64(y)); }
};
struct RowLe : Functor {
  LG_CALL { return Z(i <= i64(y)); }
};
struct RowGt : Functor {
  LG_CALL { return Z(i > i64(y)); }
};
struct ColLe : Functor {
  LG_CALL { return Z(j <= i64(y)); }
};
struct ColGt : Functor {
  LG_CALL { return Z(j > i64(y)); }
};
struct ValueEq : Functor {
  LG_CALL { return Z(x == y); }
};
struct ValueNe : Functor {
  LG_CALL { return Z(x != y); }
};
struct ValueLt : Functor {
  LG_CALL { return Z(x < y); }
};
struct ValueLe : Functor {
  LG_CALL { return Z(x <= y); }
};
struct ValueGt : Functor {
  LG_CALL { return Z(x > y); }
};
struct ValueGe : Functor {
  LG_CALL { return Z(x >= y); }
};

// ---- sums

// x (+) y of a monoid whose domain is its result type.
template <class Add, class Z>
LG_DEVICE Z add(Z x, Z y) {
  return Add::template call<Z, Z>(x, y, 0, 0, 0);
}

// What a sum that atomics add to begins with: the identity; for the least or greatest of floats
// NaN, which gives way to any number, so that a sum of NaN alone is NaN.
template <class Add, class Z>
LG_DEVICE Z empty_sum() {
  constexpr bool extreme = IsSame<Add, Min>::value || IsSame<Add, Max>::value;
  if constexpr (extreme && Limits<Z>::is_float) return Limits<Z>::largest() - Limits<Z>::largest();
  return Add::template identity<Z>();
}

// *p = *p (+) y as one step: by the hardware's own atomic where there is one.
template <class Add, class Z>
LG_DEVICE void atomic_accumulate(Z* p, Z y) {
  if constexpr (IsSame<Add, AnyOf>::value) {
    *p = y;  // every writer's value will do, and a store of one value is whole
  } else if constexpr (IsSame<Add, Plus>::value && !IsSame<Z, bool>::value) {
    atomic_add(p, y);
  } else if constexpr (IsSame<Add, Min>::value && !Limits<Z>::is_float && !IsSame<Z, bool>::value) {
    if (y < load_volatile(p)) atomic_min(p, y);
  } else if constexpr (IsSame<Add, Max>::value && !Limits<Z>::is_float && !IsSame<Z, bool>::value) {
    if (y > load_volatile(p)) atomic_max(p, y);
  } else {
    atomic_update(p, [y](Z x) { return add<Add, Z>(x, y); });
  }
}

#endif  // LAGPU_ALGEBRA_CUH
