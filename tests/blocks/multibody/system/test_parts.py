"""Parts of a system by name."""

from __future__ import annotations

import pytest

from biella import DiagramError
from biella.blocks.multibody import Marker, mechanisms


def test_finding_parts_by_name() -> None:
    s = mechanisms.slider_crank()
    marker = s["crank.pin"]
    assert isinstance(marker, Marker) and marker.path == "crank.pin"
    with pytest.raises(DiagramError, match=r"nothing called `crnk`. Did you mean `crank`"):
        s["crnk"]
    with pytest.raises(DiagramError, match=r"`crank` has no marker `pim`. Did you mean `pin`"):
        s["crank.pim"]
    with pytest.raises(DiagramError, match="pins is one of 'revolute', 'spherical'; got 'pins'"):
        mechanisms.slider_crank("pins")  # type: ignore[arg-type]
