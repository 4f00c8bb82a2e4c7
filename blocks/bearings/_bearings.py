"""Journal bearings: forces of an oil film on a journal, from its position and velocity.

Axes, signs and the meaning of every port are in docs/guides/bearings.md. The physics is in C:
`film.c` and beside it one file for each model.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from ... import _contract as contract
from ...errors import BiellaWarning, DiagramError
from ..core._block import NativeBlock
from ..core._ports import INHERITED, Parameter, Port, Rate, parameter
from ..core._vectors import make_record, require_choice
from ._analysis import (
    Coefficients,
    Load,
    OilEquilibrium,
    find_coefficients,
    find_threshold,
    resolve_equilibrium,
)

FRICTION = {
    "none": contract.BL_FRICTION_NONE,
    "shear": contract.BL_FRICTION_SHEAR,
    "petroff": contract.BL_FRICTION_PETROFF,
    "correlation": contract.BL_FRICTION_BY_RADIUS,
    "correlation_diameter": contract.BL_FRICTION_BY_DIAMETER,
}
CAVITATION = {
    "none": contract.BL_CAVITATION_NONE,
    "gumbel": contract.BL_CAVITATION_GUMBEL,
    "reynolds": contract.BL_CAVITATION_REYNOLDS,
    "jfo": contract.BL_CAVITATION_JFO,
    "jfo_steady": contract.BL_CAVITATION_JFO_STEADY,
}
_CONTACT, _STOP, _EXPECTED = (
    contract.BL_THIN_CONTACT,
    contract.BL_THIN_STOP,
    contract.BL_THIN_EXPECTED,
)
_THICKEST = 0.1
_SHORT = 1.0 + 1e-9
"""Length over diameter up to which the short law is taken without a warning."""
_STEEL = 115e9
"""E / (2 (1 - ν²)) of steel on steel, Pa."""


@dataclass(frozen=True, slots=True)
class Contact:
    """Contact law that applies where the film is thinner than its limit.

    With d the depth by which the journal is closer than that limit, n outward along its offset:
    a normal force -N n, N = k d (1 + a ḋ) but never below zero (Hunt-Crossley), and Coulomb
    friction μ N tanh(slip / slip_speed) against the slip of the surfaces.

    Parameters
    ----------
    stiffness
        k of the whole bearing in N/m; without one, that of steel on steel along the length,
        π/4 · 115 GPa · length.
    damping
        a in s/m.
    friction
        Coulomb's coefficient.
    slip_speed
        Below which friction fades, in m/s.
    expected
        Whether journal and bush are meant to touch, as when a rotor starts from rest. Otherwise a
        run ends with a warning if the film was below its limit; with it, only if the journal was
        more than a clearance beyond the bush.
    """

    stiffness: float | None = None
    damping: float = 0.0
    friction: float = 0.1
    slip_speed: float = 1e-3
    expected: bool = False


class AbstractBearing(NativeBlock):
    """A journal in its bush, with oil between them.

    Parameters
    ----------
    ends
        1 if the journal stays parallel to the bush, 2 if it may tilt.
    """

    stiff = ("length", "force")
    memory_holds = True  # it counts where the film was too thin, which changes no output
    isotropic: ClassVar[bool] = True
    """Whether a turned journal has the same force, turned."""

    def __init__(
        self,
        radius: float,
        length: float,
        clearance: float,
        viscosity: float,
        *,
        ends: int,
        friction: str,
        contact: Contact | None,
        film_limit: float | None,
        cavitation: str,
        squeeze: bool,
        viscosity_input: bool,
        otherwise: Rate = INHERITED,
        more_integers: Mapping[int, int] = MappingProxyType({}),
        more_parameters: Sequence[Parameter] = (),
        more_outputs: Sequence[Port] = (),
    ) -> None:
        name = type(self).__name__
        dimensions = check_dimensions(name, radius, length, clearance, viscosity)
        _check_contact(name, contact)
        limit = read_film_limit(name, film_limit, clearance, contact)
        integers = {
            contract.BEARING_FRICTION: require_choice(f"`friction` of {name}", friction, FRICTION),
            contract.BEARING_THIN_RULE: (
                _STOP if contact is None else _EXPECTED if contact.expected else _CONTACT
            ),
            contract.BEARING_CAVITATION: CAVITATION[cavitation],
            contract.BEARING_SQUEEZE: int(squeeze),
            **more_integers,
        }
        where = "x, y" if ends == 1 else "x1, y1, x2, y2 of both ends"
        super().__init__(
            inputs=[
                Port("position", 2 * ends, unit="m", doc=f"journal less bush: {where}"),
                Port("velocity", 2 * ends, unit="m/s", default=0.0, doc="its rate"),
                Port("journal_speed", unit="rad/s", default=0.0, doc="spin about z"),
                Port("bush_speed", unit="rad/s", default=0.0, doc="spin about z, in the same axes"),
                *_make_viscosity_port(viscosity_input, viscosity),
            ],
            outputs=[
                Port("force", 2, unit="N", doc="on the journal: x, y"),
                Port("moment", 2, unit="N.m", doc="on the journal about end 1: x, y"),
                Port("torque", unit="N.m", doc="on the journal about z: friction"),
                Port("film", unit="m", doc="least thickness; negative is penetration"),
                Port("pressure", unit="Pa", doc="largest in the film"),
                Port("power_loss", unit="W", doc="heat generated by film and contact"),
                Port("thin_film", kind="boolean", doc="whether the film is below its limit"),
                *more_outputs,
            ],
            parameters=[
                *_make_parameters(dimensions, limit, contact or Contact(), viscosity_input),
                *more_parameters,
            ],
            rate=otherwise,
            feedthrough=_feedthrough(
                squeeze, viscosity_input, [port.name for port in more_outputs]
            ),
            integers=make_record(len(integers), integers),
        )
        self.ends = ends
        self.squeeze = bool(squeeze)
        self.film_limit = float(limit)
        self.radius, self.length, self.clearance, self.viscosity = dimensions.values()

    @property
    def settled(self) -> AbstractBearing:
        """The film that this one becomes when nothing moves: itself, unless it has a history."""
        return self

    def resolve(self, film: float) -> AbstractBearing:
        """Return this bearing with cells that are fine enough for a film of this thickness in m."""
        return self

    def warn_of_cells(self, film: float) -> None:
        """Warn if the cells are too coarse for a film of this thickness in m."""

    def equilibrium(self, load: Load, speed: float, bush_speed: float = 0.0) -> OilEquilibrium:
        """Find where the film carries a steady load.

        Parameters
        ----------
        load
            On the journal in N: a pair along x and y; or a number, along x.
        speed, bush_speed
            Spin of journal and bush in rad/s, in axes in which the load is at rest.

        Raises
        ------
        BiellaError
            If the film cannot carry the load at its limit thickness, or the film has no wedge.
        """
        film, at = resolve_equilibrium(self.settled, load, speed, bush_speed)
        film.warn_of_cells(at.film)
        return at

    def coefficients(self, load: Load, speed: float, bush_speed: float = 0.0) -> Coefficients:
        """Find stiffness K = -∂F/∂(x, y) and damping C = -∂F/∂(ẋ, ẏ) where a load is carried.

        Parameters
        ----------
        load, speed, bush_speed
            As for `equilibrium`.
        """
        film, at = resolve_equilibrium(self.settled, load, speed, bush_speed)
        film.warn_of_cells(at.film)
        return find_coefficients(film, at)

    def threshold_speed(
        self, mass: float, load: Load, between: tuple[float, float] = (1.0, 1e5)
    ) -> float:
        """Find the speed in rad/s above which a rigid rotor whirls in this bearing.

        Parameters
        ----------
        mass
            Of the rotor that this bearing carries, in kg; half of it if there are two bearings.
        load
            As for `equilibrium`.
        between
            Speeds between which to look.

        Raises
        ------
        BiellaError
            If the rotor is stable, or unstable, at all of them.
        """
        film, at = find_threshold(self.settled, mass, load, between)
        film.warn_of_cells(at.film)
        return at.speed


def _as_number(value: Any) -> float:
    """Return a number; NaN for a non-numeric value."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def check_dimensions(name: str, *values: float) -> dict[str, float]:
    """Return radius, length, clearance and viscosity by name, if they make sense in SI units."""
    names = ("radius", "length", "clearance", "viscosity")
    units = ("m", "m", "m", "Pa s")
    checked = {}
    for what, unit, value in zip(names, units, values, strict=True):
        number = _as_number(value)
        if not (math.isfinite(number) and number > 0):
            raise DiagramError(f"`{what}` of {name} must be positive, in {unit}; got {value!r}.")
        checked[what] = number
    if checked["clearance"] > _THICKEST * checked["radius"]:
        raise DiagramError(
            f"`clearance` of {name} is radial and far below the radius: {checked['clearance']:g} m "
            f"beside {checked['radius']:g} m is not a thin film. Are both in meters?"
        )
    return checked


