"""Who may use a server of the studio: its addresses, and proof of the key that writing needs.

A page that has the token may look. Where a server asks for a key, requests that change something
are taken only from pages that have it. The key is never sent: both sides derive the key of the
connection from it and two nonces, and each such request has a number and a tag of that key.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import os
import re
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import BiellaError
from ..scheduler.devices._key import require_private
from ._messages import Message
from ._session import SEEN

LOOPBACK = "127.0.0.1"
NONCE = 16
LABEL, FROM_PAGE, FROM_SERVER = b"biella studio 1\n", b"biella page", b"biella server"
_LARGEST_NUMBER = 1 << 53
_PROVING = ("challenge", "prove")
_MOST_ADDRESSES = 1024
_PORT = re.compile(r"(.+?)(?::(\d{1,5}))?")


class AccessError(BiellaError):
    """A wrong token, key or tag: it counts as an attempt of its address."""


@dataclass(frozen=True)
class Access:
    """Where a server listens, and what its pages may do.

    Attributes
    ----------
    host
        Address or name of the interface; loopback by default.
    names
        Names of this computer that addresses of the page may have, besides numeric addresses.
    guarded
        Whether only the key allows what changes something; else the token does.
    key
        The 32 bytes; None: nobody may change anything, if that is guarded.
    tls
        Encrypts; made by `load_certificate`.
    """

    host: str = LOOPBACK
    names: tuple[str, ...] = ()
    guarded: bool = False
    key: bytes | None = None
    tls: ssl.SSLContext | None = None

    @property
    def scheme(self) -> str:
        """Return ``http`` or ``https``."""
        return "https" if self.tls else "http"

    def is_known(self, host: str) -> bool:
        """Return whether a ``Host`` is this server's.

        A page of another site could give its own name our address, and would send that name.
        Numeric addresses have no such owner; on loopback, only its own are expected.
        """
        found = _PORT.fullmatch(host)
        if not found or int(found[2] or 0) > 65535:
            return False
        name = found[1].lower()
        if name in ("localhost", LOOPBACK, "[::1]"):
            return True
        if _is_loopback(self.host):
            return False
        if name in _own_names() or name in {item.lower() for item in (self.host, *self.names)}:
            return True
        try:
            ipaddress.ip_address(name[1:-1] if name.startswith("[") else name)
        except ValueError:
            return False
        return True

    def is_own_origin(self, origin: str | None, host: str) -> bool:
        """Return whether a page has come from this server; programs send no ``Origin``."""
        return origin is None or origin == f"{self.scheme}://{host}"

    def list_hosts(self) -> list[str]:
        """Return names for addresses of the page, the most useful first."""
        if self.is_any:
            return [*self.names, socket.gethostname(), LOOPBACK]
        return [f"[{self.host}]" if ":" in self.host else self.host]

    @property
    def is_open(self) -> bool:
        """Whether other computers reach the server."""
        return not _is_loopback(self.host)

    @property
    def is_any(self) -> bool:
        """Whether it listens on all addresses of this computer."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _own_names() -> set[str]:
    name = socket.gethostname().lower()
    return {name, f"{name.partition('.')[0]}.local"}


def load_certificate(certificate: Path, private_key: Path) -> ssl.SSLContext:
    """Return what encrypts connections, from two PEM files.

    Raises
    ------
    BiellaError
        If a file is missing or is none, or every user may read the private key.
    """
    for file, option in ((certificate, "--certificate"), (private_key, "--private-key")):
        if not file.is_file():
            raise BiellaError(
                f"there is no file `{file}`: {option} is a PEM file. A self-signed pair for a "
                f"test: openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=rig "
                f"-keyout rig.pem -out rig.crt"
            )
    require_private(private_key, os.stat(private_key).st_mode)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # An encrypted file would ask for a password on the terminal.
        context.load_cert_chain(certificate, private_key, password=_refuse_password)
    except (OSError, ValueError) as error:
        raise BiellaError(
            f"`{certificate}` and `{private_key}` are no certificate and its private key in PEM "
            f"form without a password: {error}"
        ) from error
    return context


def _refuse_password() -> str:
    raise ValueError("the private key is encrypted")


