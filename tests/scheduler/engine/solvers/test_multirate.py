"""Multirate steps: their order, what they evaluate, and how they run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from scipy.linalg import expm

from biella import BiellaWarning, Diagram, Subsystem, simulate
from biella.blocks import (
    Compare,
    Constant,
    Expression,
    Gain,
    Integrator,
    PythonBlock,
    Sine,
    StateSpace,
    Step,
    Sum,
    TransferFunction,
)
from biella.blocks.multibody import System
from biella.blocks.multibody.mechanisms import slider_crank
from biella.scheduler.compile._multirate import STAGES

pytestmark = pytest.mark.engine

ORDERS = {"euler": 1, "heun": 2, "rk3": 3, "rk4": 4}


def find_slopes(
    make: Callable[[float], Diagram], steps: list[float], until: float, exact: np.ndarray
) -> np.ndarray:
    """Return the order between each two successive steps, for the signals of `states`."""
    errors = []
    for step in steps:
        result = simulate(make(step), until, error_estimate=False)
        errors.append(np.abs(states(result) - exact).max())
    return np.log(np.divide(errors[:-1], errors[1:])) / np.log(np.divide(steps[:-1], steps[1:]))


def states(result) -> np.ndarray:
    return np.concatenate([np.atleast_1d(result[name][-1]) for name in ("slow", "fast")])


# Coupled in both directions: an oscillator of 2 rad/s, and eigenvalues near -36 and -64 1/s.
MATRIX = np.array(
    [[0, 1.0, 0, 0], [-4.0, -0.2, 1.0, 0], [30.0, 0, -40.0, 10.0], [0, 5.0, 10.0, -60.0]]
)
INITIAL = np.array([1.0, 0.0, 0.5, -0.3])


def linear(step: float, solver: str = "rk4", substeps: int | None = 20) -> Diagram:
    d = Diagram("linear", step, solver)
    half, none = np.eye(2), np.zeros((2, 2))
    slow = StateSpace(MATRIX[:2, :2], MATRIX[:2, 2:], half, none, initial=INITIAL[:2])
    fast = StateSpace(MATRIX[2:, 2:], MATRIX[2:, :2], half, none, initial=INITIAL[2:])
    d.add(slow, "slow")
    d.add(fast, "fast", u=slow)
    d.connect(fast, slow)
    if substeps:
        d.integrate(fast, substeps=substeps)
    return d


@pytest.mark.filterwarnings("ignore:.*not stable with steps")
@pytest.mark.parametrize("solver", ORDERS)
def test_the_order_on_a_linear_system_with_two_rates(solver):
    """Against the exponential of its matrix. The error has further terms: 0.25 is left to them."""
    steps = [1 / n for n in (20, 40, 80, 160)]
    exact = expm(MATRIX) @ INITIAL
    slopes = find_slopes(lambda step: linear(step, solver), steps, 1.0, exact)
    assert slopes[-2:] == pytest.approx(ORDERS[solver], abs=0.25)


def test_every_solver_that_takes_substeps_has_an_order():
    assert set(ORDERS) == set(STAGES)


class Swing(PythonBlock):
    """A driven pendulum that shows a function of its angle, and counts its evaluations."""

    def __init__(self) -> None:
        super().__init__(inputs=["u"], outputs=["y"], state=[1.0, 0.3], feedthrough=False)
        self.outputs_made = self.derivatives_made = 0

    def output(self, t, x, u):
        self.outputs_made += 1
        return np.sin(3.0 * x[0])

    def derivative(self, t, x, u):
        self.derivatives_made += 1
        return [x[1], -4.0 * np.sin(x[0]) - 0.1 * x[1] + 0.5 * u]


def nonlinear(step: float, solver: str = "rk4", substeps: int | None = 20, **options) -> Diagram:
    """The fast part reads a nonlinear output of the slow one, interpolated, and a source of its own
    rate; both parts have inputs through blocks without states."""
    d = Diagram("nonlinear", step, solver, **options)
    slow = d.add(Swing(), "slow")
    fast = d.add(Integrator(0.5), "fast")
    hum = d.add(Sine(frequency=8.0), "hum")
    rate = Expression("30 * (u - w - 0.3 * w ** 3) + 10 * s")
    d.connect(d.add(rate, "rate", u=slow, w=fast, s=hum), fast)
    d.connect(d.add(Expression("w * abs(w + 10) / 10"), "push", w=fast), slow)
    if substeps:
        d.integrate(fast, substeps=substeps)
    return d


@pytest.mark.parametrize("solver", ["rk3", "rk4"])
def test_the_order_on_a_nonlinear_system(solver):
    """Against dopri5 with a tolerance of 1e-13."""
    exact = states(simulate(nonlinear(0.1, "dopri5", None, tolerance=(1e-13, 1e-13)), 2.0))
    steps = [2 / n for n in (40, 80, 160, 320)]
    slopes = find_slopes(lambda step: nonlinear(step, solver), steps, 2.0, exact)
    assert slopes[-2:] == pytest.approx(ORDERS[solver], abs=0.25)


def test_slow_blocks_are_evaluated_once_in_each_stage_whatever_the_substeps():
    """Five derivatives a tick, and one for its gain. Outputs: at the tick, and two at three places
    in each of five intervals, of which one is for the sensitivity; no slow derivative reads them.
    """
    for substeps in (5, 20, 200):
        d = nonlinear(0.01, "rk4", substeps, events="tick")
        swing = d["slow"]
        assert isinstance(swing, Swing)
        with d.compile().instantiate() as instance:
            instance.run(1)
            swing.outputs_made = swing.derivatives_made = 0
            instance.run(10)
        assert swing.derivatives_made == 6 * 10
        assert swing.outputs_made == (1 + 6 * 5) * 10


def test_without_slow_states_substeps_are_steps():
    d = linear(0.05, substeps=None)
    d.integrate("slow", "fast", substeps=20)
    exact = states(simulate(linear(0.05 / 20, substeps=None), 1.0))
    assert states(simulate(d, 1.0)) == pytest.approx(exact, rel=1e-12)


# A DC motor: L di/dt = v - R i - k ω, J dω/dt = k i - b ω; L/R = 50 µs.
R, L, K, J, B = 1.0, 50e-6, 0.1, 1e-4, 1e-6


def motor(step: float, substeps: int | None, solver: str = "rk4", **options) -> Diagram:
    """With a mechanical time constant J R / k² of 10 ms."""
    circuit = Diagram("circuit")
    volts, speed = circuit.input("volts"), circuit.input("speed")
    i = circuit.add(Integrator(), "i")
    drop = circuit.add(Expression(f"(v - {R} * i - {K} * w) / {L}"), "drop", v=volts, i=i, w=speed)
    circuit.connect(drop, i)
    circuit.output("current", i)
    d = Diagram("motor", step, solver, **options)
    source = d.add(Step(at=0.0, to=12.0), "volts")
    windings = d.add(Subsystem(circuit), "circuit", volts=source)
    rotor = d.add(Integrator(), "rotor")
    d.connect(d.add(Expression(f"({K} * i - {B} * w) / {J}"), "torque", i=windings, w=rotor), rotor)
    d.connect(rotor, windings["speed"])
    d.output("speed", rotor)
    d.output("current", windings["current"])
    if substeps:
        d.integrate(windings, substeps=substeps)
    return d


def test_a_motor_against_the_closed_form():
    """Steps of 1 ms, a tenth of the mechanical time constant, and 20 times the electrical one: the
    local error of a method of order 4 is about 0.1⁵/120, in ten such steps 1e-6 of the range."""
    matrix = np.array([[-R / L, -K / L], [K / J, -B / J]])
    forced = np.linalg.solve(matrix, [-12.0 / L, 0.0])
    result = simulate(motor(1e-3, 50), 0.03)
    exact = np.array([forced - expm(matrix * t) @ forced for t in result.t])
    for name, column in (("current", 0), ("speed", 1)):
        error = np.abs(result[name] - exact[:, column]).max() / np.abs(exact[:, column]).max()
        assert error < 1e-5, name


def test_a_mechanism_is_slow_and_its_drive_fast():
    """A slider-crank with a motor whose circuit has 50 µs; against dopri5 at 1e-12."""

    def make(step: float, substeps: int | None, solver: str, **options) -> Diagram:
        d = Diagram("drive", step, solver, **options)
        plant = slider_crank().block(inputs=["motor.torque"], outputs=["main.speed", "main.angle"])
        d.add(plant, "plant")
        lag = d.add(TransferFunction([1.0], [50e-6, 1.0]), "lag")
        volts = d.add(Sine(2.0, frequency=3.0), "volts")
        d.connect(d.add(Expression("v - 0.05 * w"), "emf", v=volts, w=plant["main.speed"]), lag)
        d.connect(d.add(Gain(0.5), "torque", u=lag), plant["motor.torque"])
        if substeps:
            d.integrate(lag, substeps=substeps)
        return d

    exact = simulate(make(1e-2, None, "dopri5", tolerance=(1e-12, 1e-14)), 0.5)
    assert make(1e-3, 50, "rk4").compile().multirate["interpolated"] == ("plant",)
    result = simulate(make(1e-3, 50, "rk4"), 0.5, record=["*"])
    for name in ("plant.main.angle", "torque"):
        error = np.abs(result[name][-1] - exact[name][-1]) / np.abs(exact[name]).max()
        assert error < 1e-6, name


def test_two_mechanisms_are_slow_and_their_drives_fast():
    """Each is interpolated from its own outputs; against dopri5 at 1e-10."""

    def make(step: float, substeps: int | None, solver: str, **options) -> Diagram:
        d = Diagram("drives", step, solver, **options)
        for n in (1, 2):
            s = System("pendulum", planar=True)
            body = s.body("bob", mass=1.0, inertia=0.1 * n, position=(0.0, -1.0))
            s.revolute("pin", s.ground, body, at=(0, 0))
            s.force("push", body.marker("end"), (0.0, 0.0))
            plant = d.add(s.block(["push.force.x"], ["pin.speed", "pin.angle"]), f"plant{n}")
            lag = d.add(TransferFunction([float(n)], [50e-6, 1.0]), f"lag{n}")
            volts = d.add(Sine(2.0 + n, frequency=3.0), f"volts{n}")
            emf = d.add(Expression("v - 0.5 * w"), f"emf{n}", v=volts, w=plant["pin.speed"])
            d.connect(emf, lag)
            d.connect(d.add(Gain(1.0, unit="N"), f"force{n}", u=lag), plant["push.force.x"])
        if substeps:
            d.integrate("lag1", "lag2", substeps=substeps)
        return d

    exact = simulate(make(1e-2, None, "dopri5", tolerance=(1e-10, 1e-12)), 0.1)
    assert make(1e-3, 50, "rk4").compile().multirate["interpolated"] == ("plant1", "plant2")
    result = simulate(make(1e-3, 50, "rk4"), 0.1, record=["*"])
    for name in ("plant1.pin.angle", "plant2.pin.angle", "force1", "force2"):
        error = np.abs(result[name][-1] - exact[name][-1]) / np.abs(exact[name]).max()
        assert error < 1e-6, name


def test_a_source_of_the_fast_part_is_not_interpolated():
    """∫ sin(2π 100 t) dt over 5 ms, in one step of 10 stages of a tick that is a whole period."""
    d = Diagram("source", 10e-3)
    d.add(Integrator(), "w", u=d.add(Sine(frequency=100.0), "sine"))
    d.add(Integrator(1.0), "x", u=d["w"])
    d.integrate("w", substeps=200)
    with d.compile().instantiate() as instance:
        instance.run(1)
        assert instance.get("w") == pytest.approx(0.0, abs=1e-9)
        instance.run_to(15e-3)
        # Simpson's rule with the frequency times the substep 0.0314: its error is below 1e-8.
        assert instance.get("w") == pytest.approx(2.0 / (2 * np.pi * 100.0), rel=1e-7)


def test_an_algebraic_loop_across_the_border_is_solved():
    """y = w - 0.5 z, z = x + 0.4 y, with x slow and w fast; both derivatives read the loop."""

    def make(step: float, substeps: int) -> Diagram:
        d = Diagram("loop", step)
        x, w = d.add(Integrator(1.0), "slow"), d.add(Integrator(-1.0), "fast")
        y, z = d.add(Expression("w - 0.5 * z"), "y", w=w), d.add(Expression("x + 0.4 * y"), "z")
        d.connect(x, z["x"])
        d.connect(y, z["y"])
        d.connect(z, y["z"])
        d.connect(d.add(Gain(-1.0), "gx", u=z), x)
        d.connect(d.add(Gain(-50.0), "gw", u=y), w)
        d.integrate(w, substeps=substeps)
        return d

    matrix = np.array([[-1.0, 0.0], [0.0, -50.0]]) @ np.linalg.solve(
        [[1.0, -0.4], [0.5, 1.0]], np.eye(2)
    )
    exact = expm(matrix) @ [1.0, -1.0]
    assert len(make(0.05, 20).compile().loops) == 1
    # h λ of a substep is 0.1, that of a step in the slow part 0.05: both errors are below 1e-8.
    assert states(simulate(make(0.05, 20), 1.0)) == pytest.approx(exact, abs=1e-8)


def test_a_conditional_subsystem_takes_substeps_while_it_runs():
    """Disabled for half of the time: then its state stands still."""
    inside = Diagram("inside")
    w = inside.add(Integrator(1.0), "w")
    inside.connect(inside.add(Gain(-40.0), "g", u=w), w)
    inside.output("w", w)
    d = Diagram("outside", 0.05)
    on = d.add(Compare("<", 0.5), "on", u=d.add(Step(at=0.5), "step"))
    d.add(Subsystem(inside, enable=True), "sub", enable=on)
    d.add(Integrator(1.0), "x", u=d["sub"])
    d.integrate("sub", substeps=25)
    result = simulate(d, 1.0)
    # The output of the last tick before it was disabled. h λ of a substep is 0.08: rk4 is exact to
    # 0.08⁵/120 of the value in each.
    assert result["sub.w"][-1] == pytest.approx(np.exp(-40.0 * 0.45), rel=1e-4)
    assert np.ptp(result["sub.w"][result.t > 0.51]) == 0.0


def test_a_run_continues_from_a_saved_state_to_the_bit():
    with motor(1e-3, 50).compile().instantiate() as instance:
        instance.run(7)
        instance.run_to(instance.time + 0.4e-3)
        saved = instance.save()
        instance.run(20)
        first = instance.values.copy()
        instance.restore(saved)
        instance.run(20)
        assert np.array_equal(instance.values, first)
    with motor(1e-3, 50).compile().instantiate() as other:
        other.restore(saved)
        other.run(20)
        assert np.array_equal(other.values, first)


def test_an_exported_fmu_gives_the_same_bits(tmp_path: Path):
    path = motor(1e-3, 50).export_fmu(tmp_path / "motor.fmu")
    run = fmpy.simulate_fmu(str(path), stop_time=0.03, step_size=1e-3, output_interval=1e-3)
    result = simulate(motor(1e-3, 50), 0.03)
    for name in ("speed", "current"):
        assert np.array_equal(run[name], result[name])


def test_error_control_chooses_the_steps_itself():
    options: dict[str, Any] = {"solver": "dopri5", "tolerance": 1e-8}
    with_substeps = simulate(motor(1e-3, 50), 0.01, **options)
    assert np.array_equal(
        with_substeps["speed"], simulate(motor(1e-3, None), 0.01, **options)["speed"]
    )


def test_the_error_estimate_divides_substeps_too():
    """All error is in the fast part: an oscillator of 20 rad/s with substeps of 20 ms, which are
    late by about 0.4⁵/120 rad each: 0.02 rad after 5 s."""
    d = Diagram("coarse", 0.1)
    oscillator = StateSpace([[0.0, 20.0], [-20.0, 0.0]], [[0.0]] * 2, np.eye(2), initial=[1.0, 0.0])
    w = d.add(oscillator, "w", u=d.add(Constant(0.0), "zero"))
    d.add(Integrator(), "x", u=d["zero"])
    d.integrate(w, substeps=5)
    with pytest.warns(BiellaWarning, match="estimated error of `w.y`"):
        result = simulate(d, 5.0)
    error = np.abs(result["w.y"][:, 0] - np.cos(20.0 * result.t)).max() / 2.0
    assert result.error_estimate is not None
    assert result.error_estimate.signals["w.y"] == pytest.approx(error, rel=0.5)


def test_too_few_substeps_are_warned_of_or_end_the_run():
    with pytest.warns(BiellaWarning, match="not stable with steps of 0.0002 s"):
        d = Diagram("unstable", 1e-3)
        lag = d.add(TransferFunction([1.0], [50e-6, 1.0]), "lag", u=d.add(Step(), "step"))
        d.add(Integrator(), "x", u=lag)
        d.integrate(lag, substeps=5)
        d.compile()


def test_a_nested_diagram_sets_its_own_substeps():
    circuit = Diagram("circuit")
    i = circuit.add(Integrator(1.0), "i")
    circuit.connect(circuit.add(Gain(-1e3), "g", u=i), i)
    circuit.integrate(i, substeps=7)
    circuit.output("i", i)
    d = Diagram("outer", 1e-3)
    d.add(Subsystem(circuit), "a")
    d.add(Subsystem(circuit), "b")
    d.add(Integrator(), "x", u=d.add(Sum("++"), "sum", u1=d["a"], u2=d["b"]))
    multirate = d.compile().multirate
    assert multirate["blocks"] == ("a.i", "b.i")
    assert multirate["substeps"] == 10


def test_each_slow_block_follows_its_own_fast_one():
    """Two motors: i' = (v - R i - k w)/L is fast and w' = i k/J slow; both by exp(A t).

    Each substep sees the speed of its own motor within the step. Without that, the error is 1e-3.
    """
    h, until = 1e-2, 0.5
    d = Diagram("motors", h)
    expected = []
    for n, (r, k, inertia, speed) in enumerate([(1.0, 0.5, 0.02, 3.0), (2.0, 0.3, 0.01, -1.0)]):
        i, w = d.add(Integrator(0.0), f"i{n}"), d.add(Integrator(speed), f"w{n}")
        d.connect(d.add(Expression(f"(1 - {r}*i - {k}*w)/0.002"), f"di{n}", i=i, w=w), i)
        d.connect(d.add(Gain(k / inertia), f"dw{n}", u=i), w)
        d.integrate(i, substeps=20)
        a = np.array([[-r / 0.002, -k / 0.002, 1 / 0.002], [k / inertia, 0, 0], [0, 0, 0]])
        expected += (expm(a * until) @ [0.0, speed, 1.0])[:2].tolist()
    with d.compile().instantiate() as instance:
        instance.run(round(until / h))
        found = [instance.get(f"{name}{n}") for n in range(2) for name in "iw"]
    assert found == pytest.approx(expected, rel=1e-5)
