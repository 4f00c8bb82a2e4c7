"""Drivers that ask for their values: when they exchange, and which numbers fit."""

import math
import struct
import time
from pathlib import Path

import pytest

from biella.errors import DeviceError
from biella.scheduler.binding._rig import Channel, DeviceEntry
from biella.scheduler.devices import Setup
from biella.scheduler.devices._native import DeviceContext
from biella.scheduler.devices.fieldbus import _polling as polling


class Recorder(polling.AbstractPollingDriver):
    """A driver that notes what it is told, and answers how often it was asked."""

    def __init__(self, period, inputs=1, timeout=0.5):
        channels = {f"in{k}": Channel(f"in{k}") for k in range(inputs)}
        out = {"out": Channel("out", safe=(0.0,))}
        options = {"period": period}
        entry = DeviceEntry("rec", None, timeout, "stop", channels, out, options)
        super().__init__(Setup(entry, DeviceContext(Path(), 1e-3)))
        self.told, self.asked = [], 0

    def ask(self):
        self.asked += 1
        return [float(self.asked)]

    def tell(self, values):
        self.told.append(list(values))


def test_an_exchange_tells_the_newest_outputs_once_and_then_asks():
    driver = Recorder(period=0.0)
    driver.start()
    assert driver.asked == 1 and driver.told == []
    driver.write([1.0])
    driver.write([2.0])
    assert driver.read() == [2.0]
    assert driver.told == [[2.0]]
    assert driver.read() == [3.0] and driver.told == [[2.0]]


def test_between_two_periods_nothing_is_exchanged():
    driver = Recorder(period=3600.0)
    driver.start()
    driver.write([5.0])
    assert driver.read() == [2.0]
    driver.write([6.0])
    assert driver.read() is None and driver.told == [[5.0]]
    driver.start()  # another run begins at once, without outputs of the one before
    assert driver.read() == [4.0] and driver.told == [[5.0]]


def test_safe_values_do_not_wait_for_the_period():
    driver = Recorder(period=3600.0)
    driver.start()
    driver.read()
    driver.write([5.0])
    driver.safe([0.0])
    assert driver.told == [[0.0]]
    driver._due = time.monotonic()
    driver.read()
    assert driver.told == [[0.0]], "an output from before is not told after safe values"


def test_a_device_without_inputs_is_never_asked():
    driver = Recorder(period=0.0, inputs=0)
    driver.start()
    driver.write([1.0])
    assert driver.read() is None and driver.asked == 0 and driver.told == [[1.0]]


def test_patience_is_the_timeout_where_there_is_one():
    assert Recorder(0.0, timeout=0.25).patience == 0.25
    endless = Recorder(0.0, timeout=math.inf)
    assert math.isfinite(endless.patience) and endless.patience == endless.timeout


@pytest.mark.parametrize(
    ("bits", "signed", "limits"),
    [
        (16, True, (-32768.0, 32767.0)),
        (16, False, (0.0, 65535.0)),
        (32, False, (0.0, 4294967295.0)),
        (64, True, (-(2.0**63), 2.0**63 - 1024)),  # the last double below
        (64, False, (0.0, 2.0**64 - 2048)),
    ],
)
def test_ranges_of_whole_numbers_are_doubles_that_fit(bits, signed, limits):
    assert polling.find_whole_range(bits, signed) == limits
    end = 2 ** (bits - signed)
    assert int(limits[1]) < end and math.nextafter(limits[1], math.inf) > end - 1


def test_the_range_of_float32_is_that_of_ieee_754():
    largest = struct.unpack(">f", bytes.fromhex("7f7fffff"))[0]
    low, high = polling.FLOAT32_RANGE
    assert low == -largest and high == largest


def test_numbers_that_do_not_fit_or_are_none_name_their_channel():
    polling.check_room("x", 5.0, "int16", (-32768.0, 32767.0))
    for value in (40000.0, math.nan):
        with pytest.raises(DeviceError, match=r"channel `x`: .* does not fit int16"):
            polling.check_room("x", value, "int16", (-32768.0, 32767.0))
    polling.check_finite("x", 1e300)
    for value in (math.nan, -math.inf):
        with pytest.raises(DeviceError, match=r"channel `x` reads .*, which is not a number"):
            polling.check_finite("x", value)
