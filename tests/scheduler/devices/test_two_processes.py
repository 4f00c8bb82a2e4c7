"""A plant's FMU and its controller in two processes on UDP, a bad network between them; and on TCP.

Both ends are ``biella run-realtime`` on the diagram of example 16, with the bindings of that
example. Where this machine lets us, each end also runs in a network namespace of its own, and
only the UDP proxy joins the two. Numbers are of frames and of ticks.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from biella import replay, simulate
from biella.blocks.multibody.mechanisms import slider_crank
from biella.scheduler.devices.virtual._udp_proxy import Faults, UdpProxy, _open_socket
from biella.scheduler.realtime.log._replay import find_differences
from biella.scheduler.results._result import Result

from .peer import free_tcp_port, wait_for
from .test_answering import free_port

pytestmark = pytest.mark.engine
EXAMPLE = Path(__file__).parents[3] / "examples" / "16_udp_two_processes.py"
LOOP = runpy.run_path(str(EXAMPLE))
UNTIL, SLOWER = 0.6, 0.2  # a tick takes 5 ms: stalls of a busy machine are a few of them
SPEED, TORQUE = "plant.main.speed", "pid.y"
CLONE_NEWNET = 0x40000000
BAD = Faults(delay=0.04, jitter=0.01, drop=0.2, duplicate=0.1, reorder=0.1, corrupt=0.05)


def enter_namespace(path: str) -> None:
    """Let this thread open its sockets in another network."""
    with open(path) as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Be in a network of that name; the empty one is ours."""
    if not namespace:
        yield
        return
    with open("/proc/thread-self/ns/net") as ours:
        enter_namespace(f"/run/netns/{namespace}")
        try:
            yield
        finally:
            enter_namespace(f"/proc/self/fd/{ours.fileno()}")


@contextmanager
def make_namespaces(*names: str) -> Iterator[None]:
    """Networks without any line; each has a loopback of its own."""
    made = []
    try:
        for name in names:
            subprocess.run(
                ["ip", "netns", "add", name], check=True, capture_output=True, timeout=300
            )
            made.append(name)
            up = ["ip", "-n", name, "link", "set", "lo", "up"]
            subprocess.run(up, check=True, capture_output=True, timeout=300)
        yield
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name], check=True, timeout=300)


def can_have_namespaces() -> bool:
    if not (shutil.which("ip") and shutil.which("nsenter")):
        return False
    try:
        with make_namespaces(f"bl{os.getpid()}"), inside(f"bl{os.getpid()}"):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def command(
    namespace: str, folder: Path, end: str, port: int, *options: str, driver: str = "udp"
) -> list[str]:
    """Write an end's binding, with another port than the example's; return what runs it."""
    rig = (LOOP["RIGS"] / f"{end}_end.toml").read_text().replace("5001", str(port))
    rig = rig.replace('"udp"', f'"{driver}"')
    (folder / f"{end}.toml").write_text(rig)
    files = ["--bind", str(folder / f"{end}.toml"), "--log", str(folder / f"{end}.h5")]
    python = [sys.executable, "-W", "error", "-m", "biella", "run-realtime", str(EXAMPLE)]
    enter = ["nsenter", f"--net=/run/netns/{namespace}"] if namespace else []
    return [*enter, *python, *files, *options]


def open_relay(places: tuple[str, str], port: int, faults: Faults) -> UdpProxy:
    """A UDP proxy with one leg in each network."""
    with inside(places[0]):
        relay = UdpProxy(("127.0.0.1", port), seed=1, faults=faults)
    if places[1]:
        relay._back.close()
        with inside(places[1]):
            relay._back = _open_socket(("127.0.0.1", port), bind=False)
    return relay


