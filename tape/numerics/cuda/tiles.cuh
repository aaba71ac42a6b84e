// Contractions tile by tile: per output one fma chain over the terms in blocks of 256, from +0, the blocks' sums added
// from left to right. The operands' loaders say where elements lie, so products and convolutions are one loop.
//
// By -D: the tile BM x BN; BK terms of a stage; TM x TN outputs of a thread; LM lanes of a warp along m and
// 32 / LM along n; WN warps along n; STAGES; BLOCKS that shall fit on a multiprocessor.
#pragma once
#include "same_bits.cuh"
constexpr int CHAIN = 256, V = 16 / (int)sizeof(real), LN = 32 / LM;
constexpr int VM = TM < V ? TM : V, VN = TN < V ? TN : V;
constexpr int THREADS = (BM / TM) * (BN / TN), PA = BM + V, PB = BN + V, A_SIZE = BK * PA, STAGE = BK * (PA + PB);
static_assert(WN * LN * TN == BN && THREADS % 32 == 0 && THREADS / 32 / WN * LM * TM == BM, "warps fill the tile");
static_assert(CHAIN % BK == 0 && BK % 8 == 0 && TM % VM == 0 && TN % VN == 0, "whole stages and vectors");

// Neighbouring threads copy neighbours along k; along x; 16 bytes along x.
enum { K_FAST, X_FAST, X_VECTOR };

constexpr DEV int least(int a, int b) { return a < b ? a : b; }

// Which elements of a stage of BX x BK a thread copies: `x()` and `k()` of the first, then every DOWN-th or ACROSS-th.
template <int MODE, int BX, int T> struct Share {
  static constexpr int WIDTH = MODE == X_VECTOR ? V : 1, UNITS = BX / WIDTH;
  static constexpr int ACROSS = MODE == K_FAST ? 8 : least(UNITS, T), DOWN = T / ACROSS;
  static constexpr int X_STEP = MODE == K_FAST ? DOWN : ACROSS * WIDTH, K_STEP = MODE == K_FAST ? 8 : DOWN;
  static constexpr int XS = (BX + X_STEP - 1) / X_STEP, KS = (BK + K_STEP - 1) / K_STEP;
  static constexpr bool IDLE = (MODE == K_FAST ? DOWN > BX : DOWN > BK);  // more threads than elements
  METHOD static int x(int t) { return MODE == K_FAST ? t / ACROSS : t % ACROSS * WIDTH; }
  METHOD static int k(int t) { return MODE == K_FAST ? t % ACROSS : t / ACROSS; }
  METHOD static bool idle(int t) { return IDLE && (MODE == K_FAST ? x(t) >= BX : k(t) >= BK); }
  static_assert(T % ACROSS == 0, "every thread has a share");
  static_assert(IDLE || (BX % X_STEP == 0 && BK % K_STEP == 0), "shares are whole");
};

// An operand with strides. Copies BX x BK elements into tile[k][x]; outside of x it is +0, which is not used. `pad`
// stands behind the last term: -0 for a, +0 for b, since fma(-0, +0, s) is s for every s, and fma(+0, +0, -0) is not.
template <int MODE, int BX, int PITCH, int T = THREADS> struct Strided {
  using Own = Share<MODE, BX, T>;
  const real* p;
  long long xs, ks;
  int k, to;
  unsigned in;
  bool aligned, idle;
  METHOD void start(const real* x, long long x_stride, long long k_stride, int x0, int X, int k0, int t) {
    const int r = Own::x(t), dk = Own::k(t);
    xs = x_stride, ks = k_stride, k = k0 + dk, to = dk * PITCH + r, in = 0, idle = Own::idle(t);
    aligned = (size_t)x % 16 == 0;
    p = x + (x0 + r) * xs + k * ks;
#pragma unroll
    for (int i = 0; i < Own::XS; i++) in |= (unsigned)(x0 + r + i * Own::X_STEP < X) << i;
  }
  template <bool TAIL> METHOD void load(real* tile, int K, real pad) {
    if (!idle) {
#pragma unroll
      for (int h = 0; h < Own::KS; h++)
#pragma unroll
        for (int i = 0; i < Own::XS; i++) {
          real* there = tile + to + h * Own::K_STEP * PITCH + i * Own::X_STEP;
          const bool here = in >> i & 1;
          const real* from = p + h * Own::K_STEP * ks + i * Own::X_STEP * xs;
          if (TAIL && k + h * Own::K_STEP >= K) {
#pragma unroll
            for (int q = 0; q < Own::WIDTH; q++) there[q] = pad;
          } else if (MODE == X_VECTOR && aligned) {
            copy_vector(there, from, here);
          } else {
#pragma unroll
            for (int q = 0; q < Own::WIDTH; q++) copy_one(there + q, from + q, here);
          }
        }
    }
    p += BK * ks, k += BK;
  }
};

