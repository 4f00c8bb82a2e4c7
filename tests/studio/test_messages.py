"""What pages are told."""

import json
import math

from biella import Diagram
from biella.blocks import Integrator, Saturation
from biella.errors import DiagramError
from biella.studio._messages import (
    describe_diagram,
    describe_parameters,
    describe_problems,
    describe_signals,
    encode,
)


def limited():
    d = Diagram("limited", step=0.01)
    d.add(Integrator(), "level", u=d.input("flow", unit="m/s"))
    d.add(Saturation(-1.0, math.inf), "bound", u=d["level"])
    return d


def test_numbers_that_are_not_finite_are_words():
    text = encode({"a": [1.0, math.inf, (-math.inf, {"b": math.nan})], "c": True})
    assert json.loads(text) == {"a": [1.0, "Infinity", ["-Infinity", {"b": "NaN"}]], "c": True}


def test_names_of_files_with_bytes_that_no_character_has_can_be_sent():
    text = encode({"file": "caf\udce9.py", "unit": "µm"})
    assert json.loads(text.encode()) == {"file": "caf\udce9.py", "unit": "µm"}


def test_a_diagram_and_its_parameters():
    d = limited()
    plan = d.compile()
    said = json.loads(encode(describe_diagram(d, plan)))
    assert {box["path"] for box in said["picture"]["boxes"]} == {"level", "bound", "flow"}
    assert said["picture"]["rates"][0]["color"].startswith("#")
    assert said["blocks"]["level"]["type"] == "Integrator"
    assert said["blocks"]["level"]["doc"]
    wires = {(wire["source"], wire["target"]) for wire in said["picture"]["wires"]}
    assert wires == {("flow.y", "level.u"), ("level.y", "bound.u")}
    found = json.loads(encode(describe_parameters(plan, {"bound.lower": -3.0})))
    by_path = {item["path"]: item for item in found["list"]}
    assert by_path["bound.upper"]["value"] == "Infinity"
    assert (by_path["bound.lower"]["value"], by_path["bound.lower"]["default"]) == (-3.0, -1.0)
    assert found["inputs"][0]["path"] == "flow" and found["inputs"][0]["unit"] == "m/s"
    assert found["inputs"][0]["shape"] == []


def test_signals_say_where_their_values_are():
    plan = limited().compile()
    signals = [port.signal for port in plan.signals.values()]
    columns = {signal.path: 1 + n for n, signal in enumerate(signals)}
    said = describe_signals(signals, columns, plan, 0.01)
    by_path = {item["path"]: item for item in said["list"]}
    assert by_path["level.y"]["unit"] == "m" and by_path["level.y"]["block"] == "level"
    assert [item["element_offset"] for item in said["list"]] == list(range(len(signals)))
    assert said["aliases"]["level"] == "level.y"


def test_problems_name_the_innermost_blocks_they_are_about():
    error = DiagramError(["`a.b.y` is open.", "`a` and `c.u` differ.", "all is lost."])
    said = describe_problems(error, ["a", "a.b", "c"])
    assert [item["where"] for item in said["list"]] == [["a.b"], ["a", "c"], []]
    wrapped = ValueError("line 3")
    wrapped.__cause__ = error
    assert len(describe_problems(wrapped, ["a"])["list"]) == 3
