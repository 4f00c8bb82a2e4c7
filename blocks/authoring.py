"""What a new kind of block is made of: base classes, ports, parameters, rates, units."""

from .core._block import AbstractBlock, NativeBlock
from .core._ports import (
    CONSTANT,
    CONTINUOUS,
    EVERY_TICK,
    INHERITED,
    SAMPLED,
    Derived,
    Parameter,
    Port,
    PortRef,
    Rate,
    Same,
    Widths,
    parameter,
    periodic,
)
from .core._units import Unit, conversion, equivalent, format_unit, parse_unit
from .external._external_input import ExternalInput
from .external._python import PythonBlock, python_block

__all__ = [
    "CONSTANT",
    "CONTINUOUS",
    "EVERY_TICK",
    "INHERITED",
    "SAMPLED",
    "AbstractBlock",
    "Derived",
    "ExternalInput",
    "NativeBlock",
    "Parameter",
    "Port",
    "PortRef",
    "PythonBlock",
    "Rate",
    "Same",
    "Unit",
    "Widths",
    "conversion",
    "equivalent",
    "format_unit",
    "parameter",
    "parse_unit",
    "periodic",
    "python_block",
]
