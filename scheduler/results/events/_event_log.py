"""The events of a run while it is recorded, and in the HDF5 file of its result.

In the file they are the group ``events``: ``list``, time, block and crossing of each event;
``summary``, a sealed JSON text, see ``storage/_sealed.py``, with path, type and width of each block
(``sources``), block, crossing and name of the kinds that blocks name themselves (``kinds``), how
many events the run had (``total``), those of each block (``totals``), and the CRC-32 of the list
(``checksum``). In version 1 these are datasets. The list is in the order of ticks; within a tick,
in that of the engine.
"""

from __future__ import annotations

import ctypes
import json
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...engine._library import contract
from ..storage._sealed import seal, unseal
from ._events import EVENT, Event, Events, EventSource

if TYPE_CHECKING:
    import h5py

    from ...engine._engine import Instance

MOST_EVENTS = 1_000_000
"""Events that the list of a result contains at most; all are counted."""
_CHUNK = 1 << 12
_ROOM = 1 << 12
_KINDS_BYTES = 1 << 15
_COUNT_BYTES = 24


class EventBuffer:
    """Where the engine writes the events of ticks, for a `bl_record`."""

    def __init__(self, instance: Instance, record: contract.bl_record) -> None:
        self._record = record
        if not instance.layout.events:
            return
        self._events = np.zeros(max(_ROOM, 4 * int(instance.layout.events)), dtype=EVENT)
        record.events = ctypes.cast(self._events.ctypes.data, ctypes.POINTER(contract.bl_event))
        record.event_capacity = len(self._events)

    def take(self) -> NDArray[Any]:
        """Return a copy of the events since the last call."""
        count = self._record.event_count
        if not count:
            return np.empty(0, EVENT)
        self._record.event_count = 0
        return self._events[:count].copy()


class EventLog:
    """The events of a run so far: a list up to a limit, and all of them counted.

    Attributes
    ----------
    total
        Number of events of the run by the engine's own count; 0 before its end.
    describe
        Returns what an event of a block is, by its numbers of block and crossing; empty if the
        block does not name it.
    """

    def __init__(self, sources: Sequence[EventSource] = (), limit: int = MOST_EVENTS) -> None:
        self.sources = list(sources)
        self.totals = np.zeros(len(self.sources), dtype=np.int64)
        self.total = 0
        self.describe: Callable[[int, int], str] | None = None
        self.kinds: dict[tuple[int, int], str] = {}
        self._known: set[int] = set()
        self._limit = limit
        self._list = np.empty(0, EVENT)  # grows ahead of the events in it
        self._kept = 0
        self._written = 0  # events that are in a file
        self._checksum = 0  # of these
        self._last = b""  # summary that is in a file

    def append(self, events: NDArray[Any]) -> None:
        """Take the next events."""
        if not len(events):
            return
        self.totals += np.bincount(events["block"], minlength=len(self.sources))
        events = events[: max(0, self._limit - self._kept)]
        if len(events):
            self._name(events)
            end = self._kept + len(events)
            if end > len(self._list):
                self._list = np.resize(self._list, min(self._limit, max(_ROOM, 2 * end)))
            self._list[self._kept : end] = events
            self._kept = end

    def _name(self, events: NDArray[Any]) -> None:
        if self.describe is None:
            return
        keys = events["block"].astype(np.int64) << 32 | events["crossing"].view(np.uint32)
        for key in set(np.unique(keys).tolist()) - self._known:
            self._known.add(key)
            block, crossing = key >> 32, int(np.uint32(key & 0xFFFFFFFF).astype(np.int32))
            if name := self.describe(block, crossing):
                self.kinds[block, crossing] = name

    def read_newest(self, since: int, most: int) -> tuple[int, list[Event]]:
        """Return how many events the list has, and the newest `most` of those from `since` on.

        Any thread may ask: the list only grows, and its number of events grows after them.
        """
        end = self._kept
        first = max(since, end - most, 0)
        part = self._list[first:end].copy() if first < end else np.empty(0, EVENT)
        return end, list(Events(part, self.sources, kinds=dict(self.kinds)))

    @property
    def known_total(self) -> int:
        """Number of events so far."""
        return max(self.total, int(self.totals.sum()))

    def read(self) -> Events:
        """Return all events so far."""
        return Events(
            _sort(self._list[: self._kept]),
            self.sources,
            self.known_total,
            self.totals.copy(),
            dict(self.kinds),
        )

    def write(self, file: h5py.File) -> None:
        """Append to the file what is not in it."""
        if not self.sources:
            return
        group = file["events"]
        if self._written < self._kept:
            events = np.ascontiguousarray(self._list[self._written : self._kept])
            group["list"].resize(self._kept, axis=0)
            group["list"][self._written : self._kept] = events
            self._checksum = zlib.crc32(events.data, self._checksum)
            self._written = self._kept
        text = self._summary()
        if text != self._last:
            group["summary"][()] = np.frombuffer(seal(text, group["summary"].size), np.uint8)
            self._last = text

    def _summary(self) -> bytes:
        names = [[*key, name] for key, name in self.kinds.items()]
        while len(json.dumps(names).encode()) > _KINDS_BYTES:
            names.pop()
        return _make_summary(
            self.sources, names, self.known_total, self.totals.tolist(), self._checksum
        )


