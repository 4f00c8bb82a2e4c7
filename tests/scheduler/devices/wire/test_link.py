"""The conversation in frames, over a real serial line (a pty) and over UDP."""

import dataclasses
import errno
import random
import resource
import time

import pytest

from ..native import ALIVE, DELAY, DOUBLE, HOLD, MS, OK, Device
from ..peer import FLOAT64, SAFE, TRIPPED, Frame, Peer, parse, sign

pytestmark = pytest.mark.engine


def meet(device: Device, end, peer: Peer, *values: float) -> None:
    """One tick in which each side hears the other for the first time."""
    device.take(0)
    device.give(*values)
    peer.hear(end.frames()[-1])


def test_values_go_both_ways(connect):
    device, end, peer = connect(3, 2)
    meet(device, end, peer, 30.0, -0.5)
    (host,) = peer.heard
    assert host.values == (30.0, -0.5)
    assert (host.sequence, host.echo, host.flags) == (1, 0, 0)
    assert host.session != 0
    end.write_frame(peer.frame(1.5, -2.0, 0.0))
    assert device.take(MS) == {0: 1.5, 1: -2.0, 2: 0.0}
    assert device.values[DELAY] == 1 and device.values[ALIVE] == 1
    device.give(31.0, 0.0)
    host = peer.hear(end.frames()[0])
    assert (host.sequence, host.echo) == (2, 1)
    assert device.counts == {"frames": 1, "sent": 2}


def test_float64_is_sent_if_asked_for_and_always_understood(connect):
    device, end, peer = connect(1, 1, flags=DOUBLE)
    meet(device, end, peer, 0.1)
    assert peer.heard[0].values == (0.1,) and peer.heard[0].flags == FLOAT64
    end.write_frame(peer.frame(1e300, flags=FLOAT64))
    assert device.take(1) == {0: 1e300}
    end.write_frame(peer.frame(0.5))
    assert device.take(2) == {0: 0.5}


def test_of_several_frames_the_newest_wins_and_gaps_are_counted(connect):
    device, end, peer = connect()
    meet(device, end, peer, 0.0)
    end.write_frame(*(peer.frame(float(k)) for k in range(5)))
    assert device.take(1) == {0: 4.0}
    peer.sent += 7
    end.write_frame(peer.frame(5.0))
    assert device.take(2) == {0: 5.0}
    assert device.counts == {"frames": 6, "sent": 1, "missed": 7}


def test_repeated_replayed_and_reordered_frames_are_refused(connect):
    device, end, peer = connect()
    meet(device, end, peer, 0.0)
    one, two, three, four = (peer.frame(float(k)) for k in range(4))
    end.write_frame(one, one, three, two)
    assert device.take(1) == {0: 2.0}
    for _ in range(3):
        end.write_frame(one, two, three)
        assert device.take(2) == {}
    end.write_frame(four)
    assert device.take(3) == {0: 3.0}
    assert device.counts == {"frames": 3, "sent": 1, "missed": 1, "stale": 2 + 9}


@pytest.mark.parametrize("first", [1, 2**31, 2**32 - 2])
def test_sequences_wrap(connect, first):
    device, end, peer = connect()
    meet(device, end, peer, 0.0)
    for k in range(4):
        peer.sent = (first + k - 1) % 2**32
        end.write_frame(peer.frame(float(k)))
        assert device.take(k) == {0: float(k)}
    ahead = (peer.sent + 2**31) % 2**32  # as far behind as ahead: refused
    end.write_frame(bytes(Frame((9.0,), peer.session, ahead, peer.echo)))
    assert device.take(5) == {}
    assert device.counts == {"frames": 4, "sent": 1, "stale": 1}


def test_a_frame_of_another_session_is_refused_and_sent_ours(connect):
    device, end, peer = connect()
    for session in (0, 0x4711):
        end.write_frame(bytes(Frame((1.0,), session, 5)))
        assert device.take(0) == {}
        (hello,) = map(parse, end.frames())
        assert hello.session not in (0, session)
        assert (hello.sequence, hello.flags, hello.values) == (0, SAFE, (0.0,))
    peer.hear(bytes(hello))
    end.write_frame(peer.frame(2.0))
    assert device.take(1) == {0: 2.0}
    assert device.counts == {"frames": 1, "stale": 2}


def test_a_session_is_new_each_time(connect):
    sessions = set()
    for _ in range(3):
        device, end, peer = connect()
        meet(device, end, peer, 0.0)
        sessions.add(peer.session)
        device.close()
    assert len(sessions) > 1


def test_who_only_sends_needs_no_session(connect):
    device, end, _ = connect(1, 0)
    end.write_frame(bytes(Frame((3.0,), 0, 1)))
    assert device.take(0) == {0: 3.0}
    end.write_frame(bytes(Frame((4.0,), 0, 1)), bytes(Frame((4.0,), 0x4711, 2)))
    assert device.take(0) == {}
    assert device.counts == {"frames": 1, "stale": 2}


