"""Figures: shown in a window, or refused with what to do instead."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pytest
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

from biella import BiellaError, Diagram, simulate
from biella.blocks import Constant, Gain
from biella.cli import main

pytestmark = pytest.mark.engine


@pytest.fixture
def windows(monkeypatch):
    """A backend whose windows are closed at once; gives the figures that were shown."""
    shown = []

    class Manager(FigureManagerBase):
        def show(self):
            shown.append(self.canvas.figure)

        @classmethod
        def start_main_loop(cls):
            for number in plt.get_fignums():
                plt.close(number)

    class Canvas(FigureCanvasAgg):
        manager_class = Manager

    module: Any = types.ModuleType("closing_windows")
    module.FigureCanvas, module.FigureManager = Canvas, Manager
    monkeypatch.setitem(sys.modules, "closing_windows", module)
    before = matplotlib.get_backend()
    plt.switch_backend("module://closing_windows")
    yield shown
    plt.close("all")
    plt.switch_backend(before)


def figure():
    d = Diagram("shown", step=0.1)
    d.connect(d.add(Constant(1.0), name="one"), d.add(Gain(2.0), name="two"))
    return simulate(d, until=1.0).plot("one", "two")


def test_a_figure_opens_a_window_as_often_as_it_is_shown(windows):
    drawn = figure()
    size = drawn.get_size_inches().tolist()
    assert windows == [] and plt.get_fignums() == []  # nothing global until it is shown
    drawn.show(block=True)
    drawn.show(block=True)
    assert windows == [drawn, drawn]
    assert drawn.get_size_inches().tolist() == size
    assert plt.get_fignums() == []


def test_without_a_display_it_is_said_what_to_do():
    before = matplotlib.get_backend()
    plt.switch_backend("agg")
    try:
        with pytest.raises(BiellaError, match=r"no window can be opened here.*`agg`.*path="):
            figure().show()
        assert plt.get_fignums() == []
    finally:
        plt.switch_backend(before)


@pytest.mark.parametrize("command", [["simulate", "loop.py", "--until", "1e9"]])
def test_an_unknown_picture_format_is_refused_before_the_run(
    command, tmp_path: Path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.py").write_text(
        "from biella import Diagram\nfrom biella.blocks import Constant\n"
        "def diagram():\n    d = Diagram('d')\n    d.add(Constant(1.0))\n    return d\n"
    )
    assert main([*command, "--plot", "x.bmp"]) != 0
    told = capsys.readouterr().err
    assert "cannot save a plot as `x.bmp`" in told and "png" in told
