"""Communication steps of any size: what is discrete stays on the grid, the rest goes along."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from biella import Diagram, Subsystem, simulate
from biella.blocks import (
    Compare,
    Counter,
    Delay,
    Derivative,
    Expression,
    Gain,
    Integrator,
    Noise,
    Pendulum,
    Playback,
    RateLimiter,
    Sine,
    Stop,
    Sum,
    Time,
    TransportDelay,
    UnitDelay,
    ZeroOrderHold,
)
from biella.blocks.multibody import Input, Joint, System
from biella.blocks.multibody.mechanisms import slider_crank
from biella.scheduler.compile.diagram._solver_options import SOLVERS

pytestmark = pytest.mark.engine

H = 0.01
ORDERS = {
    "euler": 1, "heun": 2, "rk3": 3, "rk4": 4, "dopri5": 5, "backward_euler": 1, "trapezoidal": 2,
    "radau5": 5,
}  # fmt: skip


def pendulum(solver: str = "rk4", step: float = H) -> Diagram:
    """Smooth everywhere, with an output of the states and one of time."""
    d = Diagram("pendulum", step=step, solver=solver)
    plant = d.add(Pendulum(angle=1.0, damping=0.2), name="plant")
    push = d.add(Sine(amplitude=2.0, frequency=0.7), name="push")
    d.connect(push, plant)
    d.output("angle", plant["angle"])
    d.output("push", push)
    return d


def irregular(seed: int, end: float, typical: float) -> list[float]:
    """Steps of random size that add up to `end`."""
    points = np.sort(np.random.default_rng(seed).uniform(0.0, end, round(end / typical)))
    return list(np.diff([0.0, *points, end]))


def test_every_solver_is_listed_here():
    assert set(ORDERS) == set(SOLVERS)


PATTERN = (0.3, 0.5, 1.45, 0.05, 0.7, 2.0)
"""Communication steps in base steps: five of these, at times on the grid, mostly not."""


def run_pattern(slave, step: float, ticks: int, name: str) -> tuple[list[float], list[float]]:
    """Repeat the pattern; return all communication points, and the values there."""
    times, values = [], []
    for _ in range(ticks // 5):
        for part in PATTERN:
            slave.step(part * step)
            times.append(slave.time)
            values.append(slave.get(name)[0])
    return times, values


@pytest.mark.filterwarnings("ignore:the estimated error")  # of coarse steps, and real
@pytest.mark.parametrize("solver", SOLVERS)
def test_irregular_steps_converge_with_the_order_of_the_solver(open_fmu, solver):
    """The largest error at any communication point, against scipy's DOP853, falls as h^p."""

    def slope(t, x):
        torque = 2 * np.sin(2 * np.pi * 0.7 * t)
        return x[1], torque - 9.81 * np.sin(x[0]) - 0.2 * x[1]

    exact = solve_ivp(
        slope, (0, 2), (1.0, 0.0), method="DOP853", rtol=1e-13, atol=1e-14, dense_output=True
    ).sol
    errors = []
    for step in (0.04, 0.02, 0.01):
        slave = open_fmu(pendulum(solver, step)).start()
        times, values = run_pattern(slave, step, round(1 / step), "angle")
        errors.append(np.max(np.abs(values - exact(times)[0])))
    slopes = [np.log2(a / b) for a, b in pairwise(errors)]
    assert slopes[-1] == pytest.approx(ORDERS[solver], abs=0.25), errors
    # And an irregular run is no worse than one on the grid.
    grid = simulate(pendulum(solver, 0.01), 1.0)
    assert errors[-1] < 1.2 * np.max(np.abs(grid["plant.angle"] - exact(grid.t)[0]))


@pytest.mark.filterwarnings("ignore:the estimated error")  # of coarse steps, and real
@pytest.mark.parametrize("solver", SOLVERS)
def test_steps_on_the_grid_give_the_bits_of_an_offline_run(open_fmu, solver):
    slave = open_fmu(pendulum(solver)).start()
    offline = simulate(pendulum(solver), 1.0)["plant.angle"]
    ticks = 0
    for size in (1, 3, 0, 2, 1, 5, 8, 30, 50):
        slave.step(size * H)
        ticks += size
        assert slave.get("angle")[0] == offline[ticks]


