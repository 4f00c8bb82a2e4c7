"""The Modbus driver against pymodbus's own server, on loopback and on a serial line."""

from __future__ import annotations

import math
import os
import random
import select
import socket
import struct
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from biella import Diagram, run_realtime
from biella.blocks import Constant, Gain
from biella.errors import DeviceError
from biella.scheduler.binding._bind import check_binding, open_binding
from biella.scheduler.devices import Setup
from biella.scheduler.devices._native import DeviceContext
from biella.scheduler.devices.fieldbus._modbus import ModbusDriver

from ..diagrams import loop
from ..peer import wait_for
from ..servers import LoopThread, advance_until, start_patiently

pytest.importorskip("pymodbus", reason="pymodbus is not installed")
pytest.importorskip("serial", reason="pyserial is not installed")

from pymodbus import FramerType
from pymodbus.constants import ExcCodes
from pymodbus.server import ModbusSerialServer, ModbusTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice

READ, WRITE = (1, 2, 3, 4), (5, 6, 15, 16)
UNIT = 7


class Plc:
    """A device with 40 addresses of each kind; input 0 and 1 are -2 times holding 0 and 1."""

    def __init__(self):
        self.stack = ExitStack()
        self.thread = self.stack.enter_context(LoopThread())
        self.log = []
        self.inputs = [0] * 40
        self.doubles = True
        self.refuses = self.protects = None
        self.server, self.port = None, 0

    def devices(self):
        words = SimData(0, values=[0] * 40, datatype=DataType.REGISTERS)
        bits = SimData(0, values=[0] * 3, datatype=DataType.BITS)
        return [SimDevice(UNIT, ([bits], [bits], [words], [words]), action=self._act)]

    async def _act(self, function, first, address, count, registers, values):
        self.log.append((function, address, count, values and list(values)))
        if self.refuses is not None and self.protects in (None, (function, address)):
            return self.refuses
        if function == 4:
            registers[:] = self.inputs
        elif function in (6, 16) and address <= 1 and self.doubles:
            told = [*registers]
            told[address : address + count] = values
            self.inputs[:2] = words("f", -2.0 * number("f", told[:2]))
        return None

    def switch_on(self):
        async def serve():
            server = ModbusTcpServer(self.devices(), address=("127.0.0.1", self.port))
            await server.serve_forever(background=True)
            return server

        self.server = self.thread.run(serve())
        self.port = self.server.transport.sockets[0].getsockname()[1]
        return self

    def switch_on_at_line(self, path):
        async def serve():
            server = ModbusSerialServer(
                self.devices(), framer=FramerType.RTU, port=path, baudrate=115200, parity="N"
            )
            await server.serve_forever(background=True)
            return server

        self.server = self.thread.run(serve())
        return self

    def switch_off(self):
        if self.server is not None:
            self.thread.run(self.server.shutdown())
            self.server = None

    def read(self, function, address, count):
        assert self.server is not None
        values = self.server.context.async_getValues(UNIT, function, address, count)
        return self.thread.run(values)

    def requests(self, *functions):
        return {entry[:3] for entry in self.log if entry[0] in functions}

    def close(self):
        self.switch_off()
        self.stack.close()


def words(kind, value):
    data = struct.pack(f">{kind}", value)
    return list(struct.unpack(f">{len(data) // 2}H", data))


def number(kind, given):
    return struct.unpack(f">{kind}", struct.pack(f">{len(given)}H", *given))[0]


@pytest.fixture
def plc():
    made = Plc()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(ModbusDriver, "retry", 0.02)


def rig(port=502, **options):
    """Return the binding of `loop`: its gain is the server."""
    return {
        "devices": {"plc": {
            "driver": "modbus", "host": "127.0.0.1", "port": port, "unit_id": UNIT, "timeout": 5.0,
            "period": 0.0,
            "receive": {"y": {"kind": "input", "address": 0, "type": "float32"}},
            "send": {"u": {"kind": "holding", "address": 0, "type": "float32", "safe": 0.25}},
            **options,
        }},
        "blocks": {"k": {"device": "plc"}},
    }  # fmt: skip


def bench(signals, inputs, outputs, port=502, **options):
    """Return a diagram of constants, and a binding that gives each a channel."""
    d = Diagram("bench", step=1e-3)
    for name, value in signals.items():
        d.connect(d.add(Constant(value), name=name), d.add(Gain(1.0), name=f"sink_{name}"))
    table = rig(port, receive=inputs, send=outputs, **options)
    del table["blocks"]
    table["signals"] = {name: f"plc.{name}" for name in signals}
    return d, table


