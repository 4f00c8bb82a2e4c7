"""Small plots as SVG: points are where their values are."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from biella.blocks.core.notebook._sketch import curves, histogram, nice_ticks, sparkline


def points_of(made, number=0):
    found = [tuple(map(float, p.split(","))) for p in made.split()]
    return np.array(found)


def lines_of(svg):
    return [points_of(e.get("points")) for e in ElementTree.fromstring(svg).iter("polyline")]


def test_a_sparkline_spans_its_cell_and_keeps_the_order_of_values():
    (line,) = lines_of(sparkline([0.0, 1.0, 0.25]))
    assert np.allclose(line[::2], line[1::2])
    x, y = line[::2].T
    assert np.all(np.diff(x) > 0)
    assert (y[0] - y[2]) / (y[0] - y[1]) == pytest.approx(0.25, abs=0.02)


def test_a_sparkline_of_bins_reaches_both_ends_of_each():
    (line,) = lines_of(sparkline([0.0, -1.0], [0.5, 1.0]))
    assert line[2, 1] > line[0, 1] > line[1, 1] > line[3, 1]


@pytest.mark.parametrize(
    "values", [[2.0], [2.0, 2.0], [1e308, -1e308], [np.nan, 1.0, np.inf, 2.0], [5e-324, 0.0]]
)
def test_odd_values_are_drawn_or_left_out(values):
    (line,) = lines_of(sparkline(values))
    assert np.isfinite(line).all() and np.abs(line).max() <= 1e3


def test_nothing_finite_draws_nothing():
    assert sparkline([np.nan, np.inf]) == "" and sparkline([]) == ""
    assert curves([0.0, 1.0], [("a", [np.nan, np.nan])], "x") == ""
    assert histogram([(0.0, 1.0, 0)], "x", "y") == ""


def test_curves_lie_between_the_ticks_of_their_values():
    svg = curves([0.0, 5.0, 10.0], [("up", [0.0, 1.0, 2.0]), ("gone", [np.nan] * 3)], "<t>", "v")
    (line,) = lines_of(svg)
    root = ElementTree.fromstring(svg)
    texts = {e.text: e for e in root.iter("text")}
    assert "<t>" in texts
    assert float(texts["10"].get("x", "nan")) == pytest.approx(line[2, 0], abs=0.2)
    assert float(texts["1"].get("y", "nan")) - 3.8 == pytest.approx(line[1, 1], abs=0.2)


def test_a_histogram_has_a_bar_for_each_bin_at_its_place():
    svg = histogram([(1.0, 2.0, 1000), (2.0, 4.0, 10), (4.0, 8.0, 0), (8.0, 100.0, 1)], "µs", "n")
    bars = [
        [float(e.get(name, "nan")) for name in ("x", "width", "height")]
        for e in ElementTree.fromstring(svg).iter("rect")
    ]
    assert len(bars) == 3
    assert (bars[1][0] - bars[0][0]) / (bars[2][0] - bars[0][0]) == pytest.approx(1 / 3, abs=0.01)
    assert bars[0][2] > bars[1][2] > bars[2][2] > 0
    assert re.search("1 to 2: 1000", svg)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (-3.0, 4.0, [-2, 0, 2, 4]),
        (1e-9, 3e-9, [1e-9, 1.5e-9, 2e-9, 2.5e-9, 3e-9]),
        (5.0, 5.0, [5]),
    ],
)
def test_ticks_are_round_numbers(low, high, expected):
    assert nice_ticks(low, high) == pytest.approx(expected)
