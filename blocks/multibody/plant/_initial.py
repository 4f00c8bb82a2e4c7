"""Joint coordinates and speeds that the initial state of a mechanism keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....errors import DiagramError, name_list, suggest
from ...core._ports import Parameter, parameter
from ..joints._joint import Joint
from ..system._reading import read_number

if TYPE_CHECKING:
    from ..system._system import System

Initial = Mapping[str, float]
"""Values by path, such as ``{"main.angle": 0.6, "main.speed": 10.0}``."""


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A coordinate of a joint, or its speed, and the parameter with its initial value."""

    path: str
    joint: Joint
    number: int
    rate: bool
    parameter: Parameter


def coordinate_name(joint: Joint, number: int) -> str:
    """Return ``angle``, ``displacement``, …: unique within the joint."""
    kinds = [c.kind for c in joint.coordinates]
    base = "angle" if kinds[number] == "angle" else "displacement"
    if kinds.count(kinds[number]) == 1:
        return base
    return f"{base}_{kinds[: number + 1].count(kinds[number])}"


def list_motion(system: System) -> list[str]:
    """Return the paths of every joint's coordinates and speeds and of every body's pose."""
    found = []
    for joint in system.joints:
        single = len(joint.coordinates) == 1
        for number in range(len(joint.coordinates)):
            name = f"{joint.name}.{coordinate_name(joint, number)}"
            found += [name, f"{joint.name}.speed" if single else f"{name}_speed"]
    for body in system.bodies:
        found += [f"{body.name}.position", f"{body.name}.rotation"]
    return found


def list_initial(system: System) -> dict[str, tuple[Joint, int, bool]]:
    """Return what `initial` may name: coordinates and speeds of joints, by path."""
    found: dict[str, tuple[Joint, int, bool]] = {}
    for joint in system.joints:
        for number in range(len(joint.coordinates)):
            name = f"{joint.name}.{coordinate_name(joint, number)}"
            found[name] = (joint, number, False)
            found[_speed_path(joint, number)] = (joint, number, True)
    return found


def _speed_path(joint: Joint, number: int) -> str:
    if len(joint.coordinates) == 1:
        return f"{joint.name}.speed"
    return f"{joint.name}.{coordinate_name(joint, number)}_speed"


def read_initial(system: System, initial: Initial | None) -> list[Kept]:
    """Return the prescribed values, in the order in which they were given.

    Raises
    ------
    DiagramError
        With all names that are unknown or given twice, and all values that are not finite numbers.
    """
    if initial is None:
        return []
    if not isinstance(initial, Mapping):
        raise DiagramError(f"`initial` is a mapping such as {{'main.speed': 10}}, got {initial!r}.")
    known = list_initial(system)
    # The outputs of a joint with one coordinate have two names for its speed.
    other = {
        f"{joint.name}.{coordinate_name(joint, number)}_speed": path
        for path, (joint, number, rate) in known.items()
        if rate
    }
    kept: dict[str, Kept] = {}
    problems = []
    for given, value in initial.items():
        path = other.get(given, given)
        if path not in known:
            problems.append(
                f"there is no joint coordinate or speed `{given}` in `{system.name}` to prescribe."
                f"{suggest(str(given), known)} There are: {name_list(known)}."
            )
            continue
        if path in kept:
            problems.append(f"`initial` has `{path}` twice.")
            continue
        joint, number, rate = known[path]
        try:
            single = read_number(f"initial `{path}`", value)
        except DiagramError as error:
            problems += error.problems
            continue
        unit = joint.coordinates[number].unit + ("/s" if rate else "")
        what = path.removeprefix(f"{joint.name}.")
        made = parameter(
            f"{joint.name}.initial_{what}",
            single,
            unit=unit,
            doc="prescribed in the initial state",
            tunable=False,
        )
        kept[path] = Kept(path, joint, number, rate, made)
    if problems:
        raise DiagramError(problems)
    return list(kept.values())
