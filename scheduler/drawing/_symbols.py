"""How blocks look: shape, size, port positions and what is written inside, in points."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from PIL import ImageFont

Shape = Literal["box", "source", "sink", "triangle", "circle", "bar", "inport", "outport"]
Anchor = Literal["left", "center", "right"]
Tone = Literal["dark", "soft"]

FONT = "DejaVu Sans"
"""Comes with matplotlib, so text measures the same everywhere."""

_NAME, _TYPE, _PORT, _SYMBOL, _SIGN = 8.5, 7.0, 6.5, 11.0, 8.0
_PORT_PITCH = 15.0
_LEAST_HEIGHT = 34.0
_RADIUS, _STUB = 11.0, 15.0
_LONGEST = 26

_TEXTS = {
    "Abs": "|u|",
    "Delay": "z⁻ⁿ",
    "Derivative": "du/dt",
    "DiscreteStateSpace": "x⁺ = Ax + Bu",
    "Divide": "÷",
    "Product": "×",
    "Sign": "sgn",
    "StateSpace": "ẋ = Ax + Bu",
    "Time": "t",
    "TransportDelay": "e⁻ˢᵀ",
    "UnitDelay": "z⁻¹",
    "ZeroOrderHold": "ZOH",
}
_SIGNS = {"+": "+", "-": "−", "*": "×", "/": "÷"}
_FRACTIONS = {
    "DiscreteIntegrator": ("T", "z − 1"),
    "DiscreteTransferFunction": ("B(z)", "A(z)"),
    "Integrator": ("1", "s"),
    "SecondOrderIntegrator": ("1", "s²"),
    "TransferFunction": ("B(s)", "A(s)"),
}
_WAVE = tuple((k / 24, 0.5 + 0.42 * float(np.sin(2 * np.pi * k / 24))) for k in range(25))
_CHIRP = tuple((k / 48, 0.5 + 0.42 * float(np.sin(18 * (k / 48) ** 2))) for k in range(49))
_ROUGH = (0.5, 0.7, 0.35, 0.55, 0.9, 0.45, 0.15, 0.6, 0.3, 0.75, 0.5, 0.65, 0.1, 0.5)
_ICONS: dict[str, tuple[tuple[float, float], ...]] = {
    "Chirp": _CHIRP,
    "DeadZone": ((0, 0), (0.33, 0.5), (0.67, 0.5), (1, 1)),
    "Lookup1D": ((0, 0.05), (0.3, 0.2), (0.6, 0.75), (1, 0.95)),
    "Noise": tuple((k / 13, level) for k, level in enumerate(_ROUGH)),
    "Pulse": ((0, 0), (0.15, 0), (0.15, 1), (0.45, 1), (0.45, 0), (0.7, 0), (0.7, 1), (1, 1)),
    "Quantizer": ((0, 0), (0.25, 0), (0.25, 0.33), (0.5, 0.33), (0.5, 0.67), (0.75, 0.67),
                  (0.75, 1), (1, 1)),
    "Ramp": ((0, 0.05), (0.3, 0.05), (1, 0.95)),
    "Relay": ((0, 0), (0.65, 0), (0.65, 1), (1, 1), (0.35, 1), (0.35, 0)),
    "Saturation": ((0, 0.05), (0.3, 0.05), (0.7, 0.95), (1, 0.95)),
    "Scope": ((0, 0.1), (0.15, 0.75), (0.35, 0.95), (0.55, 0.6), (0.75, 0.7), (1, 0.68)),
    "Sine": _WAVE,
    "Step": ((0, 0.05), (0.4, 0.05), (0.4, 0.95), (1, 0.95)),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Words:
    """A line of text, its middle at height `y`."""

    text: str
    x: float
    y: float
    size: float
    anchor: Anchor = "center"
    bold: bool = False
    tone: Tone = "dark"

    def moved(self, dx: float, dy: float) -> Words:
        """Return the same text elsewhere."""
        return Words(
            self.text, self.x + dx, self.y + dy, self.size, self.anchor, self.bold, self.tone
        )

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of the text."""
        width = measure(self.text, self.size, self.bold)
        left = self.x - {"left": 0.0, "center": 0.5, "right": 1.0}[self.anchor] * width
        return left, self.y - 0.6 * self.size, left + width, self.y + 0.6 * self.size