// Terms that need no table.
struct NoTable {
  METHOD void advance(int) {}
};

// T numbers of a thread, in runs of N that lie STEP apart.
template <int T, int N, int STEP> DEV void numbers(real (&to)[T], const real* from) {
#pragma unroll
  for (int g = 0; g < T / N; g++) {
    const Run<N> run = *(const Run<N>*)(from + g * STEP);
#pragma unroll
    for (int q = 0; q < N; q++) to[N * g + q] = run.v[q];
  }
}

// The place in the tile of a thread's output (i, j).
struct Lane {
  int m, n;
  METHOD explicit Lane(int t)
      : m(t / 32 / WN * (LM * TM) + t % 32 / LN * VM), n(t / 32 % WN * (LN * TN) + t % 32 % LN * VN) {}
  METHOD int row(int i) const { return m + i / VM * LM * VM + i % VM; }
  METHOD int column(int j) const { return n + j / VN * LN * VN + j % VN; }
};

DEV void fragment(real (&a)[TM], real (&b)[TN], const real* stage, int k, const Lane& lane) {
  numbers<TM, VM, LM * VM>(a, stage + k * PA + lane.m);
  numbers<TN, VN, LN * VN>(b, stage + A_SIZE + k * PB + lane.n);
}

DEV void clear(real (&acc)[TM][TN]) {
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) acc[i][j] = (real)0;
}

// The terms k0 to K of a tile. `memory` holds STAGES stages and, unless APART, the tile's running totals. If APART
// every block's sum is written apart, `write(block, row, column, run of VN sums)`; else the total once, as block 0.
// `table.advance(stage)` is called by all threads before stage `stage` is copied.
template <bool APART, class A, class B, class Table, class Write>
DEV void contract(A& load_a, B& load_b, Table& table, int k0, int K, real* memory, int t, const Write& write) {
  const Lane lane(t);
  const int tiles = (K - k0 + BK - 1) / BK;
  int loaded = 0, into = 0, read = 0;
  auto load = [&] {
    real* stage = memory + into * STAGE;
    if (loaded < tiles) {
      table.advance(loaded);
      if (k0 + (loaded + 1) * BK <= K) {
        load_a.template load<false>(stage, K, (real)-0.0), load_b.template load<false>(stage + A_SIZE, K, (real)0);
      } else {
        load_a.template load<true>(stage, K, (real)-0.0), load_b.template load<true>(stage + A_SIZE, K, (real)0);
      }
    }
    commit_copies();
    loaded++, into = into + 1 == STAGES ? 0 : into + 1;
  };
  for (int s = 0; s < STAGES - 1; s++) load();
  wait_copies<STAGES - 2>();
  __syncthreads();

  real acc[TM][TN], a[2][TM], b[2][TN];
  auto put = [&](int block) {
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j += VN) {
        Run<VN> run;
#pragma unroll
        for (int q = 0; q < VN; q++) run.v[q] = acc[i][j + q];
        write(block, lane.row(i), lane.column(j), run);
      }
  };
  Run<VN>* totals = (Run<VN>*)(memory + STAGES * STAGE) + t;
  fragment(a[0], b[0], memory, 0, lane);
  clear(acc);
  for (int first = 0; first < tiles; first += CHAIN / BK) {
    const int stop = least(first + CHAIN / BK, tiles);
    clear(acc);
#pragma unroll 1
    for (int kt = first; kt < stop; kt++) {
      const real* stage = memory + read * STAGE;
      read = read + 1 == STAGES ? 0 : read + 1;
#pragma unroll
      for (int k = 0; k < BK; k++) {
        if (k == BK - 1) {
          wait_copies<STAGES - 2>();
          __syncthreads();
          fragment(a[(k + 1) % 2], b[(k + 1) % 2], memory + read * STAGE, 0, lane);
        } else {
          fragment(a[(k + 1) % 2], b[(k + 1) % 2], stage, k + 1, lane);
        }
        if (k == 0) load();
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
          for (int j = 0; j < TN; j++) acc[i][j] = fused(a[k % 2][i], b[k % 2][j], acc[i][j]);
      }
    }
    if constexpr (APART) {
      put(first / (CHAIN / BK));
    } else {
      const bool more = stop < tiles;
      if (first == 0 && !more) break;
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j += VN) {
          Run<VN>* mine = totals + (i * TN + j) / VN * THREADS;
          if (first) {
            const Run<VN> run = *mine;
#pragma unroll
            for (int q = 0; q < VN; q++) acc[i][j + q] = add(run.v[q], acc[i][j + q]);
          }
          if (more) {
            Run<VN> run;
#pragma unroll
            for (int q = 0; q < VN; q++) run.v[q] = acc[i][j + q];
            *mine = run;
          }
        }
    }
  }
  wait_copies<0>();
  if constexpr (!APART) put(0);
}
