"""Orientations as angles, in and out, against scipy; the tilt of markers against new systems."""

from itertools import product

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from biella import Diagram, simulate
from biella.blocks.multibody import (
    System,
    from_angles,
    from_axis_angle,
    from_roll_pitch_yaw,
)
from biella.errors import DiagramError

SEQUENCES = [
    "".join(letters)
    for letters in [*product("XYZ", repeat=3), *product("xyz", repeat=3)]
    if letters[0] != letters[1] != letters[2]
]


def matrix(e) -> np.ndarray:
    return Rotation.from_quat([*e[1:], e[0]]).as_matrix()


def spin(rotation, omega=(0.0, 0.0, 0.0), *, names: list[str], until: float = 0.0, step=1e-3):
    """Run a free symmetric body, which keeps its angular velocity."""
    s = System("spin", gravity=(0, 0, 0))
    body = s.body(
        "body", mass=1.0, inertia=0.3, rotation=rotation, angular_velocity=omega, free=True
    )
    body.marker("tip", (0.1, 0, 0), rotation=from_angles("XYZ", (0.3, -0.2, 0.5)))
    d = Diagram("run", step=step)
    d.add(s.block(outputs=names), name="p")
    return simulate(d, until)


def test_there_are_twelve_sequences_of_each_kind() -> None:
    assert len(SEQUENCES) == 24


NOT_UNIQUE = pytest.mark.filterwarnings("ignore:.*are not unique")


@NOT_UNIQUE
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_sequences_are_those_of_scipy(sequence: str) -> None:
    generator = np.random.default_rng(SEQUENCES.index(sequence))
    for _ in range(5):
        angles = generator.uniform(-3, 3, 3)
        wanted = Rotation.from_euler(sequence, angles)
        e = from_angles(sequence, angles)
        assert matrix(e) == pytest.approx(wanted.as_matrix(), abs=1e-14)
        name = f"body.angles_{sequence}"
        found = spin(e, names=[name, f"body.tip.angles_{sequence}"])
        # Both take the principal branch at the start: the second angle within ±π/2, or 0 to π.
        assert found[f"p.{name}"][0] == pytest.approx(wanted.as_euler(sequence), abs=1e-12)
        tip = wanted * Rotation.from_euler("XYZ", (0.3, -0.2, 0.5))
        at_tip = found[f"p.body.tip.angles_{sequence}"][0]
        assert at_tip == pytest.approx(tip.as_euler(sequence), abs=1e-12)


def test_other_forms_are_those_of_scipy() -> None:
    axis, angle = np.array([1.0, -2.0, 0.5]), 2.3
    wanted = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis))
    e = from_axis_angle(axis, angle)
    assert matrix(e) == pytest.approx(wanted.as_matrix(), abs=1e-14)
    found = spin(e, names=["body.rotation_vector", "body.roll_pitch_yaw", "body.rotation"])
    assert found["p.body.rotation_vector"][0] == pytest.approx(wanted.as_rotvec(), abs=1e-13)
    assert found["p.body.roll_pitch_yaw"][0] == pytest.approx(wanted.as_euler("xyz"), abs=1e-13)
    assert matrix(from_roll_pitch_yaw(0.1, 0.2, 0.3)) == pytest.approx(
        Rotation.from_euler("xyz", (0.1, 0.2, 0.3)).as_matrix(), abs=1e-15
    )


@NOT_UNIQUE
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_branches_are_continuous_over_turns(sequence: str) -> None:
    """A spin about a tilted axis, three turns: increments match the rates, the rotation scipy."""
    omega = np.array([2.0, 3.0, 6.0])
    name = f"body.angles_{sequence}"
    r = spin(
        from_angles(sequence, (0.4, 0.8, 0.3)), omega, names=[name, "body.rotation"], until=2.7
    )
    angles = r[f"p.{name}"]
    for k in range(0, len(angles), 90):
        wanted = matrix(r["p.body.rotation"][k])
        assert Rotation.from_euler(sequence, angles[k]).as_matrix() == pytest.approx(
            wanted, abs=1e-12
        )
    # No angle jumps: 1 ms at 7 rad/s, and 1 / 0.012 more where one comes near a singular place.
    assert np.abs(np.diff(angles, axis=0)).max() < 0.7
    assert np.abs(angles).max() > np.pi


def test_rotation_vector_goes_on_beyond_half_a_turn() -> None:
    r = spin((1, 0, 0, 0), (0.0, 3.0, 4.0), names=["body.rotation_vector"], until=1.2)
    t = np.arange(len(r["p.body.rotation_vector"])) * 1e-3
    wanted = np.outer(t, [0.0, 3.0, 4.0])
    assert r["p.body.rotation_vector"] == pytest.approx(wanted, abs=1e-9)
    assert wanted[-1, 2] > 4.7


