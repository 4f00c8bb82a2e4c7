"""Bindings for people: a table of what is bound to what, and a file to start from."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from ...blocks.core._units import Unit
from ...errors import DiagramError, name_list, suggest
from ..compile._compiler import outline_flat, read_settings
from ..compile._flatten import flatten
from ..compile.diagram._diagram import Diagram
from ._bindable import list_blocks
from ._channel_maps import ChannelMap
from ._check import BindingReport

if TYPE_CHECKING:
    from rich.console import Group

    from ...blocks.core._ports import Port

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def list_channel_maps(check: BindingReport) -> list[dict[str, Any]]:
    """Return what is bound, as plain data: a row for each value of a port, or for an FMU."""
    rows = [row for mapping in check.channel_maps for row in _rows(check, mapping)]
    return rows + [
        {"port": path, "direction": "is", "channel": file, "driver": "fmu"}
        for path, file in check.fmus.items()
    ]


def _rows(check: BindingReport, mapping: ChannelMap) -> list[dict[str, Any]]:
    driver = check.binding.devices[mapping.device].driver
    rows = []
    for n, (channel, k) in enumerate(mapping.elements):
        unit = str(channel.unit) if channel.unit else mapping.unit
        finite = [v if math.isfinite(v) else None for v in (channel.low, channel.high)]
        rows.append({
            "port": mapping.port if len(mapping.elements) == 1 else f"{mapping.port}[{n}]",
            "direction": "from" if mapping.incoming else "to",
            "channel": f"{mapping.device}.{channel.element_names[k]}",
            "unit": unit,
            "scale": channel.scale,
            "offset": channel.offset,
            "limits": None if finite == [None, None] else finite,
            "saturate": channel.saturate,
            "safe": channel.safe[k] if channel.safe else None,
            "driver": driver.name if driver else "",
        })  # fmt: skip
    return rows


def tabulate(check: BindingReport) -> Group:
    """Return the channel maps and the devices as tables, and the warnings below."""
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table

    channel_maps = Table(
        "port", "", "channel", "unit", "scale", "offset", "limits", "safe", "driver"
    )
    for row in list_channel_maps(check):
        arrow = {"from": "←", "to": "→", "is": "="}[row["direction"]]
        numbers = [_number(row.get(key)) for key in ("scale", "offset")]
        cells = [
            row["port"], arrow, row["channel"], row.get("unit") or "", *numbers,
            _limits(row), _number(row.get("safe")), row["driver"],
        ]  # fmt: skip
        channel_maps.add_row(*map(escape, cells))
    devices = Table("device", "driver", "timeout / s", "on loss", "options")
    for entry in check.binding.devices.values():
        options = ", ".join(f"{k} = {v}" for k, v in entry.options.items() if v not in (None, ""))
        cells = [
            entry.name, entry.driver.name if entry.driver else "",
            _number(entry.timeout) if entry.timeout else "never", entry.on_loss, options,
        ]  # fmt: skip
        devices.add_row(*map(escape, cells))
    parts: list[Any] = [table for table in (channel_maps, devices) if table.row_count]
    return Group(*parts, *(escape(f"diagnostic: {text}") for text in check.warnings))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _limits(row: dict[str, Any]) -> str:
    if not row.get("limits"):
        return ""
    low, high = ("∞" if v is None else f"{v:g}" for v in row["limits"])
    return f"{'-' if low == '∞' else ''}{low} … {high}" + (" (held)" if row["saturate"] else "")


def write_template(diagram: Diagram, path: str) -> str:
    """Return a ``rig.toml`` to start from, in which a block is a board on a serial line.

    Raises
    ------
    DiagramError
        If there is no such block, or nothing of it is connected.
    """
    outline = outline_flat(flatten(diagram), read_settings(diagram))
    blocks = dict(list_blocks(diagram, outline))
    if path not in blocks:
        raise DiagramError(
            f"there is no block `{path}`.{suggest(path, blocks)} Blocks: {name_list(blocks)}."
        )
    ports = blocks[path]
    outs = [port for port in ports.inputs if port.name in ports.fed]
    ins = [port for port in ports.outputs if port.name in ports.read]
    if not ins and not outs:
        raise DiagramError(f"`{path}` cannot be bound: nothing is connected to it.")
    device = "board" if "board" not in blocks else "device"
    lines = [
        f"# `{path}` of {diagram.name!r} as a real board: fill in its port, limits and safe "
        f"values.",
        "",
        "[run]",
        'clock = "wall"',
        'overrun = "skip"',
        "",
        f"[devices.{device}]",
        'driver = "serial"',
        'port = "/dev/ttyACM0"',
        "baud = 115200",
        "timeout = 0.1       # s without a frame until it counts as lost",
        'on_loss = "stop"    # or "hold", "safe"',
    ]
    if ins:
        lines += ["", "# Received from the board, in the order of the frame."]
    for port in ins:
        lines += _channel(f"devices.{device}.receive", port, safe=False)
    if outs:
        lines += ["", "# Sent to the board, in the order of the frame."]
    for port in outs:
        lines += _channel(f"devices.{device}.send", port, safe=True)
    lines += ["", f"[blocks.{_key(path)}]", f'device = "{device}"']
    for side, chosen in (("inputs", outs), ("outputs", ins)):
        if chosen:
            pairs = ", ".join(f"{_key(p.name)} = {_text(p.name)}" for p in chosen)
            lines.append(f"{side} = {{ {pairs} }}")
    return "\n".join([*lines, ""])


def _channel(table: str, port: Port, safe: bool) -> list[str]:
    lines = ["", f"[{table}.{_key(port.name)}]"]
    if isinstance(port.unit, Unit):
        lines.append(f"unit = {_text(str(port.unit))}")
    if port.width != 1:
        lines.append(f"width = {port.width}")
    lines.append("# limits = [-1, 1]")
    lines.append("safe = 0            # sent on errors and at the end" if safe else "# safe = 0")
    return lines


def _key(name: str) -> str:
    return name if _BARE.match(name) else _text(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
