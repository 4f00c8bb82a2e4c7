"""rig.toml against a diagram: every mistake has its message, and all are reported together."""

from __future__ import annotations

from typing import Any

import pytest

from biella import BiellaDeprecationWarning, Diagram, Subsystem
from biella.blocks import Constant, Gain
from biella.errors import BindingError
from biella.scheduler.binding._bind import check_binding, open_binding, read_binding

from .speed_loop import GOOD, diagram

pytestmark = pytest.mark.engine


def test_a_good_binding_has_no_problems(check):
    found = check(GOOD)
    assert found.problems == []
    assert [
        (mapping.port, mapping.device, mapping.incoming, mapping.names)
        for mapping in found.channel_maps
    ] == [
        ("pid.reference", "board", False, ["reference"]),
        ("pid.measurement", "board", False, ["speed"]),
        ("pid.y", "board", True, ["torque"]),
    ]
    assert found.binding.run == {"clock": "wall", "overrun": "skip", "max_consecutive_overruns": 5}
    assert found.warnings == ["[devices.board.receive.spare]: spare is received but not used."]


def test_a_timeout_that_is_shorter_than_a_tick_is_odd(check):
    with_factor = GOOD.replace("[run]", "[run]\nfactor = 10.0")
    for text, timeout, told in [(GOOD, 5e-4, True), (with_factor, 5e-4, False)]:
        found = check(text.replace('on_loss = "stop"', f'on_loss = "stop"\ntimeout = {timeout}'))
        assert found.problems == []
        words = "[devices.board] timeout: 0.0005 s are less than a tick, 0.001 s: it is lost after"
        assert any(diagnostic.startswith(words) for diagnostic in found.warnings) == told


def test_ports_and_channels_of_one_name_need_not_be_named(check):
    text = GOOD.replace('inputs = { measurement = "speed", reference = "reference" }', "")
    found = check(text.replace("send.speed]", "send.measurement]"))
    assert found.problems == []
    assert [mapping.names for mapping in found.channel_maps] == [
        ["reference"],
        ["measurement"],
        ["torque"],
    ]


