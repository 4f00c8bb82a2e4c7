"""OPC UA: variables of a server, read and written by node id; through asyncua."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ....errors import DeviceError, name_list, suggest
from .._driver import Setup, load_package
from .._key import require_private
from .._options import Option
from ._polling import (
    FLOAT32_RANGE,
    FLOAT64_RANGE,
    AbstractPollingDriver,
    check_finite,
    check_room,
    find_whole_range,
)

if TYPE_CHECKING:
    from ...binding._rig import Channel

_T = TypeVar("_T")
POLICY = "Basic256Sha256"
_FILES = ("certificate", "private_key", "server_certificate")
_BITS = {
    "SByte": 8, "Int16": 16, "Int32": 32, "Int64": 64,
    "Byte": 8, "UInt16": 16, "UInt32": 32, "UInt64": 64,
}  # fmt: skip
_UNSIGNED = ("Byte", "UInt16", "UInt32", "UInt64")
_OPENING = 8.0  # s for all that is asked before a run begins
_GREETING = 1.0  # s for each answer then, if `timeout` is not longer
NUMBERS = ("Boolean", *_BITS, "Float", "Double")
"""The types of OPC UA that are numbers."""


class OpcuaDriver(AbstractPollingDriver):
    """Variables of an OPC UA server.

    Each channel is a variable, by its node id. Every `period` the newest outputs are written in one
    request, each as the type that its variable has, and all inputs are read in another. A value
    whose status is not good, or that is not a finite number, counts as loss of the device.
    """

    options: ClassVar[Mapping[str, Option]] = {
        "url": Option(
            "text", "address of the server, such as opc.tcp://host:4840/path", required=True
        ),
        "user": Option("text", "user name; by default anonymous"),
        "password_env": Option("text", "environment variable with the password"),
        "security": Option(
            "text", "Basic256Sha256: signed and encrypted", "none", choices=("none", POLICY)
        ),
        "certificate": Option("text", "file with our certificate (.pem or .der)"),
        "private_key": Option("text", "file with its key (.pem), without a password"),
        "server_certificate": Option("text", "file with the server's certificate"),
        **AbstractPollingDriver.options,
    }
    channel_options: ClassVar[Mapping[str, Option]] = {
        "node": Option("text", "node id, such as ns=2;s=Motor.Speed", required=True),
    }

    @classmethod
    def check(cls, setup: Setup) -> list[str]:
        """Look for what can never work: the address, the user, node ids."""
        problems = _check_server(setup.options)
        try:
            load_package("opcua", "asyncua")
        except DeviceError as error:
            return [*problems, str(error)]
        problems += _check_files(setup)
        for channels, side in ((setup.receive, "read"), (setup.send, "write")):
            problems += _check_nodes(channels, side)
        return problems

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._loop: _Loop | None = None
        self._client: Any = None
        self._ins: list[Any] = []
        self._outs: list[Any] = []
        self._types: dict[str, str] = {}

    def holds(self, channel: Channel) -> tuple[float, float]:
        """Return the range of the type that the variable has at the server."""
        return _find_range(self._types[channel.name])

    def open(self) -> None:
        """Connect, and look up all variables."""
        self._loop = _Loop(f"biella driver {self.setup.name}: events")
        self._run(self._connect(), _OPENING)

    def ask(self) -> list[float]:
        """Read all inputs."""
        return self._run(self._ask())

    def tell(self, values: Sequence[float]) -> None:
        """Write all outputs."""
        if self._outs:
            self._run(self._report(values))

    def close(self) -> None:
        """Leave the server."""
        loop, self._loop = self._loop, None
        client, self._client = self._client, None
        if loop is None:
            return
        try:
            if client is not None:
                loop.run(_leave(client, self.patience), 2 * self.patience)
        finally:
            loop.close()

    def _run(self, work: Coroutine[Any, Any, _T], patience: float | None = None) -> _T:
        if self._loop is None:
            work.close()
            raise DeviceError("it is not open")
        ua = load_package("opcua", "asyncua").ua
        try:
            return self._loop.run(work, patience or self.patience)
        except TimeoutError:
            raise DeviceError(f"no response within {self.patience:g} s") from None
        except ua.UaStatusCodeError as error:
            raise DeviceError(f"the server returned {type(error).__name__}") from error

    # Everything below runs in the loop's thread.

    async def _connect(self) -> None:
        options, package = self.setup.options, load_package("opcua", "asyncua")
        self._client = client = package.Client(
            options["url"], timeout=max(self.patience, _GREETING)
        )
        if options["user"] is not None:
            client.set_user(options["user"])
            client.set_password(os.environ.get(options["password_env"] or "", ""))
        secure = options["security"] == POLICY
        offered = False
        try:
            if secure:
                offered = await self._check_offers()
                await _secure(client, self.setup)
            await client.connect()
        except DeviceError:
            raise
        except Exception as error:
            if offered:
                raise DeviceError(self._describe_rejection(error)) from error
            if isinstance(error, TimeoutError) or not isinstance(error, OSError):
                raise
            raise DeviceError(
                f"no response from {options['url']}; check that the server is running and the "
                f"address is correct"
            ) from error
        self._ins = [await self._find_node(channel) for channel in self.setup.receive]
        self._outs = [await self._find_node(channel) for channel in self.setup.send]
        self._types = {
            channel.name: await self._find_type(channel, node)
            for channel, node in zip(self.setup.send, self._outs, strict=True)
        }

    async def _check_offers(self) -> bool:
        """Whether the server offers what is wanted, with the certificate that is known of it.

        The offers come without security. They can only lead to an error, with its reason: the
        connection requires the known certificate in any case.
        """
        package, options = load_package("opcua", "asyncua"), self.setup.options
        mode = package.ua.MessageSecurityMode.SignAndEncrypt
        client = package.Client(options["url"], timeout=max(self.patience, _GREETING))
        offers = await client.connect_and_get_server_endpoints()
        found = [
            offer
            for offer in offers
            if offer.SecurityPolicyUri.endswith(f"#{POLICY}") and offer.SecurityMode == mode
        ]
        if not found:
            known = {str(offer.SecurityPolicyUri).rpartition("#")[2] for offer in offers}
            raise DeviceError(
                f"the server does not offer {POLICY} with encryption. Offers: {name_list(known)}"
            )
        expected = _load_certificate(self._file("server_certificate"))
        if not any(expected == _parse_der(offer.ServerCertificate) for offer in found):
            raise DeviceError(
                f"the server has another certificate than {options['server_certificate']}: another "
                f"machine answers at {options['url']}, or its certificate was renewed. Copy it "
                f"anew if you know that it was"
            )
        return True

    def _describe_rejection(self, error: Exception) -> str:
        name, options = type(error).__name__, self.setup.options
        if "Identity" in name or "User" in name:
            return f"the server has rejected the user `{options['user']}` ({name})"
        return (
            f"the server has rejected the secure connection ({name}): does it trust "
            f"{options['certificate']}? Servers list rejected certificates for an operator to "
            f"accept"
        )

    def _file(self, option: str) -> Path:
        return self.setup.folder / str(self.setup.options[option])

    async def _find_node(self, channel: Channel) -> Any:
        """Return a variable that is there; a namespace may be given by its name."""
        ua = load_package("opcua", "asyncua").ua
        number = ua.NodeId.from_string(channel.options["node"])
        if uri := getattr(number, "NamespaceUri", None):
            known = await self._client.get_namespace_array()
            if uri not in known:
                raise DeviceError(
                    f"channel `{channel.name}`: the server has no namespace `{uri}`."
                    f"{suggest(uri, known)} Namespaces: {name_list(known)}"
                )
            number = ua.NodeId(number.Identifier, known.index(uri), number.NodeIdType)
        node = self._client.get_node(number)
        (found,) = await self._client.read_attributes([node], ua.AttributeIds.NodeClass)
        if not found.StatusCode.is_good():
            raise DeviceError(
                f"channel `{channel.name}`: the server has no node {channel.options['node']} "
                f"({found.StatusCode.name})"
            )
        if found.Value.Value != ua.NodeClass.Variable:
            raise DeviceError(
                f"channel `{channel.name}`: node {channel.options['node']} is not a variable"
            )
        return node

    async def _find_type(self, channel: Channel, node: Any) -> str:
        """Return the type of an output; DeviceError if it is not numeric or not writable."""
        ua = load_package("opcua", "asyncua").ua
        name = f"channel `{channel.name}`: node {channel.options['node']}"
        if ua.AccessLevel.CurrentWrite not in await node.get_user_access_level():
            raise DeviceError(f"{name} may not be written by this user")
        kind = await node.read_data_type_as_variant_type()
        if kind == ua.VariantType.Variant:  # any number: what stands there says which
            (found,) = await self._client.read_attributes([node])
            kind = found.Value.VariantType
        if kind.name not in NUMBERS:
            raise DeviceError(f"{name} is of type {kind.name}, which is not numeric")
        return str(kind.name)

    async def _ask(self) -> list[float]:
        found = await self._client.read_attributes(self._ins)
        if len(found) != len(self._ins):
            raise DeviceError(f"requested {len(self._ins)} values, received {len(found)}")
        return [
            value
            for channel, data in zip(self.setup.receive, found, strict=True)
            for value in _decode(channel, data)
        ]

    async def _report(self, values: Sequence[float]) -> None:
        ua, rest, given = load_package("opcua", "asyncua").ua, list(values), []
        for channel in self.setup.send:
            kind = self._types[channel.name]
            own = [_encode(channel, kind, value) for value in rest[: channel.width]]
            del rest[: channel.width]
            variant = ua.Variant(own if channel.width > 1 else own[0], ua.VariantType[kind])
            # Neither status nor time: there are servers that take the bare value only.
            given.append(ua.DataValue(variant, StatusCode=None))
        statuses = await self._client.write_values(self._outs, given, raise_on_partial_error=False)
        for channel, status in zip(self.setup.send, statuses, strict=True):
            if not status.is_good():
                raise DeviceError(f"channel `{channel.name}` was not written: {status.name}")


async def _leave(client: Any, patience: float) -> None:
    """Disconnect from a server; ignore a server that does not respond."""
    try:
        await asyncio.wait_for(client.disconnect(), patience)
    finally:
        client.disconnect_socket()
        await asyncio.sleep(0)  # in which the socket is closed


class _Loop:
    """An event loop in a separate thread; any thread may submit work."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, _T], patience: float) -> _T:
        """Return the result of a coroutine; TimeoutError after the time limit."""
        return asyncio.run_coroutine_threadsafe(
            asyncio.wait_for(work, patience), self._loop
        ).result()

    def close(self) -> None:
        """Cancel pending work and end the thread."""
        asyncio.run_coroutine_threadsafe(self._cancel_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _cancel_all(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


def _decode(channel: Channel, data: Any) -> list[float]:
    """Return the numbers of a variable; DeviceError if it has none that can be trusted."""
    name = f"channel `{channel.name}`"
    if data.StatusCode is not None and not data.StatusCode.is_good():
        raise DeviceError(f"{name} is not good: {data.StatusCode.name}")
    kind = data.Value.VariantType.name
    if kind not in NUMBERS:
        raise DeviceError(f"{name} is of type {kind}, which is not numeric")
    value = data.Value.Value
    listed = value if isinstance(value, list) else [value]
    if len(listed) != channel.width or any(isinstance(item, list) for item in listed):
        raise DeviceError(f"{name} has {len(listed)} values, but its width is {channel.width}")
    numbers = [float(item) for item in listed]
    for number in numbers:
        check_finite(channel.name, number)
    return numbers


def _find_range(kind: str) -> tuple[float, float]:
    """Return the least and the greatest number of a type that a double can be."""
    if kind == "Boolean":
        return 0.0, 1.0
    if kind in ("Float", "Double"):
        return FLOAT32_RANGE if kind == "Float" else FLOAT64_RANGE
    return find_whole_range(_BITS[kind], signed=kind not in _UNSIGNED)


def _encode(channel: Channel, kind: str, value: float) -> float | int | bool:
    number = value if kind in ("Float", "Double") else round(value)
    check_room(channel.name, number, kind, _find_range(kind))
    return bool(number) if kind == "Boolean" else number


async def _secure(client: Any, setup: Setup) -> None:
    """Let a client sign and encrypt; the server must have the certificate that is known of it."""
    policies = load_package("opcua", "asyncua.crypto.security_policies")
    form = load_package("opcua", "asyncua.crypto.uacrypto").CertProperties
    codes = load_package("opcua", "cryptography.hazmat.primitives.serialization")
    der = codes.Encoding.DER
    own, key, server = (setup.folder / setup.options[name] for name in _FILES)
    certificate = _load_certificate(own)
    secret = _load_key(key).private_bytes(der, codes.PrivateFormat.PKCS8, codes.NoEncryption())
    client.application_uri = _find_application(certificate)
    await client.set_security(
        policies.SecurityPolicyBasic256Sha256,
        form(certificate.public_bytes(der), "der"),
        form(secret, "der"),
        server_certificate=form(_load_certificate(server).public_bytes(der), "der"),
    )


def _load_certificate(path: Path) -> Any:
    x509 = load_package("opcua", "cryptography.x509")
    content = path.read_bytes()
    if b"-----BEGIN" in content:
        return x509.load_pem_x509_certificate(content)
    return x509.load_der_x509_certificate(content)


def _parse_der(content: bytes | None) -> Any:
    try:
        return load_package("opcua", "cryptography.x509").load_der_x509_certificate(content or b"")
    except ValueError:
        return None


def _find_application(certificate: Any) -> str:
    """Return the application URI of a certificate, which a client must state; or nothing."""
    x509 = load_package("opcua", "cryptography.x509")
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ""
    return next(iter(names.get_values_for_type(x509.UniformResourceIdentifier)), "")


def _check_files(setup: Setup) -> list[str]:
    """Return what is wrong with certificates and key; a key is not shown."""
    given = [name for name in _FILES if setup.options[name] is not None]
    if setup.options["security"] != POLICY:
        return [f'{name_list(given)} require security = "{POLICY}".'] if given else []
    problems = [
        f'security = "{POLICY}" requires {name}: {OpcuaDriver.options[name].doc}.'
        for name in _FILES
        if name not in given
    ]
    loaded: dict[str, Any] = {}
    for name in given:
        path = setup.folder / setup.options[name]
        try:
            loaded[name] = _load_key(path) if name == "private_key" else _load_certificate(path)
        except OSError as error:
            problems.append(f"{name}: `{path}` cannot be read: {error.strerror}.")
        except DeviceError as error:
            problems.append(f"{name}: {error}")
        except (ValueError, TypeError):
            problems.append(
                f"{name}: `{path}` is not a {name.replace('_', ' ')} in the form PEM"
                + (", without a password." if name == "private_key" else " or DER.")
            )
    problems += _check_pair(setup, loaded.get("certificate"), loaded.get("private_key"))
    return problems


def _load_key(path: Path) -> Any:
    require_private(path, path.stat().st_mode)
    serialization = load_package("opcua", "cryptography.hazmat.primitives.serialization")
    return serialization.load_pem_private_key(path.read_bytes(), None)


def _check_pair(setup: Setup, certificate: Any, key: Any) -> list[str]:
    if certificate is None:
        return []
    problems, name = [], setup.options["certificate"]
    if key is not None and certificate.public_key() != key.public_key():
        problems.append(f"private_key: it does not belong to the certificate {name}.")
    if not _find_application(certificate):
        problems.append(
            f"certificate: {name} has no application URI (a URI in its subjectAltName), which OPC "
            f"UA requires."
        )
    if certificate.not_valid_after_utc < datetime.now(UTC):
        problems.append(f"certificate: {name} has expired, on {certificate.not_valid_after_utc}.")
    return problems


def _check_server(options: Mapping[str, Any]) -> list[str]:
    problems, url, secret = [], options["url"], options["password_env"]
    place = re.fullmatch(r"opc\.tcp://(\[[0-9a-fA-F:.]+\]|[^/:]+):(\d{1,5})(/.*)?", url)
    if "@" in url:
        problems.append(
            "url contains a user name, which would be written to logs: use user = … instead"
        )
    elif place is None or int(place[2]) > 65535:
        problems.append(
            f'url is "{url}", but must be opc.tcp://host:port; the default port is 4840.'
        )
    if secret is not None and options["user"] is None:
        problems.append("password_env requires user.")
    if secret is not None and secret not in os.environ:
        problems.append(
            f"there is no environment variable `{secret}`: it must contain the password of the "
            f"user. In a shell: export {secret}=…"
        )
    return problems


def _check_nodes(channels: Sequence[Channel], side: str) -> list[str]:
    ua = load_package("opcua", "asyncua").ua
    problems: list[str] = []
    taken: dict[Any, str] = {}
    for channel in channels:
        text = channel.options["node"]
        try:
            number = ua.NodeId.from_string(text)
        except ua.UaError:
            problems.append(
                f"channel `{channel.name}`: `{text}` is not a node id. Examples: "
                f"ns=2;s=Motor.Speed, "
                f"ns=2;i=1001, or with the name of a namespace "
                f"nsu=http://example.com/motor;s=Speed."
            )
            continue
        if (before := taken.setdefault(number, channel.name)) != channel.name:
            problems.append(f"channels `{before}` and `{channel.name}` both {side} node {text}.")
    return problems
