// The mathematical functions that CUDA has without an include, for f32, f64 and integers.
#pragma once

#define LG_MATH(name)                      \
  extern "C" double name(double) noexcept; \
  inline float name(float x) { return __builtin_##name##f(x); }
LG_MATH(sqrt)
LG_MATH(exp)
LG_MATH(log)
LG_MATH(floor)
LG_MATH(ceil)
LG_MATH(fabs)
#undef LG_MATH

extern "C" double pow(double, double) noexcept;
inline float pow(float x, float y) { return __builtin_powf(x, y); }

inline bool isnan(double x) { return x != x; }
inline bool isinf(double x) { return __builtin_isinf(x); }

template <class T>
inline T abs(T x) {
  return x < 0 ? -x : x;
}
template <class T>
inline T min(T x, T y) {
  return y < x ? y : x;
}
template <class T>
inline T max(T x, T y) {
  return x < y ? y : x;
}
