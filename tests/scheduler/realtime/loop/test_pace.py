"""The real-time loop: overruns exactly, on a clock that is a script; what enters, what leaves."""

import ctypes
import itertools
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biella import Diagram, simulate
from biella.blocks import Compare, Gain, Port, Stop, Sum, UnitDelay, python_block
from biella.blocks.authoring import ExternalInput
from biella.scheduler.engine._engine import Instance
from biella.scheduler.engine._library import contract, library
from biella.scheduler.realtime.loop._pace import (
    CLOCK_DEVICE,
    CLOCK_FREE,
    CLOCK_WALL,
    END_CANCEL,
    END_DEVICE,
    END_ERROR,
    END_OVERRUN,
    END_STOP,
    END_TIME,
    ENTER_OVERRIDE,
    ENTER_RELEASE,
    ENTER_SET,
    ENTRY,
    FROM_LIVE,
    OVERRUN_POLICIES,
    Histogram,
    Pace,
    Pipe,
    Probe,
)

pytestmark = pytest.mark.engine

PERIOD = 1_000_000  # ns of a step of 1 ms


def counter(step=1e-3):
    """y = k at tick k."""
    d = Diagram("counter", step=step)
    total = d.add(Sum("++"), name="total")
    before = d.add(UnitDelay(initial=-1.0), name="before")
    one_more = d.add(Gain(1.0), name="one_more")
    d.connect(d.input("increment", default=1.0), one_more)
    d.connect(one_more, total["u1"])
    d.connect(before, total["u2"])
    d.connect(total, before)
    return d


# --- overruns ---


