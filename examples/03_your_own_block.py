"""Your own block: the same friction as a formula, as a function and as a class.

The Expression is native: it runs in C and leaves in an FMU. The Python ones are called back by the
engine, at about a microsecond a call.
"""

import math

import numpy as np

from biella import Diagram, simulate
from biella.blocks import Expression, Gain, Integrator, Port, PythonBlock, Sine, Sum, python_block


def formula() -> Expression:
    return Expression(
        "-coulomb*tanh(v/smooth) - viscous*v",
        parameters={"coulomb": 2.0, "smooth": 0.01, "viscous": 0.5},
        unit="N",
    )


@python_block(outputs=[Port("y", unit="N")])
def function(v):
    return -2.0 * math.tanh(v / 0.01) - 0.5 * v


class Friction(PythonBlock):
    def __init__(self, coulomb: float = 2.0, viscous: float = 0.5) -> None:
        super().__init__(inputs=["v"], outputs=[Port("y", unit="N")])
        self.coulomb, self.viscous = coulomb, viscous

    def output(self, t, x, u):
        return -self.coulomb * math.tanh(u / 0.01) - self.viscous * u


def diagram(friction=None) -> Diagram:
    d = Diagram("a mass that rubs", step=1e-4)
    push = d.add(Sine(5.0, frequency=2.0, unit="N"), name="push")
    total = d.add(Sum("++"), name="total")
    mass = d.add(Gain(1.0, unit="m/s2"), name="mass")
    speed = d.add(Integrator(), name="speed")
    joint_friction = d.add(friction or formula(), name="friction")
    d.connect(push, total["u1"])
    d.connect(joint_friction, total["u2"])
    d.connect(total, mass)
    d.connect(mass, speed)
    d.connect(speed, joint_friction)
    return d


def main() -> None:
    results = {
        name: simulate(diagram(make()), until=1.0)
        for name, make in [("formula", formula), ("function", function), ("class", Friction)]
    }
    speeds = [result["speed"] for result in results.values()]
    print("largest difference in m/s:", max(np.abs(speeds[0] - s).max() for s in speeds[1:]))
    results["formula"].plot("push", "friction", "speed", path="friction.png")


if __name__ == "__main__":
    main()
