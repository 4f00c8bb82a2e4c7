"""The pattern of df/dx that a plan carries has every entry of the Jacobian, and not many more."""

import numpy as np
import pytest

from biella import Diagram, linearize
from biella.blocks import Expression, Gain, Integrator, Sum

pytestmark = pytest.mark.engine


def ring(n: int) -> Diagram:
    """Integrators in a ring: each depends on itself and on the one before."""
    d = Diagram("ring", step=1e-2, solver="radau5")
    states = [d.add(Integrator(float(k)), f"x{k}") for k in range(n)]
    for k, x in enumerate(states):
        before = d.add(Gain(0.5), f"g{k}", u=states[k - 1])
        d.connect(d.add(Sum("+-"), f"s{k}", u1=before, u2=x), x)
    d.output("y", states[0])
    return d


def read_pattern(d: Diagram, n: int) -> np.ndarray:
    words = np.frombuffer(d.compile().sections["JPAT"], dtype="<i4")
    firsts, rows = words[: n + 1], words[n + 1 :]
    found = np.zeros((n, n), dtype=bool)
    for column in range(n):
        found[rows[firsts[column] : firsts[column + 1]], column] = True
    return found


def test_a_ring_has_two_entries_in_each_row():
    pattern = read_pattern(ring(12), 12)
    assert np.array_equal(pattern, np.eye(12, dtype=bool) | np.roll(np.eye(12, dtype=bool), -1, 1))
    assert not np.any((linearize(ring(12)).A != 0) & ~pattern)


def test_a_full_jacobian_has_no_pattern():
    d = Diagram("full", step=1e-2, solver="radau5")
    x = d.add(Integrator([1.0, 2.0]), "x")
    d.connect(d.add(Expression({"y": ["-u[0] + u[1]", "u[0] * u[1]"]}), "f", u=x), x)
    assert len(d.compile().sections.get("JPAT", b"")) == 0
