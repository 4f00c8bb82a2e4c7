"""Algebraic loops: solutions, singular and ambiguous loops, and what is said of them."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from biella import BiellaWarning, BlockError, Diagram, DiagramError, simulate
from biella.blocks import (
    Constant,
    Expression,
    Gain,
    Integrator,
    Sum,
    python_block,
)
from biella.scheduler.engine._engine import DIAGNOSTIC_START, Instance

pytestmark = pytest.mark.engine


def test_a_linear_loop_is_solved_to_rounding():
    d = Diagram()
    c = d.add(Constant(1.0))
    s = d.add(Sum("+-"), name="s")
    g = d.add(Gain(3.0), name="g")
    d.connect(c, s["u1"])
    d.connect(s, g)
    d.connect(g, s["u2"])
    result = simulate(d, 0.01)
    assert result["s"][-1] == pytest.approx(0.25, abs=1e-15)


def test_a_vector_loop_against_a_direct_solution():
    """x = b + A x, so x = (I - A)^-1 b."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(4, 4)), rng.normal(size=4)
    d = Diagram()
    c = d.add(Constant(b))
    s = d.add(Sum("++"), name="x")
    g = d.add(Gain(a), name="a")
    d.connect(c, s["u1"])
    d.connect(s, g)
    d.connect(g, s["u2"])
    exact = np.linalg.solve(np.eye(4) - a, b)
    assert np.allclose(simulate(d, 0.01)["x"][-1], exact, rtol=1e-12, atol=1e-12)


def test_a_nonlinear_loop_inside_an_integration():
    """y = u - y³ algebraically, dx/dt = -y with u = x: against scipy on the explicit root."""
    from scipy.integrate import solve_ivp
    from scipy.optimize import brentq

    @python_block(outputs=["y"])
    def cube(u):
        return u**3

    d = Diagram(step=0.01)
    x = d.add(Integrator(2.0), name="x")
    s = d.add(Sum("+-"), name="s")
    c = d.add(cube(), name="cube")
    neg = d.add(Gain(-1.0))
    d.connect(x, s["u1"])
    d.connect(s, c, neg)
    d.connect(c, s["u2"])
    d.connect(neg, x)
    got = simulate(d, 1.0)["x"][-1]

    def slope(t, x):
        return [-brentq(lambda y: y + y**3 - x[0], -10, 10, xtol=1e-14)]

    exact = solve_ivp(slope, (0, 1), [2.0], rtol=1e-11, atol=1e-12).y[0, -1]
    assert got == pytest.approx(exact, abs=1e-8)  # RK4 at 0.01 on a slope below 1


def test_a_loop_without_solution_names_itself_and_its_residual():
    d = Diagram()
    c = d.add(Constant(1.0))
    s = d.add(Sum("+-"), name="s")
    g = d.add(Gain(-1.0), name="g")
    d.connect(c, s["u1"])
    d.connect(s, g)
    d.connect(g, s["u2"])
    with pytest.raises(BlockError, match=r"s\.y → g\.y → s\.y.*residual .* stays at 1"):
        simulate(d, 0.01)
    d.algebraic_loops = "error"
    with pytest.raises(DiagramError, match=r"algebraic loop: s\.y → g\.y → s\.y"):
        d.compile()


def test_a_loop_without_solution_says_that_its_jacobian_is_singular():
    """x = x + 1."""
    d = Diagram()
    s = d.add(Sum("++"), name="s")
    d.connect(d.add(Constant(1.0)), s["u1"])
    d.connect(s, s["u2"])
    with pytest.raises(BlockError, match=r"stays at 1, and its Jacobian is singular there"):
        simulate(d, 0.01)


def ring(block):
    """v = block(v), with a gain of 1 in between."""
    d = Diagram("ring", step=1e-2)
    d.add(block, name="f")
    width = block.parameters[0].value.shape[:1] if isinstance(block, Gain) else ()
    d.connect("f", d.add(Gain(np.ones(width)), name="g"))
    d.connect("g", "f")
    return d


def loop_warnings(d):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = simulate(d, 0.05)
    return result, [str(item.message) for item in caught]


