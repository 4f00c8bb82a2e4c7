"""Live runs: changed and looked at while they go on; they end safely, and say why."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from biella import BiellaError, BlockError, Diagram, Fmu, run_realtime, simulate
from biella.blocks import (
    PID,
    Compare,
    Constant,
    Expression,
    Gain,
    Integrator,
    Port,
    PythonBlock,
    RealTime,
    Sine,
    Stop,
    UnitDelay,
    ZeroOrderHold,
    python_block,
)
from biella.blocks.authoring import ExternalInput
from biella.errors import DeviceError, OverrunError
from biella.scheduler.compile.diagram._subsystem import Subsystem
from biella.scheduler.realtime.log._replay import find_differences, replay
from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import ResultError

pytestmark = pytest.mark.engine


def loop(step=1e-3):
    """A speed loop: a sampled controller, a continuous plant."""
    d = Diagram("speed loop", step=step)
    reference = d.add(Sine(frequency=2.0), name="ref")
    pid = d.add(PID(kp=2.0, ki=8.0, period=step), name="pid")
    plant = d.add(Integrator(0.0), name="plant")
    d.connect(reference, pid["reference"])
    d.connect(plant, pid["measurement"])
    d.connect(pid, plant)
    return d


def wait_until(condition):
    """Wait, but not for ever: a run that does not do what it should would hang the tests."""
    for _ in range(60_000):
        if condition():
            return
        time.sleep(1e-3)
    raise AssertionError("it did not happen")


_processes: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def end_processes():
    """Leave none behind, also after a failure or a time limit."""
    yield
    while _processes:
        with _processes.pop() as process:
            process.kill()


def in_a_process(text, **options):
    """Run Python in a process of its own; what it shares with this one stands before."""
    setup = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", setup + textwrap.dedent(text)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    _processes.append(process)
    return process


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


def test_the_name_realtime_may_not_be_taken_by_something_else():
    d = loop()
    d.add(Constant(1.0), name="realtime")
    with pytest.raises(BiellaError, match="name `realtime` is already used"):
        run_realtime(d, 0.01)


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


def test_a_vector_may_be_longer_than_the_pipe_of_changes_usually_is():
    d = Diagram("long", step=1e-3)
    d.add(Constant(np.zeros(5000)), name="c")
    with run_realtime(d, until=5.0, record=[]) as run:
        run["c.value"] = np.ones(5000)
        wait_until(lambda: not run.running or np.asarray(run.latest("c"))[-1] == 1.0)
        assert np.asarray(run.latest("c"))[-1] == 1.0


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
    # The pause is no lateness: the run went on where it was.
    assert np.array_equal(result.t, 1e-3 * np.arange(result.length))
    assert result["realtime.lateness"][tick] < 0.05


def test_before_the_first_tick_latest_waits_for_it():
    with run_realtime(loop(step=0.05)) as run:
        assert isinstance(run.latest("plant"), float)


def test_latest_of_a_run_that_failed_at_its_first_tick_says_why():
    d = Diagram("d", step=1e-3)

    @python_block(outputs=[Port("y")])
    def broken():
        raise RuntimeError("no license")

    d.add(broken(), name="broken")
    with pytest.raises(BlockError, match=r"`broken`.*no license"), run_realtime(d) as run:
        run.latest("broken")


def test_a_report_of_a_run_that_goes_on_and_of_one_that_is_over():
    with run_realtime(loop(), profile=True) as run:
        wait_until(lambda: run.tick > 50)
        assert "so far" in str(run.report())
        result = run.stop()
    text = str(run.report())
    assert text == str(result.realtime_report())
    assert "it ended: stopped" in text and "p99.9" in text
    blocks = result.info["realtime"]["blocks"]
    assert set(blocks) == {"ref", "pid", "plant", "realtime"}
    assert all(block["count"] == result.info["ticks"] for block in blocks.values())
    whole = sum(block["total"] for block in blocks.values())
    assert 0.0 < whole <= result.info["realtime"]["execution"]["total"]
    with pytest.raises(ResultError, match="not of a real-time run"):
        simulate(loop(), 0.01).realtime_report()


# --- how it ends ---


def test_a_stop_block_and_the_end_time_are_ordinary_ends():
    d = loop()
    d.connect(d["plant"], d.add(Compare(">", 0.3), name="far"))
    d.connect(d["far"], d.add(Stop("far enough"), name="stop"))
    expected = simulate(d, 5.0)
    result = run_realtime(d, clock="free").wait()
    assert np.array_equal(result["plant"], expected["plant"])
    assert result.info["stopped"] == expected.info["stopped"]
    assert result.info["realtime"]["end"] == "stop"


def test_a_value_that_is_not_finite_ends_the_run_with_its_result():
    d = Diagram("nan", step=1e-3)
    root = d.add(Expression("sqrt(1 - t * 100)"), name="root")
    assert root
    with pytest.raises(BlockError, match=r"`root` .* not finite") as caught:
        run_realtime(d, 1.0).wait()
    assert caught.value.result is not None
    assert caught.value.result.length == 11
    assert caught.value.result.info["realtime"]["end"] == "error"


def test_an_exception_in_a_block_ends_the_run_and_is_reported_once():
    class Picky(PythonBlock):
        def __init__(self):
            super().__init__(outputs=[Port("y")], period=1e-3)

        def output(self, t, x, u):
            if t > 0.01:
                raise ValueError("no more")
            return t

    d = Diagram("python", step=1e-3)
    d.add(Picky(), name="picky")
    with (
        pytest.raises(BlockError, match=r"`picky`.* raised ValueError .*: no more"),
        run_realtime(d),
    ):
        time.sleep(0.2)
    with run_realtime(d) as run, pytest.raises(BlockError):
        run.wait()
    assert run.result.length == 11


def test_too_many_overruns_end_the_run():
    class Slow(PythonBlock):
        def __init__(self):
            super().__init__(outputs=[Port("y")], period=1e-3)

        def output(self, t, x, u):
            time.sleep(5e-3)
            return t

    d = Diagram("slow", step=1e-3)
    d.add(Slow(), name="slow")
    with pytest.raises(OverrunError, match="limit 0") as caught:
        run_realtime(d, 1.0, overrun="stop").wait()
    assert caught.value.result is not None
    assert caught.value.result.info["ticks"] == 1
    with pytest.raises(OverrunError, match="4 in a row, limit 3") as caught:
        run_realtime(d, 1.0, overrun="slip", max_consecutive_overruns=3, warmup_ticks=5).wait()
    assert caught.value.result is not None
    report = caught.value.result.info["realtime"]
    assert report["ticks"] == 9 and report["overruns"] == 4 and report["overruns_in_warmup"] == 5
    result = run_realtime(d, 0.01, profile=True).wait()
    assert result.info["realtime"]["overruns"] == 10
    assert result.info["realtime"]["skipped"] >= 40
    assert result.info["realtime"]["blocks"]["slow"]["min"] >= 5e-3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clock": "sun"}, "clock must be `wall`, `free` or `device:NAME`"),
        ({"clock": "device:board"}, "no device `board` to use as the clock"),
        ({"overrun": "skipp"}, "Did you mean `skip`"),
        ({"factor": 0.0}, "factor must be positive"),
        ({"every": 0}, "every must be at least 1"),
        ({"until": -1.0}, "is before the start"),
        ({"record": ["plnat"]}, "no signal `plnat`"),
        ({"parameters": {"pid.kq": 1.0}}, "no parameter or input"),
    ],
)
def test_a_bad_start_starts_nothing(options, words):
    with pytest.raises(BiellaError, match=words):
        run_realtime(loop(), **options)
    with pytest.raises(BiellaError, match="requires a Diagram or a Plan"):
        run_realtime("loop")  # type: ignore[arg-type]
    with pytest.raises(BiellaError, match="the step and the solver of a Plan"):
        run_realtime(loop().compile(), step=1e-3)


def test_ctrl_c_ends_a_run_and_gives_its_result():
    process = in_a_process("""
        import test_live, signal, threading
        from biella import run_realtime
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run = run_realtime(test_live.loop())
        tell = lambda: (test_live.wait_until(lambda: run._waiting), print("goes", flush=True))
        threading.Thread(target=tell).start()
        result = run.wait()
        print(result.length > 0, result.info["stopped"])
    """)
    assert process.stdout.readline() == "goes\n"
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate()
    assert out.startswith("True interrupted by Ctrl-C at t = "), errors
    assert process.returncode == 0


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run_safely(number, waits, tmp_path):
    """SIGHUP is a terminal that is closed, or a connection to it that is lost."""
    process = in_a_process(f"""
        import test_live, threading, time
        from biella import run_realtime
        run = run_realtime(test_live.loop(), out={str(tmp_path / "log.h5")!r})
        run.latest("plant")
        ready = lambda: run._waiting or not {waits}
        tell = lambda: (test_live.wait_until(ready), print("goes", flush=True))
        threading.Thread(target=tell).start()
        if {waits}:
            print(run.wait().info["stopped"])
        else:
            time.sleep(100)
    """)
    assert process.stdout.readline() == "goes\n"
    process.send_signal(number)
    out, errors = process.communicate()
    assert process.returncode == (0 if waits else 128 + number), errors
    assert out.startswith(f"ended by {number.name}") == waits
    log = Result.from_hdf5(tmp_path / "log.h5")
    assert log.info["stopped"].startswith(f"ended by {number.name} at t = ")


def test_sigterm_ends_a_program_that_is_just_changing_or_reporting(tmp_path):
    """Both hold a lock for a moment, which the end of the run needs, too."""
    process = in_a_process(f"""
        import test_live, time
        from biella import run_realtime
        run = run_realtime(test_live.loop(), out={str(tmp_path / "log.h5")!r})
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


