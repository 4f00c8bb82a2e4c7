"""The messages of the studio through a notebook: what `_server` is to a WebSocket.

A notebook delivers what a page sends while no cell runs; what the kernel sends arrives at any time.
Messages go in batches. The next batch is sent when the page has confirmed the last one, or after
half a second: the confirmation waits for a cell that runs. A page that confirms nothing for ten
minutes is sent nothing until it does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ... import __version__
from ...errors import BiellaError
from .._messages import Message, encode
from .._pages import Page
from .._server import PROTOCOL
from .._session import AbstractSession

_log = logging.getLogger("biella")

Post = Callable[[Message, list[bytes]], None]

_MOST_PAGES = 16
_MOST_REQUESTS = 256  # of a page that wait
_LARGEST_MESSAGE = 1 << 16
_LARGEST_BATCH = 4 << 20
_TURN_SECONDS = 1 / 30
_BUSY_SECONDS = 0.5
_GONE_SECONDS = 600.0
_CLOSE_SECONDS = 10.0


class Channel:
    """Pages of a session whose messages a notebook carries.

    Parameters
    ----------
    session
        What pages see and control.
    post
        Sends a message with its buffers to all views of the widget; called from the thread of the
        channel.
    """

    def __init__(self, session: AbstractSession, post: Post) -> None:
        self.session = session
        self._post = post
        self._talks: dict[str, _Talk] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="biella notebook", daemon=True)
        self._thread.start()
        session.announce = self._announce

    def receive(self, content: object) -> None:
        """Take what a view has sent, from any thread."""
        if isinstance(content, Mapping):
            with contextlib.suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(self._take, dict(content))

    def close(self) -> None:
        """End the thread; nothing is sent any more."""
        self.session.announce = lambda message, key="": None
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(_CLOSE_SECONDS)

    def _announce(self, message: Message, key: str = "") -> None:
        text = encode(message)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._spread, key or message["event"], text)

    # In the thread.

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            for talk in self._talks.values():
                talk.end()
            self._loop.run_until_complete(asyncio.sleep(0))  # tasks take notice
            self._loop.close()

    def _spread(self, key: str, text: str) -> None:
        for talk in self._talks.values():
            talk.keep(key, text)

    def _take(self, content: dict[str, Any]) -> None:
        view = content.get("view")
        if not isinstance(view, str) or not 0 < len(view) <= 64:
            return
        talk = self._talks.get(view)
        asked = content.get("do")
        if asked in ("open", "close"):
            if talk is not None:
                talk.end()
                del self._talks[view]
            if asked == "open" and len(self._talks) < _MOST_PAGES:
                self._talks[view] = _Talk(self.session, view, self._post)
            elif not self._talks:
                self._pause()
        elif talk is not None:
            talk.take(content)

    def _pause(self) -> None:
        """Pause a run that nobody sees any more."""
        with contextlib.suppress(BiellaError):
            if self.session.state().get("state") == "running":
                self.session.act("pause", {})


class _Talk:
    """One view: its page, what it has asked for, and what it has been sent."""

    def __init__(self, session: AbstractSession, view: str, post: Post) -> None:
        self._session, self._view, self._post = session, view, post
        self._page: Page | None = None
        self._requests: asyncio.Queue[str] = asyncio.Queue(_MOST_REQUESTS)
        self._answers: list[str] = []
        self._sent = self._confirmed = 0
        self._sent_at = self._heard_at = time.monotonic()
        self._tasks = [asyncio.ensure_future(job()) for job in (self._answer_all, self._send_all)]

    def keep(self, key: str, text: str) -> None:
        if self._page is not None:
            self._page.keep(key, text)

    def take(self, content: Mapping[str, Any]) -> None:
        self._heard_at = time.monotonic()
        number, text = content.get("ack"), content.get("text")
        if isinstance(number, int):
            self._confirmed = max(self._confirmed, min(number, self._sent))
        if isinstance(text, str):
            try:
                self._requests.put_nowait(text)
            except asyncio.QueueFull:
                self._answers.append(_refuse(None, "too many requests at once."))

    def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._page is not None:
            self._page.close()

    async def _answer_all(self) -> None:
        while True:
            self._answers.append(await self._answer(await self._requests.get()))

    async def _answer(self, text: str) -> str:
        try:
            request = json.loads(text) if len(text) <= _LARGEST_MESSAGE else None
        except (ValueError, RecursionError):
            request = None
        if not isinstance(request, dict):
            return _refuse(None, "a request is a JSON object of at most 64 KB.")
        number = request.get("id")
        number = number if isinstance(number, int | str) else None
        try:
            said = self._greet(request) if self._page is None else await self._page.act(request)
        except BiellaError as error:
            return _refuse(number, str(error))
        except Exception as error:  # a page does not end the channel
            return _refuse(number, f"{type(error).__name__}: {error}")
        return encode({"id": number, "ok": True, **said})

    def _greet(self, request: Message) -> Message:
        """Return the answer to the first request; the notebook has no need of a token."""
        if request.get("do") != "hello" or request.get("protocol") != PROTOCOL:
            raise BiellaError(f"the first request is a hello with the protocol {PROTOCOL}.")
        self._page = page = Page(self._session)
        for message in self._session.describe():
            page.keep(message["event"], encode(message))
        hello = {"event": "hello", "protocol": PROTOCOL, "biella": __version__}
        hello |= {"mode": self._session.mode, "can": self._session.can}
        return hello | self._session.introduce()

    async def _send_all(self) -> None:
        while True:
            if self._may_send():
                try:
                    self._send()
                except Exception:
                    _log.exception("a page in a notebook is no longer served")
                    return
            await asyncio.sleep(_TURN_SECONDS)

    def _may_send(self) -> bool:
        now = time.monotonic()
        if self._confirmed == self._sent:
            return True
        return now - self._sent_at >= _BUSY_SECONDS and now - self._heard_at < _GONE_SECONDS

    def _send(self) -> None:
        """Send answers first, then what is new, up to the size of a batch."""
        texts: list[str | None] = [*self._answers]
        self._answers.clear()
        buffers: list[bytes] = []
        size = 0
        for message in self._page.take() if self._page is not None else ():
            size += len(message)
            if isinstance(message, str):
                texts.append(message)
            else:
                texts.append(None)
                buffers.append(message)
            if size >= _LARGEST_BATCH:
                break
        if texts:
            self._sent += 1
            self._sent_at = time.monotonic()
            self._post({"view": self._view, "number": self._sent, "texts": texts}, buffers)


def _refuse(number: int | str | None, text: str) -> str:
    return encode({"id": number, "ok": False, "error": text})
