"""Conditional subsystems: enabled, triggered, resettable; held, reset, nested, repeatable."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from biella import Diagram, DiagramError, Subsystem, simulate
from biella.blocks import Constant, Gain, Integrator, Port, PythonBlock, Sum, UnitDelay
from biella.blocks.multibody import System
from biella.scheduler.compile.diagram._solver_options import SOLVERS

pytestmark = pytest.mark.engine

OFF_ON_OFF_ON = [0, 0, 1, 1, 1, 0, 0, 1, 1]


def counter(period=None, initial=0.0) -> Diagram:
    """Counts the ticks at which it runs: count = 1, 2, …."""
    inner = Diagram("counter")
    one = inner.add(Constant(1.0), name="one")
    total = inner.add(Sum("++"), name="total", period=period)
    delay = inner.add(UnitDelay(initial), name="delay", period=period)
    inner.connect(one, total["u1"])
    inner.connect(delay, total["u2"])
    inner.connect(total, delay)
    inner.output("count", total)
    return inner


def ramp(initial=5.0) -> Diagram:
    """dx/dt = u."""
    inner = Diagram("ramp")
    u = inner.input("u", default=1.0)
    x = inner.add(Integrator(initial), name="x")
    inner.connect(u, x)
    inner.output("x", x)
    return inner


def control_of(sub: Subsystem) -> tuple[Literal["boolean", "real"], str]:
    """Return the kind and the name of the control port."""
    assert sub.control is not None
    return ("boolean" if sub.control == "enable" else "real"), sub.control


def around(inner: Diagram, step=0.1, solver="rk4", **options) -> Diagram:
    """`inner` as the conditional subsystem `sub`, its control signal as an input of the diagram."""
    d = Diagram("around", step=step, solver=solver)
    sub = d.add(Subsystem(inner, **options), name="sub")
    kind, control = control_of(sub)
    d.connect(d.input("control", kind=kind), sub[control])
    for name in inner.outports:
        d.output(name, sub[name])
    return d


def drive(d: Diagram, path: str, **inputs) -> list:
    """The signal `path` at each tick, inputs set tick by tick."""
    with d.compile().instantiate() as run:
        seen = []
        for values in zip(*inputs.values(), strict=True):
            for name, value in zip(inputs, values, strict=True):
                run.set(name, value)
            seen.append(run.get(path))
            run.run(1)
        return seen


# Enabled.


def test_outputs_are_held_and_states_stand_still_while_disabled():
    got = drive(around(counter(), enable=True, initial=-1.0), "count", control=OFF_ON_OFF_ON)
    assert got == [-1, -1, 1, 2, 3, 3, 3, 4, 5]


def test_outputs_are_reset_to_the_initial_value_while_disabled():
    d = around(counter(), enable=True, outputs="reset", initial=-1.0)
    assert drive(d, "count", control=OFF_ON_OFF_ON) == [-1, -1, 1, 2, 3, -1, -1, 4, 5]


def test_states_are_reset_when_it_is_enabled_again():
    d = around(counter(), enable=True, states="reset")
    assert drive(d, "count", control=[1, 1, 0, 1, 1, 1, 0, 1]) == [1, 2, 2, 1, 2, 3, 3, 1]


@pytest.mark.parametrize("solver", SOLVERS)
def test_continuous_states_stand_still_while_disabled(solver):
    """x counts the enabled steps; the output holds the value of the last enabled tick."""
    d = around(ramp(), enable=True, solver=solver)
    x = drive(d, "sub.x.y", control=OFF_ON_OFF_ON)
    shown = drive(d, "x", control=OFF_ON_OFF_ON)
    # A slope of one is integrated exactly by every method: what remains is rounding, and Newton's
    # stop at 1e-12 for the implicit ones.
    assert np.allclose(shown, [0, 0, 5.0, 5.1, 5.2, 5.2, 5.2, 5.3, 5.4], rtol=0, atol=1e-11)
    assert np.allclose(x[2:], shown[2:], rtol=0, atol=1e-11)


def test_continuous_states_are_reset_when_it_is_enabled_again():
    d = around(ramp(), enable=True, states="reset")
    shown = drive(d, "x", control=[1, 1, 0, 0, 1, 1])
    assert np.allclose(shown, [5.0, 5.1, 5.1, 5.1, 5.0, 5.1], rtol=0, atol=1e-14)


def test_a_mechanism_with_internal_steps_stands_still_while_disabled():
    """At 2 m/s without forces it moves 0.2 m in each step in which its subsystem is enabled."""
    system = System("slider", (0, 0), planar=True)
    body = system.body("mass", mass=1.0, inertia=1.0, velocity=(2.0, 0.0))
    system.prismatic("slide", system.ground, body, at=(0, 0), axis=(1, 0))
    inner = Diagram("plant")
    plant = inner.add(system.block([], ["slide.displacement"], mode="internal"), name="plant")
    inner.output("s", plant["slide.displacement"])
    got = drive(around(inner, enable=True), "s", control=OFF_ON_OFF_ON)
    assert np.allclose(got, [0, 0, 0, 0.2, 0.4, 0.4, 0.4, 0.6, 0.8], rtol=0, atol=1e-14)


def test_an_implicit_solver_takes_a_stiff_subsystem_in_and_out():
    """Its Jacobian, kept from step to step, changes when the subsystem is disabled."""
    inner = Diagram("fast")
    x, k = inner.add(Integrator(1.0), name="x"), inner.add(Gain(-1e4), name="k")
    inner.connect(x, k)
    inner.connect(k, x)
    inner.output("x", x)
    d = around(inner, enable=True, solver="backward_euler", step=1e-3)
    control = [1, 1, 0, 0, 0, 1, 1, 0, 1]
    got = drive(d, "x", control=control)
    exact, x0, held = [], 1.0, 0.0
    for on in control:
        held = x0 if on else held
        exact.append(held)
        x0 = x0 / 11.0 if on else x0
    assert np.allclose(got, exact, rtol=1e-9, atol=1e-12)


def test_blocks_of_a_period_inside_hit_on_the_clock_of_the_whole_diagram():
    """Enabled at tick 3, a counter of three ticks counts at 3; enabled at 7, only at 9."""
    d = around(counter(period=0.3), enable=True, initial=-1.0)
    got = drive(d, "count", control=[0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1])
    assert got == [-1, -1, -1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3]


def test_a_slow_block_gives_its_first_output_when_it_is_enabled_between_two_hits():
    """As at the first tick of a run, where everything is due."""
    d = around(counter(period=0.4, initial=6.0), enable=True, initial=-1.0)
    got = drive(d, "count", control=[0, 0, 1, 1, 1, 1, 1, 1, 1])
    assert got == [-1, -1, 7, 7, 7, 7, 7, 7, 8]


def test_outputs_of_slow_blocks_are_reset_at_once():
    d = around(counter(period=0.4), enable=True, outputs="reset", initial=-1.0)
    assert drive(d, "count", control=[1, 1, 0, 1, 0, 1, 1]) == [1, 1, -1, 1, -1, 1, 1]


def test_a_constant_in_a_subsystem_that_starts_disabled():
    inner = Diagram("constant")
    inner.output("y", inner.add(Constant([2.0, 3.0]), name="c"))
    d = around(inner, enable=True, initial=9.0)
    got = drive(d, "y", control=[0, 1, 0])
    assert np.array_equal(got, [[9, 9], [2, 3], [2, 3]])


class When(PythonBlock):
    """A boolean function of time."""

    def __init__(self, function):
        super().__init__(outputs=[Port("on", kind="boolean")])
        self.function = function

    def output(self, t, x, u):
        return self.function(t)


def test_the_enable_signal_of_a_block():
    d = Diagram(step=0.1)
    sub = d.add(Subsystem(counter(), enable=True), name="sub")
    d.connect(d.add(When(lambda t: 0.15 < t < 0.45), name="when"), sub["enable"])
    assert simulate(d, 0.7)["sub.count"].tolist() == [0, 0, 1, 2, 3, 3, 3, 3]


def test_a_constant_that_is_set_while_disabled_counts_when_it_is_enabled():
    inner = Diagram("constant")
    inner.output("y", inner.add(Constant(2.0), name="c"))
    d = Diagram(step=0.1)
    sub = d.add(Subsystem(inner, enable=True), name="sub")
    d.connect(d.add(When(lambda t: not 0.05 < t < 0.25), name="when"), sub["enable"])
    with d.compile().instantiate() as run:
        run.run(1)
        run.set("sub.c.value", 4.0)
        assert run.get("sub.y") == 2.0
        run.run(2)
        assert run.get("sub.y") == 4.0


@pytest.mark.parametrize("inside", [False, True])
def test_an_algebraic_loop_through_or_in_a_subsystem_is_solved_while_it_runs(inside):
    """s = u - 3 s, so s = u / 4; while disabled the gain's last value is held."""

    def close(d: Diagram, u, gain_in, gain_out):
        total = d.add(Sum("+-"), name="total")
        d.connect(u, total["u1"])
        d.connect(total, gain_in)
        d.connect(gain_out, total["u2"])
        return total

    inner = Diagram("inner")
    u, k = inner.input("u"), inner.add(Gain(3.0), name="k")
    if inside:
        inner.output("y", close(inner, u, k, k))
    else:
        inner.connect(u, k)
        inner.output("y", k)
    d = Diagram(step=0.1)
    sub = d.add(Subsystem(inner, enable=True), name="sub")
    d.connect(d.input("control", kind="boolean"), sub["enable"])
    u = d.input("u", default=1.0)
    if inside:
        d.connect(u, sub["u"])
        d.output("y", sub["y"])
        expected = [0, 0.25, 0.25, 0.25, 1.0]
    else:
        d.output("y", close(d, u, sub["u"], sub["y"]))
        expected = [1.0, 0.25, 0.25, 3.25, 1.0]
    got = drive(d, "y", control=[0, 1, 0, 0, 1], u=[1, 1, 1, 4, 4])
    assert np.allclose(got, expected, rtol=0, atol=1e-12)


