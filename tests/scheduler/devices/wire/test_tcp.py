"""TCP devices: who connects, who is refused, what a peer does to us that reads slowly or ends."""

from __future__ import annotations

import os
import random
import socket
import stat
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress

import numpy as np
import pytest

from biella import run_realtime
from biella.errors import DeviceError
from biella.scheduler.binding._bind import check_binding, open_binding

from ..conftest import await_call, dial, open_tcp
from ..diagrams import loop
from ..native import ALIVE, ANSWERS, DOUBLE, HOLD, MS, OK, STOP, Device, channel
from ..peer import (
    FLOAT64,
    SAFE,
    TRIPPED,
    Frame,
    Peer,
    TcpEnd,
    free_tcp_port,
    parse,
    stuff,
    wait_for,
)
from ..test_two_processes import can_have_namespaces, make_namespaces
from .test_udp import FAMILIES

pytestmark = pytest.mark.engine
WAYS = {"we connect": dial, "it connects": await_call}
only_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into this process by /proc")


@pytest.fixture
def end():
    end = TcpEnd()
    yield end
    end.close()


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


@pytest.fixture
def line(end, way):
    """A device that has heard its peer, and is heard."""
    handle, message = way(end, 1, 1)
    assert handle, message
    with Device(handle, 1, 1, timeout=1000 * MS, on_loss=HOLD) as device:
        peer = Peer()
        device.take(0)
        device.give(0.0)
        peer.hear(end.frames()[0])
        end.write_frame(peer.frame(0.5))
        assert device.take(0) == {0: 0.5}
        yield device, end, peer


def listening(port, ins=1, outs=1, *, timeout=0, on_loss=HOLD, **options):
    handle, message = open_tcp(ins, outs, bind_port=port, **options)
    assert handle, message
    return Device(handle, ins, outs, timeout=timeout, on_loss=on_loss)


def find_our_end(end):
    """Return the socket of the device: the one of this process at the other end of `end`'s."""
    for fd in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                ours = socket.socket(fileno=os.dup(fd))
                with suppress(OSError):
                    if ours.getpeername() == end.connection.getsockname():
                        return ours
                ours.close()
    raise LookupError


# --- connecting ---


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_both_ways_over_ipv4_and_ipv6(family, way):
    with ExitStack() as stack:
        end = TcpEnd(family)
        stack.callback(end.close)
        handle, message = way(end, 1, 1)
        assert handle, message
        device, peer = stack.enter_context(Device(handle, 1, 1)), Peer()
        device.take(0)
        device.give(3.0)
        assert peer.hear(end.frames()[0]).values == (3.0,)
        end.write_frame(peer.frame(4.0))
        assert device.take(0) == {0: 4.0}
        assert device.counts == {"frames": 1, "sent": 1}


def test_a_device_that_is_not_there_yet_is_silent_and_is_found_when_it_comes(end):
    end.listener.close()
    handle, message = open_tcp(1, 1, host=end.host, port=end.port)
    assert handle, message  # opening waits for nobody
    with Device(handle, 1, 1, timeout=10 * MS, on_loss=HOLD) as device:
        device.take(0)
        assert device.give(5.0) == OK
        assert device.counts == {"dropped": 1}
        device.take(11 * MS)
        assert device.counts["losses"] == 1
        assert device.why.startswith("device `board` is lost: no frame since the start, 0.011 s")
        assert device.why.endswith(
            f": 127.0.0.1:{end.port} refuses the connection: no program listens on this port"
        )
        end.listen()

        def is_heard() -> bool:
            device.take(12 * MS)
            device.give(5.0)
            return "sent" in device.counts

        wait_for(is_heard)
        end.accept()
        peer = Peer()
        safe = peer.hear(end.frames()[-1])
        assert (safe.flags, safe.values) == (SAFE | TRIPPED, (0.0,))
        end.write_frame(peer.frame(7.0))
        assert device.take(13 * MS) == {0: 7.0}
        device.give(5.0)
        assert parse(end.frames()[-1]).values == (5.0,)
        assert device.counts["returns"] == 1


