// Sums and softmax along rows, and the cross-entropy of labels: m is a row's maximum, s the sum of exp(x - m).
// Words are rows and elements of a row; tables those of the CPU's kernels.
#include "elementary.cuh"
#include "rows.cuh"

#define ROWS call.words[0]
#define LENGTH call.words[1]

// Row `row` of the array at a position of the table.
DEV real* row_of(const Call& call, int array, long long row) { return at<real>(call, array) + row * LENGTH; }

// The exponentials of a row, and into `out` if there is one, and their sum.
DEV real exponentials(const Team& team, long long n, const real* x, real m, real* out) {
  return team.sum(n, [=](long long i) {
    const real e = exp_of(sub(x[i], m));
    if (out) out[i] = e;
    return e;
  });
}

#define BEGIN                                   \
  DYNAMIC_SHARED(real, memory);                 \
  const Team team(ROWS, memory);                \
  const long long n = LENGTH, row = team.row;

// What is summed: x, its squares, the squares of x - y; and what becomes of a sum: itself, over n, its root as float64.
enum { W_ROWS, W_LENGTH, W_TERM, W_FINISH };
enum { PLAIN, SQUARES, DIFFERENCES };
enum { AS_IT_IS, OVER_N, ROOT };
enum { OUT, P_X, P_Y, P_SUMS };

DEV real term_of(const Call& call, long long i) {
  const real x = at<const real>(call, P_X)[i];
  if (call.words[W_TERM] == PLAIN) return x;
  const real d = call.words[W_TERM] == SQUARES ? x : sub(x, at<const real>(call, P_Y)[i]);
  return mul(d, d);
}

DEV void finish(const Call& call, long long row, real total) {
  if (call.words[W_FINISH] == ROOT) at<double>(call, OUT)[row] = (double)root(total);
  else if (call.words[W_FINISH] == OVER_N) at<real>(call, OUT)[row] = div(total, number(LENGTH, (real)0));
  else at<real>(call, OUT)[row] = total;
}

KERNEL(THREADS, 1) sum_rows(PARAMETER Call call, Report) {
  BEGIN
  const long long first = row * n;
  const real total = team.sum(n, [&](long long i) { return term_of(call, first + i); });
  if (team.first()) finish(call, row, total);
}

#if GROUPS == 1
// The same of few and long rows: first the sum of each block of 4096, which is a "row" of its own.
KERNEL(THREADS, 1) sum_blocks(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(real, memory);
  const long long n = LENGTH, blocks = (n + ROW_BLOCK - 1) / ROW_BLOCK;
  const Team team(ROWS * blocks, memory);
  const long long first = team.row / blocks * n, start = team.row % blocks * ROW_BLOCK, left = n - start;
  const real sum = team.sum(ROW_BLOCK, left, [&](long long i) { return term_of(call, first + start + i); });
  if (team.first()) at<real>(call, P_SUMS)[team.row] = sum;
}

// Then these from left to right.
KERNEL(32, 1) add_blocks(PARAMETER Call call, Report) {
  const long long blocks = (LENGTH + ROW_BLOCK - 1) / ROW_BLOCK, row = blockIdx.x * 32ll + threadIdx.x;
  if (row >= ROWS) return;
  const real* const sums = at<const real>(call, P_SUMS) + row * blocks;
  real total = (real)0;
#pragma unroll 16
  for (long long b = 0; b < blocks; b++) total = add(total, sums[b]);
  finish(call, row, total);
}
#endif

KERNEL(THREADS, 1) softmax(PARAMETER Call call, Report) {
  BEGIN
  const real* const x = row_of(call, 1, row);
  real* const out = row_of(call, 0, row);
  const real m = team.largest(n, [=](long long i) { return x[i]; });
  const real s = exponentials(team, n, x, m, team.here ? out : nullptr);
  if (team.here) team.each(n, [=](long long i) { out[i] = div(out[i], s); });
}

