"""Recorders: what goes in comes out, in flat memory, whatever happens to the process or disk."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biella.scheduler.results import _recorder as recorder_module
from biella.scheduler.results._recorder import AbstractRecorder, Hdf5Recorder, MemoryRecorder
from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import ResultError, Signal

SIGNALS = [
    Signal("ref.y", unit="rad/s"),
    Signal("plant.force", 3, "N"),
    Signal("on", kind="boolean"),
]


def make_rows(start: int, count: int, width: int = 6) -> np.ndarray:
    """Return rows in which each number says where it belongs."""
    rows = np.arange(start, start + count)[:, None] + np.arange(width) / 16.0
    rows[:, 0] = np.arange(start, start + count) * 1e-3
    return rows


def check(result: Result, count: int) -> None:
    expected = make_rows(0, count)
    assert np.array_equal(result.t, expected[:, 0])
    assert np.array_equal(result["ref"], expected[:, 1])
    assert np.array_equal(result["plant.force"], expected[:, 2:5])
    assert np.array_equal(result["on"], expected[:, 5])
    assert result.units == {"ref.y": "rad/s", "plant.force": "N", "on": None}


@pytest.fixture(params=["memory", "hdf5"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], AbstractRecorder]:
    aliases = {"ref": "ref.y"}
    if request.param == "memory":
        return lambda: MemoryRecorder(SIGNALS, aliases, {"diagram": "loop"})
    return lambda: Hdf5Recorder(tmp_path / "r.h5", SIGNALS, aliases, {"diagram": "loop"})


class TestBoth:
    def test_blocks_of_any_size(self, make: Callable[[], AbstractRecorder]) -> None:
        recorder = make()
        start = 0
        for count in (1, 0, 999, 70_000, 3, 200_000):
            recorder.append(make_rows(start, count))
            start += count
        recorder.info["ticks"] = start
        result = recorder.close()
        assert recorder.close() is result
        assert result.info == {"diagram": "loop", "ticks": start}
        check(result, start)

    def test_rows_are_copied(self, make: Callable[[], AbstractRecorder]) -> None:
        recorder, rows = make(), make_rows(0, 10)
        recorder.append(rows)
        rows[:] = -1.0
        check(recorder.close(), 10)

    def test_nothing_recorded(self, make: Callable[[], AbstractRecorder]) -> None:
        check(make().close(), 0)

    def test_kept_after_an_error(self, make: Callable[[], AbstractRecorder]) -> None:
        with pytest.raises(KeyboardInterrupt), make() as recorder:
            recorder.append(make_rows(0, 10))
            raise KeyboardInterrupt
        check(recorder.close(), 10)

    def test_wrong_rows(self, make: Callable[[], AbstractRecorder]) -> None:
        recorder = make()
        with pytest.raises(ResultError, match=r"shape \(2, 5\); expected \(k, 6\)"):
            recorder.append(np.zeros((2, 5)))
        recorder.close()
        with pytest.raises(ResultError, match="closed"):
            recorder.append(make_rows(0, 1))

    def test_time_alone(self, tmp_path: Path) -> None:
        for recorder in (MemoryRecorder([]), Hdf5Recorder(tmp_path / "r.h5", [])):
            recorder.append(np.arange(5.0).reshape(5, 1))
            assert recorder.close().t.tolist() == [0, 1, 2, 3, 4]


@settings(max_examples=30)
@given(st.lists(st.integers(0, 40), max_size=12), st.integers(1, 64))
def test_file_and_memory_agree(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], block_rows: int
) -> None:
    file = tmp_path_factory.mktemp("agree") / "r.h5"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder_module, "_BLOCK_ROWS", block_rows)
        recorders = MemoryRecorder(SIGNALS), Hdf5Recorder(file, SIGNALS)
    start = 0
    for count in counts:
        for recorder in recorders:
            recorder.append(make_rows(start, count))
        start += count
    in_memory, in_file = (recorder.close() for recorder in recorders)
    assert in_memory.compare(in_file, 0.0, 0.0) or start == 0
    assert Result.from_hdf5(file).length == start


class TestFile:
    def test_reopened(self, tmp_path: Path) -> None:
        recorder = Hdf5Recorder(tmp_path / "r.h5", SIGNALS, {"ref": "ref.y"}, {"step": 1e-3})
        recorder.append(make_rows(0, 100))
        recorder.info["stopped"] = "x" * 5000
        recorder.close()
        again = Result.from_hdf5(tmp_path / "r.h5")
        check(again, 100)
        assert again.info == {"step": 1e-3, "stopped": "x" * 5000}
        assert list(again.signals.values()) == SIGNALS

    def test_an_endless_reason_does_not_spoil_the_file(self, tmp_path: Path) -> None:
        recorder = Hdf5Recorder(tmp_path / "r.h5", SIGNALS, info={"step": 1e-3})
        recorder.info["stopped"] = "x" * 100_000
        recorder.close()
        assert Result.from_hdf5(tmp_path / "r.h5").info == {"step": 1e-3}

    def test_readable_while_recording(self, tmp_path: Path) -> None:
        recorder = Hdf5Recorder(tmp_path / "r.h5", SIGNALS, {"ref": "ref.y"})
        recorder.append(make_rows(0, 500))
        recorder.flush()
        script = (
            "from biella.scheduler.results._result import Result; "
            f"r = Result.from_hdf5({str(tmp_path / 'r.h5')!r}); print(r.length, r['ref'][-1])"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
        )
        assert done.stdout.split() == ["500", str(499 + 1 / 16)], done.stderr
        recorder.append(make_rows(500, 500))
        check(recorder.close(), 1000)

    @pytest.mark.parametrize("age", [1.0, 0.25])
    def test_written_before_the_age_and_the_first_rows_at_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age: float
    ) -> None:
        """Half of the age is left for the write itself."""
        now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: now)
        recorder = Hdf5Recorder(tmp_path / "r.h5", SIGNALS, age=age)
        recorder.append(make_rows(0, 10))
        assert Result.from_hdf5(tmp_path / "r.h5").length == 10
        now += 10.0  # nothing came in between: the next rows are not older
        recorder.append(make_rows(10, 10))
        now += 0.375 * age
        recorder.append(make_rows(20, 10))
        assert Result.from_hdf5(tmp_path / "r.h5").length == 10
        now += 0.125 * age
        recorder.append(make_rows(30, 10))
        assert Result.from_hdf5(tmp_path / "r.h5").length == 40
        assert recorder.worst_age == pytest.approx(0.5 * age)
        recorder.close()

    def test_an_age_that_is_none(self, tmp_path: Path) -> None:
        with pytest.raises(ResultError, match="age of rows must be 0 s or more, got -1"):
            Hdf5Recorder(tmp_path / "r.h5", SIGNALS, age=-1.0)
        assert list(tmp_path.iterdir()) == []

    def test_with_sync_the_disk_is_waited_for_in_the_right_order(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The record before its pages, and the pages before the record is removed."""
        calls: list[str] = []
        for name in ("pwrite", "fsync", "ftruncate"):
            plain = getattr(os, name)

            def call(*given: Any, name: str = name, plain: Any = plain) -> Any:
                if name == "pwrite":
                    data = bytes(given[1])
                    calls.append("record" if data[:8] == b"biellaWR" else "write")
                else:
                    calls.append(name)
                return plain(*given)

            monkeypatch.setattr(os, name, call)
        recorder = Hdf5Recorder(tmp_path / "r.h5", SIGNALS, sync=True)
        recorder.append(make_rows(0, 10))
        calls.clear()
        recorder.append(make_rows(10, 10))
        recorder.flush()
        record = calls.index("record")
        assert calls[record + 1] == "fsync"
        last_write = len(calls) - 1 - calls[::-1].index("write")
        assert last_write > record + 1 and calls[last_write + 1] == "fsync"
        monkeypatch.undo()
        recorder.close()

    def test_rows_before_a_write_that_fails_are_sound(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        recorder = Hdf5Recorder(tmp_path / "r.h5", SIGNALS, {"ref": "ref.y"})
        recorder.append(make_rows(0, 10))
        recorder.flush()
        recorder.append(make_rows(10, 10))
        plain = h5py.Dataset.__setitem__

        def fail(self: h5py.Dataset, place: object, part: object) -> None:
            if self.name.endswith("on"):  # the last one
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            plain(self, place, part)

        monkeypatch.setattr(h5py.Dataset, "__setitem__", fail)
        with pytest.raises(ResultError, match=r"10 rows, to t = 0.009 s, are in the file"):
            recorder.flush()
        monkeypatch.undo()
        assert recorder.close().length == 10
        check(Result.from_hdf5(tmp_path / "r.h5"), 10)

    def test_an_earlier_file_is_replaced(self, tmp_path: Path) -> None:
        first = Hdf5Recorder(tmp_path / "r.h5", SIGNALS)
        first.append(make_rows(0, 10))
        earlier = first.close()
        Hdf5Recorder(tmp_path / "r.h5", SIGNALS).close()
        with pytest.raises(ResultError, match="replaced by another recording"):
            earlier["ref.y"]

    def test_an_interrupt_while_it_is_made_leaves_the_earlier_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with Hdf5Recorder(tmp_path / "r.h5", SIGNALS) as first:
            first.append(make_rows(0, 10))

        def interrupt(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(recorder_module, "create_result_file", interrupt)
        with pytest.raises(KeyboardInterrupt):
            Hdf5Recorder(tmp_path / "r.h5", SIGNALS)
        assert [path.name for path in tmp_path.iterdir()] == ["r.h5"]
        assert Result.from_hdf5(tmp_path / "r.h5").length == 10

    def test_missing_folder(self, tmp_path: Path) -> None:
        with pytest.raises(ResultError, match="there is no folder"):
            Hdf5Recorder(tmp_path / "no" / "r.h5", SIGNALS)

    def test_a_wide_recording_stays_small(self, tmp_path: Path) -> None:
        signals = [Signal(f"s{i}") for i in range(1000)]
        recorder = Hdf5Recorder(tmp_path / "r.h5", signals)
        recorder.append(np.ones((10, 1001)))
        recorder.close()
        assert (tmp_path / "r.h5").stat().st_size < 10e6


def run_script(body: str) -> subprocess.CompletedProcess[str]:
    script = f"""
import os, resource, signal, sys
import numpy as np
from biella.scheduler.results._recorder import Hdf5Recorder
from biella.scheduler.results._signals import ResultError, Signal

{body}
"""
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )


def test_a_killed_process_leaves_a_readable_file(tmp_path: Path) -> None:
    file = tmp_path / "r.h5"
    script = f"""
import numpy as np
from biella.scheduler.results._recorder import Hdf5Recorder
from biella.scheduler.results._signals import Signal
r = Hdf5Recorder({str(file)!r}, [Signal(f"s{{i}}", unit="N") for i in range(20)], {{"a": "s3"}})
k = 0
while True:
    r.append(np.arange(k, k + 5000.0)[:, None] + np.zeros(21))
    k += 5000
    print(r._written, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    written = 0
    for line in process.stdout:
        written = int(line)
        if written > 300_000:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    result = Result.from_hdf5(file)
    assert result.length >= written
    assert "not closed" in str(result.info["stopped"])
    expected = np.arange(result.length)
    assert np.array_equal(result.t, expected)
    assert all(np.array_equal(result[path], expected) for path in result)
    assert result.units["s3"] == "N"
    assert np.array_equal(result["a"], expected)


def test_a_kill_in_the_middle_of_a_block_leaves_whole_rows(tmp_path: Path) -> None:
    file = tmp_path / "r.h5"
    done = run_script(f"""
r = Hdf5Recorder({str(file)!r}, [Signal("a"), Signal("b")])
r.append(np.ones((100, 3)))
r.flush()
r._made.append([np.zeros(100)] * 3, 200)
r._made.file.flush()
os.kill(os.getpid(), signal.SIGKILL)
""")
    assert done.returncode == -signal.SIGKILL, done.stderr
    result = Result.from_hdf5(file)
    assert result.t.tolist() == result["b"].tolist() == [1.0] * 100


@pytest.mark.parametrize("limit", [700_000, 2_500_000, 3_000_000, 9_999_999])
def test_a_full_disk_keeps_what_was_written(tmp_path: Path, limit: int) -> None:
    file = tmp_path / "r.h5"
    done = run_script(f"""
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
r = Hdf5Recorder({str(file)!r}, [Signal(f"s{{i}}") for i in range(4)])
kept = 0
try:
    for k in range(0, 10**7, 3000):
        r.append(np.arange(k, k + 3000.0)[:, None] + np.zeros(5))
        r.flush()
        kept = k + 3000
except ResultError as error:
    print(error)
try:
    r.append(np.zeros((1, 5)))
except ResultError as error:
    print("again")
result = r.close()
print(kept, result.length, len(result["s3"]), result.info["stopped"] is not None)
""")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    message, again, numbers = done.stdout.strip().splitlines()
    assert "larger than the system allows. The recording stops: " in message
    assert again == "again"
    kept, length, read, stopped = numbers.split()
    assert (length, read, stopped) == (kept, kept, "True")
    if int(kept):
        assert f"{kept} rows, to t = {int(kept) - 1:g} s, are in the file." in message
    else:
        assert "no row was recorded" in message
    result = Result.from_hdf5(file)
    assert "recording stops" in str(result.info["stopped"])
    assert all(np.array_equal(result[path], np.arange(int(kept))) for path in result)


def test_a_disk_that_is_full_already(tmp_path: Path) -> None:
    done = run_script(f"""
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    Hdf5Recorder({str(tmp_path / "r.h5")!r}, [Signal("s")])
except ResultError as error:
    print(error)
""")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Cannot write" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_at_the_end_is_reported_by_close(tmp_path: Path) -> None:
    done = run_script(f"""
resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, 700_000))
r = Hdf5Recorder({str(tmp_path / "r.h5")!r}, [Signal("s")])
r.append(np.zeros((10, 2)))
r.append(np.zeros((50_000, 2)))
try:
    r.close()
