"""An FMU in the hands of a tool that does everything wrong: an error each time, never a crash.

Every scenario is a list of calls that fmi2_calls.py makes in a process of its own.
"""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from biella import Diagram
from biella.blocks import Compare, Convert, Gain, Integrator, Logic, Noise, Stop, UnitDelay
from biella.fmu.exporter._variables import list_variables

pytestmark = pytest.mark.engine

OK, DISCARD, ERROR = 0, 2, 3
TRUE = 1
CALLER = Path(__file__).with_name("fmi2_calls.py")
Call = list[Any]


def make_diagram(name: str = "abused", gain: float = 2.0) -> Diagram:
    """A diagram with every kind of variable; an input ends it, or drives it to infinity."""
    d = Diagram(name, step=1e-3)
    u = d.input("u")
    k = d.add(Gain(gain), "k")
    x = d.add(Integrator(1.0), "x")
    z = d.add(UnitDelay(), "z", period=2e-3)
    noise = d.add(Noise(1.0), "noise", period=1e-3)
    count = d.add(Convert("integer"), "count")
    flipped = d.add(Logic("not"), "flipped")
    over = d.add(Compare(">", 1e6), "over")
    d.connect(u, k)
    d.connect(k, x, z, over)
    d.connect(d.input("number", kind="integer"), count)
    d.connect(d.input("on", kind="boolean"), flipped)
    d.connect(over, d.add(Stop("enough"), "stop"))
    for port, block in {
        "y": k,
        "x": x,
        "z": z,
        "noise": noise,
        "count": count,
        "off": flipped,
    }.items():
        d.output(port, block)
    return d


class Unpacked:
    """An exported FMU in a folder."""

    def __init__(self, folder: Path, diagram: Diagram) -> None:
        self.references = {v.name: v.reference for v in list_variables(diagram.compile())}
        path = diagram.export_fmu(folder.with_suffix(".fmu"))
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        self.guid = ET.parse(folder / "modelDescription.xml").getroot().attrib["guid"]
        self.folder = folder
        self.library = next((folder / "binaries").rglob("*.*"))
        self.location = (folder / "resources").as_uri()

    def instantiate(self, name: str = "a") -> Call:
        return ["fmi2Instantiate", name, name, 1, self.guid, self.location, 1]


