"""A push: the force of a load at the same point, and nothing at all without a body."""

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks import Constant, Step
from biella.blocks.multibody import System
from biella.blocks.multibody.elements._push import INPUTS
from biella.errors import PlanError
from biella.scheduler.compile.plan._plan import Plan, read_arrays, write_sections
from biella.scheduler.engine._engine import Instance
from biella.scheduler.engine._library import contract

pytestmark = pytest.mark.engine

POINT, FORCE = (0.05, -0.1, 0.2), (3.0, -1.0, 0.5)


def chain(**load):
    s = System("chain")
    upper = s.body("upper", mass=2.0, inertia=(0.1, 0.2, 0.15), position=(0.3, 0.0, 0.0))
    lower = s.body("lower", mass=1.0, inertia=(0.05, 0.06, 0.07), position=(0.6, 0.1, 0.0))
    s.revolute("hinge", s.ground, upper, at=(0, 0, 0), axis=(0, 1, 0))
    s.cylindrical("rail", upper, lower, at=(0.6, 0, 0), axis=(0, 0, 1))
    if load:
        body = {"upper": upper, "lower": lower}[load["body"]]
        s.force("load", body.marker("eye", POINT), FORCE)
    return s


def run(block, until=0.3, **inputs):
    d = Diagram("pushed", step=1e-3)
    d.add(block, name="plant")
    for name, source in inputs.items():
        d.connect(d.add(source, name=f"in_{name}"), d["plant"][f"push.{name}"])
    return simulate(d, until, record=["plant.*"])


SHOWN = ["lower.position", "lower.rotation", "hinge.force", "hinge.torque", "power_in"]


@pytest.mark.parametrize("number, body", [(1, "upper"), (2, "lower")])
def test_it_is_the_load_of_a_force_at_the_same_point(number, body):
    """Bit for bit: both add F and r × F to the same link."""
    expected = run(chain(body=body).block(outputs=[*SHOWN, "load.applied_force"]))
    values = dict(zip(INPUTS, (number, *POINT, *FORCE), strict=True))
    block, push = chain().block(outputs=SHOWN).with_push()
    block = block.with_outputs([f"{push.name}.force", f"{push.name}.point"])
    found = run(block, **{name: Constant(float(v)) for name, v in values.items()})
    for path in (f"plant.{name}" for name in SHOWN):
        assert np.array_equal(found[path], expected[path]), path
    assert np.array_equal(found["plant.push.force"], expected["plant.load.applied_force"])
    still = run(chain().block(outputs=["lower.position"]))
    moved = np.abs(found["plant.lower.position"] - still["plant.lower.position"]).max()
    assert moved > 1e-3
    start = chain().bodies[number - 1].position + np.array(
        POINT
    )  # bodies start with the axes of the world
    assert found["plant.push.point"][0] == pytest.approx(start)


@pytest.mark.parametrize("number", [0.0, -1.0, 3.0, 1e300])
def test_without_a_body_it_changes_no_bit(number):
    plain = run(chain().block(outputs=SHOWN))
    block, _ = chain().block(outputs=SHOWN).with_push()
    pushed = run(block, body=Constant(number), fx=Constant(1e3))
    assert all(plain[path].tobytes() == pushed[path].tobytes() for path in plain)


@pytest.mark.parametrize("mode, integrator", [("internal", "rk4"), ("internal", "implicit")])
def test_in_steps_of_the_mechanism_itself(mode, integrator):
    """A free body of 2 kg: v = F t / m from the start of the push on."""
    s = System("free", gravity=(0, 0, 0))
    s.body("body", mass=2.0, inertia=0.1, free=True)
    block, _ = s.block(outputs=["body.velocity"], mode=mode, integrator=integrator).with_push()
    found = run(block, body=Constant(1.0), fx=Step(at=0.1, to=4.0))["plant.body.velocity"][:, 0]
    t = np.arange(len(found)) * 1e-3
    assert found == pytest.approx(2.0 * np.maximum(t - 0.1, 0.0), abs=5e-3)  # a step late at most


def test_its_name_is_none_that_is_taken():
    s = chain(body="lower")
    s.force("push", s.ground.marker("p"), (1.0, 0.0, 0.0))
    block, push = s.block().with_push()
    assert push.name == "push2" and push.input_names()[0] == "push2.body"
    assert [port.name for port in block.inputs] == push.input_names()
    assert "push2" not in s.parts  # the system of the user stays as it is


@pytest.mark.parametrize("field", ["I", "J", "P", "LAW"])
@pytest.mark.parametrize("value", [-1, 2**31 - 1, -(2**31), "end"])
def test_a_record_that_points_outside_is_refused(field, value):
    """Plans may come from anywhere. Seven laws begin at LAW, and they are the last ones."""
    d = Diagram("pushed", step=1e-3)
    d.add(chain().block().with_push()[0], name="plant")
    sections = read_arrays(d.compile().sections)
    integers = sections["INTS"]
    numbers = [k for k in range(len(integers) - 5) if integers[k] == contract.MB_PUSH]
    start = next(k for k in numbers if integers[k + 1] == integers[k + 2] and not integers[k + 3])
    place = start + 1 + ["I", "J", "P", "LAW"].index(field)
    Instance(Plan(write_sections(sections), {})).close()
    ends = {"I": 100, "J": 100, "P": 1000, "LAW": integers[place] + 1}
    integers[place] = ends[field] if value == "end" else value
    with pytest.raises(PlanError, match="does not fit its kernel"):
        Instance(Plan(write_sections(sections), {}))