def test_within_a_millionth_of_a_step_times_snap_to_the_grid(open_fmu):
    offline = simulate(pendulum(), 1.0)["plant.angle"]
    slave = open_fmu(pendulum()).start()
    errors = np.random.default_rng(2).uniform(-0.99e-6, 0.99e-6, 100) * H
    before = 0.0
    for tick, error in enumerate(errors, 1):
        now = tick * H + error
        slave.fmu.doStep(currentCommunicationPoint=before, communicationStepSize=now - before)
        assert slave.get("angle")[0] == offline[tick]
        before = now
    # A little more than that is a time of its own.
    other = open_fmu(pendulum()).start()
    other.step(H * (1 + 3e-6))
    assert 0 < abs(other.get("angle")[0] - offline[1]) < 1e-6
    assert other.ended == (False, pytest.approx(H * (1 + 3e-6), rel=1e-12))


def test_outputs_within_a_step_are_those_of_that_time(open_fmu):
    """Against the closed forms of time and sine: no error of integration is in these."""
    d = Diagram("times", step=H)
    d.output("t", d.add(Time(), name="t"))
    d.output("sine", d.add(Sine(amplitude=2.0, frequency=3.0), name="sine"))
    d.output("held", d.add(Time(), name="held", period=2 * H))
    slave = open_fmu(d).start(at=5.0)
    for size in irregular(3, 0.3, 0.4 * H):
        slave.step(size)
        t, sine, held = slave.get("t", "sine", "held")
        assert t == pytest.approx(slave.time, abs=1e-12)
        assert sine == pytest.approx(2 * np.sin(6 * np.pi * slave.time), abs=1e-12)
        assert held == pytest.approx(5 + 2 * H * np.floor((slave.time - 5) / (2 * H) + 1e-6))


SAMPLED = ("every", "third", "delay", "more", "noise", "limited")


def sampled() -> Diagram:
    """Discrete blocks of many kinds that depend on time alone: at ticks their outputs are known."""
    d = Diagram("sampled", step=H)
    t = d.add(Time(), name="t")
    every = d.add(ZeroOrderHold(), "every", inputs=t, period=H)
    d.add(ZeroOrderHold(), "third", inputs=t, period=3 * H, offset=H)
    d.add(UnitDelay(), "delay", inputs=t, period=2 * H)
    d.add(Delay(3), "more", inputs=t, period=H)
    d.add(Noise(1.0), "noise", period=H)
    d.add(RateLimiter(0.5), "limited", inputs=t)
    for name in SAMPLED:
        d.output(f"{name}_", name)
    integral = d.add(Integrator(), name="integral")
    high = d.add(Compare(">=", 0.0), name="high")
    count = d.add(Counter(edge="level"), name="count")
    d.connect(t, high)
    d.connect(high, count["u"])
    d.connect(every, integral)
    d.output("integral_", integral)
    d.output("count_", count)
    return d


@pytest.fixture(scope="module")
def sampled_fmu(open_shared_fmu):
    return open_shared_fmu(sampled())


@pytest.fixture(scope="module")
def sampled_run():
    return simulate(sampled(), 20 * H)


# Sizes in base steps: anything, whole numbers, parts that meet the grid again, and next to nothing.
sizes = st.lists(
    st.one_of(
        st.floats(0.0, 3.0),
        st.integers(0, 3).map(float),
        st.sampled_from([0.25, 0.5, 0.75, 1e-9, 1e-6, 2e-6, 1 - 1e-7, 1 + 1e-7, 1 / 3]),
    ),
    max_size=30,
)


