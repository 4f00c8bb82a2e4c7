"""Tables of multirate steps that are corrupt or made to harm: refused, or run without harm."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from biella import BiellaError, Diagram, Subsystem
from biella.blocks import Compare, Constant, Gain, Integrator, Relay, Sine, StateSpace, Sum
from biella.errors import PlanError
from biella.scheduler.compile.plan._plan import Plan, read_arrays, write_sections
from biella.scheduler.engine._engine import Instance

pytestmark = pytest.mark.engine

INT32_MAX, INT32_MIN = 2**31 - 1, -(2**31)
TABLES = ("FAST", "FPRG", "SPRG", "SAMP", "DRIV", "FEVT", "FCRO")


def make_plan() -> Plan:
    """Both parts with several states, vectors, a loop across the border, a guard and events."""
    d = Diagram("hostile", 1e-2, max_events=5)
    slow = StateSpace(-np.eye(3), np.ones((3, 2)), np.ones((2, 3)), initial=[1.0, 2.0, 3.0])
    fast = StateSpace(-90.0 * np.eye(2), np.ones((2, 2)), np.eye(2), initial=[1.0, -1.0])
    d.add(slow, "slow")
    d.add(fast, "fast")
    relay = d.add(Relay(on=0.1, off=-0.1, high=-1.0, low=1.0), "relay", u=fast)
    d.connect(d.add(Sum("++"), "both", u1=relay, u2=slow), fast)
    a, b = d.add(Sum("+-"), "a", u1=fast), d.add(Sum("++"), "b", u1=slow)
    d.connect(d.add(Gain(0.4), "forward", u=a), b["u2"])
    d.connect(d.add(Gain(0.5), "back", u=b), a["u2"])
    d.connect(b, slow)
    inside = Diagram("inside")
    w = inside.add(Integrator(1.0), "w", u=inside.input("u"))
    inside.output("w", w)
    on = d.add(Compare(">", 0.0), "on", u=d.add(Sine(frequency=20.0), "sine"))
    d.add(Subsystem(inside, enable=True), "sub", enable=on, u=d.add(Constant(1.0), "one"))
    d.integrate("fast", "sub", substeps=10)
    return d.compile()


PLAN = make_plan()


def replace(tag: str, content: list[int]) -> bytes:
    sections = read_arrays(PLAN.sections)
    sections[tag] = np.array(content, dtype="<i4")
    return write_sections(sections)


def refuse(data: bytes, reason: str) -> None:
    with pytest.raises(PlanError, match=reason):
        Instance(Plan(data, {}))


def run(data: bytes) -> None:
    """Run a plan for a few ticks and parts of ticks, if it is accepted."""
    with contextlib.suppress(BiellaError), Instance(Plan(data, {})) as instance:
        instance.initialize()
        instance.run(5)
        instance.run_to(instance.time + 0.5e-2)
        instance.restore(instance.save())
        instance.run(3)


def fast() -> list[int]:
    return read_arrays(PLAN.sections)["FAST"].tolist()


def test_the_plan_itself_is_sound():
    assert set(TABLES) <= set(PLAN.sections)
    with PLAN.instantiate() as instance:
        assert instance.run(20) == (20, False)
        assert instance.event_counts[0] > 0


@pytest.mark.parametrize("substeps", [0, -1, 100_001, INT32_MAX, INT32_MIN])
def test_numbers_of_substeps(substeps):
    refuse(replace("FAST", [substeps, *fast()[1:]]), "no number of substeps")


def test_too_many_substeps_for_the_memory():
    d = Diagram("large")
    d.add(Integrator(np.zeros(5000)), "x", u=d.add(Constant(np.ones(5000)), "one"))
    d.integrate("x", substeps=100_000)
    with pytest.raises(BiellaError, match="too much memory"):
        d.compile().instantiate()


def test_fast_blocks():
    refuse(replace("FAST", fast()[:1]), "no number of substeps")
    for number in (-1, len(PLAN.blocks), INT32_MAX, INT32_MIN):
        refuse(replace("FAST", [10, number]), "substeps are taken by no block")
    refuse(replace("FAST", [10, fast()[1], fast()[1]]), "substeps are taken by no block")
    relay = [block.path for block in PLAN.blocks].index("relay")
    refuse(replace("FAST", [10, relay]), "a block without states")


@pytest.mark.parametrize("solver", ["dopri5", "radau5", "trapezoidal"])
def test_solvers_without_substeps(solver):
    d = Diagram("x", 1e-2, solver)
    d.add(Integrator(), "x", u=d.add(Constant(1.0), "one"))
    sections = read_arrays(d.compile().sections)
    sections["FAST"] = np.array([10, 0], dtype="<i4")
    refuse(write_sections(sections), "its solver takes no substeps")


def test_driven_inputs():
    slow = [block.path for block in PLAN.blocks].index("slow")
    refuse(replace("DRIV", [slow]), "ragged")
    for pair in ([-1, 0], [INT32_MAX, 0], [slow, -1], [slow, 99], [slow, INT32_MAX]):
        refuse(replace("DRIV", pair), "no input is driven")
    inside = [block.path for block in PLAN.blocks].index("sub.w")
    run(replace("DRIV", [slow, 0, inside, 0, slow, 0]))
    run(replace("DRIV", [slow, 0] * 50))


def test_events():
    for number in (-1, len(PLAN.blocks), INT32_MAX):
        refuse(replace("FEVT", [number]), "events are located of no block")
    run(replace("FEVT", list(range(len(PLAN.blocks))) * 3))


@pytest.mark.parametrize("tag", ["FPRG", "SPRG", "SAMP", "FCRO"])
def test_programs(tag):
    refuse(replace(tag, [0]), "ragged")
    refuse(replace(tag, [0, len(PLAN.blocks)]), "a program calls no block")
    refuse(replace(tag, [1, 7]), "a program solves no loop")
    refuse(replace(tag, [2, 0]), "a program decides no guard")
    run(replace(tag, []))


@pytest.mark.parametrize("tag", TABLES)
def test_any_value_anywhere(tag):
    """Each element replaced by others: refused, or run without harm."""
    table = read_arrays(PLAN.sections)[tag]
    for place in range(len(table)):
        for value in (-1, 0, 1, 2, 3, 5, 8, 13, len(PLAN.blocks), INT32_MAX, INT32_MIN):
            changed = table.tolist()
            changed[place] = value
            run(replace(tag, changed))
