"""Plans that are truncated, corrupt or made to harm: each is refused with a reason, none crashes.

The hash of a plan guards against accidents only, so most of these carry a correct one.
"""

from __future__ import annotations

import contextlib
import ctypes
import random
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biella import BiellaError, Diagram, Subsystem
from biella.blocks import (
    Convert,
    Expression,
    Gain,
    Integrator,
    Pulse,
    Sum,
    TransportDelay,
    UnitDelay,
)
from biella.blocks.multibody.mechanisms import slider_crank
from biella.errors import BlockError, PlanError
from biella.scheduler.compile.plan._plan import (
    BLOCK_RECORD,
    Plan,
    fnv1a,
    read_arrays,
    write_sections,
)
from biella.scheduler.engine._engine import Instance
from biella.scheduler.engine._library import contract, library

pytestmark = pytest.mark.engine

ERROR_PLAN, ERROR_VERSION = -2, -3
HEAD, ENTRY = 32, 24
INT32_MAX, INT32_MIN, INT64_MAX = 2**31 - 1, -(2**31), 2**63 - 1
REALS, LONGS, TEXTS = ("TIME", "SOLV", "PARA"), ("SIZE", "RATE"), ("META", "KERN", "PATH", "NOTE")
KERNELS = sorted(
    name
    for source in (Path(__file__).parents[3] / "blocks").rglob("*.c")
    for name in re.findall(r'\.name = "(\w+)"', source.read_text())
)


def make_plan() -> Plan:
    """A plan with something in every section: guards, a loop, two rates, states and memory."""
    inside = Diagram("inside")
    u = inside.input("u")
    x = inside.add(Integrator(1.0), "x")
    z = inside.add(UnitDelay(2.0), "z")
    inside.connect(u, x, z)
    inside.output("x", x)
    inside.output("z", z)

    d = Diagram("hostile", step=1e-3, solver="trapezoidal")
    on = d.add(Pulse(4e-3, kind="boolean"), "on")
    sub = d.add(Subsystem(inside, enable=True, states="reset"), "sub")
    s = d.add(Sum("+-"), "s")
    g = d.add(Gain(0.5), "g")
    f = d.add(Expression("a * sin(t)"), "f")
    slow = d.add(UnitDelay(), "slow", period=3e-3, offset=1e-3)
    late = d.add(TransportDelay(2.5e-3), "late")
    d.connect(on, sub["enable"])
    d.connect(f, s["u1"])
    d.connect(s, g)
    d.connect(g, s["u2"], slow)
    d.connect(slow, late)
    d.connect(late, sub["u"])
    d.connect(d.input("a"), f)
    d.output("y", sub["x"])
    return d.compile()


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan()


def open_plan(data: bytes) -> tuple[int, str]:
    """What bl_open returns and says; an engine that it made is closed again."""
    handle, message = ctypes.c_void_p(), ctypes.create_string_buffer(512)
    status = library().bl_open(data, len(data), ctypes.byref(handle), message, 512)
    assert (status == 0) == bool(handle)
    if handle:
        library().bl_close(handle)
    return int(status), message.value.decode()


def refuse(data: bytes, code: int = ERROR_PLAN) -> str:
    """Assert that both the engine and `Instance` refuse `data`; return the reason."""
    status, message = open_plan(data)
    assert status == code, message
    assert message
    with pytest.raises(PlanError) as caught:
        Instance(Plan(data, {}))
    assert message in str(caught.value)
    return message


def run(data: bytes) -> None:
    """Run a plan for a few ticks, if it is accepted; any error of ours is fine."""
    with contextlib.suppress(BiellaError), Instance(Plan(data, {})) as instance:
        instance.initialize()
        instance.run(8)
        instance.restore(instance.save())
        instance.run(8)
        instance.derivatives()


def seal(data: bytes | bytearray) -> bytes:
    """Give `data` the size and the hash that it should have."""
    sealed = bytearray(data)
    struct.pack_into("<QQ", sealed, 16, fnv1a(bytes(sealed[HEAD:])), len(sealed))
    return bytes(sealed)


