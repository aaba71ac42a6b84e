// Where convolutions find the elements of their source. The words of a call are read from the device's memory: they are
// those of the CPU's kernels. By -D: MIDDLE_AXES, whether there are axes between the first and the last.
#pragma once
#include "same_bits.cuh"

// Positions of the words, as in kernels/words.py.
enum {
  SAMPLES, GROUPS, CHANNELS, OUTPUTS, CLASSES, DEPTH, RESULTS, PADDED, BIAS,
  STRIPS, STRIP, ROWS, INNER, PHASES, LOWEST, SPAN, PLANE, IMAGE, PANEL, GRADIENT,
  STEP, SOURCE, SOURCE_PLANE, SOURCE_ROW, MIDDLE_TAPS, MIDDLE, LAST_TAPS, LAST, LAST_STEP, LAST_SOURCE,
  PHASE_TABLE, MIDDLE_TABLE, LAST_TABLE, CLASS_TABLE, OFFSET_TABLE
};
enum {
  WEIGHT_GROUPS, WEIGHT_OUTPUTS, WEIGHT_CLASSES, WEIGHT_DEPTH, WEIGHT_PADDED,
  OUTPUT_STRIDE, GROUP_STRIDE, WEIGHT_TABLES
};
enum { LINES, SOURCE_LINE, LINE, APART, INTERLEAVED_ROWS, ROW_TABLE };
// Positions of the addresses, and of what a launch adds to the words.
enum { OUT, P_SOURCE, P_OPERAND, P_BIAS, P_WORDS, PARTIAL };
enum { EACH };

// One side of an element of the source: a position of the results, or a term. Both sides together say where it lies,
// by its distance in elements and its places along the first and the last axis; outside the source stands +0. Of three
// and more axes `middle` is the entry of a table for all between.
struct alignas(16) Place {
  long long offset;
  int first, last;
#if MIDDLE_AXES
  long long middle;
#endif
};

struct Source {
  const real* base;
  const long long* words;
  unsigned length, last_length;
  METHOD Source(const Call& call, const long long* w, int group)
      : base(at<const real>(call, P_SOURCE) + group * w[CHANNELS] * w[SOURCE_PLANE]), words(w),
        length((unsigned)w[SOURCE]), last_length((unsigned)w[LAST_SOURCE]) {}
  // Whether an element is in the source, and its distance from the base.
  METHOD bool find(const Place& a, const Place& b, long long& offset) const {
    bool in = (unsigned)(a.first + b.first) < length && (unsigned)(a.last + b.last) < last_length;
    offset = a.offset + b.offset;
#if MIDDLE_AXES
    if (in) {
      const long long row = words[words[MIDDLE_TABLE] + a.middle + b.middle];
      in = row >= 0, offset += row;
    }
#endif
    return in;
  }
  METHOD void copy(real* to, const Place& a, const Place& b) const {
    long long offset;
    const bool in = find(a, b, offset);
    copy_one(to, base + offset, in);
  }
  METHOD real value(const Place& a, const Place& b) const {
    long long offset;
    return find(a, b, offset) ? base[offset] : (real)0;
  }
};

DEV Place nowhere() {
  Place place;
  place.offset = 0, place.first = place.last = -(1 << 30);
#if MIDDLE_AXES
  place.middle = 0;
#endif
  return place;
}

// The term at an entry of the table of offsets, which says where the CPU's image has it: by channel, by taps of all
// axes but the first, and by the first axis in phases of a step.
DEV Place term(const long long* w, long long entry) {
  const long long image = w[w[OFFSET_TABLE] + entry] / (long long)sizeof(real), of_channel = w[PLANE] * w[MIDDLE_TAPS] * w[LAST_TAPS];
  const long long channel = image / of_channel;
  const unsigned rest = (unsigned)(image - channel * of_channel), plane = (unsigned)w[PLANE], taps = (unsigned)w[LAST_TAPS];
  const unsigned tap = rest / plane, row = rest % plane / (unsigned)w[INNER], rows = (unsigned)(w[STRIP] + w[SPAN]);
  Place place;
  place.first = (int)((row % rows + w[LOWEST]) * w[STEP] + w[w[PHASE_TABLE] + row / rows]);
  place.last = (int)w[w[LAST_TABLE] + tap % taps];
  place.offset = channel * w[SOURCE_PLANE] + place.first * w[SOURCE_ROW] + place.last;
#if MIDDLE_AXES
  place.middle = tap / taps * w[MIDDLE];
#endif
  return place;
}

// A result, counted through all samples.
DEV Place position(const long long* w, unsigned result) {
  const unsigned sample = result / (unsigned)w[RESULTS], q = result % (unsigned)w[RESULTS], inner = (unsigned)w[INNER], last = (unsigned)w[LAST];
  Place place;
  place.first = (int)(q / inner * w[STEP]), place.last = (int)(q % inner % last * w[LAST_STEP]);
  place.offset = sample * w[GROUPS] * w[CHANNELS] * w[SOURCE_PLANE] + place.first * w[SOURCE_ROW] + place.last;
#if MIDDLE_AXES
  place.middle = q % inner / last;
#endif
  return place;
}
