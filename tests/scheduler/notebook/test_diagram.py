"""Diagrams and subsystems in notebooks."""

import re

import pytest

from biella import Diagram, Subsystem
from biella.blocks import Gain, Integrator, Sine, Sum, UnitDelay
from biella.blocks.authoring import AbstractBlock
from biella.scheduler.notebook._diagram import DRAWN


def make_inner(blocks=3):
    s = Diagram("inner <b>")
    at = s.input("u", unit="m")
    for n in range(blocks):
        at = s.add(Gain(1.0), f"g{n}", u=at)
    s.output("y", at)
    return Subsystem(s)


def make_loop():
    d = Diagram("loop <script>", step=1e-3)
    ref = d.input("ref", doc="wanted <i>")
    error = d.add(Sum("+-"), "error", u1=ref)
    plant = d.add(Integrator(), "plant", u=d.add(Gain(8.0), "p", u=error))
    d.connect(d.add(UnitDelay(), "held", u=plant, period=0.02), error["u2"])
    d.output("answer", plant)
    return d


def texts(html):
    """Return what is between the tags of an output, without its styles."""
    return re.sub(r"<[^>]+>", "\n", html.partition("</style>")[2])


def test_a_diagram_shows_its_picture_rates_blocks_and_ports():
    made = make_loop()._repr_html_()
    shown = texts(made)
    assert made.count("<svg") == 1 and "problem" not in shown
    assert "loop &lt;script&gt;" in shown and "<script" not in made and "<i>" not in made
    assert "4 blocks · step 0.001 s · rk4" in shown and "20 ms: " in shown
    row = re.findall(r"<td>p</td>.*?</tr>", made)[0]
    assert "Gain" in row and "continuous" in row and "k = 8" in row
    assert "wanted &lt;i&gt;" in shown and "answer" in shown


def test_problems_are_shown_instead_of_raised():
    d = make_loop()
    d.add(Gain(1.0), "loose")
    d.add(Gain(2.0), "free")
    made = d._repr_html_()
    assert "2 problems" in made and "<code>loose.u</code>" in made and "<code>free.u</code>" in made
    assert made.count("<svg") == 1 and "<td>loose</td>" in made


def test_an_empty_diagram_is_shown():
    assert "no blocks" in Diagram("empty")._repr_html_()


def test_a_subsystem_shows_what_is_inside():
    block = make_inner()
    made = block._repr_html_()
    assert "inner &lt;b&gt;" in made and "<b>>" not in made
    assert made.count("<svg") == 1 and "3 blocks" in made and "2 ports" in made
    assert repr(block) == "Subsystem(Diagram('inner <b>', 4 blocks))"
    trigger = Subsystem(block.diagram, trigger="rising")
    assert repr(trigger) == "Subsystem(Diagram('inner <b>', 4 blocks), trigger)"
    assert "triggered" in trigger._repr_html_()


def test_a_subsystem_that_does_not_compile_alone_is_drawn():
    s = Diagram("open")
    s.output("y", s.add(Gain(1.0), "g"))
    made = Subsystem(s)._repr_html_()
    assert "<svg" in made and "problem" not in texts(made)


def test_subsystems_are_closed_where_the_picture_would_be_too_large():
    d = Diagram("many")
    at = d.add(Sine(), "ref")
    for n in range(DRAWN // 10 + 1):
        at = d.add(make_inner(10), f"s{n}", u=at)
    made = d._repr_html_()
    assert "Subsystems are closed." in made and made.count("<svg") == 1
    assert ">g3</text>" not in made and "<td>s0.g3</td>" in made
    small = Diagram("few")
    small.add(make_inner(10), "s0", u=small.add(Sine(), "ref"))
    assert ">g3</text>" in small._repr_html_()


@pytest.mark.parametrize("count", [2000])
def test_a_large_diagram_is_listed_in_part(count, monkeypatch):
    d = Diagram("large")
    at: AbstractBlock = d.add(Sine(), "ref")
    for n in range(count):
        at = d.add(Gain(1.0), f"g{n}", u=at)
    monkeypatch.setattr(
        "biella.scheduler.notebook._diagram.arrange", lambda *_, **__: pytest.fail("drawn")
    )
    made = d._repr_html_()
    assert "not drawn here" in made and f"… and {count + 1 - 50} more" in made
    assert len(made) < 30_000
