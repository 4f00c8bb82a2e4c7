"""FMI 3.0: each function in each state, what is not offered, and calls that are wrong."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_bool, c_double, c_size_t, c_uint32, c_void_p
from pathlib import Path
from typing import Any

import pytest
from fmi3_calls import DISCARD, ERROR, LOGGER, OK, TYPES, Instance3, Unpacked3, flag, is_refused

from biella import Diagram
from biella.blocks import Compare, Convert, Gain, Integrator, Logic, Mux, Stop, UnitDelay

pytestmark = pytest.mark.engine


def make_diagram() -> Diagram:
    """A diagram with every kind of variable; an input ends it."""
    d = Diagram("calls", step=1e-3)
    u = d.input("u")
    k = d.add(Gain(2.0), "k")
    x = d.add(Integrator(1.0), "x")
    z = d.add(UnitDelay(), "z", period=2e-3)
    count = d.add(Convert("integer"), "count")
    flipped = d.add(Logic("not"), "flipped")
    over = d.add(Compare(">", 1e6), "over")
    both = d.add(Mux(2), "both")
    d.connect(u, k)
    d.connect(k, x, z, over)
    d.connect(k, both["u1"])
    d.connect(x, both["u2"])
    d.connect(d.input("number", kind="integer"), count)
    d.connect(d.input("on", kind="boolean"), flipped)
    d.connect(over, d.add(Stop("enough"), "stop"))
    for name, block in {
        "y": k, "x": x, "z": z, "count": count, "off": flipped, "both": both
    }.items():  # fmt: skip
        d.output(name, block)
    return d


@pytest.fixture(scope="module")
def fmu(tmp_path_factory: pytest.TempPathFactory) -> Unpacked3:
    folder = tmp_path_factory.mktemp("calls")
    return Unpacked3(make_diagram().export_fmu(folder / "x.fmu", version="3.0"), folder / "x")


def reach(fmu: Unpacked3, state: str) -> Instance3:
    """Return an instance in a state of the standard's machine."""
    one = Instance3(fmu, events=state in ("event", "step with events"))
    one.time = 0.0
    if state == "instantiated":
        return one
    assert one.enter_initialization() == OK
    if state == "initialization":
        return one
    assert one.call("fmi3ExitInitializationMode") == OK
    if state == "event":
        return one
    if state == "step with events":
        assert one.call("fmi3EnterStepMode") == OK
    if state == "terminated":
        assert one.call("fmi3Terminate") == OK
    if state == "error":
        assert one.step(1e-3, now=5.0)[0] == ERROR
    return one


STATES = (
    "instantiated", "initialization", "event", "step", "step with events", "terminated", "error",
)  # fmt: skip
RUNNING = ("event", "step", "step with events")
SET = ("instantiated", "initialization", *RUNNING)


def read(type_: str) -> Any:
    return lambda one: one.read(type_, [], 0)[0]


def write(type_: str) -> Any:
    return lambda one: one.write(type_, [], [])


def save(one: Instance3) -> int:
    state = c_void_p()
    status = one.call("fmi3GetFMUState", byref(state))
    one.call("fmi3FreeFMUState", byref(state))
    return status


def with_state(function: str) -> Any:
    """Call a function with the state that is saved in the present state."""

    def call(one: Instance3) -> int:
        state, size = one.save(), c_size_t()
        assert one.call("fmi3SerializedFMUStateSize", state, byref(size)) == OK
        raw = (ctypes.c_uint8 * size.value)()
        if function == "fmi3FreeFMUState":
            return one.call(function, byref(state))
        status = {
            "fmi3SetFMUState": lambda: one.call(function, state),
            "fmi3SerializedFMUStateSize": lambda: one.call(function, state, byref(size)),
            "fmi3SerializeFMUState": lambda: one.call(function, state, raw, size.value),
            "fmi3DeserializeFMUState": lambda: one.deserialize(one.serialize(state))[0],
        }[function]()
        return int(status)

    return call


