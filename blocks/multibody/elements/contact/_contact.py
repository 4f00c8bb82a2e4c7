"""Contact between two shapes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from ..... import _contract as contract
from .....errors import DiagramError
from ....core._ports import Parameter, parameter
from ...system._bodies import Marker
from ...system._parts import Parts
from ...system._reading import suggest_keywords
from ...system._rotations import freeze
from .._bushing import Bushing
from .._element import Element, Output, energy, power
from ..clearance._clearance import (
    _NUMBERS,
    RIGID_OUTPUTS,
    ContactLaw,
    RigidContact,
    worn_outputs,
)
from ..clearance._wear import Wear
from ._shapes import Profile, Shape, is_shape
from ._worn import NO_WEAR, WEAR_OUTPUTS, check_wear, read_outlines, read_sections

if TYPE_CHECKING:
    from ...equations._loads import LoadState
    from ...plant._tables import Tables


class Pair(NamedTuple):
    """Two kinds of shape: their number in the kernel, and in how many places they touch.

    A rigid contact has fewer places: those that follow the motion smoothly. `worn_places` is in how
    many they touch if they wear. 0 is none.
    """

    number: int
    places: int
    rigid: int
    worn_places: int = 0


PAIRS: dict[tuple[str, str], Pair] = {
    ("sphere", "plane"): Pair(contract.TOUCH_SPHERE_PLANE, 1, 1),
    ("capsule", "plane"): Pair(contract.TOUCH_CAPSULE_PLANE, 2, 2),
    ("cylinder", "plane"): Pair(contract.TOUCH_CYLINDER_PLANE, 6, 0),
    ("sphere", "sphere"): Pair(contract.TOUCH_SPHERES, 1, 1),
    ("sphere", "capsule"): Pair(contract.TOUCH_SPHERE_CAPSULE, 1, 1),
    ("sphere", "cylinder"): Pair(contract.TOUCH_SPHERE_CYLINDER, 1, 1),
    ("capsule", "capsule"): Pair(contract.TOUCH_CAPSULES, 1, 1),
    ("sphere", "socket"): Pair(contract.TOUCH_SPHERE_SOCKET, 1, 1),
    ("sphere", "bore"): Pair(contract.TOUCH_SPHERE_BORE, 1, 1, 1),
    ("cylinder", "bore"): Pair(contract.TOUCH_PIN_BORE, 8, 4, 4),
    ("sphere", "hole"): Pair(contract.TOUCH_SPHERE_HOLE, 4, 0, 1),
    ("sphere", "cam"): Pair(contract.TOUCH_SPHERE_CAM, 4, 1),
    ("cam", "plane"): Pair(contract.TOUCH_CAM_PLANE, 4, 1),
    ("pin", "hole"): Pair(contract.TOUCH_PIN_HOLE, 1, 0, 1),
}
SPATIAL = ("cylinder", "bore")
"""Kinds that no planar system has."""

WITH_PLAY = ("socket", "bore", "hole")
"""Kinds that hold the other shape in them."""


@dataclass(frozen=True, slots=True, eq=False)
class ShapeContact(Element):
    """Contact between two shapes.

    At each place where the shapes overlap by δ the normal force is that of a compliant law,
    N(δ, δ̇) ≥ 0, and friction μ N tanh(slip / slip_speed) opposes the slip. Both act at one point on
    both bodies. With a `RigidContact` they do not overlap: impacts are instantaneous, and a closed
    gap is a constraint with N ≥ 0 and Coulomb friction that sticks.
    """

    name: str
    first: Shape
    second: Shape
    law: ContactLaw
    wear: Wear | None = None

    @property
    def _sections(self) -> int:
        """Into how many sections hole and pin are divided; 0 where they are not."""
        return read_sections([shape for _, shape in self._shapes], self.wear)

    @property
    def places(self) -> int:
        """Return in how many places the shapes can touch."""
        if self.is_rigid:
            return self.pair.rigid
        return self.pair.worn_places if self._sections else self.pair.places

    @property
    def _swapped(self) -> bool:
        return (self.first.kind, self.second.kind) not in PAIRS

    @property
    def _shapes(self) -> tuple[tuple[str, Shape], tuple[str, Shape]]:
        """The two shapes in the order of the kernel, with the names of their numbers."""
        both = ("first", self.first), ("second", self.second)
        return (both[1], both[0]) if self._swapped else both

    @property
    def pair(self) -> Pair:
        """Return what it is in the kernel."""
        (_, a), (_, b) = self._shapes
        return PAIRS[a.kind, b.kind]

    @property
    def _profile(self) -> Profile | None:
        found = (shape for _, shape in self._shapes if isinstance(shape, Profile))
        return next(found, None)

    @property
    def type_number(self) -> int:
        """Return its index in ``elements/table.c``."""
        if self.is_rigid:
            return contract.MB_TOUCH_RIGID
        if self._sections:
            return contract.MB_WORN
        return contract.MB_TOUCH if self.pair.places == 1 else contract.MB_TOUCHES

    @property
    def is_rigid(self) -> bool:
        """Return whether it needs the events of rigid contacts."""
        return isinstance(self.law, RigidContact)

    @property
    def rigid_closures(self) -> int:
        """Return how many closures the rows of its rigid contact are: one for each place."""
        return self.pair.rigid if self.is_rigid else 0

    def rigid_rows(
        self, tables: Tables, number: int
    ) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
        """Yield the normal and the two tangents of each place."""
        (_, a), (_, b) = self._shapes
        i, j = tables.marker(b.marker, b.frame()), tables.marker(a.marker, a.frame())
        law = tables.place(f"{self.name}.{self.law.order[0]}")
        for place in range(self.places):
            yield (
                [
                    [kind, i, j, number, place, law]
                    for kind in (
                        contract.MB_ROW_NORMAL,
                        contract.MB_ROW_TANGENT,
                        contract.MB_ROW_TANGENT,
                    )
                ],
                tables.path(b.marker, a.marker),
            )

    @property
    def ends(self) -> tuple[Marker, Marker]:
        """Return the two markers that it ties softly together."""
        return self.first.marker, self.second.marker

    @property
    def is_contact(self) -> bool:
        """Return True: impacts are over in a few steps."""
        return True

    @property
    def play(self) -> float | None:
        """Return the clearance in m of a joint with play."""
        _, (_, outer) = self._shapes
        if outer.kind not in WITH_PLAY:
            return None
        shape = self._shapes[0][1]
        inner = float(shape.table.max()) if isinstance(shape, Profile) else _radius(shape)
        width = float(outer.table.min()) if isinstance(outer, Profile) else _radius(outer)
        return width - inner if width > inner else None

    def tie(self, depth: float) -> Bushing:
        """Return the contact, linearized at a depth relative to its size, as a bushing.

        A rigid contact has no stiffness here, as if it were open.
        """
        if isinstance(self.law, RigidContact):
            return Bushing(self.name, *self.ends, freeze(np.zeros(6)), freeze(np.zeros(6)))
        size = self.play or 0.01 * min(
            (_radius(shape) for _, shape in self._shapes if shape.kind != "plane"), default=1.0
        )
        k = self.law.exponent * self.law.stiffness * (depth * size) ** (self.law.exponent - 1.0)
        both = np.array([k, k, k, 0.0, 0.0, 0.0]) * min(self.places, 2)
        return Bushing(self.name, *self.ends, freeze(both), freeze(0.0 * both))

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path: ``name.first.radius``, ``name.stiffness`` …."""
        for side, shape in self._shapes:
            for what, value in shape.numbers():
                doc = f"of the {shape.kind}"
                yield parameter(f"{self.name}.{side}.{what}", value, unit="m", doc=doc)
        for what in self.law.order:
            unit, doc = _NUMBERS[what]
            yield parameter(f"{self.name}.{what}", getattr(self.law, what), unit=unit, doc=doc)
        sections = self._sections
        if self._profile is not None:
            data = self._profile.data
            if sections:
                data = read_outlines([shape for _, shape in self._shapes], sections)
            yield parameter(f"{self.name}.profile", data, hidden=True, tunable=False)
        if sections:
            wear = self.wear or NO_WEAR
            yield from wear.parameters(self.name, pin=True, hidden=self.wear is None)

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        found = dict(OUTPUTS)
        kinds = {shape.kind for _, shape in self._shapes}
        if kinds & {"bore", "hole", "cam", "socket"}:
            found |= ANGLES
        if "socket" in kinds:
            found |= ELEVATIONS
        if kinds == {"cylinder", "bore"}:
            found["tilt"] = Output(contract.TOUCH_SHOWN_TILT, "rad", "between the two axes")
        if self.wear is not None:
            found |= worn_outputs(WEAR_OUTPUTS, self._sections)
        if self.places > 1:
            at_places = PLACES | (PLACE_ANGLES if "angle" in found else {})
            found |= {name: replace(of, width=self.places) for name, of in at_places.items()}
        if self.is_rigid:
            for name in FOLLOWS_INPUTS & found.keys():
                found[name] = replace(found[name], follows="solution")
            for name, counted in RIGID_OUTPUTS.items():
                shown = contract.TOUCH_SHOWN_IMPACTS + counted.number - contract.MB_SHOWN_IMPACTS
                found[name] = replace(counted, number=shown)
            return found | {"power": power("solution")}
        return found | {"power": power(), "energy": energy()}

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        i, j = (tables.marker(shape.marker, shape.frame()) for shape in (self.first, self.second))
        law = 0 if self.is_rigid else self.law.law
        law += self.pair.number << contract.TOUCH_PAIR_SHIFT
        law += self._swapped << contract.TOUCH_SWAP_SHIFT
        points = self._sections or (0 if self._profile is None else len(self._profile.table))
        law += points << contract.TOUCH_COUNT_SHIFT
        numbers = [tables.next_contact() for _ in range(self.places)]
        place = tables.place(next(self.parameters()).name)
        return [i, j, place, law, numbers[0]]

    def push(self, at: LoadState, items: None) -> NoReturn:
        """Refuse: the contact is known to the engine only."""
        raise DiagramError(
            f"`{self.name}` is a contact, which is computed only by the engine: simulate the "
            f"system in time."
        )


