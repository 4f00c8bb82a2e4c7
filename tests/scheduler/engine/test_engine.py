"""The engine: solvers, rates, save and restore, failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella import BiellaError, BlockError, Diagram, DiagramError, System, simulate
from biella.blocks import (
    Constant,
    Expression,
    Gain,
    Integrator,
    Port,
    PythonBlock,
    Time,
    TransportDelay,
    UnitDelay,
    ZeroOrderHold,
    python_block,
)
from biella.blocks.multibody import Input
from biella.scheduler.compile.diagram._solver_options import SOLVERS

pytestmark = pytest.mark.engine


def test_time_is_an_integer_tick(pendulum_loop):
    result = simulate(pendulum_loop(), 3.0)
    assert np.array_equal(result.t, np.arange(3001) * 1e-3)


def test_periodic_blocks_hold_between_their_hits(pendulum_loop):
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
    clock = d.add(Constant(1.0), name="one")
    x = d.add(Integrator(), name="x")
    held = d.add(Gain(1.0), name="held", period=0.5, offset=0.2)
    d.connect(clock, x)
    d.connect(x, held)
    got = simulate(d, 1.5)["held"]
    assert np.allclose(got, [0, 0, *[0.2] * 5, *[0.7] * 5, *[1.2] * 4], atol=1e-12)


def test_save_and_restore_are_bit_exact(pendulum_loop):
    plan = pendulum_loop().compile()
    with plan.instantiate() as first, plan.instantiate() as second:
        first.run(137)
        state = first.save()
        first.run(500)
        second.restore(state)
        second.run(500)
        assert first.tick == second.tick == 637
        assert first.save() == second.save()


@pytest.mark.filterwarnings("ignore:the estimated error")  # steps are coarse on purpose
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_run_goes_on_from_a_checkpoint_with_the_same_bits(pendulum_loop, solver):
    d = pendulum_loop()
    whole = simulate(d, 1.0, solver=solver)
    part = simulate(d, 0.4, solver=solver)
    rest = simulate(d, 1.0, solver=solver, checkpoint=part.checkpoint)
    for path in whole:
        joined = np.concatenate([part[path][:-1], rest[path]])
        assert np.array_equal(joined, whole[path])


def test_a_checkpoint_of_another_plan_is_refused(pendulum_loop):
    other = Diagram()
    other.add(Constant(1.0))
    part = simulate(other, 0.1)
    with pytest.raises(BiellaError, match="state"):
        simulate(pendulum_loop(), 1.0, checkpoint=part.checkpoint)


def test_outputs_are_pure(pendulum_loop):
    with pendulum_loop().compile().instantiate() as run:
        run.run(10)
        run.evaluate()
        once = run.save()
        run.touch()
        run.evaluate()
        assert run.save() == once


def test_parameters_and_inputs_are_set_by_path(pendulum_loop):
    d = pendulum_loop()
    a = simulate(d, 0.1, parameters={"kp.k": 5.0})
    d2 = pendulum_loop()
    assert not np.array_equal(a["kp"], simulate(d2, 0.1)["kp"])
    with pytest.raises(BiellaError, match=r"no parameter or input `kp.kk`. Did you mean `kp.k`"):
        simulate(d, 0.1, parameters={"kp.kk": 5.0})
    with pytest.raises(BiellaError, match="must be finite"):
        simulate(d, 0.1, parameters={"kp.k": float("nan")})


def test_a_changed_constant_reaches_its_consumers(pendulum_loop):
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


def test_a_block_that_does_not_fit_the_step_is_named():
    d = Diagram(step=0.1)
    one = d.add(Constant(1.0))
    d.connect(one, d.add(TransportDelay(0.01), name="late"))
    with pytest.raises(DiagramError, match="`late`"):
        d.compile()


# What is told when numbers go wrong.


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


def test_a_block_with_an_offset_does_not_update_before_it():
    """It gives its initial output at the first tick, and takes its first sample at its offset."""
    d = Diagram("late", step=0.25)
    d.connect(d.add(Time(), "time"), d.add(UnitDelay(-1.0), "delay", period=0.75, offset=0.5))
    assert simulate(d, 2.25)["delay"].tolist() == [-1, -1, -1, -1, -1, 0.5, 0.5, 0.5, 1.25, 1.25]


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_a_sampled_motion_goes_on_through_the_parts_of_a_tick(parts):
    """A mass of 1 kg on a spring of 50 N/m, whose other end is moved by 0.1 m/s: place and rate
    are sampled, so that the place within a tick is that of the sample and what has passed since."""
    s = System("moved", (0, 0), planar=True)
    body = s.body("mass", mass=1.0, inertia=1.0, position=(1.0, 0))
    s.prismatic("slide", s.ground, body, at=(1, 0), axis=(1, 0))
    end = s.ground.marker("end", (0, 0), motion={"x": Input("x")})
    s.spring("spring", end, body.marker("m"), stiffness=50.0, free_length=1.0)
    d = Diagram("held", step=0.1)
    b = d.add(s.block(outputs=["slide.displacement"], mode="internal", substeps=8), "b")
    for name, law in (("x", "0.1*t"), ("x_rate", "0.1 + 0*t")):
        hold = d.add(ZeroOrderHold(), f"hold_{name}", period=0.1)
        d.connect(d.add(Expression(law), f"law_{name}"), hold)
        d.connect(hold, b[name])
    with d.compile().instantiate() as instance:
        for n in range(1, 10 * parts + 1):
            instance.run_to(0.1 * n / parts)
        frequency = np.sqrt(50.0)
        exact = 0.1 - 0.1 / frequency * np.sin(frequency)
        assert instance.get("b.slide.displacement") == pytest.approx(exact, abs=1e-6)
