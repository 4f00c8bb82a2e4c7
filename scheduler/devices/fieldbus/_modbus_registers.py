"""Modbus registers: addresses of channels, and encoding of values in 16-bit words."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ._polling import FLOAT32_RANGE, FLOAT64_RANGE, check_room, find_whole_range

if TYPE_CHECKING:
    from ...binding._rig import Channel

BITS = ("coil", "discrete")
KINDS = ("holding", "input", *BITS)
WRITABLE = ("holding", "coil")
TYPES = {
    "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "float32": "f", "float64": "d",
    "bit": "?",
}  # fmt: skip
"""Each with its letter of `struct`."""
ORDERS = ("big", "little")
LAST = 65535


@dataclass(frozen=True, slots=True)
class Register:
    """Where one number lies: a bit, or as many words as its type takes.

    Attributes
    ----------
    name
        Of the channel, or of the element of one.
    number
        Which value of the frame it is.
    order
        Whether the first word is that of the most significant bits, ``"big"``, or ``"little"``.
    """

    name: str
    number: int
    kind: str
    address: int
    type: str
    order: str

    @property
    def size(self) -> int:
        """How many addresses it takes."""
        return 1 if self.type == "bit" else struct.calcsize(f">{TYPES[self.type]}") // 2

    @property
    def end(self) -> int:
        """The first address after it."""
        return self.address + self.size

    def decode(self, words: Sequence[int]) -> float:
        """Return the value that is encoded in the words, or in the bit."""
        ordered = words if self.order == "big" else words[::-1]
        if self.type == "bit":
            return float(bool(ordered[0]))
        data = struct.pack(f">{len(ordered)}H", *ordered)
        return float(struct.unpack(f">{TYPES[self.type]}", data)[0])

    def encode(self, value: float) -> list[int]:
        """Return the words, or the bit, that encode a value; integers are rounded."""
        number = value if self.type.startswith("float") else round(value)
        check_room(self.name, number, self.type, find_range(self.type))
        if self.type == "bit":
            return [int(number)]
        data = struct.pack(f">{TYPES[self.type]}", number)
        words = list(struct.unpack(f">{self.size}H", data))
        return words if self.order == "big" else words[::-1]


@dataclass(frozen=True, slots=True)
class Span:
    """Neighboring registers: what one request reads or writes."""

    kind: str
    registers: tuple[Register, ...]

    @property
    def address(self) -> int:
        """Of the first."""
        return self.registers[0].address

    @property
    def count(self) -> int:
        """How many addresses it has."""
        return self.registers[-1].end - self.address

    def decode(self, words: Sequence[int], values: list[float]) -> None:
        """Put what was read into the values of a frame."""
        for register in self.registers:
            at = register.address - self.address
            values[register.number] = register.decode(words[at : at + register.size])

    def encode(self, values: Sequence[float]) -> list[int]:
        """Return what is to be written."""
        return [word for r in self.registers for word in r.encode(values[r.number])]

    def __str__(self) -> str:
        last = self.address + self.count - 1
        return f"{self.kind} {self.address}" + (f" to {last}" if self.count > 1 else "")


def find_range(kind: str) -> tuple[float, float]:
    """Return the least and the greatest number of a type."""
    if kind == "bit":
        return 0.0, 1.0
    if kind.startswith("float"):
        return FLOAT32_RANGE if kind == "float32" else FLOAT64_RANGE
    return find_whole_range(8 * struct.calcsize(f">{TYPES[kind]}"), signed=kind[0] != "u")


def type_of(channel: Channel) -> str:
    """Return the type of a channel; for a coil or a discrete input it is optional."""
    given = channel.options["type"] or ("bit" if channel.options["kind"] in BITS else "")
    return str(given)


def locate(channels: Iterable[Channel], order: str) -> list[Register]:
    """Return a register for each number of each channel.

    Parameters
    ----------
    order
        Default word order of channels.
    """
    found: list[Register] = []
    for channel in channels:
        o = channel.options
        address = o["address"]
        for name in channel.element_names:
            found.append(
                Register(
                    name, len(found), o["kind"], address, type_of(channel), o["word_order"] or order
                )
            )
            address = found[-1].end
    return found


def gather(registers: Iterable[Register], most_words: int, most_bits: int) -> list[Span]:
    """Return requests for the registers: neighbors together, no number in two requests."""
    groups: list[list[Register]] = []
    for register in sorted(registers, key=lambda r: (r.kind, r.address)):
        most = most_bits if register.kind in BITS else most_words
        last = groups[-1] if groups else None
        if (
            last
            and last[-1].kind == register.kind
            and last[-1].end == register.address
            and register.end - last[0].address <= most
        ):
            last.append(register)
        else:
            groups.append([register])
    return [Span(group[0].kind, tuple(group)) for group in groups]


def check_channels(channels: Sequence[Channel], written: bool) -> list[str]:
    """Return what is wrong with the registers of the channels in one direction."""
    problems = [text for channel in channels for text in _check_channel(channel, written)]
    if problems:
        return problems
    placed = sorted(locate(channels, "big"), key=lambda r: (r.kind, r.address))
    for first, second in pairwise(placed):
        if first.kind == second.kind and second.address < first.end:
            side = "write" if written else "read"
            problems.append(
                f"channels `{first.name}` and `{second.name}` both {side} {first.kind} "
                f"{second.address}: `{first.name}` is {Span(first.kind, (first,))}."
            )
    return problems


def _check_channel(channel: Channel, written: bool) -> list[str]:
    name, kind, kept = f"channel `{channel.name}`", channel.options["kind"], type_of(channel)
    if written and kind not in WRITABLE:
        what = {"input": "an input register", "discrete": "a discrete input"}[kind]
        return [f'{name}: {what} cannot be written: kind is "holding" or "coil" for outputs.']
    if not kept:
        words = ", ".join(name for name in TYPES if name != "bit")
        return [f"{name}: type is missing: the type of the register, one of {words}."]
    if (kept == "bit") != (kind in BITS):
        wanted = 'a bit: omit type, or set it to "bit"' if kind in BITS else "a numeric type"
        return [f"{name}: the type for kind `{kind}` must be {wanted}, got {kept}."]
    end = locate([channel], "big")[-1].end
    if end - 1 > LAST:
        return [f"{name} ends at {kind} {end - 1}, but the last address is {LAST}."]
    if not written:
        return []
    low, high = find_range(kept)
    return [
        f"{name}: the safe value {value:g} stands as {channel.raw(value):g} in the register, "
        f"which is {kept}: from {low:g} to {high:g}."
        for value in channel.safe or ()
        if not low <= channel.raw(value) <= high
    ][:1]