# Triggered.


@pytest.mark.parametrize(
    ("edge", "expected"),
    [
        ("rising", [0, 0, 1, 1, 1, 1, 2, 2, 3]),
        ("falling", [0, 0, 0, 0, 1, 1, 1, 2, 2]),
        ("either", [0, 0, 1, 1, 2, 2, 3, 4, 5]),
    ],
)
def test_a_counter_in_a_triggered_subsystem_counts_edges(edge, expected):
    control = [0, -1, 2, 2, 0, -1, 0.5, -0.5, 1]
    assert drive(around(counter(), trigger=edge), "count", control=control) == expected


@pytest.mark.parametrize(("edge", "first"), [("rising", 1), ("falling", -1), ("either", 1)])
def test_the_first_tick_is_no_edge(edge, first):
    got = drive(around(counter(), trigger=edge, initial=-1.0), "count", control=[first, first])
    assert got == [-1, -1]


def test_outputs_of_a_triggered_subsystem_are_reset_between_edges():
    d = around(counter(), trigger="rising", outputs="reset", initial=-1.0)
    assert drive(d, "count", control=[0, 1, 1, 0, 1, 0]) == [-1, 1, -1, -1, 2, -1]


@pytest.mark.filterwarnings("ignore:the estimated error")  # of coarse steps, and real
@pytest.mark.parametrize("solver", SOLVERS)
def test_edges_of_a_continuous_signal_are_seen_at_ticks_whatever_the_solver(solver):
    """sin(2π t) rises through zero at ticks just after 1, 2, 3 s; minor steps must not hide it."""
    d = Diagram(step=0.09, solver=solver)
    omega = 2 * np.pi
    speed = d.add(Integrator(1.0), name="cos")
    angle = d.add(Integrator(1e-3), name="sin")
    forward, back = d.add(Gain(omega)), d.add(Gain(-omega))
    d.connect(speed, forward)
    d.connect(forward, angle)
    d.connect(angle, back)
    d.connect(back, speed)
    sub = d.add(Subsystem(counter(), trigger="rising"), name="sub")
    d.connect(angle, sub["trigger"])
    d.output("count", sub["count"])
    result = simulate(d, 3.6)
    wave = result["sin"]
    edges = np.concatenate([[0], np.cumsum((wave[:-1] <= 0) & (wave[1:] > 0))])
    assert edges[-1] >= 3
    assert np.array_equal(result["sub.count"], edges)


