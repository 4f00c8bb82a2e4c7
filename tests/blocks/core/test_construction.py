"""Construction of a block: arguments as they were written, and attributes that are then fixed."""

import numpy as np
import pytest

from biella import DiagramError
from biella.blocks import Delay, Gain, Integrator
from biella.blocks.core._block import NativeBlock
from biella.blocks.core._construction import shorten


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (np.float64(0.1), "0.1"),
        (np.int32(3), "3"),
        ("x" * 30, repr("x" * 30)),
        ("x" * 31, repr("x" * 29 + "…")),
        (np.array([1.0, 2.0]), "[1.0, 2.0]"),
        (np.zeros(5), "<5 array>"),
        (np.zeros((2, 3)), "<2×3 array>"),
        ({}, "{}"),
        ({"a": 1, "b": 2}, "<2 entries>"),
        ((1,), "(1,)"),
        ((1, "b"), "(1, 'b')"),
        ([1, 2, 3, 4], "[1, 2, 3, 4]"),
        ([1, 2, 3, 4, 5], "<5 items>"),
        (["long enough to be left out", "another"], "<2 items>"),
        ([[1, 2], [3]], "[[1, 2], [3]]"),
        (np.sin, "sin"),
        (object(), "<object>"),
        (None, "None"),
    ],
)
def test_a_value_in_a_few_characters(value, text):
    assert shorten(value) == text


class Flexible(NativeBlock):
    """A block with every kind of argument."""

    kernel = "terminator"

    def __init__(self, first, *others, given=None, **more):
        super().__init__()


def test_arguments_are_noted_by_name_in_the_order_of_the_signature():
    assert repr(Gain(2.0)) == "Gain(k=2.0)"
    block = Flexible(1, 2, "c", z=[1, 2], given=np.eye(2))
    assert repr(block) == "Flexible(first=1, 2, 'c', given=<2×2 array>, z=[1, 2])"


def test_the_arguments_are_those_of_the_outermost_class():
    class Doubled(Gain):
        def __init__(self, half: float) -> None:
            super().__init__(2 * half)
            self.half = half

    block = Doubled(half=1.5)
    assert repr(block) == "Doubled(half=1.5)" and block.half == 1.5
    with pytest.raises(DiagramError, match="`half` of Doubled cannot be assigned"):
        block.half = 2.0


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (Gain, {"period": 0.1}, r"takes no `period`: give it where .* d.add\(.*period=…\)"),
        (Gain, {"offset": 0.1}, r"takes no `offset`: .*period=…, offset=…\)"),
        (Integrator, {"period": 0.1}, r"takes no `period`: "),
    ],
)
def test_a_period_in_the_wrong_place_is_explained(kind, given, message):
    with pytest.raises(DiagramError, match=message):
        kind(1.0, **given)


def test_other_wrong_arguments_are_pythons_own_error():
    with pytest.raises(TypeError, match="perod"):
        Delay(2, perod=0.1)  # type: ignore[call-arg]
