"""Which pairs of signals carry power: by units, or as declared."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks import (
    Expression,
)
from biella.blocks.multibody import Input, Joint, System
from biella.errors import DiagramError
from biella.scheduler.compile.coupling._coupling_options import CouplingWarning

from ...engine.coupled_masses import bonded, energy, moved_end

pytestmark = pytest.mark.engine

M, K, C = (1.0, 2.0), (10.0, 15.0), (0.1, 0.2)
SPRING, DAMPER = 20.0, 0.3


@pytest.mark.filterwarnings("ignore:the coupling of `a`, `b` (created|lost)")
def test_power_of_a_bond() -> None:
    """With held inputs: (F0 - F(τ)) dx/dt, F and x from their values at both ends."""
    run = simulate(bonded(0.01), 1.0)
    force, place, power = run["pull"], run["a.slide.displacement"], run["coupling.grip.power"]
    mean = -np.diff(force) / 2 * np.diff(place) / 0.01
    assert power[1:] == pytest.approx(mean, abs=1e-12)
    assert run["coupling.grip.energy"][1:] == pytest.approx(0.01 * np.cumsum(mean), abs=1e-12)
    assert run.units["coupling.grip.power"] == "W"
    assert "power bond grip (a.push.force.x · b.hand_rate)" in str(run.coupling_report())
    iterated = simulate(bonded(0.01), 1.0, coupling="newton", extrapolation=1)
    assert np.abs(iterated["coupling.grip.power"]).max() < 1e-6 * np.abs(power).max()


def test_no_power_where_units_leave_it_open() -> None:
    """Two forces and two places between the same blocks: which belong together is not known."""
    d = Diagram("two springs", step=1e-3)
    for name, inputs in (("a", "force"), ("b", "place")):
        s = System("masses", (0, 0), planar=True)
        for n in "12":
            body = s.body(f"mass{n}", mass=1.0, inertia=1.0, position=(0, int(n)))
            s.prismatic(f"slide{n}", s.ground, body, at=(0, int(n)), axis=(1, 0))
            if inputs == "force":
                s.force(f"push{n}", cast(Joint, s[f"slide{n}"]), Input(f"f{n}"))
            else:
                motion: dict[str, Any] = {"x": Input(f"x{n}"), "y": float(n)}
                end = s.ground.marker(f"end{n}", motion=motion)
                stiffness = (9.0, 9.0, 0.0)
                s.bushing(f"spring{n}", end, body.marker("m"), stiffness=stiffness)
        outputs = [f"slide{n}.displacement" for n in "12"]
        d.add(s.block(outputs=outputs, mode="internal"), name)
    for n in "12":
        pull = d.add(Expression("x - y", unit="N"), f"pull{n}")
        d.connect(f"b.slide{n}.displacement", pull["x"])
        d.connect(f"a.slide{n}.displacement", pull["y"], f"b.x{n}")
        d.connect(pull, f"a.f{n}")
    assert d.compile().exchanges == ()


def test_a_declared_bond_to_a_rate_counts_the_way() -> None:
    d = moved_end(1, step=2e-3)
    d.power_bond("a.push", "b.x_rate", "spring")
    with pytest.warns(CouplingWarning, match=r"created"):
        run = simulate(d, 5.0)
    gained = energy(run)[-1] - energy(run)[0]
    assert run["coupling.spring.energy"][-1] == pytest.approx(gained, rel=0.02)
    assert len(run.coupling_report(tolerance=1e-3).couplings[0]["bonds"]) == 1


def test_bonds_that_are_none() -> None:
    d = bonded(0.01)
    d.power_bond(d["a"]["push.force.x"], d["b"]["hand"], name="place")
    with pytest.raises(DiagramError, match=r"N times m is not in W"):
        d.compile()
    d = bonded(0.01)
    d.power_bond(d["pull"]["x1"], d["b"]["hand_rate"])
    with pytest.raises(DiagramError, match=r"hold for `pull.x1`"):
        d.compile()
