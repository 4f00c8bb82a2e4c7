"""What the location of events costs, and where it ends."""

import pytest

from biella import BlockError, Diagram
from biella.blocks import Backlash, Constant, Expression, Integrator, Saturation, Sine, Time
from biella.scheduler.engine._engine import Instance
from biella.scheduler.engine._library import contract

pytestmark = pytest.mark.engine


def count(instance: Instance, counter: int) -> int:
    return int(instance.counters[counter])


@pytest.mark.parametrize("solver", ["rk4", "dopri5", "radau5"])
def test_a_nearly_straight_crossing_is_found_by_its_secants(solver):
    """exp(t) leaves the limits at ln 1.55: bisection to 1e-12 of a step needs 40 trials."""
    d = Diagram("secants", step=0.1, solver=solver)
    x = d.add(Integrator(1.0), "x")
    d.connect(x, x)
    d.add(Integrator(), "y", u=d.add(Saturation(-1.55, 1.55), "limited", u=x))
    with d.compile().instantiate() as instance:
        instance.run(10)
        assert instance.event_counts[0] == 1
        assert 1 <= count(instance, contract.BL_COUNT_SEARCHED) <= 10


@pytest.mark.parametrize("solver", ["rk4", "dopri5", "radau5"])
def test_a_crossing_after_the_last_part_of_a_checked_step(solver):
    """In tick 64 the inputs of the play are looked at in seven parts; t reaches 0.6499 after them.

    The search knows the distances at both ends of the step: two trials make a bracket of a straight
    line. The limited time has the integral 0.6499²/2 + 0.6499 · 0.0501 at 0.7 s.
    """
    d = Diagram("late", step=1e-2, solver=solver)
    d.chain(d.add(Sine(1.0, 0.3), "u"), d.add(Backlash(0.1), "play"), d.add(Integrator(), "p"))
    d.chain(
        d.add(Time(), "t"), d.add(Saturation(-1.0, 0.6499), "limited"), d.add(Integrator(), "x")
    )
    with d.compile().instantiate() as instance:
        instance.run(64)
        before = count(instance, contract.BL_COUNT_SEARCHED)
        instance.run(6)
        assert count(instance, contract.BL_COUNT_SEARCHED) - before == 2
        assert instance.get("x") == pytest.approx(0.6499**2 / 2 + 0.6499 * 0.0501, abs=1e-12)


def make_steep(**options) -> Diagram:
    """x' = -eˣ from 7: too steep for a step of 0.1 s. The limits of y are beside it."""
    d = Diagram("steep", step=0.1, solver="radau5", **options)
    x = d.add(Integrator(7.0), "x")
    d.connect(d.add(Expression("-exp(x)"), "f", x=x), x)
    y = d.add(Integrator(), "y", u=d.add(Constant(1.0), "one"))
    d.add(Integrator(), "z", u=d.add(Saturation(-1.0, 1.0), "limited", u=y))
    return d


def test_steps_of_a_fixed_length_that_are_too_many_leave_events_unlocated():
    """It has no error control that could be given up."""
    with make_steep(max_steps=1).compile().instantiate() as instance:
        instance.run(1)
        assert count(instance, contract.BL_COUNT_UNLOCATED) == 1
        assert count(instance, contract.BL_COUNT_UNCONTROLLED) == 0


def test_an_implicit_step_is_halved_twelve_times():
    """The logarithm has no value from 1 ns on: no step of at least 0.1 s / 4096 can be taken."""
    d = Diagram("endless", step=0.1, solver="radau5")
    y = d.add(Integrator(), "y", u=d.add(Expression("log(1e-9 - t)"), "log"))
    d.add(Integrator(), "z", u=d.add(Saturation(-1.0, 1.0), "limited", u=y))
    with d.compile().instantiate() as instance:
        with pytest.raises(BlockError):
            instance.run(1)
        rejected = count(instance, contract.BL_EVENT_COUNTERS + contract.BL_SOLVER_REJECTIONS)
        assert rejected == 13


@pytest.mark.parametrize("place", [0, 2])
def test_the_interpolant_of_radau5_holds_in_every_state(place):
    """x' = 4 t³: x = t⁴ passes 0.3 in the second step, and y is the integral of min(x, 0.3).

    The error of the time is that of the fourth derivative: 3e-5 in y; without the term, 4e-4.
    """
    d = Diagram("quartic", step=0.4, solver="radau5")
    states = []
    for k in range(3):
        rate = d.add(Expression("4*t**3" if k == place else "1 + 0*t"), f"f{k}")
        states.append(d.add(Integrator(), f"x{k}", u=rate))
    d.add(Integrator(), "y", u=d.add(Saturation(-1.0, 0.3), "limited", u=states[place]))
    with d.compile().instantiate() as instance:
        instance.run(2)
        assert instance.event_counts[0] == 1
        at = 0.3**0.25
        assert instance.get("y") == pytest.approx(at**5 / 5 + 0.3 * (0.8 - at), abs=1e-4)
