// Convolutions of single channels and the gradients of their weights. The rows of the source that a range of results reads lie
// in shared memory, with +0 for what is outside of it, and a thread goes down its chain there. Words, tables and orders are
// those of convolutions.cu; there are no axes between the first and the last.
#include "places.cuh"
constexpr int CHAIN = 256;

// What a launch adds to the words: the first row and the first column that any term reads of result 0, the rows from the first
// to the last one, elements from row to row in shared memory, and blocks of a chain of a thread block.
enum { LOW, LEFT, EXTENT, PITCH, CHAINS_TOGETHER };

// The rows of the planes that results from `begin` on read, plane behind plane.
struct Rows {
  const Call& call;
  const long long* w;
  unsigned results, columns, plane, row;
  int rows, step, last_step, extent, pitch, first_lines, lines;
  METHOD Rows(const Call& call, const long long* w, unsigned begin)
      : call(call), w(w), results((unsigned)w[RESULTS]), columns((unsigned)w[LAST]), plane(begin / results),
        row(begin % results / columns), rows((int)(results / columns)), step((int)w[STEP]), last_step((int)w[LAST_STEP]),
        extent((int)call.words[EXTENT]), pitch((int)call.words[PITCH]),
        first_lines((rows - 1 - (int)row) * step + extent), lines((rows - 1) * step + extent) {}
  // The first line that a row of results reads.
  METHOD int line(unsigned of_plane, unsigned of_row) const {
    if (of_plane == plane) return (int)(of_row - row) * step;
    return first_lines + (int)(of_plane - plane - 1) * lines + (int)of_row * step;
  }
  // Where the element of a result lies that the term of the lowest row and column reads.
  METHOD int at(unsigned result) const {
    const unsigned q = result % results;
    return line(result / results, q / columns) * pitch + (int)(q % columns) * last_step;
  }
  METHOD int of_term(const Place& there) const {
    return (there.first - (int)call.words[LOW]) * pitch + there.last - (int)call.words[LEFT];
  }
  // Copy the rows that results up to `last` read: a warp for each.
  METHOD void copy(real* tile, unsigned group, unsigned last) const {
    const int all = line(last / results, last % results / columns) + extent, left = (int)call.words[LEFT];
    const real* const base = ::at<const real>(call, P_SOURCE) + group * w[SOURCE_PLANE] + left;
    for (int i = threadIdx.x / 32; i < all; i += THREADS / 32) {
      const int behind = i - first_lines, further = behind < 0 ? 0 : 1 + behind / lines;
      const int y = (int)call.words[LOW] + (behind < 0 ? i + (int)row * step : behind % lines);
      const real* const from = base + (plane + further) * w[GROUPS] * w[SOURCE_PLANE] + y * w[SOURCE_ROW];
      const bool in = (unsigned)y < (unsigned)w[SOURCE];
      for (int x = threadIdx.x % 32; x < pitch; x += 32)
        copy_one(tile + i * pitch + x, from + x, in && (unsigned)(x + left) < (unsigned)w[LAST_SOURCE]);
    }
    commit_copies();
    wait_copies<0>();
  }
};

