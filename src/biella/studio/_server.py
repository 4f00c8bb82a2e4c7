"""The studio's server: the page's files, and a WebSocket for each page, by default on loopback.

It runs in a thread of its own at low priority. A page is sent what is new 30 times a second, and
only after it has taken what came before: one that does not read misses bins and is dropped after
ten seconds, and nothing waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hmac
import json
import logging
import mimetypes
import os
import secrets
import socket
import threading
import weakref
from http import HTTPStatus
from pathlib import Path
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from .. import __version__
from ..errors import BiellaError
from ._access import Access, AccessError, Attempts, Rights
from ._messages import Message, encode
from ._pages import Page
from ._session import AbstractSession

PROTOCOL = 1
_log = logging.getLogger("biella")
FILES = Path(__file__).parent / "static"
"""The built page."""

_MOST_PAGES = 32
_MOST_CONNECTIONS = 64  # that have not said hello, too
_MOST_SOCKETS = 128  # that have not even asked for anything, too
_BACKLOG = 64
_LARGEST_MESSAGE = 1 << 16
_HELLO_SECONDS = 5.0
_SEND_SECONDS = 10.0
_TURN_SECONDS = 1 / 30
_LOOK_SECONDS = 0.2
_NICENESS = 10
_SECURITY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self' {scheme}://{host}; worker-src 'self' blob:; object-src 'none'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


class StudioServer:
    """Serves a session to pages until it is closed; also a context manager.

    Parameters
    ----------
    session
        What pages see and control.
    port
        0: any that is free.
    access
        Where it listens, and what pages may do: by default on loopback, and all that the session
        allows.

    Attributes
    ----------
    token
        What a page has to know.
    """

    def __init__(
        self, session: AbstractSession, port: int = 0, access: Access | None = None
    ) -> None:
        if not 0 <= port <= 65535:
            raise BiellaError(f"--port must be 0, for any that is free, to 65535; got {port}.")
        self.session = session
        self.access = access or Access()
        self.token = secrets.token_urlsafe(24)
        self._pages: set[Page] = set()
        self._open = 0
        self._attempts = Attempts()
        self._listener = _listen(self.access.host, port)
        self.port: int = self._listener.getsockname()[1]
        # Not Windows' own loop: that accepts connections without asking the listener.
        self._loop = asyncio.SelectorEventLoop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="biella studio", daemon=True)
        self._thread.start()
        self._ready.wait()
        session.announce = self.announce

    @property
    def url(self) -> str:
        """Where the page is, with the token."""
        return self.urls[-1]

    @property
    def urls(self) -> list[str]:
        """Where the page is, by each name of this computer, with the token."""
        access = self.access
        rest = f":{self.port}/#token={self.token}"
        return [f"{access.scheme}://{host}{rest}" for host in access.list_hosts()]

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
        tls = self.access.tls
        server = await serve(
            self._talk,
            sock=self._listener,
            backlog=_BACKLOG,
            ssl=tls,
            ssl_handshake_timeout=_HELLO_SECONDS if tls else None,
            process_request=self._answer_request,
            compression=None,
            max_size=_LARGEST_MESSAGE,
            max_queue=8,
            open_timeout=_HELLO_SECONDS,
            close_timeout=1.0,
            ping_timeout=60.0,
            server_header=None,
        )
        self._ready.set()
        async with server:
            looking = asyncio.create_task(self._look())
            await self._stop.wait()
            looking.cancel()

    async def _look(self) -> None:
        """Tell pages what has happened."""
        number = 0
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if not self._pages:
                continue
            try:
                message = self.session.look()
            except Exception:
                _log.exception("pages of the studio are no longer told of events")
                return
            if message is not None:
                number += 1
                self._spread(f"{message['event']} {number}", encode(message))

    async def _answer_request(
        self, connection: ServerConnection, request: Request
    ) -> Response | None:
        """Send a file of the page; let a WebSocket through if it comes from this server's page."""
        host = _read_header(request, "Host") or ""
        if not self.access.is_known(host):
            return _refuse(HTTPStatus.FORBIDDEN, "This address is not that of the studio.")
        path = request.path.partition("?")[0]
        if path != "/live":
            return _send_file(path, self.access.scheme.replace("http", "ws"), host)
        if not self.access.is_own_origin(_read_header(request, "Origin"), host):
            return _refuse(HTTPStatus.FORBIDDEN, "Another site may not use the studio.")
        if self._attempts.is_barred(_find_address(connection)):
            return _refuse(HTTPStatus.TOO_MANY_REQUESTS, "Too many wrong tokens: wait a minute.")
        if self._open >= _MOST_CONNECTIONS:
            return _refuse(HTTPStatus.SERVICE_UNAVAILABLE, "Too many connections.")
        return None

    async def _talk(self, connection: ServerConnection) -> None:
        """Talk with one page until it or the server is closed."""
        self._open += 1
        page: Page | None = None
        rights = Rights(self.access)
        try:
            hello = await self._greet(connection, rights)
            if hello is None:
                return
            if len(self._pages) >= _MOST_PAGES:
                await connection.close(1013, "too many pages")
                return
            page = Page(self.session)
            for message in self.session.describe():
                page.keep(message["event"], encode(message))
            self._pages.add(page)  # from now on it misses nothing
            await connection.send(hello)
            sender = asyncio.create_task(self._send(connection, page))
            try:
                async for text in connection:
                    answer = await self._answer(page, rights, text, _find_address(connection))
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
            if page is not None:
                self._pages.discard(page)
                page.close()

    async def _greet(self, connection: ServerConnection, rights: Rights) -> str | None:
        """Return the answer to the first message; None if the connection was refused."""
        async with asyncio.timeout(_HELLO_SECONDS):
            request = _read(await connection.recv())
        token = request.get("token")
        known = isinstance(token, str) and hmac.compare_digest(
            token.encode(errors="replace"), self.token.encode()
        )
        if request.get("do") != "hello" or not known:
            self._attempts.note(_find_address(connection))
            await connection.close(1008, "the first message is a hello with the token")
            return None
        if request.get("protocol") != PROTOCOL:
            await connection.close(1008, f"the protocol is {PROTOCOL}")
            return None
        answer = {"id": request.get("id"), "ok": True, "event": "hello", "protocol": PROTOCOL}
        answer |= {"biella": __version__, "mode": self.session.mode}
        answer |= rights.describe(self.session.can)
        return encode(answer | self.session.introduce())

    async def _answer(
        self, page: Page, rights: Rights, text: str | bytes, address: str = ""
    ) -> str:
        request = _read(text)
        number = request.get("id")
        number = number if isinstance(number, int | str) else None
        try:
            if rights.is_proving(request):
                said = rights.prove(request)
                page.keep(
                    "access", encode({"event": "access", **rights.describe(self.session.can)})
                )
            else:
                said = await page.act(rights.admit(request))
        except AccessError as error:
            self._attempts.note(address)
            return encode({"id": number, "ok": False, "error": str(error)})
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


