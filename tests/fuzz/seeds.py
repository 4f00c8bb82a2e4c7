"""Write the seeds of the fuzz corpus: small plans that together use every block and every solver.

python tests/fuzz/seeds.py
"""

from __future__ import annotations

import hashlib
import random
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import seeds_exchange
import seeds_fmi3

from biella import Diagram, Subsystem
from biella.blocks import bearings, control, daq, sensors
from biella.blocks.basic.dynamics import _continuous as continuous
from biella.blocks.basic.dynamics import _delay as delay
from biella.blocks.basic.dynamics import _discrete as discrete
from biella.blocks.basic.dynamics import _linear as linear
from biella.blocks.basic.dynamics import _second_order as second_order
from biella.blocks.basic.math import _expression as expression
from biella.blocks.basic.math import _function as function
from biella.blocks.basic.math import _lookup as lookup
from biella.blocks.basic.math import _math as arithmetic
from biella.blocks.basic.math import _nonlinear as nonlinear
from biella.blocks.basic.routing import _logic as logic
from biella.blocks.basic.routing import _routing as routing
from biella.blocks.basic.routing import _sinks as sinks
from biella.blocks.basic.sources import _noise as noise
from biella.blocks.basic.sources import _playback as playback
from biella.blocks.basic.sources import _sources as sources
from biella.blocks.core._block import AbstractBlock, NativeBlock
from biella.blocks.core._ports import CONTINUOUS, EVERY_TICK, Port, parameter
from biella.blocks.external import _external_input as external_input
from biella.blocks.external._python import PythonBlock
from biella.blocks.machines._state_machine import StateMachine
from biella.blocks.multibody import (
    Bore,
    CamProfile,
    Capsule,
    Cylinder,
    ForcePropagation,
    HoleProfile,
    HuntCrossley,
    Input,
    InverseDynamics,
    Jacobian,
    Joint,
    LankaraniNikravesh,
    MassMatrix,
    PinProfile,
    Plane,
    RigidContact,
    Socket,
    Sphere,
    Table,
    Wear,
    mechanisms,
)
from biella.blocks.multibody._pendulum import Pendulum
from biella.blocks.multibody.elements.contact._contact import PAIRS as CONTACT_PAIRS
from biella.blocks.multibody.plant._outputs import list_outputs
from biella.blocks.multibody.plant._plant import Plant
from biella.blocks.multibody.plant._tree import grow_tree
from biella.blocks.multibody.system._system import System
from biella.scheduler.compile.diagram._solver_options import SOLVERS
from biella.scheduler.compile.plan._plan import Plan, read_arrays, write_sections
from biella.scheduler.engine._library import contract

HERE = Path(__file__).parent
STEP = 1e-3
F, G, H = [[0.5, 0.1], [-0.2, 0.4]], [0.0, 1.0], [1.0, 0.0]
"""A small plant."""
NOISY = sensors.Instrument(
    full_scale=1.0,
    nonlinearity=[(-1.0, 0.01), (0.0, 0.0), (1.0, 0.02)],
    hysteresis=0.01,
    bandwidth=200.0,
    order=2,
    noise=0.1,
    random_walk=0.1,
    resolution=0.01,
    limits=(-0.9, 0.9),
    stuck_value=0.5,
)


class Plain(PythonBlock):
    """Without a host, these three are refused when they start."""

    def __init__(self) -> None:
        super().__init__(inputs=["u"], outputs=["y"])

    def output(self, t: float, x: object, u: float) -> float:
        return u


class Continuous(PythonBlock):
    """A lag."""

    def __init__(self) -> None:
        super().__init__(inputs=["u"], outputs=["y"], state=[0.0], feedthrough=False)

    def output(self, t: float, x: list[float], u: float) -> float:
        return x[0]

    def derivative(self, t: float, x: list[float], u: float) -> float:
        return u - x[0]


class Discrete(PythonBlock):
    """A unit delay."""

    def __init__(self) -> None:
        super().__init__(inputs=["u"], outputs=["y"], state=[0.0], feedthrough=False)

    def output(self, t: float, x: list[float], u: float) -> float:
        return x[0]

    def update(self, t: float, x: list[float], u: float) -> float:
        return u


class OwnStep(PythonBlock):
    """A block that takes its internal solver elsewhere."""

    def __init__(self, rollback: bool = False) -> None:
        super().__init__(inputs=["u"], outputs=["y"], period=STEP)
        self.kernel = "python_internal_rollback" if rollback else "python_internal"

    def output(self, t: float, x: object, u: float) -> float:
        return u


class Hosted(NativeBlock):
    """The engine's side of an external FMU: a real and a boolean in and out, two parameters."""

    def __init__(self, rollback: bool) -> None:
        self.kernel = "fmu2_rollback" if rollback else "fmu2"
        inputs = [0, 0, 1, 1, 2, 0]  # reference, type, whether an output depends on it
        outputs = [2, 0, -1, 2]  # reference, type
        parameters = [3, 0, 1, 4, 1, 0]  # reference, type, whether it is always set
        super().__init__(
            inputs=[Port("u"), Port("b", kind="boolean", default=1.0)],
            outputs=[Port("y"), Port("c", kind="boolean")],
            parameters=[parameter("k", [1.0, 2.0]), parameter("own", [1.0, 3.0], hidden=True)],
            rate=EVERY_TICK,
            feedthrough=[("y", "u")],
            integers=[3 * rollback, 2, 2, 1, 0, 11, 12, *inputs, *outputs, *parameters],
        )


class HostedArrays(NativeBlock):
    """The same for FMI 3.0: arrays of two, a discrete 64-bit integer, a structural parameter."""

    def __init__(self, rollback: bool) -> None:
        self.kernel = "fmu3_rollback" if rollback else "fmu3"
        continued, held = contract.HOST_CONTINUES, contract.HOST_DISCRETE
        wide, size = contract.HOST_INT64, contract.HOST_UINT64
        inputs = [0, 0, 1, 0, continued, 1, 1, wide | held, 0]
        outputs = [2, 0, 2, continued, 3, contract.HOST_INT8]
        parameters = [4, 0, 1, 4, continued, 1, 5, size, contract.HOST_STRUCTURAL]
        flags = contract.HOST_HAS_EVENTS | contract.HOST_IS_CONFIGURED | 3 * rollback
        super().__init__(
            inputs=[Port("u", 2), Port("n", kind="integer", default=1.0)],
            outputs=[Port("y", 2), Port("m", kind="integer")],
            parameters=[
                parameter("k", [1.0, 2.0, 2.0]),
                parameter("own", [1.0, 3.0, 2.0], hidden=True),
            ],
            rate=EVERY_TICK,
            feedthrough=[("y", "u")],
            integers=[flags, 2, 3, 2, 0, 11, 12, *inputs, *outputs, *parameters],
        )


class HostedExchange(NativeBlock):
    """The same for model exchange: two states, two event indicators, a discrete input."""

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        inputs = [0, 0, 1, 1, contract.HOST_BOOLEAN | contract.HOST_DISCRETE, 0]
        super().__init__(
            inputs=[Port("u"), Port("b", kind="boolean", default=1.0)],
            outputs=[Port("y")],
            parameters=[parameter("k", 1.0), parameter("own", 1.0, hidden=True)],
            rate=CONTINUOUS,
            feedthrough=[("y", "u")],
            states=2,
            integers=[3, 1, 1, 1, 2, 11, 12, *inputs, 2, 0, 3, 0, 1],
        )


# Sample times of those that are not added with their own rate.
RATES: dict[str, dict[str, Any]] = {
    "time": {"period": 2e-3},
    "noise": {"period": 1e-3},
    "noise uniform": {"period": 2e-3},
    "delay": {"period": 1e-3},
    "unit delay": {"period": 2e-3},
    "zero order hold": {"period": 2e-3},
    "discrete integrator": {"period": 1e-3},
    "discrete integrator trapezoidal": {"period": 2e-3, "offset": 1e-3},
    "moving average": {"period": 1e-3},
    "relay tuner": {"period": 1e-3},
    "state feedback": {"period": 1e-3},
}

