"""Warnings of ticks that the solver finished in another way than asked."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks import Expression, Gain, Integrator, Relay, Sign
from biella.errors import BiellaWarning, BlockError
from biella.scheduler.engine._library import contract

pytestmark = pytest.mark.engine


def sliding(max_events: int = 8, start: float = 0.0123) -> Diagram:
    """x' = -sign(x): slides along 0 from t = `start` on."""
    d = Diagram("sliding", step=1e-3, max_events=max_events)
    x = d.add(Integrator(start), "x")
    d.chain(x, d.add(Sign(), "sign"), d.add(Gain(-1.0), "back"), x)
    d.chain(x, d.add(Relay(10.0, -10.0), "idle"), d.add(Integrator(), "idle state"))
    return d


def decay(rate: float, **options: object) -> Diagram:
    """x' = -rate (x - cos t), x = 1: smooth after a short transient, and stiff."""
    d = Diagram("decay", step=0.1, **options)  # type: ignore[arg-type]
    x = d.add(Integrator(1.0), "x")
    d.connect(d.add(Expression(f"-{rate} * (x - cos(t))"), "f", x=x), x)
    return d


def test_chattering_is_a_warning_that_names_the_block_and_the_time():
    with pytest.warns(BiellaWarning) as caught:
        result = simulate(sliding(), 0.05)
    (text,) = [str(item.message) for item in caught]
    ticks = result.info["solver_counts"]["unlocated"]
    assert 30 <= ticks <= 38  # of the 38 ticks after 0.0123 s
    assert text.startswith(f"sliding: {ticks} ticks had more than max_events = 8 events")
    assert "most of them of `sign`" in text
    assert "hysteresis" in text
    first = float(re.search(r"first at t = ([\d.e-]+) s", text)[1])  # type: ignore[index]
    assert 0.012 <= first <= 0.014
    assert result.events.sources == ["sign"]


@pytest.mark.parametrize("block", [-1.0, -1e3, 1e3, 2e9, 1e300, -1e300, np.nan])
def test_a_block_that_a_saved_state_makes_up_is_not_looked_up(block):
    with sliding().compile().instantiate() as instance:
        instance.counters[contract.BL_COUNT_UNLOCATED] = 1.0
        instance.counters[contract.BL_COUNT_CHATTERING] = block
        (text,) = instance.list_fallbacks({contract.BL_FALLBACK_UNLOCATED: 0.0})
    assert "border of a mode" in text


def test_enough_events_are_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate(sliding(), 0.012)


def test_a_run_that_continues_warns_of_its_own_ticks_only():
    with pytest.warns(BiellaWarning, match="max_events"):
        first = simulate(sliding(), 0.05)
    d = sliding()
    with pytest.warns(BiellaWarning, match="max_events"):
        second = simulate(d, 0.06, checkpoint=first.checkpoint)
    assert second.info["solver_counts"]["unlocated"] <= 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate(d, 0.06, checkpoint=second.checkpoint)  # no tick


def test_a_tick_without_error_control_is_a_warning():
    d = decay(1e4, solver="dopri5", tolerance=1e-6, max_steps=5)
    with pytest.warns(BiellaWarning, match="1 tick needed more than max_steps = 5 .*radau5"):
        simulate(d, 0.1)


def test_values_that_are_not_finite_after_it_are_an_error_that_says_so():
    """A step of 0.1 s multiplies the error by about 1000^5 / 600: it overflows in 30 ticks."""
    with pytest.raises(BlockError) as error:
        simulate(decay(1e4, solver="dopri5", tolerance=1e-6, max_steps=5), 10.0)
    assert re.search(r"Error control was given up at t = 0\.\d+ s", str(error.value))
    assert "solver='radau5'" in str(error.value)


def test_so_is_the_message_of_the_engine_which_an_fmu_logs():
    plan = decay(1e4, solver="dopri5", tolerance=1e-6, max_steps=5).compile()
    with plan.instantiate() as instance:
        with pytest.raises(BlockError):
            instance.run(100)
        text = instance.library.bl_message(instance.handle).decode()
    assert re.search(r"not finite at t = .*; error control was given up at t = 0\.\d+,", text)


def test_stiffness_is_a_warning_that_says_when():
    with pytest.warns(BiellaWarning, match=r"stiff, as dopri5 found first at t = .*radau5"):
        result = simulate(decay(2e4, solver="dopri5", tolerance=1e-6), 2.0)
    assert result.info["solver_counts"]["steps"] > 1000
    assert result["x"][-1] == pytest.approx(np.cos(2.0), abs=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = simulate(decay(2e4, solver="radau5", tolerance=1e-6), 2.0)
    assert again.info["solver_counts"]["steps"] < 100


def test_counts_are_signals():
    with pytest.warns(BiellaWarning):
        result = simulate(sliding(), 0.05, record=["x", "solver.*"])
    assert result.paths == ["x.y", "solver.events", "solver.unlocated", "solver.uncontrolled"]
    assert np.all(np.diff(result["solver.unlocated"]) >= 0)
    assert result["solver.unlocated"][-1] == result.info["solver_counts"]["unlocated"]
    assert result["solver.events"][-1] == result.events.total
    assert result["solver.events"][12] == 0  # the last tick before 0.0123 s


def test_counts_are_recorded_only_where_they_are_named():
    result = simulate(sliding(), 0.01)
    assert not any(path.startswith("solver") for path in result)
    steps = simulate(decay(1.0, solver="radau5", tolerance=1e-6), 1.0, record=["solver.steps"])
    assert steps["solver.steps"][-1] > 2
