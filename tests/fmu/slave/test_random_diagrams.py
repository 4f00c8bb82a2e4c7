"""Random diagrams as FMUs: at communication points the values of `simulate`, bit for bit.

With located events, state machines, sampled blocks, limits and resets, fixed steps and error
control; communication steps of one tick and of several.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from biella import simulate

from ...scheduler.engine.random_events import KINDS, MEMORY, STEP, Words, build, words

pytestmark = pytest.mark.engine

TICKS = 24
SOLVERS: list[tuple[str, dict[str, Any]]] = [
    ("rk4", {}),
    ("radau5", {}),
    ("dopri5", {"tolerance": 1e-7}),
]


@pytest.mark.parametrize(("solver", "options"), SOLVERS)
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # to shrink an example would export hundreds of FMUs
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(w=words(KINDS + MEMORY), every=st.sampled_from((1, 1, 3)))
def test_fmus_equal_simulate_bit_for_bit(open_shared_fmu, solver, options, w: Words, every):
    d = build(w, solver, **options)
    names = [f"x{k}" for k in range(len(w.starts))]
    names += [f"g{k}_{n}" for k, terms in enumerate(w.terms) for n in range(len(terms))]
    for name in names:
        d.output(name, d[name])
    result = simulate(d, TICKS * STEP, error_estimate=False)
    slave = open_shared_fmu(d).start()
    rows = [slave.get(*names)]
    for tick in range(every, TICKS + 1, every):
        slave.step(tick * STEP - slave.time)
        rows.append(slave.get(*names))
    expected = np.array([result[name][::every] for name in names]).T
    np.testing.assert_array_equal(np.array(rows), expected)
