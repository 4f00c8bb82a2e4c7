"""How a diagram is to be run: its solver, its base step, its couplings."""

from __future__ import annotations

from dataclasses import dataclass, field

from ....errors import DiagramError
from ..coupling._coupling_options import Coupling

SOLVERS = ("euler", "heun", "rk3", "rk4", "dopri5", "backward_euler", "trapezoidal")
"""In the order of their numbers in a plan."""


def check_step(step: float) -> float:
    """Return `step` if it is a usable base step."""
    if not (isinstance(step, int | float) and 0 < step < 1e12):
        raise DiagramError(f"the step must be a positive time in s, got {step!r}.")
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
    """Default for blocks with an internal solver without settings by `Diagram.couple`."""
    estimate: int = 0
    """Every how many ticks the error of coupled steps is estimated; 0 for never."""
