// The hint of a column: the one of its rows that itself has most entries, which a pull asks first.
#ifndef LAGPU_HINT_CUH
#define LAGPU_HINT_CUH
#include "common/prims.cuh"

const i32 kNoHint = -1;  // of a column without entries, or of one whose hint is not to be asked
const i32 kOnlyFrom = -2;

struct Hint {
  i32 row;    // negative: none
  bool only;  // it is the column's only row, so a look at it has seen all
};

// A hint in 32 bits: an only row i is kOnlyFrom - i.
LG_DEVICE i32 hint_to(i32 row, bool only) { return only ? kOnlyFrom - row : row; }

LG_DEVICE Hint hint_from(i32 kept) {
  const bool only = kept <= kOnlyFrom;
  return {only ? kOnlyFrom - kept : kept, only};
}

#endif  // LAGPU_HINT_CUH
