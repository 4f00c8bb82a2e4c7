"""Mass, inertia, place and initial velocity of parts."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from biella import DiagramError

from .models import BAR, HINGE, build


def test_mass_and_products_of_inertia(tmp_path):
    """A plate of three particles: Ixy = ∫xy dm is minus the element of the tensor.

    The moments are given about a marker away from the center, with turned axes.
    """
    masses = np.array([1.0, 2.0, 3.0])
    points = np.array([[0.1, 0.0, 0.02], [0.0, 0.2, 0.0], [-0.1, 0.05, 0.1]])
    turned = Rotation.from_euler("ZXZ", [30, 40, 50], degrees=True).as_matrix()
    seen = (points - [0.1, 0.2, 0.3]) @ turned * 1e3  # from the marker, in its axes, in mm
    moments = {
        **{f"i{a}{a}": float(masses @ (seen**2).sum(1) - masses @ seen[:, n] ** 2)
           for n, a in enumerate("xyz")},
        **{f"i{'xyz'[a]}{'xyz'[b]}": float(masses @ (seen[:, a] * seen[:, b]))
           for a, b in ((0, 1), (1, 2), (2, 0))},
    }  # fmt: skip
    com = masses @ points / masses.sum()
    text = (
        "part create rigid_body name_and_position part_name=.m.p location=10, 20, 30 "
        "orientation=90, 0, 0\n"
        f"marker create marker_name=.m.p.cm location={','.join(repr(float(x * 1e3)) for x in com)} "
        "orientation=7, 8, 9 relative_to=.m.p\n"
        "marker create marker_name=.m.p.im location=100, 200, 300 orientation=30, 40, 50 "
        "relative_to=.m.p\n"
        "part create rigid_body mass_properties part_name=.m.p mass=6 "
        "center_of_mass_marker=.m.p.cm inertia_marker=.m.p.im "
        + " ".join(f"{name}={value!r}" for name, value in moments.items())
    )
    (body,) = build(tmp_path, text).bodies
    away = points - com
    expected = sum(
        m * (d @ d * np.eye(3) - np.outer(d, d)) for m, d in zip(masses, away, strict=True)
    )
    assert body.mass == 6 and body.free
    np.testing.assert_allclose(body.com, com, rtol=1e-15)
    np.testing.assert_allclose(body.inertia, expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(body.position, [0.01, 0.02, 0.03], rtol=1e-15)
    assert body.rotation.tolist() == [[0, -1, 0], [1, 0, 0], [0, 0, 1]]


def test_units_of_inches_pounds_and_minutes(tmp_path):
    start = (
        "defaults units length=inch mass=pound_mass force=pound_force time=minute angle=rad\n"
        "model create model_name=m\n"
    )
    text = BAR.replace("100, 0, 0", "4, 0, 0") + HINGE.replace("bar.end", "bar.cm")
    text += (
        "force create body gravitational gravity_field_name=g z_component_gravity=-100\n"
        "constraint create motion_generator motion_name=.m.turn joint_name=.m.hinge "
        'function="2*time"'
    )
    system = build(tmp_path, text, start=start)
    body = system.bodies[0]
    assert body.position[0] == pytest.approx(0.1016) and body.mass == pytest.approx(0.90718474)
    assert body.inertia[0, 0] == pytest.approx(1000 * 0.45359237 * 0.0254**2)
    assert system.gravity[2] == pytest.approx(-100 * 0.0254 / 3600)
    assert system.drivers[0].law.value(60.0) == pytest.approx(2.0)


def test_initial_velocity_is_of_the_center_of_mass(tmp_path):
    text = BAR.replace("bar.cm location=0, 0, 0", "bar.cm location=0, 10, 0 orientation=90, 0, 0")
    text += (
        "part create rigid_body initial_velocity part_name=.m.bar vx=200 wx=90 wy=0 no_vy=true\n"
        "marker create marker_name=.m.ground.axes location=0, 0, 0 orientation=0, 90, 0\n"
    )
    (body,) = build(tmp_path, text).bodies
    # wx is about x of cm, which is y of the world; the center is 10 mm along y: no difference.
    np.testing.assert_allclose(body.angular_velocity, [0, np.pi / 2, 0], atol=1e-16)
    np.testing.assert_allclose(body.velocity, [0.2, 0, 0], atol=1e-16)
    more = (
        "part modify rigid_body initial_velocity part_name=.m.bar wx=0 wz=90 vm=.m.ground.axes vy=5"
    )
    (body,) = build(tmp_path, text, more).bodies
    np.testing.assert_allclose(body.angular_velocity, [0, 0, np.pi / 2], atol=1e-16)
    # v_origin = v_center - ω × r with r = 10 mm along y; x, y of vm are x, z of the world.
    np.testing.assert_allclose(body.velocity, [0.2 + 0.01 * np.pi / 2, 0, 0.0], atol=1e-15)


CASES = {
    "no center": ("mass=2 center_of_mass_marker=.m.bar.cm", "mass=2",
                  r"line 3: `.m.bar` has a mass and no `center_of_mass_marker`"),
    "density": ("mass=2", "density=1", r"line 6: the mass of `.m.bar` is that of its shapes"),
    "negative mass": ("mass=2", "mass=-2", r"line 3: body `bar` has mass -2 kg"),
    "nonphysical": ("izz=2500", "izz=9000", r"line 3: .*which no body has"),
    "foreign center": ("center_of_mass_marker=.m.bar.cm", "center_of_mass_marker=.m.ground.base",
                       r"line 6: `center_of_mass_marker` of `.m.bar` is `.m.ground.base`"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_errors_in_parts(tmp_path, case):
    old, new, message = CASES[case]
    assert old in BAR
    with pytest.raises(DiagramError, match=rf"model.cmd, {message}"):
        build(tmp_path, BAR.replace(old, new))


def test_ground_has_its_name_and_place(tmp_path):
    part = "part create rigid_body name_and_position part_name={} {}"
    assert not build(tmp_path, part.format(".m.ground", "ground_part=yes location=0,0,0")).bodies
    with pytest.raises(DiagramError, match="line 3: the `location` of the ground is that of"):
        build(tmp_path, part.format(".m.ground", "location=1,0,0"))
    with pytest.raises(DiagramError, match=r"line 3: `.m.base` is made the ground: call it"):
        build(tmp_path, part.format(".m.base", "ground_part=yes"))
