"""The CAN driver against a peer on a virtual bus of python-can."""

from __future__ import annotations

import sys
import time

import can
import cantools
import pytest

from biella import Diagram
from biella.blocks import Constant, Gain
from biella.scheduler.binding._bind import check_binding, open_binding

pytestmark = pytest.mark.engine

DBC = """VERSION ""

BS_:

BU_: host drive

BO_ 256 Command: 8 host
 SG_ Torque : 0|16@1- (0.01,0) [-300|300] "N.m" drive
 SG_ Mode : 16|8@1+ (1,0) [1|7] "" drive

BO_ 512 Motion: 8 drive
 SG_ Speed : 0|16@1- (0.1,0) [-3000|3000] "rad/s" host
 SG_ Angle : 16|32@1- (0.001,0) [-1000|1000] "rad" host

BO_ 2364540158 Heat: 2 drive
 SG_ Winding : 0|8@1+ (1,-40) [-40|215] "degC" host
"""


@pytest.fixture
def dbc(tmp_path):
    (tmp_path / "drive.dbc").write_text(DBC)
    return cantools.database.load_file(tmp_path / "drive.dbc")


@pytest.fixture
def peer(request):
    with can.Bus(interface="virtual", channel=request.node.name) as bus:
        yield bus


@pytest.fixture
def rig(tmp_path, request, dbc):
    return {
        "devices": {"drive": {
            "driver": "can", "interface": "virtual", "channel": request.node.name,
            "dbc": str(tmp_path / "drive.dbc"), "timeout": 5.0, "on_loss": "hold",
            "receive": {
                "speed": {"message": "Motion", "signal": "Speed", "unit": "rad/s"},
                "Winding": {"message": "Heat", "unit": "degC"},
            },
            "send": {"torque": {
                "message": "Command", "signal": "Torque", "safe": 0.5, "limits": [-100, 100],
            }},
        }},
        "signals": {"speed": "drive.speed", "heat": "drive.Winding", "torque": "drive.torque"},
    }  # fmt: skip


def diagram():
    d = Diagram("drive", step=1e-3)
    d.add(Constant(0.0, unit="rad/s"), name="speed")
    d.add(Constant(0.0, unit="degC"), name="heat")
    torque = d.add(Constant(12.34, unit="N.m"), name="torque")
    sink = d.add(Gain(1.0), name="sink")
    d.connect(torque, sink)
    return d


def say(peer, dbc, message, **values):
    about = dbc.get_message_by_name(message)
    data = about.encode(values)
    peer.send(
        can.Message(
            arbitration_id=about.frame_id, data=data, is_extended_id=about.is_extended_frame
        )
    )


def advance_until(run, condition, signals):
    end = time.monotonic() + 10.0
    while True:
        (row,) = run.advance(1, signals=signals)
        if condition(row):
            return row
        assert time.monotonic() < end, row
        time.sleep(1e-3)


def test_signals_go_both_ways(ticks, rig, dbc, peer):
    run = ticks(open_binding(diagram(), rig))
    run.advance(1)
    message = peer.recv(timeout=10.0)
    assert message.arbitration_id == 256
    # What no channel sets has the least value that the DBC allows, here 1.
    assert dbc.decode_message(256, message.data) == pytest.approx({"Torque": 12.34, "Mode": 1})
    say(peer, dbc, "Motion", Speed=-12.3, Angle=1.0)
    time.sleep(0.01)
    assert run.advance(1, signals=["drive.alive"]) == [[0.0]]  # Heat has not come yet
    say(peer, dbc, "Heat", Winding=88)
    row = advance_until(run, lambda row: row[0] != 0.0, ["speed", "heat", "drive.alive"])
    assert row == [pytest.approx(-12.3), 88.0, 1.0]
    # Rubbish with the right number, and strangers, change nothing.
    peer.send(can.Message(arbitration_id=512, data=b"\1", is_extended_id=False))
    peer.send(can.Message(arbitration_id=512, data=bytes(8), is_extended_id=True))
    peer.send(can.Message(arbitration_id=77, data=bytes(8), is_extended_id=False))
    say(peer, dbc, "Motion", Speed=20.0, Angle=1.0)
    advance_until(run, lambda row: row[0] == pytest.approx(20.0), ["speed"])


def test_safe_values_are_the_last_thing_on_the_bus(ticks, rig, dbc, peer):
    bound = open_binding(diagram(), rig)
    ticks(bound).advance(2)
    bound.close()
    last = None
    while (message := peer.recv(timeout=0.2)) is not None:
        last = message
    assert last is not None
    assert dbc.decode_message(256, last.data)["Torque"] == pytest.approx(0.5)


def test_a_message_that_falls_silent_is_a_loss_though_others_come(ticks, rig, dbc, peer):
    rig["devices"]["drive"]["timeout"] = 0.05
    run = ticks(open_binding(diagram(), rig))

    def alive():
        return run.advance(1, signals=["drive.alive"], now=time.monotonic_ns)[0][0]

    end = time.monotonic() + 10.0
    while not alive():
        assert time.monotonic() < end
        say(peer, dbc, "Motion", Speed=1.0, Angle=1.0)
        say(peer, dbc, "Heat", Winding=20)
        time.sleep(1e-3)
    while alive():
        assert time.monotonic() < end
        say(peer, dbc, "Motion", Speed=1.0, Angle=1.0)
        time.sleep(1e-3)


def channel(rig, side, name, **values):
    rig["devices"]["drive"][side][name].update(values)
    return rig


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: channel(r, "receive", "speed", message="Motin"),
         "[devices.drive]: channel `speed`: there is no message `Motin`. Did you mean `Motion`? "
         "Messages: Command, Motion, Heat."),
        (lambda r: channel(r, "receive", "speed", signal="Sped"),
         "[devices.drive]: channel `speed`: message `Motion` has no signal `Sped`. Did you mean "
         "`Speed`? Signals: Speed, Angle."),
        (lambda r: channel(r, "receive", "speed", signal="Angle"),
         "[devices.drive]: channel `speed` is in rad/s, but in rad in the DBC file: set unit "
         "and scale of the channel."),
        (lambda r: channel(r, "send", "torque", safe=400, limits=[-500, 500]),
         "[devices.drive]: the safe values do not fit the message: message `Command`: "),
        (lambda r: r["devices"]["drive"].update(dbc="none.dbc"),
         "[devices.drive]: there is no file `none.dbc`."),
        (lambda r: r["devices"]["drive"].pop("channel"),
         "[devices.drive] channel: is missing: bus of the interface, such as can0."),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_dbc_is_a_problem_of_the_binding(rig, change, message):
    change(rig)
    problems = check_binding(diagram(), rig).problems
    assert any(text.startswith(message) for text in problems), problems


def test_a_file_that_is_no_dbc(rig, tmp_path):
    (tmp_path / "drive.dbc").write_text("BO_ what")
    (problem,) = check_binding(diagram(), rig).problems
    assert "cannot be read as a DBC file" in problem


@pytest.mark.parametrize("name", ["can", "cantools"])
def test_without_its_packages_it_says_how_to_install_them(rig, name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    (problem,) = check_binding(diagram(), rig).problems
    assert problem == (
        f"[devices.drive]: the driver `can` needs the package of `{name}`: "
        "pip install 'biella[can]'"
    )
