"""`biella run`: the deprecated command for simulations, real-time runs and replays."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .._deprecation import REMOVAL
from ..errors import BiellaError
from ._load import load_diagram
from ._offline import add_run_options, add_solver_options, simulate_diagram
from ._realtime import add_realtime_options, replay_log, run_diagram
from ._shared import add_command, complain


def add_commands(commands: Any) -> None:
    """Add ``run``."""
    run = add_command(
        commands,
        "run",
        _run,
        "deprecated: see simulate, run-realtime and replay",
        "biella run FILE.py is now biella simulate FILE.py",
        "a Python file that defines diagram()",
    )
    run.add_argument("--until", type=float, help="end time in s")
    add_run_options(run)
    add_solver_options(run)
    run.add_argument("--every", type=int, help="record every n-th tick")
    run.add_argument("--input", type=Path, metavar="CSV", help="biella simulate --input")
    run.add_argument("--realtime", action="store_true", help="biella run-realtime")
    run.add_argument("--replay", type=Path, metavar="LOG", help="biella replay")
    add_realtime_options(run)


def _run(options: argparse.Namespace) -> None:
    if options.input and (options.replay or options.realtime or options.bind):
        raise BiellaError(
            "--input applies to offline runs: in real time connect a Playback block or a device."
        )
    if options.replay:
        _announce(f"run {options.file} --replay", f"replay {options.replay} {options.file}")
        replay_log(options, options.replay, load_diagram(options.file))
    elif options.realtime or options.bind:
        _announce(f"run {options.file} --realtime", f"run-realtime {options.file}")
        run_diagram(options)
    else:
        _announce(f"run {options.file}", f"simulate {options.file}")
        simulate_diagram(options)


def _announce(old: str, new: str) -> None:
    complain(f"`biella {old}` is deprecated and will be removed in {REMOVAL}: use `biella {new}`.")