def cells(plan: Plan) -> dict[str, np.ndarray]:
    """The sections as arrays that may be written to."""
    return read_arrays(plan.sections)


def replace(plan: Plan, tag: str, index: int, value: float) -> bytes:
    """The plan with one cell of one section changed."""
    sections = cells(plan)
    sections[tag][index] = value
    return write_sections(sections)


def directory(plan: Plan) -> Iterator[tuple[str, int]]:
    """Each section's tag and the position of its entry in the directory."""
    for n in range(struct.unpack_from("<I", plan.data, 12)[0]):
        at = HEAD + n * ENTRY
        yield plan.data[at : at + 4].decode(), at


def test_the_plan_itself_is_sound(plan: Plan) -> None:
    """The other tests show something only if what they change was right."""
    assert open_plan(plan.data) == (0, "")
    assert open_plan(seal(plan.data)) == (0, "")
    assert write_sections(cells(plan)) == plan.data
    assert all(cells(plan)[tag].size for tag in ("GARD", "LOOP", "BODY", "TEAR", "MINR", "VARS"))
    with plan.instantiate() as instance:
        assert instance.run(50) == (50, False)


def test_nothing_at_all() -> None:
    assert "shorter than a plan's head" in refuse(b"")
    assert "does not start as a plan does" in refuse(b"\0" * 1000)


def test_truncated_at_any_length(plan: Plan) -> None:
    lengths = {*range(1, 600), *range(600, len(plan.data), 37), len(plan.data) - 1}
    for length in sorted(lengths):
        message = refuse(plan.data[:length])
        assert "truncated" in message if length >= HEAD else "shorter" in message
        if length >= HEAD:  # also if head and hash have been adapted
            assert "outside the file" in refuse(seal(plan.data[:length])), length


def test_longer_than_it_says(plan: Plan) -> None:
    assert "longer than it says" in refuse(plan.data + b"\0" * 8)


def test_flipped_bits_are_noticed(plan: Plan) -> None:
    chance = random.Random(1)
    for at in {*range(HEAD), *range(HEAD, len(plan.data), 11)}:
        data = bytearray(plan.data)
        data[at] ^= 1 << chance.randrange(8)
        refuse(bytes(data), ERROR_VERSION if 8 <= at < 12 else ERROR_PLAN)


def test_flipped_bits_under_a_correct_hash(plan: Plan) -> None:
    chance = random.Random(2)
    (sizes,) = struct.unpack_from("<Q", plan.data, dict(directory(plan))["SIZE"] + 8)
    for at in range(HEAD, len(plan.data), 3):
        if sizes <= at < sizes + 24:
            continue  # a legal gigabyte: see test_sizes
        data = bytearray(plan.data)
        data[at] ^= 1 << chance.randrange(8)
        run(seal(data))


@pytest.mark.parametrize("version", [0, 1, 3, 2**32 - 1])
def test_another_version(plan: Plan, version: int) -> None:
    data = bytearray(plan.data)
    struct.pack_into("<I", data, 8, version)
    message = refuse(seal(data), ERROR_VERSION)
    assert message == f"plan format {version}, but this engine reads format 2"


def test_wrong_hash(plan: Plan) -> None:
    data = bytearray(plan.data)
    data[16] ^= 1
    assert "its hash does not match" in refuse(bytes(data))


def test_unknown_kernel(plan: Plan) -> None:
    sections = cells(plan)
    names = sections["KERN"].tobytes().replace(b"unit_delay\0", b"onit_delay\0")
    message = refuse(write_sections({**sections, "KERN": names}))
    assert message == "this engine has no kernel 'onit_delay': the plan was made by a newer biella"


def test_a_kernel_that_does_not_fit(plan: Plan) -> None:
    sections = cells(plan)
    names = sections["KERN"].tobytes().replace(b"unit_delay\0", b"pendulum\0")
    assert "does not fit its kernel 'pendulum'" in refuse(
        write_sections({**sections, "KERN": names})
    )


