"""Springs between markers, against small equations of motion."""

from __future__ import annotations

import numpy as np
import pytest

from biella.blocks.multibody import Input, System, Table

from ..small_systems import run, slider, solve

pytestmark = pytest.mark.engine


def test_coefficients_of_a_spring_follow_time_length_and_speed():
    s, body = slider(position=1.2)
    s.spring(
        "spring",
        s.ground.marker("a"),
        body.marker("b"),
        stiffness="30 + 5*l**2 + 2*t",
        damping=Table([-1.0, 0.0, 1.0], [0.5, 1.0, 3.0], "cubic", of="v"),
        force=Table([0.5, 1.0, 1.5], [1.0, 0.0, -2.0], of="l"),
        free_length=1.0,
    )
    _, (place,) = run(s, 2.0, ["slide.displacement"])
    damping = s["spring"].damping
    force = s["spring"].force

    def slope(t, y):
        x, v = y
        pull = (30 + 5 * x**2 + 2 * t) * (x - 1) + damping.evaluate(v=v) * v + force.evaluate(l=x)
        return v, -pull / 2.0

    # The table of forces has a kink, where RK4 falls back to order two of a step.
    assert place[-1] == pytest.approx(solve(slope, 2.0, (1.2, 0.0))[0], abs=1e-6)


def test_a_spring_of_one_component_pushes_along_it_alone():
    s = System("tire", gravity=(0, 0, 0))
    body = s.body("mass", mass=2.0, inertia=0.1, position=(0.4, 0.0, 0.9), free=True)
    s.spring(
        "tire", s.ground.marker("road"), body.marker("hub"), stiffness=60.0, free_length=0.7,
        components="z",
    )  # fmt: skip
    _, (place,) = run(s, 1.0, ["mass.position"])

    def slope(_, y):
        length = np.hypot(0.4, y[0])
        return y[1], -60.0 * (length - 0.7) * y[0] / length / 2.0

    assert place[-1, 2] == pytest.approx(solve(slope, 1.0, (0.9, 0.0))[0], abs=1e-9)
    assert np.abs(place[:, :2] - [0.4, 0.0]).max() < 1e-12


def test_an_input_that_moves_a_marker_acts_at_once_on_what_shows_it():
    s, body = slider()
    road = s.ground.marker("road", (1, 0, 0), motion={"x": Input("x")})
    s.spring("spring", road, body.marker("end"), stiffness=5.0)
    shown = ["ground.road.position", "slide.displacement", "potential_energy", "mass.position"]
    block = s.block(outputs=shown)
    direct = {
        port.name for port, used in zip(block.outputs, block.feedthrough, strict=True) if used
    }
    assert direct == {"ground.road.position", "potential_energy"}
