"""How blocks with an internal solver are coupled: the choices of `Diagram.couple`."""

from __future__ import annotations

from dataclasses import dataclass

from ....errors import CouplingWarning as CouplingWarning
from ....errors import DiagramError, name_list, suggest
from ...engine._library import contract

METHODS = {
    "jacobi": contract.BL_JACOBI,
    "gauss-seidel": contract.BL_GAUSS_SEIDEL,
    "fixed-point": contract.BL_FIXED_POINT,
    "newton": contract.BL_NEWTON,
}
ITERATED = ("fixed-point", "newton")


@dataclass(frozen=True, slots=True)
class Coupling:
    """How blocks with an internal solver are coupled; see `Diagram.couple`."""

    method: str = "jacobi"
    extrapolation: int = 0
    tolerance: float = 1e-8
    iterations: int = 25
    failure: str = "warn"
    halvings: int = 10
    coupling_tolerance: float = 0.0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise DiagramError(
                f"unknown coupling method `{self.method}`.{suggest(str(self.method), METHODS)} "
                f"Methods: {name_list(METHODS)}."
            )
        if self.extrapolation not in (0, 1, 2):
            raise DiagramError(
                f"extrapolation must be 0, 1 or 2 (polynomial order of inputs), got "
                f"{self.extrapolation!r}."
            )
        if not 0.0 < self.tolerance < 1.0:
            raise DiagramError(f"tolerance must be between 0 and 1, got {self.tolerance!r}.")
        if not (isinstance(self.iterations, int) and 1 <= self.iterations <= 1000):
            raise DiagramError(f"iterations must be between 1 and 1000, got {self.iterations!r}.")
        if not (isinstance(self.halvings, int) and 0 <= self.halvings <= 10):
            raise DiagramError(f"halvings must be between 0 and 10, got {self.halvings!r}.")
        if not (_is_number(self.coupling_tolerance) and 0.0 <= self.coupling_tolerance < 1.0):
            raise DiagramError(
                f"coupling_tolerance must be between 0 and 1, such as 1e-4, or 0 for communication "
                f"at every base step, got {self.coupling_tolerance!r}."
            )
        if self.is_adaptive and self.halvings == 0:
            raise DiagramError(
                "coupling_tolerance divides base steps, but halvings=0 does not allow this: use "
                "halvings from 1 to 10; a step has at most 2**halvings parts."
            )
        if self.is_adaptive and self.is_iterated and self.coupling_tolerance <= self.tolerance:
            raise DiagramError(
                f"coupling_tolerance ({self.coupling_tolerance:g}) must be greater than the "
                f"tolerance of the iteration ({self.tolerance:g}), whose residual is part of the "
                f"error: use couple(…, tolerance={0.01 * self.coupling_tolerance:g})."
            )
        if self.failure not in ("warn", "error"):
            raise DiagramError(f"failure must be 'warn' or 'error', got {self.failure!r}.")

    @property
    def is_adaptive(self) -> bool:
        """Whether the error of inputs determines the communication steps."""
        return self.coupling_tolerance > 0.0

    @property
    def is_iterated(self) -> bool:
        """Whether steps are repeated until the signals agree."""
        return self.method in ITERATED


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
