"""Serial lines, text and UDP by a binding, against the tests' own peer."""

from __future__ import annotations

import socket

import pytest

from biella import run_realtime
from biella.errors import DeviceError
from biella.scheduler.binding._bind import open_binding

from .diagrams import loop
from .peer import SAFE, Peer, SerialEnd, UdpEnd, parse

pytestmark = pytest.mark.engine


def rig(**options):
    return {
        "devices": {"board": {
            "timeout": 0.05, "receive": {"y": {"scale": 0.5}},
            "send": {"u": {"safe": -1, "scale": 0.25}}, **options,
        }},
        "blocks": {"k": {"device": "board"}},
    }  # fmt: skip


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as trial:
        trial.bind(("127.0.0.1", 0))
        return trial.getsockname()[1]


@pytest.fixture
def serial(tmp_path):
    end = SerialEnd(tmp_path)
    yield end
    end.close()


@pytest.fixture
def udp():
    end = UdpEnd()
    yield end
    end.close()


def exchange(ticks, end, table):
    peer = Peer()
    run = ticks(open_binding(loop(3.0), table))
    run.advance(1)
    assert peer.hear(end.frames()[0]).values == (12.0,)
    end.write_frame(peer.frame(7.0))
    signals = ["k", "board.age", "board.alive", "board.delay"]
    assert run.advance(1, signals=signals) == [[3.5, 0.0, 1.0, 1.0]]
    run.make_safe()
    last = parse(end.frames(2)[-1])
    assert last.values == (-4.0,)
    assert last.flags & SAFE
    with pytest.raises(ticks.ended, match=r"device `board` is lost: no frame for 0\.051 s"):
        run.advance(60)


def test_frames_go_both_ways_on_a_serial_line(ticks, serial):
    exchange(ticks, serial, rig(driver="serial", port=str(serial.path), baud=1000000))
    assert serial.speeds == (1000000, 1000000)


def test_frames_go_both_ways_as_datagrams(ticks, udp):
    udp.to = free_port()
    table = rig(driver="udp", host=udp.host, port=udp.port, bind_port=udp.to, precision="float64")
    exchange(ticks, udp, table)


def test_lines_of_text_go_both_ways(ticks, serial):
    run = ticks(open_binding(loop(3.0), rig(driver="text", port=str(serial.path), checksum=True)))
    run.advance(1)
    assert serial.read_until(b"\n")[0].startswith(b"12*")
    serial.write(b"\n7*37\n")  # the end of the line that was under way, and a whole one
    assert run.advance(1, signals=["k"]) == [[3.5]]
    serial.write(b"8\n")  # without the checksum that is wanted
    assert run.advance(1, signals=["k"]) == [[3.5]]
    assert run.bound.devices[0].counts["corrupt"] == 1


def test_a_port_that_is_not_there_is_reported_and_other_devices_are_closed(tmp_path):
    table = rig(driver="serial", port=str(tmp_path / "none"))
    with pytest.raises(DeviceError, match=r"the device `board` cannot be opened: .*none"):
        open_binding(loop(3.0), table)


def test_a_device_that_never_speaks_is_reported_with_what_to_look_at(udp):
    table = rig(driver="udp", host=udp.host, port=udp.port)
    with pytest.raises(
        DeviceError, match=r"is lost.*No frame was ever received: check that the device.*'hold'"
    ):
        run_realtime(loop(3.0), bind=table).wait()
    udp.to = free_port()
    with run_realtime(loop(3.0), bind=rig(driver="udp", bind_port=udp.to, timeout=0.5)) as run:
        udp.write_frame(b"hello")
        with pytest.raises(DeviceError, match=r"is lost.*The received data are not valid frames"):
            run.wait()


def test_a_host_that_nobody_knows_is_reported_once():
    with pytest.raises(DeviceError) as caught:
        open_binding(loop(3.0), rig(driver="udp", host="no.such.host.invalid", port=5000))
    assert str(caught.value).startswith("the device `board` cannot be opened: address no.such.host")
    assert "use an IP address such as 192.168.1.20" in str(caught.value)
