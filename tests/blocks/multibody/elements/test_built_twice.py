"""Four mechanisms with ready joints, and the same with constraints of one's own."""

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks.multibody import Sine, System


def four_bar(own: bool) -> System:
    """Planar, closed by a revolute or by two formulas of its pin."""
    s = System("four_bar", planar=True)
    crank = s.body("crank", mass=1.0, inertia=0.02, position=(0.0, 0.1))
    rod = s.body("rod", mass=1.5, inertia=0.03, position=(0.2, 0.25), rotation=0.3)
    rocker = s.body("rocker", mass=1.2, inertia=0.04, position=(0.4, 0.2))
    s.revolute("main", s.ground, crank, at=(0.0, 0.0))
    s.revolute("pin", crank, rod, at=(0.0, 0.2))
    s.revolute("pivot", s.ground, rocker, at=(0.45, 0.0))
    if own:
        rod.marker("eye", rod.rotation.T[:2, :2] @ (np.array([0.42, 0.35]) - rod.position[:2]))
        rocker.marker("bolt", np.array([0.42, 0.35]) - rocker.position[:2])
        s.constraint("joint_x", "rod.eye.x - rocker.bolt.x")
        s.constraint("joint_y", "rod.eye.y - rocker.bolt.y")
    else:
        s.revolute("joint", rod, rocker, at=(0.42, 0.35))
    return s


def slider(own: bool) -> System:
    """In space: a slider on a rail, or one that its rows hold."""
    s = System("slider")
    crank = s.body("crank", mass=1.0, inertia=(0.01, 0.02, 0.02), position=(0.0, 0.0, 0.1))
    rod = s.body("rod", mass=0.5, inertia=(0.02, 0.03, 0.01), position=(0.25, 0.0, 0.1))
    block = s.body("block", mass=2.0, inertia=(0.02, 0.03, 0.04), position=(0.5, 0.0, 0.0))
    s.revolute("main", s.ground, crank, at=(0, 0, 0), axis=(0, 1, 0))
    s.universal("pin", crank, rod, at=(0, 0, 0.2), axis=[(0, 1, 0), (1, 0, 0)])
    s.spherical("ball", rod, block, at=(0.5, 0, 0))
    # A marker that moves by a law: its joint closes the loop, as the rows do.
    rail = s.ground.marker("rail", axis=(1, 0, 0), motion={"y": 0.0})
    shoe = block.marker("shoe", axis=(1, 0, 0))
    if own:
        s.coincident("line", rail, shoe, coordinates="xy")
        s.perpendicular("pitch", rail, shoe, axes=("x", "z"))
        s.perpendicular("yaw", rail, shoe, axes=("y", "z"))
        s.perpendicular("roll", rail, shoe, axes=("x", "y"))
    else:
        s.prismatic("slide", rail, shoe)
    return s


def geared(own: bool) -> System:
    """A gear and a driven arm, or formulas of the same coordinates."""
    s = System("geared")
    a = s.body("a", mass=1.0, inertia=(0.05, 0.06, 0.07), position=(0.1, 0.0, 0.0))
    b = s.body("b", mass=1.0, inertia=(0.05, 0.06, 0.07), position=(0.6, 0.1, 0.0))
    c = s.body("c", mass=1.0, inertia=(0.02, 0.03, 0.03), position=(0.3, 0.4, 0.0))
    first = s.revolute("first", s.ground, a, at=(0, 0, 0), axis=(0, 1, 0))
    second = s.revolute("second", s.ground, b, at=(0.5, 0.1, 0.0), axis=(0, 1, 0))
    arm = s.revolute("arm", a, c, at=(0.3, 0.3, 0.0), axis=(1, 0, 1))
    if own:
        s.constraint("gear", "second.angle + ratio*first.angle", parameters={"ratio": 1.5})
        s.constraint("swing", "arm.angle - 0.3*sin(2*t)")
    else:
        s.gear("gear", first, second, ratio=-1.5)
        s.driver("swing", arm, Sine(0.3, 2.0))
    return s


def strut(own: bool) -> System:
    """A pendulum and a bob on a distance, or on the formula of a distance."""
    s = System("strut")
    a = s.body("a", mass=1.0, inertia=(0.05, 0.06, 0.07), position=(0.2, 0.0, -0.1))
    b = s.body("b", mass=0.6, inertia=(0.01, 0.01, 0.02), position=(0.5, 0.1, -0.4), free=True)
    s.revolute("hinge", s.ground, a, at=(0, 0, 0), axis=(0, 1, 0))
    i, j = a.marker("end", (0.2, 0.0, 0.0)), b.marker("eye", (0.0, 0.05, 0.1))
    length = float(np.linalg.norm(j.world_position - i.world_position))
    if own:
        s.constraint(
            "rod", "sqrt(x**2 + y**2 + z**2) - l", between=(i, j), parameters={"l": length}
        )
    else:
        s.distance("rod", i, j)
    return s


CASES: dict[str, Callable[[bool], System]] = {
    "four_bar": four_bar, "slider": slider, "geared": geared, "strut": strut,
}  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"mode": "internal", "integrator": "implicit"}],
                         ids=["continuous", "implicit"])  # fmt: skip
@pytest.mark.parametrize("case", CASES)
def test_ready_joints_and_own_constraints_move_alike(case: str, options) -> None:
    """The equations are the same, so that 300 steps differ by rounding, which grows a little."""
    found = []
    for own in (False, True):
        s = CASES[case](own)
        names = [f"{body.name}.{what}" for body in s.bodies for what in ("position", "rotation")]
        d = Diagram("twice", step=1e-3)
        initial = {"main.speed": 3.0} if case == "slider" else None
        d.add(s.block(outputs=names, initial=initial, **options), name="p")
        with pytest.warns(match="impulse") if case == "geared" else nullcontext():
            r = simulate(d, 0.3)
        found.append(np.hstack([r[f"p.{name}"] for name in names]))
    moved = np.ptp(found[0], axis=0).max()
    assert moved > 0.02
    assert np.abs(found[0] - found[1]).max() < (1e-9 if options else 1e-11)


@pytest.mark.parametrize("case", CASES)
def test_reports_agree(case: str) -> None:
    ready, own = (CASES[case](own).report() for own in (False, True))
    assert own.freedom == ready.freedom
    assert own.redundant == ready.redundant == 0


def test_reactions_of_own_rows_are_those_of_the_joint() -> None:
    """A revolute closed by its rows and by two formulas: force on the second body."""
    forces = []
    for mine, names in ((False, ["joint.force"]), (True, ["joint_x.force", "joint_y.force"])):
        d = Diagram("twice", step=1e-3)
        d.add(four_bar(mine).block(outputs=[*names, "pin.force"]), name="p")
        forces.append(simulate(d, 0.2))
    ready, own = forces
    # The formula is rod.x - rocker.x, its force acts on the rod; that of the joint on the rocker.
    assert own["p.joint_x.force"] == pytest.approx(-ready["p.joint.force"][:, 0], abs=1e-9)
    assert own["p.joint_y.force"] == pytest.approx(-ready["p.joint.force"][:, 1], abs=1e-9)
    assert np.ptp(ready["p.joint.force"][:, 0]) > 0.1
    # Of the crank it is what passes through the rod, however the loop is closed.
    assert own["p.pin.force"] == pytest.approx(ready["p.pin.force"], abs=1e-9)
