"""Position, duration and force of the contacts between a pin and its hole, as a measure of wear.

Samples may lie unequally in time: each counts for the time around it, half of the way to its
neighbors.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ....errors import DiagramError, name_list, suggest
from ..system._rotations import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NEEDED = ("contact", "normal_force", "angle", "angle_on_pin", "slip")
_OF_PLACES = ("gaps", "normal_forces", "angles", "angles_on_pin", "slips")
_COUNTED = ("impacts", "impulse", "sliding", "sliding_work")


class Recorded(Protocol):
    """Signals over the times `t`, by path: a `Result`."""

    @property
    def t(self) -> Array:
        """Times in s."""

    @property
    def paths(self) -> list[str]:
        """Paths of all signals."""

    def __getitem__(self, name: str) -> Array:
        """Return a signal."""


@dataclass(frozen=True)
class Around:
    """What happened around one of the two surfaces, in bins of the angle of the contact.

    Attributes
    ----------
    edges
        Of the bins, in rad, from -π to π; one more than there are bins.
    density
        Probability density of the contact in 1/rad: ∫ density dφ = 1 over the time in contact.
    mean_force
        Normal force in N, over the time in contact there; 0 where there was none.
    sliding_work
        ∫ N |slip| dt in J: proportional to Archard's wear; friction heat for a coefficient of 1.
    impulse
        Of impacts, in N s; of compliant contacts 0, theirs is in `mean_force`.
    """

    edges: Array
    density: Array
    mean_force: Array
    sliding_work: Array
    impulse: Array

    @property
    def angles(self) -> Array:
        """Return the middles of the bins, in rad."""
        return np.asarray(0.5 * (self.edges[1:] + self.edges[:-1]))

    def probability(self, start: float, end: float) -> float:
        """Return the part of the time in contact spent between two angles, turning left."""
        below = np.concatenate([[0.0], np.cumsum(self.density * np.diff(self.edges))])

        def up_to(angle: float) -> float:
            turns, rest = divmod(angle + np.pi, 2.0 * np.pi)
            return float(turns + np.interp(rest - np.pi, self.edges, below))

        if end < start:
            end += 2.0 * np.pi * np.ceil((start - end) / (2.0 * np.pi))
        return up_to(end) - up_to(start)


@dataclass(frozen=True)
class ContactStatistics:
    """How a pin and its hole touched; see `_contact_statistics`.

    Attributes
    ----------
    duration, contact_time
        In s.
    mean_force, largest_force
        Normal, in N, the mean over the time in contact.
    sliding_distance, sliding_work
        ∫ |slip| dt in m and ∫ N |slip| dt in J, in contact.
    began, lasted, impulses, peaks
        Of each episode of contact: when, how long, ∫ N dt in N s, and its largest force. Those that
        were on at either end are counted as far as they were seen.
    impact_times, impact_impulses
        Of rigid contacts, at the resolution of the samples: impacts between two samples are added.
    impacts
        How many there were of rigid contacts; of compliant ones an episode is what begins with an
        impact.
    hole, pin
        The same around each of the two.
    largest_depth
        Of penetration in m, from the smallest gap; nan if the result has no ``gap``.
    """

    duration: float
    contact_time: float
    mean_force: float
    largest_force: float
    sliding_distance: float
    sliding_work: float
    began: Array
    lasted: Array
    impulses: Array
    peaks: Array
    impact_times: Array
    impact_impulses: Array
    impacts: int
    hole: Around
    pin: Around
    largest_depth: float = float("nan")

    @property
    def contact_share(self) -> float:
        """Return the part of the time in contact."""
        return self.contact_time / self.duration

    @property
    def episodes(self) -> int:
        """Return how often they came into contact, or were at the start."""
        return len(self.began)

    def __str__(self) -> str:
        """Return the statistics as a short table."""
        lines = [
            f"in contact        {100 * self.contact_share:.1f} % of {self.duration:.4g} s",
            f"episodes          {self.episodes}",
            f"mean force        {self.mean_force:.4g} N, largest {self.largest_force:.4g} N",
            f"sliding           {self.sliding_distance:.4g} m",
            f"∫ N |slip| dt     {self.sliding_work:.4g} J",
        ]
        if self.largest_depth > 0:
            lines.append(f"largest depth     {self.largest_depth:.4g} m")
        if self.impacts:
            total = float(self.impact_impulses.sum())
            lines.append(f"impacts           {self.impacts}, impulses of {total:.4g} N s in all")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None, *, title: str = "") -> Figure:
        """Draw roses of the contact around the hole and around the pin."""
        from ..drawing._contact_rose import draw_roses

        return draw_roses(self, path, title)


def contact_statistics(
    result: Recorded,
    name: str,
    *,
    bins: int = 72,
    start: float | None = None,
    stop: float | None = None,
) -> ContactStatistics:
    """Tell where, how long and how hard a pin touched its hole.

    Parameters
    ----------
    result
        With the outputs ``contact``, ``normal_force``, ``angle``, ``angle_on_pin`` and ``slip`` of
        the revolute with clearance, or of the contact of shapes; of a rigid revolute also
        ``impacts``, ``impulse``, ``sliding`` and ``sliding_work``, which count between samples
        too. With ``gap``, the largest depth. With ``gaps``, ``normal_forces``, ``angles``,
        ``angles_on_pin`` and ``slips`` of shapes that touch in several places, `hole` and `pin`
        count each place where it is; otherwise all is counted where the gap is smallest.
    name
        Of the revolute or the contact, such as ``"pin"``; with its plant, ``"plant.pin"``, if there
        are several.
    bins
        Around each circle.
    start, stop
        Evaluated time interval in s, for example to exclude the first turns.
    """
    path = _find(result, name)
    if not isinstance(bins, int) or bins < 1:
        raise DiagramError(f"`bins` is a whole number, at least 1; got {bins!r}.")
    t = np.asarray(result.t)
    low, high = t[0] if start is None else start, t[-1] if stop is None else stop
    rows = np.flatnonzero((t >= low) & (t <= high))
    if len(rows) < 2:
        raise DiagramError(
            f"between {low:g} s and {high:g} s there are {len(rows)} samples of `{name}`: the "
            f"result has {len(t)}, from {t[0]:g} s to {t[-1]:g} s."
        )
    t = t[rows]
    signals = {what: np.asarray(result[f"{path}.{what}"])[rows] for what in _NEEDED}
    counts = {
        what: np.diff(np.asarray(result[f"{path}.{what}"])[rows], prepend=np.nan)
        for what in _COUNTED
        if f"{path}.{what}" in result.paths
    }
    for values in counts.values():
        values[0] = 0.0
    weight = np.zeros_like(t)
    weight[1:] += 0.5 * np.diff(t)
    weight[:-1] += 0.5 * np.diff(t)
    touching = signals["contact"] > 0.5
    force = np.where(touching, signals["normal_force"], 0.0)
    slid = np.where(touching, np.abs(signals["slip"]) * weight, 0.0)
    distance = counts.get("sliding", slid)
    work = counts.get("sliding_work", force * slid)
    impulse = counts.get("impulse", np.zeros_like(t))
    time = np.where(touching, weight, 0.0)
    contact_time = float(time.sum())
    edges = np.linspace(-np.pi, np.pi, bins + 1)
    angles = [signals["angle"], signals["angle_on_pin"]]
    place_time, place_push, place_impulse, place_work = time, force * weight, impulse, work
    if not counts and all(f"{path}.{what}" in result.paths for what in _OF_PLACES):
        gaps, forces, *angles, slips = (
            np.asarray(result[f"{path}.{what}"])[rows] for what in _OF_PLACES
        )
        place_time = np.where(gaps <= 0, weight[:, None], 0.0)
        place_push = np.where(gaps <= 0, forces, 0.0) * weight[:, None]
        place_work = place_push * slips
        place_impulse = np.zeros_like(gaps)
        work = place_work.sum(axis=1)

    def around(angle: Array) -> Around:
        def share(weights: Array) -> Array:
            return np.histogram(angle, edges, weights=weights)[0]

        spent = share(place_time)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(spent > 0, share(place_push) / spent, 0.0)
        density = spent / (float(place_time.sum()) or 1.0) / np.diff(edges)
        return Around(edges, density, mean, share(place_work), share(place_impulse))

    began, lasted, impulses, peaks = _episodes(t, touching, force)
    hit = np.flatnonzero(impulse > 0.0)
    return ContactStatistics(
        duration=float(t[-1] - t[0]),
        contact_time=contact_time,
        mean_force=float((force * weight).sum()) / (contact_time or 1.0),
        largest_force=float(force.max()),
        sliding_distance=float(distance.sum()),
        sliding_work=float(work.sum()),
        began=began,
        lasted=lasted,
        impulses=impulses,
        peaks=peaks,
        impact_times=t[hit],
        impact_impulses=impulse[hit],
        impacts=round(float(counts["impacts"].sum())) if "impacts" in counts else 0,
        hole=around(angles[0]),
        pin=around(angles[1]),
        largest_depth=_largest_depth(result, path, rows),
    )


def _largest_depth(result: Recorded, path: str, rows: Any) -> float:
    if f"{path}.gap" not in result.paths:
        return float("nan")
    return max(0.0, -float(np.asarray(result[f"{path}.gap"])[rows].min()))


def _episodes(t: Array, touching: Any, force: Array) -> tuple[Array, Array, Array, Array]:
    """Begin, duration, ∫ N dt and largest force of each run of samples in contact.

    An episode is taken to reach to the middle between its samples and those beside it.
    """
    change = np.diff(touching.astype(int), prepend=0, append=0)
    first, last = np.flatnonzero(change == 1), np.flatnonzero(change == -1) - 1
    if len(first) == 0:
        return (np.zeros(0),) * 4
    middle = np.concatenate([[t[0]], 0.5 * (t[1:] + t[:-1]), [t[-1]]])
    begin, end = middle[first], middle[last + 1]
    weight = np.diff(middle)
    sums = np.concatenate([[0.0], np.cumsum(force * weight)])
    peaks = np.array([force[a : b + 1].max() for a, b in zip(first, last, strict=True)])
    return begin, end - begin, sums[last + 1] - sums[first], peaks


def _find(result: Recorded, name: str) -> str:
    """Return the path of a revolute with clearance in a result."""
    ends = [p.removesuffix(".normal_force") for p in result.paths if p.endswith(".normal_force")]
    fits = [path for path in ends if path == name or path.endswith(f".{name}")]
    if len(fits) != 1:
        what = "nothing" if not fits else f"{len(fits)} contacts"
        raise DiagramError(
            f"the result has {what} called `{name}` with a `normal_force`."
            f"{suggest(name, ends)} It has: {name_list(ends) or 'none'}."
        )
    missing = [what for what in _NEEDED if f"{fits[0]}.{what}" not in result.paths]
    if missing:
        raise DiagramError(
            f"statistics of `{name}` also need {name_list(f'`{name}.{what}`' for what in missing)}:"
            f" name them among the outputs of the plant."
        )
    return fits[0]
