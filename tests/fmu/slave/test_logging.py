"""What an FMU tells the tool: by category, and only what is switched on."""

from __future__ import annotations

from typing import Any

import pytest
from fmpy.fmi2 import fmi2CallbackFunctions, fmi2CallbackLoggerTYPE

from biella import Diagram
from biella.blocks import Compare, Expression, Gain, Integrator, Sign, Stop
from biella.fmu.exporter._description import LOG_CATEGORIES

pytestmark = pytest.mark.engine

EVENTS, DISCARD, ERROR = "logEvents", "logStatusDiscard", "logStatusError"
WARNING = "logStatusWarning"
FAILURES, ALL = {DISCARD, ERROR}, {EVENTS, DISCARD, ERROR}


def diagram() -> Diagram:
    d = Diagram("talking", step=0.01)
    u = d.input("u")
    k, over = d.add(Gain(1.0), name="k"), d.add(Compare(">", 5.0), name="over")
    d.connect(u, k, over)
    d.connect(over, d.add(Stop("enough"), name="stop"))
    d.output("y", k)
    return d


class Listener:
    """A slave, and the categories of what it says."""

    def __init__(self, open_fmu: Any, logging: bool, of: Diagram | None = None) -> None:
        self.heard: list[tuple[int, str]] = []

        def log(environment: Any, name: bytes, status: int, category: bytes, *_: Any) -> None:
            assert name == b"one"
            self.heard.append((status, category.decode()))

        self.callbacks = fmi2CallbackFunctions()
        self.callbacks.logger = fmi2CallbackLoggerTYPE(log)
        self.slave = open_fmu(of or diagram(), callbacks=self.callbacks, loggingOn=logging)

    def provoke(self) -> set[str]:
        """Make one message of each category; return those that were told."""
        slave = self.slave
        self.heard.clear()
        slave.fmu.reset()
        slave.start()  # an event
        with pytest.raises(Exception, match="status 2"):
            slave.set("u", float("nan"))
        with pytest.raises(Exception, match="status 3"):
            slave.set("y", 1.0)
        for status, category in self.heard:
            assert {0: EVENTS, 2: DISCARD, 3: ERROR}[status] == category
        assert len(self.heard) == len(set(self.heard))
        return {category for _, category in self.heard}


@pytest.mark.parametrize("logging", [False, True])
def test_instances_begin_with_failures_or_everything(open_fmu, logging):
    assert Listener(open_fmu, logging).provoke() == (ALL if logging else FAILURES)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(
    ("on", "categories", "told"),
    [
        (True, [], ALL),
        (False, [], FAILURES),
        (True, ["logAll"], ALL),
        (True, [EVENTS], {EVENTS}),
        (True, [DISCARD], {DISCARD}),
        (True, [ERROR], {ERROR}),
        (True, [ERROR, EVENTS], {ERROR, EVENTS}),
        (False, [ERROR, EVENTS], FAILURES),
    ],
)
def test_categories_are_a_filter(open_fmu, first, on, categories, told):
    listener = Listener(open_fmu, first)
    listener.slave.fmu.setDebugLogging(on, categories)
    assert listener.provoke() == told


def test_an_unknown_category_is_an_error_and_changes_nothing(open_fmu):
    listener = Listener(open_fmu, False)
    with pytest.raises(Exception, match="status 3"):
        listener.slave.fmu.setDebugLogging(True, [EVENTS, "logNothing"])
    assert listener.provoke() == FAILURES


def test_every_category_is_in_the_description(open_fmu):
    listener = Listener(open_fmu, True)
    assert {*ALL, WARNING, "logAll"} == set(LOG_CATEGORIES)
    assert {c.name for c in listener.slave.description.logCategories} == set(LOG_CATEGORIES)


@pytest.mark.parametrize(("formula", "warned"), [("u", True), ("u*u - 1", True), ("cos(u)", False)])
def test_a_loop_without_a_unique_solution_is_a_warning(open_fmu, formula, warned):
    d = Diagram("ring", step=0.01)
    d.connect(d.add(Expression(formula), name="f"), d.add(Gain(1.0), name="g"))
    d.connect("g", "f")
    d.output("y", "f")
    listener = Listener(open_fmu, True, d)
    listener.slave.start()
    assert [item for item in listener.heard if item[0] == 1] == [(1, WARNING)] * warned


def test_a_fallback_of_the_solver_is_one_warning_at_the_end(open_fmu):
    """x' = -sign(x) has more events in a tick than max_events; steps are repeated on the way."""
    d = Diagram("sliding", step=0.01, max_events=4)
    x = d.add(Integrator(0.015), name="x")
    d.chain(x, d.add(Sign(), name="sign"), d.add(Gain(-1.0), name="back"), x)
    d.output("y", x)
    listener = Listener(open_fmu, False, d)
    slave = listener.slave
    slave.start()
    slave.step(0.01)
    state = slave.fmu.getFMUState()
    for _ in range(2):
        slave.fmu.setFMUState(state)
        for n in range(1, 6):
            slave.fmu.doStep(0.01 * n, 0.01)
    assert listener.heard == []
    slave.fmu.terminate()
    assert listener.heard == [(1, WARNING)]
    slave.fmu.reset()
    assert listener.heard == [(1, WARNING)]


def test_a_run_that_ends_itself_is_reported_as_a_discarded_step(open_fmu):
    listener = Listener(open_fmu, False)
    listener.slave.start(u=9.0)
    with pytest.raises(Exception, match="status 2"):
        listener.slave.step(0.01)
    assert listener.heard == [(2, DISCARD)]
    assert listener.slave.ended == (True, 0.0)
