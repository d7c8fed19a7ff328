// What the assignments of a search's loop assign, up to three of them, and the types of their
// outputs: 0 nothing; kDepth; kValue, the frontier's; kNumber, a constant (where rows are apart).
#ifndef LAGPU_ASSIGNED_CUH
#define LAGPU_ASSIGNED_CUH
#ifndef LG_X0
#define LG_X0 1
#endif
#ifndef LG_X0_T
#define LG_X0_T i32
#endif
#ifndef LG_X1
#define LG_X1 0
#endif
#ifndef LG_X1_T
#define LG_X1_T i32
#endif
#ifndef LG_X2
#define LG_X2 0
#endif
#ifndef LG_X2_T
#define LG_X2_T i32
#endif
#endif  // LAGPU_ASSIGNED_CUH
