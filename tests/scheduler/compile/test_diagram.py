"""Diagrams: wiring, checks, order, loops; what is wrong is said all at once."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from biella import BiellaWarning, BlockError, Diagram, DiagramError, Subsystem, simulate
from biella.blocks import (
    PID,
    Constant,
    Expression,
    Gain,
    Integrator,
    Pendulum,
    Port,
    PythonBlock,
    Sum,
    UnitDelay,
    python_block,
)
from biella.scheduler.engine.engine import DIAGNOSTIC_START, Instance

pytestmark = pytest.mark.engine


def test_ends_by_object_name_or_port():
    d = Diagram()
    c = d.add(Constant(2.0), name="c")
    s = d.add(Sum("+-"), name="s")
    d.connect(c, s["u1"], "s.u2")
    d.connect("s", d.add(Gain(1.0), name="g"))
    assert simulate(d, 0.01)["g"][-1] == 0.0


def test_automatic_names():
    d = Diagram()
    for _ in range(2):
        d.add(UnitDelay())
    assert list(d.blocks) == ["unit_delay", "unit_delay_2"]


def crossed() -> Diagram:
    """y1 = u1 and y2 = u2 of one block, y1 wired to u2: legal per port pair, a loop per block."""

    class Pair(PythonBlock):
        def __init__(self):
            super().__init__(
                inputs=["u1", "u2"],
                outputs=["y1", "y2"],
                feedthrough=[("y1", "u1"), ("y2", "u2")],
            )

        def output(self, t, x, u):
            return u[0] + 1.0, 10.0 * u[1]

    d = Diagram()
    c = d.add(Constant(2.0), name="c")
    pair = d.add(Pair(), name="pair")
    k = d.add(Gain(3.0), name="k")
    d.connect(c, pair["u1"])
    d.connect(pair["y1"], k)
    d.connect(k, pair["u2"])
    return d


def test_what_is_legal_per_port_pair_is_never_a_loop():
    d = crossed()
    d.algebraic_loops = "error"
    plan = d.compile()
    assert plan.loops == []
    assert simulate(plan, 0.01)["pair.y2"][-1] == 90.0


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


# Loops that have no unique solution.


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
def test_several_solutions_are_told_with_the_one_that_is_taken(formula, taken, others):
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


def test_units_follow_the_wires():
    d = Diagram()
    speed = d.add(Constant(2.0, unit="rad/s"), name="speed")
    angle = d.add(Integrator(), name="angle")
    total = d.add(Sum("++"), name="total")
    d.connect(speed, angle)
    d.connect(angle, total["u1"], total["u2"])
    plan = d.compile()
    assert plan.signals["angle.y"].unit == plan.signals["total.y"].unit == "rad"


def test_all_static_errors_in_one_report():
    d = Diagram("bad", step=1e-3)
    speed = d.add(Constant(1.0, unit="rad/s"), name="speed")
    rpm = d.add(Constant(1.0, unit="rpm"), name="rpm")
    torque = d.add(Constant([1.0, 2.0], unit="N.m"), name="torque")
    s = d.add(Sum("+-"), name="s")
    p = d.add(Pendulum(), name="p")
    slow = d.add(Gain(1.0), name="slow", period=2.5e-3)
    d.connect(speed, s["u1"])
    d.connect(rpm, s["u2"])
    d.connect(torque, p)
    d.connect(s, slow)
    d.connect(speed, slow)
    d.add(Gain(1.0), name="lonely")
    with pytest.raises(DiagramError) as info:
        d.compile()
    problems = "\n".join(info.value.problems)
    assert len(info.value.problems) == 5
    assert "input `slow.u` has two sources: `s.y` and `speed.y`" in problems
    assert "`s.u2` is in rad/s, but `rpm.y` is in rpm: same dimension" in problems
    assert "Gain(0.1047" in problems
    assert "`p.torque` wants 1 signal in N.m, but `torque.y` gives 2 signals in N.m" in problems
    assert "input `lonely.u` is not connected" in problems
    assert "2.5" not in problems or "0.002 s or 0.003 s would fit" in problems


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (lambda d: d.connect("pp.angle", "k"), r"no block `pp` .*Did you mean `p`"),
        (lambda d: d.connect("p.angel", "k"), r"no output `angel`. Did you mean `angle`"),
        (lambda d: d.connect("p", "k"), r"`p` has 2 outputs: say which, p\['angle'\]"),
        (lambda d: d.connect("p.torque", "k"), r"no output `torque`. It is an input"),
        (lambda d: d.connect(Gain(1.0), "k"), r"not in 'diagram' yet: add it first"),
        (lambda d: d.add(d["k"]), r"in the diagram already, as `k`"),
        (lambda d: d.add(Gain), r"add wants a block.* Create it first"),
        (lambda d: d.add(Gain(1.0), name="k"), r"name `k` is taken"),
        (lambda d: d.add(Gain(1.0), name="a.b"), r"cannot be a name"),
        (lambda d: d["k"]["uu"], r"has no port `uu`. Did you mean `u`"),
        (lambda d: Gain("two"), r"parameter `k` wants numbers, got 'two'"),  # type: ignore[arg-type]
        (lambda d: Gain(float("nan")), r"parameter `k` must be finite"),
        (lambda d: Sum("+x"), r"such as '\+-'"),
        (lambda d: Diagram(solver="rk5"), r"unknown solver `rk5`. Did you mean"),
        (lambda d: Diagram(step=0), r"step must be positive"),
        (lambda d: Constant(1.0, unit="rad/sek"), r"sek"),
        (lambda d: d.add(Gain(1.0), period=-1.0), r"period must be positive"),
    ],
)
def test_typical_mistakes_teach(wire, message):
    d = Diagram()
    d.add(Pendulum(), name="p")
    d.add(Gain(1.0), name="k")
    with pytest.raises(Exception, match=message):
        wire(d)


def test_a_period_that_does_not_fit_names_those_that_do():
    d = Diagram(step=1e-3)
    c = d.add(Constant(1.0))
    k = d.add(Gain(1.0), name="slow", period=2.5e-3)
    d.connect(c, k)
    with pytest.raises(DiagramError, match=r"0.002 s or 0.003 s would fit; .* step of 0.0005 s"):
        d.compile()


def test_rates_are_inherited_from_what_feeds_a_block():
    d = Diagram(step=1e-3)
    x = d.add(Integrator(1.0), name="x")
    slow = d.add(Gain(1.0), name="slow", period=4e-3)
    other = d.add(Gain(1.0), name="other", period=6e-3)
    follows = d.add(Gain(2.0), name="follows")
    both = d.add(Sum("++"), name="both")
    mixed = d.add(Sum("++"), name="mixed")
    fixed = d.add(Gain(1.0), name="fixed")
    c = d.add(Constant(1.0), name="c")
    d.connect(c, fixed, x)
    d.connect(x, slow, other, mixed["u1"])
    d.connect(slow, follows, both["u1"], mixed["u2"])
    d.connect(other, both["u2"])
    rates = {b.path: b.rate for b in d.compile().blocks}
    assert rates["follows"] == "0.004 s"
    assert rates["both"] == "0.002 s"
    assert rates["mixed"] == rates["x"] == "continuous"
    assert rates["fixed"] == rates["c"] == "constant"


def test_the_report_lists_blocks_in_execution_order():
    d = crossed()
    report = d.compile().report()
    lines = report.splitlines()
    order = [line.split()[1] for line in lines if line.strip() and line.split()[0].isdigit()]
    assert order == ["c", "pair", "k", "pair"]


def test_unconnected_inputs_of_a_subsystem_take_its_default():
    inner = Diagram("inner")
    u = inner.input("u", default=3.0)
    k = inner.add(Gain(2.0), name="k")
    inner.connect(u, k)
    inner.output("y", k)
    d = Diagram()
    d.add(Subsystem(inner), name="sub")
    assert simulate(d, 0.01)["sub.k"][-1] == 6.0


def test_a_vector_input_of_the_diagram():
    d = Diagram()
    u = d.input("u", width=3, default=1.0)
    k = d.add(Gain([[1.0, 2.0, 3.0]]), name="k")
    d.connect(u, k)
    d.output("y", k)
    assert simulate(d, 0.01, parameters={"u": [1, 10, 100]})["k"][-1] == 321.0


def test_ports_must_agree_on_width():
    d = Diagram()
    a = d.add(Constant([1.0, 2.0]), name="a")
    b = d.add(Constant([1.0, 2.0, 3.0]), name="b")
    s = d.add(Sum("++"), name="s")
    d.connect(a, s["u1"])
    d.connect(b, s["u2"])
    with pytest.raises(DiagramError, match=r"`s.u2` wants 2 signals, but `b.y` gives 3 signals"):
        d.compile()


def test_kinds_are_checked():
    class Flag(PythonBlock):
        def __init__(self):
            super().__init__(outputs=[Port("on", kind="boolean")])

        def output(self, t, x, u):
            return True

    d = Diagram()
    flag = d.add(Flag(), name="flag")
    d.connect(flag, d.add(Gain(1.0), name="k"))
    with pytest.raises(
        DiagramError, match=r"wants a real signal, but `flag.on` is boolean.*Convert"
    ):
        d.compile()


def test_the_output_called_y_is_meant_where_a_block_has_others_too():
    d = Diagram("loop", step=1e-3)
    pid = d.add(PID(kp=2.0, period=1e-3), name="pid")
    k = d.add(Gain(3.0), name="k")
    d.connect(d.input("wanted", default=1.0), pid["reference"])
    d.connect(d.input("measured", default=0.5), pid["measurement"])
    d.connect(pid, k)
    run = simulate(d.compile(outputs=["pid"]), until=0.01)
    np.testing.assert_array_equal(run["pid"], run["pid.y"])
    np.testing.assert_array_equal(run["k"], 3.0)


@pytest.mark.parametrize(
    ("period", "advice"),
    [
        (1 / 3000, r"0\.001 s would fit; so would a step of 1/3000 s\.$"),
        (0.0015, r"0\.001 s or 0\.002 s would fit; so would a step of 0\.0005 s\.$"),
        (0.00314159265, r"0\.003 s or 0\.004 s would fit\.$"),
    ],
)
def test_a_period_that_does_not_fit_is_told_with_a_step_that_does(period, advice):
    d = Diagram(step=1e-3)
    d.connect(d.add(Constant(1.0)), d.add(UnitDelay(), name="u", period=period))
    with pytest.raises(DiagramError, match=advice):
        d.compile()


def test_the_step_that_is_advised_fits():
    d = Diagram(step=1 / 3000)
    d.connect(d.add(Constant(1.0)), d.add(UnitDelay(), name="u", period=1 / 3000))
    d.connect("u", d.add(UnitDelay(), name="v", period=1e-3))
    d.compile()
