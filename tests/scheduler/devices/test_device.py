"""What all devices share, with a driver that does what the test says."""

import ctypes
import errno
import math

import numpy as np
import pytest

from biella.scheduler.engine._library import contract

from .native import (
    AGE,
    ALIVE,
    DELAY,
    ERROR_ARGUMENT,
    ERROR_BLOCK,
    HOLD,
    MS,
    OK,
    SAFE,
    SEND_SAFE,
    STOP,
    Device,
    Script,
    channel,
)

pytestmark = pytest.mark.engine


def make(ins=1, outs=0, **options):
    script = Script()
    many, few = (n if isinstance(n, int) else len(n) for n in (ins, outs))
    return script, Device(script.open(many, few), ins, outs, **options)


def test_values_are_scaled_both_ways():
    ins = [channel("torque", 3, scale=0.5, offset=-1.0), channel("spare"), channel("angle", 7)]
    script, device = make(ins, [channel("speed", 0, scale=0.25, offset=2.0), channel("spare")])
    with device:
        script.frames = [(8.0, 99.0, -2.0)]
        assert device.take(0) == {3: 3.0, 7: -2.0}
        assert device.give(3.0) == OK
        assert script.sent == [(1, 0, [4.0, 0.0])]


def test_the_newest_frame_wins_and_values_enter_only_when_fresh():
    script, device = make()
    with device:
        assert device.take(0) == {}
        script.frames = [(1.0,), (2.0,)]
        assert device.take(1) == {0: 2.0}
        assert device.take(2) == {}
        assert device.counts == {"frames": 2}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e308])
def test_what_is_not_finite_never_enters(bad):
    script, device = make([channel("a", 0), channel("b", 1, scale=10.0)])
    with device:
        script.frames = [(1.0, bad)]
        assert device.take(0) == {}
        assert device.values[ALIVE] == 0.0
        assert device.counts == {"corrupt": 1}


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_never_leaves(bad):
    script, device = make(0, [channel("a", 0), channel("speed", 1)])
    with device:
        assert device.give(1.0, bad) == ERROR_BLOCK
        assert script.sent == []
        assert device.why.startswith("device `board`, channel `speed` (to it): ")
        assert device.why.endswith("is not a finite number")


@pytest.mark.parametrize("value, limit", [(41.5, 40.0), (-13.0, -12.0)])
def test_a_value_beyond_its_limits_ends_the_run_or_is_clamped(value, limit):
    for saturates in (False, True):
        torque = channel("torque", 0, limits=(-12.0, 40.0), saturates=saturates)
        script, device = make([channel("first", 1), torque], [torque])
        with device:
            script.frames = [(1.0, value)]
            entered = device.take(0)
            assert entered == ({0: limit, 1: 1.0} if saturates else {})
            assert device.status == (OK if saturates else ERROR_BLOCK)
            if not saturates:
                text = f"device `board`, channel `torque` (from it): {value:g} exceeds its limit"
                assert device.why == f"{text} {limit:.0f}"
            assert device.give(value) == device.status
            assert script.sent == ([(1, 0, [limit])] if saturates else [])
            assert saturates or "(to it)" in device.why
            assert device.counts["violations"] == 2


def test_at_its_limits_a_value_is_fine():
    script, device = make([channel("torque", 0, limits=(-1.0, 1.0))])
    with device:
        for value in (-1.0, 1.0):
            script.frames = [(value,)]
            assert device.take(0) == {0: value}
        assert device.counts == {"frames": 2}


def test_at_its_limit_a_value_keeps_its_bits():
    """Of a zero, its sign."""
    script, device = make([], [channel("torque", 0, limits=(-1.0, 0.0))])
    with device:
        assert device.give(-0.0) == OK
        assert str(script.sent[-1][2]) == "[-0.0]"


