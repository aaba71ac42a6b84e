// Convolutions whose groups have too few outputs to fill a tile, and weight gradients of few terms: a thread has an output,
// and goes down its chain alone. Words, tables and orders are those of convolutions.cu.
#include "places.cuh"
constexpr int CHAIN = 256;

#if defined(WEIGHTS)
// A thread block has one block of 256 results of a group, and each thread the sum of a weight over them.
KERNEL(THREADS, 1) convolve_weights_direct(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const long long* const w = at<const long long>(call, P_WORDS);
  const unsigned M = (unsigned)w[DEPTH], N = (unsigned)w[OUTPUTS], all = (unsigned)(w[SAMPLES] * w[RESULTS]);
  const unsigned tiles = (M * N + THREADS - 1) / THREADS, group = blockIdx.x / tiles;
  const unsigned own = blockIdx.x % tiles * THREADS + threadIdx.x, first = blockIdx.z * CHAIN;
  const unsigned results = (unsigned)w[RESULTS], count = all - first < CHAIN ? all - first : CHAIN;
  Place* const places = (Place*)memory;
  long long* const cotangents = (long long*)(places + CHAIN);
  const long long of_sample = w[GROUPS] * N * results;
  for (unsigned i = threadIdx.x; i < count; i += THREADS) {
    places[i] = position(w, first + i);
    cotangents[i] = (first + i) / results * of_sample + (first + i) % results;
  }
  __syncthreads();
  if (own >= M * N) return;
  const unsigned m = own / N, n = own % N;
  const Source source(call, w, group);
  const Place there = term(w, m);
  const real* const cotangent = at<const real>(call, P_OPERAND) + (long long)(group * N + n) * results;
  real sum = (real)0;
#pragma unroll 8
  for (unsigned i = 0; i < count; i++) sum = fused(source.value(places[i], there), cotangent[cotangents[i]], sum);
  const long long i = (long long)group * M * N + own;
  if (gridDim.z > 1) at<real>(call, PARTIAL)[blockIdx.z * w[GROUPS] * M * N + i] = sum;
  else at<real>(call, OUT)[i] = sum;
}

#else
// A thread block has results of one output, whose terms it holds, a block of 256 at a time. By -D: PER, results of a thread.
KERNEL(THREADS, 4) convolve_direct(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const long long* const w = at<const long long>(call, P_WORDS);
  const unsigned M = (unsigned)w[OUTPUTS], results = (unsigned)w[RESULTS], N = (unsigned)w[SAMPLES] * results;
  const unsigned tiles = (N + THREADS * PER - 1) / (THREADS * PER), classes = (unsigned)w[CLASSES];
  const unsigned n0 = blockIdx.x % tiles * (THREADS * PER) + threadIdx.x, unit = blockIdx.x / tiles;
  const unsigned own_class = unit % classes, m = unit / classes % M, group = unit / classes / M;
  const long long before = w[w[CLASS_TABLE] + 2 * own_class + 1];
  const int K = (int)w[w[CLASS_TABLE] + 2 * own_class];
  const real* const weight = at<const real>(call, P_OPERAND) + (group * w[DEPTH] + before) * w[PADDED] + m;
  Place* const terms = (Place*)memory;
  real* const weights = (real*)(terms + CHAIN);
  const Source source(call, w, group);
  Place here[PER];
  real total[PER];
#pragma unroll
  for (int r = 0; r < PER; r++) {
    const unsigned n = n0 + r * THREADS;
    here[r] = n < N ? position(w, n) : nowhere(), total[r] = (real)0;
  }
  for (int first = 0; first < K; first += CHAIN) {
    const int count = K - first < CHAIN ? K - first : CHAIN;
    if (first) __syncthreads();
    for (int i = threadIdx.x; i < count; i += THREADS) {
      terms[i] = term(w, before + first + i);
      weights[i] = weight[(first + i) * w[PADDED]];
    }
    __syncthreads();
    real sum[PER] = {};
#pragma unroll 4
    for (int i = 0; i < count; i++)
#pragma unroll
      for (int r = 0; r < PER; r++) sum[r] = fused(weights[i], source.value(terms[i], here[r]), sum[r]);
#pragma unroll
    for (int r = 0; r < PER; r++) total[r] = first ? add(total[r], sum[r]) : sum[r];
  }
  const long long channel = (long long)group * M + m, of_sample = w[GROUPS] * M * classes * results;
#pragma unroll
  for (int r = 0; r < PER; r++) {
    const unsigned n = n0 + r * THREADS;
    if (n >= N) return;
    if (w[BIAS]) total[r] = add(total[r], at<const real>(call, P_BIAS)[channel]);
    at<real>(call, OUT)[n / results * of_sample + (channel * classes + own_class) * results + n % results] = total[r];
  }
}
#endif

#ifndef __CUDACC__
#if defined(WEIGHTS)
HOST_ENTRY(convolve_weights_direct)
#else
HOST_ENTRY(convolve_direct)
#endif
#endif
