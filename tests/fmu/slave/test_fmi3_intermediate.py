"""Intermediate updates of FMI 3.0: the callback within a step, what it may do, early return."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_bool, c_double, c_void_p
from pathlib import Path
from typing import Any

import fmpy
import pytest
from fmi3_calls import ERROR, OK, Instance3, Unpacked3, flag

from biella import Diagram
from biella.blocks import (
    Compare,
    Expression,
    Gain,
    Integrator,
    Relay,
    Stop,
    Sum,
    UnitDelay,
)

pytestmark = pytest.mark.engine

STEP = 1e-3
Called = tuple[float, bool, bool, bool, bool]


def make_diagram(**options: Any) -> Diagram:
    """x' = u - sin(3 x) + z, where z is sampled; b is a boolean input."""
    d = Diagram("updates", step=STEP, **options)
    u = d.input("u")
    x, f = d.add(Integrator(0.3), "x"), d.add(Expression("u - sin(3*x) + z"), "f")
    z = d.add(UnitDelay(0.2), "z", period=4e-3)
    d.connect(u, f["u"])
    d.connect(x, f["x"], z)
    d.connect(z, f["z"])
    d.connect(f, x)
    d.input("b", kind="boolean")
    for name, block in {"x_": x, "z_": z, "f_": f}.items():
        d.output(name, block)
    return d


def open_fmu(folder: Path, diagram: Diagram | None = None, **options: Any) -> Unpacked3:
    diagram = diagram or make_diagram()
    path = diagram.export_fmu(folder / "x.fmu", version="3.0", sources=False, **options)
    return Unpacked3(path, folder / "x")


class Updated(Instance3):  # type: ignore[misc]
    """An instance that notes its callbacks, and calls a function in each."""

    def __init__(self, fmu: Unpacked3, act: Callable[..., Any] | None = None, **more: Any) -> None:
        self.called: list[Called] = []
        self.act = act

        def update(
            _: Any, time: float, sets: bool, gets: bool, finished: bool, early: bool,
            requested: Any, until: Any,
        ) -> None:  # fmt: skip
            self.called.append((time, sets, gets, finished, early))
            if self.act is not None:
                wanted = self.act(self, time)
                if wanted is not None:
                    requested[0], until[0] = True, wanted

        super().__init__(fmu, update=update, **more)


def test_it_is_called_at_each_tick_and_at_the_end(tmp_path: Path) -> None:
    fmu = open_fmu(tmp_path)
    assert flag(fmu, "providesIntermediateUpdate") == "true"
    one = Updated(fmu).start()
    assert one.step(3.5e-3)[0] == OK
    times, sets, gets, finished, early = zip(*one.called, strict=True)
    assert times == pytest.approx([1e-3, 2e-3, 3e-3, 3.5e-3], abs=1e-15)
    assert sets == (True, True, True, False)
    assert gets == finished == (True,) * 4
    assert early == (False,) * 4  # earlyReturnAllowed is false
    one.called.clear()
    assert one.step(0.5e-3)[0] == OK
    assert [time for time, *_ in one.called] == pytest.approx([4e-3], abs=1e-15)
    other = Updated(fmu, early=True).start()
    assert other.step(3e-3)[0] == OK
    assert [early for *_, early in other.called] == [True, True, False]


def test_without_a_callback_nothing_is_called_and_nothing_else_changes(tmp_path: Path) -> None:
    fmu = open_fmu(tmp_path)
    names = ["x_", "z_", "f_"]
    one, other = Instance3(fmu).start(u=1.0), Updated(fmu).start(u=1.0)
    for size in (7e-3, 1.3e-3, 20e-3, 0.2e-3):
        assert one.step(size) == other.step(size)
        assert one.get(*names) == other.get(*names)
    assert len(other.called) == 31


def test_a_step_without_end_is_refused_before_its_first_tick(tmp_path: Path) -> None:
    """Ticks of 1 ms cannot be counted to 1e18 s; without a callback this is an error, too."""
    fmu = open_fmu(tmp_path)
    one = Updated(fmu, lambda one, time: time, early=True).start()  # a first tick would be the last
    assert one.step(1e18)[0] == ERROR
    assert one.called == []


