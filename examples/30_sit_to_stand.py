"""Sit to stand: a body of three segments stands up, led by LQ tracking of its trunk.

The trunk is tracked as if it were free: the law gives the force and torque that bring it along its
path. Force propagation turns them into torques of ankle, knee and hip, which hold the weight too;
the inertia of the legs is left to the feedback, and so is a push in the back.
"""

import matplotlib.pyplot as plt
import numpy as np

from biella import Diagram, simulate
from biella.blocks import Demux, Expression, Gain, LQTracking, Mux, Pulse
from biella.blocks.multibody import ForcePropagation, Input, System

JOINTS, PARTS = ("ankle", "knee", "hip"), ("shank", "thigh", "trunk")
LENGTH, CENTER = np.array([0.43, 0.43, 0.8]), np.array([0.24, 0.24, 0.32])  # m
MASS, INERTIA = np.array([7.0, 15.0, 51.0]), np.array([0.12, 0.29, 3.2])  # of both legs
SITTING, STANDING = np.radians([[-15.0, 100.0, -115.0], [-4.0, 8.0, -4.0]])
MOTION = {"p": "trunk.position", "v": "trunk.velocity", "w": "trunk.angular_velocity"}
UNTIL = 3.2  # s


def body() -> System:
    s = System("body", planar=True)
    below, top = s.ground.marker("foot"), 0.0
    for k, (joint, name) in enumerate(zip(JOINTS, PARTS, strict=True)):
        part = s.body(name, mass=MASS[k], inertia=INERTIA[k], position=(0, top + CENTER[k]))
        turn = s.revolute(joint, below, part.marker("below", (0.0, -CENTER[k])))
        s.torque(f"muscle {joint}", turn, Input(f"{joint} torque"))
        below, top = part.marker("above", (0.0, LENGTH[k] - CENTER[k])), top + LENGTH[k]
    s.force("push", part.marker("back"), (Input("push"), 0.0))
    return s


def trunk_path(t: np.ndarray) -> np.ndarray:
    """Return the wanted x, y and angle of the trunk, which leans forward on its way."""
    p = np.clip((t - 0.3) / 1.6, 0.0, 1.0)
    p = p**3 * (10 - 15 * p + 6 * p**2)
    angles = np.outer(1 - p, SITTING) + np.outer(p, STANDING)
    angles = np.cumsum(angles - np.outer(np.sin(np.pi * p) ** 2, [0, 0, 0.44]), axis=1)
    x, y = (part @ [*LENGTH[:2], CENTER[2]] for part in (-np.sin(angles), np.cos(angles)))
    return np.column_stack([x, y, angles[:, 2]])


def diagram() -> Diagram:
    d = Diagram("sit to stand", step=1e-3)
    start = {f"{joint}.angle": angle for joint, angle in zip(JOINTS, SITTING, strict=True)}
    plant = d.add(body().block(outputs=[*start, *MOTION.values()], initial=start), "plant")
    angles = d.add(Mux(3), "angles", **{f"u{k + 1}": plant[path] for k, path in enumerate(start)})
    state = "p[0], p[1], q[0] + q[1] + q[2], v[0] + 0*p[2], v[1] + 0*v[2], w[2] + 0*w[0] + 0*w[1]"
    motion = {name: plant[path] for name, path in MOTION.items()}
    x = d.add(Expression({"x": state.split(", ")}), "state", q=angles, **motion)
    times, one, none = np.linspace(0.0, UNTIL, 301), np.eye(3), np.zeros((3, 3))
    free = np.block([[none, one], [none, none]]), np.vstack([none, one]), np.eye(3, 6)
    law = LQTracking(*free, times, trunk_path(times), Q=[4e4, 4e4, 1e4], R=1.0, final=2e3)
    mass = Gain([-MASS[2], -MASS[2], -INERTIA[2]])  # what is held is the opposite
    wrench = d.add(mass, "wrench", u=d.add(law, "law", state=x))
    model = ForcePropagation(body(), "trunk", weight=True)
    torques = d.add(model, "torques", position=angles, wrench=wrench)["effort"]
    d.add(Demux(3), "muscles", u=torques)
    for k, joint in enumerate(JOINTS):
        d.connect(f"muscles.y{k + 1}", plant[f"{joint} torque"])
    d.connect(d.add(Pulse(9.0, duty=0.011, amplitude=150.0, delay=2.2), "back"), plant["push"])
    return d


def main() -> None:
    run = simulate(diagram(), UNTIL, record=["*"])
    figure, (ax, *others) = plt.subplots(1, 3, figsize=(12, 4.5), layout="constrained")
    angles = np.cumsum([run[f"plant.{joint}.angle"] for joint in JOINTS], axis=0)
    x, y = (np.cumsum(LENGTH[:, None] * u, axis=0) for u in (-np.sin(angles), np.cos(angles)))
    for k in range(300, 2000, 230):
        ax.plot([0, *x[:, k]], [0, *y[:, k]], "o-", color=plt.cm.viridis(k / 2200), ms=4)
    ax.set(aspect="equal", xlim=(-0.8, 0.8), xlabel="x, m", ylabel="y, m")
    error = 1e3 * (run["plant.trunk.position"] - trunk_path(run.t))[:, :2]
    labels = "error of the trunk, mm", "torque of both legs, N m"
    curves = (error, ["x", "y"]), (run["torques.effort"], JOINTS)
    for ax, label, (values, names) in zip(others, labels, curves, strict=True):
        ax.plot(run.t, values, label=names)
        ax.axvspan(2.2, 2.3, color="0.85", label="push of 150 N")
        ax.set(xlabel="t, s", ylabel=label)
        ax.legend(fontsize=9)
    figure.savefig("sit_to_stand.png", dpi=120)
    diagram().export_fmu("sit_to_stand.fmu", inputs=["back"], outputs=["torques.effort"])


if __name__ == "__main__":
    main()
