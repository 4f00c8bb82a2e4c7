"""Discontinuities of continuous blocks whose states are part of an iterated coupling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks import Expression, Gain, Integrator, Relay
from biella.blocks.multibody import System

pytestmark = pytest.mark.engine

STEP, UNTIL, BAND = 5e-3, 4.0, 0.02


def plant() -> Any:
    s = System("mass", (0, 0), planar=True)
    body = s.body("mass", mass=1.0, inertia=1.0, velocity=(0.4, 0))
    s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    end = body.marker("end")
    s.spring("spring", s.ground.marker("wall", (-9, 0)), end, stiffness=30.0, free_length=9.0)
    s.force("push", end, (0.0, 0.0))
    return s.block(["push.force.x"], ["slide.displacement"], mode="internal")


def oscillator(method: str = "newton") -> Diagram:
    """A mass pushed by an integral of its own place and of a relay that its place switches."""
    d = Diagram("oscillator", step=STEP, coupling=method, extrapolation=1)
    mass = d.add(plant(), "mass")
    relay = d.add(Relay(BAND, -BAND, 1.0, -1.0), "relay")
    rate = d.add(Expression("r - 0.5 * x"), "rate")
    integral = d.add(Integrator(0.0), "w")
    gain = d.add(Gain(-4.0, unit="N"), "push")
    d.connect(mass["slide.displacement"], relay)
    d.connect(mass["slide.displacement"], rate["x"])
    d.connect(relay, rate["r"])
    d.chain(rate, integral, gain)
    d.connect(gain, mass["push.force.x"])
    return d


@pytest.mark.parametrize("method", ["fixed-point", "newton"])
def test_a_relay_decides_at_ticks_and_is_held_in_repeated_steps(method):
    d = oscillator(method)
    model = d.compile()
    (coupling,) = model.couplings
    assert set(coupling["members"]) == {"mass", "states"}
    result = simulate(d, UNTIL)
    x, r, w = (result[path] for path in ("mass.slide.displacement", "relay", "w"))
    # Its hysteresis over the places at ticks, and nothing between them.
    mode, wanted = r[0], []
    for place in x:
        mode = 1.0 if place >= BAND else -1.0 if place <= -BAND else mode
        wanted.append(mode)
    assert np.array_equal(r, wanted)
    assert np.abs(np.diff(r)).sum() >= 4 * 2.0
    # Each step is repeated several times with one and the same value of the relay. The trapezoid
    # of the other part of the rate has an error of h³ / 12 of 0.5 x'': 5e-9 with 1 m/s².
    assert result[f"coupling.{'+'.join(coupling['members'])}.iterations"][1:].mean() > 1.5
    followed = 0.25 * (x[:-1] + x[1:]) * STEP
    assert np.diff(w) + followed == pytest.approx(r[:-1] * STEP, abs=1e-7)


def test_no_event_is_located_and_the_schedule_says_so():
    model = oscillator().compile()
    with model.instantiate() as instance:
        instance.run(round(UNTIL / STEP))
        assert instance.event_counts == (0, 0, 0)
    assert "events of continuous blocks happen at ticks" in model.report()


def test_runs_repeat_and_resume_with_the_same_bits():
    model = oscillator().compile()
    with model.instantiate() as first, model.instantiate() as second, model.instantiate() as third:
        first.run(313)
        saved = first.save()
        first.run(200)
        second.run(513)
        third.restore(saved)
        third.run(200)
        assert np.array_equal(first.values, second.values)
        assert np.array_equal(first.values, third.values)
