"""One FMU in one importer, in a process of its own: `python -m peers.importers IMPORTER REQUEST`.

The request is a JSON object: `fmu`, `version` ("2.0", "3.0"), `kind` ("cs", "me"), `step`, `until`,
`outputs` as pairs of name and width, `states`, which are those at the start, and `program` for the
C driver. The answer is a JSON object: `rows`, the outputs at every step, vectors
element by element, or `reason`, why this importer does not run such an FMU. Only the importer
itself and the standard library are used.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any
from zipfile import ZipFile

Rows = list[list[float]]
TOLERANCE = 1e-9
"""Relative, of the solver of an importer that integrates an FMU for model exchange."""


class NotSupported(Exception):
    """The importer does not run FMUs of this version and kind."""


def _times(request: dict[str, Any]) -> list[float]:
    return [n * request["step"] for n in range(round(request["until"] / request["step"]) + 1)]


def _names(request: dict[str, Any]) -> list[str]:
    """Return the outputs as the FMU has them: a vector is one variable in FMI 3.0 only."""
    if request["version"] == "3.0":
        return [name for name, _ in request["outputs"]]
    return [
        f"{name}[{k}]" if width > 1 else name
        for name, width in request["outputs"]
        for k in range(width)
    ]


def run_fmpy(request: dict[str, Any]) -> Rows:
    """FMPy: `simulate_fmu`; model exchange by its CVode."""
    from fmpy import simulate_fmu

    is_exchange = request["kind"] == "me"
    result = simulate_fmu(
        request["fmu"],
        stop_time=request["until"],
        output_interval=request["step"],
        output=_names(request),
        fmi_type="ModelExchange" if is_exchange else "CoSimulation",
        relative_tolerance=TOLERANCE if is_exchange else None,
        record_events=False,
    )
    return [
        [float(v) for name in _names(request) for v in getattr(row[name], "flat", [row[name]])]
        for row in result
    ]


def run_libcosim(request: dict[str, Any]) -> Rows:
    """libcosim: its fixed-step algorithm."""
    from libcosimpy.CosimExecution import CosimExecution
    from libcosimpy.CosimObserver import CosimObserver
    from libcosimpy.CosimSlave import CosimLocalSlave

    if request["kind"] != "cs" or request["version"] != "2.0":
        raise NotSupported("FMI 1.0 and 2.0 co-simulation only")
    execution = CosimExecution.from_step_size(round(request["step"] * 1e9))
    slave = execution.add_local_slave(CosimLocalSlave(request["fmu"], "one"))
    observer = CosimObserver.create_last_value()
    assert execution.add_observer(observer)
    references = [_reference(request["fmu"], name) for name in _names(request)]
    rows = []
    for _ in _times(request)[1:]:
        assert execution.step()
        rows.append([float(v) for v in observer.last_real_values(slave, references)])
    return [[math.nan] * len(references), *rows]  # it shows no outputs before the first step


def _reference(fmu: str, name: str) -> int:
    with ZipFile(fmu) as archive:
        root = ET.fromstring(archive.read("modelDescription.xml"))
    for element in root.iter():
        if element.get("name") == name and element.get("valueReference"):
            return int(element.attrib["valueReference"])
    raise KeyError(name)


def run_toolbox(request: dict[str, Any]) -> Rows:
    """fmu-manipulation-toolbox: its container, whose master is in C, run by FMPy."""
    from fmu_manipulation_toolbox.assembly import Assembly

    if request["kind"] != "cs":
        raise NotSupported("co-simulation only")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(request["fmu"], folder / "one.fmu")
        plan = {
            "name": "container.fmu",
            "fmu": ["one.fmu"],
            "output": [["one.fmu", output, output] for output in _names(request)],
            "step_size": request["step"],
            "auto_input": False,
            "auto_output": False,
        }
        (folder / "container.json").write_text(json.dumps(plan))
        version = {"2.0": 2, "3.0": 3}[request["version"]]
        Assembly("container.json", fmu_directory=folder).make_fmu(fmi_version=version)
        return run_fmpy(request | {"fmu": str(folder / "container.fmu")})


def _has_events(fmu: str) -> bool:
    """Return whether a description shows event indicators or variables that change at events."""
    with ZipFile(fmu) as archive:
        root = ET.fromstring(archive.read("modelDescription.xml"))
    counted = int(root.get("numberOfEventIndicators", "0"))
    listed = len(root.findall("ModelStructure/EventIndicator"))
    return counted + listed > 0 or any(e.get("variability") == "discrete" for e in root.iter())


def run_casadi(request: dict[str, Any]) -> Rows:
    """CasADi: right-hand side and outputs from the FMU, integrated by its interface to CVODES."""
    import casadi

    if request["kind"] != "me":
        raise NotSupported("model exchange only")
    if _has_events(request["fmu"]):
        raise NotSupported("FMUs without events only")
    if request["version"] == "3.0" and any(width > 1 for _, width in request["outputs"]):
        # It reads dimensions, and calls fmi3GetFloat64 with one value for each variable.
        raise NotSupported("FMI 3.0 without arrays only")
    with tempfile.TemporaryDirectory() as folder:
        with ZipFile(request["fmu"]) as archive:
            archive.extractall(folder)
        dae = casadi.DaeBuilder("one", folder)
        right_hand_side = dae.create("f", ["t", "x"], ["ode"])
        outputs = dae.create("g", ["t", "x"], ["y"])
        x, t = casadi.MX.sym("x", dae.nx()), casadi.MX.sym("t")
        problem = {"t": t, "x": x, "ode": right_hand_side(t, x)}
        times = _times(request)
        solve = casadi.integrator(
            "solve", "cvodes", problem, times[0], times, {"reltol": TOLERANCE, "abstol": TOLERANCE}
        )
        states = solve(x0=request["states"])["xf"]
        order = [dae.y().index(name) for name in _names(request)]
        values = [outputs(t, states[:, n]) for n, t in enumerate(times)]
        return [[float(column[k]) for k in order] for column in values]


def run_driver(request: dict[str, Any]) -> Rows:
    """The C driver: nothing but the functions of FMI and the C library."""
    if not request["program"]:
        raise NotSupported("there is no C compiler")
    is_2 = request["version"] == "2.0"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ZipFile(request["fmu"]) as archive:
            archive.extractall(folder)
        root = ET.parse(folder / "modelDescription.xml").getroot()
        element = root.find("CoSimulation" if request["kind"] == "cs" else "ModelExchange")
        platform = "linux64" if is_2 else "x86_64-linux"
        library = folder / "binaries" / platform / f"{element.attrib['modelIdentifier']}.so"
        resources = folder / "resources"
        if is_2:
            states = len(root.findall("ModelStructure/Derivatives/Unknown"))
            indicators = int(root.get("numberOfEventIndicators", "0"))
        else:
            states = len(root.findall("ModelStructure/ContinuousStateDerivative"))
            indicators = len(root.findall("ModelStructure/EventIndicator"))
        references = [str(_reference(request["fmu"], output)) for output in _names(request)]
        values = sum(width for _, width in request["outputs"])
        answer = subprocess.run(
            [
                request["program"], str(library), request["version"][0], request["kind"],
                root.get("guid") or root.attrib["instantiationToken"],
                resources.as_uri() if is_2 else f"{resources}/",
                repr(request["step"]), repr(request["until"]),
                str(states), str(indicators), str(values), *references,
            ],
            check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
    return [[float.fromhex(v) for v in line.split()] for line in answer.stdout.splitlines()]


def run_biella(request: dict[str, Any]) -> Rows:
    """This project's importer."""
    from biella import Diagram, Fmu, simulate

    is_exchange = request["kind"] == "me"
    options = {"solver": "dopri5", "tolerance": TOLERANCE} if is_exchange else {}
    d = Diagram("one", step=request["step"], **options)
    d.add(Fmu(request["fmu"], kind=request["kind"]), "one")
    result = simulate(d, request["until"])
    columns = [result[f"one.{name}"] for name, _ in request["outputs"]]
    return [
        [float(v) for part in row for v in getattr(part, "flat", [part])]
        for row in zip(*columns, strict=True)
    ]


IMPORTERS: dict[str, tuple[str, Callable[[dict[str, Any]], Rows]]] = {
    "FMPy": ("fmpy", run_fmpy),
    "libcosim": ("libcosimpy", run_libcosim),
    "fmu-manipulation-toolbox": ("fmu-manipulation-toolbox", run_toolbox),
    "CasADi": ("casadi", run_casadi),
    "C driver": ("", run_driver),
    "biella": ("biella", run_biella),
}
"""The package of each importer, and how it runs an FMU."""


def main() -> None:
    """Answer one request."""
    package, run = IMPORTERS[sys.argv[1]]
    try:
        version = metadata.version(package) if package else ""
    except metadata.PackageNotFoundError:
        print(json.dumps({"reason": "not installed"}))
        return
    try:
        answer = {"version": version, "rows": run(json.loads(sys.argv[2]))}
    except NotSupported as error:
        answer = {"version": version, "reason": str(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