def test_what_a_triggered_subsystem_passes_on_is_sampled_and_held():
    """Its output does not follow a continuous input within the step after an edge."""
    inner = Diagram("sampler")
    u = inner.input("u")
    inner.output("y", u)
    inner.add(Constant(1.0))
    d = Diagram(step=0.1)
    one, x = d.add(Constant(1.0)), d.add(Integrator(1.0), name="x")
    sub = d.add(Subsystem(inner, trigger="rising"), name="sub")
    area = d.add(Integrator(), name="area")
    d.connect(one, x)
    d.connect(x, sub["u"])
    d.connect(d.input("control"), sub["trigger"])
    d.connect(sub["y"], area)
    got = drive(d, "area", control=[0, 1, 0, 0, 0])
    # 1.1 from tick 1 on, for three steps; rounding only.
    assert np.allclose(got, [0, 0, 0.11, 0.22, 0.33], rtol=0, atol=1e-14)


# Resettable.


@pytest.mark.parametrize(
    ("edge", "expected"),
    [
        ("rising", [1, 2, 1, 2, 3, 4, 1, 2]),
        ("falling", [1, 2, 3, 4, 1, 2, 3, 1]),
        ("either", [1, 2, 1, 2, 1, 2, 1, 1]),
        ("level", [1, 2, 1, 1, 2, 3, 1, 2]),
    ],
)
def test_a_reset_shows_in_the_outputs_of_the_same_tick(edge, expected):
    got = drive(around(counter(), reset=edge), "count", control=[0, 0, 1, 1, 0, 0, 1, 0])
    assert got == expected


