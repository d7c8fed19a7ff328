// The log of a loop that is traced: a record for each statement and iteration.
//
// Only kernels made for a trace have one: LG_LOG is the number of records it holds, 0 for no log,
// and LG_LOGGED(...) is nothing then. One thread of block 0 writes; what it knows meanwhile is in
// shared memory, so the others carry no register for it.
//
// In memory, as u64: eight results of the kernel; the records so far; the rows that did not fit;
// nine counts of new entries, of three levels by turns; five not used; then the records.
#ifndef LAGPU_LOOPLOG_CUH
#define LAGPU_LOOPLOG_CUH
#include "common/prims.cuh"
#ifndef LG_LOG
#define LG_LOG 0
#endif
#if !LG_LOG
#define LG_LOGGED(...)
#else
#define LG_LOGGED(...) __VA_ARGS__

const u32 kLogNew = 10, kLogLooked = 19;  // of three levels, and of three turns
static_assert(kResults <= kLogCount && kLogCount < kLogLost && kLogLost < kLogNew);
static_assert(kLogLooked + 3 <= kLogHead);

struct Record {
  u64 how, statement, iteration;
  u64 in, out;         // entries of the vector multiplied, and of the result
  u64 edges;           // looked at
  u64 leaving, other;  // edges by which the direction was chosen: the vector's, and against what
  u64 ns;              // when the statement had ended
  u64 added[3];        // entries that assigned vectors did not have before, so far
};

struct LoopLog {
  u64* memory;
  u64 count, lost;
  Record now;

  LG_DEVICE Record* at(u64 k) const { return reinterpret_cast<Record*>(memory + kLogHead) + k; }

  // A loop begins; behind what earlier ones wrote.
  LG_DEVICE void open(u64* log, bool is_new) {
    memory = log;
    count = is_new ? 0 : log[kLogCount];
    lost = is_new ? 0 : log[kLogLost];
    for (u32 k = kLogNew; k < kLogLooked + 3; ++k) log[k] = 0;
    now = Record{};
    now.how = kBegins;
    put(0);
  }

  LG_DEVICE void close() const {
    memory[kLogCount] = count;
    memory[kLogLost] = lost;
  }

  // Write the record that stands for `rows` statements.
  LG_DEVICE void put(u64 rows) {
    now.ns = clock_ns();
    if (count < LG_LOG) {
      *at(count++) = now;
    } else {
      lost += rows;
    }
  }

  // A level of a traversal begins.
  LG_DEVICE void begin(u64 how, u64 iteration, u64 in, u64 leaving, u64 other) {
    now.how = how;
    now.iteration = iteration;
    now.in = in;
    now.leaving = leaving;
    now.other = other;
  }

  // It has ended.
  LG_DEVICE void end(u64 out, u64 edges, u64 rows) {
    now.out = out;
    now.edges = edges;
    put(rows);
  }

  // Statement k of an iteration has ended; its numbers are filled in at the iteration's end.
  LG_DEVICE void stamp(u64 k, u64 statements, u64 iteration, u64 how) const {
    if (count + statements > LG_LOG) return;
    Record* const to = at(count + k);
    to->how = how;
    to->statement = k;
    to->iteration = iteration;
    to->ns = clock_ns();
  }

  LG_DEVICE void fill(u64 k, u64 statements, u64 out, u64 edges, u64 leaving) const {
    if (count + statements > LG_LOG) return;
    Record* const to = at(count + k);
    to->out = out;
    to->edges = edges;
    to->leaving = leaving;
  }

  LG_DEVICE void next(u64 statements) {
    const bool fits = count + statements <= LG_LOG;
    count += fits ? statements : 0;
    lost += fits ? 0 : statements;
  }
};

#endif  // LG_LOG
#endif  // LAGPU_LOOPLOG_CUH