def _warn_of_length(name: str, length: float, diameter: float) -> None:
    """Warn where the short law is far outside its range; called from a public constructor."""
    if length <= _SHORT * diameter:
        return
    text = (
        f"`length` of {name} is {length / diameter:.3g} diameters. The short law leaves out what "
        f"pressure does to the flow around the journal: beyond one diameter it carries more than "
        f"1.3 times what such a film does at an eccentricity of 0.1, and 3 times at 0.8. Take a "
        f"FiniteBearing, or a LongBearing from four diameters on."
    )
    warnings.warn(text, BiellaWarning, stacklevel=4)  # one more: `complete_construction`


def read_film_limit(
    name: str, given: float | None, clearance: float, contact: Contact | None
) -> float:
    """Return the thinnest film in m: 1 % of the clearance, unless it is given."""
    limit = 0.01 * clearance if given is None else _as_number(given)
    lowest = 0.0 if contact is None else math.ulp(0.0)
    if not lowest <= limit < clearance:
        raise DiagramError(
            f"`film_limit` of {name} is a thickness in m between 0 and the clearance, "
            f"{clearance:g} m, and above 0 with a contact; got {given!r}."
        )
    return limit


def _check_contact(name: str, contact: Any) -> None:
    if contact is None:
        return
    if not isinstance(contact, Contact):
        raise DiagramError(
            f"`contact` of {name} is a Contact(…) of biella.blocks.bearings, or None to stop where "
            f"the film is too thin; got {contact!r}."
        )
    for what in ("stiffness", "damping", "friction", "slip_speed"):
        value = getattr(contact, what)
        if what == "stiffness" and value is None:
            continue
        number = _as_number(value)
        if not (0 <= number < math.inf):
            raise DiagramError(f"`{what}` of a Contact must not be negative, got {value!r}.")
        if what == "slip_speed" and number == 0:
            raise DiagramError(f"`slip_speed` of a Contact must be positive m/s, got {value!r}.")