@pytest.mark.parametrize(
    "family", sorted({found[0] for found in socket.getaddrinfo("localhost", 5000)} & set(FAMILIES))
)
def test_all_addresses_of_a_name_are_tried(family):
    """Of 127.0.0.1 and ::1, whichever comes first: somebody listens at one of them only."""
    end = TcpEnd(family)
    handle, message = open_tcp(1, 1, host="localhost", port=end.port)
    assert handle, message
    with Device(handle, 1, 1) as device:

        def is_connected() -> bool:
            device.take(0)
            device.give(1.0)
            return "sent" in device.counts

        wait_for(is_connected)
        end.accept()
        assert parse(end.frames()[0]).values == (1.0,)
    end.close()


def test_a_device_that_connects_and_is_silent_is_not_commanded_to_be_away(end, way):
    handle, _ = way(end, 1, 1)
    with Device(handle, 1, 1, timeout=10 * MS) as device:
        device.take(0)
        device.take(11 * MS)
        assert device.why.endswith("(timeout 0.01 s; rejected so far: 0 corrupt, 0 stale)")


def test_a_device_that_does_not_answer_holds_up_no_tick():
    """A full queue of connections: the kernel answers nobody, as a machine that is off."""
    with socket.socket() as deaf, ExitStack() as stack:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
        handle, message = open_tcp(1, 1, host="127.0.0.1", port=deaf.getsockname()[1])
        assert handle, message
        with Device(handle, 1, 1, timeout=10 * MS, on_loss=STOP) as device:
            for tick in range(11):
                assert device.take(tick * MS) == {} and device.give(1.0) == OK
            device.take(11 * MS)
            assert device.status != OK
            assert device.why.endswith("has not responded yet")
            assert device.counts == {"dropped": 11, "losses": 1}


def test_one_that_listens_says_that_nobody_came():
    port = free_tcp_port()
    with listening(port, timeout=10 * MS, on_loss=STOP) as device:
        device.take(0)
        device.take(11 * MS)
        assert device.status != OK
        assert device.why.endswith(f"no device has connected to 127.0.0.1:{port}")


def test_who_answers_waits_for_its_host(end):
    end.listener.close()
    handle, message = open_tcp(1, 1, host=end.host, port=end.port, flags=ANSWERS)
    assert handle, message
    with Device(handle, 1, 1, timeout=10 * MS, on_loss=STOP) as device:
        for tick in range(5):
            device.take(tick * 100 * MS)
            assert device.status == OK


@pytest.mark.skipif(not can_have_namespaces(), reason="needs a network of its own")
def test_we_never_connect_to_ourselves():
    """With one port to draw, and nobody at it, the kernel joins a socket to itself."""
    name = f"blself{os.getpid()}"
    code = (
        "from tests.scheduler.devices.conftest import open_tcp;"
        "from tests.scheduler.devices.native import Device\n"
        "import socket\n"
        "with socket.socket() as s:\n"
        "    s.connect(('127.0.0.1', 40000))\n"
        "    assert s.getsockname() == s.getpeername(), 'no such network'\n"
        "    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\\1\\0\\0\\0\\0\\0\\0\\0')\n"
        "handle, message = open_tcp(1, 1, host='127.0.0.1', port=40000)\n"
        "with Device(handle, 1, 1) as device:\n"
        "    for tick in range(3):\n"
        "        assert device.take(tick) == {}\n"
        "        device.give(1.0)\n"
        "    assert device.counts == {'dropped': 3}, device.counts\n"
    )
    with make_namespaces(name):
        one_port = "echo 40000 40000 > /proc/sys/net/ipv4/ip_local_port_range"
        enter = ["nsenter", f"--net=/run/netns/{name}"]
        subprocess.run([*enter, "sh", "-c", one_port], check=True, timeout=300)
        subprocess.run([*enter, sys.executable, "-c", code], check=True, timeout=300)


