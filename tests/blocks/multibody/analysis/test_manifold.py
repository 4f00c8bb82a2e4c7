"""Models with the velocities of bodies as unknowns: q̇ = N u, moves, closures and their rank."""

from __future__ import annotations

import numpy as np
import pytest

from biella.blocks.multibody import System
from biella.blocks.multibody.analysis._manifold import (
    Manifold,
    close,
    least_squares,
    make_manifold,
    split,
)
from biella.blocks.multibody.mechanisms import four_bar, slider_crank


def top() -> System:
    s = System("top")
    body = s.body("body", mass=2.0, inertia=(0.1, 0.2, 0.3), position=(0.1, 0.2, 0.5),
                  rotation=[0.8, 0.6, 0.0, 0.0])  # fmt: skip
    s.spherical("foot", s.ground, body, at=(0.0, 0.0, 0.0))
    return s


MODELS = {
    "planar": lambda: make_manifold(slider_crank(planar=True, drive="none")),
    "spatial": lambda: make_manifold(top()),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_move_is_the_integral_of_the_basis(name: str) -> None:
    """move(q, h u) = q + h N u + O(h²), and stays on the unit sphere of Euler parameters."""
    model = MODELS[name]()
    rng = np.random.default_rng(3)
    u = rng.normal(size=model.size)
    errors = []
    for h in (1e-3, 5e-4):
        errors.append(
            np.abs(model.move(model.q0, h * u) - model.q0 - h * model.basis(model.q0) @ u).max()
        )
    if name == "planar":
        assert max(errors) < 1e-15
    else:
        assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.01)
        moved = model.move(model.q0, u)
        assert np.linalg.norm(moved[3:7]) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("name", MODELS)
def test_speeds_invert_the_basis(name: str) -> None:
    model = MODELS[name]()
    u = np.random.default_rng(5).normal(size=model.size)
    assert model.speeds(model.q0, model.basis(model.q0) @ u) == pytest.approx(u, abs=1e-14)


@pytest.mark.parametrize("name", MODELS)
def test_the_jacobian_is_the_derivative_of_the_closure(name: str) -> None:
    model = MODELS[name]()
    _, jacobian = model.closure(0.0, model.q0)
    h = 1e-6
    for k, direction in enumerate(np.eye(model.size)):
        ahead, _ = model.closure(0.0, model.move(model.q0, h * direction))
        behind, _ = model.closure(0.0, model.move(model.q0, -h * direction))
        assert jacobian[:, k] == pytest.approx((ahead - behind) / (2 * h), abs=1e-9)


def test_the_momentum_of_a_top_is_that_of_its_tensor() -> None:
    """M_u is diag(m, m, m) and R I Rᵀ; gyroscopic terms are -ω × I ω."""
    model = make_manifold(top())
    w = np.array([0.3, -1.2, 0.7])
    e = model.equations(0.0, model.q0, np.concatenate([np.zeros(3), w]), loads=False)
    turn = np.array([[1, 0, 0], [0, 0.28, -0.96], [0, 0.96, 0.28]])
    tensor = turn @ np.diag([0.1, 0.2, 0.3]) @ turn.T
    assert e.mass[:3, :3] == pytest.approx(2.0 * np.eye(3))
    assert e.mass[3:, 3:] == pytest.approx(tensor, abs=1e-14)
    assert e.force[3:] == pytest.approx(-np.cross(w, tensor @ w), abs=1e-12)


def displaced(model: Manifold, size: float) -> np.ndarray:
    return model.move(model.q0, size * np.random.default_rng(7).normal(size=model.size))


def test_close_converges_quadratically_and_tells_what_is_left() -> None:
    model = make_manifold(four_bar(planar=True))
    q = displaced(model, 1e-2)
    _, first = close(model, 0.0, q, iterations=1)
    _, second = close(model, 0.0, q, iterations=2)
    assert second < 20.0 * first**2
    found, error = close(model, 0.0, q)
    assert error <= 1e-12
    assert np.abs(model.closure(0.0, found)[0]).max() == error


def test_split_of_a_matrix_of_known_rank() -> None:
    matrix = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    rank, free, null = split(matrix)
    assert rank == 2
    assert np.abs(free[:, 0]) == pytest.approx([0, 0, 1])
    assert null.shape == (3, 1)
    assert matrix.T @ null == pytest.approx(np.zeros((3, 1)), abs=1e-15)


def test_least_squares_is_the_shortest_of_the_best() -> None:
    matrix = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert least_squares(matrix, np.array([1.0, 3.0])) == pytest.approx([1.0, 1.0])
    assert least_squares(np.zeros((0, 4)), np.zeros(0)).tolist() == [0.0] * 4
