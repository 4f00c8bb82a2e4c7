"""What a diagram is made of."""

from .block import AbstractBlock, NativeBlock
from .continuous import Integrator
from .discrete import UnitDelay
from .math import Gain, Sum
from .multibody.pendulum import Pendulum
from .ports import Parameter, Port
from .python import PythonBlock, python_block
from .sources import Constant

__all__ = [
    "AbstractBlock",
    "Constant",
    "Gain",
    "Integrator",
    "NativeBlock",
    "Parameter",
    "Pendulum",
    "Port",
    "PythonBlock",
    "Sum",
    "UnitDelay",
    "python_block",
]
