"""Devices: base classes of drivers in Python, and a UDP proxy that makes a network bad."""

from .scheduler.binding.rig import Channel
from .scheduler.devices.driver import Driver, Setup
from .scheduler.devices.options import Option
from .scheduler.devices.virtual.relay import Faults, Relay

__all__ = [
    "Channel",
    "Driver",
    "Faults",
    "Option",
    "Relay",
    "Setup",
]
