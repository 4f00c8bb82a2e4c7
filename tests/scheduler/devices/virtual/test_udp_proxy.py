"""The UDP proxy: what it does to datagrams is known from its seed, and a device survives it."""

import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from itertools import pairwise

import pytest

from biella.errors import BiellaError
from biella.scheduler.devices.virtual._udp_proxy import (
    TO_DEVICE,
    TO_HOST,
    Faults,
    Lane,
    UdpProxy,
    read_address,
)

from ..conftest import open_udp
from ..native import HOLD, Device
from ..peer import Frame, Peer, UdpEnd, parse, wait_for

ALL = Faults(
    delay=0.001, jitter=0.002, drop=0.1, duplicate=0.1, reorder=0.1, corrupt=0.1, replay=0.1
)


def carry(faults: Faults, seed: int, count: int, pace: float = 0.001, name: str = TO_DEVICE):
    lane = Lane(faults, seed, name)
    out = []
    for k in range(count):
        out += lane.take(b"datagram %d" % k, k * pace)
    return [data for _, data in out], [due for due, _ in out], lane.counts


def test_the_same_seed_has_the_same_fate_at_any_pace():
    first = carry(ALL, 5, 500)
    assert carry(ALL, 5, 500) == first
    assert carry(ALL, 5, 500, pace=0.3)[0] == first[0]
    assert carry(ALL, 6, 500)[0] != first[0]
    assert carry(ALL, 5, 500, name=TO_HOST)[0] != first[0]
    assert carry(ALL, 5, 200)[0][:150] == first[0][:150]


def test_one_kind_of_fault_does_not_move_another():
    """With the same seed the same datagrams are dropped, whatever else happens to the rest."""
    few = carry(Faults(drop=0.2), 3, 300)[0]
    more = carry(Faults(drop=0.2, duplicate=0.5, jitter=0.01), 3, 300)[0]
    assert sorted(set(few)) == sorted(set(more))


def test_without_faults_all_pass_in_order():
    data, due, counts = carry(Faults(delay=0.25), 1, 50)
    assert data == [b"datagram %d" % k for k in range(50)]
    assert due == pytest.approx([0.25 + k * 0.001 for k in range(50)])
    assert counts == {"arrived": 50}


@pytest.mark.parametrize(
    "name, counted",
    [("drop", "dropped"), ("duplicate", "duplicated"), ("reorder", "reordered"),
     ("corrupt", "corrupted"), ("replay", "replayed")],
)  # fmt: skip
def test_each_fault_is_as_frequent_as_said(name, counted):
    """5 σ of a binomial of 4000 at 0.2 are 126."""
    data, _, counts = carry(Faults(**{name: 0.2}), 11, 4000)
    assert abs(counts[counted] - 800) < 127
    more = {"drop": -counts[counted], "reorder": 0, "corrupt": 0}.get(name, counts[counted])
    waits = name == "reorder" and b"datagram 3999" not in data
    assert len(data) == 4000 + more - waits
    assert set(counts) == {"arrived", counted}
    sent = {b"datagram %d" % k for k in range(4000)}
    assert (set(data) <= sent) == (name != "corrupt")
    if name == "corrupt":
        assert sum(datum not in sent for datum in data) >= counts[counted] - 40


def test_a_reordered_datagram_comes_after_the_next():
    data, _, _ = carry(Faults(reorder=0.3), 2, 100)
    numbers = [int(datum.split()[1]) for datum in data]
    assert sorted(numbers) == list(range(len(numbers)))
    late = sum(b < a for a, b in pairwise(numbers))
    assert late > 15


def test_a_datagram_that_waits_in_vain_is_let_go():
    lane = Lane(Faults(reorder=1.0), 0, TO_HOST)
    assert lane.take(b"a", 0.0) == [] and lane.holds
    assert lane.release(0.01) == []
    assert lane.release(0.06) == [(0.06, b"a")]
    assert not lane.holds and lane.release(9.0) == []


def test_faults_that_make_no_sense():
    for wrong in ({"drop": 1.5}, {"delay": -1.0}, {"corrupt": float("nan")}):
        with pytest.raises(BiellaError, match=f"{next(iter(wrong))} = .* of a UDP proxy"):
            Faults(**wrong)


def test_addresses():
    assert read_address("5000") == ("127.0.0.1", 5000)
    assert read_address("[::1]:7") == ("::1", 7)
    assert read_address("board.local:80") == ("board.local", 80)
    for wrong in ("", "x", "a:b", "1:99999", "1:-1"):
        with pytest.raises(BiellaError, match="is not an address"):
            read_address(wrong)


