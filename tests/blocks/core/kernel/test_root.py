"""Bracketing of roots against roots in closed form."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable, Sequence
from ctypes import CDLL, POINTER, Structure, byref, c_double, c_int, c_int32
from pathlib import Path

import pytest

import biella

PACKAGE = Path(biella.__file__).parent
BISECTIONS = 40  # from 1 to 1e-12

Function = Callable[[float], float]


class Bracket(Structure):
    """``bl_bracket``."""

    a: float
    b: float
    trials: int
    _fields_ = [
        *((name, c_double) for name in ("a", "b", "tolerance", "weight_a", "weight_b", "width")),
        ("trials", c_int32),
        ("moved", c_int32),
    ]


@pytest.fixture(scope="module")
def root(c_compiler, tmp_path_factory):
    """``root.c`` alone as a library."""
    library = tmp_path_factory.mktemp("root") / "root.so"
    source = PACKAGE / "blocks" / "core" / "kernel" / "root.c"
    command = [*c_compiler.command, "-std=c11", "-O2", "-fPIC", "-shared", f"-I{PACKAGE}"]
    subprocess.run([*command, str(source), "-o", str(library), "-lm"], check=True, timeout=300)
    loaded = CDLL(str(library))
    loaded.bl_bracket_open.restype = Bracket
    loaded.bl_bracket_open.argtypes = [c_double] * 3
    loaded.bl_bracket_root.restype = c_double
    loaded.bl_bracket_root.argtypes = [POINTER(Bracket), c_double, c_double]
    loaded.bl_bracket_trial.restype = c_double
    loaded.bl_bracket_trial.argtypes = [POINTER(Bracket), c_double]
    loaded.bl_bracket_narrow.restype = None
    loaded.bl_bracket_narrow.argtypes = [POINTER(Bracket), c_double, c_int]
    return loaded


def search(
    root: CDLL,
    functions: Sequence[Function],
    a: float = 0.0,
    b: float = 1.0,
    tolerance: float = 1e-12,
) -> Bracket:
    """Follow the loop of root.h, and check after each trial what a bracket is."""

    def beyond(values: Sequence[float]) -> bool:
        return any(v < 0.0 or math.isnan(v) for v in values)

    r = root.bl_bracket_open(a, b, tolerance)
    at_a, at_b = [f(a) for f in functions], [f(b) for f in functions]
    assert not beyond(at_a) and beyond(at_b)
    while r.b - r.a > tolerance and r.trials < 4 * BISECTIONS + 4:
        first = math.inf
        for left, right in zip(at_a, at_b, strict=True):
            first = min(first, root.bl_bracket_root(byref(r), left, right))
        s = root.bl_bracket_trial(byref(r), first)
        assert r.a < s < r.b
        values = [f(s) for f in functions]
        if beyond(values):
            at_b = values
        else:
            at_a = values
        width, n = r.b - r.a, r.trials
        root.bl_bracket_narrow(byref(r), s, beyond(values))
        assert r.b - r.a < width and r.trials == n + 1
        assert not beyond(at_a) and beyond(at_b)
    assert r.b - r.a <= tolerance
    return r


SMOOTH = {
    "line": (lambda s: 0.3 - s, 0.3),
    "parabola": (lambda s: 0.25 - s * s, 0.5),
    "cosine": (lambda s: math.cos(3.0 * s), math.pi / 6.0),
    "exponential": (lambda s: math.exp(-20.0 * s) - math.exp(-2.0), 0.1),
    "convex": (lambda s: 0.7**9 - s**9, 0.7),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions(root, name):
    """Illinois has an order of 1.44: fewer trials than bisection, however bent the function is."""
    function, expected = SMOOTH[name]
    r = search(root, [function])
    # The bracket has a width of 1e-12 and holds the root, but for rounding of the function.
    assert r.a - 1e-14 <= expected <= r.b + 1e-14
    assert r.trials < BISECTIONS


def test_a_line_takes_three_trials(root):
    """The first is at the root to rounding, the others within the tolerance at its sides."""
    assert search(root, [lambda s: 0.3 - s]).trials <= 3


def test_the_first_of_several_roots(root):
    """Functions which are negative at the end, one which is not, and one which recovers."""
    functions = [
        lambda s: 0.8 - s,
        lambda s: 0.35 - s * s * s,  # first at 0.7047
        lambda s: 1.0 + s,
        lambda s: math.cos(2.5 * s),  # first at 0.6283
        lambda s: (s - 0.2) ** 2 + 1e-3,
    ]
    r = search(root, functions)
    assert r.a - 1e-14 <= math.pi / 5.0 <= r.b + 1e-14


@pytest.mark.parametrize("at", [1e-9, 0.123, 0.5, 1.0 - 1e-9])
def test_jumps_are_bisected(root, at):
    r = search(root, [lambda s: 1.0 if s < at else -1e-6])
    assert r.a < at <= r.b
    assert r.trials <= 4 * BISECTIONS


def test_flat_functions(root):
    """Nearly zero over most of the interval, at both sides of the root."""
    r = search(root, [lambda s: -((s - 0.6) ** 15)])
    # Where |s - 0.6|^15 underflows to less than rounding of 0.6, the sign is still exact.
    assert r.a - 1e-12 <= 0.6 <= r.b + 1e-12
    zero = search(root, [lambda s: max(0.4 - s, 0.0) if s < 0.9 else 0.9 - s - 1e-3])
    assert zero.a <= 0.9 <= zero.b + 1e-12


def test_tangency_is_no_crossing(root):
    """A function that touches zero at 0.5 and is negative only beyond 0.75."""
    r = search(root, [lambda s: (s - 0.5) ** 2 * (0.75 - s)])
    assert r.a - 1e-14 <= 0.75 <= r.b + 1e-14


@pytest.mark.parametrize("alone", [True, False])
def test_not_a_number_is_beyond(root, alone):
    """The border of a domain, alone or before the root of another function."""
    border = [lambda s: math.sqrt(0.4 - s) + 1.0 if s <= 0.4 else math.nan]
    r = search(root, border if alone else [*border, lambda s: 0.7 - s])
    assert r.a <= 0.4 <= r.b
    assert r.trials <= 4 * BISECTIONS


def test_infinite_values(root):
    r = search(root, [lambda s: 1.0 / s - 5.0 if s > 0.0 else math.inf])
    assert r.a - 1e-14 <= 0.2 <= r.b + 1e-14
    r = search(root, [lambda s: math.inf if s < 0.3 else -math.inf])
    assert r.a <= 0.3 <= r.b


def test_zero_at_the_start(root):
    """A root at the start of the interval: what is beyond begins right after it."""
    r = search(root, [lambda s: -s])
    assert r.a == 0.0
    assert r.trials <= 3


def test_any_interval(root):
    r = search(root, [lambda s: math.cos(s)], a=1.0, b=2.0, tolerance=1e-15)
    assert r.a - 1e-15 <= math.pi / 2.0 <= r.b + 1e-15
    r = search(root, [lambda s: 1e6 + 0.3 - s], a=1e6, b=1e6 + 1.0, tolerance=1e-9)
    assert r.a <= 1e6 + 0.3 <= r.b


def test_a_function_that_is_not_negative_at_the_end_has_no_root(root):
    r = root.bl_bracket_open(0.0, 1.0, 1e-12)
    for at_b in (0.0, 0.1, 1.0, math.inf, math.nan):
        assert root.bl_bracket_root(byref(r), 0.1, at_b) == math.inf
    assert root.bl_bracket_root(byref(r), 0.1, -0.3) == pytest.approx(0.25, rel=1e-15)