# FMI 3.0, 2.3 and 4.2: which function may be called in which state of a co-simulation FMU.
ALLOWED: dict[str, tuple[tuple[str, ...], Any]] = {
    "fmi3SetDebugLogging": (STATES, lambda one: one.call("fmi3SetDebugLogging", False, 0, None)),
    "fmi3EnterInitializationMode": (("instantiated",), lambda one: one.enter_initialization()),
    "fmi3ExitInitializationMode": (
        ("initialization",), lambda one: one.call("fmi3ExitInitializationMode"),
    ),
    "fmi3EnterEventMode": (("step with events",), lambda one: one.call("fmi3EnterEventMode")),
    "fmi3Terminate": (RUNNING, lambda one: one.call("fmi3Terminate")),
    "fmi3Reset": (STATES, lambda one: one.call("fmi3Reset")),
    **{f"fmi3Get{type_}": (STATES, read(type_)) for type_ in TYPES},
    **{f"fmi3Set{type_}": (SET, write(type_)) for type_ in TYPES},
    "fmi3GetFMUState": (STATES, save),
    **{
        name: (STATES, with_state(name))
        for name in (
            "fmi3SetFMUState", "fmi3FreeFMUState", "fmi3SerializedFMUStateSize",
            "fmi3SerializeFMUState", "fmi3DeserializeFMUState",
        )
    },
    "fmi3GetDirectionalDerivative": (
        ("initialization", *RUNNING, "terminated"),
        lambda one: one.directional(["y", "both"], ["u"], [1.0])[0],
    ),
    "fmi3GetAdjointDerivative": (
        ("initialization", *RUNNING, "terminated"),
        lambda one: one.adjoint(["y", "both"], ["u"], [1.0, 0.0, 2.0])[0],
    ),
    "fmi3GetOutputDerivatives": (
        ("step", "step with events", "terminated"), lambda one: one.output_derivatives([])[0],
    ),
    "fmi3UpdateDiscreteStates": (("event",), lambda one: one.update()[0]),
    "fmi3EnterStepMode": (("event",), lambda one: one.call("fmi3EnterStepMode")),
    "fmi3DoStep": (("step", "step with events"), lambda one: one.step(1e-3)[0]),
}  # fmt: skip


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("function", ALLOWED)
def test_each_function_in_each_state(fmu: Unpacked3, state: str, function: str) -> None:
    allowed, call = ALLOWED[function]
    one = reach(fmu, state)
    one.log.clear()
    status = call(one)
    refused = any(is_refused(text, function) for text in one.messages)
    assert status == (OK if state in allowed else ERROR), one.log
    # Without event mode, entering it is refused for that reason.
    without = function == "fmi3EnterEventMode" and state == "step"
    assert refused == (state not in allowed and not without)
    if without:
        assert "eventModeUsed = false" in one.messages[-1]
    one.free()


def test_free_instance_is_allowed_in_each_state(fmu: Unpacked3) -> None:
    for state in STATES:
        reach(fmu, state).free()


EXCHANGE = (
    "fmi3EnterContinuousTimeMode", "fmi3CompletedIntegratorStep", "fmi3SetTime",
    "fmi3SetContinuousStates", "fmi3GetContinuousStateDerivatives", "fmi3GetEventIndicators",
    "fmi3GetContinuousStates", "fmi3GetNominalsOfContinuousStates",
    "fmi3GetNumberOfEventIndicators", "fmi3GetNumberOfContinuousStates",
)  # fmt: skip
UNSUPPORTED = (
    *EXCHANGE, "fmi3EnterConfigurationMode", "fmi3ExitConfigurationMode",
    "fmi3EvaluateDiscreteStates", "fmi3GetNumberOfVariableDependencies",
    "fmi3GetVariableDependencies", "fmi3GetIntervalDecimal", "fmi3GetIntervalFraction",
    "fmi3GetShiftDecimal", "fmi3GetShiftFraction",
    "fmi3SetIntervalDecimal", "fmi3SetIntervalFraction", "fmi3SetShiftDecimal",
    "fmi3SetShiftFraction", "fmi3ActivateModelPartition",
)  # fmt: skip


@pytest.mark.parametrize("function", UNSUPPORTED)
def test_what_is_not_offered_fails_and_says_so(fmu: Unpacked3, function: str) -> None:
    """Whatever the arguments are: none is looked at."""
    why = ": the instance was made for co-simulation" if function in EXCHANGE else ""
    for state in STATES:
        one = reach(fmu, state)
        assert one.call(function, *[c_void_p()] * 8) == ERROR
        assert one.messages[-1] == f"{function} is not supported{why}"
        one.free()