# (width of the inputs, how to make the block): each kernel and each of its modes once.
BLOCKS: dict[str, tuple[int, Callable[[], AbstractBlock]]] = {
    "constant": (1, lambda: sources.Constant([1.0, 2.0])),
    "time": (1, lambda: sources.Time()),
    "step": (1, lambda: sources.Step([0.0, 2e-3], [1.0, 2.0])),
    "ramp": (1, lambda: sources.Ramp(2.0, 1e-3)),
    "sine": (1, lambda: sources.Sine(1.0, [50.0, 90.0])),
    "pulse": (1, lambda: sources.Pulse(4e-3, 0.5)),
    "chirp": (1, lambda: sources.Chirp(1.0, 9.0, 1.0, method="logarithmic")),
    "chirp linear": (1, lambda: sources.Chirp(1.0, 9.0, 2e-3)),
    "noise": (1, lambda: noise.Noise(1.0, width=3)),
    "noise uniform": (1, lambda: noise.Noise(density=0.1, distribution="uniform")),
    "playback": (1, lambda: playback.Playback([0.0, 1e-3, 4e-3], [1.0, 2.0, 0.0])),
    "playback repeat": (
        1,
        lambda: playback.Playback([0.0, 1e-3, 3e-3], np.eye(3), interpolation="hold", end="repeat"),
    ),
    "playback stop": (1, lambda: playback.Playback([0.0, 3e-3], [1.0, 2.0], end="stop")),
    "playback zero": (1, lambda: playback.Playback([1e-3, 3e-3], [1.0, 2.0], end="zero")),
    "gain": (2, lambda: arithmetic.Gain([1.0, 2.0])),
    "gain matrix": (2, lambda: arithmetic.Gain([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])),
    "sum": (2, lambda: arithmetic.Sum("+-+")),
    "product": (2, lambda: arithmetic.Product("*/*")),
    "divide": (1, lambda: arithmetic.Divide()),
    "abs": (2, lambda: arithmetic.Abs()),
    "sign": (2, lambda: arithmetic.Sign()),
    "min": (2, lambda: arithmetic.MinMax("min", 3)),
    "max": (1, lambda: arithmetic.MinMax("max", 2)),
    "polynomial": (2, lambda: arithmetic.Polynomial([1.0, 2.0, 3.0])),
    "convert": (2, lambda: arithmetic.Convert("integer")),
    "convert boolean": (2, lambda: arithmetic.Convert("boolean")),
    "saturation": (2, lambda: nonlinear.Saturation(-0.5, [0.5, 0.6])),
    "dead zone": (2, lambda: nonlinear.DeadZone(-0.5, 0.5)),
    "quantizer": (2, lambda: nonlinear.Quantizer(0.25)),
    "relay": (2, lambda: nonlinear.Relay(0.5, -0.5)),
    "rate limiter": (2, lambda: nonlinear.RateLimiter(5.0)),
    "rate limiter initial": (1, lambda: nonlinear.RateLimiter(5.0, 3.0, 0.5)),
    "backlash": (2, lambda: nonlinear.Backlash(0.2)),
    "function": (2, lambda: function.Function("sin")),
    "function two": (1, lambda: function.Function("atan2")),
    "lookup 1d": (2, lambda: lookup.Lookup1D([-1.0, 0.0, 1.0], [1.0, 0.0, 1.0])),
    "lookup 1d rows": (
        1,
        lambda: lookup.Lookup1D([-1.0, 0.0, 1.0], np.eye(3), interpolation="nearest"),
    ),
    "lookup 1d events": (
        2,
        lambda: lookup.Lookup1D(
            [-1.0, 0.0, 1.0], [1.0, 0.0, 1.0], interpolation="nearest", events=True
        ),
    ),
    "lookup 2d events": (
        2,
        lambda: lookup.Lookup2D(
            [-1.0, 0.0, 1.0], [0.0, 1.0], [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]], events=True
        ),
    ),
    "lookup 1d extended": (
        1,
        lambda: lookup.Lookup1D([0.0, 0.1], [0.0, 1.0], extrapolation="linear"),
    ),
    "lookup 1d error": (
        1,
        lambda: lookup.Lookup1D(
            [0.0, 0.5], [0.0, 1.0], interpolation="previous", extrapolation="error"
        ),
    ),
    "lookup 2d": (2, lambda: lookup.Lookup2D([0.0, 1.0], [0.0, 1.0, 2.0], np.ones((2, 3)))),
    "expression": (
        1,
        lambda: expression.Expression(
            "a*sin(b) + clip(t, 0, k)**2 % 3 // 2", parameters={"k": 2.0}
        ),
    ),
    "expression logic": (1, lambda: expression.Expression("(a if 0 < b <= 1 else -b) + max(a, b)")),
    "compare": (2, lambda: logic.Compare("<", 0.2)),
    "compare two": (1, lambda: logic.Compare("==")),
    "logic": (2, lambda: logic.Logic("xor", 3)),
    "logic not": (1, lambda: logic.Logic("not")),
    "switch": (2, lambda: logic.Switch()),
    "multiport switch": (2, lambda: logic.MultiportSwitch(3)),
    "edge": (2, lambda: logic.Edge("either")),
    "counter": (1, lambda: logic.Counter(0, upper=3, lower=0, wrap=True)),
    "counter level": (1, lambda: logic.Counter(5, edge="level", step=-2, lower=0)),
    "sample hold": (2, lambda: logic.SampleHold([1.0, 2.0], edge="rising")),
    "latch": (2, lambda: logic.Latch()),
    "integrator": (2, lambda: continuous.Integrator([1.0, 2.0])),
    "integrator limits": (
        2,
        lambda: continuous.Integrator(0.0, limits=(-1e-3, 1e-3), reset="rising", state_port=True),
    ),
    "integrator port": (1, lambda: continuous.Integrator(initial_port=True, reset="level")),
    "second order integrator": (2, lambda: second_order.SecondOrderIntegrator(0.5)),
    "second order integrator limits": (
        2,
        lambda: second_order.SecondOrderIntegrator(
            1e-4, -1.0, limits=(0.0, 1e-3), velocity_limits=(-2.0, 2.0), restitution=0.5
        ),
    ),
    "second order integrator reset": (
        1,
        lambda: second_order.SecondOrderIntegrator(limits=(0.0, 1e-3), reset="either"),
    ),
    "derivative": (2, lambda: continuous.Derivative(0.01)),
    "derivative initial": (1, lambda: continuous.Derivative(0.01, initial=0.5)),
    "delay": (2, lambda: delay.Delay(3)),
    "transport delay": (2, lambda: delay.TransportDelay(2.5e-3)),
    "state space": (2, lambda: linear.StateSpace(-np.eye(2), np.eye(2), np.eye(2), np.eye(2))),
    "transfer function": (1, lambda: linear.TransferFunction([1.0, 2.0], [1.0, 3.0, 2.0])),
    "zero pole": (1, lambda: linear.ZeroPole([-1.0], [-2.0, -3.0], 2.0)),
    "discrete state space": (
        1,
        lambda: linear.DiscreteStateSpace([[0.5]], [[1.0]], [[1.0]], period=2e-3),
    ),
    "discrete transfer function": (
        1,
        lambda: linear.DiscreteTransferFunction([1.0, 0.5], [1.0, -0.5], period=1e-3),
    ),
    "fir": (2, lambda: linear.FIR([0.5, 0.3, 0.2], period=1e-3)),
    "unit delay": (2, lambda: discrete.UnitDelay([1.0, 2.0])),
    "zero order hold": (2, lambda: discrete.ZeroOrderHold()),
    "discrete integrator": (2, lambda: discrete.DiscreteIntegrator(limits=(0.0, 1.0))),
    "discrete integrator trapezoidal": (
        1,
        lambda: discrete.DiscreteIntegrator("trapezoidal"),
    ),
    "moving average": (2, lambda: discrete.MovingAverage(3)),
    "mux": (2, lambda: routing.Mux(3)),
    "demux": (4, lambda: routing.Demux([1, 3])),
    "selector": (4, lambda: routing.Selector([3, 0, 0])),
    "scope": (1, lambda: sinks.Scope(2)),
    "terminator": (2, lambda: sinks.Terminator()),
    "assertion": (1, lambda: sinks.Assertion("too large")),
    "stop": (1, lambda: sinks.Stop("enough")),
    "pendulum": (1, lambda: Pendulum(angle=0.5)),
    "python": (1, Plain),
    "python continuous": (1, Continuous),
    "python discrete": (1, Discrete),
    "python own step": (1, OwnStep),
    "python own step rollback": (1, lambda: OwnStep(True)),
    "fmu": (1, lambda: Hosted(False)),
    "fmu rollback": (1, lambda: Hosted(True)),
    "fmu3": (2, lambda: HostedArrays(False)),
    "fmu3 rollback": (2, lambda: HostedArrays(True)),
    "fmu exchange": (1, lambda: HostedExchange("fmu2_exchange")),
    "fmu exchange steps": (1, lambda: HostedExchange("fmu2_exchange_steps")),
    "fmu3 exchange": (1, lambda: HostedExchange("fmu3_exchange")),
    "fmu3 exchange steps": (1, lambda: HostedExchange("fmu3_exchange_steps")),
    "short bearing": (1, lambda: bearings.ShortBearing(20.0, 10.0, 1.5, 1.0)),
    "warm bearing": (1, lambda: bearings.ShortBearing(20.0, 10.0, 1.5, 1.0, viscosity_input=True)),
    "oil vogel": (
        1,
        lambda: bearings.OilTemperature(bearings.Vogel(1.0, 2.0, 3.0), heat_capacity=1.0),
    ),
    "oil walther": (
        1,
        lambda: bearings.OilTemperature(
            bearings.Walther((313.0, 46e-6), (373.0, 7e-6), 870.0), heat_capacity=1.0
        ),
    ),
    "tilted bearing": (1, lambda: bearings.MisalignedShortBearing(20.0, 10.0, 1.5, 1.0)),
    "long bearing": (1, lambda: bearings.LongBearing(20.0, 10.0, 1.5, 1.0, contact=None)),
    "finite bearing": (1, lambda: bearings.FiniteBearing(20.0, 10.0, 1.5, 1.0, cells=(8, 4))),
    "finite bearing gumbel": (
        1,
        lambda: bearings.FiniteBearing(
            20.0,
            10.0,
            1.5,
            1.0,
            cells=(8, 2),
            cavitation="gumbel",
            tilt=True,
            grooves=[(1, 0.9)],
            feeds=[bearings.Hole(3.0, 1.0, 2.0)],
        ),
    ),
    "finite bearing jfo": (
        1,
        lambda: bearings.FiniteBearing(
            20.0,
            10.0,
            1.5,
            1.0,
            cells=(8, 4),
            cavitation="jfo",
            feeds=[bearings.Pocket(3.0, 1.0, 2.0, length=4.0)],
            bush=bearings.lobes(2, 0.5),
        ),
    ),
    "finite bearing jfo steady": (
        1,
        lambda: bearings.FiniteBearing(
            20.0,
            10.0,
            1.5,
            1.0,
            cells=(8, 2),
            cavitation="jfo_steady",
            tilt=True,
            grooves=[(1, 0.9)],
        ),
    ),
    "adc": (2, lambda: daq.ADC(8, (-2, 2), inl=[0, 1, -1, 0], dnl=0.5, jitter=1e-4, period=2e-3)),
    "adc at ticks": (1, lambda: daq.ADC(12, unit="1")),
    "scan": (1, lambda: daq.ScanList([1, 0], 3e-3, skew=7e-4, range=(-2, 2))),
    "dac": (1, lambda: daq.DAC(4, (-2, 2), dnl=0.3, inl=0.2)),
    "anti-alias filter": (2, lambda: daq.AntiAliasFilter(50.0, 3)),
    "elliptic filter": (1, lambda: daq.AntiAliasFilter(50.0, 4, design="elliptic")),
    "decimator": (2, lambda: daq.Decimator(2, taps=3)),
    "external_input": (
        1,
        lambda: external_input.ExternalInput([Port("u")], [Port("a"), Port("b", 2)]),
    ),
    "tachometer": (1, lambda: daq.Tachometer(2, 0.1, average=2, clock=1e5, period=1e-3)),
    "trigger": (1, lambda: daq.Trigger(0.1, pre=1, post=2, hysteresis=0.01)),
    "window": (1, lambda: daq.Trigger((-0.5, 0.5), "enter", pre=0, post=2)),
    "pwm": (2, lambda: daq.PWMOutput(300.0, counts=10)),
    "pwm centered": (1, lambda: daq.PWMOutput(300.0, edges="tick", align="center")),
    "pwm input": (1, lambda: daq.PWMInput(clock=1e4, timeout=0.01)),
    "pid": (1, lambda: control.PID(2.0, 90.0, 0.01, limits=(-1, 1), rate_limit=90.0, period=1e-3)),
    "pid schedule": (1, lambda: control.PID([1, 2], 90.0, 0.01, schedule=[-1, 1], period=1e-3)),
    "relay tuner": (1, lambda: control.RelayTuner(1.0, 0.1, cycles=1)),
    "pid tustin": (
        1,
        lambda: control.PID(
            k=2.0, ti=0.1, td=0.1, method="tustin", anti_windup="back-calculation", period=2e-3
        ),
    ),
    "state feedback": (1, lambda: control.StateFeedback([1, 2], [3], limits=(-1, 1))),
    "kalman filter": (1, lambda: control.KalmanFilter(F, G, H, [0.5], Q=1, R=1, period=1e-3)),
    "kalman prediction": (1, lambda: control.KalmanFilter(F, None, H, Q=1, R=1, form="prediction")),
    "kalman varying": (1, lambda: control.KalmanFilter(F, G, np.eye(2), Q=1, R=1, covariance=2)),
    "kalman bucy": (1, lambda: control.KalmanFilter(F, G, H, Q=1, R=1, continuous=True)),
    "lq tracking": (1, lambda: control.LQTracking(F, G, H, [0, 0.1], [0, 1], Q=1, R=1, points=5)),
    "lq tracking sampled": (
        1,
        lambda: control.LQTracking(F, G, H, 0.0, [0, 1, 0, 2], Q=1, R=1, period=2e-3),
    ),
    "motion": (1, lambda: control.SCurve(0.01, 1.0, 90.0, 9e3)),
    "motion triggered": (1, lambda: control.CamLaw("modified sine", 1.0, 0.01, trigger=True)),
    "cam": (1, lambda: control.Cam([("cycloidal", np.pi, 1.0), ("3-4-5", np.pi, -1.0)])),
    "sensor": (2, lambda: sensors.Sensor(NOISY, channels=2, faults="each")),
    "sensor late": (1, lambda: sensors.Sensor(replace(NOISY, order=1, latency=2.5e-3))),
    "load cell": (1, lambda: sensors.LoadCell(None, 2, 1, crosstalk=np.eye(3))),
    "accelerometer": (1, lambda: sensors.Accelerometer(gravity=(0, 0, -9.81))),
    "proximity": (1, lambda: sensors.ProximityPair(None, 1.0, radius=0.7, runout=[0, 0.1])),
    "encoder": (1, lambda: sensors.Encoder(8, edge_error=0.3, eccentricity=0.1, window=2)),
    "encoder period": (
        1,
        lambda: sensors.Encoder(
            60, decoding=1, method="period", direction=False, latency=2e-3, clock=1e5
        ),
    ),
    "encoder both": (1, lambda: sensors.Encoder(400, method="both", window=3, fastest=1e5)),
}


