"""CAN of FMI-LS-BUS: a bus, its nodes, and the bytes of ``Tx_Data`` and ``Rx_Data``.

Operations follow each other without gaps. Numbers are little-endian. Each begins with its code and
its length in bytes, both of 4 bytes, where the length includes these 8 bytes. Version 1.0.0 of the
operations for CAN, which versions 1.0 to 1.3 of the layered standard share.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import ClassVar

from ..errors import FmuError
from .standards._can_bus import CanBus
from .standards._can_node import CanNode
from .standards._can_signals import CanMessage, CanSignal, load_messages

__all__ = [
    "ArbitrationLost",
    "BusError",
    "CanBus",
    "CanFdTransmit",
    "CanMessage",
    "CanNode",
    "CanSignal",
    "CanTransmit",
    "CanXlTransmit",
    "Configuration",
    "Confirm",
    "FormatError",
    "Operation",
    "Status",
    "Wakeup",
    "decode_can",
    "encode_can",
    "load_messages",
]

_HEAD = struct.Struct("<II")  # code, length
_BAUDRATES = (1, 2, 3)
_ARBITRATION_LOST = 4
_LARGEST_STANDARD, _LARGEST_EXTENDED = (1 << 11) - 1, (1 << 29) - 1


@dataclass(frozen=True, slots=True)
class FormatError:
    """An operation that could not be understood is returned: `data` has all of its bytes."""

    code: ClassVar[int] = 0x01
    data: bytes


@dataclass(frozen=True, slots=True)
class CanTransmit:
    """A CAN frame. `extended`: its identifier has 29 bits; `remote`: it requests data."""

    code: ClassVar[int] = 0x10
    identifier: int
    data: bytes = b""
    extended: bool = False
    remote: bool = False


@dataclass(frozen=True, slots=True)
class CanFdTransmit:
    """A CAN FD frame, with bit rate switch and error state indicator."""

    code: ClassVar[int] = 0x11
    identifier: int
    data: bytes = b""
    extended: bool = False
    bit_rate_switch: bool = False
    error_state: bool = False


@dataclass(frozen=True, slots=True)
class CanXlTransmit:
    """A CAN XL frame: simple extended content, type of its data, network and acceptance field."""

    code: ClassVar[int] = 0x12
    identifier: int
    data: bytes = b""
    extended: bool = False
    simple_extended: bool = False
    data_type: int = 0
    network: int = 0
    acceptance: int = 0


@dataclass(frozen=True, slots=True)
class Confirm:
    """The frame with this identifier was transmitted."""

    code: ClassVar[int] = 0x20
    identifier: int


@dataclass(frozen=True, slots=True)
class ArbitrationLost:
    """The frame with this identifier was discarded, because another one was transmitted."""

    code: ClassVar[int] = 0x30
    identifier: int


@dataclass(frozen=True, slots=True)
class BusError:
    """An error on the bus.

    `error`: 1 bit, 2 bit stuffing, 3 form, 4 CRC, 5 acknowledgment, 6 broken error frame.
    `flag`: 1 if the receiver of the operation has detected it first, else 2.
    """

    code: ClassVar[int] = 0x31
    identifier: int
    error: int
    flag: int
    is_sender: bool


@dataclass(frozen=True, slots=True)
class Configuration:
    """An option of the bus simulation.

    `parameter`: 1, 2, 3 the baud rate of CAN, CAN FD, CAN XL in bit/s; 4 what becomes of a frame
    that loses the arbitration: `value` 1 it is kept and sent later, 2 it is discarded.
    """

    code: ClassVar[int] = 0x40
    parameter: int
    value: int


@dataclass(frozen=True, slots=True)
class Status:
    """State of a node: 1 error active, 2 error passive, 3 bus off."""

    code: ClassVar[int] = 0x41
    status: int


@dataclass(frozen=True, slots=True)
class Wakeup:
    """The bus is woken up."""

    code: ClassVar[int] = 0x42


Operation = (
    FormatError | CanTransmit | CanFdTransmit | CanXlTransmit | Confirm | ArbitrationLost | BusError
    | Configuration | Status | Wakeup
)  # fmt: skip
Frame = CanTransmit | CanFdTransmit | CanXlTransmit

# The arguments after the head, in the order of the bytes; data with its length comes last.
_LAYOUTS: dict[type, tuple[str, tuple[str, ...]]] = {
    FormatError: ("<", ()),
    CanTransmit: ("<IBB", ("identifier", "extended", "remote")),
    CanFdTransmit: ("<IBBB", ("identifier", "extended", "bit_rate_switch", "error_state")),
    CanXlTransmit: (
        "<IBBBBI",
        ("identifier", "extended", "simple_extended", "data_type", "network", "acceptance"),
    ),
    Confirm: ("<I", ("identifier",)),
    ArbitrationLost: ("<I", ("identifier",)),
    BusError: ("<IBBB", ("identifier", "error", "flag", "is_sender")),
    Status: ("<B", ("status",)),
    Wakeup: ("<", ()),
}
_KINDS: dict[int, type] = {kind.code: kind for kind in (*_LAYOUTS, Configuration)}  # type: ignore[attr-defined]
_WITH_DATA = (FormatError, CanTransmit, CanFdTransmit, CanXlTransmit)
_BOOLEANS = ("extended", "remote", "bit_rate_switch", "error_state", "simple_extended", "is_sender")


def encode_can(operations: Iterable[Operation]) -> bytes:
    """Return CAN operations as the bytes of a binary variable.

    Raises
    ------
    FmuError
        If a number does not fit its field, or data are too long for the kind of frame.
    """
    return b"".join(_encode(operation) for operation in operations)


def decode_can(data: bytes) -> list[Operation]:
    """Return the CAN operations in the bytes of a binary variable.

    Raises
    ------
    FmuError
        With the place, for an unknown code, a wrong length, or values that are not defined.
    """
    found: list[Operation] = []
    place = 0
    while place < len(data):
        if len(data) - place < _HEAD.size:
            raise FmuError(f"CAN operations end within the head of one, at byte {place}.")
        code, length = _HEAD.unpack_from(data, place)
        if code not in _KINDS:
            raise FmuError(f"unknown CAN operation 0x{code:02x} at byte {place}.")
        if length < _HEAD.size or length > len(data) - place:
            raise FmuError(
                f"the CAN operation 0x{code:02x} at byte {place} has the length {length}; "
                f"{len(data) - place} bytes follow."
            )
        try:
            found.append(_decode(_KINDS[code], data[place + _HEAD.size : place + length]))
        except (struct.error, ValueError) as error:
            raise FmuError(f"the CAN operation 0x{code:02x} at byte {place}: {error}.") from None
        place += length
    return found


def _encode(operation: Operation) -> bytes:
    kind = type(operation)
    if kind not in (*_LAYOUTS, Configuration):
        raise FmuError(f"{operation!r} is no CAN operation.")
    try:
        _check(operation)
        if isinstance(operation, Configuration):
            form = "<BI" if operation.parameter in _BAUDRATES else "<BB"
            body = struct.pack(form, operation.parameter, operation.value)
        else:
            form, names = _LAYOUTS[kind]
            body = struct.pack(form, *(int(getattr(operation, name)) for name in names))
        if isinstance(operation, _WITH_DATA):
            body += struct.pack("<H", len(operation.data)) + operation.data
    except (struct.error, ValueError) as error:
        raise FmuError(f"{operation!r} cannot be encoded: {error}.") from None
    return _HEAD.pack(operation.code, _HEAD.size + len(body)) + body


def _decode(kind: type, body: bytes) -> Operation:
    if kind is Configuration:
        form = "<BI" if body[:1] and body[0] in _BAUDRATES else "<BB"
        decoded: Operation = Configuration(*struct.unpack(form, body))
        _check(decoded)
        return decoded
    form, names = _LAYOUTS[kind]
    size = struct.calcsize(form)
    values: dict[str, object] = {}
    if kind in _WITH_DATA:
        (length,) = struct.unpack_from("<H", body, size)
        values["data"] = body[size + 2 :]
        if length != len(body) - size - 2:
            raise ValueError(f"it has {len(body) - size - 2} bytes of data instead of {length}")
        body = body[:size]
    for name, value in zip(names, struct.unpack(form, body), strict=True):
        if name in _BOOLEANS and value > 1:
            raise ValueError(f"{name} is {value}, neither 0 nor 1")
        values[name] = bool(value) if name in _BOOLEANS else value
    made: Operation = kind(**values)
    _check(made)
    return made


def _check(operation: Operation) -> None:
    """Raise ValueError for values that CAN, or the standard, does not define."""
    if isinstance(operation, Frame):
        largest = _LARGEST_EXTENDED if operation.extended else _LARGEST_STANDARD
        if not 0 <= operation.identifier <= largest:
            raise ValueError(f"the identifier {operation.identifier:#x} has more than "
                             f"{29 if operation.extended else 11} bits")  # fmt: skip
        size = len(operation.data)
        if isinstance(operation, CanTransmit) and size > 8:
            raise ValueError(f"a CAN frame has at most 8 bytes, not {size}")
        if isinstance(operation, CanFdTransmit) and size not in _FD_SIZES:
            raise ValueError(f"a CAN FD frame has 0 to 8, 12, 16, … 64 bytes, not {size}")
        if isinstance(operation, CanXlTransmit) and not 1 <= size <= 2048:
            raise ValueError(f"a CAN XL frame has 1 to 2048 bytes, not {size}")
    ranges = {"error": 6, "flag": 2, "status": 3, "parameter": 4}
    for item in fields(operation):
        value = getattr(operation, item.name)
        if item.name in ranges and not 1 <= value <= ranges[item.name]:
            raise ValueError(f"{item.name} is {value}, not 1 to {ranges[item.name]}")
    if (
        isinstance(operation, Configuration)
        and operation.parameter == _ARBITRATION_LOST
        and operation.value not in (1, 2)
    ):
        raise ValueError(f"the behavior after a lost arbitration is {operation.value}")


_FD_SIZES = (*range(9), 12, 16, 20, 24, 32, 48, 64)
