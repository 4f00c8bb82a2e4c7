"""Messages of a CAN bus and their signals, as DBC files describe them."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import DiagramError
from ...scheduler.devices.fieldbus._can import read_dbc
from ...scheduler.engine._library import contract

_BYTE_ORDERS = ("little_endian", "big_endian")
_SIZES = (*range(9), 12, 16, 20, 24, 32, 48, 64)  # of CAN FD; CAN: up to 8
_NO_MULTIPLEXER = 0xFFFF


@dataclass(frozen=True, slots=True)
class CanSignal:
    """A signal in a CAN message: value = offset + scale · raw.

    Attributes
    ----------
    name
        An identifier.
    start
        Place of its least significant bit or, if it is big-endian, of its most significant one, as
        in DBC files: 8 · byte + bit, where bit 7 is the most significant one of a byte.
    length
        Number of bits, 1 to 64; of a float 32 or 64.
    byte_order
        ``"little_endian"`` (Intel) or ``"big_endian"`` (Motorola).
    signed, is_float
        How the bits represent the raw number: two's complement, IEEE 754; else without sign.
    scale, offset
        In the unit of the value.
    minimum, maximum
        Limits of the value; None: those of its bits.
    unit
        Of the value, if its name is known to biella, else any text.
    initial
        Value until another one is sent or received; None: that of its range which is nearest to 0.
    multiplexer
        Whether it decides which other signals are in a frame.
    multiplexed
        Raw values of the multiplexer with which the signal is in a frame; empty: it always is.
    """

    name: str
    start: int
    length: int
    byte_order: str = "little_endian"
    signed: bool = False
    is_float: bool = False
    scale: float = 1.0
    offset: float = 0.0
    minimum: float | None = None
    maximum: float | None = None
    unit: str = ""
    initial: float | None = None
    multiplexer: bool = False
    multiplexed: tuple[int, ...] = ()

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest value that its bits and its limits can hold."""
        low, high = -math.inf, math.inf
        if not self.is_float:
            bits = self.length - self.signed
            ends = (-(2**bits) if self.signed else 0, 2**bits - 1)
            low, high = sorted(self.offset + self.scale * end for end in ends)
        return (
            low if self.minimum is None else max(low, self.minimum),
            high if self.maximum is None else min(high, self.maximum),
        )

    @property
    def first_value(self) -> float:
        """The initial value."""
        low, high = self.range
        return max(low, min(high, 0.0)) if self.initial is None else self.initial

    @property
    def bits(self) -> list[int]:
        """The places of its bits in the data, from `start` on."""
        places = [self.start]
        for _ in range(self.length - 1):
            last = places[-1]
            step = 1 if self.byte_order == "little_endian" else (15 if last % 8 == 0 else -1)
            places.append(last + step)
        return places


@dataclass(frozen=True, slots=True)
class CanMessage:
    """A message of a CAN bus.

    Attributes
    ----------
    name
        An identifier.
    identifier
        Of its frames; 29 bits if it is `extended`, else 11.
    signals
        In any order.
    size
        Bytes of data: up to 8, of CAN FD also 12, 16, 20, 24, 32, 48 or 64.
    extended, fd, bit_rate_switch
        Format of its frames.
    period
        In seconds, with which it is sent; None: it is sent when its data change.
    delay
        In seconds from the start to the first frame, if it has a period.

    Raises
    ------
    DiagramError
        If a number is out of its range, or signals overlap.
    """

    name: str
    identifier: int
    signals: Sequence[CanSignal]
    size: int = 8
    extended: bool = False
    fd: bool = False
    bit_rate_switch: bool = False
    period: float | None = None
    delay: float = 0.0

    def __post_init__(self) -> None:
        problems = [*_check_message(self), *_check_signals(self)]
        if problems:
            raise DiagramError(f"the CAN message `{self.name}`: {problems[0]}.")


def load_messages(path: str | Path) -> dict[str, CanMessage]:
    """Return the messages of a DBC file, by name.

    Periods are the attribute ``GenMsgCycleTime``, initial values ``GenSigStartValue``. Frames of
    CAN FD have ``VFrameFormat`` or more than 8 bytes, and switch the rate by ``CANFD_BRS``.

    Requires cantools (``pip install "biella[can]"``).

    Raises
    ------
    DeviceError
        If cantools is missing, or the file cannot be read.
    DiagramError
        If a message has nested multiplexers, or data that it cannot have.
    """
    return {found.name: _convert(found) for found in read_dbc(Path(path)).messages}


def encode_layout(messages: Iterable[tuple[CanMessage, bool]]) -> bytes:
    """Return messages, and whether each is sent, in the format of ``can_node.c``."""
    return b"".join(_encode_message(message, is_sent) for message, is_sent in messages)


def _convert(found: Any) -> CanMessage:
    multiplexers = [signal.name for signal in found.signals if signal.is_multiplexer]
    nested = [s.name for s in found.signals if s.is_multiplexer and s.multiplexer_ids]
    if nested or len(multiplexers) > 1:
        raise DiagramError(
            f"the CAN message `{found.name}` has several multiplexers, "
            f"{', '.join(multiplexers)}: only one is supported."
        )
    cycle = found.cycle_time
    is_fd = bool(found.is_fd) or found.length > 8  # files without VFrameFormat do not say it
    switch = found.dbc.attributes.get("CANFD_BRS") if found.dbc is not None else None
    return CanMessage(
        found.name,
        found.frame_id,
        tuple(map(_convert_signal, found.signals)),
        found.length,
        found.is_extended_frame,
        is_fd,
        is_fd and switch is not None and str(switch.value) == "1",
        period=cycle / 1000 if cycle else None,
    )


