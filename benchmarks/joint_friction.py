"""The cost of friction from the reactions of joints: a slider-crank with it in 0 to 4 joints.

    python benchmarks/joint_friction.py [--quick] [--json FILE]

One evaluation of the accelerations is half of what RK4 takes longer than Heun's method, which
otherwise do the same. All take turns, and the processor's clock counts.
"""

from __future__ import annotations

import time
from typing import Any

from table import Row, beside, figure, parse_arguments, print_rows, write_json
from turns import Entrant, take_turns, timed

from biella import Diagram, System
from biella.blocks.multibody.mechanisms import slider_crank

STEPS = 1000
STEP = 1e-4
SIZES: dict[str, dict[str, float]] = {
    "main": {"diameter": 0.1},
    "crank_pin": {"diameter": 0.1},
    "wrist_pin": {"diameter": 0.1},
    "slide": {"length": 0.5},
}


def build(joint_friction: int) -> System:
    """Return the mechanism with friction in its first joints."""
    s: Any = slider_crank(planar=True)
    for name, size in list(SIZES.items())[:joint_friction]:
        s.friction(f"rub_{name}", s[name], coefficient=0.1, smoothing_speed=0.05, **size)
    found: System = s
    return found


def enter(joint_friction: int, solver: str) -> Entrant:
    """Return a run of some steps from the beginning."""
    d = Diagram("slider-crank", step=STEP, solver=solver)
    d.add(build(joint_friction).block(outputs=["main.angle"]), name="plant")
    started: Any = d.compile().instantiate()
    run = timed(lambda: started.run(STEPS), time.process_time)

    def from_the_beginning() -> tuple[float, float | None]:
        started.reset()
        return run()

    return Entrant(f"{joint_friction} {solver}", from_the_beginning, STEPS * STEP)


def main() -> None:
    """Time all and print the table."""
    arguments = parse_arguments("What friction from the reactions of joints costs.")
    counts = (0, 1, 2, 4)
    pairs = [(enter(n, "heun"), enter(n, "rk4")) for n in counts]
    take_turns([entrant for pair in pairs for entrant in pair], 20 if arguments.quick else 100)
    taken = [(four.best - two.best) / STEPS / 2 * 1e6 for two, four in pairs]
    rows: list[Row] = [figure("no friction", taken[0], "µs")]
    rows += [
        beside(f"{n} of 4 joints rub", "no friction", spent, taken[0], "µs")
        for n, spent in zip(counts[1:], taken[1:], strict=True)
    ]
    print_rows("Friction from reactions, one evaluation of a planar slider-crank", rows)
    if arguments.json:
        write_json(arguments.json, rows)


if __name__ == "__main__":
    main()
