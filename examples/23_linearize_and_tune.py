"""Linearize and tune: from a mechanism to a controller by its own linear model.

An arm stands upright on a hinge, where it would fall. `linearize` gives its state space there; LQR
gains from the same matrices hold it. The linear model of the closed loop predicts what a push does,
and the mechanism does so, as long as the push is small.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import signal

from biella import Diagram, LinearModel, linearize, simulate
from biella.blocks import Mux, Pulse, StateFeedback
from biella.blocks.control import lqr
from biella.blocks.multibody import Plant, System

ANGLE, SPEED, TORQUE = "plant.hinge.angle", "plant.hinge.speed", "plant.motor.torque"


def mechanism() -> System:
    s = System("arm", gravity=(0.0, -9.81), planar=True)
    arm = s.body("arm", mass=2.0, inertia=0.05, position=(0.0, 0.3))
    hinge = s.revolute("hinge", s.ground, arm, at=(0.0, 0.0))
    s.torque("motor", hinge, 0.0)
    s.torque("push", hinge, 0.0)
    s.friction("bearing", hinge, viscous=0.1)
    return s


def plant() -> Plant:
    return mechanism().block(["motor.torque", "push.torque"], ["hinge.angle", "hinge.speed"])


def upright() -> LinearModel:
    return linearize(plant(), ["motor.torque"])


def diagram() -> Diagram:
    d = Diagram("held arm", step=1e-3)
    d.add(plant(), name="plant")
    regulator = lqr(upright(), Q=[20.0, 1.0], R=1.0)  # weights of hinge.angle and hinge.speed
    d.add(StateFeedback(regulator.K, unit="N.m"), name="hold")
    d.add(Mux(2), name="state")
    d.add(Pulse(10.0, duty=0.02, amplitude=1.0, delay=0.1, unit="N.m"), name="push")
    d.connect(ANGLE, "state.u1")
    d.connect(SPEED, "state.u2")
    d.connect("state", "hold.state")
    d.connect("hold", TORQUE)
    d.connect("push", "plant.push.torque")
    return d


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    print("poles of the arm alone:", np.real_if_close(upright().poles().round(2)))
    held = linearize(diagram(), ["push"], [ANGLE])
    print("poles with its controller:", np.real_if_close(held.poles().round(2)))
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    frequency = np.logspace(-1, 2, 400)
    shifted = 2j * np.pi * frequency[:, None, None] * np.eye(2) - held.A
    left.loglog(frequency, np.abs(held.C @ np.linalg.solve(shifted, held.B)).ravel())
    left.set(xlabel="frequency, Hz", ylabel="angle / push, rad/(N m)", title="linear model")
    for color, push in (("C0", 1.0), ("C1", 20.0), ("C2", 40.0)):
        run = simulate(diagram(), 2.5, parameters={"push.amplitude": push})
        _, linear, _ = signal.lsim(held.to_scipy(), run["push"] / push, run.t, interp=False)
        right.plot(run.t, run[ANGLE] / push, color, label=f"pushed by {push:g} N m")
    right.plot(run.t, linear, "k:", label="linear model")
    right.set(xlabel="t, s", ylabel="angle / push, rad/(N m)", title="the mechanism")
    left.grid(alpha=0.3), right.legend()
    figure.savefig("tuned.png", dpi=120)


if __name__ == "__main__":
    main()
