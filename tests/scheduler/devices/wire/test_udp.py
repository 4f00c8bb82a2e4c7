"""UDP devices: who is heard, who is not, and what happens when nobody is there."""

import ctypes
import random
import socket
import time

import pytest

from ..conftest import open_udp
from ..keyed import KEY, KeyedDevice
from ..native import ALIVE, HOLD, MS, OK, Device, engine
from ..peer import Frame, Peer, UdpEnd, parse

pytestmark = pytest.mark.engine


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as trial:
            trial.bind(("::1", 0))
    except OSError:
        return False
    return True


FAMILIES = [socket.AF_INET, *([socket.AF_INET6] if has_ipv6() else [])]


@pytest.fixture(params=FAMILIES, ids=lambda family: family.name)
def end(request):
    end = UdpEnd(request.param)
    yield end
    end.close()


def opened(end, ins=1, outs=1, *, timeout=0, **options):
    handle, message = open_udp(end, ins, outs, **options)
    assert handle, message
    return Device(handle, ins, outs, timeout=timeout, on_loss=HOLD)


def free_port(end):
    with socket.socket(end.socket.family, socket.SOCK_DGRAM) as trial:
        trial.bind((end.host, 0))
        return trial.getsockname()[1]


def test_both_ways_over_ipv4_and_ipv6(end):
    with opened(end) as device:
        peer = Peer()
        device.give(3.0)
        assert peer.hear(end.frames()[0]).values == (3.0,)
        end.write_frame(peer.frame(4.0))
        assert device.take(0) == {0: 4.0}


def test_others_are_not_heard(end):
    with opened(end) as device:
        peer = Peer()
        device.give(0.0)
        peer.hear(end.frames()[0])
        stranger = UdpEnd(end.socket.family)
        stranger.to = end.to
        stranger.write_frame(bytes(Frame((66.0,), peer.session, 1, 1)))
        end.write_frame(peer.frame(1.0))
        stranger.write_frame(bytes(Frame((66.0,), peer.session, 2, 1)))
        assert device.take(0) == {0: 1.0}
        end.write_frame(peer.frame(2.0))
        assert device.take(1) == {0: 2.0}
        assert device.counts == {"frames": 2, "sent": 1}
        stranger.close()


def test_without_a_host_the_first_valid_frame_of_our_session_decides(end):
    port = free_port(end)
    bind = "" if end.socket.family == socket.AF_INET else "::1"
    with opened(None, bind=bind, bind_port=port) as device:
        assert engine().bl_udp_bound_port(device.handle) == port
        stranger, early = UdpEnd(end.socket.family), UdpEnd(end.socket.family)
        stranger.to = early.to = end.to = port
        device.give(1.0)  # to whom?
        stranger.write_frame(b"hello", bytes(Frame((1.0, 2.0), 0, 1)))  # not of this kind
        early.write_frame(bytes(Frame((66.0,), 0x4711, 1)))  # of a run that was before
        end.write_frame(bytes(Frame((1.0,), 0, 1)))
        assert device.take(0) == {}
        assert device.counts == {"dropped": 1, "corrupt": 2, "stale": 2}
        peer = Peer()
        for other in (early, end):  # both may come, and neither is sent values
            hello = peer.hear(other.frames()[0])
            assert (hello.flags, hello.values) == (2, (0.0,))
        device.give(3.0)
        end.write_frame(peer.frame(5.0))
        early.write_frame(bytes(Frame((66.0,), peer.session, 9)))
        assert device.take(1) == {0: 5.0}
        device.give(2.0)
        assert parse(end.frames()[0]).values == (2.0,)
        early.write_frame(bytes(Frame((66.0,), peer.session, 10)))
        assert device.take(2) == {}
        assert early.frames(0) == stranger.frames(0) == []
        stranger.close()
        early.close()


def test_a_flood_of_strangers_is_not_greeted_without_limit(end):
    port = free_port(end)
    bind = "" if end.socket.family == socket.AF_INET else "::1"
    with opened(None, bind=bind, bind_port=port) as device:
        end.to = port
        for _ in range(100):
            end.write_frame(bytes(Frame((1.0,), 0, 1)))
        device.take(0)
        assert len(end.frames()) == 8


def test_with_a_key_only_who_has_it_becomes_the_peer(end):
    port = free_port(end)
    bind = "" if end.socket.family == socket.AF_INET else "::1"
    with opened(None, bind=bind, bind_port=port) as device:
        assert engine().bl_wire_set_key(device.handle, (ctypes.c_uint8 * 32)(*KEY)) == OK
        thief, peer = UdpEnd(end.socket.family), KeyedDevice()
        thief.to = end.to = port
        thief.write_frame(bytes(Frame((66.0,), 0, 1)))
        thief.write_frame(KeyedDevice(bytes(32)).answer(), peer.answer())  # the second is recorded
        device.take(0)
        call = thief.frames()[0]
        thief.write_frame(KeyedDevice(bytes(32)).answer(call[16:32]))
        end.write_frame(peer.answer())
        for _ in range(3):
            device.take(0)
            replies = [peer.hear(data) for data in end.frames(0)]
            end.write_frame(*replies)
        device.take(0)
        device.give(4.0)
        peer.hear(end.frames()[-1])
        assert peer.heard[-1].values == (4.0,)
        assert all(data[1] & 0x80 for data in thief.frames(0)), "never a value"
        thief.close()


