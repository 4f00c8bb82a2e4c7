"""Sinks: they take anything, and end a run before anything of that tick is committed."""

from __future__ import annotations

import pytest

from biella import BlockError, Diagram, DiagramError, simulate
from biella.blocks import Constant, Integrator, UnitDelay
from biella.blocks.basic.math._expression import Expression
from biella.blocks.basic.routing._logic import Compare
from biella.blocks.basic.routing._sinks import Assertion, Record, Scope, Stop, Terminator

pytestmark = pytest.mark.engine


def timer(sink, limit=0.35, op=">", period=None):
    """Return a diagram with a counter of ticks of step 0.1 s; `sink` sees t > limit."""
    d = Diagram("test", step=0.1)
    now = d.add(Expression("t"), name="now")
    compare = d.add(Compare(op, limit), name="compare")
    d.connect(now, compare)
    d.add(sink, name="sink", inputs=compare, period=period)
    count = d.add(UnitDelay(0.0), name="count")
    more = d.add(Expression("count + 1"), name="more")
    d.connect(count, more)
    d.connect(more, count)
    x = d.add(Integrator(0.0), name="x")
    d.connect(more, x)
    return d


def test_stop_ends_the_run_without_an_error():
    result = simulate(timer(Stop("enough")), until=10.0)
    assert result.t[-1] == pytest.approx(0.4)
    assert result.info["stopped"].startswith("by `sink` at t = 0.4 s")


def test_stop_leaves_its_tick_uncommitted():
    with timer(Stop()).compile().instantiate() as instance:
        done, stopped = instance.run(100)
        assert (done, stopped, instance.tick) == (4, True, 4)
        assert instance.get("count") == 4.0
        before = instance.save()
        assert instance.run(100) == (0, True)
        assert instance.save() == before


def test_assertion_stops_with_its_reason():
    d = timer(Assertion("too late."), op="<=")
    with pytest.raises(
        BlockError, match=r"`sink` \(Assertion\) stopped the run at t = 0.4 s.*too late"
    ) as caught:
        simulate(d, until=10.0)
    assert caught.value.tick == 4
    assert caught.value.path == "sink"
    assert caught.value.result is not None
    assert caught.value.result.t[-1] == pytest.approx(0.4)


def test_assertion_says_which_element():
    d = Diagram("vector", step=0.1)
    on = d.add(Compare(">", 0.5))
    d.connect(d.add(Constant([1.0, 0.0, 1.0])), on)
    d.connect(on, d.add(Assertion("all on"), name="sink"))
    with pytest.raises(BlockError, match=r": all on \(element 2 of 3\)$"):
        simulate(d, until=1.0)


def test_assertion_leaves_its_tick_uncommitted():
    with timer(Assertion("no."), op="<=").compile().instantiate() as instance:
        with pytest.raises(BlockError):
            instance.run(100)
        assert instance.get("count") == 4.0


def test_assertion_with_a_period_looks_at_its_samples():
    d = timer(Assertion("no."), op="<=", period=0.5)
    with pytest.raises(BlockError) as caught:
        simulate(d, until=10.0)
    assert caught.value.tick == 5


@pytest.mark.parametrize(("sink", "fails"), [(Assertion("no."), (0, 1)), (Stop(), (1, 1))])
def test_verdict_on_a_vector(sink, fails):
    """All elements must hold for an Assertion; any of them ends the run for a Stop."""
    d = Diagram("test")
    d.connect(d.input("u", width=2, kind="boolean"), d.add(sink, name="sink"))
    with d.compile().instantiate() as instance:
        for value in ((0, 0), (0, 1), (1, 0), (1, 1)):
            instance.set("u", value)
            good = all(value) if isinstance(sink, Assertion) else not any(value)
            try:
                done, stopped = instance.run(1)
            except BlockError:
                done, stopped = 0, True
            assert (done, stopped) == ((1, False) if good else (0, True))


def test_constant_condition_is_seen():
    """A constant is computed once, but judged at every tick."""
    d = Diagram("test")
    d.connect(
        d.add(Expression("0", kind="boolean"), name="c"), d.add(Assertion("never."), name="a")
    )
    with pytest.raises(BlockError, match="never"):
        simulate(d, until=1.0)


@pytest.mark.parametrize("sink", [Scope(2), Record(2)])
def test_scope_and_record_take_anything(sink):
    d = Diagram("test")
    d.add(sink, name="sink")
    d.connect(d.input("a", width=3, unit="m"), sink["u1"])
    d.connect(d.input("b", kind="boolean"), sink["u2"])
    plan = d.compile()
    with plan.instantiate() as instance:
        assert instance.run(10) == (10, False)
    assert [(port.width, port.unit, port.kind) for port in plan.blocks[0].inputs] == [
        (3, "m", "real"),
        (1, None, "boolean"),
    ]


def test_terminator_takes_anything():
    d = Diagram("test")
    d.connect(d.input("a", width=3, unit="m", kind="integer"), d.add(Terminator(), name="end"))
    with d.compile().instantiate() as instance:
        assert instance.run(10) == (10, False)


def test_scope_keeps_title_and_labels():
    scope = Scope(2, title="speeds", labels=["reference", "measured"])
    assert (scope.title, scope.labels) == ("speeds", ("reference", "measured"))
    assert Scope().labels is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Scope(0), "`n` is a number of signals, at least 1, got 0"),
        (lambda: Record(True), "`n` is a number of signals"),
        (lambda: Scope(2, labels=["a"]), "needs 2 labels"),
        (lambda: Scope(2, labels="ab"), "needs 2 labels"),
    ],
)
def test_refused(make, message):
    with pytest.raises(DiagramError, match=message):
        make()
