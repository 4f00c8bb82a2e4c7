"""SecondOrderIntegrator: what it declares, limits, rest, resets. Times: test_event_times.py."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram, linearize, simulate
from biella.blocks import Constant, Expression, SecondOrderIntegrator, Sine, Step
from biella.errors import DiagramError
from biella.scheduler.engine._engine import Instance

pytestmark = pytest.mark.engine


def run(block, u="1", until=1.0, **options):
    d = Diagram("test", **{"step": 1e-2, **options})
    d.add(block, "x", u=d.add(Expression(u), "u"))
    return simulate(d, until)


@pytest.mark.parametrize("events", ["locate", "tick"])
def test_without_limits_it_is_a_double_integral(events):
    result = run(SecondOrderIntegrator([1.0, 2.0], -0.5), ["6*t", "2"], events=events)
    t = result.t
    assert result["x.position"] == pytest.approx(
        np.stack([1 - 0.5 * t + t**3, 2 - 0.5 * t + t**2], axis=1), abs=1e-13
    )
    assert result["x.velocity"][:, 0] == pytest.approx(-0.5 + 3 * t**2, abs=1e-13)
    assert "x.at_limit" not in result.units


def test_units_follow_from_the_acceleration():
    d = Diagram("units", step=1e-2)
    d.add(SecondOrderIntegrator(limits=(0.0, 1.0)), "x", u=d.add(Constant(1.0, unit="m/s2")))
    result = simulate(d, 0.1)
    assert (str(result.units["x.position"]), str(result.units["x.velocity"])) == ("m", "m/s")


@pytest.mark.filterwarnings("ignore:the estimated error")  # steps are coarse on purpose
@pytest.mark.parametrize("solver", ["euler", "rk4", "dopri5", "trapezoidal", "radau5"])
@pytest.mark.parametrize("events", ["locate", "tick"])
def test_outputs_never_exceed_limits(solver, events):
    block = SecondOrderIntegrator(
        [0.1, 0.5, 0.9], limits=(0.0, [1.0, 0.6, 1.0]), velocity_limits=(-1.0, 2.0), restitution=0.6
    )
    result = run(
        block, ["9*sin(7*t)", "20*cos(11*t)", "-5"], until=4.0, solver=solver, events=events
    )
    x, v = result["x.position"], result["x.velocity"]
    assert x.min() >= 0.0
    assert np.all(x.max(axis=0) <= [1.0, 0.6, 1.0])
    assert v.min() >= -1.0
    assert v.max() <= 2.0
    if solver == "euler":  # whose flights are never shorter than a step: it does not come to rest
        return
    assert x[-1, 2] == v[-1, 2] == 0.0
    assert result["x.at_limit"][-1, 2] == -1


def test_an_infinite_limit_does_not_limit():
    result = run(SecondOrderIntegrator(limits=(-np.inf, np.inf), velocity_limits=(-np.inf, 0.5)))
    assert result["x.velocity"] == pytest.approx(np.minimum(result.t, 0.5), abs=1e-13)
    assert not np.any(result["x.at_limit"])


def test_it_starts_at_a_limit():
    """Pressed against it, it rests; moving into it, it rebounds at once; pulled away, it leaves."""
    pressed = run(SecondOrderIntegrator(1.0, limits=(0.0, 1.0)))
    assert np.all(pressed["x.position"] == 1.0)
    assert np.all(pressed["x.at_limit"] == 1)
    moving = run(SecondOrderIntegrator(1.0, 2.0, limits=(0.0, 1.0), restitution=0.5), "0")
    assert moving["x.velocity"][0] == -1.0
    assert moving["x.position"][-1] == pytest.approx(0.0, abs=1e-12)
    pulled = run(SecondOrderIntegrator(1.0, limits=(-9.0, 1.0)), "-1")
    assert pulled["x.position"] == pytest.approx(1 - pulled.t**2 / 2, abs=1e-13)


def test_an_elastic_impact_keeps_the_speed():
    result = run(SecondOrderIntegrator(0.0, 1.0, limits=(-0.123, 0.456), restitution=1.0), "0", 9.0)
    assert np.abs(result["x.velocity"]) == pytest.approx(np.ones_like(result.t), abs=1e-12)


@pytest.mark.parametrize("events", ["locate", "tick"])
@pytest.mark.parametrize(
    ("reset", "first"), [("rising", 0.5), ("falling", np.inf), ("either", 0.5), ("level", 0.5)]
)
def test_resets(events, reset, first):
    """u = 2: x = 0.1 + t² until 0.5 s, where x = 0.1, v = 0 again; a level holds that."""
    d = Diagram("reset", step=1e-2, events=events)
    block = SecondOrderIntegrator(0.1, limits=(-1.0, 9.0), reset=reset)
    d.add(block, "x", u=d.add(Constant(2.0)), reset=d.add(Step(at=0.5, before=-1.0)))
    result = simulate(d, 1.0)
    since = np.where(result.t < first - 1e-9, result.t, result.t - first)
    if reset == "level":
        since = np.where(result.t < first - 1e-9, result.t, 0.0)
    assert result["x.position"] == pytest.approx(0.1 + since**2, abs=1e-12)
    assert result["x.velocity"] == pytest.approx(2 * since, abs=1e-12)


@pytest.mark.filterwarnings("ignore:the estimated error")  # steps are coarse on purpose
def test_a_reset_off_the_grid_and_out_of_rest():
    d = Diagram("reset", step=1e-2)
    block = SecondOrderIntegrator(1.0, limits=(0.0, 2.0), reset="rising")
    d.add(block, "x", u=d.add(Constant(-2.0)), reset=d.add(Step(at=1.2345, before=-1.0)))
    result = simulate(d, 3.0)
    since = np.where(result.t < 1.2345, result.t, result.t - 1.2345)
    assert result["x.position"] == pytest.approx(np.maximum(1 - since**2, 0.0), abs=1e-12)


def test_parameters_and_the_state_of_a_run():
    d = Diagram("state", step=1e-2)
    d.add(
        SecondOrderIntegrator(1.0, limits=(0.0, 2.0), restitution=0.5), "x", u=d.add(Constant(-2))
    )
    low = simulate(d, 2.0, parameters={"x.lower": 0.5, "x.restitution": 0.0})
    assert low["x.position"][-1] == 0.5
    plan = d.compile()
    with Instance(plan) as one, Instance(plan) as two:
        one.initialize()
        two.initialize()
        for ticks in (99, 1, 1, 150, 200):  # before, at and after the impact at 1 s, and at rest
            one.run(ticks)
            two.restore(one.save())
            one.run(7)
            two.run(7)
            assert one.save() == two.save()


def test_linearize_a_spring_at_its_stop():
    """In flight x'' = -9 x + u; at rest nothing moves."""

    def system(start):
        d = Diagram("spring", step=1e-3)
        x = SecondOrderIntegrator(start, limits=(-1.0, 1.0))
        f = d.add(Expression("-9*s + u"), "f", u=d.input("u", default=12.0))
        d.connect(f, d.add(x, "x"))
        d.connect(x["position"], f["s"])
        d.output("y", x["position"])
        return linearize(d)

    flying, resting = system(0.2).A, system(1.0).A
    assert flying == pytest.approx(np.array([[0.0, 1.0], [-9.0, 0.0]]), abs=1e-6)
    assert resting == pytest.approx(np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reset": "up"}, "reset is one of"),
        ({"position": [[1.0]]}, "`position` is a number or a vector"),
        ({"position": [1.0, 2.0], "velocity": [1.0, 2.0, 3.0]}, "`position` has 2 values"),
        ({"limits": (1.0, 1.0)}, "leave no room"),
        ({"limits": 3.0}, "pair"),
        ({"velocity_limits": (1.0, 0.0)}, "lower <= upper"),
        ({"restitution": 1.5}, "from 0 to 1"),
        ({"restitution": np.nan}, "restitution"),
        ({"rest_time": -1.0}, "0 or positive seconds"),
        ({"rest_time": np.inf}, "0 or positive seconds"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(DiagramError, match=message):
        SecondOrderIntegrator(**options)


@pytest.mark.parametrize("events", ["locate", "tick"])
def test_equal_limits_fix_the_velocity(events: str) -> None:
    d = Diagram("fixed", step=0.1, events=events)
    block = SecondOrderIntegrator(velocity=0.5, velocity_limits=(0.5, 0.5))
    d.add(block, "x", u=d.add(Sine(frequency=0.7, phase=3.0), "u"))
    result = simulate(d, 2.0)
    assert result["x.position"] == pytest.approx(0.5 * result.t, abs=1e-14)
    assert len(result.events) == 0