@dataclass(frozen=True, slots=True)
class Look:
    """A block's picture, its top left corner at the origin.

    Attributes
    ----------
    width, height
        Of everything, caption included.
    body
        Left, top, width and height of the shape alone, where wires end.
    inputs, outputs
        Heights of the ports.
    spots
        For a round sum: where inputs may enter, above, at and below the middle.
    words, strokes
        What is written and drawn inside.
    signs
        For a round sum: one for each input, written where that enters.
    """

    shape: Shape
    width: float
    height: float
    body: tuple[float, float, float, float]
    inputs: tuple[float, ...] = ()
    outputs: tuple[float, ...] = ()
    spots: tuple[float, float, float] | None = None
    words: tuple[Words, ...] = ()
    strokes: tuple[tuple[tuple[float, float], ...], ...] = ()
    signs: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the look of a block depends on."""

    name: str
    type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    value: npt.NDArray[np.float64] | None = None
    """Of the first parameter."""
    signs: str = ""
    """Of a Sum, ``+`` and ``-``; of a Product, ``*`` and ``/``."""
    formula: str = ""


@cache
def measure(text: str, size: float, bold: bool = False) -> float:
    """Return the width of a text in points."""
    return load_font(100, bold).getlength(text) * size / 100


@cache
def load_font(pixels: int, bold: bool = False) -> ImageFont.FreeTypeFont:
    """Return `FONT`, from the files of matplotlib, which is not imported: that takes long."""
    spec = importlib.util.find_spec("matplotlib")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0], "mpl-data", "fonts", "ttf")
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(folder / name, pixels, layout_engine=ImageFont.Layout.BASIC)


def look_of_block(facts: Facts) -> Look:
    """Return the picture of a block; a type without one of its own shows its name and its type."""
    kind = facts.type
    one_in, one_out = len(facts.inputs) == 1, len(facts.outputs) == 1
    if kind == "Gain" and one_in and one_out:
        return _triangle(facts)
    if kind == "Sum" and len(facts.inputs) <= 3 and one_out:
        return _circle(facts)
    if kind in ("Mux", "Demux"):
        return _bar(facts)
    shape: Shape = "box"
    # Names of several ports would cross the round ends of a source.
    if len(facts.outputs) == 1 and not facts.inputs:
        shape = "source"
    elif facts.inputs and not facts.outputs:
        shape = "sink"
    if kind in _FRACTIONS:
        return _fraction(facts, shape, *_FRACTIONS[kind])
    if kind in _ICONS:
        return _body(facts, shape, 30.0, icon=_ICONS[kind])
    if kind == "StateMachine":
        return _machine(facts, shape)
    text = _TEXTS.get(kind, "")
    if kind == "Constant" and facts.value is not None:
        text = format_value(facts.value)
    elif kind == "Sum":
        text = "Σ"
    elif facts.formula:
        text = shorten(facts.formula)
    if text:
        size = _SYMBOL if len(text) < 6 else _NAME
        return _body(facts, shape, measure(text, size), [(text, size, False, "dark")])
    rows: list[tuple[str, float, bool, Tone]] = [(shorten(facts.name), _NAME, True, "dark")]
    if not names_itself(facts):
        rows.append((shorten(kind), _TYPE, False, "soft"))
    width = max(measure(row, size, bold) for row, size, bold, _ in rows)
    return _body(facts, shape, width, rows, caption=False)


def look_of_border(name: str, *, inward: bool) -> Look:
    """Return the picture of an input (`inward`) or output of a diagram."""
    text = shorten(name)
    width = measure(text, _TYPE) + 20
    height = 17.0
    words = Words(text, width / 2 - 3, height / 2, _TYPE)
    ports = (height / 2,)
    return Look(
        "inport" if inward else "outport",
        width,
        height,
        (0.0, 0.0, width, height),
        inputs=() if inward else ports,
        outputs=ports if inward else (),
        words=(words,),
    )


def names_itself(facts: Facts) -> bool:
    """Whether the name is the one that a diagram gives by default, such as ``unit_delay_2``."""
    plain = re.sub(r"_\d+$", "", facts.name).replace("_", "").lower()
    return plain == facts.type.lower()


def shorten(text: str, longest: int = _LONGEST) -> str:
    """Cut a long text."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def format_value(value: npt.NDArray[np.float64]) -> str:
    """Return a number, a short vector, or the shape of anything longer."""
    if value.size == 1:
        return f"{value.item():.4g}".replace("-", "−")
    if value.ndim == 1 and value.size <= 3:
        return "[" + " ".join(format_value(v) for v in value) + "]"
    return "[" + "×".join(str(n) for n in value.shape) + "]"