@pytest.mark.parametrize("options", [{}, {"solver": "dopri5", "tolerance": 1e-8}])
def test_intermediate_outputs_are_those_of_shorter_steps(tmp_path: Path, options: Any) -> None:
    """To the bit: they are what steps of one tick give."""
    fmu = open_fmu(tmp_path, make_diagram(**options))
    rows: list[list[float]] = []
    one = Updated(fmu, lambda one, _: rows.append(one.get("x_", "f_"))).start(u=1.0)
    assert one.step(20e-3)[0] == OK
    other = Instance3(fmu).start(u=1.0)
    expected = []
    for _ in range(20):
        assert other.step(STEP)[0] == OK
        expected.append(other.get("x_", "f_"))
    assert rows == expected
    assert len({tuple(row) for row in rows}) == 20


def test_intermediate_inputs_are_those_of_shorter_steps(tmp_path: Path) -> None:
    """To the bit: an input that is set in the callback acts from there on."""
    fmu = open_fmu(tmp_path)

    def act(one: Updated, time: float) -> None:
        if time < 20e-3 - 1e-9:
            assert one.set("u", 100.0 * time) == OK

    one = Updated(fmu, act).start(u=0.0)
    assert one.step(20e-3)[0] == OK
    other = Instance3(fmu).start(u=0.0)
    for k in range(20):
        assert other.set("u", 100.0 * one.called[k - 1][0] if k else 0.0) == OK
        assert other.step(STEP)[0] == OK
    assert one.get("x_", "f_") == other.get("x_", "f_")


@pytest.mark.parametrize(
    ("until", "reached"),
    [(0.0, 3e-3), (3e-3, 3e-3), (4.6e-3, 4.6e-3), (10e-3, 10e-3), (11e-3, 3e-3), (-1.0, 3e-3)],
)
def test_a_step_ends_early_on_request(tmp_path: Path, until: float, reached: float) -> None:
    """At the time requested; at once if that is over, and with a warning if it is no such time."""
    fmu = open_fmu(tmp_path)
    assert flag(fmu, "canReturnEarlyAfterIntermediateUpdate") == "true"
    one = Updated(fmu, lambda _, time: until if abs(time - 3e-3) < 1e-9 else None, early=True)
    one.start()
    status, event, ends, early, time = one.step(10e-3)
    assert (status, event, ends) == (OK, False, False)
    assert time == pytest.approx(reached, abs=1e-12)
    assert early == (reached < 10e-3)
    warned = any("earlyReturnTime" in text for text in one.messages)
    assert warned == (until in (11e-3, -1.0))
    other = Instance3(fmu).start()
    assert other.step(time)[0] == OK
    assert one.get("x_") == other.get("x_")
    one.act = None
    assert one.step(2e-3)[0] == OK


def test_where_early_return_is_not_allowed_a_request_is_ignored(tmp_path: Path) -> None:
    one = Updated(open_fmu(tmp_path), lambda *_: 0.0, early=False).start()
    assert one.step(3e-3)[0] == OK
    assert one.time == pytest.approx(3e-3)
    assert "although canReturnEarly is false" in one.messages[-1]


def test_only_continuous_variables_are_accessible(tmp_path: Path) -> None:
    fmu = open_fmu(tmp_path)
    marked = {n for n, v in fmu.variables.items() if v.get("intermediateUpdate") == "true"}
    assert marked == {"u", "x_", "f_"}
    found: dict[str, Any] = {}

    def act(one: Updated, time: float) -> None:
        for name in ("z_", "x.initial"):
            found[name] = one.read("Float64", [fmu.refer(name)], 1)[0]
            found[f"message {name}"] = one.messages[-1]
        found["b"] = one.set("b", True)
        found["time"] = one.read("Float64", [fmu.refer("time")], 1)
        found["end"] = one.set("u", 1.0)

    one = Updated(fmu, act).start()
    assert one.step(STEP)[0] == OK
    assert found["z_"] == found["x.initial"] == found["b"] == ERROR
    assert "in intermediate update mode: it is not continuous" in found["message z_"]
    assert found["time"] == (OK, [STEP])
    assert found["end"] == ERROR
    assert "no intermediate values are requested there" in one.messages[-1]
    assert one.get("z_") == [0.2]  # in step mode it is


