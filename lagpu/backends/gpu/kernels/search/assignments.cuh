// The assignments of a search, up to three: the source and the type of each output. 0: none;
// kDepth; kValue, the frontier's value; kNumber, a constant (in a per-source search).
#ifndef LAGPU_SEARCH_ASSIGNMENTS_CUH
#define LAGPU_SEARCH_ASSIGNMENTS_CUH
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
#endif  // LAGPU_SEARCH_ASSIGNMENTS_CUH
