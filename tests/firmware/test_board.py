"""The PID firmware on an emulated ATmega328P, and as a process, against a host in plain Python."""

from __future__ import annotations

import math
import os
import re
import signal
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from board import AVR, HERE, STRICT, Board, find_missing
from board_peer import FLOAT64, SAFE, TRIPPED, Frame, Line, cobs, unpack

from biella import Diagram, simulate
from biella.blocks import PID, Playback

LONG = 30_000  # ms: no test of numbers may end by a stall of this machine
LAW: dict[str, Any] = {"kp": 0.9, "ki": 40.0, "kd": 2e-3, "filter_time": 4e-3, "b": 0.7, "c": 0.3}
LIMITS = (-6.0, 5.0)
PERIOD = 1e-3


def gains(**law: float) -> str:
    """As the macro GAINS of the firmware."""
    numbers = [*law.values(), *LIMITS, PERIOD]
    return ",".join(f"{float(number)!r}f" for number in numbers)


def meet(line: Line) -> Frame:
    """Waits until the board has started and says hello: what was sent to it before is lost."""
    hello = line.receive()
    assert (hello.session, hello.flags, hello.values) == (0, SAFE, (0.0,))
    return hello


def answer_to(line: Line, frame: Frame) -> Frame:
    """The answer to a frame; up to ten beacons that were on their way before are passed over."""
    line.send(frame.encode())
    for _ in range(10):
        heard = line.receive()
        if heard.session == frame.session and heard.echo == frame.sequence:
            return heard
    raise AssertionError(f"no answer to {frame}, but {heard}")


