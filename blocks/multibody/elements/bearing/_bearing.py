"""Lubricated journal bearings inside a mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NoReturn

from ..... import _contract as contract
from .....errors import DiagramError
from ....bearings import (
    AbstractBearing,
    FiniteBearing,
    LongBearing,
    MisalignedShortBearing,
    ShortBearing,
)
from ....core._ports import Parameter, parameter
from ...drawing._signs import draw_wall
from ...drawing._strokes import INK, STEEL, WHITE, Stroke, circle
from ...system._bodies import Marker
from ...system._parts import Parts
from ...system._reading import suggest_keywords
from ...system._rotations import Array
from .._element import Element, Output, energy, power

if TYPE_CHECKING:
    from ...drawing._paper import Paper
    from ...drawing._poses import Snapshot
    from ...equations._loads import LoadState
    from ...plant._tables import Tables

_FILMS = {
    ShortBearing: contract.BL_FILM_SHORT,
    MisalignedShortBearing: contract.BL_FILM_MISALIGNED,
    LongBearing: contract.BL_FILM_LONG,
}
_NEARLY_ALONG = 0.995
"""Cosine of 0.1 rad, far more than a journal can tilt in its bush."""


@dataclass(frozen=True, slots=True, eq=False)
class Bearing(Element):
    """An oil film between a journal and its bush: a bearing block as part of the mechanism.

    Both markers are in the middle of the bearing, with z along its axis. The film depends on the
    position and velocity, in the axes of the bush's marker, of the point where the center line of
    the journal intersects the middle plane of the bush (the planes of both ends, for a film that
    tilts). Spin speeds are those about z. The force acts on the journal in that plane, the opposite
    force on the bush along the same line, and the friction torque on both: momentum is conserved.
    The journal is not held along z.

    With ``coupling="constraint"`` two equations hold the journal instead, p_j = p_b + ε [V 4.8]: ε
    is where the steady film carries their multipliers, recomputed after every step.

    Attributes
    ----------
    coupling
        ``"force"`` or ``"constraint"``.
    load_axes
        In which a film without squeeze takes its load to stand still: ``"world"`` or ``"bush"``.
    """

    kernel = contract.MB_BEARING

    name: str
    journal: Marker
    bush: Marker
    film: AbstractBearing
    coupling: Literal["force", "constraint"] = "force"
    load_axes: Literal["world", "bush"] = "world"

    @property
    def first(self) -> Marker:
        """Return the journal's marker."""
        return self.journal

    @property
    def second(self) -> Marker:
        """Return the bush's marker."""
        return self.bush

    @property
    def held(self) -> bool:
        """Return whether constraints hold the journal."""
        return self.coupling == "constraint"

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path: ``name.radius``, ``name.viscosity`` …."""
        for item in self.film.parameters:
            yield parameter(f"{self.name}.{item.name}", item.value, unit=item.unit, doc=item.doc)

    @property
    def ends(self) -> tuple[Marker, Marker]:
        """Return the two markers that it ties softly together."""
        return self.journal, self.bush

    @property
    def row_count(self) -> int:
        """Return how many constraint equations it has."""
        return 2 if self.held else 0

    @property
    def play(self) -> float:
        """Return the clearance in m."""
        return self.film.clearance

    def doubt(self) -> str:
        """Return a warning of a film that acts as a force without its damping, or nothing."""
        if self.film.squeeze or self.held:
            return ""
        return (
            f"the film of `{self.name}` has squeeze=False and a force for coupling: nothing damps "
            f"the motion of the journal in its bush, which rings or whirls with growing amplitude. "
            f"Leave squeeze=False out, or take coupling='constraint'."
        )

    def problems(self) -> list[str]:
        """Return its problems in the context of the whole system."""
        lines = [end.world_rotation[:, 2] for end in (self.journal, self.bush)]
        if abs(lines[0] @ lines[1]) >= _NEARLY_ALONG:
            return []
        return [
            f"the z axes of `{self.journal.path}` and `{self.bush.path}` do not form a "
            f"bearing axis: `{self.name}` requires them to be parallel. Give both markers axis=…."
        ]

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        found = {
            "offset": Output(
                contract.MB_FILM_OFFSET,
                "m",
                "of the journal in axes of the bush, x and y, in the middle",
                2,
            ),
            "force": Output(contract.MB_FILM_FORCE, "N", "on the journal, in world axes", 3),
            "eccentricity": Output(
                contract.MB_FILM_ECCENTRICITY,
                None,
                "as a part of the clearance, at the thinner end",
            ),
            "torque": Output(
                contract.MB_FILM_TORQUE,
                "N.m",
                "on the journal about the axis of the bush: friction",
            ),
            "film": Output(
                contract.MB_FILM_THICKNESS, "m", "least thickness; negative is penetration"
            ),
            "pressure": Output(contract.MB_FILM_PRESSURE, "Pa", "largest in the film"),
            "power_loss": Output(
                contract.MB_FILM_POWER_LOSS, "W", "what film and contact turn into heat"
            ),
            "thin_film": Output(
                contract.MB_FILM_THIN, None, "1 where the film is below its limit, else 0"
            ),
            "power": power(),
            "energy": energy(),
        }
        if self.held:
            found["rounds"] = Output(
                contract.MB_FILM_ROUNDS, None, "of offset and multipliers in the last step"
            )
        return found

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        i, j = tables.marker(self.journal), tables.marker(self.bush)
        friction, thin, cavitation, squeeze = self.film.integers  # type: ignore[misc]
        options = friction + 8 * (thin % 2) + 256 * (thin // 2) + 16 * cavitation + 64 * squeeze
        options += 128 * (self.load_axes == "bush")
        options += 512 * (1 + tables.row_of.get(self.name, -1))
        model = next(number for kind, number in _FILMS.items() if isinstance(self.film, kind))
        return [i, j, tables.place(f"{self.name}.radius"), model, options]

    def push(self, at: LoadState, items: None) -> NoReturn:
        """Refuse: the film is known to the engine only."""
        raise DiagramError(
            f"`{self.name}` is a lubricated bearing, whose film is computed only by the engine: "
            f"simulate the system in time. The methods equilibrium(…) and coefficients(…) of the "
            f"film give its static position and its stiffness."
        )

    def draw(self, frame: Snapshot, paper: Paper) -> list[Stroke]:
        """Return the bush, and the journal in it."""
        k, at = paper.size, paper.at(frame.point(self.bush))
        return [
            Stroke(circle(at, 10 * k), INK, STEEL, 1.2, tint=0.5),
            Stroke(circle(at, 7 * k), INK, WHITE, 1.0),
            Stroke(circle(paper.at(frame.point(self.journal)), 5 * k), INK, STEEL, 1.0),
        ]

    def draw_mount(self, at: Array, away: Array, line: Array, k: float) -> list[Stroke]:
        """Return the symbol of the support at an end on the ground."""
        return draw_wall(at + 10 * k * away, away, k)

    def label_place(self, frame: Snapshot, paper: Paper) -> tuple[Array, float] | None:
        """Return the places for its name and the distance from them."""
        return paper.at(frame.point(self.bush))[None], 14 * paper.size


class BearingMethods(Parts):
    """Adds lubricated bearings."""

    @suggest_keywords
    def bearing(
        self,
        name: str,
        journal: Marker,
        bush: Marker,
        film: AbstractBearing,
        *,
        coupling: Literal["force", "constraint"] = "force",
        load_axes: Literal["world", "bush"] = "world",
    ) -> Bearing:
        """Add a lubricated journal bearing between two markers; see `Bearing` for its law.

        Its outputs are ``name.offset`` (x and y of the journal in axes of the bush's marker),
        ``eccentricity``, ``film``, ``pressure``, ``force`` (on the journal, in world axes),
        ``torque``, ``power_loss`` and ``thin_film``.

        Parameters
        ----------
        name
            Unique in the system.
        journal, bush
            Markers in the middle of the bearing on the shaft and on its support, with z along
            the axis; planar markers have this by definition.
        film
            A `ShortBearing`, `MisalignedShortBearing` or `LongBearing`: its dimensions and
            options. It is not added to a diagram.
        coupling
            ``"force"``: the film is a force, and its stiffness and damping limit explicit steps.
            ``"constraint"``: two equations hold the journal where the steady film would carry their
            reaction. This does not limit the step, but it neglects squeeze and the dynamics of the
            journal in its bush. For planar systems and
            ``ShortBearing(squeeze=False)``. ``name.rounds`` is then the number of
            iterations of a step.
        load_axes
            For a film without squeeze: the axes in which its load is assumed to be constant, those
            of the ``"world"`` or of the ``"bush"``.
        """
        self._check_name(name)
        self._check_ends(name, journal, bush)
        if isinstance(film, FiniteBearing):
            raise DiagramError(
                f"`film` of `{name}` is a FiniteBearing, whose film has its own states: it is "
                f"for diagrams only, connected to a plant. In a mechanism use a ShortBearing, a "
                f"MisalignedShortBearing or a LongBearing."
            )
        if not isinstance(film, AbstractBearing):
            raise DiagramError(
                f"`film` of `{name}` is a bearing, such as ShortBearing(radius=0.02, length=0.01, "
                f"clearance=2e-5, viscosity=0.03); got {film!r}."
            )
        if any(port.name == "viscosity" for port in film.inputs):
            raise DiagramError(
                f"`film` of `{name}` takes its viscosity from a signal, which a mechanism has no "
                f"port for: leave viscosity_input out, or wire the bearing to the mechanism as a "
                f"block."
            )
        if coupling not in ("force", "constraint"):
            raise DiagramError(
                f"`coupling` of `{name}` is 'force' or 'constraint', got {coupling!r}."
            )
        if load_axes not in ("world", "bush"):
            raise DiagramError(f"`load_axes` of `{name}` is 'world' or 'bush', got {load_axes!r}.")
        if load_axes == "bush" and film.squeeze:
            raise DiagramError(
                f"`load_axes` of `{name}` is for a film without squeeze: with it, no axes are "
                f"preferred. Leave it out, or take squeeze=False."
            )
        steady = isinstance(film, ShortBearing) and not film.squeeze
        if coupling == "constraint" and not (steady and self.planar):
            raise DiagramError(
                f"coupling='constraint' of `{name}` is for the steady law in a plane: take "
                f"ShortBearing(…, squeeze=False) in a System(…, planar=True), or coupling='force'."
            )
        return self._add(Bearing(name, journal, bush, film, coupling, load_axes))
