"""A system from an Adams View command file: its objects in the order in which they need others.

Names are those of the file without the model; dots in them become underscores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..system._problems import Problems
from ._builder import Builder
from ._design import Design
from ._forces import add_force, add_spring_assembly
from ._items import Item
from ._joints import add_joint, add_motion
from ._model import Model
from ._parts import add_body, check_ground, find_held

if TYPE_CHECKING:
    from ..system._system import System


@dataclass(frozen=True, slots=True)
class AdamsModel:
    """What an Adams View command file describes.

    Attributes
    ----------
    system
        The mechanism.
    variables
        Values of its design variables by full name, in units of the file.
    ignored
        Commands that do not change the motion and were not used, each with its line.
    """

    system: System
    variables: Mapping[str, float] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def read_adams(path: str | Path, *, allow_nonphysical: bool = False) -> AdamsModel:
    """Read an Adams View command file; see `System.from_adams`.

    Returns
    -------
    AdamsModel
        The system, the design variables, and the commands that were ignored.
    """
    from ..system._system import System

    return build_model(System, path, allow_nonphysical)


def build_model(system_type: type[System], path: str | Path, allow_nonphysical: bool) -> AdamsModel:
    """Read a file; the system is a new `system_type`."""
    problems = Problems()
    model = Model(Path(path), problems)
    design = Design(model)
    model.fold = design.fold
    model.read()
    problems.stop()
    builder = Builder(system_type, model, design, allow_nonphysical)
    _build(builder)
    problems.stop()
    variables = {
        item.name: design.variable(item)
        for item in model.list_kind("variable")
        if item.entries.keys() & {"real_value", "integer_value"}
    }
    return AdamsModel(builder.system, MappingProxyType(variables), tuple(model.ignored))


def _build(b: Builder) -> None:
    """Make parts, markers, joints, motions and forces; note what cannot be made."""
    parts, joints, motions, forces, assemblies = (
        b.model.list_kind(kind) for kind in ("part", "joint", "motion", "force", "ude")
    )
    ground = next(item for item in parts if item.sub == "ground")
    b.bodies[ground] = b.system.ground
    for item in (*parts, *joints, *motions, *forces, *assemblies):
        if item is not ground:
            b.names[item] = b.free_name(item)
    _each(b, parts, check_ground)
    held = find_held(b, [*joints, *forces, *assemblies])
    moving = [item for item in parts if item is not ground]
    _each(b, moving, lambda b, item: add_body(b, item, item not in held))
    _each(b, b.model.list_kind("variable"), _check_variable)
    b.problems.stop()  # the rest needs the bodies
    _each(b, b.model.list_kind("marker"), Builder.add_marker)
    b.problems.stop()
    _each(b, joints, add_joint)
    _each(b, motions, add_motion)
    _each(b, forces, add_force)
    _each(b, assemblies, add_spring_assembly)


def _each(b: Builder, items: Iterable[Item], make: Callable[[Builder, Item], None]) -> None:
    for item in items:
        with b.placed(item):
            make(b, item)


def _check_variable(b: Builder, item: Item) -> None:
    if item.entries.keys() & {"real_value", "integer_value"}:
        b.design.variable(item)