def test_every_function_of_the_standard_is_tested_here(fmu: Unpacked3) -> None:
    """FMPy declares all of them."""
    import re

    import fmpy.fmi3

    text = Path(fmpy.fmi3.__file__).read_text(encoding="utf-8")
    declared = set(re.findall(r"    def (fmi3\w+)\(", text))
    tested = {*ALLOWED, *UNSUPPORTED, "fmi3GetVersion", "fmi3FreeInstance"}
    tested |= {f"fmi3Instantiate{k}" for k in ("CoSimulation", "ModelExchange")}
    tested |= {"fmi3InstantiateScheduledExecution"}
    tested |= {f"fmi3{verb}{type_}" for verb in ("Get", "Set") for type_ in ("Binary", "Clock")}
    assert declared == tested
    library = ctypes.CDLL(str(fmu.library))
    assert all(hasattr(library, name) for name in declared)


def test_no_instance(fmu: Unpacked3) -> None:
    library = ctypes.CDLL(str(fmu.library))
    for function in {*ALLOWED, *UNSUPPORTED}:
        assert getattr(library, function)(*[c_void_p()] * 12) == ERROR, function
    library.fmi3FreeInstance(None)


def test_capability_flags_are_true(fmu: Unpacked3) -> None:
    """What is declared works, and what is not fails; the rest of this folder has the numbers."""
    one = Instance3(fmu, events=True).start()
    assert flag(fmu, "canGetAndSetFMUState") == "true" and one.restore(one.save()) == OK
    assert flag(fmu, "canSerializeFMUState") == "true"
    assert one.deserialize(one.serialize(one.save()))[0] == OK
    assert flag(fmu, "providesDirectionalDerivatives") == "true"
    assert one.directional(["y"], ["u"], [1.0]) == (OK, [2.0])
    assert flag(fmu, "hasEventMode") == "true" and one.update() == (OK, False, False)
    assert one.call("fmi3EnterStepMode") == OK
    assert flag(fmu, "canHandleVariableCommunicationStepSize") == "true"
    for size in (1e-3, 2.5e-3, 1e-4, 0.01):
        assert one.step(size)[0] == OK
    assert flag(fmu, "providesAdjointDerivatives") == "true"
    assert one.adjoint(["y"], ["u"], [3.0]) == (OK, [6.0])
    assert flag(fmu, "providesPerElementDependencies") == "false"
    assert one.call("fmi3GetNumberOfVariableDependencies", c_uint32(), c_void_p()) == ERROR
    assert flag(fmu, "providesEvaluateDiscreteStates") in (None, "false")
    assert flag(fmu, "maxOutputDerivativeOrder") == "0"  # some outputs are not continuous
    assert one.output_derivatives(["x"])[0] == ERROR
    # test_fmi3_intermediate.py has these both ways.
    assert flag(fmu, "providesIntermediateUpdate") == "true"
    assert flag(fmu, "canReturnEarlyAfterIntermediateUpdate") == "true"
    assert flag(fmu, "mightReturnEarlyFromDoStep") == "true"  # it has a Stop block
    assert flag(fmu, "canBeInstantiatedOnlyOncePerProcess") == "false"
    other = Instance3(fmu).start(u=3.0)
    assert (one.get("y"), other.get("y")) == ([0.0], [6.0])
    assert Instance3(fmu, required=[fmu.refer("u")]).pointer.value is not None


