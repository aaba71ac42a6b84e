// Matrix products. Words are those of the CPU's kernel up to MASK, strides in elements, then what a launch adds.
#include "same_bits.cuh"

enum {
  BATCH, W_M, W_N, W_K, GROUP, A_GROUP, A_MATRIX, A_ROW, A_COLUMN, B_GROUP, B_MATRIX, B_ROW, B_COLUMN, BIAS, RELU,
  MASK, ADDED, EACH
};
// Positions of the addresses: what a launch does not have stands as the output.
enum { OUT, P_A, P_B, P_BIAS, P_MASK, P_ADDED, PARTIAL };

// A total after bias, relu, mask and what is added to it, as far as there are any; rows are counted through the batch.
DEV real finished(real total, const Call& call, long long row, int column) {
  if (call.words[BIAS]) total = add(total, at<const real>(call, P_BIAS)[column]);
  if (call.words[RELU]) total = total <= (real)0 ? (real)0 : total;
  if (call.words[MASK]) total = at<const real>(call, P_MASK)[row * call.words[W_N] + column] > (real)0 ? total : (real)0;
  if (call.words[ADDED]) total = add(at<const real>(call, P_ADDED)[row * call.words[ADDED] + column], total);
  return total;
}

#if defined(TILES) || defined(SLICES)
#include "tiles.cuh"

constexpr int GROUP_ROWS = 8;  // rows of tiles that run together, for the second-level cache

struct Matrices {
  const real *a, *b;
  int batch, m0, n0;
};

// One matrix of an operand; the words at the two positions are its batch strides.
DEV const real* matrix(const Call& call, int operand, int batch, int group_stride, int matrix_stride) {
  const int group = (int)call.words[GROUP];
  return at<const real>(call, operand) + batch / group * call.words[group_stride] + batch % group * call.words[matrix_stride];
}

// The tile of a block, and the matrices that it lies in.
DEV Matrices located(const Call& call) {
  const int tiles_m = ((int)call.words[W_M] + BM - 1) / BM, tiles_n = ((int)call.words[W_N] + BN - 1) / BN;
  const int tiles = tiles_m * tiles_n, batch = blockIdx.x / tiles, tile = blockIdx.x % tiles;
  const int per = GROUP_ROWS * tiles_n, top = tile / per * GROUP_ROWS, rows = least(tiles_m - top, GROUP_ROWS);
  return {matrix(call, P_A, batch, A_GROUP, A_MATRIX), matrix(call, P_B, batch, B_GROUP, B_MATRIX), batch,
          (top + tile % per % rows) * BM, tile % per / rows * BN};
}

// N neighbours of a row, of which the last ones may lie outside; `whole` if none does and all are aligned.
template <int N> DEV void store(real* to, const Run<N>& run, int left, bool whole) {
  if (whole) {
    *(Run<N>*)to = run;
  } else {
#pragma unroll
    for (int q = 0; q < N; q++)
      if (q < left) to[q] = run.v[q];
  }
}
#endif

