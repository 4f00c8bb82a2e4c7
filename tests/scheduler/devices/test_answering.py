"""The device's side of the conversation: ``role = "device"``, with the tests' own host."""

from __future__ import annotations

import random
import socket

import pytest

from biella import run_realtime
from biella.errors import BindingError
from biella.scheduler.binding._bind import read_binding

from .conftest import open_udp
from .diagrams import loop
from .native import ALIVE, ANSWERS, DELAY, HOLD, MS, OK, STOP, Device, channel, engine
from .peer import SAFE, TRIPPED, Frame, Peer, UdpEnd, parse, wait_for
from .wire.test_link import spoil

pytestmark = pytest.mark.engine
TIMEOUT = 50 * MS


def host(session: int = 77) -> Peer:
    """Return a peer that begins: what it hears then is in its own session."""
    peer = Peer()
    peer.session = session
    return peer


def answering(connect, ins=1, **options):
    outs = [channel("out0", 0, safe=-9.0)]
    device, end, _ = connect(ins, outs, flags=ANSWERS, timeout=TIMEOUT, **options)
    return device, end


def test_it_waits_for_a_host_in_safety_and_misses_nobody(connect):
    device, end = answering(connect, on_loss=STOP)
    for _ in range(3):
        device.take(device.tick * 100 * MS)
        assert device.status == OK, "silence before the first frame is not a loss"
        device.give(5.0)
    said = [parse(data) for data in end.frames(3)]
    assert [(f.session, f.flags, f.values) for f in said] == [(0, SAFE, (-9.0,))] * 3
    assert [f.sequence for f in said] == [1, 2, 3]


def test_it_answers_in_the_session_of_the_host(connect):
    device, end = answering(connect)
    peer = host()
    peer.sent = 40
    end.write_frame(peer.frame(1.5))
    assert device.take(0) == {0: 1.5}
    device.give(3.0)
    heard = peer.hear(end.frames()[0])
    assert (heard.session, heard.sequence, heard.echo) == (77, 1, 41)
    assert (heard.flags, heard.values) == (0, (3.0,))
    end.write_frame(peer.frame(2.5))
    assert device.take(MS) == {0: 2.5}
    assert device.values[DELAY] == 1 and device.values[ALIVE] == 1
    peer.sent += 4
    end.write_frame(peer.frame(4.5))
    assert device.take(2 * MS) == {0: 4.5}
    assert device.counts == {"frames": 3, "sent": 1, "missed": 4}


def test_a_host_that_is_safe_makes_it_safe_until_it_says_otherwise(connect):
    device, end = answering(connect)
    peer = host()
    for flags, values in ((0, (3.0,)), (SAFE, (-9.0,)), (0, (3.0,))):
        end.write_frame(peer.frame(1.0, flags=flags))
        assert device.take(0) == {0: 1.0}
        device.give(3.0)
        heard = parse(end.frames()[0])
        assert (heard.flags, heard.values) == (flags, values)


@pytest.mark.parametrize("ends_by", ["silence", "safe"])
def test_another_host_may_come_when_the_first_is_gone(connect, ends_by):
    device, end = answering(connect, on_loss=HOLD)
    first, second = host(), host(78)
    first.sent = 500
    end.write_frame(first.frame(1.0))
    device.take(0)
    end.write_frame(second.frame(66.0))
    assert device.take(MS) == {}, "it has a host"
    if ends_by == "safe":
        end.write_frame(first.frame(0.0, flags=SAFE))
        assert device.take(2 * MS) == {0: 0.0}
    else:
        assert device.take(2 * TIMEOUT) == {}
        device.give(5.0)
        tripped = parse(end.frames()[0])
        assert (tripped.session, tripped.flags) == (77, SAFE | TRIPPED)
        assert tripped.values == (-9.0,)
    end.write_frame(second.frame(2.0))
    assert device.take(2 * TIMEOUT + MS) == {0: 2.0}
    device.give(5.0)
    heard = parse(end.frames()[-1])
    assert (heard.session, heard.flags, heard.values) == (78, 0, (5.0,))
    end.write_frame(first.frame(66.0))
    assert device.take(2 * TIMEOUT + 2 * MS) == {}, "the first has no more to say"
    assert device.counts["stale"] == 2 and "missed" not in device.counts


def test_a_host_that_has_never_chosen_a_session_is_not_heard(connect):
    device, end = answering(connect)
    end.write_frame(host(0).frame(1.0))
    assert device.take(0) == {}
    assert device.counts == {"stale": 1}


def test_while_it_waits_for_its_clock_it_says_that_it_is_there(connect):
    device, end = answering(connect)
    device.wait(0)
    device.wait(0)
    said = [parse(data) for data in end.frames(2)]
    assert [(f.session, f.flags, f.values) for f in said] == [(0, SAFE, (-9.0,))] * 2
    peer = host()
    end.write_frame(peer.frame(1.0))
    device.take(0)
    device.give(2.0)
    assert parse(end.frames()[0]).sequence > said[-1].sequence > said[0].sequence


