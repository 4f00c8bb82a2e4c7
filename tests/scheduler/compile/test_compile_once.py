"""A diagram is flattened, checked and encoded once, whatever is done with it, and runs once."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from biella import Diagram, Result, Subsystem, linearize, replay, run_realtime, simulate, sweep
from biella.blocks import PID, Asynchronous, Gain, Integrator, ShortBearing, Step, TransferFunction
from biella.blocks.multibody.mechanisms import mcpherson, slider_crank
from biella.fmu.exporter._description2 import describe_fmi2
from biella.scheduler.compile._compiler import _analyze
from biella.scheduler.compile._flatten import flatten
from biella.scheduler.compile.plan._encode import Encoder
from biella.scheduler.engine._engine import Instance

COUNTED: dict[str, Any] = {
    "flatten": flatten,
    "analyze": _analyze,
    "encode": Encoder.encode,
    "engine": Instance.__init__,
    "xml": describe_fmi2,
}


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count the calls of what is in `COUNTED`, under whatever name it was imported."""
    names = {function.__code__: name for name, function in COUNTED.items()}
    counts: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
    lock = threading.Lock()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in names:
            with lock:
                counts[names[frame.f_code]] += 1

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield counts
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def lag(name: str = "lag") -> Diagram:
    """A controlled lag, partly in a subsystem."""
    inner = Diagram("inner")
    u = inner.input("u")
    plant = inner.add(TransferFunction([2.0], [0.5, 1.0]), name="plant")
    inner.connect(u, plant)
    inner.output("y", plant)
    d = Diagram(name, step=1e-2)
    ref = d.add(Step(at=0.0, to=3.0), name="ref")
    pid = d.add(PID(kp=2.0, ki=1.0, period=1e-2), name="pid")
    process = d.add(Subsystem(inner), name="process")
    d.connect(ref, pid["reference"])
    d.connect(process["y"], pid["measurement"])
    d.connect(pid, process["u"])
    d.output("y", process["y"])
    return d


def crank() -> Diagram:
    """A mechanism without springs, driven."""
    d = Diagram("crank", step=1e-3)
    torque = d.add(Step(at=0.0, to=2.0, unit="N.m"), name="torque")
    plant = d.add(slider_crank().block(["motor.torque"], ["main.angle"]), name="plant")
    d.connect(torque, plant["motor.torque"])
    d.output("angle", plant["main.angle"])
    return d


ONCE = {"flatten": 1, "analyze": 1, "encode": 1, "engine": 1, "xml": 0}


def count(act: Callable[[], object]) -> dict[str, int]:
    with counting() as counts:
        act()
    return dict(counts)


@pytest.mark.parametrize("make", [lag, crank])
def test_a_simulation(make: Callable[[], Diagram]) -> None:
    d = make()
    assert count(lambda: simulate(d, until=0.1, error_estimate=False)) == ONCE
    assert count(lambda: simulate(d, until=0.1)) == {**ONCE, "engine": 2}  # and the shadow


def test_a_model_that_is_simulated_again_is_not_compiled_again() -> None:
    model = lag().compile()
    again = {**dict.fromkeys(COUNTED, 0), "engine": 4}  # each with the shadow of the estimate
    assert count(lambda: [simulate(model, until=0.1) for _ in range(2)]) == again


def test_an_export(tmp_path: Path) -> None:
    d = lag()
    written = {**ONCE, "engine": 0, "xml": 1}
    assert count(lambda: d.export_fmu(tmp_path / "a.fmu")) == written


def test_an_export_with_a_source_as_input(tmp_path: Path) -> None:
    """The source alone runs, for its first value: a diagram of one block, checked and encoded."""
    d = lag()
    found = count(lambda: d.export_fmu(tmp_path / "a.fmu", inputs=["ref"]))
    assert found == {"flatten": 1, "analyze": 2, "encode": 2, "engine": 1, "xml": 1}


def test_an_export_of_a_diagram_with_a_mechanism(tmp_path: Path) -> None:
    """The engine is that of the preflight: whether reactions that it shows are unique."""
    d = crank()
    assert count(lambda: d.export_fmu(tmp_path / "a.fmu")) == {**ONCE, "xml": 1}
    again = count(lambda: d.export_fmu(tmp_path / "b.fmu", inputs=["torque"]))
    assert again == {"flatten": 1, "analyze": 2, "encode": 2, "engine": 2, "xml": 1}


