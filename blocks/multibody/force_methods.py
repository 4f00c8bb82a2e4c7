"""The methods of a system that add forces and drivers."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ...errors import DiagramError
from ..bearings import AbstractBearing, FiniteBearing, ShortBearing
from .bodies import Marker
from .clearance import ClearanceRevolute, ContactLaw, Wear
from .forces import (
    Bearing,
    Bushing,
    Driver,
    Friction,
    JointLoad,
    Load,
    Rubbing,
    Spring,
    Stop,
    TorsionalSpring,
)
from .joints import Coordinate, Joint
from .laws import AbstractLaw, Constant, Lawlike, as_law, check_motion
from .parts import Parts
from .reading import read_number, read_numbers, teach_keywords
from .rotations import freeze


class ForceMethods(Parts):
    """Adds what acts on markers and on joint coordinates."""

    @teach_keywords
    def force(
        self,
        name: str,
        on: Marker | Joint,
        value: Any,
        *,
        frame: Literal["world", "body"] | None = None,
        coordinate: int | None = None,
    ) -> Load | JointLoad:
        """Add a force.

        Parameters
        ----------
        name
            Unique in the system.
        on
            The marker where it acts, or a joint on whose displacement it acts.
        value
            Components in N, each a number or a law of t. One alone acts along z of the marker (x
            in a plane), or on the coordinate of the joint.
        frame
            Of the components: ``"world"`` or ``"body"``; the world if not given.
        coordinate
            Of the joint, from 0; its first displacement if not given.
        """
        return self._load("force", name, on, value, frame, coordinate)

    @teach_keywords
    def torque(
        self,
        name: str,
        on: Marker | Joint,
        value: Any,
        *,
        frame: Literal["world", "body"] | None = None,
        coordinate: int | None = None,
    ) -> Load | JointLoad:
        """Add a torque in N m, as `force`; one alone acts about z of the marker, or on an angle."""
        return self._load("torque", name, on, value, frame, coordinate)

    @teach_keywords
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
            In N/m, N s/m and N of tension: numbers, or laws of t, of the length l and its rate v.
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

    @teach_keywords
    def torsional_spring(
        self,
        name: str,
        joint: Joint,
        *,
        stiffness: Lawlike = 0.0,
        damping: Lawlike = 0.0,
        free_angle: float = 0.0,
        torque: Lawlike | None = None,
        coordinate: int | None = None,
    ) -> TorsionalSpring:
        """Add a spring, damper and actuator on an angle of a joint; see `TorsionalSpring`.

        Parameters
        ----------
        name, joint
            Its name, and where it acts.
        stiffness, damping, torque
            In N m/rad, N m s/rad and N m that pull the angle down: numbers, or laws of t, of the
            angle q and its rate v.
        free_angle
            In rad.
        coordinate
            From 0; the first angle of the joint if not given.
        """
        self._check_name(name)
        known = ("t", "q", "v")
        return self._add(
            TorsionalSpring(
                name,
                joint,
                self._coordinate(name, joint, coordinate, "angle"),
                as_law(f"`stiffness` of `{name}`", stiffness, known),
                as_law(f"`damping` of `{name}`", damping, known),
                read_number(f"`free_angle` of `{name}`", free_angle),
                as_law(f"`torque` of `{name}`", 0.0 if torque is None else torque, known),
            )
        )

    @teach_keywords
    def bushing(
        self, name: str, first: Marker, second: Marker, *, stiffness: Any, damping: Any = 0.0
    ) -> Bushing:
        """Add a soft joint between two markers; see `Bushing` for its law.

        Parameters
        ----------
        name, first, second
            Its name and ends.
        stiffness, damping
            Along x, y, z of the first marker (N/m, N s/m) and about them (N m/rad, N m s/rad): six
            numbers; in a plane three, along x and y and about z. 0 for none at all.
        """
        self._check_name(name)
        self._check_ends(name, first, second)
        places = [0, 1, 5] if self.planar else [0, 1, 2, 3, 4, 5]
        read = []
        for what, given in (("stiffness", stiffness), ("damping", damping)):
            values = read_numbers(f"`{what}` of `{name}`", given)
            if values.shape != (len(places),) and not (values.ndim == 0 and values == 0):
                raise DiagramError(
                    f"`{what}` of `{name}` has {len(places)} numbers, along and about the axes; "
                    f"got {given!r}."
                )
            if (values < 0).any():
                raise DiagramError(f"`{what}` of `{name}` must not be negative, got {given!r}.")
            full = np.zeros(6)
            full[places] = values
            read.append(freeze(full))
        return self._add(Bushing(name, first, second, read[0], read[1]))

    @teach_keywords
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
        """Add a lubricated journal bearing between two markers; see `Bearing` for what it does.

        Its outputs are ``name.offset`` (x and y of the journal in axes of the bush's marker),
        ``eccentricity``, ``film``, ``pressure``, ``force`` (on the journal, in world axes),
        ``torque``, ``power_loss`` and ``thin_film``.

        Parameters
        ----------
        name
            Unique in the system.
        journal, bush
            Markers in the middle of the bearing on the shaft and on what holds it, with z along
            the axis; in a plane they have it so.
        film
            A `ShortBearing`, `TiltedShortBearing` or `LongBearing`: its dimensions and options. It
            is not added to a diagram.
        coupling
            ``"force"``: the film pushes, and its stiffness and damping bound explicit steps.
            ``"constraint"``: two equations hold the journal where the steady film would carry their
            reaction; no step is too large for it, but squeeze, and the motion of the journal in
            its bush as a part of the dynamics, are left out. For planar systems and
            ``ShortBearing(squeeze=False)``. ``name.rounds`` then tells how often a step was
            repeated for it.
        load_axes
            Of a film without squeeze: the axes in which its load is taken to stand still, those of
            the ``"world"`` or of the ``"bush"``.
        """
        self._check_name(name)
        self._check_ends(name, journal, bush)
        if isinstance(film, FiniteBearing):
            raise DiagramError(
                f"`film` of `{name}` is a FiniteBearing, whose film has a memory of its own: it is "
                f"for diagrams only, wired to a plant. In a mechanism take a ShortBearing, a "
                f"TiltedShortBearing or a LongBearing."
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

    @teach_keywords
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
        """Add a revolute with play between two markers of a planar system; see `ClearanceRevolute`.

        Its outputs are ``name.offset`` (x and y of the pin in axes of the hole's marker), ``gap``,
        ``force`` (on the pin, in world axes), ``normal_force``, ``angle`` of the contact in axes
        of the hole and ``angle_on_pin``, ``slip`` of the surfaces and ``contact``.

        Parameters
        ----------
        name
            Unique in the system.
        pin, hole
            Markers in the middle of each.
        clearance
            The radius of the hole less that of the pin, in m.
        pin_radius
            In m; it matters for the slip of the surfaces, and so for friction and wear.
        contact
            How they press: `HuntCrossley`, `LankaraniNikravesh` or `RigidContact`.
        wear
            How the hole wears, for compliant contacts: a `Wear`. Its outputs are then also
            ``name.wear``, the depth of each section, and ``worn_volume``.
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

    @teach_keywords
    def friction(
        self,
        name: str,
        joint: Joint,
        *,
        viscous: float = 0.0,
        coulomb: float = 0.0,
        coefficient: float | None = None,
        diameter: float | None = None,
        length: float | None = None,
        smoothing_speed: float = 1e-3,
        middle: Literal["first", "second"] = "second",
        coordinate: int | None = None,
    ) -> Friction | Rubbing:
        """Add friction to a joint: given by numbers, or from its reaction by a `coefficient`.

        Given, it acts on one coordinate with rate v: -(viscous v + coulomb tanh(v /
        smoothing_speed)); see `Friction`. With a coefficient, and the size of its bearing, it is
        Coulomb's, from the reaction of a revolute, prismatic or cylindrical joint; see `Rubbing`.
        Its outputs are then ``name.torque`` and ``name.force`` on the coordinates, ``load`` (the
        normal load) and ``power_loss``.

        Parameters
        ----------
        name, joint
            Its name, and where it acts.
        viscous, coulomb
            In N s/m and N, or N m s/rad and N m.
        coefficient
            Of dry friction.
        diameter, length
            Of the bearing of a joint with a coefficient, in m. In space both; in a plane the
            diameter of a revolute or the length of a prismatic joint.
        smoothing_speed
            Where dry friction reaches 76 %: of the coordinate, in m/s or rad/s; with a coefficient
            of the surfaces, in m/s.
        middle
            Which marker of a joint that slides is the middle of its bearing: the second for a block
            on a rail, the first for a rod in a bush.
        coordinate
            From 0; the only one of the joint if not given.
        """
        self._check_name(name)
        if coefficient is not None:
            if viscous or coulomb or coordinate is not None:
                raise DiagramError(
                    f"`{name}` has a `coefficient`: it follows from the reaction of the joint and "
                    f"acts on all its coordinates. Add viscous, coulomb or coordinate as friction "
                    f"of another name."
                )
            return self._rubbing(
                name, joint, coefficient, diameter, length, smoothing_speed, middle
            )
        if diameter is not None or length is not None:
            raise DiagramError(
                f"`{name}` has the size of a bearing but no `coefficient`: give one, or leave "
                f"diameter and length out."
            )
        values = [
            _not_negative(name, "viscous", viscous),
            _not_negative(name, "coulomb", coulomb),
            _positive(name, "smoothing_speed", smoothing_speed),
        ]
        return self._add(Friction(name, joint, self._coordinate(name, joint, coordinate), *values))

    def _rubbing(
        self,
        name: str,
        joint: Joint,
        coefficient: float,
        diameter: float | None,
        length: float | None,
        smoothing_speed: float,
        middle: Literal["first", "second"],
    ) -> Rubbing:
        if isinstance(joint, Joint) and joint.kind not in ("revolute", "prismatic", "cylindrical"):
            raise DiagramError(
                f"`{name}` is friction from the reaction of `{joint.name}`, a {joint.kind} joint: "
                f"only revolute, prismatic and cylindrical joints have it. Give viscous and "
                f"coulomb instead."
            )
        self._coordinate(name, joint, 0)  # it is a joint of this system
        for other in self.elements:
            if isinstance(other, Rubbing) and other.joint is joint:
                raise DiagramError(
                    f"`{other.name}` is friction from the reaction of `{joint.name}` already: a "
                    f"joint has one bearing."
                )
        if middle not in ("first", "second"):
            raise DiagramError(f"`middle` of `{name}` is 'first' or 'second', got {middle!r}.")
        wanted = {"diameter": True, "length": True}
        if self.planar:
            wanted = {"diameter": joint.kind == "revolute", "length": joint.kind == "prismatic"}
        sizes = {"diameter": diameter, "length": length}
        for what, value in sizes.items():
            where = f"a {joint.kind} joint in {'a plane' if self.planar else 'space'}"
            if wanted[what] and value is None:
                raise DiagramError(
                    f"`{name}` needs `{what}`, in m: friction in {where} depends on the "
                    f"{what} of its bearing."
                )
            if value is not None and not wanted[what]:
                raise DiagramError(
                    f"`{name}` takes no `{what}`: friction in {where} does not depend on it."
                )
            sizes[what] = None if value is None else _positive(name, what, value)
        return self._add(
            Rubbing(
                name,
                joint,
                _not_negative(name, "coefficient", coefficient),
                sizes["diameter"],
                sizes["length"],
                _positive(name, "smoothing_speed", smoothing_speed),
                middle,
            )
        )

    @teach_keywords
    def stop(
        self,
        name: str,
        joint: Joint,
        *,
        lower: float = -np.inf,
        upper: float = np.inf,
        stiffness: float,
        damping: float = 0.0,
        coordinate: int | None = None,
    ) -> Stop:
        """Add end stops to a joint coordinate; see `multibody.Stop` for their law.

        Parameters
        ----------
        name, joint
            Its name, and where it acts.
        lower, upper
            Limits in m or rad; infinite for none.
        stiffness, damping
            Beyond a limit, in N/m and N s/m or N m/rad and N m s/rad.
        coordinate
            From 0; the only one of the joint if not given.
        """
        self._check_name(name)
        if not (float(lower) < float(upper)):
            raise DiagramError(
                f"the stops of `{name}` are at lower={lower!r} and upper={upper!r}: the lower one "
                f"must be below the upper one."
            )
        place = self._coordinate(name, joint, coordinate)
        hard = _not_negative(name, "stiffness", stiffness)
        soft = _not_negative(name, "damping", damping)
        return self._add(Stop(name, joint, place, float(lower), float(upper), hard, soft))

    @teach_keywords
    def driver(
        self, name: str, joint: Joint, law: Lawlike, *, coordinate: int | None = None
    ) -> Driver:
        """Prescribe a joint coordinate as a law of t, in m or rad.

        Parameters
        ----------
        name, joint
            Its name, and what it drives.
        law
            Of the coordinate, with a continuous rate. A formula that jumps is an error; what jumps
            during the run is warned of at its end.
        coordinate
            From 0; the only one of the joint if not given.

        Raises
        ------
        DiagramError
            If the law jumps within its first 10 s, or another driver has the coordinate.
        """
        self._check_name(name)
        place = self._coordinate(name, joint, coordinate)
        for other in self.drivers:
            if other.joint is joint and other.coordinate == place:
                raise DiagramError(
                    f"`{name}` drives coordinate {place} of `{joint.name}`, which `{other.name}` "
                    f"drives already."
                )
        what = f"the law of `{name}`"
        return self._add(Driver(name, joint, place, check_motion(what, as_law(what, law))))

    def _load(
        self,
        effort: Literal["force", "torque"],
        name: str,
        on: Marker | Joint,
        value: Any,
        frame: Literal["world", "body"] | None,
        coordinate: int | None,
    ) -> Load | JointLoad:
        self._check_name(name)
        if isinstance(on, Joint):
            if frame is not None:
                raise DiagramError(f"`{name}` acts on a joint coordinate: it takes no `frame`.")
            place = self._coordinate(
                name, on, coordinate, "length" if effort == "force" else "angle"
            )
            law = as_law(f"`{effort}` of `{name}`", value)
            return self._add(JointLoad(name, on, place, law))
        if coordinate is not None:
            raise DiagramError(f"`{name}` acts on a marker: it takes no `coordinate`.")
        self._check_marker(name, on)
        if frame not in (None, "world", "body"):
            raise DiagramError(f"`frame` of `{name}` is 'world' or 'body', got {frame!r}.")
        laws: list[AbstractLaw] = [Constant(0.0)] * 3
        if isinstance(value, str | AbstractLaw) or np.ndim(value) == 0:
            if frame is not None:
                raise DiagramError(
                    f"`{name}` is one number, along the axis of marker `{on.path}`: it takes no "
                    f"`frame`. Give all components to choose one."
                )
            single = 0 if self.planar and effort == "force" else 2
            laws[single] = as_law(f"`{effort}` of `{name}`", value)
            return self._add(Load(name, effort, on, (laws[0], laws[1], laws[2]), "marker", single))
        values = list(value)
        wanted = 2 if self.planar else 3
        if len(values) != wanted or (self.planar and effort == "torque"):
            shape = "one number" if self.planar and effort == "torque" else f"{wanted} numbers"
            raise DiagramError(
                f"`{effort}` of `{name}` has {shape} in a {'planar' if self.planar else 'spatial'} "
                f"system, got {value!r}."
            )
        for n, component in enumerate(values):
            laws[n] = as_law(f"`{effort}` of `{name}`, component {'xyz'[n]}", component)
        return self._add(Load(name, effort, on, (laws[0], laws[1], laws[2]), frame or "world"))

    def _coordinate(
        self,
        name: str,
        joint: Joint,
        given: int | None,
        kind: Literal["length", "angle"] | None = None,
    ) -> int:
        """Return the number of a joint's coordinate: the one given, or the only one that fits."""
        if not isinstance(joint, Joint):
            raise DiagramError(f"`{name}` acts on a joint, got {joint!r}.")
        if self._parts.get(joint.name) is not joint:
            raise DiagramError(f"`{name}` acts on `{joint.name}`, a joint of another system.")
        listed = ", ".join(
            f"{n}: {_describe(coordinate)}" for n, coordinate in enumerate(joint.coordinates)
        )
        has = f"Coordinates of `{joint.name}`, a {joint.kind} joint: {listed or 'none'}."
        fits = [
            n
            for n, coordinate in enumerate(joint.coordinates)
            if kind is None or coordinate.kind == kind
        ]
        if given is None:
            if not fits or (kind is None and len(fits) > 1):
                wanted = {"length": "a displacement", "angle": "an angle", None: "one"}[kind]
                raise DiagramError(
                    f"`{name}` acts on a coordinate that is {wanted}. {has} "
                    f"{'Choose with coordinate=….' if fits else ''}".rstrip()
                )
            return fits[0]
        if given not in fits:
            raise DiagramError(f"`{name}` cannot act on coordinate {given!r}. {has}")
        return given


def _not_negative(name: str, what: str, value: Any) -> float:
    number = read_number(f"`{what}` of `{name}`", value)
    if number < 0:
        raise DiagramError(f"`{what}` of `{name}` must not be negative, got {number:g}.")
    return number


def _positive(name: str, what: str, value: Any) -> float:
    number = _not_negative(name, what, value)
    if number == 0:
        raise DiagramError(f"`{what}` of `{name}` must be positive.")
    return number


def _describe(coordinate: Coordinate) -> str:
    """Return a coordinate in words."""
    if coordinate.kind == "length":
        return f"displacement along {coordinate.along} (m)"
    return f"angle about {coordinate.about} (rad)"
