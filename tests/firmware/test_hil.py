"""Hardware in the loop: examples/15_hil_serial.py through the serial driver, real-time by the
board.
"""

from __future__ import annotations

import importlib.util
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from board import Board
from board_peer import SAFE, TRIPPED, Frame, Line

from biella import BiellaError, run_realtime, simulate

pytestmark = pytest.mark.engine
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def example():
    sys.path.insert(0, str(EXAMPLES))
    spec = importlib.util.spec_from_file_location("hil_serial", EXAMPLES / "15_hil_serial.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(EXAMPLES))


def run(example, board, until):
    """As the example does it."""
    bind = example.rig(board.port)
    return run_realtime(example.diagram(), until, clock="device:board", bind=bind).wait()


@pytest.fixture(scope="module")
def simulated(example):
    return simulate(example.diagram(), example.UNTIL)


def test_the_board_is_the_native_pid_one_tick_late(example, simulated, kind, tmp_path):
    """The measurement is rounded to float32, by half a step of it; so is each term of the PID, by
    less in speed, since kp = 600. The loop damps what was added before: 4 half steps in all."""
    with example.make_board(str(tmp_path), kind, timeout=60_000) as board:
        result = run(example, board, example.UNTIL)
    report = result.info["realtime"]
    assert result.info["stopped"] is None and not report["gaps"]
    counts = report["devices"]["board"]
    assert counts["corrupt"] == counts["missed"] == counts["trips"] == counts["losses"] == 0
    assert np.array_equal(result.t, simulated.t)

    room = 4 * 0.5 * np.spacing(np.float32(np.abs(simulated["speed"]).max()))
    assert np.abs(result["speed"] - simulated["speed"]).max() < room
    # The last row is of the instant at which the run ends, where nobody waits for another frame.
    differences = np.abs(result["torque"] - simulated["torque"])[:-1]
    assert differences.max() < room * example.GAINS["kp"]
    assert simulated["torque"].max() == result["torque"].max() == example.LIMITS[1]
    assert (result["board.delay"][1:] == 1).all()
    # A loop that is a tick faster, or slower, is seen.
    for n in (-1, 1):
        assert np.abs(np.roll(result["torque"], n) - simulated["torque"])[9:-9].max() > 1.0


def test_emulated_chip_and_process_are_the_same_to_the_bit(example, tmp_path):
    from board import find_missing

    if missing := find_missing("simavr"):
        pytest.skip(f"this machine lacks {missing}")
    results = []
    for kind in ("simavr", "process"):
        with example.make_board(str(tmp_path), kind, timeout=60_000) as board:
            results.append(run(example, board, 1.0))
    for name in ("speed", "torque"):
        assert np.array_equal(results[0][name], results[1][name])


def test_a_run_that_ends_leaves_the_board_safe_for_the_next(example, kind, tmp_path):
    """With a watchdog of a minute, a board lets another session in only if it was told *safe*."""
    with example.make_board(str(tmp_path), kind, timeout=60_000) as board:
        first, second = (run(example, board, 0.6) for _ in range(2))
        assert np.array_equal(first["torque"], second["torque"]), "and the controller was reset"
        assert first["torque"].max() == example.LIMITS[1]


LIVE = """
import importlib.util, sys, time
sys.path.insert(0, sys.argv[1])
spec = importlib.util.spec_from_file_location("hil", sys.argv[1] + "/15_hil_serial.py")
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)
from biella import run_realtime
live = run_realtime(example.diagram(), clock="device:board", bind=example.rig(sys.argv[2]))
while live.tick < 600:
    time.sleep(1e-3)
print(live.latest("torque"), flush=True)
live.wait()
"""


def test_a_run_that_is_killed_leaves_the_board_safe(example, kind, tmp_path):
    with example.make_board(str(tmp_path), kind, timeout=1000) as board:
        command = [sys.executable, "-c", LIVE, str(EXAMPLES), board.port]
        host = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert host.stdout is not None
        assert float(host.stdout.readline()) > 10, "N m: it drives"
        os.kill(host.pid, signal.SIGKILL)
        assert host.wait(60) == -signal.SIGKILL
        host.stdout.close()
        with Line(board.port) as line:
            while not (heard := line.receive()).flags & TRIPPED:
                pass
            assert (heard.flags, heard.values) == (SAFE | TRIPPED, (0.0,))
            line.send(Frame((0.0, 0.0), 1, session=heard.session ^ 1 or 2, flags=SAFE).encode())
            while (answer := line.receive()).echo != 1:
                pass
            assert (answer.flags, answer.values) == (SAFE | TRIPPED, (0.0,))
        again = run(example, board, 0.6)
        assert again["torque"].max() == example.LIMITS[1]


@pytest.fixture
def line():
    """The device's end of a serial line; `port` is the other."""
    master, slave = pty.openpty()
    with Line(master) as line:
        line.port = os.ttyname(slave)
        yield line
    os.close(slave)


def test_a_device_that_says_hello_and_answers_at_once_loses_no_tick(example, line):
    """It is greeted, and speaks in our session right after it has said that it knew none: the
    values of the first tick follow, with a number that no greeting has had."""
    live = run_realtime(example.diagram(), 2e-3, clock="device:board", bind=example.rig(line.port))
    greeting = line.receive()
    assert greeting.flags == SAFE
    hello = Frame((0.0,), 1, session=0, flags=SAFE).encode()
    answer = Frame((0.0,), 2, greeting.sequence, greeting.session, SAFE)
    line.send(hello + answer.encode())
    while (first := line.receive()).echo == 0:
        assert first.sequence == greeting.sequence, "another greeting that was on its way"
    assert (first.flags, first.sequence) == (0, greeting.sequence + 1)
    line.send(Frame((1.5,), 3, first.sequence, greeting.session).encode())
    assert line.receive().sequence == first.sequence + 1
    result = live.wait()
    assert list(result["torque"][:2]) == [0.0, 1.5] and result["board.delay"][1] == 1


LEFT = """
import importlib.util, os, sys, time
sys.path.insert(0, sys.argv[1])
spec = importlib.util.spec_from_file_location("hil", sys.argv[1] + "/15_hil_serial.py")
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)
from biella import run_realtime
live = run_realtime(example.diagram(), clock=sys.argv[3], bind=example.rig(sys.argv[2]))
while live.tick < 5:
    time.sleep(1e-3)
raise SystemExit(3)
"""


@pytest.mark.parametrize("clock", ["wall", "device:board"])
def test_a_process_that_ends_with_a_run_under_way_ends_it_safely(example, clock, line):
    command = [sys.executable, "-c", LEFT, str(EXAMPLES), line.port, clock]
    host = subprocess.Popen(command)
    last, sent = line.receive(), 0
    while sent < 8 or last.flags != SAFE:
        sent += 1
        line.send(Frame((1.0,), sent, last.sequence, last.session).encode())
        last = line.receive()
    assert host.wait(60) == 3, "no crash"


KEY = bytes(range(50, 82))


@pytest.mark.parametrize("clock", ["device:board", "wall"])
def test_with_a_key_the_same_values_go_through(
    example, simulated, kind, clock, tmp_path, monkeypatch
):
    monkeypatch.setenv("RIG_KEY", KEY.hex())
    digits = ",".join(map(str, KEY))
    gains = ",".join(f"{n!r}f" for n in (*example.GAINS.values(), *example.LIMITS, example.STEP))
    secret = {"BIELLA_AUTH": 1, "BIELLA_KEY": f"{{{digits}}}"}
    until = 0.2 if clock == "wall" else 0.5
    with Board(tmp_path, kind, GAINS=gains, TIMEOUT=60_000, **secret) as board:
        bind = example.rig(board.port)
        bind["devices"]["board"]["key"] = "env:RIG_KEY"
        bind["devices"]["board"]["on_loss"] = "hold"
        if clock == "wall":
            bind["devices"]["board"]["receive"]["torque"]["safe"] = 0.0
        result = run_realtime(example.diagram(), until, clock=clock, bind=bind).wait()
    counts = result.info["realtime"]["devices"]["board"]
    assert counts["unauthenticated"] == counts["corrupt"] == 0 and counts["frames"] > 10
    if clock == "wall":
        return
    room = 4 * 0.5 * np.spacing(np.float32(np.abs(simulated["speed"]).max()))
    rows = len(result.t)
    assert np.abs(result["speed"] - simulated["speed"][:rows]).max() < room


def test_a_board_does_not_answer_who_has_another_key(example, tmp_path, monkeypatch):
    monkeypatch.setenv("RIG_KEY", bytes(32).hex())
    digits = ",".join(map(str, KEY))
    with Board(tmp_path, "process", BIELLA_AUTH=1, BIELLA_KEY=f"{{{digits}}}") as board:
        bind = example.rig(board.port)
        bind["devices"]["board"] |= {"key": "env:RIG_KEY", "timeout": 0.3}
        live = run_realtime(example.diagram(), clock="wall", bind=bind)
        with pytest.raises(BiellaError, match="no valid tag: check that both sides"):
            live.wait()
