"""A mechanism alone as an FMU: one block, whose ports and numbers keep their own names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy.typing as npt

from ...blocks.core._exports import Experiment, Terminals
from ...blocks.multibody import System
from ...blocks.multibody.plant._initial import Initial
from ...errors import DiagramError
from ...scheduler.compile._compiler import compile_diagram
from ...scheduler.compile._flatten import flatten
from ...scheduler.compile._rewrite import bare_parameters
from ...scheduler.compile.diagram._diagram import Diagram
from ...scheduler.run._preflight import warn_of_steps
from ._exchange import check_kind
from ._export import write_fmu
from ._options import FmuOptions, check_path

_BLOCK = "mechanism"
_EFFORTS = ("force", "torque")


def export_system(
    system: System,
    path: str | Path,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    parameters: Sequence[str] | Mapping[str, npt.ArrayLike | None] | None = None,
    platforms: Sequence[str] | None = None,
    sources: bool = True,
    step: float = 1e-3,
    solver: str = "rk4",
    initial: Initial | None = None,
    version: str = "2.0",
    kind: str = "cs",
    about: Mapping[str, str] | None = None,
    local: Sequence[str] = (),
    limits: Mapping[str, tuple[float | None, float | None]] | None = None,
    nominal: Mapping[str, float] | None = None,
    types: Mapping[str, str] | None = None,
    terminals: Terminals = True,
    reference: Experiment | Sequence[Experiment] | None = None,
) -> Path:
    """Write a mechanism as an FMU and return its path.

    Parameters
    ----------
    inputs
        Paths of numbers that become inputs, as in `System.block`; if not given, every constant
        force and torque. `Input` laws are inputs in any case.
    outputs
        Paths of the outputs; by default those of `System.block`.
    step, solver
        Step and solver of the enclosing diagram. A mechanism with rigid contacts takes internal
        steps of this size.
    initial
        Joint coordinates and speeds that the initial state keeps, as in `System.block`; they are
        parameters such as ``main.initial_speed``.
    parameters, platforms, sources, version, kind, about, local, limits, nominal, types,
    terminals, reference
        See `biella.fmu.export_fmu`.
    """
    check_kind(kind)
    check_path(path)
    options = FmuOptions(
        parameters=parameters,
        platforms=platforms,
        sources=sources,
        version=version,
        kind=kind,
        about=about,
        local=local,
        limits=limits,
        nominal=nominal,
        types=types,
        terminals=terminals,
        reference=reference,
    )
    plant = system.block(
        inputs=list_efforts(system) if inputs is None else inputs,
        outputs=outputs,
        mode="internal" if any(e.is_rigid for e in system.elements) else "continuous",
        initial=initial,
    )
    diagram = _DottedDiagram(system.name, step=step, solver=solver)
    diagram.add(plant, name=_BLOCK)
    for port in plant.inputs:
        unit = None if port.unit is None else str(port.unit)
        source = diagram.input(port.name, unit=unit, default=port.default, doc=port.doc)
        diagram.connect(source, plant[port.name])
    for port in plant.outputs:
        diagram.output(port.name, plant[port.name])
    flat = bare_parameters(flatten(diagram), _BLOCK)
    model = compile_diagram(diagram, flat=flat)
    if kind != "me":
        warn_of_steps(model, stacklevel=2)
    return write_fmu(diagram, model, path, options)


class _DottedDiagram(Diagram):
    """A diagram whose inputs and outputs have the names that they have in a mechanism."""

    def _claim_name(self, name: str, among: Mapping[str, object] | None = None) -> None:
        super()._claim_name(name.replace(".", "_"), among={})
        if name in (self.blocks if among is None else among):
            raise DiagramError(f"the name `{name}` is already used in {self.name!r}.")


def list_efforts(system: System) -> list[str]:
    """Return the paths of every constant force and torque of a mechanism."""
    return [
        number.name
        for element in system.elements
        if element.is_load
        for number in element.parameters()
        if number.name.removeprefix(f"{element.name}.").partition(".")[0] in _EFFORTS
        and number.name.rpartition(".")[2] in (*_EFFORTS, "x", "y", "z")
    ]
