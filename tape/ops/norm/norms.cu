// Rows less their mean over their standard deviation, and the gradients. Words and tables are those of the CPU's.
#include "rows.cuh"

enum { ROWS, STRIDE, SEGMENTS, LENGTH, PITCH, P, Q, PARAMETERS, WEIGHT, CENTRED, EPS, STATISTICS, BIAS };
// Where x is in the table; and by which an index is divided by LENGTH: times FACTOR, shifted by SHIFT.
enum { X = BIAS + 1, FACTOR, SHIFT };

// Where the elements of a row lie, and which parameter each has.
struct Layout {
  long long base, pitch, number, q, n;
  unsigned length;
  unsigned long long factor;
  int shift;
  METHOD Layout(const Call& call, long long row)
      : base(row * call.words[STRIDE]), pitch(call.words[PITCH]), number(row * call.words[P] % call.words[PARAMETERS]),
        q(call.words[Q]), n(call.words[SEGMENTS] * call.words[LENGTH]), length((unsigned)call.words[LENGTH]),
        factor((unsigned long long)call.words[FACTOR]), shift((int)call.words[SHIFT]) {}
  METHOD unsigned segment(long long i) const { return (unsigned)((unsigned)i * factor >> shift); }
  METHOD long long at(long long i) const {
    if (length == pitch) return base + i;
    const unsigned s = segment(i);
    return base + s * pitch + ((unsigned)i - s * length);
  }
  METHOD long long parameter(long long i) const { return number + segment(i) * q; }
};

// Element `i` of the array at a position of the table, or the default where the position is 0: there is none.
DEV real parameter(const Call& call, long long array, long long i, real otherwise) {
  return array ? at<const real>(call, (int)array)[i] : otherwise;
}

struct Statistics {
  real mean, inv;
};

DEV real squared(real x, real mean) {
  const real difference = sub(x, mean);
  return mul(difference, difference);
}

DEV Statistics statistics_of(const Call& call, real mean, real squares, real n) {
  return {mean, div((real)1, root(add(div(squares, n), real_of(call.words[EPS], (real)0))))};
}

// Those of a row, where they were computed before.
DEV Statistics given_statistics(const Call& call, long long row) {
  const real* const given = at<const real>(call, (int)call.words[STATISTICS]) + row;
  return {given[0], given[call.words[ROWS]]};
}

// x' = (x - mean) * inv.
DEV real normal(real x, Statistics own) { return mul(sub(x, own.mean), own.inv); }

// What becomes of an element, which has a parameter.
DEV real scaled(const Call& call, real x, Statistics own, long long p) {
  const real y = mul(normal(x, own), parameter(call, call.words[WEIGHT], p, (real)1));
  return add(y, parameter(call, call.words[BIAS], p, (real)-0.0));
}

// h = dy * weight.
DEV real weighted(const Call& call, const Layout& lies, const real* dy, long long i) {
  return mul(dy[lies.at(i)], parameter(call, call.words[WEIGHT], lies.parameter(i), (real)1));
}

DEV real slope(real h, real x, Statistics own, real mean_h, real mean_p) {
  return mul(sub(sub(h, mean_h), mul(normal(x, own), mean_p)), own.inv);
}

DEV Statistics statistics(const Call& call, const Team& team, const Layout& lies, const real* x) {
  if (call.words[STATISTICS]) return given_statistics(call, team.row);
  const real n = number(lies.n, (real)0);
  real mean = (real)0;
  if (call.words[CENTRED]) mean = div(team.sum(lies.n, [=](long long i) { return x[lies.at(i)]; }), n);
  const real squares = team.sum(lies.n, [=](long long i) { return squared(x[lies.at(i)], mean); });
  return statistics_of(call, mean, squares, n);
}

#define BEGIN                                                \
  DYNAMIC_SHARED(real, memory);                              \
  const Team team(call.words[ROWS], memory);                 \
  const Layout lies(call, team.row);                         \
  const real* const x = at<const real>(call, (int)call.words[X]); \
  const Statistics own = statistics(call, team, lies, x);

KERNEL(THREADS, 1) normalize(PARAMETER Call call, Report) {
  BEGIN
  if (!team.here) return;
  real* const out = at<real>(call, 0);
  team.each(0, lies.n, [&](long long i) { return scaled(call, x[lies.at(i)], own, lies.parameter(i)); },
            [&](long long i, real y) { out[lies.at(i)] = y; });
}