# Closing a loop.


def check_loop(table, plc):
    with run_realtime(loop(), bind=table) as run:
        wait_for(lambda: bool(run.latest("x") < 0.5))
        result = run.stop()
    # Each value that came is what the server made of one that was sent before, in float32.
    sent = np.float32(-2.0) * result["x"].astype(np.float32)
    came = result["k"][1:-1]
    assert set(came.astype(np.float32)) <= {np.float32(0.0), np.float32(-0.5), *sent}
    assert (np.diff(result["x"]) <= 0).all()
    assert plc.read(3, 0, 2) == words("f", 0.25)  # safe, and nothing after it


def test_a_loop_is_closed_through_the_server(plc):
    plc.switch_on()
    check_loop(rig(plc.port), plc)


def test_a_loop_is_closed_through_a_serial_line(plc):
    with Line() as line:
        plc.switch_on_at_line(line.ends[0])
        table = rig(serial=line.ends[1], baud=115200, parity="none")  # a pty has no parity
        del table["devices"]["plc"]["host"]
        check_loop(table, plc)


class Line:
    """Two serial ports with a cable between them."""

    def __enter__(self):
        self.pairs = [os.openpty() for _ in range(2)]
        self.ends = [os.ttyname(slave) for _, slave in self.pairs]
        self.over = threading.Event()
        self.pump = threading.Thread(target=self._carry)
        self.pump.start()
        return self

    def _carry(self):
        (first, _), (second, _) = self.pairs
        other = {first: second, second: first}
        while not self.over.is_set():
            for end in select.select([first, second], [], [], 0.05)[0]:
                os.write(other[end], os.read(end, 4096))

    def __exit__(self, *error):
        self.over.set()
        self.pump.join(60)
        for pair in self.pairs:
            for end in pair:
                os.close(end)


# Numbers and requests.


def test_neighbors_share_a_request_in_both_directions(ticks, plc):
    plc.switch_on()
    plc.inputs[4:8] = [*words("i", -70000)[::-1], 5, 6]
    plc.inputs[20] = 9
    inputs = {
        "a": {"kind": "input", "address": 4, "type": "int32", "scale": 0.1},
        "b": {"kind": "input", "address": 7, "type": "uint16"},
        "c": {"kind": "input", "address": 6, "type": "int16"},
        "d": {"kind": "input", "address": 20, "type": "int16"},
        "on": {"kind": "discrete", "address": 3},
        "back": {"kind": "coil", "address": 18},
    }
    outputs = {
        "p": {"kind": "holding", "address": 11, "type": "int16", "safe": 0, "scale": 0.5},
        "q": {"kind": "holding", "address": 12, "type": "uint32", "safe": 0, "word_order": "big"},
        "r": {"kind": "holding", "address": 30, "type": "uint16", "safe": 0},
        "s": {"kind": "coil", "address": 17, "safe": 0},
        "t": {"kind": "coil", "address": 18, "safe": 0},
    }
    signals = dict.fromkeys(inputs, 0.0) | {"p": -2.6, "q": 66051, "r": 7, "s": 0, "t": 1}
    d, table = bench(signals, inputs, outputs, plc.port, word_order="little")
    run = ticks(open_binding(d, table))
    row = advance_until(run, lambda *row: row[-1] == 1.0, list(inputs))
    assert row == [pytest.approx(-7000.0), 6.0, 5.0, 9.0, 0.0, 1.0]
    assert plc.requests(*READ) == {(4, 4, 4), (4, 20, 1), (2, 3, 1), (1, 18, 1)}
    assert plc.requests(*WRITE) == {(16, 11, 3), (6, 30, 1), (15, 17, 1)}
    assert plc.read(3, 11, 3) == [0x10000 - 5, 1, 515]  # -2.6 / 0.5, rounded; 66051 is 0x10203
    assert plc.read(3, 30, 1) == [7]
    assert plc.read(1, 17, 2) == [False, True]


def test_long_rows_are_cut_between_numbers():
    wide = {"kind": "input", "address": 0, "type": "float64", "width": 40}
    d, table = bench({}, {"wide": wide}, {})
    d.add(Constant([0.0] * 40), name="wide")
    table["signals"] = {"wide": "plc.wide"}
    entry = check_binding(d, table).binding.devices["plc"]
    spans = ModbusDriver(Setup(entry, DeviceContext(Path("."), 1e-3)))._ins
    assert [(span.address, span.count) for span in spans] == [(0, 124), (124, 36)]


