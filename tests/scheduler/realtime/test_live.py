"""Live runs: changed and looked at while they go on; they end safely, and say why."""

import signal
import threading
import time

import numpy as np
import pytest

from biella import BiellaError, BlockError, Diagram, Fmu, run_realtime, simulate
from biella.blocks import (
    Constant,
    Expression,
    Gain,
    Integrator,
    Port,
    RealTime,
    Relay,
    Sign,
    Sine,
    UnitDelay,
    ZeroOrderHold,
    python_block,
)
from biella.blocks.authoring import ExternalInput
from biella.errors import BiellaWarning, CouplingWarning
from biella.scheduler.compile.diagram._subsystem import Subsystem
from biella.scheduler.realtime import _live as live_module
from biella.scheduler.realtime._live_end import describe_briefly
from biella.scheduler.realtime._start import OPTIONS, start_run
from biella.scheduler.realtime.log._replay import find_differences, replay
from biella.scheduler.results._result import Result

from .live_runs import in_a_process, loop, processes, start_bound, wait_until

pytestmark = pytest.mark.engine


@pytest.fixture(autouse=True)
def end_processes():
    """Leave none behind, also after a failure or a time limit."""
    yield
    while processes:
        with processes.pop() as process:
            process.kill()


# --- the same diagram ---


def test_a_realtime_run_gives_the_bits_of_an_offline_one():
    d = loop()
    expected = simulate(d, 0.2)
    result = run_realtime(d, 0.2).wait()
    assert result.length == expected.length == 201
    assert np.array_equal(result.t, expected.t)
    for path in expected:
        assert np.array_equal(result[path], expected[path]), path
    assert set(result) - set(expected) == {
        f"realtime.{name}" for name in ("lateness", "execution", "overruns", "age", "lost")
    }
    assert result.info["stopped"] is None
    assert result.info["ticks"] == result.info["realtime"]["ticks"] == 200
    assert result.units["realtime.lateness"] == "s"


def test_timing_signals_are_those_of_the_report():
    result = run_realtime(loop(), 0.2, overrun="catch_up").wait()
    report = result.info["realtime"]
    late = result["realtime.lateness"][:200]
    assert late.min() == pytest.approx(report["lateness"]["min"])
    assert late.max() == pytest.approx(report["lateness"]["max"])
    assert late.mean() == pytest.approx(report["lateness"]["mean"])
    took = result["realtime.execution"][1:200]
    assert took.max() <= report["execution"]["max"] * (1 + 1e-9)
    # The signal of a tick counts the overruns of those before it.
    assert 0 <= report["overruns"] - result["realtime.overruns"][199] <= 1
    assert report["end"] == "time" and report["lateness"]["count"] == 200


def test_on_the_free_clock_a_run_is_the_same_every_time():
    first, second = (run_realtime(loop(), 1.0, clock="free").wait() for _ in range(2))
    for path in first:
        assert np.array_equal(first[path], second[path]), path
    assert len(first) > 5 and first["realtime.lateness"].max() == 0.0


def test_a_diagram_may_use_how_late_it_is():
    d = loop()
    timing = d.add(RealTime(), name="timing")
    doubled = d.add(Gain(2.0), name="doubled")
    d.connect(timing["lateness"], doubled)
    assert not simulate(d, 0.01)["doubled"].any()
    result = run_realtime(d, 0.05).wait()
    assert "realtime.lateness" not in result
    assert np.array_equal(result["doubled"], 2.0 * result["timing.lateness"])
    assert result["doubled"].max() > 0.0


# --- changed and looked at ---


def test_a_parameter_changes_at_a_tick_and_stays_changed():
    d = Diagram("set", step=1e-3)
    d.add(Constant(1.0), name="c")
    with run_realtime(d) as run:
        wait_until(lambda: run.tick > 20)
        assert run["c.value"] == 1.0
        run["c.value"] = 5
        assert run["c.value"] == 5.0
        wait_until(lambda: run.latest("c") == 5.0)
        wait_until(lambda: run.latest("realtime.execution") >= 0.0)
        result = run.stop()
    change = np.flatnonzero(np.diff(result["c"]))
    assert len(change) == 1 and change[0] >= 20
    assert set(result["c"]) == {1.0, 5.0}
    assert result.log is not None
    entry = result.log.input_log[
        result.log.input_log["slot"] == run.plan.parameters["c.value"].slot
    ]
    assert entry["tick"].tolist() == [change[0] + 1]
    assert result.info["stopped"] is None and result.info["realtime"]["end"] == "cancel"