def make(unpacked: Unpacked, *calls: Call, library: Path | None = None) -> dict[str, Any]:
    """Make calls; return their results, statuses alone, and messages."""
    request = {"library": str(library or unpacked.library), "calls": calls}
    done = subprocess.run(
        [sys.executable, str(CALLER)],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    answer["statuses"] = [status for status, _ in answer["calls"]]
    return answer


@pytest.fixture(scope="module")
def fmu(tmp_path_factory: pytest.TempPathFactory) -> Unpacked:
    return Unpacked(tmp_path_factory.mktemp("abuse") / "one", make_diagram())


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Unpacked:
    """An FMU with another plan, whose states have the same size."""
    return Unpacked(tmp_path_factory.mktemp("abuse") / "two", make_diagram("abused too", 3.0))


def start(fmu: Unpacked, name: str = "a") -> list[Call]:
    return [
        fmu.instantiate(name),
        ["fmi2SetupExperiment", name, 0, 0.0, 0.0, 0, 0.0],
        ["fmi2EnterInitializationMode", name],
        ["fmi2ExitInitializationMode", name],
    ]


def step(at: float, by: float, name: str = "a") -> Call:
    return ["fmi2DoStep", name, at, by, TRUE]


def reach(fmu: Unpacked, state: str, name: str = "a") -> list[Call]:
    """Calls that bring an instance into a state of the standard's machine."""
    too_much = ["fmi2SetReal", name, [fmu.references["u"]], [1e7]]
    return {
        "instantiated": start(fmu, name)[:1],
        "initialization": start(fmu, name)[:3],
        "complete": [*start(fmu, name), step(0.0, 1e-3, name)],
        "failed": [*start(fmu, name), too_much, step(0.0, 1e-3, name)],
        "terminated": [*start(fmu, name), ["fmi2Terminate", name]],
        "error": [*start(fmu, name), step(5.0, 1e-3, name)],
    }[state]


STATES = ("instantiated", "initialization", "complete", "failed", "terminated", "error")
READ = STATES  # the standard leaves out "instantiated"; tools read start values there all the same
SET = ("instantiated", "initialization", "complete")
# FMI 2.0, 4.2.4: which function may be called in which state of a co-simulation slave.
ALLOWED: dict[str, tuple[tuple[str, ...], list[Any]]] = {
    "fmi2SetDebugLogging": (STATES, [0, []]),
    "fmi2SetupExperiment": (("instantiated",), [0, 0.0, 0.0, 0, 0.0]),
    "fmi2EnterInitializationMode": (("instantiated",), []),
    "fmi2ExitInitializationMode": (("initialization",), []),
    "fmi2Terminate": (("complete", "failed"), []),
    "fmi2Reset": (STATES, []),
    "fmi2FreeInstance": (STATES, []),
    "fmi2GetReal": (READ, [["y"], 1]),
    "fmi2GetInteger": (READ, [["count"], 1]),
    "fmi2GetBoolean": (READ, [["off"], 1]),
    "fmi2GetString": (READ, [[], 1]),
    "fmi2SetReal": (SET, [["u"], [1.0]]),
    "fmi2SetInteger": (SET, [["number"], [1]]),
    "fmi2SetBoolean": (SET, [["on"], [1]]),
    "fmi2SetString": (SET, [[], []]),
    "fmi2GetFMUstate": (STATES, ["new"]),
    "fmi2SetFMUstate": (STATES, ["kept"]),
    "fmi2FreeFMUstate": (STATES, ["kept"]),
    "fmi2SerializedFMUstateSize": (STATES, ["kept", 1]),
    "fmi2SerializeFMUstate": (STATES, ["kept", "copy", 10_000]),
    "fmi2DeSerializeFMUstate": (STATES, ["kept bytes", 10_000, "again"]),
    "fmi2GetDirectionalDerivative": (
        ("initialization", "complete", "failed", "terminated"),
        [["y", "x"], ["u"], [1.0], 1],
    ),
    "fmi2SetRealInputDerivatives": (SET, [["u"], [1], [1.0]]),
    "fmi2GetRealOutputDerivatives": (("complete", "failed", "terminated"), [[], [], 1]),
    "fmi2DoStep": (("complete",), [1e-3, 1e-3, 1]),
    "fmi2GetRealStatus": (("complete", "failed", "terminated"), [2, 1]),
    "fmi2GetBooleanStatus": (("complete", "failed", "terminated"), [3, 1]),
}


@pytest.mark.parametrize("state", STATES)
def test_each_function_in_each_state(fmu: Unpacked, state: str) -> None:
    calls: list[Call] = []
    last: dict[str, int] = {}
    for function, (_, arguments) in ALLOWED.items():  # each with an instance of its own
        first, *others = reach(fmu, state, function)
        # A state is kept while all is well.
        calls += [first, ["fmi2GetFMUstate", function, "kept"]]
        calls += [["fmi2SerializeFMUstate", function, "kept", "kept bytes", 10_000], *others]
        last[function] = len(calls)
        calls.append([function, function, *(by_number(fmu, a) for a in arguments)])
    answer = make(fmu, *calls)
    for function, (allowed, _) in ALLOWED.items():
        status = answer["statuses"][last[function]]
        assert status == (OK if state in allowed else ERROR), (function, answer["log"])
        refused = any(text.startswith(f"{function} is not allowed") for text in answer["log"])
        assert refused == (state not in allowed)


def by_number(fmu: Unpacked, argument: Any) -> Any:
    """An argument, a list of names turned into value references."""
    if isinstance(argument, list) and argument and isinstance(argument[0], str):
        return [fmu.references[name] for name in argument]
    return argument


def test_the_states_of_the_table_are_what_they_are_called(fmu: Unpacked) -> None:
    for state, last in {"failed": DISCARD, "error": ERROR, "complete": OK}.items():
        assert make(fmu, *reach(fmu, state))["statuses"][-1] == last, state


@pytest.mark.parametrize("state", STATES)
def test_what_is_not_offered_is_never_ok(fmu: Unpacked, state: str) -> None:
    asked: list[list[Any]] = [
        ["fmi2CancelStep", "a"],
        # One of the outputs is discrete, so none has a derivative.
        ["fmi2GetRealOutputDerivatives", "a", [fmu.references["x"]], [1], 1],
        *(["fmi2Get" + k + "Status", "a", 0, 1] for k in ("", "Integer", "String")),
    ]
    answer = make(fmu, *reach(fmu, state), *asked)
    assert answer["statuses"][-5:] == [ERROR] * 2 + [DISCARD] * 3


def test_no_component(fmu: Unpacked) -> None:
    calls = [
        [function, None, *(by_number(fmu, a) for a in arguments)]
        for function, (_, arguments) in ALLOWED.items()
        if "FMUstate" not in function
    ]
    calls += [
        ["fmi2GetFMUstate", None, "s"],
        ["fmi2SetFMUstate", None, None],
        ["fmi2FreeFMUstate", None, "s"],
        ["fmi2SerializedFMUstateSize", None, None, 1],
        ["fmi2SerializeFMUstate", None, None, "b", 100],
        ["fmi2DeSerializeFMUstate", None, "b", 100, "s"],
    ]
    answer = make(fmu, *calls, ["fmi2CancelStep", None])
    for (function, *_), status in zip(calls, answer["statuses"], strict=False):
        assert status == (OK if function == "fmi2FreeInstance" else ERROR), function
    assert answer["statuses"][-1] == ERROR


NULLS_OF_THREE: list[list[Any]] = [[1, [1], [1.0]], [[0], 1, [1.0]], [[0], [1], 0]]


def test_null_arrays(fmu: Unpacked) -> None:
    """A number stands for NULL of that length."""
    get = ["fmi2GetReal", "fmi2GetInteger", "fmi2GetBoolean", "fmi2GetString"]
    put = ["fmi2SetReal", "fmi2SetInteger", "fmi2SetBoolean", "fmi2SetString"]
    wrong = [[f, "a", 1, 1] for f in get] + [[f, "a", [0], 0] for f in get]
    wrong += [[f, "a", 1, [None if f[-3:] == "ing" else 1]] for f in put] + [
        [f, "a", [0], 1] for f in put
    ]
    wrong += [["fmi2SetDebugLogging", "a", 1, 2], ["fmi2SetDebugLogging", "a", 1, [None]]]
    wrong += [["fmi2SetRealInputDerivatives", "a", *arrays] for arrays in NULLS_OF_THREE]
    wrong += [["fmi2GetRealOutputDerivatives", "a", *arrays] for arrays in NULLS_OF_THREE]
    wrong += [
        ["fmi2GetDirectionalDerivative", "a", 1, [0], [1.0], 1],
        ["fmi2GetDirectionalDerivative", "a", [0], 1, [1.0], 1],
        ["fmi2GetDirectionalDerivative", "a", [0], [0], 1, 1],
        ["fmi2GetDirectionalDerivative", "a", [0], [0], [1.0], 0],
    ]
    wrong += [["fmi2GetFMUstate", "a", None], ["fmi2SetFMUstate", "a", None]]
    wrong += [
        ["fmi2SerializedFMUstateSize", "a", None, 1],
        ["fmi2SerializeFMUstate", "a", None, None, 9],
    ]
    wrong += [["fmi2DeSerializeFMUstate", "a", None, 9, "s"]]
    answer = make(fmu, *start(fmu), *wrong, step(0.0, 1e-3))
    assert answer["statuses"][4:-1] == [ERROR] * len(wrong)
    assert answer["statuses"][-1] == OK  # and the instance is none the worse
    empty = [[f, "a", 0, 0] for f in get] + [[f, "a", 0, 0] for f in put]
    assert make(fmu, *start(fmu), *empty)["statuses"][4:] == [OK] * 8
    nowhere = [["fmi2GetRealStatus", "a", 2, 0], ["fmi2GetBooleanStatus", "a", 3, 0]]
    assert make(fmu, *start(fmu), *nowhere)["statuses"][4:] == [DISCARD] * 2
    assert make(fmu, *start(fmu), ["fmi2FreeFMUstate", "a", None])["statuses"][-1] == OK


def test_unknown_references_and_wrong_types(fmu: Unpacked) -> None:
    refs = fmu.references
    unknown = max(refs.values()) + 1
    cases: list[Call] = []
    for reference in (unknown, 2**31, 2**32 - 1):
        cases += [["fmi2GetReal", "a", [reference], 1], ["fmi2SetReal", "a", [reference], [1.0]]]
        cases += [
            ["fmi2GetInteger", "a", [reference], 1],
            ["fmi2SetBoolean", "a", [reference], [1]],
        ]
    cases += [["fmi2GetReal", "a", [refs["count"]], 1], ["fmi2GetInteger", "a", [refs["y"]], 1]]
    cases += [["fmi2GetBoolean", "a", [refs["y"]], 1], ["fmi2SetReal", "a", [refs["on"]], [1.0]]]
    cases += [["fmi2SetInteger", "a", [refs["u"]], [1]], ["fmi2GetString", "a", [refs["y"]], 1]]
    cases += [["fmi2SetReal", "a", [refs["y"]], [1.0]], ["fmi2SetString", "a", [refs["u"]], ["x"]]]
    answer = make(fmu, *start(fmu), *cases, step(0.0, 1e-3))
    assert answer["statuses"][4:-1] == [ERROR] * len(cases)
    assert answer["statuses"][-1] == OK
    assert f"unknown value reference {unknown}" in answer["log"]
    assert "an output cannot be set" in answer["log"]
    # The values before the wrong one have been set, those after it have not.
    half = ["fmi2SetReal", "a", [refs["u"], unknown, refs["u"]], [5.0, 1.0, 7.0]]
    answer = make(fmu, *start(fmu), half, ["fmi2GetReal", "a", [refs["u"]], 1])
    assert answer["statuses"][-2:] == [ERROR, OK]
    assert answer["calls"][-1][1][0] == 5.0


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_values_that_are_not_finite(fmu: Unpacked, value: str) -> None:
    u = [fmu.references["u"]]
    answer = make(fmu, *start(fmu), ["fmi2SetReal", "a", u, [value]], ["fmi2GetReal", "a", u, 1])
    assert answer["statuses"][-2:] == [DISCARD, OK]
    assert answer["calls"][-1][1][0] == 0.0
    for times in ([0, 0.0, value, 0, 0.0], [0, 0.0, 0.0, 1, "nan"], [0, 0.0, 5.0, 1, 1.0]):
        answer = make(fmu, fmu.instantiate(), ["fmi2SetupExperiment", "a", *times])
        assert answer["statuses"][-1] == ERROR


@pytest.mark.parametrize(
    ("at", "by"),
    [
        (0.0, "nan"), (0.0, "inf"), (0.0, -1e-3), (0.0, 1e300), (0.0, 1e308), (0.0, 1e18),
        ("nan", 1e-3), ("inf", 1e-3), ("-inf", "inf"), (1e308, 1e308), (1e-3, 1e-3),
        (-1e-3, 1e-3),
    ],
)  # fmt: skip
def test_impossible_steps(fmu: Unpacked, at: float, by: float) -> None:
    y = ["fmi2GetReal", "a", [fmu.references["x"]], 1]
    answer = make(fmu, *start(fmu), ["fmi2GetFMUstate", "a", "s"], step(at, by), step(0.0, 1e-3), y,
                  ["fmi2SetFMUstate", "a", "s"], step(0.0, 1e-3))  # fmt: skip
    # After an error values may be read, and a saved state leads back.
    assert answer["statuses"][5:] == [ERROR, ERROR, OK, OK, OK]


def test_steps_that_are_odd_and_right(fmu: Unpacked) -> None:
    steps = [step(0.0, 0.0), step(0.0, 3e-3), step(3e-3 + 1e-12, 1e-3), step(4e-3, 5e-324)]
    steps += [step(4e-3, 1.5e-3), step(5.5e-3, 5e-324), step(5.5e-3, 1e-12), step(5.5e-3, 1e-7)]
    assert make(fmu, *start(fmu), *steps)["statuses"][4:] == [OK] * 8


def test_the_stop_time_is_kept_and_forgotten_by_a_reset(fmu: Unpacked) -> None:
    limited = [["fmi2SetupExperiment", "a", 0, 0.0, 0.5, 1, 0.502], *start(fmu)[2:]]
    again = [["fmi2Reset", "a"], *start(fmu)[2:]]
    answer = make(fmu, fmu.instantiate(), *limited, step(0.5, 1e-3), step(0.501, 2e-3), *again,
                  step(0.0, 1.0))  # fmt: skip
    assert answer["statuses"] == [OK] * 5 + [ERROR] + [OK] * 4
    assert "exceeds the stop time" in answer["log"][1]


def test_a_run_that_ends_itself(fmu: Unpacked) -> None:
    status = [["fmi2GetBooleanStatus", "a", 3, 1], ["fmi2GetRealStatus", "a", 2, 1]]
    answer = make(fmu, *reach(fmu, "failed"), *status)
    assert answer["calls"][-2:] == [[OK, 1], [OK, 0.0]]


def test_states_of_other_instances(fmu: Unpacked, other: Unpacked) -> None:
    """Those of the same plan are welcome; those of another are not, even of the same size."""
    stranger = ["fmi2Instantiate", "b", "b", 1, other.guid, other.location, 1]
    twin = start(fmu, "c")
    save = [["fmi2GetFMUstate", name, name] for name in "abc"]
    good = [["fmi2SetFMUstate", "c", "a"], step(1e-3, 1e-3, "c")]
    bad = [["fmi2SetFMUstate", "a", "b"], step(1e-3, 1e-3)]
    answer = make(fmu, *start(fmu), step(0.0, 1e-3), stranger, *twin, *save, *good, *bad)
    assert answer["statuses"][-4:] == [OK, OK, ERROR, OK]
    assert answer["log"][-1].startswith("the saved state belongs to another plan")


def test_serialized_states_that_are_wrong(fmu: Unpacked, other: Unpacked) -> None:
    kept = [
        *start(fmu),
        step(0.0, 1e-3),
        ["fmi2GetFMUstate", "a", "s"],
        ["fmi2SerializedFMUstateSize", "a", "s", 1],
    ]
    size = make(fmu, *kept)["calls"][-1][1]
    kept += [["fmi2SerializeFMUstate", "a", "s", "raw", size]]
    short = [["fmi2SerializeFMUstate", "a", "s", "less", n] for n in (0, 1, size - 1)]
    assert make(fmu, *kept, *short)["statuses"][-4:] == [OK, ERROR, ERROR, ERROR]
    # Truncated at any length.
    cut = [
        ["fmi2DeSerializeFMUstate", "a", "raw", n, f"s{n}"]
        for n in (0, 1, 23, 24, 63, size - 8, size - 1)
    ]
    whole = ["fmi2DeSerializeFMUstate", "a", "raw", size, "whole"]
    answer = make(fmu, *kept, *cut, whole, ["fmi2SetFMUstate", "a", "whole"], step(1e-3, 1e-3))
    assert answer["statuses"][-10:] == [ERROR] * 7 + [OK] * 3
    # Refused at once, or when it is set: magic, state, size; format, the plan's hash, tick, count,
    # start, time since the tick.
    for at, raw in [
        (0, b"\0\0\0\0"),
        (4, struct.pack("<i", 3)),
        (4, struct.pack("<i", -1)),
        (24, struct.pack("<Q", size)),
        (32, b"\0" * 8),
        (36, struct.pack("<I", 99)),
        (40, b"\0" * 8),
        (48, struct.pack("<q", -1)),
        (48, struct.pack("<q", 2**63 - 1)),
        (64, struct.pack("<q", 0)),
        (72, struct.pack("<d", float("nan"))),
        (80, struct.pack("<d", float("nan"))),
        (80, struct.pack("<d", -1e-4)),
        (80, struct.pack("<d", 1e-3)),
    ]:
        spoiled = ["spoil", "raw", at, raw.hex()]
        answer = make(
            fmu, *kept, spoiled, whole, ["fmi2SetFMUstate", "a", "whole"], step(1e-3, 1e-3)
        )
        assert answer["statuses"][-2:] == [ERROR, OK], (at, raw)
    # Any value is taken, and nothing breaks.
    for at in range(88, size, 8):
        for value in (-1.0, 0.5, 1e9, 1e300, float("nan")):
            kept.append(["spoil", "raw", at, struct.pack("<d", value).hex()])
            kept += [
                ["fmi2DeSerializeFMUstate", "a", "raw", size, "x"],
                ["fmi2SetFMUstate", "a", "x"],
            ]
            kept += [
                step(1e-3, 2e-3),
                ["fmi2FreeFMUstate", "a", "x"],
                ["fmi2SetFMUstate", "a", "s"],
            ]
            kept += [["fmi2SerializeFMUstate", "a", "s", "raw", size]]
    statuses = make(fmu, *kept)["statuses"]
    assert statuses[-1] == OK
    assert statuses.count(OK) > len(statuses) / 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"guid": "{wrong}"}, "the GUID '{wrong}' does not match the plan"),
        ({"guid": None}, "the GUID '(null)' does not match the plan"),
        (
            {"guid": "{biella-0000000000000000-0000000000000000}"},
            "the GUID '{biella-0000000000000000-0000000000000000}' does not match the plan",
        ),
        ({"label": None}, "the instance name is missing"),
        ({"label": ""}, "the instance name is missing"),
        ({"type": 0}, "this FMU supports co-simulation only"),
        ({"where": "file:///no/such/folder"}, "cannot read '/no/such/folder/plan.bin'"),
        ({"where": "/no/such/folder"}, "cannot read '/no/such/folder/plan.bin'"),
        ({"where": "file:"}, "unsupported resource location: 'file:'"),
        ({"where": "file:///%00"}, "unsupported resource location: 'file:///%00'"),
        ({"where": "file:///" + "a" * 5000}, "unsupported resource location: 'file:///aaa"),
        ({"where": "http://example.org/x"}, "cannot read 'http://example.org/x/plan.bin'"),
    ],
)
def test_instances_that_cannot_be(fmu: Unpacked, change: dict[str, Any], message: str) -> None:
    given = {"label": "a", "type": 1, "guid": fmu.guid, "where": fmu.location} | change
    values = [given["label"], given["type"], given["guid"], given["where"]]
    answer = make(fmu, ["fmi2Instantiate", "a", *values, 1], ["fmi2Instantiate", "b", *values, 0])
    assert answer["statuses"] == [ERROR, ERROR]
    assert len(answer["log"]) == 1
    assert answer["log"][0].startswith(message)


