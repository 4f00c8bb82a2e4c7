"""Adaptive communication steps: against closed forms, at their bounds, and bit by bit.

The reference is the matrix exponential of two masses with a spring between them, as in
`test_coupling`. Speeds are up to 1 m/s, so that a tolerance is also one of their errors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from scipy.linalg import expm

from biella import BlockError, Diagram, simulate
from biella.blocks import Constant, Expression, Gain, Integrator, Sine, Sum
from biella.blocks.external._python import python_block
from biella.errors import CouplingWarning
from biella.scheduler.results._coupling_report import read_couplings

from .coupled_masses import (
    DAMPER,
    END,
    METHODS,
    SPRING,
    STATES,
    K,
    M,
    bonded,
    exact,
    law,
    mass,
    two_masses,
)

pytestmark = pytest.mark.engine


def deviation(run: Any, reference: np.ndarray | None = None) -> float:
    reference = exact(END) if reference is None else reference
    return float(np.abs([run[path][-1] for path in STATES] - reference).max())


def counts(run: Any) -> dict[str, Any]:
    return run.coupling_report().couplings[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("extrapolation", [1, 2])
def test_errors_and_steps_follow_the_tolerance(method: str, extrapolation: int) -> None:
    """Errors are proportional to it, and steps to its power -1/(extrapolation + 1)."""
    tolerances = (1e-2, 1e-5)
    runs = [
        simulate(two_masses(step=0.1), END, coupling=method, extrapolation=extrapolation,
                 coupling_tolerance=tolerance)
        for tolerance in tolerances
    ]  # fmt: skip
    errors = [deviation(run) for run in runs]
    steps = [counts(run)["communication_steps"] for run in runs]
    assert all(e < t for e, t in zip(errors, tolerances, strict=True))
    assert np.log10(errors[0] / errors[1]) / 3 == pytest.approx(1.0, abs=0.4)
    assert np.log10(steps[1] / steps[0]) / 3 == pytest.approx(1 / (extrapolation + 1), abs=0.15)
    assert all(counts(run)["rejected"] < 10 for run in runs)


@pytest.mark.parametrize(
    "method, extrapolation, part",
    [("newton", 1, 1 / 8), ("newton", 2, 1 / 16), ("fixed-point", 1, 1 / 8)],
)
def test_interpolated_inputs_take_longer_steps(
    method: str, extrapolation: int, part: float
) -> None:
    """With equal steps h, the line to the end of a step deviates by h^2 u2 / 8 at most, and that
    from its past by h^2 u2, with the second derivative u2; parabolas by h^3 u3 / 16 and h^3 u3."""
    extrapolated, interpolated = (
        counts(
            simulate(two_masses(step=0.1), END, coupling=name, extrapolation=extrapolation,
                     coupling_tolerance=1e-4)
        )["communication_steps"]
        for name in ("jacobi", method)
    )  # fmt: skip
    expected = part ** (-1 / (extrapolation + 1))
    assert extrapolated / interpolated == pytest.approx(expected, rel=0.35)


@pytest.mark.parametrize("method", METHODS)
def test_held_inputs_keep_their_tolerance(method: str) -> None:
    """Of first order, or of second where the mean of both ends is held."""
    run = simulate(two_masses(step=0.1), END, coupling=method, coupling_tolerance=1e-2)
    assert deviation(run) < 1e-2
    assert counts(run)["exceeded"] == 0


def test_the_same_numbers_however_long_the_base_step_is() -> None:
    """The tolerance, not the base step, determines the error."""
    errors = [
        deviation(
            simulate(two_masses(step=h, extrapolation=1), END, coupling_tolerance=1e-4)
        )
        for h in (0.4, 0.1, 0.02)
    ]  # fmt: skip
    assert max(errors) < 1e-4
    assert deviation(simulate(two_masses(step=0.1, extrapolation=1), END)) > 1e-3


def test_zero_is_no_tolerance() -> None:
    plain = two_masses(step=0.01, extrapolation=1).compile()
    off = two_masses(step=0.01, extrapolation=1, coupling_tolerance=0.0).compile()
    assert plain.data == off.data
    d = two_masses(step=0.01, extrapolation=1, coupling_tolerance=1e-3)
    assert d.compile(coupling_tolerance=0.0).data == plain.data != d.compile().data
    assert "communication steps in a base step" in d.compile().report()


def test_steps_that_are_exact_are_not_divided() -> None:
    """A ramp is extrapolated exactly, once it has a past."""

    def make(**options: Any) -> Diagram:
        d = Diagram("ramp", step=0.01, extrapolation=1, **options)
        a = d.add(mass(0), "a")
        d.connect(d.add(Expression("2*t", unit="N"), "push"), a["push.force.x"])
        return d

    run = simulate(make(coupling_tolerance=1e-4), 1.0)
    parts = np.diff(run["coupling.a.communication_steps"])
    assert parts[0] > 1 and np.all(parts[2:] == 1)


@pytest.mark.parametrize("smaller, rejected", [(1.0, 0), (0.999, 1)])
def test_an_error_as_large_as_the_tolerance_is_accepted(smaller: float, rejected: int) -> None:
    """Over 1/16 s, 1 - t is off by 1/16 of its largest value, in binary digits exactly."""
    d = Diagram("ramp", step=1 / 16)
    d.connect(d.add(Expression("1 - t", unit="N"), "push"), d.add(mass(0), "a")["push.force.x"])
    run = simulate(d, 1 / 16, coupling_tolerance=smaller / 16)
    assert counts(run)["rejected"] == rejected
    assert (counts(run)["communication_steps"] > 1) == bool(rejected)


@pytest.mark.parametrize("extrapolation", [0, 1])
def test_a_source_is_followed_without_any_other_member(extrapolation: int) -> None:
    """m x'' + c x' + k x = sin(5 t): one block, whose input is held over a base step otherwise."""

    def run(**options: Any) -> Any:
        d = Diagram("driven", step=0.05, extrapolation=extrapolation)
        b = d.add(mass(1), "b")
        d.connect(d.add(Sine(frequency=5.0 / (2 * np.pi), unit="N"), "push"), b["push.force.x"])
        return simulate(d, END, **options)["b.slide.displacement"][-1]

    a = np.zeros((4, 4))
    a[0, 1] = 1.0
    a[1] = -K[1] / M[1], -0.2 / M[1], 1 / M[1], 0.0
    a[2:, 2:] = [[0.0, 5.0], [-5.0, 0.0]]
    true = (expm(a * END) @ [0.0, 0.0, 0.0, 1.0])[0]
    assert abs(run() - true) > 3e-4
    assert abs(run(coupling_tolerance=2e-3) - true) < 2e-4


