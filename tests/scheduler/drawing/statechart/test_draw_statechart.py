"""Statecharts as files."""

import re

import pytest
from drawn_machines import make_heater, make_supervisor

from biella import DiagramError
from biella.scheduler.drawing.statechart._draw_statechart import find_active


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_equal_machines_have_equal_files(tmp_path, suffix):
    files = [tmp_path / f"{n}.{suffix}" for n in "ab"]
    for file in files:
        make_heater().draw(file, title="heater")
    first, second = (file.read_bytes() for file in files)
    assert first == second and len(first) > 1000


def test_active_states_are_highlighted_with_those_around_them(tmp_path):
    machine = make_supervisor()
    shown = find_active(machine, ["run.drive.overload", "run.logging.idle"])
    assert shown >= {"run", "run.drive", "run.drive.overload", "run.logging", "run.logging.idle"}
    assert not any(path.startswith(("safe", "startup", "off")) for path in shown)
    assert find_active(machine, machine.chart.children[0]) >= {"off"}
    plain, active = tmp_path / "plain.svg", tmp_path / "active.svg"
    make_heater().draw(plain)
    make_heater().draw(active, active="on")
    assert "#ffd9a8" not in plain.read_text().lower()
    assert len(re.findall("#ffd9a8", active.read_text().lower())) == 1


def test_unknown_states_and_formats_are_rejected(tmp_path):
    with pytest.raises(DiagramError, match=r"no state `onn`. Did you mean `on`.*States: off, on"):
        make_heater().draw(active="onn")
    with pytest.raises(DiagramError, match="svg, pdf, png"):
        make_heater().draw(tmp_path / "heater.jpg")
    assert list(tmp_path.iterdir()) == []
