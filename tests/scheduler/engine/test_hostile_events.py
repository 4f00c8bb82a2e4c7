"""Step control, events and Jacobian patterns in plans and saved states that are corrupt or made to
harm: refused, or run without harm.
"""

from __future__ import annotations

import contextlib
import struct

import numpy as np
import pytest

from biella import BiellaError, Diagram, Subsystem
from biella.blocks import (
    Compare,
    Expression,
    Gain,
    Integrator,
    MinMax,
    Relay,
    Saturation,
    Sine,
    Step,
    Sum,
    UnitDelay,
)
from biella.errors import BlockError, PlanError
from biella.scheduler.compile.plan._plan import (
    BLOCK_RECORD,
    Plan,
    read_arrays,
    write_sections,
)
from biella.scheduler.engine._engine import Instance
from biella.scheduler.engine._library import contract

pytestmark = pytest.mark.engine

INT32_MAX, INT32_MIN = 2**31 - 1, -(2**31)
STATES = 44  # enough for a sparse matrix


def make_plan(solver: str, *, tolerance: float | None = None) -> Plan:
    """A chain of states with a sparse Jacobian, and events of every kind."""
    d = Diagram("hostile", 1e-2, solver, tolerance=tolerance, max_events=5, max_steps=50)
    x = [d.add(Integrator(float(k == 0)), f"x{k}") for k in range(STATES)]
    for k in range(STATES):
        d.connect(d.add(Expression("20 * (a - b)"), f"s{k}", a=x[k - 1], b=x[k]), x[k])
    y = d.add(Integrator([0.1, 0.2]), "y")
    relay = d.add(Relay(on=0.21, off=-0.2, high=-30.0, low=30.0), "relay", u=y)
    d.connect(relay, y)
    total = d.add(Sum("+++"), "total", u1=x[0], u2=d.add(Step(at=0.0234), "step"))
    clipped = d.add(Saturation(-0.3, 0.3), "clipped", u=total)
    d.connect(d.add(Gain(0.5), "back", u=clipped), total["u3"])
    d.add(Integrator(), "z", u=d.add(MinMax("max", 2), "larger", u1=clipped, u2=x[1]))
    d.add(Integrator(), "w", u=d.add(UnitDelay(), "held", u=x[2], period=3e-2))
    if tolerance is None:  # these end every tick
        full = d.add(Integrator(limits=(-0.01, 0.01), reset="rising"), "full", u=clipped)
        sine = d.add(Sine(frequency=9.0), "sine")
        d.connect(sine, full["reset"])
        inside = Diagram("inside")
        inside.add(Integrator(), "x", u=inside.add(Expression("abs(u)"), "f", u=inside.input("u")))
        on = d.add(Compare(">", 0.3), "on", u=sine)
        d.add(Subsystem(inside, enable=True), "sub", enable=on, u=full)
    return d.compile()


PLANS = {
    "rk4": make_plan("rk4"),
    "backward_euler": make_plan("backward_euler"),
    "dopri5": make_plan("dopri5", tolerance=1e-5),
    "radau5": make_plan("radau5", tolerance=1e-5),
}


@pytest.fixture(params=PLANS)
def plan(request: pytest.FixtureRequest) -> Plan:
    return PLANS[request.param]


def replace(plan: Plan, tag: str, index: int, value: float) -> bytes:
    sections = read_arrays(plan.sections)
    sections[tag][index] = value
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
        with instance.frozen_modes():
            instance.derivatives()
        instance.run(2)


def test_the_plans_themselves_are_sound(plan: Plan) -> None:
    with plan.instantiate() as instance:
        assert instance.run(20) == (20, False)
        assert instance.event_counts[0] > 5
    assert (plan is PLANS["radau5"]) <= ("JPAT" in plan.sections)


@pytest.mark.parametrize("value", [-1e-9, 1.0, 2.0, np.nan, np.inf, -np.inf])
def test_tolerances(plan: Plan, value: float) -> None:
    for field in (contract.BL_CONTROL_RELATIVE, contract.BL_CONTROL_ABSOLUTE):
        refuse(replace(plan, "SOLV", field, value), "tolerance")


def test_one_tolerance_alone(plan: Plan) -> None:
    given = read_arrays(plan.sections)["SOLV"][contract.BL_CONTROL_RELATIVE] > 0
    refuse(
        replace(plan, "SOLV", contract.BL_CONTROL_ABSOLUTE, 0.0 if given else 1e-3),
        "only one tolerance is given",
    )


def test_a_tolerance_for_a_solver_without_error_control() -> None:
    sections = read_arrays(PLANS["rk4"].sections)
    sections["SOLV"][contract.BL_CONTROL_RELATIVE] = 1e-3
    sections["SOLV"][contract.BL_CONTROL_ABSOLUTE] = 1e-3
    refuse(write_sections(sections), "its solver has no error control")


@pytest.mark.parametrize("value", [0.0, -1.0, 0.5, 1e6 + 1, 1e300, np.nan, np.inf])
def test_limits_of_a_tick(plan: Plan, value: float) -> None:
    for field in (contract.BL_CONTROL_MAX_STEPS, contract.BL_CONTROL_MAX_EVENTS):
        refuse(replace(plan, "SOLV", field, value), "a limit of a tick is out of range")


@pytest.mark.parametrize(
    "count", [1, contract.BL_CONTROL_FIELDS - 1, contract.BL_CONTROL_FIELDS + 1]
)
def test_another_number_of_fields(plan: Plan, count: int) -> None:
    sections = read_arrays(plan.sections)
    sections["SOLV"] = np.resize(sections["SOLV"], count)
    refuse(write_sections(sections), "another number of fields")