@only_linux
def test_frames_leave_at_once_and_dead_peers_are_noticed(line):
    _, end, _ = line
    with find_our_end(end) as ours:
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000
        assert not os.get_blocking(ours.fileno())


# --- one at a time ---


def is_refused(end):
    wait_for(lambda: end.read() == b"" and end.has_ended)
    return True


def test_a_second_peer_is_refused_while_the_first_is_there():
    port = free_tcp_port()
    with listening(port, timeout=50 * MS) as device, ExitStack() as stack:
        first, second, third = (TcpEnd() for _ in range(3))
        for end in (first, second, third):
            stack.callback(end.close)
        peer = Peer()
        first.connect(port)
        device.take(0)
        device.give(1.0)
        peer.hear(first.frames()[0])
        first.write_frame(peer.frame(1.0))
        assert device.take(0) == {0: 1.0}
        second.connect(port)
        second.write_frame(bytes(Frame((66.0,), peer.session, 9, 1)))
        assert device.take(MS) == {}
        assert is_refused(second)
        first.write_frame(peer.frame(2.0))
        assert device.take(2 * MS) == {0: 2.0}
        # Lost: perhaps it was switched off, and has not said so. Then another may come.
        assert device.take(100 * MS) == {}
        third.connect(port)
        device.take(101 * MS)
        device.give(1.0)
        again = Peer()
        again.hear(third.frames()[0])
        third.write_frame(again.frame(3.0))
        assert device.take(102 * MS) == {0: 3.0}
        assert is_refused(first)
        assert device.counts == {
            "frames": 3, "sent": 2, "losses": 1, "returns": 1,
        }  # fmt: skip


def test_who_never_says_a_frame_does_not_keep_others_out():
    port = free_tcp_port()
    with listening(port) as device, ExitStack() as stack:
        idle, end = TcpEnd(), TcpEnd()
        stack.callback(idle.close)
        stack.callback(end.close)
        idle.connect(port)
        device.take(0)
        idle.write(b"GET / HTTP/1.1\r\n\r\n\0")
        device.take(0)
        end.connect(port)
        device.take(0)
        assert is_refused(idle)
        device.give(1.0)
        peer = Peer()
        peer.hear(end.frames()[0])
        end.write_frame(peer.frame(1.0))
        assert device.take(1) == {0: 1.0}
        assert device.counts == {"frames": 1, "sent": 1, "corrupt": 1}


def test_a_peer_without_a_voice_keeps_its_place():
    port = free_tcp_port()
    with listening(port, 0, 1) as device, ExitStack() as stack:
        first, second = TcpEnd(), TcpEnd()
        stack.callback(first.close)
        stack.callback(second.close)
        first.connect(port)
        device.take(0)
        second.connect(port)
        device.take(0)
        device.give(4.0)
        assert parse(first.frames()[0]).values == (4.0,)
        assert is_refused(second)


def test_with_a_host_only_that_one_may_connect(end):
    port = free_tcp_port()
    with listening(port, host="127.0.0.2", bind="0.0.0.0") as device:
        end.connect(port)
        device.take(0)
        assert is_refused(end)
        with socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0)) as good:
            device.take(0)
            device.give(1.0)
            good.settimeout(None)
            assert good.recv(100)


# --- a connection that ends ---


def come_back(device, end, way):
    """Let the peer be there again, and the device notice."""
    if way is dial:
        end.listen()
    else:
        end.connect(end.to)
    before = device.counts["sent"]

    def is_back() -> bool:
        device.take(3000 * MS)
        device.give(3.0)
        return device.counts["sent"] > before

    wait_for(is_back)
    if way is dial:
        end.accept()


