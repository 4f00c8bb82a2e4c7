"""Adds forces and torques to a system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal, cast

import numpy as np

from ....errors import DiagramError
from ...core._ports import Numbers
from ..joints._joint import Joint
from ..system._bodies import Marker
from ..system._laws import AbstractLaw, Constant, Lawlike, as_law
from ..system._parts import Parts
from ..system._reading import suggest_keywords
from ._joint_load import JointLoad
from ._load import Load
from .formula._point_force import PointForce


class LoadMethods(Parts):
    """Adds forces and torques."""

    @suggest_keywords
    def force(
        self,
        name: str,
        on: Marker | Joint,
        value: Lawlike | Sequence[Lawlike] | Numbers,
        *,
        frame: Literal["world", "body"] | None = None,
        coordinate: int | None = None,
        point: Sequence[Lawlike] | Numbers | None = None,
    ) -> Load | JointLoad:
        """Add a force.

        Parameters
        ----------
        name
            Unique in the system.
        on
            The marker where it acts, or a joint on whose displacement it acts.
        value
            Components in N, each a number or a law of t and of outputs of the mechanism, such as
            ``"-8*abs(slider.x)"``; see `Formula`. One alone acts along z of the marker (x in a
            plane), or on the coordinate of the joint.
        frame
            Of the components: ``"world"`` or ``"body"``; the world if not given.
        coordinate
            Of the joint, from 0; its first displacement if not given.
        point
            Where on the body it acts, if that changes: numbers or laws in m, from the marker, in
            axes of the body.
        """
        load = self._load("force", name, on, value, frame, coordinate)
        return load if point is None else self._move_point(load, point)

    @suggest_keywords
    def torque(
        self,
        name: str,
        on: Marker | Joint,
        value: Lawlike | Sequence[Lawlike] | Numbers,
        *,
        frame: Literal["world", "body"] | None = None,
        coordinate: int | None = None,
    ) -> Load | JointLoad:
        """Add a torque in N m, as `force`; one alone acts about z of the marker, or on an angle."""
        return self._load("torque", name, on, value, frame, coordinate)

    def _move_point(self, load: Load | JointLoad, point: Sequence[Lawlike] | Numbers) -> Load:
        name = load.name
        if isinstance(load, JointLoad):
            del self._parts[name]
            raise DiagramError(f"`{name}` acts on a joint coordinate: it takes no `point`.")
        values = [point] if isinstance(point, str) else list(cast(Sequence[Lawlike], point))
        wanted = 2 if self.planar else 3
        if len(values) != wanted:
            del self._parts[name]
            raise DiagramError(f"`point` of `{name}` has {wanted} numbers or laws, got {point!r}.")
        what = f"`point` of `{name}`, component "
        laws = [as_law(what + "xyz"[n], value) for n, value in enumerate(values)]
        laws += [Constant(0.0)] * (3 - wanted)
        given = {item.name: getattr(load, item.name) for item in fields(load)}
        return self._add(PointForce(**given, point=(laws[0], laws[1], laws[2])))

    def _load(
        self,
        effort: Literal["force", "torque"],
        name: str,
        on: Marker | Joint,
        value: Lawlike | Sequence[Lawlike] | Numbers,
        frame: Literal["world", "body"] | None,
        coordinate: int | None,
    ) -> Load | JointLoad:
        self._check_name(name)
        if isinstance(on, Joint):
            if frame is not None:
                raise DiagramError(f"`{name}` acts on a joint coordinate: it takes no `frame`.")
            place = self._find_coordinate(
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
        if isinstance(value, str | AbstractLaw) or np.ndim(cast(Any, value)) == 0:
            if frame is not None:
                raise DiagramError(
                    f"`{name}` is one number, along the axis of marker `{on.path}`: it takes no "
                    f"`frame`. Give all components to choose one."
                )
            single = 0 if self.planar and effort == "force" else 2
            laws[single] = as_law(f"`{effort}` of `{name}`", value)
            return self._add(Load(name, effort, on, (laws[0], laws[1], laws[2]), "marker", single))
        values = list(cast(Sequence[Lawlike], value))
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
