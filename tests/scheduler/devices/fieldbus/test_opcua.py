"""The OPC UA driver against asyncua's own server, on loopback."""

from __future__ import annotations

import asyncio
import math
import random
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from biella import Diagram, run_realtime
from biella.blocks import Constant, Gain
from biella.errors import DeviceError
from biella.scheduler.binding._bind import check_binding, open_binding
from biella.scheduler.devices.fieldbus._opcua import OpcuaDriver

from ..diagrams import loop
from ..peer import wait_for
from ..servers import LoopThread, advance_until, start_patiently

pytest.importorskip("asyncua", reason="asyncua is not installed")

from asyncua import Server, ua
from asyncua.common.callback import CallbackType
from asyncua.crypto.permission_rules import User, UserRole
from asyncua.server.user_managers import UserManager

URI = "http://example.com/plant"
VALUES = {
    "u": (0.0, "Double"),
    "y": (0.0, "Double"),
    "any": (7, "Int16"),
    "fixed": (1.0, "Double"),
    "text": ("full", "String"),
    "row": ([1.0, 2.0], "Float"),
    "flag": (False, "Boolean"),
    **{name.lower(): (0, name) for name in ("SByte", "UInt16", "Int64", "UInt64")},
    "float": (0.0, "Float"),
}


class Gate(UserManager):
    """Lets in who is anonymous, and one user."""

    def get_user(self, server, username=None, password=None, certificate=None):
        good = username is None or (username, password) == ("anna", "secret")
        return User(role=UserRole.User) if good else None


class Plant:
    """A server with some variables, of which y is made -2 u whenever u is written."""

    def __init__(self, thread):
        self.thread, self.log, self.doubles = thread, [], True
        thread.run(self._serve())
        self.on = True

    async def _serve(self):
        self.server = Server(user_manager=Gate())
        await self.server.init()
        self.server.set_endpoint("opc.tcp://127.0.0.1:0/plant")
        self.server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
        space = await self.server.register_namespace(URI)
        self.space = space
        box = await self.server.nodes.objects.add_object(
            ua.NodeId.from_string(f"ns={space};s=box"), "box"
        )
        self.nodes = {}
        for name, (value, kind) in VALUES.items():
            node = await box.add_variable(
                ua.NodeId.from_string(f"ns={space};s={name}"),
                name,
                value,
                varianttype=ua.VariantType[kind],
            )
            if name != "fixed":
                await node.set_writable()
            self.nodes[name] = node
        await self.nodes["any"].write_attribute(
            ua.AttributeIds.DataType,
            ua.DataValue(
                ua.Variant(ua.NodeId(ua.Int32(ua.ObjectIds.Number)), ua.VariantType.NodeId)
            ),
        )
        await self.server.start()
        self.server.subscribe_server_callback(CallbackType.PostWrite, self._note)

    async def _note(self, event, _):
        if not event.is_external:
            return
        for item in event.request_params.NodesToWrite:
            name, value = item.NodeId.Identifier, item.Value.Value
            self.log.append((name, value.Value, value.VariantType.name))
            if name == "u" and self.doubles:
                await self._put("y", -2.0 * value.Value, "Double")

    async def _put(self, name, value, kind):
        data = ua.DataValue(ua.Variant(value, ua.VariantType[kind]))
        await self.server.write_attribute_value(self.nodes[name].nodeid, data)

    def put(self, name, value, kind):
        self.thread.run(self._put(name, value, kind))

    def pretend(self, name, value, kind, status):
        """Answer with something that the server itself would not take."""
        data = ua.DataValue(ua.Variant(value, ua.VariantType[kind]), ua.StatusCode(status))
        self.server.set_attribute_value_callback(self.nodes[name].nodeid, lambda *_: data)

    def get(self, name):
        return self.thread.run(self.nodes[name].read_value())

    @property
    def url(self):
        return f"opc.tcp://127.0.0.1:{self._line.port}/plant"

    @property
    def _line(self):
        assert self.server.bserver is not None
        return self.server.bserver

    def switch(self, on):
        if on != self.on:
            line = self._line
            self.thread.run(line.start() if on else line.stop())
            self.on = on

    def reset(self):
        self.switch(True)
        self.doubles = True
        for name, (value, kind) in VALUES.items():
            self.put(name, value, kind)
        self.log.clear()


@pytest.fixture(scope="module")
def server():
    with LoopThread() as thread:
        made = Plant(thread)
        yield made
        thread.run(made.server.stop())


@pytest.fixture
def plant(server):
    server.reset()
    return server


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(OpcuaDriver, "retry", 0.02)


def node(name):
    return f"nsu={URI};s={name}"