def test_a_number_that_does_not_fit_ends_the_run_or_saturates(ticks, plc):
    plc.switch_on()
    out = {"kind": "holding", "address": 5, "type": "int16", "safe": 0.0, "scale": 0.1}
    d, table = bench({"p": 4000.0}, {}, {"p": out}, plc.port, on_loss="hold")
    with pytest.raises(ticks.ended, match=r"`p` \(to it\): 4000 exceeds its limit 3276.7"):
        ticks(open_binding(d, table)).advance(1)
    assert plc.requests(6) <= {(6, 5, 1)}
    out["saturate"] = True
    run = ticks(open_binding(d, table))
    run.advance(1)
    wait_for(lambda: plc.read(3, 5, 1) == [32767])


def test_a_period_is_kept_and_the_end_does_not_wait_for_it(ticks, plc):
    plc.switch_on()
    bound = open_binding(loop(), rig(plc.port, period=3600))
    run = ticks(bound)
    wait_for(lambda: run.advance(1) and len(plc.log) >= 2)
    run.advance(1)
    time.sleep(0.05)  # in which nothing is to happen
    assert len([entry for entry in plc.log if entry[0] == 4]) == 2  # before the run, and in it
    bound.close()
    assert plc.log[-1][:2] == (16, 0)
    assert plc.read(3, 0, 2) == words("f", 0.25)


# Loss and return.


def test_a_server_that_goes_and_comes_back(ticks, plc):
    plc.switch_on()
    table = rig(plc.port, on_loss="safe")
    table["devices"]["plc"]["receive"]["y"]["safe"] = -0.125
    bound = open_binding(loop(), table)
    run = ticks(bound)
    advance_until(run, lambda alive, k: alive and k < -0.5, ["plc.alive", "k"])
    plc.switch_off()
    _, k = advance_until(run, lambda alive, k: not alive, ["plc.alive", "k"])
    assert k == -0.125
    assert "plc" in bound.devices[0].why
    plc.log.clear()
    plc.switch_on()
    advance_until(run, lambda alive, k: alive and k != -0.125, ["plc.alive", "k"])
    # What the server was told first, when it was back, was safe.
    told = [number("f", entry[3]) for entry in plc.log if entry[0] == 16]
    assert told[0] == 0.25
    assert bound.devices[0].counts["returns"] == 1
    bound.close()
    assert plc.read(3, 0, 2) == words("f", 0.25)


def end_of(run, ticks):
    with pytest.raises(ticks.ended) as error:
        wait_for(lambda: run.advance(1, now=time.monotonic_ns) and False)
    return str(error.value)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (ExcCodes.ILLEGAL_ADDRESS, "code 2: invalid address"),
        (ExcCodes.DEVICE_BUSY, "code 6: it is busy"),
    ],
)
def test_a_refusal_is_a_loss_with_its_reason(ticks, plc, code, reason):
    plc.switch_on()
    run = ticks(open_binding(loop(), rig(plc.port)))
    advance_until(run, lambda k: k < 0, ["k"])
    plc.refuses = code
    why = end_of(run, ticks)
    assert f"device `plc` is disconnected: Refused: unit {UNIT} rejected the request to" in why
    assert reason in why


def test_safe_values_go_out_also_after_one_that_is_refused(ticks, plc):
    plc.switch_on()
    plc.refuses, plc.protects = ExcCodes.DEVICE_FAILURE, (6, 11)
    outputs = {
        "p": {"kind": "holding", "address": 11, "type": "int16", "safe": 3},
        "r": {"kind": "holding", "address": 30, "type": "int16", "safe": 5},
    }
    run = ticks(open_binding(*bench({"p": 1.0, "r": 2.0}, {}, outputs, plc.port)))
    assert "rejected the request to write holding 11, code 4: it has failed" in end_of(run, ticks)
    wait_for(lambda: plc.read(3, 30, 1) == [5])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_no_data(ticks, plc, value):
    plc.switch_on()
    run = ticks(open_binding(loop(), rig(plc.port)))
    advance_until(run, lambda k: k < 0, ["k"])
    plc.doubles = False
    plc.inputs[:2] = words("f", value)
    why = end_of(run, ticks)
    assert f"channel `y` reads {value}, which is not a number" in why
    assert math.isfinite(run.instance.get("k"))


# Hostile servers.


