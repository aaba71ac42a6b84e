// Normalisation down columns, where the channels are the last axis. Words and tables are those of the CPU's kernels.
#include "columns.cuh"

#define BEGIN                                              \
  DYNAMIC_SHARED(real, memory);                            \
  const long long rows = call.words[0], columns = call.words[1]; \
  const Columns own(columns, memory);                      \
  const long long j = own.column;

// 1 / sqrt(sum of (x - mean)^2 / rows + eps); words: rows, columns, eps.
KERNEL(THREADS, 1) inverse_deviations(PARAMETER Call call, Report) {
  BEGIN
  const real *const x = at<const real>(call, 1), mean = at<const real>(call, 2)[j];
  const real squares = own.sum(rows, [=](long long r) {
    const real difference = sub(x[r * columns + j], mean);
    return mul(difference, difference);
  });
  const real deviation = root(add(div(squares, number(rows, (real)0)), real_of(call.words[2], (real)0)));
  if (own.first()) at<real>(call, 0)[j] = div((real)1, deviation);
}

// The sums of dy * ((x - mean) * inv), mean and inv of each row; words: rows, columns.
KERNEL(THREADS, 1) column_weight_grad(PARAMETER Call call, Report) {
  BEGIN
  const real *const dy = at<const real>(call, 1), *const x = at<const real>(call, 2), *const means = at<const real>(call, 3);
  const real total = own.sum(rows, [=](long long r) {
    const long long i = r * columns + j;
    return mul(dy[i], mul(sub(x[i], means[r]), means[rows + r]));
  });
  if (own.first()) at<real>(call, 0)[j] = total;
}

// ((h - mean(h)) - x' * mean(h * x')) * inv; words: rows, columns, position of the weight or 0.
KERNEL(THREADS, 1) column_slopes(PARAMETER Call call, Report) {
  BEGIN
  const real *const dy = at<const real>(call, 1), *const x = at<const real>(call, 2);
  const real mean = at<const real>(call, 3)[j], inv = at<const real>(call, 4)[j], n = number(rows, (real)0);
  const real weight = call.words[2] ? at<const real>(call, (int)call.words[2])[j] : (real)1;
  auto h = [=](long long r) { return mul(dy[r * columns + j], weight); };
  auto normal = [=](long long r) { return mul(sub(x[r * columns + j], mean), inv); };
  const real mean_h = div(own.sum(rows, h), n);
  const real mean_p = div(own.sum(rows, [=](long long r) { return mul(h(r), normal(r)); }), n);
  if (!own.here) return;
  for (long long r = own.warp; r < rows; r += WARPS)
    at<real>(call, 0)[r * columns + j] = mul(sub(sub(h(r), mean_h), mul(normal(r), mean_p)), inv);
}

#ifndef __CUDACC__
HOST_ENTRY(inverse_deviations)
HOST_ENTRY(column_weight_grad)
HOST_ENTRY(column_slopes)
#endif
