"""Lead, lag and notch: their frequency response, measured from the output."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram, DiagramError, linearize, simulate
from biella.blocks import LeadLag, Notch, Sine

pytestmark = pytest.mark.engine

PERIOD = 1e-3


def measure(block, frequency, until=2.0, step=1e-4):
    """Give gain and phase of the answer to a sine, over its last whole cycles."""
    d = Diagram("response", step=step)
    d.add(block, name="block")
    d.connect(d.add(Sine(1.0, frequency), name="u"), block)
    run = simulate(d, until)
    t, y = run.t, run["block"]
    late = t >= until - np.floor(0.5 * until * frequency) / frequency - 0.5 * step
    carrier = np.exp(-2j * np.pi * frequency * t[late][:-1])
    found = 2j * np.mean(y[late][:-1] * carrier)
    return abs(found), np.angle(found)


def held(block, frequency):
    """Give the response of a sampled block by its matrices."""
    A, B, C, D = (next(p.value for p in block.parameters if p.name == n) for n in "ABCD")
    z = np.exp(2j * np.pi * frequency * PERIOD)
    return (C @ np.linalg.solve(z * np.eye(len(A)) - A, B) + D).item()


def test_lead_has_its_phase_and_gain_where_it_was_asked_for():
    gain, phase = measure(LeadLag.at(5.0, np.radians(40), 2.0), 5.0)
    assert gain == pytest.approx(2.0, rel=1e-4) and phase == pytest.approx(np.radians(40), abs=1e-4)
    lag = held(LeadLag.at(5.0, np.radians(-40), 2.0, period=PERIOD), 5.0)
    assert abs(lag) == pytest.approx(2.0, rel=1e-9)
    assert np.angle(lag) == pytest.approx(np.radians(-40), abs=1e-9)


def test_notch_has_its_depth_and_bandwidth():
    """Depth at the frequency; -3 dB where the sides of the notch are the bandwidth apart."""
    assert measure(Notch(20.0, 4.0, 0.1), 20.0)[0] == pytest.approx(0.1, rel=1e-3)
    assert measure(Notch(20.0, 4.0), 20.0)[0] < 1e-3
    sides = [np.sqrt(20.0**2 + 2.0**2) + side for side in (-2.0, 2.0)]
    for side in sides:
        assert measure(Notch(20.0, 4.0), side, until=4.0)[0] == pytest.approx(
            np.sqrt(0.5), rel=2e-3
        )
    assert abs(held(Notch(200.0, 40.0, 0.1, period=PERIOD), 200.0)) == pytest.approx(0.1, rel=1e-9)


@pytest.mark.parametrize("period", [None, 1e-3])
def test_they_can_be_linearized(period):
    d = Diagram("notch", step=1e-3)
    block = d.add(Notch(20.0, 4.0, period=period), name="notch")
    d.connect(d.input("u"), block)
    d.output("y", block)
    assert linearize(d, period=period).A.shape == (2, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LeadLag(-1, 2), "`zero` is one positive number; got -1"),
        (lambda: LeadLag.at(5.0, 2.0), "between -π/2 and π/2 rad"),
        (lambda: Notch(20, -1), "`bandwidth` is one positive number"),
        (lambda: Notch(20, 1, 2), "a gain from 0 to below 1"),
        (lambda: Notch(600, 1, period=1e-3), "600 Hz is not below half the sample rate, 500 Hz"),
        (lambda: Notch(20, 1, offset=0.1), "needs a period"),
    ],
)
def test_wrong_parameters_are_refused(make, message):
    with pytest.raises(DiagramError, match=message):
        make()
