// CUDA on a host, for tests without a device: a fiber for each thread of a cluster of blocks, one cluster after the other.
// Compile with -ffp-contract=off. Threads run in an order that changes from barrier to barrier; shared memory is NaN
// until it is written; asynchronous copies happen when they are waited for, and leave NaN until then.
#pragma once
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#define DEV static inline
#define METHOD inline
#define KERNEL(threads, blocks) static void
#define CLUSTERED(threads) static void
#ifdef CLUSTER
#define BESIDE CLUSTER
#else
#define BESIDE 1
#endif
#define PARAMETER const
#define __shared__ static
#define __restrict__
#define __syncwarp shim::warp_barrier
#define DYNAMIC_SHARED(type, name) type* const name = (type*)shim::shared

namespace shim {
struct Index {
  unsigned x, y, z;
};
enum State { READY, AT_CLUSTER, AT_BLOCK, AT_WARP, DONE };
struct Copy {
  unsigned char* to;
  const void* from;
  unsigned char size;
  bool in;
  long group;
};
struct Fiber {
  ucontext_t first;
  jmp_buf here;
  bool begun;
  State state;
  Copy copies[512];
  unsigned waiting;
  long group;
};
static const unsigned MOST = 1024, ALL = MOST * BESIDE;
static const size_t STACK = 1 << 17, SHARED = 232448;
static Index thread, block, grid, size;
static unsigned self, first_block;  // the fiber that runs, and the first block of the cluster
alignas(128) static unsigned char memories[BESIDE][SHARED];
static unsigned char* shared;
static Fiber* fibers;
static char* stacks;
static jmp_buf scheduler;
static unsigned order[ALL], seed = 1;
static unsigned char slots[ALL][16];
static void (*kernel)();
static char failure[128];
static unsigned limit;

static unsigned draw(unsigned below) {
  seed = seed * 1664525u + 1013904223u;
  return (unsigned)((unsigned long long)seed * below >> 32);
}
// Tell what a kernel does wrong; nothing more of it runs.
static void fail(const char* text, bool in_thread = true) {
  if (!failure[0]) snprintf(failure, sizeof failure, "block %u, thread %u: %s", block.x, thread.x, text);
  if (in_thread) fibers[self].state = DONE, _longjmp(scheduler, 1);
}
// Leave this thread until the scheduler comes back to it.
static void pause(State state) {
  Fiber& mine = fibers[self];
  mine.state = state;
  if (!_setjmp(mine.here)) _longjmp(scheduler, 1);
}
static void block_barrier() { pause(AT_BLOCK); }
static void warp_barrier(unsigned = ~0u) { pause(AT_WARP); }
static void cluster_barrier() { pause(AT_CLUSTER); }
static void body() {
  kernel();
  if (fibers[self].waiting) fail("it ends before its copies have come");
  fibers[self].state = DONE;
  _longjmp(scheduler, 1);
}
static void enter(unsigned t) {
  self = t, thread = {t % size.x, 0, 0}, block.x = first_block + t / size.x, shared = memories[t / size.x];
  if (_setjmp(scheduler)) return;
  if (fibers[t].begun) _longjmp(fibers[t].here, 1);
  fibers[t].begun = true;
  setcontext(&fibers[t].first);
}
// Let go whom a barrier held; whether there was anyone.
static bool released(State held, unsigned from, unsigned to) {
  bool any = false;
  for (unsigned t = from; t < to; t++)
    if (fibers[t].state != DONE && fibers[t].state != held) return false;
  for (unsigned t = from; t < to; t++)
    if (fibers[t].state == held) fibers[t].state = READY, any = true;
  return any;
}
static void run_block() {
  const unsigned count = size.x * BESIDE;
  memset(memories, 0xff, sizeof memories);
  for (unsigned t = 0; t < count; t++) {
    Fiber& fiber = fibers[t];
    getcontext(&fiber.first);
    fiber.first.uc_stack.ss_sp = stacks + STACK * t, fiber.first.uc_stack.ss_size = STACK;
    fiber.first.uc_link = nullptr;
    makecontext(&fiber.first, body, 0);
    fiber.begun = false, fiber.state = READY, fiber.waiting = 0, fiber.group = 0, order[t] = t;
  }
  for (bool going = true; going;) {
    for (unsigned t = count - 1; t > 0; t--) {
      const unsigned other = draw(t + 1), mine = order[t];
      order[t] = order[other], order[other] = mine;
    }
    for (unsigned i = 0; i < count; i++)
      if (fibers[order[i]].state == READY) enter(order[i]);
    if (failure[0]) return;
    going = false;
    for (unsigned t = 0; t < count; t += 32) going |= released(AT_WARP, t, t + 32 < count ? t + 32 : count);
    for (unsigned t = 0; t < count; t += size.x) going |= released(AT_BLOCK, t, t + size.x);
    going |= released(AT_CLUSTER, 0, count);
    if (going) continue;
    for (unsigned t = 0; t < count; t++)
      if (fibers[t].state != DONE) thread = {t % size.x, 0, 0}, fail("it waits for ever at a barrier", false);
  }
}
// Clusters one after the other; behind the shared memory that was asked for nothing may be written.
static void run_guarded() {
  run_block();
  for (unsigned c = 0; c < BESIDE; c++) {
    const unsigned char* const behind = memories[c] + limit;
    if (limit < SHARED && (behind[0] != 0xff || memcmp(behind, behind + 1, SHARED - limit - 1)))
      fail("it writes behind its shared memory", false);
  }
}
// What goes wrong, or null.
static const char* run(void (*what)(), const unsigned* blocks, unsigned threads, unsigned bytes, unsigned first_seed) {
  if (blocks[0] % BESIDE) return "part of a cluster";
  if (threads > MOST || bytes > SHARED) return "more threads or shared memory than a device has";
  limit = bytes, failure[0] = 0;
  if (!stacks) stacks = (char*)malloc(STACK * ALL), fibers = (Fiber*)calloc(ALL, sizeof(Fiber));
  kernel = what, grid = {blocks[0], blocks[1], blocks[2]}, size = {threads, 1, 1}, seed = first_seed;
  for (block.z = 0; block.z < grid.z; block.z++)
    for (block.y = 0; block.y < grid.y; block.y++)
      for (first_block = 0; first_block < grid.x && !failure[0]; first_block += BESIDE) run_guarded();
  return failure[0] ? failure : nullptr;
}

static void copy(void* to, const void* from, unsigned bytes, bool in) {
  Fiber& mine = fibers[self];
  if (mine.waiting == sizeof mine.copies / sizeof *mine.copies) fail("too many copies on their way");
  if ((size_t)to % bytes || (in && (size_t)from % bytes)) fail("a copy that is not aligned");
  memset(to, 0xff, bytes);
  Copy& copy = mine.copies[mine.waiting++];
  copy.to = (unsigned char*)to, copy.from = from, copy.size = (unsigned char)bytes, copy.in = in;
  copy.group = mine.group;
}
static void wait(long left) {
  Fiber& mine = fibers[self];
  unsigned kept = 0;
  for (unsigned i = 0; i < mine.waiting; i++) {
    const Copy& copy = mine.copies[i];
    if (copy.group >= mine.group - left) mine.copies[kept++] = copy;
    else if (copy.in) memcpy(copy.to, copy.from, copy.size);
    else memset(copy.to, 0, copy.size);
  }
  mine.waiting = kept;
}
template <class T> static T shuffled(T value, unsigned lane) {
  const unsigned me = self, from = me / 32 * 32 + lane % 32;
  memcpy(slots[me], &value, sizeof value);
  warp_barrier();
  if (from < size.x * BESIDE) memcpy(&value, slots[from], sizeof value);
  warp_barrier();
  return value;
}
}  // namespace shim

