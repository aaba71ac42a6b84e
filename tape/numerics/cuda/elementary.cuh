// exp and log as docs/numerics.md has them, under *Elementary functions*: the trees of tape/numerics/math/elementary.py
// and the constants of tape/numerics/coefficients.py.
#pragma once
#include "same_bits.cuh"

template <class T> struct Constants;

template <> struct Constants<float> {
  typedef unsigned Bits;
  static constexpr int MANTISSA = 23, BIAS = 127, EXP_TERMS = 6, LOG_TERMS = 4;
  static constexpr float log2_e = 0x1.7154760000000p+0f;
  static constexpr float ln2_high = 0x1.62e4000000000p-1f;
  static constexpr float ln2_low = 0x1.7f7d1c0000000p-20f;
  static constexpr float exp_zero = -0x1.a400000000000p+6f;
  static constexpr float exp_overflow = 0x1.6400000000000p+6f;
  static constexpr float smallest_normal = 0x1.0000000000000p-126f;
  static constexpr float rounder = 0x1.8000000000000p+23f;
  static constexpr float lift = 0x1.0000000000000p+24f;
  static constexpr float lift_exponent = 0x1.8000000000000p+4f;
  static constexpr float root_half = 0x1.6a09e60000000p-1f;
  METHOD static float exp(int i) {
    const float terms[] = {
      0x1.9f08dc0000000p-13f, 0x1.6d8cf60000000p-10f, 0x1.1112700000000p-7f, 0x1.55548e0000000p-5f,
      0x1.5555540000000p-3f, 0x1.0000000000000p-1f};
    return terms[i];
  }
  METHOD static float log(int i) {
    const float terms[] = {
      0x1.f13c4c0000000p-3f, 0x1.23d3dc0000000p-2f, 0x1.999c260000000p-2f, 0x1.5555540000000p-1f};
    return terms[i];
  }
};

template <> struct Constants<double> {
  typedef unsigned long long Bits;
  static constexpr int MANTISSA = 52, BIAS = 1023, EXP_TERMS = 10, LOG_TERMS = 7;
  static constexpr double log2_e = 0x1.71547652b82fep+0;
  static constexpr double ln2_high = 0x1.62e42fee00000p-1;
  static constexpr double ln2_low = 0x1.a39ef35793c76p-33;
  static constexpr double exp_zero = -0x1.7500000000000p+9;
  static constexpr double exp_overflow = 0x1.6300000000000p+9;
  static constexpr double smallest_normal = 0x1.0000000000000p-1022;
  static constexpr double rounder = 0x1.8000000000000p+52;
  static constexpr double lift = 0x1.0000000000000p+54;
  static constexpr double lift_exponent = 0x1.b000000000000p+5;
  static constexpr double root_half = 0x1.6a09e667f3bcdp-1;
  METHOD static double exp(int i) {
    const double terms[] = {
      0x1.ad7f86bbed09cp-26, 0x1.28ad6998b9cabp-22, 0x1.71df25351f8c3p-19, 0x1.a0199a15ec13bp-16,
      0x1.a01a012a6ae70p-13, 0x1.6c16c18426be1p-10, 0x1.1111111127b9bp-7, 0x1.555555555088bp-5,
      0x1.55555555554fap-3, 0x1.000000000000ap-1};
    return terms[i];
  }
  METHOD static double log(int i) {
    const double terms[] = {
      0x1.2f112df3e5244p-3, 0x1.39a09d078c69fp-3, 0x1.7466496cb03dep-3, 0x1.c71c51d8e78afp-3,
      0x1.2492494229359p-2, 0x1.999999997fa04p-2, 0x1.5555555555593p-1};
    return terms[i];
  }
};

typedef Constants<real> Known;
typedef Known::Bits Bits;

// The polynomial with these coefficients, highest power first, by Horner's scheme with fma.
template <int TERMS, class Terms> DEV real polynomial(real x, Terms terms) {
  real value = terms(0);
#pragma unroll
  for (int i = 1; i < TERMS; i++) value = fused(value, x, terms(i));
  return value;
}

DEV real exp_of(real x) {
  const real one = (real)1, overflow = Known::exp_overflow, zero = Known::exp_zero;
  x = x > overflow ? overflow : x;
  x = x < zero ? zero : x;
  const real rounded = fused(x, Known::log2_e, Known::rounder), n = sub(rounded, Known::rounder);
  const real high = fused(n, -Known::ln2_high, x), low = mul(n, -Known::ln2_low), r = fused(n, -Known::ln2_low, high);
  const real q = polynomial<Known::EXP_TERMS>(r, [](int i) { return Known::exp(i); });
  const real tail = fused(mul(r, r), q, low);
  real y = add(one, high);
  y = add(y, add(add(sub(one, y), high), tail));
  // 2^n in two factors, since n may pass the exponent's range.
  const Bits fields = bits(rounded) - bits((real)Known::rounder) + 2 * (Bits)Known::BIAS, first = fields >> 1;
  return mul(mul(y, from_bits((Bits)(first << Known::MANTISSA))), from_bits((Bits)((fields - first) << Known::MANTISSA)));
}

DEV real log_of(real x) {
  const real zero = (real)0, one = (real)1, infinity = from_bits((Bits)((2 * (Bits)Known::BIAS + 1) << Known::MANTISSA));
  const bool subnormal = x < Known::smallest_normal;
  const Bits given = bits(subnormal ? mul(x, Known::lift) : x), above = bits(one) - bits((real)Known::root_half);
  const Bits exponent = (Bits)((given + above) >> Known::MANTISSA) - (Bits)Known::BIAS;
  const real f = sub(from_bits((Bits)(given - (exponent << Known::MANTISSA))), one);
  real n = sub(from_bits((Bits)(exponent + bits((real)Known::rounder))), Known::rounder);
  n = sub(n, subnormal ? (real)Known::lift_exponent : zero);
  const real s = div(f, add(f, (real)2)), z = mul(s, s), half_f = mul((real)0.5, f);
  const real q = polynomial<Known::LOG_TERMS>(z, [](int i) { return Known::log(i); });
  real tail = fused(s, fused(z, q, mul(half_f, f)), mul(n, Known::ln2_low));
  tail = add(fused(-half_f, f, tail), -zero);
  const real high = mul(n, Known::ln2_high);
  real y = add(high, f);
  y = add(y, add(add(sub(high, y), f), tail));
  y = x == infinity ? x : y;
  y = x == zero ? -infinity : y;
  y = x < zero ? sub(infinity, infinity) : y;
  return x != x ? x : y;
}
