"""Files of biella 0.1: what still opens, and what says which release reads it.

tests/data_0_1/README.md says how they were made.
"""

from __future__ import annotations

import lzma
import re
from pathlib import Path

import numpy as np
import pytest

from biella import (
    BiellaError,
    Diagram,
    Fmu,
    FmuError,
    Plan,
    PlanError,
    Result,
    __version__,
    replay,
    simulate,
)
from biella.blocks import Constant, Gain, Integrator, Sum
from biella.cli import main

DATA = Path(__file__).parent / "data_0_1"
STEP, UNTIL = 0.01, 0.5


def diagram() -> Diagram:
    d = Diagram("old loop", step=STEP)
    ref = d.add(Constant(2.0), name="ref")
    e, k, x = (
        d.add(Sum("+-"), name="e"), d.add(Gain(3.0), name="k"), d.add(Integrator(1.0), name="x")
    )  # fmt: skip
    d.connect(ref, e["u1"])
    d.connect(x, e["u2"])
    d.connect(e, k)
    d.connect(k, x)
    d.output("x", x)
    return d


@pytest.fixture
def unpacked(tmp_path: Path):
    def unpack(name: str) -> Path:
        target = tmp_path / name
        target.write_bytes(lzma.decompress((DATA / f"{name}.xz").read_bytes()))
        return target

    return unpack


@pytest.mark.engine
def test_a_result_is_read_and_has_the_same_bits_today(unpacked):
    old = Result.from_hdf5(unpacked("result.h5"))
    new = simulate(diagram(), UNTIL, record=["x", "e"])
    assert list(old) == list(new) == ["x.y", "e.y"]
    for name in new:
        assert old[name].tobytes() == new[name].tobytes()
    assert old.t.tobytes() == new.t.tobytes()
    assert old.info["diagram"] == "old loop" and old.units == new.units


def test_the_signals_of_a_log_are_read(unpacked):
    log = Result.from_hdf5(unpacked("log.h5"))
    # dx/dt = 3 (2 - x), x(0) = 1: x = 2 - exp(-3 t). One step of RK4 is off by (0.03)^5 / 120.
    np.testing.assert_allclose(log["x"], 2 - np.exp(-3 * log.t), rtol=0, atol=1e-8)
    assert log.length == 21 and log.realtime_report() is not None


def test_the_message_of_a_replay_names_the_release(unpacked):
    with pytest.raises(
        PlanError, match=r"format 1, readable by biella 0\.1; .* format 2\..*signals"
    ):
        replay(unpacked("log.h5"))


def test_the_message_of_the_command_names_the_release(unpacked, capsys):
    assert main(["replay", str(unpacked("log.h5"))]) == 1
    assert "format 1, readable by biella 0.1" in capsys.readouterr().err


def test_the_message_of_a_plan_names_the_release():
    with pytest.raises(
        PlanError,
        match=r"`.*plan\.biella` is not a valid plan for .* by "
        r"biella 0\.1",
    ):
        Plan.load(DATA / "plan.biella")


def test_the_message_of_a_plan_of_the_future_says_so(tmp_path):
    data = bytearray(diagram().compile().data)
    data[8:12] = (99).to_bytes(4, "little")
    path = tmp_path / "plan.biella"
    path.write_bytes(data)
    with pytest.raises(PlanError, match="format 99, readable by a later release of biella"):
        Plan.load(path)


@pytest.mark.engine
def test_a_saved_state_is_refused():
    with pytest.raises(BiellaError, match="saved by another version of biella"):
        simulate(diagram(), 1.0, checkpoint=(DATA / "state.bin").read_bytes())


def test_an_fmu_is_read(capsys):
    """Its binary carries the engine of 0.1, and is left out here: only that is missing."""
    path = DATA / "loop.fmu"
    assert main(["info", str(path)]) == 0
    said = capsys.readouterr().out
    assert "old loop" in said and "biella 0.1" in said and "ref" in said and "k.k" in said
    with pytest.raises(FmuError, match="binar"):
        Fmu(path)


@pytest.mark.engine
def test_a_saved_state_of_a_later_format_is_refused_by_its_number():
    state = bytearray(simulate(diagram(), 0.1).checkpoint or b"")
    state[4:8] = (99).to_bytes(4, "little")
    with pytest.raises(BiellaError, match=r"has format 99, of another version .* reads format 2"):
        simulate(diagram(), 1.0, checkpoint=bytes(state))


@pytest.mark.engine
def test_files_name_the_release_and_the_engine(tmp_path):
    simulate(diagram(), 0.1, out=tmp_path / "r.h5")
    info = Result.from_hdf5(tmp_path / "r.h5").info
    assert info["biella"] == __version__ and re.fullmatch("[0-9a-f]{16}", info["engine"])
