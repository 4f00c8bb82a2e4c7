"""`LinearModel`: the result of `linearize`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...errors import BiellaError

if TYPE_CHECKING:
    import control
    import scipy.signal

Array = npt.NDArray[np.float64]

_SHOWN = 12
"""Rows and columns up to which `repr` prints the matrices."""


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """Operating point of a linearization.

    Attributes
    ----------
    time
        Time in seconds.
    states, inputs, outputs
        Values by name.
    """

    time: float
    states: Mapping[str, float]
    inputs: Mapping[str, float]
    outputs: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LinearModel:
    """A linear state space of deviations from an operating point.

    Continuous: dx/dt = A x + B u, y = C x + D u. Discrete, with a period of `dt` seconds:
    x[n+1] = A x[n] + B u[n], y[n] = C x[n] + D u[n].

    Attributes
    ----------
    A, B, C, D
        The matrices, read-only.
    states, inputs, outputs
        Names of the elements of x, u and y; elements of a vector as ``"plant.position[0]"``. A
        mechanism's states are the coordinates and speeds of the joints of its tree.
    dt
        Period in seconds; None if continuous.
    operating_point
        Time and values of states, inputs and outputs at the operating point.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dt: float | None
    operating_point: OperatingPoint

    def __post_init__(self) -> None:
        for name in "ABCD":
            matrix = np.array(getattr(self, name), dtype=np.float64)
            matrix.flags.writeable = False
            object.__setattr__(self, name, matrix)

    def poles(self) -> npt.NDArray[np.complex128]:
        """Return the eigenvalues of A: in rad/s if continuous, in the z-plane if discrete."""
        return np.linalg.eigvals(self.A).astype(np.complex128)

    def to_scipy(self) -> scipy.signal.StateSpace:
        """Return ``scipy.signal.StateSpace``, without names and with less accurate poles."""
        from scipy.signal import StateSpace

        options = {} if self.dt is None else {"dt": self.dt}
        return StateSpace(self.A, self.B, self.C, self.D, **options)

    def to_control(self) -> control.StateSpace:
        """Return ``control.StateSpace`` of python-control, with names of all signals.

        Dots in names become underscores, as python-control requires.

        Raises
        ------
        BiellaError
            If python-control is not installed.
        """
        try:
            import control
        except ImportError:
            raise BiellaError(
                "to_control needs python-control: `pip install 'biella[control]'`."
            ) from None
        names = {
            what: [name.replace(".", "_") for name in getattr(self, what)]
            for what in ("states", "inputs", "outputs")
        }
        return control.ss(
            self.A, self.B, self.C, self.D, 0 if self.dt is None else self.dt, **names
        )

    def _repr_html_(self) -> str:
        from ..notebook._linear import show_linear_model

        return show_linear_model(self)

    def __repr__(self) -> str:
        kind = "continuous" if self.dt is None else f"discrete, dt = {self.dt:g} s"
        sizes = [
            f"{len(names)} {what if len(names) != 1 else what[:-1]}"
            for what, names in (
                ("states", self.states),
                ("inputs", self.inputs),
                ("outputs", self.outputs),
            )
        ]
        head = f"LinearModel: {kind}, {', '.join(sizes)}, at t = {self.operating_point.time:g} s"
        if max(len(self.states), len(self.inputs), len(self.outputs)) > _SHOWN:
            more = len(self.states) - _SHOWN
            told = ", ".join(self.states[:_SHOWN]) + (f", … {more} more" if more > 0 else "")
            return f"{head}\n  states: {told}"
        dynamics = "d/dt " if self.dt is None else "next "
        columns = (*self.states, *self.inputs)
        rows = [(dynamics + name, self.A[n], self.B[n]) for n, name in enumerate(self.states)]
        rows += [(name, self.C[n], self.D[n]) for n, name in enumerate(self.outputs)]
        cells = [["", *columns]]
        cells += [[name, *(f"{v:.6g}" for v in (*left, *right))] for name, left, right in rows]
        widths = [max(len(row[k]) for row in cells) for k in range(len(columns) + 1)]
        lines = [
            "  ".join(
                [
                    row[0].ljust(widths[0]),
                    *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
                ]
            ).rstrip()
            for row in cells
        ]
        return "\n".join([head, *lines])


def list_elements(vectors: Sequence[tuple[str, int]]) -> list[str]:
    """Return the names of all elements of vectors that are given by name and width."""
    return [name if width == 1 else f"{name}[{k}]" for name, width in vectors for k in range(width)]
