"""Directional derivatives of signals with respect to values, against those of the formulas."""

from __future__ import annotations

import ctypes

import pytest

from biella import Diagram
from biella.blocks import Constant, Expression, Integrator, Relay, Saturation, Sign
from biella.scheduler.engine._engine import Instance

pytestmark = pytest.mark.engine


def differentiate(instance: Instance, signals: list[str]) -> list[float]:
    """Return the derivatives of scalar signals with respect to the first state."""
    slots = [instance.plan.find_signal(name).slot for name in signals]
    state = instance.layout.parameters + instance.layout.signals
    found = (ctypes.c_double * len(slots))()
    instance.call(
        instance.library.bl_directional,
        *((ctypes.c_int64 * 1)(state), (ctypes.c_double * 1)(1.0), 1),
        *((ctypes.c_int64 * len(slots))(*slots), len(slots), 0, found),
    )
    return list(found)


def test_derivatives_at_a_border_are_those_of_one_side():
    """A difference across a kink is the mean of both sides, 0.5; one across a jump has no limit."""
    d = Diagram("borders")
    x = d.add(Integrator(1.0), "x", u=d.add(Constant(0.0), "zero"))
    d.add(Saturation(-1.0, 1.0), "limited", u=x)
    shifted = d.add(Expression("x - 1"), "shifted", x=x)
    d.add(Sign(), "sign", u=shifted)
    d.add(Integrator(), "y", u=d.add(Relay(0.0, -1.0), "relay", u=shifted))
    d.add(Expression("3*x*x"), "square", x=x)
    with d.compile().instantiate() as instance:
        instance.initialize()
        instance.evaluate()
        state = instance.save()
        limited, sign, relay, square = differentiate(
            instance, ["limited", "sign", "relay", "square"]
        )
        assert instance.save() == state
    assert min(abs(limited), abs(limited - 1.0)) < 1e-9
    assert sign == relay == 0.0
    assert square == pytest.approx(6.0, rel=1e-9)


def test_points_without_a_value_are_left_out_of_derivatives_along_the_motion():
    """x = 1 ms + t, and log x has no value where the first differences reach to: d/dt = 1/x."""
    d = Diagram("logarithm", step=1e-3)
    x = d.add(Integrator(1e-3), "x", u=d.add(Constant(1.0), "one"))
    d.add(Expression("log(x)"), "log", x=x)
    with d.compile().instantiate() as instance:
        instance.initialize()
        instance.evaluate()
        slot, found = instance.plan.find_signal("log").slot, (ctypes.c_double * 1)()
        instance.call(instance.library.bl_output_derivatives, (ctypes.c_int64 * 1)(slot), 1, found)
    assert found[0] == pytest.approx(1e3, rel=1e-6)