def _radius(shape: Shape) -> float:
    if isinstance(shape, Profile):
        return float(shape.table.min())
    return dict(shape.numbers())["radius"]


OUTPUTS: dict[str, Output] = {
    "gap": Output(
        contract.TOUCH_SHOWN_GAP, "m", "the smallest between the surfaces; negative is penetration"
    ),
    "contact": Output(
        contract.TOUCH_SHOWN_TOUCHES, None, "whether the surfaces touch", kind="boolean"
    ),
    "force": Output(contract.TOUCH_SHOWN_FORCE, "N", "on the first body, in world axes", 3),
    "torque": Output(
        contract.TOUCH_SHOWN_TORQUE, "N.m", "on the first body about its marker, in world axes", 3
    ),
    "normal_force": Output(contract.TOUCH_SHOWN_NORMAL, "N", "sum over all places"),
    "friction_force": Output(
        contract.TOUCH_SHOWN_FRICTION, "N", "on the first body, in world axes", 3
    ),
    "slip": Output(
        contract.TOUCH_SHOWN_SLIP, "m/s", "speed of the surfaces where the gap is smallest"
    ),
    "point": Output(contract.TOUCH_SHOWN_POINT, "m", "where the gap is smallest, in world axes", 3),
    "power_loss": Output(
        contract.TOUCH_SHOWN_LOSS, "W", "what friction and damping turn into heat"
    ),
}
"""Outputs of every contact, numbered by TOUCH_SHOWN_… in touch.c."""