def driven_pivot() -> System:
    """Return a bob on a joint that two drivers move, at a marker that moves by a law."""
    s = System("driven pivot")
    bob = s.body("bob", mass=1.0, inertia=0.1, position=(0, 0, -1))
    axis = (0, 1, 0)
    pivot = s.ground.marker("pivot", axis=axis, motion={"x": "0.1 * sin(3 * t)"})
    joint = s.cylindrical("pin", pivot, bob.marker("pin", (0, 0, 1), axis=axis))
    s.driver("push", joint, "0.2 * t", coordinate=0)
    s.driver("turn", joint, "t", coordinate=1)
    return s


def lubricated() -> System:
    """Return two bodies with a short and a tilted film, of sizes that fuzzed numbers reach."""
    s = System("lubricated")
    shaft = s.body("shaft", mass=1.0, inertia=0.1, angular_velocity=(0, 0, 5.0))
    housing = s.body("housing", mass=1.0, inertia=0.1)
    s.revolute("hinge", s.ground, housing, at=(0, 0, 1), axis=(0, 1, 0))
    size = (20.0, 10.0, 1.5, 1.0)
    s.bearing("film", shaft.marker("a"), housing.marker("a"), bearings.ShortBearing(*size))
    tilted = bearings.MisalignedShortBearing(*size, contact=None)
    s.bearing("film_b", shaft.marker("b"), s.ground.marker("b"), tilted)
    return s


def loose() -> System:
    """Return a ball and a rod in holes, of sizes that fuzzed numbers reach."""
    s = System("loose", planar=True)
    ball = s.body("ball", mass=1.0, inertia=0.1, velocity=(1.0, 0.5), angular_velocity=2.0)
    rod = s.body("rod", mass=1.0, inertia=0.1, position=(1.0, 0.0))
    s.revolute("hinge", s.ground, rod, at=(2.0, 0.0))
    sizes: dict[str, Any] = {"clearance": 0.5, "pin_radius": 1.0}
    hunt = HuntCrossley(stiffness=50.0, damping=0.5, friction=0.3)
    wear = Wear(coefficient=0.1, hardness=1.0, length=1.0, sections=36, pin_coefficient=0.2)
    s.clearance_revolute(
        "play", ball.marker("a"), rod.marker("a"), contact=hunt, wear=wear, **sizes
    )
    law = LankaraniNikravesh(stiffness=50.0, restitution=0.5)
    s.clearance_revolute("play_b", ball.marker("b"), s.ground.marker("b"), contact=law, **sizes)
    return s


