"""The CAN bus with the nodes of ``node.c``: bits of frames as strings, a published example."""

from __future__ import annotations

import math
import random
import re
from typing import Any

import numpy as np
import pytest
from node import make_node

from biella import BlockError, Diagram, DiagramError, Fmu, simulate
from biella.fmu.can import (
    CanBus,
    CanFdTransmit,
    CanTransmit,
    CanXlTransmit,
    Configuration,
    FormatError,
    Status,
    Wakeup,
    decode_can,
    encode_can,
)

pytestmark = pytest.mark.engine

STEP = 1e-3
ATOL = 1e-11  # of times in the tests, of sums of some ten terms


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("can")
    return {
        "countdown": make_node(folder / "counting.fmu", countdown=True),
        "triggered": make_node(folder / "node.fmu"),
    }


def build(nodes, kind="countdown", step=STEP, bus=None, **messages):
    """Nodes that send: for each its offset, period and operations."""
    d = Diagram("can", step=step)
    center = d.add(CanBus(list(messages), **({"baud_rate": 500_000} | (bus or {}))), name="bus")
    for name, (offset, period, *operations) in messages.items():
        parameters = {"offset": offset, "period": period, "message": encode_can(operations)}
        block = d.add(Fmu(nodes[kind], parameters=parameters), name=name)
        d.connect(center.terminal(name), block.terminal("CAN"))
    return d


# -- bits of a frame, as strings


def divide(bits, generator, width):
    """The remainder of bits · x^width by the generator, as a string."""
    rest = int(bits, 2) << width
    while rest.bit_length() > width:
        rest ^= (1 << width | generator) << rest.bit_length() - width - 1
    return f"{rest:0{width}b}"


def stuff(bits):
    """After five equal bits comes the other one, which counts for the next five."""
    done = ""
    for bit in bits:
        done += bit
        if re.search(r"(0{5}|1{5})$", done):
            done += "10"[int(bit)]
    return done


def head(frame, last):
    if frame.extended:
        high, low = f"{frame.identifier:029b}"[:11], f"{frame.identifier:029b}"[11:]
        return f"0{high}11{low}{last}"
    return f"0{frame.identifier:011b}{last}0"


def classical(frame):
    """Number of bits from the start to the end of a frame, without the intermission."""
    return len(stuff(unstuffed(frame))) + 1 + 2 + 7


def unstuffed(frame):
    """The bits from the start of a frame to the end of its CRC."""
    remote = int(frame.remote)
    data = "" if frame.remote else "".join(f"{byte:08b}" for byte in frame.data)
    reserved = "00" if frame.extended else "0"
    bits = f"{head(frame, remote)}{reserved}{len(frame.data):04b}{data}"
    return bits + divide(bits, 0x4599, 15)


def flexible(frame):
    """The bits of a CAN FD frame that switches the rate: at the nominal, and at the fast one."""
    start = head(frame, 0) + "10" + "1"
    code = [*range(9), 12, 16, 20, 24, 32, 48, 64].index(len(frame.data))
    data = "".join(f"{byte:08b}" for byte in frame.data)
    rest = f"{int(frame.error_state)}{code:04b}{data}"
    before = 0
    done = ""
    for n, bit in enumerate(start + rest):
        if n == len(start):
            before = len(done)
        done += bit
        is_last = n + 1 == len(start + rest)
        if re.search(r"(0{5}|1{5})$", done) and not is_last:
            done += "10"[int(bit)]
    crc = 17 if len(frame.data) <= 16 else 21
    fixed = 1 + (4 + crc) // 4
    return before + 1 + 2 + 7, len(done) - before + 4 + crc + fixed


def duration(nodes, frame, **bus):
    """How long the frame takes to its confirmation."""
    d = build(nodes, bus=bus, a=(1e-3, 1.0, frame), b=(0.0, 0.0))
    result = simulate(d, 4 * STEP)
    assert result["a.confirms"][-1] == result["b.frames"][-1] == 1
    assert result["a.last_confirm"][-1] == result["b.last_frame"][-1]
    return result["a.worst"][-1]


def test_a_frame_of_zeros_takes_what_is_counted_by_hand(nodes):
    """Start, identifier, RTR, IDE, reserved, length: 19 zeros, and 15 of their CRC: 34. A bit is
    stuffed after each fifth: 6. Then 1 + 2 + 7 bits: 50 bits, 100 µs at 500 kbit/s.
    """
    assert classical(CanTransmit(0)) == 50
    assert duration(nodes, CanTransmit(0)) == pytest.approx(50 / 500e3, abs=ATOL)


