"""Bushes that are not round: moved round ones, and an elliptic one against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls

from biella.blocks.bearings import Contact, FiniteBearing, lobes
from biella.blocks.bearings._analysis import open_film
from biella.errors import BlockError, DiagramError

from .cells import MU, C, R, assemble

pytestmark = pytest.mark.engine

L, OMEGA = 0.03, 300.0
AWAY = np.array([0.15, -0.1]) * C


def moved(theta, z):
    """A round bush whose center is at -AWAY."""
    return -AWAY[0] * np.cos(theta) - AWAY[1] * np.sin(theta) + 0 * z


def tipped(theta, z):
    """A round bush whose axis leaves the middle of end 1 and is at -AWAY at end 2."""
    return moved(theta, z) * z / L


@pytest.mark.parametrize("cavitation", ["none", "gumbel", "reynolds", "jfo_steady"])
@pytest.mark.parametrize("shape", [moved, tipped])
def test_a_round_bush_elsewhere_is_a_journal_elsewhere(ask, shape, cavitation):
    """All that a film does, to rounding; friction's sum over the cells is of second order."""
    options: dict[str, Any] = {
        "cells": (48, 8),
        "tilt": True,
        "cavitation": cavitation,
        "grooves": [(2.0, 0.3)],
    }
    place = np.array([0.4, 0.2, 0.5, -0.1]) * C
    gone = np.concatenate([AWAY * (shape is moved), AWAY])
    velocity = np.array([20.0, -10.0, 5.0, 30.0]) * C
    plain = ask(FiniteBearing(R, L, C, MU, **options), place + gone, velocity, OMEGA)
    found = ask(FiniteBearing(R, L, C, MU, bush=shape, **options), place, velocity, OMEGA)
    for name in ("force", "moment", "side_flow", "supply_flow", "pressure", "film"):
        size = np.abs(plain[name]).max()
        # The thinnest place is looked for in the middles of columns and between them.
        tolerance = 2e-3 if name == "film" else 1e-11
        np.testing.assert_allclose(found[name], plain[name], atol=tolerance * size)
    np.testing.assert_allclose(found["torque"], plain["torque"], rtol=1e-3)


@pytest.mark.parametrize("eccentricity", [0.985, 1.02])
def test_a_bush_is_as_near_between_columns_as_in_their_middles(ask, eccentricity):
    """Of few cells: a round one by a map is the round one, also where it is nearest."""
    place = [eccentricity * C, 0.0]  # between the last column and the first
    options: dict[str, Any] = {"cells": (16, 4), "contact": Contact(stiffness=1e8, friction=0.0)}
    plain = ask(FiniteBearing(R, L, C, MU, **options), place, speed=OMEGA)
    found = ask(FiniteBearing(R, L, C, MU, bush=np.zeros(4), **options), place, speed=OMEGA)
    for name in ("force", "film", "pressure", "thin_film"):
        np.testing.assert_allclose(found[name], plain[name], rtol=1e-9)


def test_a_bush_that_lost_its_clearance_says_so():
    with open_film(FiniteBearing(R, L, C, MU, bush=lambda theta, z: -0.5 * C + 0 * theta)) as film:
        film.instance.set("bearing.clearance", 0.4 * C)
        with pytest.raises(BlockError, match=r"its bush.* leaves a journal.*more clearance"):
            film.instance.evaluate()


def test_an_array_is_what_it_samples(ask):
    """Linear between its values: of second order in their distance."""
    shape = lobes(3, 0.5 * C, 0.3)
    place = [0.3 * C, 0.2 * C]
    wanted = ask(FiniteBearing(R, L, C, MU, bush=shape), place, speed=OMEGA)["force"]
    off = []
    for count in (90, 180, 720):
        theta = np.arange(count) * 2 * np.pi / count
        table = shape(theta, np.zeros(count))
        rows = np.stack([table, table], axis=1)
        for given in (table, rows):
            found = ask(FiniteBearing(R, L, C, MU, bush=given), place, speed=OMEGA)["force"]
            off.append(np.abs(found - wanted).max() / np.hypot(*wanted))
    assert off[0] == pytest.approx(off[1], rel=1e-6)
    assert off[0] < 2e-3
    assert off[4] < off[0] / 10


