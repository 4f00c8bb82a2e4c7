"""`biella run`: a diagram offline, in real time, or again from a log."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..blocks.core.ports import Same
from ..blocks.core.units import Unit
from ..errors import BiellaError, BlockError, DeviceError, OverrunError, name_list, suggest
from .load import load_diagram
from .shared import (
    add_command,
    add_json,
    complain,
    plot_result,
    read_assignment,
    require_format,
    require_picture,
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
    run.add_argument(
        "--input", type=Path, metavar="CSV",
        help="table: times, then a column for each input of the diagram, or source block, that it "
        "drives",
    )  # fmt: skip
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
    require_picture(options.plot)
    if options.input and (options.replay or options.realtime or options.bind):
        raise BiellaError(
            "--input is for offline runs: in real time connect a Playback block or a device."
        )
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
    from ..scheduler.run.simulate import simulate

    step = options.step or diagram.step
    played = _play_columns(diagram, options.input) if options.input else None
    return simulate(
        diagram.compile(step=options.step, solver=options.solver, replace=played),
        diagram.start + 1000 * step if options.until is None else options.until,
        None,
        None,
        options.record,
        dict(read_assignment(text) for text in options.set),
        every=1 if options.every is None else options.every,
        out=stream,
    )


def _play_columns(diagram: Any, path: Path) -> dict[str, Any]:
    """Return what plays each column of a table, by the input or source block that it drives."""
    from ..blocks.basic.playback import Playback, check_unit, read_columns

    times, columns = read_columns(path)
    if "" in columns:
        raise BiellaError(f"the first row of `{path}` must name its columns: time, then inputs.")
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
            raise BiellaError(f"`{name}` is {port.kind}: a table drives inputs that are real.")
        if isinstance(port.width, int) and port.width != width:
            raise BiellaError(f"`{name}` has {port.width} elements, but `{path}` {width}.")
        check_unit(path, name, column.unit, port.unit)
        unit = str(port.unit) if isinstance(port.unit, Unit) else column.unit
        played[name] = Playback(times, column.values, unit=unit)
    return played


def _pace(options: argparse.Namespace, diagram: Any, stream: Path | None) -> Any:
    """Run in real time; tell how that went, whatever ended it."""
    from rich.console import Console

    from ..scheduler.host.privileges import Privileges
    from ..scheduler.realtime.start import start

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
    from ..scheduler.realtime.replay import find_differences, replay
    from ..scheduler.results.result import Result

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
