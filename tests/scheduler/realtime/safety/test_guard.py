"""The guard: another process sends safe values when that of the run has died or stopped."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from biella import BiellaError, cli, run_realtime
from biella.scheduler.engine._library import contract
from biella.scheduler.realtime.safety._guard import _latch_file

sys.path.insert(0, str(Path(__file__).parent))
import itertools

from tests.scheduler.devices.conftest import open_serial, open_udp
from tests.scheduler.devices.keyed import KEY
from tests.scheduler.devices.native import Device, engine
from tests.scheduler.devices.peer import SerialEnd, UdpEnd, parse
from udp_rig import (  # type: ignore[import-not-found]
    LIVE,
    SAFE,
    SAFE_FLAG,
    Board,
    KeyedBoard,
    bind,
    build,
    wait_until,
)

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(sys.platform != "linux", reason="the guard needs Linux"),
]


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Board]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    board = Board()
    yield board
    board.close()


@pytest.fixture
def keyed_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeyedBoard]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("RIG_KEY", KEY.hex())
    board = KeyedBoard()
    yield board
    board.close()


def start(
    board: Board,
    options: str,
    *before: str,
    prelude: str = "",
    key: str = "",
    rig: str = "build()",
) -> subprocess.Popen[str]:
    """A process with a run; it has begun when this returns."""
    text = f"""
        import os, sys, time
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from udp_rig import bind, build
        from biella import run_realtime
        run = run_realtime({rig}, bind=bind({board.port}, {key!r}){options})
        print(os.getpid(), flush=True)
        time.sleep(60)
    """
    text = textwrap.dedent(prelude) + textwrap.dedent(text)
    process = subprocess.Popen(
        [*before, sys.executable, "-c", text],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until(lambda: board.last == pytest.approx(LIVE))
    return process


def test_a_killed_run_is_made_safe_and_latched(board, capsys):
    process = start(board, ", guard=True")
    assert not board.is_safe
    process.kill()
    wait_until(lambda: board.is_safe)
    process.communicate(timeout=300)
    wait_until(lambda: any(Path(os.environ["XDG_RUNTIME_DIR"], "biella").glob("*.latch")))
    with pytest.raises(BiellaError, match=r"the last run with these devices died at .*rearm"):
        run_realtime(build(), bind=bind(board.port), guard=True)
    assert cli.main(["rearm"]) == 0
    assert f"process {process.pid}" in capsys.readouterr().out
    with run_realtime(build(), bind=bind(board.port), guard=True) as run:
        wait_until(lambda: board.last == pytest.approx(LIVE))
        assert run.report().info["guarded"]
    assert board.is_safe


def test_a_stopped_run_is_made_safe_and_latched_when_it_continues(board):
    process = start(board, ", guard=True, watchdog=0.2, max_stall=0")
    try:
        os.kill(process.pid, signal.SIGSTOP)
        wait_until(lambda: board.is_safe)
        os.kill(process.pid, signal.SIGCONT)
        count = len(board.seen)
        wait_until(lambda: len(board.seen) > count + 50)
        assert all(flags & 2 for _, _, flags in board.seen[count:])
    finally:
        process.kill()
        process.communicate(timeout=300)


def test_a_run_that_stops_after_its_first_live_value_is_made_safe(board):
    """The guard knows a limit before the first live value leaves."""
    process = start(
        board,
        ", guard=True, watchdog=0.2, max_stall=0",
        rig="build(after=lambda: os.kill(os.getpid(), 19))",  # SIGSTOP
    )
    try:
        wait_until(lambda: board.is_safe)
        assert [value for _, value, _ in board.seen if value != SAFE] == [pytest.approx(LIVE)]
    finally:
        process.kill()
        process.communicate(timeout=300)


class Page(ctypes.Structure):
    """The beginning of a page of guard_page.h, of a run with one line."""

    _fields_ = (
        ("version", ctypes.c_int32),
        ("process", ctypes.c_int32),
        ("line_count", ctypes.c_int32),
        ("latch", ctypes.c_char * 256),
        ("margin", ctypes.c_int64),
        ("due", ctypes.c_int64),
        ("armed", ctypes.c_int32),
        ("tripped", ctypes.c_int32),
        ("line", ctypes.c_char * 64),
        ("counts", ctypes.c_int32 * 2),
        ("line_tripped", ctypes.c_int32),
    )


@contextlib.contextmanager
def guarding(handle: int, card: contract.bl_run_guard_report_card) -> Iterator[Page]:
    """Guard a device in another thread; yield what run and guard share."""
    library = engine()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    serve = threading.Thread(
        target=library.bl_run_guard_serve,
        args=[theirs.fileno(), os.getpid(), ctypes.byref(card)],
        daemon=True,
    )
    serve.start()
    message = ctypes.create_string_buffer(256)
    with ours, theirs:
        guard = library.bl_run_guard_open(
            ours.fileno(), (ctypes.c_void_p * 1)(handle), 1, 0, b"none", message, 256
        )
        assert guard, message.value
        try:
            maps = Path("/proc/self/maps").read_text().splitlines()
            (first, *_) = (line for line in maps if "biella guard" in line)
            page = Page.from_address(int(first.partition("-")[0], 16))
            assert (page.process, page.line_count) == (os.getpid(), 1)
            page.armed = 1
            yield page
        finally:
            library.bl_run_guard_close(guard)
            serve.join(60)


def test_safe_values_follow_the_live_ones_of_a_run_that_was_armed_again():
    """Overdue once more before the guard has looked again: its numbers must be newer, again."""
    card = contract.bl_run_guard_report_card()
    end = UdpEnd()
    handle, why = open_udp(end, 1, 1)
    assert handle, why
    with (
        contextlib.closing(end),
        Device(handle, 1, 1) as device,
        guarding(handle, card) as page,
    ):
        device.take(0)
        device.give(5.0)
        newest = parse(end.frames()[-1])
        for _ in range(3):
            page.due = 1  # since the computer was switched on
            while not (frame := parse(end.frames()[-1])).flags & SAFE_FLAG:
                pass
            assert 1 <= frame.sequence - newest.sequence < 2**31
            page.due = page.tripped = page.line_tripped = 0  # bl_run_guard_rearm
            device.give(5.0)
            newest = parse(end.frames()[-1])
    assert card.outcome == contract.BL_GUARD_ENDED and card.trips == 3


def test_safe_values_do_not_wait_for_a_read_of_a_serial_line(tmp_path):
    """The kernel may let a read wait that must not block; here the descriptor is one that does."""
    card = contract.bl_run_guard_report_card()
    end = SerialEnd(tmp_path)
    handle, why = open_serial(end, 1, 1)
    assert handle, why
    terminal = os.ttyname(end.slave)
    ports = [int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) != end.slave]
    with (
        contextlib.closing(end),
        Device(handle, 1, 1) as device,
        guarding(handle, card) as page,
    ):
        device.take(0)
        device.give(5.0)
        assert not parse(end.frames()[-1]).flags & SAFE_FLAG
        for port in ports:
            with contextlib.suppress(OSError):
                if os.ttyname(port) == terminal:
                    os.set_blocking(port, True)
        page.due = 1
        for _ in range(3):
            assert parse(end.frames()[-1]).flags & SAFE_FLAG
    assert card.trips == 1


def test_a_command_is_guarded_as_a_whole(board):
    guard = [sys.executable, "-m", "biella", "guard", "--"]
    process = start(board, "", *guard)
    assert process.stdout is not None
    os.kill(int(process.stdout.readline()), signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert board.is_safe and "died during a real-time run" in errors
    assert process.returncode == 128 + signal.SIGKILL


RUN = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from udp_rig import bind, build
from biella import run_realtime
run = run_realtime(build(), bind=bind(int(sys.argv[2])))
print(os.getpid(), flush=True)
time.sleep(60)
"""


