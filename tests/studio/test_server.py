"""Who may talk to the studio, what it does with nonsense, and that no page holds up the run."""

import json
import socket
import struct
import urllib.error
import urllib.request

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed, InvalidStatus

from biella import BiellaError
from biella.studio import _server
from biella.studio._server import StudioServer
from biella.studio._session import LiveSession

from .client import Client, open_studio, write_rig

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


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}"])
def test_pages_of_other_sites_are_refused(studio, origin):
    _, server, _ = studio
    with pytest.raises(InvalidStatus, match="403"):
        Client(server, origin=origin.format(port=server.port))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_its_own_page_is_let_in(studio, host):
    _, server, _ = studio
    with Client(server, origin=f"http://{host}:{server.port}") as other:
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


def test_many_connections_are_refused_beyond_a_limit_and_the_run_goes_on(studio):
    """200: some of them talk, some say nothing, some are not even WebSockets."""
    _, server, client = studio
    sockets, greeted, refused = [], [], 0
    try:
        for number in range(200):
            if number % 4 == 3:
                raw = socket.create_connection(("127.0.0.1", server.port))
                raw.sendall(b"GET /live HTTP/1.1\r\n")
                sockets.append(raw)
                continue
            try:
                other = Client(server, greets=number % 4 != 2)
                greeted.append(other)
            except (InvalidStatus, ConnectionClosed):
                refused += 1
        assert refused > 50
        assert goes_on(client)
    finally:
        for raw in sockets:
            raw.close()
        for other in greeted:
            other.close()
    client.wait(lambda: server._open <= 1)
    with Client(server) as other:  # there is room again
        assert other.hello["ok"]


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
