// Normalisation down columns, where the channels are the last axis. Tables are those of the CPU's kernels.
#include "columns.cuh"
enum { OWN = FIRST_OWN, EPS };  // OWN: whether the sum becomes 1 / sqrt(sum / rows + eps); or where the weight is, or 0

#define BEGIN               \
  DYNAMIC_SHARED(real, memory); \
  const Columns own(call);  \
  const long long j = own.column, columns = own.columns;

DEV void finish(const Call& call, long long column, real total) {
  const real n = number(call.words[ROWS], (real)0);
  const real deviation = call.words[OWN] ? root(add(div(total, n), real_of(call.words[EPS], (real)0))) : (real)0;
  at<real>(call, 0)[column] = call.words[OWN] ? div((real)1, deviation) : total;
}

// 1 / sqrt(sum of (x - mean)^2 / rows + eps).
KERNEL(THREADS, 1) inverse_deviations(PARAMETER Call call, Report) {
  BEGIN
  const real *const x = at<const real>(call, 1), mean = at<const real>(call, 2)[j];
  sum_down(call, memory, own, [=](long long r) {
    const real difference = sub(x[r * columns + j], mean);
    return mul(difference, difference);
  });
}

// The sums of dy * ((x - mean) * inv), mean and inv of each row.
KERNEL(THREADS, 1) column_weight_grad(PARAMETER Call call, Report) {
  BEGIN
  const real *const dy = at<const real>(call, 1), *const x = at<const real>(call, 2), *const means = at<const real>(call, 3);
  sum_down(call, memory, own, [=](long long r) {
    const long long i = r * columns + j;
    return mul(dy[i], mul(sub(x[i], means[r]), means[own.rows + r]));
  });
}

// h = dy * weight and x' = (x - mean) * inv of a column.
struct Slopes {
  const real *dy, *x;
  real mean, inv, weight;
  long long columns, j;
  METHOD Slopes(const Call& call, const Columns& own)
      : dy(at<const real>(call, 1)), x(at<const real>(call, 2)), mean(at<const real>(call, 3)[own.column]),
        inv(at<const real>(call, 4)[own.column]),
        weight(call.words[OWN] ? at<const real>(call, (int)call.words[OWN])[own.column] : (real)1), columns(own.columns),
        j(own.column) {}
  METHOD real h(long long r) const { return mul(dy[r * columns + j], weight); }
  METHOD real normal(long long r) const { return mul(sub(x[r * columns + j], mean), inv); }
};

// The chains of h, and in a second layer of thread blocks of h * x'.
KERNEL(THREADS, 1) slope_chains(PARAMETER Call call, Report) {
  BEGIN
  const Slopes of(call, own);
  const bool products = blockIdx.z;
  const real chain = own.chain(memory, [&](long long r) { return products ? mul(of.h(r), of.normal(r)) : of.h(r); });
  if (own.first()) own.sums(call, blockIdx.z)[own.block * own.all] = chain;
}

// ((h - mean(h)) - x' * mean(h * x')) * inv.
KERNEL(THREADS, 1) column_slopes(PARAMETER Call call, Report) {
  const Columns own(call);
  const Slopes of(call, own);
  const real n = number(own.rows, (real)0);
  const real mean_h = div(own.whole(call, 0), n), mean_p = div(own.whole(call, 1), n);
  if (!own.here) return;
#pragma unroll 4
  for (long long r = own.start() + own.warp; r < own.stop(); r += WARPS)
    at<real>(call, 0)[r * own.columns + own.column] = mul(sub(sub(of.h(r), mean_h), mul(of.normal(r), mean_p)), of.inv);
}

#ifndef __CUDACC__
HOST_ENTRY(inverse_deviations)
HOST_ENTRY(column_weight_grad)
HOST_ENTRY(slope_chains)
HOST_ENTRY(column_slopes)
HOST_ENTRY(add_chains)
#endif
