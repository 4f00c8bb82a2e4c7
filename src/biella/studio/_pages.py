"""A page that is connected: what it has subscribed to, and what it still has to be sent."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator
from typing import Any

from ..errors import BiellaError, name_list, suggest
from ._messages import Message, encode
from ._scopes import LATEST, Scope, pack
from ._session import AbstractSession, read_number

_MOST_SCOPES = 64
_MOST_COLUMNS = 256  # of a scope
_MOST_WINDOW = 4000
_STATE_SECONDS = 0.2
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
        self._watching = False
        self._kept: dict[str, str] = {}
        self._answers: list[bytes] = []
        self._view = session.view
        self._state_at = self._watched_at = -math.inf

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
                scope.restart(self._view.find_columns(scope.signals))
        while self._kept:
            yield self._kept.pop(next(iter(self._kept)))
        now = time.monotonic()
        if now >= self._state_at + _STATE_SECONDS:
            self._state_at = now
            yield encode(self.session.state())
        while self._answers:
            yield self._answers.pop(0)
        rows = self._view.rows
        for scope in list(self._scopes.values()):
            samples = scope.take(rows)
            if samples is not None:
                yield samples
        yield from self._take_poses()
        if self._watching and now >= self._watched_at + _WATCH_SECONDS and rows.end:
            self._watched_at = now
            _, found = rows.read(rows.end - 1, rows.end)
            if found.shape[1]:
                yield pack(LATEST, 0, len(found) - 1, 1, 0, found[:, 0])

    def _take_poses(self) -> Iterator[bytes]:
        end = self._view.rows.end
        if not end or not self.session.is_live:
            return
        for number, mechanism in enumerate(self._view.mechanisms):
            if mechanism.path in self._mechanisms and self._posed.get(mechanism.path) != end:
                self._posed[mechanism.path] = end
                message = mechanism.pose_at(self._view.rows, end - 1, number)
                if message is not None:
                    yield message

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
            found: Message | None = own(request)
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
        known = self._view.signals
        for path in signals:
            if path not in known:
                raise BiellaError(f"there is no signal `{path}`.{suggest(path, known)}")
        columns = self._view.find_columns(signals)
        if len(columns) > _MOST_COLUMNS:
            raise BiellaError(f"a scope has up to {_MOST_COLUMNS} values, got {len(columns)}.")
        self._scopes[number] = Scope(number, signals, columns, rate, history)

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
            message = self._view.mechanisms[number].pose_at(rows, row, number)
            if message is None:
                raise BiellaError("nothing is recorded yet.")
            self._answer(message)
            return
        (self._mechanisms.add if request.get("on") is True else self._mechanisms.discard)(path)
        self._posed.pop(path, None)

    def _do_window(self, request: Message) -> None:
        number = _whole(request, "scope", 0, (1 << 32) - 1)
        if number not in self._scopes:
            raise BiellaError(f"there is no scope {number}: subscribe first.")
        first, last = (read_number(request, name, math.nan) for name in ("t0", "t1"))
        bins = min(_whole(request, "bins", 1, 1 << 20), _MOST_WINDOW)
        if not first < last:
            raise BiellaError(f"`t0` must be before `t1`, got {first:g} and {last:g}.")
        self._answer(self._scopes[number].window(self._view.rows, first, last, bins))

    def _answer(self, message: bytes) -> None:
        if len(self._answers) >= 2 * _MOST_SCOPES:
            raise BiellaError("too many requests at once.")
        self._answers.append(message)


def _whole(request: Message, name: str, least: int, most: int) -> int:
    value = request.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BiellaError(f"`{name}` is a whole number from {least} to {most}, got {value!r}.")
    return value
