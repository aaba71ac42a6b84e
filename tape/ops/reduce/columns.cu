// Sums and means down columns. Words: outer, rows, columns.
#include "columns.cuh"

DEV real sum_of(const Call& call, const Columns& own) {
  const long long rows = call.words[1], columns = call.words[2];
  const real* const x = at<const real>(call, 1) + own.outer * rows * columns + own.column;
  return own.sum(rows, [=](long long r) { return x[r * columns]; });
}

KERNEL(THREADS, 1) sum_columns(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const Columns own(call.words[2], memory);
  const real total = sum_of(call, own);
  if (own.first()) at<real>(call, 0)[own.outer * call.words[2] + own.column] = total;
}

KERNEL(THREADS, 1) mean_columns(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const Columns own(call.words[2], memory);
  const real mean = div(sum_of(call, own), number(call.words[1], (real)0));
  if (own.first()) at<real>(call, 0)[own.outer * call.words[2] + own.column] = mean;
}

#ifndef __CUDACC__
HOST_ENTRY(sum_columns)
HOST_ENTRY(mean_columns)
#endif
