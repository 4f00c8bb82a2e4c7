"""The studio's server: the page's files, and a WebSocket for each page, on loopback.

It runs in a thread of its own at low priority. A page is sent what is new 30 times a second, and
only after it has taken what came before: one that does not read misses bins and is dropped after
ten seconds, and nothing waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import mimetypes
import os
import secrets
import threading
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from .. import __version__
from ..errors import BiellaError
from ._messages import Message, encode
from ._pages import Page
from ._session import AbstractSession

PROTOCOL = 1
_log = logging.getLogger("biella")
FILES = Path(__file__).parent / "static"
"""The built page."""

_MOST_PAGES = 32
_MOST_CONNECTIONS = 64  # that have not said hello, too
_LARGEST_MESSAGE = 1 << 16
_HELLO_SECONDS = 5.0
_SEND_SECONDS = 10.0
_TURN_SECONDS = 1 / 30
_NICENESS = 10
_SECURITY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self' ws://{host}; worker-src 'self' blob:; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


class StudioServer:
    """Serves a session to pages until it is closed; also a context manager.

    Parameters
    ----------
    session
        What pages see and control.
    port
        0: any that is free.

    Attributes
    ----------
    token
        What a page has to know.
    """

    def __init__(self, session: AbstractSession, port: int = 0) -> None:
        if not 0 <= port <= 65535:
            raise BiellaError(f"--port must be 0, for any that is free, to 65535; got {port}.")
        self.session = session
        self.token = secrets.token_urlsafe(24)
        self.port = port
        self._pages: set[Page] = set()
        self._open = 0
        self._loop = asyncio.new_event_loop()
        self._failure: OSError | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="biella studio", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise BiellaError(
                f"port {port} of this computer cannot be used: {self._failure.strerror}. Name "
                f"another one with --port, or 0 for any that is free."
            ) from self._failure
        session.announce = self.announce

    @property
    def url(self) -> str:
        """Where the page is, with the token."""
        return f"http://127.0.0.1:{self.port}/#token={self.token}"

    def announce(self, message: Message, key: str = "") -> None:
        """Tell all pages, from any thread; of messages with the same key the newest counts."""
        text = encode(message)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._spread, key or message["event"], text)

    def _spread(self, key: str, text: str) -> None:
        for page in self._pages:
            page.keep(key, text)

    def close(self) -> None:
        """End all connections and the thread."""
        self.session.announce = lambda message, key="": None
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_SEND_SECONDS)

    def __enter__(self) -> StudioServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # In the thread.

    def _run(self) -> None:
        with contextlib.suppress(AttributeError, OSError):  # only Linux has it for threads
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._ready.set()
            self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        try:
            server = await serve(
                self._talk,
                "127.0.0.1",
                self.port,
                process_request=self._answer_request,
                compression=None,
                max_size=_LARGEST_MESSAGE,
                max_queue=8,
                open_timeout=_HELLO_SECONDS,
                close_timeout=1.0,
                ping_timeout=60.0,
                server_header=None,
            )
        except OSError as error:
            self._failure = error
            return
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        async with server:
            await self._stop.wait()

    def _hosts(self) -> Iterator[str]:
        for name in ("127.0.0.1", "localhost"):
            yield f"{name}:{self.port}"

    async def _answer_request(
        self, connection: ServerConnection, request: Request
    ) -> Response | None:
        """Send a file of the page; let a WebSocket through if it comes from this server's page."""
        host = request.headers.get("Host", "")
        if host not in self._hosts():
            return _refuse(HTTPStatus.FORBIDDEN, "This address is not that of the studio.")
        path = request.path.partition("?")[0]
        if path != "/live":
            return _send_file(path, host)
        origin = request.headers.get("Origin")
        if origin is not None and origin not in {f"http://{host}" for host in self._hosts()}:
            return _refuse(HTTPStatus.FORBIDDEN, "Another site may not use the studio.")
        if self._open >= _MOST_CONNECTIONS:
            return _refuse(HTTPStatus.SERVICE_UNAVAILABLE, "Too many connections.")
        return None

    async def _talk(self, connection: ServerConnection) -> None:
        """Talk with one page until it or the server is closed."""
        self._open += 1
        page: Page | None = None
        try:
            hello = await self._greet(connection)
            if hello is None:
                return
            if len(self._pages) >= _MOST_PAGES:
                await connection.close(1013, "too many pages")
                return
            page = Page(self.session)
            for message in self.session.describe():
                page.keep(message["event"], encode(message))
            await connection.send(hello)
            self._pages.add(page)
            sender = asyncio.create_task(self._send(connection, page))
            try:
                async for text in connection:
                    answer = await self._answer(page, text)
                    async with asyncio.timeout(_SEND_SECONDS):
                        await connection.send(answer)
            finally:
                sender.cancel()
                with contextlib.suppress(asyncio.CancelledError, ConnectionClosed, TimeoutError):
                    await sender
        except (ConnectionClosed, TimeoutError):
            connection.transport.abort()
        finally:
            self._open -= 1
            self._pages.discard(page) if page else None

    async def _greet(self, connection: ServerConnection) -> str | None:
        """Return the answer to the first message; None if the connection was refused."""
        async with asyncio.timeout(_HELLO_SECONDS):
            request = _read(await connection.recv())
        token = request.get("token")
        known = isinstance(token, str) and hmac.compare_digest(
            token.encode(errors="replace"), self.token.encode()
        )
        if request.get("do") != "hello" or not known:
            await connection.close(1008, "the first message is a hello with the token")
            return None
        if request.get("protocol") != PROTOCOL:
            await connection.close(1008, f"the protocol is {PROTOCOL}")
            return None
        answer = {"id": request.get("id"), "ok": True, "event": "hello", "protocol": PROTOCOL}
        answer |= {"biella": __version__, "mode": self.session.mode, "can": self.session.can}
        return encode(answer | self.session.introduce())

    async def _answer(self, page: Page, text: str | bytes) -> str:
        request = _read(text)
        number = request.get("id")
        number = number if isinstance(number, int | str) else None
        try:
            said = await page.act(request)
        except BiellaError as error:
            return encode({"id": number, "ok": False, "error": str(error)})
        except Exception as error:  # a page does not end the server
            what = f"{type(error).__name__}: {error}"
            return encode({"id": number, "ok": False, "error": what})
        return encode({"id": number, "ok": True, **said})

    async def _send(self, connection: ServerConnection, page: Page) -> None:
        """Send what is new, and drop a page that takes none of it."""
        try:
            while True:
                for message in page.take():
                    async with asyncio.timeout(_SEND_SECONDS):
                        await connection.send(message)
                await asyncio.sleep(_TURN_SECONDS)
        except TimeoutError:
            connection.transport.abort()
        except ConnectionClosed:
            pass
        except Exception:
            _log.exception("a page of the studio is no longer served")
            connection.transport.abort()