def test_a_command_may_have_several_runs_at_a_time(board):
    """Of processes that it starts: each has its own channel, and dies alone."""
    other = Board()
    guard = [sys.executable, "-m", "biella", "guard", "--", "sh", "-c"]
    here, ports = str(Path(__file__).parent), [str(b.port) for b in (board, other)]
    both = f'"$0" "$@" {ports[0]} & "$0" "$@" {ports[1]} & wait'
    process = subprocess.Popen(
        [*guard, both, sys.executable, "-c", RUN, here],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        pids = [int(process.stdout.readline()) for _ in range(2)]
        wait_until(lambda: all(b.last == pytest.approx(LIVE) for b in (board, other)))
        os.kill(pids[0], signal.SIGKILL)
        wait_until(lambda: board.is_safe or other.is_safe)
        live = other if board.is_safe else board
        count = len(live.seen)
        wait_until(lambda: len(live.seen) > count + 50)
        assert all(value == pytest.approx(LIVE) for _, value, _ in live.seen[count:])
        os.kill(pids[1], signal.SIGKILL)
        wait_until(lambda: board.is_safe and other.is_safe)
        _, errors = process.communicate(timeout=60)
        assert errors.count("died during a real-time run") == 2
    finally:
        process.kill()
        process.communicate(timeout=60)
        other.close()


def test_a_command_whose_descriptors_are_not_inherited_has_other_guards(board):
    """As through subprocess: the number is that of another file, or of none."""
    text = f"""
import os, subprocess, sys
null = os.open(os.devnull, os.O_RDONLY)
os.dup2(null, int(os.environ["BIELLA_GUARD"].partition(":")[0]), inheritable=False)
subprocess.run([sys.executable, "-c", {RUN!r}, *sys.argv[1:]], timeout=300)
"""
    command = [sys.executable, "-c", text, str(Path(__file__).parent), str(board.port)]
    process = subprocess.Popen(
        [sys.executable, "-m", "biella", "guard", "--", *command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        run = int(process.stdout.readline())
        wait_until(lambda: board.last == pytest.approx(LIVE))
        os.kill(run, signal.SIGKILL)
        wait_until(lambda: board.is_safe)
        _, errors = process.communicate(timeout=60)
        assert "died during a real-time run" in errors
    finally:
        process.kill()
        process.communicate(timeout=60)


def test_a_command_keeps_its_exit_code(capfd):
    command = [sys.executable, "-c", "import sys; sys.exit(7)"]
    done = subprocess.run([sys.executable, "-m", "biella", "guard", "--", *command], timeout=300)
    assert done.returncode == 7
    assert cli.main(["guard"]) == 1
    assert cli.main(["guard", "--", "no-such-command"]) == 1
    assert "`no-such-command` cannot be started" in capfd.readouterr().err


def test_what_the_guard_cannot_reach_is_named():
    rig = bind(1)
    rig["devices"]["drive"] = {
        "driver": "loopback",
        "send": {"u": {"limits": [-10, 10], "safe": 0}},
        "receive": {"y": {"limits": [-10, 10]}},
    }
    with pytest.warns(Warning, match="the guard cannot send to drive"):
        run = run_realtime(build(), until=0.01, bind=rig, guard=True)
    run.wait()


def test_the_guard_does_not_trust_the_memory_of_a_run_that_dies(board):
    """A wild write before the death: to the number of lines, that of values, the values, a pointer.

    The guard ends in order: it latches the run.
    """
    process = start(
        board,
        ", guard=True",
        prelude="""
            import ctypes, os, struct, sys, threading
            def damage():
                sys.stdin.readline()
                maps = open("/proc/self/maps").read().splitlines()
                at = int(next(m for m in maps if "biella guard" in m).split("-")[0], 16)
                ctypes.memmove(at + 8, struct.pack("<i", 1 << 30), 4)
                line = struct.pack("<iiiid", 1 << 30, 1 << 30, 0, 0, 7.0)
                ctypes.memmove(at + 296 + 64, line, len(line))
                for state in 2136, 2400:  # bl_link.handshake of both states
                    ctypes.memmove(at + 296 + state + 8 + 112, struct.pack("<q", 8), 8)
                os._exit(1)
            threading.Thread(target=damage, daemon=True).start()
        """,
    )
    assert process.stdin is not None
    process.communicate("now\n", timeout=300)
    wait_until(lambda: board.is_safe)
    assert all(value == SAFE for _, value, flags in board.seen if flags & 2)
    folder = Path(os.environ["XDG_RUNTIME_DIR"], "biella")
    wait_until(lambda: bool(list(folder.glob("*.latch"))))


def test_a_latch_that_cannot_be_read_is_a_latch(board, capsys):
    folder = Path(os.environ["XDG_RUNTIME_DIR"], "biella")
    with run_realtime(build(), bind=bind(board.port), until=0.01) as run:
        latch = _latch_file(run._devices.values())
    assert latch.parent == folder
    latch.write_text("")  # the disk was full
    with pytest.raises(BiellaError, match=r"died at an unknown time .*biella rearm"):
        run_realtime(build(), bind=bind(board.port), guard=True)
    assert cli.main(["rearm"]) == 0
    assert "process unknown" in capsys.readouterr().out and not latch.exists()


def test_a_command_keeps_its_words():
    command = [sys.executable, "-c", "import sys; print(sys.argv[1:])", "a", "--", "b"]
    words = [sys.executable, "-m", "biella", "guard", "--", *command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "['a', '--', 'b']"


def test_a_guard_that_trips_between_the_check_and_the_frame(board):
    """The line says so when the number of the frame is chosen: no live value leaves."""
    with run_realtime(build(), bind=bind(board.port), guard=True) as run:
        wait_until(lambda: board.last == pytest.approx(LIVE))
        maps = Path("/proc/self/maps").read_text().splitlines()
        page = int(next(m for m in maps if "biella guard" in m).split("-")[0], 16)
        tripped = ctypes.c_int.from_address(page + 296 + 64 + 8)
        tripped.value = 1
        ticks = run.report().info["ticks"]
        wait_until(lambda: run.report().info["ticks"] > ticks + 2)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:  # after all before it
            other.sendto(b"mark" * 8, ("127.0.0.1", board.port))
        wait_until(lambda: (count := len(board.seen)) and board.seen[count - 1][2] == ord("a"))
        count = len(board.seen)
        ticks = run.report().info["ticks"]
        wait_until(lambda: run.report().info["ticks"] > ticks + 50)
        assert len(board.seen) == count
        tripped.value = 0
        wait_until(lambda: board.last == pytest.approx(LIVE))


def test_the_guard_of_a_killed_run_has_the_keys_of_its_session(keyed_board):
    process = start(keyed_board, ", guard=True", key="env:RIG_KEY")
    process.kill()
    wait_until(lambda: keyed_board.is_safe)
    process.communicate(timeout=60)
    assert keyed_board.refused == 0, "all of it was authenticated"


def test_the_guard_has_the_keys_of_a_session_that_began_later(keyed_board):
    process = start(keyed_board, ", guard=True", key="env:RIG_KEY")
    keyed_board.restart()
    wait_until(lambda: keyed_board.device.heard and not keyed_board.device.is_safe)
    process.kill()
    wait_until(lambda: keyed_board.is_safe)
    process.communicate(timeout=60)


def test_no_live_value_follows_those_of_the_guard_with_a_key(keyed_board):
    """The board takes increasing numbers only; those of the run continue after the guard's."""
    options = ", guard=True, watchdog=0.2, max_stall=0"
    process = start(keyed_board, options, key="env:RIG_KEY")
    try:
        os.kill(process.pid, signal.SIGSTOP)
        wait_until(lambda: keyed_board.is_safe)
        count = len(keyed_board.seen)
        os.kill(process.pid, signal.SIGCONT)
        wait_until(lambda: len(keyed_board.seen) > count + 50)
        assert all(flags & 2 for _, _, flags in keyed_board.seen[count:])
        numbers = [frame.sequence for frame in keyed_board.device.heard]
        assert max(b - a for a, b in itertools.pairwise(numbers)) >= 1000
    finally:
        process.kill()
        process.communicate(timeout=60)


def test_the_watchdog_sends_authenticated_frames(keyed_board):
    import threading

    gate = threading.Event()
    rig = bind(keyed_board.port, "env:RIG_KEY")
    with run_realtime(build(gate), bind=rig, watchdog=0.1) as run:
        wait_until(lambda: keyed_board.last == pytest.approx(LIVE))
        gate.set()
        wait_until(lambda: keyed_board.is_safe)
        gate.clear()
        assert run.report().info["ticks"] > 0
    assert keyed_board.is_safe and keyed_board.refused == 0
