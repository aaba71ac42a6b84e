"""The minimax coefficients of `dgrr.tape.numerics.coefficients` and of `cospi`, computed anew by the Remez exchange.

Run it to print them: ``python tests/bench/elementary_coefficients.py``.
"""

from collections.abc import Callable
from functools import reduce

import mpmath
import numpy as np
from mpmath import mp, mpf

Real = Callable[[mpf], mpf]
OFF_CENTRE = mpf("0.97")
"""Keeps the first nodes off the middle of a symmetric interval, where the weight may vanish."""


def minimax(target: Real, weight: Real, low: mpf, high: mpf, degree: int) -> tuple[list[mpf], mpf]:
    """The polynomial p of least max |weight * (p - target)|, lowest coefficient first, and that maximum."""
    nodes = [chebyshev(low, high * OFF_CENTRE, degree + 2, k) for k in range(degree + 2)]
    for _ in range(12):
        system = mpmath.matrix(degree + 2, degree + 2)
        for row, x in enumerate(nodes):
            for power in range(degree + 1):
                system[row, power] = x**power
            system[row, degree + 1] = (-1) ** row / weight(x)
        *coefficients, level = mpmath.lu_solve(system, mpmath.matrix([target(x) for x in nodes]))

        def error(x: mpf, p: list[mpf] = coefficients) -> mpf:
            return weight(x) * (horner(p, x) - target(x))

        nodes, worst = extrema(error, low, high, nodes)
        if worst < abs(level) * mpf("1.000001"):
            break
    return coefficients, worst


def chebyshev(low: mpf, high: mpf, count: int, k: int) -> mpf:
    """The ``k``-th of ``count`` Chebyshev nodes, ascending; none on an end, where the weight may vanish."""
    return (low + high) / 2 - (high - low) / 2 * mpmath.cos(mp.pi * (2 * k + 1) / (2 * count))


def horner(coefficients: list[mpf], x: mpf) -> mpf:
    """The polynomial's value."""
    return reduce(lambda value, c: value * x + c, reversed(coefficients))


def extrema(error: Real, low: mpf, high: mpf, nodes: list[mpf]) -> tuple[list[mpf], mpf]:
    """The point of the largest |error| in each stretch of one sign, and the largest of all."""
    grid = [chebyshev(low, high, 60 * len(nodes), k) for k in range(60 * len(nodes))] + [high]
    values = [error(x) for x in grid]
    peaks: list[tuple[mpf, mpf]] = []
    for x, value in zip(grid, values, strict=True):
        if peaks and (value > 0) == (peaks[-1][1] > 0):
            peaks[-1] = max(peaks[-1], (x, value), key=lambda peak: abs(peak[1]))
        else:
            peaks.append((x, value))
    while len(peaks) > len(nodes):
        peaks.pop(0 if abs(peaks[0][1]) < abs(peaks[-1][1]) else -1)
    return [x for x, _ in peaks], max(abs(value) for _, value in peaks)


def exp_tail(r: mpf) -> mpf:
    """(exp(r) - 1 - r) / r**2, by its series near 0."""
    return sum(r**k / mpmath.factorial(k + 2) for k in range(40))


def exp_weight(r: mpf) -> mpf:
    """What makes an error of the tail the relative error of exp."""
    return r * r / mpmath.exp(r)


def tanh_tail(z: mpf) -> mpf:
    """(tanh(x) / x - 1) / x**2 as a function of z = x**2."""
    x = mpmath.sqrt(z)
    return (mpmath.tanh(x) / x - 1) / z


def tanh_weight(z: mpf) -> mpf:
    """What makes an error of the tail the relative error of tanh."""
    return z / (1 + z * tanh_tail(z))


def cospi_tail(s: mpf) -> mpf:
    """(cos(pi z) - 1 + (pi z)**2 / 2) / z**4 as a function of s = z**2, by its series."""
    return sum((-1) ** k * mp.pi ** (2 * k) * s ** (k - 2) / mpmath.factorial(2 * k) for k in range(2, 30))


def cospi_weight(s: mpf) -> mpf:
    """What makes an error of the tail the relative error of cos(pi z)."""
    return s * s / mpmath.cos(mp.pi * mpmath.sqrt(s))


def sinpi_tail(s: mpf) -> mpf:
    """(sin(pi z) / z - pi) / z**2 as a function of s = z**2, by its series."""
    return sum((-1) ** k * mp.pi ** (2 * k + 1) * s ** (k - 1) / mpmath.factorial(2 * k + 1) for k in range(1, 30))


def sinpi_weight(s: mpf) -> mpf:
    """What makes an error of the tail the relative error of sin(pi z)."""
    return s / (mp.pi + s * sinpi_tail(s))


def artanh_tail(z: mpf) -> mpf:
    """(log((1 + s) / (1 - s)) / s - 2) / z - 2/3, over z, as a function of z = s**2, by its series."""
    return sum(mpf(2) * z**k / (2 * k + 5) for k in range(45))


