"""A journal's orbit as a data-acquisition system sees it, and its orders.

Two eddy-current probes watch a journal while its rotor runs up. Their volts pass an anti-alias
filter and a 16-bit card that scans one channel after the other. From its samples the orbit is drawn
and its orders are tracked: the unbalance, once a turn, then the whirl of the oil at half of that.

The run-up is sensitive: whirl grows out of the smallest deviations, and rounding decides which of
its two phases. Its error is not estimated; with half the step its orders agree within 1 %.
"""

import matplotlib.pyplot as plt
import numpy as np

from biella import Diagram, simulate
from biella.blocks import AntiAliasFilter, Gain, ProximityPair, Scaling, ScanList, ShortBearing
from biella.blocks.multibody import System
from biella.blocks.sensors.presets import PROXIMITY_PROBE as PROBE

MASS, CLEARANCE = 10.0, 4e-5  # kg, m
SIZE = {"radius": 0.02, "length": 0.01, "clearance": CLEARANCE, "viscosity": 0.01}
WEIGHT = (0.0, -9.81 * MASS / 2)  # N, on each bearing
THRESHOLD = ShortBearing(**SIZE).threshold_speed(MASS / 2, WEIGHT)  # rad/s
STEP, SCAN, TIME = 4e-5, 2e-4, 5.0  # s
PROBES = np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2)  # from x and y to the two directions
GAP, AWAY = 1e-3, np.linspace(-1e-4, 1e-4, 5)  # m, from probe to shaft, and where it is calibrated
PART = (GAP + AWAY) / PROBE.full_scale
VOLTS = PROBE.gain * PROBE.full_scale * (PART + np.polyval(PROBE.curve, PART))  # the calibration


def rotor() -> System:
    """Return a rotor with an unbalance, on two bearings, that a motor speeds up evenly."""
    s = System("rotor", gravity=(0.0, -9.81), planar=True)
    first, last = 0.7 * THRESHOLD, 1.25 * THRESHOLD
    at = ShortBearing(**SIZE).equilibrium(WEIGHT, first).position
    spin = {"inertia": 0.02, "angular_velocity": first}
    disc = s.body("disc", mass=MASS, com=(2e-6, 0.0), position=at, **spin)
    motor = s.body("motor", mass=1.0, **spin)
    s.revolute("shaft", s.ground, motor, at=(0.0, 0.0))
    s.driver("drive", s["shaft"], f"{first}*t + {(last - first) / TIME / 2}*t**2")
    journal, bush = disc.marker("journal"), s.ground.marker("bush")
    soft = {"stiffness": (0, 0, 200.0), "damping": (0, 0, 1.0)}
    s.bushing("coupling", motor.marker("flange"), journal, **soft)
    for side in ("left", "right"):
        s.bearing(side, journal, bush, ShortBearing(**SIZE))
    return s


def diagram() -> Diagram:
    d = Diagram("journal orbit", step=STEP)
    plant = d.add(rotor().block(outputs=["left.offset", "shaft.angle"]), name="rotor")
    probes = d.add(ProximityPair(PROBE, GAP, radius=0.02, seed=1), name="probes")
    filter_ = d.add(AntiAliasFilter(1000.0, 4), name="filter")
    card = d.add(ScanList(2, SCAN, skew=2.5e-5, bits=16), name="card")
    meters = d.add(Scaling(readings=VOLTS, values=-AWAY, unit="m"), name="meters")
    seen = d.add(Gain(PROBES.T, unit="m"), name="seen")
    d.chain(plant["left.offset"], probes["position"], filter_, card, meters, seen)
    return d


def main() -> None:
    run = simulate(diagram(), TIME, error_estimate=False)
    shaft = {"angle": "rotor.shaft.angle", "period": SCAN}
    orders = run.orders("seen[0]", **shaft, highest=3, turns=12)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    orders.plot(floor=1e-3, axes=left)
    left.set_title("orders of the horizontal motion")
    for part, place in ((0.85, "below"), (1.2, "above")):
        at = TIME * (part - 0.7) / 0.55
        orbit = run.orbit("seen[0]", "seen[1]", **shaft, start=at, stop=at + 0.08)
        orbit.plot(axes=right, label=f"{place} the threshold", clearance=CLEARANCE)
        most = np.abs(orders.amplitudes[np.abs(orders.times - at).argmin()]).argmax()
        print(f"{place} the threshold: mostly order {orders.orders[most]:.2f}")
    right.set(title="orbit, with a mark once a turn", xlabel="x [m]", ylabel="y [m]")
    late = np.abs(run["seen"] - run["rotor.left.offset"])[len(run.t) // 2 :].max()
    print(f"filter, scan and hold: {late * 1e6:.1f} µm from where the journal is by then")
    figure.savefig("journal_orbit.png", dpi=120)


if __name__ == "__main__":
    main()
