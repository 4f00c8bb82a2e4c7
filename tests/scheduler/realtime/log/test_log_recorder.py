"""Recorders of real-time runs: a full disk and used-up memory make a gap."""

import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from biella.scheduler.realtime.log._log_recorder import Hdf5LogRecorder, MemoryLogRecorder
from biella.scheduler.realtime.loop._pace import ENTRY
from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import Signal
from biella.scheduler.results.storage._atomic_file import AtomicFile

pytestmark = pytest.mark.engine


SIGNALS = [Signal("y", 1, None)]


def rows_of(first, last):
    times = np.arange(first, last, dtype=float)
    return np.stack([times, times**2], axis=1)


def entries_of(first, last):
    entries = np.zeros(last - first, dtype=ENTRY)
    entries["tick"] = np.arange(first, last)
    return entries


def refuse(file):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_makes_a_gap_and_recording_goes_on_after_it(tmp_path, monkeypatch):
    recorder = Hdf5LogRecorder(tmp_path / "log.h5", SIGNALS, plan=b"plan")
    capacity = recorder._block.shape[1]
    recorder.append_input_log(entries_of(0, 10), 10)
    recorder.take(rows_of(0, 10))
    with monkeypatch.context() as full:
        full.setattr(AtomicFile, "commit", refuse)
        recorder.append_input_log(entries_of(10, 20), 20)
        recorder.take(rows_of(10, 20))
        recorder.flush()  # these are with HDF5
        recorder.take(rows_of(20, 20 + capacity))  # fits the block
        recorder.take(rows_of(20 + capacity, 110 + capacity))
        recorder.take(rows_of(110 + capacity, 120 + capacity))
        recorder.flush()
        assert recorder.rows_dropped == 100 and recorder.rows_kept == 10
        assert "the disk is full" in recorder.trouble
        assert Result.from_hdf5(tmp_path / "log.h5").length == 10
    recorder.flush()
    assert recorder.rows_kept == 20 + capacity
    recorder.append_input_log(entries_of(20, 25), 30)
    recorder.take(rows_of(120 + capacity, 230 + capacity))
    result = recorder.close()
    assert result.t.tolist() == [*range(20 + capacity), *range(120 + capacity, 230 + capacity)]
    assert recorder.dropped == [(20 + capacity, 119 + capacity)]
    assert result.log is not None
    assert np.array_equal(result.log.input_log, entries_of(0, 25)) and result.log.ticks == 30
    assert recorder.entries_dropped == 0


def test_a_disk_that_stays_full_keeps_what_was_written(tmp_path, monkeypatch):
    recorder = Hdf5LogRecorder(tmp_path / "log.h5", SIGNALS, plan=b"plan")
    recorder.take(rows_of(0, 10))
    monkeypatch.setattr(AtomicFile, "commit", refuse)
    recorder.take(rows_of(10, 30))
    recorder.append_input_log(entries_of(0, 5), 5)
    recorder.flush()
    recorder.take(rows_of(30, 50))
    recorder.append_input_log(entries_of(5, 7), 7)
    recorder.settle()
    assert recorder.dropped == [(10.0, 29.0), (30.0, 49.0)]
    assert recorder.rows_dropped == 40 and recorder.entries_dropped == 7
    recorder.settle()
    assert recorder.rows_dropped == 40 and recorder.entries_dropped == 7
    recorder.info["recording"] = "40 rows are lost"
    result = recorder.close()
    assert result.log is not None
    assert result.length == 10 and result.log.ticks == 0
    again = Result.from_hdf5(tmp_path / "log.h5")
    assert again.length == 10 and again.t.tolist() == list(range(10))
    assert again.info["recording"] == "40 rows are lost" and "stopped" not in again.info


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_after_an_entry_that_was_dropped_the_input_log_ends(tmp_path, monkeypatch, kind):
    """It is complete up to there: a replay must not go beyond."""
    monkeypatch.setattr("biella.scheduler.realtime.log._log_recorder._LARGEST_INPUT_LOG", 5)
    recorder: Hdf5LogRecorder | MemoryLogRecorder
    if kind == "file":
        recorder = Hdf5LogRecorder(tmp_path / "log.h5", SIGNALS, plan=b"plan", age=1e9)
    else:
        recorder = MemoryLogRecorder(SIGNALS, plan=b"plan", limit=5 * ENTRY.itemsize)
    recorder.append_input_log(entries_of(0, 3), 3)
    recorder.append_input_log(entries_of(3, 7), 7)
    recorder.append_input_log(entries_of(7, 8), 8)
    recorder.append_input_log(entries_of(8, 8), 9)
    assert recorder.entries_dropped == 5
    result = recorder.close()
    assert result.log is not None
    assert np.array_equal(result.log.input_log, entries_of(0, 3)) and result.log.ticks == 3


def test_an_input_log_without_entries_needs_no_memory():
    recorder = MemoryLogRecorder(SIGNALS, plan=b"plan")
    for tick in range(1000):
        recorder.append_input_log(entries_of(0, 0), tick)
    assert not recorder._input_log
    result = recorder.close()
    assert result.log is not None and result.log.ticks == 999


def test_rows_and_input_log_take_effect_together(tmp_path):
    """At no instant has the file rows without the entries that they depend on, or fewer ticks."""
    recorder = Hdf5LogRecorder(tmp_path / "log.h5", SIGNALS, plan=b"plan", age=0.0)
    for k in range(5):
        recorder.append_input_log(entries_of(k, k + 1), k + 1)
        recorder.take(rows_of(k, k + 1))
        found = Result.from_hdf5(tmp_path / "log.h5")
        assert found.log is not None
        assert found.length == found.log.ticks == len(found.log.input_log) == k + 1
    recorder.close()


def test_what_a_kill_has_lost_is_told(tmp_path):
    script = f"""
import numpy as np, os, signal
from biella.scheduler.realtime.log._log_recorder import Hdf5LogRecorder
from biella.scheduler.realtime.loop._pace import ENTRY
from biella.scheduler.results._signals import Signal
r = Hdf5LogRecorder({str(tmp_path / "log.h5")!r}, [Signal("y")], plan=b"plan", age=1e3)
for k in range(5):
    r.note_reached(10 * (k + 1), 2.0, 0.5)
    r.append_input_log(np.zeros(1, ENTRY), 10 * (k + 1))
    r.take(2.0 + 0.5 * np.arange(10.0 * k, 10.0 * k + 10)[:, None] + np.zeros(2))
    if k == 1:
        r.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], timeout=300)
    assert done.returncode == -signal.SIGKILL
    found = Result.from_hdf5(tmp_path / "log.h5")
    assert found.length == 20 and found.log is not None and found.log.ticks == 20
    assert found.info["lost"] == {"ticks": 30, "first": 12.0, "last": 26.5}
    assert found.info["stopped"] == (
        "the recording was not closed: the process ended during the run; at least 30 ticks, "
        "t = 12 to 26.5 s, are lost"
    )


def test_memory_that_is_used_up_makes_a_gap(monkeypatch):
    recorder = MemoryLogRecorder(SIGNALS, plan=b"plan", limit=16 * 25)
    recorder.take(rows_of(0, 20))
    recorder.take(rows_of(20, 30))
    recorder.take(rows_of(30, 40))
    assert recorder.dropped == [(25.0, 39.0)]
    assert "out='run.h5'" in recorder.trouble
    assert recorder.close().t.tolist() == list(range(25))
