"""Recorded runs in the studio."""

import numpy as np
import pytest

from biella import BiellaError, run_realtime, simulate
from biella.cli import load_diagram
from biella.studio._result import RecordedRows, ResultSession

from .client import Client, serving, write_rig

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    file = write_rig(folder)
    result = simulate(load_diagram(file), 2.0, record=["*"], out=folder / "run.h5")
    return file, folder / "run.h5", result


def test_rows_are_those_of_the_file(recorded):
    _, _, result = recorded
    rows = RecordedRows(result)
    assert (rows.begin, rows.end) == (0, 2001) and rows.interval == pytest.approx(1e-3)
    first, found = rows.read(100, 200, [0, rows.columns["plant.y"]])
    assert first == 100
    assert np.array_equal(found, [result.t[100:200], result["plant.y"][100:200]])
    assert rows.read(1990, 9999)[1].shape == (1 + len(result), 11)
    assert rows.find(0.5) == 500 and rows.find(99.0) == 2001


def test_a_result_is_scrolled(recorded):
    file, path, result = recorded
    with serving(ResultSession(path, file)) as server, Client(server) as page:
        assert page.hello["mode"] == "result" and "run" not in page.hello["can"]
        assert "`do` is one of" in page.refused("run")
        page.do("subscribe", scope=1, signals=["plant.y"], rate=1000.0, history=1e9)
        page.wait(lambda: len(page.samples(1)))
        assert np.array_equal(page.samples(1)[:, 1], result["plant.y"])
        state = page.wait_state("ended")
        assert (state["begin"], state["time"]) == (0.0, 2.0)
        assert page.events["diagram"]["blocks"]["p"]["type"] == "Gain"
        boxes = [box["path"] for box in page.events["diagram"]["picture"]["boxes"]]
        assert {"ref", "plant", "push"} <= set(boxes)


def test_a_log_knows_its_diagram(recorded, tmp_path):
    file, _, _ = recorded
    run_realtime(load_diagram(file), 0.1, clock="free", out=tmp_path / "log.h5").wait()
    session = ResultSession(tmp_path / "log.h5")
    assert session.describe()[0]["event"] == "diagram"
    assert session.describe()[0]["blocks"]["p"]["type"] == "Gain"


def test_without_a_diagram_there_are_signals_only(recorded):
    _, path, _ = recorded
    events = [message["event"] for message in ResultSession(path).describe()]
    assert events == ["signals", "mechanisms", "journals", "events"]


def test_what_is_no_result_says_so(tmp_path):
    (tmp_path / "x.h5").write_text("no")
    with pytest.raises(BiellaError, match=r"x\.h5"):
        ResultSession(tmp_path / "x.h5")
