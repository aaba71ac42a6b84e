// The operations of the bit contract (docs/numerics.md), for NVRTC and, through shim.h of the tests, for a host compiler.
// Every operation is written with its rounding; nothing here may be contracted, flushed or approximated.
#pragma once
#ifdef __CUDACC__
#define DEV __device__ __forceinline__
#define METHOD DEV
#define KERNEL(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)
#ifdef CLUSTER
// Of CLUSTER thread blocks that run beside each other and may wait for each other.
#define CLUSTERED(threads) extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(threads, 4)
#endif
#define PARAMETER const __grid_constant__
#define DYNAMIC_SHARED(type, name) \
  extern __shared__ __align__(16) unsigned char name##_bytes[]; \
  type* const name = (type*)name##_bytes
DEV float add(float a, float b) { return __fadd_rn(a, b); }
DEV float sub(float a, float b) { return __fsub_rn(a, b); }
DEV float mul(float a, float b) { return __fmul_rn(a, b); }
DEV float div(float a, float b) { return __fdiv_rn(a, b); }
DEV float root(float a) { return __fsqrt_rn(a); }
DEV float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
DEV double add(double a, double b) { return __dadd_rn(a, b); }
DEV double sub(double a, double b) { return __dsub_rn(a, b); }
DEV double mul(double a, double b) { return __dmul_rn(a, b); }
DEV double div(double a, double b) { return __ddiv_rn(a, b); }
DEV double root(double a) { return __dsqrt_rn(a); }
DEV double fused(double a, double b, double c) { return __fma_rn(a, b, c); }
DEV unsigned bits(float a) { return __float_as_uint(a); }
DEV unsigned long long bits(double a) { return (unsigned long long)__double_as_longlong(a); }
DEV float from_bits(unsigned a) { return __uint_as_float(a); }
DEV double from_bits(unsigned long long a) { return __longlong_as_double((long long)a); }
// A whole number as a float of the type of `like`, rounded to nearest.
DEV float number(long long a, float) { return __ll2float_rn(a); }
DEV double number(long long a, double) { return __ll2double_rn(a); }
// The float64 whose bits a word has, rounded to the type of `like`.
DEV float real_of(long long word, float) { return __double2float_rn(__longlong_as_double(word)); }
DEV double real_of(long long word, double) { return __longlong_as_double(word); }
// Asynchronous copies into shared memory of one element, and of 16 bytes; what is not `in` range becomes +0.
template <class T> DEV void copy_one(T* to, const T* from, bool in) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
               ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "n"(sizeof(T)), "r"(in ? (int)sizeof(T) : 0)
               : "memory");
}
template <class T> DEV void copy_vector(T* to, const T* from, bool in) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(in ? 16 : 0) : "memory");
}
#ifdef CLUSTER
// What the thread blocks of a cluster have written before is there for all of them behind it.
DEV void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
#endif
DEV void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most LEFT of this thread's groups of copies are on their way.
template <int LEFT> DEV void wait_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }
#else
#include "shim.h"
#endif

// By -D: REAL, the element type.
typedef REAL real;

// What a kernel is called with, by value: addresses and words.
struct Call {
  void* pointers[8];
  long long words[24];
};

// Where a fault is told: the least (op, status) of all that are.
struct Report {
  unsigned long long* word;
  unsigned long long op;
};

template <class T> DEV T* at(const Call& call, int i) { return (T*)call.pointers[i]; }

// As the CPU's kernels: the status is 1 + the position of what is out of range.
DEV void report(const Report& to, long long position) {
  atomicMin(to.word, to.op << 40 | (unsigned long long)(position + 1));
}
// Whether any op has failed: then nothing may be updated in place.
DEV bool failed(const Report& to) { return *(volatile unsigned long long*)to.word != ~0ull; }

// N elements that are loaded and stored together.
template <int N> struct alignas(N * sizeof(real)) Run {
  real v[N];
};
