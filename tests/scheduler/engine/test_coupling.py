"""Couplings of blocks with an internal solver.

The reference is the closed form of two masses with a spring between them: x' = A x, by the matrix
exponential. Blocks take four Runge-Kutta steps in each step, so that their own error is far below
that of the coupling.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from scipy.linalg import expm

from biella import Diagram, System, simulate
from biella.blocks import (
    Assertion,
    Expression,
    Gain,
    ZeroOrderHold,
)
from biella.blocks.external._python import python_block
from biella.blocks.multibody import Input
from biella.errors import BlockError
from biella.scheduler.compile.coupling._coupling_options import CouplingWarning
from biella.scheduler.results._coupling_report import BOND, read_couplings

from .coupled_masses import (
    END,
    METHODS,
    STATES,
    STIFF,
    bonded,
    error,
    exact,
    law,
    mass,
    moved_end,
    two_masses,
)

pytestmark = pytest.mark.engine

M, K, C = (1.0, 2.0), (10.0, 15.0), (0.1, 0.2)
SPRING, DAMPER = 20.0, 0.3


def observed_order(make: Any, steps: tuple[float, float] = (0.01, 0.005), **options: Any) -> float:
    coarse, fine = (error(make(step=h), **options) for h in steps)
    return float(np.log2(coarse / fine))


# Orders


@pytest.mark.filterwarnings("ignore:gauss-seidel is equivalent to jacobi")
@pytest.mark.parametrize("split", ["displacement", "force"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("extrapolation", [0, 1, 2])
def test_order(split: str, method: str, extrapolation: int) -> None:
    """hold + 1; iterated with extrapolation 0 takes the mean of both ends, of order 2."""
    expected = max(extrapolation + 1, 2 if method in ("fixed-point", "newton") else 1)
    order = observed_order(
        lambda step: two_masses(split, step=step), coupling=method, extrapolation=extrapolation
    )
    assert order == pytest.approx(expected, abs=0.2)


def moved_end_error(d: Diagram, end: float = 1.0, **options: Any) -> float:
    """Against x1 = (t + 2 sin(ω t)/ω)/3 and x2 = (t - sin(ω t)/ω)/3 with ω² = 3 k/2."""
    run = simulate(d, end, **options)
    root = np.sqrt(1.5 * STIFF)
    sine, cosine = np.sin(root * end) / root, np.cos(root * end)
    exact = [(end + 2 * sine) / 3, (1 + 2 * cosine) / 3, (end - sine) / 3, (1 - cosine) / 3]
    return float(np.abs([run[p][-1] for p in STATES] - np.array(exact)).max())


@pytest.mark.filterwarnings("ignore:the coupling of `a`, `b` (created|lost)")
@pytest.mark.filterwarnings("ignore:.*the prescribed motion `ground.end.x` jumps")
@pytest.mark.parametrize("rates", [0, 1, 2])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("extrapolation", [0, 1, 2])
def test_order_where_a_place_and_its_rates_are_exchanged(
    rates: int, method: str, extrapolation: int
) -> None:
    expected = max(extrapolation + 1, 2 if method in ("fixed-point", "newton") else 1)
    coarse, fine = (
        moved_end_error(moved_end(rates, step=h), coupling=method, extrapolation=extrapolation)
        for h in (1e-3, 5e-4)
    )
    assert np.log2(coarse / fine) == pytest.approx(expected, abs=0.2)


@pytest.mark.filterwarnings("ignore:the coupling of `a`, `b` (created|lost)")
def test_iterating_beats_jacobi_where_a_place_and_its_rate_are_exchanged() -> None:
    jacobi, gauss_seidel, fixed_point, newton = (
        moved_end_error(moved_end(1, step=2e-3), coupling=method) for method in METHODS
    )
    assert newton == pytest.approx(fixed_point, rel=1e-3)
    assert 5 * newton < jacobi
    assert gauss_seidel < 1.2 * jacobi


def test_what_is_better() -> None:
    """Iterated beats Gauss-Seidel beats Jacobi where the second knows the first's new output."""
    for extrapolation in (0, 1, 2):
        errors = [
            error(two_masses(step=0.01), coupling=m, extrapolation=extrapolation) for m in METHODS
        ]
        jacobi, gauss_seidel, fixed_point, newton = errors
        assert newton == pytest.approx(fixed_point, rel=1e-3)
        assert newton < gauss_seidel < 0.7 * jacobi


