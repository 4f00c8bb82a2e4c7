"""Export and reopen: a controlled crank leaves as an FMU, and another tool runs it.

The FMU holds the plan and the engine, nothing else: no Python, no compiler. FMPy opens it, gives it
a reference of its own, and must find what biella finds, to the last bit at the same steps.
"""

import matplotlib.pyplot as plt
import numpy as np
from fmpy import simulate_fmu

from biella import Diagram, simulate
from biella.blocks import PID, Encoder, Step
from biella.blocks.multibody.mechanisms import slider_crank

UNTIL = 4.0  # s


def diagram() -> Diagram:
    d = Diagram("crank speed control", step=1e-3)
    outputs = ["main.angle", "main.speed"]
    plant = d.add(slider_crank(planar=True).block(["motor.torque"], outputs), name="plant")
    ref = d.add(Step(at=0.5, to=-3.0, unit="rad/s"), name="ref")
    encoder = d.add(Encoder(counts=20000, method="both", window=4, period=1e-3), name="encoder")
    pid = d.add(PID(kp=150.0, ki=900.0, limits=(-200, 200), period=1e-3, unit="N.m"), name="pid")
    d.connect(plant["main.angle"], encoder)
    d.connect(ref, pid["reference"])
    d.connect(encoder["speed"], pid["measurement"])
    d.connect(pid, plant["motor.torque"])
    d.output("speed", plant["main.speed"])
    d.output("torque", pid)
    return d


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    ours = simulate(diagram(), until=UNTIL)
    diagram().export_fmu("crank.fmu", inputs=["ref"])
    given = np.array(
        [(0.0, 0.0), (0.5, 0.0), (0.5, -3.0), (UNTIL, -3.0)],
        dtype=[("time", float), ("ref", float)],
    )
    theirs = simulate_fmu("crank.fmu", stop_time=UNTIL, output_interval=1e-3, input=given)
    worst = np.abs(theirs["speed"] - ours["speed"]).max()
    print(f"FMPy against biella: {len(theirs)} points, largest difference {worst:.1e} rad/s")
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(8, 5), layout="constrained")
    for ax, name, unit in ((axes[0], "speed", "rad/s"), (axes[1], "torque", "N m")):
        ax.plot(ours.t, ours[name], lw=4, alpha=0.4, label="biella")
        ax.plot(theirs["time"], theirs[name], lw=1, color="C2", label="the FMU in FMPy")
        ax.set(ylabel=f"{name}, {unit}")
        ax.grid(alpha=0.3)
    axes[0].plot(ours.t, ours["ref"], "k:", label="wanted")
    axes[0].set(title="A crank under control, here and in another tool")
    axes[0].legend()
    axes[1].set(xlabel="t, s")
    figure.savefig("export.png", dpi=120)


if __name__ == "__main__":
    main()
