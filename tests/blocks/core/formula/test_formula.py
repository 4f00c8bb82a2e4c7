"""Programs of the Expression's stack machine that no formula makes: taken only if sound."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biella import BlockError, Diagram
from biella.blocks.basic.math._expression import Expression
from biella.blocks.core.formula._formula import TALLEST
from biella.errors import PlanError
from biella.scheduler.compile.plan._plan import BLOCK_RECORD, Plan, read_arrays, write_sections
from biella.scheduler.engine._engine import Instance

pytestmark = pytest.mark.engine

INTEGER_COUNT = list(BLOCK_RECORD.names or ()).index("i_count")
OPERANDS = {0: 2, 1: 2, 2: 2, 3: 1}
OPCODES, CLIP, HYPOT = 50, 8, 27


def with_program(plan: Plan, program: list[int]) -> Plan:
    """Return `plan`, of one block, with other integers."""
    sections = read_arrays(plan.sections)
    sections["INTS"] = np.array(program, dtype="<i4")
    sections["BLKS"][INTEGER_COUNT] = len(program)
    return Plan(write_sections(sections), {})


def is_sound(program: list[int]) -> bool:
    """Say whether a program fits: inputs 1 and 3 wide, one output, two parameters."""
    k = depth = 0
    while k < len(program):
        opcode = program[k]
        if not 0 <= opcode < OPCODES:
            return False
        operands = program[k + 1 : k + 1 + OPERANDS.get(opcode, 0)]
        if len(operands) < OPERANDS.get(opcode, 0):
            return False
        limits = {0: [(0, 0)], 2: [(0, 0), (1, 0), (1, 1), (1, 2)]}.get(opcode)
        if limits is not None and tuple(operands) not in limits:
            return False
        if opcode == 3 and operands[0] not in (0, 1):
            return False
        takes = (1, 0, 0, 0, 0, 2, 2)[opcode] if opcode < 7 else 3 if opcode <= CLIP else 1
        takes = 2 if CLIP < opcode <= HYPOT else takes
        if depth < takes:
            return False
        depth += {0: 0, 5: 3, 6: 2}.get(opcode, 1) - takes
        if depth > TALLEST:
            return False
        k += 1 + len(operands)
    return depth == 0


@pytest.fixture(scope="module")
def plan() -> Plan:
    d = Diagram("test")
    block = d.add(Expression("x + w[2] + k + c", parameters={"k": 1, "c": 2}), name="f")
    d.connect(d.input("x"), block["x"])
    d.connect(d.input("w", width=3), block["w"])
    return d.compile()


words = st.one_of(st.integers(-2, OPCODES + 1), st.integers(0, 3), st.integers(-(2**31), 2**31 - 1))
instructions = st.one_of(
    st.tuples(st.just(0), st.integers(0, 1), st.integers(0, 1)),
    st.tuples(st.just(2), st.integers(0, 2), st.integers(-1, 3)),
    st.tuples(st.just(3), st.integers(-1, 2)),
    st.tuples(st.just(1), st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1)),
    st.integers(4, OPCODES - 1).map(lambda opcode: (opcode,)),
)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(
    program=st.one_of(
        st.lists(words, max_size=12),
        st.lists(instructions, max_size=8).map(lambda parts: [w for part in parts for w in part]),
    )
)
def test_program_is_taken_only_if_sound(plan, program):
    mutated = with_program(plan, program)
    if not is_sound(program):
        with pytest.raises(PlanError, match="does not fit its kernel 'expression'"):
            Instance(mutated)
        return
    with Instance(mutated) as instance:
        instance.initialize()
        try:
            instance.evaluate()
        except BlockError as error:
            assert "not finite" in str(error)


@pytest.mark.parametrize(
    "program",
    [
        [4],  # left on the stack
        [0, 0, 0],  # nothing to store
        [4, 0, 0, 1],  # an output that is not there
        [4, 0, 1, 0],
        [4, 0, -1, 0],
        [2, 1, 3, 0, 0, 0],  # an element that is not there
        [2, 2, 0, 0, 0, 0],
        [3, 2, 0, 0, 0],
        [3, 2**31 - 1, 0, 0, 0],
        [4, 0, 0],  # ends within an instruction
        [1, 0],
        [4, 9, 0, 0, 0],  # one operand only
        [4, 4, 7, 0, 0, 0],
        [4] * (TALLEST + 1) + [9] * TALLEST + [0, 0, 0],
        [OPCODES],
        [-1],
    ],
)
def test_unsound_program_is_refused(plan, program):
    assert not is_sound(program)
    with pytest.raises(PlanError, match="does not fit its kernel 'expression'"):
        Instance(with_program(plan, program))


def test_sound_program_by_hand(plan):
    """0.5 * t, at t = 0, plus the parameter c: the opcodes are those of the engine."""
    low, high = struct.unpack("<ii", struct.pack("<d", 0.5))
    program = [1, low, high, 4, 11, 3, 1, 9, 0, 0, 0]
    assert is_sound(program)
    with Instance(with_program(plan, program)) as instance:
        instance.initialize()
        assert instance.get("f.y") == 2.0
