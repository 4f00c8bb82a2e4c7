"""Who may talk to the studio, what it does with nonsense, and that no page holds up the run."""

import asyncio
import contextlib
import itertools
import json
import socket
import struct
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus

from biella import BiellaError
from biella.studio import _server
from biella.studio._server import StudioServer
from biella.studio._session import LiveSession

from .client import Client, open_studio, serving, write_rig

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    with open_studio(write_rig(tmp_path_factory.mktemp("rig"))) as (session, server, client):
        client.do("run")
        yield session, server, client


def goes_on(client):
    """Whether the run still makes ticks, and its page is still told of them."""
    tick = client.wait_state("running")["tick"]
    return client.wait_state("running")["tick"] > tick


@pytest.mark.parametrize(
    "hello",
    [
        {"do": "hello", "token": "wrong", "protocol": 1},
        {"do": "hello", "token": "", "protocol": 1},
        {"do": "hello", "token": None, "protocol": 1},
        {"do": "hello", "token": ["x"], "protocol": 1},
        {"do": "hello", "protocol": 1},
        {"do": "run"},
        [],
        "text",
    ],
)
def test_without_the_token_a_connection_is_closed(studio, hello):
    _, server, client = studio
    with Client(server, greets=False) as other:
        other.socket.send(json.dumps(hello))
        with pytest.raises(ConnectionClosed) as closed:
            other.socket.recv(timeout=20)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008
    assert goes_on(client)


def test_another_protocol_is_refused(studio):
    _, server, _ = studio
    with Client(server, greets=False) as other:
        other.socket.send(json.dumps({"do": "hello", "token": server.token, "protocol": 2}))
        with pytest.raises(ConnectionClosed, match="the protocol is 1"):
            other.socket.recv(timeout=20)


@pytest.mark.parametrize(
    "origin",
    [
        *("http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"),
        "http://localhost:{port}",  # of this server, but not of the address that was asked
    ],
)
def test_pages_of_other_sites_are_refused(studio, origin):
    _, server, _ = studio
    with pytest.raises(InvalidStatus, match="403"):
        Client(server, origin=origin.format(port=server.port))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_its_own_page_is_let_in(studio, host):
    _, server, _ = studio
    with Client(server, host=host, origin=f"http://{host}:{server.port}") as other:
        assert other.hello["protocol"] == 1


def test_a_name_that_was_rebound_to_this_computer_is_refused(studio):
    _, server, _ = studio
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/")
    request.add_header("Host", f"evil.example:{server.port}")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request, timeout=20)


@pytest.mark.parametrize("path", ["/../_server.py", "/%2e%2e/_server.py", "//etc/passwd", "/x"])
def test_only_files_of_the_page_are_sent(studio, path, tmp_path, monkeypatch):
    _, server, _ = studio
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "index.html").write_text("<p>studio")
    (tmp_path / "_server.py").write_text("secret")
    monkeypatch.setattr(_server, "FILES", tmp_path / "page")
    url = f"http://127.0.0.1:{server.port}"
    with urllib.request.urlopen(f"{url}/", timeout=20) as page:
        assert page.read() == b"<p>studio"
        policy = page.headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert f"connect-src 'self' ws://127.0.0.1:{server.port};" in policy  # and no other host
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(url + path, timeout=20)


def test_without_the_built_page_the_answer_says_how_to_get_it(studio, tmp_path, monkeypatch):
    _, server, _ = studio
    monkeypatch.setattr(_server, "FILES", tmp_path)
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(f"http://127.0.0.1:{server.port}/", timeout=20)
    assert b"npm" in error.value.read()


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
names = st.sampled_from(
    [
        *("run", "pause", "step", "factor", "set", "override", "release", "subscribe", "watch"),
        *("unsubscribe", "poses", "window", "hello", "rearm", "safe_stop", "quit", "__init__"),
    ]
)
fields = st.sampled_from(
    [
        *("path", "value", "scope", "signals", "rate", "history", "ticks", "mechanism", "on"),
        *("t", "t0", "t1", "bins", "id"),
    ]
)
likely = values | st.sampled_from(["p.k", "ref.y", "push", "plant.initial", ["ref.y"], 1, 2.0])


