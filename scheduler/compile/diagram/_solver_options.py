"""How a diagram is to be run: its solver, its base step, its couplings."""

from __future__ import annotations

from dataclasses import dataclass, field

from ....errors import DiagramError
from ...engine._library import contract
from ..coupling._coupling_options import Coupling

SOLVERS = {
    "euler": contract.BL_EULER,
    "heun": contract.BL_HEUN,
    "rk3": contract.BL_RK3,
    "rk4": contract.BL_RK4,
    "dopri5": contract.BL_DOPRI5,
    "backward_euler": contract.BL_BACKWARD_EULER,
    "trapezoidal": contract.BL_TRAPEZOIDAL,
}
"""Solvers, and their numbers in a plan."""


def check_step(step: float) -> float:
    """Return `step` if it is a usable base step."""
    if not (isinstance(step, int | float) and 0 < step < 1e12):
        raise DiagramError(f"a step must be positive seconds, got {step!r}.")
    return float(step)


@dataclass(frozen=True, slots=True)
class Settings:
    """What is compiled into a plan beside the blocks."""

    name: str
    step: float
    solver: str
    start: float = 0.0
    solves_loops: bool = True
    """Whether algebraic loops are solved; if not, each is an error."""
    coupling: Coupling = field(default_factory=Coupling)
    """Of blocks with an internal solver, where `Diagram.couple` says nothing else."""
    estimate: int = 0
    """Every how many ticks the error of coupled steps is estimated; 0 for never."""
