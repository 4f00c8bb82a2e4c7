"""The finite journal bearing: Reynolds' equation on a grid, and where oil is fed to it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _contract as contract
from ...errors import BiellaWarning, DiagramError
from ..core._ports import CONTINUOUS, INHERITED, Parameter, Port, parameter
from ..core._vectors import require_choice
from ._bearings import (
    CAVITATION,
    AbstractBearing,
    Contact,
    check_dimensions,
    read_film_limit,
)
from ._bush import BushShape, sample_bush

_MOST_AROUND, _MOST_ALONG = 1024, 64
_USUAL = (64, 16)
_FINER = (96, 128, 192, 256, 384, 512, 768, 1024)
_COARSE, _FINE = 4.0, 8.0
"""Cells around in the angle over which a film doubles. With N of them forces are off by up to about
25 / N² %, damping by 60 / N %, for all lengths and eccentricities alike."""


@dataclass(frozen=True, slots=True)
class Pocket:
    """A rectangle of the bush that oil is fed to: an axial groove, one all around, a recess.

    Parameters
    ----------
    angle
        Angle of its center, in rad.
    width
        Around, in rad; 2π is a groove all around.
    pressure
        In Pa above that at the ends of the bush; can be set as `feed_pressure`.
    length
        Along, in m; the whole bush if not given.
    z
        Of its middle, in m from end 1; the middle of the bush if not given.
    """

    angle: float
    width: float
    pressure: float = 0.0
    length: float | None = None
    z: float | None = None


@dataclass(frozen=True, slots=True)
class Hole:
    """A round hole in the bush that oil is fed through.

    Parameters
    ----------
    angle
        Angle of its center, in rad.
    diameter
        In m.
    pressure
        In Pa above that at the ends of the bush; can be set as `feed_pressure`.
    z
        Of its middle, in m from end 1; the middle of the bush if not given.
    """

    angle: float
    diameter: float
    pressure: float = 0.0
    z: float | None = None


class FiniteBearing(AbstractBearing):
    """A journal bearing of any length: Reynolds' equation on a grid, by finite volumes.

    Parameters
    ----------
    radius, length, clearance
        Radius of the journal, length of the bush and radial clearance, in m.
    viscosity
        Dynamic, in Pa s.
    cells
        How many around and along, both even; work grows with the first and the cube of the second.
        If not given, 64 and 16 in a run, and in `equilibrium`, `coefficients` and
        `threshold_speed` as many around as the film that they find needs. A film that is too thin
        for its cells is warned of: thinner than about 0.07 of the clearance with 64 around.
    cavitation
        ``"reynolds"``: p ≥ 0 with p = 0 and no slope where the film ends (Swift-Stieber);
        ``"gumbel"``: the full solution, its negative part dropped; ``"none"``: all of it;
        ``"jfo"``: oil is neither made nor lost (Jakobsson, Floberg and Olsson): cells are filled
        to a part where the film has ended, which the block remembers from tick to tick;
        ``"jfo_steady"``: the same, where oil has had all the time that it needs.
    tilt
        Whether `position` and `velocity` are those of both ends.
    grooves
        Pairs ``(angle, width)`` in rad: axial grooves over the whole length, at p = 0.
    feeds
        `Pocket` and `Hole`, each at its pressure, over the grooves. Angles are those of the axes
        that positions are given in, which must then be the bush's.
    bush
        Additional gap of a noncircular bush beyond the clearance, in m: a function of arrays θ in
        rad and z in m, such as `lobes` makes; or an array of values at equal angles from 0 on, or
        of rows of them with values from end 1 to end 2, linear in between. It cannot be set later.
    friction
        ``"shear"`` from the film's flow, ``"petroff"``, ``"correlation"`` with φ = c / r or
        ``"correlation_diameter"`` with φ = c / (2 r), or ``"none"``.
    contact
        Contact law at an end below `film_limit`; ``None`` stops the run there.
    film_limit
        Least film thickness in m; 1 % of the clearance if not given.
    viscosity_input
        Whether viscosity is an input port, with `viscosity` where nothing is wired to it.
    """

    kernel = "finite_bearing"
    isotropic = False  # its cells stand still, and so do its grooves
    can_be_sampled = True

    def __init__(
        self,
        radius: float,
        length: float,
        clearance: float,
        viscosity: float,
        *,
        cells: tuple[int, int] | None = None,
        cavitation: str = "reynolds",
        tilt: bool = False,
        grooves: Sequence[tuple[float, float]] = (),
        feeds: Sequence[Pocket | Hole] = (),
        bush: BushShape | None = None,
        friction: str = "shear",
        contact: Contact | None = Contact(),  # noqa: B008 - frozen
        film_limit: float | None = None,
        viscosity_input: bool = False,
    ) -> None:
        require_choice("`cavitation` of FiniteBearing", cavitation, CAVITATION)
        check_dimensions("FiniteBearing", radius, length, clearance, viscosity)
        around, along = _check_cells(_USUAL if cells is None else cells)
        fed = [*_check_grooves(grooves), *_check_feeds(feeds, length)]
        if cavitation == "jfo_steady" and not fed:
            raise DiagramError(
                'a FiniteBearing with cavitation="jfo_steady" needs `grooves` or `feeds`: without, '
                "all oil would leave through the ends."
            )
        shape = []
        if bush is not None:
            limit = read_film_limit("FiniteBearing", film_limit, clearance, contact)
            map_of = sample_bush(bush, (around, along), length, limit - clearance)
            shape = [parameter("bush", map_of, doc="its shape", tunable=False, hidden=True)]
        super().__init__(
            radius,
            length,
            clearance,
            viscosity,
            ends=2 if tilt else 1,
            friction=friction,
            contact=contact,
            film_limit=film_limit,
            cavitation=cavitation,
            squeeze=True,
            viscosity_input=viscosity_input,
            # Oil moves on where nothing else does.
            otherwise=CONTINUOUS if cavitation == "jfo" else INHERITED,
            more_integers={
                contract.BEARING_AROUND: around,
                contract.BEARING_ALONG: along,
                contract.BEARING_FEEDS: len(fed),
                contract.BEARING_MAP: int(bush is not None),
            },
            more_parameters=[*_make_feeds(fed, length), *shape],
            more_outputs=[
                Port("solves", kind="integer", doc="linear systems solved"),
                Port("side_flow", 2, unit="m3/s", doc="out of the film at ends 1 and 2"),
                Port("supply_flow", unit="m3/s", doc="into the film from its feeds"),
                *([Port("oil", unit="m3", doc="in the film")] if cavitation == "jfo" else []),
            ],
        )
        # The set of cells with film is only an initial guess; the oil in the cells is a state.
        self.memory_holds = cavitation != "jfo"
        self._cavitation, self._around, self._along = cavitation, around, along
        self._options: dict[str, Any] = {
            "cells": cells,
            "tilt": tilt,
            "grooves": grooves,
            "feeds": feeds,
            "bush": bush,
            "friction": friction,
            "contact": contact,
            "film_limit": film_limit,
        }

    @property
    def settled(self) -> AbstractBearing:
        """The same bearing, in which oil has had all the time that it needs."""
        if self._cavitation != "jfo":
            return self
        size = (self.radius, self.length, self.clearance, self.viscosity)
        return FiniteBearing(*size, cavitation="jfo_steady", **self._options)

    def _count_cells(self, film: float) -> float:
        """Cells around in √(2 h / e), over which a film doubles; as finite_bearing_resolution."""
        part = min(film / self.clearance, 1.0)
        angle = math.sqrt(2 * part / (1 - part)) if part < 1 else math.inf
        return angle * self._around / (2 * math.pi)

    def resolve(self, film: float) -> AbstractBearing:
        """Return this bearing with cells that are fine enough for a film of this thickness in m.

        If they were given it is this bearing.
        """
        found = self._count_cells(film)
        if self._options["cells"] is not None or found >= _FINE:
            return self
        wanted = self._around * _FINE / found
        around = next((n for n in _FINER if n >= wanted), _MOST_AROUND)
        size = (self.radius, self.length, self.clearance, self.viscosity)
        options = {**self._options, "cells": (around, _USUAL[1])}
        return FiniteBearing(*size, cavitation=self._cavitation, **options)

    def warn_of_cells(self, film: float) -> None:
        """Warn if the cells are too coarse for a film of this thickness in m."""
        found = self._count_cells(film)
        if found >= _COARSE:
            return
        around, along = self._around, self._along
        enough = min(2 * math.ceil(around * _COARSE / found), _MOST_AROUND)
        text = (
            f"{around} cells around are too few for a film of {film:.3g} m in a clearance of "
            f"{self.clearance:.3g} m: forces may be off by {25 / found**2:.2g} %, damping by "
            f"{60 / found:.2g} %. Take cells=({enough}, {along}), or leave `cells` out."
        )
        warnings.warn(text, BiellaWarning, stacklevel=3)


def _check_cells(cells: Any) -> tuple[int, int]:
    try:
        around, along = (int(n) for n in cells)
        whole = (around, along) == tuple(cells)
    except (TypeError, ValueError):
        whole = False
    if not (
        whole
        and 8 <= around <= _MOST_AROUND
        and 2 <= along <= _MOST_ALONG
        and around % 2 == along % 2 == 0
    ):
        raise DiagramError(
            f"`cells` of FiniteBearing are two even numbers, 8 to {_MOST_AROUND} around and 2 to "
            f"{_MOST_ALONG} along; got {cells!r}."
        )
    return around, along


def _check_grooves(grooves: Any) -> list[Pocket]:
    try:
        pairs = [(float(angle), float(width)) for angle, width in grooves]
    except (TypeError, ValueError):
        pairs = [(math.nan, math.nan)]
    if not all(math.isfinite(angle) and 0 <= width < math.inf for angle, width in pairs):
        raise DiagramError(
            f"`grooves` of FiniteBearing are pairs (angle, width) in rad, got {grooves!r}."
        )
    return [Pocket(angle, width) for angle, width in pairs]


def _check_feeds(feeds: Any, length: float) -> list[Pocket | Hole]:
    given = list(feeds) if isinstance(feeds, Iterable) else [feeds]
    for feed in given:
        if not isinstance(feed, (Pocket, Hole)):
            raise DiagramError(
                f"`feeds` of FiniteBearing are Pocket(…) and Hole(…) of biella.blocks.bearings, "
                f"got {feed!r}."
            )
        sizes = [feed.diameter] if isinstance(feed, Hole) else [feed.width, feed.length or 0.0]
        z = 0.0 if feed.z is None else feed.z
        try:
            fits = all(0 <= value < math.inf for value in (*sizes, feed.pressure))
            placed = math.isfinite(feed.angle) and 0 <= z <= length
        except TypeError:
            fits = False
        if not fits:
            raise DiagramError(f"sizes and pressure of a feed must not be negative, got {feed!r}.")
        if not placed:
            raise DiagramError(
                f"the middle of a feed is at an angle in rad and at z in m from end 1, up to the "
                f"length of the bush, {length:g} m; got {feed!r}."
            )
    return given


def _make_feeds(feeds: Sequence[Pocket | Hole], length: float) -> list[Parameter]:
    """Return each feed in the order of the kernel: angle, z, width, length, whether it is round."""
    if not feeds:
        return []
    rows = []
    for feed in feeds:
        z = 0.5 * length if feed.z is None else feed.z
        if isinstance(feed, Hole):
            rows.append((feed.angle, z, 0.0, feed.diameter, 1.0))
        else:
            along = length if feed.length is None else feed.length
            rows.append((feed.angle, z, feed.width, along, 0.0))
    pressures = np.array([feed.pressure for feed in feeds])
    return [
        parameter("feeds", rows, doc="angle, z, width, length, whether round", tunable=False),
        parameter("feed_pressure", pressures, unit="Pa", doc="of each groove and feed"),
    ]