@pytest.mark.parametrize("mode", ["continuous", "internal"])
def test_a_mechanism_under_the_kernel_for_the_other_mode(mode: Any) -> None:
    """Its states would be where the other kernel does not look for them."""
    d = Diagram("d", 1e-3)
    d.add(slider_crank().block(outputs=["kinetic_energy"], mode=mode), "plant")
    sections = cells(d.compile())
    other = {"continuous": b"multibody_internal\0", "internal": b"multibody\0"}[mode]
    assert "does not fit its kernel" in refuse(write_sections({**sections, "KERN": other}))


@pytest.mark.parametrize("change", [-1, 1])
def test_memory_of_another_size_than_the_kernel_computes(plan: Plan, change: int) -> None:
    sections = cells(plan)
    records = sections["BLKS"].view(BLOCK_RECORD)
    number = next(n for n, block in enumerate(plan.blocks) if block.type == "UnitDelay")
    sections["SIZE"][2] += 1  # so that there is room for more
    records["z_count"][number] += change
    assert "does not fit its kernel 'unit_delay'" in refuse(write_sections(sections))


def test_the_work_space_is_the_kernels_own(plan: Plan) -> None:
    """What plans of earlier versions say of it is not read."""
    sections = cells(plan)
    sections["BLKS"].view(BLOCK_RECORD)["unused"] = -1
    assert open_plan(write_sections(sections))[0] == 0


@pytest.mark.parametrize("ports", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_every_kernel_with_too_little(ports: tuple[int, int]) -> None:
    """No check may look at a port, an integer or a value before it knows that there is one.

    All that the second block has lies at the very end of its table, so that a sanitizer notices.
    """
    for name in KERNELS:
        time, poor = blocks = np.zeros(2, BLOCK_RECORD)
        blocks["guard"] = -1
        time["y_count"] = poor["kernel"] = poor["u_first"] = poor["y_first"] = poor["i_first"] = 1
        poor["u_count"], poor["y_count"] = ports
        data = write_sections(
            {
                "SIZE": np.array([1, 0, 0, 0], "<i8"),
                "TIME": np.array([1e-3, 0.0]),
                "RATE": np.array([0, 0, 0, 0], "<i8"),
                "KERN": b"time\0" + name.encode() + b"\0",
                "BLKS": blocks.view("<i4"),
                "PORT": np.array([0, 1, 0, 1], "<i4"),
                "INTS": np.array([0], "<i4"),
                "PATH": b"a\0b\0",
                "NOTE": b"\0\0",
                "MAJR": np.array([0, 0, 0, 1], "<i4"),
            }
        )
        status, message = open_plan(data)
        assert status == 0 or "does not fit" in message or "calls no block" in message, name
        run(data)


def test_another_number_of_sections(plan: Plan) -> None:
    """The hash does not cover the head."""
    data = bytearray(plan.data)
    (count,) = struct.unpack_from("<I", data, 12)
    for wrong in (0, count - 1, count + 1, count + 4):
        struct.pack_into("<I", data, 12, wrong)
        assert "its directory" in refuse(bytes(data))
    struct.pack_into("<I", data, 12, 2**32 - 1)
    assert "its directory is outside the file" in refuse(bytes(data))
    # The first section starts where such a directory would end.
    longest = (len(data) - HEAD) // ENTRY
    struct.pack_into("<I", data, 12, longest + 1)
    struct.pack_into("<Q", data, HEAD + 8, HEAD + (longest + 1) * ENTRY)
    assert "its directory is outside the file" in refuse(seal(data))


@pytest.mark.parametrize(
    ("field", "tag", "reason"), [(0, "BODY", "blocks do not exist"), (2, "TEAR", "is not cut")]
)
def test_a_loop_is_outside_its_table(plan: Plan, field: int, tag: str, reason: str) -> None:
    """What stands beside the table may look like one: other tables have numbers of blocks, too."""
    size, count = cells(plan)[tag].size, int(cells(plan)["LOOP"][field + 1])
    for distance in range(1, 60):
        for first in (-distance, size - count + distance):
            status, message = open_plan(replace(plan, "LOOP", field, first))
            assert status == ERROR_PLAN and reason in message, first


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("<Q8", 2**64 - 8, "starts outside the file"),
        ("<Q8", 2**40, "starts outside the file"),
        ("<Q8", 1, "starts outside the file"),  # not aligned
        ("<Q16", 2**64 - 1, "ends outside the file"),
        ("<Q16", 2**61, "ends outside the file"),
        ("<I4", 3, "elements of another size"),
        ("<I4", 0, "elements of another size"),
    ],
)
def test_sections_elsewhere(plan: Plan, field: str, value: int, reason: str) -> None:
    for tag, at in directory(plan):
        if tag == "META":  # which the engine does not read
            continue
        data = bytearray(plan.data)
        struct.pack_into(field[:2], data, at + int(field[2:]), value)
        assert reason in refuse(seal(data)), tag