@contextmanager
def controlling(place: str, folder: Path, port: int, driver: str = "udp") -> Iterator[None]:
    """Have the controller's end run meanwhile."""
    controller = subprocess.Popen(
        command(place, folder, "controller", port, driver=driver),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        assert controller.stderr is not None
        assert b"running" in controller.stderr.readline()
        yield
    finally:
        controller.terminate()
        said = controller.communicate(timeout=300)[1]
    assert controller.returncode == 0, said


def run_plant(place: str, folder: Path, port: int, driver: str = "udp") -> None:
    """Run the plant's end, as an FMU."""
    slider_crank(planar=True).export_fmu(
        folder / "crank.fmu", outputs=LOOP["PORTS"][1], step=LOOP["STEP"]
    )
    realtime = ["--until", str(UNTIL), "--factor", str(SLOWER)]
    plant = command(place, folder, "plant", port, *realtime, driver=driver)
    subprocess.run(plant, check=True, capture_output=True, timeout=300)


def read_logs(folder: Path) -> list[Result]:
    return [Result.from_hdf5(folder / f"{end}.h5") for end in ("plant", "controller")]


def run_loop(places, folder: Path, faults: Faults) -> tuple[Result, Result, dict]:
    """Run both ends; return the plant's log, the controller's, and what the UDP proxy has
    counted.
    """
    port = free_port()
    with controlling(places[1], folder, port), open_relay(places, port, faults) as relay:
        run_plant(places[0], folder, relay.port)
        wait_for(lambda: all(n["passed"] >= expected(n) for n in relay.counts.values()))
        counts = relay.counts
    plant, controller = read_logs(folder)
    return plant, controller, counts


@dataclass(frozen=True)
class BadRun:
    """Both ends with a bad network between them: their logs, and what the UDP proxy has counted."""

    plant: Result
    controller: Result
    relayed: dict
    folder: Path


def run_badly(places: tuple[str, str], folder: Path) -> BadRun:
    return BadRun(*run_loop(places, folder, BAD), folder)


@pytest.fixture(scope="module")
def bad_on_loopback(tmp_path_factory) -> BadRun:
    return run_badly(("", ""), tmp_path_factory.mktemp("bad"))


@pytest.fixture(params=["loopback", *(["namespaces"] if can_have_namespaces() else [])])
def bad(request, tmp_path) -> BadRun:
    """A run in our network, or in two that only the UDP proxy joins."""
    if request.param == "loopback":
        return request.getfixturevalue("bad_on_loopback")
    names = f"blp{os.getpid()}", f"blc{os.getpid()}"
    with make_namespaces(*names):
        return run_badly(names, tmp_path)


def expected(lane: dict[str, int]) -> int:
    """How many datagrams leave a UDP proxy, but for one that waits for the next."""
    return lane["arrived"] - lane.get("dropped", 0) - (1 if "reordered" in lane else 0)


def counts_of(result: Result, device: str) -> dict[str, int]:
    return result.info["realtime"]["devices"][device]


def test_the_loop_closes_through_a_bad_network(bad):
    plant, controller, relayed = bad.plant, bad.controller, bad.relayed
    ticks = round(UNTIL / LOOP["STEP"])
    bench, answer = counts_of(controller, "bench"), counts_of(plant, "controller")
    assert plant.info["realtime"]["ticks"] == ticks

    # Nothing is lost but by the UDP proxy, and each frame is taken or refused.
    to_device, to_host = relayed["to device"], relayed["to host"]
    assert to_device["arrived"] == answer["sent"] >= ticks
    assert to_device["dropped"] > 0.1 * ticks and to_host["dropped"] > 0
    for counts, lane in ((bench, to_device), (answer, to_host)):
        taken = counts["frames"] + counts["stale"] + counts["corrupt"]
        assert lane["passed"] - 40 <= taken <= lane["passed"]  # the last may have come too late
        assert 0 < counts["corrupt"] <= 2 * lane["corrupted"]  # which may come twice
        assert counts["frames"] > 0.4 * lane["arrived"] and counts["losses"] == 0

    # A tick of the controller is one of the plant, from the first frame on: gaps are made up for.
    fresh = np.flatnonzero(controller["bench.age"] == 0)
    fresh = fresh[fresh < ticks - 50]
    heard, said = controller[SPEED][fresh], plant[SPEED]
    (first,) = (k for k in range(50) if np.array_equal(heard, said[fresh + k]))
    assert -20 <= controller.info["realtime"]["ticks"] + first - answer["sent"] <= 0

    # Values are those of the other end, to the bit.
    assert set(plant[TORQUE]) <= set(controller[TORQUE]) | {0.0}
    assert len(set(plant[TORQUE])) > 50

    # Each end can be run again without the other.
    assert find_differences(controller, replay(controller)) == []
    assert (
        find_differences(plant, replay(plant, LOOP["diagram"](), bind=bad.folder / "plant.toml"))
        == []
    )


def test_the_loop_closes_over_tcp(tmp_path):
    """The same bindings with another driver: the controller listens, and the plant connects."""
    port = free_tcp_port()
    with controlling("", tmp_path, port, "tcp"):
        run_plant("", tmp_path, port, "tcp")
    plant, controller = read_logs(tmp_path)
    ticks = round(UNTIL / LOOP["STEP"])
    bench, answer = counts_of(controller, "bench"), counts_of(plant, "controller")
    assert plant.info["realtime"]["ticks"] == ticks

    # Nothing is lost on the way, but the last may come after the controller was told to end.
    assert answer["sent"] >= ticks and answer["dropped"] == answer["losses"] == 0
    greetings = answer["stale"]  # each is told the session, by a frame of its own
    assert answer["sent"] - 40 <= bench["frames"] <= answer["sent"] + greetings
    assert bench["missed"] == bench["stale"] == bench["corrupt"] == answer["corrupt"] == 0
    assert answer["frames"] > 0.5 * ticks  # of frames that came at once, the newest is answered

    # A tick of the controller is one of the plant, with its values to the bit, and so back.
    fresh = np.flatnonzero(controller["bench.age"] == 0)
    fresh = fresh[(fresh > 0) & (fresh < ticks - 50)]
    heard, said = controller[SPEED][fresh], plant[SPEED]
    assert sum(np.array_equal(heard, said[fresh + k]) for k in range(-1, 50)) == 1
    assert set(plant[TORQUE]) <= set(controller[TORQUE]) | {0.0}
    assert len(set(plant[TORQUE])) > 50
    assert find_differences(controller, replay(controller)) == []
    assert (
        find_differences(plant, replay(plant, LOOP["diagram"](), bind=tmp_path / "plant.toml"))
        == []
    )


def test_delay_and_loss_cost_control_quality(bad_on_loopback, tmp_path):
    ideal = simulate(LOOP["diagram"](), UNTIL, progress=False)
    good, _, _ = run_loop(("", ""), tmp_path, Faults())
    off, delay = [], []
    for plant in (good, bad_on_loopback.plant):
        off.append(np.std(plant[SPEED] - ideal[SPEED]))
        delay.append(np.median(plant["controller.delay"][50:]))
    assert delay[1] >= 16 > delay[0] >= 1, "2 · 40 ms of 5 ms each"
    assert off[1] > 1.0 and off[1] > 2.0 * off[0]
    print(f"rms of what differs from the loop in one process: {off} rad/s; delays: {delay} ticks")
