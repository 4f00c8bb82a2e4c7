"""What pages are told of a diagram, as plain data, and numbers that they ask for."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ..blocks.core._ports import Parameter
from ..errors import BiellaError, BindingError, DiagramError
from ..scheduler.compile._model import Model
from ..scheduler.compile.diagram._diagram import Diagram
from ..scheduler.compile.plan._plan import Plan
from ..scheduler.drawing._arrange import arrange
from ..scheduler.drawing._paint import describe_rate, rate_colors
from ..scheduler.drawing._picture import Picture
from ..scheduler.results._signals import Signal
from ._mechanism import list_added, list_push_inputs

Message = dict[str, Any]


def encode(message: Mapping[str, Any]) -> str:
    """Return a message as JSON, in which numbers that are not finite are strings.

    It is ASCII: names of files may have bytes that no character has.
    """
    try:
        return json.dumps(message, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(message), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def describe_diagram(source: Diagram | Plan, plan: Plan | None) -> Message:
    """Return the picture of a diagram, and what its blocks are."""
    picture = arrange(source, plan)
    return {
        "event": "diagram",
        "name": source.name,
        "picture": describe_picture(picture),
        "blocks": _describe_blocks(plan) if plan else {},
    }


def describe_picture(picture: Picture) -> Message:
    """Return a picture as plain data; lengths are in points, y points down."""
    colors = rate_colors(picture.rates)
    return {
        "width": picture.width,
        "height": picture.height,
        "boxes": [
            {
                "path": box.path,
                "rect": box.rect,
                "body": box.body,
                "rate": box.rate,
                "shape": box.look.shape,
                "strokes": box.look.strokes,
                "open_inputs": box.open_inputs,
            }
            for box in picture.boxes
        ],
        "frames": [asdict(frame) for frame in picture.frames],
        "wires": [asdict(wire) for wire in picture.wires],
        "dots": [asdict(dot) for dot in picture.dots],
        "words": [asdict(words) for words in picture.words],
        "rates": [
            {"rate": rate, "text": describe_rate(rate), "color": color, "dash": dash}
            for rate, (color, dash) in colors.items()
        ],
    }


def _describe_blocks(plan: Plan) -> Message:
    docs: dict[str, str] = {}
    pushes: set[str] = set()  # the diagram of the file has no such inputs
    if isinstance(plan, Model):
        docs = {item.path: type(item.block).__doc__ or "" for item in plan.flat.blocks}
        pushes = list_push_inputs(plan.flat)
    return {
        block.path: {
            "type": block.type,
            "rate": block.rate,
            "doc": _first_paragraph(docs.get(block.path, "")),
            "inputs": [_describe_port(port) for port in block.inputs if port.path not in pushes],
            "outputs": [_describe_port(port) for port in block.outputs],
            "parameters": [item.path for item in block.parameters],
        }
        for block in plan.blocks
    }


def _first_paragraph(doc: str) -> str:
    """Return it in one line; equations that follow it are left out."""
    first = " ".join(doc.strip().split("\n\n")[0].split())
    return first.removesuffix("::") + "." if first.endswith("::") else first


def _describe_port(port: Any) -> Message:
    return {
        "path": port.path,
        "unit": port.unit,
        "width": port.width,
        "kind": port.kind,
        "doc": port.doc,
    }


def describe_signals(
    signals: Sequence[Signal], columns: Mapping[str, int], plan: Plan | None, interval: float
) -> Message:
    """Return the signals, in the order of their values in messages."""
    rates, docs, sources = {}, {}, {}
    added = list_added(plan.flat) if isinstance(plan, Model) else ()
    for block in plan.blocks if plan else ():
        for port in block.outputs:
            rates[port.path], docs[port.path] = block.rate, port.doc
            sources[port.path] = block.path
    described = [
        {
            "path": signal.path,
            "block": sources.get(signal.path, ""),
            "unit": signal.unit,
            "width": signal.width,
            "kind": signal.kind,
            "names": list(signal.names),
            "rate": rates.get(signal.path, ""),
            "held": signal.holds_between_ticks,
            "doc": docs.get(signal.path, ""),
            "element_offset": columns[signal.path] - 1,
            "added": signal.path in added,
        }
        for signal in signals
    ]
    aliases = dict(plan.aliases) if plan else {}
    return {"event": "signals", "list": described, "aliases": aliases, "interval": interval}


def describe_parameters(plan: Plan, now: Mapping[str, Any]) -> Message:
    """Return the parameters and the inputs of a diagram, with their present values `now`."""
    limits = _find_limits(plan)
    first = plan.first_values
    parameters = []
    for block in plan.blocks:
        for item in block.parameters:
            default = first[item.slot : item.slot + item.size]
            about = limits.get(item.path)
            parameters.append(
                {
                    "path": item.path,
                    "block": block.path,
                    "unit": item.unit,
                    "shape": list(item.shape),
                    "value": plain(now.get(item.path, default), item.shape),
                    "default": plain(default, item.shape),
                    "tunable": item.tunable,
                    "min": about.minimum if about else None,
                    "max": about.maximum if about else None,
                    "doc": item.doc,
                    "kind": "real",
                    "names": [],
                }
            )
    inputs = []
    pushes = list_push_inputs(plan.flat) if isinstance(plan, Model) else ()
    for port in plan.inputs.values():
        if port.path in pushes:
            continue
        default = first[port.slot : port.slot + port.width]
        shape = () if port.width == 1 else (port.width,)
        inputs.append(
            {
                "path": port.path,
                "block": "",
                "unit": port.unit,
                "shape": list(shape),
                "value": plain(now.get(port.path, default), shape),
                "default": plain(default, shape),
                "tunable": True,
                "min": None,
                "max": None,
                "doc": port.doc,
                "kind": port.kind,
                "names": list(port.names),
            }
        )
    return {"event": "parameters", "list": parameters, "inputs": inputs}


def plain(value: Any, shape: Sequence[int]) -> Any:
    """Return a value as a number or as nested lists."""
    array = np.asarray(value, dtype=np.float64)
    return float(array.ravel()[0]) if not shape else array.reshape(shape).tolist()


def _find_limits(plan: Plan) -> dict[str, Parameter]:
    if not isinstance(plan, Model):
        return {}
    found: dict[str, Parameter] = {}
    for item in plan.flat.blocks:
        prefix = "" if item.bare else f"{item.path}."
        found |= {f"{prefix}{parameter.name}": parameter for parameter in item.block.parameters}
    return found


def describe_problems(error: BaseException, names: Sequence[str]) -> Message:
    """Return what is wrong with a file, each problem with the `names` that its text has."""
    texts = [str(error)]
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, DiagramError | BindingError):
            texts = cause.problems
            break
        cause = cause.__cause__
    return {
        "event": "problems",
        "list": [
            {"text": text, "where": _find_names(text, names), "severity": "error"} for text in texts
        ],
    }


def _find_names(text: str, names: Sequence[str]) -> list[str]:
    """Return the blocks that a text names, itself or by one of its ports."""
    found: dict[str, None] = {}
    for quoted in re.findall(r"`([^`]+)`", text):
        near = [name for name in names if quoted == name or quoted.startswith(f"{name}.")]
        if near:
            found[max(near, key=len)] = None
    return list(found)


def read_number(request: Message, name: str, default: float) -> float:
    """Return a finite number of a request."""
    value = request.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BiellaError(f"`{name}` is a number, got {value!r}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise BiellaError(f"`{name}` is a finite number, got {value!r}.")
    return number