def touching() -> System:
    """Return shapes of every pair, of sizes that fuzzed numbers reach."""
    s = System("touching")
    law = HuntCrossley(stiffness=50.0, damping=0.5, friction=0.3)
    kept = LankaraniNikravesh(stiffness=50.0, restitution=0.5)
    where = [(float(n), 0.1, 1.0) for n in range(3)]
    bodies = [s.body(f"b{n}", mass=1.0, inertia=1.0, position=where[n], velocity=(0.5, 0, -1.0),
                     angular_velocity=(1, 2, 3), free=True) for n in range(3)]  # fmt: skip
    radii = [1.0, 1.1, 1.0, 0.9, 1.0, 1.1, 1.0, 0.9]
    shape: dict[str, Callable[..., Any]] = {
        "sphere": lambda m: Sphere(m, 0.5), "capsule": lambda m: Capsule(m, 0.5, 1.0),
        "cylinder": lambda m: Cylinder(m, 0.5, 1.0), "plane": Plane,
        "socket": lambda m: Socket(m, 1.0), "bore": lambda m: Bore(m, 1.0, 2.0),
        "hole": lambda m: HoleProfile(m, radii), "pin": lambda m: PinProfile(m, [0.5, 0.6] * 4),
        "cam": lambda m: CamProfile(m, radii),
    }  # fmt: skip
    wear = Wear(coefficient=0.1, hardness=1.0, length=1.0, sections=72, pin_coefficient=0.1)
    worn = [kinds for kinds, pair in CONTACT_PAIRS.items() if pair.worn_places]
    for n, (first, second) in enumerate([*CONTACT_PAIRS, *worn]):
        body = bodies[n % 3]
        other = bodies[(n + 1) % 3] if n % 2 else s.ground
        shapes = shape[first](body.marker(f"m{n}")), shape[second](other.marker(f"m{n}"))
        s.contact(
            f"touch{n}",
            *(shapes[::-1] if n % 3 == 1 else shapes),
            law=kept if n % 4 else law,
            wear=wear if n >= len(CONTACT_PAIRS) else None,
        )
    return s


def joint_friction() -> System:
    """Return a loop whose joints of three kinds rub, one of them where it is cut."""
    s = System("rubbing")
    shaft = s.body("shaft", mass=1.0, inertia=0.1, velocity=(1, 0, 0), angular_velocity=(3, 0, 0))
    block = s.body("block", mass=1.0, inertia=0.1, position=(0, 1, 0), velocity=(1, 0, 0))
    hand = s.body("hand", mass=1.0, inertia=0.1, position=(1, 1, 0))
    bush = s.cylindrical("bush", s.ground, shaft, at=(0, 0, 0), axis=(1, 0, 0))
    rail = s.prismatic("rail", s.ground, block, at=(0, 1, 0), axis=(1, 0, 0))
    s.spherical("ball", shaft, hand, at=(1, 0.4, 0.8))
    hinge = s.revolute("hinge", block, hand, at=(0.5, 1, 0), axis=(0.3, 0.5, 1))
    s.torque("motor", bush, 1.0)
    size: dict[str, Any] = {"coefficient": 0.02, "diameter": 1.0, "length": 2.0}
    for joint in (bush, rail, hinge):
        s.friction(f"rub_{joint.name}", joint, **size)
    return s


def balls() -> System:
    """Return a loop with friction in ball and universal joints, and a body held by its e1."""
    s = System("balls")
    crank = s.body("crank", mass=1.0, inertia=0.1, position=(1, 0, 0), angular_velocity=(0, 0, 3))
    rod = s.body("rod", mass=1.0, inertia=0.1, position=(1, 1, 0))
    arm = s.body("arm", mass=1.0, inertia=0.1, position=(1, 2, 1))
    s.revolute("main", s.ground, crank, at=(0, 0, 0), axis=(0, 0, 1))
    s.revolute("end", s.ground, arm, at=(0, 2, 0), axis=(1, 0.1, 0.2))
    ends = crank.marker("p", motion={"x": "0*t"}), rod.marker("p", (0, -1, 0))
    cut = s.spherical("cut", *ends)
    cross = s.universal("cross", rod, arm, at=(1, 2, 0), axis=[(1, 0, 0), (0, 0, 1)])
    free = s.body("free", mass=1.0, inertia=0.1, angular_velocity=(1, 2, 3))
    ball = s.spherical("ball", s.ground, free, at=(0.1, 0, 0))
    s.friction("rub", cut, coefficient=0.02, diameter=1.0)
    s.friction("first", cross, coordinate=0, coefficient=0.02, diameter=1.0, length=2.0)
    grip: dict[str, Any] = {"coefficient": 0.02, "static": 0.03, "diameter": 1.0, "length": 2.0}
    s.friction("second", cross, coordinate=1, **grip)
    s.friction("given", ball, viscous=0.1, coulomb=0.2)
    s.friction("worn", ball, coefficient="0.1 + v/(1 + N)", diameter=0.2)
    s.constraint("turned", "free.e1 - t*free.e0*free.e2")
    return s


def rattling() -> System:
    """Return a bar with rigid contacts at both ends, one of them in a body that swings."""
    s = System("rattling", planar=True)
    bar = s.body("bar", mass=1.0, inertia=0.1, velocity=(1.0, 0.5), angular_velocity=2.0)
    arm = s.body("arm", mass=1.0, inertia=0.1, position=(1.0, 0.0))
    s.revolute("hinge", s.ground, arm, at=(2.0, 0.0))
    sizes: dict[str, Any] = {"clearance": 0.5, "pin_radius": 1.0}
    hard = RigidContact(restitution=0.5, tangential_restitution=0.5, friction=0.3)
    s.clearance_revolute(
        "play", bar.marker("a", (1.0, 0.0)), arm.marker("a"), contact=hard, **sizes
    )
    soft = RigidContact(restitution=0.0)
    post = s.ground.marker("b", (-1.0, -0.5))
    s.clearance_revolute("play_b", bar.marker("b", (-1.0, 0.0)), post, contact=soft, **sizes)
    return s


def rattling_shapes() -> System:
    """Return rigid shapes of every pair that can be rigid, of sizes that fuzzed numbers reach."""
    s = System("rattling shapes")
    law = RigidContact(restitution=0.5, tangential_restitution=0.5, friction=0.3)
    where = [(0.0, 0.01, 0.02), (30.0, 0.0, 0.6), (0.0, 30.0, 2.0)]
    inner, lower, upper = (
        s.body(f"b{n}", mass=1.0, inertia=1.0, position=at, velocity=(0.5, 0, -1.0),
               angular_velocity=(0.1, 0.2, 3), free=True) for n, at in enumerate(where)
    )  # fmt: skip
    radii = [1.0, 1.1, 1.2, 1.1, 1.0, 0.95, 0.9, 0.95]
    shape: dict[str, Callable[..., Any]] = {
        "sphere": lambda m: Sphere(m, 0.5), "capsule": lambda m: Capsule(m, 0.5, 1.0),
        "cylinder": lambda m: Cylinder(m, 0.9, 4.0), "plane": Plane,
        "socket": lambda m: Socket(m, 1.0), "bore": lambda m: Bore(m, 1.0, 2.0),
        "cam": lambda m: CamProfile(m, radii),
    }  # fmt: skip
    for n, ((first, second), pair) in enumerate(CONTACT_PAIRS.items()):
        if pair.rigid == 0:
            continue
        nested = second in ("socket", "bore")
        body, other = (inner, s.ground) if nested else (upper, lower)
        if second == "plane":
            body, other = lower, s.ground
        marker = other.marker(f"m{n}", (30.0, 0.0, -6.0) if second == "plane" else (0.0, 0.0, 0.0))
        shapes = shape[first](body.marker(f"m{n}")), shape[second](marker)
        s.contact(f"touch{n}", *(shapes[::-1] if n % 3 == 1 else shapes), law=law)
    return s


def held_journal() -> System:
    """Return a crank and a rod whose pin is a film that rows hold, of a size numbers reach."""
    s = System("held", planar=True)
    crank = s.body("crank", mass=1.0, inertia=0.1, angular_velocity=2.0)
    rod = s.body("rod", mass=1.0, inertia=0.1, position=(1.0, 0.0))
    s.revolute("main", s.ground, crank, at=(0, 0))
    film = bearings.ShortBearing(20.0, 10.0, 1.5, 1.0, squeeze=False)
    seat, big = crank.marker("pin", (1.0, 0.0)), rod.marker("big")
    s.bearing("film", big, seat, film, coupling="constraint", load_axes="bush")
    return s


def sticking() -> System:
    """Return joints that stick, in a loop and on a belt, an end stop and laws with kinks."""
    s = mechanisms.four_bar()
    joints = {joint.name: joint for joint in s.joints}
    s.friction("dry", cast(Joint, s["foot0"]), coulomb=1.0, static=2.0, viscous=0.1)
    s.torque("motor", joints["foot0"], "max(0, 3 * sin(9 * t)) + (t > 0.01) * 2")
    (cut,) = (joint for joint in grow_tree(s).cuts if joint.coordinates)
    s.stop("stop", cut, lower=-0.1, upper=0.1, stiffness=50.0, damping=1.0)
    band = s.body("band", mass=1.0, inertia=0.1, position=(3.0, 0.0), velocity=(0.5, 0.0))
    load = s.body("load", mass=1.0, inertia=0.1, position=(3.0, 0.0), velocity=(0.5, 0.0))
    run = s.prismatic("run", s.ground, band, at=(3.0, 0.0), axis=(1, 0))
    s.driver("belt", run, Table([0.0, 0.002, 1.0], [0.0, 0.001, 0.5]))
    slide = s.prismatic("slide", band, load, at=(3.0, 0.0), axis=(1, 0))
    s.friction("drag", slide, coulomb=0.5, static=1.0)
    s.force("push", slide, Input("x"))
    return s


