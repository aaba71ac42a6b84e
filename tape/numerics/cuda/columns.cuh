// Sums down columns, as the contract has them: chains in blocks of 256 rows, whose sums are added from top to bottom.
// A thread block has 32 columns of one block of rows: all of it computes the terms into shared memory, and a warp adds
// them. Where there are more blocks than one, their sums go to memory, and a second launch adds those.
#pragma once
#include "same_bits.cuh"
constexpr int WIDTH = 32, CHAIN = 256, THREADS = 256, WARPS = THREADS / WIDTH;
enum { ROWS, COLUMNS, OUTER, FIRST_OWN };  // words
enum { SUMS = 6 };                         // position of the address

struct Columns {
  long long rows, columns, all, blocks, block, outer, column;
  bool here;  // a thread behind the last column does as the last one does, and writes nothing
  int warp, lane;
  METHOD Columns(const Call& call)
      : rows(call.words[ROWS]), columns(call.words[COLUMNS]), all(call.words[OUTER] * columns),
        blocks((rows + CHAIN - 1) / CHAIN), warp(threadIdx.x / WIDTH), lane(threadIdx.x % WIDTH) {
    const long long across = (columns + WIDTH - 1) / WIDTH, tile = blockIdx.x / (blocks ? blocks : 1);
    block = blocks ? blockIdx.x % blocks : 0;
    outer = tile / across, column = tile % across * WIDTH + lane, here = column < columns;
    if (!here) column = columns - 1;
  }
  METHOD bool first() const { return here && warp == 0; }
  METHOD long long start() const { return block * CHAIN; }
  METHOD long long stop() const { return start() + CHAIN < rows ? start() + CHAIN : rows; }
  METHOD real* sums(const Call& call, int kind) const {
    return at<real>(call, SUMS) + kind * blocks * all + outer * columns + column;
  }

  // The chain of this block of rows, in the first warp.
  template <class Term> METHOD real chain(real* staged, const Term& term) const {
#pragma unroll 8
    for (long long r = start() + warp; r < stop(); r += WARPS) staged[(r - start()) * WIDTH + lane] = term(r);
    __syncthreads();
    real total = (real)0;
    const int count = warp ? 0 : (int)(stop() - start());
#pragma unroll 16
    for (int r = 0; r < count; r++) total = add(total, staged[r * WIDTH + lane]);
    return total;
  }

  // The sum of the blocks of rows.
  METHOD real whole(const Call& call, int kind) const {
    const real* const parts = sums(call, kind);
    real total = (real)0;
#pragma unroll 16
    for (long long b = 0; b < blocks; b++) total = add(total, parts[b * all]);
    return total;
  }
};

// What becomes of the sum of a column of the outer matrix.
DEV void finish(const Call& call, long long column, real total);

// A chain is the sum, or goes where `add_chains` finds it.
template <class Term> DEV void sum_down(const Call& call, real* memory, const Columns& own, const Term& term) {
  const real chain = own.chain(memory, term);
  if (!own.first()) return;
  if (own.blocks > 1) own.sums(call, 0)[own.block * own.all] = chain;
  else finish(call, own.outer * own.columns + own.column, add((real)0, chain));
}

KERNEL(THREADS, 1) add_chains(PARAMETER Call call, Report) {
  const long long columns = call.words[COLUMNS], all = call.words[OUTER] * columns;
  const long long blocks = (call.words[ROWS] + CHAIN - 1) / CHAIN, column = blockIdx.x * (long long)THREADS + threadIdx.x;
  if (column >= all) return;
  const real* const parts = at<const real>(call, SUMS) + column;
  real total = (real)0;
#pragma unroll 16
  for (long long b = 0; b < blocks; b++) total = add(total, parts[b * all]);
  finish(call, column, total);
}
