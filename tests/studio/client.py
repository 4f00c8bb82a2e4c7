"""A page's side of the protocol, against a real server and real runs."""

import contextlib
import hashlib
import json
import secrets
import struct
import textwrap
import threading
import time

import numpy as np
from websockets.sync.client import connect

from biella.studio._server import StudioServer
from biella.studio._session import LiveSession

LIMIT = 60.0  # s that something may take at most

RIG = """
    from biella import Diagram
    from biella.blocks import Gain, Integrator, Saturation, Sine, Sum

    def diagram():
        d = Diagram("loop", step=1e-3)
        ref = d.add(Sine(frequency=2.0), "ref")
        error = d.add(Sum("+-"), "error", u1=ref)
        p = d.add(Gain(8.0), "p", u=error)
        drive = d.add(Saturation(-2.0, 2.0), "drive", u=p)
        plant = d.add(Integrator(), "plant", u=drive)
        d.connect(plant, error["u2"])
        push = d.input("push", default=0.5)
        d.add(Gain(1.0), "pushed", u=push)
        return d
"""


def write_rig(folder, text=RIG):
    """Write the file of a diagram."""
    path = folder / "rig.py"
    path.write_text(textwrap.dedent(text))
    return path


@contextlib.contextmanager
def serving(session, access=None):
    """Serve a session as `biella studio` does; its main thread is one of the test's."""
    with StudioServer(session, 0, access) as server:
        thread = threading.Thread(target=session.serve)
        thread.start()
        try:
            yield server
        finally:
            session.end()
            thread.join(LIMIT)
            assert not thread.is_alive()


@contextlib.contextmanager
def open_studio(file, **options):
    """Yield a session of a file, its server and a page that has said hello."""
    session = LiveSession(file, **options)
    session.load()
    with serving(session) as server, Client(server) as client:
        yield session, server, client


def code(key, message):
    """Return the 32 bytes of keyed BLAKE2s."""
    return hashlib.blake2s(message, key=key).digest()


class Client:
    """A page. What it receives is kept: the newest of each event, all samples and poses."""

    def __init__(self, server, *, greets=True, host="127.0.0.1", scheme="ws", **options):
        self._stack = contextlib.ExitStack()
        url = f"{scheme}://{host}:{server.port}/live"
        options = {"ping_interval": None, "max_size": None, "close_timeout": 1.0, **options}
        self.socket = self._stack.enter_context(connect(url, **options))
        self.number = 0
        self.answers = {}
        self.events = {}
        self.counts = {}
        self.changes = []
        self.binary = []
        self.session_key = None
        self.sealed = 0
        self.parts = {}  # of files
        if greets:
            try:
                self.hello = self.ask("hello", token=server.token, protocol=1)
            except BaseException:
                self.close()
                raise
            assert self.hello["ok"]

    def ask(self, action, /, **fields):
        """Send a request; return its answer."""
        self.number += 1
        number = self.number
        self.socket.send(json.dumps({"id": number, "do": action, **fields}))
        self.wait(lambda: number in self.answers)
        return self.answers.pop(number)

    def unlock(self, key):
        """Show that this page has the key; written from the protocol, with hashlib alone."""
        page = secrets.token_bytes(16)
        server = bytes.fromhex(self.do("challenge", nonce=page.hex())["nonce"])
        self.session_key = code(key, b"biella studio 1\n" + page + server)
        answer = self.do("prove", tag=code(self.session_key, b"biella page").hex())
        assert answer["tag"] == code(self.session_key, b"biella server").hex()

    def seal(self, name, **fields):
        """Return the fields of a keyed request."""
        self.sealed += 1
        text = json.dumps({"do": name, **fields})
        tag = code(self.session_key, self.sealed.to_bytes(8, "little") + text.encode())
        return {"number": self.sealed, "text": text, "tag": tag.hex()}

    def do(self, action, /, **fields):
        """Send a request that has to succeed."""
        answer = self.ask(action, **fields)
        assert answer["ok"], answer
        return answer

    def refused(self, action, /, **fields):
        """Return the text of a refusal."""
        answer = self.ask(action, **fields)
        assert not answer["ok"], answer
        return answer["error"]

    def wait(self, condition):
        """Receive until something is so; return it."""
        limit = time.monotonic() + LIMIT
        while not (found := condition()):
            if time.monotonic() > limit:
                raise AssertionError(f"it did not happen; events: {self.events.get('state')}")
            self.receive()
        return found

    def receive(self):
        """Take one message, if one comes soon."""
        try:
            message = self.socket.recv(timeout=0.2)
        except TimeoutError:
            return
        if isinstance(message, bytes):
            head = struct.unpack_from("<6I", message)
            if head[0] == 6:
                self.parts.setdefault(head[1], []).append((head, message[24:]))
                return
            content = message[24:] if head[0] == 5 else np.frombuffer(message, "<f8", offset=24)
            self.binary.append((head, content))
            return
        said = json.loads(message)
        if "event" in said:
            self.events[said["event"]] = said
            self.counts[said["event"]] = self.counts.get(said["event"], 0) + 1
            if said["event"] == "changed":
                self.changes.append((said["path"], said["value"]))
        if "id" in said:
            self.answers[said["id"]] = said

    def wait_state(self, *states):
        """Wait until the run is in one of these states, as of now."""
        self.events.pop("state", None)
        return self.wait(
            lambda: self.events.get("state", {}).get("state") in states and self.events["state"]
        )

    def samples(self, scope):
        """Return the bins of a scope as a page has them: times, and columns of least and most."""
        bins = np.empty((0, 0))
        for (kind, number, columns, rows, flags, _), content in self.binary:
            if kind != 1 or number != scope or flags & 2:
                continue
            table = content.reshape(rows, columns)
            if flags & 1:
                bins = table
            elif len(bins) and len(table) and table[0, 0] == bins[-1, 0]:
                bins = np.vstack([bins[:-1], table])
            elif len(table):
                bins = np.vstack([bins, table])
        return bins

    def close(self):
        self._stack.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