@pytest.mark.parametrize("seed", range(2))
def test_spoilt_frames_are_never_data(connect, seed):
    draw = random.Random(seed)
    device, end = answering(connect, 2)
    peer = host()
    end.write_frame(peer.frame(-1.0, -1.0))
    device.take(1)
    refused = 0
    for k in range(200):
        ahead = bytes(Frame((66.0, 66.0), peer.session, peer.sent + 1, peer.echo))
        bad = [spoil(draw, ahead, peer) for _ in range(draw.randrange(1, 6))]
        end.write_frame(*bad)
        refused += len(bad)
        assert device.take(1) == {}
        end.write_frame(peer.frame(float(k), -float(k)))
        assert device.take(1) == {0: float(k), 1: -float(k)}
    counts = device.counts
    assert counts["frames"] == 201 and counts["corrupt"] + counts["stale"] == refused


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as trial:
        trial.bind(("127.0.0.1", 0))
        return trial.getsockname()[1]


def listening(**options) -> Device:
    handle, message = open_udp(None, 1, 1, bind_port=free_port(), flags=ANSWERS)
    assert handle, message
    return Device(handle, 1, 1, timeout=TIMEOUT, **options)


def test_hosts_come_from_anywhere_but_one_at_a_time():
    with listening(on_loss=HOLD) as device:
        first, second = UdpEnd(), UdpEnd()
        first.to = second.to = engine().bl_udp_bound_port(device.handle)
        one, other = host(), host(78)
        first.write_frame(one.frame(1.0))
        second.write_frame(other.frame(66.0), Frame((66.0,), 77, 9).__bytes__())
        assert device.take(0) == {0: 1.0}
        device.give(5.0)
        assert len(first.frames()) == 1 and second.frames(0) == []
        first.write_frame(one.frame(0.0, flags=SAFE))
        device.take(MS)
        second.write_frame(other.frame(2.0))
        assert device.take(2 * MS) == {0: 2.0}
        device.give(6.0)
        assert parse(second.frames()[0]).values == (6.0,) and first.frames(0) == []
        first.close()
        second.close()


def test_host_and_device_of_ours_talk_to_each_other():
    with listening() as device:
        port = engine().bl_udp_bound_port(device.handle)
        handle, message = open_udp(None, 1, 1, host="127.0.0.1", port=port)
        assert handle, message
        with Device(handle, 1, 1, timeout=TIMEOUT) as ours:
            for k in range(200):
                got = ours.take(k * MS)
                assert got == ({0: 2.0 * (k - 1)} if k else {})
                ours.give(float(k))
                assert device.take(k * MS) == {0: float(k)}
                device.give(2.0 * k)
            assert ours.values[DELAY] == 1 and device.values[DELAY] == 1
            assert ours.counts == {"frames": 199, "sent": 200}
            assert device.counts == {"frames": 200, "sent": 200}
            ours.make_safe()
            device.take(200 * MS)
            device.give(5.0)
            ours.take(201 * MS)
            assert ours.values[0] == 0.0, "the device is safe, too"


def rig(**options):
    channels = {"receive": {"y": {}}, "send": {"u": {"safe": 0}}}
    device = {"driver": "udp", "role": "device", "timeout": 60.0, **channels, **options}
    return {"devices": {"plant": device}, "blocks": {"x": {"device": "plant"}}}


def test_a_new_host_is_a_new_count_of_ticks():
    """Its first number is not a gap, though it is higher than the last one's."""
    end = UdpEnd()
    end.to = free_port()
    with run_realtime(loop(3.0), clock="device:plant", bind=rig(bind_port=end.to)) as run:

        def send(session, sequence, ticks, flags=0):
            end.write_frame(bytes(Frame((1.0,), session, sequence, 0, flags)))
            wait_for(lambda: run.tick == ticks)

        send(77, 1, ticks=1)
        send(77, 2, ticks=2)
        send(77, 7, ticks=7)
        send(77, 8, ticks=8, flags=SAFE)
        send(78, 5000, ticks=9)
        send(78, 5001, ticks=10)
        result = run.stop()
    assert result.info["realtime"]["gaps"] == [{"of": "frames", "first": 2, "last": 5}]
    end.close()


def test_a_role_is_host_or_device_and_a_device_must_be_found():
    (problem,) = read_binding(rig(role="slave", bind_port=5000)).problems
    assert "role: must be one of host, device, got 'slave'" in problem
    with pytest.raises(BindingError, match="bind_port: is missing"):
        run_realtime(loop(3.0), bind=rig())
