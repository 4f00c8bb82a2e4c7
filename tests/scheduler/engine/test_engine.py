"""The engine: solvers, rates, save and restore, failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella import BiellaError, BlockError, Diagram, DiagramError, Plan, simulate
from biella.blocks import (
    Constant,
    Gain,
    Integrator,
    Pendulum,
    Port,
    PythonBlock,
    Saturation,
    Sine,
    Sum,
    TransportDelay,
    UnitDelay,
    python_block,
)
from biella.scheduler.compile.solver_options import SOLVERS

pytestmark = pytest.mark.engine

ORDERS = {
    "euler": 1,
    "heun": 2,
    "rk3": 3,
    "rk4": 4,
    "dopri5": 5,
    "backward_euler": 1,
    "trapezoidal": 2,
}


class Power(PythonBlock):
    """u(t) = (n + 1) t^n, whose integral is t^(n+1)."""

    def __init__(self, n: int) -> None:
        super().__init__(outputs=["y"])
        self.n = n

    def output(self, t, x, u):
        return (self.n + 1) * t**self.n


def test_every_solver_has_an_order():
    assert set(ORDERS) == set(SOLVERS)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_solver_is_exact_on_polynomials_of_its_order(solver):
    for degree in range(1, ORDERS[solver] + 1):
        d = Diagram(step=0.1, solver=solver)
        source = d.add(Power(degree - 1))
        x = d.add(Integrator(0.0), name="x")
        d.connect(source, x)
        result = simulate(d, 1.0)
        # Rounding of ten steps, and 1e-12 of Newton's stop for the implicit ones.
        assert result["x"][-1] == pytest.approx(1.0, abs=1e-11)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_error_falls_with_the_order_on_a_nonlinear_oscillator(solver):
    """Pendulum from 2 rad; the reference is dopri5 at a step where its error is rounding."""

    def end(step, solver):
        d = Diagram(step=step, solver=solver)
        p = d.add(Pendulum(angle=2.0), name="p")
        d.output("angle", p["angle"])
        return simulate(d, 1.0, record=["p.angle"])["p.angle"][-1]

    reference = end(1 / 4096, "dopri5")
    steps = np.array([1 / 32, 1 / 64, 1 / 128])
    errors = np.array([abs(end(step, solver) - reference) for step in steps])
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(ORDERS[solver], abs=0.35)


def test_implicit_solvers_hold_a_stiff_diagram_where_explicit_ones_do_not():
    def decay(solver):
        d = Diagram(step=0.01, solver=solver)
        x, k = d.add(Integrator(1.0), name="x"), d.add(Gain(-1e5))
        d.connect(x, k)
        d.connect(k, x)
        return simulate(d, 1.0)["x"]

    assert abs(decay("backward_euler")[-1]) < 1e-12
    assert abs(decay("trapezoidal")[-1]) < 1.0
    with pytest.raises(BlockError, match="not finite"):
        decay("rk4")


def pendulum_loop() -> Diagram:
    """A multirate loop with continuous and discrete states."""
    d = Diagram("pendulum loop")
    ref = d.add(Constant(0.5, unit="rad"), name="ref")
    p = d.add(Pendulum(angle=0.2, damping=0.1), name="pendulum")
    error = d.add(Sum("+-"), name="error")
    gain = d.add(Gain(3.0, unit="N.m"), name="kp", period=0.01)
    delay = d.add(UnitDelay(), name="delay", period=0.01)
    d.connect(ref, error["u1"])
    d.connect(p["angle"], error["u2"])
    d.connect(error, gain)
    d.connect(gain, delay)
    d.connect(delay, p)
    d.output("angle", p["angle"])
    return d


def test_time_is_an_integer_tick():
    result = simulate(pendulum_loop(), 3.0)
    assert np.array_equal(result.t, np.arange(3001) * 1e-3)


def test_periodic_blocks_hold_between_their_hits():
    kp = simulate(pendulum_loop(), 0.2)["kp"]
    for n in range(20):
        assert np.all(kp[10 * n : 10 * n + 10] == kp[10 * n])
    assert len(set(kp[:-1])) == 20


def test_multirate_loop_against_an_exact_discrete_solution():
    """Plant 1/s, u held for 5 ticks: x+ = x + h u, with u = -k x sampled every 5 ticks, delayed."""
    h, k = 1e-3, 30.0
    d = Diagram(step=h, solver="rk4")
    x = d.add(Integrator(1.0), name="x")
    gain = d.add(Gain(-k), name="gain", period=5 * h)
    delay = d.add(UnitDelay(), name="delay", period=5 * h)
    d.connect(x, gain)
    d.connect(gain, delay)
    d.connect(delay, x)
    got = simulate(d, 0.5)["x"]
    exact, held, pending = [1.0], 0.0, 0.0
    for tick in range(500):
        if tick % 5 == 0:
            held, pending = pending, -k * exact[-1]
        exact.append(exact[-1] + h * held)
    # RK4 is exact for a constant slope; what remains is rounding of 500 steps.
    assert np.allclose(got, exact, rtol=0, atol=1e-13)


def test_offset_moves_the_hits():
    d = Diagram(step=0.1)
    clock = d.add(Power(0), name="one")
    x = d.add(Integrator(), name="x")
    held = d.add(Gain(1.0), name="held", period=0.5, offset=0.2)
    d.connect(clock, x)
    d.connect(x, held)
    got = simulate(d, 1.5)["held"]
    assert np.allclose(got, [0, 0, *[0.2] * 5, *[0.7] * 5, *[1.2] * 4], atol=1e-12)


def test_save_and_restore_are_bit_exact():
    plan = pendulum_loop().compile()
    with plan.instantiate() as first, plan.instantiate() as second:
        first.run(137)
        state = first.save()
        first.run(500)
        second.restore(state)
        second.run(500)
        assert first.tick == second.tick == 637
        assert first.save() == second.save()


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_run_goes_on_from_a_checkpoint_with_the_same_bits(solver):
    d = pendulum_loop()
    whole = simulate(d, 1.0, solver=solver)
    part = simulate(d, 0.4, solver=solver)
    rest = simulate(d, 1.0, solver=solver, checkpoint=part.checkpoint)
    for path in whole:
        joined = np.concatenate([part[path][:-1], rest[path]])
        assert np.array_equal(joined, whole[path])


def test_a_checkpoint_of_another_plan_is_refused():
    other = Diagram()
    other.add(Constant(1.0))
    part = simulate(other, 0.1)
    with pytest.raises(BiellaError, match="state"):
        simulate(pendulum_loop(), 1.0, checkpoint=part.checkpoint)


def test_outputs_are_pure():
    with pendulum_loop().compile().instantiate() as run:
        run.run(10)
        run.evaluate()
        once = run.save()
        run.touch()
        run.evaluate()
        assert run.save() == once


def test_a_plan_is_the_same_bytes_every_time_and_survives_a_file(tmp_path):
    plan = pendulum_loop().compile()
    assert plan.data == pendulum_loop().compile().data
    plan.save(tmp_path / "loop.plan")
    loaded = Plan.load(tmp_path / "loop.plan")
    assert loaded.data == plan.data and loaded.hash == plan.hash
    a, b = simulate(plan, 0.5), simulate(loaded, 0.5)
    assert a.paths == b.paths and np.array_equal(a["pendulum.angle"], b["pendulum.angle"])


def test_parameters_and_inputs_are_set_by_path():
    d = pendulum_loop()
    a = simulate(d, 0.1, parameters={"kp.k": 5.0})
    d2 = pendulum_loop()
    assert not np.array_equal(a["kp"], simulate(d2, 0.1)["kp"])
    with pytest.raises(BiellaError, match=r"no parameter or input `kp.kk`. Did you mean `kp.k`"):
        simulate(d, 0.1, parameters={"kp.kk": 5.0})
    with pytest.raises(BiellaError, match="must be finite"):
        simulate(d, 0.1, parameters={"kp.k": float("nan")})


def test_a_changed_constant_reaches_its_consumers():
    with pendulum_loop().compile().instantiate() as run:
        run.run(5)
        run.set("ref.value", 1.5)
        assert run.get("ref") == 1.5
        assert run.get("error") == 1.5 - run.get("pendulum.angle")


def test_not_finite_names_the_block_that_made_it():
    @python_block(outputs=["y"])
    def bad(t, u):
        return float("nan") if t >= 0.05 else u

    d = Diagram(step=0.01)
    source = d.add(Constant(1.0), name="one")
    culprit = d.add(bad(), name="culprit")
    after = d.add(Gain(2.0), name="after")
    d.connect(source, culprit)
    d.connect(culprit, after)
    with pytest.raises(
        BlockError, match=r"`culprit` .* not finite at t = 0.05 s \(tick 5\)"
    ) as info:
        simulate(d, 1.0)
    assert info.value.path == "culprit" and info.value.tick == 5
    assert info.value.result is not None
    assert len(info.value.result.t) == 5


def test_an_overflowing_state_names_its_block():
    d = Diagram(step=1.0, solver="euler")
    x = d.add(Integrator(1.0), name="x")
    k = d.add(Gain(1e300), name="k")
    d.connect(x, k)
    d.connect(k, x)
    with pytest.raises(BlockError, match=r"`k` .* not finite|`x` .* not finite"):
        simulate(d, 10.0)


def test_an_exception_in_a_python_block_stops_the_run_and_says_everything():
    @python_block(outputs=["y"])
    def divide(t, u):
        return 1.0 / (u - 3.0)

    d = Diagram(step=0.1, solver="euler")
    one = d.add(Constant(1.0))
    x = d.add(Integrator(0.0), name="x")
    bad = d.add(divide(), name="divide")
    d.connect(one, x)
    d.connect(x, bad)
    d.add(UnitDelay(), name="end")
    d.connect(bad, d["end"])
    x0 = 0.0
    for _ in range(30):
        x0 += 0.1
    with pytest.raises(BlockError) as info:
        simulate(d, 10.0, parameters={"x.initial": 3.0 - x0})
    text = str(info.value)
    assert "`divide`" in text and "ZeroDivisionError" in text and "tick 30" in text
    assert "u = 3" in text
    assert isinstance(info.value.__cause__, ZeroDivisionError)
    traceback = info.value.__cause__.__traceback__
    assert traceback is not None and traceback.tb_next is not None
    assert info.value.result is not None
    assert len(info.value.result.t) == 30


def test_ctrl_c_keeps_what_was_recorded():
    class Interrupt(PythonBlock):
        def __init__(self):
            super().__init__(inputs=["u"])

        def update(self, t, x, u):
            if t >= 0.5:
                raise KeyboardInterrupt

    d = Diagram(step=0.1)
    one = d.add(Constant(1.0), name="one")
    sink = d.add(Interrupt(), name="sink")
    d.connect(one, sink)
    result = simulate(d, 10.0)
    assert "interrupted at t = 0.5" in result.info["stopped"]
    assert len(result.t) == 6


def test_python_blocks_with_state_run_like_native_ones():
    class Lag(PythonBlock):
        def __init__(self):
            super().__init__(inputs=["u"], outputs=["y"], state=[0.5], feedthrough=False)

        def output(self, t, x, u):
            return x[0]

        def derivative(self, t, x, u):
            return u

    class Delay(PythonBlock):
        def __init__(self):
            super().__init__(
                inputs=["u"], outputs=["y"], state=[0.0], period=0.02, feedthrough=False
            )

        def output(self, t, x, u):
            return x[0]

        def update(self, t, x, u):
            return [u]

    def loop(integrator, delay, period=None):
        d = Diagram(step=0.01)
        x = d.add(integrator, name="x")
        k = d.add(Gain(-2.0), name="k")
        z = d.add(delay, name="z", period=period)
        d.connect(x, k)
        d.connect(k, z)
        d.connect(z, x)
        return simulate(d, 1.0)

    native = loop(Integrator(0.5), UnitDelay(), period=0.02)
    python = loop(Lag(), Delay())
    for path in native:
        assert np.array_equal(native[path], python[path])


def test_recording_is_chosen_and_decimated():
    d = pendulum_loop()
    full = simulate(d, 1.0)
    some = simulate(d, 1.0, record=["pendulum.*", "kp"], every=10)
    assert some.paths == ["pendulum.angle", "pendulum.speed", "kp.y"]
    assert np.array_equal(some.t, full.t[::10])
    assert np.array_equal(some["kp"], full["kp"][::10])
    with pytest.raises(BiellaError, match=r"no signal `pendulum.angel`. Did you mean"):
        simulate(d, 1.0, record=["pendulum.angel"])


def test_recording_everything_of_a_huge_run_is_refused_with_advice():
    with pytest.raises(BiellaError, match=r"GB of memory.*out='run.h5'"):
        simulate(pendulum_loop(), 1e6)


def test_streaming_gives_the_same_numbers(tmp_path):
    d = pendulum_loop()
    a = simulate(d, 1.0)
    b = simulate(d, 1.0, out=tmp_path / "run.h5")
    for path in a:
        assert np.array_equal(a[path], b[path])


@pytest.mark.parametrize("solver", ["backward_euler", "trapezoidal"])
def test_implicit_solvers_get_over_a_kink(solver):
    """dx/dt = -50 sat(x) + 100 sin(18 pi t): the slope of the saturation jumps inside a step."""
    d = Diagram(step=0.01, solver=solver)
    x = d.add(Integrator(0.0), name="x")
    limit = d.add(Saturation(-0.5, 0.5), name="limit")
    back = d.add(Gain(-50.0), name="back")
    push = d.add(Sine(100.0, 9.0), name="push")
    total = d.add(Sum("++"), name="total")
    d.connect(x, limit)
    d.connect(limit, back)
    d.connect(back, total["u1"])
    d.connect(push, total["u2"])
    d.connect(total, x)
    coarse = simulate(d, 1.0)["x"][-1]
    fine = simulate(d, 1.0, step=1e-4, solver="rk4")["x"][-1]
    assert coarse == pytest.approx(fine, abs=0.5)  # first order, 11 steps a period


def test_a_block_that_does_not_fit_the_step_is_named():
    d = Diagram(step=0.1)
    one = d.add(Constant(1.0))
    d.connect(one, d.add(TransportDelay(0.01), name="late"))
    with pytest.raises(DiagramError, match="`late`"):
        d.compile()


# What is told when numbers go wrong.


def test_a_stiff_diagram_that_overflows_is_told_with_step_and_solver():
    """x' = -1e4 x in a loop of blocks, none of which is stiff by itself."""
    d = Diagram("stiff", step=1e-2)
    d.connect(d.add(Integrator(1.0), name="x"), d.add(Gain(-1e4), name="k"))
    d.connect("k", "x")
    with pytest.raises(
        BlockError,
        match=r"not finite.*cause is the step.*1e\+04 1/s.*`rk4` is stable.*up to 0\.000279 s, not "
        r"0\.01 s.*backward_euler",
    ):
        simulate(d, 20.0)
    assert np.isfinite(simulate(d, 20.0, solver="backward_euler")["x"]).all()