def test_a_peer_that_ends_and_comes_back(line, way):
    device, end, _ = line
    end.to = end.connection.getpeername()[1]
    end.write(b"\x09half a")
    device.take(MS)
    end.listener.close()
    end.hang_up()
    device.take(2 * MS)
    assert device.values[ALIVE] == 0
    place = f"127.0.0.1:{end.port}" if way is dial else "127.0.0.1:"
    assert device.why.startswith(f"device `board` is disconnected: {place}")
    assert device.why.endswith("closed the connection")
    for _ in range(5):
        assert device.give(1.0) == OK
        assert device.take(3 * MS) == {}
    come_back(device, end, way)
    again = Peer()
    safe = parse(end.frames()[-1])
    assert (safe.flags, safe.values) == (SAFE | TRIPPED, (0.0,))  # until it is heard
    end.write_frame(again.frame(2.0))
    assert device.take(3001 * MS) == {}
    again.hear(end.frames()[-1])
    end.write_frame(again.frame(2.0))
    assert device.take(3002 * MS) == {0: 2.0}
    device.give(3.0)
    assert parse(end.frames()[-1]).values == (3.0,)
    assert device.counts["losses"] == device.counts["returns"] == device.counts["stale"] == 1
    assert "corrupt" not in device.counts  # the half frame from before is forgotten


@pytest.mark.parametrize("size", [100, 4096], ids=["a piece", "a whole read, and then the end"])
def test_the_last_frame_before_the_end_is_data(line, size):
    device, end, peer = line
    frames = b"".join(stuff(peer.frame(value)) + b"\0" for value in (1.0, 2.0))
    end.write(frames.rjust(size, b"\0"))
    end.hang_up()
    assert device.take(MS) == {0: 2.0}
    device.take(2 * MS)
    assert "closed the connection" in device.why and device.counts["losses"] == 1


def test_a_connection_that_breaks_between_take_and_give(line):
    device, end, _ = line
    end.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    end.hang_up()  # reset
    assert device.give(1.0) == OK
    assert device.why.endswith("reset the connection, for example because its program ended")
    assert device.counts["losses"] == 1 and device.counts["dropped"] == 1


def test_with_stop_the_run_ends(end):
    handle, message = dial(end, 1, 1)
    assert handle, message
    with Device(handle, 1, 1, on_loss=STOP) as device:
        device.take(0)
        end.hang_up()
        device.take(1)
        assert device.status != OK


def test_tries_to_connect_have_pauses(end):
    """Also where each of them succeeds, and is hung up on: a device that has another host."""
    handle, message = dial(end, 1, 1)
    assert handle, message
    end.hang_up()
    end.listener.setblocking(False)
    with Device(handle, 1, 1, on_loss=HOLD) as device:
        begun, tries = time.monotonic(), 0
        for _ in range(1000):
            device.take(0)
            with suppress(BlockingIOError):
                end.listener.accept()[0].close()
                tries += 1
        assert tries <= 1 + (time.monotonic() - begun) / 0.1


def test_closing_in_any_state(end):
    for way in (dial, await_call):
        handle, _ = way(end, 1, 1)
        with Device(handle, 1, 1):
            pass
        end.hang_up()
        handle, _ = way(end, 1, 1)
        with Device(handle, 1, 1) as device:
            device.take(0)
            end.hang_up()
            device.take(0)
    port = free_tcp_port()
    for options in ({"host": "127.0.0.1", "port": port}, {"bind_port": port}):
        with Device(open_tcp(1, 1, **options)[0], 1, 1):
            pass


# --- what is on the line ---


def test_a_frame_in_pieces(line):
    device, end, peer = line
    data = stuff(peer.frame(2.5)) + b"\0"
    for k in range(len(data) - 1):
        end.write(data[k : k + 1])
        assert device.take(k) == {}
    end.write(data[-1:])
    assert device.take(99) == {0: 2.5}
    assert device.counts == {"frames": 2, "sent": 1}


def test_the_first_bytes_count_too(end, way):
    """Unlike a serial line, a connection has nothing on it from before."""
    handle, _ = way(end, 1, 0)
    with Device(handle, 1, 0) as device:
        end.write(b"half a frame\0" + stuff(bytes(Frame((2.0,)))) + b"\0")
        assert device.take(0) == {0: 2.0}
        assert device.counts == {"frames": 1, "corrupt": 1}


