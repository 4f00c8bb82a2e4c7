"""A recorded run as one HTML file: what is in it, read back as its page reads it."""

import base64
import html.parser
import importlib.util
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

from biella import BiellaError, Diagram, cli, simulate
from biella.blocks import Gain, Sine
from biella.cli import load_diagram
from biella.scheduler.compile._flatten import flatten
from biella.studio import _page_file
from biella.studio._mechanism import show_mechanisms
from biella.studio._page_file import MARK, pack, write_page_file
from biella.studio._result import ResultSession

from .client import write_rig

pytestmark = pytest.mark.engine

SLIDER_CRANK = Path(__file__).parents[2] / "examples" / "04_slider_crank.py"
INDEX = """<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>biella studio</title>
    <script type="module" crossorigin src="./assets/index.js"></script>
    <link rel="stylesheet" crossorigin href="./assets/index.css">
  </head>
  <body>
    <div id="app"></div>
  </body>
</html>
"""
CODE = "const a = '</script>', b = `<!--`; import(`./scene.js`);"


@pytest.fixture(autouse=True)
def built(tmp_path_factory, monkeypatch):
    """A built page with everything that may not be inserted as it is."""
    folder = tmp_path_factory.mktemp("static")
    (folder / "assets").mkdir()
    (folder / "index.html").write_text(INDEX)
    (folder / "assets" / "index.js").write_text(CODE)
    (folder / "assets" / "scene.js").write_text("export const scene = '</script>';")
    (folder / "assets" / "index.css").write_text("a { color: red }")
    monkeypatch.setattr(_page_file, "FILES", folder)
    return folder


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    file = write_rig(folder)
    result = simulate(load_diagram(file), 2.0, record=["*"], out=folder / "run.h5")
    return file, folder / "run.h5", result


