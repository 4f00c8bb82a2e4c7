"""`biella demo`: what it writes."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from biella import simulate
from biella.demo import rig
from biella.demo._run import _write_run
from biella.scheduler.results._result import Result
from biella.studio import _page_file

pytestmark = pytest.mark.engine


def test_the_demo_writes_its_page_and_all_that_it_shows(demo):
    folder, told = demo
    assert told["page"] == str(folder / "index.html")
    page = (folder / "index.html").read_text()
    shown = set(re.findall(r'(?:src|href)="([^"]+)"', page))
    for name in shown:
        assert (folder / name).stat().st_size > 400, name
    assert "`" not in page
    assert shown >= {"crank.fmu", "rig.py", "run.h5", "diagram.svg", "responses.png", "orbit.png"}
    assert shown >= {"motion.gif", "ticks.png", "states.png"}
    figures = {row["what"]: row["figure"] for row in told["table"]}
    assert set(figures) >= {"overruns", "coupling error of a tick", "closure of the joints"}
    # The device answers as the simulated power stage does, so that pacing changes nothing.
    assert figures["real-time against simulated"] == "0 rad/s"


def test_the_realtime_run_is_one_file_if_the_page_was_built(demo):
    folder, _ = demo
    listed = 'href="run.html"' in (folder / "index.html").read_text()
    assert listed == (folder / "run.html").exists() == _page_file.has_page()
    if listed:
        page = (folder / "run.html").read_text("utf-8")
        data = page.split('id="biella-run">')[1].split("</script>")[0]
        assert [len(blocks) for blocks in json.loads(data)["poses"]] == [3 * 7]


def test_without_the_page_there_is_a_line_and_no_file(demo, tmp_path, monkeypatch):
    monkeypatch.setattr(_page_file, "FILES", tmp_path / "nowhere")
    told: list[str] = []
    assert _write_run(tmp_path, told.append) == ()
    assert "was not built" in told[0] and not any(tmp_path.iterdir())


def test_the_log_of_the_realtime_run_has_the_signals_of_the_simulated_one(folder):
    log = Result.from_hdf5(folder / "run.h5")
    simulated = simulate(rig.diagram(folder / "crank.fmu"), 2.2, record=["*"])
    assert set(simulated.paths) <= set(log.paths)
    assert {"realtime.lateness", "realtime.execution", "drive.age"} <= set(log.paths)
    for name in ("pid", "speed", "crank_pin.film.pressure", "measured_torque"):
        np.testing.assert_array_equal(log[name][:2000], simulated[name][:2000])
