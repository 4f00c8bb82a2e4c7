"""Which blocks are coupled, in which order and by which method."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram, Subsystem, simulate
from biella.blocks import (
    Expression,
    Gain,
    Integrator,
    Sine,
    UnitDelay,
)
from biella.blocks.core._ports import periodic
from biella.errors import BiellaError, DiagramError
from biella.scheduler.compile.coupling._coupling_options import CouplingWarning

from ...engine.coupled_masses import END, METHODS, STATES, error, exact, law, mass, two_masses

pytestmark = pytest.mark.engine

M, K, C = (1.0, 2.0), (10.0, 15.0), (0.1, 0.2)
SPRING, DAMPER = 20.0, 0.3


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("extrapolation", [0, 1, 2])
def test_states_of_the_diagram_are_a_member(method: str, extrapolation: int) -> None:
    """The second mass is two Integrators: they take part as one internal solver would."""

    def make(step: float) -> Diagram:
        d = Diagram("mixed", step=step)
        a = d.add(mass(0), "a")
        acc = d.add(
            Expression("(-k*x - c*v - f)/m", parameters={"k": K[1], "c": C[1], "m": M[1]}), "acc"
        )
        v, x = d.add(Integrator(), "v"), d.add(Integrator(), "x")
        f = d.add(
            Expression(
                "k*(x2 - x1) + c*(v2 - v1)", parameters={"k": SPRING, "c": DAMPER}, unit="N"
            ),
            "f",
        )
        d.connect(a["slide.displacement"], f["x1"])
        d.connect(a["slide.speed"], f["v1"])
        d.connect(x, f["x2"], acc["x"])
        d.connect(v, f["v2"], acc["v"], x)
        d.connect(f, a["push.force.x"], acc["f"])
        d.connect(acc, v)
        return d

    def measure(step: float) -> float:
        run = simulate(make(step), END, coupling=method, extrapolation=extrapolation)
        ends = [run[p][-1] for p in (*STATES[:2], "x", "v")]
        return float(np.abs(ends - exact(END)).max())

    expected = max(extrapolation + 1, 2 if method in ("fixed-point", "newton") else 1)
    assert np.log2(measure(0.01) / measure(0.005)) == pytest.approx(expected, abs=0.2)


def chain(step: float) -> Diagram:
    """A mass under a Sine pushes a second one, which does not push back."""
    d = Diagram("chain", step=step)
    b, a = d.add(mass(1), "b"), d.add(mass(0), "a")  # as numbered, the second comes first
    d.connect(d.add(Sine(amplitude=3.0, frequency=1.0, unit="N"), "shake"), a["push.force.x"])
    push = law(d, "push", "k*x1", {"a": a, "b": b}, k=SPRING)
    d.connect(push, b["push.force.x"])
    return d


def test_gauss_seidel_that_is_jacobi_is_named() -> None:
    """Both masses get the force of the spring, which neither knows before both have moved."""
    d = two_masses("force", step=0.01, coupling="gauss-seidel")
    with pytest.warns(
        CouplingWarning,
        match=r"equivalent to jacobi for the coupling of `a`, "
        "`b`.*method='newton'",
    ):
        run = simulate(d, 0.2)
    assert np.array_equal(
        run["a.slide.speed"], simulate(d, 0.2, coupling="jacobi")["a.slide.speed"]
    )


def test_a_chain_is_advanced_in_its_order() -> None:
    """All inputs are known when they are read, so Gauss-Seidel is as good as iterating, at once."""
    reference = np.array(
        [simulate(chain(2e-4), END, coupling="newton", extrapolation=2)[p][-1] for p in STATES]
    )
    plan = chain(0.01).compile(coupling="gauss-seidel", extrapolation=1)
    assert [item["members"] for item in plan.couplings] == [("a",), ("b",)]
    seidel, newton, jacobi = (
        error(chain(0.01), reference, coupling=m, extrapolation=1)
        for m in ("gauss-seidel", "newton", "jacobi")
    )
    assert seidel == newton
    assert seidel < 0.6 * jacobi
    order = np.log2(
        seidel / error(chain(0.005), reference, coupling="gauss-seidel", extrapolation=1)
    )
    assert order == pytest.approx(2, abs=0.2)


def test_what_cannot_go_back_is_coupled_explicitly_or_refused() -> None:
    d = two_masses(step=0.01)
    vars(d["b"])["can_roll_back"] = False
    with pytest.warns(CouplingWarning, match=r"`b` cannot repeat.*gauss-seidel instead of newton"):
        run = simulate(d, 1.0, coupling="newton", extrapolation=1)
    seidel = simulate(d, 1.0, coupling="gauss-seidel", extrapolation=1)
    assert np.array_equal(run["b.slide.speed"], seidel["b.slide.speed"])
    with pytest.raises(DiagramError, match=r"cannot be estimated: `b` cannot repeat"):
        d.compile(estimate_error=1)
    d.couple("a", "b", method="newton")
    with pytest.raises(DiagramError, match=r"`b` cannot repeat.*method='gauss-seidel'"):
        d.compile()


def test_members_with_a_longer_period() -> None:
    """Every fourth tick they go four steps at once: as with four times the step."""
    slow = two_masses(step=0.0025)
    for name in ("a", "b"):
        slow.rates[slow[name]] = periodic(0.01)
    for method, extrapolation in (("jacobi", 1), ("gauss-seidel", 1), ("newton", 2)):
        fine = simulate(slow, 1.0, coupling=method, extrapolation=extrapolation)
        coarse = simulate(two_masses(step=0.01), 1.0, coupling=method, extrapolation=extrapolation)
        assert fine["a.slide.speed"][::4] == pytest.approx(coarse["a.slide.speed"], abs=1e-12)
        assert np.array_equal(fine["a.slide.speed"][1::4], fine["a.slide.speed"][:-1:4])


def test_members_with_different_periods() -> None:
    d = two_masses(step=0.005)
    d.rates[d["b"]] = periodic(0.01)
    assert all(
        len(item["members"]) == 1
        for item in d.compile(coupling="newton", extrapolation=1).couplings
    )
    assert error(d, coupling="newton", extrapolation=1) < 0.1
    d.couple("a", "b", method="newton")
    with pytest.raises(
        DiagramError, match=r"same period, but `a` steps every 1 .* `b` steps every 2"
    ):
        d.compile()


def test_couple_within_a_subsystem_and_for_some_blocks_only() -> None:
    inside = two_masses(step=0.01)
    inside.couple("a", method="newton", extrapolation=1)
    inside.output("x", inside["a"]["slide.displacement"])
    d = Diagram("outside", step=0.01)
    d.add(Subsystem(inside), "sub")
    for name in ("a", "b"):  # a pair that nobody speaks of
        d.add(mass("ab".index(name)), name)
    d.connect(d["a"]["slide.displacement"], d.add(Gain(-1.0, unit="N"), "g"))
    d.connect(d["g"], d["b"]["push.force.x"])
    (coupling,) = d.compile().couplings
    assert coupling["members"] == ("sub.b", "sub.a") and coupling["method"] == "newton"
    run = simulate(d, 1.0)
    alone = simulate(inside, 1.0)
    assert np.array_equal(run["sub.a.slide.speed"], alone["a.slide.speed"])
    outside = Diagram("outside", step=0.01)
    whole = outside.add(Subsystem(two_masses(step=0.01)), "sub")
    outside.couple(whole, method="newton", extrapolation=1)
    assert np.array_equal(simulate(outside, 1.0)["sub.a.slide.speed"], alone["a.slide.speed"])


def test_a_member_in_a_conditional_subsystem_stays_explicit() -> None:
    inside = Diagram("inside", step=0.01)
    inside.input("u", unit="N")
    inside.connect("u", inside.add(mass(0), "a")["push.force.x"])
    inside.output("v", inside["a"]["slide.speed"])
    d = Diagram("outside", step=0.01, coupling="newton", extrapolation=1)
    sub = d.add(Subsystem(inside, enable=True), "sub")
    d.connect(d.add(Expression("t < 0.3", kind="boolean"), "on", period=0.01), sub["enable"])
    b = d.add(mass(1), "b")
    d.connect(sub["v"], d.add(Gain(5.0, unit="N"), "g"))
    d.connect("g", b["push.force.x"])
    d.connect(b["slide.displacement"], d.add(Gain(-5.0, unit="N"), "back"))
    d.connect("back", sub["u"])
    assert d.compile().couplings == ()
    run = simulate(d, 1.0)
    assert np.ptp(run["sub.a.slide.speed"][40:]) == 0
    inside.couple("a", method="newton")
    with pytest.raises(DiagramError, match=r"`sub.a` is in a conditional subsystem"):
        d.compile()


def test_mistakes() -> None:
    with pytest.raises(DiagramError, match=r"unknown coupling method `gauss-seidl`.*gauss-seidel"):
        Diagram(coupling="gauss-seidl")
    with pytest.raises(DiagramError, match=r"extrapolation must be 0, 1 or 2"):
        two_masses().compile(extrapolation=3)
    d = two_masses()
    for options, message in (
        ({"tolerance": 0.0}, "between 0 and 1"),
        ({"iterations": 0}, "between 1 and 1000"),
        ({"failure": "ignore"}, "'warn' or 'error'"),
        ({"halvings": 11}, "between 0 and 10"),
    ):
        with pytest.raises(DiagramError, match=message):
            d.couple(method="newton", **options)
    with pytest.raises(DiagramError, match=r"not in 'two masses' yet"):
        d.couple(Gain(1.0), method="newton")
    d.couple("on_a", method="newton")
    with pytest.raises(DiagramError, match=r"`on_a` \(Expression\) has neither an internal solver"):
        d.compile()
    d = two_masses()
    d.couple("a", method="newton")
    d.couple("b", method="fixed-point")
    with pytest.raises(DiagramError, match=r"`a`, `b` depend on each other.*one call of couple"):
        d.compile()
    plain = Diagram("plain")
    plain.connect(plain.add(Gain(1.0), "g"), plain.add(UnitDelay(), "z"))
    plain.connect("z", "g")
    plain.couple("z", method="newton")
    with pytest.raises(DiagramError, match=r"the diagram has none"):
        plain.compile()
    with pytest.raises(BiellaError, match=r"the coupling of a Plan is fixed"):
        simulate(two_masses().compile(), 1.0, coupling="newton")


def test_couple_changes_only_what_is_given() -> None:
    d = Diagram("two", step=1e-3, coupling="newton")
    d.couple(extrapolation=2)
    assert (d.coupling.method, d.coupling.extrapolation) == ("newton", 2)
