"""Random diagrams with discontinuities: what holds for every one of them.

Bit for bit: a run in pieces that end at ticks, and a run from a saved state, wherever it was saved.
To the accuracy of the solver: a run in pieces that end within ticks, because each piece ends a step
or is taken from its interpolant.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from biella import Diagram
from biella.scheduler.engine._engine import Instance

from .random_events import KINDS, MEMORY, STEP, build, words

pytestmark = pytest.mark.engine

TICKS = 40
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


def start(d: Diagram) -> Instance:
    instance = Instance(d.compile())
    instance.initialize()
    return instance


@pytest.mark.parametrize(("solver", "options"), SOLVERS)
@EXAMPLES
@given(data=st.data())
def test_saved_states_and_pieces_bit_for_bit(solver, options, data):
    w = data.draw(words(KINDS + MEMORY))
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
