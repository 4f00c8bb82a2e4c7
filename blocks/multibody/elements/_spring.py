"""Springs, dampers and actuators between two markers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .... import _contract as contract
from ....errors import DiagramError
from ...core._ports import Parameter, parameter
from ..drawing._signs import draw_wall, is_zero, snap
from ..drawing._strokes import INK, SPRING_LAYER, Stroke, across, dashpot, unit, zigzag
from ..plant._parameters import law_parameters
from ..system._bodies import Marker
from ..system._laws import AbstractLaw, Lawlike, as_law
from ..system._parts import Parts
from ..system._reading import read_number, suggest_keywords
from ..system._rotations import Array
from ._element import Element, Output, energy, power

if TYPE_CHECKING:
    from ..drawing._paper import Paper
    from ..drawing._poses import Snapshot
    from ..equations._loads import LoadState
    from ..equations._shapes import Shapes
    from ..plant._tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class Spring(Element):
    """A spring, damper and actuator between two markers.

    F = stiffness (l - free_length) + damping v + force, with l = |d| and v its rate: tension is
    positive, +F d/l acts on body i at its marker and the opposite on body j [V 1.57-1.61]. With
    `components` only those components of that force, in world axes, act.
    Coefficients are laws of t, l and v; at l = 0 the direction is undefined and the force is 0.
    """

    kernel = contract.MB_SPRING

    name: str
    first: Marker
    second: Marker
    stiffness: AbstractLaw
    damping: AbstractLaw
    free_length: float
    force: AbstractLaw
    components: str

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path."""
        name = self.name
        yield from law_parameters(f"{name}.stiffness", self.stiffness, "N/m", "stiffness")
        yield from law_parameters(f"{name}.damping", self.damping, "N.s/m", "viscous damping")
        yield parameter(f"{name}.free_length", self.free_length, unit="m", doc="without force")
        yield from law_parameters(f"{name}.force", self.force, "N", "tension")

    @property
    def ends(self) -> tuple[Marker, Marker]:
        """Return the two markers that it connects."""
        return self.first, self.second

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        return {
            "length": Output(contract.SPRING_SHOWN_LENGTH, "m", "distance of its markers"),
            "rate": Output(contract.SPRING_SHOWN_RATE, "m/s", "rate of the length"),
            "force": Output(
                contract.SPRING_SHOWN_FORCE,
                "N",
                "tension of spring, damper and actuator",
                1,
                "laws",
            ),
            "deflection": Output(contract.SPRING_SHOWN_DEFLECTION, "m", "length less free_length"),
            "power": power(),
            "energy": energy(),
        }

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        i, j = tables.marker(self.first), tables.marker(self.second)
        first = tables.law(f"{self.name}.stiffness", self.stiffness)
        tables.law(f"{self.name}.damping", self.damping)
        tables.law(f"{self.name}.force", self.force)
        mask = sum(1 << "xyz".index(axis) for axis in self.components) if self.components else 7
        return [i, j, tables.place(f"{self.name}.free_length"), first, mask]

    def reserve(self, shapes: Shapes) -> tuple[int, int]:
        """Return the points of its ends."""
        return shapes.point(self.first), shapes.point(self.second)

    def push(self, at: LoadState, items: tuple[int, int]) -> None:
        """Add its generalized force at a state."""
        i, j = items
        d = at.field.value[j] - at.field.value[i]
        length = float(np.sqrt(d @ d))
        if length == 0.0:
            return
        pull = self.measure(at, items, "force") / length * d
        for n, axis in enumerate("xyz"):
            if axis not in self.components:
                pull[n] = 0.0
        at.push(i, pull)
        at.push(j, -pull)

    def measure(self, at: LoadState, items: tuple[int, int], what: str) -> Any:
        """Return its length, rate, deflection or tension."""
        i, j = items
        d = at.field.value[j] - at.field.value[i]
        length = float(np.sqrt(d @ d))
        if what in ("length", "deflection"):
            return length - (self.free_length if what == "deflection" else 0.0)
        v = float(d @ (at.speed(j) - at.speed(i))) / length if length else 0.0
        if what != "force":
            return v if what == "rate" else None
        of = {"t": at.t, "l": length, "v": v}
        if length == 0.0:
            return 0.0
        return (
            at.evaluate(self.stiffness, **of) * (length - self.free_length)
            + at.evaluate(self.damping, **of) * v
            + at.evaluate(self.force, **of)
        )

    def draw(self, frame: Snapshot, paper: Paper) -> list[Stroke]:
        """Return a zigzag, a dashpot, or the two side by side; a wall at an end that is moved."""
        ends = [paper.at(frame.point(end)) for end in (self.first, self.second)]
        strokes = self._draw_between(ends[0], ends[1], paper.size)
        for n, marker in enumerate((self.first, self.second)):
            if marker.body.is_ground and marker.motion:
                strokes += draw_wall(ends[n], snap(ends[n] - ends[1 - n]), paper.size)
        return strokes

    def _draw_between(self, start: Array, end: Array, k: float) -> list[Stroke]:
        width = 1.3 * max(k, 0.6)
        length = float(np.linalg.norm(end - start))
        springs, damps = not is_zero(self.stiffness), not is_zero(self.damping)
        pulls = not is_zero(self.force)
        if length < 1e-6:
            return []
        if not damps and not pulls:
            line = zigzag(start, end, 5.5 * k)
            return [Stroke(line, INK, width=width, layer=SPRING_LAYER)]
        if not springs:
            return dashpot(start, end, 6 * k, width, INK)
        along = unit(end - start)
        lead = along * min(0.2 * length, 24 * k)
        side = across(along) * 6.5 * k
        a, b = start + lead, end - lead
        lines = ([start, a], [a - side, a + side], [b - side, b + side], [b, end])
        frame = [Stroke(np.array(line), INK, width=width, layer=SPRING_LAYER) for line in lines]
        tooth = Stroke(zigzag(a + side, b + side, 4.5 * k), INK, width=width, layer=SPRING_LAYER)
        return [*frame, tooth, *dashpot(a - side, b - side, 4.5 * k, width, INK)]

    def draw_mount(self, at: Array, away: Array, line: Array, k: float) -> list[Stroke]:
        """Return the symbol of the support at an end on the ground."""
        return draw_wall(at, snap(line), k)

    def label_place(self, frame: Snapshot, paper: Paper) -> tuple[Array, float] | None:
        """Return the places for its name and the distance from them."""
        start, end = (paper.at(frame.point(m)) for m in (self.first, self.second))
        places = [start + share * (end - start) for share in (0.5, 0.3, 0.7)]
        return np.array(places), 12 * paper.size


