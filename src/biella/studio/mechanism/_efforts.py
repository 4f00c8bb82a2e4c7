"""Forces and torques in a mechanism that a page draws as arrows.

Each is an output of the mechanism, recorded as it is. Where it acts, and along which direction,
follows from the recorded poses: the page computes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...blocks.multibody.elements._bushing import Bushing
from ...blocks.multibody.elements._element import AbstractElement, Constraint
from ...blocks.multibody.elements._load import Load
from ...blocks.multibody.elements._push import Push
from ...blocks.multibody.elements._spring import Spring
from ...blocks.multibody.elements._stop import EndStop
from ...blocks.multibody.elements.bearing._bearing import Bearing
from ...blocks.multibody.elements.clearance._clearance import ClearanceRevolute
from ...blocks.multibody.elements.contact._contact import ShapeContact

if TYPE_CHECKING:
    from ...blocks.multibody.joints._joint import Joint
    from ...blocks.multibody.system._bodies import Marker
    from ...blocks.multibody.system._system import System

Array = NDArray[np.float64]
Group = Literal["joint", "element", "load", "contact"]
Kind = Literal["force", "torque"]
Form = Literal["vector", "tension", "axis"]

_NO_TORQUE = {"S", "SS", "d2"}  # rows whose force on the second body acts at its marker


@dataclass(frozen=True)
class Effort:
    """A force or a torque, and where it acts.

    Attributes
    ----------
    name
        Of the joint or element.
    group
        What is shown and hidden together.
    kind
        ``"force"`` in N or ``"torque"`` in N m.
    form
        ``"vector"``: three values in axes of the world, on a body. ``"tension"``: one value, which
        pulls two points together. ``"axis"``: one value along or about an axis of a body.
    outputs
        Of the mechanism, with their widths: the value, then what else the page needs.
    follows_solution
        Whether it needs the accelerations of the mechanism, which cost as much as a step's stage.
    about
        What else the page is told. Places are (index of the body, point in its axes).
    """

    name: str
    group: Group
    kind: Kind
    form: Form
    outputs: tuple[tuple[str, int], ...]
    follows_solution: bool
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Return how many values its outputs have together."""
        return sum(width for _, width in self.outputs)

    def describe(self, first: int) -> dict[str, Any]:
        """Return it as plain data; its values begin at number `first`."""
        places, at = {}, first
        for path, width in self.outputs:
            places[path.rpartition(".")[2]] = at
            at += width
        about = {
            key: places[value[1:]] if isinstance(value, str) and value.startswith("=") else value
            for key, value in self.about.items()
        }
        return {
            "name": self.name,
            "group": self.group,
            "kind": self.kind,
            "form": self.form,
            "value": first,
            **about,
        }


def list_efforts(system: System) -> list[Effort]:
    """Return all forces and torques in a system that are drawn."""
    found = [effort for joint in system.joints for effort in _of_joint(joint)]
    for element in (*system.elements, *system.constraints):
        found += _of_element(element)
    return found


def _of_joint(joint: Joint) -> Iterator[Effort]:
    """Yield the reaction of a joint: on the second body, or reversed on the first at the ground."""
    about = _on_second_body(joint) | _moving(joint.second)
    kinds: list[Kind] = ["force"]
    if not {row.kind for row in joint.rows} <= _NO_TORQUE:
        kinds.append("torque")
    for kind in kinds:
        outputs = ((f"{joint.name}.{kind}", 3),)
        yield _make(joint.name, "joint", kind, "vector", outputs, True, about)


