// Copies of arrays of any strides into row-major order: each element is found by its place along every axis.
#include "same_bits.cuh"

// Positions of the CPU's words.
enum { SPLIT, RANK, SIZES };
// Positions of the addresses.
enum { OUT, SOURCE, P_WORDS };

#if AXES
// So many axes, by -D, those that lie furthest apart in the output first. Words: elements; then of each axis how far its
// neighbours lie apart in the output, in elements, factor and shift that divide by it, and how far in the source, in bytes.
enum { TOTAL, FIRST };
enum { STEP, FACTOR, SHIFT, STRIDE, NUMBERS };

DEV long long place(const Call& call, long long i) {
  unsigned rest = (unsigned)i;
  long long offset = 0;
#pragma unroll
  for (int axis = 0; axis < AXES; axis++) {
    const long long* const own = call.words + FIRST + NUMBERS * axis;
    const unsigned index = (unsigned)(rest * (unsigned long long)own[FACTOR] >> own[SHIFT]);
    rest -= index * (unsigned)own[STEP], offset += index * own[STRIDE];
  }
  return offset;
}
#else
// Any number of axes and elements. The words are the CPU's: of each axis its size, how far its neighbours lie apart in
// the source, in bytes, and in the output, in elements.
enum { TOTAL };
enum { SIZE, STRIDE, STEP, NUMBERS };

DEV long long place(const Call& call, long long i) {
  const long long* const words = at<const long long>(call, P_WORDS);
  long long offset = 0;
  for (long long axis = 0; axis < words[RANK]; axis++) {
    const long long* const own = words + SIZES + NUMBERS * axis;
    if (own[SIZE] > 1) offset += i / own[STEP] % own[SIZE] * own[STRIDE];
  }
  return offset;
}
#endif

// By -D: PER, elements of a thread.
KERNEL(256, 1) copy(PARAMETER Call call, Report) {
  const long long total = call.words[TOTAL], first = blockIdx.x * (256ll * PER) + threadIdx.x;
  const char* const from = at<const char>(call, SOURCE);
  real found[PER];
#pragma unroll
  for (int k = 0; k < PER; k++)
    if (first + k * 256 < total) found[k] = *(const real*)(from + place(call, first + k * 256));
#pragma unroll
  for (int k = 0; k < PER; k++)
    if (first + k * 256 < total) at<real>(call, OUT)[first + k * 256] = found[k];
}

#ifndef __CUDACC__
HOST_ENTRY(copy)
#endif
