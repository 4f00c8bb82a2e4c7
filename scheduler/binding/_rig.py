"""``rig.toml``: the devices, and the parts of a diagram bound to them, as plain data.

Reading reports problems of the file itself; `binding` compares it with a diagram.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..._deprecation import warn_deprecated
from ...blocks.core._units import Unit, UnitError, parse_unit
from ...errors import BindingError, name_list, suggest
from ..compile.diagram._diagram import NAME
from ..devices._options import Option, is_number, read_options, show
from ..devices._registry import DriverKind, find_driver

ON_LOSS = ("stop", "hold", "safe")
OVERRUN = ("stop", "skip", "catch_up", "slip")
ON_LOG_FAILURE = ("continue", "stop")

RUN_OPTIONS: dict[str, Option] = {
    "clock": Option("text", "`wall`, `free`, or `device:NAME`"),
    "factor": Option("number", "simulated seconds for each second", low=1e-9, high=1e9),
    "until": Option("number", "end time in s"),
    "overrun": Option("text", "policy for missed deadlines", choices=OVERRUN),
    "max_consecutive_overruns": Option("whole", "missed deadlines in a row", low=0),
    "max_overruns": Option("whole", "missed deadlines in total", low=0),
    "warmup_ticks": Option("whole", "ticks at the start whose overruns are not counted", low=0),
    "watchdog": Option("number", "s that a tick may take until the run is latched", low=0),
    "max_stall": Option("number", "s that a tick may be late until the run is latched", low=0),
    "guard": Option("flag", "whether another process guards the run"),
    "on_trip": Option("text", "what follows a trip", choices=("latch", "stop")),
    "record": Option("texts", "signals to record; all if not given"),
    "every": Option("whole", "record every n-th tick", low=1),
    "out": Option("text", "file for the result"),
    "log_age": Option("number", "seconds after which rows are in the file", low=0.0, high=3600.0),
    "log_sync": Option("flag", "the disk is waited for at each write"),
    "on_log_failure": Option("text", "if the file cannot be written", choices=ON_LOG_FAILURE),
}
"""Valid keys of the table ``[run]``."""

_TOP = ("run", "devices", "blocks", "signals")
_SHORTEST_TIMEOUT = 1e-6  # s: less would be rounded to none
_DEVICE_OPTIONS = {
    "driver": Option("text", "the name of a driver", required=True),
    "timeout": Option("number", "seconds without a frame until it counts as lost"),
    "on_loss": Option("text", "reaction to a lost device", default="stop", choices=ON_LOSS),
    "receive": Option("table", "channels from the device"),
    "send": Option("table", "channels to the device"),
}
_OLD_SIDES = {"inputs": "receive", "outputs": "send"}
"""What 0.1 called the channels of a device: a block's ``inputs`` go the other way."""
_CHANNEL_OPTIONS = {
    "unit": Option("text", "of the value"),
    "scale": Option("number", "value = scale * raw + offset", default=1.0),
    "offset": Option("number", "value = scale * raw + offset", default=0.0),
    "saturate": Option("flag", "values are clipped to the limits", default=False),
    "width": Option("whole", "number of elements", default=1, low=1, high=255),
    "unused": Option("flag", "always has its safe value", default=False),
}
_BLOCK_OPTIONS = {
    "device": Option("text", "device that replaces the block"),
    "fmu": Option("text", "FMU that replaces the block"),
    "inputs": Option("table", "channel on which each input is sent"),
    "outputs": Option("table", "channel from which each output is received"),
}
_FMU_OPTIONS = {
    "fmu": Option("text", "FMU that replaces the block"),
    "parameters": Option("table", "values of its parameters by name"),
    "period": Option("number", "communication step in s", low=1e-12),
    "substeps": Option("whole", "steps in each period", default=1, low=1),
    "isolate": Option("flag", "run the FMU in a separate process", default=False),
    "strict": Option("flag", "isolate it from network, processes and files", default=False),
    "timeout": Option("number", "time limit of a call in s, with isolate", low=1e-6),
}