def gripping() -> System:
    """Return a loop whose joints stick by their reactions, with given and smoothed friction."""
    s = mechanisms.four_bar()
    joints = {joint.name: joint for joint in s.joints}
    rubbing = [joint for joint in s.joints if joint.coordinates][:4]
    for n, joint in enumerate(rubbing):
        if n == 3:
            s.friction("smooth", joint, coefficient=0.1, diameter=0.1)
        else:
            s.friction(f"grip{n}", joint, coefficient=0.1, static=0.2, diameter=0.1)
    s.torque("motor", joints["foot0"], "max(0, 3 * sin(900 * t)) - 1")
    weight = s.body("weight", mass=1.0, inertia=0.1, position=(3.0, 0.0))
    slide = s.prismatic("slide", s.ground, weight, at=(3.0, 0.0), axis=(1, 0))
    s.friction("drag", slide, coulomb=0.5, static=1.0)
    s.force("push", slide, Input("x"))
    return s


def kinked() -> System:
    """Return a slider that formulas of time and place and tables push, between end stops."""
    s = System("kinked", planar=True)
    shoe = s.body("shoe", mass=1.0, inertia=0.1, velocity=(1.0, 0.0))
    slide = s.prismatic("slide", s.ground, shoe, at=(0, 0), axis=(1, 0))
    s.stop("stop", slide, lower=-0.001, upper=0.001, stiffness=500.0, damping=1.0)
    s.force("push", slide, "abs(sin(400 * t)) + floor(100 * t) + min(t, 0.002)")
    s.force("steps", slide, Table([0.0, 0.0015, 0.004], [0.0, 1.0, -1.0]))
    eyes = s.ground.marker("wall", (-1.0, 0.0)), shoe.marker("eye")
    s.spring("spring", *eyes, stiffness="10 + (l > 1) * 10", damping=1.0, free_length=1.0)
    return s


MECHANISMS: list[Callable[[], System]] = [
    mechanisms.slider_crank,
    mechanisms.mcpherson,
    mechanisms.five_bar,
    mechanisms.cardan,
    mechanisms.four_bar,
    mechanisms.pendulum_on_cart,
    mechanisms.rotor,
    driven_pivot,
    lubricated,
    loose,
    joint_friction,
    held_journal,
    touching,
    balls,
]


def drive(d: Diagram, block: AbstractBlock, width: int) -> None:
    """Connect a source that moves to each input of `block`."""
    for n, port in enumerate(block.inputs):
        size = port.width if isinstance(port.width, int) else width
        source: AbstractBlock
        if port.kind == "boolean":
            source = sources.Pulse(
                [(n + 2) * 2e-3] * size if size > 1 else (n + 2) * 2e-3, kind="boolean"
            )
        elif port.kind == "integer":
            source = d.input(f"in{n}", width=size, kind="integer", default=2.0)
        else:
            source = sources.Sine([1.0] * size if size > 1 else 1.0, 60.0 + 30.0 * n)
        if source not in d.names:
            d.add(source)
        d.connect(source, block[port.name])


def alone(name: str, width: int, make: Callable[[], AbstractBlock], solver: str) -> Diagram:
    """Return a diagram of one block with moving inputs."""
    d = Diagram(name, STEP, solver)
    block = d.add(make(), "block", **RATES.get(name, {}))
    drive(d, block, width)
    for port in block.outputs:
        d.output(port.name, block[port.name])
    return d


def oscillator(solver: str, **options: Any) -> Diagram:
    """Return a loop of integrators, with one block at a slower rate."""
    d = Diagram(solver, STEP, solver, **options)
    x = d.add(continuous.Integrator([1.0, 0.0]), "x")
    k = d.add(arithmetic.Gain([[0.0, 1.0], [-9.0, -0.1]]), "k")
    slow = d.add(discrete.ZeroOrderHold(), "slow", period=3e-3, offset=1e-3)
    total = d.add(arithmetic.Sum("++"), "total")
    d.connect(x, k)
    d.connect(k, total["u1"])
    d.connect(d.input("force", width=2), total["u2"])
    d.connect(total, x)
    d.connect(x, slow)
    d.output("slow", slow)
    return d


def loop() -> Diagram:
    """Return two algebraic loops, one of them a vector and nonlinear, around an integrator."""
    d = Diagram("loop", STEP, "heun")
    s = d.add(arithmetic.Sum("+-"), "s")
    g = d.add(arithmetic.Gain(0.5), "g")
    x = d.add(continuous.Integrator([1.0, 0.2]), "x")
    d.connect(x, s["u1"])
    d.connect(s, g)
    d.connect(g, s["u2"])
    d.connect(s, x)
    f = d.add(expression.Expression("cos(a) * b"), "f")
    c = d.add(sources.Time(), "c")
    d.connect(f, f["a"])
    d.connect(c, f["b"])
    d.output("y", g)
    d.output("f", f)
    return d


def inside() -> Diagram:
    """Return what the conditional subsystems hold."""
    d = Diagram("inside")
    u = d.input("u")
    x = d.add(discrete.DiscreteIntegrator(initial=1.0), "x")
    z = d.add(discrete.UnitDelay(1.0), "z")
    d.connect(u, x)
    d.connect(x, z)
    d.output("y", z)
    return d


def guards(outputs: str, states: str) -> Diagram:
    """Return enabled, triggered and resettable subsystems, one in the other, one with a loop."""
    deepest = Diagram("deepest")
    u = deepest.input("u")
    trigger = deepest.add(sources.Pulse(2e-3), "trigger")
    core = deepest.add(Subsystem(inside(), trigger="either", outputs=outputs), "core")  # type: ignore[arg-type]
    deepest.connect(u, core["u"])
    deepest.connect(trigger, core["trigger"])
    deepest.output("y", core["y"])

    middle = Diagram("middle")
    u = middle.input("u")
    x = middle.add(continuous.Integrator(0.5), "x")
    s = middle.add(arithmetic.Sum("+-"), "s")
    g = middle.add(arithmetic.Gain(0.5), "g")
    reset = middle.add(sources.Pulse(3e-3), "reset")
    core = middle.add(Subsystem(deepest, reset="rising"), "core")
    middle.connect(u, s["u1"], core["u"])
    middle.connect(s, g)
    middle.connect(g, s["u2"])
    middle.connect(g, x)
    middle.connect(reset, core["reset"])
    middle.output("y", core["y"])
    middle.output("x", x)

    d = Diagram("guards", STEP, "rk4")
    enable = d.add(sources.Pulse(4e-3, kind="boolean"), "enable")
    t = d.add(sources.Time(), "t")
    outer = d.add(Subsystem(middle, enable=True, states=states, outputs=outputs), "outer")  # type: ignore[arg-type]
    again = d.add(Subsystem(inside(), reset="level"), "again")
    level = d.add(sources.Pulse(5e-3), "level")
    d.connect(enable, outer["enable"])
    d.connect(t, outer["u"], again["u"])
    d.connect(level, again["reset"])
    d.output("y", outer["y"])
    d.output("x", outer["x"])
    d.output("again", again["y"])
    return d


def boundary() -> Diagram:
    """Return a diagram with every kind of variable on its boundary, for FMI."""
    d = Diagram("boundary", STEP, "trapezoidal")
    force = d.input("force", unit="N*m")
    count = d.input("count", kind="integer")
    on = d.input("on", kind="boolean")
    swing = d.add(Pendulum(angle=0.5), "swing")
    pick = d.add(logic.MultiportSwitch(2), "pick")
    latch = d.add(logic.Latch(), "latch")
    noisy = d.add(noise.Noise(1.0), "noisy", period=2e-3)
    late = d.add(delay.TransportDelay(3e-3), "late")
    big = d.add(logic.Compare(">", 1e6), "big")
    stop = d.add(sinks.Stop("the angle is too large"), "stop")
    d.connect(force, swing)
    d.connect(count, pick["selector"])
    d.connect(noisy, pick["u1"], late)
    d.connect(late, pick["u2"])
    d.connect(on, latch["set"])
    d.connect(swing["angle"], big)
    d.connect(big, stop)
    d.output("angle", swing["angle"])
    d.output("picked", pick)
    d.output("latched", latch)
    return d


