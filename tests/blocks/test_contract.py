"""What every native block promises, tried on examples of each.

A new block needs an entry in `EXAMPLES`; a test fails without one.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import biella.blocks
from biella import BlockError, Diagram
from biella.blocks.bearings import Hole, Vogel, Walther, lobes
from biella.blocks.core._block import NativeBlock
from biella.blocks.core._ports import Port, Same, Widths
from biella.blocks.core._units import Unit
from biella.blocks.multibody import (
    Input,
    LankaraniNikravesh,
    RigidContact,
    Socket,
    Sphere,
    System,
)
from biella.blocks.multibody.mechanisms import slider_crank
from biella.blocks.sensors import Instrument, presets
from biella.errors import PlanError
from biella.scheduler.compile.plan._plan import Plan, read_arrays, write_sections
from biella.scheduler.engine._engine import Instance

pytestmark = pytest.mark.engine

WIDTH = 3
"""Of every port that takes any."""
TICKS = 40


def find_blocks() -> dict[str, type[NativeBlock]]:
    """Return every final native block below `biella.blocks`, by name."""

    def descend(parent: type[NativeBlock]) -> Iterator[type[NativeBlock]]:
        for child in parent.__subclasses__():
            yield child
            yield from descend(child)

    for module in pkgutil.walk_packages(biella.blocks.__path__, "biella.blocks."):
        importlib.import_module(module.name)
    return {
        block.__name__: block
        for block in descend(NativeBlock)
        if block.__module__.startswith("biella.blocks.")
        and not block.__name__.startswith(("Abstract", "_"))
    }


BLOCKS = find_blocks()
b = SimpleNamespace(**BLOCKS)


INTERNAL_SOLVERS: list[dict[str, Any]] = [
    {},
    {"mode": "internal"},
    {"mode": "internal", "integrator": "implicit"},
]


def supervisor(**options: Any) -> NativeBlock:
    """Return a machine with nested and parallel states, history, events and data."""
    m = b.StateMachine(
        inputs=["a", Port("c", 2)],
        outputs=["x", Port("n", kind="integer")],
        data={"r": 0.5},
        events=["go"],
        emits=["done"],
        local_events=["ping"],
        parameters={"limit": 0.4},
        **options,
    )
    idle = m.state("idle", x="a + r")
    run = m.state("run", history="deep", during={"n": "n + 1"})
    slow, fast = run.state("slow", x="c[0]"), run.state("fast", emit=["done", "ping"])
    work = run.parallel("work")
    left, right = work.state("left"), work.state("right")
    one, two = left.state("one"), left.state("two", x="elapsed")
    on = right.state("on", exit={"r": "r + c[1]"})
    m.transition(idle, run, when="a > limit", priority=1)
    m.transition(idle, run, on="go")
    m.transition(run, idle, when="a < -limit")
    m.transition(slow, fast, after=2e-3, do={"n": "0"})
    m.transition(fast, work, when="c[1] > 0 or in_run_fast")
    m.transition(one, two, on="ping")
    m.transition(on, slow, when="c[0] > 0.9")
    made: NativeBlock = m
    return made


SUPERVISED = frozenset(
    (output.name, port.name) for output in supervisor().outputs for port in supervisor().inputs
)


def loose_ball(contact: Any = None, height: float = 0.0, **options: Any) -> NativeBlock:
    """Return a ball that a force pushes about in a hole, with impacts that are remembered."""
    s = System("loose", planar=True)
    start: dict[str, Any] = {"position": (0.0, height), "velocity": (0.3, 0.1)}
    ball = s.body("ball", mass=0.1, inertia=1e-3, **start)
    contact = contact or LankaraniNikravesh(stiffness=1e4, friction=0.2)
    ends = ball.marker("middle"), s.ground.marker("hole")
    s.clearance_revolute("pin", *ends, clearance=1e-3, pin_radius=0.01, contact=contact)
    s.force("push", ends[0], (Input(), Input()))
    outputs = ["pin.offset", "pin.normal_force", "pin.contact", "ball.velocity"]
    return s.block(outputs=outputs, **options)


def pressed_ball() -> NativeBlock:
    """Return a ball that lies on the wall of its socket, where rigid shapes slide with friction."""
    s = System("pressed", gravity=(0, 0, -9.81))
    start: dict[str, Any] = {"position": (6e-4, 0.0, -8e-4), "velocity": (0.0, 0.3, 0.0)}
    ball = s.body("ball", mass=0.1, inertia=(1e-3, 2e-3, 3e-3), free=True, **start)
    shapes = Sphere(ball.marker("m"), 0.01), Socket(s.ground.marker("m"), 0.011)
    s.contact("seat", *shapes, law=RigidContact(restitution=0.0, friction=0.1))
    s.force("push", ball.marker("here", (0.0, 0.0, 0.005)), (Input(), Input(), Input()))
    outputs = ["seat.gap", "seat.force", "seat.slip", "seat.contact", "ball.velocity"]
    return s.block(outputs=outputs, mode="internal")


def arm(planar: bool = True) -> System:
    """Return an arm with a hinge, a slide, a spring and a motor; its first joint runs inwards."""
    s = System("arm", planar=planar)
    x, origin = (1.0, *[0.0] * (1 if planar else 2)), [0.0] * (2 if planar else 3)
    upper = s.body("upper", mass=1.0, inertia=0.1, com=[0.5 * v for v in x])
    fore = s.body("fore", mass=1.0, inertia=0.1, position=x)
    axis = None if planar else (0.0, 1.0, 0.0)
    pins = upper.marker("pin", origin, axis=axis), s.ground.marker("pin", origin, axis=axis)
    shoulder = s.revolute("shoulder", *pins)
    s.prismatic("rail", upper.marker("end", x, axis=x), fore.marker("end", origin, axis=x))
    s.torsional_spring("coil", shoulder, stiffness=2.0)
    s.torque("motor", shoulder, Input())
    fore.marker("tip", x)
    return s


@dataclass(frozen=True)
class Example:
    """One block to try.

    Parameters
    ----------
    make
        Makes it.
    low, high
        Range of its real inputs.
    kind
        Of what feeds the inputs that take any.
    fixed
        Inputs that keep a value, so that the run goes on.
    flat
        Pairs ``(output, input)`` that are declared dependent, but whose change cannot be seen.
    period, offset
        Sample time that it is added with.
    """

    make: Callable[[], NativeBlock]
    low: float = -3.0
    high: float = 3.0
    kind: str = "real"
    fixed: dict[str, float] = field(default_factory=dict)
    flat: frozenset[tuple[str, str]] = frozenset()
    period: float | None = None
    offset: float = 0.0


A, B, C, D = [[0.0, 1.0], [-2.0, -0.3]], [[0.0], [1.0]], [[1.0, 0.0], [0.0, 1.0]], [[0.0], [0.5]]
DA = np.multiply(A, 0.4)
GRID = [-2.0, -0.5, 1.0, 2.5]
BEARING = (0.02, 0.01, 2e-5, 0.03)
BEARING_RANGE = (-2e-5, 2e-5)
"""So that journals are inside their bushes, and sometimes touch them."""
BEARING_INPUTS = ("position", "velocity", "journal_speed", "bush_speed")

REAL = Instrument(
    gain=2.0,
    full_scale=3.0,
    nonlinearity=[(-1.0, 0.01), (0.0, 0.0), (1.0, 0.02)],
    hysteresis=0.01,
    bandwidth=200.0,
    order=2,
    noise=1e-3,
    drift=1.0,
    random_walk=0.1,
    resolution=1e-3,
    limits=(-5.0, 5.0),
    dropout_value=0.0,
)

EXAMPLES: dict[str, list[Example]] = {
    # sources
    "Constant": [Example(lambda: b.Constant(2.0)), Example(lambda: b.Constant([1, 2], unit="m"))],
    "Step": [
        Example(lambda: b.Step(0.01, 2.0)),
        Example(lambda: b.Step([0.01, 0.02]), period=2e-3),
    ],
    "Ramp": [Example(lambda: b.Ramp(2.0, 0.01))],
    "Sine": [Example(lambda: b.Sine(2.0, 30.0, unit="N"))],
    "Pulse": [Example(lambda: b.Pulse(0.01, 0.3))],
    "Chirp": [
        Example(lambda: b.Chirp(1.0, 50.0, 0.03)),
        Example(lambda: b.Chirp(1.0, 50.0, 0.03, method="logarithmic")),
    ],
    "Time": [Example(lambda: b.Time()), Example(lambda: b.Time(), period=3e-3, offset=1e-3)],
    "Noise": [
        Example(lambda: b.Noise(1.0, seed=3)),
        Example(lambda: b.Noise(density=1e-3, width=2, distribution="uniform"), period=2e-3),
    ],
    "ExternalInput": [
        Example(
            lambda: b.ExternalInput(
                [Port("told", unit="m")],
                [Port("speed", unit="rad/s"), Port("place", 2, unit="m")],
                start={"place": [1.0, -2.0]},
            )
        )
    ],
    "RealTime": [Example(b.RealTime)],
    "Playback": [
        Example(lambda: b.Playback([0, 0.01, 0.02], [1, 2, 0])),
        Example(
            lambda: b.Playback([0, 0.01], [[1, 2], [3, 4]], interpolation="hold", end="repeat")
        ),
        Example(lambda: b.Playback([0, 1.0], [1, 2], end="stop")),
    ],
    # arithmetic
    "Gain": [
        Example(lambda: b.Gain(2.0)),
        Example(lambda: b.Gain([1.0, -2.0])),
        Example(lambda: b.Gain([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]]), period=2e-3),
    ],
    "Sum": [Example(lambda: b.Sum("+-+"))],
    "Product": [Example(lambda: b.Product("**/"))],
    "Divide": [Example(lambda: b.Divide())],
    "Abs": [Example(lambda: b.Abs())],
    "Sign": [Example(lambda: b.Sign())],
    "MinMax": [Example(lambda: b.MinMax("min", 3)), Example(lambda: b.MinMax("max", 1))],
    "Polynomial": [Example(lambda: b.Polynomial([1.0, -2.0, 0.5]))],
    "Convert": [
        Example(lambda: b.Convert("real"), kind="boolean"),
        Example(lambda: b.Convert("integer")),
        Example(lambda: b.Convert("boolean"), kind="integer"),
    ],
    "Function": [
        Example(lambda: b.Function("sin")),
        Example(lambda: b.Function("floor")),
        Example(lambda: b.Function("log"), low=0.1),
        Example(lambda: b.Function("atan2")),
    ],
    "Expression": [
        Example(lambda: b.Expression("k*sin(theta) - d*omega", parameters={"k": 2, "d": 0.1})),
        Example(lambda: b.Expression({"p": ["a*w[1]", "t"], "q": "w[0] if a > 0 else 2*c"})),
        Example(lambda: b.Expression("x > 1", kind="boolean"), period=2e-3, offset=1e-3),
        Example(lambda: b.Expression({"p": "a", "q": "2"}, inputs=["a", "unused"])),
        Example(lambda: b.Expression("2*pi")),
    ],
    "Lookup1D": [
        Example(lambda: b.Lookup1D(GRID, [1, 3, 2, 5])),
        Example(lambda: b.Lookup1D(GRID, [[1, 3], [2, 5], [0, 1], [3, 3]])),
        Example(lambda: b.Lookup1D(GRID, [1, 3, 2, 5], interpolation="nearest")),
    ],
    "Lookup2D": [Example(lambda: b.Lookup2D(GRID, [0, 1], [[1, 3], [2, 5], [0, 1], [3, 3]]))],
    "Saturation": [Example(lambda: b.Saturation(-1.0, 2.0))],
    "DeadZone": [Example(lambda: b.DeadZone(-1.0, 0.5))],
    "Quantizer": [Example(lambda: b.Quantizer(0.25))],
    "Relay": [Example(lambda: b.Relay(1.0, -1.0))],
    "RateLimiter": [
        Example(lambda: b.RateLimiter(500.0, initial=0.5)),
        Example(lambda: b.RateLimiter(900.0, 700.0)),
    ],
    "Backlash": [Example(lambda: b.Backlash(0.5))],
    # logic
    "Compare": [Example(lambda: b.Compare(">", 0.5)), Example(lambda: b.Compare("<="))],
    "Logic": [
        Example(lambda: b.Logic("and", 3)),
        Example(lambda: b.Logic("xor")),
        Example(lambda: b.Logic("not")),
    ],
    "Switch": [Example(lambda: b.Switch())],
    "MultiportSwitch": [Example(lambda: b.MultiportSwitch(3))],
    "Edge": [Example(lambda: b.Edge()), Example(lambda: b.Edge("either"), period=2e-3)],
    "Counter": [
        Example(lambda: b.Counter()),
        Example(lambda: b.Counter(2, edge="level", step=-3, lower=-4, upper=5, wrap=True)),
    ],
    "SampleHold": [
        Example(lambda: b.SampleHold()),
        Example(lambda: b.SampleHold([1.0, 2.0], edge="rising")),
    ],
    "StateMachine": [  # which output follows which input depends on the active state
        Example(lambda: supervisor(), flat=SUPERVISED),
        Example(lambda: supervisor(feedthrough=False)),
        Example(lambda: supervisor(continuous=True), flat=SUPERVISED),
    ],
    "Latch": [Example(lambda: b.Latch()), Example(lambda: b.Latch(True, priority="set"))],
    # continuous
    "Integrator": [
        Example(lambda: b.Integrator(1.0)),
        Example(lambda: b.Integrator([1.0, 2.0], limits=(-1.0, 2.01))),
        Example(lambda: b.Integrator(1.0, reset="rising")),
        Example(lambda: b.Integrator(reset="level", initial_port=True, state_port=True)),
    ],
    "SecondOrderIntegrator": [
        Example(lambda: b.SecondOrderIntegrator(1.0)),
        Example(
            lambda: b.SecondOrderIntegrator(
                [0.0, 0.2], limits=(0.0, [1.0, 2.0]), velocity_limits=(-2.0, 2.0)
            )
        ),
        Example(lambda: b.SecondOrderIntegrator(1.0, limits=(-1.0, 1.0), restitution=0.5)),
        Example(lambda: b.SecondOrderIntegrator(limits=(0.0, 3.0), reset="rising")),
    ],
    "Derivative": [
        Example(lambda: b.Derivative(0.01)),
        Example(lambda: b.Derivative(0.1, initial=0)),
    ],
    "StateSpace": [
        Example(lambda: b.StateSpace(A, B, C)),
        Example(lambda: b.StateSpace(A, B, C, D, initial=[1.0, 0.0])),
    ],
    "TransferFunction": [
        Example(lambda: b.TransferFunction([1.0], [1.0, 2.0, 3.0])),
        Example(lambda: b.TransferFunction([1.0, 0.0], [1.0, 2.0])),
    ],
    "ZeroPole": [Example(lambda: b.ZeroPole([-1.0], [-2.0, -3.0], 4.0))],
    "TransportDelay": [
        Example(lambda: b.TransportDelay(2.5e-3, longest=0.01)),
        Example(lambda: b.TransportDelay(2.5e-3, longest=0.01, interpolation="cubic")),
    ],
    "Plant": [
        *(Example(partial(loose_ball, **options)) for options in INTERNAL_SOLVERS),
        Example(
            lambda: loose_ball(RigidContact(restitution=0.0), 1e-3, mode="internal"),
            flat=frozenset(("pin.contact", f"push.force.{axis}") for axis in "xy"),
        ),
        Example(
            pressed_ball, flat=frozenset(("seat.contact", f"push.force.{axis}") for axis in "xyz")
        ),
        Example(
            lambda: slider_crank(planar=True).block(
                inputs=["motor.torque"],
                outputs=["crank.position", "main.angle", "main.speed", "main.acceleration"],
            )
        ),
        Example(
            lambda: slider_crank().block(
                inputs=["motor.torque"],
                outputs=["slider.velocity", "closure", "kinetic_energy"],
                mode="internal",
                substeps=2,
            )
        ),
    ],
    "InverseDynamics": [
        Example(lambda: b.InverseDynamics(arm()), period=2e-3),
        Example(lambda: b.InverseDynamics(arm(planar=False))),
    ],
    "MassMatrix": [
        Example(lambda: b.MassMatrix(arm())),
        Example(lambda: b.MassMatrix(arm(planar=False))),
    ],
    "Jacobian": [
        Example(lambda: b.Jacobian(arm(), "fore.tip")),
        Example(lambda: b.Jacobian(arm(planar=False), "fore.tip")),
    ],
    "ForcePropagation": [
        Example(lambda: b.ForcePropagation(arm(), ["fore.tip", "upper"], weight=True)),
        Example(lambda: b.ForcePropagation(arm(planar=False), "fore.tip")),
    ],
    "Pendulum": [Example(lambda: b.Pendulum(damping=0.1, angle=0.5))],
    "ShortBearing": [
        Example(lambda: b.ShortBearing(*BEARING), *BEARING_RANGE),
        Example(lambda: b.ShortBearing(*BEARING, squeeze=False), *BEARING_RANGE, period=2e-3),
        Example(lambda: b.ShortBearing(*BEARING, viscosity_input=True), 1e-6, 2e-5),
    ],
    "MisalignedShortBearing": [Example(lambda: b.MisalignedShortBearing(*BEARING), *BEARING_RANGE)],
    "LongBearing": [Example(lambda: b.LongBearing(*BEARING), *BEARING_RANGE)],
    "FiniteBearing": [
        Example(
            lambda: b.FiniteBearing(*BEARING, cells=(24, 6)),
            *BEARING_RANGE,
            flat=frozenset(
                {("solves", "journal_speed"), ("solves", "bush_speed")}
                | {("supply_flow", name) for name in BEARING_INPUTS}  # it has no feeds
            ),
        ),
        Example(
            lambda: b.FiniteBearing(
                *BEARING,
                cells=(16, 4),
                cavitation="gumbel",
                tilt=True,
                grooves=[(1.0, 0.5)],
                feeds=[Hole(3.0, 0.0, 1e5)],
            ),
            *BEARING_RANGE,
            flat=frozenset(("solves", name) for name in BEARING_INPUTS),
        ),
        Example(
            lambda: b.FiniteBearing(
                *BEARING,
                cells=(16, 4),
                cavitation="jfo",
                feeds=[Hole(3.0, 2e-3, 1e5)],
                bush=lobes(2, 1e-5),
            ),
            *BEARING_RANGE,
            flat=frozenset({("solves", "journal_speed"), ("solves", "bush_speed")}),
        ),
        Example(
            lambda: b.FiniteBearing(
                *BEARING, cells=(16, 4), tilt=True, cavitation="jfo_steady", grooves=[(3.0, 0.5)]
            ),
            *BEARING_RANGE,
        ),
    ],
    "OilTemperature": [
        Example(lambda: b.OilTemperature(Vogel(1e-4, 800.0, 170.0), heat_capacity=5.0)),
        Example(
            lambda: b.OilTemperature(
                Walther((313.15, 46e-6), (373.15, 6.8e-6), 870.0), heat_capacity=5.0
            )
        ),
    ],
    # sensors
    "Sensor": [
        Example(lambda: b.Sensor(Instrument(gain=2.0, unit="V"), "Pa")),
        Example(lambda: b.Sensor(REAL, channels=2, faults="each", seed=3)),
        Example(lambda: b.Sensor(replace(REAL, latency=2.5e-3, order=1, stuck_value=1.0))),
    ],
    "TorqueMeter": [Example(lambda: b.TorqueMeter(presets.TORQUE_METER, period=2e-3))],
    "LoadCell": [
        Example(lambda: b.LoadCell(Instrument(gain=0.1, unit="V"), 2, 1, crosstalk=np.eye(3)))
    ],
    "Gyroscope": [
        Example(lambda: b.Gyroscope(misalignment=(0.1, 0, 0))),
        Example(lambda: b.Gyroscope(presets.GYROSCOPE, axes=[0, 0, 1])),
    ],
    "Accelerometer": [
        Example(lambda: b.Accelerometer(gravity=(0, 0, -9.81), misalignment=(0.1, 0, 0))),
        Example(lambda: b.Accelerometer(presets.ACCELEROMETER, axes=[1, 1, 0])),
    ],
    "ProximityPair": [
        Example(
            lambda: b.ProximityPair(presets.PROXIMITY_PROBE, radius=0.05, runout=[0, 1e-5, 2e-5]),
            -5e-4,
            5e-4,
        )
    ],
    "Encoder": [
        Example(lambda: b.Encoder(8)),
        Example(lambda: b.Encoder(**presets.OPTICAL_ENCODER, method="both", window=4)),
        Example(lambda: b.Encoder(60, decoding=2, method="period", latency=2e-3)),
        Example(lambda: b.Encoder(**presets.TORQUE_METER_PULSES, method="period", period=2e-3)),
    ],
    # discrete
    "UnitDelay": [Example(lambda: b.UnitDelay()), Example(lambda: b.UnitDelay(1.0), period=2e-3)],
    "Delay": [Example(lambda: b.Delay(3, [1.0, 2.0]))],
    "ZeroOrderHold": [Example(lambda: b.ZeroOrderHold(), period=3e-3, offset=1e-3)],
    "DiscreteIntegrator": [
        Example(lambda: b.DiscreteIntegrator()),
        Example(lambda: b.DiscreteIntegrator("trapezoidal", limits=(-1.0, 1.0)), period=2e-3),
    ],
    "DiscreteStateSpace": [
        Example(lambda: b.DiscreteStateSpace(np.multiply(A, 0.4), B, C, D, period=2e-3)),
        Example(lambda: b.DiscreteStateSpace(np.multiply(A, 0.4), B, C)),
    ],
    "DiscreteTransferFunction": [
        Example(lambda: b.DiscreteTransferFunction([1.0], [1.0, -0.5])),
        Example(lambda: b.DiscreteTransferFunction([1.0, 0.3], [1.0, -0.5], period=2e-3)),
    ],
    "FIR": [Example(lambda: b.FIR([0.5, 0.3, 0.2]))],
    "MovingAverage": [
        Example(lambda: b.MovingAverage(4)),
        Example(lambda: b.MovingAverage(3, [1.0, 2.0]), period=2e-3),
    ],
    # data acquisition
    "ADC": [
        Example(lambda: b.ADC(8, (-2.0, 2.0), gain_error=0.01, offset_error=0.02)),
        Example(lambda: b.ADC(6, (-2.0, 2.0), inl=1.5, dnl=0.5, jitter=1e-4, period=3e-3)),
    ],
    "ScanList": [
        Example(lambda: b.ScanList([1, 0, 1], 4e-3, skew=7e-4, range=(-2.0, 2.0))),
        Example(lambda: b.ScanList(2, 2e-3, range=(-2.0, 2.0), offset=1e-3)),
    ],
    "DAC": [
        Example(lambda: b.DAC(6, (-2.0, 2.0), inl=[0.0, 0.5, -0.5], dnl=0.3, seed=4)),
        Example(lambda: b.DAC(4, (0.0, 5.0), from_code=True)),
    ],
    "AntiAliasFilter": [
        Example(lambda: b.AntiAliasFilter(50.0, 5)),
        Example(lambda: b.AntiAliasFilter(50.0, 4, design="elliptic")),
    ],
    "Decimator": [
        Example(lambda: b.Decimator(3, taps=7)),
        Example(lambda: b.Decimator(2, "none", period=2e-3)),
    ],
    "Tachometer": [
        Example(lambda: b.Tachometer(2, 0.5, hysteresis=0.2)),
        Example(lambda: b.Tachometer(60, average=3, clock=1e4, timeout=0.01)),
    ],
    "Trigger": [
        Example(lambda: b.Trigger(0.5, pre=4, post=6, hysteresis=0.2)),
        Example(lambda: b.Trigger((-1.0, 1.0), "enter", pre=0, post=3, source=1)),
    ],
    "Scaling": [
        Example(lambda: b.Scaling(10.0, 2.0, unit="N.m")),
        Example(lambda: b.Scaling(readings=[-1, 0, 2], values=[3, 1, 0], unit="mm", inverse=True)),
    ],
    "PWMOutput": [
        Example(lambda: b.PWMOutput(150.0, align="center"), -1.0, 2.0),
        Example(lambda: b.PWMOutput(40.0, edges="tick", counts=100), -1.0, 2.0),
    ],
    "PWMInput": [
        Example(lambda: b.PWMInput(high=3.0)),
        Example(lambda: b.PWMInput(edges="tick", clock=1e4, timeout=0.01)),
    ],
    # control
    "RelayTuner": [
        Example(lambda: b.RelayTuner(2.0, 0.1, cycles=1, tolerance=9.0)),
        Example(lambda: b.RelayTuner(-1.0, 0.1, cycles=1, tolerance=9.0, rule="tyreus-luyben")),
    ],
    "PID": [
        Example(lambda: b.PID(2.0, 300.0, 0.01, c=0.5, b=0.7, limits=(-4, 4), rate_limit=3000.0)),
        Example(
            lambda: b.PID(
                k=1.0,
                ti=0.05,
                td=1e-3,
                filter_time=2e-3,
                c=1.0,
                limits=(-2, 2),
                anti_windup="back-calculation",
                method="tustin",
                period=2e-3,
            )
        ),
        Example(
            lambda: b.PID(
                [1.0, 3.0, 2.0],
                [50.0, 10.0, 0.0],
                [1e-3, 2e-3, 0.0],
                schedule=[-1.0, 0.0, 2.0],
                c=0.5,
                limits=(-1, 1),
            )
        ),
    ],
    "StateFeedback": [
        Example(lambda: b.StateFeedback([[1.0, 0.5, 0.1], [0.2, 1.0, 0.0]])),
        Example(lambda: b.StateFeedback([1.0, 0.5], [2.0], N=[1.0], limits=(-2, 2)), period=2e-3),
        Example(lambda: b.StateFeedback([[1.0, 0.5], [0.1, 1.0]], [[2.0, 0.0], [0.5, 1.0]])),
    ],
    "KalmanFilter": [
        Example(lambda: b.KalmanFilter(DA, B, C, D, Q=0.1, R=[0.5, 0.2])),
        Example(lambda: b.KalmanFilter(DA, B, C, Q=0.1, R=1.0, form="prediction", period=2e-3)),
        Example(lambda: b.KalmanFilter(DA, None, C, Q=0.1, R=1.0, covariance=[1.0, 2.0])),
        Example(
            lambda: b.KalmanFilter(DA, B, C, D, Q=0.1, R=1.0, covariance=2.0, form="prediction")
        ),
        Example(lambda: b.KalmanFilter(A, B, C, D, Q=0.1, R=1.0, continuous=True)),
    ],
    "LQTracking": [
        Example(lambda: b.LQTracking(A, B, [1.0, 0.0], [0, 0.02], [0, 1], Q=9, R=1, points=9)),
        Example(lambda: b.LQTracking(DA, B, C, 0.0, np.eye(12, 2), Q=9, R=1, period=2e-3)),
    ],
    "LeadLag": [
        Example(lambda: b.LeadLag(3.0, 30.0)),
        Example(lambda: b.LeadLag(300.0, 30.0, 2.0, period=2e-3)),
    ],
    "Notch": [Example(lambda: b.Notch(20.0, 5.0)), Example(lambda: b.Notch(20, 5, period=2e-3))],
    "Trapezoid": [
        Example(lambda: b.Trapezoid(0.1, 10.0, 1e3, unit="m")),
        Example(lambda: b.Trapezoid(0.01, 10.0, 1e3, trigger=True)),
    ],
    "SCurve": [
        Example(lambda: b.SCurve(0.1, 10.0, 1e3, 1e6, before=0.2, at=0.01)),
        Example(lambda: b.SCurve(0.01, 10.0, 1e3, 1e6, trigger=True), period=2e-3),
    ],
    "MinimumJerk": [Example(lambda: b.MinimumJerk(0.1, 0.02), period=2e-3)],
    "CamLaw": [
        Example(partial(b.CamLaw, law, 0.1, 0.03, unit="mm"))
        for law in ("cycloidal", "modified sine", "modified trapezoid", "3-4-5", "4-5-6-7")
    ],
    "Cam": [
        Example(
            lambda: b.Cam([("cycloidal", np.pi, 1.0), ("modified sine", np.pi, -0.5)], unit="m")
        )
    ],
    # routing
    "Mux": [Example(lambda: b.Mux(2)), Example(lambda: b.Mux([1, 2]))],
    "Demux": [Example(lambda: b.Demux([1, 2]))],
    "Selector": [Example(lambda: b.Selector([2, 0]))],
    # sinks
    "Scope": [Example(lambda: b.Scope(2, title="two"))],
    "Record": [Example(lambda: b.Record())],
    "Terminator": [Example(lambda: b.Terminator())],
    "Assertion": [Example(lambda: b.Assertion("no."), fixed={"condition": 1.0})],
    "Stop": [Example(lambda: b.Stop("enough."), fixed={"condition": 0.0})],
}


def input_name(port: str) -> str:
    """Name of the diagram's input that feeds a port; names of ports may have dots."""
    return f"in {port}".replace(".", " ")


