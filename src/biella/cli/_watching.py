"""Arguments of `biella watch`, without its heavy imports."""

from __future__ import annotations

import argparse
from typing import Any


def add_command(commands: Any) -> None:
    """Add ``biella watch`` to the command line."""
    added: argparse.ArgumentParser = commands.add_parser(
        "watch",
        help="show the latest values of a live run, in another terminal",
        description="Show the latest values of a live run, ten times a second.",
        epilog="example: biella watch --signal 'pid.*' --signal realtime.lateness",
    )
    added.set_defaults(command=_watch)
    added.add_argument("run", nargs="?", help="process or diagram (default: the only one)")
    added.add_argument("--signal", action="append", default=[], metavar="PATH", help="only these")
    added.add_argument("--once", action="store_true", help="print once and exit")
    added.add_argument("--json", action="store_true", help="print once, as JSON")


def _watch(options: argparse.Namespace) -> None:
    from ..scheduler.realtime._watch import watch

    watch(options)
