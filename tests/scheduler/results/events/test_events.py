"""`Result.events`: times and sources against closed forms, in memory, in files, in exports."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from biella import Diagram, Result, simulate, sweep
from biella.blocks import Constant, Gain, Integrator, Relay, Saturation, Step
from biella.errors import BiellaError
from biella.scheduler.results.events import _event_log
from biella.scheduler.results.events._events import EVENT, Events, EventSource, name_kind

pytestmark = pytest.mark.engine


def oscillator(step: float = 1e-2) -> Diagram:
    """x moves between -0.1 and 0.1 at unit speed, first up from 0.055: a switch every 0.2 s."""
    d = Diagram("oscillator", step=step)
    x = d.add(Integrator(0.055), "x")
    d.connect(d.add(Relay(0.1, -0.1, -1.0, 1.0), "relay", u=x), x)
    return d


def switches(count: int) -> np.ndarray:
    return 0.045 + 0.2 * np.arange(count)


def two_sources() -> Diagram:
    """A ramp from 0, started at 0.0055 s, that an integrator stops at its limit of 0.01."""
    d = Diagram("stop", step=1e-2)
    x = d.add(Integrator(0.0, limits=(-1.0, 0.01)), "x", u=d.add(Step(at=0.0055), "start"))
    d.add(Gain(1.0), "shown", u=x)
    return d


def test_times_and_sources():
    result = simulate(oscillator(), 3.0)
    assert result.events.times("relay") == pytest.approx(switches(15), abs=1e-12)
    assert result.events.counts == {"relay": 15}
    assert result.events.total == len(result.events) == 15
    assert not result.events.truncated
    assert result.events[0].source == "relay"
    assert result.events[0].kind == "switch"
    assert [event.time for event in result.events[-2:]] == pytest.approx(switches(15)[-2:])
    assert "15 events: relay 15" in repr(result)
    assert "0.045" in repr(result.events)


def test_kinds_of_instants_and_limits():
    events = simulate(two_sources(), 0.05).events
    assert [(event.source, event.kind) for event in events] == [
        ("start", "instant"),
        ("x", "limit"),
    ]
    assert events.times() == pytest.approx([0.0055, 0.0155], abs=1e-12)
    assert events.of("start").times() == pytest.approx([0.0055])
    assert events.sources == ["start", "x"]


def test_names_of_kinds():
    assert name_kind(EventSource("i", "Integrator", 2), 1) == "limit[1]"
    assert name_kind(EventSource("i", "Integrator", 2), 2) == "reset"
    assert name_kind(EventSource("e", "Expression", 1), 3) == "branch 3"
    assert name_kind(EventSource("u", "Unheard", 1), 3) == "crossing 3"
    assert name_kind(EventSource("u", "Unheard", 1), -1) == "instant"


def test_every_kind_of_a_vector_names_its_element():
    d = Diagram(step=1e-2)
    x = d.add(Integrator([0.0, 0.0]), "x", u=d.add(Constant([1.0, 1.0]), "one"))
    limited = d.add(Saturation([-1.0, -1.0], [0.025, 0.035]), "limited", u=x)
    d.add(Integrator([0.0, 0.0]), "y", u=limited)
    kinds = [event.kind for event in simulate(d, 0.1).events]
    assert kinds == ["limit[0]", "limit[1]"]


def test_a_block_that_does_not_exist_is_an_error():
    result = simulate(oscillator(), 0.3)
    with pytest.raises(BiellaError, match=r"no block `rely`\. Did you mean `relay`"):
        result.events.times("rely")
    assert len(result.events.times("x")) == 0


def test_patterns():
    events = simulate(two_sources(), 0.05).events
    assert len(events.of("st*")) == 1
    assert len(events.of("st*", "x")) == 2


def test_events_at_ticks_are_none():
    result = simulate(oscillator(), 0.5, events="tick")
    assert len(result.events) == result.events.total == 0
    assert len(result.events.times("relay")) == 0


def test_results_of_arrays_have_none():
    assert len(Result.from_arrays([0.0, 1.0], {"x": [1.0, 2.0]}).events) == 0


def test_a_file_gives_them_back(tmp_path: Path):
    direct = simulate(oscillator(), 3.0)
    streamed = simulate(oscillator(), 3.0, out=tmp_path / "a.h5")
    opened = Result.from_hdf5(tmp_path / "a.h5")
    direct.to_hdf5(tmp_path / "b.h5")
    opened.to_hdf5(tmp_path / "c.h5")
    for other in (streamed, opened, *(Result.from_hdf5(tmp_path / f"{n}.h5") for n in "bc")):
        assert other.events.log.tobytes() == direct.events.log.tobytes()
        assert list(other.events) == list(direct.events)
        assert (other.events.total, other.events.counts) == (15, {"relay": 15})


def test_a_file_without_events_opens(tmp_path: Path):
    """Files of before have no group `events`."""
    simulate(oscillator(), 0.5).to_hdf5(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        del file["events"]
    assert len(Result.from_hdf5(tmp_path / "a.h5").events) == 0


def test_damaged_events_are_noticed(tmp_path: Path):
    simulate(oscillator(), 0.5).to_hdf5(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["events/list"][0] = (9.0, 0, 0)
    with pytest.raises(BiellaError, match="checksum"):
        _ = Result.from_hdf5(tmp_path / "a.h5").events


def test_the_list_is_bounded_and_all_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_event_log.EventLog.__init__, "__defaults__", ((), 4))
    in_memory = simulate(oscillator(), 3.0)
    simulate(oscillator(), 3.0, out=tmp_path / "a.h5")
    for result in (in_memory, Result.from_hdf5(tmp_path / "a.h5")):
        assert result.events.truncated
        assert (len(result.events), result.events.total) == (4, 15)
        assert result.events.counts == {"relay": 15}
        assert "the first 4 are listed" in repr(result)


def test_a_run_that_continues_has_its_own_events_once():
    whole = simulate(oscillator(), 3.0).events
    first = simulate(oscillator(), 1.0)
    second = simulate(oscillator(), 3.0, checkpoint=first.checkpoint)
    joined = np.concatenate([first.events.log, second.events.log])
    assert joined.tobytes() == whole.log.tobytes()
    assert first.events.total + second.events.total == whole.total


def test_an_interrupt_keeps_the_events_so_far(tmp_path: Path):
    code = """