@pytest.mark.parametrize("scale, offset", [(1.0, 0.0), (-0.01, 0.5)])
def test_what_float32_makes_of_a_limit_is_the_limit(scale, offset):
    """A board that saturates at 0.3 sends 0.30000001; what is really beyond still ends the run."""
    limits = (-0.3, 0.3)
    torque = channel("torque", 0, limits=limits, scale=scale, offset=offset)
    script, device = make([torque], [torque])
    with device:
        for limit in limits:
            raw = np.float32((limit - offset) / scale)
            nearest = [raw, np.nextafter(raw, np.float32(np.inf)), np.nextafter(raw, -raw)]
            beyond = [float(r) for r in nearest if abs(scale * float(r) + offset) > 0.3]
            script.frames = [(min(beyond, key=lambda r: abs(scale * r + offset)),)]
            assert device.take(0) == {0: limit}
            assert device.status == OK
            assert device.give(limit * (1 + 1e-12)) == OK
            assert script.sent[-1][2] == [(limit - offset) / scale]
        assert "violations" not in device.counts
        script.frames = [((0.300001 - offset) / scale,)]
        assert device.take(0) == {}
        assert device.status == ERROR_BLOCK


def test_age_counts_ticks_since_the_newest_frame():
    script, device = make()
    with device:
        ages = []
        for tick in range(6):
            if tick in (2, 5):
                script.frames = [(0.0,)]
            device.take(tick, tick)
            ages.append(device.values[AGE])
    assert ages == [1, 2, 0, 1, 2, 0]


def test_other_threads_see_how_a_device_is_and_how_old_its_newest_frame():
    script, device = make(1, 0, timeout=5 * MS)
    seen = []

    def look(now):
        age = ctypes.c_int64()
        state = device.library.bl_device_get_standing(device.handle, now, ctypes.byref(age))
        seen.append((state, age.value))

    with device:
        look(0)
        device.take(0)
        look(1 * MS)
        script.frames = [(1.0,)]
        device.take(2 * MS)
        look(4 * MS)
        look(1 * MS)  # a clock that another processor reads may be behind
        device.take(7 * MS)
        look(7 * MS)
        device.take(8 * MS)
        look(8 * MS)
        script.frames = [(1.0,)]
        device.library.bl_device_listen(device.handle, 9 * MS)  # while the run is paused
        look(9 * MS)
        script.error = errno.EIO
        device.take(10 * MS)
        look(10 * MS)
        look(-1)
    waiting, connected = contract.BL_STANDING_WAITING, contract.BL_STANDING_CONNECTED
    lost, gone = contract.BL_STANDING_LOST, contract.BL_STANDING_DISCONNECTED
    assert seen[:4] == [(waiting, -1), (waiting, -1), (connected, 2 * MS), (connected, 0)]
    assert seen[4:] == [
        (connected, 5 * MS), (lost, 6 * MS), (lost, 0), (gone, 1 * MS), (gone, seen[-1][1]),
    ]  # fmt: skip
    assert seen[-1][1] > 10 * MS  # by the clock of the computer


def test_delay_is_the_ticks_from_a_value_to_its_answer():
    script, device = make(1, 1)
    script.echo = 0
    with device:
        delays = []
        for tick in range(6):
            script.frames = [(0.0,)]
            script.echo = max(0, tick - 2)  # what tick - 3 sent, as frame tick - 2
            device.take(tick)
            delays.append(device.values.get(DELAY))
            device.give(1.0)
        assert [sequence for sequence, _, _ in script.sent] == [1, 2, 3, 4, 5, 6]
        assert delays == [None, None, None, 3, 3, 3]
        script.frames, script.echo = [(0.0,)], 77  # never sent
        device.take(6)
        assert DELAY not in device.entered


def test_delay_is_right_where_sequences_wrap_and_after_frames_without_a_tick():
    script, device = make(1, 1)
    script.echo = None
    with device:
        device.tick = 2**32 - 2
        for _ in range(4):
            script.frames = [(0.0,)]
            device.take(0)
            device.give(1.0)
        assert [sequence for sequence, _, _ in script.sent] == [2**32 - 1, 0, 1, 2]
        assert device.values[DELAY] == 1
        device.make_safe()
        device.make_safe()
        script.frames = [(0.0,)]
        device.take(0)
        device.give(1.0)
        script.frames = [(0.0,)]
        device.take(0)
        assert [sequence for sequence, _, _ in script.sent[4:]] == [3, 4, 5]
        assert device.entered[DELAY] == 1
        script.frames, script.echo = [(0.0,)], 2  # from before the frames without a tick
        device.take(0)
        assert DELAY not in device.entered