@given(st.lists(st.tuples(names | values, st.dictionaries(fields, likely)), max_size=8))
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_request_is_answered(studio, requests):
    """With a result or a refusal, in the order of requests."""
    _, server, client = studio
    with Client(server) as other:
        for name, more in requests:
            other.socket.send(json.dumps({**more, "do": name, "id": 5}, ensure_ascii=True))
            other.wait(lambda: 5 in other.answers)
            answer = other.answers.pop(5)
            assert answer["ok"] is True or (answer["ok"] is False and answer["error"])
    client.do("run")
    client.do("factor", value=1.0)
    client.do("release")
    client.wait_state("running")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        '"x"',
        "null",
        '{"do": 1e999}',
        "[" * 3000,
        '{"do":"run"',
        b"\xff\x00",
        "é",
    ],
)
def test_what_is_no_request_is_refused(studio, text):
    _, server, client = studio
    with Client(server) as other:
        other.socket.send(text)
        answer = other.wait(lambda: other.answers.pop(None, None))
        assert not answer["ok"] and "`do` is one of" in answer["error"]
    assert goes_on(client)


def test_a_message_that_is_too_long_ends_its_connection(studio):
    _, server, client = studio
    with Client(server) as other:
        other.socket.send(json.dumps({"do": "set", "path": "x" * 100_000}))
        with pytest.raises(ConnectionClosed):
            while True:
                other.socket.recv(timeout=20)
    assert goes_on(client)


def count_files():
    return len(list(Path("/dev/fd").iterdir()))