@pytest.mark.parametrize("seed", range(3))
def test_garbage_gives_nothing_that_was_not_sent(line, seed):
    """Bits flip, bytes vanish and appear: what is accepted was sent, and in order."""
    device, end, peer = line
    draw = random.Random(seed)
    sent, got = [], []
    for _ in range(400):
        value = draw.uniform(-1e6, 1e6)
        frame = peer.frame(value)
        sent.append(parse(frame).values[0])
        data = bytearray(stuff(frame) + b"\0")
        for _ in range(draw.choice([0, 0, 1, 2])):
            at = draw.randrange(len(data))
            how = draw.randrange(4)
            if how == 0:
                data[at] ^= 1 << draw.randrange(8)
            elif how == 1:
                data[at:at] = draw.randbytes(draw.randrange(1, 5))
            elif how == 2:
                data[at:at] = b"\x37" * 5000  # longer than any frame
            elif len(data) > 1:
                del data[at]
        cut = draw.randrange(len(data))
        end.write(bytes(data[:cut]))
        got += device.take(0).values()
        end.write(bytes(data[cut:]))
        got += device.take(0).values()
        end.frames(0)
    places = [sent.index(value) for value in got]
    assert places == sorted(set(places))
    assert 100 < len(got) < 400 and device.counts["corrupt"] > 50


def test_a_flood_does_not_stop_a_tick(line):
    device, end, _ = line
    end.connection.setblocking(False)
    flood = b"\x42" * 99 + b"\0"
    with suppress(BlockingIOError):
        while True:
            end.connection.send(flood * 1000)
    device.take(0)
    assert 0 < device.counts["corrupt"] <= 16 * 4096 / len(flood) + 1
    device.give(1.0)
    assert parse(end.frames()[0]).values == (1.0,)


# --- a peer that does not read ---


class Deaf:
    """A device with a peer that reads when it is told to, and little at once."""

    def __init__(self, stack):
        self.end = TcpEnd(receive_buffer=4096)
        self.end.listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        stack.callback(self.end.close)
        handle, message = dial(self.end, 1, 255, flags=DOUBLE)
        assert handle, message
        self.device = stack.enter_context(
            Device(handle, 1, [channel(f"out{k}", k, safe=-1.0) for k in range(255)])
        )
        self.device.take(0)
        self.seen = []
        self.bytes = b""
        read = self.end.read
        self.end.read = lambda: self.note(read())  # type: ignore[method-assign]

    def note(self, data):
        self.bytes += data
        return data

    def give(self, value):
        assert self.device.give(*[value] * 255) == OK

    def read(self):
        self.seen += map(parse, self.end.frames(0))

    def fill(self):
        """Give until nothing more goes out."""
        dropped = 0
        while dropped < 20:
            before = self.device.counts.get("dropped", 0)
            self.give(float(self.device.tick))
            dropped = dropped + 1 if self.device.counts.get("dropped", 0) > before else 0

    def check(self):
        """Each frame is whole, with the values of its tick or safe ones, and none comes twice.

        Between them there is nothing: a frame ends with its only zero.
        """
        assert b"\0\0" not in self.bytes
        for frame in self.seen:
            assert set(frame.values) == {-1.0 if frame.flags & SAFE else frame.sequence - 1.0}
        numbers = [frame.sequence for frame in self.seen]
        assert numbers == sorted(set(numbers))


@pytest.fixture(params=["large buffer", "small buffer"])
def deaf(request):
    with ExitStack() as stack:
        made = Deaf(stack)
        if request.param == "small buffer":
            if sys.platform != "linux":
                pytest.skip("looks into this process by /proc")
            with find_our_end(made.end) as ours:
                ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        yield made