@pytest.mark.parametrize("tag", ["SIZE", "TIME", "RATE", "BLKS", "PATH", "PORT"])
def test_a_section_is_missing(plan: Plan, tag: str) -> None:
    sections = cells(plan)
    del sections[tag]
    refuse(write_sections(sections))


@pytest.mark.parametrize("value", [-1, -(2**63), INT64_MAX, 2**62, 2**27 + 1, 2**27])
def test_sizes(plan: Plan, value: int) -> None:
    """2^27 values are allowed on their own, and here too many together with the others."""
    for index in range(3):
        message = refuse(replace(plan, "SIZE", index, value))
        assert any(word in message for word in ("size", "memory", "implicit")), message
    assert "unknown solver" in refuse(replace(plan, "SIZE", 3, value))


def test_sizes_that_are_too_small(plan: Plan) -> None:
    for index in range(3):
        refuse(replace(plan, "SIZE", index, 0))


@pytest.mark.parametrize("step", [0.0, -1e-3, np.nan, np.inf, 1e300])
def test_impossible_steps(plan: Plan, step: float) -> None:
    assert "step must be positive" in refuse(replace(plan, "TIME", 0, step))


@pytest.mark.parametrize("start", [np.nan, np.inf, -1e300])
def test_impossible_starts(plan: Plan, start: float) -> None:
    refuse(replace(plan, "TIME", 1, start))


def test_impossible_rates(plan: Plan) -> None:
    for period, offset in [(0, 0), (-1, 0), (3, 3), (3, -1), (INT64_MAX, INT64_MAX)]:
        sections = cells(plan)
        sections["RATE"][-2:] = period, offset
        assert "no sound period" in refuse(write_sections(sections))


def test_indices_outside(plan: Plan) -> None:
    """A reference to something that is not there is refused, whichever table it stands in."""
    for tag in ("PORT", "MAJR", "MINR", "BODY", "TEAR", "LOOP", "VARS"):
        for index in range(cells(plan)[tag].size):
            for value in (INT32_MAX, INT32_MIN, -1000):
                refuse(replace(plan, tag, index, value))


def test_any_cell_of_any_table(plan: Plan) -> None:
    """Values that are wrong but not always refused: nothing may be read or written outside."""
    for tag, table in cells(plan).items():
        if tag in TEXTS or tag in LONGS:
            continue
        odd: tuple[float, ...] = (-1, 0, 1, 2, 7, 1000, INT32_MAX, INT32_MIN)
        if tag in REALS:
            odd = (0.0, -1.0, 1e300, np.nan, np.inf, 5e-324)
        for index in range(table.size):
            for value in odd:
                run(replace(plan, tag, index, value))


