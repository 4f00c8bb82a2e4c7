"""Noncircular bushes: their additional gap beyond the clearance, at the edges of cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import DiagramError

Array = npt.NDArray[np.float64]
BushShape = Callable[[Array, Array], Any] | npt.ArrayLike
"""A function of θ in rad and z in m, or an array: around, or around × along."""


def lobes(count: int, depth: float, angle: float = 0.0) -> Callable[[Array, Array], Array]:
    """Return the shape of a bush of equal lobes, two for an elliptic ("lemon") bore.

    Each lobe is an arc about a center moved by `depth` toward it, so that a journal in the middle
    has the bearing's clearance at the lobes' middles, and depth (1 - cos(π / count)) more between
    them. With a preload m, depth = m c_p where the machined clearance is c_p = clearance / (1 - m).

    Parameters
    ----------
    count
        How many, at least 2.
    depth
        In m, not negative.
    angle
        Angle of the center of one lobe, in rad.
    """
    if not (isinstance(count, int) and count >= 2 and 0 <= depth < math.inf):
        raise DiagramError(
            f"a bush has two lobes or more, of a depth in m that is not negative; got {count!r} of "
            f"{depth!r} m."
        )

    def shape(theta: Array, z: Array) -> Array:
        turn = 2 * math.pi / count
        away = np.remainder(theta - angle + turn / 2, turn) - turn / 2
        return depth * (1 - np.cos(away)) + 0.0 * z

    return shape


def sample_bush(bush: BushShape, cells: tuple[int, int], length: float, least: float) -> Array:
    """Return a shape between columns, then between cells along the axis, as the kernel reads it.

    Parameters
    ----------
    bush
        The shape.
    cells, length
        Numbers of cells and length of the film, the latter in m.
    least
        Lower bound of the gap in m, below which no journal fits.
    """
    around, along = cells
    step, part = 2 * math.pi / around, length / along
    columns, rows = np.arange(float(around)), np.arange(float(along))
    edges = _evaluate(bush, (columns + 1) * step, (rows + 0.5) * part, length)
    ends = _evaluate(bush, (columns + 0.5) * step, np.arange(along + 1.0) * part, length)
    values = np.concatenate([edges.ravel(), ends.ravel()])
    if not (np.isfinite(values).all() and values.min() > least):
        raise DiagramError(
            f"`bush` of FiniteBearing must be finite and above {least:.3g} m everywhere, which is "
            f"where it would meet a journal in its middle; its least is {values.min():.3g} m."
        )
    return values


def _evaluate(bush: BushShape, theta: Array, z: Array, length: float) -> Array:
    if callable(bush):
        try:
            found = np.asarray(bush(theta[:, None], z[None, :]), dtype=float)
            return np.broadcast_to(found, (theta.size, z.size))
        except (TypeError, ValueError) as error:
            raise DiagramError(
                f"`bush` of FiniteBearing is called with θ in rad, one a row, and z in m, one a "
                f"column, and gives meters for each; it gave: {error}."
            ) from error
    try:
        table = np.asarray(bush, dtype=float)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[0] < 3 or table.shape[1] < 1:
        raise DiagramError(
            "`bush` of FiniteBearing is a function of θ and z, or an array in m: values at equal "
            "angles from 0 on, at least 3; or such rows with values from end 1 to end 2."
        )
    # Linear in both directions, and round about.
    place = theta / (2 * math.pi) * table.shape[0]
    low = np.floor(place).astype(int)
    rows = [table[(low + k) % table.shape[0]] for k in (0, 1)]
    lines = rows[0] + (rows[1] - rows[0]) * (place - low)[:, None]
    stations = np.linspace(0.0, length, table.shape[1])
    return np.stack([np.interp(z, stations, line) for line in lines])
