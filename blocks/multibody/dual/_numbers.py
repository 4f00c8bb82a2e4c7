"""Dual numbers, vectors and matrices: a + ε a₀ with ε² = 0, as pairs of arrays.

f(a + ε a₀) = f(a) + ε a₀ f′(a)                                       [V 5.22]
(A + ε A₀)(B + ε B₀) = AB + ε (AB₀ + A₀B)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ....errors import DiagramError, FormulationError
from ..system._rotations import Array

Dualish = Any
"""A `Dual`, or what numpy makes an array of numbers of."""


class Dual:
    """A dual number a + ε a₀, or an array of them: vectors, matrices, and stacks of both.

    Shapes broadcast as in numpy; ``@`` multiplies the last two axes. Functions of numpy apply:
    ``np.sin(x)``, ``np.sqrt(x)``, ``np.arctan2(y, x)``. There is no order of dual numbers: compare
    their parts.

    Parameters
    ----------
    real, dual
        a and a₀; their shapes broadcast.

    Raises
    ------
    DiagramError
        If they are not real numbers, or their shapes do not match.
    FormulationError
        From an operation without a result: division by a number with the real part 0, a root of one
        that is not positive.
    """

    __slots__ = ("dual", "real")
    __hash__ = None  # type: ignore[assignment]
    real: Array
    dual: Array

    def __init__(self, real: npt.ArrayLike, dual: npt.ArrayLike = 0.0) -> None:
        try:
            parts = np.broadcast_arrays(
                *(np.asarray(part, dtype=np.float64) for part in (real, dual))
            )
        except (TypeError, ValueError) as error:
            raise DiagramError(
                f"a dual number is two real numbers, or two arrays of them with one shape: {error}"
            ) from None
        self.real, self.dual = (part.copy() for part in parts)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of both parts."""
        return self.real.shape

    @property
    def T(self) -> Dual:
        """Return the transpose of the last two axes."""
        return Dual(np.swapaxes(self.real, -1, -2), np.swapaxes(self.dual, -1, -2))

    @property
    def pitch(self) -> Array:
        """Return a₀ / a, the parameter of a dual number [V 5.4, corrected]."""
        _require(self.real != 0, "the pitch of a dual number needs a real part other than 0")
        return self.dual / self.real

    def __repr__(self) -> str:
        if self.shape:
            return f"Dual({self.real.tolist()}, {self.dual.tolist()})"
        return f"Dual({float(self.real)!r}, {float(self.dual)!r})"

    def __len__(self) -> int:
        return len(self.real)

    def __getitem__(self, key: Any) -> Dual:
        return Dual(self.real[key], self.dual[key])

    def __eq__(self, other: object) -> Any:
        """Return where both parts are equal."""
        b = as_dual(other)
        return (self.real == b.real) & (self.dual == b.dual)

    def __neg__(self) -> Dual:
        return Dual(-self.real, -self.dual)

    def __pos__(self) -> Dual:
        return self

    def __abs__(self) -> Dual:
        return _absolute(self)

    def __add__(self, other: Dualish) -> Dual:
        return _add(self, as_dual(other))

    def __radd__(self, other: Dualish) -> Dual:
        return _add(as_dual(other), self)

    def __sub__(self, other: Dualish) -> Dual:
        return _add(self, -as_dual(other))

    def __rsub__(self, other: Dualish) -> Dual:
        return _add(as_dual(other), -self)

    def __mul__(self, other: Dualish) -> Dual:
        return bilinear(np.multiply, self, as_dual(other))

    def __rmul__(self, other: Dualish) -> Dual:
        return bilinear(np.multiply, as_dual(other), self)

    def __truediv__(self, other: Dualish) -> Dual:
        return _divide(self, as_dual(other))

    def __rtruediv__(self, other: Dualish) -> Dual:
        return _divide(as_dual(other), self)

    def __matmul__(self, other: Dualish) -> Dual:
        return bilinear(np.matmul, self, as_dual(other))

    def __rmatmul__(self, other: Dualish) -> Dual:
        return bilinear(np.matmul, as_dual(other), self)

    def __pow__(self, exponent: float) -> Dual:
        return _power(self, as_dual(exponent))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options or ufunc not in _UFUNCS:
            return NotImplemented
        return _UFUNCS[ufunc](*(as_dual(value) for value in inputs))

    def sum(self, axis: int) -> Dual:
        """Return the sum along an axis."""
        return Dual(self.real.sum(axis), self.dual.sum(axis))

    def inverse(self) -> Dual:
        """Return the inverse of square matrices, A⁻¹ - ε A⁻¹ A₀ A⁻¹."""
        size = self.shape[-1] if self.shape else 0
        return solve(self, np.eye(size))


def as_dual(value: Dualish) -> Dual:
    """Return a dual number as it is, and any other number with the dual part 0."""
    return value if isinstance(value, Dual) else Dual(value)


