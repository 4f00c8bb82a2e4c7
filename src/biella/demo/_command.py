"""`biella demo` on the command line."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ..errors import BiellaError


def add_command(commands: Any) -> None:
    """Add ``demo`` to the commands of biella."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo",
        help="build a test rig, run it offline and in real time, and write a page of figures",
        description="Build a slider-crank whose crank pin runs in oil, export it as an FMU, put it "
        "into a speed loop with instruments, run that offline and then at 1 kHz against the wall "
        "clock, and write the FMU, the log, figures and a page that shows them.",
        epilog="example: biella demo my-rig --seconds 10",
    )
    parser.set_defaults(command=_demo)
    parser.add_argument(
        "folder",
        type=Path,
        nargs="?",
        default=Path("biella-demo"),
        help="output folder (default: biella-demo)",
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="of each run (default: 5)")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")


def _demo(options: argparse.Namespace) -> None:
    from ._run import run_demo

    if not 0.5 <= options.seconds <= 3600.0:
        raise BiellaError(f"--seconds must be between 0.5 and 3600, got {options.seconds:g}.")
    if options.folder.exists() and not options.folder.is_dir():
        raise BiellaError(f"`{options.folder}` is a file: specify a folder.")
    rows = run_demo(options.folder, options.seconds, (lambda text: None) if options.json else _say)
    page = options.folder / "index.html"
    if options.json:
        table = [{"what": what, "figure": figure, "note": note} for what, figure, note in rows]
        print(json.dumps({"table": table, "page": str(page)}, indent=2, ensure_ascii=False))
        return
    _print_table(rows)
    print(f"all files are in {options.folder}: open {page}")
    rig = options.folder / "rig.py"
    print(f"to run it live in the browser: biella studio {rig} --bind {rig.with_suffix('.toml')}")


def _say(text: str) -> None:
    print(f"… {text}", flush=True)


def _print_table(rows: Any) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_header=False)
    table.add_column()
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
