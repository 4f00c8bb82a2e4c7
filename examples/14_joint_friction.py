"""The cost of joint friction: the efficiency of a slider-crank over one turn.

A crank that is driven at a steady speed pumps against a damper. Each joint rubs with its own
reaction: pins by their diameters, the piston by its length, which carries the couple of its pin.
Lengths, masses and the crank pin are Vita's (Table 4.1); the other bearings, the piston, the load
and the speed are ours.
"""

import matplotlib.pyplot as plt
import numpy as np

from biella import Diagram, simulate
from biella.blocks.multibody import System

CRANK, ROD = 0.030, 0.110  # m
SPEED = 2 * np.pi  # rad/s
DIAMETERS = {"main": 0.04, "crank_pin": 0.05, "wrist_pin": 0.02}  # m
PISTON = 0.06  # m, its length
COEFFICIENTS = (0.0, 0.05, 0.1)


def mechanism(coefficient: float) -> System:
    s = System("pump", planar=True)
    crank = s.body("crank", mass=0.2, inertia=1.5e-5, position=(CRANK / 2, 0))
    rod = s.body("rod", mass=0.4, inertia=4.03e-4, position=(CRANK + ROD / 2, 0))
    piston = s.body("piston", mass=0.3, inertia=1e-4, position=(CRANK + ROD, 0))
    pins = [
        s.revolute("main", s.ground, crank, at=(0, 0)),
        s.revolute("crank_pin", crank, rod, at=(CRANK, 0)),
        s.revolute("wrist_pin", rod, piston, at=(CRANK + ROD, 0)),
    ]
    slide = s.prismatic("slide", s.ground, piston, at=(CRANK + ROD, 0), axis=(1, 0))
    s.driver("motor", pins[0], f"{SPEED} * t")
    s.spring("load", s.ground.marker("end", (0.3, 0)), piston.marker("crown"), damping=2000.0)
    for pin in pins:
        diameter = DIAMETERS[pin.name]
        s.friction(f"rub_{pin.name}", pin, coefficient=coefficient, diameter=diameter)
    s.friction("rub_slide", slide, coefficient=coefficient, length=PISTON)
    return s


def diagram(coefficient: float = 0.1) -> Diagram:
    names = ["main.angle", "motor.effort", "power_in", "power_loss", "efficiency"]
    names += [f"rub_{joint}.power_loss" for joint in (*DIAMETERS, "slide")]
    d = Diagram("pump", step=1e-4)
    d.add(mechanism(coefficient).block(outputs=names), name="plant")
    return d


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    for coefficient in COEFFICIENTS:
        run = simulate(diagram(coefficient), until=2 * np.pi / SPEED)
        degrees = np.degrees(run["plant.main.angle"])
        mean = 1 - run["plant.power_loss"].mean() / run["plant.power_in"].mean()
        print(f"coefficient {coefficient:g}: {100 * mean:.1f} % of the work of a turn arrives")
        axes[0].plot(degrees, run["plant.efficiency"], label=f"f = {coefficient:g}")
        axes[1].plot(degrees, run["plant.motor.effort"], label=f"f = {coefficient:g}")
    for joint in (*DIAMETERS, "slide"):
        loss = run[f"plant.rub_{joint}.power_loss"]
        axes[2].plot(degrees, loss, label=joint.replace("_", " "))
    axes[0].set(ylabel="efficiency, –", ylim=(-0.02, 1.05))
    axes[1].set(ylabel="torque of the motor, N m")
    axes[2].set(ylabel="losses, W", title=f"f = {COEFFICIENTS[-1]:g}")
    for axis in axes:
        axis.set(xlabel="crank angle in degrees", xticks=range(0, 361, 90))
        axis.grid(alpha=0.3)
        axis.legend()
    figure.savefig("joint_friction.png", dpi=120)


if __name__ == "__main__":
    main()