EVERY_EXAMPLE = pytest.mark.parametrize(
    "example",
    [
        pytest.param(example, id=f"{name}-{n}")
        for name, examples in EXAMPLES.items()
        if name in BLOCKS
        for n, example in enumerate(examples)
    ],
)
EVERY_BLOCK = pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)


def test_every_block_has_an_example():
    assert sorted(set(BLOCKS) - set(EXAMPLES)) == [], "add an entry to EXAMPLES"
    assert sorted(set(EXAMPLES) - set(BLOCKS)) == [], "no such block"


@EVERY_BLOCK
def test_block_is_exported(block):
    """What stands directly in `biella.blocks` is imported from there."""
    if block.__module__.count(".") == 2:
        assert block.__name__ in biella.blocks.__all__
        assert getattr(biella.blocks, block.__name__) is block


class Trial:
    """A block alone in a diagram, each of its inputs fed from outside with random values."""

    def __init__(self, example: Example, unit: str | None = None) -> None:
        self.example = example
        self.block = example.make()
        self.random = np.random.default_rng(7)
        diagram = Diagram("contract", step=1e-3)
        diagram.add(self.block, name="block", period=example.period, offset=example.offset)
        for port in self.block.inputs:
            source = diagram.input(
                input_name(port.name),
                width=port.width if isinstance(port.width, int) else WIDTH,
                kind=self.kind_of(port),
                unit=unit if isinstance(port.unit, Same) else None,
            )
            diagram.connect(source, self.block[port.name])
        self.plan: Plan = diagram.compile()

    def draw(self, port: Port, other_than: np.ndarray | None = None) -> np.ndarray:
        """Return values for an input; no element as in `other_than`."""
        width = self.plan.inputs[input_name(port.name)].width
        if port.name in self.example.fixed:
            return np.full(width, self.example.fixed[port.name])
        kind = self.kind_of(port)
        if kind == "boolean":
            return self.random.integers(0, 2, width) if other_than is None else 1 - other_than
        if kind == "integer":
            step = self.random.integers(1, 3, width)
            return self.random.integers(0, 5, width) if other_than is None else other_than + step
        return self.random.uniform(self.example.low, self.example.high, width)

    def kind_of(self, port: Port) -> Any:
        """Return the kind of signal to feed a port with."""
        return port.kind if isinstance(port.kind, str) else self.example.kind

    def draw_all(self) -> dict[str, np.ndarray]:
        """Return values for all inputs."""
        return {port.name: self.draw(port) for port in self.block.inputs}

    def read(self, instance: Instance) -> dict[str, bytes]:
        """Return the bits of all outputs at the present time."""
        instance.evaluate()
        return {
            port.name: instance.values[info.slot : info.slot + info.width].tobytes()
            for port, info in zip(self.block.outputs, self.plan.blocks[0].outputs, strict=True)
        }