def test_a_reset_of_continuous_states():
    d = around(ramp(), reset="rising")
    got = drive(d, "x", control=[1, 1, 0, 1, 1, 1])  # the first tick is not an edge
    assert np.allclose(got, [5.0, 5.1, 5.2, 5.0, 5.1, 5.2], rtol=0, atol=1e-14)


def test_a_reset_between_two_hits_of_a_slow_block_shows_at_once():
    d = around(counter(period=0.4), reset="rising")
    got = drive(d, "count", control=[0, 0, 0, 0, 0, 0, 1, 1, 0, 0])
    assert got == [1, 1, 1, 1, 2, 2, 1, 1, 1, 1]


def test_a_restart_takes_the_parameters_of_that_moment():
    with around(ramp(), reset="rising").compile().instantiate() as run:
        run.run(3)
        run.set("sub.x.initial", 8.0)
        run.set("control", 1.0)
        assert run.get("x") == 8.0


def test_python_blocks_restart_too():
    class Count(PythonBlock):
        def __init__(self):
            super().__init__(outputs=["n"], state=[0.0])

        def output(self, t, x, u):
            return x[0]

        def update(self, t, x, u):
            return x + 1

    inner = Diagram("count")
    inner.output("n", inner.add(Count(), name="count"))
    got = drive(around(inner, reset="rising"), "n", control=[0, 0, 0, 1, 1, 0])
    assert got == [0, 1, 2, 0, 1, 2]


# Nested.


def nested(inner: Diagram, inside: dict, outside: dict) -> Diagram:
    """`inner` in a conditional subsystem in another, their controls `a` (outer) and `b` (inner)."""
    middle = Diagram("middle")
    sub = middle.add(Subsystem(inner, **inside), name="inner")
    kind, control = control_of(sub)
    middle.connect(middle.input("b", kind=kind), sub[control])
    middle.output("y", sub["count"])
    d = Diagram("nested", step=0.1)
    outer = d.add(Subsystem(middle, **outside), name="outer")
    d.connect(d.input("b", kind=kind), outer["b"])
    outer_kind, outer_control = control_of(outer)
    d.connect(d.input("a", kind=outer_kind), outer[outer_control])
    d.output("y", outer["y"])
    return d


def test_an_enabled_subsystem_runs_only_while_the_one_around_it_does():
    d = nested(counter(), {"enable": True}, {"enable": True})
    got = drive(d, "y", a=[0, 1, 1, 0, 1, 1, 0], b=[1, 1, 0, 1, 1, 0, 0])
    assert got == [0, 1, 1, 1, 2, 2, 2]


def test_an_inner_one_stands_still_with_its_surroundings_and_is_not_enabled_anew():
    """Its states are reset when its own signal goes off and on, not when time stood still."""
    d = nested(counter(), {"enable": True, "states": "reset"}, {"enable": True})
    got = drive(d, "y", a=[1, 1, 0, 1, 1, 1, 1], b=[1, 1, 1, 1, 0, 1, 1])
    assert got == [1, 2, 2, 3, 3, 1, 2]