@pytest.mark.parametrize(
    "change",
    [
        lambda guid: guid[:-1],
        lambda guid: guid[:25],
        lambda guid: guid[:-2] + "}",
        lambda guid: guid + "}",
        lambda guid: guid[:-1] + "0}",
        lambda guid: guid[:-2] + "x}",
        lambda guid: guid + "a" * 5000,
    ],
)
def test_a_guid_that_is_cut_or_has_more_behind_it(
    fmu: Unpacked, change: Callable[[str], str]
) -> None:
    call = fmu.instantiate()
    call[4] = change(fmu.guid)
    assert make(fmu, call)["statuses"] == [ERROR]


def test_a_plan_that_is_broken(fmu: Unpacked, tmp_path: Path) -> None:
    plan = (fmu.folder / "resources" / "plan.bin").read_bytes()
    for data, message in [
        (b"", "cannot read"),
        (plan[:1], "shorter than a plan's head"),
        (plan[:-8], "truncated"),
        (plan[:-1] + b"\7", "its hash does not match"),
        (b"PK" + plan[2:], "does not start as a plan does"),
    ]:
        (tmp_path / "plan.bin").write_bytes(data)
        answer = make(fmu, ["fmi2Instantiate", "a", "a", 1, fmu.guid, tmp_path.as_uri(), 1])
        assert answer["statuses"] == [ERROR]
        assert message in answer["log"][0]


