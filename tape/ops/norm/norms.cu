// Rows less their mean over their standard deviation, and the gradients. Words and tables are those of the CPU's.
#include "rows.cuh"

enum { ROWS, STRIDE, SEGMENTS, LENGTH, PITCH, P, Q, PARAMETERS, WEIGHT, CENTRED, EPS, BIAS };

// Where the elements of a row lie, and which parameter each has.
struct Layout {
  long long base, pitch, number, q, n;
  unsigned length;
  METHOD Layout(const Call& call, long long row)
      : base(row * call.words[STRIDE]), pitch(call.words[PITCH]), number(row * call.words[P] % call.words[PARAMETERS]),
        q(call.words[Q]), n(call.words[SEGMENTS] * call.words[LENGTH]), length((unsigned)call.words[LENGTH]) {}
  METHOD long long at(long long i) const {
    return length == pitch ? base + i : base + (unsigned)i / length * pitch + (unsigned)i % length;
  }
  METHOD long long parameter(long long i) const { return number + (unsigned)i / length * q; }
};

// Element `i` of the array at a position of the table, or the default where the position is 0: there is none.
DEV real parameter(const Call& call, long long array, long long i, real otherwise) {
  return array ? at<const real>(call, (int)array)[i] : otherwise;
}

struct Statistics {
  real mean, inv;
};

DEV Statistics statistics(const Call& call, const Team& team, const Layout& lies, const real* x) {
  const real n = number(lies.n, (real)0);
  real mean = (real)0;
  if (call.words[CENTRED]) mean = div(team.sum(lies.n, [=](long long i) { return x[lies.at(i)]; }), n);
  const real squares = team.sum(lies.n, [=](long long i) {
    const real difference = sub(x[lies.at(i)], mean);
    return mul(difference, difference);
  });
  return {mean, div((real)1, root(add(div(squares, n), real_of(call.words[EPS], (real)0))))};
}

#define BEGIN(array)                                        \
  DYNAMIC_SHARED(real, memory);                             \
  const Team team(call.words[ROWS], memory);                \
  const Layout lies(call, team.row);                        \
  const real* const x = at<const real>(call, array);        \
  const Statistics own = statistics(call, team, lies, x);   \
  const real mean = own.mean, inv = own.inv;

KERNEL(THREADS, 1) normalize(PARAMETER Call call, Report) {
  BEGIN(1)
  if (!team.here) return;
  real* const out = at<real>(call, 0);
  team.each(lies.n, [&](long long i) {
    const long long place = lies.at(i), p = lies.parameter(i);
    const real y = mul(mul(sub(x[place], mean), inv), parameter(call, call.words[WEIGHT], p, (real)1));
    out[place] = add(y, parameter(call, call.words[BIAS], p, (real)-0.0));
  });
}

KERNEL(THREADS, 1) row_statistics(PARAMETER Call call, Report) {
  BEGIN(1)
  if (!team.first()) return;
  at<real>(call, 0)[team.row] = mean;
  at<real>(call, 0)[call.words[ROWS] + team.row] = inv;
}

// The sum along a row of h * x', h = dy * weight, x' = (x - mean) * inv.
DEV real products(const Call& call, const Team& team, const Layout& lies, const real* dy, const real* x, Statistics own) {
  return team.sum(lies.n, [&](long long i) {
    const long long place = lies.at(i);
    const real h = mul(dy[place], parameter(call, call.words[WEIGHT], lies.parameter(i), (real)1));
    return mul(h, mul(sub(x[place], own.mean), own.inv));
  });
}

KERNEL(THREADS, 1) normalize_grad(PARAMETER Call call, Report) {
  BEGIN(2)
  const real *const dy = at<const real>(call, 1), n = number(lies.n, (real)0);
  auto weighted = [&](long long i, long long place) {
    return mul(dy[place], parameter(call, call.words[WEIGHT], lies.parameter(i), (real)1));
  };
  real total = (real)0;
  if (call.words[CENTRED]) total = team.sum(lies.n, [&](long long i) { return weighted(i, lies.at(i)); });
  const real mean_h = div(total, n), mean_p = div(products(call, team, lies, dy, x, own), n);
  if (!team.here) return;
  real* const out = at<real>(call, 0);
  team.each(lies.n, [&](long long i) {
    const long long place = lies.at(i);
    const real own_share = mul(mul(sub(x[place], mean), inv), mean_p);
    out[place] = mul(sub(sub(weighted(i, place), mean_h), own_share), inv);
  });
}

KERNEL(THREADS, 1) normalize_weight_grad(PARAMETER Call call, Report) {
  BEGIN(2)
  const real total = products(call, team, lies, at<const real>(call, 1), x, own);
  if (team.first()) at<real>(call, 0)[team.row] = total;
}

#ifndef __CUDACC__
HOST_ENTRY(normalize)
HOST_ENTRY(row_statistics)
HOST_ENTRY(normalize_grad)
HOST_ENTRY(normalize_weight_grad)
#endif