def test_edges_are_counted_against_the_last_tick_that_ran():
    """A signal that rises while all stands still is new when it goes on; one that pulses is not."""
    d = nested(counter(), {"trigger": "rising"}, {"enable": True})
    got = drive(d, "y", a=[1, 1, 0, 1, 0, 0, 1, 1], b=[0, 0, 1, 1, 0, 1, 1, 1])
    assert got == [0, 0, 0, 1, 1, 1, 1, 1]


def test_the_first_tick_that_runs_is_no_edge():
    d = nested(counter(), {"trigger": "rising", "initial": -1.0}, {"enable": True})
    assert drive(d, "y", a=[0, 0, 1, 1, 1], b=[0, 0, 1, 0, 1]) == [0, 0, -1, -1, 1]


def test_a_reset_outside_restarts_everything_inside():
    """The inner subsystem forgets its count, what it held, and that it ever ran."""
    d = nested(counter(), {"enable": True, "initial": -1.0}, {"reset": "rising"})
    got = drive(d, "y", a=[0, 0, 0, 1, 0, 0], b=[1, 1, 0, 0, 1, 1])
    assert got == [1, 2, 2, -1, 1, 2]


def test_a_reset_in_an_enabled_subsystem_waits_until_it_is_enabled():
    d = nested(counter(), {"reset": "level"}, {"enable": True})
    got = drive(d, "y", a=[1, 1, 0, 0, 1, 1], b=[0, 0, 1, 0, 0, 1])
    assert got == [1, 2, 2, 2, 3, 1]


def test_a_plain_subsystem_inside_belongs_to_the_conditional_one():
    middle = Diagram("middle")
    sub = middle.add(Subsystem(counter()), name="plain")
    middle.output("count", sub["count"])
    assert drive(around(middle, enable=True), "count", control=[1, 0, 1]) == [1, 1, 2]


def test_one_diagram_at_several_places_has_states_of_its_own_at_each():
    shared = counter()
    d = Diagram(step=0.1)
    for name in ("a", "b"):
        sub = d.add(Subsystem(shared, enable=True), name=name)
        d.connect(d.input(f"on_{name}", kind="boolean"), sub["enable"])
        d.output(f"count_{name}", sub["count"])
    controls = {"on_a": [1, 1, 1, 0], "on_b": [0, 1, 0, 1]}
    assert drive(d, "count_a", **controls) == [1, 2, 3, 3]
    assert drive(d, "count_b", **controls) == [0, 1, 1, 2]


def test_deep_nesting_compiles():
    inner = counter()
    for _ in range(8):
        middle = Diagram("level")
        sub = middle.add(Subsystem(inner, enable=True), name="sub")
        on = middle.input("on", kind="boolean")
        middle.connect(on, *(sub[name] for name in sub.input_index))
        middle.output("count", sub["count"])
        inner = middle
    d = Diagram(step=0.1)
    sub = d.add(Subsystem(inner), name="top")
    d.connect(d.input("control", kind="boolean"), sub["on"])
    d.output("count", sub["count"])
    assert drive(d, "count", control=[0, 1, 0, 1, 1]) == [0, 1, 1, 2, 3]


# Repeatable: what was tried at a tick leaves no trace.

FORMS: dict[str, dict[str, Any]] = {
    "enable": {"enable": True},
    "enable, reset outputs": {"enable": True, "outputs": "reset", "initial": -1.0},
    "enable, reset states": {"enable": True, "states": "reset"},
    "trigger": {"trigger": "either"},
    "reset": {"reset": "rising"},
    "reset level": {"reset": "level"},
}


def mixed(period=None) -> Diagram:
    """Continuous and discrete states inside."""
    inner = counter(period)
    one = inner["one"]
    x = inner.add(Integrator(3.0), name="x")
    both = inner.add(Sum("++"), name="both")
    inner.connect(one, x)
    inner.connect(x, both["u1"])
    inner.connect(inner["total"], both["u2"])
    inner.output("both", both)
    return inner


def conditional(form: str, period: float | None):
    """The plan of a subsystem of that form."""
    triggered = form == "trigger"  # no continuous states and no period there
    return around(counter() if triggered else mixed(period), **FORMS[form]).compile()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("period", [None, 0.3])
