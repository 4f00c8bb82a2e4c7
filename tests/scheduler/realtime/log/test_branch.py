"""Branches: from any tick, with the bits of the run that they continue."""

from dataclasses import replace

import numpy as np
import pytest

from biella import BiellaError, Diagram, Fmu, replay
from biella.blocks import (
    PID,
    Compare,
    Derivative,
    Expression,
    Integrator,
    MovingAverage,
    Noise,
    Port,
    Pulse,
    PythonBlock,
    RealTime,
    Relay,
    Sine,
    StateSpace,
    TransportDelay,
    UnitDelay,
)
from biella.scheduler.realtime._start import start_run
from biella.scheduler.realtime.log import _branch, _replay
from biella.scheduler.realtime.log._branch import branch, end_course, find_differences
from biella.scheduler.realtime.loop._pace import ENTRY, FROM_WORKER

from ..live_runs import wait_until

pytestmark = pytest.mark.engine

ROOM = 1 << 22


class Filter(PythonBlock):
    """A block in Python that declares its state, or hides it."""

    def __init__(self, hides=False):
        super().__init__(inputs=["u"], outputs=["y"], state=[0.0], period=2e-3, feedthrough=False)
        self.hidden = 0.0 if hides else None

    def output(self, t, x, u):
        return x[0] if self.hidden is None else self.hidden

    def update(self, t, x, u):
        if self.hidden is not None:
            self.hidden += 1.0
        return 0.9 * x + 0.1 * u


def rig(solver="rk4", python=False, **options):
    """Everything that remembers: states, delays, noise, modes with located events, averages."""
    d = Diagram("rig", step=1e-3, solver=solver, **options)
    reference = d.add(Pulse(period=0.11, duty=0.5), "ref")
    noise = d.add(Noise(density=1e-6), "noise", period=2e-3)
    pid = d.add(PID(kp=2.0, ki=8.0, period=2e-3), "pid")
    plant = d.add(Integrator(0.0), "plant")
    late = d.add(TransportDelay(0.0137), "late", u=plant)
    mixed = d.add(Expression("u + a", inputs=["u", "a"]), "mix")
    wave = d.add(Sine(frequency=7.0), "wave")
    relay = d.add(Relay(on=0.3, off=-0.1), "relay", u=wave)
    d.connect(reference, pid["reference"])
    d.connect(late, pid["measurement"])
    d.connect(pid, mixed["u"])
    d.connect(noise, mixed["a"])
    d.connect(mixed, plant)
    d.add(MovingAverage(8), "mean", u=plant, period=3e-3)
    d.add(UnitDelay(), "held", u=relay, period=5e-3)
    d.add(Derivative(0.01), "slope", u=plant)
    lag = StateSpace([[-20.0, 3.0], [0.0, -900.0]], [[1.0], [9.0]], [[1.0, 0.0]], [[0.0]])
    d.add(lag, "lag", u=relay)
    d.add(Compare(">"), "above", u1=plant, u2=wave)
    if python:
        d.add(Filter(), "filter", u=plant)
    push = d.input("push", default=0.5)
    d.connect(push, d.add(Integrator(0.0), "pushed"))
    return d


def start(diagram, **options):
    """Start a paused run without deadlines, which keeps what branches need."""
    given = {"record": ["*"], "clock": "free", **options}
    return start_run(diagram, given, {}, history=ROOM, states=ROOM, paused=True)


def go(run, ticks):
    """Run so many ticks."""
    end = run.tick + ticks
    run.step(ticks)
    wait_until(lambda: run.tick == end or not run.running)


def record(run):
    """Run with all that may enter from outside; return the course."""
    go(run, 700)
    run["pid.kp"] = 2.5
    run.override("mix.y", 0.125)
    go(run, 100)  # a state is saved meanwhile
    run["push"] = -1.5
    go(run, 50)
    run.release("mix.y")
    go(run, 350)
    run.stop()
    return end_course(run, size=ROOM)


def take_rows(run):
    """Return the rows of an ended run, by tick."""
    rows = run.history.read(0, run.history.end)[1]
    assert rows.shape[1] == run.tick + 1
    return rows


def continue_to(course, tick, end, **options):
    """Branch at a tick, run on to another, and return the run."""
    run = branch(course, tick, history=ROOM, states=ROOM, paused=True, **options)
    wait_until(lambda: run.tick >= tick or not run.running)
    if end > tick:
        go(run, end - tick)
    run.stop()
    return run


@pytest.fixture(scope="module", params=["rk4", "dopri5", "radau5", "python"])
def recorded(request):
    solver, python = request.param, request.param == "python"
    options = {} if solver in ("rk4", "python") else {"tolerance": 1e-7}
    with start(rig("rk4" if python else solver, python, **options)) as run:
        course = record(run)
    return course, take_rows(run)


