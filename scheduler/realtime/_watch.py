"""`biella watch`: the latest values of a live run, in another terminal.

A live run keeps a page in a folder that only its user may enter: a file in memory, with the names
of all signals and, ten times a second, their values. A counter that is odd while the page is being
written lets readers see whether what they read belongs together; neither side ever waits.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import mmap
import os
import re
import secrets
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...errors import BiellaError, name_list, suggest
from ..compile.plan._plan import Plan
from ..results._signals import format_value

if TYPE_CHECKING:
    from rich.table import Table

MAGIC = b"biella1\n"
_HEAD = struct.Struct("<8sQQQ")  # magic, counter, bytes of the description, number of values
_COUNTER = struct.Struct("<Q")
_COUNTER_AT = 8
_SUFFIX = ".live"
_FIRST = ("tick", "wall")  # values before those of the signals: tick, time of the system in s
_LAST = ("latched",)  # and after them
_SECONDS = 0.1
_TRIES = 1000


def runtime_folder() -> Path:
    """Return the folder of pages, made if it is not there; only this user may enter it."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    folder = Path(base) / "biella" if base else Path(tempfile.gettempdir()) / f"biella-{user}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = folder.stat(follow_symlinks=False)
    if folder.is_symlink() or (hasattr(os, "getuid") and about.st_uid != os.getuid()):
        raise BiellaError(f"`{folder}` belongs to another user: set XDG_RUNTIME_DIR.")
    if about.st_mode & 0o077 and os.name == "posix":
        folder.chmod(0o700)
    return folder