#if defined(WEIGHTS)
// A thread block has some blocks of 256 results of a group, and each thread the sum of a weight over one of them.
KERNEL(THREADS, 1) convolve_weights_planes(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const long long* const w = at<const long long>(call, P_WORDS);
  const int N = (int)w[OUTPUTS], chains = (int)w[DEPTH] * N, together = (int)call.words[CHAINS_TOGETHER];
  const unsigned results = (unsigned)w[RESULTS], all = (unsigned)w[SAMPLES] * results, group = blockIdx.x;
  const unsigned begin = blockIdx.z * together * CHAIN, end = all - begin < together * CHAIN ? all : begin + together * CHAIN;
  real* const cotangents = memory;
  real* const tile = memory + N * together * (CHAIN + 1);
  const Rows rows(call, w, begin);
  for (int n = 0; n < N; n++)
    for (unsigned plane = rows.plane; plane * results < end; plane++) {
      const real* const from = at<const real>(call, P_OPERAND) + ((plane * w[GROUPS] + group) * N + n) * results;
      const unsigned stop = (plane + 1) * results < end ? (plane + 1) * results : end;
      const unsigned start = plane * results < begin ? begin : plane * results;
      for (unsigned i = start + threadIdx.x; i < stop; i += THREADS) {
        const unsigned block = (i - begin) / CHAIN;
        copy_one(cotangents + (n * together + block) * (CHAIN + 1) + (i - begin) % CHAIN, from + (i - plane * results), true);
      }
    }
  rows.copy(tile, group, end - 1);
  __syncthreads();
  const int block = threadIdx.x / chains, own = threadIdx.x % chains;
  const unsigned first = begin + block * CHAIN;
  if (block >= together || first >= end) return;
  const unsigned count = end - first < CHAIN ? end - first : CHAIN, columns = rows.columns;
  const real* const cotangent = cotangents + (own % N * together + block) * (CHAIN + 1);
  int here = rows.at(first) + rows.of_term(term(w, own / N));
  unsigned column = first % results % columns, row = first % results / columns;
  real sum = (real)0;
#pragma unroll 8
  for (unsigned i = 0; i < count; i++) {
    sum = fused(tile[here], cotangent[i], sum);
    here += rows.last_step;
    if (++column == columns) {
      column = 0, here += rows.step * rows.pitch - (int)columns * rows.last_step;
      if ((int)++row == rows.rows) row = 0, here += (rows.extent - rows.step) * rows.pitch;
    }
  }
  const long long weights = w[GROUPS] * chains, i = (long long)group * chains + own;
  if (all > CHAIN) at<real>(call, PARTIAL)[(first / CHAIN) * weights + i] = sum;
  else at<real>(call, OUT)[i] = sum;
}

#else
// A thread block has results of one output. By -D: PER, results of a thread.
KERNEL(THREADS, 4) convolve_planes(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const long long* const w = at<const long long>(call, P_WORDS);
  const unsigned M = (unsigned)w[OUTPUTS], results = (unsigned)w[RESULTS], N = (unsigned)w[SAMPLES] * results;
  const unsigned tiles = (N + THREADS * PER - 1) / (THREADS * PER), classes = (unsigned)w[CLASSES];
  const unsigned begin = blockIdx.x % tiles * (THREADS * PER), unit = blockIdx.x / tiles;
  const unsigned own_class = unit % classes, m = unit / classes % M, group = unit / classes / M;
  const long long before = w[w[CLASS_TABLE] + 2 * own_class + 1];
  const int K = (int)w[w[CLASS_TABLE] + 2 * own_class];
  const real* const weight = at<const real>(call, P_OPERAND) + (group * w[DEPTH] + before) * w[PADDED] + m;
  real* const weights = memory;
  int* const terms = (int*)(weights + CHAIN);
  real* const tile = (real*)(terms + CHAIN);
  const Rows rows(call, w, begin);
  for (int i = threadIdx.x; i < K; i += THREADS)
    weights[i] = weight[i * w[PADDED]], terms[i] = rows.of_term(term(w, before + i));
  rows.copy(tile, group, (N - begin < THREADS * PER ? N : begin + THREADS * PER) - 1);
  __syncthreads();
  int here[PER];
  real sum[PER] = {};
#pragma unroll
  for (int r = 0; r < PER; r++) {
    const unsigned n = begin + threadIdx.x + r * THREADS;
    here[r] = n < N ? rows.at(n) : 0;
  }
#pragma unroll 4
  for (int i = 0; i < K; i++) {
    const real factor = weights[i];
    const real* const term = tile + terms[i];
#pragma unroll
    for (int r = 0; r < PER; r++) sum[r] = fused(factor, term[here[r]], sum[r]);
  }
  const long long channel = (long long)group * M + m, of_sample = w[GROUPS] * M * classes * results;
#pragma unroll
  for (int r = 0; r < PER; r++) {
    const unsigned n = begin + threadIdx.x + r * THREADS;
    if (n >= N) return;
    if (w[BIAS]) sum[r] = add(sum[r], at<const real>(call, P_BIAS)[channel]);
    at<real>(call, OUT)[n / results * of_sample + (channel * classes + own_class) * results + n % results] = sum[r];
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
