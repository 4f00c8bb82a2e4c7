"""Changes from a page: the file is written, and loaded again."""

import json
import sys
import textwrap

import pytest

from biella.studio._session import LiveSession
from biella.studio.edit._offer import Offer
from biella.studio.notebook._session import DiagramSession

from ..client import RIG, open_studio, write_rig
from ..notebook.diagrams import make_loop

pytestmark = pytest.mark.engine


def test_a_page_writes_a_value_and_the_run_has_it(tmp_path):
    pytest.importorskip("libcst")
    file = write_rig(tmp_path)
    with open_studio(file) as (session, _, page):
        page.wait(lambda: "editable" in page.events)
        assert page.events["editable"]["parameters"]["p.k"] == ""
        assert "edit" in page.hello["can"] and session.run is None
        page.do("run")
        page.do("set", path="p.k", value=3.0)
        first = session.run
        assert page.do("edit", kind="set", path="p.k", value=3.0)["done"] == "p.k = 3.0"
        assert "Gain(3.0), " in file.read_text()
        page.wait(lambda: session.run is not first and session.run.running)
        assert session.run is not None and session.run["p.k"] == 3.0 and session._set == {}
        page.wait(lambda: page.events["editable"]["undo"] == "p.k = 3.0")
        page.do("edit", kind="undo")
        assert file.read_text() == textwrap.dedent(RIG)
        assert {"type", "doc", "arguments"} == set(page.do("palette")["palette"][0])


def test_a_diagram_with_problems_is_corrected_from_the_page(tmp_path):
    pytest.importorskip("libcst")
    file = write_rig(tmp_path, RIG.replace("u1=ref", ""))
    with open_studio(file) as (session, _, page):
        page.wait(lambda: page.events.get("problems", {}).get("list"))
        page.do("edit", kind="connect", source="ref", target="error.u1")
        page.wait(lambda: not page.events["problems"]["list"])
        assert session._model is not None


def test_without_libcst_the_reason_is_told(monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, "biella.studio.edit._editor", raising=False)
    monkeypatch.setitem(sys.modules, "libcst", None)
    session = LiveSession(write_rig(tmp_path))
    session.load()
    assert "edit" not in session.can
    (found,) = [m for m in session.describe() if m["event"] == "editable"]
    assert "pip install 'biella[edit]'" in found["reason"] and json.dumps(found)


def test_a_diagram_without_a_file_cannot_be_changed():
    session = DiagramSession(make_loop())
    session.load()
    assert "edit" not in session.can and Offer(None).message["reason"] == "the diagram has no file"
