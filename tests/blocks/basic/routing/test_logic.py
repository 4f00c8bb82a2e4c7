"""Logic blocks against numpy, sample by sample."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biella import Diagram, DiagramError, simulate
from biella.blocks.basic.math._expression import Expression
from biella.blocks.basic.routing._logic import (
    Compare,
    Counter,
    Edge,
    Latch,
    Logic,
    MultiportSwitch,
    SampleHold,
    Switch,
)

pytestmark = pytest.mark.engine

RNG = np.random.default_rng(5)


def drive(block, *, period=None, offset=0.0, **signals):
    """Feed arrays of one row for each tick, and return the output's rows."""
    d = Diagram("test")
    d.add(block, name="b", period=period, offset=offset)
    rows = {name: np.asarray(signal, dtype=float) for name, signal in signals.items()}
    for name, signal in rows.items():
        declared = block.inputs[block.input_index[name]].kind
        kind: Any = declared if isinstance(declared, str) else "real"
        width = signal.shape[1] if signal.ndim == 2 else 1
        source = d.input(f"in {name}", width=width, kind=kind)
        d.connect(source, block[name])
    seen = []
    with d.compile().instantiate() as instance:
        for k in range(len(next(iter(rows.values())))):
            for name, signal in rows.items():
                instance.set(f"in {name}", signal[k])
            seen.append(instance.get("b.y"))
            instance.run(1)
    return np.array(seen)


def bits(*shape):
    """Return random zeros and ones."""
    return RNG.integers(0, 2, shape).astype(float)


COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


@pytest.mark.parametrize("op", COMPARISONS)
def test_compare(op):
    a, b = RNG.integers(-2, 3, (2, 40, 3)).astype(float)
    expected = COMPARISONS[op]
    np.testing.assert_array_equal(drive(Compare(op), u1=a, u2=b), expected(a, b))
    np.testing.assert_array_equal(drive(Compare(op, 1.0), u=a), expected(a, 1.0))
    limits = [-1.0, 0.0, 2.0]
    np.testing.assert_array_equal(drive(Compare(op, limits), u=a), expected(a, limits))


def test_compare_changes_at_ticks_only():
    """Its input is continuous, its output is sampled."""
    d = Diagram("test", step=0.1)
    f = d.add(Expression("sin(20*t)"), name="f")
    c = d.add(Compare(">", 0.0), name="c")
    d.connect(f, c)
    plan = d.compile()
    assert plan.signals["c.y"].kind == "boolean"
    assert plan.signals["c.y"].sampled
    result = simulate(plan, until=2.0)
    np.testing.assert_array_equal(result["c"], np.sin(20 * 0.1 * np.arange(21)) > 0)


LOGIC = {
    "and": lambda u: u.all(axis=0),
    "or": lambda u: u.any(axis=0),
    "nand": lambda u: ~u.all(axis=0),
    "nor": lambda u: ~u.any(axis=0),
    "xor": lambda u: u.sum(axis=0) % 2 == 1,
}


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("op", LOGIC)
def test_logic(op, n):
    u = bits(n, 30, 2)
    signals = {f"u{k + 1}": u[k] for k in range(n)}
    np.testing.assert_array_equal(drive(Logic(op, n), **signals), LOGIC[op](u > 0))


def test_not():
    np.testing.assert_array_equal(drive(Logic("not"), u1=[0.0, 1.0]), [1.0, 0.0])


def test_switch():
    a, b, c = RNG.normal(size=(30, 2)), RNG.normal(size=(30, 2)), bits(30)
    expected = np.where(c[:, None] > 0, a, b)
    np.testing.assert_array_equal(drive(Switch(), on_true=a, condition=c, on_false=b), expected)


def test_switch_carries_unit_and_follows_continuous_data():
    d = Diagram("test")
    switch = d.add(Switch(), name="s")
    d.connect(d.input("a", unit="m"), switch["on_true"])
    d.connect(d.input("b"), switch["on_false"])
    d.connect(d.input("c", kind="boolean"), switch["condition"])
    plan = d.compile()
    assert plan.signals["s.y"].unit == "m"
    assert plan.blocks[0].rate == "continuous"


def test_multiport_switch_limits_its_selector():
    u = RNG.normal(size=(3, 9, 2))
    selector = np.array([1, 2, 3, 3, 2, 1, 0, -(2.0**40), 1e300])
    chosen = np.clip(selector, 1, 3).astype(int) - 1
    seen = drive(MultiportSwitch(3), selector=selector, u1=u[0], u2=u[1], u3=u[2])
    np.testing.assert_array_equal(seen, u[chosen, np.arange(9)])


EDGES = {
    "rising": lambda before, now: ~before & now,
    "falling": lambda before, now: before & ~now,
    "either": lambda before, now: before ^ now,
}


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("first", [0.0, 1.0])
def test_edge(edge, first):
    u = bits(40, 2)
    u[0] = first
    expected = np.zeros((40, 2))
    expected[1:] = EDGES[edge](u[:-1] > 0, u[1:] > 0)
    np.testing.assert_array_equal(drive(Edge(edge), u=u), expected)


def test_edge_with_a_period_compares_its_own_samples():
    """At 2 ticks and an offset of 1, it sees ticks 1, 3, 5, …; the first of them is not an edge."""
    u = np.array([0, 1, 0, 1, 1, 0, 0, 1, 1, 1], dtype=float)
    seen = drive(Edge(), u=u, period=2e-3, offset=1e-3)
    np.testing.assert_array_equal(seen, [0, 0, 0, 0, 0, 0, 0, 1, 1, 0])


