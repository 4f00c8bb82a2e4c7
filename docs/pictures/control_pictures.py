"""Draw the pictures of control.md: ``python docs/pictures/control_pictures.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt

from biella import Diagram, Result, simulate
from biella.blocks import PID, CamLaw, SCurve, Step, TransferFunction, Trapezoid
from biella.scheduler.results._plotting import COLORS

PICTURES = Path(__file__).parent
LAWS = ("cycloidal", "modified sine", "modified trapezoid", "3-4-5", "4-5-6-7")
WHAT = ("position", "velocity", "acceleration", "jerk")


def run_weak_actuator(anti_windup: str) -> Result:
    """Run a lag that needs most of what its actuator has to get where it shall."""
    d = Diagram("weak actuator", step=1e-2)
    reference = d.add(Step(at=0.5, to=3.0), name="reference")
    options = {"limits": (-1.0, 1.0), "period": 1e-2, "anti_windup": anti_windup}
    pid = d.add(PID(kp=2.0, ki=1.0, **options), name="pid")
    plant = d.add(TransferFunction([5.0], [4.0, 1.0]), name="plant")
    d.connect(reference, pid["reference"])
    d.connect(plant, pid["measurement"])
    d.connect(pid["y"], plant)
    return simulate(d, 20.0, progress=False)


def draw_windup() -> None:
    """Draw the same loop with each way against windup."""
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(8, 5.5), layout="constrained")
    for method in ("none", "clamping", "back-calculation"):
        run = run_weak_actuator(method)
        axes[0].plot(run.t, run["plant"], label=method)
        axes[1].plot(run.t, run["pid.y"])
    axes[0].plot(run.t, run["reference"], "k:", label="reference")
    axes[0].set(ylabel="measurement")
    axes[1].set(ylabel="y, limits ±1", xlabel="t, s")
    axes[0].legend(title="anti_windup", loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(PICTURES / "pid_windup.png", dpi=110)


def draw_motions() -> None:
    """Draw all motions over 1 m in 1 s: cam laws, and two with limits."""
    blocks = {law: CamLaw(law, 1.0, duration=1.0, unit="m") for law in LAWS}
    limits = {"unit": "m", "velocity": 1.8, "acceleration": 6.5}
    blocks["SCurve"] = SCurve(1.0, **limits, jerk=60.0)
    blocks["Trapezoid"] = Trapezoid(1.0, unit="m", velocity=1.5, acceleration=4.5)
    figure, axes = plt.subplots(2, 2, sharex=True, figsize=(9, 5.5), layout="constrained")
    for name, block in blocks.items():
        d = Diagram(name, step=1e-3)
        d.add(block, name="motion")
        run = simulate(d, 1.1, progress=False)
        dash = "-" if name in LAWS else "--"
        for ax, what in zip(axes.flat, WHAT, strict=True):
            if f"motion.{what}" in run:
                ax.plot(run.t, run[f"motion.{what}"], dash, lw=1.2, label=name)
    for ax, what, unit in zip(axes.flat, WHAT, ("m", "m/s", "m/s²", "m/s³"), strict=True):
        ax.set(ylabel=f"{what}, {unit}")
    for ax in axes[1]:
        ax.set(xlabel="t, s")
    axes[0, 1].legend(loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(PICTURES / "motions.png", dpi=110)


def main() -> None:
    """Draw both."""
    plt.rcParams["axes.prop_cycle"] = plt.cycler(color=COLORS)
    draw_windup()
    draw_motions()


if __name__ == "__main__":
    main()