def test_other_kinds_cannot_be_instantiated(fmu: Unpacked3) -> None:
    library = ctypes.CDLL(str(fmu.library))
    said: list[bytes] = []
    logger = LOGGER(lambda _, status, category, text: said.append(text))
    given = [b"one", fmu.token.encode(), None, c_bool(False), c_bool(True), None, logger]
    for function, more in (
        ("fmi3InstantiateModelExchange", 0),
        ("fmi3InstantiateScheduledExecution", 3),
    ):
        create = getattr(library, function)
        create.restype = c_void_p
        assert create(*given, *[c_void_p()] * more) is None
    assert said == [b"this FMU supports co-simulation only", b"this FMU has no scheduled execution"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"token": "{wrong}"}, "the instantiation token '{wrong}' does not match the plan"),
        ({"token": None}, "the instantiation token '(null)' does not match the plan"),
        ({"label": None}, "the instance name is missing"),
        ({"label": ""}, "the instance name is missing"),
        ({"where": "/no/such/folder/"}, "cannot read '/no/such/folder/plan.bin'"),
        ({"required": [1]}, "value reference 1 cannot be accessed in intermediate updates"),
        ({"required": [0, 999]}, "value reference 999 cannot be accessed in intermediate updates"),
    ],
)
def test_instances_that_cannot_be(fmu: Unpacked3, change: dict[str, Any], message: str) -> None:
    for logging in (True, False):  # errors are logged in both cases
        one = Instance3(fmu, logging=logging, **change)
        assert one.pointer.value is None
        assert [text[: len(message)] for text in one.messages] == [message]


def test_resources_may_end_with_a_slash_or_be_found_beside_the_binary(fmu: Unpacked3) -> None:
    for where in (f"{fmu.folder / 'resources'}/", None, (fmu.folder / "resources").as_uri()):
        assert Instance3(fmu, where=where).pointer.value is not None


def test_null_pointers_and_wrong_numbers_of_values(fmu: Unpacked3) -> None:
    one = Instance3(fmu, events=True).start()
    u, y, both = (fmu.refer(name) for name in ("u", "y", "both"))
    some = (c_uint32 * 2)(u, y)
    numbers = (c_double * 4)()
    null = c_void_p()
    wrong: list[tuple[Any, ...]] = [
        ("fmi3GetFloat64", null, 1, numbers, 1),
        ("fmi3GetFloat64", some, 1, null, 1),
        ("fmi3GetFloat64", some, 2, numbers, 1),
        ("fmi3GetFloat64", some, 1, numbers, 2),
        ("fmi3GetFloat64", some, 1, numbers, 0),
        ("fmi3SetFloat64", null, 1, numbers, 1),
        ("fmi3SetFloat64", some, 1, null, 1),
        ("fmi3SetFloat64", some, 1, numbers, 2),
        ("fmi3GetFloat64", (c_uint32 * 1)(both), 1, numbers, 1),
        ("fmi3GetFloat64", (c_uint32 * 1)(both), 1, numbers, 3),
        ("fmi3GetFMUState", null),
        ("fmi3SetFMUState", null),
        ("fmi3SerializeFMUState", null, null, 9),
        ("fmi3DeserializeFMUState", null, 9, null),
        ("fmi3UpdateDiscreteStates", *[null] * 6),
        ("fmi3GetDirectionalDerivative", null, 1, some, 1, numbers, 1, numbers, 1),
        ("fmi3GetDirectionalDerivative", some, 1, null, 1, numbers, 1, numbers, 1),
        ("fmi3GetDirectionalDerivative", (c_uint32 * 1)(y), 1, some, 1, null, 1, numbers, 1),
        ("fmi3GetDirectionalDerivative", (c_uint32 * 1)(y), 1, some, 1, numbers, 2, numbers, 1),
        ("fmi3GetDirectionalDerivative", (c_uint32 * 1)(both), 1, some, 1, numbers, 1, numbers, 1),
        ("fmi3SetDebugLogging", True, 1, null),
    ]
    for call in wrong:
        assert one.call(*call) == ERROR, call
    assert one.call("fmi3EnterStepMode") == OK
    assert one.call("fmi3DoStep", 0.0, 1e-3, True, *[null] * 4) == ERROR
    assert one.call("fmi3GetOutputDerivatives", some, 1, null, numbers, 1) == ERROR
    assert one.step(1e-3)[0] == OK  # and the instance is none the worse
    assert one.call("fmi3FreeFMUState", null) == OK


