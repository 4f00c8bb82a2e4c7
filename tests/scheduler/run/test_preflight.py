"""What is checked after a diagram is compiled and before it runs."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from biella import BiellaWarning, Diagram, linearize, run_realtime, simulate, sweep
from biella.blocks import StateSpace
from biella.blocks.multibody.mechanisms import mcpherson
from biella.scheduler.compile._compiler import compile_diagram
from biella.scheduler.run._preflight import warn_of_steps

COARSE = r"`plant` \(Plant\): RK4 is not stable with steps of 0.01 s"


def car() -> Diagram:
    d = Diagram("car", step=1e-2)
    plant = d.add(mcpherson().block(outputs=["wheel.position"]), name="plant")
    d.output("wheel", plant["wheel.position"])
    return d


def fast() -> Diagram:
    d = Diagram("fast", step=1e-2)
    d.add(StateSpace([[-1e4]], [[1.0]], [[1.0]], [[0.0]]), name="pole")
    d.connect(d.input("u"), d["pole"])
    d.output("y", d["pole"])
    return d


def test_compiling_alone_neither_warns_nor_runs_anything() -> None:
    model = compile_diagram(car())
    with pytest.warns(BiellaWarning, match=COARSE) as told:
        warn_of_steps(model)
    assert told[0].filename == __file__


@pytest.mark.parametrize("make", [car, fast])
def test_every_way_to_use_a_diagram_warns_once(
    make: type[Diagram], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    def told() -> int:
        found = [w for w in recwarn.list if "with steps of" in str(w.message)]
        recwarn.clear()
        warnings.simplefilter("always")
        return len(found)

    ways = {
        "compile": lambda d: d.compile(),
        "simulate": lambda d: simulate(d, 0.0),
        "run_realtime": lambda d: run_realtime(d, until=0.0, clock="free").wait(),
        "export": lambda d: d.export_fmu(tmp_path / "a.fmu"),
        "sweep": lambda d: sweep(d, 0.0, [{}, {}, {}], progress=False),
    }
    if make is fast:
        ways["linearize"] = lambda d: linearize(d)
    counts = {}
    for name, use in ways.items():
        use(make())
        counts[name] = told()
    assert counts == dict.fromkeys(ways, 1)


def test_a_mechanism_alone_is_warned_of_when_it_is_exported(tmp_path: Path) -> None:
    with pytest.warns(BiellaWarning, match="RK4 is not stable with steps of 0.01 s"):
        mcpherson().export_fmu(tmp_path / "a.fmu", step=1e-2)


def test_drawing_checks_nothing_of_the_kind(tmp_path: Path) -> None:
    car().draw(tmp_path / "a.svg")