def test_a_device_that_restarts_is_taken_back_once_it_has_heard_us(connect):
    device, end, peer = connect(timeout=1000 * MS)
    meet(device, end, peer, 0.0)
    old = [peer.frame(float(k)) for k in range(5)]
    end.write_frame(*old)
    device.take(1)
    again = Peer()
    end.write_frame(again.frame(0.0))  # knows no session yet
    assert device.take(2) == {}
    device.give(7.0)
    for data in end.frames(2):  # our answer, and the tick
        again.hear(data)
    assert [frame.flags for frame in again.heard] == [SAFE, 0]
    end.write_frame(old[0], old[4])  # late: the restart does not open the door to these
    assert device.take(3) == {}
    end.write_frame(again.frame(8.0))
    assert device.take(4) == {0: 8.0}
    end.write_frame(old[4])  # newer by its number, but it knows less than the device did since
    assert device.take(5) == {}
    end.write_frame(again.frame(9.0))
    assert device.take(6) == {0: 9.0}
    assert "missed" not in device.counts


def test_a_device_that_restarts_while_it_paces_the_run(connect):
    device, end, peer = connect(timeout=1000 * MS)
    meet(device, end, peer, 5.0)
    end.write_frame(peer.frame(1.0))
    device.take(1)
    device.give(5.0)
    end.frames()
    again = Peer()
    end.write_frame(again.frame(0.0))
    assert device.take(2) == {}  # no tick follows: it waits for the device
    hello = again.hear(end.frames()[0])
    assert (hello.flags, hello.values, hello.sequence) == (SAFE, (0.0,), 3)
    end.write_frame(again.frame(2.0))
    assert device.take(3) == {0: 2.0}
    device.give(6.0)
    assert again.hear(end.frames()[0]).sequence == 4
    end.write_frame(again.frame(2.0))
    device.take(4)
    assert device.entered[DELAY] == 1


def test_a_lower_number_alone_is_no_restart(connect):
    device, end, peer = connect(timeout=10 * MS, on_loss=HOLD)
    meet(device, end, peer, 0.0)
    peer.sent = 50
    end.write_frame(peer.frame(1.0))
    device.take(MS)
    device.give(0.0)
    peer.hear(end.frames()[-1])
    peer.sent = 0
    end.write_frame(peer.frame(2.0))  # knows more than before, but was neither silent nor new
    assert device.take(2 * MS) == {}
    future = bytes(Frame((3.0,), peer.session, 2, 1000))  # knows what was never said
    end.write_frame(future)
    assert device.take(100 * MS) == {}
    end.write_frame(peer.frame(4.0))
    assert device.take(101 * MS) == {0: 4.0}


def test_frames_between_two_lives_of_a_device_are_not_missed(connect):
    device, end, peer = connect()
    meet(device, end, peer, 0.0)
    end.write_frame(peer.frame(1.0))
    device.take(1)
    end.write_frame(bytes(Frame((0.0,), 0, 1000)))
    device.take(2)
    for data in end.frames(1):
        peer.hear(data)
    peer.sent = 1000
    end.write_frame(peer.frame(2.0))
    assert device.take(3) == {0: 2.0}
    assert "missed" not in device.counts


def test_after_silence_old_frames_stay_out_and_a_restarted_device_comes_in(connect):
    device, end, peer = connect(timeout=10 * MS, on_loss=HOLD)
    meet(device, end, peer, 0.0)
    old = [peer.frame(float(k)) for k in range(5)]
    end.write_frame(*old)
    assert device.take(1 * MS) == {0: 4.0}
    device.give(1.0)
    end.write_frame(old[2])
    assert device.take(20 * MS) == {}
    assert device.values[ALIVE] == 0
    peer.hear(end.frames()[-1])
    peer.sent = 0
    end.write_frame(peer.frame(9.0))
    assert device.take(21 * MS) == {0: 9.0}
    assert device.counts["losses"] == device.counts["returns"] == 1


def test_a_device_without_echo_restarts_after_silence_only(connect):
    device, end, peer = connect(timeout=10 * MS, on_loss=HOLD)
    meet(device, end, peer, 0.0)
    end.write_frame(bytes(Frame((1.0,), peer.session, 500)))
    assert device.take(MS) == {0: 1.0}
    again = bytes(Frame((2.0,), peer.session, 1))
    end.write_frame(again)
    assert device.take(11 * MS) == {}
    end.write_frame(again)
    assert device.take(11 * MS + 1) == {0: 2.0}


def test_a_lost_device_is_sent_safe_values_until_it_is_heard(connect):
    device, end, peer = connect(timeout=10 * MS, on_loss=HOLD)
    meet(device, end, peer, 5.0)
    device.take(20 * MS)
    assert device.give(5.0) == OK
    frame = peer.hear(end.frames()[-1])
    assert frame.flags == SAFE | TRIPPED and frame.values == (0.0,)
    end.write_frame(peer.frame(1.0, flags=TRIPPED))
    device.take(21 * MS)
    device.give(5.0)
    frame = peer.hear(end.frames()[-1])
    assert frame.flags == 0 and frame.values == (5.0,)
    assert device.counts["trips"] == 1


