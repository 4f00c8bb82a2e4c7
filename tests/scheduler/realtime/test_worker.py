"""Workers: slow blocks that compute beside a real-time run."""

import time

import numpy as np
import pytest

from biella import BlockError, Diagram, replay, run_realtime, simulate
from biella.blocks import (
    Asynchronous,
    Constant,
    Port,
    python_block,
)
from biella.scheduler.realtime.log._replay import find_differences

from .slow_planner import Planner, loop

pytestmark = pytest.mark.engine


class Broken(Planner):
    def output(self, t, x, u):
        if t > 0.03:
            raise ValueError("no plan")
        return super().output(t, x, u)


def test_realtime_a_worker_computes_and_the_run_is_replayed():
    result = run_realtime(loop(Planner()), 0.4, overrun="catch_up").wait()
    worker = result.info["realtime"]["workers"]["planner"]
    assert worker["results"] >= 2
    y, since = result["planner.y"][:-1], result["planner.since"][:-1]
    known = y != 0.0
    # Each result is that of the inputs at the time it names.
    ticks = np.rint(since[known] / 1e-3).astype(int)
    assert np.array_equal(y[known], -2.0 * result["ref"][ticks])
    age = result["planner.age"][:-1]
    np.testing.assert_allclose(age, result.t[:-1] - since, atol=1e-12)
    assert np.array_equal(result["old"][:-1], age)
    # The worker has counted its results: one more with each.
    count = result["planner.means"][:, 1]
    assert set(np.diff(count)) <= {0.0, 1.0, 2.0, 3.0} and count[-1] >= 1
    again = replay(result, loop(Planner()))
    assert find_differences(result, again) == [] and again.length == result.length
    # The plan of the log has no Python in it: nobody computes anything again.
    assert find_differences(result, replay(result)) == []


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


def test_it_reads_inputs_of_the_diagram_too():
    d = Diagram("inputs", step=1e-3)

    @python_block(outputs=[Port("y")], inputs=[Port("u"), Port("v", 2)])
    def total(u, v):
        return u + v.sum()

    slow = d.add(Asynchronous(total(), period=2e-3), name="slow")
    d.connect(d.input("u", default=1.0), slow["u"])
    d.connect(d.input("v", width=2, default=2.0), slow["v"])
    with run_realtime(d) as run:
        while run.latest("slow.y") != 5.0:
            time.sleep(1e-3)
        run["v"] = [10.0, 20.0]
        while run.latest("slow.y") != 31.0:
            time.sleep(1e-3)


def test_it_reads_inputs_of_the_diagram_that_come_from_a_device():
    d = Diagram("inputs", step=1e-3)
    d.add(Constant(3.0), name="level")
    slow = d.add(Asynchronous(double(), period=2e-3), name="slow")
    d.connect(d.input("u", default=1.0), slow)
    loopback = {"driver": "loopback", "receive": {"y": {}}, "send": {"u": {"safe": 0.0}}}
    rig = {"devices": {"c": loopback}, "signals": {"level": "c.u", "u": "c.y"}}
    with run_realtime(d, until=5.0, bind=rig) as run:
        while run.running and run.latest("slow.y") != 6.0:
            time.sleep(1e-3)
        assert run.latest("slow.y") == 6.0
        assert run.latest("u") == 3.0


@python_block(inputs=[Port("u")], outputs=[Port("y")])
def double(u):
    return 2.0 * u
