"""What a diagram is made of."""

from .asynchronous import Asynchronous
from .bearings import (
    FiniteBearing,
    LongBearing,
    OilTemperature,
    ShortBearing,
    TiltedShortBearing,
)
from .block import AbstractBlock, NativeBlock
from .continuous import Derivative, Integrator
from .control import (
    PID,
    Cam,
    CamLaw,
    KalmanFilter,
    LeadLag,
    LQTracking,
    MinimumJerk,
    Notch,
    RelayTuner,
    SCurve,
    StateFeedback,
    Trapezoid,
)
from .daq import (
    ADC,
    DAC,
    AntiAliasFilter,
    Decimator,
    PWMInput,
    PWMOutput,
    Scaling,
    ScanList,
    Tachometer,
    Trigger,
)
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
from .outside import Outside, RealTime
from .playback import Playback
from .ports import Parameter, Port
from .python import PythonBlock, python_block
from .routing import Demux, Mux, Selector
from .sensors import (
    Accelerometer,
    Encoder,
    Gyroscope,
    Instrument,
    LoadCell,
    ProximityPair,
    Sensor,
    TorqueMeter,
)
from .sinks import Assertion, Record, Scope, Stop, Terminator
from .sources import Chirp, Constant, Pulse, Ramp, Sine, Step, Time

__all__ = [
    "ADC",
    "DAC",
    "FIR",
    "PID",
    "Abs",
    "AbstractBlock",
    "Accelerometer",
    "AntiAliasFilter",
    "Assertion",
    "Asynchronous",
    "Backlash",
    "Cam",
    "CamLaw",
    "Chirp",
    "Compare",
    "Constant",
    "Convert",
    "Counter",
    "DeadZone",
    "Decimator",
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
    "Gyroscope",
    "Instrument",
    "Integrator",
    "KalmanFilter",
    "LQTracking",
    "Latch",
    "LeadLag",
    "LoadCell",
    "Logic",
    "LongBearing",
    "Lookup1D",
    "Lookup2D",
    "MinMax",
    "MinimumJerk",
    "MovingAverage",
    "MultiportSwitch",
    "Mux",
    "NativeBlock",
    "Noise",
    "Notch",
    "OilTemperature",
    "Outside",
    "PWMInput",
    "PWMOutput",
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
    "RealTime",
    "Record",
    "Relay",
    "RelayTuner",
    "SCurve",
    "SampleHold",
    "Saturation",
    "Scaling",
    "ScanList",
    "Scope",
    "Selector",
    "Sensor",
    "ShortBearing",
    "Sign",
    "Sine",
    "StateFeedback",
    "StateSpace",
    "Step",
    "Stop",
    "Sum",
    "Switch",
    "Tachometer",
    "Terminator",
    "TiltedShortBearing",
    "Time",
    "TorqueMeter",
    "TransferFunction",
    "TransportDelay",
    "Trapezoid",
    "Trigger",
    "UnitDelay",
    "ZeroOrderHold",
    "ZeroPole",
    "python_block",
]