DEV void give_statistics(const Call& call, long long row, Statistics own) {
  at<real>(call, 0)[row] = own.mean;
  at<real>(call, 0)[call.words[ROWS] + row] = own.inv;
}

KERNEL(THREADS, 1) row_statistics(PARAMETER Call call, Report) {
  BEGIN
  if (team.first()) give_statistics(call, team.row, own);
}

// The sum along a row of h * x'.
DEV real products(const Call& call, const Team& team, const Layout& lies, const real* dy, const real* x, Statistics own) {
  return team.sum(lies.n, [&](long long i) { return mul(weighted(call, lies, dy, i), normal(x[lies.at(i)], own)); });
}

KERNEL(THREADS, 1) normalize_grad(PARAMETER Call call, Report) {
  BEGIN
  const real *const dy = at<const real>(call, 1), n = number(lies.n, (real)0);
  real total = (real)0;
  if (call.words[CENTRED]) total = team.sum(lies.n, [&](long long i) { return weighted(call, lies, dy, i); });
  const real mean_h = div(total, n), mean_p = div(products(call, team, lies, dy, x, own), n);
  if (!team.here) return;
  real* const out = at<real>(call, 0);
  team.each(0, lies.n,
            [&](long long i) { return slope(weighted(call, lies, dy, i), x[lies.at(i)], own, mean_h, mean_p); },
            [&](long long i, real y) { out[lies.at(i)] = y; });
}

KERNEL(THREADS, 1) normalize_weight_grad(PARAMETER Call call, Report) {
  BEGIN
  const real total = products(call, team, lies, at<const real>(call, 1), x, own);
  if (team.first()) at<real>(call, 0)[team.row] = total;
}

#if GROUPS == 1
// The same of few and long rows: a thread block has one block of 4096 elements of a row. Each launch leaves sums of blocks,
// which the next ones add from left to right. With -D CLUSTER so many thread blocks have a row, and wait for each other in
// one launch.
#ifndef CLUSTER
#define CLUSTER 0
#endif
enum { SUMS = 5 };  // position of the address
enum { MEANS, WEIGHTED, SQUARES, PRODUCTS };

struct Part {
  long long blocks, row, block;
  METHOD Part(const Call& call) : blocks((call.words[SEGMENTS] * call.words[LENGTH] + ROW_BLOCK - 1) / ROW_BLOCK) {
    const long long beside = CLUSTER ? CLUSTER : blocks;
    row = blockIdx.x / beside, block = blockIdx.x % beside;
  }
  METHOD real* sums(const Call& call, int kind) const {
    return at<real>(call, SUMS) + (kind * call.words[ROWS] + row) * blocks;
  }
  METHOD real whole(const Call& call, int kind) const {
    const real* const parts = sums(call, kind);
    real total = (real)0;
#pragma unroll 16
    for (long long b = 0; b < blocks; b++) total = add(total, parts[b]);
    return total;
  }
  METHOD Statistics statistics(const Call& call, real n) const {
    if (call.words[STATISTICS]) return given_statistics(call, row);
    return statistics_of(call, mean(call, n), whole(call, SQUARES), n);
  }
  METHOD real mean(const Call& call, real n) const {
    return call.words[CENTRED] ? div(whole(call, MEANS), n) : (real)0;
  }
  // The sum of the block, and where it goes.
  template <class Term> METHOD void sum(const Call& call, const Layout& lies, int kind, real* memory, const Term& term) const {
    const Team team(1ll << 62, memory);
    const long long start = block * ROW_BLOCK;
    const real total = team.sum(ROW_BLOCK, lies.n - start, [&](long long i) { return term(start + i); });
    if (team.first()) sums(call, kind)[block] = total;
  }
  template <class Action> METHOD void each(const Layout& lies, const Action& action) const {
    const long long start = block * ROW_BLOCK, stop = start + ROW_BLOCK < lies.n ? start + ROW_BLOCK : lies.n;
#pragma unroll 4
    for (long long i = start + threadIdx.x; i < stop; i += THREADS) action(i);
  }
};

#define BEGIN_PART                                           \
  const Part part(call);                                     \
  const Layout lies(call, part.row);                         \
  const real* const x = at<const real>(call, (int)call.words[X]);

DEV void sum_means(const Call& call, const Part& part, const Layout& lies, const real* x, real* memory) {
  part.sum(call, lies, MEANS, memory, [&](long long i) { return x[lies.at(i)]; });
}

