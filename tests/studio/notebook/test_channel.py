"""Messages of the studio through a notebook: batches, confirmations, views that come and go."""

import contextlib
import itertools
import json
import threading
import time

import numpy as np
import pytest

from biella import Diagram
from biella.blocks.multibody import System
from biella.studio.notebook import _channel
from biella.studio.notebook._channel import Channel
from biella.studio.notebook._session import DiagramSession

from ..client import LIMIT
from .diagrams import make_loop, make_sled

pytestmark = pytest.mark.engine


class View:
    """A page in a notebook; confirms what it gets unless told not to."""

    numbers = itertools.count()

    def __init__(self, channel, confirms=True):
        self.channel, self.confirms = channel, confirms
        self.name = f"view{next(self.numbers)}"
        self.batches, self.texts, self.buffers = [], [], []
        self.news = threading.Condition()
        self.ids = itertools.count(1)
        channel.views[self.name] = self

    def take(self, content, buffers):
        with self.news:
            self.batches.append(content["number"])
            count = content["texts"].count(None)
            assert count == len(buffers)
            self.texts += [json.loads(text) for text in content["texts"] if text is not None]
            self.buffers += buffers
            self.news.notify_all()
        if self.confirms:
            self.send(ack=content["number"])

    def send(self, **content):
        self.channel.receive({"view": self.name, **content})

    def wait(self, condition):
        with self.news:
            found = self.news.wait_for(condition, LIMIT)
            assert found
            return found

    def heads_of_rows(self):
        """Return kind, scope, columns and rows of what has rows; how often it is cleared varies."""
        heads = [tuple(np.frombuffer(buffer[:16], "<u4").tolist()) for buffer in self.buffers]
        return [head for head in heads if head[3] > 0]

    def ask(self, do, **fields):
        number = next(self.ids)
        self.send(text=json.dumps({"id": number, "do": do, **fields}))

        def find():
            return next((text for text in self.texts if text.get("id") == number), None)

        self.wait(find)
        return find()

    def greet(self):
        self.send(do="open")
        return self.ask("hello", protocol=1, token="")


class Served(Channel):
    """A channel to the views of a test."""

    def __init__(self, session):
        self.views = {}
        super().__init__(session, self._hand_out)

    def _hand_out(self, content, buffers):
        if content["view"] in self.views:
            self.views[content["view"]].take(content, buffers)


@contextlib.contextmanager
def open_channel(diagram=None):
    session = DiagramSession(diagram or make_loop())
    session.load()
    worker = threading.Thread(target=session.serve)
    worker.start()
    channel = Served(session)
    try:
        yield session, channel
    finally:
        session.end()
        worker.join(LIMIT)
        channel.close()
        assert not worker.is_alive() and not channel._thread.is_alive()


def test_a_page_greets_runs_and_gets_samples():
    with open_channel() as (session, channel):
        page = View(channel)
        hello = page.greet()
        assert hello["ok"] and hello["event"] == "hello" and hello["name"] == "loop"
        page.wait(lambda: {"diagram", "signals", "state"} <= {t.get("event") for t in page.texts})
        assert page.ask("subscribe", scope=1, signals=["x.y"], rate=1000.0)["ok"]
        assert page.ask("run")["ok"] and session.run.running
        heads = page.wait(lambda: page.heads_of_rows()[3:] and page.heads_of_rows())
        assert {head[:3] for head in heads} == {(1, 1, 3)}
        assert page.ask("set", path="k.k", value=3.0)["ok"] and session.run["k.k"] == 3.0
        # Others are told.
        assert {"event": "changed", "path": "k.k", "value": 3.0} in page.texts


def test_bad_requests_are_answered():
    with open_channel() as (_, channel):
        page = View(channel)
        page.send(do="open")
        assert "hello with the protocol 1" in page.ask("run")["error"]
        assert not page.ask("hello", protocol=2)["ok"] and page.ask("hello", protocol=1)["ok"]
        assert "one of" in page.ask("fly")["error"] and "scope" in page.ask("window")["error"]
        for text in ("[1]", "{", "[" * 50_000, "x" * 70_000):
            page.send(text=text)
        page.wait(lambda: sum("JSON object" in t.get("error", "") for t in page.texts) == 4)
        for content in (None, 5, {}, {"view": 3, "do": "open"}, {"view": "x" * 99, "do": "open"}):
            channel.receive(content)
        channel.receive({"view": "unknown", "text": "{}"})
        page.send(ack="x", text=7)
        assert page.ask("watch", on=True)["ok"]


