"""Reading what users give: numbers, vectors, rotations, keywords; each error names its place."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ....errors import DiagramError, name_list, suggest
from ._rotations import Array, freeze, rotation_about, rotation_from_quaternion

P = ParamSpec("P")
R = TypeVar("R")

TOLERANCE = 1e-6
"""How far a given rotation may be from orthonormal: data printed with few digits pass."""


def suggest_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Make `function` answer an unknown keyword with a `DiagramError` that lists the known ones."""
    known = [name for name in inspect.signature(function).parameters if name != "self"]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known:
                owner, dot, method = function.__qualname__.rpartition(".")
                if dot:  # the user's class, not the one that the method was written in
                    owner = type(args[0]).__name__
                title = (owner + dot + method).removesuffix(".__init__")
                raise DiagramError(
                    f"{title} has no keyword `{name}`.{suggest(name, known)} "
                    f"Keywords: {name_list(known, limit=99)}."
                )
        return function(*args, **kwargs)

    return call


def read_numbers(what: str, value: Any) -> Array:
    """Return `value` as an array of finite numbers."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise DiagramError(f"{what} requires numbers, got {value!r}.") from None
    if not np.isfinite(array).all():
        raise DiagramError(f"{what} must be finite, got {value!r}.")
    return array


def read_number(what: str, value: Any) -> float:
    """Return `value` as one finite number."""
    array = read_numbers(what, value)
    if array.ndim:
        raise DiagramError(f"{what} is one number, got {value!r}.")
    return float(array)


def read_not_negative(owner: str, what: str, value: Any) -> float:
    """Return a number of the part `owner` that is not below 0."""
    number = read_number(f"`{what}` of `{owner}`", value)
    if number < 0:
        raise DiagramError(f"`{what}` of `{owner}` must not be negative, got {number:g}.")
    return number


def read_positive(owner: str, what: str, value: Any) -> float:
    """Return a number of the part `owner` that is above 0."""
    number = read_not_negative(owner, what, value)
    if number == 0:
        raise DiagramError(f"`{what}` of `{owner}` must be positive.")
    return number


def read_vector(what: str, value: Any, planar: bool) -> Array:
    """Return a vector of three numbers; in a plane two are given, and z is 0."""
    array = read_numbers(what, value)
    if planar and array.shape == (3,):
        raise DiagramError(
            f"{what} has three numbers, {array.tolist()}, but the system is planar: give (x, y)."
        )
    if not planar and array.shape == (2,):
        raise DiagramError(
            f"{what} has two numbers, {array.tolist()}, but the system is spatial: give (x, y, z), "
            f"or make it with System(…, planar=True)."
        )
    if array.shape != ((2,) if planar else (3,)):
        wanted = "(x, y)" if planar else "(x, y, z)"
        raise DiagramError(f"{what} is a vector {wanted}, got {value!r}.")
    return freeze([*array, 0.0] if planar else array)


def read_direction(what: str, value: Any, planar: bool) -> Array:
    """Return a unit vector along the one that was given."""
    vector = read_vector(what, value, planar)
    length = float(np.linalg.norm(vector))
    if length == 0.0:
        raise DiagramError(f"{what} has no direction: all its components are 0.")
    return freeze(vector / length)


def read_rotation(what: str, value: Any, planar: bool) -> Array:
    """Return a rotation matrix.

    Parameters
    ----------
    what
        How an error calls it.
    value
        None for none; a matrix or Euler parameters; in a plane the angle in rad.
    planar
        Whether the system is planar.
    """
    if value is None:
        return freeze(np.eye(3))
    array = read_numbers(what, value)
    if planar:
        if array.ndim:
            raise DiagramError(f"{what} in a planar system is an angle in rad, got {value!r}.")
        return rotation_about(np.array([0.0, 0.0, 1.0]), float(array))
    if array.shape == (4,):
        length = float(np.linalg.norm(array))
        if abs(length - 1.0) > TOLERANCE:
            raise DiagramError(
                f"{what} has Euler parameters {array.tolist()} of length {length:g}; they must "
                f"have length 1. Divide them by it."
            )
        return rotation_from_quaternion(array / length)
    if array.shape != (3, 3):
        raise DiagramError(
            f"{what} is a 3×3 matrix or Euler parameters (e0, e1, e2, e3), got shape {array.shape}."
        )
    error = float(np.abs(array.T @ array - np.eye(3)).max())
    if error > TOLERANCE:
        raise DiagramError(
            f"{what} is not orthonormal: RᵀR differs from the identity by {error:.3g}. Its columns "
            f"are the unit vectors x, y, z of the frame, at right angles to each other."
        )
    if np.linalg.det(array) < 0:
        raise DiagramError(
            f"{what} is a reflection (determinant -1): its axes are left-handed. Turn one around."
        )
    left, _, right = np.linalg.svd(array)
    return freeze(left @ right)