def test_a_process_that_ends_ends_its_runs(tmp_path):
    process = in_a_process(f"""
        import test_live
        from biella import run_realtime
        run = run_realtime(test_live.loop(), out={str(tmp_path / "log.h5")!r})
        run.latest("plant")
    """)
    _, errors = process.communicate()
    assert process.returncode == 0 and not errors
    log = Result.from_hdf5(tmp_path / "log.h5")
    assert log.info["stopped"].startswith("ended with the process at t = ")


def test_a_killed_process_leaves_its_log(tmp_path):
    process = in_a_process(f"""
        import test_live, time
        from biella import Result, run_realtime
        path = {str(tmp_path / "log.h5")!r}
        run = run_realtime(test_live.loop(), out=path)
        test_live.wait_until(lambda: Result.from_hdf5(path).log.ticks > 500)
        print("goes", flush=True)
        time.sleep(100)
    """)
    assert process.stdout.readline() == "goes\n"
    process.kill()
    process.communicate()
    log = Result.from_hdf5(tmp_path / "log.h5")
    assert log.log is not None
    assert log.length > 100 and log.log.ticks > 500
    assert log.log.input_log["tick"].max() >= log.log.ticks - 1


# --- devices, as a binding gives them ---


class FakeBinding:
    """What `open_binding` provides, around a device of test_pace."""

    def __init__(self, plan, device, run):
        self.plan, self.run, self.closed = plan, run, False
        self.check = SimpleNamespace(replace={}, channel_maps=[])
        self.devices = [SimpleNamespace(name="board", handle=device.handle, counts={"frames": 3})]

    def describe(self):
        return {"devices": {"board": {}}}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed = True


