"""Cards written, and read back."""

from typing import Any

import numpy as np
import pytest

from biella import DiagramError
from biella.blocks.multibody import Formula, Input, Sine, System, mechanisms, read_s3d

from .card_sets import FIVE_BAR, SLIDER_CRANK, change, copy, run


def numbers(system):
    return {name: np.asarray(item.value) for name, item in system.parameters().items()}


def equal(a, b):
    """Compare two systems to rounding: parts, parameters, frames and formulas."""
    assert list(a.parts) == list(b.parts)
    one, other = numbers(a), numbers(b)
    assert list(one) == list(other)
    for name, value in one.items():
        np.testing.assert_allclose(value, other[name], rtol=1e-14, atol=1e-14, err_msg=name)
    for i, j in zip(a.joints, b.joints, strict=True):
        assert i.kind == j.kind
        np.testing.assert_allclose(i.frame_i, j.frame_i, atol=1e-14)
        np.testing.assert_allclose(i.frame_j, j.frame_j, atol=1e-14)


@pytest.mark.parametrize("source", [SLIDER_CRANK, FIVE_BAR])
@pytest.mark.parametrize("mass_center", ["legacy", "physical"])
def test_card_sets_read_back_equal(tmp_path, source, mass_center):
    cards = read_s3d(source, mass_center=mass_center)
    options: dict[str, Any] = {"start": cards.start, "end": cards.end}
    options["intervals"] = cards.intervals
    cards.system.to_s3d(tmp_path, settings=cards.settings, mass_center="physical", **options)
    back = read_s3d(tmp_path, mass_center="physical")
    equal(back.system, cards.system)
    assert (back.start, back.end, back.intervals) == (cards.start, cards.end, cards.intervals)
    assert back.settings == cards.settings


READY = {
    "slider_crank": (mechanisms.slider_crank, ("main.angle", "slide.displacement"), 5e-8),
    "one second": (
        lambda: mechanisms.slider_crank(planar=True, drive="one second"),
        ("main.angle", "slide.displacement"),
        5e-8,
    ),
    "five_bar": (mechanisms.five_bar, ("C1.angle",), 1e-9),
    "four_bar": (mechanisms.four_bar, ("foot0.angle",), 1e-9),
    "pendulum_on_cart": (mechanisms.pendulum_on_cart, None, 1e-9),
}


@pytest.mark.filterwarnings("ignore:.*do not fit:biella.BiellaWarning")
@pytest.mark.parametrize("name", READY)
def test_ready_mechanisms_move_alike(tmp_path, name):
    """Gravity as forces; planar ones in space, with redundant equations."""
    make, outputs, tolerance = READY[name]
    system = make()
    if outputs is None:
        outputs = tuple(f"{body.name}.velocity" for body in system.bodies)
    back = System.from_s3d(system.to_s3d(tmp_path))
    found, expected = run(back, outputs, 0.5), run(system, outputs, 0.5)
    for a, b in zip(found, expected, strict=True):
        width = min(np.shape(a[0])[0], np.shape(b[0])[0]) if np.ndim(a) > 1 else None
        a, b = (a[:, :width], b[:, :width]) if width else (a, b)
        assert np.ptp(b) > 1e-3
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def arm(**options):
    """Two bodies in space with mass centers off the origins of their frames."""
    s = System("arm")
    one = s.body("upper arm", mass=2.0, inertia=(0.1, 0.2, 0.25), com=(0.3, 0.1, -0.2),
                 angular_velocity=(0, 1.0, 0), **options)  # fmt: skip
    two = s.body("fore arm", mass=1.0, inertia=(0.1, 0.1, 0.1), com=(0.2, 0, 0.1),
                 position=(1, 0, 0), velocity=(0, 0, -1.0),
                 angular_velocity=(0, 1.0, 0))  # fmt: skip
    main = s.revolute("main", s.ground, one, at=(0, 0, 0), axis=(0, 1, 0))
    s.cylindrical("slide", one, two, at=(1, 0, 0), axis=(0, 1, 0))
    s.torque("motor", main, Formula("k*sin(3*t)", {"k": 2.0}))
    s.torsional_spring("hinge", main, stiffness=3.0, damping=0.1, free_angle=0.2)
    tip = two.marker("tip", (0.5, 0, 0), rotation=(0.6, 0.8, 0, 0))
    s.force("push", tip, (1.0, Sine(2.0, 3.0), "'fore arm.e2' + where(t > 0.2, 1, 0)"))
    s.force("pull", tip, 0.5)
    s.torque("turn", tip, (0.1, 0.2, 0), frame="body")
    s.force("moving", tip, (0, 1, 0), frame="body", point=("0.1*t", 0, 0))
    s.spring("tie", s.ground.marker("o", (0, 1, 0)), tip, stiffness=40.0, damping=1.0,
             free_length=1.0, force="0.3*t")  # fmt: skip
    return s


