"""Slow blocks: offline one period late, real-time by a worker that no tick waits for."""

import time

import numpy as np
import pytest

from biella import BlockError, Diagram, DiagramError, replay, run_realtime, simulate
from biella.blocks import (
    Asynchronous,
    Compare,
    Constant,
    Gain,
    Integrator,
    Port,
    PythonBlock,
    Sine,
    Stop,
    Sum,
    Time,
    UnitDelay,
    python_block,
)
from biella.fmu.importer.fmu import Fmu
from biella.scheduler.realtime.replay import find_differences

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


def test_offline_a_result_comes_one_period_after_its_inputs():
    result = simulate(loop(Planner()), 0.5)
    d = Diagram("by hand", step=1e-3)
    reference = d.add(Sine(frequency=3.0), name="ref")
    planner = d.add(Planner(period=PERIOD), name="planner")
    d.connect(reference, planner)
    for name, width in (("y", 1), ("means", 2)):
        d.connect(planner[name], d.add(UnitDelay([0.0] * width), name=name, period=PERIOD))
    plant = d.add(Integrator(0.0), name="plant")
    d.connect(d["y"], plant)
    expected = simulate(d, 0.5)
    assert np.array_equal(result["planner.y"], expected["y"])
    assert np.array_equal(result["planner.means"], expected["means"])
    assert np.array_equal(result["plant"], expected["plant"])
    assert result["planner.y"].any()
    hits = slice(10, None, 10)
    np.testing.assert_allclose(result["planner.age"][hits], PERIOD, atol=1e-12)
    np.testing.assert_allclose(result["planner.since"][hits], result.t[hits] - PERIOD, atol=1e-12)


def test_a_checkpoint_holds_its_state():
    whole = simulate(loop(Planner()), 0.2)
    first = simulate(loop(Planner()), 0.083)
    rest = simulate(loop(Planner()), 0.2, checkpoint=first.checkpoint)
    assert np.array_equal(rest["planner.means"], whole["planner.means"][83:])


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


def lag(name="lag", stop=None):
    """A lag of 20 ms behind an input, that starts at 3 m."""
    d = Diagram(name, step=1e-3)
    u = d.input("u", unit="m")
    error = d.add(Sum("+-"), name="error")
    state = d.add(Integrator(3.0), name="state")
    d.connect(u, error["u1"])
    d.connect(state, error["u2"], d.add(Gain([[1.0], [2.0]]), name="both"))
    d.connect(error, d.add(Gain(50.0, unit="m/s"), name="rate"))
    d.connect(d["rate"], state)
    if stop is not None:
        d.connect(state, d.add(Compare("<", stop), name="low"))
        d.connect(d["low"], d.add(Stop("it is low"), name="stop"))
    d.output("x", state)
    d.output("both", d["both"])
    return d


def around(model, period=PERIOD):
    """A diagram in which `model` follows a sine, and something else follows it."""
    d = Diagram("around", step=1e-3)
    reference = d.add(Sine(frequency=3.0, unit="m"), name="ref")
    slow = model if period is None else Asynchronous(model, period=period)
    d.add(slow, name="slow")
    d.connect(reference, slow["u"])
    d.connect(slow["x"], d.add(Gain(1.0, unit="m"), name="seen"))
    return d


@pytest.fixture(scope="module")
def fmu(tmp_path_factory):
    return lag().export_fmu(tmp_path_factory.mktemp("fmu") / "lag.fmu")


def test_offline_an_fmu_is_the_same_as_if_it_were_not_slow(fmu):
    """It has no feedthrough, so one that is stepped once a period shows the same, bit for bit."""
    slow = simulate(around(Fmu(fmu)), 0.5)
    assert np.array_equal(
        slow["slow.x"], simulate(around(Fmu(fmu, period=PERIOD), None), 0.5)["slow.x"]
    )
    assert slow["slow.x"][0] == 3.0 and np.array_equal(slow["seen"], slow["slow.x"])


def test_offline_a_diagram_and_its_fmu_give_the_same(fmu):
    inline, exported = (simulate(around(model), 0.3) for model in (lag(), Fmu(fmu)))
    np.testing.assert_allclose(inline["slow.x"], exported["slow.x"], rtol=1e-12)
    np.testing.assert_allclose(inline["slow.both"], np.outer(inline["slow.x"], [1, 2]), rtol=1e-14)
    # One period with the input held is known in closed form.
    held, decay = inline["ref"][:-10:10], np.exp(-PERIOD / 0.02)
    x = inline["slow.x"][::10]
    np.testing.assert_allclose(x[1:], held + (x[:-1] - held) * decay, rtol=1e-6)


@pytest.mark.parametrize("make", [lambda fmu: lag(), Fmu, lambda fmu: Fmu(fmu, isolate=True)])
def test_a_model_keeps_its_own_state_in_checkpoints(fmu, make):
    whole = simulate(around(make(fmu)), 0.1)
    first = simulate(around(make(fmu)), 0.043, keep_state=True)
    rest = simulate(around(make(fmu)), 0.1, checkpoint=first.checkpoint)
    assert np.array_equal(rest["slow.x"], whole["slow.x"][43:])