import os, signal, sys, threading
from biella import Result, simulate
from tests.scheduler.results.events.test_events import oscillator
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
result = simulate(oscillator(1e-4), 1e5, every=100)
assert result.info["stopped"].startswith("interrupted")
end = result.t[-1]
assert result.events.total > 0 and abs(result.events.total - end / 0.2) < 2, (result.events, end)
"""
    subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[4], timeout=300
    )


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
def test_a_kill_leaves_the_events_of_all_rows(tmp_path: Path):
    code = f"""
import os, signal, threading
from biella import simulate
from tests.scheduler.results.events.test_events import oscillator
threading.Timer(2.5, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
simulate(oscillator(1e-4), 1e6, every=100, out={str(tmp_path / "a.h5")!r})
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[4], timeout=300)
    assert done.returncode == -signal.SIGKILL
    result = Result.from_hdf5(tmp_path / "a.h5")
    expected = switches(int((result.t[-1] - 0.045) / 0.2) + 1)
    assert len(expected) > 10
    assert result.events.times()[: len(expected)] == pytest.approx(expected, abs=1e-6)


def test_csv(tmp_path: Path):
    simulate(two_sources(), 0.05).events.to_csv(tmp_path / "events.csv")
    with (tmp_path / "events.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["time [s]", "source", "kind"]
    assert [row[1:] for row in rows[1:]] == [["start", "instant"], ["x", "limit"]]
    assert float(rows[1][0]) == 0.0055


def test_pandas():
    pytest.importorskip("pandas")
    frame = simulate(two_sources(), 0.05).events.to_pandas()
    assert list(frame["source"]) == ["start", "x"]
    assert frame.index[0] == 0.0055


def test_sweep_measures_use_them():
    found = sweep(
        oscillator(),
        1.0,
        {"relay.on": [0.1, 0.3]},
        lambda result: float(result.events.times("relay")[0]),
    )
    assert found.array() == pytest.approx([0.045, 0.245], abs=1e-12)


def test_no_events_say_so():
    assert Events(np.empty(0, EVENT)).describe() == "no events"
