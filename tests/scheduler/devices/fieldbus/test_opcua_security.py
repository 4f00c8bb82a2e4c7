"""The OPC UA driver with Basic256Sha256 against asyncua's own server; certificates of this test."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import os
import socket

import pytest

from biella import run_realtime
from biella.errors import BindingError, DeviceError
from biella.scheduler.binding._bind import open_binding
from biella.scheduler.devices.fieldbus._opcua import OpcuaDriver

from ..diagrams import loop
from ..peer import wait_for
from ..servers import LoopThread

pytest.importorskip("asyncua", reason="asyncua is not installed")

from asyncua import Server, ua
from asyncua.crypto.permission_rules import User, UserRole
from asyncua.server.user_managers import UserManager
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLIENT_URI, SERVER_URI = "urn:example.com:rig", "urn:example.com:server"


def make_certificate(folder, name, uri, days=30):
    """Write NAME.pem and NAME.key, self-signed."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = [
        x509.DNSName(socket.gethostname()),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]
    if uri:
        names.insert(0, x509.UniformResourceIdentifier(uri))
    usage = x509.KeyUsage(True, True, True, True, False, False, False, False, False)
    kinds = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    made = (
        x509.CertificateBuilder()
        .subject_name(subject).issuer_name(subject).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=60))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(usage, critical=False)
        .add_extension(x509.ExtendedKeyUsage(kinds), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    (folder / f"{name}.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.pem").chmod(0o640)
    (folder / f"{name}.der").write_bytes(made.public_bytes(serialization.Encoding.DER))
    plain = serialization.NoEncryption()
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain
    for end in (".key", "_key.pem"):
        (folder / f"{name}{end}").write_bytes(key.private_bytes(*form))
        (folder / f"{name}{end}").chmod(0o600)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    for name, uri, days in (("rig", CLIENT_URI, 30), ("server", SERVER_URI, 30),
                            ("stranger", CLIENT_URI, 30), ("old", CLIENT_URI, -1),
                            ("nameless", "", 30)):  # fmt: skip
        make_certificate(folder, name, uri, days)
    return folder


class Users(UserManager):
    """Lets in one user; nobody is anonymous."""

    def get_user(self, iserver, username=None, password=None, certificate=None):
        good = (username, password) == ("anna", "secret")
        return User(role=UserRole.User) if good else None


class Cell:
    """A server that only speaks encrypted, with those whose certificate it knows."""

    def __init__(self, thread, folder, policies):
        self.thread, self.folder, self.policies = thread, folder, policies
        thread.run(self._serve())

    async def _serve(self):
        self.server = Server(user_manager=Users())
        await self.server.init()
        await self.server.set_application_uri(SERVER_URI)
        self.server.set_endpoint("opc.tcp://127.0.0.1:0/cell")
        self.server.set_security_policy(self.policies)
        await self.server.load_certificate(str(self.folder / "server.pem"))
        await self.server.load_private_key(str(self.folder / "server_key.pem"))
        known = x509.load_pem_x509_certificate((self.folder / "rig.pem").read_bytes())

        async def validate(certificate, _):
            if certificate != known:
                raise ua.UaStatusCodeError(ua.StatusCodes.BadCertificateUntrusted)

        self.server.set_certificate_validator(validate)
        self.space = await self.server.register_namespace("http://example.com/cell")
        self.nodes = {}
        for name in ("u", "y"):
            self.nodes[name] = await self.server.nodes.objects.add_variable(
                ua.NodeId.from_string(f"ns={self.space};s={name}"), name, -0.5
            )
            await self.nodes[name].set_writable()
        await self.server.start()

    @property
    def url(self):
        assert self.server.bserver is not None
        return f"opc.tcp://127.0.0.1:{self.server.bserver.port}/cell"

    def get(self, name):
        return self.thread.run(self.nodes[name].read_value())


@pytest.fixture(scope="module")
def cell(folder):
    with LoopThread() as thread:
        made = Cell(thread, folder, [ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt])
        yield made
        thread.run(made.server.stop())


@pytest.fixture(autouse=True)
def _password(monkeypatch):
    monkeypatch.setenv("CELL_PASSWORD", "secret")


def rig(folder, url="opc.tcp://127.0.0.1:4840", **options):
    files = {
        "certificate": "rig.pem", "private_key": "rig.key", "server_certificate": "server.pem",
    } | {key: value for key, value in options.items() if value is not None}  # fmt: skip
    files = {
        key: str(folder / value) if key in ("certificate", "private_key", "server_certificate")
        else value for key, value in files.items() if key not in options or options[key] is not None
    }  # fmt: skip
    return {
        "devices": {"cell": {
            "driver": "opcua", "url": url, "timeout": 5.0, "period": 0.0,
            "security": "Basic256Sha256", "user": "anna", "password_env": "CELL_PASSWORD",
            "receive": {"y": {"node": "nsu=http://example.com/cell;s=y"}},
            "send": {"u": {"node": "nsu=http://example.com/cell;s=u", "safe": 0.25}}, **files,
        }},
        "blocks": {"k": {"device": "cell"}},
    }  # fmt: skip


class Tap:
    """Stands between driver and server, and keeps the bytes of both."""

    def __init__(self, cell):
        self.seen, self.thread = b"", cell.thread
        target = cell.server.bserver.port

        async def carry(reader, writer):
            while data := await reader.read(65536):
                self.seen += data
                writer.write(data)
            writer.close()

        async def accept(reader, writer):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
            await asyncio.gather(carry(reader, far_writer), carry(far_reader, writer),
                                 return_exceptions=True)  # fmt: skip

        async def listen():
            return await asyncio.start_server(accept, "127.0.0.1", 0)

        self.server = self.thread.run(listen())
        self.url = f"opc.tcp://127.0.0.1:{self.server.sockets[0].getsockname()[1]}/cell"

    def close(self):
        self.thread.loop.call_soon_threadsafe(self.server.close)


def test_values_go_both_ways_and_nothing_is_readable(cell, folder):
    tap = Tap(cell)
    with run_realtime(loop(), bind=rig(folder, tap.url)) as run:
        wait_for(lambda: bool(run.latest("k") == -0.5) and cell.get("u") not in (-0.5, 0.25))
    tap.close()
    assert cell.get("u") == 0.25
    assert b"Basic256Sha256" in tap.seen, "the beginning is not secret"
    for secret in (b"secret", b"anna", b"http://example.com/cell"):
        assert secret not in tap.seen


def test_certificates_may_be_der(cell, folder):
    files = {"certificate": "rig.der", "server_certificate": "server.der"}
    open_binding(loop(), rig(folder, cell.url, **files)).close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"certificate": "stranger.pem", "private_key": "stranger.key"},
         r"the server has rejected the secure connection .*does it trust .*stranger.pem"),
        ({"server_certificate": "stranger.pem"}, "another certificate than .*stranger.pem"),
        ({"user": "otto"}, r"rejected the user `otto`"),
    ],
)  # fmt: skip
def test_who_is_not_let_in(cell, folder, options, words):
    with pytest.raises(DeviceError, match=words) as caught:
        open_binding(loop(), rig(folder, cell.url, **options))
    assert "secret`" not in str(caught.value) and "CELL_PASSWORD" not in str(caught.value)