def test_what_others_sent_before_the_first_valid_frame_is_refused(end):
    port = free_port(end)
    bind = "" if end.socket.family == socket.AF_INET else "::1"
    with opened(None, 1, 0, bind=bind, bind_port=port) as device:
        late = UdpEnd(end.socket.family)
        late.to = end.to = port
        end.write_frame(bytes(Frame((1.0,), 0, 1)))
        late.write_frame(bytes(Frame((66.0,), 0, 2)))  # waits in the same queue
        assert device.take(0) == {0: 1.0}
        assert device.counts == {"frames": 1, "stale": 1}
        late.close()


def test_nobody_there_is_silence_and_not_an_error(end):
    with opened(end, timeout=50 * MS) as device:
        host, port, to = end.host, end.port, end.to
        peer = Peer()
        device.give(0.0)
        peer.hear(end.frames()[0])
        end.close()
        for tick in range(20):
            device.take(tick * 10 * MS)
            assert device.status == OK
            assert device.give(1.0) == OK
        assert device.values[ALIVE] == 0
        end.socket = socket.socket(end.socket.family, socket.SOCK_DGRAM)
        end.socket.settimeout(60)
        end.socket.bind((host, port))
        end.to = to
        device.give(2.0)
        peer.hear(end.frames()[0])
        end.write_frame(peer.frame(7.0))
        assert device.take(300 * MS) == {0: 7.0}
        assert device.counts["losses"] == 1


def test_nobody_there_is_no_reason_to_wake_up(end):
    """Each greeting is refused at once: who is real-time by it must not greet without a pause."""
    port = end.port
    end.close()
    handle, message = open_udp(None, 1, 1, host=end.host, port=port)
    assert handle, message
    with Device(handle, 1, 1) as device:
        for _ in range(20):
            deadline = time.monotonic_ns() + 5 * MS
            device.wait(deadline)
            assert time.monotonic_ns() >= deadline
            assert device.take(time.monotonic_ns()) == {}


def test_a_flood_does_not_stop_a_tick(end):
    with opened(end) as device:
        for _ in range(600):
            end.write_frame(b"flood")
        device.take(0)
        assert device.counts["corrupt"] == 128
        device.take(1)
        device.take(2)
        peer = Peer()
        device.give(0.0)
        peer.hear(end.frames()[-1])
        end.write_frame(peer.frame(1.0))
        assert device.take(3) == {0: 1.0}


@pytest.mark.parametrize("size", [0, 1, 2059, 2060, 2061, 9000, 60000])
def test_datagrams_of_any_size(end, size):
    with opened(end, 255, 0) as device:
        end.write_frame(random.Random(size).randbytes(size))
        assert device.take(0) == {}
        assert device.counts == {"corrupt": 1}
        end.write_frame(bytes(Frame([1.0] * 255, flags=1)))
        assert set(device.take(0).values()) == {1.0}


@pytest.mark.parametrize(
    "options, words",
    [
        ({"host": "", "port": 0}, "or bind_port for a device that sends first"),
        ({"port": 0}, "a port must be a number from 1 to 65535"),
        ({"port": 65536}, "a port must be a number from 1 to 65535"),
        ({"bind_port": -1}, "a port must be a number from 1 to 65535"),
        ({"host": "192.0.2.7"}, "192.0.2.7 is another machine: set `bind`, the local address"),
        ({"bind": "192.0.2.7"}, "the local address cannot be bound"),
        ({"bind": "192.0.2.7"}, "bind must be an address of this machine"),
        ({"host": "300.1.2.3.4"}, "address 300.1.2.3.4: "),
    ],
)  # fmt: skip
def test_what_cannot_be_opened(options, words):
    end = UdpEnd()
    handle, message = open_udp(end, 1, 1, **options)
    end.close()
    assert handle is None
    assert message.startswith("device `board`: ") and words in message


def test_a_port_that_is_taken(end):
    if end.socket.family == socket.AF_INET:
        handle, message = open_udp(end, 1, 1, bind_port=end.port)
        assert handle is None
        assert "another program uses it, choose another bind_port" in message
        handle, message = open_udp(end, 256, 1)
        assert handle is None and "a frame has 0 to 255 values" in message


def test_by_default_only_this_machine_is_listened_to(end):
    """A device on loopback is bound there, so that nothing from outside can come."""
    with opened(end) as device:
        port = engine().bl_udp_bound_port(device.handle)
        device.give(0.0)
        _, sender = end.socket.recvfrom(100)
        assert sender[:2] == (end.host, port)