def chain(step: float, **options: Any) -> Diagram:
    """Mass a moves freely; b follows the force of a spring between them, which a does not get."""
    d = Diagram("chain", step=step, **options)
    plants = {"a": d.add(mass(0), "a"), "b": d.add(mass(1), "b")}
    on_b = law(d, "on_b", "k*(x1 - x2) + c*(v1 - v2)", plants, k=SPRING, c=DAMPER)
    d.connect(on_b, plants["b"]["push.force.x"])
    return d


@pytest.mark.filterwarnings("ignore:gauss-seidel is equivalent to jacobi")
@pytest.mark.parametrize("method", METHODS)
def test_members_upstream_are_advanced_with_the_others(method: str) -> None:
    """Nothing leads back to a; it takes the same steps, so that b knows its motion in a tick."""
    m = np.diag(M)
    k = np.diag(K) + SPRING * np.array([[0, 0], [-1, 1]])
    c = np.diag([0.1, 0.2]) + DAMPER * np.array([[0, 0], [-1, 1]])
    a = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(m, k), -np.linalg.solve(m, c)]])
    x1, x2, v1, v2 = expm(a * END) @ [0.0, 0.0, 1.0, 0.0]
    run = simulate(
        chain(0.1, coupling_tolerance=1e-4), END, coupling=method, extrapolation=1
    )  # fmt: skip
    assert deviation(run, np.array([x1, v1, x2, v2])) < 1e-4
    both = run.coupling_report().couplings
    assert [item["members"] for item in both] == [["a"], ["b"]]
    assert both[0]["communication_steps"] == both[1]["communication_steps"] > 100


