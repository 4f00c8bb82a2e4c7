"""`biella simulate`: a diagram or an FMU offline."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BiellaError, name_list, suggest
from ._fmus import simulate_fmu
from ._load import load_diagram
from ._shared import (
    ISOLATION,
    add_command,
    add_json,
    read_assignment,
    report_run,
    require_format,
    require_picture,
)

if TYPE_CHECKING:
    from ..scheduler.compile.diagram._diagram import Diagram
    from ..scheduler.results._result import Result

_OF_DIAGRAMS = {
    "solver": None,
    "tolerance": None,
    "coupling_tolerance": None,
    "events": None,
    "every": None,
    "mark_events": None,
    "no_error_estimate": False,
}
_OF_FMUS = {
    "start": None,
    "kind": None,
    "backend": "engine",
    "isolate": False,
    "timeout": None,
    "log": False,
    "no_validate": False,
}
"""Options of `simulate` that only one kind of file has, with their defaults."""


def add_commands(commands: Any) -> None:
    """Add ``simulate``."""
    simulate = add_command(
        commands,
        "simulate",
        _simulate,
        "simulate a diagram or an FMU offline",
        "biella simulate examples/01_first_loop.py --until 5 --set p.k=0.8 --plot loop.png",
        "a Python file that defines diagram(), or an FMU",
    )
    add_run_options(simulate)
    simulate.add_argument(
        "--until", "--stop", dest="until", type=float, metavar="TIME",
        help="end time in s (default: 1000 steps; of an FMU: its own)",
    )  # fmt: skip
    simulate.add_argument(
        "--input", type=Path, metavar="CSV",
        help="table: times, then a column for each input, or source block of the diagram, that it "
        "drives",
    )  # fmt: skip
    diagrams = simulate.add_argument_group("diagrams")
    add_solver_options(diagrams)
    diagrams.add_argument(
        "--coupling-tolerance", type=float, metavar="REL",
        help="divide base steps so that coupled FMUs and mechanisms follow their inputs to this "
        "part of the largest values, such as 1e-4",
    )  # fmt: skip
    diagrams.add_argument("--every", type=int, help="record every n-th tick")
    diagrams.add_argument(
        "--no-error-estimate", action="store_true", help="do not estimate the error of fixed steps"
    )
    fmus = simulate.add_argument_group("FMUs")
    fmus.add_argument("--start", type=float, help="start time in s (default: that of the FMU)")
    fmus.add_argument(
        "--backend", choices=("engine", "fmpy", "pyfmi"), default="engine",
        help="runner of the FMU (default: engine; fmpy also supports FMI 1.0)",
    )  # fmt: skip
    fmus.add_argument(
        "--kind", choices=("cs", "me"),
        help="co-simulation or model exchange (default: co-simulation if the FMU supports it); "
        "model exchange also takes --solver, --tolerance and --events",
    )  # fmt: skip
    fmus.add_argument(
        "--isolate", nargs="?", const=ISOLATION[0], default=False, choices=ISOLATION,
        help="run the FMU in a separate process; strict: without network, other processes, and "
        "files beyond its own and system libraries",
    )  # fmt: skip
    fmus.add_argument("--timeout", type=float, help="with --isolate: time limit of a call in s")
    fmus.add_argument(
        "--log", action="store_true", help=("show the messages of the FMU during the run")
    )
    fmus.add_argument(
        "--no-validate", action="store_true", help=("run an FMU that violates the FMI standard")
    )


def add_solver_options(parser: Any) -> None:
    """Add what diagrams have of the solver, for runs offline and in real time."""
    parser.add_argument("--solver", help="solver, instead of the diagram's own")
    parser.add_argument(
        "--tolerance", type=read_tolerance, metavar="REL[,ABS]",
        help="error control with this tolerance, such as 1e-6; of dopri5 and radau5",
    )  # fmt: skip
    parser.add_argument(
        "--events", choices=("locate", "tick"),
        help="locate discontinuities within ticks, or evaluate them at ticks",
    )  # fmt: skip


def read_tolerance(text: str) -> Any:
    """Return ``1e-6`` as a number, and ``1e-6,1e-9`` as a pair, as of `Diagram`."""
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in (1, 2):
        raise argparse.ArgumentTypeError(f"a number or two such as 1e-6,1e-9, not {text!r}")
    return numbers[0] if len(numbers) == 1 else numbers


def add_run_options(parser: argparse.ArgumentParser, recorded: bool = False) -> None:
    """Add what simulations, real-time runs and replays have in common."""
    if not recorded:
        parser.add_argument("--step", type=float, help="step in s, instead of the file's own")
    parser.add_argument(
        "--set", action="append", default=[], metavar="PATH=VALUE",
        help="set a parameter or an input; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--record", action="append", metavar="PATH", help="record this signal only; may be repeated"
    )
    parser.add_argument(
        "--out", "--output", dest="out", type=Path, metavar="FILE",
        help="write the result: .csv, .mf4 or .h5",
    )  # fmt: skip
    parser.add_argument(
        "--plot", type=Path, nargs="?", const=Path("-"), metavar="FILE",
        help="draw the signals to a file (default: name of the diagram or FMU, .png)",
    )  # fmt: skip
    parser.add_argument(
        "--mark-events", action="append", nargs="?", const="*", metavar="BLOCK",
        help="with --plot: mark the events of this block (default: of all); may be repeated",
    )  # fmt: skip
    add_json(parser)


def _simulate(options: argparse.Namespace) -> None:
    diagram = options.file.suffix.lower() == ".py" or options.file.is_dir()
    for name, default in (_OF_FMUS if diagram else _OF_DIAGRAMS).items():
        if getattr(options, name) != default:
            option = f"--{name.replace('_', '-')}"
            raise BiellaError(
                f"{option} applies to FMUs, but `{options.file}` is a Python file."
                if diagram
                else f"{option} applies to diagrams, but `{options.file}` is not a Python file."
            )
    if diagram:
        simulate_diagram(options)
    else:
        simulate_fmu(options)


def simulate_diagram(options: argparse.Namespace) -> None:
    """Simulate the diagram of a file, and report the result."""
    require_picture(options.plot, options.mark_events)
    suffix = require_format("--out", options.out)
    diagram = load_diagram(options.file)
    stream = options.out if suffix in (".h5", ".hdf5") else None
    report_run(options, diagram.name, lambda: _run(options, diagram, stream))


def _run(options: argparse.Namespace, diagram: Diagram, stream: Path | None) -> Result:
    from ..scheduler.run._simulate import simulate

    step = options.step or diagram.step
    played = _play_columns(diagram, options.input) if options.input else None
    return simulate(
        diagram.compile(
            step=options.step,
            solver=options.solver,
            coupling_tolerance=getattr(options, "coupling_tolerance", None),
            tolerance=options.tolerance,
            events=options.events,
            replace=played,
        ),
        diagram.start_time + 1000 * step if options.until is None else options.until,
        None,
        None,
        options.record,
        dict(read_assignment(text) for text in options.set),
        every=1 if options.every is None else options.every,
        out=stream,
        error_estimate=not getattr(options, "no_error_estimate", False),
    )


def _play_columns(diagram: Diagram, path: Path) -> dict[str, Any]:
    """Return a player for each column of a table, by the input or source block it drives."""
    from ..blocks.basic.sources._playback import Playback, check_unit, read_columns
    from ..blocks.core._ports import Same
    from ..blocks.core._units import Unit

    times, columns = read_columns(path)
    if "" in columns:
        raise BiellaError(
            f"the first row of `{path}` must contain the column names: time, then inputs."
        )
    sources = {
        name: block.outputs[0]
        for name, block in diagram.blocks.items()
        if not block.inputs and [port.name for port in block.outputs] == ["y"]
    }
    played = {}
    for name, column in columns.items():
        if name not in sources:
            raise BiellaError(
                f"`{path}` has a column `{name}`, but `{diagram.name}` has no input or source "
                f"block of that name.{suggest(name, sources)} It has: {name_list(sources)}."
            )
        port = sources[name]
        width = 1 if column.values.ndim == 1 else column.values.shape[1]
        if port.kind != "real" and not isinstance(port.kind, Same):
            raise BiellaError(f"`{name}` is {port.kind}: a table can drive only real inputs.")
        if isinstance(port.width, int) and port.width != width:
            raise BiellaError(f"`{name}` has {port.width} elements, but `{path}` {width}.")
        check_unit(path, name, column.unit, port.unit)
        unit = str(port.unit) if isinstance(port.unit, Unit) else column.unit
        played[name] = Playback(times, column.values, unit=unit)
    return played
