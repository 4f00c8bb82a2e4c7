"""A sweep and a Monte Carlo run over all cores: how a speed loop stands up to its tolerances.

First a grid of gains, to see where the step response overshoots; then 500 motors from a series
whose inertia and friction scatter, all with the gains that were chosen.
"""

import matplotlib.pyplot as plt
import numpy as np

from biella import Diagram, simulate, sweep
from biella.blocks import PID, Gain, Integrator, Step, Sum

KP, KI = np.linspace(0.1, 1.0, 19), np.linspace(0.5, 12.0, 24)
CHOSEN = {"pid.kp": 0.4, "pid.ki": 3.0}


def diagram() -> Diagram:
    d = Diagram("motor speed", step=1e-3)
    ref = d.add(Step(at=0.1, to=30.0, unit="rad/s"), name="ref")
    pid = d.add(PID(kp=0.4, ki=3.0, limits=(-6, 6), period=5e-3, unit="N.m"), name="pid")
    net = d.add(Sum("+-"), name="net")
    inverse_inertia = d.add(Gain(50.0, unit="rad/s2"), name="inverse_inertia")
    speed = d.add(Integrator(), name="speed")
    friction = d.add(Gain(0.05, unit="N.m"), name="friction")
    d.connect(ref, pid["reference"])
    d.connect(speed, friction, pid["measurement"])
    d.connect(pid, net["u1"])
    d.connect(friction, net["u2"])
    d.connect(net, inverse_inertia)
    d.connect(inverse_inertia, speed)
    return d


def overshoot(run) -> float:
    return 100.0 * (run["speed"].max() / 30.0 - 1.0)


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    grid = sweep(diagram(), 1.5, {"pid.kp": KP, "pid.ki": KI}, overshoot, record=["speed"])
    rng = np.random.default_rng(1)
    motors = [
        {**CHOSEN, "inverse_inertia.k": 1 / inertia, "friction.k": friction}
        for inertia, friction in zip(
            rng.normal(0.02, 0.002, 500), rng.uniform(0.02, 0.08, 500), strict=True
        )
    ]
    series = sweep(diagram(), 1.5, motors, lambda run: run["speed"][::10], record=["speed"])
    low, middle, high = np.percentile(series.array(), [2.5, 50, 97.5], axis=0)
    t = simulate(diagram(), 1.5, record=["speed"]).t[::10]
    worst = max(100.0 * (speeds.max() / 30.0 - 1.0) for speeds in series.values)
    print(f"{len(grid)} + {len(series)} runs; the worst motor overshoots by {worst:.1f} %")

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    levels = [0.5, 2, 5, 10, 20, 40]
    lines = left.contour(KP, KI, grid.array().T, levels=levels, cmap="viridis")
    left.clabel(lines, fmt="%g %%")
    left.plot(CHOSEN["pid.kp"], CHOSEN["pid.ki"], "k*", ms=12, label="chosen")
    left.set(xlabel="kp, N m s/rad", ylabel="ki, N m/rad", title="overshoot over the gains")
    left.legend()
    right.fill_between(t, low, high, alpha=0.3, label="95 % of 500 motors")
    right.plot(t, middle, label="median")
    right.set(xlabel="t, s", ylabel="speed, rad/s", title="a series with tolerances")
    right.legend(loc="lower right")
    figure.savefig("sweep.png", dpi=120)


if __name__ == "__main__":
    main()
