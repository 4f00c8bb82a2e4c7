"""A canvas that writes SVG, small and with text that can be searched."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ._paint import Dash, paint
from ._picture import Picture
from ._symbols import FONT, Words
from ._wiring import Point

_ANCHORS = {"left": "start", "center": "middle", "right": "end"}
_DASHES = {"dashed": (3.7, 1.6), "dotted": (1.0, 1.65)}
_MIDDLE = 0.36
"""Half the height of a capital, in parts of the size: from the middle of a text to its baseline."""


def write_svg(page: Picture) -> str:
    """Return a finished picture as the text of an SVG element."""
    canvas = _SvgCanvas()
    paint(page, canvas)
    size = f'width="{_number(page.width)}pt" height="{_number(page.height)}pt"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
        f'viewBox="0 0 {_number(page.width)} {_number(page.height)}" role="img" '
        f'aria-label="{escape(page.name)}" '
        f'font-family="\'{FONT}\', Verdana, sans-serif" stroke-linejoin="round">\n'
        + "\n".join(canvas.elements)
        + "\n</svg>"
    )


class _SvgCanvas:
    def __init__(self) -> None:
        self.elements: list[str] = []

    def polygon(
        self, points: Sequence[Point], fill: str, edge: str | None = None, width: float = 0.0
    ) -> None:
        style = _style(fill, edge, width)
        self.elements.append(f'<polygon points="{_places(points)}" {style}/>')

    def line(self, points: Sequence[Point], color: str, width: float, dash: Dash = "solid") -> None:
        style = _style("none", color, width)
        if dash in _DASHES:
            parts = " ".join(_number(part * width) for part in _DASHES[dash])
            style += f' stroke-dasharray="{parts}"'
        self.elements.append(f'<polyline points="{_places(points)}" {style}/>')

    def circle(
        self, at: Point, radius: float, fill: str, edge: str | None = None, width: float = 0.0
    ) -> None:
        place = f'cx="{_number(at[0])}" cy="{_number(at[1])}" r="{_number(radius)}"'
        self.elements.append(f"<circle {place} {_style(fill, edge, width)}/>")

    def text(self, words: Words, color: str) -> None:
        weight = ' font-weight="bold"' if words.bold else ""
        self.elements.append(
            f'<text x="{_number(words.x)}" y="{_number(words.y + _MIDDLE * words.size)}" '
            f'font-size="{_number(words.size)}" text-anchor="{_ANCHORS[words.anchor]}"{weight} '
            f'fill="{color}">{escape(words.text)}</text>'
        )


def _style(fill: str, edge: str | None, width: float) -> str:
    stroke = f' stroke="{edge}" stroke-width="{_number(width)}"' if edge else ""
    return f'fill="{fill}"{stroke}'


def _places(points: Sequence[Point]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
