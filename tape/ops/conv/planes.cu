// Convolutions of single channels and the gradients of their weights. The rows of the source that a range of results reads lie
// in shared memory, with +0 for what is outside of it, and a thread goes down its chain there. Words, tables and orders are
// those of convolutions.cu; there are no axes between the first and the last. What all threads need at once comes with the
// launch, as the words lie a long way off; terms are looked up while the rows are on their way.
#include "places.cuh"
constexpr int CHAIN = 256;

// The first row and column that any term reads of result 0, rows from the first to the last one, elements from row to row in
// shared memory; sizes, of which two with factor and shift that divide by them; blocks of terms of a thread block.
enum {
  LOW, LEFT, EXTENT, PITCH, OWN_GROUPS, ALL, EACH_PLANE, EACH_FACTOR, EACH_SHIFT, COLUMNS, COLUMNS_FACTOR, COLUMNS_SHIFT,
  ROW_STEP, COLUMN_STEP, SOURCE_ROWS, SOURCE_COLUMNS, TOGETHER
};

// A result: its plane, and its row and column there.
struct Result {
  unsigned plane, q, row, column;
  METHOD Result(const Call& call, unsigned n) {
    const long long* const own = call.words;
    plane = (unsigned)(n * (unsigned long long)own[EACH_FACTOR] >> own[EACH_SHIFT]), q = n - plane * (unsigned)own[EACH_PLANE];
    row = (unsigned)(q * (unsigned long long)own[COLUMNS_FACTOR] >> own[COLUMNS_SHIFT]);
    column = q - row * (unsigned)own[COLUMNS];
  }
};

// The rows that results from `begin` on read, plane behind plane.
struct Rows {
  const Call& call;
  Result begin;
  int step, pitch, lines;
  METHOD Rows(const Call& call, unsigned first)
      : call(call), begin(call, first), step((int)call.words[ROW_STEP]), pitch((int)call.words[PITCH]),
        lines((int)(call.words[EACH_PLANE] / call.words[COLUMNS] - 1) * step + (int)call.words[EXTENT]) {}
  // The first line that a result reads.
  METHOD int line(const Result& of) const {
    return (int)(of.plane - begin.plane) * lines + ((int)of.row - (int)begin.row) * step;
  }
  // Where the element of a result lies that the term of the lowest row and column reads.
  METHOD int at(const Result& of) const { return line(of) * pitch + (int)of.column * (int)call.words[COLUMN_STEP]; }
  METHOD int of_term(const Place& there) const {
    return (there.first - (int)call.words[LOW]) * pitch + there.last - (int)call.words[LEFT];
  }
  // Have the rows copied that results up to `last` read.
  METHOD void copy(real* tile, unsigned group, const Result& last) const {
    const int count = (line(last) + (int)call.words[EXTENT]) * pitch, low = (int)call.words[LOW], left = (int)call.words[LEFT];
    const unsigned rows = (unsigned)call.words[SOURCE_ROWS], columns = (unsigned)call.words[SOURCE_COLUMNS];
    const long long plane = (long long)rows * columns * call.words[OWN_GROUPS];
    const real* from = ::at<const real>(call, P_SOURCE) + (long long)group * rows * columns + begin.plane * plane;
    const int down = THREADS / pitch, across = THREADS % pitch;
    int x = threadIdx.x % pitch, y = threadIdx.x / pitch + (int)begin.row * step;
#pragma unroll 4
    for (int i = threadIdx.x; i < count; i += THREADS) {
      while (y >= lines) y -= lines, from += plane;
      const bool in = (unsigned)(y + low) < rows && (unsigned)(x + left) < columns;
      copy_one(tile + i, from + ((y + low) * (int)columns + x + left), in);
      x += across, y += down;
      if (x >= pitch) x -= pitch, y++;
    }
    commit_copies();
  }
};

DEV void wait_for_all() {
  wait_copies<0>();
  __syncthreads();
}

