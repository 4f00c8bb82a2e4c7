"""Tolerances of a press: random sets of dimensions beside worst case, root-sum-square and limits.

A crank at a steady speed pushes a die. Lengths of crank and rod, the height of the rail and the
mass of the die vary; what counts is where the die turns back, and the largest torque of the motor.
"""

import numpy as np

from biella import Diagram
from biella.blocks.multibody import System
from biella.tolerances import Normal, Uniform, sweep_tolerances

CRANK, ROD, SPEED = 0.030, 0.110, 60.0  # m, rad/s
DIMENSIONS = {
    "crank": Normal(CRANK, 0.05e-3),
    "rod": Normal(ROD, 0.10e-3),
    "rail height": Uniform(0.0, 0.20e-3),
    "mass of the die": Uniform(0.30, 0.01),
}
REACH, TORQUE = "reach, mm", "largest torque, N m"


def diagram() -> Diagram:
    s = System("press", gravity=(0, 0), planar=True)
    crank = s.body("crank", mass=0.2, inertia=1.5e-5)
    rod = s.body("rod", mass=0.4, inertia=4e-4, com=(ROD / 2, 0), position=(CRANK, 0))
    die = s.body("die", mass=0.3, inertia=1e-4, position=(CRANK + ROD, 0))
    main = s.revolute("main", s.ground, crank, at=(0, 0))
    s.revolute("pin", crank.marker("pin", (CRANK, 0)), rod.marker("pin"))
    s.revolute("wrist", rod.marker("wrist", (ROD, 0)), die.marker("wrist"))
    s.prismatic("slide", s.ground.marker("rail", axis=(1, 0)), die.marker("shoe", axis=(1, 0)))
    s.driver("motor", main, f"{SPEED} * t - 1")
    d = Diagram("press", step=2e-4)
    d.add(s.block(outputs=["die.position", "motor.effort"]), "press")
    return d


def parameters(x: dict) -> dict:
    """Return the parameters of the mechanism for a set of dimensions."""
    return {
        "press.crank.pin.location": (x["crank"], 0.0),
        "press.rod.wrist.location": (x["rod"], 0.0),
        "press.ground.rail.location": (0.0, x["rail height"]),
        "press.die.mass": x["mass of the die"],
    }


def measure(run) -> dict:
    place, effort = run["press.die.position"][:, 0], run["press.motor.effort"]
    return {REACH: 1e3 * place.max(), TORQUE: np.abs(effort).max()}


def main() -> None:
    study = sweep_tolerances(
        diagram(),
        until=2 * np.pi / SPEED,
        variables=DIMENSIONS,
        measure=measure,
        samples=400,
        parameters=parameters,
        limits={REACH: (139.85, 140.15), TORQUE: (None, 1.18)},
    )
    print(study)
    for name, spread in study.items():
        print(f"{name}: {100 * spread.within:.1f} % of the presses are within the limits")
    study.plot(path="tolerances.png")


if __name__ == "__main__":
    main()
