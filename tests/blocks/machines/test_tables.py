"""The tables of a state machine: hostile ones are refused or survived."""

import contextlib

import numpy as np
import pytest
from random_machines import make_machine

from biella import BlockError, Diagram, _contract
from biella.blocks import Constant, Expression, StateMachine
from biella.blocks.machines._tables import TableWriter
from biella.errors import PlanError
from biella.scheduler.compile.plan._plan import Plan, read_arrays, write_sections
from biella.scheduler.engine._engine import Instance

pytestmark = pytest.mark.engine
OUT_OF_RANGE = (-(2**31), -2, -1, 0, 1, 2, 31, 257, 2**20, 2**31 - 1)


def make_plan(machine: StateMachine) -> Plan:
    d = Diagram("machine", step=0.1)
    block = d.add(machine, "machine")
    for port in machine.inputs:
        wave = d.add(Expression("2*sin(20*t)", inputs=[]), f"u_{port.name}")
        if port.kind == "boolean":
            wave = d.add(Expression("sin(9*t) > 0", inputs=[], kind="boolean"), f"b_{port.name}")
        d.connect(wave, block[port.name])
    d.add(Constant(0.0), "other")
    return d.compile()


def table_of(plan: Plan, machine: StateMachine) -> tuple[np.ndarray, int]:
    """Return all integers of a plan, and where those of the machine begin."""
    table = np.frombuffer(plan.sections["INTS"], "<i4").copy()
    own = np.array(TableWriter(machine.chart, list(machine.transitions), machine._names).write())
    starts = np.flatnonzero(
        (np.lib.stride_tricks.sliding_window_view(table, own.size) == own).all(axis=1)
    )
    assert starts.size == 1
    return table, int(starts[0])


def open_with(plan: Plan, integers: np.ndarray) -> Instance:
    return Instance(Plan(write_sections(read_arrays(plan.sections) | {"INTS": integers}), {}))


@pytest.mark.parametrize("seed", range(3))
def test_every_integer_out_of_range_is_refused_or_survived(seed):
    machine = make_machine(seed)
    plan = make_plan(machine)
    table, first = table_of(plan, machine)
    size = len(TableWriter(machine.chart, list(machine.transitions), machine._names).write())
    fields = _contract.MACHINE_HEAD + _contract.MACHINE_STATE_FIELDS * len(
        list(machine.chart.walk())
    )
    fields += _contract.MACHINE_OUT_FIELDS * len(machine.transitions)
    random = np.random.default_rng(seed)
    refused = 0
    # All of head and records; of programs and initial values, which are checked elsewhere, some.
    places = [*range(fields), *random.integers(fields, size, 40)]
    for place in places:
        for value in random.choice(OUT_OF_RANGE, 3, replace=False):
            changed = table.copy()
            changed[first + place] = value
            try:
                instance = open_with(plan, changed)
            except PlanError:
                refused += 1
                continue
            with instance, contextlib.suppress(BlockError):
                instance.initialize()
                instance.run(6)
    assert refused > len(places)  # a third of them at least


def test_children_listed_twice_are_refused():
    """Each state would be visited once for every way to it: exponentially many."""
    machine = StateMachine()
    work = machine.parallel("work")
    for name in ("left", "right"):
        work.state(name).state("only")
    plan = make_plan(machine)
    table, first = table_of(plan, machine)
    children = first + _contract.MACHINE_HEAD + _contract.MACHINE_STATE_FIELDS * 6  # no transitions
    assert table[children : children + 5].tolist() == [1, 2, 4, 3, 5]
    table[children + 2] = 2
    with pytest.raises(PlanError):
        open_with(plan, table)