def start_bound(monkeypatch, frames, run, **options):
    """Start test_pace's loop with its device, as if it came from a binding."""
    import importlib.util

    path = Path(__file__).parent / "loop" / "test_pace.py"
    spec = importlib.util.spec_from_file_location("pace_of_live", path)
    assert spec is not None and spec.loader is not None
    test_pace = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(test_pace)
    plan = test_pace.device_plan()
    first = plan.parameters["board.received"].slot
    device = test_pace.FakeDevice(frames, first, plan.find_signal("double").slot)
    binding = FakeBinding(plan, device, run)
    monkeypatch.setattr(
        "biella.scheduler.realtime._start.open_binding", lambda diagram, bind, **options: binding
    )
    return run_realtime(Diagram("any", step=1e-3), bind="rig.toml", **options), device, binding


def test_a_bound_run_takes_its_options_from_the_binding_unless_they_are_given(monkeypatch):
    frames = [(k, float(k)) for k in range(1, 50)]
    said = {"clock": "device:board", "until": 0.02, "every": 2}
    run, device, binding = start_bound(monkeypatch, frames, said, every=1)
    result = run.wait()
    assert result["board.y"][:20].tolist() == list(range(1, 21))
    assert result.info["realtime"]["clock"] == "device:board"
    assert result.info["realtime"]["devices"] == {"board": {"frames": 3}}
    assert binding.closed
    assert device.safe_sent == [-7.0] * 3
    device.__exit__()


def test_a_device_that_ends_the_run_is_an_error_with_a_result(monkeypatch):
    run, device, binding = start_bound(monkeypatch, [(1, 1.0), (2, 1e10)], {})
    with pytest.raises(DeviceError, match="exceeds its limit") as caught:
        run.wait()
    assert caught.value.result is not None
    assert caught.value.result.info["realtime"]["end"] == "device"
    assert device.safe_sent == [-7.0] * 3 and binding.closed
    device.__exit__()


# --- recorders that survive a lack of room ---


