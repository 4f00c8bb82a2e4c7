"""The engine's real-time loop through ctypes: `Pace` is what a run is held to, and what came of
it.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from ctypes import POINTER, byref, c_double, c_int64, c_void_p
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ....errors import BiellaError
from ...engine._engine import Instance, keep_float_control, restore_float_control
from ...engine._library import contract, library

CLOCK_WALL, CLOCK_DEVICE = contract.BL_CLOCK_WALL, contract.BL_CLOCK_DEVICE
CLOCK_FREE, CLOCK_SCRIPT = contract.BL_CLOCK_FREE, contract.BL_CLOCK_SCRIPT
END_NONE, END_TIME, END_CANCEL = contract.BL_END_NONE, contract.BL_END_TIME, contract.BL_END_CANCEL
END_STOP, END_OVERRUN = contract.BL_END_STOP, contract.BL_END_OVERRUN
END_DEVICE, END_ERROR = contract.BL_END_DEVICE, contract.BL_END_ERROR
ENTER_SET, ENTER_OVERRIDE = contract.BL_ENTER_SET, contract.BL_ENTER_OVERRIDE
ENTER_RELEASE = contract.BL_ENTER_RELEASE
FROM_LIVE, FROM_TIMING = contract.BL_FROM_LIVE, contract.BL_FROM_TIMING
FROM_WORKER = contract.BL_FROM_WORKER


def _in_order(numbers: dict[str, int]) -> tuple[str, ...]:
    """Return names at the places that their numbers in C give them."""
    return tuple(sorted(numbers, key=numbers.__getitem__))


OVERRUN_POLICIES = _in_order(
    {
        "stop": contract.BL_OVERRUN_STOP,
        "skip": contract.BL_OVERRUN_SKIP,
        "catch_up": contract.BL_OVERRUN_CATCH_UP,
        "slip": contract.BL_OVERRUN_SLIP,
    }
)
TIMING_SIGNALS = _in_order(
    {
        "lateness": contract.BL_TIMING_LATENESS,
        "execution": contract.BL_TIMING_EXECUTION,
        "overruns": contract.BL_TIMING_OVERRUNS,
        "age": contract.BL_TIMING_AGE,
        "lost": contract.BL_TIMING_LOST,
    }
)
END_NAMES = _in_order(
    {
        "none": END_NONE,
        "time": END_TIME,
        "cancel": END_CANCEL,
        "stop": END_STOP,
        "overrun": END_OVERRUN,
        "device": END_DEVICE,
        "error": END_ERROR,
    }
)
GAP_KINDS = _in_order(
    {
        "frames": contract.BL_GAP_FRAMES,
        "rows": contract.BL_GAP_ROWS,
        "input_log": contract.BL_GAP_INPUT_LOG,
    }
)

BARS_FROM = 6
"""The power of two, less 3, of the shortest duration in ns that `Histogram.bars` tells apart."""

ENTRY = np.dtype(contract.bl_entry)
"""One line of the input log."""

InputLog = npt.NDArray[Any]


class Histogram(contract.bl_histogram):
    """Durations in ns, by bins of equal ratio."""

    @classmethod
    def of(cls, counted: contract.bl_histogram) -> Self:
        """Return a copy of a histogram that another thread may add to: it is of one instant."""
        copy = cls()
        library().bl_histogram_copy(byref(counted), byref(copy))
        return copy

    def add(self, nanoseconds: int) -> None:
        """Count one more."""
        library().bl_histogram_add(byref(self), nanoseconds)

    def percentile(self, part: float) -> float:
        """Return the duration in ns that `part` (0 to 1) of all do not exceed, within 3 %."""
        return float(library().bl_histogram_percentile(byref(self), part))

    def list_bins(self) -> list[list[float]]:
        """Return begin, end and count of each range of durations in s, four to an octave.

        Shorter ones than 16 ns are one range; ranges without any are left out.
        """
        groups: dict[int, int] = {}
        for number, count in enumerate(self.bins):
            if count:
                group = max(number // 4, 3)
                groups[group] = groups.get(group, 0) + int(count)
        return [[_bin_start(g) if g > 3 else 0.0, _bin_start(g + 1), n] for g, n in groups.items()]

    def bars(self) -> list[tuple[float, int]]:
        """Return counts by half octaves: the start of each in s, from the first to the last used.

        What is shorter than the first bar of them is counted in it.
        """
        counts = np.array(self.bins, dtype=np.int64)
        shortest = 16 * BARS_FROM
        counts[shortest] += counts[:shortest].sum()
        halves = counts[shortest:].reshape(-1, 8).sum(axis=1)
        used = np.flatnonzero(halves)
        if not used.size:
            return []
        chosen = range(int(used[0]), int(used[-1]) + 1)
        # Bin 16 (n + 1) begins at 2^(n + 4) ns, its half at 1.5 times that.
        starts = (2.0 ** (BARS_FROM + 3 + k // 2) * (1.0 + 0.5 * (k % 2)) for k in chosen)
        return [(1e-9 * a, int(halves[k])) for a, k in zip(starts, chosen, strict=True)]

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


def _bin_start(group: int) -> float:
    """Return the first duration, in s, of four bins of histogram.c."""
    return 1e-9 * float((4 + group % 4) * 4 << (group // 4 - 1))


class Pace(contract.bl_pace):
    """What a run is held to, and what came of it."""

    def __init__(self) -> None:
        super().__init__(
            clock=CLOCK_WALL, factor=1.0, max_overruns=-1, max_consecutive_overruns=-1, every=1
        )
        self.timing = (c_int64 * len(TIMING_SIGNALS))(*[-1] * len(TIMING_SIGNALS))
        self._kept: dict[str, Any] = {}  # what the pointers point to

    @property
    def reason(self) -> str:
        """Why it ended, in words."""
        return self.why.decode(errors="replace")

    @reason.setter
    def reason(self, text: str) -> None:
        self.why = text.encode()[:255]

    @property
    def listed_overruns(self) -> list[tuple[int, float]]:
        """The first overruns: tick, and how long after the next deadline it ended, in s."""
        count = min(self.overruns + self.overruns_in_warmup, contract.BL_NOTED)
        return [(item.tick, 1e-9 * item.late) for item in self.overrun_list[:count]]

    @property
    def listed_gaps(self) -> list[tuple[str, int, int]]:
        """The first gaps: of what, first and last tick."""
        count = min(self.gap_count, contract.BL_NOTED)
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

        The counters of the solver follow. That is done at every tick.
        """
        self._kept["latest"] = mailbox
        self.latest, self.latest_first = mailbox.handle, first
        self.frame = self._point("frame", np.zeros(mailbox.count), np.float64, c_double)

    def push_events(self, pipe: Pipe) -> None:
        """Send the located events of every tick through `pipe`."""
        self._kept["events"] = pipe
        self.events = pipe.handle

    def write_ages(self, slots: Sequence[tuple[int, int]]) -> None:
        """Tell at every tick how old results are: where to, and where the time of each is."""
        self.ages = self._point("ages", np.array(slots).ravel(), np.int64, c_int64)
        self.age_count = len(slots)

    def replay_from(self, input_log: InputLog) -> None:
        """Apply the entries of an input log at their ticks."""
        kept = np.ascontiguousarray(input_log, dtype=ENTRY)
        self._kept["replay"] = kept
        self.replay = ctypes.cast(kept.ctypes.data, POINTER(contract.bl_entry))
        self.replay_count = len(kept)

    def save_states(self, pipe: Pipe, every: int) -> None:
        """Send the state of the engine through `pipe` after every n-th tick."""
        self._kept["states"] = pipe
        self.states, self.state_every = pipe.handle, every

    def run(self, instance: Instance, ticks: int) -> int:
        """Run up to `ticks` ticks, without end if negative; return the engine's status."""
        # Not by `Instance.call`: a program may change its working directory during such a run.
        control = keep_float_control()
        status = int(library().bl_run_realtime(instance.handle, ticks, byref(self)))
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
        self.handle = library().bl_pipe_open(self.kind.itemsize, capacity)
        if not self.handle:
            size = self.kind.itemsize * capacity
            raise BiellaError(f"out of memory for a pipe of {size} bytes.")

    def push(self, records: npt.NDArray[Any]) -> bool:
        """Push all of `records`, or none if there is no room."""
        records = np.ascontiguousarray(records, dtype=self.kind)
        return bool(
            library().bl_pipe_push(self.handle, records.ctypes.data, len(records)) == len(records)
        )

    def pull(self) -> npt.NDArray[Any]:
        """Return all that has come."""
        parts = []
        while True:
            part = np.empty(min(self.capacity, 8192), dtype=self.kind)
            count = library().bl_pipe_pull(self.handle, part.ctypes.data, len(part))
            parts.append(part[:count])
            if count < len(part):
                return np.concatenate(parts)

    def close(self) -> None:
        """Free it: neither thread may use it any more."""
        if self.handle:
            library().bl_pipe_close(self.handle)
            self.handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Mailbox:
    """The newest frame of values, written by one thread and read by any number of threads."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.handle = library().bl_mailbox_open(count)
        if not self.handle:
            raise BiellaError(f"out of memory for a mailbox of {count} values.")
        self._frame = np.zeros(count)
        self._lock = threading.Lock()

    def take(self) -> npt.NDArray[np.float64] | None:
        """Return the newest frame, None if there is none yet or it is closed."""
        pointer = self._frame.ctypes.data_as(POINTER(c_double))
        with self._lock:
            if not self.handle or not library().bl_mailbox_take(self.handle, pointer):
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
                library().bl_mailbox_close(self.handle)
                self.handle = None


class Probe:
    """What lets values be overridden and blocks be timed, while it is open."""

    def __init__(self, instance: Instance, *, profile: bool) -> None:
        self.instance = instance
        instance.check(library().bl_probe_open(instance.handle, int(profile)))

    def times(self) -> dict[str, Histogram]:
        """Return how long each block took in the ticks in which it ran, by path."""
        found = {}
        for number, block in enumerate(self.instance.plan.blocks):
            times = library().bl_probe_times(self.instance.handle, number)
            if times and (copy := Histogram.of(times.contents)).count:
                found[block.path] = copy
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        library().bl_probe_close(self.instance.handle)