def test_vectors_change_as_a_whole():
    d = Diagram("vectors", step=1e-3)
    d.add(Constant([0.0, 0.0]), name="c")
    u = d.input("u", width=2, default=0.0)
    d.connect(u, d.add(Gain(1.0), name="g"))
    with run_realtime(d) as run:
        for k in range(1, 30):
            run["c.value"] = [k, -k]
            run["u"] = [k, k]
            time.sleep(1e-3)
        assert np.array_equal(run["c.value"], [29, -29])
        assert np.array_equal(run["u"], [29, 29])
        wait_until(lambda: np.asarray(run.latest("g"))[0] == 29.0)
        assert np.array_equal(run.latest("u"), [29, 29])
        result = run.stop()
    assert np.array_equal(result["c"][:, 0], -result["c"][:, 1])
    assert np.array_equal(result["u"][:, 0], result["u"][:, 1])
    assert result["c"][-1].tolist() == [29, -29]


def test_more_overrides_than_there_can_be_say_so():
    d = Diagram("long", step=1e-3)
    d.connect(d.add(Constant(np.zeros(600)), name="c"), d.add(Gain(1.0), name="g"))
    with run_realtime(d, record=[]) as run:
        run.override("c", 1.0)
        run.override("c", 2.0)
        with pytest.raises(BiellaError, match=r"with `g` 1200 values .* the limit is 1024: .*: c"):
            run.override("g", 1.0)
        run.release("c")
        run.override("g", 3.0)
        wait_until(lambda: np.asarray(run.latest("g"))[-1] == 3.0)
        assert not run.stop().info["realtime"]["entries_rejected"]


def test_what_cannot_be_changed_says_so():
    d = loop()
    d.add(UnitDelay(), name="delay")
    d.connect(d["plant"], d["delay"])
    d.add(ExternalInput(outputs=[Port("y")]), name="board")
    with run_realtime(d) as run:
        with pytest.raises(BiellaError, match=r"no parameter or input `pid.kq`. Did you mean"):
            run["pid.kq"] = 1.0
        with pytest.raises(BiellaError, match="is fixed after the start of a run"):
            run["delay.initial"] = 1.0
        with pytest.raises(BiellaError, match="must be finite"):
            run["pid.kp"] = np.nan
        with pytest.raises(BiellaError, match="expects numbers"):
            run["pid.kp"] = "three"
        with pytest.raises(BiellaError, match="expects one number"):
            run["pid.kp"] = [1.0, 2.0]
        with pytest.raises(BiellaError, match=r"no signal `plnat`. Did you mean `plant`"):
            run.latest("plnat")
        with pytest.raises(BiellaError, match="override a signal instead"):
            run["board.received"] = 1.0
        with pytest.raises(BiellaError, match="must be finite"):
            run.override("plant", np.inf)
        with pytest.raises(BiellaError, match="`plant` is not overridden"):
            run.release("plant")
        run.stop()
        with pytest.raises(BiellaError, match="the run has ended"):
            run["pid.kp"] = 1.0


def test_an_override_holds_everywhere_and_ends_with_its_release():
    d = Diagram("override", step=1e-3)
    rate = d.add(Constant(1.0), name="rate")
    held = d.add(ZeroOrderHold(), name="held", period=5e-3)
    total = d.add(Integrator(0.0), name="total")
    d.connect(rate, held)
    d.connect(held, total)
    with run_realtime(d, clock="free", until=1e6) as run:
        run.override("held", 0.0)
        wait_until(lambda: run.latest("held") == 0.0)
        before = run.latest("total")
        time.sleep(0.01)
        assert run.latest("total") == before
        run.release("held")
        wait_until(lambda: run.latest("total") > before)
        run.override("total", -3.0)  # the state goes on, its output does not
        wait_until(lambda: run.latest("total") == -3.0)
        run.release()
        wait_until(lambda: run.latest("total") > before)
        result = run.stop()
    assert set(result["held"]) == {0.0, 1.0}
    slopes = np.diff(result["total"]) / 1e-3
    untouched = (result["total"][1:] != -3.0) & (result["total"][:-1] != -3.0)
    np.testing.assert_allclose(slopes[untouched], result["held"][:-1][untouched], atol=1e-6)