def test_a_diagram_that_is_unstable_itself_is_reported_so():
    d = Diagram("unstable", step=1e-2)
    d.connect(d.add(Integrator(1.0), name="x"), d.add(Gain(50.0), name="k"))
    d.connect("k", "x")
    with pytest.raises(BlockError, match=r"unstable at the start.*time constant of 0\.02 s"):
        simulate(d, 20.0)


@pytest.mark.parametrize(
    ("value", "width", "message"),
    [
        (None, 1, r"a number for `y`, but returned None: every path needs a `return`"),
        (None, 3, r"3 numbers for `y`, but returned None"),
        ([1.0, 2.0], 1, r"a number for `y`, got 2 \(an array of shape \(2,\)\)"),
        ([1.0, 2.0], 3, r"3 numbers for `y`, got 2"),
        ("fast", 1, r"a number for `y`, got 'fast'"),
    ],
)
def test_what_a_python_block_returns_wrongly_is_reported(value, width, message):
    class Wrong(PythonBlock):
        def __init__(self):
            super().__init__(outputs=[Port("y", width)])

        def output(self, t, x, u):
            return value

    d = Diagram()
    d.add(Wrong(), name="f")
    with pytest.raises(BlockError, match=rf"`f` \(Wrong\) raised .*output must return {message}"):
        simulate(d, 0.1)


@pytest.mark.parametrize("method", ["derivative", "update"])
@pytest.mark.parametrize(("value", "told"), [(None, "returned None"), ([1.0, 2.0, 3.0], "got 3")])
def test_a_state_of_the_wrong_size_is_reported(method, value, told):
    class Wrong(PythonBlock):
        def __init__(self):
            period: dict[str, Any] = {"period": 0.01} if method == "update" else {}
            super().__init__(outputs=["y"], state=[0.0, 0.0], **period)

        def output(self, t, x, u):
            return x[0]

    setattr(Wrong, method, lambda self, t, x, u: value)
    d = Diagram()
    d.add(Wrong(), name="f")
    with pytest.raises(BlockError, match=rf"{method} must return 2 numbers, .*{told}"):
        simulate(d, 0.1)