def stack(parts: Sequence[Dualish], axis: int = -1) -> Dual:
    """Return dual numbers as one array along a new axis; shapes broadcast."""
    made = [as_dual(part) for part in parts]
    shape = np.broadcast_shapes(*(part.shape for part in made))
    return Dual(
        np.stack([np.broadcast_to(part.real, shape) for part in made], axis),
        np.stack([np.broadcast_to(part.dual, shape) for part in made], axis),
    )


def solve(matrix: Dualish, right: Dualish) -> Dual:
    """Return x̂ with Âx̂ = b̂: A x = b, A x₀ = b₀ - A₀ x; b̂ is a matrix, or a stack of them.

    Raises
    ------
    FormulationError
        If the real part of a matrix is singular.
    """
    a, b = as_dual(matrix), as_dual(right)
    if len(a.shape) < 2 or a.shape[-1] != a.shape[-2] or len(b.shape) < 2:
        raise DiagramError(f"needs a square matrix and a matrix, got {a.shape} and {b.shape}.")
    try:
        x = np.linalg.solve(a.real, b.real)
        return Dual(x, np.linalg.solve(a.real, b.dual - a.dual @ x))
    except np.linalg.LinAlgError:
        raise FormulationError("the real part of a dual matrix is singular.") from None


def bilinear(product: Callable[[Array, Array], Array], a: Dual, b: Dual) -> Dual:
    """Return a product of dual arrays, given that of real ones: ab + ε (ab₀ + a₀b)."""
    try:
        return Dual(product(a.real, b.real), product(a.real, b.dual) + product(a.dual, b.real))
    except ValueError as error:
        raise DiagramError(f"shapes {a.shape} and {b.shape} of a product: {error}") from None


def _require(holds: Any, what: str) -> None:
    if not np.all(holds):
        raise FormulationError(f"{what}.")


def _add(a: Dual, b: Dual) -> Dual:
    try:
        return Dual(a.real + b.real, a.dual + b.dual)
    except ValueError:
        raise DiagramError(f"shapes {a.shape} and {b.shape} cannot be added.") from None


def _divide(a: Dual, b: Dual) -> Dual:
    _require(b.real != 0, "division by a dual number whose real part is 0")
    return bilinear(np.multiply, a, Dual(1 / b.real, -b.dual / b.real**2))


def _power(a: Dual, b: Dual) -> Dual:
    if b.shape or b.dual != 0:
        raise DiagramError("the exponent of a dual number is one real number.")
    n = float(b.real)
    if not (n >= 1 and n.is_integer()):
        _require(a.real > 0, f"the power {n:g} of a dual number needs a positive real part")
    return Dual(a.real**n, n * a.real ** (n - 1) * a.dual)


def _absolute(a: Dual) -> Dual:
    _require(a.real != 0, "the absolute value of a dual number needs a real part other than 0")
    return Dual(np.abs(a.real), np.sign(a.real) * a.dual)


def _sqrt(a: Dual) -> Dual:
    _require(a.real > 0, "the square root of a dual number needs a positive real part")
    root = np.sqrt(a.real)
    return Dual(root, 0.5 * a.dual / root)


def _log(a: Dual) -> Dual:
    _require(a.real > 0, "the logarithm of a dual number needs a positive real part")
    return Dual(np.log(a.real), a.dual / a.real)


def _inverse_cosine(a: Dual) -> Dual:
    _require(np.abs(a.real) < 1, "arcsin and arccos of a dual number need a real part within ±1")
    return Dual(np.arccos(a.real), -a.dual / np.sqrt(1 - a.real**2))


def arctan2(y: Dualish, x: Dualish) -> Dual:
    """Return the angle of (x, y), of dual numbers; np.arctan2 calls it."""
    y, x = as_dual(y), as_dual(x)
    square = x.real**2 + y.real**2
    _require(square > 0, "arctan2 of dual numbers needs real parts that are not both 0")
    return Dual(np.arctan2(y.real, x.real), (x.real * y.dual - y.real * x.dual) / square)


def _simple(
    function: Callable[[Array], Array], derivative: Callable[[Array], Array]
) -> Callable[[Dual], Dual]:
    return lambda a: Dual(function(a.real), derivative(a.real) * a.dual)


_UFUNCS: dict[Any, Callable[..., Dual]] = {
    np.add: _add,
    np.subtract: lambda a, b: _add(a, -b),
    np.multiply: lambda a, b: bilinear(np.multiply, a, b),
    np.matmul: lambda a, b: bilinear(np.matmul, a, b),
    np.divide: _divide,
    np.power: _power,
    np.negative: lambda a: -a,
    np.absolute: _absolute,
    np.sqrt: _sqrt,
    np.log: _log,
    np.exp: _simple(np.exp, np.exp),
    np.sin: _simple(np.sin, np.cos),
    np.cos: _simple(np.cos, lambda a: -np.sin(a)),
    np.tan: _simple(np.tan, lambda a: 1 + np.tan(a) ** 2),
    np.arctan: _simple(np.arctan, lambda a: 1 / (1 + a**2)),
    np.arccos: _inverse_cosine,
    np.arcsin: lambda a: 0.5 * np.pi - _inverse_cosine(a),
    np.arctan2: arctan2,
}
