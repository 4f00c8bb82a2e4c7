"""Workers of asynchronous blocks in real-time runs."""

import time

import pytest

from biella import BlockError, Diagram, run_realtime, simulate
from biella.blocks import (
    Asynchronous,
    Gain,
    Integrator,
    Port,
    PythonBlock,
    Sine,
)

pytestmark = pytest.mark.engine


PERIOD = 1e-2


class Planner(PythonBlock):
    """Gives a gain of its input and the mean of all inputs so far, and takes its time."""

    def __init__(self, seconds=0.0, **options):
        super().__init__(
            inputs=[Port("u")],
            outputs=[Port("y"), Port("means", 2)],
            state=[0.0, 0.0],
            **options,
        )
        self.seconds = seconds

    def output(self, t, x, u):
        time.sleep(self.seconds)
        if self.seconds < 0.0 and t > 0.03:
            raise ValueError("no plan")
        return -2.0 * u, [x[0], x[1]]

    def update(self, t, x, u):
        n = x[1] + 1.0
        return [x[0] + (u - x[0]) / n, n]


class Broken(Planner):
    def output(self, t, x, u):
        if t > 0.03:
            raise ValueError("no plan")
        return super().output(t, x, u)


def loop(planner):
    d = Diagram("slow", step=1e-3)
    reference = d.add(Sine(frequency=3.0), name="ref")
    plan = d.add(Asynchronous(planner, period=PERIOD), name="planner")
    plant = d.add(Integrator(0.0), name="plant")
    old = d.add(Gain(1.0), name="old")
    d.connect(reference, plan)
    d.connect(plan["y"], plant)
    d.connect(plan["age"], old)
    return d


def test_no_tick_waits_for_a_slow_worker():
    result = run_realtime(loop(Planner(seconds=0.05)), 0.4, overrun="catch_up").wait()
    worker = result.info["realtime"]["workers"]["planner"]
    assert result.info["ticks"] == 400
    assert 1 <= worker["results"] <= 9 and worker["skipped"] >= worker["results"]
    assert result["planner.age"].max() >= 0.05


def test_a_worker_that_fails_ends_the_run():
    with pytest.raises(BlockError, match=r"`planner` raised ValueError in its worker .*: no plan"):
        run_realtime(loop(Broken()), 10.0).wait()
    with (
        pytest.raises(BlockError, match="`planner`") as caught,
        run_realtime(loop(Broken())) as run,
    ):
        run.wait()
    assert caught.value.path == "planner" and isinstance(caught.value.__cause__, ValueError)
    assert "no plan" in run.result.info["stopped"]
    with pytest.raises(BlockError, match=r"`planner` .*raised ValueError"):
        simulate(loop(Broken()), 0.1)