def test_held_jacobi_is_what_no_coupling_is() -> None:
    plan = two_masses().compile()
    assert "COUP" not in plan.sections and plan.couplings == ()
    assert plan.data == two_masses(coupling="jacobi", extrapolation=0).compile().data
    # The same through the machinery of couplings, which an estimate needs.
    plain, coupled = (simulate(two_masses(step=0.01), 1.0, estimate_error=n) for n in (0, 1))
    for path in STATES:
        assert np.array_equal(plain[path], coupled[path])


@pytest.mark.parametrize("extrapolation", [0, 1, 2])
def test_a_member_without_input_derivatives_gets_means(extrapolation: int) -> None:
    """The mean of a line or parabola is of second order; of what is held, of first."""

    def make(step: float) -> Diagram:
        d = two_masses(step=step)
        for name in ("a", "b"):
            vars(d[name])["takes_input_derivatives"] = False
        return d

    assert observed_order(make, coupling="newton", extrapolation=extrapolation) == pytest.approx(
        2, abs=0.2
    )
    order = observed_order(make, coupling="jacobi", extrapolation=extrapolation)
    assert 0.8 < order < 1.2 if extrapolation == 0 else order > 1.8


# The graph


@pytest.mark.parametrize("extrapolation", [0, 1, 2])
def test_gauss_seidel_with_outputs_that_follow_inputs_at_once(extrapolation: int) -> None:
    """An inertance between the masses: b gets a force that depends on the acceleration of a, which
    depends on the force that a gets from b. That of a is known once a has moved."""

    def make(step: float) -> Diagram:
        d = Diagram("inertance", step=step, coupling="gauss-seidel", extrapolation=extrapolation)
        plants = {name: d.add(mass(n, SPRING, DAMPER), name) for n, name in enumerate("ab")}
        numbers = {"k": SPRING, "c": DAMPER}
        on_a = law(d, "on_a", "k*x2 + c*v2", plants, **numbers)
        on_b = law(d, "on_b", "k*x1 + c*v1 + m*a1", plants, **numbers, m=0.5)
        d.connect(on_a, plants["a"]["push.force.x"])
        d.connect(on_b, plants["b"]["push.force.x"])
        plan = d.compile()
        assert plan.couplings[0]["members"] == ("a", "b")
        return d

    m = np.array([[M[0], 0.0], [-0.5, M[1]]])
    k = np.diag(K) + SPRING * np.array([[1, -1], [-1, 1]])
    c = np.diag(C) + DAMPER * np.array([[1, -1], [-1, 1]])
    a = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(m, k), -np.linalg.solve(m, c)]])
    x1, x2, v1, v2 = expm(a * END) @ [0.0, 0.0, 1.0, 0.0]
    reference = np.array([x1, v1, x2, v2])
    coarse, fine = (error(make(h), reference) for h in (0.005, 0.0025))
    assert np.log2(coarse / fine) == pytest.approx(extrapolation + 1, abs=0.2)
    assert coarse < 0.8 * error(make(0.005), reference, coupling="jacobi")


@pytest.mark.parametrize("extrapolation", [1, 2])
@pytest.mark.parametrize("method", METHODS)
def test_sampled_signals_are_held(method: str, extrapolation: int) -> None:
    """A staircase is not a line: what a sampled block gives is not extrapolated over its jumps."""

    def make() -> Diagram:
        d = Diagram("sampled", step=0.01)
        a = d.add(mass(0), "a")
        gain = d.add(Gain(-5.0, unit="N"), "gain", period=0.05)
        d.connect(a["slide.speed"], gain)
        d.connect(gain, a["push.force.x"])
        return d

    held, followed = (
        simulate(make(), 1.0),
        simulate(make(), 1.0, coupling=method, extrapolation=extrapolation),
    )
    assert np.array_equal(held["a.slide.speed"], followed["a.slide.speed"])