def rig(url="opc.tcp://127.0.0.1:4840", **options):
    """Return the binding of `loop`: its gain is the server."""
    return {
        "devices": {"cell": {
            "driver": "opcua", "url": url, "timeout": 5.0, "period": 0.0,
            "receive": {"y": {"node": node("y")}},
            "send": {"u": {"node": node("u"), "safe": 0.25}},
            **options,
        }},
        "blocks": {"k": {"device": "cell"}},
    }  # fmt: skip


def bench(signals, inputs, outputs, url, **options):
    """Return a diagram of constants, and a binding that gives each a channel."""
    d = Diagram("bench", step=1e-3)
    for name, value in signals.items():
        d.connect(d.add(Constant(value), name=name), d.add(Gain(1.0), name=f"sink_{name}"))
    table = rig(url, receive=inputs, send=outputs, **options)
    del table["blocks"]
    table["signals"] = {name: f"cell.{name}" for name in signals}
    return d, table


def test_a_loop_is_closed_through_the_server(plant):
    with run_realtime(loop(), bind=rig(plant.url)) as run:
        wait_for(lambda: bool(run.latest("x") < 0.5))
        result = run.stop()
    # Each value that came is what the server made of one that was sent before.
    assert set(result["k"][1:-1]) <= {0.0, -0.5, *(-2.0 * result["x"])}
    assert (np.diff(result["x"]) <= 0).all()
    assert plant.log[-1] == ("u", 0.25, "Double")
    assert plant.get("u") == 0.25


def test_outputs_have_the_type_of_their_variable(ticks, plant):
    kinds = {"any": "Int16", "flag": "Boolean", "sbyte": "SByte", "uint16": "UInt16",
             "int64": "Int64", "uint64": "UInt64", "float": "Float"}  # fmt: skip
    values = {"any": -3.4, "flag": 1.0, "sbyte": -128, "uint16": 65535, "int64": -(2.0**63),
              "uint64": 2.0**53, "float": 0.1}  # fmt: skip
    outputs = {name: {"node": f"ns={plant.space};s={name}", "safe": 0} for name in kinds}
    outputs["row"] = {"node": node("row"), "safe": 0, "width": 2}
    d, table = bench(values, {"flag_back": {"node": node("flag")}}, outputs, plant.url)
    d.connect(d.add(Constant([3.0, 4.0]), name="row"), d.add(Gain(1.0), name="sink_row"))
    table["signals"]["row"] = "cell.row"
    bound = open_binding(d, table)
    run = ticks(bound)
    run.advance(1)
    wait_for(lambda: len(plant.log) >= len(outputs))
    told = {name: (value, kind) for name, value, kind in plant.log[: len(outputs)]}
    assert told.pop("row") == ([3.0, 4.0], "Float")
    assert {name: kind for name, (_, kind) in told.items()} == kinds
    expected = values | {"any": -3, "flag": True, "float": np.float32(0.1)}
    assert {name: value for name, (value, _) in told.items()} == expected
    bound.close()
    assert plant.get("row") == [0.0, 0.0]
    assert plant.get("uint16") == 0


def test_inputs_may_be_vectors_and_whole(ticks, plant):
    plant.put("int64", -5, "Int64")
    plant.put("flag", True, "Boolean")
    inputs = {
        "n": {"node": node("int64"), "scale": 2.0},
        "on": {"node": node("flag")},
        "row": {"node": node("row"), "width": 2},
    }
    d, table = bench({"n": 0.0, "on": 0.0}, inputs, {}, plant.url)
    d.connect(d.add(Constant([0.0, 0.0]), name="row"), d.add(Gain(1.0), name="sink_row"))
    table["signals"]["row"] = "cell.row"
    run = ticks(open_binding(d, table))
    row = advance_until(run, lambda n, *_: n != 0, ["n", "on", "row"])
    assert row[:2] == [-10.0, 1.0]
    assert list(np.ravel(row[2])) == [1.0, 2.0]


def test_a_number_that_does_not_fit_ends_the_run_or_saturates(ticks, plant):
    out = {"node": node("uint16"), "safe": 0.0, "scale": 0.1}
    d, table = bench({"p": -1.0}, {}, {"p": out}, plant.url, on_loss="hold")
    with pytest.raises(ticks.ended, match=r"`p` \(to it\): -1 exceeds its limit 0"):
        ticks(open_binding(d, table)).advance(1)
    out["saturate"] = True
    d, table = bench({"p": 1e6}, {}, {"p": out}, plant.url)
    ticks(open_binding(d, table)).advance(1)
    wait_for(lambda: plant.get("uint16") == 65535)
    out["safe"] = -1.0
    with pytest.raises(DeviceError, match="`p`: the safe value must be finite and lie within the"):
        open_binding(d, table)


