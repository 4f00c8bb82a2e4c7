"""How a diagram is to be run: its solver, its base step, its couplings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ....errors import DiagramError, name_list
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
    "radau5": contract.BL_RADAU5,
}
"""Solvers, and their numbers in a plan."""
IMPLICIT = ("backward_euler", "trapezoidal", "radau5")
"""Solvers that need the Jacobian of the continuous states."""
ADAPTIVE = ("dopri5", "radau5")
"""Solvers that choose their steps if a tolerance is given."""
EVENTS = ("locate", "tick")
MAX_EVENTS, MAX_STEPS = 32, 10_000
MAX_SUBSTEPS = 100_000
"""Most substeps of fast blocks in a tick."""

Tolerance = float | tuple[float, float]
"""The relative tolerance, or the relative and the absolute one."""


def check_step(step: float) -> float:
    """Return `step` if it is a usable base step."""
    if not (isinstance(step, int | float) and 0 < step < 1e12):
        raise DiagramError(f"the step must be a positive time in s, got {step!r}.")
    return float(step)


@dataclass(frozen=True, slots=True)
class StepControl:
    """How a solver chooses its internal steps, and what happens at discontinuities.

    Attributes
    ----------
    relative, absolute
        Tolerances of the local error; 0 for steps of fixed length.
    events
        ``"locate"``: a step ends where a zero-crossing function of a block changes its sign;
        ``"tick"``: blocks decide at ticks and within steps.
    max_events, max_steps
        Most located events and internal steps in one tick. Beyond, the rest of the tick is
        integrated without locating events, or with fixed steps, which is counted.
    """

    relative: float = 0.0
    absolute: float = 0.0
    events: str = "locate"
    max_events: int = MAX_EVENTS
    max_steps: int = MAX_STEPS

    @classmethod
    def read(
        cls,
        solver: str,
        tolerance: Tolerance | None,
        events: str,
        max_events: int,
        max_steps: int,
    ) -> StepControl:
        """Check the arguments of `Diagram` and return them."""
        relative = absolute = 0.0
        if tolerance is not None:
            # A pair that comes from a file is a list.
            pair = (
                tuple(tolerance)
                if isinstance(tolerance, tuple | list)
                else (tolerance, 1e-3 * tolerance)
            )
            if len(pair) != 2 or not all(0 < value < 1 for value in pair):
                raise DiagramError(
                    "tolerance is a relative tolerance between 0 and 1, such as 1e-6, or a pair "
                    f"(relative, absolute), got {tolerance!r}."
                )
            if solver not in ADAPTIVE:
                raise DiagramError(
                    f"the solver `{solver}` has steps of fixed length and takes no tolerance. "
                    f"Solvers with error control: {name_list(ADAPTIVE)}."
                )
            relative, absolute = float(pair[0]), float(pair[1])
        if events not in EVENTS:
            raise DiagramError(f"events is 'locate' or 'tick', not {events!r}.")
        for name, limit in (("max_events", max_events), ("max_steps", max_steps)):
            if not 1 <= limit <= 1_000_000 or limit != int(limit):
                raise DiagramError(f"{name} is a whole number from 1 to 1000000, got {limit!r}.")
        return cls(relative, absolute, events, int(max_events), int(max_steps))


def at_ticks(control: StepControl) -> StepControl:
    """Return the same control with events at ticks."""
    return replace(control, events="tick")


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
    control: StepControl = field(default_factory=StepControl)