@pytest.mark.parametrize("tick", [0, 31, 450, 1003, 1200])
def test_a_branch_has_the_bits_of_the_run(recorded, tick):
    """Between these ticks nothing was changed by hand."""
    course, rows = recorded
    assert len(course.states) >= 3 and course.ticks == 1200
    end = 1200 if tick >= 850 else 700
    run = continue_to(course, tick, end)
    again = take_rows(run)
    assert again[:, :end].tobytes() == rows[:, :end].tobytes()
    assert find_differences(course, run, end) == []
    assert np.ptp(rows[1:]) > 0 and len(course.events) > 10


def test_a_branch_begins_at_the_last_state_before_it(recorded, monkeypatch):
    course, _ = recorded
    seen = []
    original = _branch.Past.resume

    def resume(past, run):
        seen.append(past.begin)
        original(past, run)

    monkeypatch.setattr(_branch.Past, "resume", resume)
    ticks = [tick for tick, _ in course.states]
    assert ticks == sorted(ticks)
    continue_to(course, ticks[1] + 20, ticks[1] + 21)
    assert seen == [ticks[1]]


def test_another_setting_moves_the_branch_only(recorded):
    course, rows = recorded
    run = branch(course, 900, history=ROOM, states=ROOM, paused=True)
    wait_until(lambda: run.tick >= 900)
    assert run["pid.kp"] == 2.5 and run["push"] == -1.5
    run["pid.kp"] = 1.0
    go(run, 200)
    result = run.stop()
    again = take_rows(run)
    assert again[:, :900].tobytes() == rows[:, :900].tobytes()
    assert again[:, 901:].tobytes() != rows[:, 901:1101].tobytes()
    # The branch has a log of its own, from the start.
    assert find_differences(course, run, 900) == []
    assert len(find_differences(course, run, 1100)) > 2
    assert not _replay.find_differences(result, replay(result, run.plan))
    times = [event.time for event in result.events if event.time < 0.9]
    assert times == course.events["time"][course.events["time"] < 0.9].tolist()


def test_an_override_holds_in_a_branch_until_it_is_released(recorded):
    course, rows = recorded
    run = branch(course, 800, history=ROOM, states=ROOM, paused=True)
    wait_until(lambda: run.tick >= 800)
    assert list(run._overridden) == ["mix.y"]
    go(run, 40)
    run.release("mix.y")
    go(run, 10)
    run.stop()
    again, column = take_rows(run), run.history.columns["mix.y"]
    assert (again[column, 700:840] == 0.125).all() and again[column, 841] != 0.125
    assert rows[column, 841] == 0.125


def test_a_branch_of_a_branch(recorded):
    course, rows = recorded
    run = branch(course, 900, history=ROOM, states=ROOM, paused=True)
    wait_until(lambda: run.tick >= 900)
    run["push"] = 3.0
    go(run, 200)
    run.stop()
    second = end_course(run, course, ROOM)
    assert second.ticks == 1100
    assert [tick for tick, _ in second.states][:2] == [tick for tick, _ in course.states][:2]
    earlier = continue_to(second, 500, 700)  # before the first branch, which it does not have
    assert take_rows(earlier)[:, :700].tobytes() == rows[:, :700].tobytes()
    later = continue_to(second, 1000, 1100)
    assert take_rows(later)[:, :1100].tobytes() == take_rows(run)[:, :1100].tobytes()


def test_a_branch_is_streamed_to_a_file_that_can_be_replayed(recorded, tmp_path):
    course, rows = recorded
    run = continue_to(course, 900, 1000, out=tmp_path / "branch.h5")
    result = run.result
    assert result["plant"].tobytes() == rows[run.history.columns["plant.y"], :1001].tobytes()
    assert not _replay.find_differences(result, replay(tmp_path / "branch.h5", run.plan))


def test_rows_of_a_course_are_bounded_and_a_branch_has_what_is_there():
    with start(rig()) as run:
        go(run, 400)
        run.stop()
    rows = take_rows(run)
    few = end_course(run, size=100 * 8 * len(rows))
    assert few.rows.end - few.rows.begin <= 100
    again = continue_to(few, 350, 360)
    assert not find_differences(few, again, 360)
    assert again.history.read(0, 500)[1][0, -1] == 0.36


def test_a_state_that_was_not_declared_is_noticed():
    d = Diagram("hides", step=1e-3)
    d.add(Filter(hides=True), "filter", u=d.add(Sine(), "wave"))
    with start(d) as run:
        go(run, 200)
        run.stop()
    course = end_course(run, size=ROOM)
    again = continue_to(course, 150, 160)
    assert find_differences(course, again, 150) == ["filter.y"]


