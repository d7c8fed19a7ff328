// The product with a selection matrix in a generated loop.
#ifndef LAGPU_PROGRAM_SELECTION_CUH
#define LAGPU_PROGRAM_SELECTION_CUH
#include "program/program.cuh"
#include "spmv/selection.cuh"

// Begins and ends with a barrier: it reads what other warps wrote, and they must not write u again
// before it has. t as multiply_all takes it. *looked_at += entries of P looked at, unless null.
template <class S, bool gathers, class Select>
LG_DEVICE void select_all(const Select& f, const Operand<S>& u, const Mask& mask,
                          const Sums<typename S::Z>& t, u64* looked_at, GridBarrier* barrier) {
  Tallied tally{};
  if constexpr (!gathers) empty_sums<S>(t, mask.n);
  grid_sync(barrier);
  if constexpr (gathers) {
    gather_selected<S>(f, u, mask, t, &tally);
  } else {
    scatter_selected<S>(f, u, mask, t, &tally);
  }
  if (looked_at) add_total(tally.looked_at, looked_at);
  grid_sync(barrier);
}

#endif  // LAGPU_PROGRAM_SELECTION_CUH
