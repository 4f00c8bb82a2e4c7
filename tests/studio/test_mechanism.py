"""Mechanisms in the studio: poses are those of the mechanism, and watching changes no bit."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from biella import simulate
from biella.scheduler.compile._flatten import flatten
from biella.studio._mechanism import list_poses, show_poses

from .client import open_studio

pytestmark = pytest.mark.engine

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def example():
    sys.path.insert(0, str(EXAMPLES))
    yield importlib.import_module("04_slider_crank")
    sys.path.remove(str(EXAMPLES))


def test_added_outputs_change_no_bit_of_the_others(example):
    d = example.diagram()
    plain = simulate(d, 0.5, record=["*"])
    shown = simulate(d.compile(flat=show_poses(flatten(d))), 0.5, record=["*"])
    assert set(shown) - set(plain) == {"plant.slider.rotation"} - set(plain)
    for path in plain:
        assert np.array_equal(plain[path], shown[path]), path
    d["plant"].system.validate()
    poses = list_poses(d["plant"].system)
    assert all(f"plant.{name}" in shown for name in poses) and len(poses) == 6


def test_poses_of_a_run_close_the_loop(example):
    """Kinematics of a slider-crank: with crank r, rod l, x = r cos φ + √(l² - r² sin² φ)."""
    with open_studio(EXAMPLES / "04_slider_crank.py") as (_, _, page):
        page.wait(lambda: "mechanisms" in page.events)
        (mechanism,) = page.events["mechanisms"]["list"]
        assert [body["name"] for body in mechanism["bodies"]] == ["crank", "rod", "slider"]
        assert mechanism["planar"]
        assert {j["name"]: (j["body_i"], j["body_j"]) for j in mechanism["joints"]} == {
            "main": (-1, 0), "crank_pin": (0, 1), "wrist_pin": (1, 2), "slide": (-1, 2),
        }  # fmt: skip
        assert mechanism["joints"][1]["p_i"] == [0.05, 0.0, 0.0]
        page.do("poses", mechanism="plant", on=True)
        page.do("run")
        found = page.wait(lambda: [m for m in page.binary if m[0][0] == 2][10:])
    times = []
    for head, content in found:
        assert head[1:4] == (0, 7, 3)
        times.append(content[0])
        crank, _, slider = content[1:].reshape(3, 7)
        angle = 2.0 * np.arctan2(crank[6], crank[3])
        r, length = example.CRANK, example.ROD
        x = r * np.cos(angle) + np.sqrt(length**2 - (r * np.sin(angle)) ** 2)
        assert slider[:3] == pytest.approx([x, 0.0, 0.0], abs=1e-9)
        assert crank[:2] == pytest.approx([r / 2 * np.cos(angle), r / 2 * np.sin(angle)], abs=1e-9)
    assert times == sorted(times)


def test_a_picture_at_a_recorded_time(example):
    with open_studio(EXAMPLES / "04_slider_crank.py") as (session, _, page):
        assert "nothing is recorded yet" in page.refused("poses", mechanism="plant", t=0.1)
        page.do("factor", value=0.0)
        page.do("run")
        page.wait(lambda: session.view.rows.end > 600)
        page.do("poses", mechanism="plant", t=0.25)
        _, content = page.wait(lambda: [m for m in page.binary if m[0][0] == 2])[0]
    expected = simulate(example.diagram(), 0.25, record=["plant.*"])
    assert content[0] == 0.25
    assert np.array_equal(content[1:4], expected["plant.crank.position"][-1])
    assert np.array_equal(content[4:8], expected["plant.crank.rotation"][-1])
