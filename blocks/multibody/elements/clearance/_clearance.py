"""Revolutes with clearance: a pin that moves in a hole a little wider than itself.

In a plane, with c = pin center less hole center, n = c / |c|, t = ẑ × n, R the radius of the pin
and e the clearance: the gap is e - |c|; where it closes the pin feels -N n - T t at the point of
contact and the hole the opposite, N ≥ 0. The slip of the surfaces there, pin less hole, is
t·ċ + R ω_pin - (R + e) ω_hole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NoReturn

import numpy as np

from ..... import _contract as contract
from .....errors import DiagramError
from ....core._ports import Parameter, parameter
from ...drawing._signs import draw_wall
from ...drawing._strokes import INK, STEEL, WHITE, Stroke, circle
from ...system._bodies import Marker
from ...system._parts import Parts
from ...system._reading import read_number, suggest_keywords
from ...system._rotations import Array, freeze
from .._bushing import Bushing
from .._element import Element, Output, energy, power
from ._numbers import check as _check
from ._numbers import check_positive as _check_positive
from ._wear import Wear

if TYPE_CHECKING:
    from ...drawing._paper import Paper
    from ...drawing._poses import Snapshot
    from ...equations._loads import LoadState
    from ...plant._tables import Tables


_STIFFNESS_HINT = " Such as that of hertz_stiffness(pin_radius, hole_radius)."


@dataclass(frozen=True, kw_only=True)
class HuntCrossley:
    """A compliant contact: N = stiffness δⁿ (1 + damping δ̇), never below zero.

    δ = |c| - clearance is the depth, n the exponent. The coefficient of restitution of
    an impact at speed v, `restitution(v)`, depends on v and on `damping` alone.

    Parameters
    ----------
    stiffness
        In N/m^exponent; see `hertz_stiffness`.
    exponent
        1.5 for Hertz's point contact, 1 for a linear spring; not below 1.
    damping
        In s/m. The restitution at v is about 1 - 2/3 damping v; 0 is lossless.
    friction
        Coulomb's coefficient: T = friction N tanh(slip / slip_speed).
    slip_speed
        Regularization speed of friction in m/s: below it contacts creep and do not stick.
    """

    stiffness: float
    exponent: float = 1.5
    damping: float = 0.0
    friction: float = 0.0
    slip_speed: float = 1e-2

    law: ClassVar[int] = 0
    order: ClassVar[tuple[str, ...]] = (
        "friction", "slip_speed", "stiffness", "exponent", "damping",
    )  # fmt: skip

    def __post_init__(self) -> None:
        """Check the parameters."""
        _check_compliant(self)
        _check("HuntCrossley", "damping", self.damping, 0.0)

    def restitution(self, speed: float) -> float:
        """Return the coefficient of restitution of an impact at `speed` in m/s."""
        return _restitution(self.damping * speed)


@dataclass(frozen=True, kw_only=True)
class LankaraniNikravesh:
    """A compliant contact: N = stiffness δⁿ (1 + 3 (1 - e²) / 4 · δ̇ / δ̇₀), never below zero.

    e is the restitution and δ̇₀ the approach speed at the start of the contact. The law is intended
    for e near 1: the actual restitution is 0.913 for e = 0.9, but 0.725 for 0.5 and 0.663 for 0;
    `effective_restitution` returns this value.

    The block stores δ̇₀ of each contact: the approach speed at the last step before the contact, or
    the largest since then. This bounds the damping of a contact that is pressed harder later. It is
    at least `slowest_impact`.

    Parameters
    ----------
    stiffness, exponent, friction, slip_speed
        As in `HuntCrossley`.
    restitution
        e, between 0 and 1.
    slowest_impact
        In m/s.
    """

    stiffness: float
    exponent: float = 1.5
    restitution: float = 0.9
    friction: float = 0.0
    slip_speed: float = 1e-2
    slowest_impact: float = 1e-3

    law: ClassVar[int] = 1
    order: ClassVar[tuple[str, ...]] = (
        "friction", "slip_speed", "stiffness", "exponent", "restitution", "slowest_impact",
    )  # fmt: skip

    def __post_init__(self) -> None:
        """Check the parameters."""
        _check_compliant(self)
        _check("LankaraniNikravesh", "restitution", self.restitution, 0.0, 1.0)
        _check_positive("LankaraniNikravesh", "slowest_impact", self.slowest_impact, "m/s")

    @property
    def effective_restitution(self) -> float:
        """Return the effective coefficient of restitution; it does not depend on the speed."""
        return _restitution(0.75 * (1.0 - self.restitution**2))


@dataclass(frozen=True, kw_only=True)
class RigidContact:
    """A contact without compliance: instantaneous impacts, and a constraint while it is closed.

    Parameters
    ----------
    restitution
        Of the normal speed, between 0 and 1.
    tangential_restitution
        Between -1 (no friction in the impact) and 1 (the slip reverses); 0 sticks.
    friction
        Coulomb's coefficient, for impacts and sliding.
    """

    restitution: float = 0.5
    tangential_restitution: float = 0.0
    friction: float = 0.0

    law: ClassVar[int] = 2
    order: ClassVar[tuple[str, ...]] = ("friction", "restitution", "tangential_restitution")

    def __post_init__(self) -> None:
        """Check the parameters."""
        owner = "RigidContact"
        _check(owner, "restitution", self.restitution, 0.0, 1.0)
        _check(owner, "tangential_restitution", self.tangential_restitution, -1.0, 1.0)
        _check(owner, "friction", self.friction, 0.0)


ContactLaw = HuntCrossley | LankaraniNikravesh | RigidContact
CompliantContact = HuntCrossley | LankaraniNikravesh

_NUMBERS = {
    "friction": (None, "Coulomb's coefficient"),
    "slip_speed": ("m/s", "below which friction fades"),
    "stiffness": (None, "of the contact, in N/m^exponent"),
    "exponent": (None, "of the depth"),
    "damping": ("s/m", "of the contact, as a part of its stiffness"),
    "restitution": (None, "of the normal speed"),
    "slowest_impact": ("m/s", "the least speed that an impact is taken to have"),
    "tangential_restitution": (None, "of the slip"),
}


def _check_compliant(contact: CompliantContact) -> None:
    owner = type(contact).__name__
    _check_positive(owner, "stiffness", contact.stiffness, "N/m^exponent", _STIFFNESS_HINT)
    _check(owner, "exponent", contact.exponent, 1.0)
    _check(owner, "friction", contact.friction, 0.0)
    _check_positive(owner, "slip_speed", contact.slip_speed, "m/s")


def _restitution(x: float) -> float:
    """Return r of x (1 + r) = ln((1 + x) / (1 - x r)), by bisection.

    It is the integral of v dv / (1 + D v) = -(K/m) δⁿ dδ from the approach at v to the departure
    at r v, with x = D v. It does not depend on mass, stiffness or exponent.
    """
    if x < 1e-8:
        return 1.0
    low, high = 0.0, min(1.0, 1.0 / x)
    for _ in range(100):
        r = 0.5 * (low + high)
        if x * r >= 1.0 or x * (1.0 + r) < math.log1p(x) - math.log1p(-x * r):
            high = r
        else:
            low = r
    return 0.5 * (low + high)


def hertz_stiffness(
    pin_radius: float,
    hole_radius: float,
    *,
    length: float | None = None,
    modulus: float = 210e9,
    poisson: float = 0.3,
) -> float:
    """Return the Hertz contact stiffness for two parts of the same material (steel).

    With 1/E* = 2 (1 - ν²) / E. A ball in a spherical seat: K = 4/3 E* √R in N/m^1.5, with
    1/R = 1/R_pin - 1/R_hole; for exponent=1.5. With a `length`, parallel cylinders: π/4 E* L
    in N/m, for exponent=1, independent of the radii.

    Hertz's theory assumes contact patches that are small compared to both radii. A pin that nearly
    fills its hole violates this at small loads, cylinders have line contact, and their mounts are
    flexible too: use the result as an order of magnitude, or measure.

    Parameters
    ----------
    pin_radius, hole_radius
        In m; the hole is larger.
    length
        Contact length of the pin in its hole, in m.
    modulus, poisson
        Young's modulus in Pa, and Poisson's ratio.
    """
    owner = "hertz_stiffness"
    pin = _check_positive(owner, "pin_radius", pin_radius, "m")
    hole = _check_positive(owner, "hole_radius", hole_radius, "m")
    if hole <= pin:
        raise DiagramError(
            f"the hole of {owner} is larger than its pin: got radii {hole:g} m and {pin:g} m."
        )
    young = _check_positive(owner, "modulus", modulus, "Pa")
    reduced = young / (2.0 * (1.0 - _check(owner, "poisson", poisson, 0.0, 0.5) ** 2))
    if length is not None:
        return math.pi / 4.0 * reduced * _check_positive(owner, "length", length, "m")
    return 4.0 / 3.0 * reduced * math.sqrt(pin * hole / (hole - pin))


@dataclass(frozen=True, slots=True, eq=False)
class ClearanceRevolute(Element):
    """A planar revolute joint with clearance: free flight, impact and sliding of a pin."""

    kernel = contract.MB_CONTACT

    name: str
    pin: Marker
    hole: Marker
    clearance: float
    pin_radius: float
    contact: ContactLaw
    wear: Wear | None = None

    def __post_init__(self) -> None:
        """Check the parameters of the pin and the hole."""
        owner = f"`{self.name}`"
        _check_positive(
            owner, "clearance", self.clearance, "m",
            " It is the radius of the hole less that of the pin; without play take s.revolute(…).",
        )  # fmt: skip
        _check_positive(owner, "pin_radius", self.pin_radius, "m")
        if not isinstance(self.contact, ContactLaw):
            raise DiagramError(
                f"`contact` of {owner} is a HuntCrossley, a LankaraniNikravesh or a RigidContact, "
                f"such as HuntCrossley(stiffness=1e9); got {self.contact!r}."
            )
        if self.wear is None:
            return
        if not isinstance(self.wear, Wear):
            raise DiagramError(
                f"`wear` of {owner} is a Wear(coefficient=…, hardness=…, length=…) or None, got "
                f"{self.wear!r}."
            )
        if self.rigid:
            raise DiagramError(
                f"{owner} has a RigidContact, which supports only round holes: use a compliant "
                f"contact such as HuntCrossley for a hole that wears, or leave `wear` out and look "
                f"at contact_statistics."
            )

    @property
    def first(self) -> Marker:
        """Return the pin's marker."""
        return self.pin

    @property
    def second(self) -> Marker:
        """Return the hole's marker."""
        return self.hole

    @property
    def rigid(self) -> bool:
        """Return whether its contact has no compliance."""
        return isinstance(self.contact, RigidContact)

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path: ``name.clearance``, ``name.friction`` …."""
        yield parameter(f"{self.name}.clearance", self.clearance, unit="m", doc="radial")
        yield parameter(f"{self.name}.pin_radius", self.pin_radius, unit="m", doc="of the pin")
        for what in self.contact.order:
            unit, doc = _NUMBERS[what]
            value = getattr(self.contact, what)
            yield parameter(f"{self.name}.{what}", value, unit=unit, doc=doc)
        if self.wear is not None:
            yield from self.wear.parameters(self.name, pin=self._pin_wears)

    @property
    def _pin_wears(self) -> bool:
        return self.wear is not None and self.wear.pin_coefficient is not None

    def stiffness_at(self, depth: float) -> float:
        """Return dN/dδ at a depth in m, of a compliant contact."""
        contact = self.contact
        if isinstance(contact, RigidContact):
            return math.inf
        return float(contact.exponent * contact.stiffness * depth ** (contact.exponent - 1.0))

    @property
    def ends(self) -> tuple[Marker, Marker]:
        """Return the two markers that it ties softly together."""
        return self.pin, self.hole

    @property
    def is_contact(self) -> bool:
        """Return True: impacts are over in a few steps."""
        return True

    @property
    def is_rigid(self) -> bool:
        """Return whether it needs the events of rigid contacts."""
        return self.rigid

    @property
    def play(self) -> float:
        """Return the clearance in m."""
        return self.clearance

    def tie(self, depth: float) -> Bushing:
        """Return the contact, linearized at a depth relative to the clearance, as a bushing.

        A rigid contact has no stiffness here, as if it were open.
        """
        stiffness = 0.0 if self.rigid else self.stiffness_at(depth * self.clearance)
        both = np.array([stiffness, stiffness, 0.0, 0.0, 0.0, 0.0])
        return Bushing(self.name, self.hole, self.pin, freeze(both), freeze(0.0 * both))

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        found = dict(OUTPUTS)
        if self.rigid:
            found |= RIGID_OUTPUTS
            for what in FOLLOWS_INPUTS:
                found[what] = replace(found[what], follows="solution")
        elif self.wear is not None:
            found |= worn_outputs(WEAR_OUTPUTS, self.wear.sections)
            if self._pin_wears:
                found |= worn_outputs(PIN_WEAR_OUTPUTS, self.wear.sections)
        return found | {
            "power": power("solution" if self.rigid else "laws"),
            **({} if self.rigid else {"energy": energy()}),
        }

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        i, j = tables.marker(self.pin), tables.marker(self.hole)
        sections = self.wear.sections if self.wear else 0
        law = self.contact.law + (sections << contract.MB_CONTACT_WEAR_SHIFT)
        law += contract.MB_CONTACT_PIN_WEARS if self._pin_wears else 0
        return [i, j, tables.place(f"{self.name}.clearance"), law, tables.next_contact()]

    def rigid_rows(
        self, tables: Tables, number: int
    ) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
        """Yield its two rows."""
        j, i = tables.marker(self.pin), tables.marker(self.hole)
        place = tables.place(f"{self.name}.clearance")
        kinds = contract.MB_ROW_TOUCH, contract.MB_ROW_SLIP
        records = [[kind, i, j, number, 0, place] for kind in kinds]
        yield records, tables.path(self.hole, self.pin)

    def push(self, at: LoadState, items: None) -> NoReturn:
        """Refuse: the contact is known to the engine only."""
        raise DiagramError(
            f"`{self.name}` is a revolute with clearance, whose contact is computed only by the "
            f"engine: simulate the system in time."
        )

    def draw(self, frame: Snapshot, paper: Paper) -> list[Stroke]:
        """Return the hole, and the pin in it."""
        k = paper.size
        return [
            Stroke(circle(paper.at(frame.point(self.hole)), 8 * k), INK, WHITE, 1.2),
            Stroke(circle(paper.at(frame.point(self.pin)), 5.5 * k), INK, STEEL, 1.0),
        ]

    def draw_mount(self, at: Array, away: Array, line: Array, k: float) -> list[Stroke]:
        """Return the symbol of the support at an end on the ground."""
        return draw_wall(at + 10 * k * away, away, k)

    def label_place(self, frame: Snapshot, paper: Paper) -> tuple[Array, float] | None:
        """Return the places for its name and the distance from them."""
        return paper.at(frame.point(self.hole))[None], 14 * paper.size


OUTPUTS: dict[str, Output] = {
    "offset": Output(contract.MB_CONTACT_OFFSET, "m", "of the pin in axes of the hole, x and y", 2),
    "gap": Output(contract.MB_CONTACT_GAP, "m", "between the surfaces; negative is penetration"),
    "force": Output(contract.MB_CONTACT_FORCE, "N", "on the pin, in world axes", 3),
    "normal_force": Output(contract.MB_CONTACT_NORMAL_FORCE, "N", "of the contact"),
    "angle": Output(contract.MB_CONTACT_ANGLE, "rad", "of the contact, in axes of the hole"),
    "angle_on_pin": Output(
        contract.MB_CONTACT_ANGLE_ON_PIN, "rad", "of the contact, in axes of the pin"
    ),
    "slip": Output(contract.MB_CONTACT_SLIP, "m/s", "of the surfaces, pin less hole"),
    "contact": Output(
        contract.MB_CONTACT_TOUCHES, None, "whether the surfaces touch", kind="boolean"
    ),
    "power_loss": Output(
        contract.MB_SHOWN_CONTACT_LOSS, "W", "what friction and damping turn into heat"
    ),
}
"""Outputs of a revolute with clearance, numbered by MB_CONTACT_… in multibody.h."""

RIGID_OUTPUTS: dict[str, Output] = {
    "impacts": Output(
        contract.MB_SHOWN_IMPACTS, None, "how often the surfaces met since the start"
    ),
    "impulse": Output(
        contract.MB_SHOWN_IMPULSE, "N.s", "sum of the normal impulses of impacts since the start"
    ),
    "sliding": Output(
        contract.MB_SHOWN_SLIDING, "m", "distance that the surfaces slid in contact since the start"
    ),
    "sliding_work": Output(
        contract.MB_SHOWN_SLIDING_WORK, "J", "integral of normal force times |slip| since the start"
    ),
}
"""Additional outputs of a rigid contact; the engine counts them, between samples too."""

WEAR_OUTPUTS: dict[str, Output] = {
    "wear": Output(
        contract.MB_SHOWN_WEAR,
        "m",
        "depth of each section of the hole, from angle 0 of its marker on",
    ),
    "worn_volume": Output(contract.MB_SHOWN_WORN_VOLUME, "m3", "of the hole since the start"),
}
"""Additional outputs of a hole with wear; the first has one value per section."""

PIN_WEAR_OUTPUTS: dict[str, Output] = {
    "pin_wear": Output(
        contract.MB_SHOWN_PIN_WEAR,
        "m",
        "depth of each section of the pin, from angle 0 of its marker on",
    ),
    "pin_worn_volume": Output(
        contract.MB_SHOWN_PIN_WORN_VOLUME, "m3", "of the pin since the start"
    ),
}
"""Additional outputs of a pin with wear."""


def worn_outputs(outputs: Mapping[str, Output], sections: int) -> dict[str, Output]:
    """Return outputs of wear, with the depths as wide as there are sections."""
    return {
        name: output if "volume" in name else replace(output, width=sections)
        for name, output in outputs.items()
    }


FOLLOWS_INPUTS = ("force", "normal_force", "contact", "power_loss")
"""Outputs of a rigid contact with direct feedthrough of forces."""


class ClearanceMethods(Parts):
    """Adds revolutes with clearance."""

    @suggest_keywords
    def clearance_revolute(
        self,
        name: str,
        pin: Marker,
        hole: Marker,
        *,
        clearance: float,
        pin_radius: float,
        contact: ContactLaw,
        wear: Wear | None = None,
    ) -> ClearanceRevolute:
        """Add a revolute with clearance to a planar system; see `ClearanceRevolute`.

        Its outputs are ``name.offset`` (x and y of the pin in axes of the hole's marker), ``gap``,
        ``force`` (on the pin, in world axes), ``normal_force``, ``angle`` of the contact in axes
        of the hole and ``angle_on_pin``, ``slip`` of the surfaces and ``contact``.

        Parameters
        ----------
        name
            Unique in the system.
        pin, hole
            Markers at the center of each.
        clearance
            Radius of the hole minus radius of the pin, in m.
        pin_radius
            In m; it affects the slip of the surfaces, and thus friction and wear.
        contact
            The contact law: `HuntCrossley`, `LankaraniNikravesh` or `RigidContact`.
        wear
            Wear of the hole, and of the pin, for compliant contacts: a `Wear`. It adds the outputs
            ``name.wear``, the depth of each section, and ``worn_volume``; of a pin that wears
            also ``pin_wear`` and ``pin_worn_volume``.
        """
        self._check_name(name)
        self._check_ends(name, pin, hole)
        if not self.planar:
            raise DiagramError(
                f"`{name}` is a revolute with clearance, which is for planar systems only: make "
                f"the system with System(…, planar=True)."
            )
        play = [read_number(f"`clearance` of `{name}`", clearance)]
        play.append(read_number(f"`pin_radius` of `{name}`", pin_radius))
        return self._add(ClearanceRevolute(name, pin, hole, play[0], play[1], contact, wear))
