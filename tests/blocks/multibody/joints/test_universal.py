"""Both coordinates of a universal joint, in the tree and where it is cut."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from biella.blocks.multibody import Joint, Linear, System
from biella.blocks.multibody.plant._tree import grow_tree

from ..small_systems import run

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("twist", [0.0, 2.5, -2.5, -0.8])
@pytest.mark.parametrize("ground_first", [True, False])
@pytest.mark.parametrize("number", [0, 1])
def test_a_universal_joint_has_springs_outputs_and_drivers_on_both_angles(
    number, ground_first, twist
):
    """One angle is held by a driver; about the other the body swings: I q'' = -k (q - q0)."""
    s = System("cross", gravity=(0, 0, 0))
    body = s.body("body", mass=1.0, inertia=np.diag([0.4, 0.4, 0.4]))
    m_g = s.ground.marker("m", axis=(0, 0, 1))
    x, z = np.array([np.cos(twist), 0.0, np.sin(twist)]), np.array([0.0, 1.0, 0.0])
    m_b = body.marker("m", rotation=np.column_stack([x, np.cross(z, x), z]))
    ends = (m_g, m_b) if ground_first else (m_b, m_g)
    joint = s.universal("cross", *ends)
    start = initial_angles(joint)
    s.driver("hold", joint, start[1 - number], coordinate=1 - number)
    s.torsional_spring(
        "spring", joint, stiffness=3.0, free_angle=start[number] + 0.3, coordinate=number
    )
    names = [f"cross.angle_{n + 1}" for n in range(2)]
    t, (moving, held, speed, energy) = run(
        s, 2.0,
        [names[number], names[1 - number], f"{names[number]}_speed", "potential_energy"],
    )  # fmt: skip
    omega = np.sqrt(3.0 / 0.4)
    assert np.allclose(moving, start[number] + 0.3 - 0.3 * np.cos(omega * t), atol=1e-8)
    assert np.allclose(speed, 0.3 * omega * np.sin(omega * t), atol=1e-7)
    assert np.allclose(held, start[1 - number], atol=1e-11)
    assert np.allclose(energy, 0.5 * 3.0 * (0.3 * np.cos(omega * t)) ** 2, atol=1e-8)


def initial_angles(joint):
    """The coordinates of a joint by their definition, in the poses that were given."""
    axes: dict[str, Any] = {}
    for side, marker, frame in (
        ("i", joint.first, joint.frame_i),
        ("j", joint.second, joint.frame_j),
    ):
        world = marker.body.rotation @ frame
        axes |= {f"{name}_{side}": world[:, n] for n, name in enumerate("fgh")}
    values = []
    for c in joint.coordinates:
        of, start, about = axes[c.of], axes[c.start], axes[c.about]
        values.append(float(np.arctan2(of @ np.cross(about, start), of @ start)))
    return values


def test_angles_of_a_cut_universal_joint_change_at_their_rates():
    """Two shafts at 30° with a universal joint between them, which is cut."""
    s = System("shafts", gravity=(0, 0, 0))
    bend = np.radians(30.0)
    out = np.array([np.cos(bend), np.sin(bend), 0.0])
    first = s.body("in", mass=1.0, inertia=0.1, position=(-1, 0, 0))
    second = s.body("out", mass=1.0, inertia=0.1, position=out)
    s.revolute("a", s.ground, first, at=(-1, 0, 0), axis=(1, 0, 0))
    s.revolute("b", s.ground, second, at=out, axis=out)
    s.universal("cross", first, second, at=(0, 0, 0), axis=((0, 1, 0), (0, 0, 1)))
    s.driver("turn", cast(Joint, s["a"]), Linear(0.0, 5.0))
    assert [joint.name for joint in grow_tree(s).cuts] == ["cross"]
    names = [f"cross.angle_{n}{what}" for n in (1, 2) for what in ("", "_speed", "_acceleration")]
    t, values = run(s, 2.0, names)
    h = t[1] - t[0]
    for angle, speed, acceleration in (values[:3], values[3:]):
        assert np.ptp(angle) > 0.5
        # Central differences are off by h² / 6 of the third derivative, some 100 rad/s³.
        assert np.abs((angle[2:] - angle[:-2]) / (2 * h) - speed[1:-1]).max() < 1e-4
        assert np.abs((speed[2:] - speed[:-2]) / (2 * h) - acceleration[1:-1]).max() < 2e-3
