"""A mechanism alone as an FMU: one block, whose ports and numbers keep their own names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...blocks.multibody import System
from ...blocks.multibody.initial import Initial, coordinate_name
from ...scheduler.compile.compiler import compile_diagram
from ...scheduler.compile.diagram import Diagram
from ...scheduler.compile.plan import Plan
from .export import write_fmu

_BLOCK = "mechanism"
_EFFORTS = ("force", "torque")


def export_system(
    system: System,
    path: str | Path,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    parameters: Sequence[str] | Mapping[str, Any] | None = None,
    platforms: Sequence[str] | None = None,
    sources: bool = True,
    step: float = 1e-3,
    solver: str = "rk4",
    initial: Initial | None = None,
) -> Path:
    """Write a mechanism as an FMU and return its path.

    Parameters
    ----------
    inputs
        Paths of numbers that become inputs, as in `System.block`; if not given, every constant
        force and torque. `Input` laws are inputs in any case.
    outputs
        Paths of what is shown; if not given, the coordinates of every joint with their speeds, and
        position and rotation of every body.
    step, solver
        Of the diagram around it. A mechanism with rigid contacts takes own steps of this size.
    initial
        Joint coordinates and speeds that the initial state keeps, as in `System.block`; they are
        parameters such as ``main.initial_speed``.
    parameters, platforms, sources
        See `biella.fmu.exporter.export.export_fmu`.
    """
    plant = system.block(
        inputs=list_efforts(system) if inputs is None else inputs,
        outputs=list_motion(system) if outputs is None else outputs,
        mode="own_step" if any(e.is_rigid for e in system.elements) else "continuous",
        initial=initial,
    )
    diagram = Diagram(system.name, step=step, solver=solver)
    diagram.add(plant, name=_BLOCK)
    names = {}
    for port in plant.inputs:
        # A diagram's own names have no dots; the FMU's do.
        plain = port.name.replace(".", " ")
        unit = None if port.unit is None else str(port.unit)
        source = diagram.input(plain, unit=unit, default=port.default, doc=port.doc)
        diagram.connect(source, plant[port.name])
        names[plain] = port.name
    for port in plant.outputs:
        plain = port.name.replace(".", " ")
        diagram.output(plain, plant[port.name])
        names[plain] = port.name
    plan = _rename(compile_diagram(diagram), names)
    return write_fmu(diagram, plan, path, parameters, platforms, sources)


def list_efforts(system: System) -> list[str]:
    """Return the paths of every constant force and torque of a mechanism."""
    return [
        number.name
        for element in system.elements
        if element.is_load
        for number in element.numbers()
        if number.name.removeprefix(f"{element.name}.").partition(".")[0] in _EFFORTS
        and number.name.rpartition(".")[2] in (*_EFFORTS, "x", "y", "z")
    ]


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


def _rename(plan: Plan, names: Mapping[str, str]) -> Plan:
    """Give ports and parameters the names that they have in the mechanism."""
    meta = plan.meta
    prefix = f"{_BLOCK}."

    def port(item: list[Any]) -> list[Any]:
        return [names[item[0]], *item[1:]]

    (path, type_name, rate, inputs, outputs, parameters), *rest = meta["blocks"]
    assert not rest
    shortened = [[item[0].removeprefix(prefix), *item[1:]] for item in parameters]
    return plan.amended(
        parameters={},
        notes={
            "blocks": [[path, type_name, rate, inputs, outputs, shortened]],
            "inputs": [port(item) for item in meta["inputs"]],
            "outputs": [port(item) for item in meta["outputs"]],
            "dependencies": [[names[name] for name in found] for found in meta["dependencies"]],
        },
    )