class Parts(html.parser.HTMLParser):
    """The scripts of a page and what refers to other files, as HTML is read."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.links, self.policy, self.title = [], [], "", ""
        self._tag = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self._tag = tag
        given = dict(attrs)
        self.links += [given[name] for name in ("src", "href") if name in given]
        if tag == "script":
            self.scripts.append([given, ""])
        elif given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]

    def handle_endtag(self, tag):
        self._tag = None

    def handle_data(self, data):
        if self._tag == "script":
            self.scripts[-1][1] += data
        elif self._tag == "title":
            self.title += data


def read(path):
    """Return the parts of a page, and its recorded run."""
    parts = Parts(path.read_text("utf-8"))
    (data,) = (text for given, text in parts.scripts if given.get("id") == "biella-run")
    return parts, json.loads(data)


def unpack(block):
    """Return the values of a block; an implementation of its own, by bytes."""
    planes = zlib.decompress(base64.b64decode(block))
    count = len(planes) // 8
    mixed = bytes(planes[k * count + n] for n in range(count) for k in range(8))
    return np.frombuffer(mixed, "<f8")


def test_a_block_has_all_bits():
    values = np.array([0.0, -0.0, 1 / 3, -1e300, np.inf, 5e-324])
    assert unpack(pack(values)).tobytes() == values.tobytes()


def test_all_values_are_in_the_file(recorded, tmp_path):
    file, path, result = recorded
    written = write_page_file(ResultSession(path, file), tmp_path / "run.html")
    assert (written.every, written.signals) == (1, len(result))
    assert written.size == (tmp_path / "run.html").stat().st_size
    _, run = read(tmp_path / "run.html")
    assert np.array_equal(unpack(run["times"]), result.t) and run["bins"] == 2001
    (signals,) = (event for event in run["events"] if event["event"] == "signals")
    for signal in signals["list"]:
        (block,) = run["columns"][signal["element_offset"]]
        assert unpack(block).tobytes() == result[signal["path"]].tobytes(), signal["path"]
        assert run["newest"][signal["element_offset"]] == result[signal["path"]][-1]
    assert run["hello"]["mode"] == "result"
    assert {"diagram", "mechanisms", "parameters", "state"} <= {e["event"] for e in run["events"]}


def test_bins_keep_every_peak(recorded, tmp_path):
    file, path, result = recorded
    session = ResultSession(path, file)
    write_page_file(session, tmp_path / "run.html", signals=["plant", "dr*"], every=7)
    _, run = read(tmp_path / "run.html")
    assert run["bins"] == 286 and run["last"] == 2.0
    assert np.array_equal(unpack(run["times"]), result.t[::7])
    (signals,) = (event for event in run["events"] if event["event"] == "signals")
    assert {s["path"]: s["element_offset"] for s in signals["list"]} == {"drive.y": 0, "plant.y": 1}
    for signal in signals["list"]:
        low, high = (unpack(block) for block in run["columns"][signal["element_offset"]])
        for k in range(286):
            rows = result[signal["path"]][7 * k : 7 * k + 7]
            assert (low[k], high[k]) == (rows.min(), rows.max())


@pytest.mark.parametrize("every", [1, 5])
def test_poses_and_forces_are_those_of_the_first_row_of_a_bin(tmp_path, every):
    spec = importlib.util.spec_from_file_location("slider_crank_of_page", SLIDER_CRANK)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    d = example.diagram()
    model = d.compile(flat=show_mechanisms(flatten(d)))
    result = simulate(model, 0.1, record=["*"], out=tmp_path / "run.h5")
    session = ResultSession(tmp_path / "run.h5", SLIDER_CRANK)
    written = write_page_file(session, tmp_path / "run.html", signals=["drive"], every=every)
    assert written.mechanisms == 1 and written.signals == 1
    _, run = read(tmp_path / "run.html")
    (poses,) = ([unpack(block) for block in own] for own in run["poses"])
    wanted = [
        result[f"plant.{body}.{what}"][::every]
        for body in ("crank", "rod", "slider")
        for what in ("position", "rotation")
    ]
    assert np.array_equal(np.transpose(poses), np.hstack(wanted))
    (efforts,) = ([unpack(block) for block in own] for own in run["efforts"])
    (listed,) = (event["list"] for event in run["events"] if event["event"] == "mechanisms")
    joints = [item for item in listed[0]["efforts"] if item["group"] == "joint"]
    assert {item["name"] for item in joints} == {"main", "crank_pin", "wrist_pin", "slide"}
    for item in joints:
        found = np.transpose(efforts[item["value"] : item["value"] + 3])
        assert np.array_equal(found, result[f"plant.{item['name']}.{item['kind']}"][::every])


def test_a_mechanism_without_recorded_poses_is_named(tmp_path, capsys):
    path = tmp_path / "run.h5"
    command = ["simulate", str(SLIDER_CRANK), "--until", "0.1", "--out", str(path)]
    assert cli.main([*command, "--record", "drive"]) == 0
    command = ["page", str(path), str(SLIDER_CRANK), "-o", str(tmp_path / "run.html")]
    assert cli.main(command) == 0
    assert "poses of its bodies were not recorded: plant" in capsys.readouterr().out


def test_a_long_run_is_put_in_bins_until_it_fits(recorded, tmp_path, capsys):
    file, path, _ = recorded
    out = tmp_path / "run.html"
    whole = write_page_file(ResultSession(path, file), out).size
    size = 0.7 * whole / 1e6
    command = ["page", str(path), str(file), "-o", str(out), "--size", str(size)]
    assert cli.main(command) == 0
    told = capsys.readouterr().out
    (every,) = map(int, re.findall(r"one point for (\d+) rows", told))
    assert every > 1 and out.stat().st_size <= 1e6 * size
    assert read(out)[1]["every"] == every
    with pytest.raises(BiellaError, match=r"MB, more than 0\.005\. Name fewer signals"):
        write_page_file(ResultSession(path, file), out, largest=0.005)
    with pytest.raises(BiellaError, match=r"a larger --every"):
        write_page_file(ResultSession(path, file), out, every=1, largest=size)
    assert read(out)[1]["every"] == every  # untouched


def test_names_do_not_end_scripts(tmp_path):
    d = Diagram("</title></script><script>alert(1)</script>", step=0.1)
    d.add(Gain(2.0), "g", u=d.add(Sine(), "c"))
    simulate(d, 1.0, record=["*"], out=tmp_path / "run.h5")
    session = ResultSession(tmp_path / "run.h5")
    write_page_file(session, tmp_path / "run.html")
    parts, run = read(tmp_path / "run.html")
    assert run["hello"]["name"] == d.name and parts.title.startswith(d.name)
    kinds = [given["type"] for given, _ in parts.scripts]
    assert kinds == ["application/json", "importmap", "module"]
    assert parts.scripts[2][1] == r"const a = '<\/script>', b = `<\!--`; import(`./scene.js`);"


def test_nothing_is_loaded_from_elsewhere(recorded, tmp_path, built):
    _, path, _ = recorded
    write_page_file(ResultSession(path), tmp_path / "run.html")
    parts, _ = read(tmp_path / "run.html")
    assert parts.links == []
    links = json.loads(parts.scripts[1][1])["imports"]
    kind, _, scene = links["./scene.js"].partition(",")
    assert kind == "data:text/javascript;base64"
    assert base64.b64decode(scene) == (built / "assets" / "scene.js").read_bytes()
    assert parts.policy.startswith("default-src 'none'; script-src 'sha256-")
    assert not re.search(r"connect-src|https?:|script-src[^;]*unsafe", parts.policy)


def test_files_of_something_else_are_kept(recorded, tmp_path):
    _, path, _ = recorded
    session = ResultSession(path)
    out = tmp_path / "mine.html"
    out.write_text("<p>mine")
    for target in (out, tmp_path):
        with pytest.raises(BiellaError, match="was not written by `biella page`"):
            write_page_file(session, target)
    assert out.read_text() == "<p>mine"
    out.unlink()
    write_page_file(session, out)
    write_page_file(session, out)  # an earlier page of biella is replaced
    assert MARK in out.read_text("utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["mine.html"]
    with pytest.raises(BiellaError, match="nowhere"):
        write_page_file(session, tmp_path / "nowhere" / "run.html")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"signals": ["plnt.y"]}, r"no signal matches `plnt\.y`\. Did you mean"),
        ({"signals": ["nosuch"]}, r"no signal matches `nosuch`\. Signals: .*plant\.y.*match"),
        ({"every": 0}, "--every must be from 1 to 2001"),
        ({"largest": float("nan")}, "--size must be a number"),
    ],
)
def test_wrong_options_are_refused(recorded, tmp_path, options, words):
    _, path, _ = recorded
    with pytest.raises(BiellaError, match=words):
        write_page_file(ResultSession(path), tmp_path / "run.html", **options)
    assert not any(tmp_path.iterdir())


def test_wrong_files_are_refused(recorded, tmp_path, capsys, built):
    file, path, _ = recorded
    for arguments, words in (
        ([tmp_path / "no.h5"], "there is no file"),
        ([path, tmp_path / "no.py"], "there is no file"),
        ([file], "is no result .h5"),
    ):
        assert cli.main(["page", *map(str, arguments)]) == 1
        assert words in capsys.readouterr().err
    (built / "index.html").unlink()
    with pytest.raises(BiellaError, match="was not built"):
        write_page_file(ResultSession(path), tmp_path / "run.html")