DEV void sum_weighted(const Call& call, const Part& part, const Layout& lies, real* memory) {
  part.sum(call, lies, WEIGHTED, memory, [&](long long i) { return weighted(call, lies, at<const real>(call, 1), i); });
}

DEV void sum_squares(const Call& call, const Part& part, const Layout& lies, const real* x, real* memory) {
  const real mean = part.mean(call, number(lies.n, (real)0));
  part.sum(call, lies, SQUARES, memory, [&](long long i) { return squared(x[lies.at(i)], mean); });
}

DEV void sum_products(const Call& call, const Part& part, const Layout& lies, const real* x, real* memory) {
  const Statistics own = part.statistics(call, number(lies.n, (real)0));
  const real* const dy = at<const real>(call, 1);
  part.sum(call, lies, PRODUCTS, memory, [&](long long i) {
    return mul(weighted(call, lies, dy, i), normal(x[lies.at(i)], own));
  });
}

DEV void give_normalized(const Call& call, const Part& part, const Layout& lies, const real* x) {
  const Statistics own = part.statistics(call, number(lies.n, (real)0));
  real* const out = at<real>(call, 0);
  part.each(lies, [&](long long i) { out[lies.at(i)] = scaled(call, x[lies.at(i)], own, lies.parameter(i)); });
}

DEV void give_slopes(const Call& call, const Part& part, const Layout& lies, const real* x) {
  const real n = number(lies.n, (real)0);
  const Statistics own = part.statistics(call, n);
  const real mean_h = div(call.words[CENTRED] ? part.whole(call, WEIGHTED) : (real)0, n);
  const real mean_p = div(part.whole(call, PRODUCTS), n);
  const real* const dy = at<const real>(call, 1);
  real* const out = at<real>(call, 0);
  part.each(lies, [&](long long i) {
    out[lies.at(i)] = slope(weighted(call, lies, dy, i), x[lies.at(i)], own, mean_h, mean_p);
  });
}

// Of a row, whose first block does it.
DEV void give_row(const Call& call, const Part& part, const Layout& lies) {
  if (part.block == 0 && threadIdx.x == 0)
    give_statistics(call, part.row, part.statistics(call, number(lies.n, (real)0)));
}

DEV void give_total(const Call& call, const Part& part) {
  if (part.block == 0 && threadIdx.x == 0) at<real>(call, 0)[part.row] = part.whole(call, PRODUCTS);
}

#if CLUSTER
constexpr int HELD = ROW_BLOCK / THREADS;

// A block of a row in the registers of a thread block: x, and of a gradient h.
template <bool GRADIENT> struct Held {
  Part part;
  Layout lies;
  Statistics own;
  int there;  // elements of the block
  real x[HELD], h[HELD], n, *staged;

  METHOD Held(const Call& call, real* memory) : part(call), lies(call, part.row), staged(memory) {
    const long long left = lies.n - part.block * ROW_BLOCK;
    there = left < 0 ? 0 : left < ROW_BLOCK ? (int)left : ROW_BLOCK, n = number(lies.n, (real)0);
    const real *const from = at<const real>(call, (int)call.words[X]), *const dy = at<const real>(call, 1);
    // Without a branch, so that the thread waits for all of them together; behind the block it is the row's last element.
#pragma unroll
    for (int k = 0; k < HELD; k++) {
      const long long i = part.block * ROW_BLOCK + k * THREADS + threadIdx.x, at = lies.at(i < lies.n ? i : lies.n - 1);
      x[k] = from[at];
      if (GRADIENT) h[k] = dy[at];
    }
    if (GRADIENT && call.words[WEIGHT])
      each([&](int k, long long i) { h[k] = mul(h[k], parameter(call, call.words[WEIGHT], lies.parameter(i), (real)1)); });
    own = call.words[STATISTICS] ? given_statistics(call, part.row) : statistics(call);
    if (!GRADIENT) return;
    each([&](int k, long long) { stage(0, k, mul(h[k], normal(x[k], own))), stage(1, k, h[k]); });
    sum(call, PRODUCTS, WEIGHTED);
  }

  METHOD Statistics statistics(const Call& call) const {
    if (call.words[CENTRED]) {
      each([&](int k, long long) { stage(0, k, x[k]); });
      sum(call, MEANS, MEANS);
    }
    const real mean = part.mean(call, n);
    each([&](int k, long long) { stage(0, k, squared(x[k], mean)); });
    sum(call, SQUARES, SQUARES);
    return statistics_of(call, mean, part.whole(call, SQUARES), n);
  }

  // Every element of the block that is the thread's: which of its own it is, and its place in the row.
  template <class Action> METHOD void each(const Action& action) const {
#pragma unroll
    for (int k = 0; k < HELD; k++) {
      const int j = k * THREADS + (int)threadIdx.x;
      if (j < there) action(k, part.block * ROW_BLOCK + j);
    }
  }
  METHOD void stage(int which, int k, real term) const { staged[which * ROW_BLOCK + k * THREADS + threadIdx.x] = term; }

  // The sums of what is staged, of each kind by a warp, and the waiting for those of the other blocks.
  METHOD void sum(const Call& call, int first, int last) const {
    __syncthreads();
    const int which = threadIdx.x / WARP;
    if (which <= (first != last) && part.block < part.blocks) {
      const Team team(1ll << 62, staged);
      real mine = (real)0;
#pragma unroll 16
      for (int i = team.lane; i < there; i += LANES) mine = add(mine, staged[which * ROW_BLOCK + i]);
      mine = team.folded(mine);
      if (threadIdx.x % WARP == 0) part.sums(call, which ? last : first)[part.block] = add((real)0, mine);
    }
    cluster_barrier();
  }
};

