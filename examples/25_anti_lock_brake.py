"""Anti-lock brake: a state machine applies and releases the brake of a wheel at located slips.

A quarter of a car brakes on wet asphalt from 30 m/s to 3 m/s, with and without anti-lock logic. The
tire is Burckhardt's, μ = c₁ (1 - exp(-c₂ s)) - c₃ s, with the constants in Kiencke and Nielsen,
Automotive Control Systems. Its best slip is 0.13; a locked wheel has a third less friction. The
logic crosses that slip again and again; its thresholds are located within the tick.
"""

import matplotlib.pyplot as plt
import numpy as np

from biella import Diagram, simulate
from biella.blocks import Compare, Expression, Integrator, StateMachine, Stop

MASS, INERTIA, RADIUS, G = 400.0, 1.0, 0.3, 9.81  # kg, kg m², m, m/s²
C1, C2, C3 = 0.857, 33.822, 0.347  # wet asphalt
RATE, HARDEST = 8e3, 1.5e3  # N m/s, N m: of the brake torque
FROM, TO = 30.0, 3.0  # m/s


def logic(is_on: bool) -> StateMachine:
    m = StateMachine(
        inputs=["slip", "torque"],
        outputs={"rate": "N.m/s"},
        parameters={"is_on": is_on, "high": 0.2, "low": 0.1},
        continuous=True,
    )
    brake, full = m.state("apply", rate=RATE), m.state("full", rate=0)
    release, hold = m.state("release", rate=-RATE), m.state("hold", rate=0)
    m.transition(brake, release, when="slip > high and is_on", priority=1)
    m.transition(brake, full, when=f"torque > {HARDEST}", priority=2)
    m.transition(release, hold, when="slip < high")
    m.transition(hold, brake, when="slip < low", priority=1)
    m.transition(hold, release, when="slip > 1.2*high", after=0.02, priority=2)
    return m


def diagram(is_on: bool = True, step: float = 2e-3) -> Diagram:
    d = Diagram("anti-lock brake", step=step, solver="dopri5", tolerance=1e-8)
    v, place = d.add(Integrator(FROM), "v"), d.add(Integrator(0.0), "place")
    wheel = d.add(Integrator(FROM / RADIUS, limits=(0.0, np.inf)), "wheel")
    torque = d.add(Integrator(0.0, limits=(0.0, np.inf)), "torque")
    slip = d.add(Expression(f"1 - w*{RADIUS}/v"), "slip", w=wheel, v=v)
    machine = d.add(logic(is_on), "logic", slip=slip, torque=torque)
    grip = d.add(Expression(f"{C1}*(1 - exp(-{C2}*s)) - {C3}*s"), "grip", s=slip)
    slowing = d.add(Expression(f"-{G}*grip"), "slowing", grip=grip)
    spin = Expression(f"({MASS * G * RADIUS}*grip - torque)/{INERTIA}")
    d.connect(machine["rate"], torque)
    d.connect(slowing, v)
    d.connect(v, place)
    d.connect(d.add(spin, "spin", grip=grip, torque=torque), wheel)
    d.add(Stop(), "stop", condition=d.add(Compare("<", TO), "slow", u=v))
    return d


def main() -> None:
    runs = {"with": simulate(diagram(True), 20.0), "without": simulate(diagram(False), 20.0)}
    figure, axes = plt.subplots(3, 1, sharex=True, figsize=(8, 7.5), layout="constrained")
    for (name, run), color in zip(runs.items(), ("#0072B2", "#D55E00"), strict=True):
        label = f"{name} anti-lock: {run['place'][-1]:.1f} m"
        axes[0].plot(run.t, run["v"], color=color, label=label)
        axes[0].plot(run.t, RADIUS * run["wheel"], color=color, lw=0.8, ls="--")
        axes[1].plot(run.t, run["slip"], color=color, lw=1)
    axes[0].set(ylabel="car, wheel (dashed), m/s")
    axes[0].legend()
    axes[1].set(ylabel="slip")
    axes[2].plot(runs["with"].t, runs["with"]["logic.state"], drawstyle="steps-post")
    axes[2].set_yticks([1, 2, 3, 4], ["apply", "full", "release", "hold"])
    axes[2].set(ylabel="with anti-lock", xlabel="time, s")
    figure.savefig("anti_lock_brake.png", dpi=120)
    logic(True).draw("anti_lock_logic.svg")


if __name__ == "__main__":
    main()