FOLLOWS_INPUTS = {
    "force", "torque", "normal_force", "normal_forces", "friction_force", "contact", "power_loss",
}  # fmt: skip
"""Outputs of a rigid contact with direct feedthrough of forces."""

ANGLES: dict[str, Output] = {
    "angle": Output(
        contract.TOUCH_SHOWN_ANGLE, "rad", "of the smallest gap, about z of the hole or cam"
    ),
    "angle_on_pin": Output(
        contract.TOUCH_SHOWN_ANGLE_ON_PIN, "rad", "of the smallest gap, about z of the other shape"
    ),
}
"""Additional outputs of sockets, bores, holes and cams."""

ELEVATIONS: dict[str, Output] = {
    "elevation": Output(
        contract.TOUCH_SHOWN_ELEVATION, "rad", "of the contact, over x and y of the socket"
    ),
    "elevation_on_pin": Output(
        contract.TOUCH_SHOWN_ELEVATION_ON_PIN, "rad", "of the contact, over x and y of the ball"
    ),
}
"""Additional outputs of sockets."""

PLACES: dict[str, Output] = {
    "gaps": Output(contract.TOUCH_SHOWN_GAPS, "m", "at each place"),
    "normal_forces": Output(contract.TOUCH_SHOWN_NORMALS, "N", "at each place"),
}
"""Additional outputs of pairs that touch in several places; as many values as there are places."""

