"""Timelines as bars."""

import numpy as np
import pytest

from biella import Result
from biella.errors import ResultError
from biella.results import Signal


def make_result(values, names=("off", "starting", "on")) -> Result:
    signal = Signal("heater.state", kind="enumeration", names=tuple(names))
    return Result.from_arrays(np.arange(float(len(values))), {signal: values})


def test_each_visit_is_a_bar_and_long_ones_have_their_name():
    figure = make_result([1] * 50 + [2] + [3] * 50).timeline("heater").plot()
    (axes,) = figure.axes
    bars = [c.get_paths() for c in axes.collections]
    assert [len(paths) for paths in bars] == [1, 1, 1]
    extents = [paths[0].get_extents() for paths in bars]
    assert [(e.x0, e.x1) for e in extents] == [(0, 50), (50, 51), (51, 100)]
    assert [text.get_text() for text in axes.texts] == ["off", "on"]
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["starting"]
    assert axes.get_xlim() == (0, 100)


def test_no_legend_where_every_name_is_on_a_bar():
    figure = make_result([1] * 50 + [3] * 50).timeline("heater").plot()
    assert figure.axes[0].get_legend() is None


def test_many_short_visits_are_merged_to_what_a_picture_shows():
    values = np.arange(40_000) % 2 + 1
    figure = make_result(values).timeline("heater").plot()
    counts = [len(c.get_paths()) for c in figure.axes[0].collections]
    assert all(1 <= count <= 3000 for count in counts)


def test_a_part_of_the_time():
    timeline = make_result([1] * 50 + [3] * 50).timeline("heater")
    assert timeline.plot(start=40.0, stop=60.0).axes[0].get_xlim() == (40, 60)
    with pytest.raises(ResultError, match="covers 0 to 99 s"):
        timeline.plot(start=120.0)


def test_more_states_than_colors_are_hatched():
    names = [f"s{n}" for n in range(10)]
    figure = make_result(np.repeat(np.arange(10) + 1, 10), names).timeline("heater").plot()
    hatches = [c.get_hatch() for c in figure.axes[0].collections]
    assert hatches[:8] == [None] * 8 or hatches[:8] == [""] * 8
    assert hatches[8:] == ["///"] * 2


def test_figures_are_saved(tmp_path):
    timeline = make_result([1] * 50 + [3] * 50).timeline("heater")
    timeline.plot(tmp_path / "t.png", title="")
    assert (tmp_path / "t.png").stat().st_size > 1000
    with pytest.raises(ResultError, match=r"t\.xyz"):
        timeline.plot(tmp_path / "t.xyz")
