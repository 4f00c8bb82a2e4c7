"""A page that is connected: what it has subscribed to, and what it still has to be sent."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Iterator
from typing import Any

from ..errors import BiellaError, name_list, suggest
from ._export import FORMATS, ExportedFile, add_log, choose_rows, name_file, taking_turns
from ._mechanism import Mechanism
from ._messages import Message, encode, read_number
from ._scopes import LATEST, Scope, pack
from ._scrub import find_columns, mark, show_moment, show_values
from ._session import AbstractSession, View
from .mechanism._meshes import LARGEST

_MOST_SCOPES = 64
_MOST_COLUMNS = 256  # of a scope
_MOST_WINDOW = 4000
_MOST_EXPORTS = 8  # that a page has not received yet
_STATE_SECONDS = 0.2
_TIMING_SECONDS = 1.0
_WATCH_SECONDS = 0.1
_RATES = (1e-3, 1e6)


class Page:
    """One page.

    Parameters
    ----------
    session
        What it shows.
    """

    def __init__(self, session: AbstractSession) -> None:
        self.session = session
        self._scopes: dict[int, Scope] = {}
        self._mechanisms: set[str] = set()
        self._posed: dict[str, int] = {}  # the row that was sent last
        self._with_efforts: set[str] = set()
        self._pushed: set[str] = set()  # mechanisms that this page pushes
        self._watching = False
        self._kept: dict[str, str] = {}
        self._answers: list[bytes] = []
        self._files: list[ExportedFile] = []
        self._exported = 0
        self._view = session.view
        self._state_at = self._watched_at = self._timed_at = -math.inf

    def keep(self, key: str, text: str) -> None:
        """Keep a message until it can be sent; of those with one key, the newest."""
        self._kept.pop(key, None)
        self._kept[key] = text

    def take(self) -> Iterator[str | bytes]:
        """Yield what is new."""
        if self._view is not self.session.view:
            self._view = self.session.view
            self._posed.clear()
            for scope in self._scopes.values():
                view = self._find_view(scope.run)
                if view is not None:
                    scope.restart(self._find_columns(view, scope.signals))
        while self._kept:
            yield self._kept.pop(next(iter(self._kept)))
        now = time.monotonic()
        if now >= self._state_at + _STATE_SECONDS:
            self._state_at = now
            yield encode({"obstacle": self.session.obstacle, **self.session.state()})
        if now >= self._timed_at + _TIMING_SECONDS:
            self._timed_at = now
            timing = self.session.timing()
            if timing is not None:
                yield encode(timing)
        while self._answers:
            yield self._answers.pop(0)
        rows = self._view.rows
        now_shown = self._newest_time()
        for scope in list(self._scopes.values()):
            view = self._find_view(scope.run)
            if view is None:
                continue
            samples = scope.take(view.rows, None if scope.run is None else now_shown)
            if samples is not None:
                yield samples
        yield from self._take_poses()
        if self._files:
            part = self._files[0].take()
            if part is None:
                self._files.pop(0)
            else:
                yield part
        if self._watching and now >= self._watched_at + _WATCH_SECONDS and rows.end:
            self._watched_at = now
            _, found = rows.read(rows.end - 1, rows.end)
            if found.shape[1]:
                yield pack(LATEST, 0, len(found) - 1, 1, 0, found[:, 0])

    def _find_view(self, run: int | None) -> View | None:
        return self._view if run is None else self.session.find_view(run)

    def _find_columns(self, view: View, paths: list[str]) -> list[int]:
        """Return the columns of signals as wide as they are in the present run."""
        if view is self._view:
            return view.find_columns(paths)
        return find_columns(
            view, paths, [self._view.signals.get(path, (0, 1))[1] for path in paths]
        )

    def _newest_time(self) -> float | None:
        """Return the time up to which other runs are shown; None: all of them."""
        rows = self._view.rows
        if not self.session.is_live or not rows.end:
            return None
        _, found = rows.read(rows.end - 1, rows.end, [0])
        return float(found[0, 0]) if found.size else None

    def _take_poses(self) -> Iterator[bytes]:
        end = self._view.rows.end
        if not end or not self.session.is_live:
            return
        for number, mechanism in enumerate(self._view.mechanisms):
            if mechanism.path in self._mechanisms and self._posed.get(mechanism.path) != end:
                self._posed[mechanism.path] = end
                yield from self._show(mechanism, end - 1, number)

    def _show(self, mechanism: Mechanism, row: int, number: int) -> Iterator[bytes]:
        """Yield where the bodies are at a row, and the forces there if the page wants them."""
        messages = [mechanism.pose_at(self._view.rows, row, number)]
        if mechanism.path in self._with_efforts:
            messages.append(mechanism.efforts_at(self._view.rows, row, number))
        yield from (message for message in messages if message is not None)

    def close(self) -> None:
        """Let go of what the page pushes: nobody else knows that it should end."""
        for path in self._pushed:
            with contextlib.suppress(BiellaError):
                self.session.act("push", {"mechanism": path, "body": None})
        self._pushed.clear()

    async def act(self, request: Message) -> Message:
        """Do what a message asks for; return what the answer has.

        Raises
        ------
        BiellaError
            If the message is wrong, or it cannot be done.
        """
        name = request.get("do")
        if name not in self.session.can:
            allowed = name_list(self.session.can)
            raise BiellaError(f"`do` is one of {allowed} here, got {name!r}.")
        own = getattr(self, f"_do_{name}", None)
        if own is not None:
            found: Any = own(request)
            if asyncio.iscoroutine(found):
                found = await found
            return found or {}
        done: Any = self.session.act(str(name), request)
        if asyncio.isfuture(done) or hasattr(done, "add_done_callback"):
            done = await asyncio.wrap_future(done)
        return done or {}

    def _do_subscribe(self, request: Message) -> None:
        number = _whole(request, "scope", 0, (1 << 32) - 1)
        if number not in self._scopes and len(self._scopes) >= _MOST_SCOPES:
            raise BiellaError(f"a page has up to {_MOST_SCOPES} scopes.")
        signals = request.get("signals")
        if not isinstance(signals, list) or not all(isinstance(path, str) for path in signals):
            raise BiellaError("`signals` is a list of paths.")
        if len(signals) > _MOST_COLUMNS:
            raise BiellaError(f"a scope has up to {_MOST_COLUMNS} signals.")
        rate = read_number(request, "rate", 200.0)
        rate = min(max(rate, _RATES[0]), _RATES[1])
        history = max(0.0, read_number(request, "history", 0.0))
        run, view = self._read_run(request)
        known = self._view.signals
        for path in signals:
            if path not in known:
                raise BiellaError(f"there is no signal `{path}`.{suggest(path, known)}")
        columns = self._find_columns(view, signals)
        if len(columns) > _MOST_COLUMNS:
            raise BiellaError(f"a scope has up to {_MOST_COLUMNS} values, got {len(columns)}.")
        self._scopes[number] = Scope(number, signals, columns, rate, history, run)

    def _read_run(self, request: Message) -> tuple[int | None, View]:
        """Return the run of a request, and its rows; the present one if none is named."""
        run = request.get("run")
        if run is None:
            return None, self._view
        view = self.session.find_view(run) if type(run) is int else None
        if view is None:
            raise BiellaError(f"`run` is the number of a run, got {run!r}.")
        return run, view

    def _do_unsubscribe(self, request: Message) -> None:
        self._scopes.pop(_whole(request, "scope", 0, (1 << 32) - 1), None)

    def _do_watch(self, request: Message) -> None:
        self._watching = request.get("on") is True
        self._watched_at = -math.inf

    def _do_poses(self, request: Message) -> None:
        paths = [mechanism.path for mechanism in self._view.mechanisms]
        path = request.get("mechanism")
        if path not in paths:
            raise BiellaError(f"there is no mechanism {path!r}. Mechanisms: {name_list(paths)}.")
        if request.get("t") is not None:
            rows = self._view.rows
            row = min(max(rows.find(read_number(request, "t", 0.0)), rows.begin), rows.end - 1)
            number = paths.index(path)
            messages = list(self._show(self._view.mechanisms[number], row, number))
            if not messages:
                raise BiellaError("nothing is recorded yet.")
            for message in messages:
                self._answer(mark(message))
            return
        on, efforts = request.get("on") is True, request.get("efforts") is True
        (self._mechanisms.add if on else self._mechanisms.discard)(path)
        (self._with_efforts.add if on and efforts else self._with_efforts.discard)(path)
        self._posed.pop(path, None)

    def _do_mesh(self, request: Message) -> None:
        paths = [mechanism.path for mechanism in self._view.mechanisms]
        path = request.get("mechanism")
        if path not in paths:
            raise BiellaError(f"there is no mechanism {path!r}. Mechanisms: {name_list(paths)}.")
        number = paths.index(path)
        mechanism = self._view.mechanisms[number]
        mesh = _whole(request, "number", 0, max(len(mechanism.meshes) - 1, 0))
        if not mechanism.meshes:
            raise BiellaError(f"no body of `{path}` has a mesh.")
        if sum(map(len, self._answers)) > LARGEST:
            raise BiellaError("too many requests at once.")  # a page that reads has taken them
        self._answer(mechanism.mesh_at(mesh, number))

    def _do_push(self, request: Message) -> None:
        path = request.get("mechanism")
        self.session.act("push", request)
        (self._pushed.discard if request.get("body") is None else self._pushed.add)(str(path))

    def _do_window(self, request: Message) -> None:
        number = _whole(request, "scope", 0, (1 << 32) - 1)
        if number not in self._scopes:
            raise BiellaError(f"there is no scope {number}: subscribe first.")
        first, last = (read_number(request, name, math.nan) for name in ("t0", "t1"))
        bins = min(_whole(request, "bins", 1, 1 << 20), _MOST_WINDOW)
        if not first < last:
            raise BiellaError(f"`t0` must be before `t1`, got {first:g} and {last:g}.")
        view = self._find_view(self._scopes[number].run)
        if view is None:
            raise BiellaError(f"the run of scope {number} was deleted.")
        self._answer(self._scopes[number].window(view.rows, first, last, bins))

    def _do_moment(self, request: Message) -> Message:
        time = read_number(request, "t", math.nan)
        run, view = self._read_run(request)
        if run is not None:
            self._answer(show_values(view, run, time, self._view))
            return {"t": time}
        time, messages = show_moment(view, time, self._with_efforts)
        for message in messages:
            self._answer(message)
        return {"t": time}

    async def _do_export(self, request: Message) -> Message:
        format_ = request.get("format")
        if format_ not in FORMATS:
            raise BiellaError(f"`format` is one of {name_list(FORMATS)}, got {format_!r}.")
        run, view = self._read_run(request)
        paths = request.get("signals")
        if paths is None:
            paths = list(view.signals)
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise BiellaError("`signals` is a list of paths.")
        paths = [path for path in dict.fromkeys(paths) if path in view.signals]
        if not paths:
            raise BiellaError("none of `signals` is recorded.")
        first, last = (
            None if request.get(name) is None else read_number(request, name, math.nan)
            for name in ("t0", "t1")
        )
        if len(self._files) >= _MOST_EXPORTS:
            raise BiellaError("too many requests at once.")
        number = self._exported = self._exported + 1
        name = name_file(self.session.name_of(run), format_)
        course = self.session.find_course(run)

        def write() -> ExportedFile:
            info = {"diagram": str(self.session.introduce()["name"])}
            with taking_turns():
                result = choose_rows(view, paths, first, last, info)
                if course is not None and format_ == "h5" and first is last is None:
                    add_log(result, course)
                return ExportedFile(number, result, format_)

        file = await asyncio.to_thread(write)
        self._files.append(file)
        return {"file": number, "name": name, "size": file.size}

    def _answer(self, message: bytes) -> None:
        if len(self._answers) >= 2 * _MOST_SCOPES:
            raise BiellaError("too many requests at once.")
        self._answers.append(message)


def _whole(request: Message, name: str, least: int, most: int) -> int:
    value = request.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BiellaError(f"`{name}` is a whole number from {least} to {most}, got {value!r}.")
    return value