@given(sizes)
@settings(max_examples=200)
def test_any_partition_of_time_keeps_discrete_hits_on_the_grid(sampled_fmu, sampled_run, parts):
    """What a discrete block shows depends on the last tick alone, however it was reached."""
    sampled_fmu.fmu.reset()
    sampled_fmu.start()
    for part in parts:
        if sampled_fmu.time + part * H > 20 * H:
            break
        sampled_fmu.step(part * H)
        tick = int(np.floor(sampled_fmu.time / H + 1.1e-6))
        shown = sampled_fmu.get(*(f"{name}_" for name in SAMPLED))
        reached = sampled_fmu.ended[1]
        if abs(reached - tick * H) < 1e-12 or reached > tick * H:  # not just before a tick
            assert shown == [sampled_run[name][tick] for name in SAMPLED]
            counted = sampled_fmu.fmu.getInteger(sampled_fmu.refer("count_"))
            assert counted == [sampled_run["count"][tick]]
            # Of a held input, the integral is exact: ∑ tk·h over whole ticks, and the rest.
            begun = sum(n * H * H for n in range(tick)) + tick * H * (reached - tick * H)
            assert sampled_fmu.get("integral_")[0] == pytest.approx(begun, abs=1e-13)


def test_a_run_that_returns_to_the_grid_goes_on_as_from_there(open_fmu):
    """After an irregular part the state is another one by the error of the solver; from it, the FMU
    and an engine that was given that state go on alike to the last bit."""
    slave = open_fmu(pendulum()).start()
    slave.run([0.3 * H, 0.45 * H, 1.25 * H, 3 * H, 0.1 * H, 0.9 * H])
    saved = slave.fmu.getFMUstate()
    raw = slave.fmu.serializeFMUstate(saved)
    slave.fmu.freeFMUstate(saved)
    with pendulum().compile().instantiate() as engine:
        own = engine.save()
        # A state begins with the hash of its plan, which in an FMU is also that of its description.
        engine.restore(own[:8] + bytes(raw)[-len(own) + 8 :])
        assert engine.tick == 6
        for _ in range(20):
            slave.step(H)
            engine.run(1)
            assert slave.get("angle")[0] == engine.get("angle")


def test_irregular_steps_through_the_engine_have_the_bits_of_the_fmu(open_fmu):
    slave = open_fmu(pendulum()).start()
    with pendulum().compile().instantiate() as engine:
        for size in irregular(4, 0.5, 0.6 * H):
            slave.step(size)
            engine.run_to(slave.time)
            assert slave.get("angle", "push") == [engine.get("angle"), engine.get("push")]
            assert slave.ended[1] == engine.time


def test_states_are_saved_within_a_step(open_fmu):
    """With the offset, the pending derivatives of inputs, frozen decisions and memory inside."""
    d = Diagram("all kinds", step=H, solver="trapezoidal")
    u = d.input("u")
    limited = d.add(Integrator(limits=(-0.02, 0.02), reset="rising"), name="limited")
    reset = d.add(Compare(">", 0.5), name="reset")
    delayed = d.add(TransportDelay(2.5 * H), name="delayed")
    slope = d.add(Derivative(0.02), name="slope")
    d.connect(u, limited["u"], reset, delayed, slope)
    d.connect(reset, limited["reset"])
    names = ["limited_", "delayed_", "slope_"]
    for name, block in zip(names, (limited, delayed, slope), strict=True):
        d.output(name, block)
    slave = open_fmu(d).start()
    parts = irregular(5, 0.2, 0.37 * H)

    def go_on(first):
        rows = []
        for k, size in enumerate(parts[first:], first):
            slave.set("u", np.sin(0.4 * k))
            if k > first:  # in the first step, the derivative is what was set before saving
                slave.slope("u", 0.1 * k)
            slave.step(size)
            rows.append([*slave.get(*names), *slave.ended])
        return rows

    go_on(len(parts) - 20)
    slave.slope("u", 30.0, -20.0)
    time = slave.time
    state = slave.fmu.getFMUstate()
    raw = slave.fmu.serializeFMUstate(state)
    before = slave.get(*names)
    first = go_on(20)
    for put_back in (state, slave.fmu.deSerializeFMUstate(raw)):
        slave.fmu.setFMUstate(put_back)
        slave.time = time
        assert slave.get(*names) == before
        assert go_on(20) == first
        slave.fmu.freeFMUstate(put_back)
    assert slave.ended[1] % H > 1e-4  # it was within a step


