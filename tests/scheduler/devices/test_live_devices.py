"""Whole real-time runs with devices of a binding: what happens, what is told, what is left
behind.
"""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from biella import Diagram, run_realtime, simulate
from biella.blocks import Asynchronous, Constant, Gain, Port, python_block
from biella.errors import BiellaError, DeviceError
from biella.scheduler.devices import DeviceDriver
from biella.scheduler.devices import _registry as registry
from biella.scheduler.realtime import _live_exit as live_exit
from biella.scheduler.realtime.log._replay import find_differences, replay

from .diagrams import loop
from .peer import wait_for

pytestmark = pytest.mark.engine


def rig(**options):
    return {
        "devices": {"c": {"receive": {"y": {}}, "send": {"u": {"safe": 0.25}}, **options}},
        "blocks": {"k": {"device": "c"}},
    }


class Card(DeviceDriver):
    """A card that gives minus its output; its log is kept for the test."""

    answers_at_once = True
    poll = 1e-4
    made: list = []  # noqa: RUF012

    def __init__(self, setup):
        super().__init__(setup)
        self.value, self.reads, self.log = 0.0, 0, []
        Card.made.append(self)

    def read(self):
        self.reads += 1
        return [-self.value]

    def write(self, values):
        (self.value,) = values

    def safe(self, values):
        (self.value,) = values
        self.log.append(("safe", *values))

    def close(self):
        self.log.append("close")


@pytest.fixture
def install(monkeypatch):
    def make(driver):
        Card.made.clear()
        monkeypatch.setitem(registry._PYTHON, "card", lambda: driver)

    return make


def test_a_run_through_a_loopback_is_the_difference_equation():
    """x' is -x of one tick before, and 0 at the first: exact on the free clock."""
    table = rig(driver="loopback")
    table["devices"]["c"]["receive"]["y"]["scale"] = -1.0
    run = run_realtime(loop(), until=0.5, bind=table, clock="free")
    result = run.wait()
    x = [1.0, 1.0]
    while len(x) < len(result.t):
        x.append(x[-1] - 1e-3 * x[-2])
    np.testing.assert_allclose(result["x"], x[: len(result.t)], rtol=1e-13)
    assert (result["c.delay"][1:] == 1).all()
    assert result.info["binding"]["channel_maps"][1]["channel"] == "c.y"
    # At the end the echo of safe values is heard, too.
    assert result.info["realtime"]["devices"]["c"]["frames"] >= len(result.t) - 2


def test_a_run_with_a_driver_in_python_ends_safe(install):
    install(Card)
    with run_realtime(loop(), bind=rig(driver="card")) as run:
        end = time.monotonic() + 20.0
        while not run.latest("c.alive") or run.latest("x") > 0.99:
            assert time.monotonic() < end
            time.sleep(0.01)
        result = run.stop()
    (card,) = Card.made
    assert card.log[0] == ("safe", 0.25)
    assert card.log[-1] == "close"
    assert card.value == 0.25
    alive = result["c.alive"] == 1
    assert (np.diff(result["x"])[alive[:-1]] <= 0).all()


def test_once_a_value_ends_the_run_no_other_device_gets_more_than_its_safe_values():
    d = Diagram("two", step=1e-3)
    d.add(Constant(5.0), name="level")
    out = {"u": {"safe": 0.0, "limits": [-9, 9]}}
    devices = {
        name: {"driver": "loopback", "receive": {"y": {}}, "send": out} for name in ("a", "b")
    }
    devices["a"]["send"] = {"u": {"safe": 0.0, "limits": [-1, 1]}}
    signals = {"level": "a.u", "level.y": "b.u"}
    run = run_realtime(d, until=1.0, clock="free", bind={"devices": devices, "signals": signals})
    with pytest.raises(DeviceError, match=r"`a`, channel `u` \(to it\): 5 exceeds its limit 1"):
        run.wait()
    counts = run.result.info["realtime"]["devices"]
    assert [counts[name]["sent"] for name in ("a", "b")] == [3, 3]


def test_an_input_that_a_device_feeds_cannot_be_set_by_hand_too():
    """Its next frame would undo it at once, without a word."""
    d = Diagram("fed", step=1e-3)
    d.connect(d.input("u", default=1.0), d.add(Gain(2.0), name="g"))
    d.add(Constant(3.0), name="level")
    table = rig(driver="loopback") | {"blocks": {}, "signals": {"level": "c.u", "u": "c.y"}}
    with run_realtime(d, bind=table) as run:
        for change in (run.override, run.__setitem__):
            with pytest.raises(
                BiellaError, match=r"`u` is received from the device `c`.*downstream"
            ):
                change("u", 0.0)


