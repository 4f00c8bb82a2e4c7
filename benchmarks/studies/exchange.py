"""Model exchange: the import of an FMU into our engine beside FMPy's simulation of the same FMU.

    python benchmarks/studies/exchange.py [--quick] [--json FILE]

Van der Pol's oscillator, `workloads/van_der_pol.c`, is compiled and packed as an FMU for model
exchange of FMI 2.0. FMPy integrates it with CVode at several tolerances. Ours, dopri5 with error
control, takes for each the largest tolerance whose error is not larger. The error is the largest
deviation of x0 at the output points from scipy's DOP853 with a tolerance of 1e-13. Both take turns
in one run; both start from an unpacked file, make an instance, and return the outputs.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from biella import Diagram, Fmu
from biella.fmu.importer._archive import Folder, platform_folder, read_archive
from biella.scheduler.engine.build import find_compiler
from biella.scheduler.run._simulate import simulate

sys.path.insert(0, str(Path(__file__).parents[1]))  # the modules of all benchmarks

from table import Row, beside, parse_arguments, print_rows, say, times_faster, write_json
from turns import Entrant, take_turns, timed

STOP, INTERVAL, MU = 500.0, 0.1, 1.0
TOLERANCES = (1e-4, 1e-6, 1e-8)
TARGET = 20.0
XML = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="van_der_pol" guid="{van_der_pol}"
  numberOfEventIndicators="0">
<ModelExchange modelIdentifier="van_der_pol" completedIntegratorStepNotNeeded="true"/>
<ModelVariables>
<ScalarVariable name="x0" valueReference="0" causality="output" variability="continuous"
  initial="exact"><Real start="2"/></ScalarVariable>
<ScalarVariable name="x1" valueReference="1" causality="output" variability="continuous"
  initial="exact"><Real start="0" derivative="1"/></ScalarVariable>
<ScalarVariable name="der(x1)" valueReference="2" causality="local" variability="continuous">
  <Real derivative="2"/></ScalarVariable>
<ScalarVariable name="mu" valueReference="3" causality="parameter" variability="fixed">
  <Real start="1"/></ScalarVariable>
</ModelVariables>
<ModelStructure>
<Outputs><Unknown index="1" dependencies="1"/><Unknown index="2" dependencies="2"/></Outputs>
<Derivatives><Unknown index="2" dependencies="2"/><Unknown index="3" dependencies="1 2"/>
</Derivatives>
<InitialUnknowns><Unknown index="3" dependencies="1 2"/></InitialUnknowns>
</ModelStructure>
</fmiModelDescription>
"""


def make_fmu(folder: Path) -> Path:
    """Compile and pack the FMU."""
    library = folder / "van_der_pol.so"
    source = Path(__file__).parents[1] / "workloads" / "van_der_pol.c"
    command = [*find_compiler().command, "-std=gnu11", "-O3", "-fPIC", "-shared"]
    subprocess.run([*command, str(source), "-o", str(library)], check=True)
    path = folder / "van_der_pol.fmu"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", XML)
        archive.write(library, f"binaries/{platform_folder()}/van_der_pol.so")
    return path


def exact(times: Any) -> Any:
    """Return x0 at the output points."""

    def slopes(_: float, x: Any) -> list[float]:
        return [x[1], MU * (1.0 - x[0] ** 2) * x[1] - x[0]]

    span = (0.0, float(times[-1]))
    found = solve_ivp(
        slopes, span, [2.0, 0.0], "DOP853", rtol=1e-13, atol=1e-14, t_eval=np.minimum(times, STOP)
    )
    return found.y[0]


class Ours:
    """The FMU in our engine, at one tolerance."""

    def __init__(self, path: Path, tolerance: float) -> None:
        diagram = Diagram("oscillator", step=INTERVAL, solver="dopri5", tolerance=tolerance)
        diagram.add(Fmu(path, kind="me", outputs=["x0"]), name="fmu")
        self.model = diagram.compile()

    def run(self) -> Any:
        """Return x0 at the output points."""
        return simulate(self.model, STOP)["fmu.x0"]


class Fmpy:
    """The FMU in FMPy, at one tolerance."""

    def __init__(self, folder: Path, description: Any, tolerance: float) -> None:
        self.folder, self.description, self.tolerance = folder, description, tolerance

    def run(self) -> Any:
        """Return x0 at the output points."""
        from fmpy import simulate_fmu

        result = simulate_fmu(
            str(self.folder),
            model_description=self.description,
            fmi_type="ModelExchange",
            stop_time=STOP,
            output_interval=INTERVAL,
            relative_tolerance=self.tolerance,
            output=["x0"],
        )
        return np.asarray(result["x0"])


def find_equal(path: Path, error: float, expected: Any) -> tuple[Ours, float]:
    """Return ours with the largest tolerance, in steps of 10^(1/4), whose error is not larger."""
    for quarter in range(4, 52):
        ours = Ours(path, 10.0 ** (-0.25 * quarter))
        found = deviation(ours.run(), expected)
        if found <= error:
            return ours, found
    raise SystemExit(f"no tolerance leads to an error of {error:.3g}")


def deviation(values: Any, expected: Any) -> float:
    """Return the largest difference at the output points."""
    return float(np.max(np.abs(values - expected)))


def measure(folder: Path, rounds: int) -> list[Row]:
    """Return the rows of the table."""
    from fmpy import extract, read_model_description

    path = make_fmu(folder)
    unpacked = Path(extract(str(path), unzipdir=str(folder / "unpacked")))
    description = read_model_description(str(path))
    kept = Folder.acquire(read_archive(path))  # so that our runs find it unpacked, too
    expected = exact(INTERVAL * np.arange(round(STOP / INTERVAL) + 1))
    rows = []
    for tolerance in TOLERANCES:
        theirs = Fmpy(unpacked, description, tolerance)
        error = deviation(theirs.run(), expected)
        ours, found = find_equal(path, error, expected)
        say(f"tolerance {tolerance:g}: error of FMPy {error:.3g}, ours {found:.3g}")
        entrants = [
            Entrant("ours", timed(_once(ours.run)), STOP, repeats=5),
            Entrant("FMPy", timed(_once(theirs.run)), STOP),
        ]
        take_turns(entrants, rounds)
        work = f"van der Pol, {STOP:g} s, tolerance {tolerance:g} of FMPy"
        times = [1e3 * entrant.best for entrant in entrants]
        rows.append(times_faster(work, "FMPy (CVode)", *times, "ms", TARGET))
        rows.append(beside(work, "FMPy: error", found, error, "1"))
    kept.release()
    return rows


def _once(run: Callable[[], Any]) -> Callable[[], float]:
    return lambda: math.fsum(run()[-1:])


def main() -> None:
    """Run the benchmark."""
    options = parse_arguments(__doc__ or "")
    folder = Path(tempfile.mkdtemp(prefix="exchange-"))
    try:
        rows = measure(folder, 3 if options.quick else 15)
    finally:
        shutil.rmtree(folder)
    notes = ["The ratio of a time is theirs / ours, of an error ours / theirs."]
    print_rows("Model exchange", rows, notes)
    if options.json:
        write_json(options.json, rows)


if __name__ == "__main__":
    main()