def _make_summary(
    sources: Sequence[EventSource],
    kinds: list[Any],
    total: int,
    totals: list[int],
    checksum: int,
) -> bytes:
    return json.dumps(
        {
            "sources": [list(source) for source in sources],
            "kinds": kinds,
            "total": total,
            "totals": totals,
            "checksum": checksum,
        }
    ).encode()


def create_events(file: h5py.File, sources: Sequence[EventSource]) -> None:
    """Make room for events in a new result file."""
    group = file.create_group("events")
    group.create_dataset("list", shape=(0,), maxshape=(None,), chunks=(_CHUNK,), dtype=EVENT)
    text = _make_summary(sources, [], 0, [0] * len(sources), 0)
    capacity = len(text) + _KINDS_BYTES + _COUNT_BYTES * (2 + len(sources))
    group.create_dataset("summary", data=np.frombuffer(seal(text, capacity), np.uint8))


def read_events(file: h5py.File) -> Events:
    """Return the events in a result file; none if it was written without them."""
    if "events" not in file:
        return Events(np.empty(0, EVENT))
    group = file["events"]
    if "summary" not in group:
        return _read_version_1(group)
    about = json.loads(unseal(group["summary"][()].tobytes(), "the summary of events"))
    log = group["list"][:].astype(EVENT, copy=False)
    if about["checksum"] != (zlib.crc32(np.ascontiguousarray(log).data) if len(log) else 0):
        raise ValueError("the events do not match their checksum")
    sources = [EventSource(*item) for item in about["sources"]]
    _check_sources(log, sources)
    kinds = {(block, crossing): name for block, crossing, name in about["kinds"]}
    totals = np.array(about["totals"], dtype=np.int64)
    return Events(_sort(log), sources, about["total"], totals, kinds)


def _check_sources(log: NDArray[Any], sources: Sequence[EventSource]) -> None:
    if len(log) and not 0 <= log["block"].min() <= log["block"].max() < len(sources):
        raise ValueError("an event has no source")


def _read_version_1(group: h5py.Group) -> Events:
    log = group["list"][: int(group["count"][()])].astype(EVENT, copy=False)
    checksum, count = group["checksum"][()].tolist()
    if count == len(log) and checksum != zlib.crc32(np.ascontiguousarray(log).data):
        raise ValueError("the events do not match their checksum")
    sources = [EventSource(*item) for item in json.loads(group["sources"][()].tobytes())]
    _check_sources(log, sources)
    kinds = {(block, crossing): name for block, crossing, name in json.loads(group["kinds"][()])}
    return Events(_sort(log), sources, int(group["total"][()]), group["totals"][()], kinds)


def _sort(log: NDArray[Any]) -> NDArray[Any]:
    """Return events in the order of time: in one tick, blocks come one after the other."""
    log = log[np.argsort(log["time"], kind="stable")]
    log.flags.writeable = False
    return log


def write_events(file: h5py.File, events: Events) -> None:
    """Write all events of a result into a new file, which has a place for them."""
    log = EventLog(events.blocks)
    log.append(events.log)
    log.kinds = dict(events.kinds)
    log.total = events.total
    if events.totals is not None:
        log.totals = events.totals
    log.write(file)