def test_inputs_of_workers_and_devices_are_played_back_as_far_as_the_log_has_them():
    """What they would have sent to the branch is not known: their inputs are held after the log."""
    d = Diagram("outside", step=1e-3)
    u = d.input("u")
    d.connect(u, d.add(Integrator(0.0), "plant"))
    with start(d) as run:
        slot = run.plan.inputs["u"].slot
        entries = np.zeros(3, ENTRY)
        entries["tick"], entries["slot"], entries["value"] = [50, 120, 180], slot, [1.0, 2.0, 3.0]
        entries["from"] = FROM_WORKER
        run._pipes.commands.push(entries)
        go(run, 200)
        run.stop()
    course = end_course(run, size=ROOM)
    again = continue_to(course, 100, 300)
    assert take_rows(again)[:, :200].tobytes() == take_rows(run)[:, :200].tobytes()
    assert (again.result["u"][200:] == 3.0).all()


def test_measured_times_are_repeated_and_then_measured_again():
    d = Diagram("timed", step=1e-3)
    timing = d.add(RealTime(), "timing")
    d.connect(timing["execution"], d.add(Integrator(0.0), "sum"))
    with start_run(d, {"record": ["*"]}, {}, history=ROOM, states=ROOM) as run:
        wait_until(lambda: run.tick > 150)
        run.stop()
    course = end_course(run, size=ROOM)
    assert len(set(course.rows.read(0, 150)[1][run.history.columns["timing.execution"]])) > 20
    again = branch(course, 100, history=ROOM)
    wait_until(lambda: again.tick > 160)
    again.stop()
    assert find_differences(course, again, 100) == []
    assert len(set(again.history.read(101, 160)[1][run.history.columns["timing.execution"]])) > 5


def test_a_log_with_a_gap_cannot_be_continued(recorded):
    course, _ = recorded
    with pytest.raises(BiellaError, match="3 entries of its input log were lost"):
        branch(replace(course, gap="3 entries of its input log were lost"), 500)


def test_a_run_can_be_ended_while_it_repeats():
    d = rig()
    with start(d) as run:
        go(run, 20_000)
        run.stop()
    course = replace(end_course(run, size=ROOM), states=())
    again = branch(course, 20_000, history=ROOM)
    again.stop()
    assert 0 <= again.tick <= 20_000
    assert not find_differences(course, again, again.tick)


def test_a_port_that_is_not_recorded_is_no_problem():
    d = Diagram("two", step=1e-3)
    d.add(Integrator(0.0), "a", u=d.input("u", default=1.0))
    d.add(Expression("2 * u", inputs=[Port("u")]), "b", u=d["a"])
    with start(d, record=["b"]) as run:
        go(run, 100)
        run.stop()
    course = end_course(run, size=ROOM)
    assert continue_to(course, 60, 90).result["b"][-1] == pytest.approx(0.18)


def test_an_fmu_is_repeated_from_the_start(tmp_path):
    """Its state is outside the engine and is not saved; a branch opens it again."""
    inner = Diagram("inner", step=1e-3)
    inner.output("y", inner.add(Integrator(0.0), "x", u=inner.input("u")))
    inner.export_fmu(tmp_path / "inner.fmu")
    d = Diagram("outer", step=1e-3)
    d.add(Fmu(tmp_path / "inner.fmu"), "fmu", u=d.add(Sine(), "wave"))
    with start(d) as run:
        go(run, 300)
        run.stop()
    course = end_course(run, size=ROOM)
    assert not course.states
    assert take_rows(continue_to(course, 200, 300)).tobytes() == take_rows(run).tobytes()


def test_a_change_at_the_tick_of_a_branch_is_not_undone_by_the_log():
    """The log has a change at that tick, too: that comes first, and the new one counts."""
    d = Diagram("rig", step=1e-3)
    d.connect(d.input("u", default=0.5), d.add(Integrator(0.0), "sum"))
    with start(d) as run:
        go(run, 100)
        run["u"] = 1.0
        go(run, 20)
        run.stop()
        course = end_course(run, size=ROOM)
    assert 100 in course.input_log["tick"]
    run = branch(course, 100, history=ROOM, states=ROOM, paused=True)
    wait_until(lambda: run.tick >= 100)
    run["u"] = 2.0
    go(run, 20)
    run.stop()
    assert run.latest("sum.y") == pytest.approx(100 * 1e-3 * 0.5 + 20 * 1e-3 * 2.0)
