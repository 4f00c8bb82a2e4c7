"""Where a state starts, and the limits that it keeps to."""

import numpy as np
import pytest

from biella.blocks.core._state import make_initial, make_limits
from biella.errors import DiagramError


def test_a_vector_fixes_the_width_and_a_number_leaves_it_open():
    assert make_initial(0.0, "")[1] == "n"
    assert make_initial([1.0, 2.0], "")[1] == 2
    with pytest.raises(DiagramError, match="`initial`"):
        make_initial(np.eye(2), "")


def test_limits_are_broadcast_and_may_fix_the_width():
    assert make_limits(None, "n") == ([], "n")
    (lower, upper), width = make_limits((-1.0, [1.0, np.inf]), "n")
    assert width == 2
    assert lower.value.tolist() == [-1.0, -1.0] and upper.value.tolist() == [1.0, np.inf]


@pytest.mark.parametrize(
    "given", [1.0, (1.0,), (2.0, 1.0), (np.nan, 1.0), ([0.0, 0.0], [1.0, 1.0, 1.0])]
)
def test_what_is_no_pair_of_limits_is_refused(given):
    with pytest.raises(DiagramError, match="limits"):
        make_limits(given, "n")


def test_limits_have_the_width_of_the_initial_value():
    with pytest.raises(DiagramError, match="3"):
        make_limits((0.0, [1.0, 2.0]), 3)
