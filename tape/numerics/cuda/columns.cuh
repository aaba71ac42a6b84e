// Sums down columns, as the contract has them: chains in blocks of 256 rows, whose sums are added from top to bottom.
// A thread block has 32 columns; each of its WARPS warps has every WARPS-th block of rows. By -D: WARPS.
#pragma once
#include "same_bits.cuh"
constexpr int WIDTH = 32, CHAIN = 256, THREADS = WARPS * WIDTH;
constexpr int AHEAD = 256 / sizeof(real);  // so many rows are read before the first is added: memory takes its time

struct Columns {
  long long outer, column;
  bool here;  // a thread behind the last column does as the last one does, and writes nothing
  int warp, lane;
  real* sums;  // shared
  METHOD Columns(long long columns, real* memory)
      : warp(threadIdx.x / WIDTH), lane(threadIdx.x % WIDTH), sums(memory) {
    const long long across = (columns + WIDTH - 1) / WIDTH;
    outer = blockIdx.x / across, column = blockIdx.x % across * WIDTH + lane, here = column < columns;
    if (!here) column = columns - 1;
  }
  METHOD bool first() const { return here && warp == 0; }

  template <class Term> METHOD real sum(long long rows, const Term& term) const {
    real total = (real)0;
    for (long long round = 0; round < rows; round += WARPS * CHAIN) {
      const long long start = round + warp * CHAIN, stop = start + CHAIN < rows ? start + CHAIN : rows;
      real chain = (real)0;
#pragma unroll AHEAD
      for (long long r = start; r < stop; r++) chain = add(chain, term(r));
      sums[warp * WIDTH + lane] = chain;
      __syncthreads();
      for (int w = 0; w < WARPS && round + w * CHAIN < rows; w++) total = add(total, sums[w * WIDTH + lane]);
      __syncthreads();
    }
    return total;
  }
};