def _make_parameters(
    dimensions: dict[str, float],
    limit: float,
    contact: Contact,
    viscosity_input: bool,
) -> list[Parameter]:
    stiffness = contact.stiffness
    if stiffness is None:
        stiffness = math.pi / 4 * _STEEL * dimensions["length"]
    return [
        parameter("radius", dimensions["radius"], unit="m", doc="of the journal"),
        parameter("length", dimensions["length"], unit="m", doc="of the bush"),
        parameter("clearance", dimensions["clearance"], unit="m", doc="radial"),
        # Where viscosity is an input this one is not used, and its name is the port's.
        parameter(
            "given_viscosity" if viscosity_input else "viscosity",
            dimensions["viscosity"],
            unit="Pa.s",
            doc="dynamic",
            hidden=viscosity_input,
        ),
        parameter("film_limit", limit, unit="m", doc="thinnest film"),
        parameter("contact_stiffness", stiffness, unit="N/m", doc="of the whole bearing"),
        parameter("contact_damping", contact.damping, unit="s/m", doc="a in k d (1 + a ḋ)"),
        parameter("contact_friction", contact.friction, doc="Coulomb's coefficient"),
        parameter("slip_speed", contact.slip_speed, unit="m/s", doc="where friction fades"),
    ]


def _make_viscosity_port(wanted: bool, viscosity: float) -> list[Port]:
    return [Port("viscosity", unit="Pa.s", default=viscosity, doc="dynamic")] if wanted else []


def _feedthrough(squeeze: bool, viscosity: bool, more: Sequence[str]) -> list[tuple[str, str]]:
    """Thickness depends on geometry only; all other outputs depend on every input of the film."""
    geometry = ("film", "thin_film", *(name for name in more if name == "oil"))
    flowing = (name for name in more if name not in geometry)
    moving = ("force", "moment", "torque", "pressure", "power_loss", *flowing)
    seen = ["position", "journal_speed", "bush_speed"]
    seen += [*(["velocity"] if squeeze else []), *(["viscosity"] if viscosity else [])]
    pairs = [(output, seen_by) for output in moving for seen_by in seen]
    return [*pairs, *((output, "position") for output in geometry)]


