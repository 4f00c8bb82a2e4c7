"""Exported FMUs of all four kinds in other people's importers: which run them, and how exactly.

    python benchmarks/studies/importers.py
    python benchmarks/studies/importers.py --peers-python peers/bin/python
    python benchmarks/studies/importers.py --examples [01_first_loop …]

`pip install fmpy libcosimpy fmu-manipulation-toolbox casadi` installs the importers. Each FMU is
run in a process of its own and compared with `simulate`. A cell is `=` if all outputs are the same
to the bit, else their largest deviation, relative to the range of each output. FMUs for model
exchange are integrated by the importer's own solver with a tolerance of 1e-9, co-simulation FMUs by
the solver that is part of them. `--examples` takes every example of the project instead of four
diagrams: 1000 of its steps, and all signals of kind real as outputs.
"""

from __future__ import annotations

import argparse
import json
import math
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from biella import Diagram, simulate
from biella.blocks import (
    Constant,
    Expression,
    Gain,
    Integrator,
    SecondOrderIntegrator,
    Step,
    Sum,
    UnitDelay,
)
from biella.blocks.multibody.mechanisms import slider_crank
from biella.errors import DiagramError

sys.path.insert(0, str(Path(__file__).parents[1]))  # the modules of all benchmarks

from peers.importers import IMPORTERS

HERE = Path(__file__).parents[1]
KINDS = [("2.0", "cs"), ("3.0", "cs"), ("2.0", "me"), ("3.0", "me")]
STEP = 1e-3
LARGEST = 1e-6
"""Largest deviation of model exchange: the tolerance of 1e-9 times an error growth of 1000."""
EXAMPLE_STEPS = 1000
LARGEST_OF_EXAMPLES = 1e-3
"""The same for all signals of an example: of a small difference between large signals the error
grows by more. In FMPy it falls with the tolerance: by 70 to 100 times from 1e-9 to 1e-11."""


@dataclass(frozen=True)
class Case:
    """A diagram, the time it runs and the largest deviation in model exchange."""

    make: Callable[[], Diagram]
    until: float
    largest: float = LARGEST
    shows_all: bool = False
    """Whether all signals are outputs, not only those that the diagram declares."""

    def outputs(self) -> list[tuple[str, int]]:
        """Return the outputs of kind real, by name and width."""
        model = self.make().compile()
        if not self.shows_all:
            return [(name, port.width) for name, port in model.outputs.items()]
        declared = {port.slot: name for name, port in model.outputs.items()}
        ports = [port for block in model.blocks for port in block.outputs if port.kind == "real"]
        return [(declared.get(port.slot, port.path), port.width) for port in ports]

    def export(self, fmu: Path, version: str, kind: str) -> None:
        """Write the FMU."""
        diagram = self.make()
        declared = diagram.compile().outputs
        more = [name for name, _ in self.outputs() if name not in declared]
        diagram.export_fmu(fmu, version=version, kind=kind, outputs=more)


def van_der_pol() -> Diagram:
    """x'' = mu (1 - x²) x' - x, without discontinuities."""
    d = Diagram("van_der_pol", step=STEP, solver="dopri5")
    x = d.add(Integrator(2.0), "x")
    v = d.add(Integrator(0.0), "v")
    d.chain(v, x)
    d.chain(d.add(Expression("2*(1 - x*x)*v - x"), "rate", x=x, v=v), v)
    d.output("position", x)
    d.output("speed", v)
    return d


def crank() -> Diagram:
    """A slider-crank that falls under gravity: a kinematic loop, projected after every step."""
    d = Diagram("crank", step=STEP, solver="dopri5")
    plant = d.add(slider_crank().block(inputs=[], outputs=["main.angle", "main.speed"]), "plant")
    d.output("angle", plant["main.angle"])
    d.output("speed", plant["main.speed"])
    return d


