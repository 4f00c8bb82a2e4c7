"""Numbers that a user gives for a parameter or an input."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import BiellaError


def read_value(
    path: str, value: Any, shape: tuple[int, ...], before: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return `value` as the numbers of a parameter or an input, or raise an error that names it.

    They must be finite if those `before` are: some parameters, such as limits, may be infinite.
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise BiellaError(f"`{path}` wants numbers, got {value!r}.") from None
    if array.size != before.size:
        wanted = f"{before.size} numbers of shape {shape}" if shape else "one number"
        comma = " Decimals have a point, not a comma." if isinstance(value, tuple) else ""
        raise BiellaError(f"`{path}` wants {wanted}, got {array.size}: {value!r}.{comma}")
    if not np.isfinite(array).all() and np.isfinite(before).all():
        raise BiellaError(f"`{path}` must be finite, got {value!r}.")
    return array.ravel()
