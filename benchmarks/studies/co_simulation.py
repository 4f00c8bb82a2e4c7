"""Couplings of blocks with an internal solver: error against the whole, by method, hold and step.

    python benchmarks/studies/co_simulation.py [--quick] [--fmu] [--plot FILE]

- Two masses with a spring between them, against the closed form. *Displacement/force*: the spring
  belongs to one mass, which gets the place of the other and gives a force. *Force/force*: the
  spring is neither's, both get its force.
- A slider-crank under a sampled speed controller in three parts: a motor with an elastic shaft, the
  mechanism, and a load on a spring. The mechanism gets torque and force, and gives its angle and
  displacement. Against the same three integrated as one (`mode="continuous"`, dopri5).

With ``--fmu`` each part is exported and comes back as an FMU with a quarter of the step inside;
else it is a native block that takes four steps in each.

Printed are the largest relative errors of the states at the end, and the order between the last two
steps.
"""

from __future__ import annotations

import argparse
import atexit
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
from scipy.linalg import expm

from biella import Diagram, Fmu, simulate
from biella.blocks import Expression, Gain, Step, Sum
from biella.blocks.core._block import AbstractBlock
from biella.blocks.core._ports import PortRef
from biella.blocks.multibody import System
from biella.scheduler.compile.coupling._coupling_options import CouplingWarning

METHODS = ("jacobi", "gauss-seidel", "fixed-point", "newton")
Mode = Literal["internal", "continuous", "fmu"]
SUBSTEPS = 4
Measure = Callable[[float, str, int, Mode], float]
Lines = dict[tuple[str, int], tuple[np.ndarray, list[float]]]

MASS, STIFFNESS, DAMPING = (1.0, 2.0), (10.0, 15.0), (0.1, 0.2)
SPRING, DAMPER = 20.0, 0.3
SHAFT, SHAFT_DAMPER = 20.0, 0.02  # N m/rad, N m s/rad
ROD_SPRING, ROD_DAMPER = 2000.0, 5.0  # N/m, N s/m


@cache
def fmu_folder() -> Path:
    folder = TemporaryDirectory(prefix="co-simulation-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def part(
    d: Diagram, name: str, system: System, inputs: list[str], outputs: list[str], mode: Mode
) -> AbstractBlock:
    """Add a mechanism to the diagram, in one of its forms."""
    if mode == "continuous":
        return d.add(system.block(inputs, outputs, mode=mode), name=name)
    if mode == "internal":
        return d.add(system.block(inputs, outputs, mode=mode, substeps=SUBSTEPS), name=name)
    path = fmu_folder() / f"{name}.fmu"
    step = d.step / SUBSTEPS
    system.export_fmu(path, inputs=inputs, outputs=outputs, step=step, sources=False)
    return d.add(Fmu(path, period=d.step), name=name)


def mass(n: int, stiffness: float, damping: float) -> System:
    s = System("mass", (0, 0), planar=True)
    body = s.body("mass", mass=MASS[n], inertia=1.0, velocity=(1.0 - n, 0))
    s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    wall, end = s.ground.marker("wall", (-1, 0)), body.marker("end")
    s.spring("spring", wall, end, stiffness=stiffness, damping=damping, free_length=1.0)
    s.force("push", end, (0.0, 0.0))
    return s


def two_masses(step: float, mode: Mode, shared: bool) -> Diagram:
    """The spring is neither's if it is `shared`, else the first one's."""
    d = Diagram("two masses", step=step)
    own = 0.0 if shared else 1.0
    systems = [
        mass(0, STIFFNESS[0] + own * SPRING, DAMPING[0] + own * DAMPER),
        mass(1, STIFFNESS[1], DAMPING[1]),
    ]
    outputs = ["slide.displacement", "slide.speed"]
    a, b = (
        part(d, name, s, ["push.force.x"], outputs, mode)
        for s, name in zip(systems, ("a", "b"), strict=True)
    )
    first = "k*(x2 - x1) + d*(v2 - v1)" if shared else "k*x2 + d*v2"
    connect_law(d, "on_a", first, SPRING, DAMPER, a["push.force.x"])
    connect_law(d, "on_b", "k*(x1 - x2) + d*(v1 - v2)", SPRING, DAMPER, b["push.force.x"])
    for name in ("on_a", "on_b"):
        for port, block in (("1", a), ("2", b)):
            for letter, output in zip("xv", outputs, strict=True):
                if letter + port in d[name].input_index:
                    d.connect(block[output], d[name][letter + port])
    return d


