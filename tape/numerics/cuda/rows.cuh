// Rows of numbers: sums in sixteen lanes, as the contract has them, by blocks of 4096. By -D: GROUPS, how a team of threads
// has a row. With none, sixteen threads go along it, and eight teams are a thread block. Else a thread block is a team: all
// of it computes the terms of so many blocks at a time into shared memory, where a warp for each block adds them.
#pragma once
#include "same_bits.cuh"
constexpr int LANES = 16, WARP = 32, ROW_BLOCK = 4096, ROWS_AT_ONCE = GROUPS ? 1 : 8;
constexpr int TEAM = GROUPS > 1 ? 512 : GROUPS ? 256 : LANES, THREADS = TEAM * ROWS_AT_ONCE;

// -inf.
DEV real lowest() {
  typedef decltype(bits((real)0)) Bits;
  return from_bits((Bits)(sizeof(real) == 4 ? 0xff800000ull : 0xfff0000000000000ull));
}

struct Team {
  long long row;
  bool here;  // a team behind the last row does as the last one does, and writes nothing
  int own, lane;  // of a team, and of sixteen
  real *sums, *staged;  // shared by a thread block that is a team
  METHOD Team(long long rows, real* memory)
      : row((long long)blockIdx.x * ROWS_AT_ONCE + threadIdx.x / TEAM), here(row < rows), own(threadIdx.x % TEAM),
        lane(threadIdx.x % LANES), sums(memory), staged(memory + WARP) {
    if (!here) row = rows - 1;
  }
  METHOD bool first() const { return here && own == 0; }

  // Every element of a row once; an element is always the same thread's.
  template <class Action> METHOD void each(long long n, const Action& action) const { each(0, n, action); }
  template <class Action> METHOD void each(long long from, long long to, const Action& action) const {
#pragma unroll 8
    for (long long i = from + own; i < to; i += TEAM) action(i);
  }

  // The same in two: the values of several elements are there before the first is put anywhere, so that the thread waits
  // for them together. The compiler may not turn this around, for what is put could be what is read next.
  template <class Value, class Put> METHOD void each(long long from, long long to, const Value& value, const Put& put) const {
    constexpr int TOGETHER = 8;
    for (long long first = from + own; first < to; first += TOGETHER * TEAM) {
      real found[TOGETHER];
#pragma unroll
      for (int k = 0; k < TOGETHER; k++) {
        const long long i = first + k * TEAM;
        found[k] = value(i < to ? i : to - 1);
      }
#pragma unroll
      for (int k = 0; k < TOGETHER; k++)
        if (first + k * TEAM < to) put(first + k * TEAM, found[k]);
    }
  }

  // lane[l] += lane[l + h] for h = 8, 4, 2, 1; all sixteen get lane 0.
  METHOD real folded(real mine) const {
#pragma unroll
    for (int h = LANES / 2; h; h /= 2) mine = add(mine, __shfl_down_sync(0xffffffffu, mine, h, LANES));
    return __shfl_sync(0xffffffffu, mine, 0, LANES);
  }

  // The sum along a row. Whole warps go through the same blocks, whether there are elements in them or not.
  template <class Term> METHOD real sum(long long n, const Term& term) const { return sum(n, n, term); }

  // The same of the `there` elements that a row of up to `n` has.
  template <class Term> METHOD real sum(long long n, long long there, const Term& term) const {
    real total = (real)0;
    constexpr long long ROUND = (long long)(GROUPS ? GROUPS : 1) * ROW_BLOCK;
    for (long long start = 0; start < n; start += ROUND) {
      const long long stop = start + ROUND < there ? start + ROUND : there;
      if (!GROUPS) {
        real mine = (real)0;
        each(start, stop, [&](long long i) { mine = add(mine, term(i)); });
        total = add(total, folded(mine));
        continue;
      }
      each(start, stop, term, [&](long long i, real found) { staged[i - start] = found; });
      __syncthreads();
      add_staged((int)(stop - start));
      __syncthreads();
      for (int g = 0; g < GROUPS && start + g * ROW_BLOCK < n; g++) total = add(total, sums[g]);
    }
    return total;
  }

  // The sums of the blocks that are staged, by a warp for each, both halves of which do the same.
  METHOD void add_staged(int count) const {
    const int g = own / WARP, stop = (g + 1) * ROW_BLOCK < count ? (g + 1) * ROW_BLOCK : count;
    if (g >= GROUPS) return;
    real mine = (real)0;
#pragma unroll 16
    for (int i = g * ROW_BLOCK + lane; i < stop; i += LANES) mine = add(mine, staged[i]);
    mine = folded(mine);
    if (own % WARP == 0) sums[g] = mine;
  }

  // The largest number that is no NaN, -inf if there is none; which zero of two cannot be seen.
  template <class Term> METHOD real largest(long long n, const Term& term) const {
    real most = lowest();
    each(n, [&](long long i) {
      const real x = term(i);
      most = x > most ? x : most;
    });
#pragma unroll
    for (int h = (GROUPS ? WARP : LANES) / 2; h; h /= 2) {
      const real other = __shfl_xor_sync(0xffffffffu, most, h);
      most = other > most ? other : most;
    }
    if (GROUPS) {
      if (own % WARP == 0) sums[own / WARP] = most;
      __syncthreads();
      for (int w = 0; w < TEAM / WARP; w++) most = sums[w] > most ? sums[w] : most;
      __syncthreads();
    }
    return most;
  }
};
