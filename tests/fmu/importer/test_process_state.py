"""What of the process an FMU may not change."""

from __future__ import annotations

import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from specimen import make_specimen

from biella import (
    Diagram,
    Fmu,
    run_realtime,
    simulate,
)
from biella.blocks import (
    Pendulum,
    Sine,
)
from biella.scheduler.engine._engine import Instance

from .runs import BACKENDS, IDS

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
@pytest.mark.parametrize("flag", ["-DROUNDS", "-DFLUSHES"])
def test_an_fmu_does_not_change_our_arithmetic(tmp_path, flag, options):
    if flag == "-DFLUSHES" and platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("needs an x86 processor")
    path = make_specimen(tmp_path / "s.fmu", flags=(flag,))

    def run(with_fmu):
        d = Diagram("rounding", step=0.01)
        if with_fmu:
            d.add(Fmu(path, substeps=3, **options), name="f")
        p = d.add(Pendulum(angle=1.0, damping=0.1), name="p")
        d.connect(d.add(Sine(0.3, 5.0, unit="N.m"), name="s"), p)
        return simulate(d, 2.0, record=["p.*"])

    assert np.array_equal(run(True)["p.angle"], run(False)["p.angle"])
    third, small = 1.0, sys.float_info.min
    third /= 3.0
    assert (third, -third) == (0x15555555555555 / 2**54, -0x15555555555555 / 2**54)
    assert small / 4.0 * 4.0 == small


@pytest.mark.parametrize("options", BACKENDS, ids=IDS)
def test_an_fmu_does_not_change_our_working_directory(tmp_path, monkeypatch, options):
    path = make_specimen(tmp_path / "s.fmu", flags=("-DWANDERS",))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    d = Diagram("folder", step=0.01)
    d.add(Fmu(path, **options), name="f")
    with Instance(d.compile()) as instance:
        assert Path.cwd() == here
        instance.initialize()
        assert Path.cwd() == here
        instance.evaluate()
        assert Path.cwd() == here
        instance.run(3)
        assert Path.cwd() == here
        instance.restore(instance.save())
        assert Path.cwd() == here
    assert Path.cwd() == here
    simulate(d, 0.1, out="run.h5")
    assert (here / "run.h5").exists()


def test_nor_do_fmus_in_several_threads(tmp_path, monkeypatch):
    """The directory that one thread would restore may be that of another's FMU."""
    path = make_specimen(tmp_path / "s.fmu", flags=("-DWANDERS",))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    d = Diagram("folder", step=0.01)
    d.add(Fmu(path), name="f")
    plan = d.compile()

    def run(_: int) -> None:
        with plan.instantiate() as instance:
            instance.run(3)
            instance.restore(instance.save())

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(run, range(600)))
    assert Path.cwd() == here


def test_a_program_may_change_its_working_directory_during_a_live_run(
    specimen, tmp_path, monkeypatch
):
    d = Diagram("folder", step=0.01)
    d.add(Fmu(specimen), name="f")
    with run_realtime(d, clock="free") as run:
        monkeypatch.chdir(tmp_path)
        run.stop()
        assert Path.cwd() == tmp_path