def ball() -> Diagram:
    """A ball that bounces: state events."""
    d = Diagram("ball", step=STEP, solver="dopri5")
    ball = d.add(SecondOrderIntegrator(1.0, limits=(0.0, math.inf), restitution=0.8), "ball")
    d.chain(d.add(Constant(-9.81), "gravity"), ball)
    d.output("height", ball["position"])
    return d


def control() -> Diagram:
    """A sampled controller and a continuous plant, with a step off the grid: time events."""
    d = Diagram("control", step=STEP, solver="dopri5")
    ref = d.add(Step(at=0.1234567, to=30.0), "ref")
    speed = d.add(Integrator(), "speed")
    error = d.add(Sum("+-"), "error", u1=ref, u2=speed)
    p = d.add(Gain(4.0), "p", period=5 * STEP)
    hold = d.add(UnitDelay(), "hold", period=5 * STEP)
    d.chain(error, p, hold)
    d.chain(d.add(Expression("u - 0.1*s"), "motor", u=hold, s=speed), speed)
    d.output("speed", speed)
    d.output("torque", hold)
    return d


CASES = {
    "van der Pol": Case(van_der_pol, 10.0),
    "slider-crank": Case(crank, 1.0),
    "bouncing ball": Case(ball, 2.0),
    "sampled control": Case(control, 1.0),
}

EXAMPLES = {path.stem: path for path in sorted((HERE.parent / "examples").glob("[0-9][0-9]_*.py"))}


def load_example(name: str) -> Case:
    """Return an example, which may import modules beside it."""
    path = EXAMPLES[name]
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = runpy.run_path(str(path))
    step: float = module["diagram"]().step
    return Case(module["diagram"], EXAMPLE_STEPS * step, LARGEST_OF_EXAMPLES, shows_all=True)


@dataclass(frozen=True)
class Cell:
    """What one importer made of one FMU: what `--json` writes."""

    importer: str
    importer_version: str
    case: str
    version: str
    kind: str
    deviation: float | None
    """Relative; 0: the same bits; None: not run."""
    reason: str

    @property
    def text(self) -> str:
        """Its short form, for the table."""
        if self.deviation is None:
            return {"failed": "[red]failed[/]", "refused": "refused"}.get(self.reason, "–")
        return "=" if self.deviation == 0.0 else f"{self.deviation:.0e}"


def compare(
    rows: NDArray[np.float64], expected: NDArray[np.float64], is_error: NDArray[np.bool_]
) -> float:
    """Return the largest deviation, relative to the range of each output; NaN is not compared.

    Outputs that are errors themselves, such as the gap of a joint, have no range to compare with:
    their deviation is absolute.
    """
    if rows.shape != expected.shape:
        return math.inf
    known = ~np.isnan(rows)
    if np.array_equal(rows[known], expected[known]):
        return 0.0
    size = np.where(is_error, 1.0, np.maximum(np.ptp(expected, axis=0), 1e-300))
    return float(np.nanmax(np.abs(rows - expected) / size))