def test_trying_other_inputs_at_a_tick_leaves_no_trace(form, period):
    """As an FMU's set, get, set, get: only the last input before going on counts, to the bit."""
    plan = conditional(form, period)
    rng = np.random.default_rng(7)
    with plan.instantiate() as plain, plan.instantiate() as probed:
        for control in rng.integers(0, 2, 60):
            tried: dict[float, Any] = {}
            for trial in rng.integers(0, 2, 4):
                probed.set("control", trial)
                shown = probed.get("count")
                assert tried.setdefault(trial, shown) == shown
            for run in (plain, probed):
                run.set("control", control)
                run.evaluate()
            assert probed.save() == plain.save()
            plain.run(1)
            probed.run(1)
            assert probed.save() == plain.save()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("period", [None, 0.3])
def test_a_state_saved_after_outputs_were_evaluated_goes_on_with_the_same_bits(form, period):
    """Also where the guard has restarted its blocks and keeps their states in its shadow."""
    plan = conditional(form, period)
    rng = np.random.default_rng(8)
    with plan.instantiate() as one, plan.instantiate() as other:
        for control in rng.integers(0, 2, 40):
            one.set("control", control)
            one.evaluate()
            saved = one.save()
            other.restore(saved)
            if rng.integers(2):  # the restored one may still change its mind, and change it back
                other.set("control", 1 - control)
                other.evaluate()
                other.set("control", control)
            one.run(2)
            other.run(2)
            assert one.save() == other.save()


def test_a_restart_that_was_only_tried_does_not_happen():
    with around(mixed(), reset="rising").compile().instantiate() as run:
        run.run(5)
        before = run.get("both")
        run.set("control", 1.0)
        assert run.get("both") == 4.0
        run.set("control", 0.0)
        assert run.get("both") == before
        run.run(1)
        assert run.get("count") == 7


def test_restarts_tried_at_two_levels_leave_no_trace():
    """Inner restarts, then outer too, then none: each shadow lies in the other's."""
    d = nested(counter(), {"reset": "rising"}, {"reset": "rising"})
    plan = d.compile()
    rng = np.random.default_rng(9)
    with plan.instantiate() as plain, plan.instantiate() as probed:
        for a, b in rng.integers(0, 2, (200, 2)):
            for trial_a, trial_b in rng.integers(0, 2, (3, 2)):
                probed.set("a", trial_a)
                probed.set("b", trial_b)
                probed.evaluate()
            for run in (plain, probed):
                run.set("a", a)
                run.set("b", b)
                run.run(1)
            assert probed.save() == plain.save()


def test_signals_inside_hold_what_they_were_at_the_last_tick_that_ran():
    """Not what the last minor step of the solver left in them."""
    d = around(ramp(), enable=True)
    with d.compile().instantiate() as run:
        run.set("control", 1)
        run.run(1)
        running = run.get("sub.x.y")
        run.run(1)
        run.set("control", 0)
        assert run.get("sub.x.y") == running


# Refused, with words.


def test_an_enable_signal_that_depends_on_its_own_output_at_once_is_refused():
    d = Diagram(step=0.1)
    inner = Diagram("inner")
    flag = inner.input("flag", kind="boolean")
    inner.output("y", inner.add(UnitDelay(1.0), name="delay"))
    inner.connect(flag, inner["delay"])
    sub = d.add(Subsystem(inner, enable=True), name="sub")
    d.connect(sub["y"], sub["enable"])
    d.connect(d.input("flag", kind="boolean"), sub["flag"])
    with pytest.raises(
        DiagramError,
        match=r"enable signal of subsystem `sub` depends on its own output in the same tick. "
        r"Put a UnitDelay before `sub.enable`",
    ):
        d.compile()


def test_a_delay_before_the_enable_signal_makes_it_legal():
    """Switches itself off: enabled at the first tick, its count of 3 ends it."""

    class Below(PythonBlock):
        def __init__(self):
            super().__init__(inputs=["u"], outputs=[Port("on", kind="boolean")])

        def output(self, t, x, u):
            return u < 3

    d = Diagram(step=0.1)
    sub = d.add(Subsystem(counter(), enable=True), name="sub")
    below = d.add(Below(), name="below")
    delay = d.add(UnitDelay(1.0), name="delay")
    d.connect(sub["count"], below)
    d.connect(below, delay)
    d.connect(delay, sub["enable"])
    assert simulate(d, 0.6)["sub.count"].tolist() == [1, 2, 3, 3, 3, 3, 3]


