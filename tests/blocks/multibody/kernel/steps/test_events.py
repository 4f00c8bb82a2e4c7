"""Events of mechanisms with an internal solver: located within the step, and noted in the log."""

from __future__ import annotations

import math
from ctypes import POINTER, c_double, c_int64, cast
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from biella import Diagram, simulate
from biella.blocks import Expression
from biella.blocks.multibody import RigidContact, System
from biella.scheduler.compile.plan._plan import Plan
from biella.scheduler.engine._library import contract

pytestmark = pytest.mark.engine

CLEARANCE, RADIUS, MASS, INERTIA, GRAVITY = 0.1, 0.02, 2.0, 3e-4, 9.81
FALL = math.sqrt(2.0 * CLEARANCE / GRAVITY)
"""From the middle of the hole to its bottom."""


class Event(NamedTuple):
    """What the engine logs."""

    time: float
    block: str
    what: str


def log(plan: Plan, ticks: int, capacity: int = 1 << 15) -> tuple[list[Event], tuple[int, ...]]:
    """Run a plan; return its events and the counts of located and unlocated ones."""
    out, pick = np.zeros((1, 2)), np.zeros(1, dtype=np.int64)
    buffer = np.zeros(capacity, dtype=[("time", "f8"), ("block", "i4"), ("crossing", "i4")])
    record = contract.bl_record(
        pick=pick.ctypes.data_as(POINTER(c_int64)),
        count=1,
        every=1 << 40,
        out=out.ctypes.data_as(POINTER(c_double)),
        capacity=1,
        events=cast(buffer.ctypes.data, POINTER(contract.bl_event)),
        event_capacity=capacity,
    )
    with plan.instantiate() as instance:
        done, _ = instance.run(ticks, record)
        assert done == ticks
        found = [
            Event(
                float(entry["time"]),
                instance.library.bl_block_path(instance.handle, int(entry["block"])).decode(),
                instance.describe_event(int(entry["block"]), int(entry["crossing"])),
            )
            for entry in buffer[: record.event_count]
        ]
        return found, instance.event_counts[:2]


def ball(contact: RigidContact, name: str = "ball", inertia: float = INERTIA, **start: Any) -> Any:
    """A round body in a hole of the ground."""
    s = System(name, (0.0, -GRAVITY), planar=True)
    body = s.body(name, mass=MASS, inertia=inertia, **start)
    middle = body.marker("middle")
    sizes: dict[str, Any] = {"clearance": CLEARANCE, "pin_radius": RADIUS, "contact": contact}
    s.clearance_revolute("pin", middle, s.ground.marker("hole"), **sizes)
    return s, middle


def alone(system: System, step: float = 1e-3, **options: Any) -> Plan:
    d = Diagram("mechanism", step=step)
    d.add(system.block([], ["kinetic_energy"], mode="internal", **options), name="plant")
    return d.compile()


# -- contacts


def test_bounces_are_noted_at_the_times_of_the_closed_form():
    e, step = 0.7, 1e-3
    system, _ = ball(RigidContact(restitution=e))
    events, counts = log(alone(system, step), 900)
    # Each flight is shorter by e. One shorter than a tenth of a step is suppressed.
    times, flight = [FALL], 2.0 * e * FALL
    while flight > 0.1 * step:
        times.append(times[-1] + flight)
        flight *= e
    # Located to 1e-13 of the clearance: 7e-15 s for the first, 1e-12 s for the slowest.
    assert [event.time for event in events] == pytest.approx(times, abs=1e-11)
    assert {event.block for event in events} == {"plant"}
    assert [event.what for event in events] == ["pin: rebounds"] * (len(times) - 1) + [
        "pin: touches"
    ]
    assert counts == (len(times), 0)


def test_the_end_of_slip_is_noted():
    """Against an integration of its own: the slip e θ' + R ω ends where the pin begins to roll."""
    friction, speed, spin = 0.4, 0.3, -40.0

    def slope(_: float, y: Any) -> list[float]:
        slip = CLEARANCE * y[1] + RADIUS * y[2]
        normal = MASS * (CLEARANCE * y[1] ** 2 + GRAVITY * math.cos(y[0]))
        drag = friction * normal * math.copysign(1.0, slip)
        turn = (-GRAVITY * math.sin(y[0]) - drag / MASS) / CLEARANCE
        return [y[1], turn, -drag * RADIUS / INERTIA]

    def ends(_: float, y: Any) -> float:
        return float(CLEARANCE * y[1] + RADIUS * y[2])

    ends.terminal = True  # type: ignore[attr-defined]
    slid = solve_ivp(
        slope, (0, 1), [0.0, speed / CLEARANCE, spin], events=ends, method="DOP853",
        rtol=1e-13, atol=1e-13,
    )  # fmt: skip
    start: dict[str, Any] = {
        "position": (0, -CLEARANCE),
        "velocity": (speed, 0.0),
        "angular_velocity": spin,
    }
    system, _ = ball(RigidContact(friction=friction), **start)
    events, _ = log(alone(system, 5e-4), 600)
    # The slip is wrong by 4e-9 m/s (2e-7 rad/s of spin with RK4) and decelerates by 14 m/s².
    assert [event.what for event in events] == ["pin: sticks"]
    assert events[0].time == pytest.approx(slid.t[-1], abs=1e-9)


