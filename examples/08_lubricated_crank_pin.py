"""Vita's slider-crank with a lubricated crank pin: three couplings of its film, and an ideal pin.

The film pushes as a force inside the mechanism; it is a block, wired to a plant and iterated with
it; or two equations hold the journal where the steady film would carry their multipliers. Data, and
what the source leaves open and was chosen: `biella.blocks.multibody.mechanisms.crank_pin`.
"""

import matplotlib.pyplot as plt
import numpy as np

from biella import Diagram, simulate
from biella.blocks import Demux, Selector, Sum
from biella.blocks.multibody.mechanisms import crank_pin, crank_pin_film

SPEED, TURN, STEP, CLEARANCE = 200 * np.pi, 0.01, 5e-6, 0.254e-4  # rad/s, s, s, m
OWN = {"mode": "internal", "integrator": "implicit"}  # RK4 would require steps of 0.1 µs
SHOWN = ["rod.position", "rod.acceleration", "crank.pin.position", "rod.big.position"]
MOTION = ["crank.pin.velocity", "rod.big.velocity", "rod.angular_velocity", "main.speed"]


def diagram(pin: str = "force") -> Diagram:
    """Return the mechanism with a pin that is ideal, or a film by force or constraint."""
    d = Diagram(pin, step=STEP)
    how = OWN if pin == "force" else {}
    d.add(crank_pin(pin, speed=SPEED).block(outputs=SHOWN, **how), name="plant")
    return d


def wired() -> Diagram:
    """Return the same with the film as a block, iterated with the mechanism."""
    d = Diagram("block", step=STEP)
    s = crank_pin("open", speed=SPEED)
    plant, film = d.add(s.block(outputs=SHOWN + MOTION, **OWN), name="plant"), crank_pin_film()
    d.add(film, name="film")
    d.couple(plant, method="newton")  # an explicit exchange would have to be 100 times as fast
    for what in ("position", "velocity"):
        apart, plane = d.add(Sum("-+"), name=what), d.add(Selector([0, 1]), name=f"{what} x y")
        d.connect(plant[f"crank.pin.{what}"], apart["u1"])
        d.connect(plant[f"rod.big.{what}"], apart["u2"])
        d.connect(apart, plane)
        d.connect(plane, film[what])
    spin, parts = d.add(Selector([2]), name="spin"), d.add(Demux(2), name="parts")
    d.connect(plant["rod.angular_velocity"], spin)
    d.connect(spin, film["journal_speed"])
    d.connect(plant["main.speed"], film["bush_speed"])
    d.connect(film["force"], parts)
    d.connect(parts["y1"], plant["push.force.x"])
    d.connect(parts["y2"], plant["push.force.y"])
    d.connect(film["torque"], plant["brake.torque"])
    return d


def main() -> None:
    plt.style.use("seaborn-v0_8-colorblind")
    ideal = simulate(diagram("ideal"), 12 * TURN)
    films = {"force": diagram(), "block": wired(), "constraint": diagram("constraint")}
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
    turn = round(TURN / STEP)
    for (name, d), style in zip(films.items(), ("C0", "C2:", "C1--"), strict=True):
        run = simulate(d, 12 * TURN)
        away = (run["plant.rod.big.position"] - run["plant.crank.pin.position"]) / CLEARANCE
        orbit = (away[:, 0] + 1j * away[:, 1]) * np.exp(-1j * SPEED * run.t)  # axes of the crank
        if name == "force":
            left.plot(orbit.real, orbit.imag, "0.7", lw=0.7, label="from the start")
        left.plot(orbit.real[-turn:], orbit.imag[-turn:], style, lw=2, label=name)
        path, pull = ((run[f"plant.rod.{what}"] - ideal[f"plant.rod.{what}"])[-turn:, :2]
                      for what in ("position", "acceleration"))  # fmt: skip
        angle = np.degrees(SPEED * TURN) * np.arange(turn) / turn
        right.plot(angle, np.linalg.norm(pull, axis=1), style, label=name)
        print(f"{name:10}  rod {abs(path).max() * 1e6:.1f} µm off the ideal path; orbit repeats to "
              f"{abs(orbit[-1] - orbit[-1 - turn]):.0e} of the clearance")  # fmt: skip
    left.set(aspect="equal", xlabel="along the crank / clearance", ylabel="across / clearance")
    right.set(xlabel="crank angle in °", ylabel="acceleration off the ideal one in m/s²")
    left.locator_params(nbins=6)
    left.legend(), right.legend()
    figure.savefig("lubricated_crank_pin.png", dpi=120)


if __name__ == "__main__":
    main()