def test_unknown_references_and_wrong_types(fmu: Unpacked3) -> None:
    one = Instance3(fmu).start()
    last = max(fmu.refer(name) for name in fmu.variables)
    inside = fmu.refer("both") + 1
    time = fmu.refer("time")
    for reference in (inside, last + 1, 2**31, 2**32 - 1):
        assert one.read("Float64", [reference], 1)[0] == ERROR
        assert one.write("Float64", [reference], [1.0]) == ERROR
        assert one.messages[-1] == f"unknown value reference {reference}"
    assert one.read("Float64", [time], 1) == (OK, [0.0])
    assert one.write("Float64", [time], [1.0]) == ERROR
    assert one.messages[-1] == f"time (value reference {time}) can only be read"
    assert one.read("Float64", [fmu.refer("u"), time, fmu.refer("y")], 3)[0] == OK
    for type_, name in (("Int64", "u"), ("Boolean", "u"), ("Float64", "number"), ("Int64", "on")):
        assert one.read(type_, [fmu.refer(name)], 1)[0] == ERROR
    for type_ in TYPES:
        if type_ not in ("Float64", "Int64", "Boolean"):
            assert one.read(type_, [fmu.refer("u")], 1)[0] == ERROR
            why = "no variables of type String" if type_ == "String" else "is of type Float64, not"
            assert why in one.messages[-1]
            assert one.write(type_, [fmu.refer("u")], [b"1" if type_ == "String" else 1]) == ERROR
    assert one.set("y", 1.0) == ERROR
    assert one.messages[-1] == "an output cannot be set"
    assert one.set("u", float("nan")) == DISCARD
    assert one.set("number", 2**53 + 1) == DISCARD
    assert "exceeds 2^53" in one.messages[-1]
    assert one.step(1e-3)[0] == OK


@pytest.mark.parametrize(
    ("now", "size"),
    [
        (0.0, 0.0), (0.0, -1e-3), (0.0, float("nan")), (0.0, float("inf")), (1.0, 1e-3),
        (float("nan"), 1e-3), (0.0, 1e300),
    ],
)  # fmt: skip
def test_impossible_steps(fmu: Unpacked3, now: float, size: float) -> None:
    one = Instance3(fmu).start()
    kept = one.save()
    assert one.step(size, now=now)[0] == ERROR
    assert one.step(1e-3)[0] == ERROR  # until a saved state or a reset leads back
    assert one.get("x") == [1.0]
    assert one.restore(kept) == OK
    assert one.step(1e-3)[0] == OK


def test_the_stop_time_is_kept_and_forgotten_by_a_reset(fmu: Unpacked3) -> None:
    one = Instance3(fmu).start(at=0.5, stop=0.502)
    assert one.step(1e-3)[0] == OK
    assert one.step(2e-3)[0] == ERROR
    assert "exceeds the stop time" in one.messages[-1]
    assert one.call("fmi3Reset") == OK
    one.start()
    assert one.step(1.0)[0] == OK
    for at, stop in ((float("nan"), None), (1.0, 0.5)):
        assert Instance3(fmu).enter_initialization(at, stop) == ERROR


def test_logging(fmu: Unpacked3) -> None:
    """FMI 3.0: without logging, nothing but errors; categories are those of the description."""
    names = [c.get("name") for c in fmu.root.iter("Category")]
    quiet = Instance3(fmu, logging=False).start()
    quiet.set("u", float("inf"))
    assert quiet.log == []
    assert quiet.set("y", 1.0) == ERROR
    assert quiet.log == [(ERROR, "logStatusError", "an output cannot be set")]
    one = Instance3(fmu).start()
    assert [category for _, category, _ in one.log] == ["logEvents"]
    for name in names:
        assert name is not None
        assert one.call("fmi3SetDebugLogging", True, 1, (ctypes.c_char_p * 1)(name.encode())) == OK
    assert one.call("fmi3SetDebugLogging", True, 1, (ctypes.c_char_p * 1)(b"logMore")) == ERROR
    assert {category for _, category, _ in one.log} <= set(names)


def test_version_and_an_instance_of_the_other_version(fmu: Unpacked3) -> None:
    library = ctypes.CDLL(str(fmu.library))
    library.fmi3GetVersion.restype = ctypes.c_char_p
    assert library.fmi3GetVersion() == b"3.0"
    one = Instance3(fmu).start()
    assert library.fmi2Terminate(one.pointer) == ERROR
    assert one.step(1e-3)[0] == OK