@pytest.mark.filterwarnings("ignore:gauss-seidel is equivalent to jacobi")
def test_one_tolerance_of_a_group_is_that_of_all() -> None:
    """Its bound and its lack of rollback too; blocks without a tolerance follow."""
    d = chain(0.1, extrapolation=1)
    d.couple("a", halvings=0)
    d.couple("b", coupling_tolerance=1e-4, halvings=7)
    a, b = d.compile().couplings
    assert (a["coupling_tolerance"], b["coupling_tolerance"]) == (0.0, 1e-4)
    assert a["divisions"] == b["divisions"] == 128 and a["rolls_back"] and b["rolls_back"]
    report = simulate(d, 1.0).coupling_report()
    assert report.couplings[0]["communication_steps"] == report.couplings[1]["communication_steps"]
    assert "communication steps, as others need, " in str(report)
    assert "communication steps for a tolerance of 0.0001, " in str(report)
    vars(d["a"])["can_roll_back"] = False
    assert not any(item["rolls_back"] for item in d.compile().couplings)
    assert simulate(d, 1.0).coupling_report().couplings[1]["rejected"] == 0


def test_independent_couplings_take_steps_of_their_own() -> None:
    d = two_masses(step=0.1, extrapolation=1, coupling_tolerance=1e-4)
    slow = d.add(mass(1), "slow")
    brake = d.add(Gain(-1e-3, unit="N"), "brake")
    d.connect(slow["slide.displacement"], brake)
    d.connect(brake, slow["push.force.x"])
    busy, calm = simulate(d, 1.0).coupling_report().couplings
    assert busy["members"] == ["b", "a"] and calm["members"] == ["slow"]
    assert calm["communication_steps"] < 0.2 * busy["communication_steps"]


def test_the_states_of_the_diagram_are_members() -> None:
    """The second mass is two integrators."""
    d = Diagram("states", step=0.05, solver="rk4", coupling="newton", extrapolation=1)
    a = d.add(mass(0, SPRING, DAMPER), "a")
    d.add(Integrator(0.0), "v2")
    d.add(Integrator(0.0), "x2")
    d.add(Expression("(k*(x1 - x2) + c*(v1 - v2) - 15*x2 - 0.2*v2)/2",
                     parameters={"k": SPRING, "c": DAMPER}), "f2")  # fmt: skip
    d.add(Expression("k*x2 + c*v2", parameters={"k": SPRING, "c": DAMPER}, unit="N"), "on_a")
    for source, port in (
        ("a.slide.displacement", "f2.x1"), ("a.slide.speed", "f2.v1"), ("x2", "f2.x2"),
        ("v2", "f2.v2"), ("f2", "v2"), ("v2", "x2"), ("x2", "on_a.x2"), ("v2", "on_a.v2"),
    ):  # fmt: skip
        d.connect(source, port)
    d.connect("on_a", a["push.force.x"])
    run = simulate(d, END, coupling_tolerance=1e-4)
    found = [run[path][-1] for path in (*STATES[:2], "x2", "v2")]
    assert np.abs(found - exact(END)).max() < 1e-4
    assert counts(run)["communication_steps"] > 1000 * (4 / 80)


