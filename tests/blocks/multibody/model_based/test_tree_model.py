"""Which mechanisms the blocks for controllers take, and how they are run."""

import numpy as np
import pytest

from biella import Diagram, System, simulate
from biella.blocks import Constant
from biella.blocks.multibody import (
    ForcePropagation,
    HuntCrossley,
    InverseDynamics,
    Jacobian,
    MassMatrix,
)
from biella.blocks.multibody.mechanisms import slider_crank
from biella.errors import BiellaError, DiagramError

from .arms import branched, evaluate, planar_arm

pytestmark = pytest.mark.engine


def test_coordinates_are_those_of_the_joints_in_order():
    block = MassMatrix(branched())
    assert block.coordinates == (
        "turn.angle",
        "slide.displacement",
        "screw.displacement",
        "screw.angle",
        "wrist.angle_1",
        "wrist.angle_2",
    )


def test_other_order_permutes_vectors():
    order = ["elbow.angle", "shoulder.angle"]
    q, v, a = np.array([[0.3, -0.8], [1.0, 2.0], [-0.5, 0.7]])
    plain = evaluate(InverseDynamics(planar_arm()), position=q, speed=v, acceleration=a)
    other = evaluate(
        InverseDynamics(planar_arm(), order), position=q[::-1], speed=v[::-1], acceleration=a[::-1]
    )
    assert np.array_equal(plain["effort"], other["effort"][::-1])


@pytest.mark.parametrize(
    ("coordinates", "message"),
    [
        (["sholder.angle"], "no joint coordinate `sholder.angle`.*Did you mean"),
        (["shoulder.angle"], "lacks `elbow.angle`"),
        (["shoulder.angle", "elbow.angle", "elbow.angle"], "names one twice"),
    ],
)
def test_wrong_coordinates(coordinates, message):
    with pytest.raises(DiagramError, match=message):
        InverseDynamics(planar_arm(), coordinates)


def test_unknown_marker():
    with pytest.raises(DiagramError, match=r"`fore\.tp` in `arm`.*Did you mean `fore\.tip`"):
        Jacobian(planar_arm(), "fore.tp")


def test_no_marker():
    with pytest.raises(DiagramError, match="at least one marker"):
        ForcePropagation(planar_arm(), [])


def ball():
    s = System("ball")
    s.spherical("socket", s.ground, s.body("ball", mass=1.0, inertia=1.0), at=(0, 0, 0))
    return s


def loose():
    s = planar_arm()
    s.body("loose", mass=1.0, inertia=1.0, free=True)
    return s


def driven():
    s = planar_arm()
    s.driver("turn", s["elbow"], "t")
    return s


def in_contact():
    s = planar_arm()
    s.clearance_revolute(
        "play", s["fore.tip"], s.ground.marker("hole", (2.0, 0.0)), clearance=1e-3, pin_radius=0.01,
        contact=HuntCrossley(stiffness=1e6),
    )  # fmt: skip
    return s


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (slider_crank, "loops are for System.inverse_dynamics"),
        (ball, "joints that turn and slide: `socket`"),
        (loose, "3 bodies and 2 joints"),
        (driven, "no drivers.*`turn`"),
        (in_contact, "does not evaluate `play`"),
    ],
)
def test_mechanisms_that_are_refused(make, message):
    with pytest.raises(DiagramError, match=message):
        InverseDynamics(make())


def test_bodies_alone_count_where_loads_do_not():
    """A contact is a load, which a mass matrix does not have."""
    q = [0.1, 0.2]
    assert np.array_equal(
        evaluate(MassMatrix(in_contact()), position=q)["mass"],
        evaluate(MassMatrix(planar_arm()), position=q)["mass"],
    )


def test_units_where_all_coordinates_are_angles():
    block = InverseDynamics(planar_arm())
    assert str(block.inputs[0].unit) == "rad"
    assert str(block.outputs[0].unit) == "N.m"
    assert InverseDynamics(branched()).inputs[0].unit is None


def test_wrong_width_names_the_block():
    d = Diagram("wrong", step=1e-3)
    d.add(MassMatrix(planar_arm()), "mass", position=d.add(Constant([1.0, 2.0, 3.0]), "q"))
    with pytest.raises(BiellaError, match="mass"):
        d.compile()


def test_mass_set_before_a_run():
    """The numbers of the mechanism are parameters: twice the masses and inertias, twice M."""
    d = Diagram("set", step=1e-3)
    d.add(MassMatrix(planar_arm()), "model", position=d.add(Constant([0.1, 0.9]), "q"))
    plain = simulate(d, 1e-3)["model.mass"][0]
    changed = {f"model.{body}.{what}": value
               for body in ("upper", "fore")
               for what, value in (("mass", 2.0), ("inertia", 1.0 / 6.0))}  # fmt: skip
    assert simulate(d, 1e-3, parameters=changed)["model.mass"][0] == pytest.approx(2.0 * plain)


def test_negative_mass_set_before_a_run():
    d = Diagram("set", step=1e-3)
    d.add(MassMatrix(planar_arm()), "model", position=d.add(Constant([0.1, 0.9]), "q"))
    with pytest.raises(BiellaError, match="`upper` has mass -1 kg"):
        simulate(d, 1e-3, parameters={"model.upper.mass": -1.0})


def test_initial_values_are_no_parameters():
    names = [p.name for p in MassMatrix(planar_arm()).parameters if not p.hidden]
    assert "upper.mass" in names
    assert not [name for name in names if "initial" in name]


def test_runs_at_a_period():
    d = Diagram("sampled", step=1e-3)
    d.add(MassMatrix(planar_arm()), "model", period=5e-3, position=d.add(Constant([0.1, 0.9]), "q"))
    assert simulate(d, 0.01)["model.mass"].shape[1] == 4
