"""The picture of wake-ups: shares of what was measured."""

import numpy as np
import pytest
from PIL import Image

from biella.scheduler.host import _doctor_plot
from biella.scheduler.host._latency import Variant
from biella.scheduler.host._privileges import Privileges
from biella.scheduler.results._plotting import COLORS, save_figure


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Draw variants; return the axes and the file."""
    figures = []

    def keep(figure, path):
        figures.append(figure)
        save_figure(figure, path)

    monkeypatch.setattr(_doctor_plot, "save_figure", keep)

    def draw(*variants):
        path = tmp_path / "late.png"
        _doctor_plot.plot_histograms(variants, 1000.0, path)
        return figures[-1].axes[0], path

    return draw


def test_a_curve_shows_which_share_is_later(drawn):
    turns = [np.array([3000, 1000]), np.array([2000, 50])]  # in ns; below 100 is drawn as that
    axes, path = drawn(Variant("plain", Privileges(), turns=turns))
    (line,) = axes.lines
    assert line.get_label() == "plain"
    assert line.get_xdata().tolist() == [0.1, 1.0, 2.0, 3.0, 3.0]
    assert line.get_ydata().tolist() == [1.0, 0.75, 0.5, 0.25, 0.125]
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.get_title() == "Wake-ups at 1000 Hz"
    with Image.open(path) as image:
        assert image.width > 500


def test_more_variants_than_colors_are_dashed(drawn):
    count = len(COLORS) + 1
    late = [np.array([1000, 2000])]
    axes, _ = drawn(*(Variant(str(k), Privileges(), turns=late) for k in range(count)))
    styles = [line.get_linestyle() for line in axes.lines]
    assert styles == ["-"] * (count - 1) + ["--"]
    assert axes.lines[0].get_color() == axes.lines[-1].get_color()