def set_all(instance: Instance, values: dict[str, np.ndarray]) -> None:
    """Set all inputs."""
    for name, value in values.items():
        instance.set(input_name(name), value)


@EVERY_EXAMPLE
def test_outputs_are_pure(example):
    """Repeating them gives the same bits, and changes no state."""
    trial = Trial(example)
    with trial.plan.instantiate() as instance:
        for _ in range(TICKS):
            set_all(instance, trial.draw_all())
            states, memory = instance.states.tobytes(), instance.memory.tobytes()
            first = trial.read(instance)
            instance.touch()
            assert trial.read(instance) == first
            assert (instance.states.tobytes(), instance.memory.tobytes()) == (states, memory)
            instance.run(1)


@EVERY_EXAMPLE
def test_feedthrough_is_as_declared(example):
    """An input changes at once the outputs that it is declared to reach, and no others."""
    trial = Trial(example)
    block = trial.block
    declared = {
        (output.name, block.inputs[n].name)
        for output, inputs in zip(block.outputs, block.feedthrough, strict=True)
        for n in inputs
    }
    seen = set()
    with trial.plan.instantiate() as instance:
        for _ in range(TICKS):
            values = trial.draw_all()
            set_all(instance, values)
            before = trial.read(instance)
            for port in block.inputs:
                instance.set(input_name(port.name), trial.draw(port, other_than=values[port.name]))
                after = trial.read(instance)
                seen |= {(name, port.name) for name in after if after[name] != before[name]}
                instance.set(input_name(port.name), values[port.name])
            instance.run(1)
    assert seen - declared == set(), "depends on an input, but does not say so"
    assert declared - seen - example.flat == set(), "says that it depends on an input, but does not"


