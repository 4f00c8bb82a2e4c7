"""Model exchange call by call: when each function is allowed, states, derivatives, misuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ctypes import byref, c_double, c_int32, c_uint32
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import FMU2Model, FMU2Slave
from fmpy.fmi3 import FMU3Model, FMU3Slave

from biella import Diagram, System, simulate
from biella.blocks import (
    Compare,
    Constant,
    Convert,
    Expression,
    Gain,
    Integrator,
    Relay,
    StateMachine,
    Sum,
)

from .exchange_models import (
    make_ball,
    make_crank,
    make_driven,
    make_held,
    make_relay,
    make_sampled,
    make_stopping,
    make_threshold,
)

pytestmark = pytest.mark.engine

Open = Callable[..., Any]
TAKE = {"2.0": "newDiscreteStates", "3.0": "updateDiscreteStates"}
DERIVE = {"2.0": "getDerivatives", "3.0": "getContinuousStateDerivatives"}


class Tool:
    """An importing tool: one instance, with arrays for states, derivatives and indicators."""

    def __init__(self, path: Path, folder: str, version: str, messages: list[str]) -> None:
        self.description = fmpy.read_model_description(str(path))
        self.version = version
        self.references = {v.name: v.valueReference for v in self.description.modelVariables}
        make = FMU2Model if version == "2.0" else FMU3Model
        self.fmu = make(
            guid=self.description.guid,
            unzipDirectory=folder,
            modelIdentifier=self.description.modelExchange.modelIdentifier,
            instanceName="tool",
        )
        self.nx = self.description.numberOfContinuousStates
        self.nz = self.description.numberOfEventIndicators
        self.messages = messages
        self.instantiate()

    def instantiate(self) -> None:
        from fmpy import fmi2

        if self.version == "2.0":
            callbacks = fmi2.fmi2CallbackFunctions()
            callbacks.logger = fmi2.fmi2CallbackLoggerTYPE(
                lambda *args: self.messages.append(args[-1].decode())
            )
            callbacks.allocateMemory = fmi2.fmi2CallbackAllocateMemoryTYPE(fmi2.calloc)
            callbacks.freeMemory = fmi2.fmi2CallbackFreeMemoryTYPE(fmi2.free)
            self.callbacks = callbacks
            self.fmu.instantiate(callbacks=callbacks)
        else:
            self.fmu.instantiate(logMessage=lambda *args: self.messages.append(args[-1].decode()))

    def said(self, text: str) -> bool:
        """Whether the last message has a text; FMPy gets only the format of those of FMI 2.0."""
        return text in self.messages[-1] or self.messages[-1] == "%s"

    def initialize(self, tolerance: float | None = None) -> None:
        if self.version == "2.0":
            self.fmu.setupExperiment(startTime=0.0, tolerance=tolerance)
            self.fmu.enterInitializationMode()
        else:
            self.fmu.enterInitializationMode(startTime=0.0, tolerance=tolerance)
        self.fmu.exitInitializationMode()

    def take_event(self) -> tuple[Any, ...]:
        return tuple(getattr(self.fmu, TAKE[self.version])())

    def start(self) -> None:
        self.initialize()
        self.take_event()
        self.fmu.enterContinuousTimeMode()

    def read(self, *names: str) -> list[float]:
        references = [self.references[name] for name in names]
        get = self.fmu.getReal if self.version == "2.0" else self.fmu.getFloat64
        return [float(v) for v in get(references)]

    def write(self, name: str, value: float) -> None:
        put = self.fmu.setReal if self.version == "2.0" else self.fmu.setFloat64
        put([self.references[name]], [value])

    def array(self, function: str, count: int) -> np.ndarray:
        values = (c_double * count)()
        getattr(self.fmu, function)(values, count)
        return np.array(values)

    @property
    def states(self) -> np.ndarray:
        return self.array("getContinuousStates", self.nx)

    @states.setter
    def states(self, x: np.ndarray) -> None:
        self.fmu.setContinuousStates((c_double * self.nx)(*x), self.nx)

    @property
    def derivatives(self) -> np.ndarray:
        return self.array(DERIVE[self.version], self.nx)

    @property
    def indicators(self) -> np.ndarray:
        return self.array("getEventIndicators", self.nz)

    def integrate(self, until: float, t: float = 0.0, step: float = 1e-3) -> float:
        """Forward Euler without events; return where it stopped: at a sign, or `until`."""
        signs = self.indicators > 0
        count = round((until - t) / step)
        for n in range(count):
            x = self.states + step * self.derivatives
            now = t + (n + 1) * step
            self.fmu.setTime(now)
            self.states = x
            self.fmu.completedIntegratorStep()
            if ((self.indicators > 0) != signs).any():
                return now
        return until


@pytest.fixture(params=["2.0", "3.0"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Diagram, str], tuple[Path, str]]:
    """Export a diagram once for each version; return the FMU and its folder."""
    written: dict[tuple[str, str], tuple[Path, str]] = {}
    root = tmp_path_factory.mktemp("calls")

    def write(diagram: Diagram, version: str) -> tuple[Path, str]:
        key = (diagram.name, version)
        if key not in written:
            path = root / f"{'_'.join(key)}.fmu"
            diagram.export_fmu(path, kind="me", version=version, sources=False)
            written[key] = path, fmpy.extract(str(path), str(path.with_suffix("")))
        return written[key]

    return write


@pytest.fixture
def open_tool(export: Callable[[Diagram, str], tuple[Path, str]], version: str) -> Iterator[Open]:
    opened: list[Tool] = []

    def make(diagram: Diagram) -> Tool:
        opened.append(Tool(*export(diagram, version), version, []))
        return opened[-1]

    yield make
    for tool in opened:
        tool.fmu.freeInstance()


def state_of(tool: Tool, state: str) -> None:
    """Bring an instance that was just made into a state of its life."""
    if state == "instantiated":
        return
    if state == "initialization mode":
        if tool.version == "2.0":
            tool.fmu.setupExperiment(startTime=0.0)
        tool.fmu.enterInitializationMode()
        return
    tool.initialize()
    if state == "event mode":
        return
    tool.take_event()
    tool.fmu.enterContinuousTimeMode()
    if state == "terminated":
        tool.fmu.terminate()


STATES = (
    "instantiated",
    "initialization mode",
    "event mode",
    "continuous-time mode",
    "terminated",
)
EVENT, CONTINUOUS, BOTH = {STATES[2]}, {STATES[3]}, {STATES[2], STATES[3]}
KNOWN = {STATES[1], *BOTH, STATES[4]}
ALLOWED: dict[str, tuple[set[str], Callable[[Tool], object]]] = {
    "SetTime": (BOTH, lambda tool: tool.fmu.setTime(0.0)),
    "SetContinuousStates": (CONTINUOUS, lambda tool: setattr(tool, "states", [0.5, 0.25])),
    "EnterContinuousTimeMode": (EVENT, lambda tool: enter_continuous(tool)),
    "CompletedIntegratorStep": (CONTINUOUS, lambda tool: tool.fmu.completedIntegratorStep()),
    "NewDiscreteStates": (EVENT, lambda tool: tool.take_event()),
    "GetDerivatives": (KNOWN, lambda tool: tool.derivatives),
    "GetEventIndicators": (KNOWN, lambda tool: tool.indicators),
    "GetContinuousStates": (KNOWN, lambda tool: tool.states),
    "GetNominalsOfContinuousStates": (
        {*KNOWN, STATES[0]},
        lambda tool: tool.array("getNominalsOfContinuousStates", tool.nx),
    ),
    "Terminate": (BOTH, lambda tool: tool.fmu.terminate()),
    "GetReal": (set(STATES), lambda tool: tool.read("x_out")),
    "SetReal": ({STATES[0], STATES[1], *BOTH}, lambda tool: tool.write("u", 0.5)),
    "tunable parameter": (
        {STATES[0], STATES[1], *EVENT},
        lambda tool: tool.write("k.k", 3.0),
    ),
    "state by reference": (CONTINUOUS, lambda tool: tool.write("states.x.x", 3.0)),
}


def enter_continuous(tool: Tool) -> None:
    tool.take_event()
    tool.fmu.enterContinuousTimeMode()


@pytest.mark.parametrize("call", ALLOWED)
@pytest.mark.parametrize("state", STATES)
def test_each_call_is_allowed_where_the_standard_says(
    open_tool: Open, state: str, call: str
) -> None:
    tool = open_tool(make_driven())
    state_of(tool, state)
    states, do = ALLOWED[call]
    if state in states:
        do(tool)
        return
    with pytest.raises(FMICallException):
        do(tool)
    assert tool.messages


def test_an_event_must_be_taken_before_integration_goes_on(open_tool: Open) -> None:
    tool = open_tool(make_driven())
    tool.initialize()
    with pytest.raises(FMICallException):
        tool.fmu.enterContinuousTimeMode()
    assert tool.said("has not been taken")


def test_an_fmu_for_one_kind_makes_no_instance_of_the_other(tmp_path: Path) -> None:
    for kind, other in (("me", "CoSimulation"), ("cs", "ModelExchange")):
        path = make_driven().export_fmu(tmp_path / f"{kind}.fmu", kind=kind)
        description = fmpy.read_model_description(str(path))
        assert (description.coSimulation is None) == (kind == "me")
        assert (description.modelExchange is None) == (kind == "cs")
        offered = description.coSimulation or description.modelExchange
        make = FMU2Slave if other == "CoSimulation" else FMU2Model
        fmu = make(
            guid=description.guid,
            unzipDirectory=fmpy.extract(str(path), str(tmp_path / f"{kind}_folder")),
            modelIdentifier=offered.modelIdentifier,
            instanceName="other",
        )
        with pytest.raises(Exception, match="instantiate"):
            fmu.instantiate()


def test_indicators_are_positive_after_an_event_and_do_not_fire_again(open_tool: Open) -> None:
    """Right after a rebound the ball is at its limit: the crossing function is 0 there."""
    tool = open_tool(make_ball())
    tool.start()
    assert (tool.indicators > 0).all()
    now = tool.integrate(1.0)
    assert now < 0.5
    x = tool.states
    assert x[0] < 0 and x[1] < 0
    tool.fmu.enterEventMode()
    outcome = tool.take_event()
    assert [bool(v) for v in outcome[:5]] == [False, False, False, True, False]
    tool.fmu.enterContinuousTimeMode()
    np.testing.assert_allclose(tool.states, [0.0, -0.8 * x[1]], rtol=1e-14)
    assert (tool.indicators > 0).all()
    assert tool.integrate(now + 0.1, now) == now + 0.1


def test_a_tick_commits_once_and_shows_outputs_before(open_tool: Open) -> None:
    """At a sample hit, outputs are those of the tick before and after the update."""
    tool = open_tool(make_sampled())
    tool.initialize()
    assert tool.read("gain_out", "delay_out") == [5.0, 0.0]
    outcome = tool.take_event()
    assert bool(outcome[4]) and outcome[5] == pytest.approx(0.05, abs=1e-15)
    tool.fmu.enterContinuousTimeMode()
    tool.fmu.setTime(0.05)
    tool.states = np.array([0.75])
    assert tool.read("gain_out") == [5.0]
    tool.fmu.enterEventMode()
    assert tool.read("gain_out") == [3.75]
    outcome = tool.take_event()
    assert outcome[5] == pytest.approx(0.1, abs=1e-15)
    assert tool.take_event()[5] == pytest.approx(0.1, abs=1e-15)
    assert tool.read("gain_out", "delay_out") == [3.75, 0.0]
    tool.fmu.enterContinuousTimeMode()
    assert tool.derivatives == pytest.approx([-3.75])


def test_inputs_that_change_in_an_event_are_sampled_again(open_tool: Open) -> None:
    """Event iteration: the sample is that of the last inputs, taken once, from the state before."""
    tool = open_tool(make_held())
    tool.initialize()
    tool.write("u", 1.0)
    assert tool.read("gain_out") == [2.0]
    tool.take_event()
    assert tool.read("gain_out") == [2.0]
    tool.write("u", 3.0)
    assert tool.read("gain_out") == [6.0]
    outcome = tool.take_event()
    assert not outcome[0] and outcome[5] == pytest.approx(0.1, abs=1e-15)
    tool.fmu.enterContinuousTimeMode()
    assert tool.derivatives == [6.0]
    tool.write("u", 50.0)
    assert tool.read("gain_out") == [6.0]
    tool.fmu.setTime(0.1)
    tool.states = np.array([0.6])
    tool.write("u", 1.0)
    tool.fmu.enterEventMode()
    # One sum of 0.1 s · 6, none of what was sampled first.
    assert tool.read("gain_out", "total_out") == [2.0, pytest.approx(1.6, abs=1e-15)]


def test_another_event_at_the_same_instant_samples_again(open_tool: Open) -> None:
    """As where the event of another FMU changes an input after this one has ended its own."""
    tool = open_tool(make_held())
    tool.start()
    tool.fmu.setTime(0.1)
    tool.states = np.array([0.25])
    tool.fmu.enterEventMode()
    tool.take_event()
    tool.fmu.enterContinuousTimeMode()
    tool.write("u", 2.0)
    assert tool.derivatives == [0.0]
    tool.fmu.enterEventMode()
    tool.take_event()
    tool.fmu.enterContinuousTimeMode()
    assert tool.derivatives == [4.0]
    # Later, within the sample, another event does not sample.
    tool.fmu.setTime(0.15)
    tool.states = np.array([0.45])
    tool.fmu.enterEventMode()
    tool.write("u", 7.0)
    tool.take_event()
    tool.fmu.enterContinuousTimeMode()
    assert tool.derivatives == [4.0]
    tool.fmu.setTime(0.2)
    tool.states = np.array([0.65])
    tool.fmu.enterEventMode()
    assert tool.read("total_out", "gain_out") == [pytest.approx(1.4, abs=1e-15), 14.0]


def test_a_state_saved_within_an_event_samples_again_too(open_tool: Open) -> None:
    tool = open_tool(make_held())
    tool.initialize()
    tool.write("u", 1.0)
    tool.take_event()
    saved = tool.fmu.getFMUState()
    for _ in range(2):
        tool.fmu.setFMUState(saved)
        tool.write("u", 3.0)
        tool.take_event()
        tool.fmu.enterContinuousTimeMode()
        assert tool.derivatives == [6.0]
        tool.fmu.setTime(0.05)
        tool.states = np.array([0.3])
    tool.fmu.freeFMUState(saved)


@pytest.mark.parametrize("name, value, slope", [("over.threshold", 3.0, 0.0), ("u", 0.5, 0.0)])
def test_what_is_set_after_the_last_update_decides_modes(
    open_tool: Open, name: str, value: float, slope: float
) -> None:
    tool = open_tool(make_threshold())
    tool.initialize()
    tool.write("u", 2.0)
    tool.take_event()
    assert tool.derivatives.tolist() == [1.0, 1.0]
    tool.write(name, value)
    tool.fmu.enterContinuousTimeMode()
    assert tool.derivatives.tolist() == [slope, 1.0]
    assert (tool.indicators > 0).all()


def test_a_sample_that_is_set_after_the_last_update_is_taken(open_tool: Open) -> None:
    tool = open_tool(make_held())
    tool.initialize()
    tool.take_event()
    tool.write("u", 3.0)
    tool.fmu.enterContinuousTimeMode()
    assert tool.derivatives == [6.0]


def test_a_reset_after_the_last_update_asks_for_another(open_tool: Open) -> None:
    """The tool would not read the state that has changed."""
    tool = open_tool(make_threshold())
    tool.start()
    tool.fmu.setTime(0.5)
    tool.states = np.array([0.0, 0.5])
    tool.fmu.enterEventMode()
    tool.take_event()
    tool.write("u", 5.0)
    with pytest.raises(FMICallException):
        tool.fmu.enterContinuousTimeMode()
    assert tool.said("update the discrete states again")


def test_a_time_event_must_not_be_passed(open_tool: Open) -> None:
    tool = open_tool(make_sampled())
    tool.start()
    tool.fmu.setTime(0.07)
    with pytest.raises(FMICallException):
        tool.fmu.enterEventMode()
    assert tool.said("passes the event at t = 0.05")


def test_an_output_that_is_not_finite_is_not_given(open_tool: Open) -> None:
    d = Diagram("root", step=1e-2)
    x = d.add(Integrator(0.5), name="x", u=d.add(Constant(1.0), name="one"))
    d.output("y", d.add(Expression("sqrt(1 - x)"), name="root", x=x))
    tool = open_tool(d)
    tool.start()
    tool.states = np.array([2.0])
    with pytest.raises(FMICallException):
        tool.read("y")
    tool.states = np.array([0.75])
    assert tool.read("y") == [0.5]


@pytest.mark.parametrize(("share", "needs_event"), [(1.0, False), (0.999, True)])
def test_states_may_drift_as_far_as_the_tolerance_allows(
    open_tool: Open, share: float, needs_event: bool
) -> None:
    """By a hundred tolerances. A quaternion of length 1 - 2⁻¹⁰ is moved by 2⁻¹⁰ to the bit."""
    system = System("free", (0.0, 0.0, -9.81))
    system.body("top", mass=1.0, inertia=(1.0, 2.0, 2.5), free=True)
    d = Diagram("free", step=1e-2)
    d.output("place", d.add(system.block(outputs=["top.position"]), name="plant"))
    tool = open_tool(d)
    tool.initialize(tolerance=share * 2.0**-10 / 100.0)
    tool.take_event()
    tool.fmu.enterContinuousTimeMode()
    x = tool.states
    ((whole,),) = np.nonzero(x == 1.0)
    x[whole] -= 2.0**-10
    tool.states = x
    assert bool(tool.fmu.completedIntegratorStep()[0]) == needs_event


def test_a_time_of_more_ticks_than_a_double_counts_is_refused(open_tool: Open) -> None:
    tool = open_tool(make_ball())
    tool.start()
    with pytest.raises(FMICallException):
        tool.fmu.setTime(1.5 * 2.0**53 * 1e-3)
    assert tool.said("is not within the simulation")


def test_termination_is_reported(open_tool: Open) -> None:
    tool = open_tool(make_stopping())
    tool.fmu.setDebugLogging(True, [])
    tool.start()
    tool.fmu.setTime(1e-3)
    tool.states = np.array([1.0])
    tool.fmu.enterEventMode()
    assert len(tool.messages) == 1 and tool.said("initialized")
    assert bool(tool.take_event()[1])
    assert tool.said("the model ends the simulation at t = 0.001")
    assert bool(tool.take_event()[1])
    assert len(tool.messages) == 2
    tool.fmu.terminate()


def test_a_failed_evaluation_is_discarded_and_may_be_repeated(open_tool: Open) -> None:
    tool = open_tool(make_driven())
    tool.start()
    good = tool.derivatives
    tool.states = np.array([1e300, 1e300])
    with pytest.raises(FMICallException):
        _ = tool.derivatives
    tool.states = np.array([0.5, 0.25])
    np.testing.assert_array_equal(tool.derivatives, good)


@pytest.mark.parametrize("make", [make_relay, make_ball, make_crank, make_sampled])
def test_saved_states_continue_with_the_same_bits(open_tool: Open, make: Any) -> None:
    """Also with a mode that the present values would decide otherwise: beyond a crossing."""
    tool = open_tool(make())
    tool.start()
    until = 0.049 if make is make_sampled else 0.52
    now = tool.integrate(until)
    save = tool.fmu.getFMUstate if tool.version == "2.0" else tool.fmu.getFMUState
    restore = tool.fmu.setFMUstate if tool.version == "2.0" else tool.fmu.setFMUState
    state = save()

    def go_on() -> list[np.ndarray]:
        found = [tool.states, tool.derivatives, tool.indicators]
        tool.fmu.enterEventMode()
        tool.take_event()
        tool.fmu.enterContinuousTimeMode()
        tool.integrate(now + (1e-3 if make is make_sampled else 0.05), now)
        return [*found, tool.states, tool.derivatives, tool.indicators]

    first = go_on()
    restore(state)
    for one, other in zip(first, go_on(), strict=True):
        np.testing.assert_array_equal(one, other)
    if tool.version == "2.0":
        data = tool.fmu.serializeFMUstate(state)
        tool.fmu.setFMUstate(tool.fmu.deSerializeFMUstate(data))
        for one, other in zip(first, go_on(), strict=True):
            np.testing.assert_array_equal(one, other)
        damaged = bytearray(data)
        damaged[-1] ^= 0x40
        with pytest.raises(FMICallException):
            tool.fmu.setFMUstate(tool.fmu.deSerializeFMUstate(bytes(damaged)))


def test_a_damaged_state_leaves_the_instance_as_it_was(
    export: Callable[[Diagram, str], tuple[Path, str]],
) -> None:
    """All of a saved state is taken or nothing: not the values of it with the modes of another."""
    tool = Tool(*export(make_relay(), "2.0"), "2.0", [])
    tool.start()
    damaged = bytearray(tool.fmu.serializeFMUstate(tool.fmu.getFMUstate()))
    damaged[-1] ^= 0x40
    tool.integrate(0.25)
    x, dx, indicators = tool.states, tool.derivatives, tool.indicators
    with pytest.raises(FMICallException):
        tool.fmu.setFMUstate(tool.fmu.deSerializeFMUstate(bytes(damaged)))
    np.testing.assert_array_equal(tool.states, x)
    np.testing.assert_array_equal(tool.derivatives, dx)
    np.testing.assert_array_equal(tool.indicators, indicators)
    tool.fmu.freeInstance()


def test_a_restored_instance_requests_no_more_events_than_the_first(open_tool: Open) -> None:
    """An instance that was not initialized has no tolerance: it takes the default one."""
    tool = open_tool(make_crank())
    tool.start()
    save = tool.fmu.getFMUstate if tool.version == "2.0" else tool.fmu.getFMUState
    restore = tool.fmu.setFMUstate if tool.version == "2.0" else tool.fmu.setFMUState
    state = save()
    step = 1e-6

    def count_events() -> int:
        count = 0
        for n in range(5):
            x = tool.states + step * tool.derivatives
            tool.fmu.setTime((n + 1) * step)
            tool.states = x
            count += tool.fmu.completedIntegratorStep()[0]
        return count

    # Steps of 1e-6 s from rest: a drift of less than 1e-9, the limit is 1e-4.
    assert count_events() == 0
    tool.fmu.reset()
    restore(state)
    assert count_events() == 0


@pytest.mark.parametrize("mode", ["event mode", "continuous-time mode"])
def test_directional_derivatives_against_differences(open_tool: Open, mode: str) -> None:
    """x' = u² - x y, y' = 3·[u > 1] - k y + b: df/d(x, y, u), exact, and of an output."""
    tool = open_tool(make_driven())
    tool.initialize()
    tool.take_event()
    if mode == "continuous-time mode":
        tool.fmu.enterContinuousTimeMode()
        tool.fmu.setTime(0.3)
        tool.states = np.array([0.7, -0.4])
    x, y = tool.states
    tool.write("u", 0.8)
    r = tool.references
    unknowns = [r["der(states.x.x)"], r["der(states.y.x)"], r["sum"]]
    knowns = [r["states.x.x"], r["states.y.x"], r["u"]]
    derive = (
        tool.fmu.getDirectionalDerivative
        if tool.version == "2.0"
        else lambda u, k, s: tool.fmu.getDirectionalDerivative(u, k, s, len(u))
    )
    matrix = np.array(
        [derive(unknowns, knowns, [float(i == k) for i in range(3)]) for k in range(3)]
    ).T
    expected = [[-y, -x, 2 * 0.8], [0.0, -2.0, 0.0], [y, x, 1.0]]
    np.testing.assert_allclose(matrix, expected, atol=1e-9)
    np.testing.assert_array_equal(tool.states, [x, y])


def test_directional_derivatives_of_a_mechanism(open_tool: Open) -> None:
    tool = open_tool(make_crank())
    tool.start()
    tool.integrate(0.2)
    r = tool.references
    names = [v.name for v in tool.description.modelVariables if v.name.startswith("states.")]
    unknowns = [r[f"der({name})"] for name in names]
    x = tool.states
    for k, name in enumerate(names):
        if tool.version == "2.0":
            column = tool.fmu.getDirectionalDerivative(unknowns, [r[name]], [1.0])
        else:
            column = tool.fmu.getDirectionalDerivative(unknowns, [r[name]], [1.0], len(unknowns))
        ends = []
        for size in (1e-6, -1e-6):
            moved = x.copy()
            moved[k] += size
            tool.states = moved
            ends.append(tool.derivatives)
        tool.states = x
        slope = (ends[0] - ends[1]) / 2e-6
        # Central differences: h² f'''/6 and rounding, 1e-16/1e-6, of derivatives of up to 1e3.
        np.testing.assert_allclose(column, slope, rtol=1e-5, atol=1e-5 * max(1, abs(slope).max()))


@pytest.mark.parametrize("mode", ["event mode", "continuous-time mode"])
def test_adjoint_derivatives_are_the_transposed_directional_ones(
    export: Callable[[Diagram, str], tuple[Path, str]], mode: str
) -> None:
    """Of the equations above, whose Jacobian is known."""
    tool = Tool(*export(make_driven(), "3.0"), "3.0", [])
    tool.initialize()
    tool.take_event()
    if mode == "continuous-time mode":
        tool.fmu.enterContinuousTimeMode()
        tool.fmu.setTime(0.3)
        tool.states = np.array([0.7, -0.4])
    x, y = tool.states
    tool.write("u", 0.8)
    r = tool.references
    unknowns = [r["der(states.x.x)"], r["der(states.y.x)"], r["sum"]]
    knowns = [r["states.x.x"], r["states.y.x"], r["u"]]
    jacobian = np.array([[-y, -x, 2 * 0.8], [0.0, -2.0, 0.0], [y, x, 1.0]])
    for seed in (*np.eye(3), np.array([0.5, -2.0, 3.0])):
        found = tool.fmu.getAdjointDerivative(unknowns, knowns, seed, 3)
        np.testing.assert_allclose(found, seed @ jacobian, atol=1e-8)
    tool.fmu.freeInstance()


def test_states_and_derivatives_are_variables(open_tool: Open) -> None:
    tool = open_tool(make_driven())
    tool.start()
    tool.states = np.array([0.75, -1.0])
    assert tool.read("states.x.x", "states.y.x") == [0.75, -1.0]
    names = ["der(states.x.x)", "der(states.y.x)"]
    np.testing.assert_array_equal(tool.read(*names), tool.derivatives)
    if tool.version == "3.0":
        names = [n for n in tool.references if n.startswith("event_indicators")]
        assert len(names) == tool.nz
        np.testing.assert_array_equal(tool.read(*names), tool.indicators)
        count = fmpy.fmi3.c_size_t() if hasattr(fmpy.fmi3, "c_size_t") else None
        if count is not None:
            tool.fmu.fmi3GetNumberOfContinuousStates(tool.fmu.component, byref(count))
            assert count.value == tool.nx
            tool.fmu.fmi3GetNumberOfEventIndicators(tool.fmu.component, byref(count))
            assert count.value == tool.nz


def test_a_reset_instance_starts_over(open_tool: Open) -> None:
    tool = open_tool(make_ball())
    tool.start()
    first = tool.integrate(1.0)
    x = tool.states
    tool.fmu.reset()
    tool.start()
    assert tool.integrate(1.0) == first
    np.testing.assert_array_equal(tool.states, x)


def test_a_parameter_changes_in_an_event(open_tool: Open) -> None:
    tool = open_tool(make_driven())
    tool.start()
    assert tool.derivatives[1] == -0.5
    tool.fmu.enterEventMode()
    tool.write("k.k", 4.0)
    tool.take_event()
    tool.fmu.enterContinuousTimeMode()
    assert tool.derivatives[1] == -1.0


def test_a_parameter_of_a_constant_changes_modes_in_the_event(open_tool: Open) -> None:
    """x > 2 c holds from the event on in which c becomes 0.1, as x = 0.5."""
    d = Diagram("border", step=1e-2)
    x, z = d.add(Integrator(0.5), "x"), d.add(Integrator(0.0), "z")
    c, double = d.add(Constant(10.0), "c"), d.add(Gain(2.0), "double")
    above, over, real = Sum("+-"), Compare(">", 0.0), Convert("real")
    d.connect(d.add(Constant(0.0), "zero"), x)
    d.connect(c, double)
    d.add(above, "above", u1=x, u2=double)
    d.connect(above, d.add(over, "over"))
    d.connect(over, d.add(real, "real"))
    d.connect(real, z)
    d.output("z_out", z)
    tool = open_tool(d)
    tool.start()
    tool.fmu.setTime(0.005)
    tool.fmu.enterEventMode()
    tool.write("c.value", 0.1)
    tool.take_event()
    tool.fmu.enterContinuousTimeMode()
    np.testing.assert_array_equal(tool.derivatives, [0.0, 1.0])
    assert (tool.indicators > 0.0).all()


def test_co_simulation_of_an_fmu_for_both_kinds_has_states_too(tmp_path: Path) -> None:
    path = make_driven().export_fmu(tmp_path / "a.fmu", kind="both")
    names = ["states.x.x", "der(states.x.x)", "x_out"]
    rows = fmpy.simulate_fmu(
        str(path), fmi_type="CoSimulation", stop_time=0.5, output_interval=0.01, output=names
    )
    np.testing.assert_array_equal(rows["states.x.x"], rows["x_out"])
    slope = np.gradient(rows["x_out"], rows["time"])[1:-1]
    # Central differences: h² x'''/6 with h = 1e-2 s.
    np.testing.assert_allclose(rows["der(states.x.x)"][1:-1], slope, atol=1e-4)


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_derivatives_of_states_have_no_derivatives_in_time(tmp_path: Path, version: str) -> None:
    """They are no outputs: in co-simulation they were 0, whatever the model."""
    d = Diagram("falling", step=1e-2)
    x = d.add(Integrator(1.0), "x")
    back = d.add(Gain(-1.0), "back")
    d.connect(x, back)
    d.connect(back, x)
    d.output("x_out", x)
    path = d.export_fmu(tmp_path / "a.fmu", kind="both", version=version, sources=False)
    description = fmpy.read_model_description(str(path))
    make = FMU2Slave if version == "2.0" else FMU3Slave
    fmu = make(
        guid=description.guid,
        unzipDirectory=fmpy.extract(str(path), str(tmp_path / "folder")),
        modelIdentifier=description.coSimulation.modelIdentifier,
        instanceName="one",
    )
    fmu.instantiate()
    if version == "2.0":
        fmu.setupExperiment(startTime=0.0)
    fmu.enterInitializationMode()
    fmu.exitInitializationMode()
    r = {v.name: v.valueReference for v in description.modelVariables}

    def derive(name: str) -> float:
        value = (c_double * 1)()
        one, order = (c_uint32 * 1)(r[name]), (c_int32 * 1)(1)
        if version == "2.0":
            fmu.fmi2GetRealOutputDerivatives(fmu.component, one, 1, order, value)
        else:
            fmu.fmi3GetOutputDerivatives(fmu.component, one, 1, order, value, 1)
        return float(value[0])

    fmu.doStep(0.0, 0.1)
    assert derive("x_out") == pytest.approx(-np.exp(-0.1), rel=1e-6)
    with pytest.raises(FMICallException):
        derive("der(states.x.x)")
    fmu.freeInstance()


def make_counting() -> Diagram:
    """n grows by 1 at each tick of 0.1 s, in a machine with located guards; a relay keeps n > 2.5.

    x' = n, and y' is 1 where the relay is on.
    """
    machine = StateMachine(inputs=["x"], outputs=["n"], continuous=True)
    only = machine.state("only", during={"n": "n + 1"})
    machine.transition(only, only, when="x > 1e9")
    d = Diagram("counting", step=0.1)
    x = d.add(Integrator(), "x")
    real = d.add(Expression("1*n"), "real")
    d.chain(d.add(machine, "machine", x=x)["n"], real, x)
    d.chain(real, d.add(Relay(2.5, -1.0), "relay"), d.add(Integrator(), "y"))
    d.output("rate", real)
    d.output("on", d["relay"])
    return d


def test_what_a_machine_changes_at_ticks_is_held_while_a_tool_integrates(open_tool: Open) -> None:
    """Between two ticks, and in the event at one, n is that of the tick, as in a run."""
    result = simulate(make_counting(), 0.4)
    assert list(np.diff(result["real"])) == [1, 1, 1, 1]
    assert list(np.diff(result["relay"])).count(1) == 1
    tool = open_tool(make_counting())
    tool.start()
    for tick in range(4):
        expected = [result["real"][tick], result["relay"][tick]]
        for part in (0.03, 0.07, 0.05):
            tool.fmu.setTime(0.1 * tick + part)
            tool.states = np.array([0.1 * tick, 0.0])
            assert sorted(tool.derivatives) == sorted(expected)
            assert tool.read("rate", "on") == expected
        tool.fmu.setTime(0.1 * (tick + 1))
        tool.fmu.enterEventMode()
        tool.take_event()
        tool.fmu.enterContinuousTimeMode()


def test_indicators_during_initialization_are_of_the_start_time(open_tool: Open) -> None:
    """x + t - 6 at x = 0.25 and t = 5; also after a reset."""
    d = Diagram("timed", step=1e-2)
    x = d.add(Integrator(0.25), "x")
    late = d.add(Expression("where(x + t > 6, 1, 0)"), "late", x=x)
    d.connect(late, x)
    d.output("y", x)
    tool = open_tool(d)
    for _ in range(2):
        if tool.version == "2.0":
            tool.fmu.setupExperiment(startTime=5.0)
            tool.fmu.enterInitializationMode()
        else:
            tool.fmu.enterInitializationMode(startTime=5.0)
        assert np.abs(tool.indicators) == pytest.approx([0.75], abs=1e-9)
        tool.fmu.exitInitializationMode()
        tool.take_event()
        tool.fmu.enterContinuousTimeMode()
        tool.fmu.setTime(5.5)
        assert np.abs(tool.indicators) == pytest.approx([0.25], abs=1e-9)
        tool.fmu.reset()