def test_an_override_holds_in_minor_steps():
    """Zero in place of a continuous block: what integrates it stands still, to the bit."""
    d = Diagram("minor", step=1e-2)
    rate = d.add(Gain(3.0), name="rate")
    total = d.add(Integrator(0.0), name="total")
    d.connect(d.add(Sine(frequency=5.0), name="ref"), rate)
    d.connect(rate, total)
    with run_realtime(d, clock="free", until=1e6) as run:
        run.override("rate", 0.0)
        wait_until(lambda: run.latest("rate") == 0.0)
        before = run.latest("total")
        tick = run.tick
        wait_until(lambda: run.tick > tick + 100)
        assert run.latest("total") == before


def test_an_override_holds_in_a_subsystem_that_is_off():
    inner = Diagram("inner", step=1e-3)
    u = inner.input("u", default=1.0)
    twice = inner.add(Gain(2.0), name="twice")
    inner.connect(u, twice)
    inner.output("y", twice)
    d = Diagram("outer", step=1e-3)
    off = d.add(Constant(False), name="off")
    sub = d.add(Subsystem(inner, enable=True), name="sub")
    d.connect(off, sub["enable"])
    copy = d.add(Gain(1.0), name="copy")
    d.connect(sub["y"], copy)
    with run_realtime(d) as run:
        run.override("sub.y", 7.0)
        run.override("sub.twice", 5.0)
        wait_until(lambda: run.latest("copy") == 7.0)
        wait_until(lambda: run.latest("sub.twice") == 5.0)
        tick = run.tick
        wait_until(lambda: run.tick > tick + 5)
        assert run.latest("copy") == 7.0 and run.latest("sub.twice") == 5.0


def test_an_override_holds_in_an_algebraic_loop():
    d = Diagram("loop", step=1e-3, algebraic_loops="solve")
    a = d.add(Expression("1 + 0.5 * u"), name="a")
    b = d.add(Gain(1.0), name="b")
    d.connect(a, b)
    d.connect(b, a)
    with run_realtime(d) as run:
        wait_until(lambda: np.abs(run.latest("a") - 2.0) < 1e-9)
        run.override("b", 6.0)
        wait_until(lambda: np.abs(run.latest("a") - 4.0) < 1e-9)
        run.release()
        wait_until(lambda: np.abs(run.latest("a") - 2.0) < 1e-9)


def test_pause_and_resume():
    with run_realtime(loop()) as run:
        wait_until(lambda: run.tick > 10)
        run.pause()
        time.sleep(0.05)
        tick = run.tick
        time.sleep(0.05)
        assert run.tick == tick and run.running
        run["pid.kp"] = 1.0
        run.resume()
        wait_until(lambda: run.tick > tick + 10)
        result = run.stop()
    # The pause is not lateness: the run went on where it was.
    assert np.array_equal(result.t, 1e-3 * np.arange(result.length))
    assert result["realtime.lateness"][tick] < 0.05


def test_before_the_first_tick_latest_waits_for_it():
    with run_realtime(loop(step=0.05)) as run:
        assert isinstance(run.latest("plant"), float)


def test_before_the_first_tick_of_a_paused_run_only_inputs_have_values():
    d = loop()
    gain = d.add(Gain(2.0), name="gain")
    d.connect(d.input("load", default=3.0), gain)
    with start_run(d, dict(OPTIONS), {}, paused=True) as run:
        with pytest.raises(BiellaError, match=r"before the first tick: the run is paused: call st"):
            run.latest("plant")
        assert run.latest("load") == run["load"] == 3.0
        run["load"] = 4.0
        assert run.latest("load") == run["load"] == 4.0
        run.step()
        wait_until(lambda: run.tick == 1)
        assert run.latest("gain") == 8.0 and isinstance(run.latest("plant"), float)


@pytest.fixture
def stuck():
    """A run whose first tick does not end before the test does."""
    d, begun, end = Diagram("d", step=1e-3), threading.Event(), threading.Event()

    @python_block(outputs=[Port("y")])
    def long():
        begun.set()
        end.wait(60.0)
        return 1.0

    d.add(long(), name="long")
    d.add(Constant(1.0), name="c")
    with run_realtime(d) as run:
        try:
            assert begun.wait(60.0)
            yield run
        finally:
            end.set()


