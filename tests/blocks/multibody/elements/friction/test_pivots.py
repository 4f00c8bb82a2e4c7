"""Friction in universal joints against two revolutes with a cross, and against dual numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella import DiagramError, System
from biella.blocks.multibody import stribeck_friction
from biella.blocks.multibody.dual import RCCC, Sleeve, efficiency
from biella.blocks.multibody.plant._tree import grow_tree

from .test_joint_friction import run, see

pytestmark = pytest.mark.engine

G = (0.0, 0.3, -9.80665)
CENTER = np.array([0.4, 0.0, 0.1])
TURN = np.array([
    [0.36, 0.48, -0.8],
    [-0.8, 0.6, 0.0],
    [0.48, 0.64, 0.6],
])  # fmt: skip
FIRST: dict[str, Any] = {"coefficient": 0.12, "diameter": 0.03, "length": 0.06}
SECOND: dict[str, Any] = {"coefficient": 0.2, "diameter": 0.02, "length": 0.05}
SEEN = [
    "main.acceleration", "main.torque", "arm.angular_acceleration", "rub0.torque", "rub0.load",
    "rub0.power_loss", "rub1.torque", "rub1.load", "rub1.power_loss", "power_loss",
]  # fmt: skip


def arm(
    split: bool,
    first: dict[str, Any] | None = FIRST,
    second: dict[str, Any] | None = SECOND,
    *,
    efforts: bool = False,
    cut: bool = False,
    turn: Any = None,
    reverse: bool = False,
) -> Any:
    """A heavy arm at a universal joint on a shaft; `split`: two revolutes and a cross.

    `efforts`: a motor, a spring and a damper on the coordinates of the joint. `cut`: the joint
    closes a loop, because its marker moves by a law, of 0. `turn`: everything turned in space.
    `reverse`: the joint is written from the arm to the shaft.
    """
    turn = np.eye(3) if turn is None else turn
    s = System("arm", tuple(turn @ G))
    # The axes of the cross; the shaft turns at 5 rad/s, and the arm relative to it.
    a, b, spin = turn @ (0.0, 1.0, 0.0), turn @ (0.6, 0.0, 0.8), turn @ (5.0, 0.0, 0.0)
    at = turn @ CENTER
    relative = 3.0 * a - 2.0 * b
    omega = spin + (-relative if reverse else relative)
    shaft = s.body(
        "shaft", mass=1.0, inertia=(0.01, 0.02, 0.02), rotation=turn, angular_velocity=spin
    )
    swung = s.body(
        "arm", mass=2.0, inertia=(0.03, 0.05, 0.04), position=at, rotation=turn,
        com=(0.1, 0.3, -0.05), velocity=np.cross(spin, at), angular_velocity=omega,
    )  # fmt: skip
    main = s.revolute("main", s.ground, shaft, at=(0, 0, 0), axis=turn @ (1.0, 0.0, 0.0))
    s.torque("drive", main, 0.3)
    ends = (swung, shaft) if reverse else (shaft, swung)
    numbers: tuple[dict[str, Any], dict[str, Any]]
    if split:
        base = omega if reverse else spin
        cross = s.body(
            "cross", mass=0.0, inertia=0.0, position=at, rotation=turn,
            velocity=np.cross(spin, at), angular_velocity=base + 3.0 * a,
        )  # fmt: skip
        joints = (
            s.revolute("p0", ends[0], cross, at=at, axis=a),
            s.revolute("p1", cross, ends[1], at=at, axis=b),
        )
        numbers = {}, {}
    else:
        motion = {"x": "0*t"} if cut else None
        axes = [np.column_stack([y, np.cross(x, y), x]) for x, y in ((a, b), (b, a))]
        markers = [
            body.marker("u", turn.T @ (at - body.position), rotation=turn.T @ frame, motion=moves)
            for body, frame, moves in zip(ends, axes, (motion, None), strict=True)
        ]
        joint = s.universal("u", *markers)
        joints, numbers = (joint, joint), ({"coordinate": 0}, {"coordinate": 1})
        assert (joint in grow_tree(s).cuts) == cut
    if first is not None:
        s.friction("rub0", joints[0], **numbers[0], **first)
    if second is not None:
        s.friction("rub1", joints[1], **numbers[1], **second)
    if efforts:
        s.torque("motor", joints[0], 0.7, **numbers[0])
        s.torsional_spring("spring", joints[1], stiffness=4.0, free_angle=0.4, **numbers[1])
        s.friction("damper", joints[1], viscous=0.3, **numbers[1])
    return s


def same(found, wanted, tolerance):
    for path, x, y in zip(SEEN, found, wanted, strict=True):
        size = max(1.0, float(np.abs(y).max()))
        np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * size, err_msg=path)


@pytest.mark.parametrize("turn", [None, TURN], ids=["straight", "turned"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("efforts", [False, True])
@pytest.mark.parametrize("sizes", [(FIRST, SECOND), (FIRST, {**SECOND, "coefficient": 0.0})])
def test_it_is_two_revolutes_with_a_cross(turn, reverse, efforts, sizes):
    """Accelerations, efforts and loads; conditions of both are below 1e3, of 1e-16."""
    given: dict[str, Any] = {"efforts": efforts, "turn": turn, "reverse": reverse}
    same(see(arm(False, *sizes, **given), SEEN), see(arm(True, *sizes, **given), SEEN), 1e-12)


@pytest.mark.parametrize("turn", [None, TURN], ids=["straight", "turned"])
@pytest.mark.parametrize("reverse", [False, True])
def test_it_is_the_same_where_it_closes_a_loop(turn, reverse):
    given: dict[str, Any] = {"turn": turn, "reverse": reverse}
    same(see(arm(False, cut=True, **given), SEEN), see(arm(True, **given), SEEN), 1e-10)


def test_each_pivot_has_the_load_of_its_own_axis():
    """A moment across both axes tilts both pins, a force presses across each of its own axis."""
    s = System("cross", (0, 0, 0))
    body = s.body("body", mass=1.0, inertia=1.0, angular_velocity=(1.0, 2.0, 0.0))
    u = s.universal("u", s.ground, body, at=(0, 0, 0), axis=[(1, 0, 0), (0, 1, 0)])
    s.friction("rub0", u, coordinate=0, coefficient=1e-9, diameter=0.02, length=0.1)
    s.friction("rub1", u, coordinate=1, coefficient=1e-9, diameter=0.02, length=0.2)
    hub = body.marker("hub")
    s.force("push", hub, (3.0, 4.0, 12.0))
    s.torque("turn", hub, (0.0, 0.0, 5.0))
    loads = see(s, ["rub0.load", "rub1.load", "u.torque"])
    # ω̇ = 1 · 2 z without the cross, which holds it: both moments are about z.
    moment = abs(loads[2][2])
    assert moment == pytest.approx(abs(5.0 - 2.0), rel=1e-8)
    assert loads[0] == pytest.approx(np.hypot(4, 12) + 2 * moment / 0.1, rel=1e-8)
    assert loads[1] == pytest.approx(np.hypot(3, 12) + 2 * moment / 0.2, rel=1e-8)


SMOOTH: dict[str, Any] = {"smoothing_speed": 0.01}


@pytest.mark.parametrize("options", [
    {}, {"mode": "internal"}, {"mode": "internal", "integrator": "implicit", "substeps": 4},
], ids=["continuous", "internal", "implicit"])  # fmt: skip
def test_a_run_is_that_of_two_revolutes(options):
    """Over 0.1 s with a law of slip and load in one pivot; both loops of steps are the same."""
    law = stribeck_friction(0.1, 0.16, 0.02)
    rough: dict[str, Any] = {**FIRST, **SMOOTH, "coefficient": law}
    names = ["arm.angular_velocity", "rub0.torque", "rub1.load", "power_loss"]
    names += ["kinetic_energy", "potential_energy", "power_in"]
    found = [run(arm(split, rough, {**SECOND, **SMOOTH}), 0.1, names, step=5e-4, **options)
             for split in (False, True)]  # fmt: skip
    for name, x, y in zip(names, found[0][1], found[1][1], strict=True):
        # Implicit steps are iterated to 1e-10 or so, and take differences of different coordinates.
        tolerance = 1e-6 if "integrator" in options else 1e-9
        np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * np.abs(y).max(), err_msg=name)
    # What is put in and what is lost change the energy; trapezoids of 0.5 ms have errors of 1e-5.
    t, (*_, loss, kinetic, potential, inflow) = found[0]
    if "integrator" not in options:
        gain = np.trapezoid(inflow - loss, t)
        energy = kinetic + potential
        assert energy[-1] - energy[0] == pytest.approx(gain, rel=1e-3)


def test_pivots_stick_as_revolutes_do():
    """Both slide, stop, stick and break away under a torque that grows."""
    grip: tuple[dict[str, Any], ...] = {**FIRST, "static": 0.3}, {**SECOND, "static": 0.4}
    made = []
    for split in (False, True):
        s = System("grip", (0, 0, -9.80665))
        body = s.body("arm", mass=2.0, inertia=0.05, angular_velocity=(0.01, 0.008, 0.0))
        if split:
            cross = s.body("cross", mass=0.0, inertia=0.0, angular_velocity=(0.01, 0.0, 0.0))
            joints = (
                s.revolute("p0", s.ground, cross, at=(0, 0, 0), axis=(1, 0, 0)),
                s.revolute("p1", cross, body, at=(0, 0, 0), axis=(0, 1, 0)),
            )
            numbers: list[dict[str, Any]] = [{}, {}]
        else:
            joint = s.universal("u", s.ground, body, at=(0, 0, 0), axis=[(1, 0, 0), (0, 1, 0)])
            joints, numbers = (joint, joint), [{"coordinate": 0}, {"coordinate": 1}]
        for n in (0, 1):
            s.friction(f"rub{n}", joints[n], **numbers[n], **grip[n])
            s.torque(f"motor{n}", joints[n], f"{0.3 + 0.1 * n}*t", **numbers[n])
        names = ["arm.angular_velocity"]
        names += [f"rub{n}.{what}" for n in (0, 1) for what in ("torque", "load", "sticks")]
        made.append(run(s, 0.5, names, step=1e-3)[1])
    for x, y in zip(*made, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-10)
    for sticks in (made[0][3], made[0][6]):
        changes = np.flatnonzero(np.diff(np.asarray(sticks, dtype=float)))
        assert len(changes) == 2  # sticks, and slides again


@pytest.mark.parametrize("degrees", [20.0, 40.0])
def test_efficiency_of_a_cardan_joint_is_that_of_dual_numbers(degrees):
    """Shafts at an angle, friction in the cross alone, over half a turn, which is a period.

    The RCCC mechanism has cross pins that could slide; with shafts that meet they do not, and
    carry no force. The output shaft is kept parallel to its axis, so that no joint is redundant.
    """
    load, speed, f = 3.0, 4.0, 0.05
    angles = np.linspace(0.1, 0.1 + np.pi, 7)
    pins = Sleeve(0.012, 0.05), Sleeve(0.01, 0.06)
    mechanism = RCCC.cardan(np.radians(180 - degrees))
    start = mechanism.motion(angles[0], speed)
    z = [np.array([0.0, 0.0, 1.0])]
    frame = np.eye(3)
    for k in range(3):
        frame = frame @ start.displacements.real[k]
        z.append(frame[:, 2])
    s = System("Cardan joint", (0, 0, 0))
    small: dict[str, Any] = {"mass": 1e-9, "inertia": 1e-9}
    ahead = s.body("in", angular_velocity=speed * z[0], **small)
    behind = s.body("out", **small, angular_velocity=-start.rates.real[3] * z[3])
    main = s.revolute("main", s.ground, ahead, at=(0, 0, 0), axis=z[0])
    s.driver("drive", main, f"{speed} * t")
    cross = s.universal("cross", ahead, behind, at=(0, 0, 0), axis=(z[1], z[2]))
    along = behind.marker("along", axis=z[3])
    foot = s.ground.marker("foot", axis=z[3])
    for axis in "xy":
        s.perpendicular(f"parallel {axis}", foot, along, axes=(axis, "z"))
    sense = np.sign(-start.rates.real[3])
    s.torque("load", behind.marker("flange"), tuple(-load * sense * z[3]))
    for n, pin in enumerate(pins):
        s.friction(
            f"pin{n}", cross, coordinate=n, coefficient=f, diameter=pin.diameter,
            length=pin.length, smoothing_speed=1e-9,
        )  # fmt: skip
    times = (angles - angles[0]) / speed
    effort = s.kinematics(times)["drive.effort"]
    sleeves = (Sleeve(0.02, 0.1), *pins, Sleeve(0.02, 0.1))
    wanted = [
        efficiency(
            mechanism, angle, speed=speed, torque=torque, coefficient=(0.0, f, f, 0.0),
            sleeves=sleeves,
        )
        for angle, torque in zip(angles, effort, strict=True)
    ]  # fmt: skip
    losses = np.array([one.losses for one in wanted])
    efficiencies = np.array([float(one.efficiency) for one in wanted])
    # Masses of 1e-9 kg and the least-squares multipliers of kinematics() are the difference.
    np.testing.assert_allclose([one.output_torque for one in wanted], load, rtol=1e-6)
    assert (efficiencies < 0.999).all()
    names = ["drive.effort", "pin0.power_loss", "pin1.power_loss", "efficiency"]
    _, found = run(s, float(times[-1]), names, step=float(times[1]) / 50)
    rows = slice(None, None, 50)
    np.testing.assert_allclose(found[0][rows], effort, rtol=1e-6)
    np.testing.assert_allclose(found[1][rows], losses[:, 1], rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(found[2][rows], losses[:, 2], rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(found[3][rows], efficiencies, rtol=1e-6)


def test_kinematics_and_inverse_dynamics_know_the_moments_of_drivers():
    """The efforts of drivers in the joint itself tilt its pivots; those of a run are the same."""
    times = np.array([0.0, 0.01, 0.02])
    driven = arm(False)
    del driven._parts["drive"]
    u, main = driven["u"], driven["main"]
    driven.driver("d", main, "5*t")
    driven.driver("d0", u, "3*t", coordinate=0)
    driven.driver("d1", u, "-2*t + t**2", coordinate=1)
    found = driven.kinematics(times)
    names = ["d.effort", "d0.effort", "d1.effort"]
    _, values = run(driven, 0.02, names, step=1e-3)
    for name, value in zip(names, values, strict=True):
        np.testing.assert_allclose(found[name], value[::10], rtol=1e-8, err_msg=name)


def test_what_pivots_refuse():
    s = arm(False, FIRST, None, efforts=True)
    u = s["u"]
    with pytest.raises(DiagramError, match=r"two pivots.*coordinate=0.*`shaft`, 1 .*`arm`"):
        s.friction("again", u, **SECOND)
    with pytest.raises(DiagramError, match=r"`rub0` is .* of pivot 0 of `u` already: a pivot has"):
        s.friction("again", u, coordinate=0, **SECOND)
    with pytest.raises(DiagramError, match="cannot act on coordinate 2"):
        s.friction("again", u, coordinate=2, **SECOND)
    with pytest.raises(DiagramError, match=r"`main`, a revolute joint.*Leave `coordinate` out"):
        s.friction("again", s["main"], coordinate=0, **SECOND)
    with pytest.raises(DiagramError, match="needs `length`"):
        s.friction("again", u, coordinate=1, coefficient=0.1, diameter=0.1)
    closed = arm(False, cut=True, efforts=True)
    with pytest.raises(DiagramError, match=r"`rub0`.*closes a loop.*`motor`.*two revolutes"):
        closed.block([], ["rub0.torque"])
    driven = arm(False, efforts=True)
    del driven._parts["drive"]
    driven.driver("d", driven["main"], "5*t")
    driven.driver("d0", driven["u"], "3*t", coordinate=0)
    driven.driver("d1", driven["u"], "-2*t", coordinate=1)
    with pytest.raises(DiagramError, match=r"do not know those of `motor`, `spring`.*take a run"):
        driven.kinematics([0.0])
