"""A crank-rocker whose pin has 0.5 mm of play: orbit, forces, and where the pin will wear.

The same mechanism three times: with an ideal joint, with a rigid contact (impacts are events found
inside the steps), and with a compliant one by Lankarani and Nikravesh. Two motors: one that keeps
its speed, and one that a controller feeds. With play the motion is chaotic: peaks vary by step.
"""

import matplotlib.pyplot as plt
import numpy as np

from biella import Diagram, simulate
from biella.blocks import Constant, Sum, TransferFunction
from biella.blocks.multibody import (
    LankaraniNikravesh,
    RigidContact,
    contact_statistics,
    hertz_stiffness,
)
from biella.blocks.multibody.mechanisms import crank_rocker

RPM, PLAY, FRICTION = 1000.0, 5e-4, 0.0
SPEED, TURN = RPM * np.pi / 30, 60 / RPM
SOFT = LankaraniNikravesh(
    stiffness=hertz_stiffness(0.01, 0.01 + PLAY), restitution=0.5, friction=FRICTION
)
# Impacts of the soft contact keep 0.725 of their speed: the rigid one is given the same.
HARD = RigidContact(restitution=SOFT.effective_restitution, friction=FRICTION)
SHOWN = [f"pin.{name}" for name in ("force", "offset", "contact", "normal_force", "slip")]
SHOWN += ["pin.angle", "pin.angle_on_pin", "main.speed"]


def diagram(pin=HARD, motor=False) -> Diagram:
    """Return the mechanism; its motor has a PI controller if it is not to impose the speed."""
    drive = "torque" if motor else "speed"
    mechanism = crank_rocker(pin, speed=SPEED, clearance=PLAY, toward=np.pi, drive=drive)
    outputs = ["pin.force", "main.speed"] if pin == "ideal" else list(SHOWN)
    if pin is HARD:
        outputs += ["pin.impacts", "pin.impulse", "pin.sliding", "pin.sliding_work"]
    inputs = ["motor.torque"] if motor else []
    d = Diagram("crank-rocker", step=2e-5)
    plant = d.add(mechanism.block(inputs, outputs, mode="internal", substeps=5), name="plant")
    if motor:
        wanted = d.add(Constant(SPEED, unit="rad/s"), name="wanted")
        error, pi = d.add(Sum("+-")), d.add(TransferFunction([0.2, 4.0], [1.0, 0.0]), name="pi")
        d.connect(wanted, error["u1"])
        d.connect(plant["main.speed"], error["u2"])
        d.connect(error, pi)
        d.connect(pi, plant["motor.torque"])
    return d


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    ideal, hard, soft = (simulate(diagram(pin), 13 * TURN) for pin in ("ideal", HARD, SOFT))
    driven = simulate(diagram(HARD, motor=True), 13 * TURN)
    for name, run in (("rigid", hard), ("compliant", soft), ("rigid, with a motor", driven)):
        print(f"{name}:\n{contact_statistics(run, 'pin', start=3 * TURN)}\n")
    contact_statistics(hard, "pin", start=3 * TURN).plot("contact_rose.png", title="rigid contact")

    figure, (left, right, low) = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
    around = np.linspace(0, 2 * np.pi, 200)
    left.plot(np.cos(around), np.sin(around), "k", lw=1)
    runs = {"ideal": (ideal, "k-"), "compliant": (soft, "C0-"), "rigid": (hard, "C2-")}
    for name, (run, style) in runs.items():
        turns, force = run.t / TURN, np.hypot(*run["plant.pin.force"][:, :2].T)
        right.plot(turns, force, style, lw=0.8, label=name)
        if run is not ideal:
            late = turns > 11
            left.plot(*(run["plant.pin.offset"][late] / PLAY).T, style, lw=0.7, label=name)
    left.set(aspect="equal", title="pin in its hole, two turns")
    left.set(xlabel="x / clearance", ylabel="y / clearance")
    right.set(xlim=(11, 13), ylim=(0, 1500), xlabel="turn", ylabel="force on the pin, N")
    low.plot(driven.t / TURN, 100 * (driven["plant.main.speed"] / SPEED - 1), "C2", lw=0.8)
    low.set(xlim=(11, 13), xlabel="turn", ylabel="speed error, %", title="a motor with PI")
    right.legend()
    figure.savefig("clearance_fourbar.png", dpi=110)


if __name__ == "__main__":
    main()
