"""An inverted pendulum on a cart, held upright by LQG: a Kalman filter and a state feedback.

Both are designed for the mechanism as linearized upright. Only the cart's place and the rod's angle
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


def pendulum() -> System:
    s = System("pendulum on a cart", gravity=(0.0, -9.81), planar=True)
    cart = s.body("cart", mass=1.0, inertia=0.01)
    rod = s.body("rod", mass=0.3, inertia=0.01, position=(0.0, 0.3))
    s.force("motor", s.prismatic("rail", s.ground, cart, at=(0, 0), axis=(1, 0)), 0.0)
    s.torque("push", s.revolute("hinge", cart, rod, at=(0, 0)), 0.0)
    return s


def design() -> tuple[KalmanFilter, StateFeedback]:
    d = Diagram("upright", step=1e-3)
    forces = {"motor.force": d.input("motor", unit="N"), "push.torque": d.input("push", unit="N.m")}
    d.add(pendulum().block(DRIVEN, MEASURED), "plant", inputs=forces)
    model = linearize(d, outputs=[f"plant.{name}" for name in MEASURED], period=PERIOD)
    A, B, C = model.A, model.B[:, :1], model.C
    # Both forces are uncertain: the motor's by 0.5 N, that of people by 0.1 N m.
    noise = {"Q": [0.25, 0.01], "R": SPREAD**2, "G": model.B}
    K = dlqr(*add_integral(A, B, C[:1], PERIOD), [20, 20, 1, 1, 60], 0.02).K
    feedback = StateFeedback(K[:, :4], K[:, 4:], limits=(-FORCE, FORCE), unit="N")
    return KalmanFilter(A, B, C, **noise, period=PERIOD), feedback


def diagram() -> Diagram:
    d = Diagram("inverted pendulum", step=1e-3)
    observer, feedback = design()
    plant = d.add(pendulum().block(DRIVEN, [*MEASURED, "hinge.speed"]), "plant")
    # Only places are measured, each with its own noise.
    places = d.add(Mux(2), "places", u1=plant["rail.displacement"], u2=plant["hinge.angle"])
    noise = d.add(Noise(SPREAD, seed=1), "noise")
    measured = d.add(Sum("++"), "measured", u1=places, u2=noise, period=PERIOD)
    cart = d.add(Selector([0]), "cart", u=measured)
    wanted = d.add(Step(at=1.0, to=0.4), "wanted")
    d.add(observer, "filter", measurement=measured)
    state = observer["state"]
    d.add(feedback, "motor", state=state, reference=wanted, measurement=cart, period=PERIOD)
    d.connect(feedback, observer["control"], plant["motor.force"])
    push = d.add(Pulse(100.0, duty=1e-3, amplitude=0.4, delay=5.0, unit="N.m"), "push")
    d.connect(push, plant["push.torque"])
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