def test_rows_that_are_cut_off(plan: Plan) -> None:
    for tag in ("BLKS", "PORT", "GARD", "LOOP", "MAJR", "MINR", "VARS"):
        sections = cells(plan)
        sections[tag] = sections[tag][:-1]
        assert "ragged" in refuse(write_sections(sections)), tag


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([0], "the table of arrays is ragged"),
        ([0, 0], "an array is outside the variables"),
        ([-1, 2], "an array is outside the variables"),
        ([0, INT32_MAX], "an array is outside the variables"),
        ([INT32_MAX, 2], "an array is outside the variables"),
        ([0, 2, 1, 2], "an array is outside the variables"),  # they overlap
        ([0, 1000], "an array is outside the variables"),
        ([0, 3], "the elements of an array differ"),  # inputs and an output
    ],
)
def test_arrays_of_variables_that_are_not_there(arrays: list[int], message: str) -> None:
    d = Diagram("arrays")
    d.output("y", d.add(Gain(2.0), "k", u=d.input("u", width=2)))
    sections = cells(d.compile())
    sections["ARRS"] = np.array(arrays, dtype="<i4")
    assert message in refuse(write_sections(sections))
    sections["ARRS"] = np.array([0, 2, 2, 2], dtype="<i4")
    assert open_plan(write_sections(sections)) == (0, "")


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ([0], "the table of types is ragged"),
        ([-1, contract.BL_FLOAT32], "a type is of no variable"),
        ([1000, contract.BL_FLOAT32], "a type is of no variable"),
        ([INT32_MAX, contract.BL_FLOAT32], "a type is of no variable"),
        ([1, contract.BL_FLOAT32], "a type is of no variable"),  # within an array
        ([2, contract.BL_INT8, 0, contract.BL_FLOAT32], "a type is of no variable"),
        ([2, contract.BL_INT8, 2, contract.BL_INT8], "a type is of no variable"),
        ([0, -1], "a variable has an unknown type"),
        ([0, contract.BL_TYPES], "a variable has an unknown type"),
        ([0, INT32_MAX], "a variable has an unknown type"),
        ([0, contract.BL_INT8], "does not fit its kind"),
        ([2, contract.BL_FLOAT32], "does not fit its kind"),
    ],
)
def test_types_of_variables_that_cannot_be(types: list[int], message: str) -> None:
    d = Diagram("types")
    d.output("y", d.add(Gain(2.0), "k", u=d.input("u", width=2)))
    d.output("m", d.add(Convert("integer"), "c", u=d.input("n", kind="integer")))
    sections: dict[str, Any] = cells(d.compile())
    sections["ARRS"] = np.array([0, 2, 3, 2], dtype="<i4")
    sections["TYPE"] = np.array(types, dtype="<i4")
    sections["TYPN"] = b"u\0" * (len(types) // 2)
    assert message in refuse(write_sections(sections))
    right = np.array([0, contract.BL_FLOAT32, 2, contract.BL_UINT64], dtype="<i4")
    sections |= {"TYPE": right, "TYPN": b"u\0n\0"}
    assert open_plan(write_sections(sections)) == (0, "")
    for names, why in ((b"u\0", "wrong number"), (b"u\0n\0m\0", "wrong number"), (b"u\0n", "end")):
        assert why in refuse(write_sections(sections | {"TYPN": names}))
    assert "wrong number" in refuse(write_sections({**sections, "TYPE": right[:0]}))


def test_a_string_table_without_end(plan: Plan) -> None:
    for tag in ("KERN", "PATH", "NOTE"):
        sections = cells(plan)
        assert "does not end" in refuse(write_sections({**sections, tag: b"endless"}))


def test_a_saved_state_of_another_size_or_plan(plan: Plan) -> None:
    other = Diagram("other")
    other.add(Integrator(), "x")
    other.connect(other.input("u"), "x")
    with plan.instantiate() as instance, other.compile().instantiate() as stranger:
        state = instance.save()
        for length in (0, 1, 39, len(state) - 8, len(state) - 1):
            with pytest.raises(BiellaError, match=f"has {len(state)} bytes, this one has {length}"):
                instance.restore(state[:length])
        with pytest.raises(BiellaError, match="bytes"):
            instance.restore(state + b"\0")
        with pytest.raises(BiellaError):
            instance.restore(stranger.save())
        for bit in (1, 2):  # the plan's hash; without its format, it is a state of version 0.1
            spoiled = bytearray(state)
            spoiled[8] ^= bit
            with pytest.raises(BiellaError, match=r"belongs to another plan, or .*version"):
                instance.restore(bytes(spoiled))


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (16, struct.pack("<q", -1)),
        (16, struct.pack("<q", INT64_MAX)),
        (32, struct.pack("<q", 0)),
        (40, struct.pack("<d", np.nan)),
        (40, struct.pack("<d", np.inf)),
        (48, struct.pack("<d", np.nan)),
        (48, struct.pack("<d", -1e-6)),
        (48, struct.pack("<d", 1.0)),
    ],
    ids=[
        "tick negative", "tick overflows", "count", "start NaN", "start infinite", "offset NaN",
        "offset negative", "offset beyond a step",
    ],
)  # fmt: skip
def test_a_saved_state_with_a_wrong_head(plan: Plan, at: int, value: bytes) -> None:
    with plan.instantiate() as instance:
        state = bytearray(instance.save())
        state[at : at + 8] = value
        with pytest.raises(BiellaError):
            instance.restore(bytes(state))
        assert instance.run(3) == (3, False)  # and nothing has changed


