// A product with a thread for each output, in the order of the contract: the tiles have tests of their own.
#include "same_bits.cuh"
enum { M, N, K, GROUP, A_GROUP, A_MATRIX, A_ROW, A_COLUMN, B_GROUP, B_MATRIX, B_ROW, B_COLUMN, BIAS, RELU, MASK, ADDED };

DEV const real* matrix(const Call& call, int operand, long long batch, int group) {
  const long long each = call.words[GROUP];
  return (const real*)(at<const char>(call, operand) + batch / each * call.words[group] + batch % each * call.words[group + 1]);
}

KERNEL(32, 1) simple_product(PARAMETER Call call, Report) {
  const long long* const w = call.words;
  const long long row = blockIdx.x, batch = row / w[M], bytes = sizeof(real);
  const real* const a = matrix(call, 1, batch, A_GROUP) + row % w[M] * w[A_ROW] / bytes;
  const real* const b = matrix(call, 2, batch, B_GROUP);
  for (long long j = threadIdx.x; j < w[N]; j += 32) {
    real total = (real)0;
    for (long long first = 0; first < w[K]; first += 256) {
      real chain = (real)0;
      for (long long k = first; k < w[K] && k < first + 256; k++)
        chain = fused(a[k * w[A_COLUMN] / bytes], b[(k * w[B_ROW] + j * w[B_COLUMN]) / bytes], chain);
      total = first ? add(total, chain) : chain;
    }
    if (w[BIAS]) total = add(total, at<const real>(call, 3)[j]);
    if (w[RELU]) total = total <= (real)0 ? (real)0 : total;
    if (w[MASK]) total = at<const real>(call, 4)[row * w[N] + j] > (real)0 ? total : (real)0;
    if (w[ADDED]) total = add(at<const real>(call, 5)[row * w[ADDED] / bytes + j], total);
    at<real>(call, 0)[row * w[N] + j] = total;
  }
}

HOST_ENTRY(simple_product)
