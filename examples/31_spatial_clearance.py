"""A lever on a pin with play: the pin tilts in its bore, touches it crosswise, and slips on it.

The load is beside the bore and swings the lever to and fro. Seen from the end of the bore the two
ends of the pin lie on opposite sides of their clearance; the tilt reaches the limit that
L sin τ + 2 r cos τ = 2 R sets for rigid surfaces.
"""

import matplotlib.pyplot as plt
import numpy as np

from biella import Diagram, simulate
from biella.blocks.multibody import Bore, Cylinder, HuntCrossley, System, contact_statistics

RADIUS, PLAY, LENGTH, BORE = 0.010, 1e-4, 0.030, 0.060
LAW = HuntCrossley(stiffness=5e9, damping=1.0, friction=0.08)
ENDS = {"near": 0.5 * LENGTH, "far": -0.5 * LENGTH}


def diagram() -> Diagram:
    """Return the lever; its weight hangs 40 mm below the pin and 20 mm beside its middle."""
    s = System("lever", gravity=(0, -9.81, 0))
    lever = s.body("lever", mass=1.0, inertia=(2e-3, 2e-3, 2e-3), position=(0.03, -0.03, 0.02),
                   free=True)  # fmt: skip
    middle = np.array([-0.03, 0.03, -0.02])
    bore = Bore(s.ground.marker("bore"), RADIUS + PLAY, BORE)
    s.contact("pin", Cylinder(lever.marker("pin", middle), RADIUS, LENGTH), bore, law=LAW)
    for name, z in ENDS.items():
        lever.marker(name, middle + np.array([0, 0, z]))
    # Nothing else holds the pin along its axis.
    stop = s.ground.marker("stop", (0, 0, 0)), lever.marker("collar", middle)
    s.spring("collar", *stop, stiffness=2e4, damping=20.0, components="z")
    d = Diagram("lever", step=4e-6)
    outputs = [f"lever.{name}.position" for name in ENDS]
    outputs += [f"pin.{name}" for name in ("tilt", "normal_forces", "contact", "normal_force")]
    outputs += [f"pin.{name}" for name in ("angle", "angle_on_pin", "slip")]
    d.add(s.block(outputs=outputs, mode="internal"), name="plant")
    return d


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    run = simulate(diagram(), 0.4)
    largest = np.arctan2(LENGTH, 2 * RADIUS) - np.arccos(
        2 * (RADIUS + PLAY) / np.hypot(LENGTH, 2 * RADIUS)
    )
    print(contact_statistics(run, "pin"))

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
    around = np.linspace(0, 2 * np.pi, 200)
    left.plot(np.cos(around), np.sin(around), "k", lw=1)
    for name in ENDS:
        place = run[f"plant.lever.{name}.position"] / PLAY
        left.plot(place[:, 0], place[:, 1], lw=0.7, label=f"{name} end")
    left.set(aspect="equal", xlabel="x / clearance", ylabel="y / clearance")
    left.set(title="centers of the pin's ends in the bore")
    left.legend(loc="center")
    middle.plot(run.t, 1e3 * run["plant.pin.tilt"], lw=0.8)
    middle.axhline(1e3 * largest, color="k", ls="--", lw=1, label="largest of rigid surfaces")
    middle.set(xlabel="time, s", ylabel="tilt, mrad", ylim=(0, None))
    middle.legend()
    forces = run["plant.pin.normal_forces"]
    for name, places in (("near", slice(0, 2)), ("far", slice(2, 4))):
        right.plot(run.t, forces[:, places].sum(axis=1), lw=0.8, label=f"{name} end")
    right.set(xlabel="time, s", ylabel="normal force, N", ylim=(0, 100))
    right.legend()
    figure.savefig("spatial_clearance.png", dpi=110)


if __name__ == "__main__":
    main()
