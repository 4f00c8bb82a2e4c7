"""Authenticated frames over real lines, with a device and a host written from the description."""

from __future__ import annotations

import ctypes
import random
import struct
import zlib

import pytest

from ..keyed import DEVICE, KEY, Hello, KeyedDevice, KeyedHost, is_hello, sign
from ..native import ANSWERS, DELAY, HOLD, MS, OK, Device, channel, engine
from ..peer import SAFE, Frame

pytestmark = pytest.mark.engine
RETRY = 25 * MS  # more than the interval of hellos
UNAUTHENTICATED = "unauthenticated"


def set_key(device: Device, key: bytes = KEY) -> None:
    assert engine().bl_wire_set_key(device.handle, (ctypes.c_uint8 * 32)(*key)) == OK, device.why


@pytest.fixture
def keyed(connect):
    """As `connect`, with the key and a device that has it."""

    def opened(*counts, **options):
        device, end, _ = connect(*counts, **options)
        set_key(device)
        return device, end, KeyedDevice()

    return opened


def hear(end, peer: KeyedDevice, count: int = 1) -> list[bytes]:
    """Let the device take all that has come; return its answers."""
    return [reply for data in end.frames(count) if (reply := peer.hear(data))]


def meet(device: Device, end, peer: KeyedDevice, now: int = 0) -> int:
    """The whole handshake; return the time behind it."""
    device.take(now)
    for _ in range(2):
        end.write_frame(*hear(end, peer))
        device.take(now)
    return now


def test_a_session_begins_in_two_round_trips_and_values_go_both_ways(keyed):
    device, end, peer = keyed(2, 1)
    device.take(0)
    device.give(5.0)  # nobody is there who could be believed
    (call,) = end.frames()
    assert Hello.parse(call).device == bytes(16) and len(call) == 64
    end.write_frame(peer.hear(call))
    device.take(1)
    (begin,) = end.frames()
    assert Hello.parse(begin).host == Hello.parse(call).host
    answer = peer.hear(begin)
    assert peer.session is not None
    device.give(5.0)
    end.write_frame(answer)
    assert device.take(2) == {}
    device.give(6.0)
    hear(end, peer)
    assert [frame.values for frame in peer.heard] == [(6.0,)]
    end.write_frame(peer.frame(1.5, -2.0))
    assert device.take(3) == {0: 1.5, 1: -2.0}
    assert device.values[DELAY] == 1
    assert device.counts == {"frames": 1, "sent": 1, "dropped": 2}


def test_the_key_decides_and_nothing_less_is_accepted(keyed):
    """With a key there is no way back to frames with a CRC."""
    device, end, peer = keyed()
    end.write_frame(bytes(Frame((1.0,), 0, 1)))
    other = KeyedDevice(bytes(32))
    end.write_frame(other.answer())
    assert device.take(0) == {}
    assert device.counts == {UNAUTHENTICATED: 2}
    end.frames()
    meet(device, end, peer, RETRY)
    assert peer.session is not None
    session = peer.session.number
    end.write_frame(bytes(Frame((1.0,), session, 1)), bytes(Frame((1.0,), 0, 2)))
    body = struct.pack("<BBBBHHIIf", 0xB2, 0, 1, 0, session, 0, 1, 0, 1.0)
    end.write_frame(body + struct.pack("<I", zlib.crc32(body)))  # no tag at all
    for key in (KEY, peer.session.incoming, bytes(32)):  # other keys than that of this direction
        end.write_frame(sign(key, body))
    renamed = body[:4] + ((session + 1) % 2**16).to_bytes(2, "little") + body[6:]
    end.write_frame(sign(peer.session.outgoing, renamed))
    assert device.take(RETRY) == {}
    assert device.counts == {UNAUTHENTICATED: 2 + 2 + 3, "corrupt": 1, "stale": 1}
    end.write_frame(sign(peer.session.outgoing, body))
    assert device.take(RETRY) == {0: 1.0}


def test_the_other_side_without_a_key_is_named(connect):
    device, end, _ = connect(timeout=10 * MS, on_loss=HOLD)
    device.take(0)
    end.write_frame(KeyedDevice().answer())
    device.take(MS)
    device.take(20 * MS)
    assert "this side has no `key`" in device.why


