"""Choosing a formulation: the same slider-crank by several methods of multibody dynamics.

The laboratory of formulations is slow and easy to read; the engine has the one that is fast. Here
each runs Oldani's slider-crank for one second, and is judged by how far its loop opens and by the
energy that it makes or loses.
"""

import matplotlib.pyplot as plt

from biella import Diagram, simulate
from biella.blocks.multibody.mechanisms import slider_crank
from biella.blocks.multibody.reference_formulations import compare

NAMES = {
    "BMG": "Baumgarte",
    "ALF": "augmented Lagrangian",
    "ALF PRJ": "… position projected",
    "ALF PRJ 2": "… and velocity projected",
}
STEP, UNTIL = 5e-3, 1.0  # s


def diagram() -> Diagram:
    d = Diagram("engine", step=STEP)
    d.add(slider_crank(planar=True).block(outputs=["closure"]), name="crank")
    return d


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    comparison = compare("slider-crank", steps=(STEP,), until=UNTIL, every=False)
    print(comparison)
    run = simulate(diagram(), until=UNTIL)
    bars = {NAMES[line.method]: line.error for line in comparison.lines if not line.redundant}
    bars["engine of biella"] = run["crank.closure"].max()
    figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
    colors = ["C1" if name.startswith("engine") else "C0" for name in bars]
    ax.barh(list(bars), [max(value, 1e-17) for value in bars.values()], color=colors)
    ax.set(xscale="log", xlabel="largest |Φ| in 1 s at a step of 5 ms", xlim=(1e-17, 10))
    ax.set_title("How well the loop of a slider-crank stays closed")
    ax.grid(axis="x", alpha=0.3)
    figure.savefig("formulations.png", dpi=120)


if __name__ == "__main__":
    main()
