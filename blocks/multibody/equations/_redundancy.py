"""Which constraints are redundant, and which reactions are unique."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from ..system._rotations import Array
from ._model import AbstractModel


@dataclass(frozen=True, slots=True)
class RedundancyReport:
    """Counts and names at one state.

    Attributes
    ----------
    coordinates, equations, rank
        n, m and r; degrees of freedom are n - r, redundant equations m - r.
    mobility
        The count of degrees of freedom that ignores redundancy.
    gap
        The smallest singular value that counts and the largest that does not, both relative to the
        largest: the farther apart, the surer the rank.
    dependent
        Names of m - r rows that the others imply. Rows of bodies and of drivers come last.
    consistent
        Whether what dependent rows demand of velocities and accelerations agrees with the others.
    undetermined
        Joints and drivers whose reactions are not unique: λ_k is unique iff row k of a basis of the
        kernel of Φ_qᵀ is 0.
    unique_rows
        For each row, whether its λ is unique.
    """

    coordinates: int
    equations: int
    rank: int
    mobility: int
    gap: tuple[float, float]
    dependent: tuple[str, ...]
    consistent: bool
    undetermined: tuple[str, ...]
    unique_rows: tuple[bool, ...]

    @property
    def freedom(self) -> int:
        """Return n - r."""
        return self.coordinates - self.rank

    @property
    def redundant(self) -> int:
        """Return m - r."""
        return self.equations - self.rank

    def __str__(self) -> str:
        lines = [
            f"{self.coordinates} coordinates, {self.equations} equations of rank {self.rank}: "
            f"{self.freedom} degrees of freedom (Kutzbach: {self.mobility}), "
            f"{self.redundant} redundant",
            f"singular values around the rank: {self.gap[0]:.2g} | {self.gap[1]:.2g}",
        ]
        if self.redundant:
            lines.append("implied by the others: " + "; ".join(self.dependent))
            lines.append("reactions are not unique: " + ", ".join(self.undetermined))
        if not self.consistent:
            lines.append("redundant equations contradict each other")
        return "\n".join(lines)


def report_redundancy(
    model: AbstractModel, t: float, q: Array, v: Array, tolerance: float = 1e-8
) -> RedundancyReport:
    """Report on the constraints at a state; assemble first.

    Parameters
    ----------
    model, t, q, v
        The state.
    tolerance
        Singular values below this part of the largest one count as 0.
    """
    e = model.evaluate(t, q, v, loads=False)
    left, sigma, _ = np.linalg.svd(e.jacobian)
    relative = sigma / sigma.max(initial=1e-300)
    rank = int((relative > tolerance).sum())
    null = left[:, rank:]
    unique = np.linalg.norm(null, axis=1) < 1e-7
    wrong = max(np.abs(null.T @ values).max(initial=0.0) for values in (e.gamma, e.phi_t))
    size = max(1.0, float(np.abs(e.gamma).max(initial=0.0)))
    return RedundancyReport(
        model.n,
        model.m,
        rank,
        model.system.mobility,
        (
            float(relative[rank - 1]) if rank else 0.0,
            float(relative[rank]) if rank < len(relative) else 0.0,
        ),
        tuple(model.row_names[k] for k in _dependent(model, e.jacobian, rank)),
        bool(wrong < 1e-6 * size),
        tuple(name for name, rows in model.joint_rows.items() if not unique[rows].all()),
        tuple(bool(one) for one in unique),
    )


def _dependent(model: AbstractModel, jacobian: Array, rank: int) -> list[int]:
    """Return m - r rows to drop; rows of bodies and drivers only as a last resort."""
    drivers = {model.joint_rows[driver.name].start for driver in model.system.drivers}
    first = [k for k in range(model.m) if k < model.base_rows or k in drivers]
    others = [k for k in range(model.m) if k not in set(first)]
    kept: list[int] = []
    basis = np.zeros((0, model.n))
    for group in (first, others):
        rows = jacobian[group]
        rest = rows - rows @ basis.T @ basis
        if not group:
            continue
        q, triangle, pivots = qr(rest.T, mode="economic", pivoting=True)
        size = np.abs(np.diag(triangle))
        count = int((size > 1e-8 * np.abs(jacobian).max()).sum())
        kept += [group[k] for k in pivots[:count]]
        basis = np.vstack([basis, q[:, :count].T])
    return sorted(set(range(model.m)) - set(kept[:rank]))