def erf_near(z: mpf) -> mpf:
    """erf(x) / x - 1 as a function of z = x**2."""
    x = mpmath.sqrt(z)
    return mpmath.erf(x) / x - 1


def erf_far(a: mpf) -> mpf:
    """log(1 - erf(a))."""
    return mpmath.log(mpmath.erfc(a))


def erf_far_weight(a: mpf) -> mpf:
    """What makes an error of the logarithm the relative error of erf."""
    return mpmath.erfc(a) / mpmath.erf(a)


def sine_tail(z: mpf) -> mpf:
    """(sin(r) / r - 1) / z as a function of z = r**2, by its series."""
    return sum((-1) ** k * z ** (k - 1) / mpmath.factorial(2 * k + 1) for k in range(1, 30))


def cosine_tail(z: mpf) -> mpf:
    """(cos(r) - 1 + z / 2) / z**2 as a function of z = r**2, by its series."""
    return sum((-1) ** k * z ** (k - 2) / mpmath.factorial(2 * k) for k in range(2, 30))


def cosine_weight(z: mpf) -> mpf:
    """What makes an error of the tail the relative error of cos."""
    return z * z / mpmath.cos(mpmath.sqrt(z))


def arctan_tail(z: mpf) -> mpf:
    """(atan(u) / u - 1) / z as a function of z = u**2, by its series."""
    return sum((-1) ** k * z ** (k - 1) / (2 * k + 1) for k in range(1, 90))


def arcsine_tail(z: mpf) -> mpf:
    """(asin(t) / t - 1) / z as a function of z = t**2, by its series."""
    return sum(mpmath.binomial(2 * k, k) * z ** (k - 1) / (mpf(4) ** k * (2 * k + 1)) for k in range(1, 120))


def show_inverses(dtype: type[np.floating], arctan: int, arcsine: int) -> None:
    """Print the tables of atan, asin and acos: their degrees."""
    top, half = (mpmath.sqrt(2) - 1) ** 2 * mpf("1.00001"), mpf("0.25")
    show("arctan", *minimax(arctan_tail, lambda z: z / (1 + z * arctan_tail(z)), mpf(0), top, arctan), dtype)
    show("arcsine", *minimax(arcsine_tail, lambda z: z / (1 + z * arcsine_tail(z)), mpf(0), half, arcsine), dtype)


def show_functions(dtype: type[np.floating], artanh: int, near: int, far: int, one: int, waves: int) -> None:
    """Print the tables of powers, erf, sin and cos: their degrees, and where erf rounds to 1."""
    root, turn = mpmath.sqrt(2), (mp.pi / 4 * mpf("1.001")) ** 2
    top = ((root - 1) / (root + 1)) ** 2 * mpf("1.00001")
    cut = mpf("0.875")
    show("artanh", *minimax(artanh_tail, lambda z: z * z / 2, mpf(0), top, artanh), dtype)
    show("erf_near", *minimax(erf_near, lambda z: 1 / (1 + erf_near(z)), mpf(0), cut**2, near), dtype)
    show("erf_far", *minimax(erf_far, erf_far_weight, cut, mpf(one), far), dtype)
    show("sine", *minimax(sine_tail, lambda z: z / (1 + z * sine_tail(z)), mpf(0), turn, waves), dtype)
    show("cosine", *minimax(cosine_tail, cosine_weight, mpf(0), turn, waves), dtype)


def show(name: str, coefficients: list[mpf], error: mpf, dtype: type[np.floating]) -> None:
    """Print a table, highest power first, as hexadecimal floats."""
    print(f"{name} {dtype.__name__}: relative error 2**{float(mpmath.log(error, 2)):.1f}")
    for c in reversed(coefficients):
        print(f'    "{float(dtype(mpmath.nstr(c, 40))).hex()}",')


def main() -> None:
    """Print every minimax table."""
    mp.dps = 60
    half, top = mpmath.log(2) / 2 * mpf("1.00001"), mpf("0.625") ** 2
    for dtype, exp_degree, tanh_degree in ((np.float32, 5, 4), (np.float64, 9, 10)):
        show("exp", *minimax(exp_tail, exp_weight, -half, half, exp_degree), dtype)
        top = mpf("0.625") ** 2
        show("tanh", *minimax(tanh_tail, lambda z: z / (1 + z * tanh_tail(z)), mpf(0), top, tanh_degree), dtype)
    show_functions(np.float32, 3, 6, 8, 4, 3)
    show_functions(np.float64, 6, 11, 20, 6, 5)
    show_inverses(np.float32, 4, 5)
    show_inverses(np.float64, 11, 13)
    top = mpf("0.25") ** 2
    show("cospi", *minimax(cospi_tail, cospi_weight, mpf(0), top, 5), np.float64)
    show("sinpi", *minimax(sinpi_tail, sinpi_weight, mpf(0), top, 5), np.float64)


if __name__ == "__main__":
    main()
