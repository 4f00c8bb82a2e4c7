"""Tokens and keys: who may look, who may change something, and how often one may be wrong."""

import contextlib
import json
import ssl
import subprocess
from ipaddress import ip_address

import pytest
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus

from biella import BiellaError
from biella.studio._access import Access, AccessError, Attempts, Rights, load_certificate
from biella.studio._session import LiveSession

from .client import Client, code, serving, write_rig

pytestmark = pytest.mark.engine
KEY = bytes(range(100, 132))
GUARDED = Access(guarded=True, key=KEY)
LABEL = b"biella studio 1\n"


@contextlib.contextmanager
def serve(folder, access=GUARDED):
    session = LiveSession(write_rig(folder))
    session.load()
    with serving(session, access) as server:
        yield session, server


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    with serve(tmp_path_factory.mktemp("rig")) as (session, server):
        with Client(server) as owner:
            owner.unlock(KEY)
            owner.do("keyed", **owner.seal("run"))
            owner.wait_state("running")
        yield session, server


WRITING = ("run", "pause", "restart", "stop", "set", "override", "release", "step", "factor")


def test_a_page_without_the_key_looks_and_changes_nothing(guarded):
    session, server = guarded
    with Client(server) as page:
        assert set(WRITING) <= set(page.hello["locked"]) and not page.hello["keyed"]
        assert set(WRITING).isdisjoint(page.hello["can"])
        page.do("subscribe", scope=1, signals=["plant.y"], rate=100.0)
        page.wait(lambda: len(page.samples(1)) > 3)
        for name in [*page.hello["locked"], "rearm", "safe_stop"]:
            assert f"`{name}` needs the key" in page.refused(name, path="p.k", value=1.0)
        page.wait_state("running")
    assert session.run["p.k"] == 8.0 and session.run.factor == 1.0


def test_with_the_key_a_page_may_do_what_the_session_can(guarded):
    session, server = guarded
    with Client(server) as page:
        page.unlock(KEY)
        said = page.wait(
            lambda: page.events.get("access", {}).get("keyed") and page.events["access"]
        )
        assert said["can"] == list(session.can) and said["locked"] == []
        page.do("keyed", **page.seal("set", path="push", value=2.5))
        assert session.run["push"] == 2.5
        assert "must be sent within" in page.refused("set", path="push", value=7.0)
        assert session.run["push"] == 2.5
        page.do("keyed", **page.seal("watch", on=True))
        assert "there is no" in page.refused("keyed", **page.seal("set", path="nothing", value=1))


def test_a_wrong_key_proves_nothing(guarded):
    _, server = guarded
    with Client(server) as page:
        page.do("challenge", nonce="00" * 16)
        assert "not the key" in page.refused("prove", tag="11" * 32)
        assert "each one once" in page.refused("prove", tag="11" * 32)
        page.session_key = code(bytes(32), b"guessed")
        assert "has not shown" in page.refused("keyed", **page.seal("stop"))


def test_a_challenge_is_answered_once(guarded):
    """Whoever has heard a proof cannot use it again, on this connection or another."""
    _, server = guarded
    with Client(server) as page:
        nonce = bytes.fromhex(page.do("challenge", nonce="00" * 16)["nonce"])
        proof = code(code(KEY, LABEL + bytes(16) + nonce), b"biella page").hex()
        page.do("prove", tag=proof)
        assert "each one once" in page.refused("prove", tag=proof)
        with Client(server) as other:
            assert "answers a `challenge`" in other.refused("prove", tag=proof)
            other.do("challenge", nonce="00" * 16)
            assert "not the key" in other.refused("prove", tag=proof)


def test_the_proof_of_the_server_is_no_proof_of_a_page(guarded):
    _, server = guarded
    with Client(server) as page:
        nonce = bytes.fromhex(page.do("challenge", nonce="00" * 16)["nonce"])
        own = code(code(KEY, LABEL + bytes(16) + nonce), b"biella server").hex()
        assert "not the key" in page.refused("prove", tag=own)


