"""Limits of a run: their defaults, the latch, max_stall on a scripted clock."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from biella import BiellaError, BiellaWarning, OverrunError, run_realtime
from biella.devices import DeviceDriver

sys.path.insert(0, str(Path(__file__).parent))
from udp_rig import LIVE, SAFE, Board, bind, build, wait_until  # type: ignore[import-not-found]

pytestmark = pytest.mark.engine


@pytest.fixture
def board() -> Iterator[Board]:
    board = Board()
    yield board
    board.close()


@pytest.mark.parametrize(
    ("options", "step", "limit"),
    [
        ({}, 1e-3, 1.0),
        ({}, 0.5, 5.0),
        ({"overrun": "stop"}, 1e-3, 0.25),
        ({"overrun": "stop", "max_overruns": 3}, 1e-3, 1.0),
        ({"factor": 0.001}, 1e-3, 10.0),
    ],
)
def test_a_run_with_outputs_is_limited_by_default(board, options, step, limit):
    run = run_realtime(build(step=step), bind=bind(board.port), **options)
    try:
        report = run.report().info
        assert (report["watchdog"], report["max_stall"]) == (limit, limit)
        assert run._pace.watchdog == run._pace.max_stall == round(1e9 * limit)
    finally:
        run._end("stopped")
        run._settled.wait()


def test_one_without_outputs_is_not():
    with run_realtime(build(), until=0.01) as run:
        assert (run._pace.watchdog, run._pace.max_stall) == (0, 0)


def test_options_of_the_binding_and_of_the_call(board):
    rig = bind(board.port, watchdog=3, max_stall=0, on_trip="stop")
    with run_realtime(build(), bind=rig, max_stall=2.0) as run:
        assert run._pace.watchdog == 3_000_000_000
        assert run._pace.max_stall == 2_000_000_000
        assert run._pace.ends_if_latched


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"watchdog": -1.0}, "watchdog must be a time in s, 0 for no limit, got -1.0"),
        ({"max_stall": float("nan")}, "max_stall must be a time in s"),
        ({"watchdog": "1 s"}, "watchdog must be a time in s, 0 for no limit, got '1 s'"),
        ({"max_stall": 1e-5}, "max_stall must be at least 1 ms, got 1e-05 s"),
        ({"on_trip": "lach"}, "on_trip must be one of .*, got 'lach'. Did you mean `latch`"),
    ],
)
def test_bad_limits_are_refused(options, text):
    with pytest.raises(BiellaError, match=text):
        run_realtime(build(), until=0.01, **options)


def test_a_tick_that_does_not_return_is_latched_until_it_is_armed_again(board, caplog):
    gate = threading.Event()
    with caplog.at_level(logging.WARNING, "biella"):
        with run_realtime(build(gate), bind=bind(board.port), watchdog=0.1, max_stall=0.0) as run:
            wait_until(lambda: board.last == pytest.approx(LIVE))
            gate.set()
            wait_until(lambda: board.is_safe)
            assert "no progress at tick" in run.latched and "latched" in repr(run)
            held = run.tick
            gate.clear()
            count = len(board.seen)
            wait_until(lambda: len(board.seen) > count + 20)
            # The tick has ended, but live values do not come back by themselves.
            assert all(value == SAFE for _, value, _ in board.seen[count:])
            assert run.tick <= held + 1 and run.running
            wait_until(lambda: bool(caplog.records))
            run.rearm()
            wait_until(lambda: board.last == pytest.approx(LIVE))
            assert run.latched == "" and run.report().info["latches"] == 1
            with pytest.raises(BiellaError, match="the run is not latched"):
                run.rearm()
        assert board.is_safe and run.result.info["realtime"]["safe_confirmed"] == {"drive": True}
    assert "is latched at t = " in caplog.text


def test_a_run_that_hangs_after_its_first_live_value_is_latched(board):
    gate = threading.Event()
    build_hanging = build(after=gate.wait)
    with run_realtime(build_hanging, bind=bind(board.port), watchdog=0.1, max_stall=0.0) as run:
        try:
            wait_until(lambda: board.is_safe)
            assert "no progress at tick 0" in run.latched
            assert run.tick == 0
        finally:
            gate.set()


def test_a_trip_may_end_the_run(board):
    gate = threading.Event()
    run = run_realtime(build(gate), bind=bind(board.port), max_stall=0.05, on_trip="stop")
    wait_until(lambda: board.last == pytest.approx(LIVE))
    gate.set()
    threading.Timer(0.2, gate.clear).start()
    with pytest.raises(OverrunError, match=r"max_stall 0\.05 s"):
        run.wait()
    assert board.is_safe


def test_safe_values_are_repeated_for_a_board_that_does_not_echo_them(board):
    run = run_realtime(build(), bind=bind(board.port))
    wait_until(lambda: board.last == pytest.approx(LIVE))
    board.answers = False
    result = run.stop()
    assert sum(value == SAFE for _, value, _ in board.seen) > 3
    assert result.info["realtime"]["safe_confirmed"] == {"drive": False}


class InPython(DeviceDriver):
    """A driver that does nothing."""


def test_outputs_that_only_python_can_reach_are_named(board):
    from biella.scheduler.realtime.safety._limits import warn_of_python_drivers

    class Device:
        name = "card"
        driver = InPython
        entry = type("Entry", (), {"send": {"u": 1}})

    plan = build(threading.Event()).compile()
    with pytest.warns(BiellaWarning, match="driver of card is written in Python"):
        warn_of_python_drivers(plan, [Device()], stacklevel=1)
    warn_of_python_drivers(build().compile(), [Device()], stacklevel=1)  # nothing can hang


def test_a_late_request_does_not_arm_a_later_latch(board):
    """Two requests for one latch: the second must not continue the next one unseen."""
    gate = threading.Event()
    with run_realtime(build(gate), bind=bind(board.port), watchdog=0.1, max_stall=0.0) as run:
        wait_until(lambda: board.last == pytest.approx(LIVE))
        for number in (1, 2):
            gate.set()
            wait_until(lambda: run.latched)
            assert run._pace.latches == number
            gate.clear()
            if number == 1:
                run.rearm()
                wait_until(lambda: not run.latched)
                wait_until(lambda: board.last == pytest.approx(LIVE))
                run._pace.rearm = 1  # of a thread that found the first latch, and was held up
        wait_until(lambda: not run._pace.rearm)  # it was looked at
        count = len(board.seen)
        wait_until(lambda: len(board.seen) > count + 5)
        assert run.latched and all(value == SAFE for _, value, _ in board.seen[count:])
        run.rearm()
        wait_until(lambda: board.last == pytest.approx(LIVE))