@pytest.mark.parametrize("make", [lambda fmu: lag(), Fmu, lambda fmu: Fmu(fmu, isolate=True)])
def test_realtime_a_model_takes_every_period_and_is_replayed(fmu, make):
    run = run_realtime(around(make(fmu)), 0.4, overrun="catch_up")
    result = run.wait()
    counts = result.info["realtime"]["workers"]["slow"]
    assert counts["skipped"] == 0 and counts["results"] >= 2
    # Each result is the last one a period further, with the input that it names.
    x, since = result["slow.x"][:-1], result["slow.since"][:-1]
    changes = np.flatnonzero(np.diff(x))
    ticks = np.rint(since[changes + 1] / 1e-3).astype(int)
    decay, expected = np.exp(-PERIOD / 0.02), 3.0
    assert x[0] == expected
    seen = [expected := held + (expected - held) * decay for held in result["ref"][ticks]]
    if len(changes) == counts["results"]:  # unless two came within a tick
        np.testing.assert_allclose(x[changes + 1], seen, rtol=1e-5)
    assert f"Worker `slow`: {counts['results']} results" in str(result.realtime_report())
    assert find_differences(result, replay(result)) == []
    assert find_differences(result, replay(result, around(make(fmu)))) == []


def test_a_model_that_is_slower_than_the_clock_is_said_to_be_behind():
    class Heavy(PythonBlock):
        def __init__(self):
            super().__init__(inputs=["u"], outputs=["y"], period=PERIOD)

        def output(self, t, x, u):
            time.sleep(3 * PERIOD)
            return u

    inside = lag()
    inside.connect(inside["u"], inside.add(Heavy(), name="heavy"))
    result = run_realtime(around(inside), 0.4, overrun="catch_up").wait()
    counts = result.info["realtime"]["workers"]["slow"]
    assert counts["skipped"] == 0 and 2 <= counts["results"] < 20 and counts["behind"] > 100
    assert "ticks behind" in str(result.realtime_report())


def test_a_model_may_end_the_run():
    offline = simulate(around(lag(stop=0.5)), 1.0)
    assert "it is low" in offline.info["stopped"] and offline.t[-1] < 0.2
    realtime = run_realtime(around(lag(stop=0.5)), 10.0).wait()
    assert "it is low" in realtime.info["stopped"] and realtime.t[-1] < 10.0


def test_a_model_that_fails_ends_the_run():
    inside = lag()
    inside.connect(inside["u"], inside.add(Broken(), name="broken"))
    with pytest.raises(BlockError, match=r"`slow` .*`broken` .*no plan"):
        simulate(around(inside), 1.0)
    with pytest.raises(BlockError, match=r"`slow` .*`broken` .*no plan"):
        run_realtime(around(inside), 10.0).wait()


def test_a_model_starts_with_the_diagram_around_it(tmp_path):
    """Its own time is one period ahead of the time of its inputs, wherever all begins."""
    inside = Diagram("clock", step=1e-3)
    inside.connect(inside.input("u", unit="m"), inside.add(Gain(1.0), name="unused"))
    inside.output("x", inside.add(Time(), name="clock"))
    exported = inside.export_fmu(tmp_path / "clock.fmu")
    for model in (inside, Fmu(exported)):
        d = Diagram("late", step=1e-3, start_time=7.0)
        slow = d.add(Asynchronous(model, period=PERIOD), name="slow")
        d.connect(d.add(Sine(unit="m"), name="ref"), slow["u"])
        result = simulate(d, 7.1)
        assert result["slow.x"][0] == 7.0 == result["slow.since"][0]
        hits = slice(10, None, 10)
        np.testing.assert_allclose(result["slow.x"][hits], result.t[hits], atol=1e-9)
        realtime = run_realtime(d, 7.1, overrun="catch_up").wait()
        count = realtime.info["realtime"]["workers"]["slow"]["results"]
        assert (
            realtime["slow.x"][-2] <= 7.0 + count * PERIOD + 1e-9 and realtime["slow.x"][0] == 7.0
        )


def test_a_period_that_does_not_fit_a_model_is_refused():
    with pytest.raises(DiagramError, match=r"0.0025 s is no multiple of the step of .*, 0.001 s"):
        Asynchronous(lag(), period=2.5e-3)


def test_what_cannot_wait_is_refused():
    class Lag(PythonBlock):
        def __init__(self):
            super().__init__(inputs=["u"], outputs=["y"], state=[0.0], feedthrough=False)

        def output(self, t, x, u):
            return x[0]

        def derivative(self, t, x, u):
            return u - x[0]

    class Old(PythonBlock):
        def __init__(self, port):
            super().__init__(inputs=[Port("u")], outputs=[port], period=1.0)

        def output(self, t, x, u):
            return u

    with pytest.raises(DiagramError, match="wants a block or a Diagram, got 3"):
        Asynchronous(3, period=1.0)
    with pytest.raises(DiagramError, match=r"fixed width, unlike `y`.*put .* into a Diagram"):
        Asynchronous(Gain(1.0), period=1.0)
    with pytest.raises(DiagramError, match="has continuous states"):
        Asynchronous(Lag(), period=1.0)
    with pytest.raises(DiagramError, match="has an output `age` of its own"):
        Asynchronous(Old(Port("age")), period=1.0)
    with pytest.raises(DiagramError, match="wants ports of fixed width, unlike `y`"):
        Asynchronous(Old(Port("y", "n")), period=1.0)
