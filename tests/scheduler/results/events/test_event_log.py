"""The log of events while a run is recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from biella.scheduler.results._recorder import Hdf5Recorder
from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import Signal
from biella.scheduler.results.events._event_log import EventLog
from biella.scheduler.results.events._events import EVENT, EventSource

SOURCES = [EventSource("a", "Relay", 1), EventSource("b", "Sign", 1)]


def make_events(*blocks: int) -> np.ndarray:
    events = np.zeros(len(blocks), EVENT)
    events["block"], events["time"] = blocks, np.arange(len(blocks))
    return events


def test_what_is_beyond_the_limit_is_counted():
    log = EventLog(SOURCES, limit=3)
    log.append(make_events(0, 1))
    log.append(make_events(1, 1, 1))
    found = log.read()
    assert len(found) == 3
    assert found.total == 5
    assert found.counts == {"b": 4, "a": 1}
    assert found.of("a").total == 1


def test_the_newest_events_are_read_while_more_come():
    log = EventLog(SOURCES)
    assert log.read_newest(0, 5) == (0, [])
    log.append(make_events(0, 1, 1))
    end, events = log.read_newest(0, 2)
    assert end == 3 and [(event.time, event.source) for event in events] == [(1, "b"), (2, "b")]
    log.append(make_events(0))
    end, events = log.read_newest(3, 5)
    assert end == 4 and [event.kind for event in events] == ["switch"]
    assert log.read_newest(4, 5) == (4, [])
    assert log.read_newest(9, 5) == (4, [])


def test_events_that_the_engine_could_not_log_count_too():
    log = EventLog(SOURCES)
    log.append(make_events(0))
    log.total = 7
    assert log.read().total == 7
    assert log.read().truncated


def test_events_are_in_the_file_before_the_rows(tmp_path: Path):
    """A reader during the run finds the events of all rows that it sees."""
    with Hdf5Recorder(tmp_path / "a.h5", [Signal("x")], event_sources=SOURCES) as recorder:
        recorder.events.append(make_events(0, 1))
        recorder.append(np.array([[0.0, 1.0], [1.0, 2.0]]))
        recorder.flush()
        seen = Result.from_hdf5(tmp_path / "a.h5")
        assert seen.length == 2
        assert [event.source for event in seen.events] == ["a", "b"]
        recorder.events.append(make_events(1))
        recorder.flush()
        assert Result.from_hdf5(tmp_path / "a.h5").events.total == 3
    assert Result.from_hdf5(tmp_path / "a.h5").events.total == 3


def test_events_are_sorted_by_time_and_keep_the_names_of_their_blocks(tmp_path: Path):
    """Within a tick the engine logs one block after the other."""
    events = make_events(1, 0, 1)
    events["time"], events["crossing"] = [0.3, 0.1, 0.2], [5, 0, 7]
    with Hdf5Recorder(tmp_path / "a.h5", [Signal("x")], event_sources=SOURCES) as recorder:
        recorder.events.describe = lambda block, crossing: f"pin {crossing}" if block else ""
        recorder.events.append(events)
        recorder.append(np.array([[0.0, 1.0]]))
    opened = Result.from_hdf5(tmp_path / "a.h5")
    opened.to_hdf5(tmp_path / "b.h5")
    for result in (recorder.close(), opened, Result.from_hdf5(tmp_path / "b.h5")):
        found = [tuple(event) for event in result.events]
        assert found == [(0.1, "a", "switch"), (0.2, "b", "pin 7"), (0.3, "b", "pin 5")]