@pytest.mark.parametrize(("name", "most"), [("int64", 2**63 - 2**10), ("uint64", 2**64 - 2**11)])
def test_the_largest_double_that_fits_64_bits(ticks, plant, name, most):
    out = {"node": node(name), "safe": 0.0, "saturate": True}
    d, table = bench({"p": 1e30}, {}, {"p": out}, plant.url)
    ticks(open_binding(d, table)).advance(1)
    wait_for(lambda: plant.get(name) == most)


def test_a_server_that_goes_and_comes_back(ticks, plant):
    table = rig(plant.url, on_loss="safe")
    table["devices"]["cell"]["receive"]["y"]["safe"] = -0.125
    bound = open_binding(loop(), table)
    run = ticks(bound)
    advance_until(run, lambda alive, k: alive and k < -0.5, ["cell.alive", "k"])
    plant.switch(False)
    _, k = advance_until(run, lambda alive, k: not alive, ["cell.alive", "k"])
    assert k == -0.125
    plant.log.clear()
    plant.switch(True)
    advance_until(run, lambda alive, k: alive and k != -0.125, ["cell.alive", "k"])
    assert plant.log[0] == ("u", 0.25, "Double")  # the first that it was told was safe
    assert bound.devices[0].counts["returns"] == 1
    bound.close()
    assert plant.get("u") == 0.25
    assert not [thread for thread in threading.enumerate() if "cell: events" in thread.name]


@pytest.mark.parametrize(
    ("value", "kind", "status", "reason"),
    [
        (math.nan, "Double", 0, "channel `y` reads nan, which is not a number"),
        (-math.inf, "Double", 0, "channel `y` reads -inf, which is not a number"),
        (3.0, "Double", ua.StatusCodes.BadSensorFailure, "is not good: BadSensorFailure"),
        (3.0, "Double", ua.StatusCodes.UncertainLastUsableValue,
         "is not good: UncertainLastUsableValue"),
        ("3.0", "String", 0, "channel `y` is of type String, which is not numeric"),
        ([3.0, 4.0], "Double", 0, "channel `y` has 2 values, but its width is 1"),
        (None, "Null", 0, "channel `y` is of type Null, which is not numeric"),
    ],
)  # fmt: skip
def test_what_is_no_good_number_is_never_data(ticks, plant, value, kind, status, reason):
    bound = open_binding(loop(), rig(plant.url))
    run = ticks(bound)
    advance_until(run, lambda k: k < 0, ["k"])
    plant.doubles = False
    plant.pretend("y", value, kind, status)
    last: list[Any] = []

    def go_on() -> bool:
        last.extend(run.advance(1, signals=["k"], now=time.monotonic_ns))
        return False

    with pytest.raises(ticks.ended) as error:
        wait_for(go_on)
    assert "device `cell` is disconnected: DeviceError: " in str(error.value)
    assert reason in str(error.value)
    assert all(-2.0 <= k < 0 for (k,) in last)
    bound.close()
    assert plant.get("u") == 0.25


class Relay:
    """Stands between driver and server, and carries all, nothing, or something else."""

    def __init__(self, thread, port):
        self.thread, self.target, self.change, self.changed = thread, port, None, 0
        self.server = thread.run(self._listen())
        self.port = self.server.sockets[0].getsockname()[1]

    async def _listen(self):
        return await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def _accept(self, reader, writer):
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        ways = (self._carry(reader, far_writer, False), self._carry(far_reader, writer, True))
        try:
            await asyncio.wait(
                [asyncio.ensure_future(way) for way in ways], return_when="FIRST_COMPLETED"
            )
        finally:
            for end in (writer, far_writer):
                end.close()

    async def _carry(self, reader, writer, back):
        while data := await reader.read(65536):
            if back and self.change is not None:
                self.changed += 1
                data = self.change(data)
                if data is None:
                    return
            writer.write(data)

    def close(self):
        async def end():
            self.server.close()

        self.thread.run(end())


DRAW = random.Random(5)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"",
        lambda data: None,
        lambda data: data[: len(data) // 2],
        lambda data: b"MSGF" + b"\xff" * (len(data) - 4),
        lambda data: data[:4] + (2**32 - 1).to_bytes(4, "little") + data[8:],  # its length
        lambda data: data[:16] + bytes(8) + data[24:],  # of another request
        lambda data: data[:24] + DRAW.randbytes(2) + data[26:],  # another kind of answer
        lambda data: DRAW.randbytes(len(data)),
    ],
    ids=["nothing", "the end", "half", "ones", "length", "sequence", "kind", "random"],
)
def test_a_wrong_answer_is_never_data(plant, change):
    plant.put("y", 7.0, "Double")
    relay = Relay(plant.thread, plant.server.bserver.port)
    d, table = bench(
        {"y": 0.0}, {"y": {"node": f"ns={plant.space};s=y"}}, {},
        f"opc.tcp://127.0.0.1:{relay.port}", timeout=0.2, on_loss="hold",
    )  # fmt: skip
    try:
        with start_patiently(d, table) as run:
            wait_for(lambda: run.latest("y") == 7.0)
            plant.put("y", 9.0, "Double")
            wait_for(lambda: run.latest("y") == 9.0)
            relay.change = change
            wait_for(lambda: relay.changed > 0 and run.latest("cell.alive") == 0)
            relay.change = None
            plant.put("y", 8.0, "Double")
            wait_for(lambda: run.latest("y") == 8.0)
            result = run.stop()
    finally:
        relay.close()
    assert set(result["y"]) <= {0.0, 7.0, 8.0, 9.0}
    assert result.info["realtime"]["devices"]["cell"]["returns"] >= 1