def test_a_jump_within_a_tick_is_resolved() -> None:
    """A force that is applied at 1.03 s, read by b together with the spring's."""

    def run(**options: Any) -> Any:
        d = two_masses(step=0.1, extrapolation=1)
        both = d.add(Sum("++"), "both")
        d.sources.pop((d["b"], d["b"].input_index["push.force.x"]))
        d.connect(d["on_b"], both["u1"])
        kick = d.add(Expression("where(t < 1.03, 0, 2)", unit="N"), "kick")
        d.connect(kick, both["u2"])
        d.connect(both, d["b"]["push.force.x"])
        return simulate(d, END, **options)

    m = np.diag(M)
    k = np.diag(K) + SPRING * np.array([[1, -1], [-1, 1]])
    c = np.diag([0.1, 0.2]) + DAMPER * np.array([[1, -1], [-1, 1]])
    a = np.zeros((5, 5))
    a[:2, 2:4] = np.eye(2)
    a[2:4] = np.linalg.solve(m, np.column_stack([-k, -c, [0.0, 2.0]]))
    z = expm(a * 1.03) @ [0.0, 0.0, 1.0, 0.0, 0.0]
    x1, x2, v1, v2, _ = expm(a * (END - 1.03)) @ [*z[:4], 1.0]
    reference = np.array([x1, v1, x2, v2])
    assert deviation(run(), reference) > 1e-2
    with pytest.warns(CouplingWarning, match="in 1 of 40 base steps, mostly because of `both`"):
        found = run(coupling_tolerance=1e-4)
    assert deviation(found, reference) < 5e-4  # the jump is up to 0.1 s / 1024 late
    parts = np.diff(found["coupling.b+a.communication_steps"])
    assert parts[10] > parts[9]


# Bounds


def test_divisions_of_a_tick_are_bounded() -> None:
    d = two_masses(step=0.1, extrapolation=1)
    d.couple(coupling_tolerance=1e-6, halvings=2)
    with pytest.warns(
        CouplingWarning,
        match=r"exceed coupling_tolerance = 1e-06 in 40 of 40 base steps, mostly because of .*: "
        r"a base step has at most 4 communication steps",
    ):
        run = simulate(d, END)
    item = counts(run)
    assert item["steps"] == 40 and item["communication_steps"] == 160
    assert item["sweeps"] <= 40 * 7
    assert run["coupling.b+a.communication_step"][-1] == 0.025
    assert run["coupling.b+a.exceeded"][-1] == item["exceeded"]


@pytest.mark.parametrize("method", ["jacobi", "gauss-seidel"])
def test_members_that_cannot_go_back_shorten_the_next_step(method: str) -> None:
    def make(kick: str, **flags: bool) -> Diagram:
        d = two_masses(step=0.1, coupling=method, extrapolation=1, coupling_tolerance=1e-3)
        push = d.add(Expression(f"u + {kick}", unit="N"), "kick")
        d.sources.pop((d["b"], d["b"].input_index["push.force.x"]))
        d.connect(d["on_b"], push)
        d.connect(push, d["b"]["push.force.x"])
        vars(d["a"]).update(flags)
        return d

    run = simulate(make("0", can_roll_back=False), END)
    item = counts(run)
    assert item["rejected"] == item["exceeded"] == 0
    assert item["sweeps"] == item["communication_steps"]
    assert deviation(run) < 1e-3
    # Begins before anything could be known of it.
    kick = "where(t < 2, 0, sin(60*(t - 2)))"
    with pytest.warns(CouplingWarning, match="none is repeated. Use a smaller base step"):
        late = counts(simulate(make(kick, can_roll_back=False), END))
    assert late["rejected"] == 0 and 1 <= late["exceeded"] <= 3
    assert late["communication_steps"] > 2 * item["communication_steps"]
    repeated = counts(simulate(make(kick), END))
    assert repeated["exceeded"] == 0 and repeated["rejected"] > 0