class SpringMethods(Parts):
    """Methods that add springs, dampers and actuators between markers."""

    @suggest_keywords
    def spring(
        self,
        name: str,
        first: Marker,
        second: Marker,
        *,
        stiffness: Lawlike = 0.0,
        damping: Lawlike = 0.0,
        free_length: float = 0.0,
        force: Lawlike | None = None,
        components: str | None = None,
    ) -> Spring:
        """Add a spring, damper and actuator between two markers; see `Spring` for its law.

        Parameters
        ----------
        name, first, second
            Its name and ends.
        stiffness, damping, force
            In N/m, N s/m and N of tension: numbers, or laws of t, of the length l, its rate v and
            outputs of the mechanism; see `Formula`.
        free_length
            In m.
        components
            Such as ``"z"``: only these components of the force act, in axes of the world.
        """
        self._check_name(name)
        self._check_ends(name, first, second)
        axes = "xy" if self.planar else "xyz"
        components = axes if components is None else components
        if not components or set(components) - set(axes) or len(set(components)) < len(components):
            raise DiagramError(
                f"`components` of `{name}` are some of {', '.join(axes)}, such as {axes[-1]!r}; "
                f"got {components!r}."
            )
        known = ("t", "l", "v")
        length = read_number(f"`free_length` of `{name}`", free_length)
        if length < 0:
            raise DiagramError(f"`free_length` of `{name}` is {length:g} m: no length is negative.")
        return self._add(
            Spring(
                name,
                first,
                second,
                as_law(f"`stiffness` of `{name}`", stiffness, known),
                as_law(f"`damping` of `{name}`", damping, known),
                length,
                as_law(f"`force` of `{name}`", 0.0 if force is None else force, known),
                components,
            )
        )
