"""Asynchronous models: FMUs and diagrams, each in an engine of its own."""

import time

import numpy as np
import pytest

from biella import BlockError, Diagram, DiagramError, replay, run_realtime, simulate
from biella.blocks import (
    Asynchronous,
    Compare,
    Gain,
    Integrator,
    PythonBlock,
    Sine,
    Stop,
    Sum,
    Time,
)
from biella.fmu.importer._fmu import Fmu
from biella.scheduler.realtime.log._replay import find_differences

pytestmark = pytest.mark.engine


PERIOD = 1e-2


class Broken(PythonBlock):
    """Gives its input, and fails after 30 ms."""

    def __init__(self):
        super().__init__(inputs=["u"], outputs=["y"])

    def output(self, t, x, u):
        if t > 0.03:
            raise ValueError("no plan")
        return u


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
        # Of values of about 1, which pass through 0: where depends on when results arrive.
        np.testing.assert_allclose(x[changes + 1], seen, rtol=1e-5, atol=1e-6)
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
    with pytest.raises(
        DiagramError, match=r"0.0025 s is not an integer multiple of the step of .*, 0.001 s"
    ):
        Asynchronous(lag(), period=2.5e-3)