def test_steps_that_do_not_converge_or_are_refused_are_divided() -> None:
    @python_block(outputs=["y"])
    def pull(x1: float, x2: float) -> float:
        if abs(x2 - x1) > 0.25:  # more than the masses are ever apart
            raise ValueError("stretched too far")
        return 20.0 * (x2 - x1)

    def make(**options: Any) -> Diagram:
        d = Diagram("guarded", step=0.5)
        plants = {"a": d.add(mass(0), "a"), "b": d.add(mass(1), "b")}
        spring = d.add(pull(), "pull")
        for name, port in (("a", "x1"), ("b", "x2")):
            d.connect(plants[name]["slide.displacement"], spring[port])
        for name, sign in (("a", 1.0), ("b", -1.0)):
            side = d.add(Gain(sign, unit="N"), f"on_{name}")
            d.connect(spring, side)
            d.connect(side, plants[name]["push.force.x"])
        d.couple(**options)
        return d

    for method in ("jacobi", "fixed-point", "newton"):
        d = make(method=method, extrapolation=1, coupling_tolerance=1e-3, iterations=4)
        run = simulate(d, END)
        assert counts(run)["failures"] == 0 and counts(run)["rejected"] > 0, method
    with pytest.raises(BlockError, match="stretched too far"):
        simulate(make(method="jacobi", extrapolation=1), END)
    with pytest.raises(BlockError, match="did not converge, nor did parts of it"):
        simulate(
            make(method="fixed-point", extrapolation=1, coupling_tolerance=1e-3, iterations=1,
                 tolerance=1e-12, failure="error"),
            END,
        )  # fmt: skip


# Bits


@pytest.mark.parametrize("method", METHODS)
def test_a_saved_state_goes_on_with_the_same_bits(method: str) -> None:
    d = two_masses(step=0.1, coupling=method, extrapolation=2, coupling_tolerance=1e-4)
    plan = d.compile()
    with plan.instantiate() as first, plan.instantiate() as second:
        first.run(7)
        assert read_couplings(first)[0]["communication_steps"] > 14
        saved = first.save()
        second.restore(saved)
        first.run(20)
        for _ in range(20):
            second.run(1)
        assert first.save() == second.save()
        second.restore(saved)
        second.run(20)
        assert first.save() == second.save()


def test_a_checkpoint_continues_a_run() -> None:
    d = two_masses(step=0.1, coupling="newton", extrapolation=1, coupling_tolerance=1e-4)
    whole, half = simulate(d, END), simulate(d, END / 2)
    rest = simulate(d, END, checkpoint=half.checkpoint)
    assert all(whole[path][-1] == rest[path][-1] for path in STATES)
    assert counts(whole)["communication_steps"] == counts(rest)["communication_steps"]


def test_an_adaptive_coupling_leaves_in_an_fmu(tmp_path: Path) -> None:
    """An independent importer gets the same bits, also if it goes back."""
    d = two_masses(step=0.1, coupling="newton", extrapolation=1, coupling_tolerance=1e-4)
    d.output("speed", d["a"]["slide.speed"])
    d.export_fmu(tmp_path / "masses.fmu")
    found = fmpy.simulate_fmu(
        str(tmp_path / "masses.fmu"), stop_time=2.0, step_size=0.1, output_interval=0.1
    )
    assert np.array_equal(found["speed"], simulate(d, 2.0)["a.slide.speed"])


@pytest.mark.filterwarnings("ignore:the coupling of `a`, `b` (created|lost)")
def test_bonds_add_up_over_communication_steps() -> None:
    """The energy is the sum of the powers, and much less is lost than in undivided steps."""
    plain, d = bonded(0.1), bonded(0.1)
    for diagram in (plain, d):
        diagram.couple(extrapolation=1)
    d.couple(coupling_tolerance=1e-3)
    run = simulate(d, 1.0)
    total = 0.1 * run["coupling.grip.power"][1:].sum()
    assert run["coupling.grip.energy"][-1] == pytest.approx(total, rel=1e-9)
    lost = simulate(plain, 1.0)["coupling.grip.energy"]
    assert np.abs(run["coupling.grip.energy"]).max() < 0.05 * np.abs(lost).max()


def test_signals_that_stand_still_need_one_step() -> None:
    d = Diagram("rest", step=0.1, coupling_tolerance=1e-6)
    b = d.add(mass(1), "b")
    total = d.add(Sum("++"), "total")
    d.connect(b["slide.displacement"], d.add(Gain(1.0, unit="N"), "spring"))
    d.connect("spring", total["u1"])
    d.connect(d.add(Constant(0.0, unit="N"), "nothing"), total["u2"])
    d.connect(total, b["push.force.x"])
    item = counts(simulate(d, 1.0))
    assert item["communication_steps"] == item["steps"] == 10
    assert item["rejected"] == item["exceeded"] == 0