@dataclass(frozen=True, slots=True)
class Channel:
    """One number on the wire, or `width` of them; value = scale · raw + offset."""

    name: str
    width: int = 1
    unit: Unit | None = None
    scale: float = 1.0
    offset: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    saturate: bool = False
    safe: tuple[float, ...] | None = None
    """One for each element; None if it is not given."""
    unused: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the channel for its driver."""
    names: tuple[str, ...] = ()
    """Of an enumeration: the names of its values, from 1 on."""

    @property
    def element_names(self) -> list[str]:
        """One name for each number: ``speed``, or ``force[0], force[1], …``."""
        if self.width == 1:
            return [self.name]
        return [f"{self.name}[{k}]" for k in range(self.width)]

    def raw(self, value: float) -> float:
        """Return the raw value for `value`."""
        return (value - self.offset) / self.scale


@dataclass(frozen=True, slots=True)
class DeviceEntry:
    """A table ``[devices.NAME]``."""

    name: str
    driver: DriverKind | None
    timeout: float
    """In seconds; 0: never lost by silence."""
    on_loss: str
    receive: Mapping[str, Channel]
    """From the device, in the order of the frame."""
    send: Mapping[str, Channel]
    """To the device, likewise."""
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BlockEntry:
    """A table ``[blocks.PATH]``: a block that is a device, or an FMU."""

    path: str
    device: str | None = None
    fmu: str | None = None
    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Channels by port."""
    outputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of an FMU."""


@dataclass(frozen=True, slots=True)
class SignalEntry:
    """A line of ``[signals]``: a port that is received from a device, or sent to one."""

    path: str
    device: str
    channels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Binding:
    """Content of a ``rig.toml``.

    Attributes
    ----------
    file
        Where it was read from; paths in it are relative to its folder.
    problems
        Problems of the file itself, each with its location.
    """

    file: Path | None
    run: Mapping[str, Any] = field(default_factory=dict)
    devices: Mapping[str, DeviceEntry] = field(default_factory=dict)
    blocks: Mapping[str, BlockEntry] = field(default_factory=dict)
    signals: Mapping[str, SignalEntry] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    table: Mapping[str, Any] = field(default_factory=dict)
    """The whole content, unmodified."""

    @property
    def name(self) -> str:
        """For messages."""
        return str(self.file) if self.file else "the binding"

    @property
    def folder(self) -> Path:
        """That of the file."""
        return self.file.parent if self.file else Path()


def read_binding(source: str | Path | Mapping[str, Any], file: Path | None = None) -> Binding:
    """Read a file, or a table that is already there as Python's dictionaries.

    Parameters
    ----------
    file
        Where a table was read from.

    Raises
    ------
    BindingError
        If the file cannot be read or is not TOML. Other problems are in `Binding.problems`.
    """
    if isinstance(source, Mapping):
        return _Reader(file).read(source)
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except OSError as error:
        advice = f" `biella bind … {path.name} --template BLOCK` writes a template."
        raise BindingError(
            f"cannot read `{path}`: {error.strerror}.{advice * (not path.exists())}"
        ) from error
    except UnicodeDecodeError as error:
        raise BindingError(f"`{path}` is not UTF-8 text: {error.reason}.") from None
    except tomllib.TOMLDecodeError as error:
        raise BindingError(f"`{path}` is not TOML: {_with_line(str(error), text)}") from None
    except (RecursionError, ValueError) as error:
        raise BindingError(f"`{path}` cannot be read as TOML: {error}.") from None
    return _Reader(path).read(table)


def _with_line(message: str, text: str) -> str:
    """Add the line that the reader of TOML complains about."""
    found = re.search(r"line (\d+)", message)
    lines = text.splitlines()
    if found and 0 < int(found[1]) <= len(lines):
        line = lines[int(found[1]) - 1].strip()
        return f"{message}: {show(line)}.{_advise(message, line)}"
    return f"{message}."


def _advise(message: str, line: str) -> str:
    """Return the usual cause of an error of the TOML parser; empty if unknown."""
    key, _, value = (part.strip() for part in line.partition("="))
    value = value.partition("#")[0].rstrip()
    if "twice" in message or "overwrite" in message:
        return " The table is defined twice: merge the two."
    if "Unclosed" in message:
        return " A bracket before this line is not closed."
    if "Unescaped" in message or "Illegal character" in message:
        return " Is a quote missing? In '…' every character stands for itself, also a backslash."
    if re.fullmatch(r"[-+]?\d+,\d+", value):
        return f" The decimal separator is a point: {key} = {value.replace(',', '.')}"
    if value in ("True", "False"):
        return f" Use lower case: {key} = {value.lower()}"
    if "Invalid value" in message and re.match(r"[^\d\"'\[{+.-]", value):
        plain = value.strip("“”„‘’«»")
        return f' Text must be quoted: {key} = "{plain}"'
    if "Expected" in message:
        return " Each line must be a [table] or one key = value."
    return ""


class _Reader:
    """Collects entries and problems."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.problems: list[str] = []

    def say(self, table: str, key: str, text: str) -> None:
        place = f"[{table}] {key}".rstrip() if table else key
        self.problems.append(f"{place}: {text}")

    def read(self, table: Mapping[str, Any]) -> Binding:
        for key in table:
            if key not in _TOP:
                hint = suggest(str(key), _TOP)
                self.say(
                    "", f"[{key}]", f"is not a table of a binding.{hint} Tables: {name_list(_TOP)}."
                )
        devices = {
            name: self._device(name, content)
            for name, content in self._tables(table, "devices")
            if self._good_name("devices", name)
        }
        blocks = self._blocks(table)
        signals = self._signals(table, devices)
        run = self._run(table, devices)
        return Binding(self.file, run, devices, blocks, signals, tuple(self.problems), table)

    def _table(self, table: Mapping[str, Any], key: str, where: str = "") -> Mapping[str, Any]:
        found = table.get(key, {})
        if isinstance(found, dict):
            return found
        self.say(where, f"[{key}]" if not where else key, f"must be a table, got {show(found)}.")
        return {}

    def _tables(
        self, table: Mapping[str, Any], key: str, where: str = ""
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for name, content in self._table(table, key, where).items():
            place = f"{where}.{key}" if where else key
            if isinstance(content, dict):
                yield str(name), content
            else:
                self.say(place, str(name), f"must be a table, got {show(content)}.")

    def _good_name(self, place: str, name: str) -> bool:
        if NAME.match(name) and len(name) < 64:
            return True
        self.say(
            place,
            show(name),
            "cannot be a name: letters, digits, `_`, `-` and spaces, starting with a letter, "
            "at most 63.",
        )
        return False

    def _run(self, table: Mapping[str, Any], devices: Mapping[str, DeviceEntry]) -> dict[str, Any]:
        given = self._table(table, "run")
        values = read_options(given, RUN_OPTIONS, lambda key, text: self.say("run", key, text))
        clock = values["clock"]
        if isinstance(clock, str) and clock not in ("wall", "free"):
            kind, _, name = clock.partition(":")
            if kind != "device":
                self.say(
                    "run", "clock", f"must be `wall`, `free` or `device:NAME`, got {show(clock)}."
                )
            elif name not in devices:
                self.say("run", "clock", _unknown("device", name, devices))
            elif (driver := devices[name].driver) is not None and not driver.paces:
                self.say("run", "clock", f"`{name}` cannot be a clock: it is a {driver.name}.")
        return {key: value for key, value in values.items() if key in given and value is not None}

    def _device(self, name: str, table: Mapping[str, Any]) -> DeviceEntry:
        where = f"devices.{name}"

        def say(key: str, text: str) -> None:
            self.say(where, key, text)

        table = self._with_new_sides(where, table)
        own = {key: value for key, value in table.items() if key in _DEVICE_OPTIONS}
        for side in ("receive", "send"):
            if isinstance(own.get(side), list):
                names = [name for name in own.pop(side) if isinstance(name, str)] or ["NAME"]
                tables = ", ".join(f"[{where}.{side}.{name}]" for name in names)
                say(side, f"must contain one table per channel, in their order: {tables}.")
        values = read_options(own, _DEVICE_OPTIONS, say)
        kind = None
        if values["driver"] is not None:
            kind, wrong = find_driver(values["driver"])
            if kind is None:
                say("driver", wrong)
        rest = {key: value for key, value in table.items() if key not in _DEVICE_OPTIONS}
        options: dict[str, Any] = dict(rest)
        if kind is not None:
            options = read_options(rest, kind.options, say, f" of the driver `{kind.name}`")
        timeout = values["timeout"]
        if timeout is not None and timeout < _SHORTEST_TIMEOUT:
            say("timeout", f"must be at least {_SHORTEST_TIMEOUT:g} s, got {timeout:g}.")
            timeout = None
        channels = {}
        for side in ("receive", "send"):
            needs_safe = side == "send" or values["on_loss"] == "safe"
            given = {side: values[side] or {}}
            channels[side] = {
                key: self._channel(f"{where}.{side}.{key}", key, content, kind, needs_safe)
                for key, content in self._tables(given, side, where)
            }
        if timeout is None:  # a device that only listens may well be silent
            timeout = kind.timeout if kind is not None and channels["receive"] else 0.0
        if not channels["receive"] and not channels["send"]:
            say("", f"has no channels: add [{where}.receive.…] or [{where}.send.…].")
        return DeviceEntry(
            name, kind, timeout, values["on_loss"], channels["receive"], channels["send"], options
        )

    def _with_new_sides(self, where: str, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the table of a device with `receive` and `send` for what 0.1 called them."""
        new = dict(table)
        for old, side in _OLD_SIDES.items():
            if old not in table:
                continue
            channels = new.pop(old)
            if side in table:
                self.say(
                    where, old, f"is the former name of `{side}`, which is also present: remove it."
                )
                continue
            new[side] = channels
            direction = "from" if side == "receive" else "to"
            warn_deprecated(
                f"`[{where}.{old}.…]`",
                f"`[{where}.{side}.…]` for channels {direction} the device",
            )
        return new

    def _channel(
        self,
        where: str,
        name: str,
        table: Mapping[str, Any],
        kind: DriverKind | None,
        needs_safe: bool,
    ) -> Channel:
        def say(key: str, text: str) -> None:
            self.say(where, key, text)

        if not name.strip() or len(name.encode()) > 40:
            say("", "the name of a channel must have 1 to 40 characters.")
        more = dict(kind.channel_options) if kind is not None else {}
        known = _CHANNEL_OPTIONS | more
        plain = {k: v for k, v in table.items() if k not in ("limits", "safe", "names")}
        if kind is None:
            plain = {k: v for k, v in plain.items() if k in known}
        special = {"limits": _ANY, "safe": _ANY, "names": _ANY}
        values = read_options(plain, known | special, say, " of a channel")
        unit = None
        if values["unit"] is not None:
            try:
                unit = parse_unit(values["unit"])
            except UnitError as error:
                say("unit", str(error))
        if values["scale"] == 0:
            say("scale", "must not be 0.")
            values["scale"] = 1.0
        names = self._value_names(table, say)
        table = {key: _number_names(content, names) for key, content in table.items()}
        low, high = self._limits(table, names, say)
        safe = self._safe(table, names, values["width"], low, high, needs_safe, say)
        return Channel(
            name, values["width"], unit, values["scale"], values["offset"], low, high,
            values["saturate"], safe, values["unused"], {key: values[key] for key in more}, names,
        )  # fmt: skip

    def _value_names(self, table: Mapping[str, Any], say: Any) -> tuple[str, ...]:
        """Return the names of the values of an enumeration, by which others may refer to them."""
        given = table.get("names", [])
        texts = isinstance(given, list) and all(isinstance(one, str) and one for one in given)
        if not texts or len(set(given)) != len(given) or ("names" in table and not given):
            say("names", f'must be the names of all values, ["off", "on", …], got {show(given)}.')
            return ()
        return tuple(given)

    def _limits(
        self, table: Mapping[str, Any], names: tuple[str, ...], say: Any
    ) -> tuple[float, float]:
        if "limits" not in table:
            return -math.inf, math.inf
        given = table["limits"]
        if not isinstance(given, list) or len(given) != 2 or not all(_is_limit(v) for v in given):
            advice = _advise_names(given, names)
            say("limits", f"must be two numbers [low, high], got {show(given)}.{advice}")
            return -math.inf, math.inf
        low, high = float(given[0]), float(given[1])
        if not low < high:
            say("limits", f"are reversed: the lower one {low:g} is not below {high:g}.")
            return -math.inf, math.inf
        return low, high

    def _safe(
        self,
        table: Mapping[str, Any],
        names: tuple[str, ...],
        width: int,
        low: float,
        high: float,
        needed: bool,
        say: Any,
    ) -> tuple[float, ...] | None:
        if "safe" not in table:
            if needed:
                say("safe", "is missing: it is the value to send on errors and at the end.")
            return None
        given = table["safe"]
        listed = given if isinstance(given, list) else [given] * width
        if len(listed) != width or not all(is_number(value) for value in listed):
            wanted = "a number" if width == 1 else f"a number or a list of {width}"
            say("safe", f"must be {wanted}, got {show(given)}.{_advise_names(given, names)}")
            return None
        values = tuple(float(value) for value in listed)
        for value in values:
            if not low <= value <= high:
                say("safe", f"is {value:g}, outside the limits [{low:g}, {high:g}].")
        return values

    def _blocks(self, table: Mapping[str, Any]) -> dict[str, BlockEntry]:
        found: dict[str, BlockEntry] = {}

        def enter(path: str, content: Mapping[str, Any]) -> None:
            nested = [
                k for k, v in content.items() if k not in _BLOCK_OPTIONS and isinstance(v, dict)
            ]
            if nested and "device" not in content and "fmu" not in content:
                for key in nested:  # [blocks.sub.pid]: a block inside a subsystem
                    enter(f"{path}.{key}", content[key])
                content = {k: v for k, v in content.items() if k not in nested}
                if not content:
                    return
            found[path] = self._block(path, content)

        for name, content in self._tables(table, "blocks"):
            enter(name, content)
        return found

    def _block(self, path: str, table: Mapping[str, Any]) -> BlockEntry:
        where = f"blocks.{path}"

        def say(key: str, text: str) -> None:
            self.say(where, key, text)

        if ("device" in table) == ("fmu" in table):
            both = "both: one of them" if "device" in table else "neither: say"
            say("", f"has {both} `device = …` or `fmu = …`.")
            return BlockEntry(path)
        if "fmu" in table:
            values = read_options(table, _FMU_OPTIONS, say, " of an FMU")
            strict = {"isolate": "strict"} if values.pop("strict") else {}
            options = {k: v for k, v in values.items() if k != "fmu" and v is not None} | strict
            return BlockEntry(path, fmu=values["fmu"], options=options)
        known = {key: option for key, option in _BLOCK_OPTIONS.items() if key != "fmu"}
        values = read_options(table, known, say, " of a block")
        maps: dict[str, dict[str, tuple[str, ...]]] = {"inputs": {}, "outputs": {}}
        for side, ports in maps.items():
            for port, channels in (values[side] or {}).items():
                names = _names(channels)
                if names is None:
                    say(
                        side,
                        f"`{port}` must be a channel or a list of channels, got {show(channels)}.",
                    )
                else:
                    ports[str(port)] = names
        return BlockEntry(path, values["device"], None, maps["inputs"], maps["outputs"])

    def _signals(
        self, table: Mapping[str, Any], devices: Mapping[str, DeviceEntry]
    ) -> dict[str, SignalEntry]:
        found: dict[str, SignalEntry] = {}

        def enter(path: str, content: Any) -> None:
            if isinstance(content, dict):  # encoder.speed = … without quotes
                for key, inner in content.items():
                    enter(f"{path}.{key}" if path else str(key), inner)
                return
            names = _names(content)
            if names is None:
                self.say(
                    "signals",
                    path,
                    f'must be "device.channel" or a list of these, got {show(content)}.',
                )
                return
            parts = [name.partition(".") for name in names]
            owners = {device for device, _, _ in parts}
            if len(owners) != 1 or not all(channel for _, _, channel in parts):
                self.say(
                    "signals",
                    path,
                    f'must be "device.channel", all of one device, got {show(content)}.',
                )
                return
            found[path] = SignalEntry(path, owners.pop(), tuple(channel for _, _, channel in parts))

        enter("", self._table(table, "signals"))
        return found


_ANY = Option("number")


def _is_limit(value: Any) -> bool:
    infinite = isinstance(value, float) and math.isinf(value)
    return infinite or is_number(value)


def _number_names(content: Any, names: tuple[str, ...]) -> Any:
    """Replace names of an enumeration, alone or in a list, by their values."""
    if isinstance(content, list):
        return [_number_names(one, names) for one in content]
    return names.index(content) + 1 if isinstance(content, str) and content in names else content


def _advise_names(given: Any, names: tuple[str, ...]) -> str:
    """Return how to write the value of an enumeration by name, if that was tried."""
    texts = [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, str)]
    if not texts:
        return ""
    if not names:
        return ' To use names of values, list all of them: names = ["off", "on", …].'
    return f"{suggest(texts[0], names)} Names: {name_list(names)}."


def _names(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return tuple(value)
    return None


def _unknown(what: str, name: str, known: Mapping[str, Any]) -> str:
    hint = suggest(name, known)
    return f"there is no {what} `{name}`.{hint} {what.capitalize()}s: {name_list(known)}."