def test_latest_does_not_wait_for_a_first_tick_that_does_not_end(stuck):
    with pytest.raises(BiellaError, match="before the first tick: tick 0 has not ended"):
        stuck.latest("c", timeout=0.02)


def test_a_change_without_room_is_an_error_and_not_made(stuck, monkeypatch):
    monkeypatch.setattr(live_module, "_PATIENCE", 0.02)
    for number in range(4096):
        stuck["c.value"] = number
    for change in (
        lambda: stuck.__setitem__("c.value", -1.0),
        lambda: stuck.override("c", -1.0),
    ):
        with pytest.raises(BiellaError, match=r"not made: 4096 values already wait.*tick 0 has"):
            change()
    assert stuck["c.value"] == 4095.0 and stuck.tick == 0


def test_a_run_that_waits_for_its_device_says_so(monkeypatch):
    run, _, _ = start_bound(monkeypatch, [], {}, clock="device:board")
    with run, pytest.raises(BiellaError, match="tick: it waits for a frame of the device `board`"):
        run.latest("double", timeout=0.02)


def test_latest_of_a_run_that_failed_at_its_first_tick_says_why():
    d = Diagram("d", step=1e-3)

    @python_block(outputs=[Port("y")])
    def broken():
        raise RuntimeError("no license")

    d.add(broken(), name="broken")
    with pytest.raises(BlockError, match=r"`broken`.*no license"), run_realtime(d) as run:
        run.latest("broken")


# --- how it ends ---


def test_ctrl_c_ends_a_run_and_gives_its_result():
    process = in_a_process("""
        import live_runs, signal, threading
        from biella import run_realtime
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run = run_realtime(live_runs.loop())
        tell = lambda: (live_runs.wait_until(lambda: run._waiting), print("goes", flush=True))
        threading.Thread(target=tell).start()
        result = run.wait()
        print(result.length > 0, result.info["stopped"])
    """)
    assert process.stdout.readline() == "goes\n"
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=300)
    assert out.startswith("True interrupted by Ctrl-C at t = "), errors
    assert process.returncode == 0


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run_safely(number, waits, tmp_path):
    """SIGHUP is a terminal that is closed, or a connection to it that is lost."""
    process = in_a_process(f"""
        import live_runs, threading, time
        from biella import run_realtime
        run = run_realtime(live_runs.loop(), out={str(tmp_path / "log.h5")!r})
        run.latest("plant")
        ready = lambda: run._waiting or not {waits}
        tell = lambda: (live_runs.wait_until(ready), print("goes", flush=True))
        threading.Thread(target=tell).start()
        if {waits}:
            print(run.wait().info["stopped"])
        else:
            time.sleep(100)
    """)
    assert process.stdout.readline() == "goes\n"
    process.send_signal(number)
    out, errors = process.communicate(timeout=300)
    assert process.returncode == (0 if waits else 128 + number), errors
    assert out.startswith(f"ended by {number.name}") == waits
    log = Result.from_hdf5(tmp_path / "log.h5")
    assert log.info["stopped"].startswith(f"ended by {number.name} at t = ")


def test_sigterm_ends_a_program_that_is_just_changing_or_reporting(tmp_path):
    """Both hold a lock for a moment, which the end of the run needs, too."""
    process = in_a_process(f"""
        import live_runs, time
        from biella import run_realtime
        run = run_realtime(live_runs.loop(), out={str(tmp_path / "log.h5")!r})
        run.latest("plant")
        with run._lock:
            print("goes", flush=True)
            time.sleep(100)
    """)
    assert process.stdout.readline() == "goes\n"
    process.send_signal(signal.SIGTERM)
    try:
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGTERM, errors
    log = Result.from_hdf5(tmp_path / "log.h5")
    assert log.info["stopped"].startswith("ended by SIGTERM at t = ")


# --- devices, as a binding gives them ---


# --- recorders that survive a lack of room ---


def test_a_recorder_that_fails_ends_the_run_before_anything_is_closed(monkeypatch):
    """The loop works on the pipes: closed under it, they would be freed memory."""
    d = Diagram("d", step=1e-3)
    d.add(Constant(1.0), name="c")
    run = run_realtime(d, clock="wall")

    def fail(*_: object) -> None:
        raise RuntimeError("no more paper")

    monkeypatch.setattr(run._recorder, "append_input_log", fail)
    with pytest.raises(RuntimeError, match="no more paper"):
        run.wait(30)
    assert not run.running


