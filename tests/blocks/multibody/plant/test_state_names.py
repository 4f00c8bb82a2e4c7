"""Names of states: the state of that name is what the output of that name shows."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram
from biella.blocks.multibody import System
from biella.blocks.multibody.plant._state_names import name_states
from biella.blocks.multibody.plant._tree import grow_tree
from biella.scheduler.engine._engine import Instance

pytestmark = pytest.mark.engine


def chain(*, backward: bool) -> System:
    """A revolute, a cylindrical and a universal joint in a row; the first may run inwards."""
    s = System("chain", gravity=(0, 0, 0))
    one = s.body("one", mass=1.0, inertia=0.1, position=(0.2, 0, 0))
    two = s.body("two", mass=1.0, inertia=0.1, position=(0.4, 0, 0))
    three = s.body("three", mass=1.0, inertia=0.1, position=(0.6, 0, 0))
    ends = (one, s.ground) if backward else (s.ground, one)
    s.revolute("hinge", *ends, at=(0, 0, 0), axis=(0, 0, 1))
    s.cylindrical("rail", one, two, at=(0.3, 0, 0), axis=(1, 0, 0))
    s.prismatic("slide", two, three, at=(0.5, 0, 0), axis=(0, 1, 0))
    return s


@pytest.mark.parametrize("backward", [False, True])
def test_a_state_is_the_output_of_its_name(backward: bool) -> None:
    s = chain(backward=backward)
    names = name_states(grow_tree(s))
    assert len(names) == 8
    assert names[0] == ("-hinge.angle" if backward else "hinge.angle")
    paths = [name.removeprefix("-") for name in names]
    d = Diagram("d", step=1e-3)
    d.add(s.block(outputs=paths), name="plant")
    values = np.arange(1, 9) / 10.0
    with Instance(d.compile()) as instance:
        instance.initialize()
        instance.states[:] = values
        instance.touch()
        instance.evaluate()
        for name, path, value in zip(names, paths, values, strict=True):
            sign = -1.0 if name.startswith("-") else 1.0
            assert instance.get(f"plant.{path}") == pytest.approx(sign * value, abs=1e-15), name


def test_a_ball_has_euler_parameters_and_a_free_body_its_place() -> None:
    s = System("both", gravity=(0, 0, 0))
    held = s.body("held", mass=1.0, inertia=0.1, position=(0.2, 0, 0))
    s.spherical("ball", s.ground, held, at=(0, 0, 0))
    s.body("loose", mass=1.0, inertia=0.1, free=True)
    names = name_states(grow_tree(s))
    assert [name for name in names if name.startswith("ball")] == [
        *(f"ball.rotation[{k}]" for k in range(4)),
        *(f"ball.angular_velocity[{k}]" for k in range(3)),
    ]
    loose = [name for name in names if name.startswith("loose")]
    assert loose[:3] == [f"loose.position[{k}]" for k in range(3)]
    assert loose[3:7] == [f"loose.rotation[{k}]" for k in range(4)]
    assert len(loose) == 13
    assert "" not in names
