"""Devices: base classes of drivers in Python, and a UDP proxy that makes a network bad."""

from typing import Any

from ._deprecation import renamed_attribute
from .scheduler.binding._rig import Channel
from .scheduler.devices._driver import DeviceDriver, Setup
from .scheduler.devices._options import Option
from .scheduler.devices.virtual._udp_proxy import Faults, UdpProxy

__all__ = [
    "Channel",
    "DeviceDriver",
    "Faults",
    "Option",
    "Setup",
    "UdpProxy",
]


def __getattr__(name: str) -> Any:
    return renamed_attribute(__name__, name)
