"""Films as forces, with squeeze, against films as constraints, without, as the load varies more.

A light disc turns at 300 rad/s in a short bearing under 50 N (1 + a sin Ω t). The force element
squeezes its film and moves through it; the constraint puts the journal where the steady film would
carry the load of the moment. Printed is how far apart the two are at most within a period, as a
part of the clearance; `--plot FILE` draws it, with the orbits of some.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

from biella import Diagram, simulate
from biella.blocks import ShortBearing
from biella.blocks.multibody import System

SIZE = {"radius": 0.02, "length": 0.01, "clearance": 4e-5, "viscosity": 0.01}
SPEED, LOAD, TICKS = 300.0, 50.0, 1000
PARTS = (0.1, 0.3, 0.6, 0.9)
RATES = tuple(SPEED * 10.0**k for k in np.arange(-3.0, 0.6, 0.5))
SHOWN, SHOWN_RATES = 0.6, RATES[4:7]

Array = npt.NDArray[np.float64]


def orbit(part: float, rate: float, coupling: str) -> Array:
    """Return the second period of the journal's path, in clearances."""
    squeeze = coupling == "force"
    film = ShortBearing(**SIZE, squeeze=squeeze, friction="none")
    s = System("varied", (0.0, 0.0), planar=True)
    at = film.equilibrium((0.0, -LOAD), SPEED).position
    disc = s.body("disc", mass=0.01, inertia=0.01, position=at, angular_velocity=SPEED)
    journal = disc.marker("journal")
    s.force("load", journal, (0.0, f"-{LOAD} * (1 + {part} * sin({rate} * t))"))
    s.bearing("film", journal, s.ground.marker("bush"), film, coupling=coupling)
    period = 2 * np.pi / rate
    turns = 2 + int(rate / 30.0)  # the start dies away in some turns of the shaft
    d = Diagram(coupling, step=period / TICKS)
    own = {"mode": "internal", "integrator": "implicit"} if squeeze else {}
    d.add(s.block(outputs=["film.offset"], **own), name="plant")
    path: Array = simulate(d, turns * period)["plant.film.offset"][-TICKS - 1 :]
    return path / SIZE["clearance"]


def apart(part: float, rate: float) -> float:
    """Return the largest distance between the two, in clearances."""
    pushed, held = (orbit(part, rate, coupling) for coupling in ("force", "constraint"))
    return float(np.linalg.norm(pushed - held, axis=1).max())


def draw(table: dict[float, list[float]], path: Path) -> None:
    """Draw the table, and orbits of `SHOWN`."""
    import matplotlib.pyplot as plt

    plt.style.use("seaborn-v0_8-colorblind")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for part, distances in table.items():
        left.loglog(np.array(RATES) / SPEED, distances, "o-", label=f"load varies by ±{part:.0%}")
    left.set(xlabel="Ω / speed of the shaft", ylabel="apart, in clearances")
    left.grid(alpha=0.3)
    left.legend()
    around = np.linspace(0.0, 2.0 * np.pi, 200)
    right.plot(np.cos(around), np.sin(around), "k", lw=1, label="clearance")
    for rate in SHOWN_RATES:
        label = f"force, Ω = {rate / SPEED:.2g} of the speed"
        right.plot(*orbit(SHOWN, rate, "force").T, label=label)
    right.plot(*orbit(SHOWN, RATES[0], "constraint").T, "k--", label="constraint, any Ω")
    right.set(aspect="equal", xlim=(-0.1, 1.05), ylim=(-1.05, 0.1), title=f"load ±{SHOWN:.0%}")
    right.set(xlabel="x / clearance", ylabel="y / clearance")
    right.legend(loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(path, dpi=120)


def main() -> None:
    """Print the table; see the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    print("apart, in clearances\n\nΩ / speed" + "".join(f"{f'±{part:.0%}':>10}" for part in PARTS))
    table: dict[float, list[float]] = {part: [] for part in PARTS}
    for rate in RATES:
        for part in PARTS:
            table[part].append(apart(part, rate))
        row = "".join(f"{table[part][-1]:10.2g}" for part in PARTS)
        print(f"{rate / SPEED:9.3g}{row}")
    if arguments.plot:
        draw(table, arguments.plot)


if __name__ == "__main__":
    main()
