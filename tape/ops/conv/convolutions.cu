// Convolutions, their adjoints by the input, and weight gradients, as contractions whose operands are gathered where
// they lie.
#include "places.cuh"

#if defined(TILES)
#include "tiles.cuh"

// Entries for the terms of two blocks of 256: while one is read, all threads write the next. Before its first stage is
// copied, a block's entries are a barrier old, since they are written a block before.
template <class Entry> struct Ring {
  const Entry& entry;
  int k0, K, t;
  METHOD void fill(int block) {
    for (int i = t; i < CHAIN; i += THREADS) entry(block % 2 * CHAIN + i, k0 + block * CHAIN + i, K);
  }
  METHOD void advance(int stage) {
    const int block = stage / (CHAIN / BK);
    if (stage % (CHAIN / BK) == 0 && k0 + (block + 1) * CHAIN < K) fill(block + 1);
  }
};
constexpr int RING = 2 * CHAIN;

// Elements of the source for BX results, each at all terms of a ring.
template <int BX, int PITCH> struct Results {
  using Own = Share<X_FAST, BX, THREADS>;
  Source source;
  const Place* ring;
  Place own[Own::XS];
  int k, to;
  METHOD void start(const long long* w, unsigned x0, unsigned X, int t) {
    const int r = Own::x(t);
    k = Own::k(t), to = k * PITCH + r;
#pragma unroll
    for (int i = 0; i < Own::XS; i++) {
      const unsigned x = x0 + r + i * Own::X_STEP;
      own[i] = x < X ? position(w, x) : nowhere();
    }
  }
  template <bool TAIL> METHOD void load(real* tile, int, real) {  // behind the last term nothing is in the source
    if (!Own::IDLE || to / PITCH < BK) {
#pragma unroll
      for (int h = 0; h < Own::KS; h++) {
        const Place there = ring[(k + h * Own::K_STEP) % RING];
#pragma unroll
        for (int i = 0; i < Own::XS; i++) source.copy(tile + to + h * Own::K_STEP * PITCH + i * Own::X_STEP, there, own[i]);
      }
    }
    k += BK;
  }
};

// Elements of the source for BX terms, which a table holds, each at all results of a ring.
template <int BX, int PITCH> struct Terms {
  using Own = Share<K_FAST, BX, THREADS>;
  Source source;
  const Place *ring, *terms;
  int k0, k, x, to;
  METHOD void start(int first, int t) { k0 = first, k = Own::k(t), x = Own::x(t), to = k * PITCH + x; }
  template <bool TAIL> METHOD void load(real* tile, int K, real pad) {
    if (!Own::IDLE || x < BX) {
#pragma unroll
      for (int h = 0; h < Own::KS; h++) {
        const Place there = ring[(k + h * Own::K_STEP) % RING];
        const bool behind = TAIL && k0 + k + h * Own::K_STEP >= K;
#pragma unroll
        for (int i = 0; i < Own::XS; i++) {
          real* const to_here = tile + to + h * Own::K_STEP * PITCH + i * Own::X_STEP;
          if (behind) *to_here = pad;
          else source.copy(to_here, there, terms[x + i * Own::X_STEP]);
        }
      }
    }
    k += BK;
  }
};

// Cotangents of BX outputs at the results of a ring, which holds where those of the first output lie.
template <int BX, int PITCH> struct Cotangents {
  using Own = Share<K_FAST, BX, THREADS>;
  const real* base;
  const long long* ring;
  long long apart;
  int left, k0, k, x, to;
  METHOD void start(int first, int outputs, int t) {
    k0 = first, k = Own::k(t), x = Own::x(t), to = k * PITCH + x, left = outputs - x;
  }
  template <bool TAIL> METHOD void load(real* tile, int K, real pad) {
    if (!Own::IDLE || x < BX) {
#pragma unroll
      for (int h = 0; h < Own::KS; h++) {
        const real* const from = base + ring[(k + h * Own::K_STEP) % RING] + x * apart;
        const bool behind = TAIL && k0 + k + h * Own::K_STEP >= K;
#pragma unroll
        for (int i = 0; i < Own::XS; i++) {
          real* const to_here = tile + to + h * Own::K_STEP * PITCH + i * Own::X_STEP;
          if (behind) *to_here = pad;
          else copy_one(to_here, from + i * Own::X_STEP * apart, i * Own::X_STEP < left);
        }
      }
    }
    k += BK;
  }
};

