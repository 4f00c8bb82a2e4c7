"""Plots of results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from biella.scheduler.results._result import Result
from biella.scheduler.results._result_file import MemoryColumns
from biella.scheduler.results._signals import (
    ResultError,
    Signal,
    SignalTable,
    UnknownSignalError,
)
from biella.scheduler.results.events._events import EVENT, Events, EventSource


class TestPlot:
    def test_grouped_by_unit_however_spelled(self, result: Result) -> None:
        figure = result.plot("ref", "encoder.speed", "pid.u", "pid.saturated")
        assert [len(axes.lines) for axes in figure.axes] == [2, 1, 1]
        assert [axes.get_ylabel() for axes in figure.axes] == ["[rad/s]", "[N·m]", ""]
        assert figure.axes[0].get_title(loc="left") == "loop"
        assert figure.axes[-1].get_xlabel() == "time [s]"

    def test_lists_make_axes(self, result: Result) -> None:
        figure = result.plot(["ref", "pid.u"], "sub.plant.force", title="")
        assert [len(axes.lines) for axes in figure.axes] == [2, 3]
        legend = figure.axes[1].get_legend()
        assert legend is not None
        names = [text.get_text() for text in legend.get_texts()]
        assert names == [f"sub.plant.force[{i}]" for i in range(3)]

    def test_everything_by_default(self, result: Result) -> None:
        assert sum(len(axes.lines) for axes in result.plot().axes) == 7

    def test_held_signals_are_steps(self, result: Result) -> None:
        lines = [axes.lines[0] for axes in result.plot("encoder.speed", "pid.u").axes]
        assert [line.get_drawstyle() for line in lines] == ["steps-post", "default"]

    def test_legend_is_off_the_data(self, result: Result) -> None:
        figure = result.plot("ref", "sub.plant.force")
        figure.draw_without_rendering()
        for axes in figure.axes:
            legend = axes.get_legend()
            assert legend is not None
            box = legend.get_window_extent()
            assert box.x0 >= axes.get_window_extent().x1
            assert box.x1 <= figure.bbox.x1

    def test_part_of_the_time(self, result: Result) -> None:
        line = result.plot("pid.u", start=0.2, stop=0.4).axes[0].lines[0]
        drawn = np.asarray(line.get_xdata())
        assert drawn[0] == pytest.approx(0.2)
        assert len(drawn) == 21
        with pytest.raises(ResultError, match="the recording covers 0 to 1 s"):
            result.plot("pid.u", start=5.0)

    def test_extremes_survive_thinning(self) -> None:
        t = np.arange(300_001) * 1e-3
        y = np.sin(t)
        y[123_457], y[200_003] = 50.0, -50.0
        line = Result.from_arrays(t, {"y": y}).plot().axes[0].lines[0]
        drawn = np.asarray(line.get_ydata())
        assert len(drawn) < 25_000
        assert (drawn.min(), drawn.max()) == (-50.0, 50.0)
        assert np.asarray(line.get_xdata())[-1] == t[-1]

    @pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
    def test_saves_by_extension(self, result: Result, tmp_path: Path, suffix: str) -> None:
        result.plot("ref", path=tmp_path / f"p.{suffix}")
        magic = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
        assert (tmp_path / f"p.{suffix}").read_bytes().startswith(magic)

    def test_unknown_extension(self, result: Result, tmp_path: Path) -> None:
        with pytest.raises(ResultError, match=r"one of the extensions .*pdf.*png"):
            result.plot("ref", path=tmp_path / "p.doc")
        assert list(tmp_path.iterdir()) == []

    def test_shows_in_a_notebook(self, result: Result) -> None:
        assert result.plot("ref")._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]

    def test_unknown_name(self, result: Result) -> None:
        with pytest.raises(UnknownSignalError, match="Did you mean"):
            result.plot("encoder.sped")
        with pytest.raises(ResultError, match="nothing to plot"):
            Result.from_arrays([0.0], {}).plot()


def test_no_display_and_no_pyplot(tmp_path: Path) -> None:
    script = (
        "import sys; from biella.scheduler.results._result import Result; "
        f"Result.from_arrays([0, 1], {{'x': [0, 1]}}).plot(path={str(tmp_path / 'p.png')!r}); "
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.strip() == "False", done.stderr


def make_eventful(blocks: int, events: int) -> Result:
    """Return a result with `events` of each block, equally spaced in 0 to 1 s."""
    log = np.zeros(blocks * events, EVENT)
    log["time"] = np.repeat(np.linspace(0.0, 1.0, events), blocks)
    log["block"] = np.tile(np.arange(blocks), events)
    table = SignalTable([Signal("x")])
    columns = MemoryColumns(np.vstack([np.linspace(0, 1, 101)] * 2), table)
    sources = [EventSource(f"b{n}", "Relay", 1) for n in range(blocks)]
    return Result(columns, table, events=Events(log, sources, len(log)))


class TestEvents:
    def test_a_row_for_each_source_and_lines_through_the_signals(self) -> None:
        figure = make_eventful(2, 10).plot("x", events=True)
        signals, rows = figure.axes
        assert [label.get_text() for label in rows.get_yticklabels()] == ["b0 (10)", "b1 (10)"]
        lines = [line for line in signals.lines if np.size(line.get_xdata()) == 2]
        assert len(lines) == 10
        assert rows.get_xlabel() == "time [s]"

    def test_some_sources_in_a_part_of_the_time(self) -> None:
        figure = make_eventful(3, 11).plot("x", events=["b1"], start=0.25, stop=0.75)
        labels = [label.get_text() for label in figure.axes[-1].get_yticklabels()]
        assert labels == ["b1 (5)"]

    def test_many_are_rows_only_and_as_many_as_can_be_seen(self) -> None:
        figure = make_eventful(20, 10_000).plot("x", events=True)
        signals, rows = figure.axes
        assert len(signals.lines) == 1
        labels = [label.get_text() for label in rows.get_yticklabels()]
        assert len(labels) == 12
        assert labels[-1] == "9 other blocks (90000)"
        assert all(len(marks.get_paths()) <= 4001 for marks in rows.collections)

    def test_none_are_no_row(self, result: Result) -> None:
        assert len(result.plot("ref", events=True).axes) == 1
        assert len(make_eventful(2, 10).plot("x").axes) == 1

    def test_an_unknown_source(self) -> None:
        with pytest.raises(ResultError, match="no block `c`"):
            make_eventful(2, 10).plot("x", events=["c"])