def test_repeated_late_and_changed_requests_are_refused(guarded):
    session, server = guarded
    with Client(server) as page, Client(server) as other:
        page.unlock(KEY)
        other.unlock(KEY)
        first = page.seal("set", path="push", value=1.0)
        second = page.seal("set", path="push", value=2.0)
        page.do("keyed", **second)
        assert "number 2 is repeated" in page.refused("keyed", **second)
        assert "number 1 is repeated or late" in page.refused("keyed", **first)
        third = page.seal("set", path="push", value=3.0)
        changed = third | {"text": third["text"].replace("3.0", "9.0")}
        assert "was changed" in page.refused("keyed", **changed)
        assert "was changed" in page.refused("keyed", **third | {"number": 4})
        assert "was changed" in other.refused("keyed", **third)  # keys are of one connection
        assert session.run["push"] == 2.0
        page.do("keyed", **third)  # a forgery does not use up its number
        assert session.run["push"] == 3.0
        nested = page.seal("keyed", number=1, text="{}", tag="")
        assert "a request as JSON" in page.refused("keyed", **nested)


def test_a_new_challenge_ends_the_proof(guarded):
    _, server = guarded
    with Client(server) as page:
        page.unlock(KEY)
        page.do("challenge", nonce="22" * 16)
        assert "has not shown" in page.refused("keyed", **page.seal("stop"))


@pytest.mark.parametrize(
    "fields, refusal",
    [
        ({"number": 0}, "`number` is a whole number"),
        ({"number": True}, "`number` is a whole number"),
        ({"number": 1 << 53}, "`number` is a whole number"),
        ({"text": None}, "`text` is a request"),
        ({"tag": "00"}, "`tag` is 64 hexadecimal"),
        ({"tag": "AB" * 32}, "`tag` is 64 hexadecimal"),
        ({"tag": ["00"]}, "`tag` is 64 hexadecimal"),
        ({"tag": "\u0660" * 64}, "`tag` is 64 hexadecimal"),
    ],
)
def test_malformed_proofs_say_what_is_wrong(fields, refusal):
    rights = Rights(GUARDED)
    server = bytes.fromhex(rights.prove({"do": "challenge", "nonce": "00" * 16})["nonce"])
    session = code(KEY, LABEL + bytes(16) + server)
    rights.prove({"do": "prove", "tag": code(session, b"biella page").hex()})
    whole = {"do": "keyed", "number": 1, "text": "{}", "tag": "00" * 32}
    with pytest.raises(BiellaError, match=refusal):
        rights.admit(whole | fields)
    with pytest.raises(BiellaError, match="`nonce` is 32 hexadecimal"):
        rights.prove({"do": "challenge", "nonce": "xx"})
    assert rights.is_proven  # a malformed challenge leaves what was proven


def test_without_a_key_a_server_is_read_only(tmp_path):
    with (
        serve(tmp_path, Access(guarded=True)) as (_, server),
        Client(server) as page,
    ):
        assert page.hello["locked"] == [] and "run" not in page.hello["can"]
        assert "read-only" in page.refused("run")
        assert "read-only" in page.refused("challenge", nonce="00" * 16)


def test_the_studio_asks_for_no_key(tmp_path):
    with serve(tmp_path, Access()) as (session, server), Client(server) as page:
        assert page.hello["can"] == list(session.can) and page.hello["locked"] == []
        assert "the token allows everything" in page.refused("challenge", nonce="00" * 16)
        page.do("set", path="push", value=1.0)


def test_too_many_wrong_tokens_bar_an_address_for_a_while(tmp_path):
    now = [0.0]
    with serve(tmp_path) as (_, server), Client(server) as page:
        server._attempts = Attempts(5, 60.0, lambda: now[0])
        for _ in range(5):
            with Client(server, greets=False) as other:
                other.socket.send(json.dumps({"do": "hello", "token": "x", "protocol": 1}))
                with pytest.raises(ConnectionClosed):
                    other.socket.recv(timeout=20)
        with pytest.raises(InvalidStatus, match="429"):
            Client(server)
        page.do("watch", on=True)  # who was let in stays
        now[0] = 61.0
        with Client(server) as other:
            assert other.hello["ok"]


def test_wrong_keys_and_tags_count_as_attempts(tmp_path):
    with serve(tmp_path) as (_, server), Client(server) as page:
        server._attempts = Attempts(3)
        for _ in range(2):
            page.do("challenge", nonce="00" * 16)
            page.refused("prove", tag="11" * 32)
        page.unlock(KEY)
        page.refused("keyed", **page.seal("set") | {"tag": "11" * 32})
        with pytest.raises(InvalidStatus, match="429"):
            Client(server)