def test_an_export_of_a_mechanism(tmp_path: Path) -> None:
    found = count(lambda: slider_crank().export_fmu(tmp_path / "a.fmu"))
    assert found == {**ONCE, "engine": 0, "xml": 1}


def test_a_live_run() -> None:
    d = lag()
    assert count(lambda: run_realtime(d, until=0.05, clock="free").wait()) == ONCE


def test_a_bound_run_and_its_replay() -> None:
    """Types are resolved twice: of the diagram itself, and with the stand-ins for what is real."""
    d = Diagram("loop", step=1e-2)
    x = d.add(Integrator(1.0), name="x")
    k = d.add(Gain(-2.0), name="k")
    d.connect(x, k)
    d.connect(k, x)
    board = {"driver": "loopback", "receive": {"y": {}}, "send": {"u": {"safe": 0}}}
    rig = {"devices": {"board": board}, "blocks": {"k": {"device": "board"}}}
    results: list[Result] = []
    found = count(
        lambda: results.append(run_realtime(d, until=0.05, clock="free", bind=rig).wait())
    )
    assert found == {**ONCE, "analyze": 2}
    assert count(lambda: replay(results[0], d)) == {**ONCE, "analyze": 2}


def test_a_linearization() -> None:
    d = Diagram("crank", step=1e-3)
    torque = d.input("torque", unit="N.m")
    plant = d.add(slider_crank().block(["motor.torque"], ["main.angle"]), name="plant")
    d.connect(torque, plant["motor.torque"])
    d.output("angle", plant["main.angle"])
    assert count(lambda: linearize(d)) == ONCE


def test_a_drawing_writes_no_plan(tmp_path: Path) -> None:
    d = lag()
    found = count(lambda: d.draw(tmp_path / "a.svg"))
    assert found == {"flatten": 1, "analyze": 1, "encode": 0, "engine": 0, "xml": 0}


def test_a_sweep() -> None:
    d = lag()
    found = count(lambda: sweep(d, 0.1, {"pid.kp": [1.0, 2.0, 3.0]}, progress=False))
    assert found == {**ONCE, "engine": 3}


def test_an_asynchronous_diagram_is_compiled_once_for_a_run() -> None:
    inner = Diagram("inner", step=1e-2)
    x = inner.add(Integrator(1.0), name="x")
    k = inner.add(Gain(-2.0), name="k")
    inner.connect(x, k)
    inner.connect(k, x)
    inner.output("x", x)
    d = Diagram("outer", step=1e-2)
    d.add(Asynchronous(inner, period=1e-1), name="slow")
    # The outer diagram and the inner one; first results, the worker, and the run itself.
    found = count(lambda: run_realtime(d, until=0.05, clock="free").wait())
    assert found == {"flatten": 1, "analyze": 2, "encode": 2, "engine": 3, "xml": 0}


class TestPreflight:
    """Engines that a preflight starts, besides those of the run and of its error estimate."""

    def test_a_mechanism_with_springs_looks_for_its_fastest_motion_once(self) -> None:
        d = Diagram("car", step=1e-4)
        plant = mcpherson()
        block = lambda: d.add(plant.block(outputs=["wheel.position"]), name="plant")  # noqa: E731
        assert count(block) == dict.fromkeys(COUNTED, 0)
        alone = lambda: simulate(d, until=1e-3, error_estimate=False)  # noqa: E731
        assert count(alone)["engine"] == 2
        assert count(alone)["engine"] == 1

    def test_a_stiff_block_is_tried_twice_before_every_run(self) -> None:
        d = Diagram("film", step=1e-4)
        bearing = d.add(ShortBearing(0.02, 0.01, 4e-5, 0.01), name="film")
        position = d.add(Integrator([1e-5, 0.0]), name="position")
        d.connect(position, bearing["position"])
        scale = d.add(Gain(1e-9, unit="m/s"), name="scale")
        d.connect(bearing["force"], scale)
        d.connect(scale, position)
        assert count(lambda: simulate(d, until=1e-2, error_estimate=False))["engine"] == 3
        grid = {"film.viscosity": [0.02, 0.021, 0.022, 0.023]}
        found = count(lambda: sweep(d, 1e-2, grid, progress=False))
        assert found == {"flatten": 1, "analyze": 1, "encode": 1, "engine": 4 * 3, "xml": 0}