CLUSTERED(THREADS) normalize_cluster(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const Held<false> held(call, memory);
  real* const out = at<real>(call, 0);
  held.each([&](int k, long long i) { out[held.lies.at(i)] = scaled(call, held.x[k], held.own, held.lies.parameter(i)); });
}

CLUSTERED(THREADS) row_statistics_cluster(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const Held<false> held(call, memory);
  if (held.part.block == 0 && threadIdx.x == 0) give_statistics(call, held.part.row, held.own);
}

CLUSTERED(THREADS) normalize_grad_cluster(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const Held<true> held(call, memory);
  const real mean_h = div(call.words[CENTRED] ? held.part.whole(call, WEIGHTED) : (real)0, held.n);
  const real mean_p = div(held.part.whole(call, PRODUCTS), held.n);
  real* const out = at<real>(call, 0);
  held.each([&](int k, long long i) { out[held.lies.at(i)] = slope(held.h[k], held.x[k], held.own, mean_h, mean_p); });
}

CLUSTERED(THREADS) normalize_weight_grad_cluster(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const Held<true> held(call, memory);
  give_total(call, held.part);
}
#else
KERNEL(THREADS, 1) block_means(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  BEGIN_PART
  sum_means(call, part, lies, x, memory);
}

KERNEL(THREADS, 1) block_squares(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  BEGIN_PART
  sum_squares(call, part, lies, x, memory);
}

// Of h x', and in a second layer of thread blocks of h.
KERNEL(THREADS, 1) block_products(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  BEGIN_PART
  if (blockIdx.z == 0)
    sum_products(call, part, lies, x, memory);
  else
    sum_weighted(call, part, lies, memory);
}

KERNEL(THREADS, 1) normalize_blocks(PARAMETER Call call, Report) {
  BEGIN_PART
  give_normalized(call, part, lies, x);
}

KERNEL(THREADS, 1) normalize_grad_blocks(PARAMETER Call call, Report) {
  BEGIN_PART
  give_slopes(call, part, lies, x);
}

KERNEL(THREADS, 1) row_statistics_blocks(PARAMETER Call call, Report) {
  BEGIN_PART
  give_row(call, part, lies);
}

KERNEL(THREADS, 1) normalize_weight_grad_blocks(PARAMETER Call call, Report) {
  BEGIN_PART
  give_total(call, part);
}
#endif
#endif

#ifndef __CUDACC__
HOST_ENTRY(normalize)
HOST_ENTRY(row_statistics)
HOST_ENTRY(normalize_grad)
HOST_ENTRY(normalize_weight_grad)
#if GROUPS == 1 && CLUSTER
HOST_ENTRY(normalize_cluster)
HOST_ENTRY(row_statistics_cluster)
HOST_ENTRY(normalize_grad_cluster)
HOST_ENTRY(normalize_weight_grad_cluster)
#elif GROUPS == 1
HOST_ENTRY(block_means)
HOST_ENTRY(block_squares)
HOST_ENTRY(block_products)
HOST_ENTRY(normalize_blocks)
HOST_ENTRY(normalize_grad_blocks)
HOST_ENTRY(row_statistics_blocks)
HOST_ENTRY(normalize_weight_grad_blocks)
#endif
#endif
