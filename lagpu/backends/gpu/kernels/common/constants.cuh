// Numbers that the kernels and the host share; each is written here alone.
//
// lagpu/backends/gpu/kernels/__init__.py reads this file line by line, so a constant is one line:
// `constexpr`, a type, a name, a whole number. common/prims.cuh includes it, and so does every
// kernel.
#ifndef LAGPU_CONSTANTS_CUH
#define LAGPU_CONSTANTS_CUH

// ---- places in memory

// Words of u32 of a grid's barrier: a cache line.
constexpr u32 kBarrierWords = 32;
// u64 from one counter to the next: a cache line, so that no two share one.
constexpr u32 kCounterStride = 16;
// Sets of counters that take turns: read, filled, zeroed.
constexpr u32 kTurns = 3;
// Counters that a search has for a turn, at most.
constexpr u32 kSearchCounters = 5;
// u64 that a scalar of a loop takes: its value, and whether it has one.
constexpr u32 kScalarWords = 2;
// u64 that a search reports in the end, and which of them counts the entries left in its frontier.
constexpr u32 kResults = 8;
constexpr u32 kLeft = 1;

// ---- the log of a loop that is traced, in u64 after the results: how many records there are, the
// rows that did not fit, and where the records begin

constexpr u32 kLogCount = 8;
constexpr u32 kLogLost = 9;
constexpr u32 kLogHead = 24;
// Among the flags that a search is launched with: nothing has been logged yet.
constexpr u32 kNewLog = 8;
// How the statement of a record was run; the first record of a loop has no statement.
constexpr u64 kBegins = 0;
constexpr u64 kWrites = 1;
constexpr u64 kPushes = 2;
constexpr u64 kPushesAlone = 3;
constexpr u64 kPulls = 4;
constexpr u64 kPushesInCluster = 5;
constexpr u64 kPushesIntoWords = 7;
// No edge of the level was looked at, as none could find anything.
constexpr u64 kFindsNothing = 8;
// Not of a statement: a device of several has met the others.
constexpr u64 kWaitsForAll = 6;
// The number of a record that was not counted.
constexpr u64 kUnknown = 0xffffffffffffffff;

#ifdef LG_PEERS
// ---- several devices of one host that run one kernel together

// u64 of a post, in which a device gives another one its counts: so each has 32 bytes of its own.
constexpr u32 kPostWords = 4;
// Posts of one device to another that take turns, by epochs.
constexpr u32 kPostTurns = 4;
// Devices at most: one a lane.
constexpr u32 kMostPeers = 32;
// Among the u64 that such a kernel reports: why it ended early, the turn, which devices
// have posted nothing (a bit each), and the last epoch.
constexpr u32 kVerdict = 2;
constexpr u32 kTurn = 3;
constexpr u32 kMissing = 4;
constexpr u32 kEpoch = 5;
// Why: another device has posted nothing in time, or another one has given up, or the host has
// stopped all.
constexpr u32 kGaveUp = 1;
constexpr u32 kOtherGaveUp = 2;
constexpr u32 kStopped = 3;
#endif

// ---- sizes

// Entries of a column that a push follows in chunks are more than kSmall; a chunk has kChunk.
constexpr u32 kSmall = 32;
constexpr u32 kChunk = 256;
// Vertices of a search's list that have the place and the number of their edges beside them: those
// of a few waves of all warps, where a level's time is that of a chain of loads. Others are looked
// up.
constexpr u32 kPlaced = 131072;
// Shared memory of each warp in a search's pull that adds up nothing.
constexpr u32 kGroupBytes = 384;
// Products of bits cut a column into chunks of kLongColumn entries if it has more.
constexpr i64 kLongColumn = 1024;
// Entries that a warp loads together where all of a matrix are summed: a multiple of 128.
constexpr u32 kSumTile = 128;
// Vertices of highest degree, by which a bit-parallel search tells rows with large frontiers.
constexpr u32 kHeavy = 1024;
// Rows of a bitmap matrix, at most.
constexpr u32 kMostRows = 1024;
// Presence words that are counted together before the indices of a vector's entries are listed.
constexpr i64 kGroupWords = 256;
// Threads of a thread block that sorts a row's vertices by level.
constexpr u32 kOrderThreads = 1024;

// ---- choices

// What a search assigns to an output.
constexpr u32 kDepth = 1;
constexpr u32 kValue = 2;
constexpr u32 kNumber = 3;
// How a search chooses its directions: by edges and vertices, as Beamer, Asanovic and Patterson do;
// by the frontier over the unvisited vertices; by the frontier over all vertices, once; or always
// the one direction for which the matrix has its form.
constexpr u32 kByEdges = 0;
constexpr u32 kByUnvisited = 1;
constexpr u32 kByDensity = 2;
constexpr u32 kOnlyPushes = 3;
constexpr u32 kOnlyPulls = 4;
// How two vectors meet: on the union, one side alone as it is; on the intersection; on the union,
// a default for the missing side.
constexpr i32 kEwiseAdd = 0;
constexpr i32 kEwiseMult = 1;
constexpr i32 kEwiseUnion = 2;
// A product in a generated loop pulls where the edges that leave the frontier, times this, are more
// than all edges: of sums that end with their first product, which a pull finds soon, and of sums
// that need all products, where it saves but the atomics of a push.
constexpr u32 kPullFirst = 14;
constexpr u32 kPullSums = 3;

#endif  // LAGPU_CONSTANTS_CUH