#if defined(TILES)
KERNEL(THREADS, BLOCKS) gemm(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const Matrices own = located(call);
  const int M = (int)call.words[W_M], N = (int)call.words[W_N], t = threadIdx.x;
  const int k0 = SPLIT ? blockIdx.z * (int)call.words[EACH] * CHAIN : 0;
  const int K = SPLIT ? least((int)call.words[W_K], k0 + (int)call.words[EACH] * CHAIN) : (int)call.words[W_K];
  Strided<A_MODE, BM, PA> load_a;
  Strided<B_MODE, BN, PB> load_b;
  load_a.start(own.a, call.words[A_ROW], call.words[A_COLUMN], own.m0, M, k0, t);
  load_b.start(own.b, call.words[B_COLUMN], call.words[B_ROW], own.n0, N, k0, t);
  NoTable none;
  const bool even = N % VN == 0 && (size_t)call.pointers[OUT] % 16 == 0;
  contract<SPLIT>(load_a, load_b, none, k0, K, memory, t, [&](int block, int row, int column, Run<VN> run) {
    const int m = own.m0 + row, n = own.n0 + column;
    if (m >= M || n >= N) return;
    const long long r = (long long)own.batch * M + m, i = r * N + n;
    if (SPLIT) {
      const long long part = blockIdx.z * call.words[EACH] + block;
      store<VN>(at<real>(call, PARTIAL) + part * call.words[BATCH] * M * N + i, run, N - n, N % VN == 0);
    } else {
#pragma unroll
      for (int q = 0; q < VN; q++)
        if (n + q < N) run.v[q] = finished(run.v[q], call, r, n + q);
      store<VN>(at<real>(call, OUT) + i, run, N - n, even);
    }
  });
}
#elif defined(SLICES)
// For outputs of few tiles: SLICES groups of threads of one block each have a block of 256 terms of their own.
KERNEL(THREADS * SLICES, BLOCKS) gemm(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  constexpr int ALL = THREADS * SLICES, OWN = BM * BN / ALL;
  const Matrices own = located(call);
  const int M = (int)call.words[W_M], N = (int)call.words[W_N], K = (int)call.words[W_K];
  const int slice = threadIdx.x / THREADS, t = threadIdx.x % THREADS;
  const Lane lane(t);
  real* const stages = memory + slice * STAGES * STAGE;
  real* const sums = memory + SLICES * STAGES * STAGE;
  real total[OWN];
#pragma unroll
  for (int q = 0; q < OWN; q++) total[q] = (real)0;
  for (int first = 0; first < K; first += SLICES * CHAIN) {
    const int k0 = first + slice * CHAIN, k1 = least(k0 + CHAIN, K);
    const int tiles = k1 > k0 ? (k1 - k0 + BK - 1) / BK : 0, most = (least(K - first, CHAIN) + BK - 1) / BK;
    Strided<A_MODE, BM, PA> load_a;
    Strided<B_MODE, BN, PB> load_b;
    load_a.start(own.a, call.words[A_ROW], call.words[A_COLUMN], own.m0, M, k0, t);
    load_b.start(own.b, call.words[B_COLUMN], call.words[B_ROW], own.n0, N, k0, t);
    int loaded = 0, into = 0, read = 0;
    auto load = [&] {
      real* stage = stages + into * STAGE;
      if (k0 + (loaded + 1) * BK <= k1) {
        load_a.template load<false>(stage, k1, (real)-0.0), load_b.template load<false>(stage + A_SIZE, k1, (real)0);
      } else if (loaded < tiles) {
        load_a.template load<true>(stage, k1, (real)-0.0), load_b.template load<true>(stage + A_SIZE, k1, (real)0);
      }
      commit_copies();
      loaded++, into = into + 1 == STAGES ? 0 : into + 1;
    };
    for (int s = 0; s < STAGES - 1; s++) load();
    real acc[TM][TN], a[2][TM], b[2][TN];
    clear(acc);
#pragma unroll 1
    for (int kt = 0; kt < most; kt++) {
      wait_copies<STAGES - 2>();
      __syncthreads();
      load();
      const real* stage = stages + read * STAGE;
      read = read + 1 == STAGES ? 0 : read + 1;
      if (kt < tiles) {
        fragment(a[0], b[0], stage, 0, lane);
#pragma unroll
        for (int k = 0; k < BK; k++) {
          if (k + 1 < BK) fragment(a[(k + 1) % 2], b[(k + 1) % 2], stage, k + 1, lane);
#pragma unroll
          for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j++) acc[i][j] = fused(a[k % 2][i], b[k % 2][j], acc[i][j]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j += VN) {
        Run<VN> run;
#pragma unroll
        for (int q = 0; q < VN; q++) run.v[q] = acc[i][j + q];
        *(Run<VN>*)(sums + (slice * BM + lane.row(i)) * BN + lane.column(j)) = run;
      }
    __syncthreads();
    for (int s = 0; s < SLICES && first + s * CHAIN < K; s++)
#pragma unroll
      for (int q = 0; q < OWN; q++) {
        const real sum = sums[s * BM * BN + q * ALL + threadIdx.x];
        total[q] = first + s ? add(total[q], sum) : sum;
      }
    __syncthreads();
  }
  wait_copies<0>();
#pragma unroll
  for (int q = 0; q < OWN; q++) {
    const int e = q * ALL + threadIdx.x, m = own.m0 + e / BN, n = own.n0 + e % BN;
    const long long r = (long long)own.batch * M + m;
    if (m < M && n < N) at<real>(call, OUT)[r * N + n] = finished(total[q], call, r, n);
  }
}
#else
// The sums of all blocks of terms, which lie one output after the other: added from left to right, and finished.
KERNEL(256, 1) fold(PARAMETER Call call, Report) {
  const long long count = call.words[BATCH] * call.words[W_M] * call.words[W_N];
  const long long i = blockIdx.x * 256ll + threadIdx.x, parts = call.words[EACH];
  if (i >= count) return;
  const real* sums = at<const real>(call, PARTIAL) + i;
  real total = sums[0];
#pragma unroll 8
  for (long long part = 1; part < parts; part++) total = add(total, sums[part * count]);
  at<real>(call, OUT)[i] = finished(total, call, i / call.words[W_N], (int)(i % call.words[W_N]));
}

// out[j, i] = x[i, j], before large products, for speed alone; words: rows, columns, elements from row to row.
KERNEL(256, 1) transpose(PARAMETER Call call, Report) {
  constexpr int SIDE = 32, PITCH = SIDE + 1;
  DYNAMIC_SHARED(real, tile);
  const long long rows = call.words[0], columns = call.words[1], wide = (columns + SIDE - 1) / SIDE;
  const long long i0 = blockIdx.x / wide * SIDE, j0 = blockIdx.x % wide * SIDE;
  const int across = threadIdx.x % SIDE, down = threadIdx.x / SIDE;
  for (int i = down; i < SIDE; i += 256 / SIDE)
    if (i0 + i < rows && j0 + across < columns)
      tile[i * PITCH + across] = at<const real>(call, 1)[(i0 + i) * call.words[2] + j0 + across];
  __syncthreads();
  for (int j = down; j < SIDE; j += 256 / SIDE)
    if (j0 + j < columns && i0 + across < rows) at<real>(call, 0)[(j0 + j) * rows + i0 + across] = tile[across * PITCH + j];
}
#endif

#ifndef __CUDACC__
#if defined(TILES) || defined(SLICES)
HOST_ENTRY(gemm)
#else
HOST_ENTRY(fold)
HOST_ENTRY(transpose)
#endif
#endif