def _convert_signal(found: Any) -> CanSignal:
    """Return a signal of cantools; an initial value outside its range is moved to its border."""
    signal = CanSignal(
        found.name,
        found.start,
        found.length,
        found.byte_order,
        found.is_signed,
        found.is_float,
        float(found.scale),
        float(found.offset),
        None if found.minimum is None else float(found.minimum),
        None if found.maximum is None else float(found.maximum),
        found.unit or "",
        multiplexer=found.is_multiplexer,
        multiplexed=tuple(found.multiplexer_ids or ()),
    )
    if not isinstance(found.initial, int | float):
        return signal
    low, high = signal.range
    return replace(signal, initial=max(low, min(high, float(found.initial))))


def _check_message(m: CanMessage) -> Iterable[str]:
    if not (isinstance(m.name, str) and m.name.isidentifier()):
        yield "its name must be an identifier"
    bits = 29 if m.extended else 11
    if not (isinstance(m.identifier, int) and 0 <= m.identifier < 1 << bits):
        yield f"its identifier {m.identifier!r} is not a number of {bits} bits"
    sizes = _SIZES if m.fd else _SIZES[:9]
    if m.size not in sizes:
        yield f"{m.size!r} bytes of data; it may have {', '.join(map(str, sizes))}"
    if m.bit_rate_switch and not m.fd:
        yield "only frames of CAN FD switch the rate: set fd=True"
    if m.period is not None and not 0.0 < m.period < math.inf:
        yield f"its period must be a positive number of seconds or None, got {m.period!r}"
    if not 0.0 <= m.delay < math.inf:
        yield f"its delay must be a number of seconds from 0 on, got {m.delay!r}"


def _check_signals(m: CanMessage) -> Iterable[str]:
    names = [signal.name for signal in m.signals]
    if len(set(names)) < len(names):
        yield "two of its signals have one name"
    multiplexers = [s.name for s in m.signals if s.multiplexer]
    if len(multiplexers) > 1 or any(s.multiplexer and s.multiplexed for s in m.signals):
        yield "it has several multiplexers; one is supported"
    taken: dict[int, list[CanSignal]] = {}
    for signal in m.signals:
        problem = _find_problem(signal, m.size)
        if problem:
            yield f"its signal `{signal.name}` {problem}"
            return
        if signal.multiplexed and not multiplexers:
            yield f"its signal `{signal.name}` is multiplexed, and none is the multiplexer"
        for place in signal.bits:
            for other in taken.setdefault(place, []):
                if _are_together(signal, other):
                    yield f"its signals `{other.name}` and `{signal.name}` overlap at bit {place}"
                    return
            taken[place].append(signal)


def _are_together(a: CanSignal, b: CanSignal) -> bool:
    return not (a.multiplexed and b.multiplexed) or bool({*a.multiplexed} & {*b.multiplexed})


def _find_problem(s: CanSignal, size: int) -> str:
    if not (isinstance(s.name, str) and s.name.isidentifier()):
        return "must be named by an identifier"
    if s.byte_order not in _BYTE_ORDERS:
        return f"has the byte order {s.byte_order!r}; it is 'little_endian' or 'big_endian'"
    lengths = (32, 64) if s.is_float else range(1, 65)
    if s.length not in lengths:
        return f"has {s.length!r} bits; " + ("a float has 32 or 64" if s.is_float else "1 to 64")
    if not 0 <= s.start < 8 * size or max(s.bits) >= 8 * size:
        return f"is not within the {size} bytes of the message"
    if not (math.isfinite(s.scale) and s.scale != 0.0 and math.isfinite(s.offset)):
        return f"has the scale {s.scale!r} and the offset {s.offset!r}"
    if s.multiplexer and (s.signed or s.is_float):
        return "is a multiplexer, which must be an integer without sign"
    if any(not 0 <= n < 1 << 32 for n in s.multiplexed):
        return f"is multiplexed by {s.multiplexed!r}, which are no numbers of 32 bits"
    low, high = s.range
    if low > high:
        return f"has no values: its range is from {low:g} to {high:g}"
    if s.initial is not None and not low <= s.initial <= high:
        return f"has the initial value {s.initial:g}, outside its range from {low:g} to {high:g}"
    return ""


def _encode_message(m: CanMessage, is_sent: bool) -> bytes:
    flags = (
        contract.CAN_SENDS * is_sent
        + contract.CAN_EXTENDED * m.extended
        + contract.CAN_FD * m.fd
        + contract.CAN_SWITCHES_RATE * m.bit_rate_switch
    )
    places = [n for n, signal in enumerate(m.signals) if signal.multiplexer]
    head = struct.pack(
        "<IBBHHdd",
        m.identifier,
        flags,
        m.size,
        len(m.signals),
        places[0] if places else _NO_MULTIPLEXER,
        m.period or 0.0,
        m.delay,
    )
    return head + b"".join(_encode_signal(m, signal) for signal in m.signals)


def _encode_signal(m: CanMessage, s: CanSignal) -> bytes:
    flags = (
        contract.CAN_BIG_ENDIAN * (s.byte_order == "big_endian")
        + contract.CAN_SIGNED * s.signed
        + contract.CAN_FLOAT * s.is_float
    )
    name = f"{m.name}.{s.name}".encode()
    low = -math.inf if s.minimum is None else s.minimum
    high = math.inf if s.maximum is None else s.maximum
    return (
        struct.pack("<HBB", s.start, s.length, flags)
        + struct.pack("<ddddd", s.scale, s.offset, low, high, s.first_value)
        + struct.pack("<HH", len(s.multiplexed), len(name))
        + struct.pack(f"<{len(s.multiplexed)}I", *s.multiplexed)
        + name
    )
