"""What pages download has the recorded numbers."""

import csv
from typing import Any

import numpy as np
import pytest

from biella import replay
from biella.results import Result
from biella.scheduler.realtime.log._replay import find_differences
from biella.studio import _export
from biella.studio._export import name_file

from .client import open_studio, write_rig
from .test_branches import run_to, runs_of

pytestmark = pytest.mark.engine


def download(page, path, **request):
    """Ask for a file, and write what comes; return its name."""
    answer = page.do("export", **request)
    content, over = b"", False
    while not over:
        parts = page.wait(lambda: page.parts.pop(answer["file"], None))
        for head, part in parts:
            assert head[2] == len(part)
            content += part
            over = bool(head[4] & 1)
    assert len(content) == answer["size"]
    path.write_bytes(content)
    return answer["name"]


@pytest.fixture
def studio(tmp_path):
    with open_studio(write_rig(tmp_path)) as (session, server, page):
        run_to(session, page, 1000)
        yield session, server, page


def test_a_window_is_written_at_full_resolution(studio, tmp_path, monkeypatch):
    monkeypatch.setattr(_export, "_PART", 1000)
    session, _, page = studio
    file = tmp_path / "window.csv"
    name = download(
        page, file, format="csv", signals=["plant.y", "ref.y", "plant.y"], t0=0.2, t1=0.6
    )
    assert name == "loop-run.csv"
    with file.open(newline="") as opened:
        heading, *lines = list(csv.reader(opened))
    assert heading == ["time [s]", "plant.y", "ref.y"]
    columns = [0, session.view.signals["plant.y"][0], session.view.signals["ref.y"][0]]
    rows = session.view.rows.read(200, 601, columns)[1]
    assert np.array(lines, float).T.tobytes() == rows.tobytes()


def test_a_kept_run_is_written_as_a_result_that_can_be_replayed(studio, tmp_path):
    session, _, page = studio
    page.do("branch", t=0.5)
    page.wait(lambda: "branch 1" in runs_of(page))
    number = runs_of(page)["run"]["number"]
    name = download(page, tmp_path / "kept.h5", format="h5", run=number)
    assert name == "loop-run.h5"
    kept = Result.from_hdf5(tmp_path / "kept.h5")
    rows = session.find_view(number).rows
    assert kept.t.tobytes() == rows.read(rows.begin, rows.end, [0])[1].tobytes()
    assert set(kept) == set(session.view.signals)
    assert not find_differences(kept, replay(kept))
    download(page, tmp_path / "present.h5", format="h5", signals=["ref.y"])
    present = Result.from_hdf5(tmp_path / "present.h5")
    assert [*present] == ["ref.y"] and present.log is None and present.t[-1] < 0.6


def test_what_cannot_be_exported_says_why(studio, monkeypatch):
    _, _, page = studio
    requests: list[tuple[dict[str, Any], str]] = [
        ({"format": "exe"}, "`format` is one of"),
        ({"format": "csv", "signals": "ref.y"}, "`signals` is a list"),
        ({"format": "csv", "signals": ["nothing"]}, "none of `signals`"),
        ({"format": "csv", "t0": 1e9, "t1": 2e9}, "nothing is recorded"),
        ({"format": "csv", "t0": "x"}, "`t0` is a number"),
        ({"format": "csv", "run": 77}, "is the number of a run"),
    ]
    for request, text in requests:
        assert text in page.refused("export", **request)
    monkeypatch.setattr(_export, "_MOST_VALUES", 100)
    assert "choose a shorter time" in page.refused("export", format="csv")


def test_files_that_wait_are_bounded(studio, monkeypatch):
    """One page after the other could fill the disk with files that it does not receive."""
    _, _, page = studio
    waiting = _export.ExportedFile(1, Result.from_arrays([0.0, 1.0], {"y": [1.0, 2.0]}), "csv")
    monkeypatch.setattr(_export, "_MOST_BYTES", waiting.size)
    assert "wait until they have arrived" in page.refused("export", format="csv")
    del waiting
    assert page.do("export", format="csv", signals=["ref.y"])["size"] > 0


def test_names_of_files_are_plain():
    assert name_file("a/b: c", "csv") == "a-b-c.csv"
    assert name_file("../", "h5") == "run.h5"