def test_safe_values_are_frames_of_their_own(connect):
    device, end, peer = connect()
    meet(device, end, peer, 5.0)
    for _ in range(3):
        device.make_safe()
    frames = [parse(data) for data in end.frames(3)]
    assert [(f.sequence, f.flags, f.values) for f in frames] == [
        (k, SAFE, (0.0,)) for k in (2, 3, 4)
    ]


def test_a_device_that_speaks_only_when_spoken_to_is_spoken_to(connect):
    """What a run does that is real-time by a device: it waits before its first tick."""
    device, end, peer = connect(timeout=10 * MS, on_loss=HOLD)
    assert device.wait(0) == 0
    hello = peer.hear(end.frames()[0])
    assert (hello.flags, hello.sequence) == (SAFE, 0)
    end.write_frame(peer.frame(1.0))
    assert device.wait(time.monotonic_ns() + 10**10) == 1
    assert device.take(MS) == {0: 1.0}
    device.give(5.0)
    end.frames()  # which the device does not get
    assert device.wait(time.monotonic_ns() + MS) == 0
    assert end.frames(0) == []  # heard not long ago
    device.take(20 * MS)
    assert device.wait(0) == 0
    hello = peer.hear(end.frames()[0])
    assert (hello.flags, hello.sequence) == (SAFE, 2)
    end.write_frame(peer.frame(2.0))
    assert device.take(21 * MS) == {0: 2.0}


def test_without_random_numbers_there_is_no_key(run_failing):
    """A nonce that somebody can guess would let recorded frames in again."""
    code = """
        static bl_link line;
        static const uint8_t key[32];
        printf("%d ", bl_link_set_key(&line, key));
        printf("%d", line.keyed || line.handshake);
    """
    said = run_failing("scheduler/devices/wire/link.c", "getrandom(...) -1", code)
    assert said == f"{-errno.EIO} 0"


def test_there_is_no_wait_for_a_deadline_that_has_passed(connect):
    """A thread that blocks gives up its processor of its own accord, which the kernel counts."""
    device, *_ = connect(1)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    for _ in range(100):
        device.wait(0)
    assert resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before < 50


def test_what_does_not_fit_float32_ends_the_run(connect):
    device, end, peer = connect()
    meet(device, end, peer, 0.0)
    assert device.give(1e39) != OK
    assert "channel `out0` (to it): 1e+39 exceeds the range of the wire format" in device.why


def spoil(draw: random.Random, good: bytes, peer: Peer) -> bytes:
    """Return something near a good frame that nobody may take."""
    how = draw.randrange(7)
    frame = parse(good)
    if how == 0:
        return draw.randbytes(draw.randrange(1, 80))
    if how == 1:
        return good[: draw.randrange(1, len(good))]
    if how == 2:
        spoilt = bytearray(good)
        for _ in range(draw.randrange(1, 4)):
            spoilt[draw.randrange(len(good))] ^= 1 << draw.randrange(8)
        return bytes(spoilt) if bytes(spoilt) != good else good[:-1]
    if how == 3:
        behind = draw.choice([0, 1, 2, draw.randrange(2**31)])
        return bytes(dataclasses.replace(frame, sequence=(peer.sent - behind) % 2**32))
    if how == 4:
        other = (frame.session + draw.randrange(1, 2**16)) % 2**16
        return bytes(dataclasses.replace(frame, session=other))
    if how == 5:
        more = draw.choice([[], [1.0], [1.0] * 3, [1.0] * 40])
        return bytes(dataclasses.replace(frame, values=more))
    body = bytearray(good[:-4])
    body[draw.choice([0, 2, 3, 6, 7])] ^= 1 << draw.randrange(8)
    return sign(bytes(body))


@pytest.mark.parametrize("seed", range(4))
def test_spoilt_frames_are_never_data(connect, seed):
    draw = random.Random(seed)
    device, end, peer = connect(2, 1)
    meet(device, end, peer, 0.0)
    end.write_frame(peer.frame(-1.0, -1.0))
    assert device.take(1) == {0: -1.0, 1: -1.0}
    refused = accepted = 0
    for k in range(300):
        ahead = bytes(Frame((66.0, 66.0), peer.session, peer.sent + 1, peer.echo))
        bad = [spoil(draw, ahead, peer) for _ in range(draw.randrange(1, 6))]
        end.write_frame(*bad)
        refused += len(bad)
        assert device.take(1) == {}
        if draw.random() < 0.3:
            end.write_frame(peer.frame(float(k), -float(k)))
            assert device.take(1) == {0: float(k), 1: -float(k)}
            accepted += 1
        end.frames(0)
    counts = device.counts
    assert counts["frames"] == 1 + accepted and "missed" not in counts
    assert counts["corrupt"] + counts["stale"] == refused