def some_frames():
    dice = random.Random(5)
    yield CanTransmit(0x7FF, b"\xff" * 8)
    yield CanTransmit(0x123, b"\x12\x34", remote=True)
    yield next(  # a bit is stuffed after the last one of the CRC
        frame
        for frame in map(CanTransmit, range(1 << 11))
        if len(stuff(unstuffed(frame))) == len(stuff(unstuffed(frame)[:-1])) + 2
    )
    for _ in range(8):
        extended = dice.random() < 0.5
        identifier = dice.randrange(1 << (29 if extended else 11))
        fill = dice.choice([b"\0", b"\xff", b"\xf8\x3e"])
        data = dice.choice([dice.randbytes(8), (fill * 8)[: dice.randrange(9)]])
        yield CanTransmit(identifier, data, extended)


def test_the_times_of_frames_are_those_of_their_bits(nodes):
    for frame in some_frames():
        expected = classical(frame) / 125e3
        assert duration(nodes, frame, baud_rate=125_000) == pytest.approx(expected, abs=ATOL)


def test_frames_of_can_fd_switch_the_rate(nodes):
    dice = random.Random(6)
    for size in (0, 8, 16, 20, 64):
        data = dice.choice([dice.randbytes(size), b"\0" * size])
        frame = CanFdTransmit(dice.randrange(1 << 11), data, bit_rate_switch=True)
        nominal, fast = flexible(frame)
        expected = nominal / 500e3 + fast / 2e6
        found = duration(nodes, frame, data_baud_rate=2_000_000)
        assert found == pytest.approx(expected, abs=ATOL), frame


# -- the bus


def test_the_smallest_identifier_wins_and_the_others_follow(nodes):
    """All at 1 ms; each is sent when the bus is idle again, 3 bits after the end."""
    frames = {
        "a": CanTransmit(0x20, b"\x55" * 4),
        "b": CanTransmit(0x123 << 18, b"", extended=True),  # after the base format of 0x123
        "c": CanTransmit(0x10, b"\x55" * 8),
        "d": CanTransmit(0x123, b""),
    }
    d = build(nodes, **{name: (1e-3, 1.0, frame) for name, frame in frames.items()})
    result = simulate(d, 5 * STEP)
    at = 0.0
    for name in "cadb":
        at += classical(frames[name]) / 500e3
        assert result[f"{name}.worst"][-1] == pytest.approx(at, abs=ATOL), name
        at += 3 / 500e3
        assert result[f"{name}.frames"][-1] == 3 and result[f"{name}.confirms"][-1] == 1
    assert result["bus.frames"][-1] == 4
    assert result["bus.load"][-1] == pytest.approx(at / (5 * STEP), abs=1e-9)


def respond(tasks, m, blocking=0.0):
    """The worst response time of message m by Davis, Burns, Bril, Lukkien (2007), eq. 8 to 14.

    `tasks` are (transmission time, period), by priority; without jitter. A frame has 106 bits.
    """
    own, period = tasks[m]
    higher = tasks[:m]
    bit, tiny = own / 106, 1e-12
    busy = own
    while True:
        longer = blocking + sum(math.ceil(busy / t - 1e-9) * c for c, t in [*higher, tasks[m]])
        if longer <= busy + tiny:
            break
        busy = longer
    worst = 0.0
    for q in range(math.ceil(busy / period - 1e-9)):
        wait = blocking + q * own
        while True:
            longer = blocking + q * own
            longer += sum(math.ceil((wait + bit) / t) * c for c, t in higher)
            if longer <= wait + tiny:
                break
            wait = longer
        worst = max(worst, wait - q * period + own)
    return worst


def test_the_response_times_are_those_of_a_published_example(nodes):
    """Davis et al. (2007), section 3.1: frames of 1 ms with periods 2.5, 3.5 and 3.5 ms. The third
    one responds within 3.5 ms at worst, in its second instance.
    """
    candidates = {
        name: [CanTransmit(0x155 + 0x100 * n, bytes([k]) * 7) for k in range(256)]
        for n, name in enumerate("abc")
    }
    count = classical(candidates["a"][0x55])
    frames = {
        name: next(frame for frame in some if classical(frame) == count)
        for name, some in candidates.items()
    }
    assert count + 3 <= 106
    rate = 1000 * (count + 3)  # each takes 1 ms with the intermission
    periods = (2.5e-3, 3.5e-3, 3.5e-3)
    tasks = [(1e-3, period) for period in periods]
    bounds = [respond(tasks, m, 1e-3 if m < 2 else 0.0) for m in range(3)]
    np.testing.assert_allclose(bounds, [2e-3, 3e-3, 3.5e-3], rtol=0, atol=1e-12)
    sent = {name: (1e-3, period, frames[name]) for name, period in zip("abc", periods, strict=True)}
    result = simulate(build(nodes, bus={"baud_rate": rate}, **sent), 0.036)
    intermission = 3 / rate
    worst = [result[f"{name}.worst"][-1] + intermission for name in "abc"]
    assert worst[2] == pytest.approx(
        bounds[2], abs=1e-10
    )  # all are released at once: its worst case
    assert all(found <= bound + 1e-10 for found, bound in zip(worst, bounds, strict=True))