#if defined(WEIGHTS)
// A thread block has some blocks of 256 results of a group, and of its first threads each the sum of a weight over one of them.
KERNEL(THREADS, 1) convolve_weights_planes(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const long long* const w = at<const long long>(call, P_WORDS);
  const unsigned each = (unsigned)call.words[EACH_PLANE], all = (unsigned)call.words[ALL], groups = (unsigned)call.words[OWN_GROUPS];
  const unsigned group = blockIdx.x, together = (unsigned)call.words[TOGETHER], begin = blockIdx.z * together * CHAIN;
  const unsigned end = all - begin < together * CHAIN ? all : begin + together * CHAIN;
  const Rows rows(call, begin);
  rows.copy(memory, group, Result(call, end - 1));
  real* const cotangents = memory + call.words[TOGETHER + 1];
  const unsigned N = (unsigned)w[OUTPUTS], chains = (unsigned)w[DEPTH] * N;
  for (unsigned n = 0; n < N; n++) {
    const real* from = at<const real>(call, P_OPERAND) + ((rows.begin.plane * (long long)groups + group) * N + n) * each;
    real* const to = cotangents + n * together * (CHAIN + 1);
    unsigned q = rows.begin.q + threadIdx.x;
    for (unsigned i = threadIdx.x; i < end - begin; i += THREADS, q += THREADS) {
      while (q >= each) q -= each, from += (long long)groups * N * each;
      copy_one(to + i + i / CHAIN, from + q, true);
    }
  }
  commit_copies();
  const unsigned block = threadIdx.x / chains, own = threadIdx.x % chains, first = begin + block * CHAIN;
  const bool idle = block >= together || first >= end;
  const int there = idle ? 0 : rows.of_term(term(w, own / N));
  wait_for_all();
  if (idle) return;
  const unsigned count = end - first < CHAIN ? end - first : CHAIN, columns = (unsigned)call.words[COLUMNS];
  const real* const cotangent = cotangents + (own % N * together + block) * (CHAIN + 1);
  const int across = (int)call.words[COLUMN_STEP], down = rows.step * rows.pitch - (int)columns * across;
  const Result start(call, first);
  int here = rows.at(start) + there;
  unsigned column = start.column, row = start.row;
  real sum = (real)0;
#pragma unroll 8
  for (unsigned i = 0; i < count; i++) {
    sum = fused(memory[here], cotangent[i], sum);
    here += across;
    if (++column == columns) {
      column = 0, here += down;
      if (++row * columns == each) row = 0, here += ((int)call.words[EXTENT] - rows.step) * rows.pitch;
    }
  }
  const long long weights = (long long)groups * chains, i = (long long)group * chains + own;
  if (all > CHAIN) at<real>(call, PARTIAL)[(first / CHAIN) * weights + i] = sum;
  else at<real>(call, OUT)[i] = sum;
}

#else
// A thread block has results of one output. By -D: PER, results of a thread.
KERNEL(THREADS, 4) convolve_planes(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const long long* const w = at<const long long>(call, P_WORDS);
  const unsigned each = (unsigned)call.words[EACH_PLANE], N = (unsigned)call.words[ALL];
  const unsigned tiles = (N + THREADS * PER - 1) / (THREADS * PER), begin = blockIdx.x % tiles * (THREADS * PER);
  const unsigned chains = gridDim.x / tiles / (unsigned)call.words[OWN_GROUPS], group = blockIdx.x / tiles / chains;
  const Rows rows(call, begin);
  real* const weights = memory;
  int* const terms = (int*)(weights + CHAIN);
  real* const tile = (real*)(terms + CHAIN);
  rows.copy(tile, group, Result(call, (N - begin < THREADS * PER ? N : begin + THREADS * PER) - 1));
  const unsigned M = (unsigned)w[OUTPUTS], classes = (unsigned)w[CLASSES], chain = blockIdx.x / tiles % chains;
  const unsigned own_class = chain % classes, m = chain / classes;
  const long long before = w[w[CLASS_TABLE] + 2 * own_class + 1];
  const int K = (int)w[w[CLASS_TABLE] + 2 * own_class];
  const real* const weight = at<const real>(call, P_OPERAND) + (group * w[DEPTH] + before) * w[PADDED] + m;
  for (int i = threadIdx.x; i < K; i += THREADS)
    weights[i] = weight[i * w[PADDED]], terms[i] = rows.of_term(term(w, before + i));
  const long long channel = (long long)group * M + m, of_sample = call.words[OWN_GROUPS] * M * classes * each;
  const bool biased = w[BIAS] != 0;
  const real bias = biased ? at<const real>(call, P_BIAS)[channel] : (real)0;
  int here[PER];
  real sum[PER] = {};
#pragma unroll
  for (int r = 0; r < PER; r++) {
    const unsigned n = begin + threadIdx.x + r * THREADS;
    here[r] = n < N ? rows.at(Result(call, n)) : 0;
  }
  wait_for_all();
#pragma unroll 4
  for (int i = 0; i < K; i++) {
    const real factor = weights[i];
    const real* const term = tile + terms[i];
#pragma unroll
    for (int r = 0; r < PER; r++) sum[r] = fused(factor, term[here[r]], sum[r]);
  }
  real* const out = at<real>(call, OUT) + (channel * classes + own_class) * each;
#pragma unroll
  for (int r = 0; r < PER; r++) {
    const unsigned n = begin + threadIdx.x + r * THREADS;
    if (n >= N) return;
    const Result own(call, n);
    out[own.plane * of_sample + own.q] = biased ? add(sum[r], bias) : sum[r];
  }
}
#endif

#ifndef __CUDACC__
#if defined(WEIGHTS)
HOST_ENTRY(convolve_weights_planes)
#else
HOST_ENTRY(convolve_planes)
#endif
#endif
