"""Helpers shared by the commands."""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..scheduler.results._result import Result

from ..errors import BiellaError, BlockError, DeviceError, OverrunError

FORMATS = (".csv", ".h5", ".hdf5", ".mf4")
"""File formats of results."""


def add_command(
    commands: Any, name: str, function: Any, text: str, example: str, file: str = ""
) -> argparse.ArgumentParser:
    """Add a command that calls `function`, with an example; `file` describes its file argument."""
    added: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=f"example: {example}",
    )
    added.set_defaults(command=function)
    if file:
        added.add_argument("file", type=Path, help=file)
    return added


ISOLATION = ("process", "strict")
"""Values of ``--isolate``; alone it means the first."""


def end_options(given: Sequence[str]) -> list[str]:
    """Keep what follows ``--isolate`` alone, such as the file, from being read as its value."""
    following = [*given, ""][1:]
    return [
        f"{text}={ISOLATION[0]}" if text == "--isolate" and value not in ISOLATION else text
        for text, value in zip(given, following, strict=True)
    ]


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def print_json(told: Any) -> None:
    """Print plain data for a script."""
    print(json.dumps(told, ensure_ascii=False, indent=2, default=str))


EXIT_OK, EXIT_WARNINGS = 0, 3


def complain(text: str) -> None:
    """Print a message, which is not a result, to stderr."""
    print(f"biella: {text}", file=sys.stderr)


def read_assignment(text: str, option: str = "--set", strings: bool = False) -> tuple[str, Any]:
    """Return path and value of ``pid.kp=3``."""
    path, separator, value = text.partition("=")
    if not separator or not path.strip():
        raise BiellaError(f"{option} requires PATH=VALUE, such as pid.kp=3, got `{text}`.")
    try:
        return path.strip(), ast.literal_eval(value.strip())
    except (ValueError, TypeError, SyntaxError):
        if strings:
            return path.strip(), value
        raise BiellaError(f"{option} {path}: `{value}` is not a number or list.") from None


def require_format(option: str, path: Path | None) -> str:
    """Return the extension of a result's file, in small letters; "" without one."""
    suffix = path.suffix.lower() if path else ""
    if path and suffix not in FORMATS:
        raise BiellaError(f"{option} requires a file .csv, .mf4 or .h5, got `{path}`.")
    require_folder(path)
    if suffix == ".mf4":
        from ..scheduler.results._mdf import load_asammdf

        load_asammdf()  # rather than find after the run that it is not there
    return suffix


def require_folder(path: Path | None) -> None:
    """Reject a file in a missing folder before the run instead of after it."""
    if path is not None and not path.parent.is_dir():
        raise BiellaError(f"cannot write `{path}`: there is no folder `{path.parent}`.")


def require_picture(path: Path | None, marks: Sequence[str] | None = None) -> None:
    """Reject a picture in a missing folder, or of an unknown format, before the run.

    Also `marks` of events without a picture.
    """
    if marks and path is None:
        raise BiellaError("--mark-events requires --plot.")
    require_folder(path)
    if path is not None and str(path) != "-":
        from ..blocks.core._figure import check_picture_format

        check_picture_format(path)


def write_result(result: Any, path: Path) -> None:
    """Write a result in the format that the extension names."""
    writers = {".csv": result.to_csv, ".mf4": result.to_mdf4}
    writers.get(path.suffix.lower(), result.to_hdf5)(path)


def print_result(result: Any, as_json: bool) -> None:
    """Print the result of a run: a table, or for a script the last, minimum and maximum values."""
    if not as_json:
        print(result)
        return
    signals = {}
    for path in result.paths:
        values = result[path]
        signals[path] = {"unit": result.units[path]}
        if names := result.signals[path].names:
            signals[path]["names"] = names
        if len(values):
            ends = {"last": values[-1], "least": values.min(0), "most": values.max(0)}
            signals[path] |= {name: value.tolist() for name, value in ends.items()}
    times = {"start": float(result.t[0]), "end": float(result.t[-1])} if result.length else {}
    keys = ("diagram", "step", "solver", "ticks", "stopped", "recording")
    info = {key: result.info.get(key) for key in keys}
    events = {
        "total": result.events.total,
        "truncated": result.events.truncated,
        "sources": result.events.counts,
    }
    found = {"times": result.length, "events": events, "signals": signals}
    print_json({**info, **times, **found})


def plot_result(
    result: Any, target: Path, otherwise: Path, *signals: str, events: Sequence[str] = ()
) -> Path:
    """Draw a result to `target`, or to `otherwise` if none was named; mark `events` of blocks."""
    path = otherwise if str(target) == "-" else target
    result.plot(*signals, path=path, events=True if "*" in events else list(events) or False)
    return path


def report_run(options: argparse.Namespace, name: str, run: Callable[[], Result]) -> None:
    """Write the result of a run of `name` according to ``--out``, ``--plot`` and ``--json``."""
    suffix = options.out.suffix.lower() if options.out else ""
    try:
        result = run()
    except (BlockError, DeviceError, OverrunError) as error:
        if suffix in (".csv", ".mf4") and error.result is not None:
            write_result(error.result, options.out)
            complain(f"data recorded until then are in {options.out}")
        raise
    if not result.length:
        raise BiellaError("no row was recorded: there is no result.")
    print_result(result, options.json)
    say = complain if options.json else print
    if suffix in (".csv", ".mf4"):
        write_result(result, options.out)
    if options.out:
        say(f"wrote {options.out}")
    if options.plot:
        otherwise = Path(f"{name.replace(' ', '_')}.png")
        drawn = plot_result(
            result,
            options.plot,
            otherwise,
            *(options.record or ()),
            events=options.mark_events or (),
        )
        say(f"wrote {drawn}")
