"""Linear programs of the size that a drawing has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Row = Sequence[tuple[int, float]]
"""What is not zero in a row of a table: the number of an unknown, and its factor."""

_LARGEST_TABLE = 40_000
"""Numbers in a table that is solved here; larger ones are worth the import of scipy.optimize, which
takes longer than all the rest of a small drawing."""
_MOST_PIVOTS = 1000
_ZERO = 1e-9


def minimize(cost: Array, rows: Sequence[Row], bounds: Sequence[float]) -> Array:
    """Return the v that minimizes cost·v where row·v ≤ bound for each row, and v ≥ 0; cost ≥ 0."""
    if len(rows) * cost.size <= _LARGEST_TABLE:
        table = np.zeros((len(rows), cost.size))
        for line, row in zip(table, rows, strict=True):
            for unknown, factor in row:
                line[unknown] += factor
        found = _dual_simplex(cost, table, np.array(bounds))
        if found is not None:
            return found
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    entries = [(n, unknown, factor) for n, row in enumerate(rows) for unknown, factor in row]
    places, unknowns, factors = zip(*entries, strict=True)
    sparse = coo_array((factors, (places, unknowns)), shape=(len(rows), cost.size))
    answer: Array = linprog(cost, A_ub=sparse.tocsr(), b_ub=bounds, method="highs").x
    return answer


def _dual_simplex(cost: Array, table: Array, bounds: Array) -> Array | None:
    """Return the solution, or None if it is not found soon.

    As no cost is negative, v = 0 is optimal until a bound below zero is looked at. Each pivot
    mends the bound that is broken most, at the least cost.
    """
    height, width = table.shape
    # The last column is how far each bound is from being broken, the last row what a step costs.
    t = np.zeros((height + 1, width + 1))
    t[:-1, :-1], t[:-1, -1], t[-1, :-1] = table, bounds, cost
    outside = np.arange(width)  # what each column stands for: v, then the slack of the rows
    inside = np.arange(width, width + height)
    for _ in range(_MOST_PIVOTS):
        row = int(np.argmin(t[:-1, -1]))
        if t[row, -1] >= -_ZERO:
            v = np.zeros(width + height)
            v[inside] = t[:-1, -1]
            return v[:width]
        open_columns = np.flatnonzero(t[row, :-1] < -_ZERO)
        if not open_columns.size:
            return None
        prices = t[-1, open_columns] / -t[row, open_columns]
        column = int(open_columns[np.argmin(prices)])
        _pivot(t, row, column)
        inside[row], outside[column] = outside[column], inside[row]
    return None


def _pivot(t: Array, row: int, column: int) -> None:
    """Let the unknown of a row and that of a column change places."""
    factor = 1.0 / t[row, column]
    t[row] *= factor
    leaving = t[:, column].copy()
    leaving[row] = 0.0
    t[:, column] = 0.0
    t[row, column] = factor
    touched = np.flatnonzero(leaving)
    t[touched] -= np.outer(leaving[touched], t[row])
