"""Two masses on springs, each with internal steps as two FMUs would have, coupled by a spring.

The spring between them belongs to the left mass, which gets the place of the right one and gives
back a force. How these are foreseen within a step decides the accuracy: the picture compares
couplings with the closed form; the report says which connection limits the accuracy.
`benchmarks/studies/co_simulation.py --fmu` does the same with the masses as FMUs.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import expm

from biella import Diagram, simulate
from biella.blocks import Expression
from biella.blocks.multibody import Plant, System

MASS, STIFFNESS, DAMPING = (1.0, 2.0), (10.0, 15.0), (0.1, 0.2)  # kg, N/m, N s/m
SPRING, DAMPER = 20.0, 0.3  # of the coupling
SPEED = 1.0  # m/s, of the first mass at the start
STATES = ["left.slide.displacement", "left.slide.speed"]
STATES += ["right.slide.displacement", "right.slide.speed"]


def mass(n: int) -> Plant:
    s = System("mass", (0, 0), planar=True)
    body = s.body("mass", mass=MASS[n], inertia=1.0, velocity=(SPEED * (1 - n), 0))
    s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    wall, end = s.ground.marker("wall", (-1, 0)), body.marker("end")
    k, d = STIFFNESS[n] + SPRING * (1 - n), DAMPING[n] + DAMPER * (1 - n)
    s.spring("spring", wall, end, stiffness=k, damping=d, free_length=1.0)
    s.force("push", end, (0.0, 0.0))
    outputs = ["slide.displacement", "slide.speed"]
    return s.block(["push.force.x"], outputs, mode="internal", substeps=4)


def diagram(step: float = 0.02) -> Diagram:
    d = Diagram("two masses", step=step, coupling="newton", extrapolation=2)
    left, right = d.add(mass(0), name="left"), d.add(mass(1), name="right")
    formulas = {"place": "k*x2 + d*v2", "force": "k*(x1 - x2) + d*(v1 - v2)"}
    for (name, formula), plant in zip(formulas.items(), (left, right), strict=True):
        force = Expression(formula, parameters={"k": SPRING, "d": DAMPER}, unit="N")
        d.add(force, name=name)
        for state, port in zip(STATES, ("x1", "v1", "x2", "v2"), strict=True):
            if port in force.input_index:
                d.connect(state, force[port])
        d.connect(force, plant["push.force.x"])
    return d


def exact(t: float) -> np.ndarray:
    k = [[STIFFNESS[0] + SPRING, -SPRING], [-SPRING, STIFFNESS[1] + SPRING]]
    c = [[DAMPING[0] + DAMPER, -DAMPER], [-DAMPER, DAMPING[1] + DAMPER]]
    a = np.zeros((4, 4))
    a[0, 1] = a[2, 3] = 1.0
    for row, m in enumerate(MASS):
        a[2 * row + 1, 0::2], a[2 * row + 1, 1::2] = -np.array(k[row]) / m, -np.array(c[row]) / m
    return expm(a * t) @ [0.0, SPEED, 0.0, 0.0]


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    steps = 0.08 / 2 ** np.arange(6)
    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    for method, color in (("jacobi", "C2"), ("gauss-seidel", "C1"), ("newton", "C0")):
        for hold, marker in enumerate("os^"):
            runs = [simulate(diagram(h), 4.0, coupling=method, extrapolation=hold) for h in steps]
            errors = [max(abs(exact(4.0) - [run[s][-1] for s in STATES])) for run in runs]
            axes.loglog(steps, errors, f"{marker}-", c=color, label=f"{method}, order {hold}")
    axes.set(xlabel="step, s", ylabel="largest error at 4 s, m or m/s", ylim=(1e-8, 10))
    axes.set_xticks(steps, [f"{h:g}" for h in steps])
    axes.minorticks_off()
    axes.legend()
    figure.savefig("co_simulation.png", dpi=120)
    run = simulate(diagram(), 4.0, coupling="jacobi", extrapolation=1, estimate_error=1)
    print(run.coupling_report(tolerance=1e-3))


if __name__ == "__main__":
    main()
