"""A mechanism in a notebook: a picture of its initial pose, and what it is made of."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ....errors import BiellaError, DiagramError
from ...core.notebook._html import card, count_of, fold, list_problems, on_paper, paragraph, table
from ..system._bodies import Marker

if TYPE_CHECKING:
    from ..elements._element import AbstractElement
    from ..system._system import System
    from ._poses import Poses

DRAWN = 60
"""Most bodies of a picture."""
_DPI = 110


def show_system(system: System) -> str:
    """Return a mechanism as HTML; what is wrong with it is listed instead of raised."""
    poses, problems = _assemble(system)
    kind = "planar mechanism" if system.planar else "mechanism"
    parts = [
        count_of(len(system.bodies), "body", "bodies"),
        count_of(len(system.joints), "joint"),
        count_of(len(system.elements) + len(system.constraints), "element"),
    ]
    bodies = [
        (body.name, f"{body.mass:g} kg", _describe_inertia(body.inertia, system.planar))
        for body in system.bodies
    ]
    joints = [
        (joint.name, joint.kind, f"{joint.first.path} – {joint.second.path}")
        for joint in system.joints
    ]
    items = [*system.elements, *system.constraints]
    elements = [(item.name, type(item).__name__, _describe_ends(item)) for item in items]
    return card(
        system.name,
        f"· {kind} · {' · '.join(parts)}",
        list_problems(problems),
        _draw(system, poses),
        fold(parts[0], table(("body", "mass", "inertia in kg m²"), bodies), is_open=_few(bodies)),
        fold(parts[1], table(("joint", "kind", "between"), joints), is_open=_few(joints)),
        fold(parts[2], table(("element", "kind", "between"), elements), is_open=_few(elements)),
    )


def _few(rows: Sequence[object]) -> bool:
    return len(rows) <= 8


def _assemble(system: System) -> tuple[Poses | None, Sequence[str]]:
    """Return the pose that a run starts with, or what is wrong."""
    try:
        system.validate()
        return (system.assemble().poses if len(system.bodies) <= DRAWN else None), ()
    except DiagramError as error:
        return None, error.problems
    except BiellaError as error:
        return None, (str(error),)


def _draw(system: System, poses: Poses | None) -> str:
    """Return the picture; without a state to start with, that of the poses as given."""
    if not system.bodies:
        return ""
    if len(system.bodies) > DRAWN:
        return paragraph(f"More than {DRAWN} bodies: not drawn here; .draw('picture.svg') does it.")
    buffer = io.BytesIO()
    try:
        system.draw(poses=poses, title="").savefig(buffer, format="png", dpi=_DPI)
    except BiellaError as error:
        return paragraph(f"not drawn: {error}")
    data = base64.b64encode(buffer.getvalue()).decode()
    name = escape(system.name)
    return on_paper(f'<img alt="picture of {name}" src="data:image/png;base64,{data}">')


def _describe_inertia(inertia: NDArray[np.float64], planar: bool) -> str:
    if planar:
        return f"{inertia[2, 2]:.4g}"
    moments = np.diag(inertia)
    text = ", ".join(f"{value:.4g}" for value in moments)
    products = np.abs(inertia - np.diag(moments)).max()
    return f"{text}, with products" if products > 1e-12 * np.abs(inertia).max() else text


def _describe_ends(item: AbstractElement) -> str:
    ends = getattr(item, "ends", None)
    if ends:
        return " – ".join(end.path for end in ends)
    names: list[str] = [one.name for one in fields(item)] if is_dataclass(item) else []
    marks = [getattr(item, name, None) for name in names]
    if paths := [mark.path for mark in marks if isinstance(mark, Marker)]:
        return " – ".join(paths)
    terms = getattr(item, "terms", ())
    joint = getattr(item, "acts_on", None)
    joints = [joint.name] if joint is not None else [term.joint.name for term in terms]
    return ", ".join(dict.fromkeys(joints))
