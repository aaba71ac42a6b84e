// The softmax of rows of scores of which some are masked, and its gradient. Words and tables are those of the CPU's.
#include "elementary.cuh"
#include "rows.cuh"

enum { ROWS, KEYS, SCALE, QUERIES, CAUSAL, MASK_ROWS };

KERNEL(THREADS, 1) masked_softmax(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const Team team(call.words[ROWS], memory);
  const long long n = call.words[KEYS], row = team.row, queries = call.words[QUERIES], rows = call.words[MASK_ROWS];
  const long long last = row % queries + 1, seen = call.words[CAUSAL] && last < n ? last : n;
  const unsigned char* const mask = rows ? at<const unsigned char>(call, 2) + row % rows * n : nullptr;
  const real scale = real_of(call.words[SCALE], (real)0);
  const real* const x = at<const real>(call, 1) + row * n;
  real* const out = at<real>(call, 0) + row * n;
  const bool here = team.here;
  auto kept = [=](long long i) { return i < seen && (!mask || mask[i]); };
  const real m = team.largest(n, [=](long long i) { return kept(i) ? mul(x[i], scale) : lowest(); });
  // What is masked adds +0 to a sum that is never -0: as if it were not there.
  const real s = team.sum(n, [=](long long i) {
    const real e = kept(i) ? exp_of(sub(mul(x[i], scale), m)) : (real)0;
    if (here) out[i] = e;
    return e;
  });
  if (here) team.each(n, [=](long long i) { out[i] = kept(i) ? div(out[i], s) : (real)0; });
}

// Words: rows, elements of a row, scale.
KERNEL(THREADS, 1) scaled_softmax_grad(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const Team team(call.words[0], memory);
  const long long n = call.words[1], first = team.row * n;
  const real scale = real_of(call.words[2], (real)0);
  const real *const g = at<const real>(call, 1) + first, *const w = at<const real>(call, 2) + first;
  real* const out = at<real>(call, 0) + first;
  const real total = team.sum(n, [=](long long i) { return mul(g[i], w[i]); });
  if (team.here) team.each(n, [=](long long i) { out[i] = mul(mul(w[i], sub(g[i], total)), scale); });
}

#ifndef __CUDACC__
HOST_ENTRY(masked_softmax)
HOST_ENTRY(scaled_softmax_grad)
#endif
