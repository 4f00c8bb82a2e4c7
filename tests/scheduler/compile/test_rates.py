"""Periods in whole ticks, and inherited rates."""

from __future__ import annotations

import pytest

from biella import Diagram, DiagramError
from biella.blocks import (
    Constant,
    Gain,
    Integrator,
    PythonBlock,
    Sum,
    UnitDelay,
)
from biella.scheduler.compile._flatten import flatten
from biella.scheduler.compile._rates import Ticks, resolve_rates

pytestmark = pytest.mark.engine


class Sampled(PythonBlock):
    """A source with a period."""

    def __init__(self, period: float, offset: float = 0.0) -> None:
        super().__init__(outputs=["y"], period=period, offset=offset)

    def output(self, t, x, u):
        return t


def rate_of_sum(*sources) -> Ticks:
    """Return the rate of a Sum, which inherits it, behind some blocks."""
    d = Diagram("rates")
    total = d.add(Sum("+" * len(sources)), name="total")
    for n, block in enumerate(sources):
        d.connect(d.add(block, name=f"s{n}"), total[f"u{n + 1}"])
        if block.inputs:
            d.connect(total, d[f"s{n}"])
    flat = flatten(d)
    problems: list[str] = []
    rates = resolve_rates(flat, 1e-3, problems)
    assert problems == []
    return next(r for r, item in zip(rates, flat.blocks, strict=True) if item.path == "total")


@pytest.mark.parametrize(
    ("sources", "rate"),
    [
        ([Sampled(0.004), Constant(1.0)], Ticks(4)),
        ([Sampled(0.004), Sampled(0.006)], Ticks(2)),
        # Hits at 1, 5, 9 … and at 3, 7, 11 … ms: together at every odd one.
        ([Sampled(0.004, 0.001), Sampled(0.004, 0.003)], Ticks(2, 1)),
        ([Sampled(0.004), Integrator()], Ticks(0)),
        ([Constant(1.0), Constant(2.0)], Ticks(-1)),
    ],
)
def test_a_rate_is_inherited_as_the_slowest_with_all_hits_of_what_feeds_a_block(sources, rate):
    assert rate_of_sum(*sources) == rate


def test_a_period_that_does_not_fit_is_a_problem_and_no_exception():
    d = Diagram("rates")
    d.add(Sampled(0.0015), name="odd")
    problems: list[str] = []
    resolve_rates(flatten(d), 1e-3, problems)
    (problem,) = problems
    assert "`odd`" in problem and "0.0015 s" in problem


@pytest.mark.parametrize(
    ("ticks", "words"),
    [
        (Ticks(0), "continuous"),
        (Ticks(-1), "constant"),
        (Ticks(10), "0.01 s"),
        (Ticks(10, 3), "0.01 s + 0.003 s"),
    ],
)
def test_a_rate_in_words(ticks, words):
    assert ticks.describe(1e-3) == words


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


@pytest.mark.parametrize(
    ("period", "advice"),
    [
        (1 / 3000, r"0\.001 s would fit; so would a step of 1/3000 s\.$"),
        (0.0015, r"0\.001 s or 0\.002 s would fit; so would a step of 0\.0005 s\.$"),
        (0.00314159265, r"0\.003 s or 0\.004 s would fit\.$"),
    ],
)
def test_a_period_that_does_not_fit_is_reported_with_a_step_that_does(period, advice):
    d = Diagram(step=1e-3)
    d.connect(d.add(Constant(1.0)), d.add(UnitDelay(), name="u", period=period))
    with pytest.raises(DiagramError, match=advice):
        d.compile()


def test_the_step_that_is_advised_fits():
    d = Diagram(step=1 / 3000)
    d.connect(d.add(Constant(1.0)), d.add(UnitDelay(), name="u", period=1 / 3000))
    d.connect("u", d.add(UnitDelay(), name="v", period=1e-3))
    d.compile()