@python_block(inputs=[Port("u")], outputs=[Port("y")])
def same(u):
    return u


@pytest.mark.parametrize("which", ["biella loop", "biella recorder", "biella slow"])
def test_a_run_that_cannot_get_its_threads_ends_safe_before_it_is_reported(
    install, monkeypatch, which
):
    """Nobody has it in hand then: it would go on, and move what it is bound to."""
    install(Card)
    d = loop()
    slow = d.add(Asynchronous(same(), period=1e-2), name="slow")
    d.connect(d["x"], slow)
    begin = threading.Thread.start

    def refuse(thread):
        if thread.name == which:
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    before, threads = set(live_exit._live), set(threading.enumerate())
    with pytest.raises(RuntimeError, match="can't start new thread"):
        run_realtime(d, bind=rig(driver="card"))
    assert set(live_exit._live) == before
    (card,) = Card.made
    assert card.log[-2:] == [("safe", 0.25), "close"]
    more = set(threading.enumerate()) - threads
    assert not [t.name for t in more if t.name.startswith("biella")]


class Failing(Card):
    """Fails when the test says so: how often it is read before the first tick, nobody knows."""

    fails = threading.Event()

    def read(self):
        if self.fails.is_set():
            raise OSError("the cable is off")
        return super().read()


def test_an_exception_of_a_driver_ends_the_run_with_its_text(install):
    install(Failing)
    Failing.fails.clear()
    run = run_realtime(loop(), bind=rig(driver="card"))
    wait_for(lambda: run.tick > 1)
    Failing.fails.set()
    with pytest.raises(
        DeviceError, match="device `c` is disconnected: OSError: the cable is off"
    ) as error:
        run.wait()
    assert error.value.result is not None
    assert len(error.value.result.t) > 1
    assert Card.made[0].log[-2:] == [("safe", 0.25), "close"]


class Slow(Card):
    """Sometimes longer than its timeout: lost, and back."""

    def read(self):
        if self.reads % 40 == 39:
            self.reads += 1
            threading.Event().wait(0.06)
        return super().read()


def test_a_slow_driver_is_lost_and_comes_back_and_no_tick_waits(install):
    install(Slow)
    table = rig(driver="card", timeout=0.02, on_loss="safe")
    table["devices"]["c"]["receive"]["y"]["safe"] = 0.5
    run = run_realtime(loop(), bind=table, until=2.0)
    result = run.wait()
    devices = result.info["realtime"]["devices"]["c"]
    assert devices["losses"] >= 1
    assert devices["returns"] >= 1
    lost = result["c.age"] > 25
    assert lost.any()
    assert (result["k"][lost] == 0.5).all()
    # The ticks went on while it was silent: each has a row.
    assert len(result.t) + result.info["realtime"]["skipped"] >= 1999


def test_a_run_with_a_driver_in_python_is_repeated_bit_for_bit(install, tmp_path):
    install(Card)
    first = run_realtime(loop(), bind=rig(driver="card"), until=0.3, out=tmp_path / "log.h5").wait()
    assert find_differences(first, replay(tmp_path / "log.h5")) == []


def test_a_result_is_played_again_as_a_device_and_that_run_is_kept(tmp_path):
    first = simulate(loop(), until=0.05)
    table = rig(driver="replay", file=first)
    table["devices"]["c"]["receive"]["y"]["signal"] = "k"
    again = run_realtime(
        loop(), until=0.05, bind=table, clock="free", out=tmp_path / "log.h5"
    ).wait()
    # The last row is where the run ended: nothing came in any more.
    np.testing.assert_array_equal(again["k"][:-1], first["k"][:-1])
    assert again.info["binding"]["table"]["devices"]["c"]["file"] == "a Result"
    kept = replay(tmp_path / "log.h5")
    assert find_differences(again, kept) == []


def test_a_block_that_is_an_fmu_runs_against_a_clock_and_again(tmp_path):
    inner = Diagram("inner", step=1e-3)
    g = inner.add(Gain(-4.0), name="g")
    inner.connect(inner.input("u"), g)
    inner.output("y", g)
    inner.export_fmu(tmp_path / "gain.fmu", sources=False)
    (tmp_path / "rig.toml").write_text('[run]\nclock = "free"\n[blocks.k]\nfmu = "gain.fmu"\n')
    run = run_realtime(loop(), until=0.1, bind=tmp_path / "rig.toml", out=tmp_path / "log.h5")
    first = run.wait()
    # The FMU holds its input through a step.
    np.testing.assert_allclose(first["x"], (1 - 4e-3) ** np.arange(101), rtol=1e-12)
    assert (
        find_differences(first, replay(tmp_path / "log.h5", loop(), bind=tmp_path / "rig.toml"))
        == []
    )
