"""How blocks look: what is written fits inside, ports are on the body, names are short."""

import numpy as np
import pytest

from biella.scheduler.drawing._symbols import (
    _FRACTIONS,
    _ICONS,
    _TEXTS,
    Facts,
    Words,
    format_value,
    look_of_block,
    look_of_border,
    measure,
    names_itself,
    shorten,
)

TYPES = sorted({*_TEXTS, *_FRACTIONS, *_ICONS, "Gain", "Sum", "Mux", "Demux", "Constant", "PID",
                "StateMachine"})  # fmt: skip
PORTS = [((), ("y",)), (("u",), ("y",)), (("u1", "u2"), ("y",)), (("u",), ()),
         (tuple(f"u{k}" for k in range(9)), ("a", "b"))]  # fmt: skip


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("inputs", "outputs"), PORTS)
def test_all_that_belongs_to_a_look_is_inside_it(kind, inputs, outputs):
    signs = "+" * len(inputs) if kind == "Sum" else ""
    look = look_of_block(Facts("a_block", kind, inputs, outputs, np.array(-2.5), signs))
    assert len(look.inputs) == len(inputs) and len(look.outputs) == len(outputs)
    left, top, width, height = look.body
    assert left >= 0 and top >= 0
    assert left + width <= look.width + 1e-9 and top + height <= look.height + 1e-9
    for port in (*look.inputs, *look.outputs):
        assert top - 1e-9 <= port <= top + height + 1e-9
    assert list(look.outputs) == sorted(look.outputs)
    for words in look.words:
        extent = words.extent
        assert extent[0] >= -0.5 and extent[2] <= look.width + 0.5, words.text
        assert extent[1] >= -2.0 and extent[3] <= look.height + 2.0, words.text


def test_shapes_follow_from_the_ports():
    assert look_of_block(Facts("a", "Step", (), ("y",))).shape == "source"
    assert look_of_block(Facts("a", "Scope", ("u",), ())).shape == "sink"
    assert look_of_block(Facts("a", "Other", ("u",), ("y",))).shape == "box"
    assert look_of_block(Facts("a", "Gain", ("u",), ("y",), np.array(2.0))).shape == "triangle"
    assert look_of_block(Facts("a", "Sum", ("u1", "u2"), ("y",), signs="+-")).shape == "circle"
    four = Facts("a", "Sum", tuple("abcd"), ("y",), signs="++++")
    assert look_of_block(four).shape == "box"


def test_a_round_sum_has_three_places_for_its_inputs():
    look = look_of_block(Facts("e", "Sum", ("u1", "u2"), ("y",), signs="+-"))
    assert look.spots is not None
    above, middle, below = look.spots
    assert above < middle < below and middle - above == pytest.approx(below - middle)
    assert list(look.outputs) == pytest.approx([middle])


def test_the_border_of_a_diagram():
    inward, outward = look_of_border("u", inward=True), look_of_border("u", inward=False)
    assert (inward.shape, outward.shape) == ("inport", "outport")
    assert inward.outputs == outward.inputs == (inward.height / 2,)
    assert inward.inputs == outward.outputs == ()
    assert look_of_border("a much longer name", inward=True).width > inward.width


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "2"),
        (-0.5, "−0.5"),
        (1.23456789, "1.235"),
        ([1.0, -2.0], "[1 −2]"),
        ([1.0, 2.0, 3.0, 4.0], "[4]"),
        ([[1.0, 2.0], [3.0, 4.0]], "[2×2]"),
        ([[7.0]], "7"),
    ],
)
def test_values_in_a_few_characters(value, text):
    assert format_value(np.asarray(value)) == text


def test_names_that_say_no_more_than_the_type():
    def named(name, kind):
        return names_itself(Facts(name, kind, (), ()))

    assert named("unit_delay", "UnitDelay") and named("unit_delay_12", "UnitDelay")
    assert not named("memory", "UnitDelay") and not named("unit_delay_a", "UnitDelay")


def test_texts_are_cut_and_measured():
    assert shorten("x" * 26) == "x" * 26 and shorten("x" * 27) == "x" * 25 + "…"
    assert measure("iiii", 10) < measure("MMMM", 10) < measure("MMMM", 10, bold=True)
    assert measure("Mi", 20) == pytest.approx(2 * measure("Mi", 10))
    for anchor, left in (("left", 0.0), ("center", 0.5), ("right", 1.0)):
        words = Words("text", 100.0, 50.0, 10.0, anchor)  # type: ignore[arg-type]
        assert words.extent[0] == pytest.approx(100.0 - left * measure("text", 10.0))
    assert words.moved(1.0, -2.0).extent == pytest.approx(
        np.add(words.extent, (1.0, -2.0, 1.0, -2.0))
    )
