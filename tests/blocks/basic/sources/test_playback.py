"""Playback: interpolation, ends, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biella import Diagram, DiagramError, simulate
from biella.blocks import Integrator
from biella.blocks.basic.sources._playback import Playback
from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import Signal

pytestmark = pytest.mark.engine

STEP = 0.01
T = np.arange(301) * STEP
RNG = np.random.default_rng(2)
UNEVEN = np.cumsum(RNG.uniform(0.01, 0.3, 20))
VALUES = RNG.normal(size=20)


def test_linear(run_block: Any) -> None:
    y = run_block(Playback(UNEVEN, VALUES), ticks=301)
    assert np.allclose(y, np.interp(T, UNEVEN, VALUES), rtol=0, atol=1e-14)


def test_linear_hits_its_samples(run_block: Any) -> None:
    assert np.array_equal(run_block(Playback(T[:20], VALUES), ticks=20), VALUES)


def test_hold_and_vector(run_block: Any) -> None:
    table = RNG.normal(size=(20, 3))
    y = run_block(Playback(UNEVEN, table, interpolation="hold"), ticks=301)
    rows = np.clip(np.searchsorted(UNEVEN, T, side="right") - 1, 0, 19)
    assert np.array_equal(y, table[rows])


def test_held_samples_come_at_their_ticks(run_block: Any) -> None:
    # Times as a person types them: k / 100 lies beside k · 0.01 on either side.
    times = np.arange(301) / 100
    y = run_block(Playback(times, np.arange(301.0), interpolation="hold"), ticks=301)
    assert np.array_equal(y, np.arange(301))


@pytest.mark.parametrize("start", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("interpolation", ["hold", "linear"])
def test_equal_times_are_a_jump(run_block: Any, interpolation: str, start: float) -> None:
    """At every tick of a run, jumps at times as a person types them: k/100 lies beside k · 0.01."""
    at = start + np.arange(1, 300, 2) / 100
    times = np.concatenate([[start], np.repeat(at, 2), [start + 3.0]])
    values = np.zeros(times.size)
    values[2::2] = np.arange(1.0, at.size + 1)  # after each jump
    values[3::2] = values[2:-1:2] + (interpolation == "linear")
    values[1] = float(interpolation == "linear")
    y = run_block(Playback(times, values, interpolation=interpolation), ticks=300, start=start)
    assert y[1::2] == pytest.approx(np.arange(1, 151), abs=1e-9)
    halfway = 0.5 * (interpolation == "linear")
    assert y[2::2] == pytest.approx(np.arange(1, 150) + halfway, abs=1e-9)


@pytest.mark.parametrize("end", ["hold", "repeat", "zero", "stop"])
@pytest.mark.parametrize("interpolation", ["hold", "linear"])
def test_jumps_at_both_ends(run_block: Any, interpolation: str, end: str) -> None:
    block = Playback(
        [0.01, 0.01, 0.02, 0.03, 0.03], [5.0, 1, 1, 1, 7], interpolation=interpolation, end=end
    )
    y = run_block(block, ticks=4)
    before = {"zero": 0.0, "repeat": 1.0}.get(end, 5.0)
    # Where it repeats, the last time is the first one of the next round.
    assert np.array_equal(y, [before, 1.0, 1.0, 1.0 if end == "repeat" else 7.0])


def test_three_equal_times_jump_to_the_last(run_block: Any) -> None:
    y = run_block(Playback([0, 0.02, 0.02, 0.02, 0.04], [0.0, 2, 9, 4, 6]), ticks=5)
    assert np.allclose(y, [0, 1, 4, 5, 6], atol=1e-13)


def test_linear_is_continuous() -> None:
    # RK4 integrates a straight line exactly; a held one would be off by half a step.
    d = Diagram(step=0.1)
    d.connect(d.add(Playback([0, 1], [0, 1]), name="line"), d.add(Integrator(), name="x"))
    result = simulate(d, 1.0)
    assert np.allclose(result["x"], result.t**2 / 2, rtol=0, atol=1e-15)


@pytest.mark.parametrize("interpolation", ["hold", "linear"])
def test_ends(run_block: Any, interpolation: str) -> None:
    def play(end: str) -> Any:
        block = Playback([0.02, 0.03, 0.05], [1.0, 2.0, 4.0], interpolation=interpolation, end=end)
        return run_block(block, ticks=12)

    middle = 2.0 if interpolation == "hold" else 3.0
    inside = [1.0, 2.0, middle]
    assert np.allclose(play("hold"), [1, 1, *inside, 4, 4, 4, 4, 4, 4, 4], atol=1e-13)
    assert np.allclose(play("zero"), [0, 0, *inside, 4, 0, 0, 0, 0, 0, 0], atol=1e-13)
    assert np.allclose(play("repeat"), [2, middle, *inside * 3, 1], atol=1e-13)
    stopped = play("stop")
    assert np.allclose(stopped, [1, 1, *inside, 4], atol=1e-13)


def test_repeat_after_a_long_time(run_block: Any) -> None:
    block = Playback([0, 0.01, 0.03], [5.0, 6.0, 7.0], interpolation="hold", end="repeat")
    y = run_block(block, ticks=300, start=6000.0)
    assert np.array_equal(y, np.tile([5.0, 6.0, 6.0], 100))


@settings(max_examples=50)
@given(
    steps=st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40),
    first=st.floats(-1e6, 1e6),
    queries=st.lists(st.floats(-2.0, 3.0), min_size=1, max_size=5),
)
def test_any_spacing(steps: list[float], first: float, queries: list[float]) -> None:
    times = first + np.cumsum([0.0, *steps])
    if not np.all(np.diff(times) > 0):
        return
    values = np.arange(float(times.size))
    for query in queries:
        t = float(times[0] + query * (times[-1] - times[0]))
        d = Diagram(step=1e-3, start_time=t)
        d.add(Playback(times, values), name="play")
        y = simulate(d, t)["play"][0]
        assert y == pytest.approx(np.interp(t, times, values), rel=1e-9, abs=1e-9)


@pytest.fixture
def recorded() -> Result:
    signals: dict[str | Signal, Any] = {
        Signal("pid.u", unit="N.m"): VALUES,
        Signal("plant.force", 3, "N"): RNG.normal(size=(20, 3)),
        "ratio.y": VALUES**2,
    }
    aliases = {"ratio": "ratio.y"}
    return Result.from_arrays(UNEVEN, signals, units={"ratio.y": "1"}, aliases=aliases)


@pytest.mark.parametrize("suffix", ["csv", "h5"])
def test_files(recorded: Result, tmp_path: Path, run_block: Any, suffix: str) -> None:
    path = tmp_path / f"run.{suffix}"
    recorded.to_csv(path) if suffix == "csv" else recorded.to_hdf5(path)
    for name, unit in (("pid.u", "N.m"), ("plant.force", "N"), ("ratio.y", "1")):
        block = Playback.from_file(path, name)
        assert np.array_equal(block.parameters[0].value, UNEVEN)
        assert np.array_equal(block.parameters[1].value, recorded[name])
        assert str(block.outputs[0].unit) == unit
    y = run_block(Playback.from_file(path, "pid.u", unit="1", end="zero"), ticks=301)
    assert np.allclose(y, np.interp(T, UNEVEN, VALUES, 0, 0), rtol=0, atol=1e-14)
    with pytest.raises(DiagramError, match=r"no signal `pid\.v`\. Did you mean `pid\.u`"):
        Playback.from_file(path, "pid.v")
    with pytest.raises(DiagramError, match="has 3 signals: say which"):
        Playback.from_file(path)


def test_hdf5_alias(recorded: Result, tmp_path: Path) -> None:
    recorded.to_hdf5(tmp_path / "run.h5")
    block = Playback.from_file(tmp_path / "run.h5", "ratio")
    assert np.array_equal(block.parameters[1].value, VALUES**2)


def test_elements_are_taken_by_their_index(tmp_path: Path) -> None:
    path = tmp_path / "vector.csv"
    path.write_text("t,f[1] [N],f[0] [N],a/b@c.d\n0,1,2,3\n1,4,5,6\n")
    block = Playback.from_file(path, "f")
    assert np.array_equal(block.parameters[1].value, [[2, 1], [5, 4]])
    assert np.array_equal(Playback.from_file(path, "a/b@c.d").parameters[1].value, [3, 6])


def test_plain_csv(tmp_path: Path) -> None:
    path = tmp_path / "plain.csv"
    path.write_text("0,1,2\n0.5,3,4\n\n")
    block = Playback.from_file(path)
    assert np.array_equal(block.parameters[1].value, [[1, 2], [3, 4]])
    path.write_text("t,speed\n0,1\n0.5,3\n")
    block = Playback.from_file(path)
    assert np.array_equal(block.parameters[1].value, [1, 3])
    assert block.outputs[0].unit is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "needs a column of times"),
        ("t\n0\n1\n", "needs a column of times"),
        ("t,a\n0,x\n", r"bad\.csv`, line 2, column `a`: `x` is not a number"),
        ("t,a\n0,1\n\n0.1,\n", r"line 4, column `a`: the cell is empty"),
        ("t,a\n0,1\n0.1,nan\n", r"line 3, column `a`: nan is not finite"),
        ("0,1\n1,inf\n", r"line 2, column 2: inf is not finite"),
        ("t,a,b\n0,1,1\n1,2\n", r"line 3 has 2 cells, but the first row 3"),
        ("0,1\n1,2,3\n", r"line 2 has 3 cells, but the first one 2"),
        ("t,a\n0,1\n0.5,2\n0.4,3\n", r"line 4: the time 0\.4 s comes after 0\.5 s"),
        ("t;a\n0;1\n1;2\n", r"separated by commas, not by ';'"),
        ("t,a,a\n0,1,2\n1,2,3\n", r"two columns `a`"),
        ("t,a,\n0,1,2\n1,2,3\n", r"column 3 has no name"),
        ("t,a[0] [N],a[1] [m]\n0,1,2\n1,2,3\n", r"elements of `a` are in N and m"),
        ("0,1\n0,2\n", "has the one time 0 only"),
    ],
)
def test_bad_csv(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(DiagramError, match=message):
        Playback.from_file(tmp_path / "bad.csv")


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(DiagramError, match="there is no file"):
        Playback.from_file(tmp_path / "none.csv")
    (tmp_path / "bad.h5").write_text("no")
    with pytest.raises(DiagramError, match="not a readable HDF5 file"):
        Playback.from_file(tmp_path / "bad.h5", "x")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Playback([0], [1]), "`times` is a list of at least two"),
        (lambda: Playback([[0, 1]], [1]), r"shape \(1, 2\)"),  # type: ignore[list-item]
        (lambda: Playback([0, 2, 1], [1, 2, 3]), r"times\[2\] = 1 comes after times\[1\] = 2"),
        (lambda: Playback([1, 1], [1, 2]), "has the one time 1 only"),
        (lambda: Playback([0, 1], [1, 2, 3]), r"it must be \(2,\) or \(2, width\)"),
        (lambda: Playback([0, 1], [1, 2], end="bounce"), "end is one of"),
        (lambda: Playback([0, 1], [1, np.inf]), "`values` must be finite"),
    ],
)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        make()