def test_a_user_has_a_password(ticks, plant, monkeypatch):
    monkeypatch.setenv("CELL_PASSWORD", "secret")
    table = rig(plant.url, user="anna", password_env="CELL_PASSWORD")
    bound = open_binding(loop(), table)
    advance_until(ticks(bound), lambda k: k < 0, ["k"])
    assert "secret" not in str(bound.describe())
    monkeypatch.setenv("CELL_PASSWORD", "guessed")
    with pytest.raises(
        DeviceError, match="cannot be opened: DeviceError: the server returned BadUser"
    ):
        open_binding(loop(), table)


@pytest.mark.parametrize(
    ("channel", "message"),
    [
        (("receive", "y", node("none")),
         "`y`: the server has no node nsu=.*none .BadNodeIdUnknown"),
        (("receive", "y", "nsu=http://example.com/plan;s=y"),
         "`y`: the server has no namespace `http://example.com/plan`. Did you mean .*plant"),
        (("receive", "y", node("box")), "`y`: node .*box is not a variable"),
        (("receive", "y", node("text")), "`y` is of type String, which is not numeric"),
        (("receive", "y", node("row")), "`y` has 2 values, but its width is 1"),
        (("send", "u", node("text")), "`u`: node .*text is of type String, which is not numeric"),
        (("send", "u", node("fixed")), "`u`: node .*fixed may not be written by this user"),
    ],
)  # fmt: skip
def test_what_the_server_has_not_is_said_before_a_run(plant, channel, message):
    table, (side, name, where) = rig(plant.url), channel
    table["devices"]["cell"][side][name]["node"] = where
    with pytest.raises(DeviceError, match=message):
        open_binding(loop(), table)
    assert plant.log == []


def test_a_server_that_is_not_there_is_said_before_a_run(plant):
    plant.switch(False)
    with pytest.raises(
        DeviceError, match="; check that the server is running and the address is correct"
    ):
        open_binding(loop(), rig(plant.url))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"url": "http://127.0.0.1:4840"},
         '[devices.cell]: url is "http://127.0.0.1:4840", but must be opc.tcp://host:port; the '
         "default port is 4840."),
        ({"url": "opc.tcp://plc"},
         '[devices.cell]: url is "opc.tcp://plc", but must be opc.tcp://host:port; the default '
         "port is 4840."),
        ({"url": "opc.tcp://anna:secret@plc"},
         "[devices.cell]: url contains a user name, which would be written to logs: use user "
         "= … instead"),
        ({"password_env": "PATH"}, "[devices.cell]: password_env requires user."),
        ({"user": "anna", "password_env": "NO_SUCH_VARIABLE"},
         "[devices.cell]: there is no environment variable `NO_SUCH_VARIABLE`: it must "
         "contain the password of the user. In a shell: export NO_SUCH_VARIABLE=…"),
        ({"receive": {"y": {"node": "Motor.Speed"}}},
         "[devices.cell]: channel `y`: `Motor.Speed` is not a node id. Examples: "
         "ns=2;s=Motor.Speed, "
         "ns=2;i=1001, or with the name of a namespace nsu=http://example.com/motor;s=Speed."),
        ({"receive": {"y": {"node": "ns=2;i=5"}, "z": {"node": "i=5;ns=2"}}},
         "[devices.cell]: channels `y` and `z` both read node i=5;ns=2."),
        ({"receive": {"y": {}}},
         "[devices.cell.receive.y] node: is missing: node id, such as ns=2;s=Motor.Speed."),
    ],
)  # fmt: skip
def test_what_cannot_work_is_a_problem_of_the_binding(change, message):
    problems = check_binding(loop(), rig(**change)).problems
    assert message in problems, problems


def test_without_its_package_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "asyncua", None)
    assert check_binding(loop(), rig()).problems == [
        "[devices.cell]: the driver `opcua` needs the package of `asyncua`: "
        "pip install 'biella[opcua]'"
    ]