// What lies behind the stages and the running totals in shared memory.
template <bool APART> DEV Place* tables(real* memory) {
  return (Place*)(memory + STAGES * STAGE + (APART ? 0 : BM * BN));
}

#if defined(RESULT_MODE)
KERNEL(THREADS, BLOCKS) convolve(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const long long* const w = at<const long long>(call, P_WORDS);
  const int M = (int)w[OUTPUTS], t = threadIdx.x, classes = (int)w[CLASSES], tiles_m = (M + BM - 1) / BM;
  const unsigned results = (unsigned)w[RESULTS], N = (unsigned)w[SAMPLES] * results, tiles_n = (N + BN - 1) / BN;
  const unsigned unit = blockIdx.x / tiles_m, n0 = unit % tiles_n * BN;
  const int m0 = blockIdx.x % tiles_m * BM, own_class = unit / tiles_n % classes, group = unit / tiles_n / classes;
  const long long before = w[w[CLASS_TABLE] + 2 * own_class + 1], of_sample = w[GROUPS] * M * classes * results;
  const int K = (int)w[w[CLASS_TABLE] + 2 * own_class];
  Place* const ring = tables<false>(memory);
  auto entry = [=](int i, int k, int end) { ring[i] = k < end ? term(w, before + k) : nowhere(); };
  Ring<decltype(entry)> table{entry, 0, K, t};
  Strided<RESULT_MODE, BM, PA> load_a;
  Results<BN, PB> load_b{Source(call, w, group), ring};
  load_a.start(at<const real>(call, P_OPERAND) + (group * w[DEPTH] + before) * w[PADDED], 1, w[PADDED], m0, (int)w[PADDED], 0, t);
  load_b.start(w, n0, N, t);
  table.fill(0);
  __syncthreads();
  const bool biased = w[BIAS] != 0, even = results % VN == 0 && (size_t)call.pointers[OUT] % 16 == 0;
  contract<false>(load_a, load_b, table, 0, K, memory, t, [&](int, int row, int column, Run<VN> run) {
    const int m = m0 + row;
    const unsigned n = n0 + column;
    if (m >= M || n >= N) return;
    const long long channel = (long long)group * M + m;
    real* const to = at<real>(call, OUT) + (channel * classes + own_class) * results;
    if (biased) {
      const real bias = at<const real>(call, P_BIAS)[channel];
#pragma unroll
      for (int q = 0; q < VN; q++) run.v[q] = add(run.v[q], bias);
    }
    if (even) {
      *(Run<VN>*)(to + n / results * of_sample + n % results) = run;
    } else {
#pragma unroll
      for (int q = 0; q < VN; q++)
        if (n + q < N) to[(n + q) / results * of_sample + (n + q) % results] = run.v[q];
    }
  });
}

#else
constexpr bool SPLIT = WEIGHTS;

