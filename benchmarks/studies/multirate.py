"""Substeps for a motor's circuit against short steps for the whole diagram, at equal errors.

    python benchmarks/studies/multirate.py [--quick]

A slider-crank is driven by a DC motor whose circuit has a time constant of 50 µs. The voltage is a
sampled sine, which jumps every 4 ms, and a small continuous one. The mechanism is slow and is
evaluated in each stage of a step; the circuit reads its speed and gives the torque.

The error is the largest deviation of the angle and of the current at the ends of samples, relative
to the largest value of each, from dopri5 with a tolerance of 1e-11. For each multirate step the
longest single-rate step is taken whose error is not larger. Printed are both steps and errors, and
the ratios of evaluations of the mechanism's derivatives and of times of interleaved runs.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass

import numpy as np

from biella import Diagram, simulate
from biella.blocks import Expression, Gain, Sine, TransferFunction, UnitDelay
from biella.blocks.multibody.mechanisms import slider_crank
from biella.errors import BiellaWarning
from biella.scheduler.compile._multirate import STAGES

SAMPLE = 4e-3
LAG = 50e-6
SUBSTEP = 40e-6
SIGNALS = ("angle", "current")


def make(step: float, substeps: int = 0, solver: str = "rk4", **options: object) -> Diagram:
    """Return the drive; `substeps` for its circuit in each step, 0 for none."""
    d = Diagram("drive", step, solver, **options)  # type: ignore[arg-type]
    plant = slider_crank().block(["motor.torque"], ["main.speed", "main.angle"])
    d.add(plant, "plant")
    wave = d.add(Sine(4.0, frequency=5.0), "wave")
    volts = d.add(UnitDelay(), "volts", u=wave, period=SAMPLE)
    circuit = d.add(TransferFunction([1.0], [LAG, 1.0]), "circuit")
    emf = Expression("v + 0.2 * sin(60 * t) - 0.05 * w")
    d.connect(d.add(emf, "emf", v=volts, w=plant["main.speed"]), circuit)
    d.connect(d.add(Gain(0.5), "torque", u=circuit), plant["motor.torque"])
    d.output("angle", plant["main.angle"])
    d.output("current", circuit)
    if substeps:
        d.integrate(circuit, substeps=substeps)
    return d


@dataclass(frozen=True)
class Run:
    """A run with a step, its error, and how often the mechanism is evaluated in a second."""

    step: float
    substeps: int
    error: float
    evaluations: float


def sample(d: Diagram, until: float) -> np.ndarray:
    """Return the signals at the ends of samples."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BiellaWarning)
        result = simulate(d, until, error_estimate=False, record=list(SIGNALS))
    every = round(SAMPLE / d.step)
    return np.stack([result[name][every::every] for name in SIGNALS])


def measure(step: float, substeps: int, exact: np.ndarray, until: float) -> Run:
    """Run the drive once. One evaluation is for the gain of a multirate step."""
    found = sample(make(step, substeps), until)
    error = (np.abs(found - exact).max(axis=1) / np.abs(exact).max(axis=1)).max()
    stages = STAGES["rk4"] + 1 if substeps else 4
    return Run(step, substeps, float(error), stages / step)


def find_exact(until: float) -> np.ndarray:
    """Return the reference."""
    return sample(make(SAMPLE, solver="dopri5", tolerance=(1e-11, 1e-13), max_steps=100_000), until)


def find_equal(error: float, exact: np.ndarray, until: float) -> Run:
    """Return the run with the longest single-rate step that reaches an error."""
    for count in (32, 40, 50, 64, 80, 100, 128, 160, 200, 250, 320, 400):
        run = measure(SAMPLE / count, 0, exact, until)
        if run.error <= error:
            return run
    return run


def time_run(runs: tuple[Run, Run], until: float, rounds: int) -> list[float]:
    """Return the shortest time of each, in s, of interleaved rounds without recording."""
    best = [np.inf, np.inf]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BiellaWarning)
        models = [make(run.step, run.substeps).compile() for run in runs]
    for _ in range(rounds):
        for n, (model, run) in enumerate(zip(models, runs, strict=True)):
            with model.instantiate() as instance:
                start = time.perf_counter()
                instance.run(round(until / run.step))
                best[n] = min(best[n], time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one step, a short run")
    quick = parser.parse_args().quick
    until, rounds = (0.1, 1) if quick else (1.0, 5)
    exact = find_exact(until)
    print("multirate: step, substeps, error     single rate: step, error    evaluations   time")
    for step in (1e-3,) if quick else (4e-3, 2e-3, 1e-3, 0.5e-3):
        fast = measure(step, round(step / SUBSTEP), exact, until)
        equal = find_equal(fast.error, exact, until)
        ours, theirs = time_run((fast, equal), until, rounds)
        print(
            f"{step * 1e3:8.1f} ms {fast.substeps:6d} {fast.error:12.1e}"
            f"{equal.step * 1e6:17.1f} µs {equal.error:10.1e}"
            f"{equal.evaluations / fast.evaluations:12.1f} : 1 {theirs / ours:6.1f} : 1"
        )


if __name__ == "__main__":
    main()
