"""Recorders of real-time runs: a full disk and used-up memory make a gap."""

import numpy as np
import pytest

from biella.scheduler.realtime.log._log_recorder import Hdf5LogRecorder, MemoryLogRecorder
from biella.scheduler.realtime.loop._pace import ENTRY
from biella.scheduler.results._signals import Signal

pytestmark = pytest.mark.engine


SIGNALS = [Signal("y", 1, None)]


def rows_of(first, last):
    times = np.arange(first, last, dtype=float)
    return np.stack([times, times**2], axis=1)


def entries_of(first, last):
    entries = np.zeros(last - first, dtype=ENTRY)
    entries["tick"] = np.arange(first, last)
    return entries


def test_a_full_disk_makes_a_gap_and_recording_goes_on_after_it(tmp_path, monkeypatch):
    recorder = Hdf5LogRecorder(tmp_path / "log.h5", SIGNALS, plan=b"plan")
    capacity = recorder._block.shape[1]
    recorder.take(rows_of(0, 10))
    recorder.append_input_log(entries_of(0, 10), 10)
    recorder.flush()

    def refuse(path, start, size):
        raise OSError(28, "No space left on device")

    from biella.scheduler.realtime.log import _log as log
    from biella.scheduler.results import _result_file as result_file

    with monkeypatch.context() as full:
        full.setattr(result_file, "claim_space", refuse)
        full.setattr(log, "claim_space", refuse)
        recorder.take(rows_of(10, 10 + capacity))  # fits the block
        recorder.append_input_log(entries_of(10, 20), 20)
        recorder.take(rows_of(10 + capacity, 110 + capacity))
        recorder.take(rows_of(110 + capacity, 120 + capacity))
        recorder.flush()
        assert recorder.rows_dropped == 110
        assert "the disk is full" in recorder.trouble
    recorder.take(rows_of(120 + capacity, 200 + capacity))
    recorder.flush()
    recorder.take(rows_of(200 + capacity, 230 + capacity))
    result = recorder.close()
    expected = [*range(10 + capacity), *range(120 + capacity, 230 + capacity)]
    if recorder.rows_dropped == 190:  # the block was still full when the disk was not
        expected = [*range(10 + capacity), *range(200 + capacity, 230 + capacity)]
    assert result.t.tolist() == expected
    assert recorder.dropped == [(10 + capacity, expected[10 + capacity] - 1)]
    assert result.log is not None
    assert len(result.log.input_log) == 20 and result.log.ticks == 20
    assert recorder.entries_dropped == 0


def test_a_disk_that_stays_full_keeps_what_was_written(tmp_path, monkeypatch):
    recorder = Hdf5LogRecorder(tmp_path / "log.h5", SIGNALS, plan=b"plan")
    recorder.take(rows_of(0, 10))
    recorder.flush()

    def refuse(path, start, size):
        raise OSError(28, "No space left on device")

    from biella.scheduler.realtime.log import _log as log
    from biella.scheduler.results import _result_file as result_file

    monkeypatch.setattr(result_file, "claim_space", refuse)
    monkeypatch.setattr(log, "claim_space", refuse)
    recorder.take(rows_of(10, 30))
    recorder.append_input_log(entries_of(0, 5), 5)
    recorder.settle()
    assert recorder.dropped == [(10.0, 29.0)]
    assert recorder.rows_dropped == 20 and recorder.entries_dropped == 5
    result = recorder.close()
    assert result.log is not None
    assert result.length == 10 and result.log.ticks == 0


def test_memory_that_is_used_up_makes_a_gap(monkeypatch):
    recorder = MemoryLogRecorder(SIGNALS, plan=b"plan", limit=16 * 25)
    recorder.take(rows_of(0, 20))
    recorder.take(rows_of(20, 30))
    recorder.take(rows_of(30, 40))
    assert recorder.dropped == [(25.0, 39.0)]
    assert "out='run.h5'" in recorder.trouble
    assert recorder.close().t.tolist() == list(range(25))