def model(policy, wake, execution, ticks, warmup_ticks, max_overruns, consecutive_overruns_allowed):
    """What the documentation says of overruns, in as few words as Python allows."""
    now, origin, number = 0, 0, 0
    overruns, row, skipped, late = [], 0, 0, []
    for tick in range(ticks):
        deadline = origin + number * PERIOD
        if now < deadline:
            now = deadline + wake[tick]
        late.append(now - deadline)
        now += execution[tick]
        number += 1
        following = origin + number * PERIOD
        if now <= following:
            row = 0
            continue
        if tick >= warmup_ticks:
            overruns.append(tick)
            missed = -(-(now - following) // PERIOD)  # deadlines before its end
            too_many = 0 <= consecutive_overruns_allowed < row + missed
            if 0 <= max_overruns < len(overruns) or too_many:
                return late, overruns, skipped, END_OVERRUN
            row += missed if policy == "skip" else 1
        if policy == "slip":
            origin += now - following
        if policy == "skip":
            while origin + number * PERIOD < now:
                number += 1
                skipped += 1
    return late, overruns, skipped, END_TIME


def run_script(policy, wake, execution, ticks, warmup_ticks=0, max_overruns=-1, in_a_row=-1):
    pace = Pace()
    pace.script(wake, execution)
    pace.overrun = OVERRUN_POLICIES.index(policy)
    pace.warmup_ticks, pace.max_overruns, pace.max_consecutive_overruns = (
        warmup_ticks,
        max_overruns,
        in_a_row,
    )
    d = counter()
    clock = ExternalInput(outputs=[Port(name) for name in ("lateness", "execution", "overruns")])
    plan = d.compile(extra={"clock": clock})
    first = plan.parameters["clock.received"].slot
    for k in range(3):
        pace.timing[k] = first + k
    slots = [plan.find_signal(f"clock.{name}").slot for name in ("lateness", "execution")]
    with Instance(plan) as instance, Pipe(np.dtype((np.float64, 3)), 1000) as rows:
        instance.initialize()
        pace.record(rows, slots, 1)
        assert pace.run(instance, ticks) == 0
        assert instance.tick == pace.done
        return pace, rows.pull()


durations = st.lists(
    st.one_of(st.integers(0, 3 * PERIOD), st.sampled_from([0, PERIOD, 2 * PERIOD])),
    min_size=20,
    max_size=20,
)


@given(
    st.sampled_from(OVERRUN_POLICIES),
    durations,
    durations,
    st.integers(0, 5),
    st.integers(-1, 4),
    st.integers(-1, 3),
)
def test_every_policy_does_what_is_said_of_it(
    policy, wake, execution, warmup_ticks, max_overruns, in_a_row
):
    pace, rows = run_script(policy, wake, execution, 20, warmup_ticks, max_overruns, in_a_row)
    late, overruns, skipped, end = model(
        policy, wake, execution, 20, warmup_ticks, max_overruns, in_a_row
    )
    assert pace.end == end
    assert pace.done == len(late)
    assert pace.overruns == len(overruns)
    assert [tick for tick, _ in pace.listed_overruns if tick >= warmup_ticks] == overruns
    assert pace.skipped == skipped
    assert rows[: len(late), 1].tolist() == [1e-9 * value for value in late]
    assert rows[1 : len(late), 2].tolist() == [1e-9 * e for e in execution[: len(late) - 1]]
    assert pace.lateness.most == max(late) and pace.lateness.least == min(late)
    assert pace.execution.sum == sum(execution[: len(late)])


def test_policies_on_one_long_tick():
    """Tick 1 takes 2.5 periods instead of a tenth: by hand."""
    execution = [PERIOD // 10] * 8
    execution[1] = 5 * PERIOD // 2
    late = {
        "skip": [0, 0, 0, 0, 0, 0, 0, 0],  # next begins at 4, phase kept
        "catch_up": [0, 0, 1.5, 0.6, 0, 0, 0, 0],  # at 3.5 instead of 2, at 3.6 instead of 3
        "slip": [0, 0, 0, 0, 0, 0, 0, 0],  # all later deadlines move by 1.5
    }
    for policy, expected in late.items():
        pace, rows = run_script(policy, [0] * 8, execution, 8)
        np.testing.assert_allclose(rows[:8, 1], 1e-3 * np.array(expected), atol=1e-12)
        assert pace.overruns == {"skip": 1, "catch_up": 2, "slip": 1}[policy]
        assert pace.skipped == (2 if policy == "skip" else 0)
    pace, _ = run_script("stop", [0] * 8, execution, 8, max_overruns=0)
    assert pace.end == END_OVERRUN and pace.done == 2
    assert "tick 1 ended 1.5 ms after the deadline" in pace.reason


def test_ending_exactly_at_the_next_deadline_is_no_overrun():
    pace, _ = run_script("stop", [0] * 5, [PERIOD] * 5, 5, max_overruns=0)
    assert pace.end == END_TIME and pace.overruns == 0


def test_on_the_wall_clock_ticks_are_neither_lost_nor_early():
    """By counting only: a loaded machine may be late, never early."""
    pace = Pace()
    pace.overrun = OVERRUN_POLICIES.index("catch_up")
    with Instance(counter().compile()) as instance:
        instance.initialize()
        assert pace.run(instance, 100) == 0
        assert instance.tick == pace.done == 100
        assert instance.get("total") == 100.0
    assert pace.lateness.count == pace.execution.count == 100
    assert pace.lateness.least >= 0
    assert pace.end == END_TIME


def test_waiting_for_a_deadline_takes_next_to_no_processor_time():
    """The thread sleeps until shortly before it."""
    with Instance(counter(step=0.3).compile()) as instance:
        instance.initialize()
        pace = Pace()
        before = time.thread_time()
        assert pace.run(instance, 2) == 0
        assert time.thread_time() - before < 0.05
        assert pace.end == END_TIME and pace.done == 2


def test_a_factor_makes_deadlines_closer():
    pace = Pace()
    pace.script([0] * 4, [PERIOD // 2] * 4)
    pace.factor = 4.0
    with Instance(counter().compile()) as instance:
        instance.initialize()
        pace.run(instance, 4)
    assert pace.overruns == 4


def test_a_bad_pace_is_refused():
    with Instance(counter().compile()) as instance:
        instance.initialize()
        for change in (
            {"factor": -1.0},
            {"factor": float("nan")},
            {"clock": 7},
            {"clock": CLOCK_DEVICE},
        ):
            pace = Pace()
            for name, value in change.items():
                setattr(pace, name, value)
            assert pace.run(instance, 1) == -9
            assert pace.end == END_ERROR and pace.reason


def test_without_deadlines_nothing_is_lost_where_the_reader_is_slow():
    pace = Pace()
    pace.clock = CLOCK_FREE
    with Instance(counter().compile()) as instance, Pipe(np.dtype((np.float64, 2)), 4) as rows:
        instance.initialize()
        pace.record(rows, [instance.plan.find_signal("total").slot], 1)
        runner = threading.Thread(target=pace.run, args=(instance, 100))
        runner.start()
        got: list[float] = []
        while len(got) < 101:
            got += rows.pull()[:, 1].tolist()
        runner.join(60)
        assert got == list(range(101)) and pace.rows_lost == 0


# --- histograms and pipes ---


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=300))
def test_histograms_agree_with_numpy_within_a_bin(values):
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    assert histogram.count == len(values)
    assert (histogram.least, histogram.most) == (min(values), max(values))
    assert histogram.sum == sum(values)
    for part in (0.5, 0.99, 0.999):
        exact = np.quantile(values, part, method="inverted_cdf")
        assert abs(histogram.percentile(part) - exact) <= exact / 32 + 1e-9


def test_a_copy_of_a_histogram_that_a_run_adds_to_is_of_one_instant():
    pace, counts = Pace(), [0]
    pace.clock = CLOCK_FREE
    with Instance(counter().compile()) as instance:
        instance.initialize()
        runner = threading.Thread(target=pace.run, args=(instance, -1))
        runner.start()
        try:
            for _ in range(3000):
                copy = Histogram.of(pace.execution)
                assert sum(copy.bins) == copy.count
                assert copy.least * copy.count <= copy.sum <= copy.most * copy.count
                counts.append(copy.count)
        finally:
            pace.cancel = 1
            runner.join(60)
    assert not runner.is_alive()
    assert counts == sorted(counts) and counts[-1] > 0
    assert counts[-1] <= pace.execution.count == pace.done


def test_a_pipe_keeps_order_and_takes_all_or_nothing():
    with Pipe(np.int64, 5) as pipe:
        assert pipe.push(np.arange(3))
        assert not pipe.push(np.arange(3))
        assert pipe.push(np.array([3, 4]))
        assert pipe.pull().tolist() == [0, 1, 2, 3, 4]
        for start in range(0, 60, 4):  # around the ring
            assert pipe.push(np.arange(start, start + 4))
            assert pipe.pull().tolist() == list(range(start, start + 4))
        assert pipe.pull().tolist() == []


def test_a_pipe_between_two_threads_loses_nothing():
    with Pipe(np.int64, 64) as pipe:
        total = 20_000

        def write():
            sent = 0
            while sent < total:
                count = min(7, total - sent)
                if pipe.push(np.arange(sent, sent + count)):
                    sent += count

        writer = threading.Thread(target=write)
        writer.start()
        got: list[float] = []
        while len(got) < total:
            got += pipe.pull().tolist()
        writer.join(60)
        assert got == list(range(total))


# --- the input latch ---


def entries(*items):
    return np.array(list(items), dtype=ENTRY)


def run_input_latch(
    d, ticks, commands=(), input_log=None, record=("total",), capacity=1000, every=1
):
    """Run as fast as possible with commands; return rows, journal, the pace."""
    plan = d.compile() if isinstance(d, Diagram) else d
    slots = [plan.find_signal(path).slot for path in record]
    pace = Pace()
    pace.script([0], [0])
    with (
        Instance(plan) as instance,
        Probe(instance, profile=False),
        Pipe(ENTRY, 1000) as inbox,
        Pipe(ENTRY, capacity) as outbox,
        Pipe(np.dtype((np.float64, 1 + len(slots))), capacity) as rows,
    ):
        instance.initialize()
        for group in commands:
            assert inbox.push(group)
        pace.commands, pace.input_log = inbox.handle, outbox.handle
        if input_log is not None:
            pace.replay_from(input_log)
            pace.commands = None
        pace.record(rows, slots, every)
        status = pace.run(instance, ticks)
        assert status in (0, 1), pace.reason
        return rows.pull(), outbox.pull(), pace


def test_a_command_enters_at_its_tick_and_is_replayed_bit_for_bit():
    plan = counter().compile()
    gain = plan.parameters["one_more.k"].slot
    total = plan.find_signal("total").slot
    commands = [
        entries((3, gain, 0.1, ENTER_SET, FROM_LIVE)),
        entries((5, total, 7.0, ENTER_OVERRIDE, FROM_LIVE)),
        entries((8, total, 0.0, ENTER_RELEASE, FROM_LIVE)),
    ]
    rows, input_log, pace = run_input_latch(plan, 10, commands)
    assert rows[:, 0].tolist() == list(range(11))
    by_hand = [0, 1, 2, 2.1, 2.2, 7, 7, 7, 7.1]
    np.testing.assert_allclose(rows[:9, 1], by_hand, rtol=1e-12)
    assert [(e["tick"], e["slot"], e["kind"]) for e in input_log] == [
        (3, gain, ENTER_SET),
        (5, total, ENTER_OVERRIDE),
        (8, total, ENTER_RELEASE),
    ]
    again, _, _ = run_input_latch(plan, 10, input_log=input_log)
    assert again.tobytes() == rows.tobytes()
    assert pace.entries_rejected == 0


def test_what_changes_nothing_is_not_logged_and_what_does_not_exist_is_rejected():
    plan = counter().compile()
    gain = plan.parameters["one_more.k"].slot
    commands = [
        entries((0, gain, 1.0, ENTER_SET, FROM_LIVE)),
        entries((0, -1, 1.0, ENTER_SET, FROM_LIVE)),
        entries((0, 10**9, 1.0, ENTER_SET, FROM_LIVE)),
        entries((0, plan.find_signal("total").slot, 1.0, ENTER_SET, FROM_LIVE)),
        entries((0, gain, 1.0, ENTER_OVERRIDE, FROM_LIVE)),
        entries((0, 10**9, 1.0, ENTER_OVERRIDE, FROM_LIVE)),
        entries((0, 10**9, 1.0, ENTER_RELEASE, FROM_LIVE)),
    ]
    rows, input_log, pace = run_input_latch(plan, 3, commands)
    assert rows[:, 1].tolist() == [0, 1, 2, 3]
    assert pace.entries_rejected == 5
    assert len(input_log) == 1  # the release, which does no harm


def test_full_pipes_are_counted_and_their_ticks_reported():
    rows, _, pace = run_input_latch(counter(), 20, capacity=8)
    assert rows[:, 0].tolist() == list(range(8))
    assert pace.rows_lost == 13
    assert pace.listed_gaps == [("rows", 8, 20)]
    rows, _, pace = run_input_latch(counter(), 20, capacity=4, every=2)
    assert rows[:, 0].tolist() == [0, 2, 4, 6]
    assert pace.listed_gaps == [("rows", 8, 20)]
    plan = counter().compile()
    gain = plan.parameters["one_more.k"].slot
    commands = [entries((k, gain, k + 2.0, ENTER_SET, FROM_LIVE)) for k in range(12)]
    _, input_log, pace = run_input_latch(plan, 20, commands, capacity=5)
    assert len(input_log) == 5 and pace.entries_lost == 7
    assert ("input_log", 5, 11) in pace.listed_gaps


def test_a_stop_block_ends_a_realtime_run_as_it_ends_any_other():
    d = counter()
    above = d.add(Compare(">", 5.5), name="above")
    d.connect(d["total"], above)
    d.connect(above, d.add(Stop(), name="stop"))
    rows, _, pace = run_input_latch(d, 20)
    expected = simulate(d, 0.02)
    assert rows[:, 1].tolist() == expected["total"].tolist()
    assert pace.end == END_STOP


@pytest.mark.parametrize("profile", [False, True])
def test_a_probe_leaves_the_engine_as_it_was(profile):
    with Instance(counter().compile()) as instance:
        instance.initialize()
        with Probe(instance, profile=profile) as probe:
            pace = Pace()
            pace.clock = CLOCK_FREE
            pace.run(instance, 10)
            times = probe.times()
            assert set(times) == ({"total", "before", "one_more"} if profile else set())
            assert all(histogram.count == 10 for histogram in times.values())
        assert instance.run(5) == (5, False)
        assert instance.get("total") == 15.0


# --- devices: a driver whose frames are a list ---

SAFE_FLAG = contract.BL_SEND_SAFE


class FakeDevice:
    """Gives `frames`, one for each call of receive: None, or (sequence, value); notes what it got.

    A number instead of a frame is an errno: the device is gone.
    """

    def __init__(self, frames, slot_in, slot_out, *, timeout=0, on_loss=0, limits=(-1e9, 1e9)):
        self.frames, self.sent = iter(frames), []
        lib = library()
        calls = {
            name: kind(getattr(self, name))
            for name, kind, *_ in contract.bl_driver._fields_
            if name not in ("name", "share", "link")
        }
        self.driver = contract.bl_driver(b"fake", **calls)
        self.handle = lib.bl_device_open(ctypes.byref(self.driver), None, b"fake", 1, 1)
        ins = contract.bl_channel(b"in", slot_in, 1.0, 0.0, *limits, 0.0, 0)
        outs = contract.bl_channel(b"out", slot_out, 1.0, 0.0, *limits, -7.0, 0)
        assert lib.bl_device_set_channels(self.handle, ctypes.byref(ins), ctypes.byref(outs)) == 0
        assert lib.bl_device_set_loss(self.handle, timeout, on_loss) == 0
        self.place = contract.bl_device.from_address(self.handle)

    def use_slots(self, age, alive, delay):
        library().bl_device_set_slots(self.handle, age, alive, delay)

    def receive(self, handle, now):
        frame = next(self.frames, None)
        if frame is None:
            return 0
        if isinstance(frame, int):
            return -frame
        self.place.sequence, self.place.received[0] = frame
        self.place.echo = self.sent[-1][0] if self.sent else 0
        return 1

    def send(self, handle, sequence, flags):
        self.sent.append((sequence, self.place.sending[0], flags))
        return 0

    def wait(self, handle, deadline):
        return 0

    def reopen(self, handle):
        return -1

    def close(self, handle):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        library().bl_device_close(self.handle)

    @property
    def safe_sent(self):
        return [value for _, value, flags in self.sent if flags & SAFE_FLAG]


def device_plan():
    """board.y comes from a device, and 2 y + 1 goes to it."""
    d = Diagram("loop", step=1e-3)
    names = [Port("y"), Port("age"), Port("alive"), Port("delay")]
    board = d.add(ExternalInput(outputs=names), name="board")
    double = d.add(Gain(2.0), name="double")
    d.connect(board["y"], double)
    for name in ("age", "alive", "delay"):
        d.connect(board[name], d.add(Gain(1.0), name=f"the_{name}"))
    return d.compile()


RECORDED = ("board.y", "board.age", "double")


def run_device(
    frames, ticks, *, clock="script", commands=(), execution=(0,), max_stall=0, **options
):
    plan = device_plan()
    first = plan.parameters["board.received"].slot
    out = plan.find_signal("double").slot
    pace = Pace()
    if clock == "script":
        pace.script([0] * len(execution), list(execution))
        pace.overrun = OVERRUN_POLICIES.index("skip")
    else:
        pace.clock, pace.pacer = CLOCK_DEVICE, 0
    pace.max_stall, pace.ends_if_latched = max_stall, 1
    slots = [plan.find_signal(path).slot for path in RECORDED]
    with (
        Instance(plan) as instance,
        FakeDevice(frames, first, out, **options) as device,
        Probe(instance, profile=False),
        Pipe(ENTRY, 1000) as input_log,
        Pipe(ENTRY, 100) as inbox,
        Pipe(np.dtype((np.float64, 4)), 1000) as rows,
    ):
        device.use_slots(first + 1, first + 2, first + 3)
        instance.initialize()
        for group in commands:
            inbox.push(group)
        pace.use_devices([device.handle])
        pace.commands, pace.input_log = inbox.handle, input_log.handle
        pace.record(rows, slots, 1)
        status = pace.run(instance, ticks)
        return pace, rows.pull(), input_log.pull(), device, status


def replay_device(input_log, ticks):
    plan = device_plan()
    return run_input_latch(plan, ticks, input_log=input_log, record=RECORDED)[0]


def test_a_frame_is_used_at_the_tick_it_comes_for_and_answered_at_its_end():
    frames = [(1, 1.0), (2, 2.0), None, (3, 4.0)]
    _, rows, input_log, device, _ = run_device(frames, 5)
    assert rows[:, 1].tolist() == [1, 2, 2, 4, 4, 4]
    assert rows[:5, 2].tolist() == [0, 0, 1, 0, 1]
    ticks = [(sequence, value) for sequence, value, flags in device.sent if not flags]
    assert ticks == [(1, 2.0), (2, 4.0), (3, 4.0), (4, 8.0), (5, 8.0)]
    assert set(device.safe_sent) == {-7.0} and len(device.safe_sent) >= 3
    assert replay_device(input_log, 5).tobytes() == rows.tobytes()


def test_a_long_tick_is_no_silence_of_the_device():
    """Half of the timeout is left for an answer after it, but no more."""
    options = {"timeout": 8 * PERIOD, "execution": [0, 900 * PERIOD, 0]}
    answers = [(1, 1.0), (2, 2.0), None, None, None, None, (3, 3.0)]
    pace, rows, *_ = run_device(answers, 7, **options)
    assert pace.end == END_TIME and rows[-1, 1] == 3.0
    pace, *_ = run_device(answers[:2], 20, **options)
    assert pace.end == END_DEVICE and "no frame for 0.905 s" in pace.reason
    # Where no tick keeps up, a device that is silent is lost none the less.
    pace, *_ = run_device(answers[:1], 20, timeout=8 * PERIOD, execution=[9 * PERIOD] * 20)
    assert pace.end == END_DEVICE


@pytest.mark.parametrize(("longest", "end"), [(4, END_TIME), (6, END_OVERRUN)])
def test_a_stall_is_measured_by_the_clock_of_the_run(longest, end):
    frames = [(k, 1.0) for k in range(1, 11)]
    execution = [0, 0, longest * PERIOD, 0, 0]
    pace, *_ = run_device(frames, 5, execution=execution, max_stall=5 * PERIOD)
    assert pace.end == end
    assert ("took 0.006 s (max_stall 0.005 s)" in pace.reason) == (end == END_OVERRUN)


@pytest.mark.parametrize(
    ("frames", "options", "words"),
    [
        ([(1, 1.0), (2, 1e10)], {}, "exceeds its limit"),
        ([(1, 1.0), (2, 6e8)], {}, "(to it): 1.2e+09 exceeds its limit"),
        ([(1, 1.0), 5], {}, "disconnected"),
        ([(1, 1.0)], {"timeout": 2 * PERIOD}, "no frame for"),
    ],
)
def test_whatever_a_device_ends_the_run_with_safe_values_are_the_last_sent(frames, options, words):
    pace, rows, input_log, device, status = run_device(frames, 20, **options)
    assert status == 0 and pace.end == END_DEVICE and words in pace.reason
    if words != "disconnected":
        assert set(device.safe_sent) == {-7.0} and len(device.safe_sent) >= 3
        assert all(flags & SAFE_FLAG for _, _, flags in device.sent[-3:])
    sequences = [sequence for sequence, _, _ in device.sent]
    assert sequences == sorted(set(sequences)), "an old number would not be believed"
    assert pace.done < 20 and pace.lost_device == 0
    assert replay_device(input_log, pace.done).tobytes() == rows.tobytes()


def test_a_device_that_is_lost_may_be_held():
    frames = [(1, 3.0), 5, *[None] * 10]
    pace, rows, *_ = run_device(frames, 6, on_loss=1)
    assert pace.end == END_TIME
    assert rows[:, 1].tolist() == [3.0] * 7
    assert rows[:6, 2].tolist() == [0, 1, 2, 3, 4, 5]


def test_when_a_device_is_the_clock_its_sequence_is_the_time():
    """First 40; 41; then 44: two ticks are made up for with what there was; then 45, 46."""
    frames = [None, (40, 1.0), None, (41, 2.0), (44, 5.0), (45, 6.0), (46, 7.0)]
    pace, rows, input_log, device, _ = run_device(frames, 7, clock="device")
    assert pace.end == END_TIME
    assert rows[:7, 1].tolist() == [1, 2, 2, 2, 5, 6, 7]
    assert rows[:7, 2].tolist() == [0, 0, 1, 2, 0, 0, 0]
    assert pace.listed_gaps == [("frames", 2, 3)]
    sent = [(sequence, value) for sequence, value, flags in device.sent if not flags]
    assert sent == [(1, 2.0), (2, 4.0), (5, 10.0), (6, 12.0), (7, 14.0)]
    assert replay_device(input_log, 7).tobytes() == rows.tobytes()


def test_the_delay_of_a_frame_that_is_kept_for_a_later_tick_counts_the_ticks_before_it():
    """44 answers what was sent at tick 1, and is used at tick 4: 3 ticks later."""
    frames = [(40, 1.0), (41, 2.0), (44, 5.0), (45, 6.0), (46, 7.0)]
    _, _, input_log, _, _ = run_device(frames, 7, clock="device")
    slot = device_plan().parameters["board.received"].slot + 3
    entries = input_log[input_log["slot"] == slot]
    assert dict(zip(entries["tick"].tolist(), entries["value"].tolist(), strict=True)) == {
        1: 1.0, 4: 3.0, 5: 1.0,
    }  # fmt: skip


def test_entries_that_do_not_fit_the_pipe_are_counted_with_their_ticks():
    frames = [(k, float(k)) for k in range(1, 40)]
    plan = device_plan()
    first = plan.parameters["board.received"].slot
    pace = Pace()
    pace.script([0], [0])
    with (
        Instance(plan) as instance,
        FakeDevice(frames, first, plan.find_signal("double").slot) as device,
        Pipe(ENTRY, 10) as input_log,
    ):
        instance.initialize()
        pace.use_devices([device.handle])
        pace.input_log = input_log.handle
        assert pace.run(instance, 30) == 0
        kept = input_log.pull()
    assert kept["tick"].tolist() == list(range(10))
    assert pace.entries_lost == 20
    assert pace.listed_gaps == [("input_log", 10, 29)]


def test_a_pacing_device_that_starts_anew_makes_no_gap():
    frames = [(4_000_000_000, 1.0), (4_000_000_001, 2.0), (1, 3.0), (2, 4.0)]
    pace, rows, *_ = run_device(frames, 4, clock="device")
    assert rows[:4, 1].tolist() == [1, 2, 3, 4]
    assert pace.gap_count == 0
    wrapped = [(2**32 - 1, 1.0), (0, 2.0), (1, 3.0)]
    pace, rows, *_ = run_device(wrapped, 3, clock="device")
    assert rows[:3, 1].tolist() == [1, 2, 3] and pace.gap_count == 0


def test_a_silent_pacing_device_is_lost():
    pace, *_ = run_device([(1, 1.0)], 5, clock="device", timeout=30 * PERIOD)
    assert pace.end == END_DEVICE and "no frame for" in pace.reason
    assert pace.done == 1


def test_cancel_and_pause():
    plan = device_plan()
    first = plan.parameters["board.received"].slot
    pace = Pace()
    frames = ((k, float(k)) for k in itertools.count(1))
    with (
        Instance(plan) as instance,
        FakeDevice(frames, first, plan.find_signal("double").slot) as device,
    ):
        instance.initialize()
        pace.use_devices([device.handle])
        pace.pause = 1
        runner = threading.Thread(target=pace.run, args=(instance, -1))
        runner.start()
        while len(device.safe_sent) < 5:
            pass
        assert instance.tick == 0 and pace.done == 0
        pace.pause = 0
        while pace.done < 20:
            pass
        pace.pause = 1
        while len(device.safe_sent) < 10:
            pass
        done = pace.done
        while len(device.safe_sent) < 15:
            pass
        assert pace.done == done
        pace.cancel = 1
        runner.join(60)
    assert pace.end == END_CANCEL
    assert [flags for _, _, flags in device.sent][-3:] == [SAFE_FLAG | contract.BL_SEND_AGAIN] * 3
    assert pace.clock == CLOCK_WALL


def test_a_latch_of_an_earlier_run_does_not_hold_the_next():
    pace = Pace()
    pace.latched, pace.latches = contract.BL_LATCH_STALL, 1
    with Instance(counter().compile()) as instance:
        instance.initialize()
        runner = threading.Thread(target=pace.run, args=(instance, 3))
        runner.start()
        runner.join(20)
        pace.cancel = 1
        runner.join(20)
    assert pace.end == END_TIME and pace.done == 3


def test_a_new_factor_counts_deadlines_from_then_on():
    """By the script's clock: from one start, the deadlines after tick 40 would long have passed."""
    pace = Pace()
    pace.overrun = OVERRUN_POLICIES.index("catch_up")
    pace.script([0] * 60, [0] * 60)
    pace.factor = 0.5

    @python_block(inputs=[Port("u")], outputs=[Port("y")])
    def hurry(u):
        if u == 40.0:
            pace.factor = 8.0
        return u

    d = counter()
    d.connect(d["total"], d.add(hurry(), name="hurry"))
    with Instance(d.compile()) as instance:
        instance.initialize()
        pace.run(instance, 60)
    assert (pace.overruns, pace.lateness.most, pace.lateness.count) == (0, 0, 60)


def test_a_slow_factor_after_many_fast_ticks_does_not_wait_for_their_number():
    pace = Pace()
    pace.overrun = OVERRUN_POLICIES.index("catch_up")
    pace.factor = 1000.0
    with Instance(counter().compile()) as instance:
        instance.initialize()
        runner = threading.Thread(target=pace.run, args=(instance, -1))
        runner.start()
        try:
            while pace.done < 10_000:
                time.sleep(1e-4)
            pace.factor = 0.1  # 10,000 periods of it are 100 s
            time.sleep(0.02)
            done = pace.done
            for _ in range(30_000):
                if pace.done > done + 1:
                    break
                time.sleep(1e-3)
            assert pace.done > done + 1
        finally:
            pace.cancel = 1
            runner.join(60)


def test_a_factor_changes_during_a_wait_and_back():
    """At 1e-7 a tick of 1 ms waits for hours; nothing is late after the change."""
    pace = Pace()
    pace.overrun = OVERRUN_POLICIES.index("catch_up")
    pace.factor = 1e-7
    with Instance(counter().compile()) as instance:
        instance.initialize()
        runner = threading.Thread(target=pace.run, args=(instance, 300))
        runner.start()
        try:
            while pace.done < 1:
                time.sleep(1e-3)
            time.sleep(0.05)
            assert pace.done == 1
            pace.factor = 0.0
            while pace.done < 250:
                time.sleep(1e-4)
        finally:
            pace.factor = 0.0
            runner.join(60)
    assert pace.done == 300 and pace.end == END_TIME
    assert pace.overruns == 0 and pace.lateness.count < 300  # without deadlines none is late


def test_deadlines_closer_than_the_clock_counts_are_none():
    """Otherwise the loop counts those that it skips, one by one."""
    pace = Pace()
    pace.factor = 1e9  # a period of 1e-3 ns
    with Instance(counter().compile()) as instance:
        instance.initialize()
        pace.run(instance, 50)
    assert pace.done == 50 and pace.end == END_TIME
    assert (pace.overruns, pace.skipped, pace.lateness.count) == (0, 0, 0)


def test_single_steps_of_a_paused_run():
    pace = Pace()
    pace.pause = 1
    with Instance(counter().compile()) as instance:
        instance.initialize()
        runner = threading.Thread(target=pace.run, args=(instance, -1))
        runner.start()
        try:
            time.sleep(0.05)
            assert pace.done == 0
            for asked in (1, 3, 1000):
                before = pace.done
                pace.steps += asked
                while pace.done < before + asked:
                    time.sleep(1e-4)
                time.sleep(0.05)
                assert pace.done == before + asked
            assert pace.overruns == 0 and pace.lateness.count == 0
        finally:
            pace.cancel = 1
            runner.join(60)
        assert instance.tick == pace.done == 1004


def test_steps_that_were_asked_for_are_void_when_a_run_goes_on():
    pace = Pace()
    pace.clock = CLOCK_FREE
    pace.steps = 10**9  # before it is paused
    with Instance(counter().compile()) as instance:
        instance.initialize()
        runner = threading.Thread(target=pace.run, args=(instance, -1))
        runner.start()
        try:
            while pace.done < 100:
                time.sleep(1e-4)
            pace.pause = 1
            done, limit = -1, time.monotonic() + 30.0
            while pace.done != done:  # a busy machine may run the tick in progress later
                assert time.monotonic() < limit, "it goes on"
                done = pace.done
                time.sleep(0.1)
        finally:
            pace.cancel = 1
            runner.join(60)


def test_the_number_of_steps_may_wrap_around():
    pace = Pace()
    pace.pause, pace.steps = 1, 2**31 - 1
    with Instance(counter().compile()) as instance:
        instance.initialize()
        pace.run(instance, 3)  # ends before it has made them all
        assert pace.done == 3


@given(st.integers(1, 2**40))
def test_a_duration_is_within_its_bin(duration):
    histogram = Histogram()
    histogram.add(duration)
    ((begin, end, count),) = histogram.list_bins()
    assert count == 1 and begin <= 1e-9 * duration * (1 + 1e-12) < end * (1 + 1e-12)
    assert end <= 16e-9 or end <= 1.25 * begin * (1 + 1e-12)


def test_bars_have_every_duration_once():
    """Against counts with numpy; bars begin at 2^k and 1.5 2^k ns."""
    rng = np.random.default_rng(5)
    durations = np.concatenate([[0, 511, 512, 767, 768], 10 ** rng.uniform(2, 9, 500)]).astype(int)
    histogram = Histogram()
    assert histogram.bars() == []
    for duration in durations:
        histogram.add(int(duration))
    bars = histogram.bars()
    starts = np.round(1e9 * np.array([start for start, _ in bars])).astype(int)
    powers = 2 ** np.arange(9, 40)
    assert starts.tolist() == sorted([*powers, *(3 * powers // 2)])[: len(bars)]
    edges = [0, *starts[1:], 10**12]
    assert [count for _, count in bars] == np.histogram(durations, edges)[0].tolist()
    assert bars[-1][1] > 0