def test_pitch_runs_over_the_pole_with_a_warning() -> None:
    """A turn about y: the second angle of ZYX passes π/2 and goes on, the others stay at 0."""
    name = "body.angles_ZYX"
    with pytest.warns(match="angles ZYX of `body` are not unique near t = 0.785"):
        r = spin((1, 0, 0, 0), (0.0, 2.0, 0.0), names=[name], until=2.0)
    t = np.arange(len(r[f"p.{name}"])) * 1e-3
    wanted = np.outer(t, [0.0, 2.0, 0.0])
    assert r[f"p.{name}"] == pytest.approx(wanted, abs=1e-9)


def test_euler_angles_of_a_body_that_is_not_turned_are_not_unique() -> None:
    with pytest.warns(match="angles ZXZ of `body` are not unique near t = 0 s"):
        r = spin((1, 0, 0, 0), names=["body.angles_ZXZ"])
    assert r["p.body.angles_ZXZ"][0] == pytest.approx(np.zeros(3), abs=1e-12)


def test_angle_of_a_planar_body_counts_its_turns() -> None:
    s = System("plane", planar=True, gravity=(0, 0))
    s.body("body", mass=1.0, inertia=0.1, rotation=0.5, angular_velocity=9.0, free=True)
    d = Diagram("run", step=1e-3)
    d.add(s.block(outputs=["body.angle"]), name="p")
    found = simulate(d, 2.0)["p.body.angle"]
    assert found == pytest.approx(0.5 + 9.0 * np.arange(len(found)) * 1e-3, abs=1e-9)


def hinged(tilt=(0.0, 0.0, 0.0)) -> System:
    """A loop whose joints have markers of their own, the axis of one turned on its body."""
    s = System("tilted")
    a = s.body("a", mass=1.0, inertia=(0.02, 0.03, 0.04), position=(0.1, 0, 0))
    b = s.body("b", mass=1.0, inertia=(0.02, 0.03, 0.04), position=(0.3, 0.1, 0))
    turn = Rotation.from_rotvec(tilt).as_matrix()
    at_a = Rotation.from_euler("XYZ", (0.2, 0.3, -0.4)).as_matrix()
    s.revolute("main", s.ground, a, at=(0, 0, 0), axis=(0, 1, 0))
    s.cylindrical(
        "slide",
        a.marker("axle", (0.1, 0.05, 0.0), rotation=turn @ at_a),
        b.marker("bush", (-0.1, -0.05, 0.0), rotation=at_a),
    )
    s.spring("spring", s.ground.marker("wall", (0.4, 0.4, 0.2)), b.marker("eye"), stiffness=90.0)
    s.revolute("hang", s.ground, s.body("c", mass=0.5, inertia=0.01, position=(0, 0, -0.3)),
               at=(0, 0, 0), axis=(1, 0, 0))  # fmt: skip
    return s


def test_tilt_of_a_marker_is_that_of_a_rebuilt_system() -> None:
    tilt = (0.02, -0.03, 0.01)
    names = ["a.position", "b.position", "b.rotation", "slide.angle", "slide.torque", "main.force"]
    runs = []
    for system, given in ((hinged(tilt), None), (hinged(), {"p.a.axle.tilt": tilt})):
        d = Diagram("run", step=1e-3)
        d.add(system.block(outputs=names), name="p")
        with pytest.warns(match="moved by"):
            runs.append(simulate(d, 0.3, parameters=given))
    for name in names:
        rebuilt, tilted = (r[f"p.{name}"] for r in runs)
        assert tilted == pytest.approx(rebuilt, abs=1e-9)
    d = Diagram("run", step=1e-3)
    d.add(hinged().block(outputs=names), name="p")
    assert np.abs(simulate(d, 0.3)["p.b.position"] - runs[0]["p.b.position"]).max() > 1e-3


def test_tilt_of_a_planar_slide() -> None:
    """A block on a slide turned by 0.1 rad falls at g sin 0.1 along it."""
    s = System("slide", planar=True)
    block = s.body("block", mass=1.0, inertia=0.1)
    s.prismatic("rail", s.ground, block, at=(0, 0), axis=(1, 0))
    d = Diagram("run", step=1e-3)
    d.add(s.block(outputs=["rail.displacement", "block.position"]), name="p")
    r = simulate(d, 1.0, parameters={"p.ground.rail.tilt": 0.1})
    moved = -0.5 * 9.80665 * np.sin(0.1)
    assert r["p.rail.displacement"][-1] == pytest.approx(moved, abs=1e-9)
    wanted = [moved * np.cos(0.1), moved * np.sin(0.1), 0.0]
    assert r["p.block.position"][-1] == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: from_angles("XXY", (1, 2, 3)), "no sequence of angles 'XXY'"),
        (lambda: from_angles("XyZ", (1, 2, 3)), "no sequence of angles 'XyZ'"),
        (lambda: from_angles("XYZ", (1, 2)), "three angles"),
        (lambda: from_angles("XYZ", (1, 2, np.nan)), "must be finite"),
        (lambda: from_axis_angle((0, 0, 0), 1.0), "no direction"),
        (lambda: spin((1, 0, 0, 0), names=["body.angles_XXY"]), "no output `body.angles_XXY`"),
    ],
)
def test_bad_input(call, message) -> None:
    with pytest.raises(DiagramError, match=message):
        call()