class Page:
    """The page of a live run: the writer's side.

    Parameters
    ----------
    place
        Returns where the value of a slot is in frames.
    room
        Bytes for what is known besides the signals.
    """

    def __init__(self, plan: Plan, place: Callable[[int], int], room: int = 0) -> None:
        # The diagnostic signals of couplings are not in frames.
        ports = [port for block in plan.blocks for port in block.outputs]
        ports += [port for path, port in plan.solver_signals.items() if path not in plan.signals]
        signals: list[tuple[str, int, int, str | None]] = [
            (port.path, place(port.slot) - 1, port.width, port.unit) for port in ports
        ]
        about = {"name": plan.name, "pid": os.getpid(), "step": plan.step, "signals": signals}
        about["on_request"] = [path for path in plan.solver_signals if path not in plan.signals]
        about["last"] = _LAST
        about["room"] = room
        about["names"] = {port.path: port.names for port in ports if port.names}
        text = json.dumps(about).encode()
        text += b" " * (-len(text) % 8)
        last = max((item[1] + item[2] for item in signals), default=0)
        count = len(_FIRST) + last + len(_LAST)
        self.path = runtime_folder() / f"{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}"
        size = _HEAD.size + len(text) + 8 * count + room
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.truncate(handle, size)
            self._map = mmap.mmap(handle, size)
        finally:
            os.close(handle)
        self._map[_HEAD.size : _HEAD.size + len(text)] = text
        self._place = _HEAD.size + len(text)
        self._count = count
        self._room = room
        self._counter = 0
        _HEAD.pack_into(self._map, 0, MAGIC, 0, len(text), count)

    def write(
        self,
        frame: npt.NDArray[np.float64],
        *,
        latched: bool = False,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a frame, the tick and then all values, and what else is known, if it has room."""
        signals = frame[1 : 1 + self._count - len(_FIRST) - len(_LAST)]
        values = np.concatenate([[frame[0], time.time()], signals, [float(latched)]])
        text = json.dumps(about or {}).encode()
        text = text if len(text) <= self._room else b""
        end = self._place + 8 * self._count
        self._count_up()
        self._map[self._place : end] = values.tobytes()
        self._map[end : end + self._room] = text.ljust(self._room)
        self._count_up()

    def _count_up(self) -> None:
        self._counter += 1
        _COUNTER.pack_into(self._map, _COUNTER_AT, self._counter)

    def close(self) -> None:
        """Take the page away."""
        with contextlib.suppress(OSError):
            self.path.unlink()
        self._map.close()


@dataclass(frozen=True)
class Glance:
    """Content of a page at one time."""

    name: str
    pid: int
    tick: int
    time: float
    """Of the diagram, s since its start."""
    age: float
    """Of the page, s."""
    values: dict[str, Any]
    units: dict[str, str | None]
    on_request: frozenset[str] = frozenset()
    """Signals that are shown only if they are named: the counters of the solver."""
    names: dict[str, list[str]] = field(default_factory=dict)
    """Of enumerations: the names of their values, from 1 on."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Devices, timing and newest events, as `describe_for_watch` gives them; empty if unknown."""
    latched: bool = False
    """Whether the run stands still and sends safe values until it is armed again."""

    def show(self, path: str) -> str:
        """Return a value as text: by name, if it has one."""
        value, names = self.values[path], self.names.get(path, [])
        if not isinstance(value, list):
            return format_value(value, names)
        shown = ", ".join(format_value(item, names) for item in value[:6])
        return f"[{shown}{', …' if len(value) > 6 else ''}]"


def read_page(path: Path) -> Glance | None:
    """Return the content of a page; None if it is empty or not a page."""
    try:
        with path.open("rb") as file:
            return _read(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return None


def _read(page: memoryview) -> Glance | None:
    magic, _, length, count = _HEAD.unpack_from(page)
    if magic != MAGIC or _HEAD.size + length + 8 * count > len(page) or count < len(_FIRST):
        return None
    about = json.loads(bytes(page[_HEAD.size : _HEAD.size + length]))
    for _ in range(_TRIES):
        (before,) = _COUNTER.unpack_from(page, _COUNTER_AT)
        place = _HEAD.size + length
        end = place + 8 * count
        values = np.frombuffer(bytes(page[place:end]))
        more = bytes(page[end : end + about.get("room", 0)]).strip()
        (after,) = _COUNTER.unpack_from(page, _COUNTER_AT)
        if before == after and before % 2 == 0:
            break
    else:
        return None
    if before == 0:
        return None
    signals = values[len(_FIRST) :]
    found = {
        path: float(signals[at]) if width == 1 else signals[at : at + width].tolist()
        for path, at, width, _ in about["signals"]
    }
    return Glance(
        about["name"],
        about["pid"],
        int(values[0]),
        float(values[0]) * about["step"],
        max(0.0, time.time() - float(values[1])),
        found,
        {path: unit for path, _, _, unit in about["signals"]},
        frozenset(about.get("on_request", ())),
        about.get("names", {}),
        json.loads(more) if more else {},
        "latched" in about.get("last", ()) and bool(values[-1]),
    )


def find_pages() -> list[Path]:
    """Return the pages of runs that go on; those that killed processes have left are removed."""
    pages = []
    for path in sorted(runtime_folder().glob(f"*{_SUFFIX}")):
        if _is_alive(path.name.partition("-")[0]):
            pages.append(path)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
    return pages


def _is_alive(pid: str) -> bool:
    if not re.fullmatch("[0-9]{1,9}", pid):
        return False
    if os.name != "posix":
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def choose_page(run: str | None) -> Path:
    """Return the page of a run, named by its process or its diagram; the only one if not named."""
    seen = [(path, glance) for path in find_pages() if (glance := read_page(path))]
    chosen = [path for path, glance in seen if run in (None, str(glance.pid), glance.name)]
    if len(chosen) == 1:
        return chosen[0]
    there = name_list([f"{glance.pid} ({glance.name})" for _, glance in seen])
    if not seen:
        raise BiellaError(
            "there is no live run of yours on this machine. Start one in another terminal: "
            "biella run-realtime FILE."
        )
    if not chosen:
        raise BiellaError(f"there is no such live run of yours on this machine. Runs: {there}.")
    raise BiellaError(f"select the run to watch by its process number. Runs: {there}.")


def choose_values(glance: Glance, patterns: Sequence[str]) -> list[str]:
    """Return the signals that patterns name; all of blocks if there are none."""
    if not patterns:
        return [path for path in glance.values if path not in glance.on_request]
    chosen: dict[str, None] = {}
    for pattern in patterns:
        names = (pattern, f"{pattern}.y")
        found = [p for p in glance.values if p in names or fnmatchcase(p, pattern)]
        if not found:
            close = suggest(pattern, glance.values)
            raise BiellaError(
                f"no signal matches `{pattern}`.{close} Signals: {name_list(glance.values)}."
            )
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def tabulate(glance: Glance, names: Sequence[str], most: int | None = None) -> Table:
    """Return a table of values."""
    from rich import box
    from rich.table import Table

    state = ", LATCHED: `biella rearm` continues it" if glance.latched else ""
    state += "" if glance.age < 1.0 else f", no update for {glance.age:.0f} s"
    title = f"{glance.name}: t = {glance.time:.3f} s, tick {glance.tick}{state}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("signal")
    table.add_column("value", justify="right", min_width=14)
    table.add_column("unit")
    for name in names[:most]:
        table.add_row(name, glance.show(name), glance.units[name] or "")
    if most is not None and len(names) > most:
        table.add_row(f"… {len(names) - most} more", "", "")
    return table


def glances(path: Path) -> Iterator[Glance]:
    """Yield the content of a page ten times per second while it exists."""
    while path.exists():
        glance = read_page(path)
        if glance is not None:
            yield glance
        time.sleep(_SECONDS)


def watch(options: argparse.Namespace) -> None:
    """Show a run until it ends, or once."""
    from rich.console import Console
    from rich.live import Live

    console = Console()
    page = choose_page(options.run)
    glance = read_page(page)
    if glance is None:
        raise BiellaError("the run has just ended.")
    names = choose_values(glance, options.signal)
    if options.json:
        told = {"name": glance.name, "tick": glance.tick, "time": glance.time}
        told["latched"] = glance.latched
        print(json.dumps(told | {"values": {name: glance.values[name] for name in names}}))
    elif options.once:
        console.print(tabulate(glance, names))
    else:
        with contextlib.suppress(KeyboardInterrupt), Live(console=console) as live:
            for glance in glances(page):
                live.update(tabulate(glance, names, max(4, console.height - 6)))
