"""A Cardan joint with play and tolerances: how far its output scatters over a turn.

Each pin touches its sleeve in a random direction, with the data of Vita's Table 7.1 (lengths in any
unit); the joint is a closed loop of dual numbers, of which 4000 sets are evaluated at once.
"""

import matplotlib.pyplot as plt
import numpy as np

from biella import Diagram, simulate
from biella.blocks.multibody import mechanisms
from biella.blocks.multibody.dual import RCCC, Dual, PlayRCCC, clearance_screw
from biella.tolerances import Free, Normal, tolerance_study

TURN = np.radians(np.arange(0, 361, 5))
SPEED = np.pi / 2  # rad/s
JOINTS, LATER = (1, 2, 3, 4), (2, 3, 4)
OUTPUTS = {"θ4": "°", "s4": "units of length", "ω4": "rad/s", "ds4/dt": "units of length / s"}


def variables() -> dict:
    """Return the tolerances; each is six standard deviations, as in the source."""
    made = {}
    for k in JOINTS:
        made[f"α{k}"] = Normal(np.radians(135 if k == 4 else 90), np.radians(0.1), sigmas=6)
        made |= {f"a{k}": Normal(0, 0.1, sigmas=6), f"R{k}": Normal(1, 0.1, sigmas=6)}
    for k in LATER:
        made |= {f"H{k}": Normal(1, 0.1, sigmas=6), f"Δr{k}": Normal(0, 0.06, 6, folded=True)}
        made |= {f"ξ{k}": Free(0, 2 * np.pi), f"β{k}": Free(0, 2 * np.pi)}
    return made


def measure(x: dict) -> dict:
    """Return angle and slide of the output, and their rates, of all sets over a turn."""

    def of(name: str, joints: tuple) -> np.ndarray:
        return np.stack([x[f"{name}{k}"] for k in joints], axis=-1)[..., None, :]

    screws = clearance_screw(*(of(name, LATER) for name in ("ξ", "β", "Δr", "H")))
    joint = PlayRCCC(Dual(of("α", JOINTS), of("a", JOINTS)), of("R", JOINTS), screws)
    at, rates = (value[..., 3] for value in joint.motion(TURN, SPEED))
    ideal = RCCC.cardan(np.radians(135)).coordinates(TURN).real[:, 3]
    off = np.remainder(at.real - ideal + np.pi, 2 * np.pi) - np.pi
    return dict(zip(OUTPUTS, (np.degrees(off), at.dual, rates.real, rates.dual), strict=True))


def diagram() -> Diagram:
    d = Diagram("ideal joint", step=np.radians(5) / SPEED / 10)
    joint = mechanisms.cardan(np.radians(45), SPEED)
    d.add(joint.block(outputs=["output_shaft.speed"]), "joint")
    return d


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    study = tolerance_study(measure, variables(), 4000, vectorized=True, directions=200)
    shaft = simulate(diagram(), until=2 * np.pi / SPEED)["joint.output_shaft.speed"]
    print(f"without play the output turns at {shaft.min():.4f} to {shaft.max():.4f} rad/s")
    figure, axes = plt.subplots(2, 2, figsize=(12, 8), layout="constrained")
    for axis, (name, unit) in zip(axes.ravel(), OUTPUTS.items(), strict=True):
        found = study[name]
        for values, label, style in (
            (found.deviation, "σ of 4000 random sets", "C0-"),
            (found.root_sum_square / 6, "root-sum-square / 6", "C1--"),
            (found.worst_case / 6, "worst case / 6", "C2-"),
        ):
            axis.plot(np.degrees(TURN), values, style, label=label)
        axis.set(xlabel="angle of the input in degrees", ylabel=f"scatter of {name}, {unit}")
        axis.set(xticks=range(0, 361, 90), ylim=(0, 1.3 * found.worst_case.max() / 6))
        axis.grid(alpha=0.3)
        axis.legend(loc="upper center", ncols=2)
    figure.savefig("cardan_play.png", dpi=110)


if __name__ == "__main__":
    main()