class AbstractShortBearing(AbstractBearing):
    """Base of short bearings, which differ only in the number of ends with a given position."""

    def __init__(
        self,
        radius: float,
        length: float,
        clearance: float,
        viscosity: float,
        *,
        squeeze: bool = True,
        friction: str = "shear",
        contact: Contact | None = Contact(),
        film_limit: float | None = None,
        viscosity_input: bool = False,
    ) -> None:
        dimensions = check_dimensions(type(self).__name__, radius, length, clearance, viscosity)
        _warn_of_length(type(self).__name__, dimensions["length"], 2 * dimensions["radius"])
        super().__init__(
            radius,
            length,
            clearance,
            viscosity,
            ends=self.ends,
            friction=friction,
            contact=contact,
            film_limit=film_limit,
            cavitation="gumbel",
            squeeze=squeeze,
            viscosity_input=viscosity_input,
        )


class ShortBearing(AbstractShortBearing):
    """A short journal bearing (Ocvirk): wedge and squeeze in closed form, pressure below 0 dropped.

    Right for length / diameter up to about 0.5 at moderate eccentricity; beyond 1 it warns. The
    force has no upper bound as the film closes.

    Parameters
    ----------
    radius, length, clearance
        Radius of the journal, length of the bush and radial clearance, in m.
    viscosity
        Dynamic, in Pa s.
    squeeze
        Whether squeeze velocities are included; without, this is the steady law of a constant load.
    friction
        ``"shear"`` from the film's flow, ``"petroff"``, ``"correlation"`` with φ = c / r or
        ``"correlation_diameter"`` with φ = c / (2 r), or ``"none"``.
    contact
        Contact law below `film_limit`; ``None`` stops the run there.
    film_limit
        Least film thickness in m; 1 % of the clearance if not given.
    viscosity_input
        Whether viscosity is an input port, with `viscosity` where nothing is wired to it.
    """

    kernel = "short_bearing"
    ends = 1


class MisalignedShortBearing(AbstractShortBearing):
    """A short journal bearing whose journal may tilt: forces and moments from both end centers.

    Each slice is a short bearing with its own offset and speed, summed along the bush by Gauss's
    rule in panels that are halved until the sum stays, and are narrow where the film is thin.

    Parameters
    ----------
    radius, length, clearance
        Radius of the journal, length of the bush and radial clearance, in m.
    viscosity
        Dynamic, in Pa s.
    squeeze
        Whether velocities count.
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

    kernel = "misaligned_short_bearing"

    ends = 2


class LongBearing(AbstractBearing):
    """A long journal bearing (Sommerfeld): wedge and squeeze in closed form, no flow to the ends.

    Right for length / diameter from about 4 on. Pressure is zero at the thickest film.

    Parameters
    ----------
    radius, length, clearance
        Radius of the journal, length of the bush and radial clearance, in m.
    viscosity
        Dynamic, in Pa s.
    cavitation
        ``"gumbel"`` drops pressure below 0, ``"none"`` keeps it.
    friction
        ``"shear"`` from the film's flow, ``"petroff"``, ``"correlation"`` with φ = c / r or
        ``"correlation_diameter"`` with φ = c / (2 r), or ``"none"``.
    contact
        Contact law below `film_limit`; ``None`` stops the run there.
    film_limit
        Least film thickness in m; 1 % of the clearance if not given.
    viscosity_input
        Whether viscosity is an input port, with `viscosity` where nothing is wired to it.
    """

    kernel = "long_bearing"

    def __init__(
        self,
        radius: float,
        length: float,
        clearance: float,
        viscosity: float,
        *,
        cavitation: str = "gumbel",
        friction: str = "shear",
        contact: Contact | None = Contact(),
        film_limit: float | None = None,
        viscosity_input: bool = False,
    ) -> None:
        require_choice("`cavitation` of LongBearing", cavitation, ("none", "gumbel"))
        super().__init__(
            radius,
            length,
            clearance,
            viscosity,
            ends=1,
            friction=friction,
            contact=contact,
            film_limit=film_limit,
            cavitation=cavitation,
            squeeze=True,
            viscosity_input=viscosity_input,
        )
