"""Runs that the studio has not started: of this process, and of another one."""

import re
import select
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest

from biella import BiellaError
from biella.cli import load_diagram
from biella.scheduler.realtime._start import start_run
from biella.studio import _attached
from biella.studio._attached import AttachedSession, WatchedSession
from biella.studio._session import AbstractSession

from ..scheduler.devices.peer import Peer, UdpEnd
from .client import Client, serving, write_rig

pytestmark = pytest.mark.engine


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def test_a_run_that_a_program_has_started(tmp_path):
    diagram = load_diagram(write_rig(tmp_path))
    run = start_run(diagram, {"record": ["*"]}, {}, history=1 << 20)
    with run, serving(AttachedSession(run, diagram)) as server, Client(server) as page:
        assert page.hello["mode"] == "attached"
        assert {"restart", "stop"}.isdisjoint(page.hello["can"])
        page.do("set", path="p.k", value=2.0)
        assert run["p.k"] == 2.0
        page.do("pause")
        page.wait_state("paused")
        page.do("safe_stop")
        assert page.wait_state("ended")["reason"] == "stopped from the studio"
        assert "nothing runs" in page.refused("run")
    assert run.result.length


def test_a_run_of_another_process_is_watched_and_stopped(tmp_path):
    file = write_rig(tmp_path)
    with pytest.raises(BiellaError, match="no live run of yours"):
        WatchedSession()
    command = [sys.executable, "-m", "biella", "run-realtime", str(file), "--out", "x.h5"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None and "running until" in process.stderr.readline()
        session = None
        while session is None:
            try:
                session = WatchedSession()
            except BiellaError:
                assert process.poll() is None
        check_picture(tmp_path, file, process.pid)
        with serving(session) as server, Client(server) as page:
            page.do("subscribe", scope=1, signals=["plant.y"], rate=10.0, history=10.0)
            page.wait(lambda: len(page.samples(1)) > 3)
            assert page.hello["can"][-2:] == ["rearm", "safe_stop"]
            assert "not latched" in page.refused("rearm")
            assert "`do` is one of" in page.refused("set", path="p.k", value=1.0)
            page.do("safe_stop")
            page.wait_state("ended")
        assert process.wait(60) is not None
    finally:
        process.kill()
        process.communicate(timeout=60)


def check_picture(folder, file, pid):
    """Check what is told of a run whose file is named, too."""
    other = folder / "other.py"
    other.write_text(file.read_text().replace('"loop"', '"other"'))
    with pytest.raises(BiellaError, match="no such live run"):
        WatchedSession(None, other)
    with pytest.raises(BiellaError, match="the run is of `loop`, but the file defines `other`"):
        WatchedSession(str(pid), other)
    session = WatchedSession(None, file)
    told = {message["event"]: message for message in session.describe()}
    assert {"ref", "drive", "plant"} <= set(told["diagram"]["blocks"])
    signals = {item["path"]: item["block"] for item in told["signals"]["list"]}
    assert signals["drive.y"] == "drive"
    assert session.introduce()["step"] == 1e-3


RELAY_RIG = """
    from biella import Diagram
    from biella.blocks import Gain, Integrator, Relay, Sine

    def diagram():
        d = Diagram("loop", step=1e-3, solver="rk4")
        wave = d.add(Sine(frequency=20.0), "wave")
        d.add(Integrator(), "speed", u=d.add(Relay(on=0.2, off=-0.2), "relay", u=wave))
        d.add(Gain(1.0), "k", u=wave)
        return d
"""
UDP = """
    [devices.board]
    driver = "udp"
    bind_port = {port}
    timeout = 0.5
    on_loss = "hold"
    receive.y = {{}}
    send.u = {{ safe = 0 }}
    [blocks.k]
    device = "board"
"""


def check_live_figures(page, board):
    """Devices, timing and events of a run that goes on, while its device speaks and is silent."""

    def device():
        found = page.events.get("state", {}).get("devices")
        return found[0] if found else {}

    page.wait(lambda: device().get("state") in ("waiting", "lost"))
    assert device()["age"] is None

    def speak():
        board.write_frame(board_side.frame(1.0))  # the first one has an answer with the session
        while select.select([board.socket], [], [], 0)[0]:
            board_side.hear(board.socket.recv(65536))
        page.receive()
        return device().get("state") == "connected"

    board_side = Peer()
    page.wait(speak)
    assert device()["frames"] > 0 and 0 <= device()["age"] < 60
    page.wait(lambda: device()["state"] == "lost")
    first = device()["age"]
    assert first >= 0.5
    page.wait(lambda: device()["age"] > first + 0.5)  # it grows as long as nothing comes
    assert device()["losses"] >= 1
    timing = page.wait(lambda: page.events.get("timing"))
    assert timing["ticks"] > 0 and timing["period"] == 1e-3
    assert {"lateness", "execution"} <= timing.keys() and timing["lateness"]["bars"]
    marks = page.wait(lambda: page.events["marks"]["list"] and page.events["marks"])
    assert marks["list"][-1]["block"] == "relay" and marks["list"][-1]["text"] == "switch"
    assert marks["total"] >= len(marks["list"])


@pytest.fixture
def board():
    end = UdpEnd()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        end.to = free.getsockname()[1]
    yield end
    end.close()


def test_devices_timing_and_events_of_a_run_are_live(tmp_path, board):
    diagram = load_diagram(write_rig(tmp_path, RELAY_RIG))
    binding = tmp_path / "rig.toml"
    binding.write_text(textwrap.dedent(UDP.format(port=board.to)))
    run = start_run(diagram, {"record": ["*"]}, {}, bind=binding, history=1 << 20)
    with run, serving(AttachedSession(run, diagram)) as server, Client(server) as page:
        check_live_figures(page, board)
        with Client(server) as later:
            later.wait(lambda: later.events.get("marks", {}).get("list"))
        page.do("safe_stop")
        page.wait_state("ended")


def test_devices_timing_and_events_of_another_process_are_live(tmp_path, board):
    write_rig(tmp_path, RELAY_RIG)
    (tmp_path / "rig.toml").write_text(textwrap.dedent(UDP.format(port=board.to)))
    command = [sys.executable, "-m", "biella", "run-realtime", "rig.py", "--bind", "rig.toml"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        session = None
        while session is None:
            try:
                session = WatchedSession()
            except BiellaError:
                assert process.poll() is None
        with serving(session) as server, Client(server) as page:
            check_live_figures(page, board)
            page.do("safe_stop")
            page.wait_state("ended")
        process.wait(60)
    finally:
        process.kill()
        process.communicate(timeout=60)


def test_run_realtime_serves_itself(tmp_path):
    command = [sys.executable, "-m", "biella", "run-realtime", "rig.py", "--studio"]
    write_rig(tmp_path)
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        address = None
        while address is None:
            line = process.stderr.readline()
            assert line
            address = re.search(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)", line)

        server = SimpleNamespace(port=int(address.group(1)), token=address.group(2))
        with Client(server) as page:
            assert page.hello["mode"] == "attached"
            page.do("subscribe", scope=1, signals=["pushed.y"], rate=100.0)
            page.do("set", path="push", value=4.0)
            page.wait(lambda: len(page.samples(1)) and page.samples(1)[-1, 2] == 4.0)
            process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate(timeout=60)


def test_a_run_that_does_not_answer_a_rearm_holds_up_no_page(monkeypatch):
    session = WatchedSession.__new__(WatchedSession)
    AbstractSession.__init__(session)
    session._page, session._glance, session._ended = Path("x"), None, False  # type: ignore[assignment]
    answers = threading.Event()

    def wait(page, glance):
        assert threading.current_thread() is not threading.main_thread()
        assert answers.wait(60)
        raise BiellaError("process 7 does not respond")

    monkeypatch.setattr(_attached, "request_rearm", wait)
    future = session.act("rearm", {})
    assert isinstance(future, Future) and not future.done()
    answers.set()
    with pytest.raises(BiellaError, match="does not respond"):
        future.result(60)