def test_a_table_along_is_linear_in_z(ask):
    """A taper given by its two ends, against the function."""
    taper = np.tile([0.2 * C, 0.6 * C], (8, 1))
    options: dict[str, Any] = {"tilt": True, "cells": (32, 8)}
    by_table, by_function = (
        ask(FiniteBearing(R, L, C, MU, bush=bush, **options), [0.5 * C, 0.0], speed=OMEGA)
        for bush in (taper, lambda theta, z: C * (0.2 + 0.4 * z / L) + 0 * theta)
    )
    np.testing.assert_allclose(by_table["force"], by_function["force"], rtol=1e-12)
    np.testing.assert_allclose(by_table["moment"], by_function["moment"], rtol=1e-12)


def solve(cells, bush, position, velocity, omega):
    """Force of a film by non-negative least squares."""
    free = np.full(np.prod(cells), np.nan)
    position, velocity = np.tile(position, 2), np.tile(velocity, 2)
    A, f, theta, _ = assemble(cells, L, position, velocity, omega, free, bush)
    factor = np.linalg.cholesky(A)
    q = nnls(factor.T, np.linalg.solve(factor, f), maxiter=20 * f.size)[0]
    p = 6 * MU * (R / C) ** 2 * q.reshape(cells).sum(axis=1) * 2 * np.pi * R * L / np.prod(cells)
    return -np.array([p @ np.cos(theta), p @ np.sin(theta)])


def test_elliptic_bearing_against_numpy():
    """Where it carries a load, K and C: central differences of another solver's forces."""
    cells, load = (40, 6), (0.0, -4000.0)
    shape = lobes(2, 1.0 * C, np.pi / 2)  # a preload of one half, thin above and below
    bearing = FiniteBearing(R, L, C, MU, cells=cells, bush=shape)
    found = bearing.coefficients(load, OMEGA)
    at = found.equilibrium.position
    np.testing.assert_allclose(
        solve(cells, shape, at, np.zeros(2), OMEGA), [0.0, 4000.0], atol=1e-3 * 4000
    )
    h = 1e-4 * found.equilibrium.film
    for k in range(2):
        move = np.eye(2)[k]
        ahead, behind = (
            solve(cells, shape, at + s * h * move, np.zeros(2), OMEGA) for s in (1, -1)
        )
        stiffness = (behind - ahead) / (2 * h)
        ahead, behind = (solve(cells, shape, at, s * h * OMEGA * move, OMEGA) for s in (1, -1))
        damping = (behind - ahead) / (2 * h * OMEGA)
        size = np.abs(found.stiffness).max(), np.abs(found.damping).max()
        np.testing.assert_allclose(found.stiffness[:, k], stiffness, atol=1e-4 * size[0])
        np.testing.assert_allclose(found.damping[:, k], damping, atol=1e-4 * size[1])
    # A lemon bore is stiffer across its thin middle than a round one, and steadier.
    plain = FiniteBearing(R, L, C, MU, cells=cells).coefficients(load, OMEGA)
    assert found.critical_mass() > plain.critical_mass()


def test_contact_is_where_the_bush_is(ask):
    """A journal may go further where the bush leaves more, and touches where it does not."""
    bearing = FiniteBearing(
        R, L, C, MU, bush=lobes(2, C, np.pi / 2), contact=Contact(friction=0.0), friction="none"
    )
    free = ask(bearing, [1.2 * C, 0.0])
    assert free["film"][0] > 0.3 * C
    assert not free["thin_film"][0]
    np.testing.assert_allclose(free["force"], 0, atol=1e-9)
    touching = ask(bearing, [0.0, 1.2 * C])
    assert touching["thin_film"][0]
    assert touching["film"][0] == pytest.approx(-0.2 * C, rel=0.02)
    assert touching["force"][1] < 0


@pytest.mark.parametrize(
    ("bush", "message"),
    [
        (np.full(8, -C), r"must be finite and above"),
        (np.full(8, np.nan), r"must be finite and above"),
        ([0.0, 0.0], r"is a function of θ and z, or an array"),
        ("round", r"is a function of θ and z, or an array"),
        (lambda theta, z: np.zeros(7), r"gives meters for each"),
    ],
)
def test_bad_bushes_are_refused(bush, message):
    with pytest.raises(DiagramError, match=message):
        FiniteBearing(R, L, C, MU, bush=bush)


def test_bad_lobes_are_refused():
    with pytest.raises(DiagramError, match=r"two lobes or more"):
        lobes(1, C)