PLACE_ANGLES: dict[str, Output] = {
    "angles": Output(
        contract.TOUCH_SHOWN_ANGLES, "rad", "of each place, about z of the hole or cam"
    ),
    "angles_on_pin": Output(
        contract.TOUCH_SHOWN_ANGLES_ON_PIN, "rad", "of each place, about z of the other shape"
    ),
    "slips": Output(contract.TOUCH_SHOWN_SLIPS, "m/s", "speed of the surfaces at each place"),
}
"""Likewise, of bores, holes and cams."""


class ContactMethods(Parts):
    """Adds contacts."""

    @suggest_keywords
    def contact(
        self,
        name: str,
        first: Shape,
        second: Shape,
        *,
        law: ContactLaw,
        wear: Wear | None = None,
    ) -> ShapeContact:
        """Add contact between two shapes; see `ShapeContact`.

        Parameters
        ----------
        name
            Unique in the system.
        first, second
            Shapes on two bodies, in either order: `Sphere`, `Capsule` or `Cylinder` and `Plane`;
            `Sphere` and `Sphere`, `Capsule` or `Cylinder`; two `Capsule`; `Sphere` in `Socket`,
            `Bore` or `HoleProfile`; `Cylinder` in `Bore`; `PinProfile` in `HoleProfile`; `Sphere`
            (roller) or `Plane` (face) and
            `CamProfile`.
        law
            `HuntCrossley`, `LankaraniNikravesh` or `RigidContact`, for each place where they
            touch. A rigid one is not available for a `Cylinder` on a `Plane` and for a
            `HoleProfile`, and needs internal steps of Runge-Kutta.
        wear
            Wear of a bore or a hole, and of what is in it: a `Wear`, in compliant contacts. It adds
            the outputs ``name.wear`` and ``pin_wear``, the depths of the sections,
            ``worn_volume`` and ``pin_worn_volume``.
        """
        self._check_name(name)
        for what, shape in (("first", first), ("second", second)):
            if not is_shape(shape):
                raise DiagramError(
                    f"`{what}` of `{name}` is a shape, such as Sphere(marker, radius=0.01); "
                    f"got {shape!r}."
                )
        self._check_ends(name, first.marker, second.marker)
        if not isinstance(law, ContactLaw):
            raise DiagramError(
                f"`law` of `{name}` is a HuntCrossley, a LankaraniNikravesh or a RigidContact, "
                f"such as HuntCrossley(stiffness=1e9); got {law!r}."
            )
        _check_pair(name, first, second, self.planar)
        if isinstance(law, RigidContact):
            if wear is not None:
                raise DiagramError(
                    f"`{name}` is a rigid contact, which does not wear: give a HuntCrossley or a "
                    f"LankaraniNikravesh as `law`."
                )
            _check_rigid(name, first, second)
        contact = ShapeContact(name, first, second, law, wear)
        check_wear(name, wear, (first, second), contact.pair.worn_places > 0)
        return self._add(contact)