def test_the_start_of_slip_is_noted():
    """Pushed by a growing force, a pin that cannot turn slips where F = μ m g."""
    friction, rate = 0.4, 20.0
    system, middle = ball(RigidContact(friction=friction), inertia=1e6, position=(0, -CLEARANCE))
    system.force("push", middle, (f"{rate} * t", "0"))
    events, _ = log(alone(system), 500)
    # Until then it rolls by up to R μ m g t² / 2 I = 1.2e-8 rad at the rim, and moves by R of that:
    # 2.5e-9 of the way around the hole, which adds 5e-8 N, or 2.4e-9 s.
    assert [event.what for event in events] == ["pin: slips"]
    assert events[0].time == pytest.approx(friction * MASS * GRAVITY / rate, abs=5e-9)


def test_a_contact_that_is_pulled_off_leaves():
    rate = 50.0
    system, middle = ball(RigidContact(restitution=0.0), position=(0, -CLEARANCE))
    system.force("pull", middle, ("0", f"{rate} * t"))
    events, _ = log(alone(system), 420)
    assert [event.what for event in events] == ["pin: leaves"]
    assert events[0].time == pytest.approx(MASS * GRAVITY / rate, abs=1e-9)


def test_internal_substeps_and_ticks_do_not_matter():
    system, _ = ball(RigidContact(restitution=0.5))
    one, _ = log(alone(system, 1e-3), 300)
    four, _ = log(alone(system, 4e-3, substeps=4), 75)
    assert [event.what for event in one] == [event.what for event in four]
    assert [event.time for event in one] == pytest.approx([e.time for e in four], abs=1e-11)


# -- couplings


def coupled(method: str, **options: Any) -> Diagram:
    """A ball on a vertical slide between two walls, tied by a spring to a second mass."""
    d = Diagram("coupled", step=1e-3, coupling=method, **options)
    system, middle = ball(RigidContact(restitution=0.8))
    system.prismatic("slide", system.ground, system["ball"], at=(0, 0), axis=(0, 1))
    system.force("pull", middle, (0.0, 0.0))
    second = System("second", (0.0, -GRAVITY), planar=True)
    body = second.body("second", mass=1.0, inertia=1.0)
    second.prismatic("slide", second.ground, body, at=(0, 0), axis=(0, 1))
    second.force("pull", body.marker("end"), (0.0, 0.0))
    outputs = ["slide.displacement", "slide.speed"]
    a = d.add(system.block(["pull.force.y"], [*outputs, "pin.impacts"], mode="internal"), "a")
    b = d.add(second.block(["pull.force.y"], outputs, mode="internal"), "b")
    spring = d.add(Expression("300 * (x - y)", unit="N"), "spring")
    back = d.add(Expression("300 * (x - y)", unit="N"), "back")
    d.connect(b["slide.displacement"], spring["x"])
    d.connect(a["slide.displacement"], spring["y"])
    d.connect(a["slide.displacement"], back["x"])
    d.connect(b["slide.displacement"], back["y"])
    d.connect(spring, a["pull.force.y"])
    d.connect(back, b["pull.force.y"])
    return d


@pytest.mark.filterwarnings("ignore:gauss-seidel is equivalent to jacobi")
@pytest.mark.parametrize("estimate", [False, True])
@pytest.mark.parametrize("method", ["jacobi", "gauss-seidel", "fixed-point", "newton"])
def test_events_of_repeated_steps_appear_once(method, estimate):
    """Iterations and error estimates repeat steps; the log has the impacts of the accepted ones."""
    d = coupled(method, extrapolation=1)
    events, counts = log(d.compile(estimate_error=int(estimate)), 600)
    impacts = simulate(d, 0.6)["a.pin.impacts"]
    assert impacts[-1] >= 4
    assert len(events) == counts[0] == impacts[-1]
    assert {event.what for event in events} == {"pin: rebounds"}
    # An impact that falls into the step from t to t + h is counted at t + h.
    times = np.array([event.time for event in events])
    assert (np.diff(times) > 0).all()
    t = 1e-3 * np.arange(601)
    assert np.array_equal(np.searchsorted(times, t), impacts)


def test_parts_of_a_coupled_step_note_their_events_once():
    """Too few iterations for a whole step: it is repeated in halves, which converge."""
    d = coupled("fixed-point", extrapolation=1)
    d.couple(iterations=2, tolerance=1e-6)
    plan = d.compile()
    events, _ = log(plan, 300)
    result = simulate(d, 0.3)
    assert result["coupling.a+b.shortened"][-1] > 2
    assert len(events) == result["a.pin.impacts"][-1] >= 2
