"""Keywords that a method does not have."""

from __future__ import annotations

import pytest

from biella import DiagramError
from biella.blocks.multibody import System


def test_an_unknown_keyword_is_one_of_the_users_class():
    s = System("s", planar=True)
    with pytest.raises(
        DiagramError, match=r"^System\.force has no keyword `valu`. Did you mean `v"
    ):
        s.force("f", s.body("a", mass=1.0, inertia=1.0).marker("m"), valu=1.0)  # type: ignore[call-arg]
    with pytest.raises(DiagramError, match=r"^System has no keyword `gravitation`"):
        System("t", gravitation=(0, 0))  # type: ignore[call-arg]
