"""A McPherson suspension on a rough road: what the wheel does, what the body feels.

Five bodies and seven joints in space; the road moves up and down by 30 mm at 2.5 Hz. Travel
of the damper and reactions of the joints are outputs of the same block.
"""

import matplotlib.pyplot as plt
import numpy as np

from biella import Diagram, simulate
from biella.blocks.multibody.mechanisms import mcpherson

OUTPUTS = ["wheel.position", "damper_rod.displacement", "top_ball.force"]
OUTPUTS += ["ball_joint.force", "closure"]


def diagram() -> Diagram:
    d = Diagram("McPherson suspension", step=1e-3)
    d.add(mcpherson().block(outputs=OUTPUTS), name="car")
    return d


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    print(mcpherson().report())
    run = simulate(diagram(), until=3.0)
    print(f"largest closure error: {run['car.closure'].max():.1e} m")
    start = run["car.wheel.position"][0, 2]
    figure, axes = plt.subplots(3, 1, sharex=True, figsize=(8, 7), layout="constrained")
    axes[0].plot(run.t, 1e3 * (run["car.wheel.position"][:, 2] - start))
    axes[0].set(ylabel="wheel, mm", title="McPherson suspension, road ±30 mm at 2.5 Hz")
    axes[1].plot(run.t, 1e3 * run["car.damper_rod.displacement"])
    axes[1].set(ylabel="damper rod, mm")
    for name, joint in (("top mount", "top_ball"), ("ball joint of the arm", "ball_joint")):
        size = np.linalg.norm(run[f"car.{joint}.force"], axis=1)
        axes[2].plot(run.t, 1e-3 * size, label=name)
    axes[2].set(ylabel="forces in joints, kN", xlabel="t, s")
    axes[2].set_ylim(0.0, 5.5)  # the first instants, when the road jumps to its speed, go higher
    axes[2].legend(loc="upper right", ncols=2)
    for ax in axes:
        ax.grid(alpha=0.3)
    figure.savefig("suspension.png", dpi=120)


if __name__ == "__main__":
    main()