def moving() -> Diagram:
    """Return a diagram with continuous outputs only, and a mechanism by its internal solver."""
    d = Diagram("moving", STEP, "dopri5")
    u, v = d.input("u"), d.input("v")
    total, half = d.add(arithmetic.Sum("+-"), "total"), d.add(function.Function("tanh"), "half")
    limited = d.add(continuous.Integrator(limits=(-1.0, 1.0), reset="rising"), "limited")
    late = d.add(delay.TransportDelay(2.5e-3), "late")
    crank = mechanisms.slider_crank(planar=True)
    own = Plant(crank, ["motor.torque"], ["main.speed"], mode="internal", integrator="implicit")
    d.add(own, "own")
    d.connect(u, total["u1"], limited["reset"], own["motor.torque"])
    d.connect(half, total["u2"])
    d.connect(total, half, limited["u"], late)
    d.connect(own["main.speed"], d.add(sinks.Terminator(), "end"))
    product = d.add(arithmetic.Product("**"), "product")
    d.connect(v, product["u1"])
    d.connect(limited, product["u2"])
    d.output("loop", total)
    d.output("late", late)
    d.output("product", product)
    return d


def redundant() -> System:
    """Return a four-bar in space, more than enough joints, that an input drives."""
    s = mechanisms.four_bar(planar=False)
    s.driver("drive", cast(Joint, s["foot1"]), Input("x"))
    return s


def geared() -> System:
    """Return couplings of coordinates of the tree and of a joint that closes a loop."""
    s = mechanisms.four_bar()
    for joint in s.joints:
        s.friction(f"rub_{joint.name}", joint, viscous=0.1)
    wheel = s.body("wheel", mass=1.0, inertia=0.1, position=(3.0, 0.0))
    bar = s.body("bar", mass=1.0, inertia=0.1, position=(3.0, 1.0))
    hub = s.revolute("hub", s.ground, wheel, at=(3.0, 0.0))
    (cut,) = (joint for joint in grow_tree(s).cuts if joint.coordinates)
    s.gear("gear", cut, hub, ratio=1.5)
    slide = s.prismatic("slide", s.ground, bar, at=(3.0, 1.0), axis=(1, 0))
    s.rack("rack", hub, slide, radius=0.2)
    return s


def plant(
    system: System, has_internal_solver: bool, initial: dict[str, float] | None = None
) -> Diagram:
    """Return a mechanism as a block, in steps of the diagram or of its own."""
    names = list_outputs(system)
    own = {part.name for part in (*system.elements, *system.constraints)}
    shown = names[:16] + [name for name in names[16:] if name.partition(".")[0] in own]
    shown += [name for name in names[16:] if name.endswith((".closure", ".closure_rate"))]
    mode: Literal["internal", "continuous"] = "internal" if has_internal_solver else "continuous"
    d = Diagram("plant", STEP)
    block = d.add(Plant(system, outputs=shown, mode=mode, initial=initial), "plant")
    for n, port in enumerate(block.inputs):
        d.connect(d.input(f"u{n}"), block[port.name])
    d.output("y", block[shown[0]])
    return d


def model_based(planar: bool) -> Diagram:
    """Return all blocks that evaluate a mechanism at a given state, of one arm."""
    s = System("arm", planar=planar)
    x, origin = (1.0, *[0.0] * (1 if planar else 2)), [0.0] * (2 if planar else 3)
    upper = s.body("upper", mass=1.0, inertia=0.1)
    fore = s.body("fore", mass=1.0, inertia=0.1, position=x)
    axis = None if planar else (0.0, 1.0, 0.0)
    pins = upper.marker("pin", origin, axis=axis), s.ground.marker("pin", origin, axis=axis)
    shoulder = s.revolute("shoulder", *pins)
    s.prismatic("rail", upper.marker("end", x, axis=x), fore.marker("end", origin, axis=x))
    s.torsional_spring("coil", shoulder, stiffness=2.0, damping="0.1*v")
    s.torque("motor", shoulder, Input())
    d = Diagram("arm", STEP)
    q, v, a = (d.input(name, width=2, default=0.1) for name in ("q", "v", "a"))
    effort = d.add(InverseDynamics(s), "effort", position=q, speed=v, acceleration=a)
    d.add(MassMatrix(s), "mass", position=q)
    d.add(Jacobian(s, "fore"), "jacobian", position=q, speed=v)
    wrench = d.input("wrench", width=6 if planar else 12, default=1.0)
    markers = ["fore", "ground.pin"]
    held = d.add(ForcePropagation(s, markers, weight=True), "held", position=q, wrench=wrench)
    d.output("effort", effort)
    d.output("base", held["base"])
    return d


def shared() -> Diagram:
    """Return a mechanism with redundant joints of given stiffnesses, and all its reactions."""
    s = mechanisms.cardan()
    for joint in s.joints:
        s.joint_stiffness(joint.name, force=1e6, torque=1e4)
    shown = [name for name in list_outputs(s) if name.endswith((".force", ".torque"))]
    d = Diagram("shared", STEP)
    block = d.add(Plant(s, outputs=shown), "plant")
    d.output("y", block[shown[0]])
    return d


def followed(extrapolation: int) -> Diagram:
    """Return a mass that follows another one by position and rate, which exchange power."""
    d = Diagram("followed", STEP, coupling="newton", extrapolation=extrapolation)
    lead = System("lead", (0, 0), planar=True)
    body = lead.body("mass", mass=1.0, inertia=1.0, velocity=(1.0, 0))
    lead.prismatic("slide", lead.ground, body, at=(0, 0), axis=(1, 0))
    lead.force("push", body.marker("end"), (0.0, 0.0))
    shown = ["slide.displacement", "slide.speed"]
    a = d.add(Plant(lead, ["push.force.x"], shown, mode="internal"), "a")
    led = System("led", (0, 0), planar=True)
    body = led.body("mass", mass=1.0, inertia=1.0)
    slide = led.prismatic("slide", led.ground, body, at=(0, 0), axis=(1, 0))
    led.driver("drive", slide, Input())
    b = d.add(Plant(led, [], ["drive.effort"], mode="internal"), "b")
    ports = [port.name for port in b.inputs]
    d.connect(a["slide.displacement"], b[ports[0]])
    d.connect(a["slide.speed"], b[ports[1]])
    back = d.add(arithmetic.Gain(-1.0), "back")
    d.connect(b["drive.effort"], back)
    d.connect(back, a["push.force.x"])
    d.output("y", a["slide.speed"])
    return d


def couplings(method: str, extrapolation: int) -> Diagram:
    """Return two masses with internal steps and a state of the diagram, coupled in a ring."""
    d = Diagram("couplings", STEP, coupling=method, extrapolation=extrapolation)
    for name in ("a", "b"):
        s = System("mass", (0, 0), planar=True)
        body = s.body("mass", mass=1.0, inertia=1.0, velocity=(1.0, 0))
        s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
        s.force("push", body.marker("end"), (0.0, 0.0))
        d.add(Plant(s, ["push.force.x"], ["slide.speed"], mode="internal"), name)
    x = d.add(continuous.Integrator(), "x")
    d.connect(d["a"]["slide.speed"], x)
    for name, source, gain in (("pull", x, -3.0), ("push", d["b"]["slide.speed"], 2.0)):
        d.add(arithmetic.Gain(gain, unit="N"), name)
        d.connect(source, d[name])
    d.connect(d["pull"], d["b"]["push.force.x"])
    d.connect(d["push"], d["a"]["push.force.x"])
    d.output("y", x)
    return d


def switching(solver: str, **options: Any) -> Diagram:
    """Return states whose right-hand side has events of every kind: crossing functions in and out
    of an algebraic loop, instants, resets, a sampled signal, a disabled subsystem.
    """
    d = Diagram("switching", STEP, solver, **options)
    u = d.input("u")
    ends_ticks = not options.get("tolerance")  # else steps stay open across ticks
    full = continuous.Integrator(limits=(-0.5, 0.5), reset="rising")
    x = d.add(full if ends_ticks else continuous.Integrator(), "x")
    v = d.add(continuous.Integrator([0.3, -0.2]), "v")
    relay = d.add(nonlinear.Relay(on=0.001, off=-0.001, high=-40.0, low=40.0), "relay", u=v)
    d.connect(relay, v)
    f = d.add(expression.Expression("where(x > 0.002, -30, 50 + u) + floor(100 * t)"), "f", x=x)
    d.connect(u, f["u"])
    loop = d.add(arithmetic.Sum("+-+"), "loop", u1=f)
    clipped = d.add(nonlinear.Saturation(-35.0, 45.0), "clipped", u=loop)
    d.connect(d.add(arithmetic.Gain(0.5), "back", u=clipped), loop["u2"])
    d.connect(d.add(discrete.UnitDelay(), "held", u=clipped, period=3 * STEP), loop["u3"])
    ramp = d.add(sources.Ramp(slope=3.0, at=1.3 * STEP), "ramp")
    step = d.add(sources.Step(at=2.6 * STEP, to=20.0), "step")
    pulse = d.add(sources.Pulse(period=1.7 * STEP, duty=0.3, amplitude=2.0), "pulse")
    d.connect(d.add(arithmetic.Sum("++++"), "all", u1=clipped, u2=ramp, u3=step, u4=pulse), x["u"])
    inside = Diagram("inside")
    inner = inside.add(continuous.Integrator(), "x", u=inside.input("u"))
    inside.output("y", inside.add(arithmetic.Abs(), "y", u=inner))
    inside.add(continuous.Integrator(), "z", u=inside["y"])
    if ends_ticks:
        d.connect(d.add(sources.Sine(amplitude=1.0, frequency=300.0), "sine"), x["reset"])
        on = d.add(logic.Compare(">", 0.0), "on", u=d["sine"])
        d.output("z", d.add(Subsystem(inside, enable=True), "sub", enable=on, u=x)["y"])
    d.output("y", x)
    return d