def limited(events):
    d = Diagram("limits", step=H, events=events)
    u, reset = d.input("u"), d.input("reset")
    x = d.add(Integrator(0.0, limits=(-1.0, 1.0), reset="rising"), name="x")
    d.connect(u, x["u"])
    d.connect(reset, x["reset"])
    d.output("x_", x)
    return d


def test_a_limit_and_a_reset_wait_for_the_tick(open_fmu):
    slave = open_fmu(limited("tick")).start(u=50.0)
    slave.step(0.5 * H)
    assert slave.get("x_")[0] == pytest.approx(0.25)
    slave.set("reset", 1.0)
    assert slave.get("x_")[0] == pytest.approx(0.25)  # a reset happens at ticks
    slave.step(0.25 * H)
    assert slave.get("x_")[0] == pytest.approx(0.375)
    slave.step(0.25 * H)
    assert slave.get("x_")[0] == 0.0  # the edge is seen here
    slave.step(0.5 * H)
    assert slave.get("x_")[0] == pytest.approx(0.25)
    slave.run([2.5 * H])
    assert slave.get("x_")[0] == 1.0  # limited


def test_a_limit_and_a_reset_within_a_tick(open_fmu):
    """An input that changes between ticks is an event where the master stands."""
    slave = open_fmu(limited("locate")).start(u=50.0)
    slave.step(0.5 * H)
    assert slave.get("x_")[0] == pytest.approx(0.25)
    slave.set("reset", 1.0)
    assert slave.get("x_")[0] == 0.0
    slave.step(0.25 * H)
    assert slave.get("x_")[0] == pytest.approx(0.125)
    slave.step(0.25 * H)
    assert slave.get("x_")[0] == pytest.approx(0.25)
    slave.step(0.5 * H)
    assert slave.get("x_")[0] == pytest.approx(0.5)
    slave.run([3.5 * H])
    assert slave.get("x_")[0] == 1.0  # limited


def test_a_transport_delay_shows_samples_of_ticks_between_them_a_line(open_fmu):
    """Its input is a straight line, which it therefore shows exactly, a delay ago."""
    d = Diagram("delay", step=H)
    t = d.add(Time(), name="t")
    delay = d.add(TransportDelay(2.5 * H, initial=-1.0), name="delay")
    d.connect(t, delay)
    d.output("delayed", delay)
    slave = open_fmu(d).start()
    for size in irregular(6, 0.3, 0.4 * H):
        slave.step(size)
        if slave.time > 3 * H:
            assert slave.get("delayed")[0] == pytest.approx(slave.time - 2.5 * H, abs=1e-12)


def test_a_recording_is_played_at_the_time_within_a_step(open_fmu):
    d = Diagram("playback", step=H)
    times = np.array([0.0, 0.033, 0.1, 0.4])
    d.output("line", d.add(Playback(times, times**2), name="line"))
    slave = open_fmu(d).start()
    for size in irregular(7, 0.3, 0.4 * H):
        slave.step(size)
        assert slave.get("line")[0] == pytest.approx(np.interp(slave.time, times, times**2))


def test_algebraic_loops_are_solved_within_a_step(open_fmu):
    """y = 2 sin(3t) - y / 2 has the solution 4/3 sin(3t)."""
    d = Diagram("loop", step=H)
    source = d.add(Sine(amplitude=2.0, frequency=3.0 / (2 * np.pi)), name="source")
    total, half = d.add(Sum("+-"), name="total"), d.add(Gain(0.5), name="half")
    x = d.add(Integrator(), name="x")
    d.connect(source, total["u1"])
    d.connect(half, total["u2"])
    d.connect(total, half, x)
    d.output("y", total)
    d.output("x_", x)
    slave = open_fmu(d).start()
    for size in irregular(8, 0.5, 0.4 * H):
        slave.step(size)
        y, x_ = slave.get("y", "x_")
        assert y == pytest.approx(4 / 3 * np.sin(3 * slave.time), abs=1e-11)
        assert x_ == pytest.approx(4 / 9 * (1 - np.cos(3 * slave.time)), abs=1e-9)


