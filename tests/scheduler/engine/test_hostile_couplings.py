"""Couplings in plans that are corrupt or made to harm: refused, or run without harm."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from biella import BiellaError, Diagram
from biella.blocks import Expression, Gain, Integrator
from biella.blocks.multibody import System
from biella.errors import PlanError
from biella.scheduler.compile.plan._plan import Plan, read_arrays, write_sections
from biella.scheduler.engine._engine import Instance

pytestmark = pytest.mark.engine

TABLES = ("COUP", "CMEM", "CSIG", "CINP", "CPRG", "BOND")
TEXTS = ("META", "KERN", "PATH", "NOTE")
INT32_MAX, INT32_MIN = 2**31 - 1, -(2**31)


def mass() -> System:
    s = System("mass", (0, 0), planar=True)
    body = s.body("mass", mass=1.0, inertia=1.0, velocity=(1.0, 0))
    s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    s.force("push", body.marker("end"), (0.0, 0.0))
    return s


@pytest.fixture(scope="module", params=["fixed", "adaptive"])
def plan(request: pytest.FixtureRequest) -> Plan:
    """Two masses, an algebraic loop between them, and the diagram's states, coupled by Newton."""
    d = Diagram("hostile", step=0.01, coupling="newton", extrapolation=2)
    for name in ("a", "b"):
        outputs = ["slide.speed", "slide.acceleration"]
        d.add(mass().block(["push.force.x"], outputs, mode="internal"), name)
    x = d.add(Integrator(), "x")
    pull = d.add(Expression("-3*x + 0.1*(a2 - a1)", unit="N"), "pull")
    back = d.add(Gain(-1.0), "back")
    d.connect(d["a"]["slide.acceleration"], pull["a1"])
    d.connect(d["b"]["slide.acceleration"], pull["a2"])
    d.connect(d["a"]["slide.speed"], x)
    d.connect(x, pull["x"])
    d.connect(pull, back, d["a"]["push.force.x"])
    d.connect(back, d["b"]["push.force.x"])
    d.power_bond(d["a"]["push.force.x"], d["b"]["push.force.x"])
    for block in ("a", "b"):  # so that the bond of two forces is one of powers
        vars(d[block])["inputs"] = tuple(type(p)(p.name) for p in d[block].inputs)
    if request.param == "adaptive":
        return d.compile(coupling_tolerance=1e-2)
    return d.compile(estimate_error=3)


def cells(plan: Plan) -> dict[str, np.ndarray]:
    return read_arrays(plan.sections)


def run(data: bytes) -> bool:
    """Run a plan for a few ticks if it is accepted; any error of ours is fine."""
    try:
        instance = Instance(Plan(data, {}))
    except PlanError:
        return False
    with contextlib.suppress(BiellaError), instance:
        instance.initialize()
        instance.run(4)
        instance.restore(instance.save())
        instance.run(4)
    return True


def test_the_plan_itself_is_sound(plan: Plan) -> None:
    assert write_sections(cells(plan)) == plan.data
    assert all(cells(plan)[tag].size for tag in (*TABLES, "LOOP"))
    assert sorted(plan.couplings[0]["members"]) == ["a", "b", "states"]
    assert run(plan.data)
    with plan.instantiate() as instance:
        assert instance.run(50) == (50, False)


@pytest.mark.parametrize("tag", TABLES)
def test_any_cell(plan: Plan, tag: str) -> None:
    for index in range(cells(plan)[tag].size):
        for value in (-2, -1, 0, 1, 2, 3, 7, 1000, INT32_MAX, INT32_MIN):
            sections = cells(plan)
            sections[tag][index] = value
            run(write_sections(sections))


@pytest.mark.parametrize("tag", TABLES)
@pytest.mark.parametrize("value", [INT32_MAX, INT32_MIN])
def test_indices_far_outside(plan: Plan, tag: str, value: int) -> None:
    ports_of_states, carried = (0, 3, 6, 9, 12), range(2, cells(plan)["CINP"].size, 3)
    flags = {  # any number will do
        "COUP": (3, 4), "CMEM": (1, 5, 9), "CINP": (*ports_of_states, *carried), "BOND": (4,)
    }  # fmt: skip
    for index in range(cells(plan)[tag].size):
        sections = cells(plan)
        sections[tag][index] = value
        accepted = run(write_sections(sections))
        assert not accepted or index in flags.get(tag, ()), (tag, index)


@pytest.mark.parametrize("tag", [*TABLES, "CTOL"])
def test_tables_that_are_cut_off_or_missing(plan: Plan, tag: str) -> None:
    sections = cells(plan)
    sections[tag] = sections[tag][:-1]
    assert not run(write_sections(sections))
    del sections[tag]
    assert run(write_sections(sections)) == (tag in ("COUP",))


def test_exchanges_without_a_coupling() -> None:
    """A mass and a spring made of blocks: the table of powers, cell by cell."""
    d = Diagram("hostile", step=0.01)
    plant = d.add(mass().block(["push.force.x"], ["slide.speed"], mode="internal"), "plant")
    d.connect(plant["slide.speed"], d.add(Integrator(), "x"))
    d.connect(d["x"], d.add(Gain(-3.0, unit="N"), "pull"))
    d.connect(d["pull"], plant["push.force.x"])
    plan = d.compile()
    assert len(plan.exchanges) == 1 and run(plan.data)
    for index in range(cells(plan)["EXCH"].size):
        for value in (-2, -1, 0, 1, 2, 3, 7, 1000, INT32_MAX, INT32_MIN):
            sections = cells(plan)
            sections["EXCH"][index] = value
            far = abs(value) > 1000 and index not in (3, 4)  # whether a place; a long period
            assert not (run(write_sections(sections)) and far), (index, value)
    sections = cells(plan)
    sections["EXCH"] = sections["EXCH"][:-1]
    assert not run(write_sections(sections))


@pytest.mark.parametrize("value", [0.0, -1.0, 2.0, np.nan, np.inf])
def test_impossible_tolerances(plan: Plan, value: float) -> None:
    for index in (0, 1):
        sections = cells(plan)
        sections["CTOL"][index] = value
        assert run(write_sections(sections)) == (value == 0.0 and index == 1)


def test_a_saved_state_with_wrong_values(plan: Plan) -> None:
    """What a coupling remembers may come from anywhere."""
    with plan.instantiate() as instance:
        instance.run(5)
        state = np.frombuffer(instance.save(), "<f8").copy()
        for value in (np.nan, np.inf, -1e300, 1e300, -1.0, 3.5):
            broken = state.copy()
            broken[-(state.size // 3) :] = value
            with contextlib.suppress(BiellaError):
                instance.restore(broken.tobytes())
                instance.run(3)
