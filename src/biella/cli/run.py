"""`biella run`: a diagram offline, in real time, or again from a log."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..errors import BiellaError, BlockError, DeviceError, OverrunError
from .load import load_diagram
from .shared import (
    add_command,
    add_json,
    complain,
    plot_result,
    read_assignment,
    require_folder,
    require_format,
    tell_result,
    write_result,
)


def add_commands(commands: Any) -> None:
    """Add ``run``."""
    run = add_command(
        commands,
        "run",
        _run,
        "run a diagram: offline, in real time, or again from a log",
        "biella run examples/01_first_loop.py --until 5 --set p.k=0.8 --plot loop.png",
        "a Python file that defines diagram()",
    )
    run.add_argument(
        "--until",
        type=float,
        default=None,
        help="end time in s (default: 1000 steps; in real time: until Ctrl-C)",
    )
    run.add_argument("--step", type=float, help="base step in s, instead of the diagram's own")
    run.add_argument("--solver", help="solver, instead of the diagram's own")
    run.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="set a parameter or an input; may be repeated",
    )
    run.add_argument(
        "--record", action="append", metavar="PATH", help="record this signal only; may be repeated"
    )
    run.add_argument("--every", type=int, help="record every n-th tick")
    run.add_argument("--out", type=Path, help="write the result: .csv, .mf4 or .h5 (streamed)")
    run.add_argument(
        "--plot",
        type=Path,
        nargs="?",
        const=Path("-"),
        help="draw the signals to a file (default: name of the diagram, .png)",
    )
    add_json(run)
    _add_realtime_options(run)


def _add_realtime_options(run: argparse.ArgumentParser) -> None:
    """Add what concerns runs that keep pace with a clock."""
    paced = run.add_argument_group("in real time")
    paced.add_argument("--realtime", action="store_true", help="keep pace with the wall clock")
    paced.add_argument("--bind", type=Path, metavar="RIG", help="which parts are real: rig.toml")
    paced.add_argument("--clock", help="wall (default), free, or device:NAME")
    paced.add_argument("--factor", type=float, help="simulated seconds for each second")
    paced.add_argument(
        "--overrun",
        choices=("stop", "skip", "catch_up", "slip"),
        help="what follows a missed deadline (default: skip)",
    )
    paced.add_argument("--tolerated", type=int, help="overruns with which the run goes on")
    paced.add_argument("--tolerated-in-a-row", type=int, help="likewise, one after the other")
    paced.add_argument("--grace", type=int, help="ticks at the start that do not count")
    paced.add_argument("--spin", type=float, default=0.0, help="s awake before each deadline")
    paced.add_argument("--profile", action="store_true", help="measure the time of each block")
    paced.add_argument(
        "--privileges", action="store_true", help="ask the system for all that keeps ticks on time"
    )
    paced.add_argument("--log", type=Path, metavar="FILE", help="stream to an HDF5 file, to replay")
    paced.add_argument("--replay", type=Path, metavar="LOG", help="run a log again, to the bit")


def _run(options: argparse.Namespace) -> None:
    suffix = require_format("--out", options.out)
    require_folder(options.plot)
    diagram = load_diagram(options.file)
    stream = options.out if suffix in (".h5", ".hdf5") else None
    try:
        if options.replay:
            result = _replay(options, diagram, stream)
        elif options.realtime or options.bind:
            result = _pace(options, diagram, stream)
        else:
            result = _simulate(options, diagram, stream)
    except (BlockError, DeviceError, OverrunError) as error:
        if suffix in (".csv", ".mf4") and error.result is not None:
            write_result(error.result, options.out)
            complain(f"what was recorded until then is in {options.out}")
        raise
    if not result.length:
        raise BiellaError("no row was recorded: there is no result.")
    tell_result(result, options.json)
    say = complain if options.json else print
    if suffix in (".csv", ".mf4"):
        write_result(result, options.out)
    if options.out:
        say(f"wrote {options.out}")
    if options.plot:
        otherwise = Path(f"{diagram.name.replace(' ', '_')}.png")
        say(f"wrote {plot_result(result, options.plot, otherwise, *(options.record or ()))}")


def _simulate(options: argparse.Namespace, diagram: Any, stream: Path | None) -> Any:
    from ..scheduler.simulate import simulate

    step = options.step or diagram.step
    return simulate(
        diagram,
        diagram.start + 1000 * step if options.until is None else options.until,
        options.step,
        options.solver,
        options.record,
        dict(read_assignment(text) for text in options.set),
        every=1 if options.every is None else options.every,
        out=stream,
    )


def _pace(options: argparse.Namespace, diagram: Any, stream: Path | None) -> Any:
    """Run in real time; tell how that went, whatever ended it."""
    from rich.console import Console

    from ..scheduler.privileges import Privileges
    from ..scheduler.realtime import start

    if options.log and stream:
        raise BiellaError("--log and --out name two HDF5 files: one of them has it all.")
    run = start(
        diagram,
        options.until,
        clock=options.clock,
        bind=options.bind,
        factor=options.factor,
        record=options.record,
        every=options.every,
        out=options.log or stream,
        parameters=dict(read_assignment(text) for text in options.set),
        step=options.step,
        solver=options.solver,
        overrun=options.overrun,
        tolerated=options.tolerated,
        tolerated_in_a_row=options.tolerated_in_a_row,
        grace=options.grace,
        spin=options.spin,
        privileges=Privileges.everything() if options.privileges else None,
        profile=options.profile,
    )
    end = "Ctrl-C" if run.until is None else f"t = {run.until:g} s, or Ctrl-C"
    complain(f"running until {end}")
    try:
        return run.wait()
    finally:
        if not options.json:
            Console().print(run.report())
        if options.log and run.result.length:
            (complain if options.json else print)(f"wrote {options.log}")


def _replay(options: argparse.Namespace, diagram: Any, stream: Path | None) -> Any:
    """Run a log again, and say whether it came out the same."""
    from ..scheduler.replay import find_differences, replay
    from ..scheduler.result import Result

    log = Result.from_hdf5(options.replay)
    parameters = dict(read_assignment(text) for text in options.set)
    result = replay(
        log,
        diagram,
        parameters=parameters,
        record=options.record,
        every=options.every,
        out=stream,
    )
    if parameters or options.record or options.every:
        return result
    different = find_differences(log, result)
    if different:
        raise BiellaError(
            f"these signals came out otherwise than recorded: {', '.join(different)}."
        )
    say = complain if options.json else print
    say(f"{len(log)} signals are those of {options.replay}, bit for bit")
    return result
