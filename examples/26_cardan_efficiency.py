"""The efficiency of a Cardan joint over a turn: angle of the shafts, errors of its axes, bearings.

Data of Vita's thesis, chapter 6: 100 N m, friction 0.005, shafts at 15°, errors of 0.5 mm and
0.006°. It does not print the bearings of that case: those of its other case are used. Where axes
miss each other joints slide, and the friction of the source then acts fully in both directions.
"""

from typing import Any, Literal

import matplotlib.pyplot as plt
import numpy as np

from biella import Diagram, simulate
from biella.blocks.multibody import mechanisms
from biella.blocks.multibody.dual import RCCC, Sleeve, efficiency

TURN = np.linspace(0.0, 2 * np.pi, 361)
TORQUE, SPEED, FRICTION = 100.0, 50 * np.pi, 0.005  # N m, rad/s (1500 rpm)
SHAFT, CROSS = Sleeve(0.020, 0.010), Sleeve(0.006, 0.005)  # diameter and length, m
LONGER = Sleeve(0.006, 0.010)
ERRORS = {"length_errors": 5e-4, "angle_errors": np.radians([0.006, 0.006, 0.006, 0.0])}
JOINTS = ("input shaft", "cross, input side", "cross, output side", "output shaft")


def diagram() -> Diagram:
    d = Diagram("Cardan joint", step=2 * np.pi / SPEED / 360)
    joint = mechanisms.cardan(np.radians(15), SPEED)
    d.add(joint.block(outputs=["output_shaft.speed"]), "joint")
    return d


def turn(joint: RCCC, cross: Sleeve = CROSS, law: Literal["separate", "slip"] = "separate") -> Any:
    sleeves, common = (SHAFT, cross, cross, SHAFT), {"speed": SPEED, "torque": TORQUE, "law": law}
    return efficiency(joint, TURN, coefficient=FRICTION, sleeves=sleeves, **common)


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    figure, axes = plt.subplots(2, 2, figsize=(12, 8), layout="constrained")
    (by_angle, by_error), (mean, loss) = axes
    degrees = np.degrees(TURN)
    for angle in (5, 10, 15):
        found = turn(RCCC.cardan(np.radians(angle)))
        by_angle.plot(degrees, 100 * found.efficiency, label=f"shafts at {angle}°")
        print(f"{angle:2d}°: {100 * found.efficiency[:-1].mean():.4f} % over a turn")
    ideal, real = RCCC.cardan(np.radians(15)), RCCC.cardan(np.radians(15), **ERRORS)
    run = simulate(diagram(), until=2 * np.pi / SPEED)["joint.output_shaft.speed"]
    shaft = ideal.motion(TURN + np.pi / 2, SPEED).rates.real[:, 3]  # its cross starts a quarter on
    off = np.abs(run - np.abs(shaft)).max() / SPEED
    print(f"the speed in the engine differs by {off:.0e} of that of the input")
    cases = {"exact": turn(ideal), "with errors": turn(real), "longer": turn(real, LONGER)}
    for label, found in cases.items():
        by_error.plot(degrees, 100 * found.efficiency, label=label)
        print(f"15°, {label}: {100 * found.efficiency[:-1].mean():.4f} %")
    errors = np.linspace(0, 1e-3, 11)
    for angle in (5, 15, 30):
        joints = [RCCC.cardan(np.radians(angle), length_errors=e) for e in errors]
        means = [turn(joint).efficiency[:-1].mean() for joint in joints]
        line = mean.plot(1e3 * errors, 100 * np.array(means), "o-", label=f"shafts at {angle}°")[0]
        means = [turn(joint, law="slip").efficiency[:-1].mean() for joint in joints]
        label = "friction against the slip" if angle == 30 else None
        mean.plot(1e3 * errors, 100 * np.array(means), "--", color=line.get_color(), label=label)
    losses = cases["with errors"].losses
    loss.stackplot(degrees, losses.T, labels=JOINTS, alpha=0.8)
    by_angle.set(title="angle of the shafts", ylabel="efficiency, %")
    by_error.set(title="15°: errors of the axes, and bearings", ylabel="efficiency, %")
    mean.set(xlabel="distance of each pair of axes, mm", ylabel="mean efficiency, %")
    loss.set(title="15°, with errors", ylabel="losses, W")
    for axis in (by_angle, by_error, loss):
        axis.set(xlabel="angle of the input in degrees", xticks=range(0, 361, 90))
    for axis in axes.ravel():
        axis.grid(alpha=0.3)
        low, high = axis.get_ylim()
        axis.set_ylim(low, low + 1.2 * (high - low))
        axis.legend(loc="upper center", ncols=2 if axis in (mean, loss) else 3)
    figure.savefig("cardan_efficiency.png", dpi=120)


if __name__ == "__main__":
    main()
