"""Where the time of a step of our slider-crank goes, from runs that do more of one thing.

The same motion in ticks of one step and in ticks of four steps differs by what surrounds a step:
the engine and the output of one position. Integrated by the diagram, the mechanism is asked for its
accelerations twice a step with Heun's method and four times with RK4; with either, positions and
velocities are put back on the constraints once. Differences of best times, so good to some percent
of a step.
"""

from __future__ import annotations

import time
from typing import Any, Literal

from turns import Entrant, take_turns, timed

from biella import Diagram
from mechanisms.ours_multibody import build_system
from mechanisms.plants import STEP

STEPS = 2000
SUBSTEPS = 4


def _enter(mode: Literal["internal", "continuous"], solver: str, substeps: int = 1) -> Entrant:
    d = Diagram("slider-crank", step=substeps * STEP, solver=solver)
    system = build_system("slider_crank", spatial=False)
    block = system.block(outputs=["slider.position"], mode=mode, substeps=substeps)
    d.add(block, name="plant")
    started: Any = d.compile().instantiate()
    run = timed(lambda: started.run(STEPS // substeps), time.process_time)

    def from_the_beginning() -> tuple[float, float | None]:
        started.reset()
        return run()

    return Entrant(solver, from_the_beginning, STEPS * STEP)


def measure_shares(rounds: int) -> dict[str, float]:
    """Give the parts of a step in microseconds."""
    entrants = [
        _enter("internal", "rk4"),
        _enter("internal", "rk4", SUBSTEPS),
        _enter("continuous", "heun"),
        _enter("continuous", "rk4"),
    ]
    take_turns(entrants, rounds)
    step, several, two, four = (entrant.best / STEPS * 1e6 for entrant in entrants)
    around = (step - several) / (1 - 1 / SUBSTEPS)
    accelerations = 2 * (four - two)
    return {
        "four accelerations": accelerations,
        "projection": step - around - accelerations,
        "engine and output": around,
    }
