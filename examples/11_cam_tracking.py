"""Following a cam law: an electronic cam moves a load through a soft screw, by three controllers.

A shaft turns twice a second; the load should rise 20 mm by the modified sine, dwell, and return by
the polynomial 4-5-6-7. A PID on the motor's place comes late. With the force for the law's
acceleration fed forward the motor is right, but the screw still bends. LQ tracking knows load,
screw and law beforehand: it pushes before the law moves.
"""

import matplotlib.pyplot as plt
import numpy as np

from biella import Diagram, simulate
from biella.blocks import PID, Cam, Gain, LQTracking, Ramp, Selector, StateSpace, Sum

MOTOR, LOAD, STIFFNESS, DAMPING = 2.0, 1.0, 9e3, 6.0  # kg, kg, N/m, N s/m
SPEED, UNTIL = 4 * np.pi, 1.0  # rad/s, s
TURN = [("dwell", 30), ("modified sine", 100, 0.02), ("dwell", 60), ("4-5-6-7", 120, -0.02)]
# places and velocities of motor and load; a force on the motor
COUPLED = np.array([[-1.0, 1.0], [1.0, -1.0]]) / np.array([[MOTOR], [LOAD]])
A = np.block([[np.zeros((2, 2)), np.eye(2)], [STIFFNESS * COUPLED, DAMPING * COUPLED]])
B = np.array([0.0, 0.0, 1 / MOTOR, 0.0])


def add_cam(d: Diagram) -> None:
    turn = [(law, np.radians(angle), *lift) for law, angle, *lift in [*TURN, ("dwell", 50)]]
    d.add(Cam(turn, unit="m"), name="cam")
    d.connect(d.add(Ramp(SPEED, unit="rad"), name="shaft"), "cam.angle")
    d.connect(d.add(Ramp(0.0, before=SPEED, unit="rad/s"), name="speed"), "cam.speed")


def look_ahead() -> LQTracking:
    law = Diagram("law", step=1e-3)
    add_cam(law)
    run = simulate(law, UNTIL)
    return LQTracking(A, B, [0, 1, 0, 0], run.t, run["cam.position"], Q=1e9, R=1e-2)


def diagram() -> Diagram:
    d = Diagram("cam tracking", step=2e-4)
    add_cam(d)
    d.connect("cam.acceleration", d.add(Gain(MOTOR + LOAD, unit="N"), name="inertia"))
    for name in ("pid", "fed forward", "lq"):
        plant = d.add(StateSpace(A, B, np.eye(4)), name=f"{name} plant")
        load = d.add(Selector([1]), name=f"{name} load")
        if name == "lq":
            control = d.add(look_ahead(), name=name)
            d.connect(plant, control, load)
        else:
            control = d.add(PID(6e3, 6e4, 150.0, c=1.0, filter_time=1e-3, period=4e-4), name=name)
            motor = d.add(Selector([0]), name=f"{name} motor")
            d.connect(plant, motor, load)
            d.connect("cam.position", control["reference"])
            d.connect(motor, control["measurement"])
        if name == "fed forward":
            d.connect("inertia", control["feedforward"])
        d.connect(control["y"], plant)
        d.connect("cam.position", d.add(Sum("+-"), name=f"{name} error")["u1"])
        d.connect(load, f"{name} error.u2")
    return d


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    run = simulate(diagram(), UNTIL, record=["*"])
    figure, axes = plt.subplots(3, 1, sharex=True, figsize=(8, 7), layout="constrained")
    axes[0].plot(run.t, 1e3 * run["cam.position"], "k:", label="law")
    for name in ("pid", "fed forward", "lq"):
        error = 1e3 * run[f"{name} error"]
        axes[0].plot(run.t, 1e3 * run[f"{name} load"], lw=1, label=name)
        axes[1].plot(run.t, error, lw=1, label=f"{name}, rms {np.std(error):.3f}")
        axes[2].plot(run.t, run[f"{name}.y"], lw=1, label=name)
    for ax, label in zip(axes, ("load, mm", "error, mm", "motor, N"), strict=True):
        ax.set(ylabel=label, xlabel="t, s" if ax is axes[2] else "")
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig("cam_tracking.png", dpi=120)


if __name__ == "__main__":
    main()