PROBLEMS = {
    # What is changed in the good one → the whole message.
    "an unknown table": (
        "[run]", "[rum]",
        "[rum]: is not a table of a binding. Did you mean `run`? Tables: run, devices, blocks, "
        "signals.",
    ),
    "an unknown option of a run": (
        "max_consecutive_overruns = 5", "max_consecutive_overrun = 5",
        "[run] max_consecutive_overrun: is not an option. Did you mean "
        "`max_consecutive_overruns` or "
        "`max_overruns`?",
    ),
    "a run option of another kind": (
        "max_consecutive_overruns = 5", 'max_consecutive_overruns = "few"',
        "[run] max_consecutive_overruns: must be a whole number, got 'few'.",
    ),
    "an unknown policy": (
        'overrun = "skip"', 'overrun = "skips"',
        "[run] overrun: must be one of stop, skip, catch_up, slip, got 'skips'. Did you mean "
        "`skip`",
    ),
    "an unknown clock": (
        'clock = "wall"', 'clock = "sun"',
        "[run] clock: must be `wall`, `free` or `device:NAME`, got 'sun'.",
    ),
    "a clock of an unknown device": (
        'clock = "wall"', 'clock = "device:bord"',
        "[run] clock: there is no device `bord`. Did you mean `board`? Devices: board.",
    ),
    "a clock that is none": (
        'clock = "wall"', 'clock = "device:board"',
        "[run] clock: `board` cannot be a clock: it is a loopback.",
    ),
    "channels that are not a table": (
        'on_loss = "stop"\n',
        'on_loss = "stop"\n[devices.other]\ndriver = "loopback"\nreceive = 3\n',
        "[devices.other] receive: must be a table, got 3.",
    ),
    "channels that are a list": (
        'on_loss = "stop"\n',
        'on_loss = "stop"\n[devices.other]\ndriver = "loopback"\nreceive = ["a", "b"]\n',
        "[devices.other] receive: must contain one table per channel, in their order: "
        "[devices.other.receive.a], [devices.other.receive.b].",
    ),
    "a timeout that would be rounded to none": (
        'on_loss = "stop"\n', 'on_loss = "stop"\ntimeout = 1e-10\n',
        "[devices.board] timeout: must be at least 1e-06 s, got 1e-10.",
    ),
    "a host with its port": (
        'driver = "loopback"', 'driver = "udp"\nhost = "192.168.1.20:5000"\nport = 5000',
        '[devices.board] host: must not contain a port: write host = "192.168.1.20" and '
        "port = 5000.",
    ),
    "a host that is elsewhere": (
        'driver = "loopback"', 'driver = "udp"\nhost = "192.168.1.20"\nport = 5000',
        "[devices.board] bind: is missing: 192.168.1.20 is another machine. Set the local address",
    ),
    "a port that is another device's": (
        'driver = "loopback"',
        'driver = "serial"\nport = "/dev/ttyX"\n[devices.other]\ndriver = "text"\n'
        'port = "/dev/ttyX"\n[devices.other.receive.a]\n[devices.board.receive.b]',
        "[devices.other] port: is that of `board` already: give one device all of its channels.",
    ),
    "a block in other letters": (
        "[blocks.pid]", "[blocks.PID]",
        "[blocks.PID]: there is no block `PID`. Did you mean `pid`",
    ),
    "a device without channels": (
        'on_loss = "stop"\n', 'on_loss = "stop"\n[devices.other]\ndriver = "loopback"\n',
        "[devices.other]: has no channels: add [devices.other.receive.…] or "
        "[devices.other.send.…].",
    ),
    "no driver": ('driver = "loopback"', "", "[devices.board] driver: is missing"),
    "an unknown driver": (
        'driver = "loopback"', 'driver = "loopbak"',
        "[devices.board] driver: there is no driver `loopbak`. Did you mean `loopback`? Drivers: "
        "serial, text, udp, tcp, loopback, replay, can",
    ),
    "an unknown option of a driver": (
        'driver = "loopback"', 'driver = "loopback"\nbaud = 9600',
        "[devices.board] baud: is not an option of the driver `loopback`. Options: delay, jitter, "
        "loss, noise, seed.",
    ),
    "an option out of range": (
        'driver = "loopback"', 'driver = "loopback"\nloss = 1.5',
        "[devices.board] loss: must be between 0 and 1, got 1.5.",
    ),
    "a loopback with other counts": (
        "[devices.board.receive.spare]", "",
        "[devices.board]: a loopback returns what it receives, but 2 values are sent and 1 are "
        "received.",
    ),
    "an FMU whose path has a NUL": (
        '[blocks.pid]\ndevice = "board"', '[blocks.pid]\nfmu = "a\\u0000b.fmu"',
        "[blocks.pid] fmu: must not contain a NUL character",
    ),
    "a kind of loss with a NUL": (
        'on_loss = "stop"', 'on_loss = "st\\u0000op"',
        "[devices.board] on_loss: must not contain a NUL character",
    ),
    "an unknown kind of loss": (
        'on_loss = "stop"', 'on_loss = "cry"',
        "[devices.board] on_loss: must be one of stop, hold, safe, got 'cry'.",
    ),
    "a timeout of zero": (
        'on_loss = "stop"', "timeout = 0",
        "[devices.board] timeout: must be at least 1e-06 s, got 0.",
    ),
    "a device with the name of a block": (
        "board", "ref",
        "[devices.ref]: a block of the diagram has the name of this device, and the signals "
        "of the device (ref.age, "
        "…) would have it too: rename the device.",
    ),
    "a device with a name of the run": (
        "board", "realtime",
        "[devices.realtime]: the name is reserved for signals of the run: rename the device.",
    ),
    "more values than a device has": (
        "[devices.board.receive.spare]", "\n".join(
            f"[devices.board.receive.spare{n}]\nwidth = 255" for n in range(17)
        ),
        "[devices.board] receive: has 4336 values, but a device has at most 4096.",
    ),
    "an unknown option of a channel": (
        "limits = [-40, 40]", "limit = [-40, 40]",
        "[devices.board.receive.torque] limit: is not an option of a channel. Did you mean "
        "`limits`?",
    ),
    "limits that are reversed": (
        "[-40, 40]", "[40, -40]",
        "[devices.board.receive.torque] limits: are reversed: the lower one 40 is not below -40.",
    ),
    "limits that are not a pair": (
        "[-40, 40]", "40",
        "[devices.board.receive.torque] limits: must be two numbers [low, high], got 40.",
    ),
    "a scale of zero": (
        "limits = [-40, 40]", "scale = 0.0",
        "[devices.board.receive.torque] scale: must not be 0",
    ),
    "a unit that is none": (
        'unit = "N*m"', 'unit = "Nmm2x"', "[devices.board.receive.torque] unit: "
    ),
    "a safe value beyond the limits": (
        "limits = [-40, 40]\nsafe = 0", "limits = [-40, 40]\nsafe = 41",
        "[devices.board.receive.torque] safe: is 41, outside the limits [-40, 40].",
    ),
    "no safe value": (
        'send.speed]\nunit = "rad/s"\nsafe = 0', 'send.speed]\nunit = "rad/s"',
        "[devices.board.send.speed] safe: is missing: it is the value to send on errors and "
        "at the end.",
    ),
    "no safe value to go on with": (
        'on_loss = "stop"', 'on_loss = "safe"',
        "[devices.board.receive.spare] safe: is missing",
    ),
    "an unknown block": (
        "[blocks.pid]", "[blocks.pdi]",
        "[blocks.pdi]: there is no block `pdi`. Did you mean `pid`? Blocks: ref, pid, x, speed, "
        "pair, twice.",
    ),
    "neither a device nor an FMU": (
        'device = "board"', "", "[blocks.pid]: has neither: say `device = …` or `fmu = …`."
    ),
    "both a device and an FMU": (
        'device = "board"', 'device = "board"\nfmu = "a.fmu"',
        "[blocks.pid]: has both: one of them `device = …` or `fmu = …`.",
    ),
    "an unknown device": (
        'device = "board"', 'device = "bord"',
        "[blocks.pid] device: there is no device `bord`. Did you mean `board`? Devices: board.",
    ),
    "a device that nothing uses": (
        'device = "board"', 'device = "bord"',
        "[devices.board]: it is not used: refer to it in [blocks.…] or [signals], or remove it.",
    ),
    "an unknown port": (
        "measurement =", "measure =",
        "[blocks.pid] inputs: `pid` has no input `measure`. Did you mean `measurement`? Inputs: ",
    ),
    "an unknown channel": (
        'y = "torque"', 'y = "torq"',
        "[blocks.pid] outputs: there is no channel `torq` from `board`. Did you mean `torque`? "
        "Channels from it: torque, spare.",
    ),
    "a channel of the other direction": (
        'y = "torque"', 'y = "speed"',
        "[blocks.pid] outputs: there is no channel `speed` from `board`. It goes to the device, "
        "not from it. Channels from it: torque, spare.",
    ),
    "an output that comes from nowhere": (
        'outputs = { y = "torque" }', "",
        "[blocks.pid] outputs: output `y` of `pid` has no source: assign a channel of `board`. "
        "Channels from it: torque, spare.",
    ),
    "a channel used twice": (
        'reference = "reference"', 'reference = "speed"',
        "[blocks.pid] inputs: channel `board.speed` is used twice: by `pid.reference` and by "
        "`pid.measurement`.",
    ),
    "another scale": (
        'unit = "N*m"\nlimits = [-40, 40]', 'unit = "mN.m"\nlimits = [-4000, 4000]\nscale = 2',
        "[blocks.pid] outputs: `pid.y` is in N.m, but channel `board.torque` is in mN.m: same "
        "dimension, another scale. In [devices.board.receive.torque] write unit = \"N.m\", "
        "scale = 0.002, limits = [-4, 4], safe = 0.",
    ),
    "two values for one": (
        'y = "torque"', 'y = ["torque", "spare"]',
        "[blocks.pid] outputs: `pid.y` has 1 value, but torque, spare of `board` are 2 values.",
    ),
    "a signal of an unknown device": (
        "[blocks.pid]", '[signals]\n"speed" = "rig.speed"\n[blocks.pid]',
        "[signals] speed: there is no device `rig`. Devices: board.",
    ),
    "a signal that is none": (
        "[blocks.pid]", '[signals]\nsped = "board.spare"\n[blocks.pid]',
        "[signals] sped: there is no signal `sped`. Did you mean `speed`",
    ),
    "an input as a signal": (
        "[blocks.pid]", '[signals]\n"twice.u" = "board.spare"\n[blocks.pid]',
        "[signals] twice.u: there is no signal `twice.u`. It is an input: name the output that "
        "feeds it.",
    ),
    "a signal of a replaced block": (
        "[blocks.pid]", '[signals]\n"pid.y" = "board.spare"\n[blocks.pid]',
        "[signals] pid.y: `pid` is replaced by [blocks.pid] already.",
    ),
    "a signal without a channel": (
        "[blocks.pid]", '[signals]\nspeed = "board"\n[blocks.pid]',
        '[signals] speed: must be "device.channel", all of one device, got \'board\'.',
    ),
    "a vector to one channel": (
        "[blocks.pid]", '[signals]\npair = "board.spare"\n[blocks.pid]',
        "[signals] pair: `pair.y` has 2 values, but spare of `board` is 1 value. A vector takes "
        'as many channels, ["a", "b", …], or one with width = 2.',
    ),
    "a missing FMU": (
        'device = "board"\ninputs = { measurement = "speed", reference = "reference" }\n'
        'outputs = { y = "torque" }', 'fmu = "crank.fmu"',
        "[blocks.pid] fmu: cannot read the FMU",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_every_problem_has_its_message(check, name):
    old, new, message = PROBLEMS[name]
    assert old in GOOD
    problems = check(GOOD.replace(old, new)).problems
    assert sum(problem.startswith(message) for problem in problems) == 1, problems


def test_all_problems_are_reported_together_and_no_device_is_opened(tmp_path):
    path = tmp_path / "rig.toml"
    text = GOOD.replace("[-40, 40]", "[40, -40]").replace("measurement =", "measure =")
    path.write_text(text.replace('overrun = "skip"', 'overrun = "jump"'))
    with pytest.raises(BindingError, match=r"(?s)^3 problems in .*rig.toml:\n  1\. \[dev") as e:
        open_binding(diagram(), path)
    assert len(e.value.problems) == 3


def test_a_diagram_that_does_not_compile_says_so_beside_the_rest(tmp_path):
    d = diagram()
    d.add(Gain(1.0), name="loose")
    found = check_binding(d, {"run": {"clock": "sun"}})
    assert [text.partition(":")[0] for text in found.problems] == [
        "[run] clock",
        "the diagram is not valid",
    ]


def test_an_output_channel_that_nothing_feeds_must_say_that_it_is_unused(check):
    text = GOOD.replace(', reference = "reference"', "").replace("send.reference", "send.aux")
    message = (
        "[devices.board.send.aux]: nothing is sent on aux. Bind it, or set unused = true to "
        "send its safe value."
    )
    assert check(text).problems == [message]
    found = check(text.replace("send.aux]", "send.aux]\nunused = true"))
    assert found.problems == []
    warning = "[blocks.pid]: input `reference` is not sent on any channel of `board`."
    assert warning in found.warnings


def test_units_of_another_dimension_name_a_channel_that_fits(check):
    text = GOOD.replace("receive.spare]", 'receive.spare]\nunit = "rad"')
    problems = check(text.replace('y = "torque"', 'y = "spare"')).problems
    assert problems == [
        "[blocks.pid] outputs: `pid.y` is in N.m, but channel `board.spare` in rad. Did you mean "
        "`torque`?"
    ]


def test_degrees_are_offered_with_their_offset():
    d = Diagram("oven", step=1e-2)
    heat = d.add(Constant(300.0, unit="K"), name="heat")
    g = d.add(Gain(1.0), name="g")
    d.connect(heat, g)
    rig = {
        "devices": {"o": {"driver": "udp", "bind_port": 5000, "receive": {
            "t": {"unit": "degC", "scale": 0.1, "limits": [0, 200]}}}},
        "signals": {"heat": "o.t"},
    }  # fmt: skip
    assert check_binding(d, rig).problems == [
        "[signals] heat: `heat.y` is in K, but channel `o.t` is in degC: same dimension, another "
        'scale. In [devices.o.receive.t] write unit = "K", scale = 0.1, offset = 273.15, '
        "limits = [273.15, 473.15]."
    ]


def test_vectors_take_channels_one_by_one_or_an_array(check):
    base = GOOD.replace("[devices.board.receive.spare]", "[devices.board.receive.both]\nwidth = 2")
    base = base.replace(
        "[blocks.pid]", "[devices.board.send.aux]\nsafe = 0\nunused = true\n[blocks.pid]"
    )
    for channels in ('"board.both"', '["board.both[0]", "board.both[1]"]'):
        found = check(f"{base}\n[signals]\npair = {channels}")
        assert found.problems == []
        assert found.channel_maps[-1].names == ["both[0]", "both[1]"]
    half = base.replace("send.aux]\nsafe = 0\nunused = true", "send.aux]\nsafe = 0\nwidth = 2")
    half = half.replace("[blocks.pid]", "[devices.board.receive.more]\n[blocks.pid]")
    found = check(f'{half}\n[signals]\npair = "board.both"\nspeed = "board.aux[1]"')
    assert found.problems == [
        "[devices.board.send.aux]: nothing is sent on aux[0]. Bind it, or set unused = true "
        "to send its safe value."
    ]
    found = check(f'{base}\n[signals]\npair = ["board.both[0]", "board.both[2]"]')
    assert found.problems == [
        "[signals] pair: channel `board.both` has 2 values: there is no `both[2]`."
    ]
    found = check(f'{base}\n[signals]\npair = ["board.both[0]", "board.both[0]"]')
    assert found.problems[0] == (
        "[signals] pair: channel `board.both[0]` is used twice: by `pair.y` and by `pair.y`."
    )


def test_blocks_inside_subsystems_are_named_with_or_without_quotes():
    inner = Diagram("inner")
    u = inner.input("u", unit="rad/s")
    g = inner.add(Gain(5.0, unit="N.m"), name="g")
    inner.connect(u, g)
    inner.output("torque", g)
    d = Diagram("outer", step=1e-2)
    one = d.add(Constant(1.0, unit="rad/s"), name="one")
    sub = d.add(Subsystem(inner), name="sub")
    out = d.add(Gain(2.0), name="out")
    d.connect(one, sub)
    d.connect(sub, out)
    device: dict[str, Any] = {
        "driver": "loopback",
        "receive": {"t": {"unit": "N.m"}},
        "send": {"s": {"safe": 0, "unit": "rad/s"}},
    }

    def problems(blocks):
        return check_binding(d, {"devices": {"b": device}, "blocks": blocks}).problems

    inside = {"device": "b", "inputs": {"u": "s"}, "outputs": {"y": "t"}}
    assert problems({"sub": {"g": inside}}) == problems({"sub.g": inside}) == []
    whole = {"device": "b", "inputs": {"u": "s"}, "outputs": {"torque": "t"}}
    assert problems({"sub": whole}) == []
    assert "[blocks.sub.g]: it is part of `sub`, which is replaced as a whole." in problems(
        {"sub": whole, "sub.g": inside}
    )
    device["receive"]["t"]["unit"] = "rad/s"
    assert problems({"sub": whole})[0].startswith(
        "[blocks.sub] outputs: `sub.torque` is in N.m, but channel `b.t` in rad/s."
    )


OLD_NAMES = """
[devices.board]
driver = "loopback"
[devices.board.inputs.torque]
unit = "N.m"
[devices.board.outputs.speed]
unit = "rad/s"
safe = 0
"""


def test_old_names_of_channels_are_read_with_a_warning_that_says_what_to_write(tmp_path):
    """In 0.1 a device's ``inputs`` came from it, while a block's ``inputs`` went to it."""
    old, new = tmp_path / "old.toml", tmp_path / "new.toml"
    old.write_text(OLD_NAMES)
    new.write_text(OLD_NAMES.replace("board.inputs", "board.receive").replace("outputs", "send"))
    with pytest.warns(BiellaDeprecationWarning) as caught:
        found = read_binding(old)
    assert [str(each.message) for each in caught] == [
        "`[devices.board.inputs.…]` is deprecated and will be removed in 0.3: use "
        "`[devices.board.receive.…]` for channels from the device.",
        "`[devices.board.outputs.…]` is deprecated and will be removed in 0.3: use "
        "`[devices.board.send.…]` for channels to the device.",
    ]
    assert found.problems == () and found.devices == read_binding(new).devices
    assert list(found.devices["board"].receive) == ["torque"]
    assert list(found.devices["board"].send) == ["speed"]


def test_old_and_new_names_of_channels_at_once_are_a_problem(tmp_path):
    path = tmp_path / "both.toml"
    path.write_text(OLD_NAMES.replace("outputs", "send") + "[devices.board.receive.other]\n")
    assert read_binding(path).problems == (
        "[devices.board] inputs: is the former name of `receive`, which is also present: "
        "remove it.",
    )


def test_a_block_keeps_inputs_and_outputs():
    table = {"blocks": {"pid": {"device": "b", "receive": {"y": "t"}}}}
    (problem,) = read_binding(table).problems
    assert "[blocks.pid] receive: is not an option of a block" in problem