@EVERY_EXAMPLE
def test_save_and_restore_are_exact(example):
    """Going on from a saved state gives the same bits, in the same instance and in another."""
    trial = Trial(example)
    inputs = [trial.draw_all() for _ in range(TICKS)]

    def play(instance: Instance, rows: list[dict[str, np.ndarray]]) -> list[dict[str, bytes]]:
        seen = []
        for values in rows:
            set_all(instance, values)
            seen.append(trial.read(instance))
            assert instance.run(1) == (1, False)
        return seen

    half = TICKS // 2 + 1  # odd, so that a period of two ticks is saved between its hits
    with trial.plan.instantiate() as instance, trial.plan.instantiate() as other:
        play(instance, inputs[:half])
        saved = instance.save()
        expected = play(instance, inputs[half:])
        end = instance.save()
        instance.restore(saved)
        assert play(instance, inputs[half:]) == expected
        assert instance.save() == end
        other.restore(saved)
        assert play(other, inputs[half:]) == expected
        assert other.save() == end


@EVERY_EXAMPLE
def test_values_are_of_their_kind(example):
    """A boolean is 0 or 1, an integer is whole."""
    trial = Trial(example)
    with trial.plan.instantiate() as instance:
        for _ in range(TICKS):
            set_all(instance, trial.draw_all())
            for port in trial.plan.blocks[0].outputs:
                values = np.atleast_1d(instance.get(port.path))
                if port.kind == "boolean":
                    assert np.isin(values, (0.0, 1.0)).all()
                elif port.kind == "integer":
                    np.testing.assert_array_equal(values, np.round(values))
            instance.run(1)