def enabled() -> Diagram:
    """An integrator that runs while a signal is on, which changes at any time."""
    inner = Diagram("inner", step=H)
    x = inner.add(Integrator(), name="x")
    inner.connect(inner.input("u"), x)
    inner.output("y", x)
    d = Diagram("outer", step=H)
    sub = d.add(Subsystem(inner, enable=True), name="sub")
    d.connect(d.input("u"), sub["u"])
    d.connect(d.input("on", kind="boolean"), sub["enable"])
    d.output("y", sub["y"])
    return d


def test_whether_a_subsystem_runs_is_decided_at_ticks(open_fmu):
    slave = open_fmu(enabled())

    def switch(on: bool) -> None:
        slave.fmu.setBoolean(slave.refer("on"), [on])

    switch(True)
    slave.start(u=1.0)
    slave.step(0.25 * H)
    assert slave.get("y")[0] == pytest.approx(0.25 * H)
    switch(False)
    assert slave.get("y")[0] == pytest.approx(0.25 * H)
    slave.step(0.5 * H)  # it goes on: the decision was made at the tick
    assert slave.get("y")[0] == pytest.approx(0.75 * H)
    slave.step(0.25 * H)
    assert slave.get("y")[0] == 0.0  # off: it shows what it had at its last tick
    slave.run([0.3 * H, 1.1 * H])
    assert slave.get("y")[0] == 0.0
    switch(True)
    assert slave.get("y")[0] == 0.0
    slave.step(0.6 * H)  # reaches the tick: on
    slave.step(0.5 * H)
    assert slave.get("y")[0] == pytest.approx(1.5 * H)


def test_a_reset_within_a_step_goes_back_to_the_first_tick(open_fmu):
    slave = open_fmu(pendulum()).start()
    first = slave.run([0.3 * H, 1.1 * H, 0.4 * H], "angle", "push")
    for _ in range(3):
        slave.fmu.reset()
        slave.start()
        assert slave.ended == (False, 0.0)
        assert slave.run([0.3 * H, 1.1 * H, 0.4 * H], "angle", "push") == first
    slave.fmu.terminate()  # within a step
    assert slave.get("angle", "push") == first[-1]
    slave.fmu.reset()
    slave.start()
    assert slave.run([0.3 * H], "angle", "push") == first[:1]


def test_instances_in_turn_do_not_disturb_each_other(open_fmu):
    alone = open_fmu(pendulum()).start().run([0.3 * H, 1.1 * H, 0.4 * H], "angle")
    a, b = open_fmu(pendulum()).start(), open_fmu(pendulum()).start()
    for size, other, expected in zip((0.3, 1.1, 0.4), (0.77, 0.05, 3.1), alone, strict=True):
        a.step(size * H)
        b.step(other * H)
        assert a.get("angle") == expected


def test_a_time_so_large_that_ticks_are_not_given_apart(open_fmu):
    """At 1e15 s doubles are an eighth of a second apart: a step of nothing is still nothing."""
    slave = open_fmu(pendulum()).start(at=1e15)
    before = slave.get("angle")
    slave.step(0.0)
    assert slave.get("angle") == before
    slave.step(0.125)
    assert slave.get("angle") != before


def test_a_stop_block_ends_at_a_tick_and_says_when(open_fmu):
    d = Diagram("stopping", step=H)
    t, late = d.add(Time(), name="t"), d.add(Compare(">=", 0.0351), name="late")
    d.connect(t, late)
    d.connect(late, d.add(Stop("late"), name="stop"))
    d.output("t_", t)
    slave = open_fmu(d).start()
    slave.run([0.0123, 0.02, 0.0057])  # to 0.038: the condition holds, but no tick has come
    assert slave.ended == (False, pytest.approx(0.038))
    with pytest.raises(Exception, match="status 2"):
        slave.step(0.05)
    assert slave.ended == (True, pytest.approx(0.04))
    assert slave.get("t_")[0] == pytest.approx(0.04)
    slave.fmu.terminate()


def test_the_stop_time_holds_within_a_step_too(open_fmu):
    slave = open_fmu(pendulum()).start(stop=2.37 * H)
    slave.step(1.5 * H)
    slave.step(0.87 * H)
    with pytest.raises(Exception, match="status 3"):
        slave.step(0.01 * H)