def empty() -> Diagram:
    inner = Diagram("empty")
    inner.output("y", inner.input("u"))
    return inner


@pytest.mark.parametrize(
    ("inner", "options", "message"),
    [
        (
            ramp,
            {"trigger": "rising"},
            r"`sub.x` has continuous states, but is in a triggered .* time does not advance",
        ),
        (
            lambda: counter(0.2),
            {"trigger": "rising"},
            r"`sub.(total|delay)` is in a triggered subsystem and cannot have its own period",
        ),
        (empty, {"enable": True}, r"conditional subsystem `sub` contains no blocks"),
    ],
)
def test_what_cannot_be_inside_is_refused(inner, options, message):
    with pytest.raises(DiagramError, match=message):
        around(inner(), **options).compile()


@pytest.mark.parametrize("options", [{"enable": True}, {"trigger": "rising"}, {"reset": "level"}])
def test_an_unconnected_control_is_refused(options):
    d = Diagram()
    sub = d.add(Subsystem(counter(), **options), name="sub")
    with pytest.raises(DiagramError, match=rf"input `sub.{sub.control}` is not connected"):
        d.compile()


def test_a_control_signal_is_checked_like_any_other_wire():
    d = Diagram()
    sub = d.add(Subsystem(counter(), enable=True), name="sub")
    other = d.add(Subsystem(counter(), trigger="rising"), name="other")
    d.connect(d.add(Constant(1.0), name="real"), sub["enable"])
    d.connect(d.add(Constant([1.0, 2.0]), name="pair"), other["trigger"])
    with pytest.raises(DiagramError) as info:
        d.compile()
    assert "`sub.enable` expects a boolean signal, but `real.y` is real" in str(info.value)
    assert "`other.trigger` expects 1 signal, but `pair.y` provides 2 signals" in str(info.value)


def test_an_input_of_a_subsystem_is_checked_like_any_other_wire():
    inner = Diagram("inner")
    u = inner.input("u", unit="rad/s")
    inner.connect(u, inner.add(Gain(1.0), name="k"))
    d = Diagram()
    sub = d.add(Subsystem(inner), name="sub")
    d.connect(d.add(Constant(1.0, unit="m"), name="c"), sub["u"])
    with pytest.raises(
        DiagramError, match=r"`sub.u` expects 1 signal in rad/s, but `c.y` provides .* m"
    ):
        d.compile()


def test_a_subsystem_that_only_passes_on_its_own_output_is_refused():
    d = Diagram()
    sub = d.add(Subsystem(empty()), name="sub")
    d.connect(sub["y"], sub["u"], d.add(Gain(1.0), name="k"))
    with pytest.raises(DiagramError, match=r"`sub.u` is connected to itself"):
        d.compile()


def test_a_subsystem_that_contains_itself_is_refused():
    d = Diagram()
    d.add(Gain(1.0), name="k")
    d.add(Subsystem(d), name="sub")
    with pytest.raises(DiagramError, match="`sub` contains itself"):
        d.compile()


def test_an_input_that_came_after_its_subsystem_is_refused():
    inner = Diagram("inner")
    k = inner.add(Gain(1.0), name="k")
    d = Diagram()
    d.add(Subsystem(inner), name="sub")
    inner.connect(inner.input("late"), k)
    with pytest.raises(DiagramError, match=r"`late` was added to 'inner' after `sub` was made"):
        d.compile()


def test_a_source_that_is_all_of_a_conditional_subsystem_stays_a_block():
    inner = Diagram("constant")
    inner.output("y", inner.add(Constant(2.0), name="c"))
    with pytest.raises(DiagramError, match=r"`sub` contains no blocks: move the sources out"):
        around(inner, enable=True).compile(inputs=["sub.c"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"enable": True, "reset": "rising"}, "one of enable, trigger and reset"),
        ({"trigger": "level"}, "use enable=True"),
        ({"reset": "up"}, "reset is one of rising, falling, either, level, not 'up'"),
        ({"enable": True, "outputs": "kept"}, "each be 'held' or 'reset'"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(DiagramError, match=message):
        Subsystem(counter(), **options)


def test_an_inner_input_with_the_name_of_the_control_is_refused():
    inner = counter()
    inner.input("enable")
    with pytest.raises(DiagramError, match="the name `enable` is reserved"):
        Subsystem(inner, enable=True)