def test_a_frame_on_the_bus_is_not_interrupted(nodes):
    """The blocking of the analysis: a arrives one bit after c has begun."""
    c, a = CanTransmit(0x400, b"\x55" * 8), CanTransmit(0x20)
    d = build(nodes, a=(1e-3 + 2e-6, 1.0, a), c=(1e-3, 1.0, c))
    result = simulate(d, 3 * STEP)
    expected = (classical(c) + 3 + classical(a)) / 500e3 - 2e-6
    assert result["a.worst"][-1] == pytest.approx(expected, abs=ATOL)


@pytest.mark.parametrize("queue", ["priority", "fifo"])
def test_a_node_sends_its_smallest_identifier_or_its_oldest_frame(nodes, queue):
    own = [CanTransmit(0x300), CanTransmit(0x100)]
    d = build(nodes, bus={"queue": queue}, a=(1e-3, 1.0, *own), b=(0.0, 0.0))
    first = 0x100 if queue == "priority" else 0x300
    assert simulate(d, 3 * STEP)["b.first_id"][-1] == first


def test_a_node_may_have_lost_frames_discarded(nodes):
    discards = Configuration(4, 2)
    d = build(
        nodes,
        a=(1e-3, 1.0, discards, CanTransmit(0x200)),
        b=(1e-3, 1.0, CanTransmit(0x100)),
    )
    result = simulate(d, 4 * STEP)
    assert [result[f"a.{n}"][-1] for n in ("lost", "confirms", "frames")] == [1, 0, 1]
    assert [result[f"b.{n}"][-1] for n in ("lost", "confirms", "frames")] == [0, 1, 0]
    d = build(
        nodes,
        bus={"baud_rate": 10_000},
        a=(1e-3, 1.0, discards, CanTransmit(0x200)),
        b=(1e-3, 1.0, CanTransmit(0x100)),
    )
    # The notice comes at the end of the arbitration field, 14 bits: 0 00100000 1 000 0, where the
    # second 1 is stuffed after five equal bits.
    early = simulate(d, 3 * STEP)
    assert early["a.lost"][-1] == 1 and early["a.frames"][-1] == 0
    assert early["a.last"][-1] == pytest.approx(1e-3 + 14 / 10e3, abs=ATOL)


@pytest.mark.parametrize(
    ("winner", "bits"),
    [
        # 0 00000000000 0: 13 bits, and a 1 after the 5th and after the 10th
        (CanTransmit(0x000), 15),
        # 0 10101010101 0: no five equal bits
        (CanTransmit(0x555), 13),
        # 0 00111110000 0: 0 00 11111 (0) 0000 0. The stuffed 0 counts: after it and four zeros a 1.
        (CanTransmit(0x1F0), 15),
        # 0 11111011111 0: 11111 (0) 0 11111 (0) 0
        (CanTransmit(0x7DF), 15),
        # 0 11111000001 0: 11111 (0) 0000 (1) 0 1 0
        (CanTransmit(0x7C1), 15),
        # 0 10101010000 0: five equal bits at the very end, with the stuffed bit behind it
        (CanTransmit(0x550), 13),
        # 0 00000000000 11 000000000000000000 0: 33 bits; of the first 12 zeros a 1 after the 5th
        # and the 10th, of the last 19 after the 5th, the 10th and the 15th
        (CanTransmit(0, extended=True), 38),
    ],
)
def test_the_notice_of_a_lost_arbitration_counts_stuffed_bits(nodes, winner, bits):
    d = build(
        nodes,
        bus={"baud_rate": 10_000},
        a=(1e-3, 1.0, Configuration(4, 2), CanTransmit(0x7FF)),
        b=(1e-3, 1.0, winner),
    )
    until = math.ceil(1 + bits / 10) * STEP  # before the end of the frame
    assert simulate(d, until)["a.last"][-1] == pytest.approx(1e-3 + bits / 10e3, abs=ATOL)


