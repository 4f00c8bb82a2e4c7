"""FMI 3.0: event mode, early return at located events, and models that end the simulation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fmi3_calls import ERROR, OK, Instance3, Unpacked3, flag

from biella import Diagram
from biella.blocks import (
    Compare,
    Constant,
    Gain,
    Integrator,
    Playback,
    SecondOrderIntegrator,
    Stop,
    Time,
    UnitDelay,
)

pytestmark = pytest.mark.engine

GRAVITY, RESTITUTION = 9.81, 0.7
JUMP = 0.1003


def make_ball(**options: object) -> Diagram:
    """A ball that bounces, and a recording with a jump at a time that is no tick."""
    d = Diagram("ball", step=1e-3, **options)  # type: ignore[arg-type]
    ball = SecondOrderIntegrator(1.0, limits=(0.0, np.inf), restitution=RESTITUTION)
    d.add(ball, "ball", u=d.add(Constant(-GRAVITY), "g"))
    jump = Playback([0.0, JUMP, JUMP, 3.0], [0.0, 1.0, -2.0, 0.0])
    d.add(Integrator(), "x", u=d.add(jump, "p"))
    d.output("height", ball["position"])
    d.output("speed", ball["velocity"])
    d.output("x", d["x"])
    return d


def list_bounces(until: float) -> list[float]:
    """The times of the bounces, in closed form."""
    times, v = [float(np.sqrt(2 / GRAVITY))], RESTITUTION * float(np.sqrt(2 * GRAVITY))
    while times[-1] + 2 * v / GRAVITY < until:
        times.append(times[-1] + 2 * v / GRAVITY)
        v *= RESTITUTION
    return times


def open_fmu(folder: Path, diagram: Diagram) -> Unpacked3:
    return Unpacked3(
        diagram.export_fmu(folder / f"{diagram.name}.fmu", version="3.0"), folder / diagram.name
    )


@pytest.mark.parametrize("options", [{}, {"solver": "dopri5", "tolerance": 1e-12}])
@pytest.mark.parametrize("size", [1e-3, 0.0123, 0.5])
def test_early_return_at_each_event(
    tmp_path: Path, options: dict[str, object], size: float
) -> None:
    """The times of the closed form, within 1e-9: the bound on located events in this folder."""
    fmu = open_fmu(tmp_path, make_ball(**options))
    assert flag(fmu, "mightReturnEarlyFromDoStep") == "true"
    one = Instance3(fmu, events=True, early=True).start()
    assert one.call("fmi3EnterStepMode") == OK
    until, found = 1.4, []
    while one.time < until - 1e-9:
        begin = one.time
        status, event, terminate, early, reached = one.step(min(size, until - begin))
        assert (status, terminate) == (OK, False)
        assert reached == one.get("time")[0]
        assert early == (reached < begin + min(size, until - begin) - 1e-8)
        if not early and not event:
            continue
        assert event
        found.append(reached)
        assert one.call("fmi3EnterEventMode") == OK
        assert one.update() == (OK, False, False)
        assert one.call("fmi3EnterStepMode") == OK
    expected = sorted([JUMP, *list_bounces(until)])
    assert found == pytest.approx(expected, abs=1e-9)


def test_the_state_at_an_event_is_that_of_the_closed_form(tmp_path: Path) -> None:
    """At the first bounce the height is 0 and the speed is that before or after it; one tick later
    it is that after it."""
    one = Instance3(open_fmu(tmp_path, make_ball()), events=True, early=True).start()
    assert one.call("fmi3EnterStepMode") == OK
    one.step(1.0)
    assert one.time == pytest.approx(JUMP, abs=1e-12)
    one.step(1.0)
    bounce, v = list_bounces(0.5)[0], float(np.sqrt(2 * GRAVITY))
    height, speed = one.get("height", "speed")
    assert (one.time, height) == pytest.approx((bounce, 0.0), abs=1e-9)
    assert min(abs(speed + v), abs(speed - RESTITUTION * v)) < 1e-8
    one.step(1e-3)
    assert one.get("speed") == pytest.approx([RESTITUTION * v - GRAVITY * 1e-3], abs=1e-8)


@pytest.mark.parametrize(("events", "early"), [(False, False), (True, False), (False, True)])
def test_without_both_a_step_is_completed(tmp_path: Path, events: bool, early: bool) -> None:
    """Events are then handled within the step, as in FMI 2.0, and to the same bits."""
    fmu = open_fmu(tmp_path, make_ball())
    one = Instance3(fmu, events=events, early=early).start()
    plain = Instance3(fmu).start()
    if events:
        assert one.call("fmi3EnterStepMode") == OK
    for _ in range(14):
        assert one.step(0.1)[:4] == (OK, False, False, False)
        plain.step(0.1)
        assert one.get("height", "speed", "x") == plain.get("height", "speed", "x")
    assert one.time == pytest.approx(1.4, abs=1e-12)


def test_an_fmu_without_events_never_returns_early(tmp_path: Path) -> None:
    d = Diagram("smooth")
    d.output("y", d.add(Integrator(), "x", u=d.add(Constant(1.0), "one")))
    fmu = open_fmu(tmp_path, d)
    assert flag(fmu, "mightReturnEarlyFromDoStep") == "false"
    one = Instance3(fmu, events=True, early=True).start()
    assert one.call("fmi3EnterStepMode") == OK
    for _ in range(20):
        assert one.step(0.05)[:4] == (OK, False, False, False)


def test_steps_with_early_return_agree_with_whole_ones(tmp_path: Path) -> None:
    """Cutting a step of RK4 at an event changes nothing beyond 1e-10: motion between events is a
    polynomial of degree 2."""
    fmu = open_fmu(tmp_path, make_ball())
    whole = Instance3(fmu).start()
    cut = Instance3(fmu, events=True, early=True).start()
    cut.call("fmi3EnterStepMode")
    for k in range(1, 15):
        whole.step(0.1)
        while cut.time < 0.1 * k - 1e-9:
            assert cut.step(0.1 * k - cut.time)[0] == OK
        expected = whole.get("height", "speed", "x")
        assert cut.get("height", "speed", "x") == pytest.approx(expected, abs=1e-9)


def test_discrete_inputs_act_at_once_in_event_mode(tmp_path: Path) -> None:
    """Outputs follow in event mode; the sampled state takes the value with the next step."""
    d = Diagram("discrete", step=1e-2)
    u = d.input("u")
    d.output("y", d.add(Gain(2.0), "k", u=u))
    d.output("z", d.add(UnitDelay(), "z", u=u, period=1e-2))
    one = Instance3(open_fmu(tmp_path, d), events=True).start(u=1.0)
    assert one.get("y", "z") == [2.0, 0.0]
    assert one.set("u", 5.0) == OK
    assert one.get("y", "z") == [10.0, 0.0]
    assert one.update() == (OK, False, False)
    assert one.call("fmi3EnterStepMode") == OK
    one.step(1e-2)
    assert one.get("z") == [5.0]
    assert one.call("fmi3EnterEventMode") == OK
    assert one.call("fmi3EnterEventMode") == ERROR
    assert one.set("u", -1.0) == OK
    assert one.get("y", "z") == [-2.0, 5.0]
    assert one.call("fmi3EnterStepMode") == OK
    assert one.step(1e-2)[0] == OK
    assert one.get("z") == [-1.0]


def make_ending() -> Diagram:
    d = Diagram("ending", step=1e-3)
    t = d.add(Time(), "t")
    d.connect(d.add(Compare(">=", 0.25), "late", u=t), d.add(Stop("it is late"), "stop"))
    d.output("t", t)
    return d


@pytest.mark.parametrize("events", [False, True])
@pytest.mark.parametrize("early", [False, True])
def test_a_model_that_ends_the_simulation(tmp_path: Path, events: bool, early: bool) -> None:
    """``terminateSimulation`` with the time of the Stop block; `earlyReturn` only if allowed."""
    fmu = open_fmu(tmp_path, make_ending())
    assert flag(fmu, "mightReturnEarlyFromDoStep") == "true"
    one = Instance3(fmu, events=events, early=early).start()
    if events:
        assert one.call("fmi3EnterStepMode") == OK
    assert one.step(0.1)[:4] == (OK, False, False, False)
    status, _, terminate, returned, reached = one.step(1.0)
    assert (status, terminate, returned) == (OK, True, early)
    assert reached == pytest.approx(0.25, abs=1e-3)
    assert one.get("t") == [reached]
    assert any("ended the simulation" in text for text in one.messages)
    # A further step does not move it, and goes on asking; a saved state leads back.
    assert one.step(0.1)[2] is True
    assert one.time == reached
    if events:
        assert one.call("fmi3EnterEventMode") == OK
        assert one.update() == (OK, False, True)
    assert one.call("fmi3Terminate") == OK


def test_a_saved_state_leads_back_from_the_end(tmp_path: Path) -> None:
    one = Instance3(open_fmu(tmp_path, make_ending())).start()
    one.step(0.2)
    kept, at = one.save(), one.time
    assert one.step(0.1)[2] is True
    assert one.restore(kept) == OK
    one.time = at
    assert one.step(0.01)[:3] == (OK, False, False)


def test_a_state_that_was_saved_at_the_end_is_the_end(tmp_path: Path) -> None:
    one = Instance3(open_fmu(tmp_path, make_ending()), events=True).start()
    assert one.call("fmi3EnterStepMode") == OK
    before = one.save()
    assert one.step(0.3)[2] is True
    end, at_end = one.save(), one.time
    assert one.restore(before) == OK
    one.time = 0.0
    assert one.step(0.01)[2] is False
    assert one.restore(end) == OK
    assert one.call("fmi3EnterEventMode") == OK
    assert one.update() == (OK, False, True)
    assert one.call("fmi3EnterStepMode") == OK
    one.time = at_end
    assert one.step(0.1)[2:] == (True, False, at_end)


def test_a_reset_leads_back_from_the_end(tmp_path: Path) -> None:
    one = Instance3(open_fmu(tmp_path, make_ending())).start()
    assert one.step(0.3)[2] is True
    assert one.call("fmi3Reset") == OK
    one.start()
    assert one.step(0.2) == (OK, False, False, False, 0.2)