def _read(text: str | bytes) -> Message:
    """Return a message of a page; an empty one if it is none."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _refuse(status: HTTPStatus, text: str) -> Response:
    headers = Headers({"Content-Type": "text/plain; charset=utf-8", "Connection": "close"})
    return Response(status, status.phrase, headers, f"{text}\n".encode())


def _send_file(path: str, host: str) -> Response:
    name = "index.html" if path == "/" else path.lstrip("/")
    known = {
        file.relative_to(FILES).as_posix(): file for file in FILES.rglob("*") if file.is_file()
    }
    if name == "index.html" and not known:
        return _refuse(
            HTTPStatus.NOT_FOUND,
            "The page of the studio was not built when biella was installed: that needs npm or "
            "the registry of npm. Install biella again with access to it.",
        )
    if name not in known:
        return _refuse(HTTPStatus.NOT_FOUND, "There is no such file.")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    kind = {"text/javascript": "text/javascript", "application/javascript": "text/javascript"}.get(
        kind, kind
    )
    headers = Headers(
        {
            "Content-Type": f"{kind}; charset=utf-8" if kind.startswith("text/") else kind,
            "Content-Security-Policy": _SECURITY.format(host=host),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-cache",
            "Connection": "close",
        }
    )
    body = known[name].read_bytes()
    headers["Content-Length"] = str(len(body))
    return Response(HTTPStatus.OK, "OK", headers, body)