def chain(solver: str, **options: Any) -> Diagram:
    """Return diffusion along a line, with a sparse Jacobian, and a switched source."""
    d = Diagram("chain", STEP, solver, **options)
    n = 48
    x = [d.add(continuous.Integrator(float(k == 0)), f"x{k}") for k in range(n)]
    for k in range(n):
        near = [x[j] for j in (k - 1, k + 1) if 0 <= j < n]
        total = d.add(arithmetic.Sum("+" * len(near) + "-"), f"s{k}")
        for j, source in enumerate([*near, x[k]]):
            d.connect(source, total[f"u{j + 1}"])
        d.connect(d.add(arithmetic.Gain(1e4), f"g{k}", u=total), x[k])
    d.output("y", x[-1])
    return d


def supervised(**options: Any) -> Diagram:
    """Return a machine with nested and parallel states, history and events, beside a mass."""
    m = StateMachine(
        inputs=["a", Port("c", width=2)],
        outputs=["x", Port("n", kind="integer")],
        data={"r": 0.5, "armed": True},
        events={"go": "rising", "halt": "either"},
        emits=["done"],
        local_events=["ping"],
        parameters={"limit": 0.4},
        **options,
    )
    idle = m.state("idle", x="a + r")
    run = m.state("run", history="deep", during={"n": "n + 1"})
    slow, fast = run.state("slow", x="c[0]"), run.state("fast", emit=["done", "ping"])
    work = run.parallel("work")
    left, right = work.state("left", history="shallow"), work.state("right")
    one, two = left.state("one"), left.state("two", x="elapsed")
    on = right.state("on", exit={"r": "r + c[1]"})
    m.transition(idle, run, when="a > limit and armed", priority=1)
    m.transition(idle, run, on="go")
    m.transition(run, idle, when="a < -limit", on="halt", priority=1)
    m.transition(run, None, when="abs(a) > 2*limit", do={"armed": "not in_run_fast"}, priority=2)
    m.transition(slow, fast, after=2 * STEP, do={"n": "0"})
    m.transition(fast, work, when="c[1] > 0 or in_run_fast")
    m.transition(one, two, on="ping")
    m.transition(on, slow, when="c[0] > 0.9")
    d = Diagram("supervised", step=STEP, solver="dopri5")
    x = d.add(continuous.Integrator(0.3), name="x")
    v = d.add(continuous.Integrator(0.0), name="v")
    both = d.add(routing.Mux(2), name="both", u1=x, u2=v)
    beat = d.add(sources.Pulse(period=4 * STEP), name="beat")
    block = d.add(m, name="machine", a=x, c=both)
    for name in ("go", "halt"):
        d.connect(d.add(logic.Compare(">", 0.5), name=name, u=beat), block[name])
    force = d.add(arithmetic.Sum("--"), name="force", u1=x, u2=block["x"])
    d.chain(force, v, x)
    return d


def diagrams() -> Iterator[tuple[str, Diagram]]:
    """Yield every seed."""
    for n, (name, (width, make)) in enumerate(BLOCKS.items()):
        yield name, alone(name, width, make, list(SOLVERS)[n % len(SOLVERS)])
    for solver in SOLVERS:
        yield f"solver {solver}", oscillator(solver)
    for solver in SOLVERS:
        yield f"events {solver}", switching(solver, max_events=4)
    for solver in ("euler", "heun", "rk3", "rk4"):
        fast = switching(solver, max_events=4)
        fast.integrate("v", "sub", substeps=7)
        yield f"substeps {solver}", fast
    for solver in ("dopri5", "radau5"):
        yield f"error control {solver}", oscillator(solver, tolerance=1e-6)
        yield f"events under error control {solver}", switching(solver, tolerance=(1e-5, 1e-7))
        yield f"few steps {solver}", switching(solver, tolerance=1e-9, max_steps=3, max_events=2)
    for solver in ("backward_euler", "radau5"):
        yield f"sparse {solver}", chain(solver)
    yield "sparse error control", chain("radau5", tolerance=1e-4)
    yield "loop", loop()
    yield "guards", guards("held", "held")
    yield "guards reset", guards("reset", "reset")
    yield "boundary", boundary()
    yield "state machine", supervised()
    yield "state machine located", supervised(continuous=True)
    yield "state machine delayed", supervised(feedthrough=False)
    for n, make_system in enumerate(MECHANISMS):
        yield f"multibody {make_system.__name__}", plant(make_system(), n % 2 == 1)
    yield "multibody rattling", plant(rattling(), True)
    yield "multibody rattling shapes", plant(rattling_shapes(), True)
    yield "multibody redundant", plant(redundant(), True)
    yield "multibody geared", plant(geared(), True)
    yield "multibody sticking", plant(sticking(), False)
    yield "multibody gripping", plant(gripping(), True)
    yield "multibody gripping in steps of the diagram", plant(gripping(), False)
    yield "multibody kinked", plant(kinked(), True)
    yield "multibody kinked in steps of the diagram", plant(kinked(), False)
    kept = {"foot0.angle": 1.6, "end0.speed": 1.0}
    yield "multibody kept", plant(mechanisms.four_bar(), False, kept)
    yield "multibody kept in space", plant(mechanisms.four_bar(planar=False), True, kept)
    yield "multibody shared", shared()
    for planar in (True, False):
        yield f"model-based {'planar' if planar else 'in space'}", model_based(planar)
    for extrapolation in range(3):
        yield f"multibody followed {extrapolation}", followed(extrapolation)
    for n, method in enumerate(("jacobi", "gauss-seidel", "fixed-point", "newton")):
        yield f"coupling {method}", couplings(method, 2 - n % 2)
    hurried = couplings("fixed-point", 1)
    hurried.couple(iterations=1, tolerance=1e-9)
    yield "coupling in parts", hurried


def with_script(plan: Plan, name: str) -> bytes:
    """Return the plan without META, which is for Python, and with a script for fuzz_plan.c."""
    sections: dict[str, Any] = dict(read_arrays(plan.sections))
    del sections["META"]
    script = random.Random(name).randbytes(1 + 9 * 4)
    return write_sections({**sections, "FUZZ": script})


# Calls as fuzz_fmi2.c numbers them.
CALLS = 28
INSTANTIATE, FREE, SET_UP, ENTER, EXIT, TERMINATE, RESET, REFUSED, LOG, DO_STEP = 0, *range(2, 11)
GET_REAL, GET_INTEGER, GET_BOOLEAN, GET_STRING, SET_REAL, SET_INTEGER = range(12, 18)
SET_BOOLEAN, SET_STRING, ASK, SET_INPUT_DERIVATIVE = range(18, 22)
SAVE, RESTORE, DISCARD, SERIALIZE, SPOIL, DESERIALIZE = range(22, 28)

Calls = list[tuple[int, ...]]


