// What the additive digest of a tensor (docs/trace_format.md) is the sum of: a sum modulo 2^128 for each thread block.
// REAL is the unsigned integer as long as an element.
#include "same_bits.cuh"

typedef unsigned long long word;
enum { COUNT, MASK, LIMIT, NAN_BITS };
constexpr int THREADS = 256;

#ifdef __CUDACC__
DEV word upper_product(word a, word b) { return __umul64hi(a, b); }
#else
DEV word upper_product(word a, word b) { return (word)((unsigned __int128)a * b >> 64); }
#endif

DEV word split_mix(word n) {
  word z = (n + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

struct Sum {
  word low = 0, high = 0;
  METHOD void add(word l, word h) { low += l, high += h + (low < l); }
};

KERNEL(THREADS, 1) additive(PARAMETER Call call, Report) {
  DYNAMIC_SHARED(Sum, sums);
  const real* const elements = at<const real>(call, 1);
  const word count = call.words[COUNT], mask = call.words[MASK], limit = call.words[LIMIT];
  const int t = threadIdx.x;
  Sum sum;
  for (word i = blockIdx.x * (word)THREADS + t; i < count; i += gridDim.x * (word)THREADS) {
    word bits = elements[i];
    if ((bits & mask) > limit) bits = call.words[NAN_BITS];
    const word low = split_mix(2 * i) | 1, high = split_mix(2 * i + 1);
    sum.add(bits * low, upper_product(bits, low) + bits * high);
    sum.add(low, high);
  }
  sums[t] = sum;
  for (int half = THREADS / 2; half; half /= 2) {
    __syncthreads();
    if (t < half) sums[t].add(sums[t + half].low, sums[t + half].high);
  }
  if (t == 0) at<Sum>(call, 0)[blockIdx.x] = sums[0];
}

#ifndef __CUDACC__
HOST_ENTRY(additive)
#endif
