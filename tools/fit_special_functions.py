#!/usr/bin/env python3
"""Makes src/kernels/functors/special_series.h: Chebyshev series of the pieces that special functions are put together from.

usage: fit_special_functions.py > src/kernels/functors/special_series.h        (needs mpmath)

A piece is a smooth function of t in [-1, 1]. Its coefficients are the sums over Chebyshev's nodes, in 50 digits; those below a double's rounding are left off.
"""
import mpmath as mp

mp.mp.dps = 50
NODES = 96
J0_ROOT, J1_ROOT = mp.besseljzero(0, 1), mp.besseljzero(1, 1)


def between(low, high):
    return lambda t: (mp.mpf(high) - low) * (t + 1) / 2 + low


def hankel_even(order, x):
    """P of J = sqrt(2 / (pi x)) (P cos(phase) - Q sin(phase)) and Y = sqrt(2 / (pi x)) (P sin(phase) + Q cos(phase))."""
    phase = x - (2 * order + 1) * mp.pi / 4
    return mp.sqrt(mp.pi * x / 2) * (mp.besselj(order, x) * mp.cos(phase) + mp.bessely(order, x) * mp.sin(phase))


def of_square(f, end):
    """f(x), as a series in x² up to end²; where x is 0, what it tends to."""
    square = between(0, end * end)
    return lambda t: f(mp.sqrt(square(t)) + mp.mpf(10) ** -20)


def of_inverse(f, start):
    """f(x), as a series in start / x."""
    inverse = between(0, 1)
    return lambda t: f(start / (inverse(t) + mp.mpf(10) ** -18))


def of_inverse_square(f, start):
    inverse = between(0, 1)
    return lambda t: f(start / mp.sqrt(inverse(t) + mp.mpf(10) ** -12))


def erfcx(x):
    return mp.exp(x * x) * mp.erfc(x) if x < 50 else mp.nsum(lambda k: (-1) ** int(k) * mp.fac2(2 * k - 1) / (2 * x * x) ** k, [0, 20]) / (x * mp.sqrt(mp.pi))


def fold(f, k):
    """f(x) for x from 0 on, as a series in (x - k) / (x + k)."""
    return lambda t: f(k * (1 + t) / (1 - t + mp.mpf(10) ** -30))


PIECES = {
    "kJ0Near": ("J0(x) / (x² - r²), r its first root; in x² up to 5²", of_square(lambda x: mp.besselj(0, x) / (x * x - J0_ROOT**2), 5)),
    "kJ1Near": ("J1(x) / (x (x² - r²)), r its first root; in x² up to 5²", of_square(lambda x: mp.besselj(1, x) / (x * (x * x - J1_ROOT**2)), 5)),
    "kY0Near": ("Y0(x) - 2/pi log(x) J0(x); in x² up to 5²", of_square(lambda x: mp.bessely(0, x) - 2 / mp.pi * mp.log(x) * mp.besselj(0, x), 5)),
    "kY1Near": ("(Y1(x) - 2/pi (log(x) J1(x) - 1/x)) / x; in x² up to 5²",
                of_square(lambda x: (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x, 5)),
    "kHankelEven0": ("what multiplies cos(x - pi/4) in J0, times sqrt(pi x / 2); in 25 / x²", of_inverse_square(lambda x: hankel_even(0, x), 5)),
    "kHankelEven1": ("what multiplies cos(x - 3 pi/4) in J1, times sqrt(pi x / 2); in 25 / x²", of_inverse_square(lambda x: hankel_even(1, x), 5)),
    "kI0eNear": ("exp(-x) I0(x); in x up to 8", lambda t: mp.exp(-between(0, 8)(t)) * mp.besseli(0, between(0, 8)(t))),
    "kI1eNear": ("exp(-x) I1(x) / x; in x up to 8", lambda t: mp.exp(-between(1e-20, 8)(t)) * mp.besseli(1, between(1e-20, 8)(t)) / between(1e-20, 8)(t)),
    "kI0eFar": ("sqrt(x) exp(-x) I0(x); in 8 / x", of_inverse(lambda x: scaled_i(0, x), 8)),
    "kI1eFar": ("sqrt(x) exp(-x) I1(x); in 8 / x", of_inverse(lambda x: scaled_i(1, x), 8)),
    "kI0Small": ("I0(x); in x² up to 2²", of_square(lambda x: mp.besseli(0, x), 2)),
    "kI1Small": ("I1(x) / x; in x² up to 2²", of_square(lambda x: mp.besseli(1, x) / x, 2)),
    "kK0Near": ("K0(x) + log(x / 2) I0(x); in x² up to 2²", of_square(lambda x: mp.besselk(0, x) + mp.log(x / 2) * mp.besseli(0, x), 2)),
    "kK1Near": ("(K1(x) - log(x / 2) I1(x) - 1/x) / x; in x² up to 2²",
                of_square(lambda x: (mp.besselk(1, x) - mp.log(x / 2) * mp.besseli(1, x) - 1 / x) / x, 2)),
    "kK0eFar": ("sqrt(x) exp(x) K0(x); in 2 / x", of_inverse(lambda x: scaled_k(0, x), 2)),
    "kK1eFar": ("sqrt(x) exp(x) K1(x); in 2 / x", of_inverse(lambda x: scaled_k(1, x), 2)),
    "kErfcx": ("(1 + 2 x) exp(x²) erfc(x); in (x - 15/4) / (x + 15/4)", fold(lambda x: (1 + 2 * x) * erfcx(x), mp.mpf(15) / 4)),
}


def far_series(order, x):
    """1 - (4n² - 1) / (8x) + (4n² - 1) (4n² - 9) / (2! (8x)²) - ..."""
    total = term = mp.mpf(1)
    for k in range(1, 40):
        term *= -(4 * order * order - (2 * k - 1) ** 2) / (8 * x * k)
        total += term
    return total


def scaled_i(order, x):
    return mp.sqrt(x) * mp.exp(-x) * mp.besseli(order, x) if x < 1000 else far_series(order, x) / mp.sqrt(2 * mp.pi)


def scaled_k(order, x):
    return mp.sqrt(x) * mp.exp(x) * mp.besselk(order, x) if x < 1000 else far_series(order, -x) * mp.sqrt(mp.pi / 2)


def coefficients(f):
    values = [f(mp.cos(mp.pi * (k + mp.mpf(1) / 2) / NODES)) for k in range(NODES)]
    series = [2 * mp.fsum(v * mp.cos(mp.pi * j * (k + mp.mpf(1) / 2) / NODES) for k, v in enumerate(values)) / NODES for j in range(NODES)]
    series[0] /= 2
    scale = max(map(abs, series))
    while abs(series[-1]) < scale * mp.mpf(2) ** -55:
        series.pop()
    return series


def split(value):
    high = float(value)
    return high, float(value - mp.mpf(high))


def main():
    print("// Chebyshev series, made by tools/fit_special_functions.py: c0 + c1 T1(t) + c2 T2(t) + ... with t from -1 to 1 over the range.\n#pragma once\n")
    print("namespace umbra::functors::series {\n")
    for name, root in (("kJ0Root", J0_ROOT), ("kJ1Root", J1_ROOT)):
        high, low = split(root)
        print(f"inline constexpr double {name} = {high!r}, {name}Rest = {low!r};")
    for name, (text, f) in PIECES.items():
        numbers = ", ".join(repr(float(c)) for c in coefficients(f))
        print(f"\n/// {text}\ninline constexpr double {name}[] = {{{numbers}}};")
    print("\n}  // namespace umbra::functors::series")


main()
