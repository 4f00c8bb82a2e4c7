"""What a diagram is made of."""

from .basic.continuous import Derivative, Integrator
from .basic.delay import Delay, TransportDelay
from .basic.discrete import DiscreteIntegrator, MovingAverage, UnitDelay, ZeroOrderHold
from .basic.expression import Expression
from .basic.function import Function
from .basic.linear import (
    FIR,
    DiscreteStateSpace,
    DiscreteTransferFunction,
    StateSpace,
    TransferFunction,
    ZeroPole,
)
from .basic.logic import Compare, Counter, Edge, Latch, Logic, MultiportSwitch, SampleHold, Switch
from .basic.lookup import Lookup1D, Lookup2D
from .basic.math import Abs, Convert, Divide, Gain, MinMax, Polynomial, Product, Sign, Sum
from .basic.noise import Noise
from .basic.nonlinear import Backlash, DeadZone, Quantizer, RateLimiter, Relay, Saturation
from .basic.playback import Playback
from .basic.routing import Demux, Mux, Selector
from .basic.sinks import Assertion, Record, Scope, Stop, Terminator
from .basic.sources import Chirp, Constant, Pulse, Ramp, Sine, Step, Time
from .bearings import (
    FiniteBearing,
    LongBearing,
    OilTemperature,
    ShortBearing,
    TiltedShortBearing,
)
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
from .core.block import AbstractBlock, NativeBlock
from .core.ports import Parameter, Port
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
from .external.asynchronous import Asynchronous
from .external.outside import Outside, RealTime
from .external.python import PythonBlock, python_block
from .multibody.pendulum import Pendulum
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
