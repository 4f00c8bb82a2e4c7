"""Pixels: sizes, colors where shapes are, dashes of the right length."""

import io
import itertools
import math

import pytest
from PIL import Image

from biella.scheduler.drawing._arrange import arrange
from biella.scheduler.drawing._paint import WHITE, finish
from biella.scheduler.drawing._picture import Picture
from biella.scheduler.drawing._png import _cut, _PixelCanvas, write_png

from .diagrams import oscillator


def length(points):
    return sum(math.dist(a, b) for a, b in itertools.pairwise(points))


@pytest.mark.parametrize("total", [0.5, 3.0, 4.0, 10.0, 40.5])
def test_a_dashed_line_has_dashes_and_gaps_of_the_pattern(total):
    """Dashes of 3 and gaps of 1, around a corner: of every 4 a 3 is drawn."""
    line = [(0.0, 0.0), (0.4 * total, 0.0), (0.4 * total, 0.6 * total)]
    pieces = _cut(line, [3.0, 1.0])
    whole, rest = divmod(total, 4.0)
    assert sum(map(length, pieces)) == pytest.approx(3.0 * whole + min(rest, 3.0))
    assert all(length(piece) == pytest.approx(3.0) for piece in pieces[:-1])
    assert pieces[0][0] == (0.0, 0.0)
    for before, after in itertools.pairwise(pieces):
        along = abs(after[0][0] - before[-1][0]) + abs(after[0][1] - before[-1][1])
        assert along == pytest.approx(1.0)


def test_a_dash_may_go_around_a_corner():
    (first, *_) = _cut([(0.0, 0.0), (2.0, 0.0), (2.0, 5.0)], [3.0, 1.0])
    assert first == [(0.0, 0.0), (2.0, 0.0), (2.0, 1.0)]


def test_shapes_color_their_places_and_no_others():
    image = Image.new("RGB", (100, 100), WHITE)
    canvas = _PixelCanvas(image, 2.0)
    canvas.polygon([(5, 5), (20, 5), (20, 20), (5, 20)], "#FF0000")
    canvas.circle((35, 35), 5, "#00FF00", "#0000FF", 2)
    canvas.line([(5, 40), (20, 40)], "#FF00FF", 2)
    colors = {
        (20, 20): (255, 0, 0), (45, 45): (255, 255, 255),
        (70, 70): (0, 255, 0), (80, 70): (0, 0, 255), (85, 70): (255, 255, 255),
        (25, 80): (255, 0, 255), (25, 84): (255, 255, 255),
    }  # fmt: skip
    assert {place: image.getpixel(place) for place in colors} == colors


def test_a_page_is_scaled_and_bounded():
    page = finish(arrange(oscillator()))
    image = Image.open(io.BytesIO(write_png(page, scale=2.0)))
    assert image.size == (math.ceil(2 * page.width), math.ceil(2 * page.height))
    assert len(image.convert("RGB").getcolors(1 << 20) or []) > 3
    small = Image.open(io.BytesIO(write_png(page, scale=2.0, largest=100)))
    assert max(small.size) == 100


def test_a_very_long_page_stays_within_its_bound():
    page = Picture(width=50_000.0, height=10.0)
    assert Image.open(io.BytesIO(write_png(page))).size == (4000, 1)
