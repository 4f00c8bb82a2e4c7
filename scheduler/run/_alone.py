"""A block alone as a model, for analyses that need its numbers."""

from __future__ import annotations

from collections.abc import Container

from ...blocks.core._block import AbstractBlock
from ...blocks.core._ports import Port
from ...blocks.core._units import Unit
from ..compile._compiler import compile_flat
from ..compile._flatten import FlatBlock, FlatDiagram, FlatInput, Source
from ..compile._model import Model
from ..compile.diagram._solver_options import Settings


def compile_alone(block: AbstractBlock, path: str, inputs: Container[str] = ()) -> Model:
    """Return the model of a diagram that has one block.

    Parameters
    ----------
    path
        Of the block in that diagram.
    inputs
        Names of the ports that are inputs of the diagram; the others have their defaults.
    """
    ports = [_fixed(port) for port in block.inputs if port.name in inputs]
    numbers = {port.name: -1 - n for n, port in enumerate(ports)}
    sources = tuple(
        Source(numbers[port.name], 0) if port.name in numbers else None for port in block.inputs
    )
    flat = FlatDiagram(
        (FlatBlock(path, block, -1, sources),),
        inputs=tuple(FlatInput(port.name, port, True) for port in ports),
    )
    return compile_flat(flat, Settings(path, 1e-3, "rk4"))


def _fixed(port: Port) -> Port:
    """Return the port as one of a whole diagram, where nothing is left open."""
    return Port(
        port.name,
        port.width if isinstance(port.width, int) else 1,
        port.unit if isinstance(port.unit, Unit) else None,
        port.kind if isinstance(port.kind, str) else "real",
        port.default,
    )