def is_unharmed(session, client):
    """Whether the run goes on, and neither rows nor entries of its log are lost."""
    report = session.run.report().info
    return goes_on(client) and report["rows_lost"] == report["entries_lost"] == 0


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="counts open files there")
def test_a_thousand_connections_at_once_are_refused_beyond_a_limit(studio):
    """They are raw: some ask for the page, some begin a handshake, most say nothing."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip("this process may open too few files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    session, server, client = studio
    before, sockets, most = count_files(), [], 0
    beginnings = [b"", b"GET /live HTTP/1.1\r\n", b"", b"GET /live HTTP/1.1\r\nHost: "]
    try:
        for number in range(1000):
            raw = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            sockets.append(raw)
            with contextlib.suppress(OSError):
                raw.sendall(beginnings[number % 4])
            if number % 250 == 249:
                assert is_unharmed(session, client)
                most = max(most, count_files() - before - len(sockets))
        assert 0 < most <= 150
    finally:
        for raw in sockets:
            raw.close()
    with reopened(server) as other:  # there is room again
        assert other.hello["ok"]
    assert is_unharmed(session, client)


def reopened(server):
    """Return a page once there is room for it."""
    end = time.monotonic() + 60
    while True:
        try:
            return Client(server)
        except (OSError, InvalidMessage, InvalidStatus, ConnectionClosed):
            assert time.monotonic() < end
            time.sleep(0.1)


def test_a_thousand_connections_one_after_the_other_are_served(studio):
    session, server, client = studio
    page = f"GET /none HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
    for number in range(1000):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as raw:
            if number % 3:
                continue
            raw.sendall(page)
            assert b"404" in raw.recv(100)
    assert is_unharmed(session, client)


def test_pages_beyond_their_limit_are_refused(studio, monkeypatch):
    session, server, client = studio
    monkeypatch.setattr(_server, "_MOST_PAGES", 3)
    with Client(server), Client(server):
        with pytest.raises(ConnectionClosed, match="too many pages"):
            Client(server)
        monkeypatch.setattr(_server, "_MOST_CONNECTIONS", 3)
        with pytest.raises(InvalidStatus, match="503"):
            Client(server)
    assert is_unharmed(session, client)
    client.wait(lambda: len(server._pages) == 1)


def test_who_is_slow_with_the_handshake_is_dropped(tmp_path, monkeypatch):
    """One byte at a time, never a whole request; and a WebSocket that says no hello."""
    monkeypatch.setattr(_server, "_HELLO_SECONDS", 0.5)
    session = LiveSession(write_rig(tmp_path))
    session.load()
    with serving(session) as server, Client(server) as client:
        client.do("run")
        client.wait_state("running")
        address = "127.0.0.1", server.port
        with socket.create_connection(address, timeout=60) as raw, pytest.raises(OSError):
            for byte in itertools.cycle(b"X-Header: 1\r\n"):
                raw.sendall(bytes([byte]))
                client.receive()
        with Client(server, greets=False) as silent, pytest.raises(ConnectionClosed):
            silent.socket.recv(timeout=60)
        assert is_unharmed(session, client)


def test_heads_without_end_are_refused(studio):
    session, server, client = studio
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as raw:
        with contextlib.suppress(OSError):
            raw.sendall(b"GET /live HTTP/1.1\r\n" + b"X: " + b"y" * 1_000_000)
        with contextlib.suppress(ConnectionResetError):
            while raw.recv(65536):
                pass
    assert is_unharmed(session, client)


def test_a_message_in_endless_pieces_ends_its_connection(studio):
    """Each piece is small; the message is not."""
    session, server, client = studio
    with Client(server) as other:
        pieces = itertools.repeat('"' + "x" * 1000, 1000)
        with pytest.raises(ConnectionClosed):
            other.socket.send(pieces)
            while True:
                other.socket.recv(timeout=60)
    assert is_unharmed(session, client)


def test_a_page_that_does_not_read_is_dropped_and_the_run_goes_on(studio, monkeypatch):
    _, server, client = studio
    monkeypatch.setattr(_server, "_SEND_SECONDS", 0.5)
    raw = socket.create_connection(("127.0.0.1", server.port))
    try:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = (
            "GET /live HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n"
        )
        raw.sendall(request.format(server.port).encode())
        client.wait(lambda: len(server._pages) == 1)
        raw.sendall(frame({"id": 1, "do": "hello", "token": server.token, "protocol": 1}))
        client.wait(lambda: len(server._pages) == 2)
        raw.settimeout(0.5)
        for number in range(20_000):  # each is answered with some kilobytes
            try:
                raw.sendall(frame({"id": number, "do": "x" * 4000}))
            except OSError:
                break
        client.wait(lambda: len(server._pages) == 1)
    finally:
        raw.close()
    assert goes_on(client)


def frame(request):
    """Return a WebSocket frame of a client."""
    text = json.dumps(request).encode()
    head = struct.pack("!BBH", 0x81, 0x80 | 126, len(text)) + b"\0\0\0\0"
    return head + text


def test_a_lost_page_does_not_matter(studio):
    _, server, client = studio
    other = Client(server)
    other.do("watch", on=True)
    other.socket.socket.shutdown(socket.SHUT_RDWR)
    client.wait(lambda: len(server._pages) == 1)
    assert goes_on(client)


class Greeted:
    """A connection on which something happens while the greeting is sent."""

    transport = remote_address = None

    def __init__(self, token, happens):
        self.hello = json.dumps({"do": "hello", "token": token, "protocol": 1})
        self.happens, self.sent = happens, []

    async def recv(self):
        return self.hello

    async def send(self, message):
        if not self.sent:
            self.happens()
            await asyncio.sleep(0.05)
        self.sent.append(message)

    async def __aiter__(self):
        for _ in range(200):
            if any("noticed" in text for text in self.sent if isinstance(text, str)):
                return
            await asyncio.sleep(0.01)
        yield "{}"


def test_a_page_is_told_what_happens_while_it_is_greeted(studio):
    _, server, _ = studio
    page = Greeted(server.token, lambda: server.announce({"event": "noticed"}))
    asyncio.run_coroutine_threadsafe(server._talk(page), server._loop).result(30)
    assert json.loads(page.sent[0])["event"] == "hello"
    assert '{"event":"noticed"}' in [
        text.replace(" ", "") for text in page.sent if isinstance(text, str)
    ]


def test_a_port_that_is_taken_says_so(tmp_path):
    session = LiveSession(write_rig(tmp_path))
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(BiellaError, match=r"cannot be used: .*--port"),
    ):
        StudioServer(session, taken.getsockname()[1])


def test_it_listens_on_loopback_only_and_ends(tmp_path):
    with StudioServer(LiveSession(write_rig(tmp_path))) as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert len(server.token) >= 32
    assert not server._thread.is_alive()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", server.port), timeout=5)


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_number_that_is_no_port_says_so(tmp_path, port):
    session = LiveSession(write_rig(tmp_path))
    with pytest.raises(BiellaError, match=f"--port must be 0, .* to 65535; got {port}"):
        StudioServer(session, port)
