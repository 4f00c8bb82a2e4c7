"""An inverted pendulum on a cart, held upright by LQG: a Kalman filter and a state feedback.

Both are designed for the mechanism as linearised upright. Only the cart's place and the rod's angle
are measured, with noise, every 5 ms. At 1 s the cart is sent 0.4 m along, at 5 s the rod is pushed.
"""

import matplotlib.pyplot as plt
import numpy as np

from biella import Diagram, linearize, simulate
from biella.blocks import KalmanFilter, Mux, Noise, Pulse, Selector, StateFeedback, Step, Sum
from biella.blocks.control import add_integral, dlqr
from biella.blocks.multibody import System

PERIOD, FORCE = 5e-3, 10.0  # s, N
SPREAD = np.array([2e-3, 5e-3])  # of the sensors: m, rad
DRIVEN, MEASURED = ["motor.force", "push.torque"], ["rail.displacement", "hinge.angle"]


def add_plant(d: Diagram) -> None:
    s = System("pendulum on a cart", gravity=(0.0, -9.81), planar=True)
    cart = s.body("cart", mass=1.0, inertia=0.01)
    rod = s.body("rod", mass=0.3, inertia=0.01, position=(0.0, 0.3))
    s.force("motor", s.prismatic("rail", s.ground, cart, at=(0, 0), axis=(1, 0)), 0.0)
    s.torque("push", s.revolute("hinge", cart, rod, at=(0, 0)), 0.0)
    d.add(s.block(DRIVEN, [*MEASURED, "hinge.speed"]), name="plant")


def design() -> dict[str, KalmanFilter | StateFeedback]:
    d = Diagram("upright", step=1e-3)
    add_plant(d)
    for name, unit in zip(DRIVEN, ("N", "N.m"), strict=True):
        d.connect(d.input(name.replace(".", " "), unit=unit), f"plant.{name}")
    model = linearize(d, outputs=[f"plant.{name}" for name in MEASURED], period=PERIOD)
    A, B, C = model.A, model.B[:, :1], model.C
    # Both forces are uncertain: the motor's by 0.5 N, that of people by 0.1 N m.
    noise = {"Q": [0.25, 0.01], "R": SPREAD**2, "G": model.B}
    K = dlqr(*add_integral(A, B, C[:1], PERIOD), [20, 20, 1, 1, 60], 0.02).K
    feedback = StateFeedback(K[:, :4], K[:, 4:], limits=(-FORCE, FORCE), unit="N", period=PERIOD)
    return {"filter": KalmanFilter(A, B, C, **noise, period=PERIOD), "motor": feedback}


def diagram() -> Diagram:
    d = Diagram("inverted pendulum", step=1e-3)
    add_plant(d)
    for name, block in (design() | {
        "places": Mux(2), "noise": Noise(SPREAD, seed=1), "measured": Sum("++", period=PERIOD),
        "cart": Selector([0]), "wanted": Step(at=1.0, to=0.4),
        "push": Pulse(100.0, duty=1e-3, amplitude=0.4, delay=5.0, unit="N.m"),
    }).items():  # fmt: skip
        d.add(block, name=name)
    for source, *targets in (
        ("plant.rail.displacement", "places.u1"), ("plant.hinge.angle", "places.u2"),
        ("places", "measured.u1"), ("noise", "measured.u2"),
        ("measured", "filter.measurement", "cart"), ("cart", "motor.measurement"),
        ("filter.state", "motor.state"), ("wanted", "motor.reference"),
        ("motor", "filter.control", "plant.motor.force"), ("push", "plant.push.torque"),
    ):  # fmt: skip
        d.connect(source, *targets)
    return d


def main() -> None:
    run = simulate(diagram(), 10.0, record=["*"])
    figure, axes = plt.subplots(4, 1, sharex=True, figsize=(8, 8), layout="constrained")
    axes[0].plot(run.t, run["wanted"], "k:", label="wanted")
    for k, name, state in ((0, MEASURED[0], 0), (1, MEASURED[1], 1), (2, "hinge.speed", 3)):
        if k < 2:
            axes[k].plot(run.t, run["measured"][:, k], ".", color="0.6", ms=2, label="measured")
        axes[k].plot(run.t, run["filter.state"][:, state], lw=3, alpha=0.4, label="estimated")
        axes[k].plot(run.t, run[f"plant.{name}"], "C1", lw=1, label="true")
    axes[3].plot(run.t, run["motor"], lw=1, label=f"at most {FORCE:g}")
    for ax, label in zip(axes, ("cart, m", "rod, rad", "rod, rad/s", "motor, N"), strict=True):
        ax.set(ylabel=label, xlabel="t, s" if ax is axes[3] else "")
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), markerscale=3)
    figure.savefig("inverted_pendulum.png", dpi=120)


if __name__ == "__main__":
    main()