def exact_two_masses() -> np.ndarray:
    k = np.array([[STIFFNESS[0] + SPRING, -SPRING], [-SPRING, STIFFNESS[1] + SPRING]])
    c = np.array([[DAMPING[0] + DAMPER, -DAMPER], [-DAMPER, DAMPING[1] + DAMPER]])
    m = np.diag(MASS)
    a = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(m, k), -np.linalg.solve(m, c)]])
    x1, x2, v1, v2 = expm(a * 4.0) @ [0.0, 0.0, 1.0, 0.0]
    return np.array([x1, v1, x2, v2])


def motor() -> System:
    s = System("motor", (0, 0), planar=True)
    rotor = s.body("rotor", mass=1.0, inertia=0.02)
    joint = s.revolute("axle", s.ground, rotor, at=(0, 0))
    s.torque("drive", joint, 0.0)
    s.torque("shaft", joint, 0.0)
    s.torsional_spring("own_shaft", joint, stiffness=SHAFT, damping=SHAFT_DAMPER)
    return s


def mechanism() -> System:
    s = System("slider-crank", planar=True)
    crank = s.body("crank", mass=1.0, inertia=0.02, position=(0.05, 0))
    rod = s.body("rod", mass=0.8, inertia=6e-3, position=(0.25, 0))
    slider = s.body("slider", mass=2.0, inertia=1e-3, position=(0.4, 0))
    main = s.revolute("main", s.ground, crank, at=(0, 0))
    s.revolute("crank_pin", crank, rod, at=(0.1, 0))
    s.revolute("wrist_pin", rod, slider, at=(0.4, 0))
    s.prismatic("slide", s.ground, slider, at=(0.4, 0), axis=(1, 0))
    s.torque("shaft", main, 0.0)
    s.force("load", slider.marker("end"), (0.0, 0.0))
    return s


def load() -> System:
    s = System("load", (0, 0), planar=True)
    body = s.body("mass", mass=1.0, inertia=1.0)
    s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    wall, end = s.ground.marker("wall", (-1, 0)), body.marker("end")
    s.spring("spring", wall, end, stiffness=ROD_SPRING, damping=ROD_DAMPER, free_length=1.0)
    s.force("push", end, (0.0, 0.0))
    return s


def slider_crank(step: float, mode: Mode) -> Diagram:
    d = Diagram("slider-crank in three parts", step=step, solver="dopri5")
    torques, motion = ["drive.torque", "shaft.torque"], ["axle.angle", "axle.speed"]
    drive = part(d, "drive", motor(), torques, motion, mode)
    efforts = ["shaft.torque", "load.force.x"]
    motion = ["main.angle", "main.speed", "slide.displacement", "slide.speed"]
    crank = part(d, "crank", mechanism(), efforts, motion, mode)
    motion = ["slide.displacement", "slide.speed"]
    tool = part(d, "tool", load(), ["push.force.x"], motion, mode)
    places = {"x1": drive["axle.angle"], "v1": drive["axle.speed"]}
    places |= {"x2": crank["main.angle"], "v2": crank["main.speed"]}
    share(d, "shaft", SHAFT, SHAFT_DAMPER, places, drive["shaft.torque"], crank["shaft.torque"])
    places = {"x1": tool["slide.displacement"], "v1": tool["slide.speed"]}
    places |= {"x2": crank["slide.displacement"], "v2": crank["slide.speed"]}
    share(d, "spring", ROD_SPRING, ROD_DAMPER, places, tool["push.force.x"], crank["load.force.x"])
    reference = d.add(Step(at=0.0, to=20.0, unit="rad/s"), name="reference")
    error = d.add(Sum("+-"), name="error")
    gain = d.add(Gain(0.5, unit="N.m"), name="controller", period=5e-3)
    d.connect(reference, error["u1"])
    d.connect(drive["axle.speed"], error["u2"])
    d.connect(error, gain)
    d.connect(gain, drive["drive.torque"])
    return d


def share(
    d: Diagram, name: str, k: float, damper: float, places: dict[str, PortRef], own: PortRef,
    other: PortRef,
) -> None:  # fmt: skip
    """A spring of the first block: it gets the place of the second, which gets the force."""
    unit = "N.m" if name == "shaft" else "N"
    connect_law(d, f"{name}_place", "k*x2 + d*v2", k, damper, own, unit)
    connect_law(d, f"{name}_force", "k*(x1 - x2) + d*(v1 - v2)", k, damper, other, unit)
    for law in (d[f"{name}_place"], d[f"{name}_force"]):
        for port in law.input_index:
            d.connect(places[port], law[port])