def test_waiting_longer_than_the_limit_is_an_error():
    run = run_realtime(loop(), 10.0, clock="wall")
    with pytest.raises(TimeoutError, match=r"has not ended after 0\.01 s"):
        run.wait(0.01)
    assert run.running
    run.stop()
    run.wait(30)


def test_what_couplings_report_does_not_disturb_who_watches(tmp_path):
    """Their signals lie beyond those of blocks."""
    inner = Diagram("plant", step=1e-3)
    x = inner.add(Integrator(1.0), name="x")
    inner.connect(inner.input("u"), x)
    inner.output("y", x)
    inner.export_fmu(tmp_path / "plant.fmu")
    d = Diagram("loop", step=1e-3)
    plant = d.add(Fmu(tmp_path / "plant.fmu"), name="plant")
    k = d.add(Gain(-1.0), name="k")
    d.connect(plant["y"], k)
    d.connect(k, plant["u"])
    d.couple(plant, method="newton")
    plan = d.compile()
    told = next(path for path in plan.signals if path.startswith("coupling."))
    with run_realtime(d, until=0.3) as run:
        with pytest.raises(BiellaError, match="is a diagnostic signal of a coupling"):
            run.latest(told)
        run.wait()


def test_communication_steps_of_a_tick_are_bounded_and_counted(tmp_path):
    """x' = -30 x: ticks of 10 ms have at most 4 parts, which are not enough for 1e-4."""
    inner = Diagram("plant", step=1e-2)
    x = inner.add(Integrator(1.0), name="x")
    inner.connect(inner.input("u"), x)
    inner.output("y", x)
    inner.export_fmu(tmp_path / "plant.fmu")
    d = Diagram("loop", step=1e-2, extrapolation=1)
    plant = d.add(Fmu(tmp_path / "plant.fmu"), name="plant")
    d.chain(plant["y"], d.add(Gain(-30.0), name="k"), plant["u"])
    d.couple(plant, coupling_tolerance=1e-4, halvings=2)
    with (
        pytest.warns(CouplingWarning, match="exceed coupling_tolerance .* at most 4 communication"),
        run_realtime(d, until=0.1) as run,
    ):
        run.wait()
    (item,) = run.result.coupling_report().couplings
    assert item["steps"] == 10 and item["communication_steps"] == 40
    assert item["sweeps"] <= 70 and 0 < item["exceeded"] <= 10


def chattering(max_events):
    """x' = -sign(x): slides along 0 from 12.3 ms on, with more events than a tick may have."""
    d = Diagram("sliding", step=1e-3, max_events=max_events)
    x = d.add(Integrator(0.0123), "x")
    d.chain(x, d.add(Sign(), "sign"), d.add(Gain(-1.0), "back"), x)
    return d


def test_events_and_fallbacks_are_counted_during_the_run_and_in_the_report():
    record = ["x", "solver.*"]
    with pytest.warns(BiellaWarning, match="most of them of `sign`"):
        offline = simulate(chattering(8), 0.1, record=record)
    with pytest.warns(BiellaWarning, match="most of them of `sign`"):
        run = run_realtime(chattering(8), 0.1, clock="free", record=record)
        result = run.wait()
    for path in offline:
        assert result[path].tobytes() == offline[path].tobytes()
    assert result.events.log.tobytes() == offline.events.log.tobytes()
    counts = result.info["solver_counts"]
    assert counts == offline.info["solver_counts"]
    assert run.latest("solver.events") == counts["events"] > 0
    assert run.latest("solver.unlocated") == counts["unlocated"] > 0
    text = str(result.realtime_report())
    assert f"{counts['events']} events located; {counts['unlocated']} ticks with too many" in text
    with pytest.raises(BiellaError, match="cannot be overridden"):
        run.override("solver.events", 0.0)


