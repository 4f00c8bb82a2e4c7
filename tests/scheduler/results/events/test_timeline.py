"""Timelines of state machines."""

import numpy as np
import pytest

from biella import Diagram, Result, simulate
from biella.blocks import Constant, Playback, StateMachine
from biella.errors import ResultError, UnknownSignalError
from biella.results import Interval, Signal

pytestmark = pytest.mark.engine


def make_machine() -> StateMachine:
    """Return a machine that is off, works in two regions from u = 1 on, and is off again."""
    m = StateMachine(inputs=["u"])
    off = m.state("off")
    work = m.parallel("work")
    left = work.state("left")
    slow, fast = left.state("slow"), left.state("fast")
    right = work.state("right")
    right.state("only")
    m.transition(off, work, when="u >= 1")
    m.transition(work, off, when="u < 1")
    m.transition(slow, fast, when="u >= 2")
    m.transition(fast, slow, when="u < 2")
    return m


@pytest.fixture
def result() -> Result:
    d = Diagram("plant", step=1.0)
    u = d.add(Playback(np.arange(9.0), [0, 0, 1, 1, 2, 2, 1, 0, 0], interpolation="hold"), "u")
    d.add(make_machine(), "machine", u=u)
    d.add(Constant(3.0), "other")
    return simulate(d, 8.0)


def test_intervals_of_the_machine_and_its_regions(result):
    timeline = result.timeline("machine")
    assert timeline.intervals == (
        Interval(0.0, 2.0, "off"),
        Interval(2.0, 7.0, "work"),
        Interval(7.0, 8.0, "off"),
    )
    assert dict(timeline.regions) == {
        "": timeline.intervals,
        "work.left": (
            Interval(2.0, 4.0, "work.left.slow"),
            Interval(4.0, 6.0, "work.left.fast"),
            Interval(6.0, 7.0, "work.left.slow"),
        ),
        "work.right": (Interval(2.0, 7.0, "work.right.only"),),
    }


def test_sums(result):
    timeline = result.timeline("machine")
    assert timeline.durations() == {
        "off": 3.0, "work": 5.0, "work.left.slow": 3.0, "work.left.fast": 2.0,
        "work.right.only": 5.0
    }  # fmt: skip
    assert timeline.visits == {
        "off": 2, "work": 1, "work.left.slow": 2, "work.left.fast": 1, "work.right.only": 1
    }  # fmt: skip


@pytest.mark.parametrize(
    ("t", "expected"),
    [
        (0.0, ("off",)),
        (1.999, ("off",)),
        (2.0, ("work", "work.left.slow", "work.right.only")),
        (5.0, ("work", "work.left.fast", "work.right.only")),
        (7.0, ("off",)),
        (8.0, ("off",)),
    ],
)
def test_what_is_active_at_a_time(result, t, expected):
    assert result.timeline("machine").at(t) == expected


def test_at_outside_of_the_recording(result):
    for t in (-0.1, 8.1, float("nan")):
        with pytest.raises(ResultError, match="recorded from 0 to 8 s"):
            result.timeline("machine").at(t)


def test_a_region_that_is_active_at_the_end_includes_the_end():
    d = Diagram("plant", step=1.0)
    d.add(make_machine(), "machine", u=d.add(Constant(1.0), "u"))
    timeline = simulate(d, 3.0).timeline("machine")
    assert timeline.at(3.0) == ("work", "work.left.slow", "work.right.only")


def test_files_have_the_same_timeline(result, tmp_path):
    result.to_hdf5(tmp_path / "run.h5")
    again = Result.from_hdf5(tmp_path / "run.h5").timeline("machine")
    assert dict(again.regions) == dict(result.timeline("machine").regions)


def test_long_recordings_are_read_in_parts(monkeypatch):
    values = np.array([1, 1, 1, 2, 2, 2, 1, 1, 2.0])
    signal = Signal("m.state", kind="enumeration", names=("a", "b"))
    whole = Result.from_arrays(np.arange(9.0), {signal: values})
    expected = whole.timeline("m").intervals
    assert [one.start for one in expected] == [0.0, 3.0, 6.0, 8.0]
    for rows in (1, 2, 3, 4):
        monkeypatch.setattr("biella.scheduler.results.events._timeline._READ_ROWS", rows)
        assert whole.timeline("m").intervals == expected


def test_the_first_state_may_be_called_inactive():
    signal = Signal("m.state", kind="enumeration", names=("inactive", "b"))
    timeline = Result.from_arrays([0.0, 1.0, 2.0], {signal: [1, 2, 2]}).timeline("m")
    assert [one.state for one in timeline.intervals] == ["inactive", "b"]


def test_it_prints_as_a_table(result):
    lines = repr(result.timeline("machine")).splitlines()
    assert lines[0] == "Timeline of 'machine': 7 intervals"
    assert lines[1].split() == ["region", "start", "[s]", "end", "[s]", "duration", "[s]", "state"]
    assert lines[2].split() == ["(machine)", "0", "2", "2", "off"]
    assert "work.left.fast" in result.timeline("machine")._repr_html_()
    signal = Signal("m.state", kind="enumeration", names=("a", "b"))
    many = Result.from_arrays(np.arange(99.0), {signal: np.arange(99) % 2 + 1})
    assert repr(many.timeline("m")).splitlines()[-1] == "  … and 59 more"


def test_the_output_state_may_be_named(result):
    assert result.timeline("machine.state").intervals == result.timeline("machine").intervals


def test_unknown_names(result):
    with pytest.raises(UnknownSignalError, match=r"`machin` was not .*Did you mean `machine`"):
        result.timeline("machin")
    with pytest.raises(UnknownSignalError, match=r"`other` is not a state machine.*machine"):
        result.timeline("other")
    with pytest.raises(UnknownSignalError, match="No state machine was recorded"):
        Result.from_arrays([0.0], {"x": [1.0]}).timeline("x")


def test_active_states_are_drawn(result):
    make_machine().draw(active=result.timeline("machine").at(5.0))
