"""Oil whirl: a rigid rotor on two short bearings, run up through the speed where its film gives in.

Below the threshold the rotor follows its unbalance, once a turn. Above it the oil carries the
journal around at about half the speed of the shaft, almost as wide as the clearance allows. The
threshold found from runs at constant speed is compared with that of the linearized film.

The run-up is sensitive: whirl grows out of the smallest deviations, so that its phase depends on
the step, and the thinnest film of the run with it. The width of the orbit agrees within 2 %.
"""

import matplotlib.pyplot as plt
import numpy as np

from biella import Diagram, simulate
from biella.blocks import ShortBearing
from biella.blocks.multibody import System

MASS, WEIGHT, CLEARANCE = 10.0, 98.1, 4e-5  # kg, N, m
SIZE = {"radius": 0.02, "length": 0.01, "clearance": CLEARANCE, "viscosity": 0.01}
HALF = (0.0, -WEIGHT / 2)  # what each bearing carries
THRESHOLD = ShortBearing(**SIZE).threshold_speed(MASS / 2, HALF)  # rad/s
STEP = 1e-5  # s


def diagram(start=0.7, end=1.3, time=6.0, unbalance=1e-6, nudge=0.0) -> Diagram:
    """Return a rotor whose coupling takes it from one part of the threshold to another."""
    s = System("rotor", gravity=(0.0, -WEIGHT / MASS), planar=True)
    first, last = start * THRESHOLD, end * THRESHOLD
    at = ShortBearing(**SIZE).equilibrium(HALF, first).position + np.array([nudge, 0.0])
    spin = {"inertia": 0.02, "angular_velocity": first}
    disc = s.body("disc", mass=MASS, com=(unbalance, 0.0), position=at, **spin)
    motor = s.body("motor", mass=1.0, **spin)
    s.revolute("shaft", s.ground, motor, at=(0.0, 0.0))
    s.driver("drive", s["shaft"], f"{first}*t + {(last - first) / time / 2}*t**2")
    journal, bush = disc.marker("journal"), s.ground.marker("bush")
    soft = {"stiffness": (0, 0, 200.0), "damping": (0, 0, 1.0)}
    s.bushing("coupling", motor.marker("flange"), journal, **soft)
    for side in ("left", "right"):
        s.bearing(side, journal, bush, ShortBearing(**SIZE))
    d = Diagram("run-up", step=STEP)
    d.add(s.block(outputs=["left.offset", "left.film", "disc.angular_velocity"]), name="plant")
    return d


def growth(part: float) -> float:
    """Return how fast a small whirl grows at a constant speed, in 1/s."""
    run = simulate(diagram(part, part, unbalance=0.0, nudge=1e-4 * CLEARANCE), 0.9)
    rest = ShortBearing(**SIZE).equilibrium(HALF, part * THRESHOLD).position
    away = np.linalg.norm(run["plant.left.offset"] - rest, axis=1)
    _, early, late = (third.max() for third in np.array_split(away, 3))
    return float(np.log(late / early) / 0.3)


def main() -> None:
    slow, fast = growth(0.98), growth(1.02)
    onset = THRESHOLD * (0.98 - 0.04 * slow / (fast - slow))
    print(f"whirl starts at {onset:.1f} rad/s in time, {THRESHOLD:.1f} by the linear film")
    run = simulate(diagram(), 6.0, every=4)
    print(f"thinnest film {run['plant.left.film'].min() * 1e6:.1f} µm of {CLEARANCE * 1e6:.0f} µm")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    x, y, turning = "plant.left.offset[0]", "plant.left.offset[1]", "plant.disc.angular_velocity[2]"
    waterfall = run.waterfall(x, speed=turning, resolution=4.0, overlap=0.8)
    waterfall.plot(orders=(1, 0.5), highest=300.0, axes=left)
    left.axvline(THRESHOLD * 30 / np.pi, color="w", ls=":", lw=1.5)
    left.set_title("offset along x; dotted: the threshold")
    for part in (0.9, 1.2):
        at = float(run.t[np.argmax(run[turning] > part * THRESHOLD)])
        orbit = run.orbit(x, y, start=at, stop=at + 0.05)
        orbit.plot(clearance=CLEARANCE, label=f"at {part} of the threshold", axes=right)
    right.set(xlabel="x [m]", ylabel="y [m]", title="orbits")
    figure.savefig("oil_whirl.png", dpi=120)


if __name__ == "__main__":
    main()
