"""Each capability flag of a description is what the functions do, true or false.

Those of FMI 3.0 co-simulation are in ``tests/fmu/slave/test_fmi3_calls.py``.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from ctypes import byref, c_double, c_size_t
from pathlib import Path
from typing import Any

import fmpy
import pytest
from fmpy import fmi2, fmi3

from biella import Diagram
from biella.blocks import Gain, Integrator, UnitDelay

from .conftest import lag
from .exchange_models import make_crank

pytestmark = pytest.mark.engine

Check = Callable[[], str]
VERSIONS = ("2.0", "3.0")


class Opened:
    """Instances of an exported FMU, through FMPy's functions."""

    def __init__(self, path: Path, diagram: Diagram, version: str, kind: str) -> None:
        diagram.export_fmu(path, version=version, kind=kind, sources=False)
        self.folder = fmpy.extract(str(path), str(path.with_suffix("")))
        self.description = fmpy.read_model_description(str(path))
        element = {"cs": "CoSimulation", "me": "ModelExchange"}[kind]
        root = ET.parse(Path(self.folder) / "modelDescription.xml").getroot()
        (capabilities,) = root.iter(element)
        self.flags = {n: v for n, v in capabilities.attrib.items() if n != "modelIdentifier"}
        self.references = {v.name: v.valueReference for v in self.description.modelVariables}
        self.version, self.kind = version, kind
        self.made: list[Any] = []

    def make(self) -> Any:
        classes = {
            ("2.0", "cs"): fmi2.FMU2Slave,
            ("2.0", "me"): fmi2.FMU2Model,
            ("3.0", "me"): fmi3.FMU3Model,
        }
        own = self.description.coSimulation or self.description.modelExchange
        one = classes[self.version, self.kind](
            guid=self.description.guid,
            unzipDirectory=self.folder,
            modelIdentifier=own.modelIdentifier,
            instanceName="one",
        )
        if self.version == "2.0":
            callbacks = fmi2.fmi2CallbackFunctions()  # without functions for memory
            callbacks.logger = fmi2.fmi2CallbackLoggerTYPE(lambda *_: None)
            one.instantiate(callbacks=callbacks)
        else:
            one.instantiate(logMessage=lambda *_: None)
        self.made.append(one)
        return one

    def start(self, tolerance: float | None = None, **values: float) -> Any:
        one = self.make()
        if self.version == "2.0":
            one.setupExperiment(startTime=0.0, tolerance=tolerance)
            one.enterInitializationMode()
        else:
            one.enterInitializationMode(startTime=0.0, tolerance=tolerance)
        put = one.setReal if self.version == "2.0" else one.setFloat64
        for name, value in values.items():
            put([self.references[name]], [value])
        one.exitInitializationMode()
        if self.kind == "me":
            (one.newDiscreteStates if self.version == "2.0" else one.updateDiscreteStates)()
            one.enterContinuousTimeMode()
        return one

    def read(self, one: Any, name: str) -> float:
        get = one.getReal if self.version == "2.0" else one.getFloat64
        return float(get([self.references[name]])[0])

    def refuses(self, call: Callable[..., Any], *arguments: Any) -> bool:
        try:
            call(*arguments)
        except fmpy.fmi1.FMICallException:
            return True
        return False