class _Listener(socket.socket):
    """A socket for connections that closes those beyond a number at once.

    The files of a run need descriptors, too: connections must not take them all.
    """

    def __init__(self, family: int) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self._accepted: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def accept(self) -> tuple[socket.socket, Any]:
        taken, address = super().accept()
        if sum(item.fileno() >= 0 for item in self._accepted) >= _MOST_SOCKETS:
            taken.close()
            raise BlockingIOError
        self._accepted.add(taken)
        return taken, address


def _listen(host: str, port: int) -> _Listener:
    """Return a socket that is bound to an address."""
    listener: _Listener | None = None
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = _Listener(family)
        if os.name == "posix":  # elsewhere it would let two servers have one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        if listener is not None:
            listener.close()
        raise BiellaError(_explain_address(host, port, error)) from error
    listener.setblocking(False)
    return listener


def _explain_address(host: str, port: int, error: OSError) -> str:
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return (
            f"`{host}` is no address of this computer: {error.strerror}. --host is one of its "
            f"addresses, or 0.0.0.0 for all of them."
        )
    return (
        f"port {port} of this computer cannot be used: {error.strerror}. Name another one with "
        f"--port, or 0 for any that is free."
    )


def _find_address(connection: ServerConnection) -> str:
    """Return the address of the other side; empty if it is gone."""
    address = connection.remote_address
    return str(address[0]) if address else ""


def _read_header(request: Request, name: str) -> str | None:
    """Return a header; an empty one if there are several, which no browser sends."""
    found = request.headers.get_all(name)
    return found[0] if len(found) == 1 else "" if found else None


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


def _send_file(path: str, scheme: str, host: str) -> Response:
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
            "Content-Security-Policy": _SECURITY.format(scheme=scheme, host=host),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-cache",
            "Connection": "close",
        }
    )
    body = known[name].read_bytes()
    headers["Content-Length"] = str(len(body))
    return Response(HTTPStatus.OK, "OK", headers, body)