class Attempts:
    """Wrong tokens and keys of each address; who has too many waits.

    Parameters
    ----------
    most
        Wrong ones within `seconds`; after them, the address is refused until the first is older.
    """

    def __init__(
        self, most: int = 20, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._noted: dict[str, list[float]] = {}

    def note(self, address: str) -> None:
        """Count a wrong one."""
        place = _find_network(address)
        times = [*self._recent(place), self._clock()][-self._most :]
        self._noted.pop(place, None)
        self._noted[place] = times
        while len(self._noted) > _MOST_ADDRESSES:
            self._noted.pop(next(iter(self._noted)))

    def is_barred(self, address: str) -> bool:
        """Return whether an address has had too many."""
        return len(self._recent(_find_network(address))) >= self._most

    def _recent(self, place: str) -> list[float]:
        since = self._clock() - self._seconds
        return [at for at in self._noted.get(place, ()) if at > since]


def _find_network(address: str) -> str:
    """Return an address; of IPv6 the half that one computer cannot choose at will."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def mac(key: bytes, *parts: bytes) -> bytes:
    """Return the code of a message: keyed BLAKE2s, RFC 7693, as of authenticated devices."""
    return hashlib.blake2s(b"".join(parts), key=key).digest()


class Rights:
    """What one page may ask for.

    Parameters
    ----------
    access
        Of the server.
    """

    draw = staticmethod(secrets.token_bytes)
    """Draws nonces."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._fresh: bytes | None = None  # of a challenge, until it is answered
        self._session: bytes | None = None
        self._number = 0  # of the newest keyed request

    @property
    def is_proven(self) -> bool:
        """Whether the page has the key."""
        return self._session is not None

    def describe(self, can: Iterable[str]) -> Message:
        """Return what a page may ask for now, and what for with the key, of what is possible."""
        can = list(can)
        if not self._access.guarded or self.is_proven:
            return {"can": can, "locked": [], "keyed": self.is_proven}
        writing = [name for name in can if name not in SEEN]
        reading = [name for name in can if name in SEEN]
        more = _PROVING if self._access.key is not None else ()
        return {
            "can": [*reading, *more],
            "locked": writing if more else [],
            "keyed": False,
        }

    def is_proving(self, request: Message) -> bool:
        """Return whether a request is part of the proof."""
        return request.get("do") in _PROVING

    def prove(self, request: Message) -> Message:
        """Answer a request of the proof.

        Raises
        ------
        AccessError
            If the page does not have the key.
        """
        key = self._access.key
        if not self._access.guarded or key is None:
            raise BiellaError(self._explain(str(request.get("do"))))
        if request["do"] == "challenge":
            page, server = _read_bytes(request, "nonce", NONCE), self.draw(NONCE)
            self._session = None
            self._fresh = mac(key, LABEL, page, server)
            return {"nonce": server.hex()}
        fresh, self._fresh = self._fresh, None
        tag = _read_bytes(request, "tag", 32)
        if fresh is None:
            raise BiellaError("`prove` answers a `challenge`, and each one once.")
        if not hmac.compare_digest(tag, mac(fresh, FROM_PAGE)):
            raise AccessError("This is not the key of this server.")
        self._session, self._number = fresh, 0
        return {"tag": mac(fresh, FROM_SERVER).hex()}

    def admit(self, request: Message) -> Message:
        """Return the request that may be done: of a keyed one, that in it.

        Raises
        ------
        AccessError
            If its tag is wrong.
        BiellaError
            If the page may not ask for it, or it is repeated.
        """
        name = request.get("do")
        if not self._access.guarded:
            return request
        if name == "keyed":
            return self._open(request)
        if isinstance(name, str) and name not in SEEN:
            raise BiellaError(self._explain(name))
        return request

    def _explain(self, name: str) -> str:
        if not self._access.guarded:
            return f"`{name}` is not needed here: the token allows everything."
        if self._access.key is None:
            return (
                f"`{name}` is not possible: this server is read-only, it was started without --key."
            )
        if self.is_proven:
            return f"`{name}` must be sent within a `keyed` request."
        return f"`{name}` needs the key of this server, and this page has not shown that it has it."

    def _open(self, request: Message) -> Message:
        if self._session is None:
            raise BiellaError("`keyed` needs the key: this page has not shown that it has it.")
        number, text = request.get("number"), request.get("text")
        if type(number) is not int or not 0 < number < _LARGEST_NUMBER:
            raise BiellaError(f"`number` is a whole number from 1 on, got {number!r}.")
        if not isinstance(text, str):
            raise BiellaError("`text` is a request as JSON.")
        tag = _read_bytes(request, "tag", 32)
        content = text.encode("utf-8", "surrogatepass")
        if not hmac.compare_digest(tag, mac(self._session, number.to_bytes(8, "little"), content)):
            raise AccessError("the tag of this request is wrong: it was changed on its way.")
        if number <= self._number:
            raise BiellaError(
                f"the request with number {number} is repeated or late: the newest was "
                f"{self._number}."
            )
        self._number = number
        try:
            inner = json.loads(text)
        except (ValueError, RecursionError):
            inner = None
        if not isinstance(inner, dict) or inner.get("do") == "keyed":
            raise BiellaError("`text` is a request as JSON.")
        return inner


def _read_bytes(request: Message, name: str, size: int) -> bytes:
    value = request.get(name)
    if not isinstance(value, str) or not re.fullmatch(rf"[0-9a-f]{{{2 * size}}}", value):
        raise BiellaError(f"`{name}` is {2 * size} hexadecimal digits in lower case.")
    return bytes.fromhex(value)
