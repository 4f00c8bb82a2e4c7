"""`Events`: when blocks switched, hit a limit or were reset within the ticks of a run."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ....errors import name_list, suggest
from ...engine._library import contract
from .._files import replacing
from .._signals import ResultError

if TYPE_CHECKING:
    import pandas

    from ...engine._engine import Instance

Array = NDArray[np.float64]
EVENT = np.dtype(contract.bl_event)
"""A located event as the engine has it: time, block, and number of the crossing function."""
_SHOWN = 10

_INSTANT = -1
_KINDS = {
    "Abs": "sign",
    "Backlash": "engagement",
    "Compare": "comparison",
    "Convert": "rounding",
    "DeadZone": "edge",
    "Expression": "branch",
    "Function": "jump",
    "Integrator": "limit",
    "MinMax": "exchange",
    "MultiportSwitch": "selection",
    "Quantizer": "level",
    "RateLimiter": "limit",
    "Relay": "switch",
    "Saturation": "limit",
    "Sign": "sign",
}
"""What a crossing of a block is called, by the type of the block."""


class EventSource(NamedTuple):
    """A block that may have events: its path, its type, and the width of its first output."""

    path: str
    type: str
    width: int


class Event(NamedTuple):
    """One located event.

    Attributes
    ----------
    time
        In s, within the tick.
    source
        Path of the block.
    kind
        What happened: ``"switch"`` of a Relay, ``"limit"`` of a Saturation, ``"instant"`` for a
        time known in advance, …; ``"crossing 3"`` if the crossing has no name.
    """

    time: float
    source: str
    kind: str


def list_event_sources(instance: Instance) -> list[EventSource]:
    """Return the blocks by their number in the engine's log; none if it logs no events."""
    if not instance.layout.events:
        return []
    return [
        EventSource(block.path, block.type, block.outputs[0].width if block.outputs else 1)
        for block in instance.plan.blocks
    ]


def name_kind(source: EventSource, crossing: int) -> str:
    """Return what the crossing function of this number means, unless the block names it itself."""
    if crossing == _INSTANT:
        return "instant"
    name = _KINDS.get(source.type)
    if name is None or crossing < 0:
        return f"crossing {crossing}"
    if source.type == "Integrator" and crossing == source.width:
        return "reset"
    if source.type in ("Expression", "MinMax"):  # several crossings for each element
        return f"{name} {crossing}" if crossing else name
    return name if source.width == 1 else f"{name}[{crossing}]"


@dataclass(frozen=True, eq=False, repr=False)
class Events(Sequence[Event]):
    """Located events of a run in the order of time: ``result.events[0].source``.

    Attributes
    ----------
    log
        The raw events: fields ``time``, ``block`` and ``crossing``.
    blocks
        What the field ``block`` counts.
    total
        Number of events of the run; more than ``len(events)`` if the list is truncated.
    totals
        The same for each block, as far as the recorder has seen them.
    kinds
        Names of kinds that blocks gave themselves, by block and crossing.
    """

    log: NDArray[Any]
    blocks: Sequence[EventSource] = ()
    total: int = 0
    totals: NDArray[np.int64] | None = None
    kinds: Mapping[tuple[int, int], str] = field(default_factory=dict)

    @property
    def truncated(self) -> bool:
        """Whether the run had more events than the list contains."""
        return self.total > len(self.log)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of events of each source, the most frequent first."""
        counts = self.totals
        if counts is None:
            counts = np.bincount(self.log["block"], minlength=len(self.blocks))
        order = sorted(np.flatnonzero(counts).tolist(), key=lambda n: -int(counts[n]))
        return {self.blocks[n].path: int(counts[n]) for n in order}

    @property
    def sources(self) -> list[str]:
        """Paths of the blocks that had events, the most frequent first."""
        return list(self.counts)

    def of(self, *sources: str) -> Events:
        """Return the events of these blocks: paths, or patterns such as ``"stops.*"``.

        Raises
        ------
        ResultError
            If there is no such block.
        """
        chosen = np.zeros(len(self.blocks), dtype=bool)
        for name in sources:
            found = [
                n
                for n, block in enumerate(self.blocks)
                if block.path == name or fnmatchcase(block.path, name)
            ]
            if self.blocks and not found:
                close = suggest(name, [block.path for block in self.blocks])
                raise ResultError(
                    f"there is no block `{name}`.{close} "
                    f"Blocks with events: {name_list(self.sources)}."
                )
            chosen[found] = True
        log = self.log[chosen[self.log["block"]]] if len(self.log) else self.log
        totals = None if self.totals is None else np.where(chosen, self.totals, 0)
        total = len(log) if totals is None else int(totals.sum())
        return replace(self, log=log, total=total, totals=totals)

    def times(self, *sources: str) -> Array:
        """Return the times in s of all events, or of those of some blocks, as `of` selects."""
        times: Array = (self.of(*sources) if sources else self).log["time"].copy()
        return times

    def to_csv(self, path: str | Path) -> None:
        """Write atomically a CSV file with the columns ``time [s]``, ``source`` and ``kind``."""
        with replacing(path) as temporary, temporary.open("x", newline="", encoding="utf-8") as f:
            table = csv.writer(f, lineterminator="\n")
            table.writerow(["time [s]", "source", "kind"])
            table.writerows((repr(event.time), event.source, event.kind) for event in self)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas DataFrame: time as index, the columns ``source`` and ``kind``."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ResultError(
                "to_pandas needs pandas, which is not installed: pip install 'biella[pandas]'."
            ) from error
        events = list(self)
        columns = {name: [getattr(e, name) for e in events] for name in ("source", "kind")}
        return pd.DataFrame(columns, index=pd.Index(self.log["time"], name="time"))

    def describe(self) -> str:
        """Return one line: how many events, and of which blocks."""
        if not self.total:
            return "no events"
        counts = list(self.counts.items())
        shown = [f"{path} {count}" for path, count in counts[:_SHOWN]]
        if len(counts) > _SHOWN:
            shown.append(f"… {len(counts) - _SHOWN} more blocks")
        text = f"{self.total} event{'s' * (self.total != 1)}: {', '.join(shown)}"
        return text + (f"; the first {len(self.log)} are listed" if self.truncated else "")

    def __len__(self) -> int:
        return len(self.log)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Events: ...
    def __getitem__(self, index: int | slice) -> Event | Events:
        if isinstance(index, slice):
            part = self.log[index]
            return replace(self, log=part, total=len(part), totals=None)
        return self._read(self.log[index])

    def __iter__(self) -> Iterator[Event]:
        return map(self._read, self.log)

    def _read(self, item: Any) -> Event:
        key = int(item["block"]), int(item["crossing"])
        source = self.blocks[key[0]]
        kind = self.kinds.get(key) or name_kind(source, key[1])
        return Event(float(item["time"]), source.path, kind)

    def __repr__(self) -> str:
        rows = [("time [s]", "source", "kind")]
        rows += [(f"{event.time:.9g}", event.source, event.kind) for event in self[:_SHOWN]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"Events: {self.describe()}"]
        for row in rows if len(rows) > 1 else []:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("  " + "  ".join(cells).rstrip())
        return "\n".join(lines + ["  …"] * (len(self.log) > _SHOWN))