def test_attempts_are_counted_by_network_and_in_bounded_memory():
    attempts = Attempts(2, 10.0, lambda: 0.0)
    attempts.note("2001:db8::1")
    attempts.note("2001:db8::2")
    assert attempts.is_barred("2001:db8::3") and not attempts.is_barred("2001:db8:0:1::1")
    attempts.note("::ffff:192.0.2.7")
    attempts.note("192.0.2.7")
    assert attempts.is_barred("192.0.2.7") and not attempts.is_barred("192.0.2.8")
    for number in range(5000):
        attempts.note(str(ip_address(number)))
    assert len(attempts._noted) == 1024


@pytest.mark.parametrize(
    "access, host, known",
    [
        (Access(), "127.0.0.1:80", True),
        (Access(), "localhost:80", True),
        (Access(), "localhost", True),
        (Access(), "192.0.2.7:80", False),
        (Access(), "evil.example:80", False),
        (Access(), "", False),
        (Access(), "localhost:99999", False),
        (Access(), "localhost:80:80", False),
        (Access("0.0.0.0"), "192.0.2.7:80", True),
        (Access("0.0.0.0"), "[2001:db8::1]:80", True),
        (Access("0.0.0.0"), "evil.example:80", False),  # its owner may point it here
        (Access("0.0.0.0"), "192.0.2.7.evil.example", False),
        (Access("0.0.0.0", ("rig.lab",)), "RIG.lab:80", True),
        (Access("rig.lab"), "rig.lab:80", True),
        (Access("0.0.0.0"), "127.0.0.1; script-src *", False),
    ],
)
def test_which_hosts_are_its_own(access, host, known):
    assert access.is_known(host) is known


def test_a_wrong_tag_counts_even_with_a_repeated_number():
    """So that nobody can guess tags with numbers that were used."""
    rights = Rights(GUARDED)
    server = bytes.fromhex(rights.prove({"do": "challenge", "nonce": "00" * 16})["nonce"])
    session = code(KEY, LABEL + bytes(16) + server)
    rights.prove({"do": "prove", "tag": code(session, b"biella page").hex()})
    good = code(session, (7).to_bytes(8, "little") + b'{"do": "stop"}').hex()
    request = {"do": "keyed", "number": 7, "text": '{"do": "stop"}', "tag": good}
    assert rights.admit(request) == {"do": "stop"}
    with pytest.raises(AccessError):
        rights.admit(request | {"tag": "00" * 32})


@pytest.fixture
def certificate(tmp_path):
    try:
        command = "openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=localhost"
        command += " -addext subjectAltName=IP:127.0.0.1 -keyout rig.pem -out rig.crt"
        subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True, timeout=120)
    except FileNotFoundError:
        pytest.skip("needs openssl")
    (tmp_path / "rig.pem").chmod(0o600)
    return tmp_path / "rig.crt", tmp_path / "rig.pem"


def test_with_a_certificate_everything_is_encrypted(tmp_path, certificate):
    access = Access(guarded=True, key=KEY, tls=load_certificate(*certificate))
    trusted = ssl.create_default_context(cafile=certificate[0])
    with serve(tmp_path, access) as (_, server):
        assert server.url.startswith("https://127.0.0.1:")
        own = server.url.partition("/#")[0]
        with Client(server, scheme="wss", ssl=trusted, origin=own) as page:
            page.unlock(KEY)
        with pytest.raises(InvalidStatus, match="403"):
            Client(server, scheme="wss", ssl=trusted, origin=own.replace("https", "http"))
        with pytest.raises(InvalidMessage):
            Client(server, open_timeout=20)


def test_what_is_no_certificate_says_so(tmp_path, certificate):
    crt, pem = certificate
    with pytest.raises(BiellaError, match=r"no file .*--certificate is a PEM file.*openssl req"):
        load_certificate(tmp_path / "none.crt", pem)
    with pytest.raises(BiellaError, match="no certificate and its private key"):
        load_certificate(pem, pem)
    pem.chmod(0o644)
    with pytest.raises(BiellaError, match=r"every user .* chmod 600"):
        load_certificate(crt, pem)
