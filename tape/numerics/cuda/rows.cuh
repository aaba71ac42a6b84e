// Rows of numbers: sums in sixteen lanes, as the contract has them, by blocks of 4096. A team of threads has a row:
// GROUPS times sixteen, of which each sixteen have every GROUPS-th block. By -D: GROUPS.
#pragma once
#include "same_bits.cuh"
constexpr int LANES = 16, ROW_BLOCK = 4096, TEAM = GROUPS * LANES, ROWS_AT_ONCE = GROUPS == 1 ? 8 : 1;
constexpr int THREADS = TEAM * ROWS_AT_ONCE;

// -inf.
DEV real lowest() {
  typedef decltype(bits((real)0)) Bits;
  return from_bits((Bits)(sizeof(real) == 4 ? 0xff800000ull : 0xfff0000000000000ull));
}

struct Team {
  long long row;
  bool here;  // a team behind the last row does as the last one does, and writes nothing
  int group, lane;
  real* sums;  // shared by the groups of a row
  METHOD Team(long long rows, real* memory)
      : row((long long)blockIdx.x * ROWS_AT_ONCE + threadIdx.x / TEAM), here(row < rows),
        group(threadIdx.x % TEAM / LANES), lane(threadIdx.x % LANES), sums(memory) {
    if (!here) row = rows - 1;
  }
  METHOD bool first() const { return here && group == 0 && lane == 0; }

  // Every element of a row once; an element is always the same thread's.
  template <class Action> METHOD void each(long long n, const Action& action) const {
    for (long long start = (long long)group * ROW_BLOCK; start < n; start += (long long)GROUPS * ROW_BLOCK) {
      const long long stop = start + ROW_BLOCK < n ? start + ROW_BLOCK : n;
#pragma unroll 4
      for (long long i = start + lane; i < stop; i += LANES) action(i);
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
    for (long long round = 0; round < n; round += (long long)GROUPS * ROW_BLOCK) {
      const long long start = round + (long long)group * ROW_BLOCK, end = there < n ? there : n;
      const long long stop = start + ROW_BLOCK < end ? start + ROW_BLOCK : end;
      real mine = (real)0;
#pragma unroll 4
      for (long long i = start + lane; i < stop; i += LANES) mine = add(mine, term(i));
      mine = folded(mine);
      if (GROUPS == 1) {
        total = add(total, mine);
      } else {
        if (lane == 0) sums[group] = mine;
        __syncthreads();
        for (int g = 0; g < GROUPS && round + (long long)g * ROW_BLOCK < n; g++) total = add(total, sums[g]);
        __syncthreads();
      }
    }
    return total;
  }

  // The largest number that is no NaN, -inf if there is none; which zero of two cannot be seen.
  template <class Term> METHOD real largest(long long n, const Term& term) const {
    real most = lowest();
    each(n, [&](long long i) {
      const real x = term(i);
      most = x > most ? x : most;
    });
#pragma unroll
    for (int h = LANES / 2; h; h /= 2) {
      const real other = __shfl_xor_sync(0xffffffffu, most, h);
      most = other > most ? other : most;
    }
    if (GROUPS > 1) {
      if (lane == 0) sums[group] = most;
      __syncthreads();
      for (int g = 0; g < GROUPS; g++) most = sums[g] > most ? sums[g] : most;
      __syncthreads();
    }
    return most;
  }
};
