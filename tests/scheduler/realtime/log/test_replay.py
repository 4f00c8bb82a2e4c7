"""Record and replay: whatever entered from outside, every signal comes out the same, to the bit."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biella import BiellaError, BlockError, Diagram, replay, run_realtime, simulate
from biella.blocks import (
    PID,
    Compare,
    Constant,
    Expression,
    Gain,
    Integrator,
    Noise,
    Port,
    Pulse,
    PythonBlock,
    RealTime,
    Relay,
    Sine,
    Stop,
)
from biella.errors import PlanError
from biella.scheduler.engine._engine import Instance
from biella.scheduler.realtime.log._log import RunLog
from biella.scheduler.realtime.log._replay import _events_differ, find_differences
from biella.scheduler.realtime.loop._pace import (
    ENTER_OVERRIDE,
    ENTER_RELEASE,
    ENTER_SET,
    ENTRY,
    FROM_LIVE,
    Pace,
    Pipe,
    Probe,
)
from biella.scheduler.results._result import Result
from biella.scheduler.results._result_file import MemoryColumns
from biella.scheduler.results._signals import ResultError

pytestmark = pytest.mark.engine


def loop(kp=2.0, extra=False):
    """Continuous, sampled and constant blocks, noise, and lateness that acts on the plant."""
    d = Diagram("loop", step=1e-3)
    timing = d.add(RealTime(), name="timing")
    reference = d.add(Sine(frequency=2.0), name="ref")
    noise = d.add(Noise(density=1e-6), name="noise", period=2e-3)
    pid = d.add(PID(kp=kp, ki=8.0, period=2e-3), name="pid")
    plant = d.add(Integrator(0.0), name="plant")
    bias = d.add(Constant(0.1), name="bias")
    mixed = d.add(Expression("u + a + 100 * late + b", inputs=["u", "a", "late", "b"]), name="mix")
    d.connect(reference, pid["reference"])
    d.connect(plant, pid["measurement"])
    d.connect(pid, mixed["u"])
    d.connect(noise, mixed["a"])
    d.connect(timing["lateness"], mixed["late"])
    d.connect(bias, mixed["b"])
    d.connect(mixed, plant)
    if extra:
        d.connect(d["plant"], d.add(Gain(1.0), name="extra"))
    return d


def check_bits(result, again):
    assert again.length == result.length
    assert set(again) >= set(result)
    assert find_differences(result, again) == []


def test_a_run_is_replayed_from_memory_and_from_its_files(tmp_path):
    with run_realtime(loop(), out=tmp_path / "log.h5", parameters={"bias.value": 0.3}) as run:
        for k in range(1, 20):
            run["pid.kp"] = 2.0 + 0.1 * k
            time.sleep(2e-3)
        run.override("plant", 0.2)
        time.sleep(0.02)
        run.release("plant")
        time.sleep(0.02)
        result = run.stop()
    assert result["timing.lateness"].max() > 0.0
    check_bits(result, replay(tmp_path / "log.h5", loop()))
    check_bits(result, replay(tmp_path / "log.h5"))  # what is in the log will do
    result.to_hdf5(tmp_path / "copy.h5")
    check_bits(result, replay(tmp_path / "copy.h5", loop()))
    in_memory = run_realtime(loop(), 0.05).wait()
    check_bits(in_memory, replay(in_memory, loop()))
    in_memory.to_hdf5(tmp_path / "memory.h5")
    again = replay(tmp_path / "memory.h5", loop(), out=tmp_path / "again.h5")
    check_bits(in_memory, again)
    # A replay has an input log too, and is replayed in turn.
    check_bits(in_memory, replay(tmp_path / "again.h5", loop()))


def test_a_replay_shows_what_was_not_recorded():
    result = run_realtime(loop(), 0.05, record=["plant"], every=5).wait()
    assert list(result) == ["plant.y"] and result.length == 11
    check_bits(result, replay(result, loop()))
    whole = replay(result, loop(), record=["*"], every=1)
    assert whole.length == 51 and len(whole) > 5
    assert whole["plant"][::5].tobytes() == result["plant"].tobytes()


def test_a_log_with_a_gap_is_compared_at_the_times_it_has():
    result = run_realtime(loop(), 0.05, record=["plant", "noise"]).wait()
    kept = np.r_[0:10, 25:51]
    log = result_of(result, kept)
    assert find_differences(log, result) == []
    assert find_differences(log, result_of(result, np.r_[0:40])) == []  # it may end earlier
    assert find_differences(log, result_of(result, np.r_[0:5, 8:51])) == ["time"]
    assert find_differences(log, result_of(result, np.r_[0:51], changed=30)) == ["plant.y"]
    assert find_differences(log, result_of(result, np.r_[0:51], changed=20)) == []  # in the gap


def result_of(result, rows, changed=None):
    """Return some rows of a result, with one bit changed."""
    table = np.stack([result.t, *(result[path] for path in result)])
    if changed is not None:
        at = 1 + list(result).index("plant.y"), changed
        table[at] = np.nextafter(table[at], 9.0)
    return Result(MemoryColumns(table[:, rows], result.signals), result.signals)


def test_without_its_input_log_the_bits_would_differ():
    """What the test above leans on: lateness and changes do matter."""
    with run_realtime(loop(), 0.2) as run:
        time.sleep(0.05)
        run["pid.kp"] = 7.0
        result = run.wait()
    assert "plant.y" in find_differences(result, simulate(loop(), 0.2))


def test_what_if_a_parameter_had_been_another():
    """All else that was recorded enters as before: how late ticks were, and other changes."""
    with run_realtime(loop(), 0.3) as run:
        run["pid.kp"] = 7.0
        run["bias.value"] = 0.4
        result = run.wait()
    other = replay(result, loop(), parameters={"pid.kp": 4.0})
    assert "plant.y" in find_differences(result, other)
    changed = np.flatnonzero(np.diff(result["bias"])) + 1
    assert np.array_equal(np.flatnonzero(np.diff(other["bias"])) + 1, changed)
    assert other.log is not None
    input_log = other.log.input_log
    kp = loop().compile(extra={}).parameters["pid.kp"].slot
    assert [float(e["value"]) for e in input_log[input_log["slot"] == kp]] == [4.0]
    check_bits(other, replay(other, loop()))
    check_bits(result, replay(result, loop(), parameters={}))
    with pytest.raises(BiellaError, match="kq"):
        replay(result, loop(), parameters={"pid.kq": 4.0})


changes = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.sampled_from(["pid.kp", "bias.value", "mix", "plant", "pid"]),
        st.floats(-5.0, 5.0),
        st.booleans(),
    ),
    max_size=12,
)


@settings(max_examples=40)
@given(changes)
def test_random_changes_are_replayed(items):
    """At given ticks, on a clock that is a script: parameters are set, signals overridden."""
    plan = loop().compile()
    entries = []
    for tick, path, value, releases in sorted(items, key=lambda item: item[0]):
        if path in plan.parameters:
            entries.append((tick, plan.parameters[path].slot, value, ENTER_SET, FROM_LIVE))
        else:
            kind = ENTER_RELEASE if releases else ENTER_OVERRIDE
            entries.append((tick, plan.find_signal(path).slot, value, kind, FROM_LIVE))
    first, input_log = run_entries(plan, np.array(entries, dtype=ENTRY), replayed=False)
    second, _ = run_entries(plan, input_log, replayed=True)
    assert first.tobytes() == second.tobytes()


def run_entries(plan, entries, *, replayed):
    """Run 40 ticks with `entries` as commands, or as what is replayed; return rows and input
    log.
    """
    pace = Pace()
    pace.script(list(range(0, 40_000, 1000)), [5000] * 40)
    slots = [port.slot + k for port in plan.signals.values() for k in range(port.width)]
    first = plan.parameters["timing.received"].slot
    with (
        Instance(plan) as instance,
        Probe(instance, profile=False),
        Pipe(ENTRY, 100) as commands,
        Pipe(ENTRY, 1000) as input_log,
        Pipe(np.dtype((np.float64, 1 + len(slots))), 100) as rows,
    ):
        instance.initialize()
        if replayed:
            pace.replay_from(entries)
        else:
            assert commands.push(entries) or not len(entries)
            pace.commands = commands.handle
            for k in range(5):
                pace.timing[k] = first + k
        pace.input_log = input_log.handle
        pace.record(rows, slots, 1)
        assert pace.run(instance, 40) == 0
        return rows.pull(), input_log.pull()


class Memory(PythonBlock):
    """A Python block with a state."""

    def __init__(self):
        super().__init__(inputs=[Port("u")], outputs=[Port("y")], state=[0.0], period=1e-3)

    def output(self, t, x, u):
        return x[0]

    def update(self, t, x, u):
        return [0.9 * x[0] + u]


def with_python():
    d = loop()
    d.connect(d["plant"], d.add(Memory(), name="memory"))
    return d


def test_python_blocks_run_again_and_must_be_given():
    result = run_realtime(with_python(), 0.05).wait()
    check_bits(result, replay(result, with_python()))
    with pytest.raises(BiellaError, match="has Python blocks or FMUs, which are not in the log"):
        replay(result)


def test_runs_that_ended_early_end_so_again():
    d = loop()
    d.connect(d["plant"], d.add(Compare(">", 0.02), name="far"))
    d.connect(d["far"], d.add(Stop("far enough"), name="stop"))
    result = run_realtime(d, 5.0).wait()
    again = replay(result, d)
    check_bits(result, again)
    assert again.info["stopped"] == result.info["stopped"]

    d = Diagram("nan", step=1e-3)
    d.add(Expression("sqrt(1 - t * 100)"), name="root")
    with pytest.raises(BlockError) as caught:
        run_realtime(d, 1.0).wait()
    assert caught.value.result is not None
    with pytest.raises(BlockError, match="`root`") as repeated:
        replay(caught.value.result, d)
    check_bits(caught.value.result, repeated.value.result)


def test_a_diagram_that_has_changed_is_named_with_what_has_changed():
    result = run_realtime(loop(), 0.02).wait()
    with pytest.raises(BiellaError, match="not the diagram that was run") as caught:
        replay(result, loop(kp=3.0))
    assert "`pid.kp` was 2 and is 3." in str(caught.value)
    with pytest.raises(BiellaError, match="added blocks: extra"):
        replay(result, loop(extra=True))
    with pytest.raises(BiellaError, match="removed blocks: timing, ref"):
        other = Diagram("loop", step=1e-3)
        other.add(Constant(1.0), name="bias")
        replay(result, other)
    with pytest.raises(ResultError, match="has no input log"):
        replay(simulate(loop(), 0.01), loop())


def test_a_log_of_another_version_can_be_read_but_not_replayed(tmp_path):
    d = Diagram("old", step=1e-3)
    d.add(Sine(), "s")
    run = run_realtime(d, 0.02, clock="free", out=tmp_path / "old.h5").wait()

    def age(plan):
        return plan[:8] + b"\x01" + plan[9:]  # the format

    result = Result.from_hdf5(tmp_path / "old.h5")
    log = result.log
    assert log is not None
    entries = log.input_log
    result.log = RunLog(age(log.plan), log.ticks, lambda: entries)
    result.to_hdf5(tmp_path / "old.h5")
    for given_diagram in (None, d):
        with pytest.raises(PlanError, match=r"its plan is not valid for this version: .*format 1,"):
            replay(tmp_path / "old.h5", given_diagram)
    assert np.array_equal(Result.from_hdf5(tmp_path / "old.h5")["s"], run["s"])


def test_a_step_that_was_given_to_the_run_is_that_of_the_replay():
    result = run_realtime(loop(), 0.05, step=5e-4).wait()
    assert result.length == 101
    check_bits(result, replay(result, loop()))


def test_a_log_that_is_not_closed_is_replayed_as_far_as_it_goes(tmp_path):
    with run_realtime(loop(), out=tmp_path / "log.h5") as run:
        log = Result.from_hdf5(tmp_path / "log.h5")
        while log.log is None or log.log.ticks < 100:  # it is written once a second
            time.sleep(0.01)
            log = Result.from_hdf5(tmp_path / "log.h5")
        assert 100 <= log.log.ticks <= run.tick
        again = replay(log, loop())
        assert again.length == log.log.ticks  # the last one may be there in part
        assert find_differences(log, again) == []


@pytest.mark.parametrize(("known", "rows"), [(0, 1), (1, 1), (2, 2), (3, 3)])
def test_the_last_tick_of_a_log_that_is_not_closed_is_left_out(known, rows):
    result = run_realtime(loop(), 0.01, clock="free").wait()
    whole = result.log
    assert whole is not None
    result.log = RunLog(whole.plan, known, lambda: whole.input_log)
    assert replay(result).length == rows


# --- bound runs ---

RIG = """
[run]
overrun = "catch_up"
[devices.stage]
driver = "loopback"
delay = 2
jitter = 2
loss = 0.1
noise = 0.01
seed = 7
timeout = 5.0
[devices.stage.receive.back]
limits = [-50, 50]
[devices.stage.send.out]
limits = [-50, 50]
safe = 0
[blocks.mix]
device = "stage"
inputs = { u = "out" }
outputs = { y = "back" }
"""


def bound():
    """A loop whose power stage, `mix`, is a device."""
    d = Diagram("bound", step=1e-3)
    reference = d.add(Sine(frequency=2.0), name="ref")
    pid = d.add(PID(kp=2.0, ki=8.0, period=2e-3), name="pid")
    plant = d.add(Integrator(0.0), name="plant")
    mix = d.add(Gain(1.0), name="mix")
    d.connect(reference, pid["reference"])
    d.connect(plant, pid["measurement"])
    d.connect(pid, mix)
    d.connect(mix, plant)
    return d


def test_a_run_with_a_device_is_replayed_without_it(tmp_path):
    (tmp_path / "rig.toml").write_text(RIG)
    result = run_realtime(bound(), 0.3, bind=tmp_path / "rig.toml", out=tmp_path / "log.h5").wait()
    report = result.info["realtime"]
    assert report["devices"]["stage"]["frames"] > 200
    assert len(set(result["stage.age"])) > 1 and result["stage.delay"].max() >= 3
    assert result.info["realtime"]["overrun"] == "catch_up"
    assert "plant.y" in find_differences(result, simulate(bound(), 0.3))  # the device matters
    (tmp_path / "rig.toml").unlink()
    check_bits(result, replay(tmp_path / "log.h5", bound()))
    check_bits(result, replay(tmp_path / "log.h5"))
    changed = bound()
    changed.add(Constant(1.0), name="more")
    with pytest.raises(BiellaError, match="added blocks: more"):
        replay(tmp_path / "log.h5", changed)


def test_all_ways_of_running_give_the_same_signals(tmp_path):
    """Simulated, real-time, bound and replayed: one schema, besides what a device says of
    itself.
    """
    (tmp_path / "rig.toml").write_text(RIG)
    realtime = run_realtime(bound(), 0.05).wait()
    with_device = run_realtime(bound(), 0.05, bind=tmp_path / "rig.toml").wait()
    replayed = replay(with_device, bound())
    own = {"stage.age", "stage.alive", "stage.delay"}
    assert set(with_device) - own == set(realtime) and set(replayed) == set(with_device)
    assert {p for p in realtime if not p.startswith("realtime.")} == set(simulate(bound(), 0.01))
    assert {p: realtime.units[p] for p in realtime} == {p: with_device.units[p] for p in realtime}


def relay_oscillator(**options):
    """x between -0.1 and 0.1: the relay switches within ticks."""
    d = Diagram("oscillator", step=1e-2, **options)
    x = d.add(Integrator(0.055), "x")
    speed = d.add(Gain(1.0), "speed", u=d.add(Relay(0.1, -0.1, -1.0, 1.0), "relay", u=x))
    d.connect(speed, x)
    return d


@pytest.mark.parametrize("stored", [False, True])
def test_events_are_replayed_bit_for_bit(tmp_path, stored):
    out = tmp_path / "log.h5" if stored else None
    with run_realtime(
        relay_oscillator(), 5.0, factor=10.0, out=out, record=["x", "solver.events"]
    ) as run:
        run["speed.k"] = 1.7
        first = run.wait()
    assert first.events.total > 20
    assert first.events.sources == ["relay"]
    again = replay(tmp_path / "log.h5" if stored else first)
    assert again.events.log.tobytes() == first.events.log.tobytes()
    assert find_differences(first, again) == []


def test_events_that_differ_are_found(tmp_path):
    first = run_realtime(relay_oscillator(), 1.0, clock="free").wait()
    again = replay(first)
    again.events.log.flags.writeable = True
    again.events.log["time"][2] += 1e-9
    assert find_differences(first, again) == ["events"]


def test_a_pair_of_tolerances_survives_a_file(tmp_path):
    """In the file it is a list; the diagram is compiled again with it."""
    run_realtime(
        relay_oscillator(),
        1.0,
        clock="free",
        out=tmp_path / "a.h5",
        solver="dopri5",
        tolerance=(1e-6, 1e-8),
    ).wait()
    log = Result.from_hdf5(tmp_path / "a.h5")
    assert find_differences(log, replay(log, relay_oscillator())) == []


def test_events_are_compared_only_where_the_recording_has_some():
    """Recordings of arrays have none; a replay of them may have."""
    d = Diagram("events", step=0.1)
    d.connect(d.add(Pulse(0.37), name="pulse"), d.add(Integrator(), name="x"))
    located = simulate(d, 1.0)
    assert located.events.total > 3
    plain = Result.from_arrays(located.t, {"pulse": located["pulse"]})
    assert not _events_differ(plain, located)
    d = Diagram("quiet", step=0.1)
    d.connect(d.add(Pulse(10.0), name="pulse"), d.add(Integrator(), name="x"))
    quiet = simulate(d, 1.0)
    assert not quiet.events.total and quiet.events.blocks
    assert _events_differ(quiet, located)
    assert not _events_differ(located, located)
    assert _events_differ(located, plain)
