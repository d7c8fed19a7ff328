// The log of a loop that is traced: a record for each statement and iteration.
//
// Only kernels made for a trace have one: LG_LOG is the number of records it holds. LG_LOG 0 is no
// log, and LG_LOGGED(...) is empty then. One thread of block 0 writes; its state is in shared
// memory, so the other threads carry no register for it.
//
// In memory, as u64: eight results of the kernel; the records so far; the rows that did not fit;
// nine counts of new entries, of three levels by turns; three of edges and two times, by turns;
// then the records.
#ifndef LAGPU_LOG_CUH
#define LAGPU_LOG_CUH
#include "common/prims.cuh"
#ifndef LG_LOG
#define LG_LOG 0
#endif
#if !LG_LOG
#define LG_LOGGED(...)
#else
#define LG_LOGGED(...) __VA_ARGS__

// Of three levels, of three turns, and of two.
const u32 kLogNew = 10, kLogLooked = 19, kLogArrived = 22;
static_assert(kResults <= kLogCount && kLogCount < kLogLost && kLogLost < kLogNew);
static_assert(kLogArrived + 2 <= kLogHead);

struct Record {
  u64 how, statement, iteration;
  u64 in, out;                // entries of the vector multiplied, and of the result
  u64 edges;                  // looked at
  u64 frontier_edges, other;  // the numbers by which the direction was chosen
  u64 ns;                     // when the statement had ended
  u64 added[3];               // entries that assigned vectors did not have before, so far
};

struct LoopLog {
  u64* memory;
  u64 count, lost;
  Record now;

  LG_DEVICE Record* at(u64 k) const { return reinterpret_cast<Record*>(memory + kLogHead) + k; }

  // Begin a loop, after the records of earlier ones.
  LG_DEVICE void open(u64* log, bool is_new) {
    memory = log;
    count = is_new ? 0 : log[kLogCount];
    lost = is_new ? 0 : log[kLogLost];
    for (u32 k = kLogNew; k < kLogHead; ++k) log[k] = 0;
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

  // Begin a level of a search.
  LG_DEVICE void begin(u64 how, u64 iteration, u64 in, u64 frontier_edges, u64 other) {
    now.how = how;
    now.iteration = iteration;
    now.in = in;
    now.frontier_edges = frontier_edges;
    now.other = other;
  }

  // End the level.
  LG_DEVICE void end(u64 out, u64 edges, u64 rows) {
    now.out = out;
    now.edges = edges;
    put(rows);
  }

#ifdef LG_PEERS
  // This device has found `out` entries by itself, sent them in so many presence words, or in lists
  // if 0, and waited for the others: its last block came at `arrived`.
  LG_DEVICE void waited(u64 iteration, u64 words, u64 out, u64 arrived) {
    if (count >= LG_LOG) return;
    Record* const to = at(count++);
    *to = Record{};
    to->how = kWaitsForAll;
    to->iteration = iteration;
    to->in = words;
    to->out = out;
    to->other = arrived;
    to->ns = clock_ns();
  }
#endif

  // Statement k of an iteration has ended; its numbers are filled in at the iteration's end.
  LG_DEVICE void stamp(u64 k, u64 statements, u64 iteration, u64 how) const {
    if (count + statements > LG_LOG) return;
    Record* const to = at(count + k);
    to->how = how;
    to->statement = k;
    to->iteration = iteration;
    to->ns = clock_ns();
  }

  LG_DEVICE void fill(u64 k, u64 statements, u64 out, u64 edges, u64 frontier_edges) const {
    if (count + statements > LG_LOG) return;
    Record* const to = at(count + k);
    to->out = out;
    to->edges = edges;
    to->frontier_edges = frontier_edges;
  }

  LG_DEVICE void next(u64 statements) {
    const bool fits = count + statements <= LG_LOG;
    count += fits ? statements : 0;
    lost += fits ? 0 : statements;
  }
};

#endif  // LG_LOG
#endif  // LAGPU_LOG_CUH