KERNEL(THREADS, BLOCKS) convolve_weights(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const long long* const w = at<const long long>(call, P_WORDS);
  const int M = (int)w[DEPTH], N = (int)w[OUTPUTS], t = threadIdx.x;
  const int tiles_m = (M + BM - 1) / BM, tiles_n = (N + BN - 1) / BN, group = blockIdx.x / (tiles_m * tiles_n);
  const int m0 = blockIdx.x % tiles_m * BM, n0 = blockIdx.x / tiles_m % tiles_n * BN, all = (int)(w[SAMPLES] * w[RESULTS]);
  const int k0 = SPLIT ? blockIdx.z * (int)call.words[EACH] * CHAIN : 0;
  const int K = SPLIT ? least(all, k0 + (int)call.words[EACH] * CHAIN) : all;
  Place *const ring = tables<SPLIT>(memory), *const terms = ring + RING;
  long long* const cotangents = (long long*)(terms + BM);
  auto entry = [=](int i, unsigned k, unsigned end) {
    const unsigned results = (unsigned)w[RESULTS];
    ring[i] = k < end ? position(w, k) : nowhere();
    cotangents[i] = k < end ? k / results * (w[GROUPS] * w[OUTPUTS] * results) + k % results : 0;
  };
  Ring<decltype(entry)> table{entry, k0, K, t};
  Terms<BM, PA> load_a{Source(call, w, group), ring, terms};
  Cotangents<BN, PB> load_b{
      at<const real>(call, P_OPERAND) + (group * w[OUTPUTS] + n0) * w[RESULTS], cotangents, w[RESULTS]};
  load_a.start(k0, t), load_b.start(k0, N - n0, t);
  if (K > k0) {
    for (int i = t; i < BM; i += THREADS) terms[i] = m0 + i < M ? term(w, m0 + i) : nowhere();
    table.fill(0);
  }
  __syncthreads();
  contract<SPLIT>(load_a, load_b, table, k0, K, memory, t, [&](int block, int row, int column, Run<VN> run) {
    const int m = m0 + row, n = n0 + column;
    const long long i = ((long long)group * M + m) * N + n;
    real* to = at<real>(call, OUT) + i;
    if (SPLIT) to = at<real>(call, PARTIAL) + (blockIdx.z * call.words[EACH] + block) * w[GROUPS] * M * N + i;
    if (m < M && n < N && N % VN == 0 && (size_t)call.pointers[OUT] % 16 == 0) {
      *(Run<VN>*)to = run;
    } else {
#pragma unroll
      for (int q = 0; q < VN; q++)
        if (m < M && n + q < N) to[q] = run.v[q];
    }
  });
}
#endif
#else
// The sums of all blocks of terms, added from left to right; words: elements, blocks.
KERNEL(256, 1) fold(PARAMETER Call call, Report) {
  const long long i = blockIdx.x * 256ll + threadIdx.x, count = call.words[0];
  if (i >= count) return;
  const real* const sums = at<const real>(call, PARTIAL) + i;
  real total = sums[0];
#pragma unroll 8
  for (long long part = 1; part < call.words[1]; part++) total = add(total, sums[part * count]);
  at<real>(call, OUT)[i] = total;
}

// Weights as (groups, terms of all classes, padded outputs), which is not the CPU's order.
KERNEL(256, 1) pack_weights(PARAMETER Call call, Report) {
  const long long* const w = at<const long long>(call, P_WORDS);
  const long long i = blockIdx.x * 256ll + threadIdx.x, output = i % w[WEIGHT_PADDED], row = i / w[WEIGHT_PADDED];
  if (row >= w[WEIGHT_GROUPS] * w[WEIGHT_DEPTH] || output >= w[WEIGHT_OUTPUTS]) return;
  const long long offset = w[WEIGHT_TABLES + 2 * w[WEIGHT_CLASSES] + row % w[WEIGHT_DEPTH]];
  const long long own = row / w[WEIGHT_DEPTH] * w[GROUP_STRIDE] + output * w[OUTPUT_STRIDE];
  at<real>(call, OUT)[i] = at<const real>(call, P_SOURCE)[own + offset];
}

// Results class by class, put between each other: a warp for the rows of each line that lie between each other, as they stand in
// the table one behind the other.
KERNEL(256, 1) interleave(PARAMETER Call call, Report) {
  const long long* const w = at<const long long>(call, P_WORDS);
  const unsigned apart = (unsigned)w[APART], all = (unsigned)w[INTERLEAVED_ROWS], blocks = (all / apart + 7) / 8;
  const unsigned line = blockIdx.x / blocks, first = (blockIdx.x % blocks * 8 + threadIdx.x / 32) * apart;
  if (first >= all) return;
  const long long* const rows = w + ROW_TABLE + 3 * first;
  const real* const from = at<const real>(call, P_SOURCE) + line * w[SOURCE_LINE];
  real* const to = at<real>(call, OUT) + line * w[LINE];
  for (unsigned e = threadIdx.x % 32; e < apart * rows[2]; e += 32) {
    const unsigned q = e / apart, r = e % apart;
    if (q < rows[3 * r + 2]) to[rows[3 * r + 1] + q * apart] = from[rows[3 * r] + q];
  }
}
#endif

#ifndef __CUDACC__
#if defined(RESULT_MODE)
HOST_ENTRY(convolve)
#elif defined(WEIGHTS)
HOST_ENTRY(convolve_weights)
#else
HOST_ENTRY(fold)
HOST_ENTRY(pack_weights)
HOST_ENTRY(interleave)
#endif
#endif