def test_both_ways_and_a_cut():
    end = UdpEnd()
    with UdpProxy((end.host, end.port)) as relay, socket.socket(type=socket.SOCK_DGRAM) as host:
        host.settimeout(20.0)
        host.sendto(b"ping", ("127.0.0.1", relay.port))
        wait_for(lambda: bool(relay.counts[TO_DEVICE].get("passed")))
        data, back = end.socket.recvfrom(100)
        assert data == b"ping"
        end.socket.sendto(b"pong", back)
        assert host.recv(100) == b"pong"
        relay.is_cut = True
        host.sendto(b"lost", ("127.0.0.1", relay.port))
        wait_for(lambda: bool(relay.counts[TO_DEVICE].get("cut")))
        relay.is_cut = False
        host.sendto(b"again", ("127.0.0.1", relay.port))
        assert end.frames() == [b"again"]
        assert relay.counts[TO_HOST] == {"arrived": 1, "passed": 1}
    end.close()


def test_a_relay_that_cannot_be():
    with (
        socket.socket(type=socket.SOCK_DGRAM) as taken,
        pytest.raises(BiellaError, match=r"cannot listen at 127\.0\.0\.1"),
    ):
        taken.bind(("127.0.0.1", 0))
        UdpProxy(("127.0.0.1", 9), taken.getsockname())


@pytest.mark.engine
@pytest.mark.parametrize("seed", range(3))
def test_a_device_takes_only_what_is_true_through_a_bad_network(seed):
    """The device tells the number of its frame: what enters only ever goes up, and was sent."""
    end = UdpEnd()
    faults = Faults(drop=0.1, duplicate=0.1, reorder=0.1, corrupt=0.1, replay=0.2)
    with UdpProxy((end.host, end.port), seed=seed, faults=faults) as relay:
        handle, message = open_udp(None, 1, 1, host="127.0.0.1", port=relay.port)
        assert handle, message
        with Device(handle, 1, 1, on_loss=HOLD) as device:
            seen: list[float] = []
            peer, back = Peer(), None
            end.socket.settimeout(20.0)
            while device.tick < 400:
                seen += device.take(time.monotonic_ns()).values()
                device.give(float(device.tick))
                time.sleep(0.0005)
                for data, sender in receive_all(end):
                    back = sender
                    try:
                        frame = parse(data)
                    except ValueError:
                        continue
                    if frame.sequence > peer.echo:
                        assert frame.values == (frame.sequence - 1.0,)
                        peer.hear(data)
                if back:
                    end.socket.sendto(peer.frame(float(peer.sent + 1)), back)
            counts = device.counts
    assert seen == sorted(set(seen)) and set(seen) <= set(map(float, range(1, peer.sent + 1)))
    assert len(seen) > 150
    assert counts["corrupt"] > 10 and counts["stale"] > 10 and counts["missed"] > 10
    end.close()


def receive_all(end: UdpEnd):
    end.socket.setblocking(False)
    got = []
    while True:
        try:
            got.append(end.socket.recvfrom(4096))
        except BlockingIOError:
            return got


def test_from_the_shell():
    end = UdpEnd()
    command = [sys.executable, "-m", "biella.udp_proxy"]
    with subprocess.Popen(
        [*command, "--listen", "0", "--to", f"127.0.0.1:{end.port}", "--seed", "4"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        port = int(first.split()[2])
        with socket.socket(type=socket.SOCK_DGRAM) as host:
            host.sendto(bytes(Frame((1.0,))), ("127.0.0.1", port))
            assert parse(end.frames()[0]).values == (1.0,)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == 0
    assert rest == "to device: 1 arrived, 1 passed\nto host: no datagrams\n"
    end.close()
    wrong = subprocess.run(
        [*command, "--listen", "0", "--to", "1", "--drop", "2"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert wrong.returncode == 1 and "a probability, 0 to 1" in wrong.stderr


def test_who_watches_sees_the_fate_of_each_datagram_and_may_change_it():
    seen = []
    host, device = UdpEnd(), UdpEnd()
    place = ("127.0.0.1", device.port)
    with closing(host), closing(device), UdpProxy(place, watch=lambda *w: seen.append(w)) as relay:
        host.to = relay.port
        device.to = relay._back.getsockname()[1]
        device.write_frame(b"early")  # no host has spoken yet
        wait_for(lambda: bool(relay.counts[TO_HOST].get("refused")))
        host.write_frame(b"one")
        assert device.frames() == [b"one"]
        relay.faults = {TO_DEVICE: Faults(drop=1.0)}
        assert relay.faults == {TO_DEVICE: Faults(drop=1.0), TO_HOST: Faults()}
        host.write_frame(b"two")
        wait_for(lambda: bool(relay.counts[TO_DEVICE].get("dropped")))
        relay.is_cut = True
        host.write_frame(b"three")
        wait_for(lambda: bool(relay.counts[TO_DEVICE].get("cut")))
    assert seen == [
        (TO_HOST, "arrived", b"early"), (TO_HOST, "refused", b"early"),
        (TO_DEVICE, "arrived", b"one"), (TO_DEVICE, "passed", b"one"),
        (TO_DEVICE, "arrived", b"two"), (TO_DEVICE, "cut", b"three"),
    ]  # fmt: skip
