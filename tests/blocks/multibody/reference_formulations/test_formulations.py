"""The laboratory of formulations: formulas, methods against each other, and published figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella.blocks.multibody.reference_formulations import (
    METHODS,
    FormulationError,
    make_model,
    report_redundancy,
    run,
)

from .formulation_cases import FREE, REDUNDANT, SETS, everything, state

EXACT = [name for name in METHODS if name != "penalty"]


@pytest.mark.parametrize("coordinates", SETS)
@pytest.mark.parametrize("name", FREE)
def test_methods_agree(name: str, coordinates: Any) -> None:
    model = make_model(FREE[name](), coordinates)
    for seed in range(3):
        q, v = state(model, seed)
        expected, lam = METHODS["kkt"](model, 0.0, q, v, {})
        e = model.evaluate(0.0, q, v)
        assert e.mass @ expected + e.jacobian.T @ lam == pytest.approx(e.force, abs=1e-7)
        assert e.jacobian @ expected == pytest.approx(e.gamma, abs=1e-9 * np.abs(e.gamma).max())
        for method in EXACT:
            qdd, forces = METHODS[method](model, 0.0, q, v, {})
            assert qdd == pytest.approx(expected, abs=1e-9 * np.abs(expected).max()), method
            assert forces == pytest.approx(lam, abs=1e-9 * np.abs(lam).max()), method


@pytest.mark.parametrize("coordinates", SETS)
@pytest.mark.parametrize("name", REDUNDANT)
def test_methods_with_redundant_constraints(name: str, coordinates: Any) -> None:
    """Those that survive agree on q̈, and on λ where it is unique; index 1 and Baumgarte refuse."""
    model = make_model(REDUNDANT[name](), coordinates)
    q, v = state(model, 1)
    report = report_redundancy(model, 0.0, q, v)
    unique = np.array(report.unique_rows)
    expected, lam = METHODS["null space svd"](model, 0.0, q, v, {})
    assert np.abs(expected).max() > 1e-3
    e = model.evaluate(0.0, q, v)
    least = np.linalg.lstsq(e.jacobian.T, e.force - e.mass @ expected, rcond=1e-8)[0]
    for method in EXACT:
        if method in ("kkt", "baumgarte"):
            with pytest.raises(FormulationError, match="redundant"):
                METHODS[method](model, 0.0, q, v, {})
            continue
        qdd, forces = METHODS[method](model, 0.0, q, v, {})
        scale = 1e-9 * max(1.0, float(np.abs(lam).max()))
        assert qdd == pytest.approx(expected, abs=1e-9 * np.abs(expected).max()), method
        assert forces[unique] == pytest.approx(lam[unique], abs=scale), method
        assert e.jacobian.T @ forces == pytest.approx(e.jacobian.T @ lam, abs=10 * scale), method
        if method in ("augmented lagrangian", "partitioning qr", "null space svd", "qtz"):
            # Positions close to 1e-12, so that redundant rows contradict each other by about as
            # much, and the augmented Lagrangian makes α = 1e6 times that of it.
            slack = 1e-4 if method == "augmented lagrangian" else 10 * scale
            assert forces == pytest.approx(least, abs=slack), method
    dropped = METHODS["partitioning lu"](model, 0.0, q, v, {})[1]
    assert (dropped == 0.0).sum() >= report.redundant


def test_all_coordinates_give_one_motion() -> None:
    """The same markers after the same time, planar, natural and Euler.

    There is no force along z, and the bushing has no stiffness about z: in a plane it acts by the
    angle, in space by its sine.
    """
    places = []
    for planar, coordinates in ((True, "natural"), (False, "natural"), (False, "euler")):
        s = everything(planar, turning=0.0)
        if not planar:
            s.gravity = np.array([0.3, -9.81, 0.0])
        done = run(
            s,
            "augmented lagrangian",
            step=2e-3,
            until=0.12,
            coordinates=coordinates,  # type: ignore[arg-type]
            integrator="rk4",
            projection="both",
            markers=["tip.end", "loose.end", "cart.slide"],
        )
        assert done.stable
        places.append(np.array([done.markers[k][-1] for k in done.markers]))
    # RK4 in three sets of coordinates: h⁴ of the stiffest motion, about 20 rad/s.
    assert places[0] == pytest.approx(places[1], abs=1e-7)
    assert places[1] == pytest.approx(places[2], abs=1e-7)
    start = run(everything(True), "kkt", step=1e-3, until=1e-3, markers=["tip.end"])
    assert np.linalg.norm(places[0][0] - start.markers["tip.end"][0]) > 0.02
