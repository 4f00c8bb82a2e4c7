"""The largest stable step of RK4, and the warning of larger ones."""

from __future__ import annotations

from typing import Any

import pytest

from biella import BiellaWarning, Diagram, System, simulate
from biella.blocks.multibody import mechanisms

pytestmark = pytest.mark.engine


def diagram(system: System, *outputs: str, step: float = 1e-3, **options: Any) -> Diagram:
    d = Diagram("mechanism", step=step)
    d.add(system.block(outputs=list(outputs) or ["closure"], **options), name="plant")
    return d


@pytest.mark.parametrize(
    ("step", "options", "told"),
    [
        (1.25e-3, {}, None),
        (1.35e-3, {}, 2),
        (2.5e-3, {"mode": "internal"}, 2),
        (2.5e-3, {"mode": "internal", "substeps": 2}, None),
        (1e-2, {"mode": "internal", "substeps": 2}, 8),
        (1e-2, {"mode": "internal", "integrator": "implicit"}, None),
    ],
)
def test_a_step_too_large_for_rk4_is_reported_with_one_that_holds(step, options, told):
    """McPherson's tire damper: stable up to 1.30 ms, see
    tests/blocks/multibody/kernel/steps/test_implicit.py."""
    d = diagram(mechanisms.mcpherson(), step=step, **options)
    if told is None:
        d.compile()
        return
    match = rf"`plant` \(Plant\): RK4 is not stable.*up to 0.0013 s.*substeps={told} or with"
    with pytest.warns(BiellaWarning, match=match) as seen:
        d.compile(outputs=["plant"])
    assert len(seen) == 1
    if not options:
        d.compile(solver="trapezoidal")


@pytest.mark.parametrize(
    "make",
    [
        mechanisms.slider_crank,
        mechanisms.five_bar,
        mechanisms.cardan,
        mechanisms.four_bar,
        mechanisms.pendulum_on_cart,
    ],
)
def test_other_mechanisms_are_not_reported(make):
    for mode in ("continuous", "internal"):
        diagram(make(), mode=mode).compile()


@pytest.mark.filterwarnings("ignore:the estimated error")  # of coarse steps, and real
def test_the_rotor_is_reported_where_it_does_fly_apart():
    """Whirling and nutation at 4125 rad/s: with 0.6 ms it stays at its 1500 J, with 1 ms not."""
    paths = ["kinetic_energy", "rotor.position"]
    steady = simulate(diagram(mechanisms.rotor(), *paths, step=6e-4), 0.3)
    assert steady["plant.kinetic_energy"].max() < 1501
    with pytest.warns(BiellaWarning, match=r"up to 0.000674 s"):
        wild = simulate(diagram(mechanisms.rotor(), *paths, step=1e-3), 0.3)
    assert wild["plant.kinetic_energy"].max() > 1e4
