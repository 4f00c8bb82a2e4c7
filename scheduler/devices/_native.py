"""Devices of the engine, through ctypes: the drivers that are C, and what all devices share."""

from __future__ import annotations

import ctypes
import ipaddress
import warnings
from collections.abc import Mapping
from ctypes import (
    POINTER,
    byref,
    c_double,
    c_int64,
)
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...errors import BiellaWarning, DeviceError
from ..compile._derived import derive_seed
from ..engine._engine import OK
from ..engine._library import contract, library
from ._key import KEY_OPTION, check_key, reaches_network, read_key
from ._options import Option, show
from .virtual._recording import read_recording

if TYPE_CHECKING:
    from ..binding._rig import Channel, DeviceEntry

ON_LOSS = {
    "stop": contract.BL_LOSS_STOP,
    "hold": contract.BL_LOSS_HOLD,
    "safe": contract.BL_LOSS_SAFE,
}
_STANDINGS = {
    contract.BL_STANDING_WAITING: "waiting",
    contract.BL_STANDING_CONNECTED: "connected",
    contract.BL_STANDING_LOST: "lost",
    contract.BL_STANDING_DISCONNECTED: "disconnected",
}
_AT_END = {
    "hold": contract.BL_REPLAY_HOLDS,
    "lost": contract.BL_REPLAY_ENDS,
    "repeat": contract.BL_REPLAY_REPEATS,
}
_LONGEST_FRAME = contract.BL_FRAME_VALUES
MOST_VALUES = contract.BL_MAX_CHANNELS
"""In each direction, of any device."""
_MESSAGE_SIZE = 512


@dataclass(frozen=True, slots=True)
class DeviceContext:
    """Context of a driver in addition to its own table.

    Attributes
    ----------
    folder
        To which files are relative.
    step, start
        Of the run, in seconds.
    """

    folder: Path
    step: float
    start: float = 0.0


class Device:
    """An open device.

    Attributes
    ----------
    name
        As in the binding.
    handle
        The engine's ``bl_device *``; None when it is closed.
    entry
        Its table of the binding.
    """

    def __init__(self, entry: DeviceEntry, handle: int) -> None:
        self.name = entry.name
        self.entry = entry
        self.handle: int | None = handle
        self._counts: dict[str, int] = {}
        self._why = ""
        self._confirmed = False

    def map_channel(
        self,
        ins: Mapping[str, int],
        outs: Mapping[str, int],
        status: tuple[int, int, int] = (-1, -1, -1),
    ) -> None:
        """Say where values lie in the engine: a slot for each element of a channel, by name.

        Parameters
        ----------
        ins, outs
            Parameters that channels from the device are written to, signals that are sent;
            elements that are not named go nowhere.
        status
            Slots of its ``age``, ``alive`` and ``delay``.
        """
        lib = library()
        records = [_records(self.entry.receive, ins), _records(self.entry.send, outs)]
        if lib.bl_device_set_channels(self.handle, *records) != OK:
            raise DeviceError(f"{self.why}.")
        timeout = round(min(self.entry.timeout, 9e9) * 1e9)
        if lib.bl_device_set_loss(self.handle, timeout, ON_LOSS[self.entry.on_loss]) != OK:
            raise DeviceError(f"`{self.name}` cannot have a timeout of {self.entry.timeout:g} s.")
        lib.bl_device_set_slots(self.handle, *status)

    @property
    def counts(self) -> dict[str, int]:
        """Event counters since the device was opened; also available after `close`."""
        if self.handle:
            counts = contract.bl_device_counts()
            library().bl_device_get_counts(self.handle, byref(counts))
            self._counts = {item[0]: int(getattr(counts, item[0])) for item in counts._fields_}
        return self._counts

    @property
    def standing(self) -> tuple[str, float | None]:
        """How it is, and the s since its newest accepted frame; None: none yet, or it is closed.

        ``"waiting"`` for the first frame, ``"connected"``, ``"lost"`` (silent for its timeout),
        ``"disconnected"``, ``"sending"`` (it sends no frames), ``"closed"``. From any thread.
        """
        if not self.handle:
            return "closed", None
        age = c_int64()
        state = _STANDINGS[library().bl_device_get_standing(self.handle, -1, byref(age))]
        if state == "waiting" and not self.entry.receive:
            state = "sending"
        return state, 1e-9 * age.value if age.value >= 0 else None

    @property
    def why(self) -> str:
        """Why it was lost or ended the run, also when it is closed."""
        if self.handle:
            text: bytes = library().bl_device_why(self.handle)
            self._why = text.decode(errors="replace")
        return self._why

    @property
    def is_confirmed(self) -> bool:
        """Whether the device has echoed the safe values that it was sent last."""
        if self.handle:
            self._confirmed = bool(library().bl_device_is_confirmed(self.handle))
        return self._confirmed

    def _let_go(self) -> int | None:
        """Release the handle; its counters and status are stored first."""
        _ = self.counts, self.why, self.is_confirmed
        handle, self.handle = self.handle, None
        return handle

    def describe(self) -> str:
        """Return one line for people."""
        kind = self.entry.driver.name if self.entry.driver else "?"
        given = (f"{k}={show(v)}" for k, v in self.entry.options.items() if v is not None)
        return f"{self.name}: {', '.join([kind, *given])}"

    def close(self) -> None:
        """End it; the engine must no longer use it."""
        if handle := self._let_go():
            library().bl_device_close(handle)


