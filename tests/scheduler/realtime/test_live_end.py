"""How a real-time run ends, and what its report and result say."""

import subprocess
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from biella import BlockError, Diagram, run_realtime, simulate
from biella._contract import BL_END_CANCEL
from biella.blocks import (
    Compare,
    Constant,
    Expression,
    Port,
    PythonBlock,
    Stop,
)
from biella.errors import DeviceError, OverrunError
from biella.scheduler.realtime._live_end import _describe_loss, _explain, describe
from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import ResultError

from .live_runs import in_a_process, loop, processes, start_bound, wait_until

pytestmark = pytest.mark.engine


@pytest.fixture(autouse=True)
def end_processes():
    """Leave none behind, also after a failure or a time limit."""
    yield
    while processes:
        with processes.pop() as process:
            process.kill()


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
    with pytest.raises(OverrunError, match=r"\d in a row, limit 3") as caught:
        run_realtime(d, 1.0, overrun="slip", max_consecutive_overruns=3, warmup_ticks=5).wait()
    assert caught.value.result is not None
    report = caught.value.result.info["realtime"]
    # Each tick misses at least four deadlines: the first that counts is too many.
    assert report["ticks"] == 6 and report["overruns"] == 1 and report["overruns_in_warmup"] == 5
    result = run_realtime(d, 0.01, profile=True).wait()
    assert result.info["realtime"]["overruns"] == 10
    assert result.info["realtime"]["skipped"] >= 40
    assert result.info["realtime"]["blocks"]["slow"]["min"] >= 5e-3


def test_a_device_that_ends_the_run_is_an_error_with_a_result(monkeypatch):
    run, device, binding = start_bound(monkeypatch, [(1, 1.0), (2, 1e10)], {})
    with pytest.raises(DeviceError, match="exceeds its limit") as caught:
        run.wait()
    assert caught.value.result is not None
    assert caught.value.result.info["realtime"]["end"] == "device"
    assert set(device.safe_sent) == {-7.0} and len(device.safe_sent) >= 3 and binding.closed
    device.__exit__()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1.2 MB."""
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1200k", "x", tmp_path], timeout=300
    ).returncode:
        pytest.skip("needs the right to mount a file system")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True, timeout=300)


@pytest.mark.parametrize("limit", ["disk", "size"])
@pytest.mark.parametrize("earlier", [False, True])
def test_a_run_that_records_no_row_fails(limit, earlier, request, tmp_path_factory):
    """There is room for the head of a file, but for no row."""
    folder = tmp_path_factory.mktemp("log")
    (folder / "d.py").write_text(
        "import live_runs\n\n\ndef diagram():\n    return live_runs.loop()\n"
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
    out, errors = process.communicate(timeout=300)
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


def test_entries_are_lost_on_the_way_to_the_recorder_or_in_it():
    with run_realtime(loop()) as run:
        run._pace.entries_lost, run._recorder.entries_dropped = 2, 3
        assert describe(run)["entries_lost"] == 5
        run._pace.entries_lost = run._recorder.entries_dropped = 0


@pytest.mark.parametrize(("count", "more"), [(3, ""), (4, ", 1 more gaps"), (9, ", 6 more gaps")])
def test_the_first_gaps_of_a_recording_are_listed(count, more):
    recorder = SimpleNamespace(rows_kept=90, place="in memory", trouble="", left_alone="")
    run: Any = SimpleNamespace(_recorder=recorder, plan=SimpleNamespace(start_time=1.0, step=0.5))
    gaps = [{"of": "rows", "first": 2 * k, "last": 2 * k + 1} for k in range(count)]
    text = _describe_loss(run, {"rows_lost": 2 * count, "entries_lost": 0, "gaps": gaps})
    assert text.startswith(
        f"90 of {90 + 2 * count} rows are recorded in memory; lost: t = 1 to 1.5 s, "
        f"t = 2 to 2.5 s, t = 3 to 3.5 s{more}. "
    )


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


@pytest.mark.parametrize(
    ("asked", "signal", "reason", "told"),
    [
        ("stopped", 0, "it was stopped", "stopped"),
        ("", 15, "ended by SIGTERM", "ended by SIGTERM"),
        ("ended by SIGTERM", 15, "ended by SIGTERM", "ended by SIGTERM"),
        # Python's handler has stopped the loop before the watchdog noted the signal.
        ("ended by SIGTERM", 15, "it was stopped", "ended by SIGTERM"),
        ("stopped", 15, "ended by SIGTERM", "ended by SIGTERM"),
    ],
)
def test_the_signal_is_named_whoever_sees_it_first(asked, signal, reason, told):
    pace = SimpleNamespace(end=BL_END_CANCEL, signal=signal, reason=reason)
    run: Any = SimpleNamespace(_pace=pace, _asked=asked)
    assert _explain(run) == told
