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


def make_timed() -> StateMachine:
    """Return a machine with one transition, whose guard is the first of its programs."""
    machine = StateMachine(inputs=["x"], outputs=["n"])
    a, b = machine.state("a", n=1), machine.state("b", during={"n": 3})
    machine.transition(a, b, when="elapsed > x")
    return machine


def find_fields(machine: StateMachine, first: int) -> tuple[int, int, int]:
    """Return where the records of transitions, the children and the words begin."""
    states = len(list(machine.chart.walk()))
    outs = first + _contract.MACHINE_HEAD + _contract.MACHINE_STATE_FIELDS * states
    children = outs + _contract.MACHINE_OUT_FIELDS * len(machine.transitions)
    return outs, children, children + states - 1


def test_the_time_in_a_state_is_read_only_where_it_is_computed():
    machine = make_timed()
    plan = make_plan(machine)
    table, first = table_of(plan, machine)
    open_with(plan, table).close()
    table[first + _contract.MACHINE_USES_ELAPSED] = 0
    with pytest.raises(PlanError):
        open_with(plan, table)


@pytest.mark.parametrize("program", ["guard", "action"])
def test_guards_store_a_verdict_and_actions_store_variables(program):
    """A guard that assigned a variable would change the state whenever outputs are evaluated."""
    machine = make_timed()
    plan = make_plan(machine)
    table, first = table_of(plan, machine)
    _, _, words = find_fields(machine, first)
    # INPUT elapsed, INPUT x, GREATER, STORE (1, 0); then CONSTANT 1, STORE (0, 0).
    store = words + (7 if program == "guard" else 13)
    assert table[store] == _contract.BL_FORMULA_STORE
    assert table[store + 1 : store + 3].tolist() == [program == "guard", 0]
    table[store + 1] = program != "guard"
    with pytest.raises(PlanError):
        open_with(plan, table)


def test_programs_that_overlap_are_refused():
    """The time to check them would grow with their number times their length."""
    machine = make_timed()
    plan = make_plan(machine)
    table, first = table_of(plan, machine)
    record = first + _contract.MACHINE_HEAD + 2 * _contract.MACHINE_STATE_FIELDS  # of state b
    entry, during = record + _contract.MACHINE_STATE_ENTRY, record + _contract.MACHINE_STATE_DURING
    assert table[entry + 1] == 0 and table[during + 1] > 0
    table[entry : entry + 2] = table[during : during + 2]
    with pytest.raises(PlanError):
        open_with(plan, table)
