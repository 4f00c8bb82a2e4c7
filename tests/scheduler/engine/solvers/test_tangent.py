"""The growth of a small deviation along a run: known exponents, and steps that are too long."""

import ctypes
from typing import Any

import numpy as np
import pytest

from biella import Diagram
from biella.blocks import Expression, Integrator
from biella.scheduler.engine._engine import Instance
from biella.scheduler.run._error_sampling import Sampler

pytestmark = pytest.mark.engine


def make_system(step: float, solver: str = "rk4", **equations: tuple[float, str]) -> Diagram:
    """Return states with their start values and derivatives."""
    d = Diagram("system", step=step, solver=solver)
    states = {name: d.add(Integrator(start), name) for name, (start, _) in equations.items()}
    for name, (_, formula) in equations.items():
        block = Expression(formula)
        used: Any = {port.name: states[port.name] for port in block.inputs}
        d.connect(d.add(block, f"d{name}", **used), states[name])
    return d


def find_growth(d: Diagram, until: float) -> tuple[np.ndarray, int]:
    """Return the logarithm of growth over time, and how many steps were too long."""
    plan = d.compile()
    ticks = round(until / plan.step)
    with Instance(plan) as instance, Sampler(instance, ticks) as sampler:
        instance.initialize()
        sampler.run(ticks, None)
        return sampler.finish().growths, int(sampler._estimate.unresolved)


@pytest.mark.parametrize("rate", [0.7, -0.4])
def test_exponential_growth_and_decay(rate):
    """Of x' = rate x, and of a slower one: ln of the growth is rate · t, with rk4 to 1e-6."""
    d = make_system(1e-3, x=(1.0, f"{rate}*x"), y=(1.0, f"{rate}*y"))
    growths, unresolved = find_growth(d, 10.0)
    times = 0.08 * np.arange(1, 1 + growths.size)
    assert unresolved == 0 and growths.size == 125
    np.testing.assert_allclose(growths, rate * times, rtol=0, atol=1e-4)


def test_lorenz():
    """The largest exponent of the classical parameters is 0.906 [Sprott 2003]: within 8 % in 200 s.

    The mean over a finite time fluctuates: by about 0.5 / √200 s.
    """
    d = make_system(
        5e-4,
        x=(1.0, "10*(y - x)"),
        y=(1.0, "x*(28 - z) - y"),
        z=(20.0, "x*y - 8/3*z"),
    )
    growths, _ = find_growth(d, 200.0)
    assert (growths[-1] - growths[499]) / 180.0 == pytest.approx(0.906, rel=0.08)


def test_regular_motions_do_not_grow():
    """Of an oscillator not at all, but for the norm; of a Kepler orbit linearly."""
    growths, _ = find_growth(make_system(1e-3, x=(1.0, "v"), v=(0.0, "-9*x")), 20.0)
    assert np.abs(growths).max() < 1.5  # ln 3, the ratio of its axes, and a start in between
    orbit = make_system(
        1e-3,
        x=(0.4, "u"),
        y=(0.0, "v"),
        u=(0.0, "-x/(x*x + y*y)**1.5"),
        v=(2.0, "-y/(x*x + y*y)**1.5"),
    )
    growths, _ = find_growth(orbit, 40.0)
    assert growths.max() < 8.0


def test_motions_that_are_too_fast_end_the_measurement():
    """A lag of 5 ms and steps of 80 ms: after 8 of them, and nothing is said about growth."""
    growths, unresolved = find_growth(make_system(1e-3, x=(1.0, "-200*x")), 20.0)
    assert growths.size == 0 and unresolved == 8


def test_only_the_memory_that_was_given_is_written():
    """Three growths of four that fit, and six vectors of two elements."""
    plan = make_system(1e-3, x=(1.0, "v"), v=(0.0, "-9*x")).compile()
    with Instance(plan) as instance, Sampler(instance, 20_000) as sampler:
        instance.initialize()
        work, growths = np.full(12 + 8, 7.0), np.full(4, 7.0)
        double = ctypes.POINTER(ctypes.c_double)
        sampler._estimate.tangent_work = work.ctypes.data_as(double)
        sampler._estimate.growths = growths.ctypes.data_as(double)
        sampler._estimate.growth_capacity = 3
        sampler.run(1000, None)
        assert sampler._estimate.growth_count == 3
    assert growths[3] == 7.0 and (growths[:3] != 7.0).all()
    assert (work[12:] == 7.0).all() and (work[:12] != 7.0).all()
