"""Devices: channels to and from real things, and the drivers that carry them.

Serial lines, UDP, TCP, the loopback and recordings are C (`native`); others are Python threads
behind mailboxes (`driver`). `registry` lists them by name; ``scheduler/binding/`` connects
them to a diagram.
"""

from ._driver import DeviceDriver, Setup
from ._options import Option

__all__ = ["DeviceDriver", "Option", "Setup"]
