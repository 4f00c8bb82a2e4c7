"""Arguments of `biella watch`, without its heavy imports."""

from __future__ import annotations

import argparse
from typing import Any


def add_command(commands: Any) -> None:
    """Add ``biella watch``, ``rearm``, ``guard`` and ``key`` to the command line."""
    secret: argparse.ArgumentParser = commands.add_parser(
        "key",
        help="make a key for authenticated device links",
        description="Write a random key to a new file that only this user can read, for the option "
        "key of serial, udp and tcp devices. The device must have the same key.",
        epilog="example: biella key rig.key --header rig_key.h",
    )
    secret.set_defaults(command=_key)
    secret.add_argument("file", help="file to write")
    secret.add_argument("--header", metavar="FILE", help="also write it as C, for a board")
    outside: argparse.ArgumentParser = commands.add_parser(
        "guard",
        help="run a command and guard its real-time runs",
        description="Run a command. If its process dies or stops during a real-time run, send the "
        "safe values of the devices. The exit code is that of the command.",
        epilog="example: biella guard -- biella run-realtime rig.py --bind rig.toml",
    )
    outside.set_defaults(command=_guard)
    outside.add_argument("guarded", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    again: argparse.ArgumentParser = commands.add_parser(
        "rearm",
        help="continue a live run that its watchdog has latched",
        description="Continue a live run that was latched by its watchdog or by a stall: it sends "
        "live values again. Find the cause first.",
        epilog="example: biella rearm",
    )
    again.set_defaults(command=_rearm)
    again.add_argument("run", nargs="?", help="process or diagram (default: the only one)")
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


def _rearm(options: argparse.Namespace) -> None:
    from ..scheduler.realtime.safety._rearm import rearm

    rearm(options)


def _key(options: argparse.Namespace) -> None:
    from ..scheduler.devices._key import make_key

    make_key(options)


def _guard(options: argparse.Namespace) -> None:
    from ..scheduler.realtime.safety._guard import guard_command

    guard_command(options)
