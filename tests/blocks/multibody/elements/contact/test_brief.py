"""Contacts that are over within a few steps of fixed length are reported: their energy changes."""

from __future__ import annotations

import re
import warnings
from typing import Literal

import numpy as np
import pytest

from biella import BiellaWarning, Diagram, Result, System, simulate
from biella.blocks.multibody import HuntCrossley, Plane, Sphere

pytestmark = pytest.mark.engine

HEIGHT, RADIUS = 0.5, 0.02


def bounce(
    step: float, mode: Literal["continuous", "internal"], **options
) -> tuple[Result, list[str]]:
    """An elastic ball that falls by 0.48 m, and all warnings of contacts in the run.

    K δ^1.5 with 1e6 N/m^1.5 and 0.05 kg: a contact at 3.07 m/s lasts for 2.94 δ/v = 3.1 ms.
    """
    s = System("bounce")
    ball = s.body("ball", mass=0.05, inertia=(8e-6,) * 3, position=(0, 0, HEIGHT), free=True)
    floor = Plane(s.ground.marker("floor"))
    s.contact(
        "floor", Sphere(ball.marker("center"), RADIUS), floor, law=HuntCrossley(stiffness=1e6)
    )
    d = Diagram("bounce", step=step, **options)
    d.add(s.block(outputs=["ball.position", "floor.energy"], mode=mode), "plant")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = simulate(d, 1.2, error_estimate=False)
    return result, [str(w.message) for w in caught if "too coarse for `floor`" in str(w.message)]


@pytest.mark.parametrize("mode", ["continuous", "internal"])
def test_contacts_of_a_few_steps_are_reported(mode):
    """In steps of 1 ms the ball loses 7 % of its energy at the first contact."""
    result, found = bounce(1e-3, mode)
    height = result["plant.ball.position"][result.t > 0.4, 2].max() - RADIUS
    assert height < 0.96 * (HEIGHT - RADIUS)
    (text,) = found
    assert re.search(r"2 of its 2 contacts lasted for at most 6 steps, the longest .* 0\.003", text)
    assert "take steps of up to 0.0003 s" in text


@pytest.mark.parametrize("mode", ["continuous", "internal"])
def test_those_of_many_steps_are_not(mode):
    """With the steps that the warning names, the height is right to 0.1 %."""
    result, found = bounce(2.5e-4, mode)
    height = result["plant.ball.position"][result.t > 0.4, 2].max() - RADIUS
    np.testing.assert_allclose(height, HEIGHT - RADIUS, rtol=1e-3)
    assert not found


def test_solvers_with_a_tolerance_choose_their_steps():
    result, found = bounce(1e-2, "continuous", solver="dopri5", tolerance=1e-6)
    # Between ticks of 10 ms the height falls by g (5 ms)²/2 = 0.1 mm below its peak.
    height = result["plant.ball.position"][result.t > 0.4, 2].max() - RADIUS
    assert HEIGHT - RADIUS - 3e-4 < height < HEIGHT - RADIUS + 1e-5
    assert not found


def test_a_contact_that_began_before_the_run_is_not_judged():
    s = System("rest")
    ball = s.body("ball", mass=0.05, inertia=(8e-6,) * 3, position=(0, 0, 0.0195), free=True)
    floor = Plane(s.ground.marker("floor"))
    s.contact(
        "floor", Sphere(ball.marker("center"), RADIUS), floor, law=HuntCrossley(stiffness=1e6)
    )
    d = Diagram("rest", step=1e-3)
    d.add(s.block(outputs=["ball.position"]), "plant")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BiellaWarning)
        simulate(d, 0.01, error_estimate=False)
    assert not [w for w in caught if "at most 6 steps" in str(w.message)]