def _ports(count: int, top: float, height: float) -> tuple[float, ...]:
    middle = top + height / 2
    return tuple(middle + (n - (count - 1) / 2) * _PORT_PITCH for n in range(count))


def _caption(facts: Facts, x: float, top: float) -> tuple[Words, float]:
    words = Words(shorten(facts.name), x, top + 7.5, _PORT + 0.5)
    return words, measure(words.text, words.size)


def _body(
    facts: Facts,
    shape: Shape,
    middle: float,
    rows: Sequence[tuple[str, float, bool, Tone]] = (),
    *,
    icon: tuple[tuple[float, float], ...] = (),
    caption: bool = True,
) -> Look:
    """Return a rectangle with `rows` of text or an icon in its middle, ports named if many."""
    # A lone port needs no name; signs say more than names.
    into = [_SIGNS[sign] for sign in facts.signs] or facts.inputs
    into = into if len(facts.inputs) > 1 and set(facts.signs) != {"*"} else ()
    out = facts.outputs if len(facts.outputs) > 1 else ()
    left = max((measure(name, _PORT) for name in into), default=0.0)
    right = max((measure(name, _PORT) for name in out), default=0.0)
    pad = 9.0
    width = max(middle + 2 * pad + (left + 4 if left else 0) + (right + 4 if right else 0), 36.0)
    count = max(len(facts.inputs), len(facts.outputs))
    height = max(_LEAST_HEIGHT, count * _PORT_PITCH + 8)
    x, total = 0.0, width
    words: list[Words] = []
    strokes = []
    if caption:
        below, wide = _caption(facts, 0.0, height)
        total = max(width, wide)
        x = (total - width) / 2
        words.append(below.moved(total / 2, 0))
    free = width - 2 * pad - (left + 4 if left else 0) - (right + 4 if right else 0)
    center = x + pad + (left + 4 if left else 0) + free / 2
    for n, (text, size, bold, tone) in enumerate(rows):
        y = height / 2 + (n - (len(rows) - 1) / 2) * 11.5
        words.append(Words(text, center, y, size, bold=bold, tone=tone))
    if icon:
        w, h = 24.0, 16.0
        strokes.append(tuple((center + (u - 0.5) * w, height / 2 + (0.5 - v) * h) for u, v in icon))
    inputs = _ports(len(facts.inputs), 0.0, height)
    outputs = _ports(len(facts.outputs), 0.0, height)
    words += [
        Words(name, x + 5, y, _PORT, "left", tone="soft")
        for name, y in zip(into, inputs, strict=False)
    ]
    words += [
        Words(name, x + width - 5, y, _PORT, "right", tone="soft")
        for name, y in zip(out, outputs, strict=False)
    ]
    return Look(
        shape,
        total,
        height + (14.0 if caption else 0.0),
        (x, 0.0, width, height),
        inputs,
        outputs,
        words=tuple(words),
        strokes=tuple(strokes),
    )