def test_other_functions_are_refused_in_the_callback(tmp_path: Path) -> None:
    """FMI 3.0, 4.2.2: only values and output derivatives."""
    d = Diagram("smooth", step=STEP)
    x = d.add(Integrator(0.3), "x")
    d.connect(d.input("u"), x)
    d.output("y", d.add(Gain(2.0), "k", u=x))
    fmu = open_fmu(tmp_path, d)
    statuses: dict[str, int] = {}
    derivatives: list[Any] = []

    def act(one: Updated, time: float) -> None:
        flags, reached = [c_bool() for _ in range(5)], c_double()
        calls: dict[str, tuple[Any, ...]] = {
            "fmi3DoStep": (time, STEP, True, *(byref(f) for f in flags[:3]), byref(reached)),
            "fmi3Terminate": (), "fmi3Reset": (), "fmi3EnterEventMode": (),
            "fmi3EnterStepMode": (), "fmi3ExitInitializationMode": (),
            "fmi3GetFMUState": (byref(c_void_p()),),
            "fmi3UpdateDiscreteStates": (*(byref(f) for f in flags), byref(reached)),
            "fmi3SetDebugLogging": (False, 0, None),
        }  # fmt: skip
        for function, arguments in calls.items():
            statuses[function] = one.call(function, *arguments)
        statuses["directional"] = one.directional(["y"], ["u"], [1.0])[0]
        statuses["adjoint"] = one.adjoint(["y"], ["u"], [1.0])[0]
        one.library.fmi3FreeInstance(one.pointer)
        derivatives.append(one.output_derivatives(["y"]))

    one = Updated(fmu, act).start(u=1.5)
    assert one.step(2 * STEP)[0] == OK
    assert set(statuses.values()) == {ERROR}
    refused = [text for text in one.messages if "in the state 'intermediate update mode'" in text]
    assert len(refused) == 2 * (len(statuses) + 1)
    assert [status for status, _ in derivatives] == [OK, OK]
    assert derivatives[0][1] == pytest.approx([3.0], rel=1e-6)
    assert one.call("fmi3Terminate") == OK


def test_events_and_stops_end_the_step_as_without_updates(tmp_path: Path) -> None:
    d = Diagram("stops", step=STEP)
    relay = d.add(Relay(on=0.0105, off=-0.0105, high=-1.0, low=1.0), "relay")
    x = d.add(Integrator(0.0), "x")
    d.connect(relay, x)
    d.connect(x, relay)
    late = d.add(Integrator(0.0), "late", u=d.input("u"))
    over = d.add(Compare(">", 0.05), "over", u=late)
    d.connect(over, d.add(Stop("over"), "stop"))
    d.output("x_", d.add(Sum("++"), "sum", u1=x, u2=late))
    fmu = open_fmu(tmp_path, d)
    one = Updated(fmu, events=True, early=True).start(u=1.0)
    other = Instance3(fmu, events=True, early=True).start(u=1.0)
    for instance in (one, other):
        assert instance.call("fmi3EnterStepMode") == OK
    results = []
    for instance in (one, other):
        rows: list[Any] = []
        while not rows or not rows[-1][2]:
            rows.append((*instance.step(0.02), *instance.get("x_")))
            if rows[-1][1]:
                assert instance.call("fmi3EnterEventMode") == OK
                assert instance.update()[0] == OK
                assert instance.call("fmi3EnterStepMode") == OK
        results.append(rows)
    assert results[0] == results[1]
    assert any(row[1] for row in results[0]) and results[0][-1][2]
    assert one.called[-1][0] == pytest.approx(one.time)


def test_a_failure_in_the_callback_fails_the_step(tmp_path: Path) -> None:
    d = Diagram("fails", step=STEP)
    d.output("y", d.add(Expression("1/u"), "f", u=d.input("u", default=1.0)))
    fmu = open_fmu(tmp_path, d)

    def act(one: Updated, time: float) -> None:
        one.set("u", 0.0)
        one.read("Float64", [fmu.refer("y")], 1)

    one = Updated(fmu, act).start(u=1.0)
    assert one.step(3 * STEP)[0] == ERROR
    assert any("not finite" in text for text in one.messages)
    assert len(one.called) == 1


def test_in_fmpy(tmp_path: Path) -> None:
    """An importer that passes the callback on."""
    path = make_diagram().export_fmu(tmp_path / "x.fmu", version="3.0", sources=False)
    times: list[float] = []
    description = fmpy.read_model_description(str(path))
    from fmpy.fmi3 import FMU3Slave

    slave = FMU3Slave(
        guid=description.guid,
        unzipDirectory=fmpy.extract(str(path), str(tmp_path / "x")),
        modelIdentifier=description.coSimulation.modelIdentifier,
        instanceName="one",
    )
    references = {v.name: v.valueReference for v in description.modelVariables}
    slave.instantiate(
        intermediateUpdate=lambda _, time, *more: times.append(time),
        requiredIntermediateVariables=[references["x_"]],
    )
    slave.enterInitializationMode(startTime=0.0)
    slave.exitInitializationMode()
    slave.doStep(0.0, 4e-3)
    assert times == pytest.approx([1e-3, 2e-3, 3e-3, 4e-3])
    slave.freeInstance()
