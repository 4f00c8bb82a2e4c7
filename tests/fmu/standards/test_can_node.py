"""Nodes that pack signals: when they send, and what they do with what they cannot."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from node import make_node

from biella import BlockError, Diagram, DiagramError, Fmu, simulate
from biella.blocks import Constant, Ramp, Step
from biella.fmu.can import (
    CanBus,
    CanMessage,
    CanNode,
    CanSignal,
    CanTransmit,
    Confirm,
    Operation,
    decode_can,
    encode_can,
)

pytestmark = pytest.mark.engine

STEP, RATE = 1e-3, 500_000
ENGINE = CanMessage(
    "Engine",
    0x123,
    [CanSignal("speed", 0, 16, scale=0.5), CanSignal("mode", 16, 3, initial=5.0)],
    period=0.01,
)
COMMAND = CanMessage("Command", 0x50, [CanSignal("torque", 7, 16, "big_endian", signed=True)])


def build(*, period=0.01, delay=0.0, saturate=False, source=None):
    """An engine that reports its speed, and a controller whose command changes."""
    d = Diagram("car", step=STEP)
    bus = d.add(CanBus(["engine", "control"], baud_rate=RATE), name="bus")
    message = replace(ENGINE, period=period, delay=delay)
    engine = d.add(CanNode([message], [COMMAND], saturate=saturate), name="engine")
    control = d.add(CanNode([COMMAND], [message]), name="control")
    for name, block in (("engine", engine), ("control", control)):
        d.connect(bus.terminal(name), block.terminal("CAN"))
    d.connect(d.add(source or Ramp(slope=100.0), name="speed"), engine["Engine.speed"])
    d.connect(d.add(Step(at=0.0205, to=-7.0), name="wish"), control["Command.torque"])
    return d


def test_ports_have_the_names_of_messages_and_signals():
    node = CanNode([ENGINE], [COMMAND])
    assert {"Engine.speed", "Engine.mode"} <= {port.name for port in node.inputs}
    assert {"Command.torque", "sent", "confirmed", "received"} <= {p.name for p in node.outputs}
    assert str(node) == "CanNode(Engine, Command)"


@pytest.mark.parametrize("delay", [0.0, 0.0034])
def test_a_message_with_a_period_has_the_values_of_its_instants(delay):
    """The inputs are held from tick to tick: those at an instant are of the tick before it."""
    result = simulate(build(delay=delay, source=Ramp(slope=1000.0)), 0.05)
    expected, last = [], 0.0
    for t in result.t:
        sent = [delay + 0.01 * n for n in range(6) if delay + 0.01 * n < t - 1e-9]
        if sent:  # and received before the next tick
            last = float(max(0, math.ceil(sent[-1] / STEP - 1e-6) - 1))
        expected.append(last)
    np.testing.assert_array_equal(result["control.Engine.speed"], expected)
    assert set(result["control.Engine.mode"]) == {5.0}


def test_frames_are_counted():
    result = simulate(build(), 0.0455)
    final = {name: result[f"engine.{name}"][-1] for name in ("sent", "confirmed", "received")}
    assert final == {"sent": 5, "confirmed": 5, "received": 1}
    assert result["control.sent"][-1] == result["control.confirmed"][-1] == 1
    assert result["bus.frames"][-1] == 6


def test_a_message_without_a_period_is_sent_when_its_data_change():
    d = build()
    result = simulate(d, 0.05)
    torque = result["engine.Command.torque"]
    assert torque[:22].tolist() == [0.0] * 22 and set(torque[22:]) == {-7.0}  # at 21 ms
    assert result["control.sent"][-1] == 1
    d = build(period=None)
    result = simulate(d, 0.05)  # 0.1 a tick: another raw number every fifth
    changes = np.count_nonzero(np.diff(np.round(result["speed"] / 0.5)))
    assert result["engine.sent"][-1] == changes > 5


def test_times_between_ticks_are_exact(tmp_path):
    """A foreign node notes when the last frame ends: at the instants plus the time of its bits."""
    foreign = make_node(tmp_path / "node.fmu", countdown=True)
    message = replace(ENGINE, period=0.0025, delay=0.0001)
    d = Diagram("exact", step=STEP)
    bus = d.add(CanBus(["a", "b"], baud_rate=RATE), name="bus")
    node, other = d.add(CanNode([message]), name="a"), d.add(Fmu(foreign), name="b")
    d.connect(bus.terminal("a"), node.terminal("CAN"))
    d.connect(bus.terminal("b"), other.terminal("CAN"))
    result = simulate(d, 0.02)
    starts = 0.0001 + 0.0025 * np.arange(8)
    ends = np.unique(result["b.last_frame"])[1:]
    np.testing.assert_allclose(ends - starts, ends[0] - starts[0], rtol=0, atol=1e-12)
    data = bytes.fromhex(result.info["binaries"]["bus.b.tx_data"])
    (frame,) = decode_can(data)
    assert frame == CanTransmit(0x123, bytes([0, 0, 5, 0, 0, 0, 0, 0]))


def test_frames_of_a_foreign_node_are_received(tmp_path):
    foreign = make_node(tmp_path / "node.fmu", countdown=True)
    torque = (-300).to_bytes(2, "big", signed=True)
    operations: list[Operation] = [
        CanTransmit(0x50, torque + bytes(6)),
        CanTransmit(0x50, b"\1"),  # too short
        CanTransmit(0x50, b"", remote=True),
        CanTransmit(0x50, bytes(8), extended=True),
        CanTransmit(0x51, bytes(8)),
        Confirm(0x50),
    ]
    given: dict[str, Any] = {"offset": 0.001, "period": 1.0, "message": encode_can(operations)}
    d = Diagram("foreign", step=STEP)
    node, other = (
        d.add(CanNode(receives=[COMMAND]), name="a"),
        d.add(Fmu(foreign, parameters=given)),
    )
    d.connect(node.terminal("CAN"), other.terminal("CAN"))
    result = simulate(d, 0.005)
    assert result["a.Command.torque"][-1] == -300.0
    assert [result[f"a.{n}"][-1] for n in ("received", "confirmed", "sent")] == [1, 1, 0]


def test_a_value_outside_its_range_ends_the_run_or_is_limited():
    steep = {"source": Ramp(slope=2e6)}
    with pytest.raises(
        BlockError,
        match=r"`Engine.speed` is 38000, outside its range from 0 to 32767.5; saturate=True",
    ):
        simulate(build(**steep), 0.05)
    result = simulate(build(saturate=True, **steep), 0.05)
    assert result["control.Engine.speed"][-1] == 32767.5
    negative = {"source": Constant(-1.0)}
    assert simulate(build(saturate=True, **negative), 0.02)["control.Engine.speed"][-1] == 0.0


def test_saved_states_continue_with_the_same_values():
    with build(delay=0.0034).compile().instantiate() as instance:
        states = {}
        for tick in range(40):
            states[tick] = instance.save()
            instance.run(1)
        instance.evaluate()
        names = ["control.Engine.speed", "engine.Command.torque", "engine.sent", "bus.frames"]
        final = [instance.get(name) for name in names]
        for tick in (39, 21, 3):
            instance.restore(states[tick])
            instance.run(40 - tick)
            instance.evaluate()
            assert final == [instance.get(name) for name in names]


def test_a_node_is_described_wrongly(tmp_path):
    with pytest.raises(DiagramError, match="sends or receives at least one message"):
        CanNode()
    with pytest.raises(DiagramError, match="there is no CAN message 'Engine': no database"):
        CanNode(["Engine"])
    with pytest.raises(DiagramError, match="`Engine` and `Engine`, which have the same name"):
        CanNode([ENGINE], [ENGINE])
    with pytest.raises(DiagramError, match="`Engine` and `Other`, which have the same name or id"):
        CanNode([ENGINE, replace(ENGINE, name="Other")])
