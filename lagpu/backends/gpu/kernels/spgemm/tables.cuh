// Which columns of a product under a mask are put in a table; see spgemm/dots.cu.
#ifndef LAGPU_TABLES_CUH
#define LAGPU_TABLES_CUH
#include "common/prims.cuh"

const u32 kTableEntries = 32;  // of a mask's column, from which a table is worth its making
const u32 kTablePart = 1024;   // of them, for which a thread block makes it once

// Whether a column of B with so many rows has a table, in a column of the mask with so many
// entries: tables have more rows than `least`, and at most `most`.
LG_DEVICE bool has_table(i64 entries, i64 rows, i64 least, i64 most) {
  return entries >= kTableEntries && rows > least && rows <= most;
}

#endif  // LAGPU_TABLES_CUH