def test_sampled_blocks_between_members_hold_within_a_step() -> None:
    """A sample taken at each tick is not renewed when the members have moved on."""
    d = two_masses(step=0.01)
    for name, plant in (("on_a", "a"), ("on_b", "b")):
        sample = d.add(ZeroOrderHold(), f"sample_{name}", period=0.01)
        d.sources[d[plant], d[plant].input_index["push.force.x"]] = sample["y"]
        d.connect(d[name], sample)
    held = simulate(d, 1.0)
    plain = simulate(two_masses(step=0.01), 1.0)
    newton = simulate(d, 1.0, coupling="newton", extrapolation=2)
    assert np.array_equal(held["a.slide.speed"], plain["a.slide.speed"])
    assert np.array_equal(newton["a.slide.speed"], plain["a.slide.speed"])


def test_python_blocks_in_between() -> None:
    @python_block(outputs=["y"])
    def pull(x1: float, v1: float, x2: float, v2: float) -> float:
        return SPRING * (x2 - x1) + DAMPER * (v2 - v1)

    def make(step: float) -> Diagram:
        d = two_masses("force", step=step)
        block = d.add(pull(), "pull")
        for state, port in zip(STATES, ("x1", "v1", "x2", "v2"), strict=True):
            d.connect(state, block[port])
        convert = d.add(Gain(1.0, unit="N"), "convert")
        d.connect(block, convert)
        d.sources[d["a"], d["a"].input_index["push.force.x"]] = convert["y"]
        return d

    native, python = (
        error(m(step=0.02), coupling="newton", extrapolation=1)
        for m in (lambda step: two_masses("force", step=step), make)
    )
    assert python == pytest.approx(native, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_an_algebraic_loop_of_three_across_two_members(method: str) -> None:
    """An inerter pushes with β (a2 - a1), and the accelerations depend on the push at once: three
    variables, a1, a2 and the push. The closed form has β in its mass matrix."""
    inertance = 0.7

    def make(step: float) -> Diagram:
        d = Diagram("inerter", step=step)
        plants = {"a": d.add(mass(0), "a"), "b": d.add(mass(1), "b")}
        formula = "k*(x2 - x1) + c*(v2 - v1) + i*(a2 - a1)"
        pull = law(d, "pull", formula, plants, k=SPRING, c=DAMPER, i=inertance)
        back = d.add(Gain(-1.0), "back")
        d.connect(pull, back, plants["a"]["push.force.x"])
        d.connect(back, plants["b"]["push.force.x"])
        return d

    assert len(make(0.01).compile().loops) == 1
    with make(0.01).compile().instantiate() as first:
        m = np.diag(M) + inertance * np.array([[1, -1], [-1, 1]])
        force = np.array([-C[0] - DAMPER, DAMPER])  # at the start v = (1, 0), x = 0
        expected = np.linalg.solve(m, force)
        found = [first.get(f"{name}.slide.acceleration") for name in "ab"]
        assert found == pytest.approx(expected, rel=1e-9)
        assert first.get("pull") == pytest.approx(
            DAMPER * -1 + inertance * (expected[1] - expected[0])
        )
    # The push is a differential of what it makes, and extrapolating such a loop is unstable: only
    # repeating the steps solves it.
    if method in ("fixed-point", "newton"):
        errors = [
            error(make(h), exact(END, inertance), coupling=method, extrapolation=2)
            for h in (0.02, 0.01)
        ]
        assert errors[1] < 1e-3
        assert np.log2(errors[0] / errors[1]) > 1.8


# Steps taken back


@pytest.mark.parametrize("method", METHODS)
def test_a_saved_state_goes_on_with_the_same_bits(method: str) -> None:
    plan = two_masses(step=0.01).compile(coupling=method, extrapolation=2, estimate_error=3)
    with plan.instantiate() as first, plan.instantiate() as second:
        first.run(57)
        state = first.save()
        second.run(3)
        second.restore(state)
        for instance in (first, second):
            instance.run(40)
        assert first.save() == second.save()
        first.reset()
        first.run(97)
        assert first.save() == second.save()


def test_implicit_steps_are_taken_back_too() -> None:
    """Generalized-α keeps accelerations and a Jacobian: all of it is in the state."""

    def make(step: float) -> Diagram:
        d = Diagram("implicit", step=step)
        plants = {
            "a": d.add(mass(0, SPRING, DAMPER, integrator="implicit", spectral_radius=1.0), "a"),
            "b": d.add(mass(1, integrator="implicit", spectral_radius=1.0), "b"),
        }
        numbers = {"k": SPRING, "c": DAMPER}
        d.connect(law(d, "on_a", "k*x2 + c*v2", plants, **numbers), plants["a"]["push.force.x"])
        on_b = law(d, "on_b", "k*(x1 - x2) + c*(v1 - v2)", plants, **numbers)
        d.connect(on_b, plants["b"]["push.force.x"])
        return d

    assert observed_order(make, coupling="newton", extrapolation=1) == pytest.approx(2, abs=0.2)


# Steps taken in parts


def hurried(step: float = 0.2, **options: Any) -> Diagram:
    """Two iterations of a fixed point reach 1e-6 in parts of a step only."""
    d = two_masses(step=step)
    how: dict[str, Any] = {
        "method": "fixed-point",
        "extrapolation": 1,
        "iterations": 2,
        "tolerance": 1e-6,
    }
    d.couple(**(how | options))
    return d


def test_a_step_that_does_not_converge_is_taken_in_parts() -> None:
    """And is as exact as these: of second order, with errors a hundred times smaller."""
    with pytest.warns(CouplingWarning, match=r"did not converge .* in 20 of 20 steps"):
        whole = error(hurried(halvings=0))
    run = simulate(hurried(), END)
    assert whole > 0.03
    assert np.abs([run[p][-1] for p in STATES] - exact(END)).max() < 3e-4
    assert run["coupling.b+a.failures"][-1] == 0
    assert run["coupling.b+a.shortened"][-1] == 20
    assert run["coupling.b+a.residual"].max() <= 1e-6
    assert run.length == 21
    assert "0 not converged to 1e-06, 20 divided" in str(run.coupling_report())


def test_if_the_smallest_part_fails_the_step_is_what_it_was() -> None:
    runs = []
    for halvings in (0, 2):
        with pytest.warns(CouplingWarning, match=r"in 10 of 10 steps"):
            d = hurried(0.1, tolerance=1e-13, halvings=halvings)
            runs.append(simulate(d, 1.0))
    for path in (*STATES, "coupling.b+a.residual"):
        assert np.array_equal(runs[0][path], runs[1][path]), path
    assert runs[1]["coupling.b+a.shortened"][-1] == 0


def reluctant(limit: float) -> Any:
    """A spring that refuses to be stretched by more."""

    @python_block(outputs=["y"])
    def pull(x1: float, v1: float, x2: float, v2: float) -> float:
        if abs(x2 - x1) > limit:
            raise ValueError("stretched too far")
        return SPRING * (x2 - x1) + DAMPER * (v2 - v1)

    return pull()


def guarded(limit: float, method: str, **options: Any) -> Diagram:
    d = Diagram("guarded", step=0.5)
    plants = {"a": d.add(mass(0), "a"), "b": d.add(mass(1), "b")}
    pull = d.add(reluctant(limit), "pull")
    for state, port in zip(STATES, ("x1", "v1", "x2", "v2"), strict=True):
        d.connect(state, pull[port])
    for name, sign in (("a", 1.0), ("b", -1.0)):
        side = d.add(Gain(sign, unit="N"), f"on_{name}")
        d.connect(pull, side)
        d.connect(side, plants[name]["push.force.x"])
    d.couple(method=method, extrapolation=1, **options)
    return d


@pytest.mark.parametrize("method", ["fixed-point", "newton"])
def test_a_refused_iterate_is_not_the_end(method: str) -> None:
    """The masses are never more than 0.15 m apart, but guesses over half a second are."""
    apart = np.array([exact(t)[[0, 2]] for t in np.linspace(0, END, 400)])
    assert np.abs(apart[:, 0] - apart[:, 1]).max() < 0.15
    with pytest.raises(BlockError, match=r"`pull` .*raised ValueError.*stretched too far"):
        simulate(guarded(0.25, method, halvings=0), END)
    with guarded(0.25, method).compile().instantiate() as instance:
        instance.run(8)
        assert instance.get("coupling.a+b.shortened") > 0
        assert instance.get("coupling.a+b.failures") == 0
        assert instance._message() == ""
        found = np.array([instance.get(path) for path in STATES])
    assert np.abs(found - exact(END)).max() < 0.8 * error(guarded(np.inf, method))
    with pytest.raises(BlockError, match=r"`pull` .*raised ValueError at t = 0 s.*too far"):
        simulate(guarded(0.01, method), END)


def test_what_was_refused_is_not_what_fails_later() -> None:
    d = guarded(0.25, "newton")
    stop = d.add(Assertion("the time is up"), "stop", period=0.5)
    d.connect(d.add(Expression("t < 3", kind="boolean"), "on", period=0.5), stop)
    with pytest.raises(BlockError, match=r"`stop` .*the time is up"):
        simulate(d, END)


@pytest.mark.parametrize("method", ["fixed-point", "newton"])
@pytest.mark.parametrize("done", range(1, 12))
def test_an_interrupt_is_not_tried_again(done: int, method: str) -> None:
    """Wherever it is: in the first sweep, in one for the Jacobian, in an iteration, in a part."""
    calls = []

    @python_block(outputs=["y"])
    def impatient(x: float) -> float:
        calls.append(x)
        if len(calls) > done:
            raise KeyboardInterrupt
        return -x - 20 * x**3

    d = Diagram("impatient", step=0.1)
    a = d.add(mass(0), "a")
    block = d.add(impatient(), "impatient")
    d.connect(a["slide.displacement"], block)
    push = d.add(Gain(1.0, unit="N"), "push")
    d.connect(block, push)
    d.connect(push, a["push.force.x"])
    d.couple(method=method, extrapolation=1, tolerance=1e-10)
    with d.compile().instantiate() as instance, pytest.raises(KeyboardInterrupt):
        instance.run(10)
    assert len(calls) == done + 1


@pytest.mark.parametrize("method, sweeps", [("fixed-point", 2), ("newton", 4)])
def test_iterations_end_where_the_residual_is_not_a_number(method: str, sweeps: int) -> None:
    """The mass passes 0.05 m in the first step; the Jacobian of Newton's method has two columns."""
    d = Diagram("nan", step=0.1)
    plants = {"a": d.add(mass(0, SPRING, DAMPER), "a"), "b": d.add(mass(1), "b")}
    on_a = law(d, "on_a", "k*x2 + 0*sqrt(0.05 - x1)", plants, k=SPRING)
    d.connect(on_a, plants["a"]["push.force.x"])
    d.connect(law(d, "on_b", "k*(x1 - x2)", plants, k=SPRING), plants["b"]["push.force.x"])
    d.couple(method=method, iterations=12, halvings=0, failure="error")
    with pytest.raises(BlockError, match=f"after {sweeps} iterations its residual is nan"):
        simulate(d, 0.1)


@pytest.mark.parametrize("make", [hurried, lambda: guarded(0.25, "newton")])
def test_a_state_saved_between_shortened_steps_goes_on_with_the_same_bits(make: Any) -> None:
    plan = make().compile(estimate_error=3)
    with plan.instantiate() as first, plan.instantiate() as second:
        first.run(5)
        assert read_couplings(first)[0]["shortened"] > 0
        second.restore(first.save())
        for instance in (first, second):
            instance.run(3)
        assert first.save() == second.save()


@pytest.mark.parametrize("make", [hurried, lambda: guarded(0.25, "newton")])
def test_errors_of_shortened_steps_are_estimated(make: Any) -> None:
    """The halves and quarters may be shortened as well, and nothing of it stays."""
    plain, watched = (simulate(make(), END, estimate_error=n) for n in (0, 1))
    assert all(np.array_equal(plain[path], watched[path]) for path in STATES)
    before, report = plain.coupling_report(), watched.coupling_report()
    for count in ("shortened", "sweeps", "failures"):
        assert before.couplings[0][count] == report.couplings[0][count]
    assert report.couplings[0]["shortened"] > 0
    assert report.couplings[0]["estimates"] == report.couplings[0]["steps"] == watched.length - 1
    assert all(np.isfinite(c.relative_error) for c in report.connections)


@pytest.mark.filterwarnings("ignore:the coupling of `a`, `b` (created|lost)")
def test_power_of_a_bond_over_the_parts_of_a_step() -> None:
    """A step in two to four parts loses less than one in halves and more than one in quarters."""
    d = bonded(0.1)
    d.couple(method="fixed-point", extrapolation=2, iterations=2, tolerance=1e-4)
    run = simulate(d, 1.0)
    assert run["coupling.a+b.shortened"][-1] == 10
    halves, quarters = (
        simulate(bonded(h), 1.0, coupling="newton", extrapolation=2) for h in (0.05, 0.025)
    )
    power, coarse, fine = (np.abs(r["coupling.grip.power"]).max() for r in (run, halves, quarters))
    assert 2 * fine < power < 0.9 * coarse
    total = 0.1 * run["coupling.grip.power"][1:].sum()
    assert run["coupling.grip.energy"][-1] == pytest.approx(total, rel=1e-9)


def test_a_block_that_takes_one_step_only_is_not_given_parts_of_it() -> None:
    d = hurried(0.1)
    vars(d["a"])["takes_any_step"] = False
    with pytest.warns(CouplingWarning, match=r"in 10 of 10 steps"):
        run = simulate(d, 1.0)
    assert run["coupling.b+a.shortened"][-1] == 0


@pytest.mark.parametrize("extrapolation, stable", [(0, True), (1, True), (2, False)])
def test_parabolas_are_not_for_stiff_couplings(extrapolation: int, stable: bool) -> None:
    """Iterated, they are the third-order Adams-Moulton formula, stable up to 6 time constants."""
    for ratio in (5.8, 6.2):
        d = Diagram("brake", step=0.01)
        a = d.add(mass(0, substeps=8), "a")
        brake = law(d, "brake", "-c*v1", {"a": a}, c=ratio * M[0] / 0.01)
        d.connect(brake, a["push.force.x"])
        d.couple(method="newton", extrapolation=extrapolation)
        speed = np.abs(simulate(d, 3.0)["a.slide.speed"])
        assert (speed[-1] < 0.1) == (stable or ratio < 6), ratio


def test_newton_keeps_its_jacobian() -> None:
    """Made once by differences, then good for all steps: this problem is linear."""
    run = simulate(two_masses(step=0.02), 1.0, coupling="newton", extrapolation=1)
    iterations = run["coupling.b+a.iterations"][1:]
    assert iterations[0] == 3  # one, one for its only unknown, one corrected
    assert np.all(iterations[1:] <= 2)
    aitken = simulate(two_masses(step=0.02), 1.0, coupling="fixed-point", extrapolation=1)
    assert 2 <= aitken["coupling.b+a.iterations"][1:].mean() < 5


def joined(stiffness: float, damping: float, step: float) -> Diagram:
    """Two masses with another spring, which belongs to the first."""
    d = Diagram("joined", step=step)
    first = mass(0, stiffness, damping, substeps=max(4, int(4000 * step)))
    plants = {"a": d.add(first, "a"), "b": d.add(mass(1), "b")}
    numbers = {"k": stiffness, "c": damping}
    d.connect(law(d, "on_a", "k*x2 + c*v2", plants, **numbers), plants["a"]["push.force.x"])
    on_b = law(d, "on_b", "k*(x1 - x2) + c*(v1 - v2)", plants, **numbers)
    d.connect(on_b, plants["b"]["push.force.x"])
    return d


def test_relaxation_lets_a_fixed_point_converge() -> None:
    """With 1e5 N/m and 20 ms plain repetitions diverge, by k h² / 6 m = 3 and more each; for one
    unknown of a linear problem Aitken's are a secant's and end after the third."""
    run = simulate(joined(1e5, 500.0, step=0.02), 1.0, coupling="fixed-point", extrapolation=1)
    assert run["coupling.b+a.failures"][-1] == 0
    assert run["coupling.b+a.iterations"].max() <= 4


@pytest.mark.parametrize("method", ["fixed-point", "newton"])
def test_stiff_couplings_need_iterations(method: str) -> None:
    """A spring of 1e5 N/m joins the masses for a step of one time unit of its own oscillation:
    explicit couplings blow up, repeated ones let the masses move on together, with the momentum of
    the first. Less the damping in the first quarter of a swing, 0.3 of 3 kg and 2.9 rad/s: 3 %."""
    d = joined(1e5, 500.0, step=0.0025)
    run = simulate(d, 2.0, coupling=method, extrapolation=2)
    swing = sum(M) ** -1 / np.sqrt(sum(K) / sum(M))
    apart = run["a.slide.displacement"] - run["b.slide.displacement"]
    assert np.abs(apart[run.t > 0.5]).max() < 1e-5
    assert np.abs(run["a.slide.displacement"]).max() == pytest.approx(swing, rel=0.04)
    explicit = simulate(d, 2.0, coupling="gauss-seidel", extrapolation=2)
    assert np.abs(explicit["a.slide.displacement"]).max() > 1e6 * swing


# Errors


def test_an_estimate_changes_nothing() -> None:
    for method in METHODS:
        plain, watched = (
            simulate(two_masses(step=0.01), 1.0, coupling=method, extrapolation=2, estimate_error=n)
            for n in (0, 5)
        )
        assert all(np.array_equal(plain[path], watched[path]) for path in STATES)


def test_the_error_signal_is_the_error_of_a_step() -> None:
    """The first step starts from exact values, so that its error is known."""
    run = simulate(
        two_masses(step=0.01), 0.01, coupling="newton", extrapolation=1, estimate_error=1
    )
    x1, v1, x2, v2 = exact(0.01)
    true = run["on_b"][1] - (SPRING * (x1 - x2) + DAMPER * (v1 - v2))
    assert run["coupling.on_b.error"][1] == pytest.approx(true, rel=0.05)


def test_the_error_of_a_step_is_estimated_with_the_past_of_a_shorter_one() -> None:
    """A free mass of 1 kg gets t^3. The parabola through u(t), u(t - h) and u(t - 2h) deviates from
    it by s (s + h) (s + 2h) at t + s, hence the speed by 9/4 h^4 at the end of a step."""
    h, small = 0.125, 1e-3
    s = System("free", (0, 0), planar=True)
    body = s.body("mass", mass=1.0, inertia=1.0)
    slide = s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    s.force("push", slide, Input("push"))
    d = Diagram("cubic", step=h)
    a = d.add(s.block(outputs=["slide.speed"], mode="internal", substeps=4), "a")
    push = d.add(Expression("t**3 + small*v", parameters={"small": small}, unit="N"), "push")
    d.connect(a, push["v"])
    d.connect(push, a)
    run = simulate(d, 1.0, coupling="jacobi", extrapolation=2, estimate_error=1)
    errors = run["coupling.push.error"] / (small * 9 / 4 * h**4)
    np.testing.assert_allclose(errors[4:], -1.0, atol=2 * small)  # small also changes the force


def test_created_energy_is_part_of_the_saved_state() -> None:
    plan = moved_end(1, step=2e-3).compile()
    with plan.instantiate() as first, plan.instantiate() as second:
        first.run(100)
        second.restore(first.save())
        first.run(300)
        second.run(300)
        assert first.save() == second.save()
        slot = plan.exchanges[0]["slot"]
        assert first.values[slot + BOND["energy"]] == second.values[slot + BOND["energy"]] > 0.05


# Periods, subsystems, FMUs, mistakes


def test_a_coupling_leaves_in_an_fmu(tmp_path: Path) -> None:
    """An independent importer gets the same bits."""
    d = two_masses(step=0.01, coupling="newton", extrapolation=2)
    d.output("speed", d["a"]["slide.speed"])
    d.export_fmu(tmp_path / "masses.fmu")
    found = fmpy.simulate_fmu(
        str(tmp_path / "masses.fmu"), stop_time=1.0, step_size=0.01, output_interval=0.01
    )
    assert np.array_equal(found["speed"], simulate(d, 1.0)["a.slide.speed"])
