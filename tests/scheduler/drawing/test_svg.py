"""SVG: sound XML, places and styles as painted, names that need escaping."""

import xml.etree.ElementTree as ET

import pytest

from biella.scheduler.drawing._arrange import arrange
from biella.scheduler.drawing._paint import finish
from biella.scheduler.drawing._svg import _number, _SvgCanvas, write_svg
from biella.scheduler.drawing._symbols import Words

from .diagrams import oscillator

SVG = "{http://www.w3.org/2000/svg}"


def elements(canvas):
    return ET.fromstring(f"<g>{''.join(canvas.elements)}</g>")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (10.0, "10"), (100.0, "100"), (1.5, "1.5"), (1.256, "1.26"), (-2.0, "-2")],
)
def test_numbers_are_short(value, text):
    assert _number(value) == text


def test_shapes_have_their_places_and_styles():
    canvas = _SvgCanvas()
    canvas.polygon([(0, 0), (10, 0), (10, 5.5)], "#FFF", "#000", 1.5)
    canvas.polygon([(0, 0), (1, 0), (1, 1)], "#EEE")
    canvas.line([(0, 0), (3, 4)], "#123", 2.0, "dashed")
    canvas.circle((4, 5), 2.25, "#456")
    first, second, line, circle = elements(canvas)
    assert first.attrib == {
        "points": "0,0 10,0 10,5.5", "fill": "#FFF", "stroke": "#000", "stroke-width": "1.5",
    }  # fmt: skip
    assert "stroke" not in second.attrib
    assert line.attrib["stroke-dasharray"] == "7.4 3.2" and line.attrib["fill"] == "none"
    assert circle.attrib == {"cx": "4", "cy": "5", "r": "2.25", "fill": "#456"}


def test_text_is_escaped_and_stands_on_its_baseline():
    canvas = _SvgCanvas()
    canvas.text(Words('a < b & "c"', 10, 20, 10, "right", bold=True), "#000")
    (text,) = elements(canvas)
    assert text.text == 'a < b & "c"'
    assert (text.attrib["x"], text.attrib["y"]) == ("10", "23.6")
    assert text.attrib["text-anchor"] == "end" and text.attrib["font-weight"] == "bold"


def test_a_page_has_its_size_and_name():
    page = finish(arrange(oscillator()))
    page.name = '<"odd" & name>'
    root = ET.fromstring(write_svg(page))
    assert root.tag == f"{SVG}svg" and root.attrib["aria-label"] == page.name
    assert root.attrib["width"] == f"{_number(page.width)}pt"
    assert root.attrib["viewBox"] == f"0 0 {_number(page.width)} {_number(page.height)}"
    texts = {element.text for element in root.iter(f"{SVG}text")}
    assert {words.text for words in page.words} <= texts