def test_without_confirmations_batches_are_rare_and_end(monkeypatch):
    """A cell that runs delays what the page sends, not what the kernel sends."""
    monkeypatch.setattr(_channel, "_BUSY_SECONDS", 0.05)
    with open_channel() as (_, channel):
        page = View(channel, confirms=False)
        page.greet()
        page.ask("run")
        page.wait(lambda: len(page.batches) > 5)  # each after the time of a busy kernel
        assert page.batches == sorted(set(page.batches))
        monkeypatch.setattr(_channel, "_GONE_SECONDS", 0.0)
        time.sleep(0.3)
        before = len(page.batches)
        time.sleep(0.5)
        assert len(page.batches) == before
        page.send(ack=page.batches[-1])  # it is back
        page.wait(lambda: len(page.batches) > before)


def test_a_run_that_nobody_sees_is_paused():
    with open_channel() as (session, channel):
        first, second = View(channel), View(channel)
        first.greet()
        second.greet()
        first.ask("run")
        first.send(do="close")
        assert second.ask("watch", on=True)["ok"] and session.state()["state"] == "running"
        second.send(do="close")
        end = time.monotonic() + LIMIT
        while session.state()["state"] != "paused":
            assert time.monotonic() < end
            time.sleep(0.01)
        assert first.greet()["ok"]  # it is shown again
        assert first.ask("run")["ok"] and session.state()["state"] == "running"


@pytest.mark.parametrize("reopens", [False, True])
def test_a_push_ends_with_its_view(reopens):
    system = System("sled", gravity=(0.0, 0.0), planar=True)
    sled = system.body("sled", mass=2.0, inertia=0.1)
    system.prismatic("rail", system.ground, sled, at=(0.0, 0.0), axis=(1, 0))
    diagram = Diagram("sled", step=1e-3)
    diagram.add(system.block(), name="plant")
    with open_channel(diagram) as (session, channel):
        page, other = View(channel), View(channel)
        page.greet()
        other.greet()
        assert page.ask("step", ticks=1)["ok"]
        push = {"mechanism": "plant", "body": 0, "point": [0.0] * 3, "force": [1.0, 0.0, 0.0]}
        assert page.ask("push", **push)["ok"] and session.run["plant.push.body"] == 1.0
        page.send(do="open" if reopens else "close")
        assert other.ask("watch", on=True)["ok"]
        assert session.run["plant.push.body"] == 0.0


def test_a_view_that_is_loaded_again_starts_anew(monkeypatch):
    monkeypatch.setattr(_channel, "_MOST_PAGES", 2)
    with open_channel() as (_, channel):
        pages = [View(channel) for _ in range(2)]
        assert all(page.greet()["ok"] for page in pages)
        assert pages[0].greet()["ok"]
        third = View(channel)
        third.send(do="open")  # one too many: it is not answered
        third.send(text='{"id": 1, "do": "hello", "protocol": 1}')
        assert pages[1].ask("watch", on=True)["ok"] and third.texts == []


def test_what_comes_after_the_end_is_ignored():
    with open_channel() as (session, channel):
        page = View(channel)
        page.greet()
        channel.close()
        page.send(text="{}")
        session.announce({"event": "reload"})
        channel.close()


def test_a_view_that_goes_lets_go_of_what_it_pushes():
    with open_channel(make_sled()) as (session, channel):
        one, other = View(channel), View(channel)
        assert one.greet()["ok"] and other.greet()["ok"]
        assert one.ask("run")["ok"]
        pushed = {"mechanism": "plant", "body": 0, "point": [0, 0, 0], "force": [1.0, 0.0, 0.0]}
        assert one.ask("push", **pushed)["ok"] and session.run["plant.push.body"] == 1.0
        one.send(do="close")
        assert other.ask("watch", on=True)["ok"]  # requests are taken in turn
        assert session.run["plant.push.body"] == 0.0
