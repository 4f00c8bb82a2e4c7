"""Results side by side: the same signals, other grids, files from the command line only."""

import argparse

import numpy as np
import pytest

from biella import BiellaError, simulate
from biella.cli import load_diagram
from biella.studio import _command, _open
from biella.studio._result import ResultSession, _name_files

from .client import Client, serving, write_rig

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    file = write_rig(folder)
    diagram = load_diagram(file)
    a = simulate(diagram, 1.0, record=["*"], out=folder / "a.h5")
    b = simulate(
        diagram, 0.6, step=2.5e-3, record=["plant", "ref"], parameters={"p.k": 3.0},
        out=folder / "b.h5",
    )  # fmt: skip
    return folder, a, b


def test_the_same_signals_come_from_each_file_on_its_own_grid(results):
    folder, a, b = results
    session = ResultSession(folder / "a.h5", others=[folder / "b.h5"])
    with serving(session) as server, Client(server) as page:
        runs = page.wait(lambda: page.events.get("runs"))
        assert [(run["number"], run["name"], run["end"]) for run in runs["list"]] == [
            (1, "a", 1.0),
            (2, "b", pytest.approx(0.6)),
        ]
        assert (
            runs["present"] == 1 and page.wait_state("ended")["obstacle"] == "the run is recorded"
        )
        common = {"signals": ["plant.y", "p.y"], "rate": 1e4, "history": 1e9}
        page.do("subscribe", scope=1, **common)
        page.do("subscribe", scope=2, run=2, **common)
        page.wait(lambda: len(page.samples(2)) and len(page.samples(1)))
        one, other = page.samples(1), page.samples(2)
        assert np.array_equal(one[:, [0, 1]], np.column_stack([a.t, a["plant.y"]]))
        assert np.array_equal(other[:, [0, 1]], np.column_stack([b.t, b["plant.y"]]))
        assert np.isnan(other[:, 3]).all()  # not recorded there
        page.binary.clear()
        for run in (1, 2):
            page.do("moment", t=0.3011, run=run)
        page.wait(lambda: len([h for h, _ in page.binary if h[0] == 3 and h[4] == 1]) == 2)
        values = {h[1]: content for h, content in page.binary if h[0] == 3 and h[4] == 1}
        for run, result in ((1, a), (2, b)):
            place = session.view.signals["plant.y"][0]
            assert values[run][[0, place]] == pytest.approx(
                [0.3011, np.interp(0.3011, result.t, result["plant.y"])], rel=1e-12
            )
        assert np.isnan(values[2][session.view.signals["p.y"][0]])  # not recorded there
        page.do("window", scope=2, t0=0.1, t1=0.2, bins=1000)
        assert "is the number of a run" in page.refused("subscribe", scope=3, run=7, **common)
        assert "`do` is one of" in page.refused("delete", run=2)


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["x/a.h5", "x/b.h5"], ["a", "b"]),
        (["x/run.h5", "y/run.h5"], ["x/run", "y/run"]),
        (["run.h5", "run.h5"], ["run (1)", "run (2)"]),
    ],
)
def test_names_tell_files_apart(files, names):
    from pathlib import Path

    assert _name_files([Path(file) for file in files]) == names


def open_session(*files):
    parser = argparse.ArgumentParser()
    _command.add_command(parser.add_subparsers())
    return _open.open_session(parser.parse_args(["studio", *map(str, files)]))


def test_files_are_named_on_the_command_line(results, tmp_path):
    folder, *_ = results
    a, b, source = folder / "a.h5", folder / "b.h5", folder / "rig.py"
    session = open_session(a, b, source)
    assert session.find_view(2).rows.end == 241 and session.find_view(3) is None
    assert session.describe()[0]["event"] == "diagram"
    assert open_session(a).find_view(2) is None
    for files, text in [
        ((a, source, source), "only one file can be that of the diagram"),
        ((a, tmp_path / "none.h5"), "there is no file"),
        ((source, a), "only a result"),
        ((a, "--factor", "2", "--push"), "--factor, --push cannot be used with a result"),
        (("--attach", "--log", "x.h5"), "--log cannot be used with a run of another process"),
        ((source, "--factor=-1"), "0 for as fast as possible; got -1"),
        ((source, "--factor", "nan"), "got nan"),
    ]:
        with pytest.raises(BiellaError, match=text):
            open_session(*files)
    with pytest.raises(BiellaError, match="bad"):
        (tmp_path / "bad.h5").write_text("bad")
        open_session(a, tmp_path / "bad.h5")
