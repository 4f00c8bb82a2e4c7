"""Channel maps: which values of a port go with which elements of channels, and whether they fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ...blocks.core._ports import Port
from ...blocks.core._units import Unit, conversion, equivalent, same_dimension
from ...errors import name_list, suggest
from ._rig import Channel, DeviceEntry

_ELEMENT = re.compile(r"(.+)\[(\d+)\]\Z", re.S)


@dataclass(frozen=True, slots=True)
class ChannelMap:
    """A port and the channel, or the elements of channels, that it is tied to.

    Attributes
    ----------
    port
        Its path, such as ``pid.u``.
    incoming
        Whether values come from the device.
    elements
        A channel and the number of its element, for each value of the port.
    """

    port: str
    device: str
    incoming: bool
    elements: tuple[tuple[Channel, int], ...]
    unit: str | None

    @property
    def names(self) -> list[str]:
        """The elements' names on the wire."""
        return [channel.element_names[k] for channel, k in self.elements]


class ChannelMaps:
    """All ties of a binding, and which elements of channels they take.

    Parameters
    ----------
    say
        Called with the table, the key and the text of every problem.
    """

    def __init__(self, say: Callable[[str, str, str], None]) -> None:
        self.say = say
        self.channel_maps: list[ChannelMap] = []
        self.used: dict[tuple[str, str, str], str] = {}
        """Elements of channels, as (device, side, name), and the port that has them."""

    def map_channel(
        self,
        port: Port,
        path: str,
        device: DeviceEntry,
        incoming: bool,
        names: tuple[str, ...],
        where: str,
        key: str,
    ) -> ChannelMap | None:
        """Map a port to channels, or report why not."""
        elements = self._find_elements(device, incoming, names, where, key)
        if elements is None:
            return None
        if len(elements) != port.width:
            self.say(
                where, key,
                f"`{path}` has {_count(port.width)}, but {name_list(names)} of `{device.name}` "
                f"{'is' if len(names) == 1 else 'are'} {_count(len(elements))}. A vector takes as "
                f'many channels, ["a", "b", …], or one with width = {port.width}.',
            )  # fmt: skip
            return None
        good = True
        side = "receive" if incoming else "send"
        for channel, k in elements:
            name = channel.element_names[k]
            before = self.used.setdefault((device.name, side, name), path)
            if before != path or sum(e == (channel, k) for e in elements) > 1:
                good = False
                self.say(
                    where, key, f"channel `{device.name}.{name}` is used twice: by `{before}` and "
                    f"by `{path}`.",
                )  # fmt: skip
                break
        for channel in {channel.name: channel for channel, _ in elements}.values():
            if channel.unused:
                self.say(
                    where, key, f"channel `{device.name}.{channel.name}` is declared as unused."
                )
            good &= self._check_unit(port, path, device, side, channel, where, key)
            if channel.names and channel.names != port.names:
                good = False
                has = f"is one of {name_list(port.names)}" if port.names else "has no names"
                self.say(
                    where, key,
                    f"channel `{device.name}.{channel.name}` is an enumeration of "
                    f"{name_list(channel.names)}, but `{path}` {has}.",
                )  # fmt: skip
        if not good:
            return None
        unit = str(port.unit) if isinstance(port.unit, Unit) else None
        mapping = ChannelMap(path, device.name, incoming, tuple(elements), unit)
        self.channel_maps.append(mapping)
        return mapping

    def _find_elements(
        self, device: DeviceEntry, incoming: bool, names: tuple[str, ...], where: str, key: str
    ) -> list[tuple[Channel, int]] | None:
        channels = device.receive if incoming else device.send
        others = device.send if incoming else device.receive
        elements: list[tuple[Channel, int]] = []
        for name in names:
            base, index = element_of(name) if name not in channels else (name, None)
            channel = channels.get(base)
            if channel is None:
                direction = "from" if incoming else "to"
                hint = suggest(name, channels)
                if base in others:
                    hint = (
                        f" It goes {'to' if incoming else 'from'} the device, not {direction} it."
                    )
                self.say(
                    where, key,
                    f"there is no channel `{name}` {direction} `{device.name}`.{hint} "
                    f"Channels {direction} it: {name_list(channels)}.",
                )  # fmt: skip
                return None
            if index is not None and index >= channel.width:
                self.say(
                    where, key, f"channel `{device.name}.{base}` has {_count(channel.width)}: "
                    f"there is no `{name}`.",
                )  # fmt: skip
                return None
            elements += [(channel, k) for k in (range(channel.width) if index is None else [index])]
        return elements

    def _check_unit(
        self,
        port: Port,
        path: str,
        device: DeviceEntry,
        side: str,
        channel: Channel,
        where: str,
        key: str,
    ) -> bool:
        wanted, given = port.unit, channel.unit
        if not isinstance(wanted, Unit) or given is None or equivalent(wanted, given):
            return True
        name = f"{device.name}.{channel.name}"
        if same_dimension(wanted, given):
            self.say(
                where, key,
                f"`{path}` is in {wanted}, but channel `{name}` is in {given}: same dimension, "
                f"another scale. In [devices.{device.name}.{side}.{channel.name}] write "
                f"{_converted(channel, given, wanted)}.",
            )  # fmt: skip
        else:
            fitting = [
                other.name
                for other in getattr(device, side).values()
                if other.unit is not None and equivalent(other.unit, wanted)
            ]
            did = (
                f" Did you mean {' or '.join(f'`{n}`' for n in fitting)}?"
                if fitting
                else f" If its scale makes {wanted} of what is on the wire, write unit = "
                f'"{wanted}".'
            )
            self.say(where, key, f"`{path}` is in {wanted}, but channel `{name}` in {given}.{did}")
        return False


def element_of(name: str) -> tuple[str, int | None]:
    """Split ``force[1]`` into the channel and the number of an element."""
    found = _ELEMENT.match(name)
    return (found[1], int(found[2])) if found and len(found[2]) < 9 else (name, None)


def start_of(channel: Channel, k: int) -> float:
    """Return the value until the first frame: the safe one, else the nearest to 0."""
    return channel.safe[k] if channel.safe else min(max(0.0, channel.low), channel.high)


def _converted(channel: Channel, given: Unit, wanted: Unit) -> str:
    """Return the entries of a channel's table in another unit."""
    gain, offset = conversion(given, wanted)

    def convert(value: float) -> str:
        return f"{gain * value + offset:.12g}"

    parts = [f'unit = "{wanted}"', f"scale = {gain * channel.scale:.12g}"]
    if channel.offset or offset:
        parts.append(f"offset = {convert(channel.offset)}")
    if (channel.low, channel.high) != (-float("inf"), float("inf")):
        parts.append(f"limits = [{convert(channel.low)}, {convert(channel.high)}]")
    if channel.safe is not None:
        values = [convert(value) for value in channel.safe]
        parts.append(f"safe = {values[0] if len(values) == 1 else '[' + ', '.join(values) + ']'}")
    return ", ".join(parts)


def _count(width: object) -> str:
    return "1 value" if width == 1 else f"{width} values"
