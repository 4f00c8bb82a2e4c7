"""CAN: messages and signals by name, from a DBC file; through python-can and cantools."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ....blocks.core._units import UnitError, equivalent, parse_unit
from ....errors import DeviceError, name_list, suggest
from .._driver import DeviceDriver, Setup, load_package
from .._options import Option

if TYPE_CHECKING:
    from ...binding._rig import Channel

_AT_ONCE = 1000  # messages taken in one read, so that a babbling bus cannot hold the thread


class CanDriver(DeviceDriver):
    """Signals of a CAN bus.

    Each channel is a signal of a message, both by their names in the DBC file; the raw value is
    what the DBC calls the physical one. Inputs are complete once each of their messages has
    come, and stay so while none of them is silent for longer than the timeout. Signals of sent
    messages that no channel sets have their initial value.
    """

    options: ClassVar[Mapping[str, Option]] = {
        "interface": Option(
            "text", "interface of python-can: socketcan, virtual, pcan, …", required=True
        ),
        "channel": Option("text", "bus of the interface, such as can0", required=True),
        "dbc": Option("text", "DBC file with the messages", required=True),
        "bitrate": Option("whole", "bit rate in bit/s, if the interface sets it", low=1),
        "fd": Option("flag", "send CAN FD frames", default=False),
    }
    channel_options: ClassVar[Mapping[str, Option]] = {
        "message": Option("text", "message in the DBC file", required=True),
        "signal": Option("text", "signal, if its name differs from that of the channel"),
    }

    @classmethod
    def check(cls, setup: Setup) -> list[str]:
        """Compare the channels with the DBC file."""
        try:
            load_package("can", "can")
            database = read_dbc(setup.folder / setup.options["dbc"])
        except DeviceError as error:
            return [str(error)]
        problems = []
        for channel in (*setup.receive, *setup.send):
            try:
                signal = _find_signal(database, channel)
            except DeviceError as error:
                problems.append(str(error))
                continue
            problems += _check_signal(channel, signal)
        if not problems:
            try:
                _encode(_group(database, setup.send), setup.safe)
            except DeviceError as error:
                problems.append(f"the safe values do not fit the message: {error}")
        return problems

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        database = read_dbc(setup.folder / setup.options["dbc"])
        self._outs = _group(database, setup.send)
        self._ins = {
            message.frame_id: (message, at) for message, at in _group(database, setup.receive)
        }
        self._values = [0.0] * len(setup.receive)
        self._came: dict[int, float] = {}
        self._can: Any = None
        self._bus: Any = None

    def open(self) -> None:
        """Join the bus."""
        self._can, options = load_package("can", "can"), self.setup.options
        given = {key: options[key] for key in ("bitrate",) if options[key] is not None}
        if options["fd"]:
            given["fd"] = True
        self._bus = self._can.Bus(
            interface=options["interface"], channel=options["channel"], **given
        )
        self._came.clear()

    def read(self) -> Sequence[float] | None:
        """Take all messages that have come; the newest of each counts."""
        new = False
        for _ in range(_AT_ONCE):
            message = self._bus.recv(timeout=0)
            if message is None:
                break
            new |= self._take(message)
        now = time.monotonic()
        quiet = any(now - self._came.get(number, -1e9) > self.setup.timeout for number in self._ins)
        return self._values if new and not quiet else None

    def _take(self, message: Any) -> bool:
        known, at = self._ins.get(message.arbitration_id, (None, {}))
        if known is None or message.is_error_frame or message.is_remote_frame:
            return False
        if message.is_extended_id != known.is_extended_frame or len(message.data) < known.length:
            return False
        decoded = known.decode(bytes(message.data), decode_choices=False)
        values = {number: float(decoded[name]) for number, name in at.items()}
        if not all(map(math.isfinite, values.values())):
            return False  # a signal that is a float may be NaN on the bus
        for number, value in values.items():
            self._values[number] = value
        self._came[message.arbitration_id] = time.monotonic()
        return True

    def write(self, values: Sequence[float]) -> None:
        """Send every message that has an output."""
        for message, data in _encode(self._outs, values):
            self._bus.send(
                self._can.Message(
                    arbitration_id=message.frame_id,
                    is_extended_id=message.is_extended_frame,
                    is_fd=self.setup.options["fd"],
                    data=data,
                ),
                timeout=0,
            )

    def close(self) -> None:
        """Leave the bus."""
        bus, self._bus = self._bus, None
        if bus is not None:
            bus.shutdown()


def read_dbc(path: Path) -> Any:
    """Return a DBC file as a database of cantools."""
    if not path.is_file():
        raise DeviceError(f"there is no file `{path}`.")
    try:
        return load_package("can", "cantools").database.load_file(path)
    except DeviceError:
        raise
    except Exception as error:  # cantools raises many kinds
        raise DeviceError(f"`{path}` cannot be read as a DBC file: {error}.") from error


def _find_message(database: Any, channel: Channel) -> Any:
    name = channel.options["message"]
    found = {message.name: message for message in database.messages}
    if name not in found:
        raise DeviceError(
            f"channel `{channel.name}`: there is no message `{name}`.{suggest(str(name), found)} "
            f"Messages: {name_list(found)}."
        )
    return found[name]


def _find_signal(database: Any, channel: Channel) -> Any:
    message = _find_message(database, channel)
    name = _signal_name(channel)
    found = {signal.name: signal for signal in message.signals}
    if name not in found:
        raise DeviceError(
            f"channel `{channel.name}`: message `{message.name}` has no signal `{name}`."
            f"{suggest(name, found)} Signals: {name_list(found)}."
        )
    return found[name]


def _signal_name(channel: Channel) -> str:
    return channel.options["signal"] or channel.name


def _check_signal(channel: Channel, signal: Any) -> list[str]:
    problems = []
    if channel.width != 1:
        problems.append(
            f"channel `{channel.name}`: a CAN signal has one value, got width {channel.width}."
        )
    if signal.multiplexer_ids is not None or signal.is_multiplexer:
        problems.append(f"channel `{channel.name}`: multiplexed signals are not supported.")
    try:
        unit = parse_unit(signal.unit) if signal.unit else None
    except UnitError:
        return problems  # DBC files name units as they like
    if unit and channel.unit and channel.scale == 1.0 and not equivalent(unit, channel.unit):
        problems.append(
            f"channel `{channel.name}` is in {channel.unit}, but in {unit} in the DBC file: "
            f"set unit and scale of the channel."
        )
    return problems


def _group(database: Any, channels: Sequence[Channel]) -> list[tuple[Any, dict[int, str]]]:
    """Return the messages that channels are in, each with numbers of channels and signals."""
    found: dict[str, tuple[Any, dict[int, str]]] = {}
    for number, channel in enumerate(channels):
        message = _find_message(database, channel)
        found.setdefault(message.name, (message, {}))[1][number] = _signal_name(channel)
    return list(found.values())


def _encode(
    groups: Sequence[tuple[Any, dict[int, str]]], values: Sequence[float]
) -> list[tuple[Any, bytes]]:
    encoded = []
    for message, at in groups:
        signals = {signal.name: _initial(signal) for signal in message.signals}
        signals |= {name: values[number] for number, name in at.items()}
        try:
            encoded.append((message, message.encode(signals)))
        except Exception as error:  # cantools raises many kinds
            raise DeviceError(f"message `{message.name}`: {error}") from error
    return encoded


def _initial(signal: Any) -> float:
    """Return the start value of a signal in the DBC file, else the valid value nearest to 0."""
    if isinstance(signal.initial, int | float):
        return float(signal.initial)
    low = 0.0 if signal.minimum is None else float(signal.minimum)
    high = 0.0 if signal.maximum is None else float(signal.maximum)
    return max(low, min(high, 0.0))
