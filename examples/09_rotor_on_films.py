"""Vita's unbalanced rotor on two lubricated bearings, in space: orbits of its mass and journals.

Data are those of the thesis (tables 4.2-4.3). Its moments of inertia, (0.01, 0.01, 0.3) kg m², are
those of no body: the library says so, and keeps them only when told to. What the thesis leaves
open, and we chose: the rotor starts centered and turning at 100 rad/s, films have no friction, so
that the speed stays, the unbalance points along x, and 0.5 s are run in steps of 0.1 ms. The
distances of 0.2 and 0.1 m lead to the lower ends of the bearings, as its equations have it.
"""

import matplotlib.pyplot as plt
import numpy as np

from biella import Diagram, DiagramError, simulate
from biella.blocks import MisalignedShortBearing
from biella.blocks.multibody import System

SPEED, OFF, CLEARANCE, LENGTH = 100.0, 1e-3, 3e-4, 0.02  # rad/s, m
PRINTED, POSSIBLE = (0.01, 0.01, 0.3), (0.01, 0.01, 0.02)  # kg m²
ENDS = {"a": -0.2, "b": 0.1}  # m


def system(inertia=PRINTED, keep=True) -> System:
    """Return the rotor, along z, which one equation keeps in its place."""
    s = System("rotor", gravity=(0, 0, 0))
    body = s.body("rotor", mass=1.0, inertia=inertia, com=(OFF, 0, 0),
                  angular_velocity=(0, 0, SPEED), allow_nonphysical=keep)  # fmt: skip
    body.marker("center", (OFF, 0, 0))
    s.in_plane("axial", s.ground, body, at=(0, 0, 0), axis=(0, 0, 1))
    for name, end in ENDS.items():
        middle = (0, 0, end + LENGTH / 2)
        film = MisalignedShortBearing(0.02, LENGTH, CLEARANCE, 0.0242, friction="none")
        s.bearing(f"film {name}", body.marker(name, middle), s.ground.marker(name, middle), film)
    return s


def diagram(inertia=PRINTED) -> Diagram:
    d = Diagram("rotor", step=1e-4)
    shown = ["rotor.center.position", *(f"film {name}.offset" for name in ENDS)]
    d.add(system(inertia).block(outputs=shown), name="plant")
    return d


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    try:
        system(keep=False)
    except DiagramError as error:
        print(f"{error}\nIt is kept, to see what the thesis saw.")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
    around = np.exp(1j * np.linspace(0, 2 * np.pi, 200))
    left.plot(around.real, around.imag, "k--", lw=1, label="an ideal shaft: radius e")
    right.plot(around.real, around.imag, "k", lw=1, label="clearance")
    for inertia, styles in ((PRINTED, ("C0", "C2")), (POSSIBLE, ("C0:", "C2:"))):
        run = simulate(diagram(inertia), 0.5)
        turn = slice(-round(2 * np.pi / SPEED / 1e-4), None)
        mass = run["plant.rotor.center.position"][:, :2] / OFF
        radius = np.linalg.norm(mass[turn], axis=1)
        text = [f"I₃ = {inertia[2]} kg m²: mass on a circle of {radius.mean():.3f} e"]
        if inertia == PRINTED:
            left.plot(*mass.T, "C0", lw=0.8, label="center of mass")
        for name, style in zip(ENDS, styles, strict=True):
            offset = run[f"plant.film {name}.offset"] / CLEARANCE
            radius = np.linalg.norm(offset[turn], axis=1)
            text.append(f"{name} of {radius.mean():.3f} clearances (± {np.ptp(radius) / 2:.0e})")
            if inertia == PRINTED:
                right.plot(*offset.T, style, lw=0.6)
            right.plot(*offset[turn].T, style, lw=2, label=f"journal {name}, I₃ = {inertia[2]}")
        print(", ".join(text))
    left.set(aspect="equal", xlabel="x / e", ylabel="y / e", title="center of mass")
    right.set(aspect="equal", xlabel="x / clearance", ylabel="y / clearance", title="journals")
    right.locator_params(nbins=5)
    left.legend(loc="center"), right.legend(loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig("rotor_on_films.png", dpi=120)


if __name__ == "__main__":
    main()