@pytest.mark.parametrize("mass_center", ["legacy", "physical"])
def test_every_element_moves_alike(tmp_path, mass_center):
    """In legacy cards frames are at the mass centers: other origins, the same joint motion."""
    system = arm()
    back = System.from_s3d(system.to_s3d(tmp_path, mass_center=mass_center),
                           mass_center=mass_center)  # fmt: skip
    outputs = ("main.angle", "slide.displacement", "slide.angle", "tie.length")
    for a, b in zip(run(back, outputs, 0.5), run(system, outputs, 0.5), strict=True):
        assert np.ptp(b) > 1e-4
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)


def test_drivers_read_back_equal(tmp_path):
    def make():
        s = System("driven", (0, 0, 0))
        b = s.body("b", mass=1.0, inertia=1.0)
        s.prismatic("x", s.ground, b, at=(0, 0, 0), axis=(1, 0, 0))
        s.constraint("law", "b.x - a*sin(3*t) - b.position[1]*t", parameters={"a": 0.2})
        return s

    back = System.from_s3d(make().to_s3d(tmp_path))
    x = run(back, ("b.x",), 0.5)[0]
    np.testing.assert_allclose(x, 0.2 * np.sin(3e-3 * np.arange(len(x))), atol=1e-12)
    assert "PSI_qt(2)=" in (tmp_path / "Driving Pos.s3d").read_text()


def test_start_shifts_the_time(tmp_path):
    system = arm()
    system.to_s3d(tmp_path, start=2.0, end=3.0)
    assert "(t-2.0)" in (tmp_path / "Force.s3d").read_text()
    back = System.from_s3d(tmp_path)
    np.testing.assert_allclose(
        run(back, ("main.angle",), 0.3)[0], run(system, ("main.angle",), 0.3)[0], atol=1e-10
    )


def test_what_cannot_be_expressed_is_named(tmp_path):
    s = System("all")
    b = s.body("b", mass=1.0, inertia=1.0, com=(0.1, 0, 0))
    main = s.revolute("main", s.ground, b, at=(0, 0, 0), axis=(0, 1, 0))
    s.torque("motor", main, Input("u"))
    s.force("push", b.marker("m"), ("main.angle", "b.x", "floor(t)"))
    s.friction("rub", main, viscous=1.0)
    s.driver("drive", main, 1.0)
    with pytest.raises(DiagramError) as error:
        s.to_s3d(tmp_path)
    texts = "\n".join(error.value.problems)
    for part in ("`motor`: its law is a Input", "`main.angle`", "mass_center='physical'", "`floor`",
                 "there is no card for a Friction", "a JointDriver is not"):  # fmt: skip
        assert part in texts
    assert not list(tmp_path.iterdir())
    with pytest.raises(DiagramError, match="a in_plane joint has no type"):
        mechanisms.rotor().to_s3d(tmp_path)


def test_cards_of_another_system_are_not_mixed(tmp_path):
    folder = copy(tmp_path / "s")
    with pytest.raises(DiagramError, match=r"cards that .* does not need: .*SPDamp"):
        mechanisms.five_bar().to_s3d(folder)
    back = change(folder, "General.s3d", "Manovella", "Crank")
    system = System.from_s3d(back, mass_center="legacy")
    system.to_s3d(folder, settings={"tolODE": 1e-6})
    assert read_s3d(folder).settings == {"tolODE": 1e-6}


@pytest.mark.parametrize(
    ("options", "message"),
    [({"end": -1.0}, "later"), ({"intervals": 0}, "positive"), ({"mass_center": "x"}, "legacy")],
)
def test_bad_options(tmp_path, options, message):
    with pytest.raises(DiagramError, match=message):
        mechanisms.five_bar().to_s3d(tmp_path, **options)


def test_names_and_coordinates_that_are_written_can_be_read(tmp_path):
    """A name that looks like a matrix; a coordinate that a formula has under two names."""
    s = System("names", (0, 0, 0))
    b = s.body("b", mass=1.0, inertia=1.0)
    s.prismatic("[x", s.ground, b, at=(0, 0, 0), axis=(1, 0, 0))
    s.constraint("law", "b.x + b.position[0] - 0.4*sin(3*t)")
    back = System.from_s3d(s.to_s3d(tmp_path))
    x = run(back, ("b.x",), 0.5)[0]
    np.testing.assert_allclose(x, 0.2 * np.sin(3e-3 * np.arange(len(x))), atol=1e-12)
    assert back.joints[0].name == "[x"


def test_a_system_without_a_title_is_refused(tmp_path):
    s = System("", (0, 0, 0))
    s.prismatic("x", s.ground, s.body("b", mass=1.0, inertia=1.0), at=(0, 0, 0), axis=(1, 0, 0))
    with pytest.raises(DiagramError, match="the name '' cannot be written on a line"):
        s.to_s3d(tmp_path)
