"""The engine's paced loop through ctypes: `Pace` is what a run is held to, and what came of it."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char, c_double, c_int, c_int32, c_int64, c_void_p
from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ...errors import BiellaError
from ..engine.engine import Instance, keep_float_control, restore_float_control
from ..engine.library import library

CLOCK_WALL, CLOCK_DEVICE, CLOCK_FREE, CLOCK_SCRIPT = range(4)
OVERRUN_POLICIES = ("stop", "skip", "catch_up", "slip")
TIMING_SIGNALS = ("lateness", "execution", "overruns", "age", "lost")
END_NONE, END_TIME, END_CANCEL, END_STOP, END_OVERRUN, END_DEVICE, END_ERROR = range(7)
END_NAMES = ("none", "time", "cancel", "stop", "overrun", "device", "error")
GAP_KINDS = ("frames", "rows", "journal")
ENTER_SET, ENTER_OVERRIDE, ENTER_RELEASE = range(3)
FROM_LIVE, FROM_TIMING, FROM_WORKER = -1, -2, -3

_BINS, _NOTED = 640, 1000

ENTRY = np.dtype(
    [("tick", "<i8"), ("slot", "<i8"), ("value", "<f8"), ("kind", "<i4"), ("from", "<i4")]
)
"""One line of the journal: mirrors bl_entry."""

Journal = npt.NDArray[Any]


class Histogram(ctypes.Structure):
    """Durations in ns, by bins of equal ratio: mirrors bl_histogram."""

    _fields_ = [
        ("count", c_int64),
        ("least", c_int64),
        ("most", c_int64),
        ("sum", c_int64),
        ("bins", c_int64 * _BINS),
    ]

    def add(self, nanoseconds: int) -> None:
        """Count one more."""
        _library().bl_histogram_add(byref(self), nanoseconds)

    def percentile(self, part: float) -> float:
        """Return the duration in ns that `part` (0 to 1) of all do not exceed, within 3 %."""
        return float(_library().bl_histogram_percentile(byref(self), part))

    def summary(self) -> dict[str, float]:
        """Return its figures, in seconds."""
        return {
            "count": self.count,
            "min": 1e-9 * self.least,
            "mean": 1e-9 * self.sum / self.count if self.count else 0.0,
            "p50": 1e-9 * self.percentile(0.5),
            "p99": 1e-9 * self.percentile(0.99),
            "p99.9": 1e-9 * self.percentile(0.999),
            "max": 1e-9 * self.most,
            "total": 1e-9 * self.sum,
        }


class _Gap(ctypes.Structure):
    _fields_ = [("first", c_int64), ("last", c_int64), ("kind", c_int64)]


class _Overrun(ctypes.Structure):
    _fields_ = [("tick", c_int64), ("late", c_int64)]


class Pace(ctypes.Structure):
    """What a run is held to, and what came of it: mirrors bl_pace."""

    _fields_ = [
        ("clock", c_int32),
        ("pacer", c_int32),
        ("factor", c_double),
        ("spin", c_int64),
        ("script_wake", POINTER(c_int64)),
        ("script_execution", POINTER(c_int64)),
        ("script_count", c_int64),
        ("overrun", c_int32),
        ("device_count", c_int32),
        ("grace", c_int64),
        ("tolerated", c_int64),
        ("tolerated_in_a_row", c_int64),
        ("devices", POINTER(c_void_p)),
        ("commands", c_void_p),
        ("journal", c_void_p),
        ("rows", c_void_p),
        ("pick", POINTER(c_int64)),
        ("pick_count", c_int64),
        ("every", c_int64),
        ("row", POINTER(c_double)),
        ("replay", c_void_p),
        ("replay_count", c_int64),
        ("latest", c_void_p),
        ("latest_first", c_int64),
        ("frame", POINTER(c_double)),
        ("timing", c_int64 * len(TIMING_SIGNALS)),
        ("ages", POINTER(c_int64)),
        ("age_count", c_int64),
        ("cancel", c_int),
        ("pause", c_int),
        ("end", c_int32),
        ("lost_device", c_int32),
        ("done", c_int64),
        ("overruns", c_int64),
        ("overruns_in_grace", c_int64),
        ("skipped", c_int64),
        ("rows_lost", c_int64),
        ("entries_lost", c_int64),
        ("entries_refused", c_int64),
        ("gap_count", c_int64),
        ("lateness", Histogram),
        ("execution", Histogram),
        ("overrun_list", _Overrun * _NOTED),
        ("gaps", _Gap * _NOTED),
        ("_why", c_char * 256),
    ]

    def __init__(self) -> None:
        super().__init__(clock=CLOCK_WALL, factor=1.0, tolerated=-1, tolerated_in_a_row=-1, every=1)
        self.timing = (c_int64 * len(TIMING_SIGNALS))(*[-1] * len(TIMING_SIGNALS))
        self._kept: dict[str, Any] = {}  # what the pointers point to

    @property
    def why(self) -> str:
        """Why it ended, in words."""
        return bytes(self._why).decode(errors="replace")

    @why.setter
    def why(self, text: str) -> None:
        self._why = text.encode()[:255]

    @property
    def listed_overruns(self) -> list[tuple[int, float]]:
        """The first overruns: tick, and how long after the next deadline it ended, in s."""
        count = min(self.overruns + self.overruns_in_grace, _NOTED)
        return [(item.tick, 1e-9 * item.late) for item in self.overrun_list[:count]]

    @property
    def listed_gaps(self) -> list[tuple[str, int, int]]:
        """The first gaps: of what, first and last tick."""
        count = min(self.gap_count, _NOTED)
        return [(GAP_KINDS[item.kind], item.first, item.last) for item in self.gaps[:count]]

    def script(self, wake: Sequence[int], execution: Sequence[int]) -> None:
        """Let the clock be a script: for each tick how late it wakes and how long it takes, ns."""
        self.clock = CLOCK_SCRIPT
        self.script_wake = self._point("wake", wake, np.int64, c_int64)
        self.script_execution = self._point("execution", execution, np.int64, c_int64)
        self.script_count = min(len(wake), len(execution))

    def use_devices(self, handles: Sequence[int]) -> None:
        """Exchange frames with these devices."""
        self._kept["devices"] = (c_void_p * max(1, len(handles)))(*handles)
        self.devices = ctypes.cast(self._kept["devices"], POINTER(c_void_p))
        self.device_count = len(handles)

    def record(self, pipe: Pipe, slots: Sequence[int], every: int) -> None:
        """Send rows of these values through `pipe`, at every n-th tick."""
        self._kept["rows"] = pipe
        self.rows = pipe.handle
        self.pick = self._point("pick", slots, np.int64, c_int64)
        self.pick_count, self.every = len(slots), every
        self.row = self._point("row", np.zeros(1 + len(slots)), np.float64, c_double)

    def post_latest(self, mailbox: Mailbox, first: int) -> None:
        """Leave the tick and the newest values in `mailbox`, from slot `first` to the last signal.

        That is done at every tick.
        """
        self._kept["latest"] = mailbox
        self.latest, self.latest_first = mailbox.handle, first
        self.frame = self._point("frame", np.zeros(mailbox.count), np.float64, c_double)

    def tell_ages(self, slots: Sequence[tuple[int, int]]) -> None:
        """Tell at every tick how old results are: where to, and where the time of each is."""
        self.ages = self._point("ages", np.array(slots).ravel(), np.int64, c_int64)
        self.age_count = len(slots)

    def replay_from(self, journal: Journal) -> None:
        """Enter what a journal says, at its ticks."""
        kept = np.ascontiguousarray(journal, dtype=ENTRY)
        self._kept["replay"] = kept
        self.replay, self.replay_count = kept.ctypes.data, len(kept)

    def run(self, instance: Instance, ticks: int) -> int:
        """Run up to `ticks` ticks, without end if negative; return the engine's status."""
        # Not by `Instance.call`: a program may change its working directory during such a run.
        control = keep_float_control()
        status = int(_library().bl_run_paced(instance.handle, ticks, byref(self)))
        restore_float_control(control)
        return status

    def _point(self, name: str, values: Any, kind: Any, element: Any) -> Any:
        array = np.ascontiguousarray(values, dtype=kind)
        self._kept[name] = array
        return array.ctypes.data_as(POINTER(element))