def count_values(channels: Mapping[str, Channel]) -> int:
    """Return how many numbers a frame has."""
    return sum(channel.width for channel in channels.values())


def _records(channels: Mapping[str, Channel], slots: Mapping[str, int]) -> Any:
    items = []
    for channel in channels.values():
        for k, name in enumerate(channel.element_names):
            safe = channel.safe[k] if channel.safe else min(max(0.0, channel.low), channel.high)
            items.append(
                contract.bl_channel(
                    name.encode()[:47].decode(errors="ignore").encode(), slots.get(name, -1),
                    channel.scale, channel.offset, channel.low, channel.high, safe,
                    int(channel.saturate),
                )
            )  # fmt: skip
    return (contract.bl_channel * max(1, len(items)))(*items)


# The openers.

SERIAL_OPTIONS = {
    "port": Option("text", "the serial port, such as /dev/ttyACM0 or COM3", required=True),
    "baud": Option("whole", "baud rate in bit/s", default=115200, low=50, high=100_000_000),
    "precision": Option(
        "text", "type of values on the wire", default="float32", choices=("float32", "float64")
    ),
    "role": Option(
        "text", "role of this program: host or device", "host", choices=("host", "device")
    ),
    "key": KEY_OPTION,
}
TEXT_OPTIONS = {
    "port": SERIAL_OPTIONS["port"],
    "baud": SERIAL_OPTIONS["baud"],
    "precision": Option(
        "text", "number of digits: 9 or 17", default="float32", choices=("float32", "float64")
    ),
    "checksum": Option("flag", "send checksums, and reject lines without one", default=False),
}
UDP_OPTIONS = {
    "host": Option("text", "address of the device; by default the first sender", default=""),
    "port": Option("whole", "the device's port", default=0, low=0, high=65535),
    "bind": Option("text", "local address; by default loopback", default=""),
    "bind_port": Option("whole", "local port; by default any", default=0, low=0, high=65535),
    "precision": SERIAL_OPTIONS["precision"],
    "role": SERIAL_OPTIONS["role"],
    "key": KEY_OPTION,
}
TCP_OPTIONS = {
    "host": Option(
        "text", "address of the device; with bind_port, only it may connect", default=""
    ),
    "port": Option("whole", "port of the device to connect to", 0, low=0, high=65535),
    "bind": Option("text", "local address; by default loopback", default=""),
    "bind_port": Option("whole", "local port on which the device connects", 0, low=0, high=65535),
    "precision": SERIAL_OPTIONS["precision"],
    "role": SERIAL_OPTIONS["role"],
    "key": KEY_OPTION,
}
LOOPBACK_OPTIONS = {
    "delay": Option("whole", "ticks until a frame is returned", default=1, low=1, high=10_000),
    "jitter": Option("whole", "largest additional delay in ticks", default=0, low=0, high=10_000),
    "loss": Option("number", "fraction of lost frames", default=0.0, low=0, high=1),
    "noise": Option("number", "standard deviation, in raw units", default=0.0, low=0, high=1e300),
    "seed": Option(
        "whole",
        "seed of jitter, loss and noise; by default derived from the name",
        low=0,
        high=2**53,
    ),
}
REPLAY_OPTIONS = {
    "file": Option("recording", "a .csv file, or an .h5 file of a run", required=True),
    "end": Option(
        "text", "behavior after the last row", default="hold", choices=("hold", "lost", "repeat")
    ),
}
REPLAY_CHANNEL_OPTIONS = {
    "signal": Option("text", "name in the recording, if it differs from that of the channel")
}


