"""Mechanisms in notebooks."""

import base64
import io
import re

import pytest
from matplotlib.image import imread

from biella import System
from biella.blocks.multibody.drawing import _notebook
from biella.blocks.multibody.mechanisms import slider_crank


def picture_of(html):
    data = re.findall(r'src="data:image/png;base64,([^"]+)"', html)[0]
    return imread(io.BytesIO(base64.b64decode(data)))


@pytest.mark.engine
def test_a_mechanism_shows_its_picture_and_its_parts():
    system = slider_crank()
    made = system._repr_html_()
    assert "3 bodies · 4 joints · 1 element" in made and "problem" not in made.split("</style>")[1]
    assert picture_of(made).shape[1] > 300
    assert "<td>crank_pin</td><td>revolute</td><td>crank.pin – rod.pin</td>" in made
    assert "<td>motor</td><td>Load</td><td>crank.center</td>" in made
    assert "<td>rod</td><td>2 kg</td><td>0.2, 0.2, 0.2</td>" in made


def test_problems_are_shown_with_the_pose_as_given():
    system = System("<script>", planar=True)
    system.body("bob", mass=1.0, inertia=0.25)
    made = system._repr_html_()
    assert "1 problem" in made and "<code>bob</code>" in made and "<script" not in made
    assert picture_of(made).size and "<td>0.25</td>" in made


def test_a_mechanism_without_bodies():
    made = System("empty")._repr_html_()
    assert "no bodies" in made and "<img" not in made


def test_the_pose_is_that_of_a_run(monkeypatch):
    """Joints that are open in the description are closed in the picture."""
    system = System("pendulum", planar=True)
    bob = system.body("bob", mass=1.0, inertia=0.1, position=(0.3, -0.2))
    system.revolute("pin", system.ground.marker("o"), bob.marker("top"))
    poses, problems = _notebook._assemble(system)
    assert poses is not None and not problems and abs(poses.positions[0, 0]).max() < 1e-9


def test_products_of_inertia_and_large_mechanisms(monkeypatch):
    system = System("skew")
    tensor = [[2.0, 0.1, 0.0], [0.1, 3.0, 0.0], [0.0, 0.0, 4.0]]
    system.body("b", mass=1.0, inertia=tensor, free=True)
    monkeypatch.setattr(_notebook, "DRAWN", 0)
    made = system._repr_html_()
    assert "2, 3, 4, with products" in made and "not drawn here" in made and "<img" not in made