@pytest.mark.parametrize(
    ("block", "why"),
    [
        (Gain(1.0), "its Jacobian has no inverse"),
        (Gain(1.0 + 1e-9), "amplified .* times"),
        (Expression("u*u + 0.25"), "amplified .* times"),  # a double root
        (Expression("u + exp(-u)"), "Jacobian|amplified"),  # a root at infinity
        (Gain(np.array([[0.0, 1.0], [1.0, 0.0]])), "its Jacobian has no inverse"),
    ],
    ids=["x = x", "nearly", "double root", "root at infinity", "vector"],
)
def test_a_singular_loop_is_named_once(block, why):
    _, texts = loop_warnings(ring(block))
    assert len(texts) == 1
    assert re.search(
        rf"the algebraic loop f\.y → g\.y → f\.y is singular at t = 0 s.*{why}", texts[0]
    )


@pytest.mark.parametrize(
    ("formula", "taken", "others"),
    [
        ("u*u - 1", (1 - 5**0.5) / 2, [(1 + 5**0.5) / 2]),
        ("tanh(2*u)", 0.0, [0.957504024, -0.957504024]),
        ("min(1, max(-1, 3*u))", 0.0, [1.0, -1.0]),
        ("2/(u + 1)", 1.0, [-2.0]),
    ],
)
def test_several_solutions_are_reported_with_the_one_that_is_taken(formula, taken, others):
    result, (text,) = loop_warnings(ring(Expression(formula)))
    assert result["f"][0] == pytest.approx(taken, abs=1e-9)
    found = re.search(
        r"more than one solution at t = 0 s: `f\.y` = (\S+) was taken.*= (\S+) is", text
    )
    assert found is not None
    assert float(found[1]) == pytest.approx(taken, abs=1e-5)
    assert min(abs(float(found[2]) - other) for other in others) < 1e-5


@pytest.mark.parametrize(
    "block",
    [
        Gain(0.999),
        Gain(-1e8),
        Gain(1e8),
        Expression("cos(u)"),
        Expression("0.5*sin(u) + 3"),
        Expression("-u*u*u"),
        Expression("min(1, max(-1, -100*u)) + 0.3"),
    ],
)
def test_a_loop_with_one_solution_is_not_warned_of(block):
    assert loop_warnings(ring(block))[1] == []


def test_units_of_a_loop_do_not_make_it_singular():
    """Gains of 1e±9 around a loop of two signals whose product of gains is 0.5."""
    d = Diagram(step=1e-2)
    for name, gains in (("a", [[0.0, 1e9], [0.0, 0.0]]), ("b", [[0.0, 0.0], [0.5e-9, 0.0]])):
        d.add(Gain(np.array(gains)), name=name)
    s = d.add(Sum("+++"), name="s")
    d.connect(d.add(Constant([1.0, 1e-9])), s["u1"])
    d.connect(s, "a", "b")
    d.connect("a", s["u2"])
    d.connect("b", s["u3"])
    result, texts = loop_warnings(d)
    assert texts == []
    # x = 1 + 1e9 y, y = 1e-9 + 0.5e-9 x
    assert result["s"][-1] == pytest.approx([4.0, 3e-9], rel=1e-6)


def test_a_python_block_is_not_evaluated_far_from_the_solution():
    seen = []

    @python_block(outputs=["y"])
    def parabola(u):
        seen.append(u)
        return u * u - 1

    assert loop_warnings(ring(parabola()))[1] == []
    assert max(abs(u) for u in seen) < 2


def test_checking_a_loop_changes_nothing():
    d = ring(Expression("u*u - 1"))
    plan = d.compile()
    with Instance(plan) as checked, Instance(plan) as plain:
        for run in (checked, plain):
            run.initialize()
            run.evaluate()
        with pytest.warns(BiellaWarning, match="more than one solution"):
            checked.warn(DIAGNOSTIC_START)
        assert checked.save() == plain.save()


def test_a_loop_over_two_rates_is_a_loop_only_where_both_are_due():
    """g is held between its hits, so in between s = 1 - held."""
    d = Diagram(step=0.01)
    c = d.add(Constant(1.0))
    s = d.add(
        Sum("+-"),
        name="s",
    )
    g = d.add(Gain(1.0), name="g", period=0.05)
    x = d.add(Integrator(0.0), name="x")
    s2 = d.add(Sum("++"), name="s2")
    d.connect(c, s["u1"], x)
    d.connect(s, s2["u1"])
    d.connect(x, s2["u2"])
    d.connect(s2, g)
    d.connect(g, s["u2"])
    result = simulate(d, 0.2)
    assert np.allclose(result["s"] + result["g"], 1.0, atol=1e-12)
    hits = slice(None, None, 5)
    assert np.allclose(result["g"][hits], (result["s"] + result["x"])[hits], atol=1e-12)
    assert np.all(np.diff(result["g"][:5]) == 0)