def test_an_override_holds_at_the_end_of_a_step_too():
    """Crossing functions are evaluated there: with the block's own output the relay switches."""
    d = Diagram("override", step=1e-3, solver="rk4")
    x = d.add(Integrator(2.0), name="x")
    relay = d.add(Relay(1.0, 0.5), name="relay")
    d.connect(d.add(Constant(0.0), name="rate"), x)
    d.chain(x, d.add(Gain(1.0), name="g"), relay, d.add(Integrator(), name="sum"))
    with run_realtime(d) as run:
        run.override("g", 0.0)
        wait_until(lambda: np.asarray(run.latest("relay")) == 0.0)
        result = run.stop()
    assert len(result.events) == 0


# --- stepped, and at another speed ---


def start_kept(tmp_path=None, **options):
    """A run at first paused that keeps its newest rows."""
    given = {"out": None if tmp_path is None else tmp_path / "run.h5", "record": ["*"], **options}
    return start_run(loop(), given, {}, history=64 << 20, paused=True)


@pytest.mark.parametrize("to_file", [False, True])
def test_a_run_with_pauses_steps_factors_sets_and_overrides_replays_bit_for_bit(tmp_path, to_file):
    with start_kept(tmp_path if to_file else None) as run:
        run.step(3)
        wait_until(lambda: run.tick == 3)
        run["pid.kp"] = 3.0
        run.step(2)
        wait_until(lambda: run.tick == 5)
        run.factor = 0.0
        run.resume()
        wait_until(lambda: run.tick > 300)
        run.override("pid.y", 0.25)
        wait_until(lambda: run.latest("pid.y") == 0.25)
        run.factor = 3.0
        before = run.tick
        wait_until(lambda: run.tick > before + 100)
        run.release()
        run.pause()
        tick = run.tick
        run["pid.ki"] = 4.0
        run.factor = 0.5
        run.step(7)
        wait_until(lambda: run.tick >= tick + 7)
        run.resume()
        end = run.tick + 40
        wait_until(lambda: run.tick > end)
        result = run.stop()
    assert result.length == result.info["ticks"] + 1
    assert np.array_equal(result.t, 1e-3 * np.arange(result.length))
    assert not find_differences(result, replay(result))
    assert {3.0, 0.25, 4.0} <= set(result.log.input_log["value"].tolist())
    _, kept = run.history.read(0, run.history.end)
    assert np.array_equal(kept[0], result.t)
    assert np.array_equal(kept[run.history.columns["plant.y"]], result["plant.y"])


def test_a_run_without_end_keeps_its_newest_rows_only():
    row = 8 * (1 + len(loop().compile().signals) + 5)
    options = {"until": 2.0, "clock": "free", "record": ["*"]}
    run = start_run(loop(), options, {}, history=100 * row)
    result = run.wait()
    assert run.history.capacity == result.length == 100
    assert result.t[0] == pytest.approx(1.901) and result.t[-1] == 2.0
    expected = run_realtime(loop(), 2.0, clock="free", record=["plant"]).wait()
    assert np.array_equal(result["plant.y"], expected["plant.y"][-100:])
    assert not find_differences(result, replay(result, every=1))


def test_what_cannot_be_stepped_or_paced_says_so(monkeypatch):
    with start_kept() as run:
        for ticks in (0, -1, 1.5, True, 10**9):
            with pytest.raises(BiellaError, match="a whole number from 1"):
                run.step(ticks)
        for factor in (-1.0, np.inf, np.nan):
            with pytest.raises(BiellaError, match="factor must be 0 or more"):
                run.factor = factor
        run.resume()
        with pytest.raises(BiellaError, match=r"not paused: call pause\(\)"):
            run.step()
    with (
        run_realtime(loop(), clock="free") as run,
        pytest.raises(BiellaError, match="`free`: it has no factor"),
    ):
        run.factor = 2.0
    assert run.factor == 0.0
    run, _, _ = start_bound(monkeypatch, [], {})
    with run:
        with pytest.raises(BiellaError, match="keeps real time"):
            run.factor = 2.0
        run.pause()
        with pytest.raises(BiellaError, match="devices cannot be stepped"):
            run.step()


def test_a_brief_report():
    with start_kept() as run:
        assert describe_briefly(run)["paused"] and describe_briefly(run)["factor"] == 1.0
        run.override("pid.y", 1.0)
        brief = describe_briefly(run)
        assert brief["overridden"] == ["pid.y"] and brief["devices"] == []
        assert not brief["failed"] and brief["reason"] == ""
    assert describe_briefly(run)["reason"] == "stopped"