@pytest.mark.parametrize("value", [INT32_MAX, INT32_MIN, -1, 100_000])
def test_events_of_no_block(plan: Plan, value: int) -> None:
    for index in range(read_arrays(plan.sections)["EVNT"].size):
        refuse(replace(plan, "EVNT", index, value), "events are located of no block")


def test_events_of_a_discrete_block(plan: Plan) -> None:
    held = next(n for n, block in enumerate(plan.blocks) if block.path == "held")
    refuse(replace(plan, "EVNT", 0, held), "events of a discrete block are located")


def test_a_block_may_be_listed_twice(plan: Plan) -> None:
    sections = read_arrays(plan.sections)
    sections["EVNT"] = np.tile(sections["EVNT"], 3)
    with Instance(Plan(write_sections(sections), {})) as instance, plan.instantiate() as other:
        for engine in (instance, other):
            engine.initialize()
            engine.run(10)
        assert instance.values.tobytes() == other.values.tobytes()


def test_programs_of_crossing_functions(plan: Plan) -> None:
    sections = read_arrays(plan.sections)
    refuse(write_sections({**sections, "CROS": sections["CROS"][:-1]}), "a program is ragged")
    for index in range(sections["CROS"].size):
        for value in (INT32_MAX, INT32_MIN, -1, 100_000):
            refuse(replace(plan, "CROS", index, value), "a program (calls|solves|decides) no|minor")


@pytest.mark.parametrize("tag", ["EVNT", "CROS", "SOLV", "JPAT"])
def test_a_section_that_is_missing_or_cut(plan: Plan, tag: str) -> None:
    """Crossing functions are then those of other values: events are missed, nothing else."""
    sections = read_arrays(plan.sections)
    if tag not in sections:
        return
    for length in {0, 1, 2, sections[tag].size // 2 // 2 * 2, sections[tag].size - 1}:
        run(write_sections({**sections, tag: sections[tag][:length]}))
    del sections[tag]
    run(write_sections(sections))


@pytest.mark.parametrize("tag", ["EVNT", "CROS", "SOLV"])
def test_any_cell_of_the_tables(plan: Plan, tag: str) -> None:
    odd = (0.0, 1.0, 3.0, 5e-324, 0.999) if tag == "SOLV" else (0, 1, 2, 7, 45, 50)
    size = read_arrays(plan.sections)[tag].size
    for index in range(0, size, 1 + size // 30):
        for value in odd:
            run(replace(plan, tag, index, value))


@pytest.mark.parametrize("solver", ["backward_euler", "radau5"])
def test_patterns(solver: str) -> None:
    plan = PLANS[solver]
    pattern = read_arrays(plan.sections)["JPAT"]
    n = next(k for k in range(1, pattern.size) if pattern[k] == pattern.size - k - 1)
    for index in range(pattern.size):
        for value in (INT32_MAX, INT32_MIN, -1):
            refuse(replace(plan, "JPAT", index, value), "pattern")
        for value in (0, 1, n - 1, n, int(pattern[index]) + 1) if index % 3 == 0 else ():
            run(replace(plan, "JPAT", index, value))
    sections = read_arrays(plan.sections)
    for changed in (pattern[:-1], np.append(pattern, 0), pattern[:1], np.zeros(1, "<i4")):
        refuse(write_sections({**sections, "JPAT": changed.astype("<i4")}), "pattern")
    rows = [pattern[n + 1 :][pattern[k] : pattern[k + 1]] for k in range(n)]
    rows[3] = rows[3][rows[3] != 3]
    columns = np.cumsum([0, *map(len, rows)])
    changed = np.concatenate([columns, *rows]).astype("<i4")
    refuse(write_sections({**sections, "JPAT": changed}), "lacks a diagonal entry")


def test_a_number_of_crossing_functions_that_overflows() -> None:
    """641 pairs of 6700417 elements, read from one place, are 2^32 + 1 crossing functions."""
    d = Diagram("many", 1e-2)
    sources = [d.add(Integrator(float(k)), f"x{k}") for k in range(2)]
    larger = d.add(MinMax("max", 2), "larger", u1=sources[0], u2=sources[1])
    d.connect(larger, *sources)
    plan = d.compile()
    sections = read_arrays(plan.sections)
    number = next(n for n, block in enumerate(plan.blocks) if block.path == "larger")
    record = sections["BLKS"].view(BLOCK_RECORD)
    width, first = 6_700_417, int(sections["PARA"].size)
    ports = sections["PORT"].reshape(-1, 2)
    sections["PORT"] = np.vstack([ports, [[first, width]] * 643]).astype("<i4").ravel()
    record["u_first"][number], record["u_count"][number] = len(ports), 642
    record["y_first"][number] = len(ports) + 642
    sections["SIZE"][contract.SIZE_SIGNALS] = width
    refuse(write_sections(sections), "too many crossing functions")


def test_saved_states_with_wrong_values(plan: Plan) -> None:
    """Also the step that is open, what the solver remembers and the counters."""
    with plan.instantiate() as instance:
        instance.run(5)
        instance.run_to(instance.time + 0.4e-2)
        state = instance.save()
        size = 8 * (contract.BL_OPEN_FIELDS + contract.BL_EVENT_COUNTERS)
        end = 56 + 8 * len(instance.values)
        places = {*range(56, end - size, 56), *range(end - size, end, 8)}
        for at in sorted(places):
            for value in (-1.0, 0.5, 2.0, 1e-300, 1e19, -1e300, np.inf, np.nan):
                spoiled = bytearray(state)
                struct.pack_into("<d", spoiled, at, value)
                instance.restore(bytes(spoiled))
                with contextlib.suppress(BlockError):
                    instance.run(2)
