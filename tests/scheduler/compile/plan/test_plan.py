"""Plans: the same bytes every time, in memory and in a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from biella import Diagram, Plan, simulate
from biella.blocks import (
    Constant,
    Integrator,
)
from biella.errors import PlanError
from biella.scheduler.compile.plan._plan import read_sections, write_sections

pytestmark = pytest.mark.engine


def small() -> Plan:
    d = Diagram("small", step=1e-3)
    d.connect(d.add(Constant(1.0), name="c"), d.add(Integrator(), name="i"))
    return d.compile()


def test_sections_come_back_as_they_were_written():
    real = np.array([1.0, -2.5])
    sections: dict[str, npt.NDArray[Any] | bytes] = {
        "META": b"{}",
        "ODDS": b"abc",  # the next section starts at a multiple of 8 bytes all the same
        "REAL": real,
        "INTS": np.arange(3, dtype=np.int32),
    }
    data = write_sections(sections)
    assert data.index(real.tobytes()) % 8 == 0
    found = read_sections(data)
    assert found["META"] == b"{}" and found["ODDS"] == b"abc"
    assert np.frombuffer(found["REAL"]).tolist() == [1.0, -2.5]
    assert np.frombuffer(found["INTS"], np.int32).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: b"not a plan" + data,
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: data[:8] + (10**6).to_bytes(4, "little") + data[12:],
    ],
    ids=["empty", "other", "truncated", "longer", "version"],
)
def test_bytes_that_are_no_plan_are_refused(spoil):
    with pytest.raises(PlanError):
        read_sections(spoil(small().data))


def test_a_changed_byte_is_noticed_by_the_engine():
    data = bytearray(small().data)
    data[-1] ^= 1
    with pytest.raises(PlanError):
        simulate(Plan(bytes(data), {}), 0.01)


def test_the_hash_is_of_the_content():
    d = Diagram("small", step=1e-3)
    d.connect(d.add(Constant(1.5), name="c"), d.add(Integrator(), name="i"))
    assert small().hash == small().hash != d.compile().hash


def test_a_plan_is_the_same_bytes_every_time_and_survives_a_file(pendulum_loop, tmp_path):
    plan = pendulum_loop().compile()
    assert plan.data == pendulum_loop().compile().data
    plan.save(tmp_path / "loop.plan")
    loaded = Plan.load(tmp_path / "loop.plan")
    assert loaded.data == plan.data and loaded.hash == plan.hash
    a, b = simulate(plan, 0.5), simulate(loaded, 0.5)
    assert a.paths == b.paths and np.array_equal(a["pendulum.angle"], b["pendulum.angle"])
