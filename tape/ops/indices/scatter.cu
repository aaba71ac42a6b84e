// Rows added at indices, each row's in the order of the indices: positions are grouped by their row, which atomics do in
// any order, each group is put in order by counting, and then every element of the result is one chain.
#include "same_bits.cuh"
enum { OUTER, N, INNER, COUNT, INSIDE, BASE, VALUES, INDICES };  // INSIDE: other rows are left out; BASE: position of x, or 0
enum { SCRATCH = 4 };
constexpr int THREADS = ONE_BLOCK ? 1024 : 256;

struct Groups {
  unsigned *next, *first, *cursor, *found, *ordered;
  METHOD Groups(const Call& call)
      : next(at<unsigned>(call, SCRATCH)), first(next + call.words[N]), cursor(first + call.words[N]), found(cursor + 1),
        ordered(found + call.words[COUNT]) {}
};

// The row of an index, or -1 if there is none.
DEV long long row_of(const Call& call, long long j) {
  const long long index = at<const long long>(call, (int)call.words[INDICES])[j], n = call.words[N];
  const long long row = index < 0 && !call.words[INSIDE] ? index + n : index;
  return row >= 0 && row < n ? row : -1;
}

// What all threads of the launch do for each of `count` things.
template <class Action> DEV void each(long long count, const Action& action) {
  const long long step = (long long)gridDim.x * THREADS;
  for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) action(i);
}

DEV void clear(const Call& call, const Groups& of) {
  each(call.words[N], [&](long long row) { of.next[row] = 0; });
  each(1, [&](long long) { *of.cursor = 0; });
}

DEV void count_rows(const Call& call, const Groups& of, const Report& to) {
  each(call.words[COUNT], [&](long long j) {
    const long long row = row_of(call, j);
    if (row >= 0) atomicAdd(of.next + row, 1u);
    else if (!call.words[INSIDE]) report(to, j);
  });
}

// Room for each row; where the rows lie does not matter.
DEV void give_room(const Call& call, const Groups& of) {
  each(call.words[N], [&](long long row) {
    const unsigned count = of.next[row];
    of.next[row] = of.first[row] = count ? atomicAdd(of.cursor, count) : 0;
  });
}

DEV void place_positions(const Call& call, const Groups& of) {
  each(call.words[COUNT], [&](long long j) {
    const long long row = row_of(call, j);
    if (row >= 0) of.found[atomicAdd(of.next + row, 1u)] = (unsigned)j;
  });
}

// A position comes behind all smaller ones of its row.
DEV void put_in_order(const Call& call, const Groups& of) {
  each(*of.cursor, [&](long long i) {
    const unsigned j = of.found[i];
    const long long row = row_of(call, j);
    const unsigned first = of.first[row], stop = of.next[row];
    unsigned before = first;
#pragma unroll 8
    for (unsigned k = first; k < stop; k++) before += of.found[k] < j;
    of.ordered[before] = j;
  });
}

#if ONE_BLOCK
KERNEL(THREADS, 1) group_rows(PARAMETER Call call, Report to) {
  const Groups of(call);
  clear(call, of);
  __syncthreads();
  count_rows(call, of, to);
  __syncthreads();
  give_room(call, of);
  __syncthreads();
  place_positions(call, of);
  __syncthreads();
  put_in_order(call, of);
}
#else
KERNEL(THREADS, 1) clear_rows(PARAMETER Call call, Report) { clear(call, Groups(call)); }
KERNEL(THREADS, 1) count_positions(PARAMETER Call call, Report to) { count_rows(call, Groups(call), to); }
KERNEL(THREADS, 1) room_of_rows(PARAMETER Call call, Report) { give_room(call, Groups(call)); }
KERNEL(THREADS, 1) positions_of_rows(PARAMETER Call call, Report) { place_positions(call, Groups(call)); }
KERNEL(THREADS, 1) order_positions(PARAMETER Call call, Report) { put_in_order(call, Groups(call)); }

KERNEL(THREADS, 1) add_rows(PARAMETER Call call, Report) {
  const Groups of(call);
  const long long n = call.words[N], inner = call.words[INNER], count = call.words[COUNT];
  each(call.words[OUTER] * n * inner, [&](long long i) {
    const long long row = i / inner % n, outer = i / inner / n;
    const real* const values = at<const real>(call, (int)call.words[VALUES]) + outer * count * inner + i % inner;
    real total = call.words[BASE] ? at<const real>(call, (int)call.words[BASE])[i] : (real)0;
    const unsigned stop = of.next[row];
#pragma unroll 8
    for (unsigned k = of.first[row]; k < stop; k++) total = add(total, values[of.ordered[k] * inner]);
    at<real>(call, 0)[i] = total;
  });
}
#endif

#ifndef __CUDACC__
#if ONE_BLOCK
HOST_ENTRY(group_rows)
#else
HOST_ENTRY(clear_rows)
HOST_ENTRY(count_positions)
HOST_ENTRY(room_of_rows)
HOST_ENTRY(positions_of_rows)
HOST_ENTRY(order_positions)
HOST_ENTRY(add_rows)
#endif
#endif