@cache
def whole_slider_crank() -> tuple[np.ndarray, np.ndarray]:
    run = simulate(slider_crank(1.5625e-4, "continuous"), 0.6)
    states = [run[path] for path in CRANK_STATES]
    return np.array([s[-1] for s in states]), np.array([np.abs(s).max() for s in states])


def connect_law(
    d: Diagram, name: str, formula: str, k: float, damper: float, to: PortRef, unit: str = "N"
) -> None:
    d.add(Expression(formula, parameters={"k": k, "d": damper}, unit=unit), name=name)
    d.connect(d[name], to)


MASS_STATES = ["a.slide.displacement", "a.slide.speed", "b.slide.displacement", "b.slide.speed"]
CRANK_STATES = ["drive.axle.angle", "drive.axle.speed", "crank.main.angle", "crank.main.speed",
                "tool.slide.displacement", "tool.slide.speed"]  # fmt: skip


def mass_error(shared: bool) -> Measure:
    def measure(step: float, method: str, extrapolation: int, mode: Mode) -> float:
        run = simulate(
            two_masses(step, mode, shared), 4.0, coupling=method, extrapolation=extrapolation
        )
        return float(np.abs([run[p][-1] for p in MASS_STATES] - exact_two_masses()).max())

    return measure


def crank_error(step: float, method: str, extrapolation: int, mode: Mode) -> float:
    run = simulate(slider_crank(step, mode), 0.6, coupling=method, extrapolation=extrapolation)
    end, scale = whole_slider_crank()
    return float(np.max(np.abs([run[p][-1] for p in CRANK_STATES] - end) / scale))


WORKS: dict[str, tuple[Measure, float]] = {
    "two masses, displacement/force": (mass_error(shared=False), 0.08),
    "two masses, force/force": (mass_error(shared=True), 0.08),
    "slider-crank in three parts": (crank_error, 5e-3),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="four steps instead of six")
    parser.add_argument("--fmu", action="store_true", help="the parts are FMUs")
    parser.add_argument("--plot", metavar="FILE", help="draw the errors over the step")
    options = parser.parse_args()
    warnings.simplefilter("ignore", CouplingWarning)  # what they warn of is what is measured
    count = 4 if options.quick else 6
    mode: Mode = "fmu" if options.fmu else "internal"
    drawn: dict[str, Lines] = {}
    for name, (measure, largest) in WORKS.items():
        steps = largest / 2 ** np.arange(count)
        heads = "".join(f"{h * 1e3:8.4g} ms" for h in steps)
        print(f"\n{name}\n{'method':14}hold{heads} order")
        for method in METHODS:
            for extrapolation in (0, 1, 2):
                errors = [measure(float(h), method, extrapolation, mode) for h in steps]
                order = np.log2(errors[-2] / errors[-1])
                shown = "".join(f"{error:11.1e}" for error in errors)
                print(f"{method:14}{extrapolation:4}{shown}{order:6.2f}")
                drawn.setdefault(name, {})[method, extrapolation] = (steps, errors)
    if options.plot:
        draw(drawn, options.plot)


def draw(drawn: dict[str, Lines], path: str) -> None:
    import matplotlib.pyplot as plt

    plt.style.use("seaborn-v0_8-colorblind")
    figure, row = plt.subplots(1, len(drawn), figsize=(14, 4.6), layout="constrained")
    colors = {"jacobi": "C2", "gauss-seidel": "C1", "newton": "C0"}
    for axes, (name, lines) in zip(row, drawn.items(), strict=True):
        for (method, extrapolation), (steps, errors) in lines.items():
            if method in colors:  # a fixed point ends where Newton does
                wide = {"linewidth": 4, "markersize": 10} if method == "jacobi" else {}
                style = {"marker": "os^"[extrapolation], "color": colors[method], **wide}
                label = (
                    f"{'iterated' if method == 'newton' else method}, extrapolation {extrapolation}"
                )
                axes.loglog(steps, np.minimum(errors, 1e3), label=label, **style)
        axes.set(title=name, xlabel="step in s", ylim=(1e-8, 30))
        axes.set_xticks(steps, [f"{h:.3g}" for h in steps], rotation=30)
        axes.minorticks_off()
    row[0].set_ylabel("largest relative error at the end")
    figure.legend(*row[0].get_legend_handles_labels(), loc="outside right center")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