def test_a_wrong_key_is_named(keyed):
    device, end, _ = keyed(timeout=10 * MS, on_loss=HOLD)
    end.write_frame(KeyedDevice(bytes(32)).answer())
    device.take(0)
    device.take(20 * MS)
    assert "without a valid tag; is its key the same?" in device.why or "refuses" in device.why
    assert KEY.hex() not in device.why


def test_every_flipped_bit_and_truncation_is_rejected(keyed):
    device, end, peer = keyed(1, 0)
    meet(device, end, peer)
    good = peer.frame(1.0)
    wrong = [good[:k] for k in range(1, len(good))] + [good + b"\1"]
    for bit in range(8 * len(good)):
        spoilt = bytearray(good)
        spoilt[bit // 8] ^= 1 << bit % 8
        wrong.append(bytes(spoilt))
    for at in range(0, len(wrong), 50):
        end.write_frame(*wrong[at : at + 50])
        assert device.take(1) == {}
    counts = device.counts
    assert counts[UNAUTHENTICATED] + counts["corrupt"] == len(wrong)
    end.write_frame(good)
    assert device.take(2) == {0: 1.0}


def test_replayed_and_reordered_frames_are_rejected(keyed):
    device, end, peer = keyed()
    meet(device, end, peer)
    one, two, three = (peer.frame(float(k)) for k in range(3))
    end.write_frame(one, three, two, one)
    assert device.take(1) == {0: 2.0}
    end.write_frame(one, two, three)
    assert device.take(2) == {}
    assert device.counts == {"frames": 2, "missed": 1, "stale": 5}


def test_numbers_do_not_wrap(keyed):
    """After 2^31 frames a recorded one would be ahead again, modulo 2^32."""
    device, end, peer = keyed(1, 0)
    meet(device, end, peer)
    assert peer.session is not None
    pack = peer.session.pack
    recorded = pack(66.0, sent=100)
    for number in (50, 2**31, 2**32 - 1):
        end.write_frame(pack(1.0, sent=number))
        assert device.take(number) == {0: 1.0}
        end.write_frame(recorded)
        assert device.take(number) == ({} if number > 50 else {0: 66.0})
    end.write_frame(pack(7.0, sent=2**32 + 1))
    assert device.take(0) == {0: 7.0}
    end.write_frame(recorded)
    assert device.take(0) == {}


def test_the_sequence_of_the_host_goes_on_where_it_wraps(keyed):
    device, end, peer = keyed()
    now = meet(device, end, peer)
    for tick in (2**31 - 1, *range(2**32 - 4, 2**32 + 2)):
        device.take(now, tick=tick)
        device.give(1.0)
    hear(end, peer, 7)
    assert [frame.sequence for frame in peer.heard] == [2**31, *range(2**32 - 3, 2**32 + 3)]


def test_a_run_may_begin_close_to_the_wrap(keyed):
    """As after a snapshot: a first sequence that is not behind the 0 frames before it."""
    device, end, peer = keyed()
    now = meet(device, end, peer)
    for tick in range(2**32 - 3, 2**32 + 2):
        device.take(now, tick=tick)
        device.give(1.0)
    hear(end, peer, 5)
    assert [frame.sequence for frame in peer.heard] == [*range(2**32 - 2, 2**32 + 3)]


def test_frames_of_another_run_are_rejected(connect):
    """The 16-bit session may even be the same: keys are not."""
    nonces = [b"\x07" * 16, b"\x08" * 16, b"\x09" * 16]
    recorded: list[bytes] = []
    for run in range(2):
        device, end, _ = connect(1, 1)
        set_key(device)
        peer = KeyedDevice(draw=iter(nonces[run:] + nonces).__next__)
        meet(device, end, peer)
        if run:
            end.write_frame(*recorded)
            assert device.take(1) == {}
            assert device.counts[UNAUTHENTICATED] == 3
        recorded = [peer.frame(66.0) for _ in range(3)]
        device.close()


def test_what_the_host_says_never_comes_back_as_an_answer(keyed):
    device, end, peer = keyed(1, 1)
    meet(device, end, peer)
    for k in range(3):
        device.give(66.0)
        device.take(k)
    said = end.frames(3)
    end.write_frame(*said)
    assert device.take(5) == {}
    assert device.counts[UNAUTHENTICATED] == 3
    device.take(RETRY + 2_000 * MS)  # silent: it calls
    call = end.frames()[-1]
    assert is_hello(call)
    end.write_frame(call)
    assert device.take(2_000 * MS + RETRY) == {}
    assert device.counts["corrupt"] == 1, "a hello of the wrong direction"


def test_a_restarted_device_gets_a_new_session_and_old_frames_stay_out(keyed):
    device, end, peer = keyed(timeout=500 * MS)
    meet(device, end, peer)
    end.write_frame(peer.frame(1.0))
    assert device.take(MS) == {0: 1.0}
    later = [peer.frame(60.0 + k) for k in range(3)]  # on their way, or recorded
    device.give(2.0)
    hear(end, peer)
    first = peer.session
    peer = KeyedDevice()  # it starts again
    end.write_frame(peer.answer())
    assert device.take(30 * MS) == {}
    now = 30 * MS
    for _ in range(2):
        end.write_frame(*hear(end, peer))
        device.take(now)
    assert peer.session is not None and first is not None and peer.is_safe
    assert peer.session.outgoing != first.outgoing
    end.write_frame(*later)
    assert device.take(now) == {}
    device.give(3.0)
    hear(end, peer)
    assert peer.heard[-1].values == (3.0,)
    end.write_frame(peer.frame(4.0))
    assert device.take(now) == {0: 4.0}


def test_replayed_answers_neither_begin_nor_end_a_session(keyed):
    device, end, peer = keyed()
    recorded = [peer.answer()]
    device.take(0)
    for _ in range(2):
        recorded += hear(end, peer)
        end.write_frame(recorded[-1])
        device.take(0)
    session = peer.session
    end.write_frame(peer.frame(1.0))
    assert device.take(MS) == {0: 1.0}
    for k in range(1, 5):
        end.write_frame(*recorded)
        now = k * 30 * MS
        device.take(now)
        end.write_frame(*hear(end, peer, 0))  # the device says that it has this session
        device.take(now)
        device.give(float(k))
        hear(end, peer)
        end.write_frame(peer.frame(2.0))
        assert device.take(now) == {0: 2.0}
    assert peer.session is session
    assert [frame.values for frame in peer.heard] == [(float(k),) for k in range(1, 5)]


def test_an_answer_to_another_host_does_not_end_a_handshake(keyed):
    """It is authentic, and anybody may have recorded it."""
    device, end, peer = keyed()
    device.take(0)
    end.write_frame(*hear(end, peer))
    device.take(0)
    end.write_frame(Hello(DEVICE, b"\7" * 16, b"\7" * 16).pack(), *hear(end, peer))
    device.take(0)
    device.give(1.0)
    hear(end, peer)
    assert [frame.values for frame in peer.heard] == [(1.0,)]


def test_a_device_restarts_between_its_answer_and_the_session(keyed):
    device, end, peer = keyed()
    device.take(0)
    end.write_frame(*hear(end, peer))
    device.take(0)
    peer.nonce = peer.draw()
    end.write_frame(*hear(end, peer))  # of what it has not drawn there is no session
    assert peer.session is None
    device.take(0)
    for k in range(1, 3):
        device.take(k * RETRY)
        end.write_frame(*hear(end, peer))
        device.take(k * RETRY)
    end.write_frame(*hear(end, peer, 0))
    device.take(3 * RETRY)
    assert peer.session is not None
    device.give(1.0)
    hear(end, peer)
    assert peer.heard[-1].values == (1.0,)


def test_a_device_that_has_not_begun_the_session_gets_no_values(keyed):
    """Its session with another host may have the same number of 16 bits by chance."""
    device, end, peer = keyed()
    device.take(0)
    nonce = Hello.parse(end.frames()[-1]).host
    number = int.from_bytes(nonce[:2], "little")
    for k in range(3):
        end.write_frame(Hello(DEVICE, nonce, peer.nonce, session=number).pack())
        device.take(k * RETRY)
        device.give(66.0)
    assert all(is_hello(data) for data in end.frames(3))


def test_hellos_that_are_lost_are_sent_again(keyed):
    device, end, peer = keyed()
    now = 0
    for lost in (True, False, True, False):
        now += RETRY
        device.take(now)
        answers = hear(end, peer) if not lost else end.frames() and []
        end.write_frame(*answers)
        device.take(now)
    end.write_frame(*hear(end, peer, 0))
    device.take(now)
    device.give(1.0)
    hear(end, peer)
    assert peer.heard[-1].values == (1.0,)


def test_no_live_value_leaves_before_there_is_a_session(keyed):
    device, end, _peer = keyed()
    for k in range(10):
        device.take(k * 10 * MS)
        device.give(66.0)
        device.make_safe()
    assert all(is_hello(data) for data in end.frames(2))


def test_a_host_that_is_silent_to_a_device_without_values_keeps_its_session(keyed):
    """An actuator that never sends: an answer each second is enough."""
    device, end, peer = keyed(0, 1)
    now = meet(device, end, peer)
    session = peer.session
    for _ in range(4):
        now += 1500 * MS
        device.take(now)
        end.write_frame(*hear(end, peer))
        device.take(now)
        device.give(1.0)
        hear(end, peer)
    assert peer.session is session and len(peer.heard) == 4


def test_frames_that_are_held_back_longer_and_longer_are_rejected(keyed):
    """Without gaps that would be a loss: frame k arrives at the time 2 k. 1 s is the bound."""
    device, end, peer = keyed(timeout=300 * MS)
    meet(device, end, peer)
    made, ages = [peer.frame(0.0)], []
    for k in range(1, 101):
        made.append(peer.frame(float(k)))
        if k % 2 == 0:
            end.write_frame(made[k // 2])
        if taken := device.take(50 * k * MS):
            ages.append(50 * (k - taken[0]))
        device.give(1.0)
        hear(end, peer)
    assert 950 <= max(ages) <= 1000 + 1000 / 6 + 2 * 50
    end.write_frame(peer.frame(7.0))
    assert device.take(5001 * MS) == {0: 7.0}


@pytest.mark.parametrize("late", [18, 40])
def test_a_long_way_is_no_loss_and_a_longer_timeout_is_the_bound(keyed, late):
    device, end, peer = keyed(timeout=(300 if late < 20 else 3000) * MS)
    meet(device, end, peer)
    made = []
    for k in range(100):
        made.append(peer.frame(float(k)))
        if k >= late:
            end.write_frame(made[k - late])
        assert device.take(50 * k * MS) == ({0: float(k - late)} if k >= late else {})
        device.give(1.0)
        hear(end, peer)


# This side is the device.


def answering(connect, ins=1, **options):
    outs = [channel("out0", 0, safe=-9.0)]
    device, end, _ = connect(ins, outs, flags=ANSWERS, timeout=50 * MS, **options)
    set_key(device)
    return device, end


def begin(device, end, host: KeyedHost, now: int, **options) -> Hello:
    """A host asks for a session; return the last answer."""
    end.write_frame(host.call())
    device.take(now)
    first = end.frames()[-1]
    end.write_frame(host.begin(first, **options))
    device.take(now)
    return Hello.parse(end.frames()[-1])


def test_as_a_device_it_answers_who_has_the_key(connect):
    device, end = answering(connect)
    host = KeyedHost()
    answer = begin(device, end, host, 0, number=40)
    assert host.session is not None
    assert answer.kind == DEVICE and answer.session == host.session.number
    end.write_frame(host.session.pack(1.5))
    assert device.take(MS) == {0: 1.5}
    device.give(3.0)
    frame = host.session.parse(end.frames()[-1])
    assert (frame.values, frame.flags, frame.echo) == ((3.0,), 0, 41)


def test_as_a_device_it_takes_no_session_from_a_record(connect):
    device, end = answering(connect)
    host = KeyedHost()
    end.write_frame(host.call())
    device.take(0)
    start = host.begin(end.frames()[-1])
    assert host.session is not None
    live = [host.session.pack(float(k)) for k in range(3)]
    end.write_frame(start, *live)
    assert device.take(0) == {0: 2.0}
    end.write_frame(host.session.pack(0.0, flags=SAFE))
    device.take(MS)  # the host has ended: another may come
    end.write_frame(start, *live)
    assert device.take(2 * MS) == {}
    device.give(5.0)
    assert host.session.parse(end.frames()[-1]).values == (-9.0,)
    device.take(200 * MS)
    end.write_frame(start, *live)
    assert device.take(200 * MS) == {}


def test_as_a_device_it_takes_no_frames_that_were_held_back(connect):
    """Its host has been silent for the timeout: the session is over, also one without a frame."""
    device, end = answering(connect)
    for k, nonce in enumerate((b"\x55" * 16, b"\x66" * 16, b"\x77" * 16)):
        host, now = KeyedHost(nonce=nonce), k * 1000 * MS
        begin(device, end, host, now)
        assert host.session is not None
        if k != 1:
            end.write_frame(host.session.pack(1.0))
            assert device.take(now) == {0: 1.0}
        end.write_frame(*(host.session.pack(66.0) for _ in range(3)))
        assert device.take(now + 60 * MS) == {}
        device.give(5.0)


def test_as_a_device_it_takes_no_frames_that_are_held_back_longer_and_longer(connect):
    device, end = answering(connect)
    host = KeyedHost()
    begin(device, end, host, 0)
    assert host.session is not None
    made, ages, echo = [host.session.pack(0.0)], [], 0
    for k in range(1, 151):
        made.append(host.session.pack(float(k), echo=echo))
        if k % 2 == 0:
            end.write_frame(made[k // 2])
        if taken := device.take(20 * k * MS):
            ages.append(20 * (k - taken[0]))
        elif k % 2 == 0:
            break
        device.give(5.0)
        echo = host.session.parse(end.frames()[-1]).sequence
    assert device.counts["stale"] == 1
    assert 950 <= max(ages) <= 1000 + 1000 / 6 + 2 * 20


def test_as_a_device_it_keeps_its_host_and_lets_it_begin_again(connect):
    device, end = answering(connect)
    host, other = KeyedHost(), KeyedHost(nonce=b"\x55" * 16)
    begin(device, end, host, 0)
    assert host.session is not None and other.session is None
    end.write_frame(host.session.pack(1.0))
    device.take(0)
    answer = begin(device, end, other, MS)
    assert answer.session == host.session.number, "it has a host"
    again = KeyedHost(nonce=b"\x66" * 16)
    answer = begin(device, end, again, 2 * MS, replaces=host.session.number)
    assert again.session is not None and answer.session == again.session.number
    device.give(5.0)
    safe = again.session.parse(end.frames()[-1])
    assert (safe.values, safe.flags) == ((-9.0,), SAFE), "until the host sends values"
    end.write_frame(host.session.pack(66.0))
    assert device.take(3 * MS) == {}
    end.write_frame(again.session.pack(2.0))
    assert device.take(3 * MS) == {0: 2.0}
    device.take(100 * MS)  # its host is gone
    answer = begin(device, end, KeyedHost(nonce=b"\x77" * 16), 101 * MS)
    assert answer.session == 0x7777


def test_only_lines_with_frames_have_keys():
    handle = engine().bl_mailbox_device_open(b"m", 1, 1)
    with Device(handle, 1, 1) as device:
        assert engine().bl_wire_set_key(handle, (ctypes.c_uint8 * 32)()) != OK
        assert "`m` cannot have a key" in device.why


def test_random_damage_is_never_accepted(keyed):
    """All of it at once, with the right frames between: these are accepted, each once."""
    device, end, peer = keyed(1, 1)
    now = meet(device, end, peer)
    draw, taken, expected = random.Random(3), [peer.frame(0.0)], 0.0
    end.write_frame(*taken)
    device.take(now)
    for k in range(60):
        good = peer.frame(float(k))
        wrong = bytearray(draw.choice([good, *taken]))
        wrong[draw.randrange(len(wrong))] ^= draw.randrange(1, 256)
        cut = good[: draw.randrange(1, len(good))]
        forged = sign(draw.randbytes(32), good[:-16])
        end.write_frame(bytes(wrong), draw.choice(taken), cut, forged)
        assert device.take(now) == {}
        if draw.random() < 0.5:
            end.write_frame(good)
            taken.append(good)
            expected = float(k)
            assert device.take(now) == {0: expected}
    assert device.values[0] == expected
