"""How late a thread wakes on this machine: measured in turns, with and without privileges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from ctypes import POINTER, byref, c_int64
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ...errors import BiellaError
from ..engine._library import library
from ..run._progress import Progress
from ._privileges import Grant, Privileges, read_grants

Nanoseconds = npt.NDArray[np.int64]
QUANTILES = {"min": 0.0, "median": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
EDGES_US = tuple(m * 10.0**e for e in range(6) for m in (1, 2, 5))
"""Between the bins of a histogram: 1, 2, 5, 10, … 500000 µs."""
TURN = 0.2  # s


@dataclass(slots=True)
class Variant:
    """One way to wait, and how late its wake-ups were.

    Attributes
    ----------
    name, privileges, spin_ns
        What is asked for; for the last `spin_ns` of a wait the thread watches the clock.
    grants
        What was granted of it in the last turn.
    turns
        Lateness of each wake-up in ns, one array a turn.
    """

    name: str
    privileges: Privileges
    spin_ns: int = 0
    grants: list[Grant] = field(default_factory=list)
    turns: list[Nanoseconds] = field(default_factory=list)

    @property
    def lateness_ns(self) -> Nanoseconds:
        """Lateness of all wake-ups."""
        return np.concatenate(self.turns) if self.turns else np.zeros(0, np.int64)

    @property
    def refusals(self) -> list[Grant]:
        """Privileges that were requested but not granted."""
        return [grant for grant in self.grants if not grant.granted]


def list_variants(cpu: int, rate: float) -> list[Variant]:
    """Return the plain wait, one for each privilege that may matter to it, and all together."""
    if not 1 <= rate <= 1e6:
        raise BiellaError(f"--rate must be 1 Hz to 1 MHz, got {rate:g} Hz.")
    plain = Privileges(exact_timers=False)
    spin = min(100_000, round(1e9 / rate) // 4)
    return [
        Variant("plain", plain),
        Variant("exact timers", Privileges()),
        Variant("full power", replace(plain, full_power=True)),
        Variant("locked memory", replace(plain, lock_memory=True)),
        Variant(f"processor {cpu}", replace(plain, cpu=cpu)),
        Variant("priority 80", replace(plain, priority=80)),
        Variant("all", Privileges.everything(cpu)),
        Variant(f"all, spin {spin / 1000:g} µs", Privileges.everything(cpu), spin),
    ]


def measure(variants: Sequence[Variant], rate: float, seconds: float) -> None:
    """Let all wait in turns, each for `seconds` in total; leave the lateness in them.

    A variant whose privileges were all denied is omitted: it would equal another.
    """
    if not 0 < seconds <= 86400:
        raise BiellaError(f"--seconds must be a positive duration, got {seconds:g}.")
    period = round(1e9 / rate)
    present = [variant for variant in variants if _try_out(variant)]
    turns = max(1, math.ceil(seconds / max(TURN, 1 / rate)))
    ticks = max(1, round(seconds * rate / turns))
    with Progress(turns * ticks * len(present), "measuring wake-ups", show_after=0.0) as progress:
        for _ in range(turns):
            for variant in present:
                variant.turns.append(_wait(variant, period, ticks))
                progress.advance(ticks)


def _try_out(variant: Variant) -> bool:
    _wait(variant, 1000, 0)
    granted = [grant.granted for grant in variant.grants]
    return any(granted) or not granted


def _wait(variant: Variant, period_ns: int, ticks: int) -> Nanoseconds:
    struct = variant.privileges.as_struct()
    lateness = np.zeros(ticks, np.int64)
    out = lateness.ctypes.data_as(POINTER(c_int64))
    library().bl_measure_latency(byref(struct), period_ns, variant.spin_ns, ticks, out)
    variant.grants = read_grants(struct)
    return lateness


def summarize(lateness_ns: Nanoseconds) -> dict[str, float]:
    """Return `QUANTILES` of a lateness, in µs: each is one that was measured, none between two."""
    ordered = np.sort(lateness_ns)
    return {
        name: float(ordered[max(0, math.ceil(q * ordered.size) - 1)]) / 1000
        for name, q in QUANTILES.items()
    }


def count_bins(lateness_ns: Nanoseconds) -> list[int]:
    """Return how many lie below the first of `EDGES_US`, between two, and from the last on."""
    bins = np.searchsorted(np.array(EDGES_US) * 1000, lateness_ns, side="right")
    return [int(n) for n in np.bincount(bins, minlength=len(EDGES_US) + 1)]


def share_late(lateness_ns: Nanoseconds, rate: float, load: float = 0.5) -> float:
    """Return the share of ticks that would miss the next deadline at `rate`.

    A tick that computes for the part `load` of its period has the rest to be late in. That the
    lateness was measured at another rate matters little: in a stall every deadline is late by what
    is left of it, at any rate, and shares are of all deadlines.
    """
    return float(np.mean(lateness_ns > (1 - load) / rate * 1e9))


RATES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)


def list_shares(variants: Mapping[str, Nanoseconds], load: float) -> dict[int, dict[str, float]]:
    """Return for each of `RATES` the share of missed deadlines of each variant."""
    return {
        rate: {name: share_late(lateness, rate, load) for name, lateness in variants.items()}
        for rate in RATES
    }