def _machine(facts: Facts, shape: Shape) -> Look:
    """Return a box with two states, and an arrow from each to the other."""
    look = _body(facts, shape, 44.0, [("", _NAME, False, "dark")])
    middle = next(word for word in look.words if not word.text)
    x, y = middle.x, middle.y
    strokes: list[tuple[tuple[float, float], ...]] = []
    for side in (-1, 1):
        at, w, h, c = x + side * 14, 7.0, 5.0, 2.0
        strokes.append((
            (at - w + c, y - h), (at + w - c, y - h), (at + w, y - h + c), (at + w, y + h - c),
            (at + w - c, y + h), (at - w + c, y + h), (at - w, y + h - c), (at - w, y - h + c),
            (at - w + c, y - h),
        ))  # fmt: skip
        # The arrow above goes to the right, the one below to the left.
        level, tip = y + 2.2 * side, x - 7 * side
        strokes.append(((x + 7 * side, level), (tip, level)))
        strokes.append(
            ((tip + 2.5 * side, level - 1.8), (tip, level), (tip + 2.5 * side, level + 1.8))
        )
    words = tuple(word for word in look.words if word is not middle)
    return Look(
        look.shape, look.width, look.height, look.body, look.inputs, look.outputs,
        words=words, strokes=tuple(strokes),
    )  # fmt: skip


def _fraction(facts: Facts, shape: Shape, over: str, under: str) -> Look:
    size = _SYMBOL - 1.0
    half = max(measure(over, size), measure(under, size)) / 2 + 2
    rows: list[tuple[str, float, bool, Tone]] = [
        (over, size, False, "dark"),
        (under, size, False, "dark"),
    ]
    look = _body(facts, shape, 2 * half, rows)
    first, second = (word for word in look.words if word.text in (over, under))
    y = look.body[3] / 2
    spread = tuple(
        word if word not in (first, second) else word.moved(0, -1.5 if word is first else 1.5)
        for word in look.words
    )
    line = ((first.x - half, y), (first.x + half, y))
    return Look(
        look.shape, look.width, look.height, look.body, look.inputs, look.outputs,
        words=spread, strokes=(line,),
    )  # fmt: skip


def _triangle(facts: Facts) -> Look:
    text = "k" if facts.value is None else format_value(facts.value)
    size = _NAME
    wide = measure(text, size)
    width, height = max(36.0, 1.45 * (wide + 6)), _LEAST_HEIGHT
    below, caption = _caption(facts, 0.0, height - 3)
    total = max(width, caption)
    x = (total - width) / 2
    port = (height / 2,)
    return Look(
        "triangle",
        total,
        height + 11,
        (x, 0.0, width, height),
        port,
        port,
        words=(
            Words(text, x + 4 + max(wide / 2, width * 0.3 - 4), height / 2, size),
            below.moved(total / 2, 0),
        ),
    )


def _circle(facts: Facts) -> Look:
    text = "" if names_itself(facts) else shorten(facts.name)
    left = _RADIUS + 9
    right = max(_RADIUS + 4, 5 + measure(text, _PORT + 0.5))
    height = 2 * (_RADIUS + _STUB)
    middle = height / 2
    words = [Words(text, left + 5, middle + _RADIUS + 9, _PORT + 0.5, "left")] if text else []
    if not facts.signs:
        words.append(Words("Σ", left, middle, _NAME))
    spots = (1.0, middle, height - 1.0)
    return Look(
        "circle",
        left + right,
        height,
        (left - _RADIUS, middle - _RADIUS, 2 * _RADIUS, 2 * _RADIUS),
        (middle,) * len(facts.inputs),
        (middle,),
        spots,
        tuple(words),
        signs="".join(_SIGNS[sign] for sign in facts.signs),
    )


def _bar(facts: Facts) -> Look:
    count = max(len(facts.inputs), len(facts.outputs))
    width, height = 6.0, max(_LEAST_HEIGHT, count * _PORT_PITCH + 4)
    below, caption = _caption(facts, 0.0, height)
    total = max(width, caption)
    return Look(
        "bar",
        total,
        height + 14,
        ((total - width) / 2, 0.0, width, height),
        _ports(len(facts.inputs), 0.0, height),
        _ports(len(facts.outputs), 0.0, height),
        words=(below.moved(total / 2, 0),),
    )