def run(
    importer: str, name: str, case: Case, version: str, kind: str, fmu: Path, python: str,
    program: str,
) -> Cell:  # fmt: skip
    """Run an FMU in an importer, in a process of its own."""
    diagram = case.make()
    outputs = case.outputs()
    with diagram.compile().instantiate() as instance:
        instance.initialize()
        states = instance.states.tolist()
    is_exchange = kind == "me"
    exact = {"solver": "dopri5", "tolerance": 1e-11} if is_exchange else {}
    record = [output for output, _ in outputs]
    result = simulate(diagram, case.until, record=record, error_estimate=False, **exact)
    expected = np.column_stack([result[output] for output in record])
    request = {
        "fmu": str(fmu), "version": version, "kind": kind, "step": diagram.step,
        "until": case.until, "outputs": outputs, "program": program, "states": states,
    }  # fmt: skip
    command = [sys.executable if importer == "biella" else python, "-m", "peers.importers"]
    answer = subprocess.run(
        [*command, importer, json.dumps(request)],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    said = answer.stdout.strip().splitlines()
    if answer.returncode or not said:
        print(
            f"{importer}, {name}, FMI {version} {kind}:\n{answer.stderr[-2000:]}", file=sys.stderr
        )
        return Cell(importer, "", name, version, kind, None, "failed")
    told = json.loads(said[-1])
    is_error = np.array([o.endswith("closure") for o, width in outputs for _ in range(width)])
    deviation = compare(np.array(told["rows"]), expected, is_error) if "rows" in told else None
    return Cell(
        importer, told.get("version", ""), name, version, kind, deviation, told.get("reason", "")
    )


def build_driver(folder: Path) -> str:
    """Compile the C driver; empty if there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return ""
    program = folder / "driver"
    source = HERE / "peers" / "importers.c"
    subprocess.run(
        [compiler, "-std=c11", "-O2", "-D_GNU_SOURCE", "-I", str(HERE.parent), str(source),
         "-o", str(program), "-ldl", "-lm"],
        check=True,
    )  # fmt: skip
    return str(program)


def print_matrix(cells: list[Cell], cases: dict[str, Case]) -> None:
    """Print a row for each importer and case, a column for each kind of FMU."""
    table = Table(title="Exported FMUs in importers, compared with `simulate`")
    table.add_column("importer")
    table.add_column("diagram")
    for version, kind in KINDS:
        table.add_column(f"FMI {version} {kind.upper()}", justify="right")
    for importer in IMPORTERS:
        for n, case in enumerate(cases):
            found = {
                (c.version, c.kind): c for c in cells if c.importer == importer and c.case == case
            }
            version = next((c.importer_version for c in found.values() if c.importer_version), "")
            name = f"{importer} {version}".strip() if n == 0 else ""
            table.add_row(name, case, *(found[kind].text for kind in KINDS))
        table.add_section()
    console = Console(width=110)
    console.print(table)
    console.print(
        "= the same bits; a number: largest deviation, relative to the range of the output; "
        "– not run:"
    )
    for reason in dict.fromkeys(
        f"  {c.importer}: {c.reason}" for c in cells if c.reason not in ("", "failed", "refused")
    ):
        console.print(reason)


def main() -> None:
    """Export all cases in all kinds, run them in all importers and print the matrix."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--peers-python", default=sys.executable, help="interpreter with the importers"
    )
    parser.add_argument("--examples", nargs="*", metavar="NAME", help="all examples, or these")
    parser.add_argument("--json", type=Path, help="write the cells to this file")
    arguments = parser.parse_args()
    cases = CASES
    if arguments.examples is not None:
        unknown = sorted(set(arguments.examples) - set(EXAMPLES))
        if unknown:
            parser.error(f"unknown example {', '.join(unknown)}; examples: {', '.join(EXAMPLES)}")
        cases = {name: load_example(name) for name in arguments.examples or EXAMPLES}
    cells = []
    with tempfile.TemporaryDirectory(prefix="biella-importers-") as name:
        folder = Path(name)
        program = build_driver(folder)
        for case, chosen in cases.items():
            for version, kind in KINDS:
                fmu = folder / f"{case.replace(' ', '_')}_{kind}{version[0]}.fmu"
                try:
                    chosen.export(fmu, version, kind)
                except DiagramError:
                    if kind == "cs":
                        raise
                    cells += [Cell(i, "", case, version, kind, None, "refused") for i in IMPORTERS]
                    continue
                cells += [
                    run(
                        importer, case, chosen, version, kind, fmu, arguments.peers_python, program
                    )
                    for importer in IMPORTERS
                ]  # fmt: skip
    print_matrix(cells, cases)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(c) for c in cells], indent=1))
    bad = [
        c
        for c in cells
        if c.reason == "failed"
        or (c.deviation or 0.0) > (cases[c.case].largest if c.kind == "me" else 0.0)
    ]
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