def count(u, reset, edge, initial, step, lower, upper, wrap):
    """Count in plain Python."""
    value, before, seen = initial, None, []
    for now, back in zip(u > 0, reset > 0, strict=True):
        if edge == "level":
            hit = now
        else:
            hit = before is not None and bool(EDGES[edge](np.array(before), np.array(now)))
        if back:
            value = initial
        elif hit:
            value += step
            if wrap:
                value = lower + (value - lower) % (upper - lower + 1)
            value = min(max(value, lower), upper)
        before = now
        seen.append(value)
    return seen


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("step", [1, -1, 3, -7])
@pytest.mark.parametrize("edge", ["rising", "falling", "either", "level"])
def test_counter(edge, step, wrap):
    u, reset = bits(80), (RNG.random(80) < 0.05).astype(float)
    options = {"edge": edge, "step": step, "lower": -2, "upper": 4, "wrap": wrap}
    seen = drive(Counter(1, **options), u=u, reset=reset)
    np.testing.assert_array_equal(seen, count(u, reset, initial=1, **options))


def test_counter_needs_no_reset_and_may_be_set_after_compile():
    d = Diagram("test")
    counter = d.add(Counter(edge="level"), name="c")
    d.connect(d.input("u", kind="boolean", default=1.0), counter["u"])
    with d.compile().instantiate() as instance:
        instance.run(5)
        assert instance.get("c") == 6.0
        instance.set("c.step", -2.0)
        assert instance.get("c") == 3.0
        instance.set("c.lower", 4.4)  # rounded to 4: a count is whole
        assert instance.get("c") == 4.0
    assert d.compile().signals["c.y"].kind == "integer"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=1, max_size=20),
    st.sampled_from(["level", *EDGES]),
)
def test_sample_hold(samples, edge):
    u, sample = np.array([s[0] for s in samples]), np.array([s[1] for s in samples])
    held, expected = 2.5, []
    for k in range(len(u)):
        if sample[k] if edge == "level" else k > 0 and EDGES[edge](sample[k - 1], sample[k]):
            held = u[k]
        expected.append(held)
    np.testing.assert_array_equal(drive(SampleHold(2.5, edge=edge), u=u, sample=sample), expected)


def test_sample_hold_of_a_vector():
    u = RNG.normal(size=(4, 2))
    seen = drive(SampleHold([7.0, 8.0]), u=u, sample=[0, 1, 0, 1])
    np.testing.assert_array_equal(seen, [[7.0, 8.0], u[1], u[1], u[3]])


@pytest.mark.parametrize("priority", ["reset", "set"])
@pytest.mark.parametrize("initial", [False, True])
def test_latch(initial, priority):
    up, down = bits(50, 2), bits(50, 2)
    value, expected = np.full(2, float(initial)), []
    for s, r in zip(up > 0, down > 0, strict=True):
        both = 1.0 if priority == "set" else 0.0
        value = np.where(s & r, both, np.where(s, 1.0, np.where(r, 0.0, value)))
        expected.append(value)
    seen = drive(Latch(initial, priority=priority), set=up, reset=down)
    np.testing.assert_array_equal(seen, expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Compare("=<", 1.0), r"`op` is one of '<', '<=', .* not '=<'"),  # type: ignore[arg-type]
        (lambda: Compare("<", "one"), "`threshold` requires numbers"),  # type: ignore[arg-type]
        (lambda: Compare("<", [[1.0]]), "a number or a vector"),  # type: ignore[list-item]
        (lambda: Logic("nandd"), "Did you mean `nand`"),  # type: ignore[arg-type]
        (lambda: Logic("and", 0), "`n` is a number of inputs, at least 1, got 0"),
        (lambda: Logic("not", 2), "'not' has one input"),
        (lambda: MultiportSwitch(2.5), "`n` is a number of inputs"),  # type: ignore[arg-type]
        (lambda: Edge("level"), "`edge` is one of 'rising', 'falling', 'either'"),  # type: ignore[arg-type]
        (lambda: Counter(0.5), "`initial` of a Counter is a whole number"),  # type: ignore[arg-type]
        (lambda: Counter(step=float("inf")), "`step` of a Counter is a whole number"),  # type: ignore[arg-type]
        (lambda: Counter("one"), "`initial` of a Counter is a whole number"),  # type: ignore[arg-type]
        (lambda: Counter(9, upper=5), "lower ≤ initial ≤ upper"),
        (lambda: Counter(edge="up"), "`edge` is one of"),  # type: ignore[arg-type]
        (lambda: SampleHold(edge="high"), "`edge` is one of"),  # type: ignore[arg-type]
        (lambda: SampleHold("x"), "`initial` requires numbers"),  # type: ignore[arg-type]
        (lambda: Latch(priority="both"), "`priority` is one of 'reset', 'set'"),  # type: ignore[arg-type]
    ],
)
def test_refused(make, message):
    with pytest.raises(DiagramError, match=message):
        make()


def test_real_signal_is_no_condition():
    d = Diagram("test")
    edge = d.add(Edge(), name="edge")
    d.connect(d.input("speed"), edge)
    with pytest.raises(DiagramError, match=r"`edge.u` expects a boolean signal.*Put a Compare"):
        d.compile()