@pytest.mark.parametrize(
    "form",
    [
        "file:{}", "file://{}", "file://localhost{}", "file:////{}", "{}", "{}/", "file://{}/",
    ],
)  # fmt: skip
def test_resource_locations_as_tools_write_them(fmu: Unpacked, tmp_path: Path, form: str) -> None:
    folder = tmp_path / "a b%20ü"
    shutil.copytree(fmu.folder / "resources", folder)
    path = quote(str(folder)) if form.startswith("file:") else str(folder)
    answer = make(fmu, ["fmi2Instantiate", "a", "a", 1, fmu.guid, form.format(path), 1])
    assert answer["statuses"] == [OK], answer["log"]


def test_a_uri_with_plain_spaces(fmu: Unpacked, tmp_path: Path) -> None:
    """Not a URI, and yet what some tools pass."""
    shutil.copytree(fmu.folder / "resources", tmp_path / "a b")
    answer = make(fmu, ["fmi2Instantiate", "a", "a", 1, fmu.guid, f"file:///{tmp_path}/a b", 1])
    assert answer["statuses"] == [OK], answer["log"]


@pytest.mark.parametrize("where", [None, ""])
def test_without_a_location_the_plan_lies_beside_the_binary(
    fmu: Unpacked, where: str | None
) -> None:
    assert make(fmu, ["fmi2Instantiate", "a", "a", 1, fmu.guid, where, 1])["statuses"] == [OK]


def test_without_a_location_and_without_resources(fmu: Unpacked, tmp_path: Path) -> None:
    copy = Path(shutil.copy(fmu.library, tmp_path))
    answer = make(fmu, ["fmi2Instantiate", "a", "a", 1, fmu.guid, None, 1], library=copy)
    assert answer["statuses"] == [ERROR]
    assert "cannot read" in answer["log"][0]


def test_version_and_platform(fmu: Unpacked) -> None:
    assert make(fmu)["names"] == ["2.0", "default"]


def test_freeing_twice_and_resetting_often(fmu: Unpacked) -> None:
    calls = [
        *start(fmu),
        *[["fmi2Reset", "a"]] * 5,
        ["fmi2FreeInstance", "a"],
        ["fmi2FreeInstance", "a"],
    ]
    assert set(make(fmu, *calls)["statuses"]) == {OK}