def _of_element(element: AbstractElement) -> Iterator[Effort]:
    name = element.name
    about: dict[str, Any]
    if isinstance(element, Spring):
        mask = [int(not element.components or axis in element.components) for axis in "xyz"]
        about = {"place": _place(element.first), "other": _place(element.second), "mask": mask}
        yield _effort(element, "element", "force", "tension", ("force",), about)
    elif isinstance(element, Bushing):
        for kind in ("force", "torque"):
            yield _effort(element, "element", kind, "vector", (kind,), _on(element.second))
    elif isinstance(element, Bearing):
        yield _effort(element, "element", "force", "vector", ("force",), _on(element.journal))
        bush = element.bush
        about = _on(element.journal) | {"axis": [bush.body.index, bush.rotation[:, 2].tolist()]}
        yield _effort(element, "element", "torque", "axis", ("torque",), about)
    elif isinstance(element, ClearanceRevolute):
        hole = element.hole
        about = _on(element.pin) | {
            "contact": "=contact",
            "angle": "=angle",
            "hole": _place(hole),
            "axes": [hole.rotation[:, 0].tolist(), hole.rotation[:, 1].tolist()],
            "radius": element.pin_radius + element.clearance,
        }
        outputs = ("force", "contact", "angle")
        yield _effort(element, "contact", "force", "vector", outputs, about)
    elif isinstance(element, ShapeContact):
        first, second = element.ends
        about = _on(second if first.body.is_ground else first) | {"at": "=point"}
        about["sign"] = -1 if first.body.is_ground else 1
        yield _effort(element, "contact", "force", "vector", ("force", "point"), about)
    elif isinstance(element, Load):
        kind = element.effort
        about = _on(element.marker) | _moving(element.marker)
        yield _effort(element, "load", kind, "vector", (f"applied_{kind}",), about)
    elif isinstance(element, Push):
        about = {"sign": 1, "body": -2, "place": [-1, [0.0, 0.0, 0.0]], "at": "=point"}
        yield _effort(element, "load", "force", "vector", ("force", "point"), about)
    elif isinstance(element, Constraint):
        if "effort" not in element.outputs():
            return  # the multiplier of a formula has no place and no direction
        group: Group = "load" if element.driven else "element"
        for term, output in zip(reversed(element.terms), ("effort", "first_effort"), strict=False):
            about = _on_coordinate(term.joint, term.coordinate)
            of = term.joint.coordinates[term.coordinate].effort
            yield _make(name, group, of, "axis", ((f"{name}.{output}", 1),), True, about)
    else:
        yield from _of_effort_on_joint(element)


def _of_effort_on_joint(element: AbstractElement) -> Iterator[Effort]:
    """Yield the efforts of an element on coordinates of a joint: a motor, friction, a stop."""
    joint: Joint | None = getattr(element, "acts_on", None) or getattr(element, "joint", None)
    if joint is None:
        return
    group: Group = "contact" if isinstance(element, EndStop) else "element"
    group = "load" if element.is_load else group
    own = getattr(element, "coordinate", None)
    outputs = element.outputs()
    if "torque" in outputs and outputs["torque"].width == 3:  # of a ball joint, in world axes
        yield _effort(element, group, "torque", "vector", ("torque",), _on(joint.second))
        return
    for number, coordinate in enumerate(joint.coordinates):
        if own is not None and number != own:
            continue
        output = next((what for what in (coordinate.effort, "effort") if what in outputs), None)
        if output is not None:
            about = _on_coordinate(joint, number)
            yield _effort(element, group, coordinate.effort, "axis", (output,), about)


def _effort(
    element: AbstractElement,
    group: Group,
    kind: Kind,
    form: Form,
    names: tuple[str, ...],
    about: Mapping[str, Any],
) -> Effort:
    known = element.outputs()
    outputs = tuple((f"{element.name}.{name}", known[name].width) for name in names)
    costly = any(known[name].follows == "solution" for name in names)
    return _make(element.name, group, kind, form, outputs, costly, about)


def _make(
    name: str,
    group: Group,
    kind: Kind,
    form: Form,
    outputs: tuple[tuple[str, int], ...],
    costly: bool,
    about: Mapping[str, Any],
) -> Effort:
    about = dict(about)
    point = about.pop("moving", None)
    if point is not None:
        about["at"], outputs = "=position", (*outputs, (point, 3))
    return Effort(name, group, kind, form, outputs, costly, about)


def _on(marker: Marker) -> dict[str, Any]:
    return {"sign": 1, "body": marker.body.index, "place": _place(marker)}


def _moving(marker: Marker) -> dict[str, Any]:
    """Return the output with the place of a marker that moves on its body."""
    return {"moving": f"{marker.path}.position"} if marker.motion else {}


def _place(marker: Marker) -> list[Any]:
    return [marker.body.index, marker.place(0.0)[0].tolist()]


def _on_second_body(joint: Joint) -> dict[str, Any]:
    grounded = joint.second.body.is_ground
    body = joint.first.body if grounded else joint.second.body
    sign = -1 if grounded else 1
    return {"sign": sign, "body": body.index, "place": _place(joint.second)}


def _on_coordinate(joint: Joint, number: int) -> dict[str, Any]:
    """Return where the effort on a coordinate acts: on the second body, at its marker."""
    coordinate = joint.coordinates[number]
    name = coordinate.along or coordinate.about
    marker, frame = (
        (joint.first, joint.frame_i) if name[2] == "i" else (joint.second, joint.frame_j)
    )
    axis = [marker.body.index, frame[:, "fgh".index(name[0])].tolist()]
    return _on_second_body(joint) | {"axis": axis}
