"""A diagram without a file in the studio."""

import pytest

from biella import Diagram
from biella.blocks import Gain
from biella.studio.notebook._session import DiagramSession

from .diagrams import make_loop


@pytest.mark.engine
def test_the_diagram_itself_is_shown():
    session = DiagramSession(make_loop())
    session.load()
    assert session.introduce() == {"name": "loop", "file": "", "step": 1e-3}
    (found,) = [m for m in session.describe() if m["event"] == "diagram"]
    assert set(found["blocks"]) - {"realtime"} == {"error", "ref", "x", "k"}
    assert session._read_stamp() == session._stamp == ()


def test_problems_are_shown_on_the_page():
    d = Diagram("open")
    d.add(Gain(1.0), "g")
    session = DiagramSession(d)
    session.load()
    (found,) = [m for m in session.describe() if m["event"] == "problems"]
    assert "`g.u` is not connected" in found["list"][0]["text"]
    assert session.introduce()["name"] == "open"
