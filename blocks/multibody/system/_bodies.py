"""Bodies and markers.

A body is a frame B that moves in the world W, and a mass that lies fixed in it. Given poses and
velocities are those of the start; where joints tie bodies together they are a first guess, which
assembly corrects. The inertia tensor is I = ∫ρ (rᵀr 1 - r rᵀ) dV: products of inertia stand off the
diagonal with a minus sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ....errors import DiagramError
from ...core._ports import Matrix, Numbers, Parameter, parameter
from ..plant._parameters import law_parameters
from ._laws import AbstractLaw, Lawlike, as_law, check_motion
from ._reading import (
    read_direction,
    read_number,
    read_numbers,
    read_rotation,
    read_vector,
    suggest_keywords,
)
from ._rotations import Array, angle_of, frame_along, freeze, quaternion_from_rotation

if TYPE_CHECKING:
    from ._system import System

Orientation = Literal["none", "axis", "rotation"]

OWN_NAMES = frozenset(
    ("mass", "inertia", "com", "position", "rotation", "angle", "velocity", "angular_velocity")
)


@dataclass(frozen=True, slots=True, eq=False)
class Marker:
    """A frame M fixed on a body, or one that moves on it by a law; made by `Body.marker`.

    Its axes x, y, z are the f, g, h of the joint equations: h is the axis of a joint between
    spatial markers, f the direction of a slide between planar ones.

    Attributes
    ----------
    name, body
        Its name on that body, and the body.
    position
        p_BM in m, in axes of the body, without `motion`.
    rotation
        R_BM: its columns are f, g, h in axes of the body.
    orientation
        What the user gave of the rotation: nothing, the joint axis only, or all of it.
    motion
        Laws in m to add to the position, by body axis ``"x"``, ``"y"``, ``"z"``.
    """

    name: str
    body: Body = field(repr=False)
    position: Array
    rotation: Array
    orientation: Orientation
    motion: Mapping[str, AbstractLaw]

    @property
    def path(self) -> str:
        """Return ``body.marker``."""
        return f"{self.body.name}.{self.name}"

    def place(self, t: float) -> tuple[Array, Array, Array]:
        """Return p_BM, its rate and its acceleration at time t, in axes of the body."""
        place = np.zeros((3, 3))
        place[0] = self.position
        for axis, law in self.motion.items():
            place[:, "xyz".index(axis)] += law.jet(t)
        return place[0], place[1], place[2]

    @property
    def world_position(self) -> Array:
        """Return p_WM in the given pose of the body, at time 0."""
        return self.body.position + self.body.rotation @ self.place(0.0)[0]

    @property
    def world_rotation(self) -> Array:
        """Return R_WM in the given pose of the body."""
        return self.body.rotation @ self.rotation

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path."""
        size = 2 if self.body.system.planar else 3
        position = self.position[:size]
        yield parameter(
            f"{self.path}.position", position, unit="m", doc="on the body", tunable=False
        )
        # Directly after the position: the kernel finds it there.
        turn = 0.0 if self.body.system.planar else np.zeros(3)
        doc = "rotation vector of its axes on the body, to vary their direction"
        yield parameter(f"{self.path}.tilt", turn, unit="rad", doc=doc, tunable=False)
        for axis, law in self.motion.items():
            yield from law_parameters(f"{self.path}.{axis}", law, "m", f"motion along {axis}")


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A rigid body; made by `System.body`. The ground has no mass and does not move.

    Attributes
    ----------
    name, system
        Its name, and the system it belongs to.
    index
        Its index in `System.bodies`; -1 for the ground.
    mass
        In kg.
    com
        Center of mass p_BC in m, in axes of the body.
    inertia
        Tensor in kg m² about the center of mass, in axes of the body. For a planar body only J_z
        matters; it is stored as that of a thin plate, diag(J/2, J/2, J).
    position, rotation
        p_WB in m and R_WB: the frame of the body in the world, at the start.
    velocity, angular_velocity
        v_WB of the origin of the frame in m/s and ω_WB in rad/s, both in axes of the world.
    free
        Whether it may move without any joint or spring.
    markers
        By name.
    """

    name: str
    system: System = field(repr=False)
    index: int
    mass: float
    com: Array = field(repr=False)
    inertia: Array = field(repr=False)
    position: Array
    rotation: Array = field(repr=False)
    velocity: Array = field(repr=False)
    angular_velocity: Array = field(repr=False)
    free: bool = False
    _markers: dict[str, Marker] = field(default_factory=dict, repr=False)

    @property
    def is_ground(self) -> bool:
        """Whether this is the ground."""
        return self.index < 0

    @property
    def markers(self) -> Mapping[str, Marker]:
        """Return the markers by name."""
        return MappingProxyType(self._markers)

    @suggest_keywords
    def marker(
        self,
        name: str,
        position: Numbers | None = None,
        *,
        axis: Numbers | None = None,
        rotation: Matrix | None = None,
        motion: Mapping[str, Lawlike] | None = None,
    ) -> Marker:
        """Fix a frame on this body and return it.

        Parameters
        ----------
        name
            Unique on the body.
        position
            In m, in axes of the body; its origin if not given.
        axis
            Direction of a joint in axes of the body: it becomes the z axis of the marker, in a
            plane its x axis. The other axes are turned as little as possible.
        rotation
            Instead of `axis`: matrix or Euler parameters, in a plane an angle in rad.
        motion
            Laws in m by body axis, such as ``{"z": Sine(0.03, 15.7)}``, added to the position.
        """
        path = f"{self.name}.{name}"
        planar = self.system.planar
        if not isinstance(name, str) or not name or "." in name:
            raise DiagramError(f"a marker of `{self.name}` has a name without dots, got {name!r}.")
        if name in self._markers:
            raise DiagramError(f"there is a marker `{path}` already: choose another name.")
        if name in OWN_NAMES:
            raise DiagramError(
                f"`{path}` is a number of the body: choose another name for the marker."
            )
        if axis is not None and rotation is not None:
            raise DiagramError(f"marker `{path}` has `axis` and `rotation`: give one of them.")
        orientation: Orientation = "none"
        frame = freeze(np.eye(3))
        if axis is not None:
            orientation = "axis"
            frame = frame_along(read_direction(f"`axis` of marker `{path}`", axis, planar), planar)
        elif rotation is not None:
            orientation = "rotation"
            frame = read_rotation(f"`rotation` of marker `{path}`", rotation, planar)
        zero = (0.0, 0.0) if planar else (0.0, 0.0, 0.0)
        place = read_vector(
            f"`position` of marker `{path}`", zero if position is None else position, planar
        )
        made = Marker(name, self, place, frame, orientation, self._read_motion(path, motion))
        self._markers[name] = made
        return made

    def _read_motion(
        self, path: str, motion: Mapping[str, Lawlike] | None
    ) -> Mapping[str, AbstractLaw]:
        axes = "xy" if self.system.planar else "xyz"
        laws = {}
        if motion is not None and not isinstance(motion, Mapping):
            raise DiagramError(
                f"`motion` of marker `{path}` is a dict of laws by axis, such as "
                f'{{"z": "0.1*sin(t)"}}; got {motion!r}.'
            )
        for axis, value in (motion or {}).items():
            if axis not in tuple(axes):
                raise DiagramError(
                    f"marker `{path}` moves along `{axis}`; the axes are {', '.join(axes)}."
                )
            what = f"motion `{axis}` of marker `{path}`"
            laws[axis] = check_motion(what, as_law(what, value))
        return MappingProxyType(laws)

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters and those of its markers, by path."""
        planar = self.system.planar
        size = 2 if planar else 3

        def give(name: str, value: Any, unit: str, doc: str) -> Parameter:
            # Read at the start of a run: derived quantities are computed once.
            return parameter(f"{self.name}.{name}", value, unit=unit, doc=doc, tunable=False)

        if not self.is_ground:
            yield give("mass", self.mass, "kg", "mass")
            inertia = self.inertia[2, 2] if planar else self.inertia
            yield give("inertia", inertia, "kg.m2", "about the center of mass, body axes")
            yield give("com", self.com[:size], "m", "center of mass, body axes")
            yield give("position", self.position[:size], "m", "of the frame, at the start")
            if planar:
                yield give("angle", angle_of(self.rotation), "rad", "at the start")
            else:
                quaternion = quaternion_from_rotation(self.rotation)
                yield give("rotation", quaternion, "1", "Euler parameters, at the start")
            yield give("velocity", self.velocity[:size], "m/s", "of the frame, at the start")
            turning = self.angular_velocity[2] if planar else self.angular_velocity
            yield give("angular_velocity", turning, "rad/s", "in world axes, at the start")
        for marker in self._markers.values():
            yield from marker.parameters()


