"""What a real-time run is set up with: pipes, first values, deadlines."""

from typing import Any

import numpy as np
import pytest

from biella import BiellaError, Diagram, run_realtime
from biella.blocks import (
    Constant,
)
from biella.scheduler.engine._engine import Instance
from biella.scheduler.realtime._live_setup import make_pace, set_first_values
from biella.scheduler.realtime.loop._pace import CLOCK_FREE, CLOCK_WALL

from .live_runs import wait_until

pytestmark = pytest.mark.engine


def test_a_vector_may_be_longer_than_the_pipe_of_changes_usually_is():
    d = Diagram("long", step=1e-3)
    d.add(Constant(np.zeros(5000)), name="c")
    with run_realtime(d, until=5.0, record=[]) as run:
        run["c.value"] = np.ones(5000)
        wait_until(lambda: not run.running or np.asarray(run.latest("c"))[-1] == 1.0)
        assert np.asarray(run.latest("c"))[-1] == 1.0


OPTIONS: dict[str, Any] = {
    "clock": "wall", "overrun": "skip", "factor": 1.0, "warmup_ticks": 3, "every": 1,
    "max_overruns": None, "max_consecutive_overruns": None, "log_age": 1.0,
    "on_log_failure": "continue",
}  # fmt: skip


def constant() -> Diagram:
    d = Diagram("c", step=1e-3)
    d.add(Constant(1.0), name="c")
    return d


def test_the_pace_has_the_options_of_the_run():
    plan = constant().compile()
    pace = make_pace(plan, {**OPTIONS, "factor": 2.0}, {}, 5e-5)
    assert (pace.factor, pace.spin, pace.warmup_ticks) == (2.0, 50_000, 3)
    assert (pace.max_overruns, pace.max_consecutive_overruns) == (-1, -1)
    assert pace.clock == CLOCK_WALL
    assert make_pace(plan, {**OPTIONS, "clock": "free"}, {}, 0.0).clock == CLOCK_FREE


def test_stopping_at_an_overrun_means_the_first_one():
    options = {**OPTIONS, "overrun": "stop"}
    assert make_pace(constant().compile(), options, {}, 0.0).max_overruns == 0
    assert options["max_overruns"] == 0, "the report shows the limit that was used"


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"clock": "walk"}, r"clock must be `wall`, `free` or `device:NAME`, got 'walk'"),
        ({"clock": "device:rig"}, r"there is no device `rig` to use as the clock"),
        ({"overrun": "stpo"}, r"unknown overrun policy 'stpo'.*stop"),
        ({"factor": 0.0}, r"factor must be positive, got 0"),
        ({"warmup_ticks": -1}, r"warmup_ticks must be 0 or more"),
        ({"every": 0}, r"every must be at least 1"),
    ],
)
def test_options_that_make_no_pace(changed, text):
    with pytest.raises(BiellaError, match=text):
        make_pace(constant().compile(), OPTIONS | changed, {}, 0.0)


@pytest.mark.parametrize("spin", [-1.0, float("inf"), float("nan")])
def test_a_spin_that_is_no_time(spin):
    with pytest.raises(BiellaError, match="spin must be a time in s"):
        make_pace(constant().compile(), dict(OPTIONS), {}, spin)


def test_first_values_that_differ_from_the_plan_begin_the_input_log():
    model = constant().compile()
    pace = make_pace(model, dict(OPTIONS), {}, 0.0)
    with Instance(model) as instance:
        entries = set_first_values(instance, pace, {"c.value": 4.0}, None)
        assert entries["slot"].tolist() == [model.parameters["c.value"].slot]
        assert entries["value"].tolist() == [4.0]
        assert entries["tick"].tolist() == [-1]
        # Played back, it gives the same value without the parameter.
        instance.reset()
        again = set_first_values(instance, pace, {}, entries)
        assert again["value"].tolist() == [4.0]