class Pipe:
    """Records from one thread to another: neither waits. One may push, one may pull."""

    def __init__(self, kind: npt.DTypeLike, capacity: int) -> None:
        self.kind = np.dtype(kind)
        self.capacity = capacity
        self.handle = _library().bl_pipe_open(self.kind.itemsize, capacity)
        if not self.handle:
            size = self.kind.itemsize * capacity
            raise BiellaError(f"there is no memory for a pipe of {size} bytes.")

    def push(self, records: npt.NDArray[Any]) -> bool:
        """Push all of `records`, or none if there is no room."""
        records = np.ascontiguousarray(records, dtype=self.kind)
        return bool(
            _library().bl_pipe_push(self.handle, records.ctypes.data, len(records)) == len(records)
        )

    def pull(self) -> npt.NDArray[Any]:
        """Return all that has come."""
        parts = []
        while True:
            part = np.empty(min(self.capacity, 8192), dtype=self.kind)
            count = _library().bl_pipe_pull(self.handle, part.ctypes.data, len(part))
            parts.append(part[:count])
            if count < len(part):
                return np.concatenate(parts)

    def close(self) -> None:
        """Free it: neither thread may use it any more."""
        if self.handle:
            _library().bl_pipe_close(self.handle)
            self.handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Mailbox:
    """The newest frame of numbers, from one thread; any number of threads may look at it."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.handle = _library().bl_mailbox_open(count)
        if not self.handle:
            raise BiellaError(f"there is no memory for a mailbox of {count} numbers.")
        self._frame = np.zeros(count)
        self._lock = threading.Lock()

    def take(self) -> npt.NDArray[np.float64] | None:
        """Return the newest frame, None if there is none yet or it is closed."""
        pointer = self._frame.ctypes.data_as(POINTER(c_double))
        with self._lock:
            if not self.handle or not _library().bl_mailbox_take(self.handle, pointer):
                return None
            return self._frame.copy()

    def abandon(self) -> None:
        """Give no more frames, in a forked child: its writer does not exist there."""
        self._lock = threading.Lock()
        self.handle = None

    def close(self) -> None:
        """Free it: the writer may not use it any more."""
        with self._lock:
            if self.handle:
                _library().bl_mailbox_close(self.handle)
                self.handle = None


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    lib = library()
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "bl_pipe_open": (c_void_p, [c_int64, c_int64]),
        "bl_pipe_close": (None, [c_void_p]),
        "bl_pipe_push": (c_int64, [c_void_p, c_void_p, c_int64]),
        "bl_pipe_pull": (c_int64, [c_void_p, c_void_p, c_int64]),
        "bl_mailbox_open": (c_void_p, [c_int64]),
        "bl_mailbox_close": (None, [c_void_p]),
        "bl_mailbox_post": (None, [c_void_p, POINTER(c_double)]),
        "bl_mailbox_take": (c_int64, [c_void_p, POINTER(c_double)]),
        "bl_histogram_add": (None, [POINTER(Histogram), c_int64]),
        "bl_histogram_percentile": (c_double, [POINTER(Histogram), c_double]),
        "bl_probe_open": (c_int, [c_void_p, c_int32]),
        "bl_probe_close": (None, [c_void_p]),
        "bl_probe_times": (POINTER(Histogram), [c_void_p, c_int32]),
        "bl_run_paced": (c_int, [c_void_p, c_int64, POINTER(Pace)]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments
    return lib


class Probe:
    """What lets values be overridden and blocks be timed, while it is open."""

    def __init__(self, instance: Instance, *, profile: bool) -> None:
        self.instance = instance
        instance.check(_library().bl_probe_open(instance.handle, int(profile)))

    def times(self) -> dict[str, Histogram]:
        """Return how long each block took in the ticks in which it ran, by path."""
        found = {}
        for number, block in enumerate(self.instance.plan.blocks):
            times = _library().bl_probe_times(self.instance.handle, number)
            if times and times.contents.count:
                copy = Histogram()
                ctypes.pointer(copy)[0] = times.contents
                found[block.path] = copy
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _library().bl_probe_close(self.instance.handle)