def test_a_peer_that_does_not_read_gets_whole_frames_and_no_old_ones(deaf):
    draw = random.Random(2)
    for _ in range(300):
        deaf.give(float(deaf.device.tick))
        if draw.random() < 0.05:
            deaf.read()
            deaf.device.take(0)
    counts = deaf.device.counts
    assert counts["sent"] + counts["dropped"] == 300 and counts["dropped"] > 50
    deaf.read()
    deaf.device.take(0)
    deaf.give(float(deaf.device.tick))

    def is_new() -> bool:
        deaf.read()
        deaf.device.take(0)
        return len(deaf.seen) >= deaf.device.counts["sent"]

    wait_for(is_new)
    deaf.check()
    assert "losses" not in deaf.device.counts


def test_safe_values_come_next_when_it_reads_again(deaf):
    deaf.fill()
    sent = deaf.device.counts["sent"]
    for _ in range(3):
        deaf.device.make_safe()
    deaf.fill()  # nothing passes them

    def is_safe() -> bool:
        deaf.read()
        deaf.device.take(0)
        return bool(deaf.seen) and deaf.seen[-1].flags & SAFE

    wait_for(is_safe)
    deaf.check()
    assert sum(not frame.flags & SAFE for frame in deaf.seen) == sent


def test_safe_values_arrive_after_the_device_was_closed(deaf):
    """They wait behind what the peer has not read, and there is something that we have not."""
    deaf.fill()
    deaf.device.make_safe()
    deaf.end.write(b"never read")
    reader = threading.Thread(
        target=lambda: wait_for(lambda: deaf.read() is None and deaf.end.has_ended)
    )
    reader.start()
    deaf.device.close()
    reader.join(60)
    deaf.check()
    assert deaf.seen[-1].flags & SAFE


def test_a_device_that_never_hears_is_safe_at_the_end(end):
    """Also where much has come that nobody took: a connection with unread bytes is reset."""
    handle, _ = dial(end, 1, 1)
    device = Device(handle, 1, 1)
    device.take(0)
    device.give(5.0)
    end.write(b"\x42" * 50_000)
    device.make_safe()
    device.close()
    last = [parse(frame) for frame in end.frames(2)]
    assert [(f.values, f.flags) for f in last] == [((5.0,), 0), ((0.0,), SAFE)]
    wait_for(lambda: end.read() == b"" and end.has_ended)


# --- a device that paces the run ---


def far():
    return time.monotonic_ns() + 10**10


def test_waiting_ends_when_somebody_connects(end):
    port = free_tcp_port()
    with listening(port) as device:
        assert device.wait(0) == 0

        def call():
            end.connect(port)
            end.write(b"\0")

        caller = threading.Timer(0.05, call)
        caller.start()
        assert device.wait(far()) == 1
        caller.join()
        device.take(0)
        assert device.wait(0) == 0
        peer = Peer()
        hello = peer.hear(end.frames()[-1])
        assert (hello.flags, hello.sequence) == (SAFE, 0)
        end.write_frame(peer.frame(1.0))
        assert device.wait(far()) == 1
        assert device.take(MS) == {0: 1.0}
        end.hang_up()
        assert device.wait(far()) == 1
        device.take(2 * MS)
        assert "is disconnected" in device.why
        end.connect(port)
        device.wait(0)
        assert parse(end.frames()[0]).flags == SAFE


def test_waiting_for_a_device_that_is_not_there_tries_again_in_time(end):
    end.listener.close()
    handle, _ = open_tcp(1, 1, host=end.host, port=end.port)
    with Device(handle, 1, 1) as device:
        end.listen()
        deadline = far()
        assert device.wait(deadline) == 0  # not until then, but until the next try
        assert time.monotonic_ns() < deadline
        device.wait(0)
        end.accept()
        device.wait(0)
        assert parse(end.frames()[0]).flags == SAFE


@only_linux
def test_what_is_left_of_a_frame_goes_out_while_it_waits():
    """A device that paces the run may wait for it: then its room is what ends the wait."""
    with ExitStack() as stack:
        deaf = Deaf(stack)
        with find_our_end(deaf.end) as ours:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        deaf.end.write_frame(bytes(Frame((1.0,))))  # it has no session yet

        def leave_a_rest():
            deaf.fill()
            deaf.device.make_safe()
            deaf.device.take(0)
            return deaf.device.wait(time.monotonic_ns()) == 0

        # On a busy machine the kernel may take the rest after all, some time after it had no room.
        for _ in range(5):
            wait_for(leave_a_rest)
            reader = threading.Timer(0.05, deaf.read)
            reader.start()
            ended = deaf.device.wait(far())
            reader.join(60)
            if ended:
                break
        assert ended == 1


