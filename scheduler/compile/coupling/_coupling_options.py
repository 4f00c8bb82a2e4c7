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
        if self.failure not in ("warn", "error"):
            raise DiagramError(f"failure must be 'warn' or 'error', got {self.failure!r}.")

    @property
    def is_iterated(self) -> bool:
        """Whether steps are repeated until the signals agree."""
        return self.method in ITERATED
