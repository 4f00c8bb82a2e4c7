"""McPherson against Exudyn, which works in absolute coordinates and steps implicitly."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks.multibody import mechanisms

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def test_mcpherson_moves_as_in_exudyn() -> None:
    """One second on the road; the centers of all bodies every 0.05 s.

    Exudyn's generalized-alpha is of order two: its runs at 0.1 and 0.05 ms, 5e-9 m apart, are
    extrapolated to step 0. The step load at t = 0, 37.7 kN from the tire's damper, is in both.
    """
    from peers.process import Peer

    peer = Peer("exudyn")
    assert peer.version
    _, coarse = peer.run("mcpherson_fine", 1.0)
    _, fine = peer.run("mcpherson_finest", 1.0)
    peer.close()
    assert fine["closure_m"] < 1e-8
    s = mechanisms.mcpherson()
    names = [body.name for body in s.bodies]
    diagram = Diagram("suspension", step=5e-5)
    paths = [f"{name}.position" for name in names]
    diagram.add(s.block(outputs=paths, mode="internal"), name="plant")
    ours = simulate(diagram, 1.0, every=round(fine["every_s"] / 5e-5))
    place = np.array([ours[f"plant.{name}.position"] for name in names]).transpose(1, 0, 2)
    rough, good = np.array(coarse["track"]), np.array(fine["track"])
    assert place.shape == good.shape
    assert np.abs(rough - good).max() < 1e-7
    limit = good + (good - rough) / 3.0
    # Over the run the wheel moves by 0.06 m.
    assert np.ptp(place[:, names.index("wheel"), 2]) > 0.05
    # Measured: 3e-10 m, and 1.5e-9 m to the finest run itself.
    assert np.abs(place - limit).max() < 2e-9