def test_a_run_on_a_full_disk_goes_on(tmp_path):
    """The limit of the file's size stands for a full disk, and is lifted during the run."""
    process = in_a_process(
        f"""
        import os, resource, test_live, warnings
        from biella import run_realtime
        from biella.scheduler.results import _recorder as recorder
        recorder._BLOCK_ROWS, recorder._CHUNK_BYTES = 500, 8000
        warnings.simplefilter("always")
        run = run_realtime(test_live.loop(), out={str(tmp_path / "log.h5")!r})
        test_live.wait_until(lambda: run._recorder.rows_kept > 0)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        size = os.path.getsize({str(tmp_path / "log.h5")!r})
        kept = run._recorder.rows_kept
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        test_live.wait_until(lambda: run._recorder.rows_dropped > 200)
        full = run._recorder.rows_kept
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        test_live.wait_until(lambda: run._recorder.rows_kept > full + 1000)
        result = run.stop()
        info = result.info["realtime"]
        print(kept, info["ticks"], info["rows_lost"], info["entries_lost"], info["gaps"],
              info["recorder"], sep="|")
        """
    )
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    kept, ticks, lost, entries_lost, gaps, trouble = out.strip().split("|")
    (gap,) = eval(gaps)
    assert gap["of"] == "rows"
    log = Result.from_hdf5(tmp_path / "log.h5")
    present = np.rint(log.t / 1e-3).astype(int)
    missing = sorted(set(range(int(ticks) + 1)) - set(present.tolist()))
    assert missing == list(range(gap["first"], gap["last"] + 1))
    assert len(missing) == int(lost) > 200
    assert int(kept) <= gap["first"] and gap["last"] < int(ticks) - 500
    assert log.log is not None
    assert int(entries_lost) == 0 and log.log.ticks == int(ticks)
    assert find_differences(log, replay(log)) == []
    assert "larger than the system allows" in trouble
    span = f"lost: t = {gap['first'] * 1e-3:.9g} to {gap['last'] * 1e-3:.9g} s."
    told = f"{log.length} of {int(ticks) + 1} rows are recorded in `{tmp_path / 'log.h5'}`; {span}"
    assert log.info["recording"].startswith(told) and told in str(log)
    assert f"BiellaWarning: {told} Cannot write" in errors


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1.2 MB."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1200k", "x", tmp_path]).returncode:
        pytest.skip("needs the right to mount a file system")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.parametrize("limit", ["disk", "size"])
@pytest.mark.parametrize("earlier", [False, True])
def test_a_run_that_records_no_row_fails(limit, earlier, request, tmp_path_factory):
    """There is room for the head of a file, but for no row."""
    folder = tmp_path_factory.mktemp("log")
    (folder / "d.py").write_text(
        "import test_live\n\n\ndef diagram():\n    return test_live.loop()\n"
    )
    target = request.getfixturevalue("small_disk") if limit == "disk" else folder
    log = target / "log.h5"
    if earlier:
        Result.from_arrays([0.0], {"y": [7.0]}).to_hdf5(log)
    if limit == "disk":
        (target / "other").write_bytes(bytes(400_000))
    process = in_a_process(f"""
        import resource
        from biella.cli import main
        if {limit == "size"}:
            resource.setrlimit(resource.RLIMIT_FSIZE, (900_000, 900_000))
        sys.exit(main(["run-realtime", {str(folder / "d.py")!r}, "--until", "0.2",
                       "--log", {str(log)!r}]))
    """)
    out, errors = process.communicate()
    assert process.returncode == 1, errors
    assert "wrote" not in out
    why = "the disk is full" if limit == "disk" else "larger than the system allows"
    assert "0 of 201 rows are recorded" in errors and why in errors
    assert "lost: t = 0 to 0.2 s." in errors
    if earlier:
        assert f"`{log}` still contains the earlier recording" in errors
        assert Result.from_hdf5(log)["y"].tolist() == [7.0]
        log = log.with_name("log.new.h5")
        assert f"recorded in `{log}`" in errors
    info = Result.from_hdf5(log).info
    assert info["recording"] in errors
    assert info["realtime"]["rows_lost"] == 201


def test_the_end_of_a_canceled_run_without_deadlines_is_recorded():
    """The loop is ahead of the recorder then: their pipe is full."""
    d = Diagram("fast", step=1e-2)
    d.add(Constant(1.0), name="c")
    for _ in range(5):
        run = run_realtime(d, clock="free")
        wait_until(lambda run=run: run.tick > 3000)
        result = run.stop()
        assert result.info["realtime"]["rows_lost"] == 0
        assert result.length == result.info["ticks"] + 1


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