def test_delay_goes_on_after_25_days_at_1_khz():
    """Half of all sequence numbers: 2^31 ms."""
    script, device = make(1, 1)
    script.echo = None
    with device:
        device.tick = 2**31 - 4
        for _ in range(8):
            script.frames = [(0.0,)]
            device.take(0)
            assert device.entered.get(DELAY) == (1 if script.sent else None)
            device.give(1.0)
        assert script.sent[-1][0] > 2**31


def test_silence_becomes_loss_after_the_timeout():
    script, device = make(timeout=50 * MS)
    with device:
        script.frames = [(7.0,)]
        device.take(0)
        device.take(50 * MS)
        assert device.values[ALIVE] == 1.0
        device.take(50 * MS + 1)
        assert device.status == OK and device.values[ALIVE] == 0.0
        device.take(60 * MS)
        assert device.counts == {"frames": 1, "losses": 1}
        assert device.why == (
            "device `board` is lost: no frame for 0.05 s (timeout 0.05 s; rejected so far: "
            "0 corrupt, 0 stale)"
        )
        script.frames = [(8.0,)]
        assert device.take(70 * MS) == {0: 8.0}
        assert device.values[ALIVE] == 1.0
        assert device.counts == {"frames": 2, "losses": 1, "returns": 1}


def test_what_a_silent_device_has_said_last_is_part_of_the_reason():
    script, device = make(1, timeout=50 * MS)
    with device:
        script.frames = [(1.0,)]
        device.take(0)
        device.state.words = b"its door is open"
        device.take(60 * MS)
        assert device.why == (
            "device `board` is lost: no frame for 0.06 s (timeout 0.05 s; "
            "rejected so far: 0 corrupt, 0 stale): its door is open"
        )


def test_a_device_that_never_speaks_is_lost_too():
    _, device = make(timeout=50 * MS, on_loss=STOP)
    with device:
        device.take(10**12)
        assert device.status == OK
        device.take(10**12 + 51 * MS)
        assert device.status == ERROR_BLOCK
        assert "no frame since the start" in device.why


def test_without_a_timeout_silence_is_no_loss():
    _, device = make(on_loss=STOP)
    with device:
        for hour in range(3):
            device.take(hour * 3600 * 10**9)
            assert device.status == OK


@pytest.mark.parametrize("on_loss, values", [(STOP, {}), (HOLD, {}), (SAFE, {0: -3.0})])
def test_what_a_tick_gets_from_a_lost_device(on_loss, values):
    script, device = make([channel("torque", 0, safe=-3.0)], timeout=MS, on_loss=on_loss)
    with device:
        script.frames = [(5.0,)]
        device.take(0)
        for now in (2 * MS, 3 * MS):
            assert device.take(now) == values
            assert device.status == (ERROR_BLOCK if on_loss == STOP else OK)


def test_a_device_that_is_unplugged_is_lost_at_once_and_comes_back():
    script, device = make(1, 1)
    with device:
        script.frames = [(1.0,)]
        device.take(0)
        script.error = errno.EIO
        device.take(1)
        assert device.values[ALIVE] == 0.0 and device.status == OK
        assert device.why == (
            "device `board` is disconnected: it was unplugged, or its other end closed (EIO)"
        )
        assert device.give(0.0) == OK
        assert script.sent == []
        script.error = 0
        script.frames = [(2.0,)]
        assert device.take(2) == {}
        script.back = True
        assert device.take(3) == {0: 2.0}
        assert device.give(0.5) == OK
        assert script.sent == [(2, 0, [0.5])]
        assert device.counts == {
            "frames": 2, "sent": 1, "dropped": 1, "losses": 1, "returns": 1
        }  # fmt: skip


@pytest.mark.parametrize("on_loss, status", [(STOP, ERROR_BLOCK), (HOLD, OK)])
def test_a_device_found_gone_when_sending(on_loss, status):
    script, device = make(0, 1, on_loss=on_loss)
    with device:
        script.send_error = errno.ENXIO
        assert device.give(1.0) == status
        assert device.why == "device `board` is disconnected: it was unplugged (ENXIO)"
        assert device.counts == {"dropped": 1, "losses": 1}