# --- by a binding ---


def rig(**options):
    channels = {"receive": {"y": {"scale": -2.0}}, "send": {"u": {"safe": -1}}}
    return {
        "devices": {"board": {"driver": "tcp", "timeout": 60.0, **channels, **options}},
        "blocks": {"k": {"device": "board"}},
    }


def test_a_peer_that_gives_back_what_it_gets_is_a_loopback(ticks, way):
    end = TcpEnd()
    at = free_tcp_port()
    place = {"port": end.port, "host": end.host} if way is dial else {"bind_port": at}
    run = ticks(open_binding(loop(3.0), rig(precision="float64", **place)))
    end.accept() if way is dial else end.connect(at)
    peer, rows = Peer(), []
    for _ in range(300):
        rows += run.advance(1, signals=["x", "k", "board.age", "board.delay"])
        for frame in end.frames():
            heard = peer.hear(frame)
        end.write_frame(peer.frame(*heard.values, flags=FLOAT64))
    table = rig()
    table["devices"]["board"] |= {"driver": "loopback"}
    expected = ticks(open_binding(loop(3.0), table))
    signals = ["x", "k", "board.age", "board.delay"]
    np.testing.assert_array_equal(rows, expected.advance(300, signals=signals))
    assert run.bound.devices[0].counts["frames"] == 299
    run.make_safe()
    last = parse(end.frames()[-1])
    assert (last.flags & SAFE, last.values) == (SAFE, (-1.0,))
    end.close()


def test_a_realtime_run_ends_with_safe_values_on_the_wire(end, way):
    place = {"port": end.port, "host": end.host} if way is dial else {"bind_port": free_tcp_port()}
    with run_realtime(loop(3.0), bind=rig(**place)) as run:
        end.accept() if way is dial else end.connect(place["bind_port"])
        peer = Peer()
        wait_for(lambda: bool(peer.hear(end.frames()[-1])))
        end.write_frame(peer.frame(7.0))
        wait_for(lambda: run.latest("k") == -14.0)
        run.stop()
    last = [parse(frame) for frame in end.frames(3)][-3:]
    assert [(frame.flags & SAFE, frame.values) for frame in last] == [(SAFE, (-1.0,))] * 3
    wait_for(lambda: end.read() == b"" and end.has_ended)


def test_a_device_that_is_never_there_is_reported_with_what_to_look_at(end):
    end.listener.close()
    with pytest.raises(
        DeviceError,
        match=r"is lost: no frame since the start.*:\d+ refuses the connection: no program "
        r"listens on this port\. No frame was ever received: .*on_loss = 'hold'",
    ):
        run_realtime(loop(3.0), bind=rig(host=end.host, port=end.port, timeout=0.2)).wait()


def test_a_run_whose_device_ends_is_reported_why(end):
    with run_realtime(loop(3.0), bind=rig(host=end.host, port=end.port)) as run:
        end.accept()
        peer = Peer()
        peer.hear(end.frames()[0])
        end.write_frame(peer.frame(7.0))
        wait_for(lambda: run.latest("k") == -14.0)
        end.hang_up()
        with pytest.raises(
            DeviceError,
            match=r"is disconnected: 127.0.0.1:\d+ (closed the connection|reset the connection)",
        ):
            run.wait()


