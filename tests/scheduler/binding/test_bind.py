"""An open binding: devices in order, closed whatever happens, described as plain data."""

import json
import socket

import pytest

from biella import BindingError, Diagram
from biella.blocks import Constant, Gain
from biella.errors import DeviceError
from biella.scheduler.binding._bind import _close_all, _split_port, open_binding

pytestmark = pytest.mark.engine


def diagram():
    d = Diagram("pair", step=1e-3)
    for name in ("first", "second"):
        d.connect(d.add(Constant(1.0), name=f"{name}_in"), d.add(Gain(2.0), name=name))
    return d


def rig(**second):
    device = {"driver": "loopback", "receive": {"y": {}}, "send": {"u": {"safe": 0}}}
    return {
        "run": {"until": 2.0},
        "devices": {"a": device, "b": {**device, **second}},
        "blocks": {"first": {"device": "a"}, "second": {"device": "b"}},
    }


def test_devices_are_open_in_the_order_of_the_binding():
    with open_binding(diagram(), rig()) as bound:
        assert [device.name for device in bound.devices] == ["a", "b"]
        assert bound.run == {"until": 2.0}
        assert {"a.received", "b.received", "first.received"} <= set(bound.plan.parameters)
        slots = {bound.plan.parameters[f"{name}.received"].slot for name in ("first", "second")}
        assert len(slots) == 2


def test_what_is_bound_is_described_as_plain_data():
    with open_binding(diagram(), rig()) as bound:
        text = json.dumps(bound.describe())
        found = json.loads(text)
    assert found["file"] is None and found["table"] == rig()
    assert list(found["devices"]) == ["a", "b"] and len(found["channel_maps"]) == 4


def test_problems_open_nothing():
    table = rig(delay=-1)
    with pytest.raises(BindingError, match="delay") as caught:
        open_binding(diagram(), table)
    assert len(caught.value.problems) == 1


def test_a_device_that_cannot_be_opened_closes_those_before_it(free_port_holder):
    """The address of the first is free again after the second has failed."""
    udp = {"driver": "udp", "receive": {"y": {}}, "send": {"u": {"safe": 0}}, "timeout": 1.0}
    port, free = free_port_holder
    table = rig()
    table["devices"] = {
        "a": {**udp, "host": "127.0.0.1", "port": 9, "bind": "127.0.0.1", "bind_port": free},
        "b": {**udp, "host": "127.0.0.1", "port": 9, "bind": "127.0.0.1", "bind_port": port},
    }
    for _ in range(2):  # the second time fails for the same reason, and only for that
        with pytest.raises(DeviceError, match="`b`"):
            open_binding(diagram(), table)


@pytest.fixture
def free_port_holder():
    """A port of UDP that is taken, and one that is free."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free,
    ):
        taken.bind(("127.0.0.1", 0))
        free.bind(("127.0.0.1", 0))
        found = taken.getsockname()[1], free.getsockname()[1]
        free.close()
        yield found


class Closing:
    """Something to close, which may fail."""

    def __init__(self, error=None):
        self.error, self.closed = error, False

    def close(self):
        self.closed = True
        if self.error:
            raise self.error


def test_every_device_is_closed_and_the_first_failure_is_raised():
    devices = [Closing(), Closing(OSError("one")), Closing(ValueError("two")), Closing()]
    with pytest.raises(OSError, match="one"):
        _close_all(devices)  # type: ignore[arg-type]
    assert all(device.closed for device in devices)


def test_a_path_is_split_at_the_longest_block():
    owners = {"rig": 0, "rig.motor": 1, "rig.mot": 2}
    assert _split_port("rig.motor.speed", owners) == ("rig.motor", "speed")
    assert _split_port("rig.mot.speed", owners) == ("rig.mot", "speed")
    assert _split_port("rig.other.speed", owners) == ("rig", "other.speed")