#define threadIdx shim::thread
#define blockIdx shim::block
#define gridDim shim::grid
#define blockDim shim::size
static inline void __syncthreads() { shim::block_barrier(); }
static inline void __threadfence() {}
DEV void cluster_barrier() { shim::cluster_barrier(); }
template <class T> static T __shfl_sync(unsigned, T v, unsigned lane, unsigned width = 32) {
  const unsigned me = threadIdx.x % 32;
  return shim::shuffled(v, me / width * width + lane % width);
}
template <class T> static T __shfl_xor_sync(unsigned, T v, unsigned mask, unsigned = 32) {
  return shim::shuffled(v, (threadIdx.x % 32) ^ mask);
}
template <class T> static T __shfl_down_sync(unsigned, T v, unsigned by, unsigned width = 32) {
  const unsigned me = threadIdx.x % 32;
  return shim::shuffled(v, me % width + by < width ? me + by : me);
}
template <class T> static T atomicAdd(T* p, T v) {
  const T old = *p;
  *p += v;
  return old;
}
template <class T> static T atomicMin(T* p, T v) {
  const T old = *p;
  if (v < old) *p = v;
  return old;
}

DEV float add(float a, float b) { return a + b; }
DEV float sub(float a, float b) { return a - b; }
DEV float mul(float a, float b) { return a * b; }
DEV float div(float a, float b) { return a / b; }
DEV float root(float a) { return __builtin_sqrtf(a); }
DEV float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEV double add(double a, double b) { return a + b; }
DEV double sub(double a, double b) { return a - b; }
DEV double mul(double a, double b) { return a * b; }
DEV double div(double a, double b) { return a / b; }
DEV double root(double a) { return __builtin_sqrt(a); }
DEV double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <class To, class From> DEV To same_bytes(From a) {
  To b;
  memcpy(&b, &a, sizeof b);
  return b;
}
DEV unsigned bits(float a) { return same_bytes<unsigned>(a); }
DEV unsigned long long bits(double a) { return same_bytes<unsigned long long>(a); }
DEV float from_bits(unsigned a) { return same_bytes<float>(a); }
DEV double from_bits(unsigned long long a) { return same_bytes<double>(a); }
DEV float number(long long a, float) { return (float)a; }
DEV double number(long long a, double) { return (double)a; }
DEV float real_of(long long word, float) { return (float)same_bytes<double>(word); }
DEV double real_of(long long word, double) { return same_bytes<double>(word); }
template <class T> DEV void copy_one(T* to, const T* from, bool in) { shim::copy(to, from, sizeof(T), in); }
template <class T> DEV void copy_vector(T* to, const T* from, bool in) { shim::copy(to, from, 16, in); }
DEV void commit_copies() { shim::fibers[shim::self].group++; }
template <int LEFT> DEV void wait_copies() { shim::wait(LEFT); }

// What a program calls: HOST_ENTRY(NAME) makes `host_NAME(call, report, grid, threads, shared bytes, seed)`.
#define HOST_ENTRY(name)                                                                               \
  static const Call* name##_call;                                                                      \
  static Report name##_report;                                                                         \
  static void name##_body() { name(*name##_call, name##_report); }                                     \
  extern "C" const char* host_##name(const Call* call, const Report* report, const unsigned* grid,     \
                                     unsigned threads, unsigned shared_bytes, unsigned seed) {         \
    name##_call = call, name##_report = *report;                                                       \
    return shim::run(name##_body, grid, threads, shared_bytes, seed);                                  \
  }
