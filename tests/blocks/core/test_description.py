"""A block in words."""

import numpy as np
import pytest

from biella.blocks import Constant, Gain, StateSpace, Sum
from biella.blocks.core._block import NativeBlock
from biella.blocks.core._description import describe_block, describe_rate
from biella.blocks.core._ports import (
    CONSTANT,
    CONTINUOUS,
    EVERY_TICK,
    INHERITED,
    SAMPLED,
    Port,
    Same,
    parameter,
    periodic,
)


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (CONTINUOUS, "continuous"),
        (CONSTANT, "constant"),
        (EVERY_TICK, "every tick"),
        (INHERITED, "inherited from its inputs"),
        (SAMPLED, "inherited from its inputs, at ticks only"),
        (periodic(0.002, 0.0, SAMPLED), "every 0.002 s"),
        (periodic(0.002, 5e-4, SAMPLED), "every 0.002 s + 0.0005 s"),
    ],
)
def test_a_rate_in_words(rate, text):
    assert describe_rate(rate) == text


class Odd(NativeBlock):
    """A block that has one of everything."""

    kernel = "terminator"

    def __init__(self) -> None:
        super().__init__(
            inputs=[
                Port("force", unit="N", doc="that acts"),
                Port("any", 3, default=2.0),
                Port("same", "n", Same()),
                Port("flag", kind="boolean"),
            ],
            outputs=[Port("y", unit="m", default=1.0)],
            parameters=[
                parameter("mass", 2.0, unit="kg", doc="moved"),
                parameter("table", np.zeros((2, 3)), doc="of it", tunable=False),
                parameter("secret", 1.0, hidden=True),
                parameter("ratio", 0.5, unit="1"),
            ],
        )


def test_ports_parameters_and_rate_one_a_line():
    lines = describe_block(Odd()).splitlines()
    assert lines == [
        "Odd()",
        "  inputs",
        "    force  N                                that acts",
        "    any    3 values, any unit, default 2.0",
        "    same   width n, common unit",
        "    flag   boolean",
        "  outputs",
        "    y  m",
        "  parameters",
        "    mass   = 2.0 kg       moved",
        "    table  = <2×3 array>  of it; fixed during a run",
        "    ratio  = 0.5",
        "  rate: inherited from its inputs",
    ]


def test_a_unit_that_follows_from_an_input_is_said_to():
    text = describe_block(Sum("+-"))
    assert "common unit" in text and "parameters" not in text
    assert "inputs" not in describe_block(Constant(1.0))


def test_help_shows_this_block_and_the_class_its_docstring():
    block = StateSpace([[0.0]], [[1.0]], [[1.0]], [[0.0]])
    assert block.__doc__ is not None and StateSpace.__doc__ is not None
    assert block.__doc__.startswith(StateSpace.__doc__.splitlines()[0])
    assert block.__doc__.endswith(block.describe())
    assert "rate: " not in StateSpace.__doc__
    assert Gain(3.0).describe() in (Gain(3.0).__doc__ or "")
