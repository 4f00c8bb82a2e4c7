"""Redundant constraints: which reactions can be believed.

Vita's five-bar hangs on three parallel bars. As a spatial mechanism it has 30 equations where 23
would do: it moves as it should, but nobody can say how its joints share the load. In a plane, with
one bar less, every reaction is unique, and equals what Newton's law demands of the bodies.
"""

import matplotlib.pyplot as plt
import numpy as np

from biella import Diagram, simulate
from biella.blocks.multibody import System
from biella.blocks.multibody.mechanisms import five_bar

GRAVITY, LENGTH = 9.81, 1.0  # m/s², m


def four_bar() -> System:
    """Make a coupler of 195 kg that swings on two parallel bars."""
    s = System("parallel four-bar", gravity=(0.0, -GRAVITY), planar=True)
    angle = -np.pi / 4
    tip = LENGTH * np.array([np.cos(angle), np.sin(angle)])
    coupler = s.body(
        "coupler", mass=195.0, inertia=101.7, com=(-0.6, 0.0), position=(1.25 + tip[0], tip[1])
    )
    for name, x in (("left", 0.0), ("right", 2.5)):
        at = np.array([x, 0.0])
        bar = s.body(name, mass=78.0, inertia=6.565, position=at + tip / 2, rotation=angle)
        s.revolute(f"{name}_foot", s.ground, bar, at=at)
        s.revolute(f"{name}_pin", bar, coupler, at=at + tip)
    return s


def diagram() -> Diagram:
    d = Diagram("four-bar", step=1e-3)
    joints = [f"{side}_{end}.force" for side in ("left", "right") for end in ("foot", "pin")]
    d.add(four_bar().block(outputs=[*joints, "coupler.acceleration"]), name="bars")
    return d


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    print(five_bar().report())
    print(four_bar().report())
    run = simulate(diagram(), until=4.0)
    pins = run["bars.left_pin.force"] + run["bars.right_pin.force"]
    demanded = 195.0 * (run["bars.coupler.acceleration"][:, :2] + [0.0, GRAVITY])
    worst = np.abs(pins[:, :2] - demanded).max() / np.abs(demanded).max()
    print(f"pins against m (a + g) of the coupler: {worst:.1e} of the largest")
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(8, 5), layout="constrained")
    for ax, k, axis in ((axes[0], 0, "x"), (axes[1], 1, "y")):
        for name in ("left_pin", "right_pin"):
            ax.plot(run.t, 1e-3 * run[f"bars.{name}.force"][:, k], label=name.replace("_", " "))
        ax.plot(run.t, 1e-3 * pins[:, k], "C2", lw=4, alpha=0.4, label="both pins")
        ax.plot(run.t, 1e-3 * demanded[:, k], "k:", label="m (a + g) of the coupler")
        ax.set(ylabel=f"force along {axis}, kN")
        ax.grid(alpha=0.3)
    axes[0].set(title="What the pins of a four-bar give to its coupler")
    axes[0].legend(loc="upper left", bbox_to_anchor=(1, 1))
    axes[1].set(xlabel="t, s")
    figure.savefig("reactions.png", dpi=120)


if __name__ == "__main__":
    main()