def test_errors_are_reported_to_all_nodes_and_states_are_respected(nodes):
    send = CanTransmit(0x100)
    d = build(nodes, bus={"error_every": 2}, a=(1e-3, 1e-3, send), b=(0.0, 0.0), c=(0.0, 0.0))
    result = simulate(d, 9 * STEP)
    assert result["a.sent"][-1] == 9 and result["bus.frames"][-1] == 8  # the last one has begun
    assert result["a.errors"][-1] == result["b.errors"][-1] == result["c.errors"][-1] == 4
    assert result["a.confirms"][-1] == result["b.frames"][-1] == result["c.frames"][-1] == 4
    off = Status(3)
    d = build(nodes, a=(1e-3, 1.0, send), b=(0.5e-3, 1.0, off), c=(0.5e-3, 1.0, off))
    result = simulate(d, 3 * STEP)
    assert result["bus.frames"][-1] == 1  # nobody receives it
    assert result["a.confirms"][-1] == result["b.frames"][-1] == 0


@pytest.mark.parametrize(("state", "suspended"), [(1, 0), (2, 8)])
def test_an_error_passive_node_that_has_sent_waits_eight_bits_more(nodes, state, suspended):
    """Suspend transmission, ISO 11898-1: behind the three bits of the intermission.

    The frames have 18 zeros and more in a row; `classical` counts their bits.
    """
    one, two, other = CanTransmit(0x100), CanTransmit(0x101), CanTransmit(0x700)
    lengths = [classical(frame) for frame in (one, two, other)]
    both = (1e-3, 1.0, Status(state), one, two)
    alone = simulate(build(nodes, a=both, b=(0.0, 0.0)), 3 * STEP)
    bits = lengths[0] + 3 + suspended + lengths[1]
    assert alone["b.last_frame"][-1] == pytest.approx(1e-3 + bits / 500e3, abs=ATOL)
    # Another node begins meanwhile, though its identifier is larger; an active one does not wait.
    result = simulate(build(nodes, a=both, b=(1e-3, 1.0, other)), 3 * STEP)
    turns = lengths if state == 1 else [lengths[0], lengths[2], lengths[1]]
    second, third = sum(turns[:2]) + 3, sum(turns) + 6
    ends = {"a": third if state == 1 else second, "b": second if state == 1 else third}
    for name, end in ends.items():
        assert result[f"{name}.last_frame"][-1] == pytest.approx(1e-3 + end / 500e3, abs=ATOL)


def test_an_error_passive_node_takes_part_in_the_first_arbitration(nodes):
    low, high = CanTransmit(0x100), CanTransmit(0x700)
    d = build(nodes, a=(1e-3, 1.0, Status(2), low), b=(1e-3, 1.0, high))
    result = simulate(d, 3 * STEP)
    end = 1e-3 + classical(low) / 500e3
    assert result["b.last_frame"][-1] == pytest.approx(end, abs=ATOL)
    assert result["a.last_frame"][-1] == pytest.approx(
        end + (3 + classical(high)) / 500e3, abs=ATOL
    )


def test_wakeups_and_damaged_operations_are_answered(nodes):
    d = build(nodes, a=(1e-3, 1.0, Wakeup()), b=(0.0, 0.0), c=(0.0, 0.0))
    result = simulate(d, 2 * STEP)
    assert [result[f"{n}.bytes"][-1] for n in "abc"] == [0, 8, 8]
    d = build(nodes, a=(1e-3, 1.0, Wakeup()), b=(0.0, 0.0))
    damaged = b"\x99\0\0\0\x08\0\0\0"
    d.blocks["a"].interface.binaries[12] = (damaged,)
    answer = bytes.fromhex(simulate(d, 2 * STEP).info["binaries"]["bus.a.tx_data"])
    assert decode_can(answer) == [FormatError(damaged)]


@pytest.mark.parametrize("early", [5e-9, 5e-10])
def test_a_node_sends_right_before_the_end_of_a_frame(nodes, early):
    """The difference is smaller than the tolerance of instants, 1e-6 of the step of 10 ms."""
    frame, other = CanTransmit(5, b"\1\2\3"), CanTransmit(6)
    end = 1e-3 + classical(frame) / 500e3
    d = build(nodes, step=0.01, a=(1e-3, 1.0, frame), b=(end - early, 1.0, other))
    result = simulate(d, 0.02)
    assert result["b.last_frame"][-1] == pytest.approx(end, abs=ATOL)
    expected = end + (3 + classical(other)) / 500e3
    assert result["a.last_frame"][-1] == pytest.approx(expected, abs=ATOL)


