"""The loopback by itself: what was sent comes back, later."""

from __future__ import annotations

from ctypes import byref

import pytest

from biella.scheduler.engine._library import contract, library

from ..native import Device

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_all_channels_come_back_after_the_delay(delay):
    options = contract.bl_loopback_options(delay=delay)
    handle = library().bl_loopback_open(b"loop", 3, byref(options))
    with Device(handle, 3, 3) as device:
        for tick in range(12):
            came = device.take(tick)
            sent = tick - delay
            expected = {k: 10.0 * k + sent for k in range(3)}
            assert came == (expected if sent >= 0 else {})
            device.give(*(10.0 * k + tick for k in range(3)))