@EVERY_EXAMPLE
def test_ports_are_as_declared(example):
    """Widths follow their symbols; a fixed unit is kept, a shared one is passed on."""
    trial = Trial(example, unit="kg")
    block, info = trial.block, trial.plan.blocks[0]
    symbols = Widths({p.width: WIDTH for p in block.inputs if isinstance(p.width, str)})
    shared = {port.unit for port in block.inputs if isinstance(port.unit, Same)}
    for port, found in zip(
        (*block.inputs, *block.outputs), (*info.inputs, *info.outputs), strict=True
    ):
        width = symbols.get(port.width, port.width) if isinstance(port.width, str) else port.width
        assert found.width == (width(symbols) if callable(width) else width)
        if isinstance(port.unit, Unit):
            assert found.unit == str(port.unit)
        elif port.unit in shared:
            assert found.unit == "kg"
        if isinstance(port.kind, str):
            assert found.kind == port.kind


STRANGE = (0.0, -1.0, 0.5, 2.0, 3.0, 17.0, -1e9, 2.0**31, 2.0**53, 1e300, -1e300, np.inf, np.nan)


@EVERY_EXAMPLE
def test_hostile_state_is_survived(example):
    """Memory and states that no run makes give an error at most; sanitizers watch the rest."""
    trial = Trial(example)
    with trial.plan.instantiate() as instance:
        for _ in range(TICKS):
            instance.initialize()
            set_all(instance, trial.draw_all())
            instance.states[:] = trial.random.choice(STRANGE, instance.states.size)
            instance.memory[:] = trial.random.choice(STRANGE, instance.memory.size)
            instance.touch()
            with contextlib.suppress(BlockError):
                instance.run(3)