def test_a_device_that_only_listens_is_back_as_soon_as_its_line_is():
    """Nothing is ever heard of it; where a heartbeat is expected, that has to come first."""
    for timeout, values in [(0, [5.0]), (50 * MS, [0.0])]:
        script, device = make(0, 1, timeout=timeout, on_loss=HOLD)
        with device:
            device.take(0)
            device.give(4.0)
            script.send_error = errno.EIO
            device.give(4.0)
            assert "is disconnected" in device.why and device.counts["losses"] == 1
            device.take(MS)
            device.give(4.0)
            script.send_error, script.back = 0, True
            device.take(2 * MS)
            device.give(5.0)
            assert script.sent[-1][2] == values
            assert device.counts.get("returns", 0) == (timeout == 0)


def test_a_full_line_drops_the_frame_and_the_run_goes_on():
    script, device = make(0, 1, on_loss=STOP)
    with device:
        script.send_error = errno.EAGAIN
        assert device.give(1.0) == OK
        script.send_error = 0
        assert device.give(2.0) == OK
        assert script.sent == [(2, 0, [2.0])]
        assert device.counts == {"sent": 1, "dropped": 1}


def test_a_value_that_the_wire_cannot_hold_is_named():
    script, device = make(0, [channel("small", 0), channel("large", 1, scale=0.5)])
    with device:
        script.send_error = errno.ERANGE
        assert device.give(1.0, 1e39) == ERROR_BLOCK
        assert device.why == (
            "device `board`, channel `large` (to it): 1e+39 exceeds the range of the wire format"
        )


def test_safe_values_go_out_scaled_each_as_a_new_frame():
    script, device = make(0, [channel("torque", 0, scale=2.0, safe=3.0), channel("brake", 1)])
    with device:
        device.give(10.0, 1.0)
        for _ in range(3):
            device.make_safe()
        again = SEND_SAFE | contract.BL_SEND_AGAIN
        flags = [SEND_SAFE, again, again]
        assert script.sent[1:] == [(k + 2, flags[k], [1.5, 0.0]) for k in range(3)]
        device.give(10.0, 1.0)
        assert script.sent[-1][:2] == (5, 0)


def test_trips_of_the_devices_watchdog_are_counted_once_each():
    script, device = make()
    with device:
        for tripped in (False, True, True, False, True):
            script.tripped = tripped
            script.frames = [(0.0,)]
            device.take(0)
        assert device.counts == {"frames": 5, "trips": 2}


@pytest.mark.parametrize(
    "change, words",
    [
        ({"scale": 0.0}, "scale must be a number other than 0"),
        ({"scale": math.nan}, "scale must be a number other than 0"),
        ({"offset": math.inf}, "offset must be finite"),
        ({"limits": (2.0, 1.0)}, "lower limit must not be above the upper one"),
        ({"limits": (math.nan, 1.0)}, "lower limit must not be above the upper one"),
        ({"safe": 5.0, "limits": (0.0, 1.0)}, "safe value must be finite and lie within"),
        ({"safe": math.nan}, "safe value must be finite"),
        (
            {"safe": 1e30, "scale": 1e-30},
            "scaled safe value exceeds the range of the wire format",
        ),
        ({"slot": -2}, "not connected to a value"),
    ],
)
def test_channels_that_make_no_sense_are_refused(change, words):
    bad = channel("torque", **{"slot": 0, **change})
    for ins, outs in (([bad], 1), (1, [bad])):
        _, device = make(ins, outs)
        with device:
            assert device.set_status == ERROR_ARGUMENT
            assert device.why.startswith("device `board`, channel `torque`: ")
            assert words in device.why


def test_opening_and_closing():
    script, device = make()
    device.close()
    assert script.closed == 1
    device.library.bl_device_close(None)
    assert Script().open(-1, 0) is None
    assert Script().open(0, 4097) is None
    _, device = make(0, 0)
    with device:
        assert device.take(0) == {} and device.give() == OK
        assert device.library.bl_device_set_loss(device.handle, -1, STOP) == ERROR_ARGUMENT
        assert device.library.bl_device_set_loss(device.handle, 1, 3) == ERROR_ARGUMENT


def test_sequences_skip_at_most_half_of_all_numbers():
    """More would be a step back for the peer: then the next number is sent."""
    for skipped, sent in ((2**31 - 1, 2**31 + 1), (2**31, 2)):
        script, device = make(0, 1)
        with device:
            device.give(1.0)
            device.tick += skipped
            device.give(1.0)
            assert [sequence for sequence, _, _ in script.sent] == [1, sent]