def crank(integrator: Literal["rk4", "implicit"], step: float, **options) -> Diagram:
    """Oldani's slider-crank as a plant with internal steps, its torque an input."""
    d = Diagram("crank", step=step)
    plant = d.add(
        slider_crank().block(
            ["motor.torque"],
            ["main.angle", "closure"],
            mode="internal",
            integrator=integrator,
            **options,
        ),
        name="plant",
    )
    d.connect(d.input("torque"), plant["motor.torque"])
    d.output("angle", plant["main.angle"])
    d.output("closure", plant["closure"])
    held = d.add(ZeroOrderHold(), name="held", period=step)
    d.connect(plant["main.angle"], held)
    d.output("sampled", held)
    return d


@pytest.mark.parametrize(
    ("integrator", "options", "order", "steps"),
    [
        ("rk4", {}, 4, (0.01, 0.005, 0.0025)),
        ("rk4", {"substeps": 3}, 4, (0.02, 0.01, 0.005)),
        ("implicit", {"spectral_radius": 1.0}, 2, (0.005, 0.0025, 0.00125)),
        ("implicit", {"spectral_radius": 0.8}, 2, (0.005, 0.0025, 0.00125)),
        ("implicit", {"spectral_radius": 0.0}, 2, (0.005, 0.0025, 0.00125)),
    ],
)
def test_internal_steps_are_shortened_and_keep_their_order(
    open_fmu, integrator, options, order, steps
):
    """A mechanism with closed loops and internal steps, shortened to communication points."""
    fine = simulate(crank("rk4", 2.5e-4), 0.5, parameters={"torque": 10.0})["plant.main.angle"]
    errors = []
    for step in steps:
        slave = open_fmu(crank(integrator, step, **options)).start(torque=10.0)
        _, values = run_pattern(slave, step, round(0.5 / step), "angle")
        every = round(5 * step / 2.5e-4)
        errors.append(np.max(np.abs(values[len(PATTERN) - 1 :: len(PATTERN)] - fine[every::every])))
        assert slave.get("closure")[0] < 1e-9
    assert np.log2(errors[-2] / errors[-1]) > order - 0.2, errors


@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
def test_internal_steps_of_next_to_nothing_do_no_harm(open_fmu, integrator):
    slave = open_fmu(crank(integrator, 0.005)).start(torque=10.0)
    whole = open_fmu(crank(integrator, 0.005)).start(torque=10.0)
    for _ in range(50):
        slave.run(np.array([0.5, 3e-6, 0.5 - 3e-6]) * 0.005)
        whole.run([0.005])
    # Two halves are more exact than a whole step; both are good to 1e-5 and 1e-3.
    difference = slave.get("angle")[0] - whole.get("angle")[0]
    assert 0 < abs(difference) < (2e-6 if integrator == "rk4" else 5e-4)


@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
def test_internal_steps_on_the_grid_have_the_bits_of_an_offline_run(open_fmu, integrator):
    run = simulate(crank(integrator, 0.01), 0.3, parameters={"torque": 10.0})
    offline = run["plant.main.angle"]
    slave = open_fmu(crank(integrator, 0.01)).start(torque=10.0)
    for tick in range(1, 31):
        slave.step(0.01)
        assert slave.get("angle") == slave.get("sampled") == [offline[tick]]


@pytest.mark.parametrize("period", [None, H])
def test_a_sampled_driver_goes_on_from_its_tick(open_fmu, period):
    """Place, rate and acceleration of a drive, sampled at ticks or not: within a tick the mechanism
    moves on by them, with the error h³/6 of a law of second degree."""
    s = System("slider", gravity=(0, 0, 0))
    body = s.body("body", mass=2.0, inertia=(1.0, 1.0, 1.0))
    s.prismatic("slide", s.ground, body, at=(0, 0, 0), axis=(1, 0, 0))
    s.driver("drive", cast(Joint, s["slide"]), Input("x"))
    d = Diagram("driven", step=H)
    plant = d.add(s.block(outputs=["slide.displacement"], mode="internal"), name="plant")
    laws = {"x": "sin(3*t)", "x_rate": "3*cos(3*t)", "x_acceleration": "-9*sin(3*t)"}
    for name, text in laws.items():
        d.connect(d.add(Expression(text), name=name, period=period), plant[name])
    d.output("place", plant["slide.displacement"])
    slave = open_fmu(d).start()
    times, places = run_pattern(slave, H, 50, "place")
    assert places == pytest.approx(np.sin(3 * np.array(times)), abs=27 * H**3 / 6 + 1e-9)


