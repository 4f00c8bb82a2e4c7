"""Drivers by name: those of the engine, those of this package, and entry points of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from ...errors import DeviceError, name_list, suggest
from . import _native as native
from ._driver import DeviceDriver, DriverDevice, Setup
from ._native import Device, DeviceContext
from ._options import Option

if TYPE_CHECKING:
    from ..binding._rig import DeviceEntry

GROUP = "biella.drivers"
"""The group of entry points that drivers of other packages are listed in."""

Check = Callable[["DeviceEntry", DeviceContext], list[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class DriverKind:
    """A driver, as the reader of a binding needs it.

    Attributes
    ----------
    options, channel_options
        The keys that a device of it, and each of its channels, may have.
    timeout
        Default timeout in s without a frame; 0 for none.
    paces
        Whether a run can be real-time by its frames.
    open, check
        Returns the device; returns the errors of an entry, as (key, text).
    """

    name: str
    doc: str
    options: Mapping[str, Option]
    open: Callable[[DeviceEntry, DeviceContext], Device]
    check: Check = field(default=lambda entry, around: [])
    channel_options: Mapping[str, Option] = field(default_factory=dict)
    timeout: float = 0.0
    paces: bool = True


def _native_kinds() -> dict[str, DriverKind]:
    kinds = [
        DriverKind(
            "serial", "binary frames on a serial line", native.SERIAL_OPTIONS,
            native.open_serial, native.check_frame, timeout=0.1,
        ),
        DriverKind(
            "text", "lines of numbers on a serial line", native.TEXT_OPTIONS,
            native.open_text, native.check_frame, timeout=0.1,
        ),
        DriverKind(
            "udp", "the same frames as datagrams", native.UDP_OPTIONS,
            native.open_udp, native.check_udp, timeout=0.1,
        ),
        DriverKind(
            "tcp", "the same frames on a connection", native.TCP_OPTIONS,
            native.open_tcp, native.check_tcp, timeout=0.5,
        ),
        DriverKind(
            "loopback", "returns what it receives", native.LOOPBACK_OPTIONS,
            native.open_loopback, lambda entry, around: native.check_loopback(entry),
            paces=False,
        ),
        DriverKind(
            "replay", "a recording", native.REPLAY_OPTIONS, native.open_replay,
            native.check_replay, native.REPLAY_CHANNEL_OPTIONS, paces=False,
        ),
    ]  # fmt: skip
    return {kind.name: kind for kind in kinds}


def _can() -> type[DeviceDriver]:
    from .fieldbus._can import CanDriver

    return CanDriver


def _modbus() -> type[DeviceDriver]:
    from .fieldbus._modbus import ModbusDriver

    return ModbusDriver


def _opcua() -> type[DeviceDriver]:
    from .fieldbus._opcua import OpcuaDriver

    return OpcuaDriver


_NATIVE = _native_kinds()
_PYTHON: dict[str, Callable[[], type[DeviceDriver]]] = {
    "can": _can,
    "modbus": _modbus,
    "opcua": _opcua,
}


def list_drivers() -> list[str]:
    """Return the names of all drivers that there are."""
    return list(dict.fromkeys([*_NATIVE, *_PYTHON, *(point.name for point in _points())]))


def is_own_driver(name: str) -> bool:
    """Return whether a driver is part of biella, and not of another package."""
    return name in _NATIVE or name in _PYTHON


def find_driver(name: str) -> tuple[DriverKind | None, str]:
    """Return the driver of this name, or None and why not."""
    if name in _NATIVE:
        return _NATIVE[name], ""
    if name in _PYTHON:
        return kind_of(name, _PYTHON[name]()), ""
    for point in _points():
        if point.name == name:
            return _load(point)
    known = list_drivers()
    return None, f"there is no driver `{name}`.{suggest(name, known)} Drivers: {name_list(known)}."


def kind_of(name: str, driver: type[DeviceDriver]) -> DriverKind:
    """Make a driver class known under a name."""

    def open_driver(entry: DeviceEntry, around: DeviceContext) -> Device:
        try:
            made = driver(Setup(entry, around))
        except Exception as error:
            raise DeviceError(f"the device `{entry.name}` cannot be opened: {error}") from error
        return DriverDevice(entry, around, made)

    def check(entry: DeviceEntry, around: DeviceContext) -> list[tuple[str, str]]:
        return [("", text) for text in driver.check(Setup(entry, around))]

    doc = (driver.__doc__ or "").strip().partition("\n")[0].rstrip(".")
    return DriverKind(
        name, doc, driver.options, open_driver, check, driver.channel_options, driver.timeout
    )


def _points() -> list[EntryPoint]:
    return sorted(entry_points(group=GROUP), key=lambda point: point.name)


def _load(point: EntryPoint) -> tuple[DriverKind | None, str]:
    try:
        driver = point.load()
    except Exception as error:
        return None, f"`{point.name}` ({point.value}) cannot be loaded: {error}."
    if not (isinstance(driver, type) and issubclass(driver, DeviceDriver)):
        return None, f"`{point.name}` ({point.value}) is not a biella.devices.DeviceDriver."
    return kind_of(point.name, driver), ""
