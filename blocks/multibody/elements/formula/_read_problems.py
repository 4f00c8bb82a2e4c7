"""What is wrong with the outputs that formulas read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .....errors import name_list, suggest
from ...plant._outputs import list_outputs
from ...plant._tables import nearest_first
from ...system._bodies import Body, Marker
from ...system._laws import Read
from ._reads import find_output_of_part, list_law_reads, needed_reads

if TYPE_CHECKING:
    from ...system._system import System

_WIDTHS = {"position": 3, "velocity": 3, "angular_velocity": 3}
_NOT_MOTION = {
    "rotation": "the sign of its Euler parameters jumps. Read e0 … e3 of the body, which do not",
    "closure": "it is an error of the computation, not a motion",
    "closure_rate": "it is an error of the computation, not a motion",
}


def list_read_problems(system: System) -> list[str]:
    """Return what is wrong with the outputs that formulas read."""
    reads = list(list_law_reads(system))
    if not reads:
        return []
    names = list_outputs(system)
    problems = []
    for path, read in reads:
        if read.path not in names:
            problems.append(
                f"the formula of `{path}` reads `{read.path}`, and `{system.name}` has no such "
                f"output.{suggest(read.path, names)} Outputs, the nearest first: "
                f"{name_list(nearest_first(read.path, names))}. print(system.outputs()) lists all."
            )
            continue
        problem = _refuse(system, path, read) or _find_loop(system, path, read)
        if problem:
            problems.append(problem)
    return list(dict.fromkeys(problems))


def _is_solved(system: System, read: Read) -> bool:
    """Return whether an output follows from accelerations."""
    owner, _, what = read.path.rpartition(".")
    _, output = find_output_of_part(system, read.path)
    if output is not None:
        return output.follows == "solution" or output.of == "effort" or _is_driver(system, owner)
    if what.endswith("acceleration"):
        return True
    return what in ("force", "torque") and not isinstance(system.parts.get(owner), Body | Marker)


def _is_driver(system: System, owner: str) -> bool:
    return any(item.name == owner for item in system.constraints)


def _refuse(system: System, path: str, read: Read) -> str:
    """Return why an output cannot be read, or nothing."""
    what = read.path.rpartition(".")[2]
    if _is_solved(system, read):
        return (
            f"the formula of `{path}` depends on itself: `{path}` → accelerations and reactions → "
            f"`{read.text}` → `{path}`. Read outputs that follow from positions and velocities, or "
            f"feed `{read.path}` back through a delay in the diagram, with an Input law."
        )
    _, output = find_output_of_part(system, read.path)
    if output is None and what in _NOT_MOTION:
        return f"the formula of `{path}` cannot read `{read.text}`: {_NOT_MOTION[what]}."
    width = output.width if output is not None else _WIDTHS.get(what, 1)
    if width > 1 and (read.element is None or read.element >= width):
        return (
            f"the formula of `{path}` reads `{read.text}`, and that has {width} numbers: read one, "
            f"`{read.path}[0]` … `{read.path}[{width - 1}]`."
        )
    if width == 1 and read.element is not None:
        return f"the formula of `{path}` reads `{read.text}`, and `{read.path}` is one number."
    return ""


def _find_loop(system: System, path: str, read: Read) -> str:
    """Return in which way a formula depends on itself through outputs of elements, or nothing."""

    def follow(at: Read, above: tuple[Read, ...]) -> list[str]:
        for law, needed in needed_reads(system, at):
            if law == path:
                return [f"`{law}`"]
            rest = [] if needed in above else follow(needed, (*above, needed))
            if rest:
                return [f"`{law}`", f"`{needed.text}`", *rest]
        return []

    way = follow(read, (read,))
    if not way:
        return ""
    loop = " → ".join([f"`{path}`", f"`{read.text}`", *way])
    return (
        f"the formula of `{path}` depends on itself: {loop}. Read outputs that follow from "
        f"positions and velocities alone."
    )