def signals(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Reference and measurement that lead into both limits and back."""
    t = PERIOD * np.arange(count)
    reference = np.where(t % 0.2 < 0.1, 3.0, -4.0)
    measurement = 2.0 * np.sin(23.0 * t) + 0.3 * np.sin(901.0 * t)
    return reference.astype(np.float32), measurement.astype(np.float32)


def run_float32(reference: np.ndarray, measurement: np.ndarray) -> np.ndarray:
    """The law of the firmware in numpy's single precision, operation by operation."""
    f = np.float32
    kp, ki, kd, tf, b, c, lower, upper, period = map(f, [*LAW.values(), *LIMITS, PERIOD])
    integral, derivative, torque = f(0), f(0), []
    last_r, last_y = None, None
    for r, y in zip(reference, measurement, strict=True):
        p, to = kp * (b * r - y), integral + ki * period * (r - y)
        if last_r is not None:
            derivative = (tf * derivative + kd * (c * (r - last_r) - (y - last_y))) / (tf + period)
        v = p + to + derivative
        u = min(max(v, lower), upper)
        kept = to - (v - u)
        if to > integral and v > u:
            to = max(kept, integral)
        elif to < integral and v < u:
            to = min(kept, integral)
        integral, last_r, last_y = to, r, y
        torque.append(u)
    return np.array(torque)


@pytest.mark.engine
@pytest.mark.parametrize("kind", ["simavr", "qemu", "process"], indirect=True)
def test_the_firmware_is_the_pid_of_the_blocks(kind, tmp_path):
    """Bit for bit in single precision, and to its rounding the block in double precision.

    Each of some ten operations rounds a term of at most |v| = 12 by 2^-24 of it; the integral
    gathers as many more as there are samples, in both directions alike: less than 12 sqrt(n) 2^-24
    with room for a factor of 8.
    """
    count = 400 if kind == "qemu" else 1500
    reference, measurement = signals(count)
    with Board(tmp_path, kind, TIMEOUT=LONG, GAINS=gains(**LAW)) as board, Line(board.port) as line:
        meet(line)
        torque = np.array(
            [
                answer_to(line, Frame((float(y), float(r)), k)).values[0]
                for k, (r, y) in enumerate(zip(reference, measurement, strict=True), start=1)
            ]
        )
    assert np.array_equal(torque, run_float32(reference, measurement).astype(float))

    d = Diagram("the block", step=PERIOD)
    pid = d.add(PID(**LAW, limits=LIMITS, period=PERIOD), name="pid")
    t = PERIOD * np.arange(count)
    for port, samples in (("reference", reference), ("measurement", measurement)):
        d.connect(d.add(Playback(t, samples.astype(float)), name=port), pid[port])
    native = simulate(d, until=(count - 1) * PERIOD, record=["pid.y"])["pid.y"]
    assert {*LIMITS} <= {*native}, "both limits are reached"
    assert np.abs(torque - native).max() < 8 * 12 * math.sqrt(count) * 2.0**-24


def test_safe_frames_reset_it_and_sequence_numbers_go_on(kind, tmp_path):
    with Board(tmp_path, kind, TIMEOUT=LONG, GAINS=gains(**LAW)) as board, Line(board.port) as line:
        meet(line)
        first = answer_to(line, Frame((1.0, 2.0), 1))
        second = answer_to(line, Frame((1.0, 2.0), 2))
        assert first.flags == second.flags == 0 and second.values > first.values
        safe = answer_to(line, Frame((1.0, 2.0), 3, flags=SAFE))
        assert (safe.flags, safe.values) == (SAFE, (0.0,))
        again = answer_to(line, Frame((1.0, 2.0), 4, flags=FLOAT64))
        assert again.values == first.values, "the integral was reset; float64 is understood"
        order = [first.sequence, second.sequence, safe.sequence, again.sequence]
        assert {after - before for before, after in pairwise(order)} == {1}


def test_damaged_and_old_frames_get_no_answer(kind, tmp_path):
    """Back to back, at the full speed of the line."""
    good = Frame((1.0, 2.0), 2).encode()
    flipped = bytes([*good[:10], good[10] ^ 4, *good[11:]])
    with Board(tmp_path, kind, TIMEOUT=LONG) as board, Line(board.port) as line:
        meet(line)
        answer_to(line, Frame((0.0, 0.0), 1))
        for bad in (good[5:], flipped, Frame((0.0, 0.0), 1).encode(), b"\0" * 9, b"\x55" * 99):
            line.send(bad + b"\0")
        line.send(cobs(Frame((0.0, 0.0), 7, session=9).pack()) + b"\0")
        line.send(good)
        assert line.receive().echo == 2, "the next frame answers the good one"


HOST = """
import sys
from board_peer import Frame, Line
with Line(sys.argv[1]) as line:
    k = 0
    while True:
        k += 1
        line.send(Frame((0.0, 3.0), k, session=int(sys.argv[2])).encode())
        while (heard := line.receive()).echo != k or heard.session != int(sys.argv[2]):
            pass
        if k == 20:
            print(heard.values[0], flush=True)
"""


def test_a_killed_host_leaves_it_safe_and_it_says_so_when_asked_again(kind, tmp_path):
    """SIGKILL ends the host with no chance to say goodbye: the watchdog of the board acts."""
    with Board(tmp_path, kind, TIMEOUT=500) as board:
        # With the line open here, too, what the board says after the kill is not lost.
        with Line(board.port) as line:
            meet(line)
            host = subprocess.Popen(
                [sys.executable, "-c", HOST, board.port, "77"],
                stdout=subprocess.PIPE,
                cwd=Path(__file__).parent,
            )
            assert host.stdout is not None
            assert float(host.stdout.readline()) > 0, "the controller acts"
            os.kill(host.pid, signal.SIGKILL)
            assert host.wait(60) == -signal.SIGKILL
            host.stdout.close()
            while not (heard := receive_sound(line)).flags & TRIPPED:
                assert heard.values[0] > 0 or heard.session == 0, "an answer, or an old hello"
            assert (heard.session, heard.flags, heard.values) == (77, SAFE | TRIPPED, (0.0,))
        with Line(board.port) as line:  # a new host, which only asks
            heard = answer_to(line, Frame((0.0, 3.0), 1, session=78, flags=SAFE))
            assert (heard.flags, heard.values) == (SAFE | TRIPPED, (0.0,))
            heard = answer_to(line, Frame((0.0, 3.0), 2, session=78))
            assert heard.flags == 0 and heard.values[0] > 0


def receive_sound(line: Line) -> Frame:
    """The next frame of which no other process has taken a part."""
    while True:
        try:
            return line.receive()
        except (AssertionError, IndexError):
            continue


def test_it_answers_within_a_tick_of_1_khz(tmp_path):
    """In cycles of the chip, so that no load of this machine counts; 10 bits a byte at 1 Mbaud."""
    if missing := find_missing("simavr"):
        pytest.skip(f"this machine lacks {missing}")
    with Board(tmp_path, "simavr", TIMEOUT=LONG, GAINS=gains(**LAW)) as board:
        with Line(board.port) as line:
            meet(line)
            for k in range(1, 200):
                asked = Frame((0.01 * k, 1.0), k)
                heard = answer_to(line, asked)
        said = board.close()
    counts = dict(re.findall(r"(received|answer) (\d+)", said))
    received, answer = int(counts["received"]), int(counts["answer"])
    assert received == 199 * len(asked.encode()), "nothing was lost"
    assert answer > 100 and 10 * len(asked.encode()) + answer + 10 * len(heard.encode()) < 1000


def test_it_keeps_up_with_a_line_that_is_never_idle(tmp_path):
    """A host that could not be heard for a while has left frames: 24 old ones before a new one."""
    if missing := find_missing("simavr"):
        pytest.skip(f"this machine lacks {missing}")
    with Board(tmp_path, "simavr", TIMEOUT=LONG) as board:
        with Line(board.port) as line:
            meet(line)
            answer_to(line, Frame((0.0, 1.0), 1))
            line.send(24 * Frame((0.0, 1.0), 1).encode())
            answer_to(line, Frame((0.0, 1.0), 2))
        said = board.close()
    assert int(dict(re.findall(r"(\w+) (\d+)", said))["answer"]) < 400, "us: no queue has built up"


def test_the_watchdog_trips_in_time_by_the_boards_own_clock(tmp_path):
    """A good frame and then zeros, which are not frames and end 1.3 ms after it: the board is
    silent from its answer until, 100 ms after the good frame, it says that it has tripped."""
    if missing := find_missing("simavr"):
        pytest.skip(f"this machine lacks {missing}")
    with Board(tmp_path, "simavr", TIMEOUT=100) as board:
        with Line(board.port) as line:
            meet(line)
            line.send(Frame((0.0, 1.0), 1).encode() + bytes(130))
            while (answered := line.receive()).echo != 1:
                pass
            tripped = line.receive()
        said = board.close()
    assert answered.flags == 0 and answered.values[0] > 0
    assert (tripped.flags, tripped.values) == (SAFE | TRIPPED, (0.0,))
    assert tripped.sequence == answered.sequence + 1
    silence = int(dict(re.findall(r"(\w+) (\d+)", said))["answer"])
    assert 97_500 < silence < 100_500, "us, from the last zero"


def test_udp_of_the_process(tmp_path):
    if missing := find_missing("process"):
        pytest.skip(f"this machine lacks {missing}")
    with (
        Board(tmp_path, "process", udp=True, TIMEOUT=LONG) as board,
        socket.socket(type=socket.SOCK_DGRAM) as host,
        socket.socket(type=socket.SOCK_DGRAM) as stranger,
    ):
        address = ("127.0.0.1", int(board.port))
        host.settimeout(60)
        host.sendto(Frame((0.0, 1.0), 1).pack(), address)
        first = unpack(host.recv(2048))
        assert first.echo == 1 and first.values[0] > 0
        stranger.sendto(Frame((0.0, 9.0), 2).pack(), address)
        host.sendto(Frame((0.0, 1.0), 2).pack(), address)
        second = unpack(host.recv(2048))
        assert second.echo == 2 and second.sequence == first.sequence + 1


def test_it_fits_into_a_small_chip(tmp_path):
    """All memory that is not stack; the stack holds one frame and a few calls."""
    if missing := find_missing("simavr"):
        pytest.skip(f"this machine lacks {missing}")
    for option, flash in (("-O2", 6500), ("-Os", 5000)):
        firmware = tmp_path / "firmware.elf"
        subprocess.run(
            [*AVR, *STRICT, option, "-o", firmware, HERE / "pid_uno.c"], check=True, timeout=1800
        )
        sizes = subprocess.run(
            ["avr-size", firmware], capture_output=True, text=True, check=True, timeout=1800
        )
        text, data, bss = map(int, sizes.stdout.splitlines()[1].split()[:3])
        print(sizes.stdout)
        assert data + bss < 400 and text < flash


def test_double_is_refused_where_it_is_short(tmp_path):
    if missing := find_missing("qemu"):
        pytest.skip(f"this machine lacks {missing}")
    command = [*AVR, "-DBIELLA_DOUBLE=1", "-fsyntax-only", HERE / "pid_uno.c"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode and "needs a double of 64 bits" in done.stderr