def test_a_frame_that_its_node_has_cancelled_does_not_wait(nodes):
    """The node goes off the bus and back while its frame is sent, and sends again."""
    d = build(
        nodes,
        bus={"baud_rate": 10_000},  # the frame takes 5 ms
        a=(1e-3, 2.5e-3, Status(3), Status(1), CanTransmit(0)),
        b=(0.0, 0.0),
    )
    assert simulate(d, 5 * STEP)["bus.waiting"].tolist() == [0, 0, 0, 0, 1, 1]
    cancel = (3.5e-3, 1.0, Status(3))
    d = build(nodes, bus={"baud_rate": 10_000}, a=(1e-3, 2.5e-3, CanTransmit(0)), b=cancel)
    assert min(simulate(d, 8 * STEP)["bus.waiting"]) == 0


def test_nodes_configure_the_rate(nodes):
    rate, send = Configuration(1, 250_000), CanTransmit(0)
    d = build(nodes, bus={"baud_rate": None}, a=(1e-3, 1.0, rate, send), b=(0.0, 1.0, rate))
    assert simulate(d, 3 * STEP)["a.worst"][-1] == pytest.approx(50 / 250e3, abs=ATOL)
    other = Configuration(1, 125_000)
    d = build(nodes, bus={"baud_rate": None}, a=(1e-3, 1.0, rate, send), b=(0.0, 1.0, other))
    with pytest.raises(BlockError, match=r"node 1 configures 250000 bit/s, and the bus has 125000"):
        simulate(d, 3 * STEP)
    d = build(nodes, bus={"baud_rate": None}, a=(1e-3, 1.0, send), b=(0.0, 0.0))
    with pytest.raises(BlockError, match=r"neither a node nor baud_rate has set the rate"):
        simulate(d, 3 * STEP)


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ([CanXlTransmit(1, b"a")], "a frame of CAN XL"),
        ([CanTransmit(1)] * 65, "more than 64 frames of node 1 wait for the bus"),
        ([CanFdTransmit(1, bit_rate_switch=True)], "neither a node nor data_baud_rate"),
        ([CanTransmit(0x99)], "two nodes send the identifier 0x99 at the same time"),
    ],
)
def test_what_the_bus_does_not_have_is_an_error(nodes, operations, message):
    d = build(nodes, a=(1e-3, 1.0, *operations), b=(1e-3, 1.0, CanTransmit(0x99)))
    with pytest.raises(BlockError, match=message):
        simulate(d, 3 * STEP)


def test_triggered_nodes_send_at_the_end_of_their_steps(nodes):
    """Direct answer of the bus, and a confirmation within the next step."""
    d = build(nodes, "triggered", a=(1.5e-3, 1.0, CanTransmit(0)), b=(0.0, 0.0))
    result = simulate(d, 4 * STEP)
    assert result["b.last_frame"][-1] == pytest.approx(2e-3 + 50 / 500e3, abs=ATOL)


def test_saved_states_hold_the_bus(nodes):
    def make():
        sends = {
            n: (1e-3, 1.7e-3, CanTransmit(0x100 + k, b"12345678")) for k, n in enumerate("abc")
        }
        return build(nodes, bus={"baud_rate": 200_000}, **sends).compile().instantiate()

    with make() as instance:
        states = {}
        for tick in range(12):
            states[tick] = instance.save()
            instance.run(1)
        instance.evaluate()
        names = [f"{n}.{v}" for n in "abc" for v in ("last_confirm", "last_frame", "frames")]
        final = [instance.get(name) for name in names]
        for tick in (11, 5, 2):
            instance.restore(states[tick])
            instance.run(12 - tick)
            instance.evaluate()
            assert final == [instance.get(name) for name in names]


def test_a_bus_is_described_wrongly():
    with pytest.raises(DiagramError, match="2 to 32 nodes with different names"):
        CanBus(["a", "a"])
    with pytest.raises(DiagramError, match="2 to 32 nodes with different names"):
        CanBus(33)
    with pytest.raises(DiagramError, match="named by an identifier, not 'a b'"):
        CanBus(["a b", "c"])
    with pytest.raises(DiagramError, match=r"`baud_rate` must be a whole number from 1 on"):
        CanBus(baud_rate=0)
    wrong: Any
    for wrong in ("500k", math.nan, math.inf):
        with pytest.raises(DiagramError, match=rf"`baud_rate` must be a whole .*got {wrong!r}"):
            CanBus(baud_rate=wrong)
    with pytest.raises(DiagramError, match=r'`queue` must be "priority" or "fifo"'):
        CanBus(queue="lifo")
    bus = CanBus(3)
    assert [port.name for port in bus.outputs[:3]] == ["frames", "load", "waiting"]
    with pytest.raises(DiagramError, match="has no terminal `node4`"):
        bus.terminal("node4")
