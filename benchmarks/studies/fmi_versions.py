"""The cost of a step of an imported FMU: FMI 3.0 beside FMI 2.0, in the engine and through FMPy.

    python benchmarks/studies/fmi_versions.py [--quick]

One C library, `workloads/lag.c`, is an FMU of both versions, whose step is one addition. So what is
measured is what calls it: set + doStep + get. All take turns in one run, and the best time of each
counts; all must give the same last output to the last bit.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from biella import Diagram
from biella.blocks import Time
from biella.fmu.importer._archive import platform_names
from biella.fmu.importer._fmu import Fmu

sys.path.insert(0, str(Path(__file__).parents[1]))  # the modules of all benchmarks

from turns import Entrant, Run, take_turns
from workloads.baseline import FLAGS

STEP = 1e-3
LARGEST_RATIO = 1.3
_CO_SIMULATION = '<CoSimulation modelIdentifier="lag"/>'
DESCRIPTIONS = {
    "2.0": f"""<fmiModelDescription fmiVersion="2.0" modelName="lag" guid="lag">{_CO_SIMULATION}
<ModelVariables>
<ScalarVariable name="u" valueReference="0" causality="input"><Real start="0"/></ScalarVariable>
<ScalarVariable name="x" valueReference="1" causality="output"><Real/></ScalarVariable>
</ModelVariables><ModelStructure><Outputs><Unknown index="2" dependencies=""/></Outputs>
<InitialUnknowns><Unknown index="2" dependencies=""/></InitialUnknowns></ModelStructure>
</fmiModelDescription>""",
    "3.0": f"""<fmiModelDescription fmiVersion="3.0" modelName="lag" instantiationToken="lag">
{_CO_SIMULATION}<ModelVariables>
<Float64 name="time" valueReference="2" causality="independent" variability="continuous"/>
<Float64 name="u" valueReference="0" causality="input" start="0"/>
<Float64 name="x" valueReference="1" causality="output"/></ModelVariables>
<ModelStructure><Output valueReference="1" dependencies=""/>
<InitialUnknown valueReference="1" dependencies=""/></ModelStructure></fmiModelDescription>""",
}


def make_fmus(folder: Path) -> dict[str, Path]:
    """Compile the library and pack it once for each version of FMI."""
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None:
        sys.exit("This needs a C compiler: install one as `cc`, or name it in CC.")
    library = folder / "lag.so"
    source = Path(__file__).parents[1] / "workloads" / "lag.c"
    subprocess.run([*compiler.split(), *FLAGS, str(source), "-o", str(library)], check=True)
    made = {}
    for number, (version, text) in enumerate(DESCRIPTIONS.items()):
        made[version] = folder / f"lag{version[0]}.fmu"
        with zipfile.ZipFile(made[version], "w") as archive:
            archive.writestr("modelDescription.xml", text)
            archive.write(library, f"binaries/{platform_names()[number]}/lag.so")
    return made


def enter(fmu: Path, ticks: int, **options: Any) -> Run:
    """Return a run of one FMU whose input changes in every step."""
    d = Diagram("lag", step=STEP)
    f = d.add(Fmu(fmu, **options), name="f")
    d.connect(d.add(Time(), name="t"), f)
    instance = d.compile().instantiate()

    def run() -> tuple[float, float | None]:
        instance.reset()
        start = time.perf_counter()
        instance.run(ticks)
        return time.perf_counter() - start, float(instance.get("f.x"))

    return run


def measure(folder: Path, ticks: int, rounds: int) -> dict[str, float]:
    """Return the time of a step in seconds, by participant."""
    fmus = make_fmus(folder)
    wanted: list[tuple[str, str, dict[str, Any], int]] = [
        ("engine, FMI 2.0", "2.0", {}, ticks),
        ("engine, FMI 3.0", "3.0", {}, ticks),
        ("FMPy, FMI 2.0", "2.0", {"backend": "fmpy"}, ticks // 100),
        ("FMPy, FMI 3.0", "3.0", {"backend": "fmpy"}, ticks // 100),
    ]
    entrants = [
        Entrant(name, enter(fmus[version], count, **options), count * STEP, 5)
        for name, version, options, count in wanted
    ]
    take_turns(entrants, rounds)
    for pair in (entrants[:2], entrants[2:]):
        if pair[0].output != pair[1].output:
            sys.exit(f"{pair[0].name} and {pair[1].name} differ in their last output.")
    return {e.name: e.best / (e.simulated / STEP) for e in entrants}


def main() -> None:
    """Print a table and whether FMI 3.0 costs no more than it may."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one round, fewer steps")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        times = measure(
            Path(folder), 20_000 if options.quick else 200_000, 1 if options.quick else 5
        )
    for name, seconds in times.items():
        print(f"{name:18} {seconds * 1e9:10.0f} ns a step")
    ratio = times["engine, FMI 3.0"] / times["engine, FMI 2.0"]
    print(f"FMI 3.0 / FMI 2.0 in the engine: {ratio:.2f} (at most {LARGEST_RATIO})")


if __name__ == "__main__":
    main()
