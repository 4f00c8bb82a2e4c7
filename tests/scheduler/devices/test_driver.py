"""Drivers in Python: their life, their death, and that neither ever holds up a tick."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from biella.errors import BiellaWarning, DeviceError
from biella.scheduler.binding._bind import check_binding, open_binding
from biella.scheduler.devices import DeviceDriver, Option
from biella.scheduler.devices import _registry as registry

from .diagrams import loop

pytestmark = pytest.mark.engine

MS = 1_000_000


class Card(DeviceDriver):
    """A card whose input is twice its output."""

    options = {"serial": Option("whole", "number on its label", required=True)}  # noqa: RUF012
    channel_options = {"pin": Option("whole", "where it is connected", default=0)}  # noqa: RUF012
    poll = 1e-4
    retry = 0.02
    answers_at_once = True
    made: list = []  # noqa: RUF012

    def __init__(self, setup):
        super().__init__(setup)
        self.calls = []
        self.value = 0.0
        self.thread = None
        Card.made.append(self)

    @classmethod
    def check(cls, setup):
        pins = [c.options["pin"] for c in setup.receive]
        return [f"there is no pin {pin}." for pin in pins if pin > 7]

    def _called(self, name, *values):
        assert self.thread in (None, threading.current_thread())
        if not self.calls or self.calls[-1] != (name, *values):
            self.calls.append((name, *values))

    def open(self):
        self.thread = threading.current_thread()
        self._called("open")

    def start(self):
        self._called("start")

    def read(self):
        self._called("read")
        return [2.0 * self.value]

    def write(self, values):
        self.value = values[0]
        self._called("write")

    def safe(self, values):
        self.value = values[0]
        self._called("safe", *values)

    def close(self):
        self._called("close")
        self.thread = None

    @property
    def story(self):
        """The calls, without those that go on and on."""
        return [call for call in self.calls if call[0] not in ("read", "write")]


def until(condition, what):
    """Wait for another thread; ten seconds are for a machine that is busy with others."""
    end = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(1e-3)


@pytest.fixture
def install(monkeypatch):
    def make(driver, name="card"):
        Card.made.clear()
        monkeypatch.setitem(registry._PYTHON, name, lambda: driver)

    return make


def rig(**options):
    return {
        "devices": {"c": {
            "driver": "card", "serial": 7,
            "receive": {"y": {"scale": 0.5}}, "send": {"u": {"safe": 0.25, "scale": 0.5}},
            **options,
        }},
        "blocks": {"k": {"device": "c"}},
    }  # fmt: skip


def test_a_driver_is_read_and_written_in_its_own_thread(ticks, install):
    install(Card)
    bound = open_binding(loop(), rig())
    run = ticks(bound)
    (card,) = Card.made
    assert card.setup.name == "c"
    assert card.setup.options == {"serial": 7}
    run.advance(1)
    until(lambda: card.value == 2.0, "the first write")  # x = 1 stands as 2 on the wire
    until(lambda: run.advance(1, signals=["k"])[0][0] != 0.0, "an answer")
    # The card doubles 2, which stands for 4 * 0.5: k = 2 x of a tick before.
    (row,) = run.advance(1, signals=["k", "c.alive", "c.delay"])
    assert row[0] == pytest.approx(2.0, rel=0.1)
    assert row[1] == 1.0
    assert row[2] >= 1.0
    assert card.story == [("open",), ("start",)]
    bound.close()
    assert card.story == [("open",), ("start",), ("safe", 0.5), ("close",)]


def test_safe_values_are_sent_when_a_run_ends(ticks, install):
    install(Card)
    run = ticks(open_binding(loop(), rig()))
    (card,) = Card.made
    run.advance(3)
    run.make_safe()
    until(lambda: ("safe", 0.5) in card.story, "the safe value")
    assert card.value == 0.5


def test_safe_values_are_sent_also_if_the_program_fails(install):
    install(Card)
    with pytest.raises(ZeroDivisionError), open_binding(loop(), rig()):
        raise ZeroDivisionError
    (card,) = Card.made
    assert card.story[-2:] == [("safe", 0.5), ("close",)]


def test_a_run_that_falls_silent_makes_the_outputs_safe(ticks, install):
    install(Card)
    run = ticks(open_binding(loop(), rig(timeout=0.05)))
    (card,) = Card.made
    run.advance(1)
    until(lambda: card.value == 2.0, "the write")
    until(lambda: ("safe", 0.5) in card.story, "the watchdog")
    run.advance(1)
    until(lambda: card.value > 1.9, "the next write")


class Valve(DeviceDriver):
    """A card that has outputs only."""

    poll = 1e-4
    timeout = 0.05
    log: list = []  # noqa: RUF012

    def write(self, values):
        Valve.log.append(tuple(values))

    def safe(self, values):
        Valve.log.append(("safe", *values))


def test_a_card_without_inputs_is_never_lost_and_still_watches_the_run(ticks, install):
    install(Valve)
    Valve.log.clear()
    table = {
        "devices": {"v": {"driver": "card", "send": {"u": {"safe": 0.25}}}},
        "signals": {"x": "v.u"},
    }
    run = ticks(open_binding(loop(), table))
    run.advance(2000)  # of 1 ms each
    until(lambda: ("safe", 0.25) in Valve.log, "the watchdog")


class Failing(Card):
    broken = threading.Event()

    def read(self):
        if Failing.broken.is_set():
            raise OSError("the cable is off")
        return super().read()


def test_an_exception_is_the_loss_of_the_device_and_its_text_the_reason(ticks, install):
    install(Failing)
    Failing.broken.clear()
    run = ticks(open_binding(loop(), rig()))
    (card,) = Card.made
    run.advance(5)
    Failing.broken.set()
    with pytest.raises(ticks.ended, match="device `c` is disconnected: OSError: the cable is off"):
        for _ in range(10_000):
            run.advance(1)
            time.sleep(1e-3)
    until(lambda: ("safe", 0.5) in card.story, "the safe value")


def test_a_lost_driver_is_opened_again(ticks, install):
    install(Failing)
    Failing.broken.clear()
    run = ticks(open_binding(loop(), rig(on_loss="hold")))
    (card,) = Card.made

    def alive():
        return run.advance(1, signals=["c.alive"])[0][0]

    until(alive, "the first frame")
    Failing.broken.set()
    until(lambda: not alive(), "the loss")
    Failing.broken.clear()
    until(alive, "the return")
    assert card.story.count(("open",)) >= 2
    counts = run.bound.devices[0].counts
    assert counts["losses"] >= 1
    assert counts["returns"] >= 1


class Interrupted(Card):
    """Is lost while outputs are on their way to it."""

    reading, given = threading.Event(), threading.Event()

    def read(self):
        if not Interrupted.given.is_set():
            Interrupted.reading.set()
            Interrupted.given.wait()
            raise OSError("the cable is off")
        return super().read()


def test_a_driver_that_is_back_is_made_safe_and_not_given_what_is_past(ticks, install):
    install(Interrupted)
    Interrupted.reading.clear()
    Interrupted.given.clear()
    run = ticks(open_binding(loop(), rig(on_loss="hold")))
    (card,) = Card.made
    assert Interrupted.reading.wait(10.0)
    run.advance(3)
    Interrupted.given.set()
    until(lambda: card.story.count(("open",)) == 2 and card.calls[-1] == ("read",), "the return")
    again = card.calls[len(card.calls) - 1 - card.calls[::-1].index(("open",)) :]
    assert again == [("open",), ("start",), ("safe", 0.5), ("read",)]


def test_what_came_before_a_loss_is_no_data_after_the_return(ticks, install):
    """A frame that nobody took in time would otherwise make the device alive, with old values."""
    install(Card)
    bound = open_binding(loop(), rig(on_loss="hold"))
    device: Any = bound.devices[0]
    run = ticks(bound)
    device._ending.set()  # the test is the driver's thread from now on
    device._thread.join()
    run.advance(1)
    frames = device.counts["frames"]
    device._post([7.0])
    device._lib.bl_mailbox_device_fail(device.handle, b"the cable is off")
    assert run.advance(1, signals=["c.alive"]) == [[0.0]]
    device._lib.bl_mailbox_device_return(device.handle)
    assert run.advance(2, signals=["c.alive"]) == [[0.0], [0.0]]
    assert device.counts["frames"] == frames and device.counts["stale"] == 1
    device._post([8.0])
    assert run.advance(1, signals=["c.alive", "k"]) == [[1.0, 4.0]]


class NotFinite(Card):
    def read(self):
        return [float("nan")]


class TooMany(Card):
    def read(self):
        return [1.0, 2.0]


@pytest.mark.parametrize(
    ("driver", "reason"),
    [
        (NotFinite, "read returned a value that is not finite"),
        (TooMany, "read returned 2 values instead of 1"),
    ],
)
def test_what_is_no_frame_is_a_loss(ticks, install, driver, reason):
    install(driver)
    run = ticks(open_binding(loop(), rig()))
    with pytest.raises(ticks.ended, match=f"device `c` is disconnected: DeviceError: {reason}"):
        for _ in range(10_000):
            run.advance(1)
            time.sleep(1e-3)


class Stuck(Card):
    stuck = threading.Event()
    hold = threading.Event()

    def read(self):
        Stuck.stuck.set()
        Stuck.hold.wait()
        return None

    def _called(self, name, *values):
        self.calls.append((name, *values))


def test_a_driver_that_hangs_holds_up_nobody_and_is_made_safe_from_outside(ticks, install):
    install(Stuck)
    Stuck.stuck.clear()
    Stuck.hold.clear()
    bound = open_binding(loop(), rig(timeout=0.01))
    run = ticks(bound)
    (card,) = Card.made
    assert Stuck.stuck.wait(10.0)
    run.advance(10)  # of 1 ms each: with no answer, but without waiting for one
    with pytest.raises(ticks.ended, match="device `c` is lost: no frame since the start"):
        run.advance(10)
    with pytest.warns(
        BiellaWarning, match="the driver of `c` does not respond: its `safe` was called from"
    ):
        bound.close()
    assert ("safe", 0.5) in card.story
    Stuck.hold.set()


class StuckOnce(Card):
    stuck = threading.Event()
    hold = threading.Event()

    def read(self):
        if self.value and not StuckOnce.stuck.is_set():
            StuckOnce.stuck.set()
            StuckOnce.hold.wait()
        return super().read()


def test_a_driver_that_was_stuck_is_made_safe_before_it_counts_again(ticks, install):
    """The safe values that were sent meanwhile it has not heard: only the newest wait for it."""
    install(StuckOnce)
    StuckOnce.stuck.clear()
    StuckOnce.hold.clear()
    bound = open_binding(loop(), rig(timeout=0.01, on_loss="hold"))
    run = ticks(bound)
    (card,) = Card.made
    run.advance(1)
    assert StuckOnce.stuck.wait(10.0)
    time.sleep(0.03)
    run.advance(1)  # values as usual wait for it
    StuckOnce.hold.set()
    until(lambda: run.advance(1, signals=["k"])[0][0] != 0.0, "an answer")
    assert ("safe", 0.5) in card.story


class Refusing(Card):
    def open(self):
        super().open()
        raise OSError("no card number 7")


def test_a_driver_that_cannot_be_opened_is_reported_and_others_are_closed(install):
    install(Card)
    table = rig()
    table["devices"]["other"] = {"driver": "missing", "serial": 1, "receive": {"a": {}}}
    table["signals"] = {"x": "other.a"}
    registry._PYTHON["missing"] = lambda: Refusing
    try:
        with pytest.raises(DeviceError, match="`other` cannot be opened: OSError: no card number"):
            open_binding(loop(), table)
    finally:
        del registry._PYTHON["missing"]
    first, second = Card.made
    assert first.story[-2:] == [("safe", 0.5), ("close",)]
    assert second.story == [("open",), ("close",)]


def test_options_and_checks_of_a_driver_are_those_of_the_binding(install):
    install(Card)
    table = rig()
    del table["devices"]["c"]["serial"]
    table["devices"]["c"]["receive"]["y"]["pim"] = 3
    assert check_binding(loop(), table).problems == [
        "[devices.c] serial: is missing: number on its label.",
        "[devices.c.receive.y] pim: is not an option of a channel. Did you mean `pin`? "
        "Options: unit, "
        "scale, offset, saturate, width, unused, pin, limits, safe, names.",
    ]
    table = rig()
    table["devices"]["c"]["receive"]["y"]["pin"] = 8
    assert check_binding(loop(), table).problems == ["[devices.c]: there is no pin 8."]
