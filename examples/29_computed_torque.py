"""Computed torque: an arm from a URDF file is moved quickly by three controllers.

All have the same gains. The first has no model; it is late and sags. Computed torque turns the
accelerations that the gains ask for into torques by the arm's inverse dynamics, so that the error
is that of the samples. With a model that does not know of the 1.5 kg in the hand it sags again.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from biella import Diagram, simulate
from biella.blocks import Demux, Expression, Gain, MinimumJerk, Mux
from biella.blocks.authoring import NativeBlock
from biella.blocks.multibody import Input, InverseDynamics, System

JOINTS = ["yaw", "shoulder", "elbow"]
START, END = [-0.8, 1.3, -2.0], [0.9, 0.3, -0.6]  # rad
PERIOD, STIFF, DAMP = 2e-3, 400.0, 40.0  # s; 1/s², 1/s: both poles at -20 rad/s
INERTIAS = [1.5, 1.5, 0.3]  # kg m², of the controller without a model
CASES = ["no model", "computed torque", "load unknown"]


def robot(load: float) -> System:
    path = Path(__file__).with_name("robots") / "arm.urdf"
    arm = System.from_urdf(path, positions=dict(zip(JOINTS, START, strict=True)))
    hand = arm["forearm"].marker("hand", (0.4, 0.0, 0.0))
    if load > 0.0:
        arm.body("load", mass=load, inertia=1e-3, position=hand.world_position)
        arm.fixed("grip", hand, arm["load"].marker("middle"))
    return arm


def add_controller(d: Diagram, case: str, q: Mux, v: Mux, wanted: dict[str, Mux]) -> NativeBlock:
    laws = [f"ad[{k}] + d*(vd[{k}] - v[{k}]) + c*(qd[{k}] - q[{k}])" for k in range(3)]
    asked = Expression({"y": laws}, parameters={"c": STIFF, "d": DAMP})
    a = d.add(asked, f"asked {case}", period=PERIOD, q=q, v=v, **wanted)
    if case == "no model":
        return d.add(Gain(INERTIAS), case, u=a)
    model = InverseDynamics(robot(load=0.0 if case == "load unknown" else 1.5))
    return d.add(model, case, period=PERIOD, position=q, speed=v, acceleration=a)


def diagram() -> Diagram:
    d = Diagram("computed torque", step=1e-3)
    laws = [d.add(MinimumJerk(b, 0.8, before=a, at=0.2), f"law {j}") for j, a, b in
            zip(JOINTS, START, END, strict=True)]  # fmt: skip
    names = {"qd": "position", "vd": "velocity", "ad": "acceleration"}
    wanted = {name: d.add(Mux(3), name, **{f"u{k + 1}": law[what] for k, law in enumerate(laws)})
              for name, what in names.items()}  # fmt: skip
    for case in CASES:
        arm = robot(load=1.5)
        for joint in JOINTS:
            arm.torque(f"motor {joint}", arm[joint], Input(f"{joint} torque"))
        shown = [f"{j}.{what}" for what in ("angle", "speed") for j in JOINTS]
        plant = d.add(arm.block(outputs=shown), f"arm {case}")
        q, v = (d.add(Mux(3), f"{what} {case}", **{f"u{k + 1}": plant[f"{j}.{what}"]
                for k, j in enumerate(JOINTS)}) for what in ("angle", "speed"))  # fmt: skip
        torques = add_controller(d, case, q, v, wanted)
        parts = d.add(Demux(3), f"torques {case}", u=torques)
        for k, joint in enumerate(JOINTS):
            d.connect(parts[f"y{k + 1}"], plant[f"{joint} torque"])
    return d


def main() -> None:
    run = simulate(diagram(), 2.0, record=["*"])
    figure, axes = plt.subplots(3, 2, sharex=True, figsize=(9, 7), layout="constrained")
    for row, joint in zip(axes, JOINTS, strict=True):
        row[0].plot(run.t, run[f"law {joint}.position"], "k:", label="wanted")
        for case in CASES:
            angle = run[f"arm {case}.{joint}.angle"]
            row[0].plot(run.t, angle, lw=1, label=case)
            error = np.abs(angle - run[f"law {joint}.position"])
            row[1].semilogy(run.t, np.maximum(error, 1e-6), lw=1)
        row[0].set_ylabel(f"{joint}, rad")
        row[1].set_ylabel(f"error of {joint}, rad")
    axes[0, 0].legend()
    figure.supxlabel("t, s")
    figure.savefig("computed_torque.png", dpi=120)


if __name__ == "__main__":
    main()
