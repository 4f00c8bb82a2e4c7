"""Lines and screws as dual vectors: twists, wrenches, their poles and axes [V 5.33-5.57].

A unit line is e + ε r×e; a twist ω + ε v_C and a wrench F + ε M_C belong to a pole C.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ....errors import DiagramError, FormulationError
from ..system._rotations import Array
from ._numbers import Dual, Dualish, as_dual, bilinear


def _vector(value: Dualish) -> Dual:
    made = as_dual(value)
    if made.shape[-1:] != (3,):
        raise DiagramError(f"a dual vector has three components, got the shape {made.shape}.")
    return made


def dot(a: Dualish, b: Dualish) -> Dual:
    """Return Â·B̂ = a·b + ε (a·b₀ + a₀·b) = ab cos θ̂, along the last axis."""
    return bilinear(lambda x, y: np.sum(x * y, axis=-1), _vector(a), _vector(b))


def cross(a: Dualish, b: Dualish) -> Dual:
    """Return Â×B̂ = a×b + ε (a×b₀ + a₀×b) = ab sin θ̂ Ŝ*, Ŝ* the common normal [V 5.57]."""
    return bilinear(np.cross, _vector(a), _vector(b))


def norm(a: Dualish) -> Dual:
    """Return ‖Â‖ = ‖a‖ + ε a·a₀ / ‖a‖."""
    root: Dual = np.sqrt(dot(a, a))
    return root


def line(point: npt.ArrayLike, direction: npt.ArrayLike) -> Dual:
    """Return the unit line e + ε r×e through a point.

    Raises
    ------
    FormulationError
        If the direction is 0.
    """
    e = np.asarray(direction, dtype=np.float64)
    length = np.linalg.norm(e, axis=-1, keepdims=True)
    if not np.all(length > 0):
        raise FormulationError("a line needs a direction other than 0.")
    return _vector(Dual(e / length, np.cross(np.asarray(point, dtype=np.float64), e / length)))


def change_pole(screw: Dualish, offset: npt.ArrayLike) -> Dual:
    """Return a twist or wrench of pole C for pole P: L̂_P = L̂_C + ε W×CP; `offset` is CP."""
    made = _vector(screw)
    return Dual(made.real, made.dual + np.cross(made.real, np.asarray(offset, dtype=np.float64)))


def power(wrench: Dualish, twist: Dualish) -> Array:
    """Return F·v_C + M_C·ω, the dual part of F̂·V̂; both must have the same pole."""
    return dot(wrench, twist).dual


class Axis(NamedTuple):
    """What a screw ŵÊ consists of.

    Attributes
    ----------
    line
        The unit line Ê.
    amplitude
        ŵ = |W| (1 + ε pitch).
    pitch
        W·V / W·W, in m.
    point
        Point of the axis nearest to the pole, W×V / W·W.
    """

    line: Dual
    amplitude: Dual
    pitch: Array
    point: Array


def axis(screw: Dualish) -> Axis:
    """Return axis, amplitude and pitch of a twist or wrench [V 5.33, 5.35].

    Raises
    ------
    FormulationError
        If its real part is 0: a translation or a couple has no axis.
    """
    made = _vector(screw)
    square = np.sum(made.real**2, axis=-1)
    if not np.all(square > 0):
        raise FormulationError("a translation or a couple (real part 0) has no axis.")
    size = norm(made)
    point = np.cross(made.real, made.dual) / square[..., None]
    return Axis(made / size[..., None], size, size.pitch, point)


def angle_between(first: Dualish, second: Dualish) -> Dual:
    """Return the dual angle θ + ε s of two unit lines.

    θ is in [0, π]; s is the distance along the common normal e₁×e₂ from the first to the second.
    For parallel lines s ≥ 0.
    """
    a, b = _vector(first), _vector(second)
    across, along = cross(a, b), dot(a, b)
    sine = np.linalg.norm(across.real, axis=-1)
    parallel = sine < 1e-12
    angle = np.arctan2(sine, along.real)
    # Of parallel lines, the dual part of Â×B̂ is s s*; of others it has s cos θ along the normal.
    gap = np.linalg.norm(across.dual, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        skew = -along.dual / sine
    return Dual(angle, np.where(parallel, gap, skew))
