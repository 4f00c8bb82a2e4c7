"""Dual numbers: identities, derivatives, matrices, and what is refused."""

from typing import Any

import numpy as np
import pytest

from biella import DiagramError
from biella.blocks.multibody.dual import Dual, solve, stack
from biella.errors import FormulationError

RNG = np.random.default_rng(4)
FUNCTIONS: dict[Any, Any] = {
    np.sin: np.cos, np.cos: lambda x: -np.sin(x), np.tan: lambda x: 1 / np.cos(x) ** 2,
    np.exp: np.exp, np.log: lambda x: 1 / x, np.sqrt: lambda x: 0.5 / np.sqrt(x),
    np.arctan: lambda x: 1 / (1 + x * x), np.arcsin: lambda x: 1 / np.sqrt(1 - x * x),
    np.arccos: lambda x: -1 / np.sqrt(1 - x * x), np.absolute: np.sign,
}  # fmt: skip


def close(a, b, tolerance=1e-14):
    b = b if isinstance(b, Dual) else Dual(b)
    np.testing.assert_allclose(a.real, b.real, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(a.dual, b.dual, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_function_has_its_derivative_as_dual_part(function):
    x = RNG.uniform(0.1, 0.9, 5)
    y = function(Dual(x, 3.0))
    np.testing.assert_allclose(y.real, function(x), rtol=1e-15)
    np.testing.assert_allclose(y.dual, 3.0 * FUNCTIONS[function](x), rtol=1e-14)


def test_arctan2_has_its_derivative_in_all_quadrants():
    at = RNG.uniform(-np.pi, np.pi, 20)
    turned = Dual(at, 0.7)
    close(np.arctan2(2 * np.sin(turned), 2 * np.cos(turned)), turned)


def test_products_and_quotients():
    a, b = Dual(3.0, 2.0), Dual(-4.0, 5.0)
    close(a * b, Dual(-12.0, 7.0))
    close(a / b * b, a)
    close(2 / b, Dual(-0.5, -0.625))
    close(a**2, a * a)  # [V 5.10] corrected: 2 ε a a₀
    close(b**3, b * b * b)
    close(a**-1.5, 1 / (a * np.sqrt(a)))
    close(1 - a + 2, Dual(0.0, -2.0))
    assert a.pitch == pytest.approx(2 / 3)  # [V 5.4] corrected
    close(np.array([1.0, 2.0]) * a, Dual([3.0, 6.0], [2.0, 4.0]))
    close(np.float64(2.0) * a, Dual(6.0, 4.0))


def test_trigonometric_identities_hold():
    x, y = (Dual(RNG.normal(size=9), RNG.normal(size=9)) for _ in range(2))
    close(np.sin(x) ** 2 + np.cos(x) ** 2, 1.0)
    close(np.sin(x + y), np.sin(x) * np.cos(y) + np.cos(x) * np.sin(y))
    close(np.tan(x), np.sin(x) / np.cos(x), 1e-10)


def test_matrices_multiply_and_have_inverses():
    a, b = (Dual(RNG.normal(size=(4, 3, 3)), RNG.normal(size=(4, 3, 3))) for _ in range(2))
    close(a @ a.inverse(), np.broadcast_to(np.eye(3), (4, 3, 3)), 1e-10)
    close((a @ b).T, b.T @ a.T, 1e-13)
    close(a @ solve(a, b), b, 1e-10)
    close(np.eye(3) @ a, a)
    assert (a == a).all() and not (a == b).any()
    close(stack([a[..., 0, 0], 1.0]).sum(-1), a[..., 0, 0] + 1.0)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda x: 1 / x, "real part is 0"),
        (lambda x: np.sqrt(x), "positive real part"),
        (lambda x: np.log(-x), "positive real part"),
        (lambda x: abs(x), "other than 0"),
        (lambda x: np.arccos(x + 1), "within ±1"),
        (lambda x: np.arctan2(x, x), "not both 0"),
        (lambda x: x**0.5, "positive real part"),
        (lambda x: x.pitch, "other than 0"),
        (lambda x: Dual(np.zeros((2, 2)), 1.0).inverse(), "singular"),
    ],
)
def test_operations_without_a_result_are_refused(operation, message):
    with pytest.raises(FormulationError, match=message):
        operation(Dual(0.0, 1.0))


def test_invalid_arguments_are_refused():
    for arguments in (("one", 2.0), (1j,), ([1.0, 2.0], [1.0, 2.0, 3.0])):
        with pytest.raises(DiagramError, match="two real numbers"):
            Dual(*arguments)
    with pytest.raises(DiagramError, match="cannot be added"):
        Dual([1.0, 2.0]) - [1.0, 2.0, 3.0]
    with pytest.raises(DiagramError, match="of a product"):
        Dual([1.0, 2.0]) * [1.0, 2.0, 3.0]
    with pytest.raises(DiagramError, match="square matrix"):
        Dual(1.0).inverse()
    with pytest.raises(DiagramError, match="exponent"):
        Dual(2.0) ** Dual(2.0, 1.0)  # type: ignore[operator]
    with pytest.raises(TypeError):
        _ = Dual(1.0) < Dual(2.0)  # type: ignore[operator]
    with pytest.raises(TypeError):
        np.floor(Dual(1.0))