def test_outputs_of_internal_steps_are_shown_within_a_tick_and_samples_of_them_held(open_fmu):
    slave = open_fmu(crank("rk4", 0.01)).start(torque=10.0)
    slave.step(0.01)
    at_tick = slave.get("angle")
    slave.step(0.006)
    assert slave.get("angle")[0] > at_tick[0]
    assert slave.get("sampled") == at_tick
    slave.step(0.004)
    assert slave.get("angle") == slave.get("sampled")


def masses(step: float, **options) -> Diagram:
    """Two masses, each with internal steps, and between them a spring made of blocks."""
    d = Diagram("masses", step=step, **options)
    for name, mass, speed in (("a", 1.0, 1.0), ("b", 2.0, 0.0)):
        s = System("mass", (0, 0), planar=True)
        body = s.body("mass", mass=mass, inertia=1.0, velocity=(speed, 0))
        s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
        s.force("push", body.marker("end"), (0.0, 0.0))
        outputs = ["slide.displacement"]
        block = s.block(["push.force.x"], outputs, mode="internal", substeps=2)
        d.output(name, d.add(block, name=name)["slide.displacement"])
    stretch = d.add(Sum("+-"), name="stretch")
    pull, push = d.add(Gain(30.0, unit="N"), name="pull"), d.add(Gain(-1.0), name="push")
    d.connect("b.slide.displacement", stretch["u1"])
    d.connect("a.slide.displacement", stretch["u2"])
    d.connect(stretch, pull)
    d.connect(pull, push, "a.push.force.x")
    d.connect(push, "b.push.force.x")
    d.output("force", pull)
    return d


@pytest.mark.parametrize(
    ("method", "hold", "order"),
    [("jacobi", 0, 1), ("jacobi", 1, 2), ("newton", 0, 2), ("newton", 2, 3), ("fixed-point", 1, 2)],
)
def test_coupled_internal_steps_keep_their_order_off_the_grid(open_fmu, method, hold, order):
    """Against the closed form: with K = k (1/m1 + 1/m2) they stretch by -sin(√K t)/√K."""
    errors = []
    for step in (0.02, 0.01, 0.005):
        slave = open_fmu(masses(step, coupling=method, extrapolation=hold)).start()
        times, forces = run_pattern(slave, step, round(1.0 / step), "force")
        root = np.sqrt(45.0)
        errors.append(np.max(np.abs(forces + 30.0 * np.sin(root * np.array(times)) / root)))
    assert np.log2(errors[-2] / errors[-1]) > order - 0.25, errors


def test_shorter_steps_of_a_coupling_are_better_than_those_of_the_grid(open_fmu):
    exact = -30.0 * np.sin(np.sqrt(45.0)) / np.sqrt(45.0)
    errors = []
    for parts in (1, 2, 4):
        slave = open_fmu(masses(0.02, coupling="newton", extrapolation=1)).start()
        slave.run([0.02 / parts] * 50 * parts)
        errors.append(abs(slave.get("force")[0] - exact))
    assert errors[0] > 3 * errors[1] > 9 * errors[2]


def test_what_internal_steps_give_is_passed_on_within_a_tick_and_samples_are_held(open_fmu):
    d = masses(0.02)
    held = d.add(ZeroOrderHold(), name="held", period=0.02)
    d.connect(d["stretch"], held)
    twice = d.add(Gain(2.0), name="twice")
    d.connect(held, twice)
    d.output("stretch", d["stretch"])
    d.output("twice", twice)
    slave = open_fmu(d).start()
    slave.step(0.02)
    at_tick = slave.get("stretch")[0]
    slave.step(0.005)
    a, b, stretch, force, twice_held = slave.get("a", "b", "stretch", "force", "twice")
    assert stretch == b - a != at_tick
    assert force == 30.0 * stretch
    assert twice_held == 2.0 * at_tick
