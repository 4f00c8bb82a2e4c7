"""Internal steps of mechanisms across jumps and kinks of laws in time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from biella import Diagram, simulate
from biella.blocks.multibody import Input, RigidContact, System, Table

from .test_events import log

pytestmark = pytest.mark.engine

MASS, STIFFNESS, UNTIL = 2.0, 60.0, 1.0
OMEGA = math.sqrt(STIFFNESS / MASS)
ORDER = {"rk4": 4, "rigid": 4, "implicit": 2}


def plant(force: Any, scheme: str = "rk4", substeps: int = 1) -> Any:
    """A mass on a spring, pushed by a law; with `rigid`, in a hole that it never meets."""
    s = System("mass", (0, 0), planar=True)
    body = s.body("mass", mass=MASS, inertia=1.0)
    s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    end = body.marker("end")
    s.spring("spring", s.ground.marker("wall", (-9, 0)), end, stiffness=STIFFNESS, free_length=9.0)
    s.force("push", end, (force, 0.0))
    if scheme == "rigid":
        sizes: dict[str, Any] = {"clearance": 50.0, "pin_radius": 1.0, "contact": RigidContact()}
        s.clearance_revolute("pin", end, s.ground.marker("hole"), **sizes)
    solver: dict[str, Any] = {"integrator": "implicit"} if scheme == "implicit" else {}
    outputs = ["slide.displacement", "slide.speed"]
    return s.block([], outputs, mode="internal", substeps=substeps, **solver)


def run(block: Any, step: float) -> np.ndarray:
    d = Diagram("plant", step=step)
    d.add(block, name="plant")
    result = simulate(d, UNTIL)
    return np.array([result[f"plant.slide.{what}"][-1] for what in ("displacement", "speed")])


def exact(force: Callable[[float], float], instants: Sequence[float]) -> np.ndarray:
    """x'' = (f - k x) / m in pieces, each smooth up to its ends; `force` is that within a piece."""
    y, ends = np.zeros(2), [0.0, *instants, UNTIL]
    for a, b in pairwise(ends):

        def slope(t: float, y: Any, a: float = a, b: float = b) -> list[float]:
            inside = min(max(t, a + 1e-9 * (b - a)), b - 1e-9 * (b - a))
            return [y[1], (force(inside) - STIFFNESS * y[0]) / MASS]

        part = solve_ivp(slope, (a, b), y, method="DOP853", rtol=1e-13, atol=1e-14)
        y = part.y[:, -1]
    return y


def switched(times: Sequence[float], levels: Sequence[float]) -> np.ndarray:
    """The same with constant levels, in closed form: each phase turns about its own rest."""
    x, v, before = 0.0, 0.0, 0.0
    for end, level in zip([*times, UNTIL], levels, strict=True):
        rest, angle = level / STIFFNESS, OMEGA * (end - before)
        x, v = (
            rest + (x - rest) * math.cos(angle) + v / OMEGA * math.sin(angle),
            v * math.cos(angle) - (x - rest) * OMEGA * math.sin(angle),
        )
        before = end
    return np.array([x, v])


def slope_of(
    make: Callable[[float], tuple[Any, np.ndarray]], starts: Sequence[float], scheme: str
) -> float:
    """Observed order, of errors averaged over places of the jump between two ticks."""
    means = []
    steps = (0.02, 0.01) if ORDER[scheme] == 4 else (5e-3, 2.5e-3)
    for step in steps:
        errors = []
        for start in starts:
            law, wanted = make(start)
            errors.append(np.abs(run(plant(law, scheme), step) - wanted).max())
        means.append(np.mean(errors))
    return math.log2(means[0] / means[1])


STARTS = [0.4 + 0.02 * k / 7.0 for k in range(7)]  # the first lies on the grid


def one_jump(at: float) -> tuple[str, np.ndarray]:
    return f"where(t < {at!r}, 50, 0)", switched([at], [50.0, 0.0])


def hidden_jump(at: float) -> tuple[str, np.ndarray]:
    """A root that only a search finds; sin(3 t) rises until t = 0.52."""
    return f"where(sin(3*t) > {math.sin(3 * at)!r}, 10, 50)", exact(
        lambda t: 10.0 if at < t < math.pi / 3 - at else 50.0, [at, math.pi / 3 - at]
    )


def kink(at: float) -> tuple[str, np.ndarray]:
    return f"300 * abs(t - {at!r}) + 20 * sin(9*t)", exact(
        lambda t: 300.0 * abs(t - at) + 20.0 * math.sin(9.0 * t), [at]
    )


def table(at: float) -> tuple[Table, np.ndarray]:
    points, values = [0.1, at, at + 1e-4, 0.9], [0.0, 30.0, -20.0, 10.0]
    return Table(points, values), exact(lambda t: float(np.interp(t, points, values)), points)


@pytest.mark.parametrize("scheme", ORDER)
@pytest.mark.parametrize("make", [one_jump, hidden_jump, kink, table])
def test_the_order_is_kept_across_instants(make, scheme):
    """Across a jump that is not located the order is 1, across a kink 2."""
    assert slope_of(make, STARTS, scheme) > ORDER[scheme] - 0.35


@pytest.mark.parametrize("scheme", ORDER)
def test_a_jump_on_the_grid(scheme):
    """Its last step ends with the force before the jump: the error is that of the smooth phases."""
    law, wanted = one_jump(0.4)
    smooth = np.abs(run(plant("50", scheme), 0.01) - switched([], [50.0])).max()
    found = np.abs(run(plant(law, scheme), 0.01) - wanted).max()
    # Across the jump, RK4 loses h / 6 of it, 0.01 / 6 · 50 / 2 = 0.04 m/s; implicit steps h / 2.
    assert found < 3.0 * smooth


def test_times_that_round_to_either_side_of_a_tick():
    """k · h is above or below the decimal number of the law: both are the tick."""
    step = 1e-3
    for k in (3, 7, 299, 300, 301, 600, 999):
        at = float(f"{k * 1e-3:.3f}")
        for shift in (-1e-15, 0.0, 1e-15):
            law = f"where(t < {at + shift!r}, 50, 0)"
            found = run(plant(law), step)
            # RK4 at 1 ms: (ω h)⁴ / 120 of 1 m/s in ω seconds, 1e-10; the jump itself is 8e-3 m/s.
            np.testing.assert_allclose(found, switched([at], [50.0, 0.0]), rtol=0, atol=1e-9)


def test_substeps_and_many_instants_in_one_tick():
    """A pulse train: 25 edges of floor and modulo, three in each tick."""
    edges = [0.04 * k for k in range(1, 25)]
    levels = [20.0 if k % 2 == 0 else -20.0 for k in range(25)]
    wanted = switched(edges, levels)
    for law in ("20 - 40 * mod(floor(t / 0.04), 2)", "20 - 40 * (mod(t, 0.08) >= 0.04)"):
        for substeps in (1, 3):
            found = run(plant(law, substeps=substeps), 0.125)
            # Each piece is 40 ms at most: (ω h)⁵ / 120 of 1 m/s each, 25 times.
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4)


def test_a_pulse_that_is_shorter_than_a_step():
    """Two instants of two functions within one step."""
    wanted = switched([0.3141, 0.3142], [0.0, 5000.0, 0.0])
    for law in (
        "where(t >= 0.3141, where(t < 0.3142, 5000, 0), 0)",
        "where(0.3141 <= t < 0.3142, 5000, 0)",
    ):
        np.testing.assert_allclose(run(plant(law), 0.01), wanted, rtol=0, atol=1e-6)


def test_samples_of_a_smooth_law_do_not_divide_steps():
    """More than four points of a table in a step are integrated across."""
    points = np.linspace(0.0, 1.0, 2001)
    d = Diagram("plant", step=0.01)
    d.add(plant(Table(points, 50.0 * np.sin(5.0 * points))), name="plant")
    events, _ = log(d.compile(), 100)
    assert events == []
    found = run(plant(Table(points, 50.0 * np.sin(5.0 * points))), 0.01)
    wanted = exact(lambda t: 50.0 * math.sin(5.0 * t), [])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4)


def test_a_smooth_spline_is_not_divided():
    points = np.linspace(0.0, 1.0, 8)
    d = Diagram("plant", step=0.01)
    d.add(plant(Table(points, np.sin(5.0 * points), interpolation="cubic")), name="plant")
    events, _ = log(d.compile(), 100)
    assert events == []  # its ends lie at ticks


def test_instants_within_ticks_are_noted():
    law = "where(t < 0.2555, 10, where(t < 0.5, 20, 30)) + abs(t - 0.3007)"
    d = Diagram("plant", step=0.01)
    d.add(plant(law), name="plant")
    events, counts = log(d.compile(), 100)
    # Those at ticks take effect there and are not events, as with blocks.
    assert [event.time for event in events] == pytest.approx([0.2555, 0.3007], abs=1e-15)
    assert {event.what for event in events} == {"law"}
    assert counts == (2, 0)


def test_more_instants_than_are_located_are_counted():
    d = Diagram("plant", step=0.1)
    d.add(plant("floor(t * 10000)"), name="plant")
    _, (_, unlocated) = log(d.compile(), 3)
    assert unlocated == 3


def test_a_driven_speed_that_jumps():
    """A driver with a kink between two ticks: speeds jump there, and the order is kept."""
    s = System("driven", (0, 0), planar=True)
    body = s.body("mass", mass=MASS, inertia=1.0)
    joint = s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    s.driver("drive", joint, Table([0.0, 0.3337, 1.0], [0.0, 0.1, 0.9]))
    hung = s.body("hung", mass=1.0, inertia=1.0)
    s.prismatic("side", body, hung, at=(0, 0), axis=(1, 0))
    s.spring("tie", body.marker("a", (-9, 0)), hung.marker("b"), stiffness=40.0, free_length=9.0)
    errors = []
    rates = [0.1 / 0.3337, 0.8 / 0.6663]
    omega = math.sqrt(40.0)

    def wanted() -> float:
        # The hung body starts at rest; each jump of the driven speed is one of the spring's.
        jumps = [(0.0, rates[0]), (0.3337, rates[1] - rates[0])]
        return -sum(j / omega * math.sin(omega * (1.0 - at)) for at, j in jumps)

    for step in (0.02, 0.01):
        d = Diagram("plant", step=step)
        d.add(s.block([], ["side.displacement"], mode="internal"), name="plant")
        with pytest.warns(Warning, match="jump"):
            found = simulate(d, 1.0)["plant.side.displacement"][-1]
        errors.append(abs(found - wanted()))
    assert errors[1] < 1e-5
    assert math.log2(errors[0] / errors[1]) > 3.5


def test_a_state_saved_before_an_instant_goes_on_with_the_same_bits():
    d = Diagram("plant", step=0.01)
    block = plant("where(t < 0.2555, 10, 20) + abs(t - 0.3007)", substeps=2)
    d.add(block, name="plant")
    plan = d.compile()
    with plan.instantiate() as whole, plan.instantiate() as resumed:
        whole.run(25)
        saved = whole.save()
        whole.run(25)
        resumed.restore(saved)
        resumed.run(25)
        assert np.array_equal(whole.values, resumed.values)


def test_an_input_beside_a_law():
    """A block with inputs: the law is located, the input is held by ticks."""
    s = System("mass", (0, 0), planar=True)
    body = s.body("mass", mass=MASS, inertia=1.0)
    s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    end = body.marker("end")
    s.force("push", end, ("where(t < 0.5555, 4, 0)", 0.0))
    s.force("other", end, (Input(default=2.0), 0.0))
    d = Diagram("plant", step=0.01)
    d.add(s.block([], ["slide.speed"], mode="internal"), name="plant")
    found = simulate(d, 1.0)["plant.slide.speed"][-1]
    assert found == pytest.approx((4.0 * 0.5555 + 2.0) / MASS, rel=1e-12)