def _check_pair(name: str, first: Shape, second: Shape, planar: bool) -> None:
    kinds = first.kind, second.kind
    pair = kinds if kinds in PAIRS else kinds[::-1]
    if pair not in PAIRS:
        partners = [b if a == kinds[0] else a for a, b in PAIRS if kinds[0] in (a, b)]
        raise DiagramError(
            f"`{name}`: contact of a {kinds[0]} and a {kinds[1]} is not available. A {kinds[0]} "
            f"can touch: {', '.join(dict.fromkeys(partners))}."
        )
    spatial = [kind for kind in kinds if kind in SPATIAL]
    if planar and spatial:
        raise DiagramError(
            f"`{name}`: a {spatial[0]} is for systems in space; in a plane use a Sphere (a disc), "
            f"a Capsule, a Plane, a Socket (a round hole), a HoleProfile or a CamProfile."
        )
    inner, outer = (first, second) if pair == kinds else (second, first)
    if outer.kind in WITH_PLAY:
        _check_fit(name, inner, outer)


def _check_fit(name: str, inner: Shape, outer: Shape) -> None:
    width: Any = outer.table.max() if isinstance(outer, Profile) else _radius(outer)
    if _radius(inner) >= width:
        raise DiagramError(
            f"`{name}`: the {inner.kind} of radius {_radius(inner):g} m does not fit in the "
            f"{outer.kind} of radius {width:g} m."
        )


def _check_rigid(name: str, first: Shape, second: Shape) -> None:
    """Refuse what touches in places that do not follow the motion smoothly."""
    kinds = first.kind, second.kind
    a, b = (first, second) if kinds in PAIRS else (second, first)
    if PAIRS[a.kind, b.kind].rigid == 0:
        raise DiagramError(
            f"`{name}`: a RigidContact of a {a.kind} and a {b.kind} is not available, because "
            f"where they touch jumps from place to place. Take a compliant contact such as "
            f"HuntCrossley, or " + _INSTEAD[a.kind, b.kind] + "."
        )
    if (a.kind, b.kind) == ("cylinder", "bore"):
        _check_bridge(name, a, b)
    cam = next((shape for shape in (a, b) if shape.kind == "cam"), None)
    if isinstance(cam, Profile) and not _is_convex(cam):
        raise DiagramError(
            f"`{name}`: the outline of the cam is hollow somewhere, where a follower touches in "
            f"two places. A RigidContact follows one: take a compliant contact such as "
            f"HuntCrossley."
        )


_INSTEAD = {
    ("cylinder", "plane"): "a Capsule, or a Sphere at each place where it stands",
    ("sphere", "hole"): "a Socket or a Bore if the hole is round",
}


def _check_bridge(name: str, pin: Shape, bore: Shape) -> None:
    """Refuse a pin that is so short, or so loose, that a tilted edge touches in two places.

    Seen along the axis of the bore the edge of the pin is an ellipse, and the other way around. At
    the tilt τ their curvatures fit where cos² τ = r / R.
    """
    r, length = (getattr(pin, what) for what in ("radius", "length"))
    wide, depth = (getattr(bore, what) for what in ("radius", "length"))
    largest = math.inf
    if r * r + length * length / 4 > wide * wide:
        largest = math.atan2(length, 2 * r) - math.acos(2 * wide / math.hypot(length, 2 * r))
    if length > depth:  # the edges of the bore hold it too
        across = math.acos(2 * r / math.hypot(2 * wide, depth)) - math.atan2(depth, 2 * wide)
        largest = min(largest, across)
    if not (largest < math.pi / 2 and math.cos(largest) ** 2 > r / wide):
        raise DiagramError(
            f"`{name}`: this pin can tilt so far in its bore that one edge touches in two places, "
            f"which a RigidContact does not follow. Take a longer pin, less play, or a compliant "
            f"contact such as HuntCrossley."
        )


def _is_convex(cam: Profile) -> bool:
    """Whether r² + 2 r'² - r r'' > 0 at the points of the table."""
    r, slope = np.asarray(cam.table), np.asarray(cam.data)[len(cam.table) :]
    step = 2 * np.pi / len(r)
    # Of the cubic between two points, at both of its ends.
    rise, ahead = np.roll(r, -1) - r, np.roll(slope, -1)
    begins = (6 * rise - step * (4 * slope + 2 * ahead)) / step**2
    ends = (-6 * rise + step * (2 * slope + 4 * ahead)) / step**2
    turned = (
        r**2 + 2 * slope**2 - r * begins,
        np.roll(r**2 + 2 * slope**2, -1) - np.roll(r, -1) * ends,
    )
    return bool(np.min(turned) > 0.0)
