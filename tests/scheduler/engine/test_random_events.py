"""Random diagrams with discontinuities: what holds for every one of them.

Bit for bit: a run in pieces that end at ticks, and a run from a saved state, wherever it was saved.
To the accuracy of the solver: a run in pieces that end within ticks, because each piece ends a step
or is taken from its interpolant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from biella import Diagram
from biella.blocks import (
    Abs,
    Expression,
    Gain,
    Integrator,
    Pulse,
    Relay,
    Saturation,
    Sine,
    Step,
    Sum,
    ZeroOrderHold,
)
from biella.scheduler.engine._engine import Instance

pytestmark = pytest.mark.engine

STEP, TICKS = 0.05, 40
EXAMPLES = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
SOLVERS: list[tuple[str, dict[str, Any]]] = [
    ("rk4", {}),
    ("dopri5", {}),
    ("trapezoidal", {}),
    ("radau5", {}),
    ("dopri5", {"tolerance": 1e-7}),
    ("radau5", {"tolerance": 1e-7}),
]
KINDS = ("relay", "saturation", "abs", "where", "floor", "step", "pulse", "sine", "held")


@dataclass(frozen=True)
class Term:
    """What is added to the derivative of a state: a block that reads a state, or time."""

    kind: str
    state: int
    number: float
    gain: float


@dataclass(frozen=True)
class Words:
    """A diagram in words: for each state its start, its limits or reset, and its terms."""

    starts: tuple[float, ...]
    limited: tuple[bool, ...]
    resets: tuple[bool, ...]
    terms: tuple[tuple[Term, ...], ...]


@st.composite
def words(draw: st.DrawFn) -> Words:
    n = draw(st.integers(1, 3))
    number = st.integers(1, 97).map(lambda k: k / 100)
    sign = st.sampled_from((-1.0, 1.0))
    term = st.builds(
        lambda kind, state, value, gain, s: Term(kind, state, value, s * gain),
        st.sampled_from(KINDS),
        st.integers(0, n - 1),
        number,
        number,
        sign,
    )
    flags = st.tuples(*[st.booleans()] * n)
    return Words(
        starts=draw(st.tuples(*[number] * n)),
        limited=draw(flags),
        resets=draw(flags),
        terms=draw(st.tuples(*[st.lists(term, min_size=1, max_size=3).map(tuple)] * n)),
    )


def block_of(term: Term) -> tuple[Any, bool]:
    """The block, and whether it reads a state."""
    c = term.number
    blocks = {
        "relay": (Relay(on=c, off=-c, high=-1.0, low=1.0), True),
        "saturation": (Saturation(-c, c), True),
        "abs": (Abs(), True),
        "where": (Expression(f"where(x > {c}, -1, 0.3 - x)"), True),
        "floor": (Expression(f"floor((t + {c}) / 0.37) % 3 - 1"), False),
        "step": (Step(at=c, to=-1.0), False),
        "pulse": (Pulse(period=0.1 + c, duty=0.4, delay=0.013), False),
        "sine": (Sine(frequency=c), False),
        "held": (ZeroOrderHold(), True),
    }
    return blocks[term.kind]


def build(w: Words, solver: str, step: float = STEP, **options: Any) -> Diagram:
    """Every state decays by itself, so that rounding does not grow."""
    d = Diagram("random", step, solver, **options)
    states = []
    for k, start in enumerate(w.starts):
        limits = (-0.8, 1.1) if w.limited[k] else None
        block = Integrator(start, limits=limits, reset="rising" if w.resets[k] else None)
        states.append(d.add(block, f"x{k}"))
    clock = d.add(Sine(frequency=0.83, phase=0.4), "clock")
    for k, x in enumerate(states):
        if w.resets[k]:
            d.connect(clock, x["reset"])
        total = d.add(Sum("+" * (1 + len(w.terms[k]))), f"sum{k}")
        d.connect(d.add(Gain(-0.5), f"decay{k}", u=x), total["u1"])
        for n, term in enumerate(w.terms[k]):
            discontinuous, reads = block_of(term)
            period = 4 * STEP if term.kind == "held" else None
            source = d.add(discontinuous, f"f{k}_{n}", period=period)
            if reads:
                d.connect(states[term.state], source)
            d.connect(d.add(Gain(term.gain), f"g{k}_{n}", u=source), total[f"u{n + 2}"])
        d.connect(total, x["u"] if w.resets[k] else x)
    return d


def start(d: Diagram) -> Instance:
    instance = Instance(d.compile())
    instance.initialize()
    return instance


@pytest.mark.parametrize(("solver", "options"), SOLVERS)
@EXAMPLES
@given(data=st.data())
def test_saved_states_and_pieces_bit_for_bit(solver, options, data):
    w = data.draw(words())
    stop = data.draw(st.integers(1, TICKS - 1))
    offset = data.draw(st.sampled_from((0.0, 0.31, 0.5)))
    d = build(w, solver, **options)
    with start(d) as whole, start(d) as pieces, start(d) as other:
        whole.run(TICKS)
        pieces.run(stop)
        pieces.run(TICKS - stop)
        assert pieces.save() == whole.save()
        # From a state that was saved at a tick or within one, in an engine that has been elsewhere.
        pieces.reset()
        pieces.initialize()
        pieces.run_to((stop + offset) * STEP)
        state = pieces.save()
        pieces.run_to(TICKS * STEP)
        other.run(data.draw(st.integers(0, 5)))
        other.restore(state)
        other.run_to(TICKS * STEP)
        assert other.save() == pieces.save()


@pytest.mark.parametrize(("solver", "options"), SOLVERS)
@EXAMPLES
@given(data=st.data())
def test_stops_within_ticks_change_little(solver, options, data):
    """A stop splits a step of a fixed length: both have the error of the solver.

    Tolerance: solutions are about 1, the step is 0.05 s and slopes change by about 1 / s², so that
    a step of order 4 errs by less than 1e-6, of order 2 by 1e-4; events pass such errors on to the
    states with a factor of the order of 1. Chattering is resolved to the tick only.
    """
    w = data.draw(words())
    stops = data.draw(st.lists(st.floats(0.01, TICKS - 0.01), max_size=4).map(sorted))
    d = build(w, solver, **options)
    with start(d) as whole, start(d) as pieces:
        whole.run(TICKS)
        for stop in stops:
            pieces.run_to(stop * STEP)
        pieces.run_to(TICKS * STEP)
        assume(whole.event_counts[1] == 0 == pieces.event_counts[1])
        tolerance = 2e-3 if solver == "trapezoidal" else 1e-4
        assert pieces.states == pytest.approx(whole.states, abs=tolerance)