except ResultError as error:
    print(error)
print(r.close().length)
""")
    assert done.returncode == 0, done.stderr
    assert "10 rows, to t = 0 s, are in the file" in done.stdout
    assert done.stdout.endswith("\n10\n")


def test_captures_that_find_no_room_are_in_the_result_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Hdf5Recorder(tmp_path / "r.h5", SIGNALS, captures=[Signal("trigger")])
    recorder.append(make_rows(0, 10))
    recorder.captures = {"trigger": "it has not been triggered"}

    def fill(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(recorder_module, "write_captures", fill)
    with pytest.raises(ResultError, match="are in the result, but not in the file") as caught:
        recorder.close()
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(ResultError, match="has not been triggered"):
        recorder.close().capture("trigger")
    left = Result.from_hdf5(tmp_path / "r.h5")
    assert left.length == 10
    assert "not in the file" in str(left.info["stopped"])


def test_a_recorder_that_nobody_closes_leaves_its_rows(tmp_path: Path) -> None:
    """HDF5 ends after the interpreter, whose file object it must not call then."""
    done = run_script(f"""
r = Hdf5Recorder({str(tmp_path / "r.h5")!r}, [Signal("s")])
r.append(np.zeros((10, 2)))
r.append(np.zeros((10, 2)))
raise SystemExit(3)
""")
    assert (done.returncode, done.stderr) == (3, "")
    assert Result.from_hdf5(tmp_path / "r.h5").length == 20


def peak_growth_bytes(file: Path, ticks: int) -> int:
    """Return by how much the peak memory of a process grows while it records.

    It is read from /proc: ``ru_maxrss`` of a child starts at the size of its parent.
    """
    done = run_script(f"""
import h5py, re
def peak():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
rows = np.random.default_rng(0).normal(size=(10_000, 21))
before = peak()
r = Hdf5Recorder({str(file)!r}, [Signal(f"s{{i}}") for i in range(20)])
for _ in range({ticks} // 10_000):
    r.append(rows)
result = r.close()
assert result.length == {ticks}
repr(result)
print(peak() - before)
""")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_memory_is_flat(tmp_path: Path) -> None:
    # 10^6 ticks of 20 signals are 168 MB; one block is 11 MB, and the chunks in HDF5's cache 6 MB.
    assert peak_growth_bytes(tmp_path / "r.h5", 10**6) < 30e6


@pytest.mark.slow
def test_memory_is_flat_for_ten_million_ticks(tmp_path: Path) -> None:
    assert peak_growth_bytes(tmp_path / "r.h5", 10**7) < 30e6
    assert (tmp_path / "r.h5").stat().st_size < 1.02 * 8 * 21 * 10**7
