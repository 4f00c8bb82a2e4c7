"""`biella run-realtime` and `biella replay`: against a clock, and again from a log."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BiellaError
from ._load import load_diagram
from ._offline import add_run_options, add_solver_options
from ._shared import (
    add_command,
    complain,
    read_assignment,
    report_run,
    require_format,
    require_picture,
)

if TYPE_CHECKING:
    from ..scheduler.compile.diagram._diagram import Diagram
    from ..scheduler.realtime._live import LiveRun
    from ..scheduler.results._result import Result


def add_commands(commands: Any) -> None:
    """Add ``run-realtime`` and ``replay``."""
    run = add_command(
        commands,
        "run-realtime",
        run_diagram,
        "run a diagram in real time, with devices",
        "biella run-realtime examples/01_first_loop.py --bind rig.toml --until 2 --log log.h5",
        "a Python file that defines diagram()",
    )
    run.add_argument("--until", type=float, help="end time in s (default: until Ctrl-C)")
    add_run_options(run)
    add_solver_options(run)
    run.add_argument("--every", type=int, help="record every n-th tick")
    add_realtime_options(run)
    again = add_command(
        commands,
        "replay",
        _replay_log,
        "repeat a real-time run from its log, bit for bit, without devices",
        "biella replay log.h5 examples/01_first_loop.py --set p.k=0.8 --out other.csv",
    )
    again.add_argument("log", type=Path, help="the log: an HDF5 file of a real-time run")
    again.add_argument(
        "file", type=Path, nargs="?",
        help="the Python file that was run; needed if it has Python blocks or FMUs",
    )  # fmt: skip
    again.add_argument(
        "--bind", type=Path, metavar="RIG",
        help="binding of the run; needed if it names FMUs or drivers of other packages",
    )  # fmt: skip
    again.add_argument(
        "--allow-changed-code", action="store_true",
        help="replay although FMUs or Python blocks have changed",
    )  # fmt: skip
    add_run_options(again, recorded=True)
    again.add_argument("--every", type=int, help="record every n-th tick")


def add_realtime_options(parser: argparse.ArgumentParser) -> None:
    """Add what only real-time runs have."""
    parser.add_argument(
        "--bind", type=Path, metavar="RIG", help=("binding to devices and FMUs, such as rig.toml")
    )
    parser.add_argument(
        "--studio", type=int, nargs="?", const=0, metavar="PORT",
        help="serve the run to the browser, see `biella studio`",
    )  # fmt: skip
    parser.add_argument("--clock", help="wall (default), free, or device:NAME")
    parser.add_argument("--factor", type=float, help="simulated seconds per second")
    parser.add_argument(
        "--overrun",
        choices=("stop", "skip", "catch_up", "slip"),
        help="action after a missed deadline (default: skip)",
    )
    parser.add_argument("--max-overruns", type=int, help="overruns that the run tolerates")
    parser.add_argument(
        "--max-consecutive-overruns", type=int, help="the same limit for consecutive overruns"
    )
    parser.add_argument(
        "--warmup-ticks", type=int, help=("ticks at the start whose overruns are not counted")
    )
    parser.add_argument(
        "--watchdog", type=float, metavar="S",
        help="time that a tick may take until the run is latched in s (0: any)",
    )  # fmt: skip
    parser.add_argument(
        "--max-stall", type=float, metavar="S",
        help="lateness that latches the run in s (0: any)",
    )  # fmt: skip
    parser.add_argument(
        "--on-trip", choices=("latch", "stop"), help="what follows a trip (default: latch)"
    )
    parser.add_argument(
        "--guard", action="store_true", default=None,
        help="let another process send safe values if this one dies",
    )  # fmt: skip
    parser.add_argument(
        "--spin", type=float, default=0.0, help=("time of busy waiting before each deadline in s")
    )
    parser.add_argument("--profile", action="store_true", help="measure the time of each block")
    parser.add_argument(
        "--privileges", action="store_true", help="request all real-time privileges"
    )
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help="stream to an HDF5 file, to replay"
    )
    parser.add_argument(
        "--log-age", type=float, help="seconds after which rows are in the log (default: 1)"
    )
    parser.add_argument(
        "--log-sync", action="store_true", default=None, help="wait for the disk at each write"
    )
    parser.add_argument(
        "--on-log-failure",
        choices=("continue", "stop"),
        help="action if the log cannot be written (default: continue)",
    )


def run_diagram(options: argparse.Namespace) -> None:
    """Run the diagram of a file in real time, and report the result."""
    require_picture(options.plot, options.mark_events)
    suffix = require_format("--out", options.out)
    diagram = load_diagram(options.file)
    stream = options.out if suffix in (".h5", ".hdf5") else None
    report_run(options, diagram.name, lambda: _run(options, diagram, stream))


def replay_log(options: argparse.Namespace, log: Path, diagram: Diagram | None) -> None:
    """Run a log again, and report the result."""
    require_picture(options.plot, options.mark_events)
    suffix = require_format("--out", options.out)
    stream = options.out if suffix in (".h5", ".hdf5") else None
    name = log.stem if diagram is None else diagram.name
    report_run(options, name, lambda: _replay(options, log, diagram, stream))


def _replay_log(options: argparse.Namespace) -> None:
    replay_log(options, options.log, load_diagram(options.file) if options.file else None)


def _run(options: argparse.Namespace, diagram: Diagram, stream: Path | None) -> Result:
    """Run in real time; print the report of the run, whatever ended it."""
    from rich.console import Console

    from ..scheduler.host._privileges import Privileges
    from ..scheduler.realtime._start import start_run

    if options.log and stream:
        raise BiellaError("--log and --out specify two HDF5 files: use one of them.")
    given = {
        "until": options.until,
        "clock": options.clock,
        "factor": options.factor,
        "record": options.record,
        "every": options.every,
        "out": options.log or stream,
        "log_age": options.log_age,
        "log_sync": options.log_sync,
        "on_log_failure": options.on_log_failure,
        "overrun": options.overrun,
        "max_overruns": options.max_overruns,
        "max_consecutive_overruns": options.max_consecutive_overruns,
        "warmup_ticks": options.warmup_ticks,
        "watchdog": options.watchdog,
        "max_stall": options.max_stall,
        "on_trip": options.on_trip,
        "guard": options.guard,
    }
    more: dict[str, Any] = {}
    if options.studio is not None:
        from ..studio._mechanism import show_mechanisms
        from ..studio._session import HISTORY

        given["record"] = options.record or ["*"]
        edit = partial(show_mechanisms, reactions=False, pushes=False)
        more = {"edit": edit, "history": HISTORY}
    run = start_run(
        diagram,
        given,
        {name: getattr(options, name) for name in ("step", "solver", "tolerance", "events")},
        bind=options.bind,
        parameters=dict(read_assignment(text) for text in options.set),
        spin=options.spin,
        privileges=Privileges.everything() if options.privileges else None,
        profile=options.profile,
        **more,
    )
    end = "Ctrl-C" if run.until is None else f"t = {run.until:g} s, or Ctrl-C"
    complain(f"running until {end}")
    try:
        return _serve(run, diagram, options.studio) if more else run.wait()
    finally:
        if not options.json:
            Console().print(run.report())
        if options.log and run.result.length:
            (complain if options.json else print)(f"wrote {options.log}")


def _serve(run: LiveRun, diagram: Diagram, port: int) -> Result:
    """Let the browser watch and control a run until it ends."""
    from ..studio._attached import AttachedSession
    from ..studio._server import StudioServer

    with run, StudioServer(AttachedSession(run, diagram), port) as server:
        complain(f"studio: {server.url}")
        return run.wait()


def _replay(
    options: argparse.Namespace, path: Path, diagram: Diagram | None, stream: Path | None
) -> Result:
    """Replay a log and report whether the results are identical."""
    from ..scheduler.realtime.log._replay import find_differences, replay
    from ..scheduler.results._result import Result

    log = Result.from_hdf5(path)
    parameters = dict(read_assignment(text) for text in options.set)
    result = replay(
        log,
        diagram,
        bind=getattr(options, "bind", None),
        allow_changed_code=getattr(options, "allow_changed_code", False),
        parameters=parameters,
        record=options.record,
        every=options.every,
        out=stream,
    )
    if parameters or options.record or options.every:
        return result
    different = find_differences(log, result)
    if different:
        raise BiellaError(f"these signals differ from the recording: {', '.join(different)}.")
    say = complain if options.json else print
    say(f"{len(log)} signals equal those of {path}, bit for bit")
    return result
