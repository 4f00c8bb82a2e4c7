"""Events in exported FMUs: the times of `simulate`, also with communication points off the grid."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks import (
    Backlash,
    Constant,
    Integrator,
    Lookup1D,
    Playback,
    RateLimiter,
    SecondOrderIntegrator,
    Sine,
    Sum,
    Time,
    TransferFunction,
)

pytestmark = pytest.mark.engine

GRAVITY = 9.81
KNOTS, VALUES = np.array([0.0, 0.1003, 0.1003, 0.25, 0.7]), np.array([0.0, 1.0, -2.0, 3.0, 0.5])


def make_diagram(**options) -> Diagram:
    """A ball, a recording with a jump, and a table over time with corners."""
    d = Diagram("events", step=1e-3, **options)
    ball = SecondOrderIntegrator(1.0, limits=(0.0, np.inf), restitution=0.7)
    d.add(ball, "ball", u=d.add(Constant(-GRAVITY), "g"))
    d.add(Integrator(), "x", u=d.add(Playback(KNOTS, VALUES, end="zero"), "p"))
    table = Lookup1D([0.0, 0.3333, 0.6], [0.0, 2.0, -1.0], events=True)
    d.add(Integrator(), "y", u=d.add(table, "table", u=d.add(Time(), "t")))
    d.output("height", ball["position"])
    d.output("speed", ball["velocity"])
    d.output("x", d["x"])
    d.output("y", d["y"])
    return d


def find_exact(t: float) -> list[float]:
    """The ball, by its bounces; the integrals of the recording and of the table, by pieces."""
    start, v = np.sqrt(2 / GRAVITY), 0.7 * np.sqrt(2 * GRAVITY)
    if t < start:
        height, speed = 1 - GRAVITY * t**2 / 2, -GRAVITY * t
    else:
        while t > start + 2 * v / GRAVITY and 2 * v / GRAVITY > 1e-6:
            start, v = start + 2 * v / GRAVITY, 0.7 * v
        s = t - start
        rests = 2 * v / GRAVITY < 1e-6
        height = 0.0 if rests else v * s - GRAVITY * s**2 / 2
        speed = 0.0 if rests else v - GRAVITY * s

    def area(x: np.ndarray, y: np.ndarray) -> float:
        total = 0.0
        for a, b, p, q in zip(x, x[1:], y, y[1:], strict=False):
            if b > a:
                s = min(max(t, a), b) - a
                total += p * s + (q - p) / (b - a) * s**2 / 2
        return total

    return [
        height,
        speed,
        area(KNOTS, VALUES),
        area(np.array([0.0, 0.3333, 0.6, 9.0]), np.array([0.0, 2.0, -1.0, -1.0])),
    ]


@pytest.mark.parametrize("options", [{}, {"solver": "dopri5", "tolerance": 1e-12}])
@pytest.mark.parametrize("size", [1e-3, 7.3e-4, 0.0123, 0.25])
def test_event_times_do_not_depend_on_communication_points(open_fmu, options, size):
    """Bounces 1e-10 s off would change the speed by 1e-9 m/s; within 1e-10 of the closed form."""
    slave = open_fmu(make_diagram(**options)).start()
    while slave.time < 2.8:
        slave.step(size)
        found = slave.get("height", "speed", "x", "y")
        assert found == pytest.approx(find_exact(slave.time), abs=1e-10)


def test_turns_and_departures_in_an_fmu(open_fmu):
    """Parts of 0.3 and 0.7 ticks: at ticks the values of `simulate`, whose ticks are whole."""
    d = Diagram("rates", step=1e-3)
    wave = d.add(TransferFunction([3.0], [0.1, 1.0]), "u", u=d.add(Sine(frequency=2.0), "sine"))
    d.output("a", d.add(Integrator(), "a", u=d.add(Backlash(0.4), "play", u=wave)))
    d.output("b", d.add(Integrator(), "b", u=d.add(RateLimiter(8.0), "rate", u=wave)))
    result = simulate(d, 1.0)
    slave = open_fmu(d).start()
    for tick in range(1, 1001):
        slave.step(3e-4)
        slave.step(tick * 1e-3 - slave.time)
        exact = [result["a"][tick], result["b"][tick]]
        assert slave.get("a", "b") == pytest.approx(exact, abs=1e-10)


def test_a_communication_point_at_an_event(open_fmu):
    """At a bounce, at a jump and at a corner; the speed there is that after the bounce."""
    slave = open_fmu(make_diagram()).start()
    bounce = float(np.sqrt(2 / GRAVITY))
    for time in (0.1003, 0.3333, bounce, 0.6, 0.7, 1.0):
        slave.step(time - slave.time)
        found, exact = slave.get("height", "speed", "x", "y"), find_exact(slave.time)
        if time == bounce:  # either side of it is right
            assert abs(found[1]) in (
                pytest.approx(np.sqrt(2 * GRAVITY), abs=1e-9),
                pytest.approx(0.7 * np.sqrt(2 * GRAVITY), abs=1e-9),
            )
            found[1] = exact[1]
        assert found == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize("solver", ["dopri5", "radau5"])
def test_an_input_that_is_set_to_its_value_ends_no_step(open_fmu, solver) -> None:
    """Steps under error control lead over many ticks, also if the importer sets the input at each.

    The solution, 1 - exp(-t), is then the same bit for bit as without setting it.
    """
    d = Diagram("lag", step=1e-3, solver=solver, tolerance=1e-6)
    x = d.add(Integrator(), "x")
    d.connect(d.add(Sum("+-"), "sum", u1=d.input("u"), u2=x), x)
    d.output("y", x)
    held, set_again = (open_fmu(d).start(u=1.0) for _ in range(2))
    rows = []
    for _ in range(500):
        set_again.set("u", 1.0)
        set_again.step(1e-3)
        rows += [set_again.get("y")]
    assert rows == held.run([1e-3] * 500, "y")
    assert rows[-1] == pytest.approx([1 - np.exp(-0.5)], abs=1e-5)