def test_a_saved_state_with_wrong_values(plan: Plan) -> None:
    """Also indices that a block keeps in its memory."""
    with plan.instantiate() as instance:
        instance.run(5)
        state = instance.save()
        for at in range(56, len(state), 8):
            for value in (-1.0, 0.5, 1e9, 1e19, -1e300, np.inf, np.nan):
                spoiled = bytearray(state)
                struct.pack_into("<d", spoiled, at, value)
                instance.restore(bytes(spoiled))
                with contextlib.suppress(BlockError):
                    instance.run(4)
        instance.restore(state)
        assert instance.run(4) == (4, False)


def test_a_record_of_values_that_are_not_there(plan: Plan) -> None:
    """Slots come from the description, which the engine has not checked."""
    out = np.zeros((4, 2))
    with plan.instantiate() as instance:
        for slot in (-1, instance.layout.total, INT64_MAX):
            pick = (ctypes.c_int64 * 1)(slot)
            room = out.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
            for record in (
                contract.bl_record(pick, 1, 1, room, 4, 0),
                contract.bl_record(pick, 1, 0, room, 4, 0),
            ):
                with pytest.raises(BiellaError, match="record"):
                    instance.record_now(record)
                with pytest.raises(BiellaError, match="record"):
                    instance.run(1, record)
    assert not out.any()


@pytest.mark.parametrize(
    "description",
    [b"", b"{", b"\xff\xfe", b"[]", b"null", b'{"name": 1}', b"[" * 100_000],
    ids=["empty", "open", "not UTF-8", "list", "null", "incomplete", "deep"],
)
def test_a_description_that_is_none(plan: Plan, description: bytes, tmp_path) -> None:
    """The engine does not read it; Python says what is wrong when it loads the file."""
    file = tmp_path / "x.plan"
    file.write_bytes(write_sections({**cells(plan), "META": description}))
    with pytest.raises(PlanError, match=r"x\.plan.*description"):
        Plan.load(file)


def test_loading_a_file_that_is_no_plan(plan: Plan, tmp_path) -> None:
    file = tmp_path / "x.plan"
    with pytest.raises(PlanError, match="cannot read the plan"):
        Plan.load(file)
    for data, reason in [
        (b"", "does not start with the signature of a plan"),
        (plan.data[:-1], "truncated"),
        (plan.data[:8] + b"\1" + plan.data[9:], "it has format 1"),
    ]:
        file.write_bytes(data)
        with pytest.raises(PlanError, match=reason):
            Plan.load(file)