class Liar:
    """A socket that answers each request with what it is told to."""

    def __init__(self, reply):
        self.reply = reply
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(0.05)
        self.port = self.listener.getsockname()[1]
        self.over = threading.Event()
        self.answered = self.unanswered = 0
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self):
        while not self.over.is_set():
            try:
                line, _ = self.listener.accept()
            except TimeoutError:
                continue
            with line:
                line.settimeout(0.05)
                self._converse(line)

    def _converse(self, line):
        silent = 0
        while not self.over.is_set():
            try:
                request = line.recv(300)
            except TimeoutError:
                continue
            except OSError:
                return
            if not request:
                return
            said = self.reply(request)
            silent += not said
            self.unanswered = max(self.unanswered, silent)
            try:
                line.sendall(said)
            except OSError:
                return
            self.answered += 1

    def close(self):
        self.over.set()
        self.thread.join(60)
        self.listener.close()


def answer(request, word):
    """Return the answer to a read: `word` in each register."""
    body = bytes([2 * request[11]]) + struct.pack(">H", word) * request[11]
    return request[:4] + struct.pack(">H", len(body) + 2) + request[6:8] + body


def lie(change):
    return lambda request: change(answer(request, 9))


LIES = {
    "another transaction": lie(lambda a: bytes([a[0], a[1] ^ 1]) + a[2:]),
    "another protocol": lie(lambda a: a[:3] + b"\1" + a[4:]),
    "another unit": lie(lambda a: a[:6] + bytes([a[6] ^ 1]) + a[7:]),
    "another function": lie(lambda a: a[:7] + b"\4" + a[8:]),
    "too few registers": lambda r: answer(r[:11] + b"\1", 9),
    "too many registers": lambda r: answer(r[:11] + b"\5", 9),
    "cut short": lie(lambda a: a[:-1]),
    "a byte count that lies": lie(lambda a: a[:8] + b"\xff" + a[9:]),
    "nothing": lambda r: b"",
    "the request itself": lambda r: r,
    "an exception": lambda r: r[:4] + b"\0\3" + r[6:7] + bytes([r[7] | 128, 4]),
    "an exception without a code": lambda r: r[:4] + b"\0\2" + r[6:7] + bytes([r[7] | 128]),
}


def hostile(lies, rounds, timeout):
    """Run against a server that is honest first and then lies; return what came in, and it."""
    honest = threading.Event()
    honest.set()
    server = Liar(lambda request: answer(request, 7) if honest.is_set() else lies(request))
    d, table = bench(
        {"n": 0.0}, {"n": {"kind": "holding", "address": 3, "type": "int32"}}, {}, server.port,
        timeout=timeout, on_loss="hold",
    )  # fmt: skip
    try:
        with start_patiently(d, table) as run:
            wait_for(lambda: run.latest("plc.alive") == 1)
            honest.clear()
            before = server.answered
            wait_for(lambda: server.answered >= before + rounds)
            wait_for(lambda: run.latest("plc.alive") == 0)
            honest.set()
            wait_for(lambda: run.latest("plc.alive") == 1)
            result = run.stop()
    finally:
        server.close()
    assert result.info["realtime"]["devices"]["plc"]["losses"] >= 1
    return set(result["n"]), server


@pytest.mark.parametrize("name", LIES)
def test_a_wrong_answer_is_never_data(name):
    came, server = hostile(LIES[name], rounds=1, timeout=0.1)
    assert came <= {0.0, float(0x70007)}
    # No request is repeated on a line where the answer to the first may yet come.
    assert server.unanswered == (name == "nothing")


def test_random_answers_are_never_data():
    draw = random.Random(12)

    def scramble(request):
        wrong = bytearray(answer(request, 9))
        for _ in range(draw.randrange(1, 4)):
            wrong[draw.randrange(2, 9)] ^= draw.randrange(1, 256)
        whole = answer(request, 9)
        return draw.choice(
            [bytes(wrong), whole[: draw.randrange(len(whole))], draw.randbytes(draw.randrange(40))]
        )

    came, _ = hostile(scramble, rounds=30, timeout=0.02)
    assert came <= {0.0, float(0x70007)}


# What is wrong with a binding.


def channel(table, side, name, **values):
    table["devices"]["plc"][side][name].update(values)