@EVERY_EXAMPLE
def test_hostile_plan_is_refused_or_survived(example):
    """Other counts, widths and integers are refused, or do no harm."""
    trial = Trial(example)
    tables = {
        tag: np.frombuffer(trial.plan.sections[tag], "<i4") for tag in ("BLKS", "PORT", "INTS")
    }
    for _ in range(3 * TICKS):
        tag = trial.random.choice([tag for tag, table in tables.items() if table.size])
        table = tables[tag].copy()
        place = trial.random.integers(table.size)
        near = table[place] + trial.random.integers(-2, 3)
        table[place] = trial.random.choice([near, 0, 1, 7, -1, 2**31 - 1, -(2**31)])
        try:
            instance = Instance(rewrite(trial.plan, {tag: table}))
        except PlanError:
            continue
        with instance, contextlib.suppress(BlockError):
            instance.initialize()
            instance.run(3)


def rewrite(plan: Plan, changed: dict[str, np.ndarray]) -> Plan:
    """Return `plan` with other sections."""
    return Plan(write_sections(read_arrays(plan.sections) | changed), {})


@EVERY_EXAMPLE
def test_parameters_are_described(example):
    block = example.make()
    assert [p.name for p in block.parameters if not (p.doc or p.hidden)] == []


@EVERY_BLOCK
def test_block_is_documented(block):
    """Its first line says what it is, and every argument has an entry under Parameters."""
    text = inspect.cleandoc(block.__doc__ or "")
    assert 0 < len(text.partition("\n")[0]) < 100
    section = text.partition("Parameters\n----------\n")[2]
    documented = {
        name.strip()
        for line in section.splitlines()
        if line and not line.startswith(" ")
        for name in line.split(",")
    }
    assert sorted(set(inspect.signature(block).parameters) - documented) == []


@EVERY_BLOCK
def test_misspelled_argument_is_refused(block):
    parameters = inspect.signature(block).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    with pytest.raises(TypeError, match="unexpected keyword argument 'perid'"):
        block(*[1.0] * len(needed), perid=1.0)
