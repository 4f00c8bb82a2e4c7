"""A canvas of pixels."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Sequence

from PIL import Image, ImageDraw

from ._paint import WHITE, Dash, paint
from ._picture import Picture
from ._symbols import Words, load_font
from ._wiring import Point

_FINER = 4
"""Painted so many times larger, then reduced: smooth edges."""
_ANCHORS = {"left": "l", "center": "m", "right": "r"}
_MIDDLE = 0.36
_DASHES = {"dashed": (3.7, 1.6), "dotted": (1.0, 1.65)}


def write_png(page: Picture, *, scale: float = 1.5, largest: int = 4000) -> bytes:
    """Return a finished picture as the bytes of a PNG file.

    Parameters
    ----------
    page
        The picture.
    scale
        Pixels for each point, as long as neither side has more than `largest`.
    """
    scale = min(scale, largest / max(page.width, page.height))
    width, height = math.ceil(page.width * scale), math.ceil(page.height * scale)
    # A large picture is reduced less, so that memory stays bounded.
    finer = max(1, min(_FINER, int(16_000 // max(width, height))))
    image = Image.new("RGB", (width * finer, height * finer), WHITE)
    paint(page, _PixelCanvas(image, scale * finer))
    file = io.BytesIO()
    reduced = image.reduce(finer) if finer > 1 else image
    reduced.quantize(128, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return file.getvalue()


class _PixelCanvas:
    def __init__(self, image: Image.Image, scale: float) -> None:
        self._draw = ImageDraw.Draw(image)
        self._scale = scale

    def polygon(
        self, points: Sequence[Point], fill: str, edge: str | None = None, width: float = 0.0
    ) -> None:
        self._draw.polygon(self._places(points), fill=fill)
        if edge:
            self._stroke([*points, points[0], points[1]], edge, width)

    def line(self, points: Sequence[Point], color: str, width: float, dash: Dash = "solid") -> None:
        if dash == "solid":
            self._stroke(points, color, width)
            return
        for piece in _cut(points, [part * width for part in _DASHES[dash]]):
            self._stroke(piece, color, width)

    def circle(
        self, at: Point, radius: float, fill: str, edge: str | None = None, width: float = 0.0
    ) -> None:
        x, y = at[0] * self._scale, at[1] * self._scale
        outer = (radius + width / 2) * self._scale
        self._draw.ellipse((x - outer, y - outer, x + outer, y + outer), fill=edge or fill)
        if edge:
            inner = (radius - width / 2) * self._scale
            self._draw.ellipse((x - inner, y - inner, x + inner, y + inner), fill=fill)

    def text(self, words: Words, color: str) -> None:
        font = load_font(max(1, round(words.size * self._scale)), words.bold)
        place = (words.x * self._scale, (words.y + _MIDDLE * words.size) * self._scale)
        self._draw.text(
            place, words.text, fill=color, font=font, anchor=f"{_ANCHORS[words.anchor]}s"
        )

    def _stroke(self, points: Sequence[Point], color: str, width: float) -> None:
        pixels = max(1, round(width * self._scale))
        self._draw.line(self._places(points), fill=color, width=pixels, joint="curve")

    def _places(self, points: Sequence[Point]) -> list[tuple[float, float]]:
        return [(x * self._scale, y * self._scale) for x, y in points]


def _cut(points: Sequence[Point], pattern: Sequence[float]) -> list[list[Point]]:
    """Return the drawn pieces of a dashed line."""
    pieces: list[list[Point]] = []
    lengths = itertools.cycle(pattern)
    left, drawn = next(lengths), True
    piece = [points[0]]
    for a, b in itertools.pairwise(points):
        at, length = 0.0, math.dist(a, b)
        while length - at > left:
            at += left
            share = at / length
            end = (a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]))
            if drawn:
                pieces.append([*piece, end])
            piece, drawn, left = [end], not drawn, next(lengths)
        left -= length - at
        piece.append(b)
    if drawn and len(piece) > 1:
        pieces.append(piece)
    return pieces