@pytest.mark.parametrize(
    "options, problem",
    [
        ({}, "port: is missing: the device's, where we connect to it; or bind_port, ours, where"),
        ({"port": 5000}, "host: is missing: set the address of the device for port."),
        ({"host": "x"}, "port: is missing"),
        ({"host": "x:5000"}, 'host: must not contain a port: write host = "x" and port = 5000.'),
        ({"host": "192.0.2.7", "bind_port": 5}, "bind: is missing: 192.0.2.7 is another machine."),
        (
            {"host": "x", "port": 5000, "bind_port": 5001},
            "bind_port: cannot be combined with port: either",
        ),
        ({"host": "x", "port": 5, "bind": "y"}, "bind: is used only with bind_port"),
        ({"host": "x", "port": 65536}, "port: must be between 0 and 65535, got 65536."),
        ({"bind_port": -1}, "bind_port: must be between 0 and 65535, got -1."),
        (
            {"bind_port": 5, "listen": 5},
            "listen: is not an option of the driver `tcp`. Options: host",
        ),
        ({"bind_port": 5, "role": "slave"}, "role: must be one of host, device, got 'slave'"),
    ],
)
def test_what_is_wrong_in_a_binding(options, problem):
    problems = check_binding(loop(3.0), rig(**options)).problems
    assert any(f"[devices.board] {problem}" in line for line in problems), problems


def test_a_binding_in_order_has_no_problems():
    for options in (
        {"host": "192.168.1.20", "port": 5000},
        {"bind_port": 5000},
        {"bind_port": 5000, "bind": "0.0.0.0", "host": "192.168.1.20", "role": "device"},
    ):
        assert check_binding(loop(3.0), rig(**options)).problems == []


@pytest.mark.parametrize(
    "options, words",
    [
        ({}, "set the port of the device, or bind_port for a device that connects to this program"),
        ({"port": 5, "host": "127.0.0.1", "bind_port": 6}, "set the port of the device, or "),
        ({"port": 5}, "set the host of the device"),
        ({"port": 5, "host": "127.0.0.1", "bind": "127.0.0.1"}, "bind is used only with bind_port"),
        ({"port": 65536, "host": "127.0.0.1"}, "a port must be a number from 1 to 65535"),
        ({"bind_port": -1}, "a port must be a number from 1 to 65535"),
        ({"bind_port": 5000, "host": "192.0.2.7"}, "192.0.2.7 is another machine: set `bind`"),
        ({"bind_port": 5000, "bind": "192.0.2.7"}, "bind must be an address of this machine"),
        ({"port": 5000, "host": "300.1.2.3.4"}, "address 300.1.2.3.4: "),
    ],
)
def test_what_cannot_be_opened(options, words):
    handle, message = open_tcp(1, 1, **options)
    assert handle is None
    assert message.startswith("device `board`: ") and words in message


def test_a_port_that_is_taken_and_frames_that_are_too_long(end):
    handle, message = open_tcp(1, 1, bind_port=end.port)
    assert handle is None
    assert "another program uses it, choose another bind_port" in message
    handle, message = open_tcp(256, 1, bind_port=free_tcp_port())
    assert handle is None and "a frame has 0 to 255 values" in message


def test_a_host_that_nobody_knows_is_reported():
    with pytest.raises(DeviceError, match=r"cannot be opened: address no\.such\.host\.invalid: "):
        open_binding(loop(3.0), rig(host="no.such.host.invalid", port=5000))


def test_host_and_device_of_ours_talk_to_each_other():
    port = free_tcp_port()
    with listening(port, flags=ANSWERS, timeout=50 * MS) as device:
        handle, message = open_tcp(1, 1, host="127.0.0.1", port=port)
        assert handle, message
        device.take(0)
        with Device(handle, 1, 1, timeout=50 * MS) as ours:
            for k in range(200):
                got = ours.take(k * MS)
                assert got == ({0: 2.0 * (k - 1)} if k else {})
                ours.give(float(k))
                assert device.take(k * MS) == {0: float(k)}
                device.give(2.0 * k)
            assert ours.counts == {"frames": 199, "sent": 200}
            assert device.counts == {"frames": 200, "sent": 200}
            ours.make_safe()
        assert device.take(200 * MS) == {0: 0.0}
        device.give(5.0)
        device.take(201 * MS)
        assert "closed the connection" in device.why