def open_serial(entry: DeviceEntry, around: DeviceContext) -> Device:
    """Open a serial line with binary frames."""
    return _open_line("bl_serial_open", entry, around)


def open_text(entry: DeviceEntry, around: DeviceContext) -> Device:
    """Open a serial line with lines of text."""
    return _open_line("bl_text_open", entry, around)


def _open_line(function: str, entry: DeviceEntry, around: DeviceContext) -> Device:
    place = [entry.options["port"].encode(), entry.options["baud"]]
    return _open_wire(function, entry, around, place)


def open_udp(entry: DeviceEntry, around: DeviceContext) -> Device:
    """Open a socket for datagrams."""
    return _open_socket("bl_udp_open", entry, around)


def open_tcp(entry: DeviceEntry, around: DeviceContext) -> Device:
    """Start to connect, or to listen for connections."""
    return _open_socket("bl_tcp_open", entry, around)


def _open_socket(function: str, entry: DeviceEntry, around: DeviceContext) -> Device:
    o = entry.options
    place = [o["host"].encode(), o["port"], o["bind"].encode(), o["bind_port"]]
    device = _open_wire(function, entry, around, place)
    if o["key"] is None and (address := reaches_network(o)):
        warnings.warn(
            f"the device `{entry.name}` is open to a network ({address}) without a key: whoever "
            f"can send there can command it. Make a key (biella key rig.key), give it to both "
            f'sides, and set key = "file:rig.key".',
            BiellaWarning,
            stacklevel=2,
        )
    return device


def _open_wire(
    function: str, entry: DeviceEntry, around: DeviceContext, place: list[Any]
) -> Device:
    o = entry.options
    key = read_key(o["key"], around.folder) if o.get("key") is not None else None
    flags = contract.BL_WIRE_DOUBLE * (o["precision"] == "float64")
    flags += contract.BL_WIRE_CHECKSUM * o.get("checksum", False)
    flags += contract.BL_WIRE_ANSWERS * (o.get("role") == "device")
    message = ctypes.create_string_buffer(_MESSAGE_SIZE)
    handle = getattr(library(), function)(
        entry.name.encode(), *place, count_values(entry.receive), count_values(entry.send),
        flags, message, _MESSAGE_SIZE,
    )  # fmt: skip
    if not handle:
        text = message.value.decode(errors="replace").rstrip(".")
        text = text.removeprefix(f"device `{entry.name}`: ")
        raise DeviceError(f"the device `{entry.name}` cannot be opened: {text}.")
    device = Device(entry, handle)
    if key is not None:
        block = (ctypes.c_uint8 * len(key))(*key)
        status = library().bl_wire_set_key(handle, block)
        ctypes.memset(block, 0, len(key))
        if status != OK:
            device.close()
            raise DeviceError(f"{device.why}.")
    return device


def open_loopback(entry: DeviceEntry, around: DeviceContext) -> Device:
    """Open a device that returns its outputs as inputs."""
    given = dict(entry.options)
    if given["seed"] is None:
        given["seed"] = derive_seed(entry.name)
    options = contract.bl_loopback_options(**given)
    count = count_values(entry.send)
    handle = library().bl_loopback_open(entry.name.encode(), count, byref(options))
    return Device(entry, _opened(entry, handle))


def open_replay(entry: DeviceEntry, around: DeviceContext) -> Device:
    """Open a recording as a device."""
    ticks, rows = _read_rows(entry, around)
    handle = library().bl_replay_open(
        entry.name.encode(),
        rows.shape[1],
        count_values(entry.send),
        ticks.ctypes.data_as(POINTER(c_int64)),
        rows.ctypes.data_as(POINTER(c_double)),
        len(ticks),
        _AT_END[entry.options["end"]],
    )
    return Device(entry, _opened(entry, handle))