@pytest.mark.slow
def test_a_server_that_shows_a_certificate_of_which_it_has_no_key(cell, folder, monkeypatch):
    """The offers are not signed: what they say must not matter for the connection."""

    async def believe(self):
        return True

    monkeypatch.setattr(OpcuaDriver, "_check_offers", believe)
    pinned = {"server_certificate": "stranger.pem"}
    with pytest.raises(DeviceError, match="rejected the secure connection"):
        open_binding(loop(), rig(folder, cell.url, **pinned))
    open_binding(loop(), rig(folder, cell.url)).close()


def test_a_server_without_security_is_named(folder):
    with LoopThread() as thread:
        plain = Cell(thread, folder, [ua.SecurityPolicyType.NoSecurity])
        with pytest.raises(DeviceError, match=r"does not offer Basic256Sha256 .*Offers: None"):
            open_binding(loop(), rig(folder, plain.url))
        thread.run(plain.server.stop())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"server_certificate": None}, "requires server_certificate: file with the server's"),
        ({"certificate": "none.pem"}, r"certificate: `.*none.pem` cannot be read: No such file"),
        ({"certificate": "rig.key"}, "certificate: `.*rig.key` is not a certificate in the form"),
        ({"private_key": "rig.pem"}, "private_key: .* is not a private key in the form PEM"),
        ({"private_key": "server.key"}, "does not belong to the certificate .*rig.pem"),
        ({"certificate": "old.pem", "private_key": "old.key"}, "old.pem has expired"),
        ({"certificate": "nameless.pem", "private_key": "nameless.key"}, "has no application URI"),
        ({"security": "none"}, 'require security = "Basic256Sha256"'),
        ({"security": "Basic256"}, "must be one of none, Basic256Sha256"),
    ],
)
def test_files_are_checked_before_a_run(folder, options, words):
    with pytest.raises(BindingError, match=words) as caught:
        open_binding(loop(), rig(folder, **options))
    assert "PRIVATE KEY" not in str(caught.value)


@pytest.mark.skipif(os.name != "posix", reason="permissions")
def test_a_private_key_that_all_can_read_is_refused(folder, tmp_path):
    copy = tmp_path / "open.key"
    copy.write_bytes((folder / "rig.key").read_bytes())
    copy.chmod(0o644)
    with pytest.raises(BindingError, match="every user of this machine has access"):
        open_binding(loop(), rig(folder, private_key=str(copy)))
