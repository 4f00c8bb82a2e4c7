"""Runs: order, energy balance, momentum, wrong requests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella.blocks.multibody import Sine, System, mechanisms
from biella.blocks.multibody.reference_formulations import (
    compare,
    make_model,
    run,
)

from .formulation_cases import SETS


def drift(system: System, step: float, method: str, **options: Any) -> float:
    done = run(system, method, step=step, until=0.4, integrator="rk4", **options)
    assert done.stable, done.reason
    return done.drift


@pytest.mark.parametrize("coordinates", SETS)
def test_energy_of_rk4_is_of_fourth_order(coordinates: Any) -> None:
    """The drift of the five-bar nears a fall by 2⁴ as the step is halved: 12.6, 13.9, …"""
    errors = [
        drift(
            mechanisms.five_bar(),
            step,
            "augmented lagrangian",
            projection="both",
            coordinates=coordinates,
        )
        for step in (0.02, 0.01)
    ]
    assert errors[0] / errors[1] > 13
    assert errors[1] < 1e-2


@pytest.mark.parametrize(
    ("make", "step", "scale"),
    [(mechanisms.cardan, 5e-3, 4e-3), (lambda: mechanisms.crank_pin("ideal"), 5e-5, 85.0)],
    ids=["redundant rows", "no redundant rows"],
)
def test_energy_balance_has_the_work_of_drivers(make: Any, step: float, scale: float) -> None:
    """Drivers do work: 49 J go in and out of the slider-crank, and the balance stays.

    The error is that of RK4 and of the integral of the power, both of order 4; without the work of
    the driver it would be of the size of the kinetic energy, whatever the step.
    """
    errors = []
    for h in (2 * step, step):
        options: Any = {"integrator": "rk4", "projection": "both"}
        done = run(make(), "augmented lagrangian", step=h, until=200 * step, **options)
        assert done.stable
        errors.append(done.drift)
    assert errors[0] / errors[1] > 10
    assert errors[1] < 1e-5 * scale


def test_energy_balance_has_the_work_of_a_moving_marker() -> None:
    """A pendulum whose pivot is shaken: all its energy comes through the joint."""
    s = System("shaken", (0, -9.81), planar=True)
    bob = s.body("bob", mass=1.0, inertia=0.1, position=(0.2, -1.0))
    s.revolute(
        "pin", s.ground.marker("pivot", motion={"x": Sine(0.3, 7.0)}), bob.marker("p", (0, 1))
    )
    done = run(s, "kkt", step=2e-3, until=1.0, integrator="rk4", projection="both")
    kinetic = [0.5 * v @ make_model(s).mass(q) @ v for q, v in zip(done.q, done.v, strict=True)]
    assert np.ptp(kinetic) > 0.5
    assert done.drift < 1e-6


def test_a_wrong_motion_is_shown_by_its_energy_error() -> None:
    """With projected velocities semi-implicit steps run away, though all constraints hold."""
    s = mechanisms.slider_crank("spherical", drive="as listed")
    options: Any = {"step": 5e-3, "until": 2.0, "projection": "both"}
    wrong, right = (
        run(s, "augmented lagrangian", integrator=name, **options)
        for name in ("semi-implicit", "rk4")
    )
    assert wrong.error < 1e-9
    assert wrong.drift > 1e3 * right.drift
    found = compare("pendulum-on-cart", steps=(1e-2,), until=0.1)
    shown = " ".join(str(found).split())
    assert "energy error J" in shown
    assert "rightly" not in shown


def test_energy_and_momentum_of_a_tumbling_body() -> None:
    s = System("tumbling", (0, 0, 0))
    inertia = np.diag([1.0, 2.0, 2.5])
    s.body("b", mass=1.0, inertia=inertia, angular_velocity=(0.1, 5.0, 0.2), free=True)
    for kind in SETS.values():
        model = kind(s)
        done = run(model, "kkt", step=4e-3, until=0.4, integrator="rk4", projection="both")
        assert done.drift < 1e-6 * done.energy[0]
        momenta = []
        for q, v in ((done.q[0], done.v[0]), (done.q[-1], done.v[-1])):
            r = model.rotations(q)[0]
            momenta.append(r @ inertia @ r.T @ model.spins(q)[0] @ v)
        assert momenta[1] == pytest.approx(momenta[0], abs=1e-6)


def test_bad_requests() -> None:
    s = mechanisms.pendulum_on_cart()
    with pytest.raises(Exception, match="method"):
        run(s, "magic", step=1e-3, until=1.0)
    with pytest.raises(Exception, match="step > 0"):
        run(s, "kkt", step=0.0, until=1.0)
    with pytest.raises(Exception, match="mechanism"):
        compare("clock")
    with pytest.raises(Exception, match="coordinates"):
        make_model(s, "polar")  # type: ignore[arg-type]