@pytest.fixture
def open_fmu(tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    opened: list[Opened] = []

    def make(diagram: Diagram, version: str, kind: str) -> Opened:
        path = tmp_path / f"{len(opened)}.fmu"
        opened.append(Opened(path, diagram, version, kind))
        return opened[-1]

    yield make
    for fmu in opened:
        for one in fmu.made:
            one.freeInstance()


def say(is_true: bool) -> str:
    return str(bool(is_true)).lower()


def check_instances(fmu: Opened) -> str:
    one, other = fmu.start(u=1.0), fmu.start(u=3.0)
    return say((fmu.read(one, "y"), fmu.read(other, "y")) != (2.0, 6.0))


def check_memory(fmu: Opened) -> str:
    return say(fmu.read(fmu.start(u=1.0), "y") == 2.0)  # all instances here have no functions


def move(fmu: Opened, one: Any) -> float:
    """Change the state, and return the output that shows it."""
    if fmu.kind == "cs":
        one.doStep(0.0, 0.1)
    else:
        one.setContinuousStates((c_double * 1)(0.75), 1)
    return fmu.read(one, "sum")


def check_states(fmu: Opened, serializes: bool) -> str:
    one = fmu.start(u=1.0)
    names = ("FMUstate", "deSerialize") if fmu.version == "2.0" else ("FMUState", "deserialize")
    before, state = fmu.read(one, "sum"), getattr(one, f"get{names[0]}")()
    after = move(fmu, one)
    if serializes:
        data = getattr(one, f"serialize{names[0]}")(state)
        one = fmu.start(u=-1.0)
        state = getattr(one, f"{names[1]}{names[0]}")(data)
    getattr(one, f"set{names[0]}")(state)
    return say(fmu.read(one, "sum") == before != after and move(fmu, one) == after)


def check_derivative(fmu: Opened) -> str:
    one, (y, u) = fmu.start(u=1.0), (fmu.references["y"], fmu.references["u"])
    more = () if fmu.version == "2.0" else (1,)
    return say(list(one.getDirectionalDerivative([y], [u], [3.0], *more)) == [6.0])


def check_adjoint(fmu: Opened) -> str:
    one, (y, u) = fmu.start(u=1.0), (fmu.references["y"], fmu.references["u"])
    return say(list(one.getAdjointDerivative([y], [u], [3.0], 1)) == [6.0])


def check_step_sizes(fmu: Opened) -> str:
    one, t = fmu.start(u=1.0), 0.0
    for size in (1e-3, 2.5e-3, 1e-4, 0.01):
        one.doStep(t, size)
        t += size
    return say(fmu.read(one, "sum") == pytest.approx(0.5 + t, abs=1e-14))


def check_interpolation(fmu: Opened) -> str:
    one = fmu.start(u=1.0)
    one.setRealInputDerivatives([fmu.references["u"]], [1], [5.0])
    one.doStep(0.0, 0.1)
    return say(fmu.read(one, "sum") == pytest.approx(0.5 + 0.1 + 5.0 * 0.1**2 / 2))


def find_output_order(fmu: Opened) -> str:
    """The largest order of derivatives of the integrated output, which is u."""
    one, order = fmu.start(u=1.0), 0
    one.doStep(0.0, 0.1)
    reference = [fmu.references["sum"]]
    while not fmu.refuses(one.getRealOutputDerivatives, reference, [order + 1]):
        order += 1
        value = float(one.getRealOutputDerivatives(reference, [order])[0])
        assert value == pytest.approx(1.0 if order == 1 else 0.0, abs=1e-6)
    return str(order)


def check_running_alone(fmu: Opened) -> str:
    return say(not fmu.refuses(fmu.start(u=1.0).cancelStep))


def check_dependencies(fmu: Opened) -> str:
    one, count = fmu.start(u=1.0), c_size_t()
    call = one.fmi3GetNumberOfVariableDependencies
    return say(not fmu.refuses(call, one.component, fmu.references["y"], byref(count)))


def check_discrete_evaluation(fmu: Opened) -> str:
    one = fmu.start(u=1.0)
    one.enterEventMode()
    return say(not fmu.refuses(one.fmi3EvaluateDiscreteStates, one.component))


def requests_events(fmu: Opened) -> bool:
    """Whether a completed step requests an event, if a tool integrates badly."""
    one, count = fmu.start(tolerance=1e-9), fmu.description.numberOfContinuousStates
    x, slopes = (c_double * count)(), (c_double * count)()
    derive = "getDerivatives" if fmu.version == "2.0" else "getContinuousStateDerivatives"
    for n in range(100):
        one.getContinuousStates(x, count)
        getattr(one, derive)(slopes, count)
        one.setTime((n + 1) * 1e-3)
        one.setContinuousStates(
            (c_double * count)(*(a + 1e-3 * b for a, b in zip(x, slopes, strict=True))), count
        )
        if one.completedIntegratorStep()[0]:
            return True
    return False


def shared(fmu: Opened) -> dict[str, Check]:
    """The checks that both kinds and versions have, by the names of FMI 2.0."""
    return {
        "canBeInstantiatedOnlyOncePerProcess": lambda: check_instances(fmu),
        "canGetAndSetFMUstate": lambda: check_states(fmu, serializes=False),
        "canSerializeFMUstate": lambda: check_states(fmu, serializes=True),
        "providesDirectionalDerivative": lambda: check_derivative(fmu),
    }


@pytest.mark.parametrize("smooth", [True, False])
def test_co_simulation_of_fmi_2(open_fmu: Callable[..., Opened], smooth: bool) -> None:
    diagram = lag()
    if not smooth:  # a sampled output has no derivatives in time, so that none has
        z = diagram.add(UnitDelay(), "z", period=1e-2)
        diagram.connect(diagram.blocks["k"], z)
        diagram.output("late", z)
    fmu = open_fmu(diagram, "2.0", "cs")
    checks: dict[str, Check] = shared(fmu) | {
        "canNotUseMemoryManagementFunctions": lambda: check_memory(fmu),
        "canHandleVariableCommunicationStepSize": lambda: check_step_sizes(fmu),
        "canInterpolateInputs": lambda: check_interpolation(fmu),
        "maxOutputDerivativeOrder": lambda: find_output_order(fmu),
        "canRunAsynchronuously": lambda: check_running_alone(fmu),
    }
    assert fmu.flags == {name: check() for name, check in checks.items()}
    assert (fmu.flags["maxOutputDerivativeOrder"] != "0") is smooth


@pytest.mark.parametrize("version", VERSIONS)
def test_model_exchange(open_fmu: Callable[..., Opened], version: str) -> None:
    d = Diagram("lag")
    u = d.input("u")
    k, x = d.add(Gain(2.0), "k"), d.add(Integrator(0.5), "x")
    d.connect(u, k, x)
    d.output("y", k)
    d.output("sum", x)
    fmu = open_fmu(d, version, "me")
    checks = shared(fmu)
    if version == "2.0":
        checks["canNotUseMemoryManagementFunctions"] = lambda: check_memory(fmu)
        checks["completedIntegratorStepNotNeeded"] = lambda: say(not requests_events(fmu))
    else:
        names = {"canGetAndSetFMUstate": "canGetAndSetFMUState",
                 "canSerializeFMUstate": "canSerializeFMUState",
                 "providesDirectionalDerivative": "providesDirectionalDerivatives"}  # fmt: skip
        checks = {names.get(name, name): check for name, check in checks.items()} | {
            "providesAdjointDerivatives": lambda: check_adjoint(fmu),
            "providesPerElementDependencies": lambda: check_dependencies(fmu),
            "providesEvaluateDiscreteStates": lambda: check_discrete_evaluation(fmu),
            "needsCompletedIntegratorStep": lambda: say(requests_events(fmu)),
        }
    assert fmu.flags == {name: check() for name, check in checks.items()}


@pytest.mark.parametrize("version", VERSIONS)
def test_completed_steps_are_needed_where_states_drift(
    open_fmu: Callable[..., Opened], version: str
) -> None:
    fmu = open_fmu(make_crank(), version, "me")
    assert requests_events(fmu)
    flag = (
        "completedIntegratorStepNotNeeded" if version == "2.0" else "needsCompletedIntegratorStep"
    )
    assert fmu.flags[flag] == say(version == "3.0")