def read_mass(name: str, mass: Any) -> float:
    """Return the mass of a body, or raise a `DiagramError`."""
    value = read_number(f"`mass` of body `{name}`", mass)
    if value < 0:
        raise DiagramError(f"body `{name}` has mass {value:g} kg: it must not be negative.")
    return value


def read_inertia(name: str, inertia: Any, planar: bool, allow_nonphysical: bool) -> Array:
    """Return the inertia tensor of a body.

    Raises
    ------
    DiagramError
        If it is not symmetric, has a negative principal moment, or one that is larger than the sum
        of the other two, which no distribution of mass has.
    """
    what = f"`inertia` of body `{name}`"
    array = read_numbers(what, inertia)
    if planar:
        if array.ndim:
            raise DiagramError(f"{what} in a planar system is one number, J_z; got {inertia!r}.")
        if array < 0:
            raise DiagramError(f"{what} is {float(array):g} kg m²: it must not be negative.")
        return freeze(np.diag([array / 2.0, array / 2.0, array]))
    if array.ndim == 0:
        array = array * np.eye(3)
    elif array.shape == (3,):
        array = np.diag(array)
    if array.shape != (3, 3):
        raise DiagramError(
            f"{what} is a number, three principal moments or a 3×3 tensor, got {inertia!r}."
        )
    size = float(np.abs(array).max())
    if np.abs(array - array.T).max() > 1e-9 * size:
        row, column = np.unravel_index(int(np.argmax(np.abs(array - array.T))), (3, 3))
        raise DiagramError(
            f"{what} is not symmetric: element ({row + 1}, {column + 1}) is "
            f"{array[row, column]:g}, ({column + 1}, {row + 1}) is {array[column, row]:g}."
        )
    array = array / 2.0 + array.T / 2.0
    smallest, middle, largest = np.linalg.eigvalsh(array).tolist()
    moments = f"({smallest:.6g}, {middle:.6g}, {largest:.6g}) kg m²"
    if smallest < -1e-9 * size:
        raise DiagramError(
            f"body `{name}` has principal moments of inertia {moments}: none may be negative. "
            f"The tensor is taken about the center of mass; products stand in it with a minus sign."
        )
    if largest > (smallest + middle) * (1.0 + 1e-9) and not allow_nonphysical:
        raise DiagramError(
            f"body `{name}` has principal moments of inertia {moments}, which no body has: "
            f"{largest:.6g} is larger than {smallest:.6g} + {middle:.6g}. Check the numbers and "
            f"that they are about the center of mass, or set allow_nonphysical=True."
        )
    return freeze(array)
