// Sums and means down columns.
#include "columns.cuh"
enum { MEAN = FIRST_OWN, ADDED };
enum { P_ADDED = 2 };

DEV void finish(const Call& call, long long column, real total) {
  if (call.words[MEAN]) total = div(total, number(call.words[ROWS], (real)0));
  if (call.words[ADDED]) total = add(at<const real>(call, P_ADDED)[column], total);
  at<real>(call, 0)[column] = total;
}

KERNEL(THREADS, 1) sum_columns(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const Columns own(call);
  const real* const x = at<const real>(call, 1) + own.outer * own.rows * own.columns + own.column;
  sum_down(call, memory, own, [=](long long r) { return x[r * own.columns]; });
}

#ifndef __CUDACC__
HOST_ENTRY(sum_columns)
HOST_ENTRY(add_chains)
#endif
