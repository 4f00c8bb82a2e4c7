"""Constraints of each set of coordinates: differences, reactions, power."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella.blocks.multibody import System
from biella.blocks.multibody.joints._table import PLANAR, SPATIAL
from biella.blocks.multibody.reference_formulations import (
    METHODS,
    assemble,
    consistent_velocity,
    make_model,
)

from ..reference_formulations.formulation_cases import (
    FREE,
    REDUNDANT,
    SETS,
    everything,
    jointed,
    state,
)

CASES = [(kind, name) for kind in SPATIAL for name in SETS] + [(kind, "planar") for kind in PLANAR]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_constraints_against_differences(kind: str, name: str) -> None:
    """Φ_q, Φ_t and γ of every joint and driver, at arbitrary q and v, off the constraints too."""
    model = make_model(jointed(kind, name == "planar"), "euler" if name == "euler" else "natural")
    rng = np.random.default_rng(7)
    for _ in range(3):
        q = model.q0 + 0.2 * rng.normal(size=model.n)
        v, t = rng.normal(size=model.n), 0.4
        e = model.evaluate(t, q, v)
        assert np.array_equal(e.phi, model.phi(q, t))
        assert np.array_equal(e.jacobian, model.jacobian(q, t))
        h = 1e-3
        # Five points: truncation about h⁴ ~ 1e-12 times derivatives of order 5 and 6, which reach
        # 1e3 where an angle turns fast; rounding 1e-16/h² ~ 1e-10.
        columns = [
            sum(w * model.phi(q + k * h * d, t) for k, w in FIRST) / h for d in np.eye(model.n)
        ]
        assert e.jacobian == pytest.approx(np.array(columns).T, abs=1e-8)
        partial = sum(w * model.phi(q, t + k * h) for k, w in FIRST) / h
        assert e.phi_t == pytest.approx(partial, abs=1e-8)
        assert model.phi_t(q, t) == pytest.approx(partial, abs=1e-8)
        along = sum(w * model.phi(q + k * h * v, t + k * h) for k, w in SECOND) / h**2
        assert e.gamma == pytest.approx(-along, abs=2e-7)
        assert model.gamma(t, q, v) == pytest.approx(e.gamma)
        assert e.rate == pytest.approx(e.jacobian @ v + e.phi_t)


FIRST = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))
SECOND = ((-2, -1 / 12), (-1, 16 / 12), (0, -30 / 12), (1, 16 / 12), (2, -1 / 12))


@pytest.mark.parametrize("coordinates", SETS)
@pytest.mark.parametrize("name", [*REDUNDANT, "mcpherson"])
def test_power_of_constraints(name: str, coordinates: Any) -> None:
    """Ideal constraints do no work; what moves by itself does -λ · (-Φ_t)."""
    model = make_model((REDUNDANT | FREE)[name](), coordinates)
    q, v = state(model, 4)
    e = model.evaluate(0.0, q, v)
    _, lam = METHODS["null space svd"](model, 0.0, q, v, {})
    power = -lam @ e.jacobian @ v
    assert power == pytest.approx(lam @ e.phi_t, abs=1e-9 * np.abs(lam).max())
    if name != "cardan":
        assert power == pytest.approx(0.0, abs=1e-9 * np.abs(lam).max())


def test_both_spatial_coordinates_give_the_same_accelerations_and_reactions() -> None:
    """Out of the plane as well: accelerations of centers, and the reactions of every joint."""
    s = everything(False)
    models = [kind(s) for kind in SETS.values()]
    found = []
    for model in models:
        q = assemble(model)
        v, _ = consistent_velocity(model, 0.0, q)
        e = model.evaluate(0.1, q, v)
        q_v = model.blocks(v)
        q_v[3, :3] += (0.1, 0.2, 0.3)
        spin = np.array([0.5, -0.3, 0.8])
        jacobian = model.spins(q)[3]
        # The motion of least coordinates with that spin; the rows of the body keep it rigid.
        base, _ = model.constraints(0.1, q)
        rows = model.evaluate(0.1, q, v).jacobian[: model.base_rows].reshape(-1, 4, model.width)
        own = np.vstack([jacobian, rows[:, 3], np.eye(3, model.width)])
        right = np.concatenate([spin, np.zeros(len(rows)), q_v[3, :3]])
        q_v[3] = np.linalg.lstsq(own, right, rcond=None)[0]
        v = q_v.ravel()
        qdd, lam = METHODS["null space svd"](model, 0.1, q, v, {})
        assert np.abs(base).max() < 1e-12
        assert e.phi.shape == lam.shape
        found.append((model.blocks(qdd)[:, :3], model.reactions(0.1, q, lam)))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-9, abs=1e-9)
    assert np.abs(found[0][0][:, 2]).max() > 0.1
    for name in ("slide", "elbow", "wrist"):
        one, two = found[0][1][name], found[1][1][name]
        for part in ("force_i", "torque_i", "force_j", "torque_j"):
            assert getattr(one, part) == pytest.approx(getattr(two, part), rel=1e-8, abs=1e-8)
        assert one.force_i == pytest.approx(-one.force_j)


def test_reactions_of_a_hanging_bar() -> None:
    """A level bar hinged at one end, as it is let go: the pin carries m g / 4."""
    s = System("bar", (0, 0, -10.0))
    bar = s.body("bar", mass=2.0, inertia=(0.0, 2 / 3, 2 / 3), position=(1, 0, 0))
    s.revolute("pin", s.ground, bar, at=(0, 0, 0), axis=(0, 1, 0))
    for kind in SETS.values():
        model = kind(s)
        q = assemble(model)
        _, lam = METHODS["null space svd"](model, 0.0, q, np.zeros(model.n), {})
        reaction = model.reactions(0.0, q, lam)["pin"]
        # Rod of length 2 and mass 2: α = m g a / (m a² + m a²/3), force m g - m a α = m g / 4.
        assert reaction.force_j == pytest.approx([0, 0, 5.0], abs=1e-9)
        assert reaction.force_i == pytest.approx([0, 0, -5.0], abs=1e-9)
        assert reaction.torque_j == pytest.approx([0, 0, 0], abs=1e-9)