def scripts() -> Iterator[tuple[str, Calls]]:
    """Yield sequences of (call, instance, its further bytes…)."""
    ready: Calls = [(INSTANTIATE, 0, 0), (SET_UP, 0, 0, 0, 0), (ENTER, 0), (EXIT, 0)]
    other: Calls = [(call, 2, *rest) for call, _, *rest in ready]
    steps: Calls = [(DO_STEP, 0, 1), (DO_STEP, 0, 2)]
    reads: Calls = [(call, 0, 3, 0, 1, 2) for call in range(GET_REAL, GET_STRING + 1)]
    writes: Calls = [
        (call, 0, 1, k, 9) for k in range(6) for call in (SET_REAL, SET_INTEGER, SET_BOOLEAN)
    ]
    save, restore, spoil = (SAVE, 0, 0), (RESTORE, 0, 2), (SPOIL, 0, 1, 0, 60, 200)
    copy: Calls = [(SERIALIZE, 0, 0), (DESERIALIZE, 0, 1), spoil, (DESERIALIZE, 0, 2)]
    odd: Calls = [(INSTANTIATE, 0, k) for k in range(1, 15)]
    yield "life", [*ready, *steps, *reads, (TERMINATE, 0), (RESET, 0), *ready[1:], *steps]
    yield "values", [*ready[:3], *writes, *reads, (EXIT, 0), *writes, *steps, *reads]
    yield "two", [*ready, *other, *steps, (DO_STEP, 2, 1), save, (RESTORE, 2, 0), (RESTORE, 0, 0)]
    yield "states", [*ready, save, *steps, *copy, restore, *steps, (DISCARD, 0, 0)]
    parts: Calls = [(DO_STEP, n, k) for k in (140, 200, 245, 3, 130) for n in (0, 3)]
    moving: Calls = [(call, 3, *rest) for call, _, *rest in ready]
    numbers = (0, 0, 101, 120, 1, 0, 101, 90)
    slopes: Calls = [(SET_INPUT_DERIVATIVE, n, 1 + 2 * n, *(0, 120, 1, 90) * 2) for n in (0, 3)]
    ask: Calls = [(ASK, n, 5 + 64 * k, *numbers * 2) for n in (0, 3) for k in range(4)]
    yield "parts", [*ready, *moving, *parts, save, *parts, (RESTORE, 0, 0), *parts]
    yield "slopes", [*ready, *moving, *slopes, *parts, *slopes, save, *parts, (RESTORE, 0, 0)]
    yield "derivatives", [*ready[:3], *moving, *ask, (EXIT, 0), *parts, *ask]
    events: Calls = [(call, 4, *rest) for call, _, *rest in ready]
    inner: Calls = [(DO_STEP, 4, k) for k in (130, 1, 180, 2, 240)]
    yield "events", [*events, *inner, (SAVE, 4, 1), *inner, (SET_REAL, 4, 1, 0, 120), *inner,
                     (RESTORE, 4, 1), *inner, (ASK, 4, 5, *numbers), *inner]  # fmt: skip
    yield "odd", [*odd, (FREE, 0), *ready, (REFUSED, 0, 0, 0, 0, 0, 0, 0), (LOG, 0, 3)]


def write_script(calls: Calls) -> bytes:
    """Return the bytes of a script."""
    return b"".join(bytes([CALLS * instance + call, *rest]) for call, instance, *rest in calls)


def write_wire_seeds() -> Iterator[tuple[str, bytes]]:
    """Yield conversations of a device with its host, as fuzz_wire.c reads them."""

    def frame(sequence: int, *values: float, session: int = 0x1234, flags: int = 0) -> bytes:
        head = struct.pack("<BBBBHHII", 0xB1, flags, len(values), 0, session, 0, sequence, 1)
        body = head + struct.pack(f"<{len(values)}{'fd'[flags & 1]}", *values)
        return body + struct.pack("<I", zlib.crc32(body))

    def stuff(data: bytes) -> bytes:  # short ones only: no block is full
        return b"".join(bytes([len(part) + 1]) + part for part in data.split(b"\0")) + b"\0"

    def pieces(mode: int, values: int, options: int, *reads: bytes) -> bytes:
        head = bytes([mode, values, options])
        return head + b"".join(struct.pack("<BH", 10, len(read)) + read for read in reads)

    frames = [frame(k, 1.5, -2.0) for k in (1, 2, 5, 3, 6)]
    wide = [frame(k, 0.1, 1e300, 1e-300, flags=1) for k in (7, 8)]
    restart = [frames[0], frame(1, 0.0, 0.0, session=0), frame(2, 3.0, 4.0)]
    stream = b"".join(map(stuff, frames))
    yield "datagrams", pieces(0, 2, 1, *frames)
    yield "doubles", pieces(0, 3, 5, *wide)
    yield "restart", pieces(0, 2, 1, *restart)
    yield "sensor", pieces(0, 1, 8, *(frame(k, 2.0, session=0) for k in (1, 2)))
    hosts = [
        *frames[:2],
        frame(3, 0.0, 0.0, flags=2),
        frame(9, 5.0, 6.0, session=7),
        frame(4, 1, 1),
    ]
    yield "hosts", pieces(0, 2, 17, *hosts)
    yield "stream", pieces(1, 2, 1, stream[:20], stream[20:90], stream[90:])
    yield "stream-doubles", pieces(1, 3, 5, b"noise\0" + b"".join(map(stuff, wide)))
    yield "lines", pieces(2, 2, 1, b"rest of one\n1,2\n3 -4.5e-3\r\n5,", b"6\n")

    # With a key of zeros and a seed of zeros: 32 in the third byte. Tags are not looked at.
    def hello(kind: int, host: bytes, device: bytes, session: int = 0) -> bytes:
        head = struct.pack("<BBHHHII", 0xB2, kind, 0, session, 0, 0, 0)
        return head + host + device + bytes(16)

    def signed(
        session: int, sequence: int, *values: float, wraps: int = 0, flags: int = 0
    ) -> bytes:
        head = struct.pack("<BBBBHHII", 0xB2, flags, len(values), 0, session, wraps, sequence, 1)
        return head + struct.pack(f"<{len(values)}f", *values) + bytes(16)

    def nonce(drawn: int) -> bytes:
        message = b"biella n" + bytes(16) + struct.pack("<I", drawn)
        return hashlib.blake2s(message, key=bytes(32)).digest()[:16]

    ours, later, theirs = nonce(0), nonce(1), bytes(range(1, 17))
    number, wide_number = int.from_bytes(ours[:2], "little"), 2**31
    greeting = [hello(0xC0, ours, theirs), hello(0xC0, ours, bytes(16), number)]
    values = [signed(number, k, 1.5, -2.0) for k in (1, 2, 2, 1, wide_number, 2**32 - 1)]
    values += [signed(number, 3, 0.5, 0.5, wraps=1), signed(number, 9, 0.5, 0.5), *frames[:1]]
    again = [hello(0xC0, bytes(16), theirs), hello(0xC0, later, theirs), greeting[0]]
    yield "keyed", pieces(0, 2, 33, *greeting, *values, *again, *values[:1])
    yield "keyed-stream", pieces(1, 2, 33, b"\0" + b"".join(map(stuff, [*greeting, *values])))
    begin, session = hello(0x80, theirs, ours), int.from_bytes(theirs[:2], "little")
    calls = [hello(0x80, theirs, bytes(16)), begin]
    live = [signed(session, 1, 1.0, 2.0), signed(session, 2, 1.0, 2.0, flags=2)]
    other = (
        hello(0x80, bytes(range(3, 19)), later),
        hello(0x80, bytes(range(3, 19)), later, session),
    )
    yield (
        "keyed-hosts",
        pieces(0, 2, 49, *calls, *live, begin, live[0], *other, signed(0x403, 1, 3, 4)),
    )
    yield "checksums", pieces(2, 2, 3, b"1,2*2F\n1,2*00\n1,2\n+.5\t1e5*4B\n")


def find_kernels() -> set[str]:
    """Return the names of all kernels, as the sources of the blocks declare them."""
    sources = (HERE.parents[1] / "blocks").rglob("*.c")
    return {name for c in sources for name in re.findall(r'\.name = "(\w+)"', c.read_text())}


def main() -> None:
    """Write the seeds of all targets, and the plans that the targets for FMI instantiate."""
    files = {
        f"corpus/plan/seed-{name.replace(' ', '-')}": with_script(diagram.compile(), name)
        for name, diagram in diagrams()
    }
    files |= {f"corpus/fmi2/seed-{name}": write_script(calls) for name, calls in scripts()}
    files |= {
        f"corpus/fmi3/seed-{name}": seeds_fmi3.write_script(calls)
        for name, calls in seeds_fmi3.scripts()
    }
    files |= {f"corpus/wire/seed-{name}": content for name, content in write_wire_seeds()}
    files["corpus/plan/seed-arrays"] = with_script(seeds_fmi3.arrays(), "arrays")
    files |= {
        f"corpus/exchange/seed-{name}": seeds_exchange.write_script(calls)
        for name, calls in seeds_exchange.scripts()
    }
    files |= {
        f"corpus/exchange/seed-{name}": seeds_exchange.write_clocked_script(clocked)
        for name, clocked in seeds_exchange.clocked_scripts()
    }
    for name, diagram in (
        ("exchange", switching("rk4")),
        ("exchange_sampled", switching("dopri5", tolerance=1e-6)),
    ):
        files[f"plans/{name}/plan.bin"] = diagram.compile().with_kind(3).data
    files["plans/clocked/plan.bin"] = seeds_fmi3.clocked().data
    files["plans/exchange_clocked/plan.bin"] = seeds_fmi3.clocked().with_kind(3).data
    files["plans/arrays/plan.bin"] = seeds_fmi3.arrays().data
    files["plans/boundary/plan.bin"] = boundary().compile().data
    files["plans/guards/plan.bin"] = guards("held", "reset").compile().data
    files["plans/moving/plan.bin"] = moving().compile().data
    files["plans/switching/plan.bin"] = switching("dopri5", tolerance=1e-6).compile().data
    for old in HERE.glob("corpus/*/seed-*"):
        old.unlink()
    for name, content in files.items():
        path = HERE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    missing = find_kernels() - {
        name.decode()
        for content in files.values()
        for name in content.split(b"\0")
        if name.isascii()
    }
    if missing:
        print("no seed uses the kernels:", ", ".join(sorted(missing)))


if __name__ == "__main__":
    main()