def _read_rows(
    entry: DeviceEntry, around: DeviceContext
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    source = entry.options["file"]
    if isinstance(source, str):
        source = around.folder / source
    return read_recording(source, list(entry.receive.values()), around.step, around.start)


def _opened(entry: DeviceEntry, handle: int | None) -> int:
    if not handle:
        raise DeviceError(f"the device `{entry.name}` cannot be opened: out of memory.")
    return handle


def check_frame(entry: DeviceEntry, around: DeviceContext) -> list[tuple[str, str]]:
    """Return what keeps the channels from being one frame of the wire, each with its key."""
    return [
        *check_key(entry.options, around.folder),
        *(
            (side, f"has {count} values, but a frame has at most {_LONGEST_FRAME}.")
            for side, channels in (("receive", entry.receive), ("send", entry.send))
            if (count := count_values(channels)) > _LONGEST_FRAME
        ),
    ]


def check_udp(entry: DeviceEntry, around: DeviceContext) -> list[tuple[str, str]]:
    """Return the problems of the options of a socket."""
    wrong = check_frame(entry, around)
    host, port, bind_port = (entry.options[key] for key in ("host", "port", "bind_port"))
    if host and not port and not _has_port(host):
        wrong.append(("port", "is missing: set the port of the device."))
    else:
        wrong += _check_host(entry, binds=True)
    if not host and not bind_port:
        wrong.append(
            ("bind_port", "is missing: without a host, the device must send to a known port.")
        )
    return wrong


def check_tcp(entry: DeviceEntry, around: DeviceContext) -> list[tuple[str, str]]:
    """Return the problems of the options of a connection."""
    host, port, bind_port = (entry.options[key] for key in ("host", "port", "bind_port"))
    wrong = [*check_frame(entry, around), *_check_host(entry, binds=bool(bind_port))]
    if port and bind_port:
        text = (
            "cannot be combined with port: either this program connects to the device, or "
            "the device connects to bind_port."
        )
        wrong.append(("bind_port", text))
    elif port and not host:
        wrong.append(("host", "is missing: set the address of the device for port."))
    elif not (port or bind_port or _has_port(host)):
        text = "is missing: the device's, where we connect to it; or bind_port, ours, where it "
        wrong.append(("port", text + "connects to us."))
    if entry.options["bind"] and not bind_port:
        wrong.append(
            ("bind", "is used only with bind_port, for a device that connects to this program.")
        )
    return wrong


def _check_host(entry: DeviceEntry, *, binds: bool) -> list[tuple[str, str]]:
    """Return what is wrong with an address; where we bind, other machines must find us."""
    host = entry.options["host"]
    if _has_port(host):
        name, _, number = host.partition(":")
        return [("host", f'must not contain a port: write host = "{name}" and port = {number}.')]
    if host and binds and not entry.options["bind"] and _is_elsewhere(host):
        text = (
            f"is missing: {host} is another machine. Set the local address by which it reaches "
            f"this machine, or 0.0.0.0 (:: for IPv6) for all addresses."
        )
        return [("bind", text)]
    return []


def _has_port(host: str) -> bool:
    """Tell whether a port was written behind it; an IPv6 address has more than one colon."""
    return host.partition(":")[2].isdecimal()


def _is_elsewhere(host: str) -> bool:
    """Tell whether it is a number of another machine; names are looked up when it is opened."""
    try:
        return not ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def check_loopback(entry: DeviceEntry) -> list[tuple[str, str]]:
    """Return the problems of the options of a loopback."""
    ins, outs = count_values(entry.receive), count_values(entry.send)
    if ins == outs:
        return []
    return [
        (
            "",
            f"a loopback returns what it receives, but {outs} values are sent and {ins} are "
            f"received.",
        )
    ]


def check_replay(entry: DeviceEntry, around: DeviceContext) -> list[tuple[str, str]]:
    """Return the problems of the options of a recording."""
    if not entry.receive:
        return [("receive", "has no channels to play back.")]
    if entry.options["file"] is None:
        return []
    try:
        _read_rows(entry, around)
    except DeviceError as error:
        return [("file", str(error))]
    return []