def device(table, **values):
    table["devices"]["plc"].update(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: channel(t, "receive", "y", type="int8"),
         "[devices.plc.receive.y] type: must be one of int16, uint16, int32, uint32, float32, "
         "float64, "
         "bit, got 'int8'. Did you mean `int32` or `int16`?"),
        (lambda t: channel(t, "receive", "y", kind="register"),
         "[devices.plc.receive.y] kind: must be one of holding, input, coil, discrete, got "
         "'register'."),
        (lambda t: channel(t, "receive", "y", address=400001),
         "[devices.plc.receive.y] address: must be between 0 and 65535, got 400001."),
        (lambda t: channel(t, "receive", "y", address=65535),
         "[devices.plc]: channel `y` ends at input 65536, but the last address is 65535."),
        (lambda t: channel(t, "receive", "y", type=None) or t["devices"]["plc"]["receive"]["y"].pop(
            "type"),
         "[devices.plc]: channel `y`: type is missing: the type of the register, one of int16, "
         "uint16, int32, uint32, float32, float64."),
        (lambda t: channel(t, "receive", "y", type="bit"),
         "[devices.plc]: channel `y`: the type for kind `input` must be a numeric type, got bit."),
        (lambda t: channel(t, "receive", "y", kind="coil"),
         "[devices.plc]: channel `y`: the type for kind `coil` must be a bit: omit type, or "
         'set it to "bit", got float32.'),
        (lambda t: channel(t, "send", "u", kind="input"),
         "[devices.plc]: channel `u`: an input register cannot be written: kind is \"holding\" or "
         "\"coil\" for outputs."),
        (lambda t: t["devices"]["plc"]["receive"].update(
            z={"kind": "input", "address": 1, "type": "int16"}),
         "[devices.plc]: channels `y` and `z` both read input 1: `y` is input 0 to 1."),
        (lambda t: channel(t, "send", "u", type="uint16", safe=-1),
         "[devices.plc]: channel `u`: the safe value -1 stands as -1 in the register, which is "
         "uint16: from 0 to 65535."),
        (lambda t: device(t, unit_id=256),
         "[devices.plc] unit_id: must be between 0 and 255, got 256."),
        (lambda t: device(t, serial="/dev/ttyUSB0"),
         "[devices.plc]: has both host and serial: one of them host = \"…\" for Modbus TCP, or "
         "serial = \"…\" for a serial line (RTU)."),
        (lambda t: t["devices"]["plc"].pop("host"),
         "[devices.plc]: has neither: say host = \"…\" for Modbus TCP, or serial = \"…\" for a "
         "serial line (RTU)."),
        (lambda t: t["devices"]["plc"].pop("host") and device(t, serial="/dev/x", unit_id=0),
         "[devices.plc]: unit_id is 0, but must be 1 to 247 on a serial line."),
    ],
)  # fmt: skip
def test_what_cannot_work_is_a_problem_of_the_binding(change, message):
    table = rig()
    change(table)
    problems = check_binding(loop(), table).problems
    assert message in problems, problems


def test_a_channel_in_another_unit_than_its_port_is_a_problem():
    d = Diagram("tank", step=1e-3)
    d.connect(d.add(Constant(0.0, unit="m"), name="level"), d.add(Gain(1.0), name="gauge"))
    inputs = {"level": {"kind": "input", "address": 0, "type": "int16", "unit": "mm"}}
    table = rig(receive=inputs, send={})
    del table["blocks"]
    table["signals"] = {"level": "plc.level"}
    (problem,) = check_binding(d, table).problems
    assert "`level.y` is in m, but channel `plc.level` is in mm" in problem
    assert "scale = 0.001" in problem


@pytest.mark.parametrize(
    ("name", "line"), [("pymodbus.client", {"host": "h"}), ("serial", {"serial": "/dev/x"})]
)
def test_without_its_packages_it_says_how_to_install_them(name, line, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    table = rig()
    del table["devices"]["plc"]["host"]
    device(table, **line)
    assert check_binding(loop(), table).problems == [
        f"[devices.plc]: the driver `modbus` needs the package of `{name}`: "
        "pip install 'biella[modbus]'"
    ]


def test_what_is_not_there_is_said_before_a_run(plc):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(
        DeviceError,
        match=rf"no response from 127\.0\.0\.1:{port}; check that the device is "
        f"switched on",
    ):
        open_binding(loop(), rig(port))
    table = rig(serial="/dev/no_such_line")
    del table["devices"]["plc"]["host"]
    with pytest.raises(DeviceError, match="/dev/no_such_line cannot be opened; check that"):
        open_binding(loop(), table)
    plc.switch_on()
    table = rig(plc.port)
    channel(table, "receive", "y", address=40000)
    with pytest.raises(
        DeviceError, match="rejected the request to read input 40000 to 40001, code 2: invalid"
    ):
        open_binding(loop(), table)
    with pytest.raises(DeviceError, match="unit 9 "):
        open_binding(loop(), rig(plc.port, unit_id=9))
