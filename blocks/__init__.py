"""What a diagram is made of."""

from .bearings import FiniteBearing, LongBearing, ShortBearing, TiltedShortBearing
from .block import AbstractBlock, NativeBlock
from .continuous import Derivative, Integrator
from .delay import Delay, TransportDelay
from .discrete import DiscreteIntegrator, MovingAverage, UnitDelay, ZeroOrderHold
from .expression import Expression
from .function import Function
from .linear import (
    FIR,
    DiscreteStateSpace,
    DiscreteTransferFunction,
    StateSpace,
    TransferFunction,
    ZeroPole,
)
from .logic import Compare, Counter, Edge, Latch, Logic, MultiportSwitch, SampleHold, Switch
from .lookup import Lookup1D, Lookup2D
from .math import Abs, Convert, Divide, Gain, MinMax, Polynomial, Product, Sign, Sum
from .multibody.pendulum import Pendulum
from .noise import Noise
from .nonlinear import Backlash, DeadZone, Quantizer, RateLimiter, Relay, Saturation
from .playback import Playback
from .ports import Parameter, Port
from .python import PythonBlock, python_block
from .routing import Demux, Mux, Selector
from .sensors import (
    Accelerometer,
    Encoder,
    Instrument,
    LoadCell,
    ProximityPair,
    Sensor,
    TorqueMeter,
)
from .sinks import Assertion, Record, Scope, Stop, Terminator
from .sources import Chirp, Constant, Pulse, Ramp, Sine, Step, Time

__all__ = [
    "FIR",
    "Abs",
    "AbstractBlock",
    "Accelerometer",
    "Assertion",
    "Backlash",
    "Chirp",
    "Compare",
    "Constant",
    "Convert",
    "Counter",
    "DeadZone",
    "Delay",
    "Demux",
    "Derivative",
    "DiscreteIntegrator",
    "DiscreteStateSpace",
    "DiscreteTransferFunction",
    "Divide",
    "Edge",
    "Encoder",
    "Expression",
    "FiniteBearing",
    "Function",
    "Gain",
    "Instrument",
    "Integrator",
    "Latch",
    "LoadCell",
    "Logic",
    "LongBearing",
    "Lookup1D",
    "Lookup2D",
    "MinMax",
    "MovingAverage",
    "MultiportSwitch",
    "Mux",
    "NativeBlock",
    "Noise",
    "Parameter",
    "Pendulum",
    "Playback",
    "Polynomial",
    "Port",
    "Product",
    "ProximityPair",
    "Pulse",
    "PythonBlock",
    "Quantizer",
    "Ramp",
    "RateLimiter",
    "Record",
    "Relay",
    "SampleHold",
    "Saturation",
    "Scope",
    "Selector",
    "Sensor",
    "ShortBearing",
    "Sign",
    "Sine",
    "StateSpace",
    "Step",
    "Stop",
    "Sum",
    "Switch",
    "Terminator",
    "TiltedShortBearing",
    "Time",
    "TorqueMeter",
    "TransferFunction",
    "TransportDelay",
    "UnitDelay",
    "ZeroOrderHold",
    "ZeroPole",
    "python_block",
]