KERNEL(THREADS, 1) log_softmax(PARAMETER Call call, Report) {
  BEGIN
  const real* const x = row_of(call, 1, row);
  real* const out = row_of(call, 0, row);
  const real m = team.largest(n, [=](long long i) { return x[i]; });
  const real log_s = log_of(exponentials(team, n, x, m, nullptr));
  if (team.here) team.each(n, [=](long long i) { out[i] = sub(sub(x[i], m), log_s); });
}

KERNEL(THREADS, 1) logsumexp(PARAMETER Call call, Report) {
  BEGIN
  const real* const x = row_of(call, 1, row);
  const real m = team.largest(n, [=](long long i) { return x[i]; }), pivot = sub(m, m) == (real)0 ? m : (real)0;
  const real s = exponentials(team, n, x, pivot, nullptr);
  if (team.first()) at<real>(call, 0)[row] = add(pivot, log_of(s));
}

// The label of a row, or -1 if there is no such class, which is told.
DEV long long label_of(const Call& call, const Report& to, const Team& team, int array) {
  const long long label = at<const long long>(call, array)[team.row];
  if (label >= 0 && label < LENGTH) return label;
  if (team.first()) report(to, team.row);
  return -1;
}

// (softmax - onehot(label)) * weight of a row whose exponentials are in `out`.
DEV void gradient(const Team& team, long long n, real* out, real s, long long label, real weight) {
  team.each(n, [=](long long i) {
    const real quotient = div(out[i], s);
    out[i] = mul(i == label ? sub(quotient, (real)1) : quotient, weight);
  });
}

KERNEL(THREADS, 1) cross_entropy_rows(PARAMETER Call call, Report to) {
  BEGIN
  const real* const x = row_of(call, 1, row);
  const long long label = label_of(call, to, team, 2);
  const real m = team.largest(n, [=](long long i) { return x[i]; });
  const real s = exponentials(team, n, x, m, nullptr);
  if (team.first() && label >= 0) at<real>(call, 0)[row] = sub(log_of(s), sub(x[label], m));
}

KERNEL(THREADS, 1) cross_entropy_grad(PARAMETER Call call, Report to) {
  BEGIN
  const real* const x = row_of(call, 1, row);
  real* const out = row_of(call, 0, row);
  const long long label = label_of(call, to, team, 2);
  const bool wanted = team.here && label >= 0;
  const real weight = div(at<const real>(call, 3)[0], number(ROWS, (real)0));
  const real m = team.largest(n, [=](long long i) { return x[i]; });
  const real s = exponentials(team, n, x, m, wanted ? out : nullptr);
  if (wanted) gradient(team, n, out, s, label, weight);
}

KERNEL(THREADS, 1) cross_entropy_rows_with_grad(PARAMETER Call call, Report to) {
  BEGIN
  const real* const x = row_of(call, 2, row);
  real* const out = row_of(call, 1, row);
  const long long label = label_of(call, to, team, 3);
  const bool wanted = team.here && label >= 0;
  const real weight = div(at<const real>(call, 4)[0], number(ROWS, (real)0));
  const real m = team.largest(n, [=](long long i) { return x[i]; });
  const real shift = wanted ? sub(x[label], m) : (real)0;
  const real s = exponentials(team, n, x, m, wanted ? out : nullptr);
  if (!wanted) return;
  gradient(team, n, out, s, label, weight);
  if (team.first()) at<real>(call, 0)[row] = sub(log_of(s), shift);
}

#ifndef __CUDACC__
HOST_ENTRY(sum_rows)
#if GROUPS == 1
HOST_ENTRY(sum_blocks)
HOST_ENTRY(add_blocks)
#endif
HOST_ENTRY(softmax)
HOST_ENTRY(log_softmax)
HOST_ENTRY(logsumexp)
HOST_ENTRY(cross_entropy_rows)
HOST_ENTRY(cross_entropy_grad)
HOST_ENTRY(cross_entropy_rows_with_grad)
#endif
