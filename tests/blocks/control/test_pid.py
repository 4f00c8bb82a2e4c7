"""PID: against python-control, and what an instrument promises beyond the linear law."""

from __future__ import annotations

from typing import Any

import control
import numpy as np
import pytest

from biella import BlockError, Diagram, DiagramError, simulate
from biella.blocks import PID, Constant, Step, TransferFunction
from biella.blocks.basic.sources._playback import Playback

pytestmark = pytest.mark.engine

T = 0.01


def run(pid, ticks, changes=(), **inputs):
    """Give all outputs of a PID for inputs sample by sample; changes are (tick, name, value)."""
    d = Diagram("pid", step=T)
    d.add(pid, name="pid")
    times = np.arange(ticks) * T
    for name, values in inputs.items():
        values = np.broadcast_to(values, ticks)
        if name == "auto":
            source = d.input(name, kind="boolean")
        else:
            source = d.add(Playback(times, values, interpolation="hold"))
        d.connect(source, pid[name])
    rows = []
    with d.compile().instantiate() as instance:
        for tick in range(ticks):
            if "auto" in inputs:
                instance.set("auto", float(np.broadcast_to(inputs["auto"], ticks)[tick]))
            for when, name, value in changes:
                if when == tick:
                    instance.set(f"pid.{name}", value)
            rows.append([instance.get(f"pid.{port.name}") for port in pid.outputs])
            instance.run(1)
    return {p.name: column for p, column in zip(pid.outputs, np.array(rows).T, strict=True)}


def discrete(kp, ki, kd, tf, method):
    """The same law as transfer functions of python-control: P, I and D."""
    z = control.tf([1, 0], [1], T)
    s = (z - 1) / (T * z) if method == "backward" else 2 / T * (z - 1) / (z + 1)
    return (
        kp,
        control.minreal(ki / s, verbose=False),
        control.minreal(kd * s / (1 + tf * s), verbose=False),
    )


@pytest.mark.parametrize("method", ["backward", "tustin"])
@pytest.mark.parametrize("form", ["parallel", "standard"])
def test_response_is_that_of_python_control(method, form):
    """Any reference and measurement: the same numbers to rounding, set-point weights included."""
    kp, ki, kd, tf, b, c = 2.0, 5.0, 0.3, 0.02, 0.6, 0.4
    gains: dict[str, Any] = (
        {"kp": kp, "ki": ki, "kd": kd}
        if form == "parallel"
        else {"k": kp, "ti": kp / ki, "td": kd / kp}
    )
    random = np.random.default_rng(1)
    r, y = random.normal(size=(2, 300))
    r[0] = y[0] = 0.0  # at rest before, as in a transfer function
    ours = run(
        PID(**gains, filter_time=tf, b=b, c=c, method=method, period=T),
        300,
        reference=r,
        measurement=y,
    )
    _, of_error, of_change = discrete(kp, ki, kd, tf, method)
    times = np.arange(300) * T
    integral = control.forced_response(of_error, times, r - y).outputs
    derivative = control.forced_response(of_change, times, c * r - y).outputs
    np.testing.assert_allclose(ours["integral"], integral, rtol=0, atol=1e-11)
    np.testing.assert_allclose(ours["derivative"], derivative, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours["proportional"], kp * (b * r - y), rtol=0, atol=1e-13)
    np.testing.assert_allclose(
        ours["y"], kp * (b * r - y) + integral + derivative, rtol=0, atol=1e-10
    )
    assert not ours["saturated"].any()


@pytest.mark.parametrize("method", ["backward", "tustin"])
def test_closed_loop_step_is_that_of_python_control(method):
    """A sampled loop around a continuous plant whose input is held in between."""
    kp, ki, kd, tf = 1.5, 2.0, 0.2, 0.02
    d = Diagram("loop", step=T / 10)
    pid = d.add(PID(kp, ki, kd, filter_time=tf, c=1.0, method=method, period=T), name="pid")
    plant = d.add(TransferFunction([1.0], [0.1, 0.7, 1.0]), name="plant")
    d.connect(d.add(Step(at=T, to=1.0), name="ref"), pid["reference"])
    d.connect(plant, pid["measurement"])
    d.connect(pid["y"], plant)
    ours = simulate(d, 3.0)["plant"][::10]
    held = control.c2d(control.tf([1.0], [0.1, 0.7, 1.0]), T, "zoh")
    loop = control.feedback(held * sum(discrete(kp, ki, kd, tf, method)), 1)
    theirs = control.forced_response(
        loop, np.arange(len(ours)) * T, (np.arange(len(ours)) >= 1) * 1.0
    )
    # Their plant is exact, ours by RK4: error (h pole)^5 / 120 per step, with poles of 5 rad/s.
    np.testing.assert_allclose(ours, theirs.outputs, rtol=0, atol=1e-7)


def test_derivative_does_not_kick_at_the_first_sample_or_from_the_reference():
    ours = run(
        PID(1.0, 0.0, 1.0, filter_time=0.05, period=T),
        50,
        reference=np.r_[0.0, np.ones(49)],
        measurement=5.0,
    )
    np.testing.assert_array_equal(ours["derivative"], 0.0)


def wind_up(**options):
    """A slow plant with a weak actuator, and a reference that it takes long to reach."""
    d = Diagram("windup", step=T)
    pid = d.add(PID(4.0, 4.0, limits=(-1.0, 1.0), period=T, **options), name="pid")
    plant = d.add(TransferFunction([1.0], [1.0, 0.2]), name="plant")
    d.connect(d.add(Step(at=0.0, to=3.0), name="ref"), pid["reference"])
    d.connect(plant, pid["measurement"])
    d.connect(pid["y"], plant)
    result = simulate(d, 25.0, record=["*"])
    return result["plant"], result["pid.integral"], result["pid.y"]


def test_anti_windup_takes_away_the_overshoot():
    """Wound up, it goes 30 % too far; with either anti-windup below 3 %."""
    free, free_integral, _ = wind_up(anti_windup="none")
    assert free.max() > 3.0 * 1.3
    for options in ({"anti_windup": "clamping"}, {"anti_windup": "back-calculation"}):
        plant, integral, y = wind_up(**options)
        assert plant.max() < 3.0 * 1.03
        assert np.abs(y).max() <= 1.0
        assert np.abs(integral).max() < 0.5 * np.abs(free_integral).max()
        assert abs(plant[-1] - 3.0) < 1e-3


def test_clamping_stops_exactly_where_the_output_meets_its_limit():
    """v = P + I grows to 1 and stays: I stops at 1 - P, and starts back with the first error."""
    r = np.r_[np.full(200, 1.0), np.full(50, -0.5)]
    ours = run(PID(0.5, 1.0, limits=(-1.0, 1.0), period=T), 250, reference=r, measurement=0.0)
    np.testing.assert_allclose(ours["integral"][60:200], 0.5, rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.diff(ours["integral"][199:]), -0.5 * T, rtol=1e-12)
    assert ours["y"].max() == 1.0


def test_back_calculation_has_its_time_constant():
    """With e = 0 and P = 0, y - v decays as (1 - T / tracking_time)^n from an integral beyond."""
    pid = PID(
        1.0,
        1.0,
        limits=(-1.0, 1.0),
        anti_windup="back-calculation",
        tracking_time=0.2,
        initial=3.0,
        period=T,
    )
    ours = run(pid, 40, reference=0.0, measurement=0.0)
    wanted = 1.0 + 2.0 * (1 - T / 0.2) ** np.arange(1, 41)
    np.testing.assert_allclose(ours["integral"], wanted, rtol=1e-12)


def test_rate_limit_holds_and_does_not_wind_up():
    pid = PID(10.0, 5.0, rate_limit=(2.0, 3.0), period=T)
    ours = run(
        pid, 300, reference=np.r_[0.0, np.full(99, 1.0), np.full(200, -1.0)], measurement=0.0
    )
    steps = np.diff(ours["y"])
    assert steps.max() == pytest.approx(3.0 * T) and steps.min() == pytest.approx(-2.0 * T)
    # While the output still climbs toward P = 10, the integral waits.
    assert ours["integral"][99] == 0.0 and ours["saturated"][99] == 1.0


def test_manual_to_auto_has_no_bump():
    """The first automatic output is the last manual one and one sample of integration."""
    auto = np.r_[np.zeros(50), np.ones(100)]
    pid = PID(3.0, 2.0, 0.1, filter_time=0.05, period=T)
    ours = run(pid, 150, auto=auto, manual=0.7, reference=1.0, measurement=0.4, feedforward=0.2)
    np.testing.assert_array_equal(ours["y"][:50], 0.7)
    np.testing.assert_allclose(np.diff(ours["y"][49:]), 2.0 * T * 0.6, rtol=1e-9)


def test_auto_to_manual_has_no_bump_where_the_station_follows_or_the_rate_is_limited():
    auto = np.r_[np.ones(50), np.zeros(50)]
    options = {"auto": auto, "reference": 1.0, "measurement": 0.0}
    free = run(PID(1.0, 1.0, period=T), 100, manual=0.0, **options)
    followed = run(PID(1.0, 1.0, period=T), 100, manual=free["y"][49], **options)
    assert free["y"][50] - free["y"][49] == pytest.approx(-1.5)
    assert np.diff(followed["y"])[49] == 0.0
    limited = run(PID(1.0, 1.0, rate_limit=10.0, period=T), 100, manual=0.0, **options)
    assert np.abs(np.diff(limited["y"])).max() <= 10.0 * T * (1 + 1e-12)


@pytest.mark.parametrize(
    ("name", "value"),
    [("kp", 7.0), ("ki", 9.0), ("kd", 2.0), ("b", 0.1), ("c", 1.0), ("filter_time", 0.3)],
)
def test_gain_change_has_no_bump(name, value):
    """With all inputs constant and an error left, a new gain shows in how y goes on, not in y."""
    pid = PID(2.0, 1.0, 0.5, filter_time=0.05, b=0.7, period=T)
    options = {"reference": 1.0, "measurement": 0.4}
    ours = run(pid, 100, changes=[(50, name, value)], **options)
    slope = np.full(99, 1.0 * T * 0.6)
    if name == "ki":
        slope[49:] = value * T * 0.6
    np.testing.assert_allclose(np.diff(ours["y"]), slope, rtol=0, atol=1e-13)


def test_new_gain_acts_from_then_on():
    pid = PID(2.0, 1.0, b=0.7, period=T)
    r = np.r_[np.ones(60), np.full(40, 2.0)]
    ours = run(pid, 100, changes=[(50, "kp", 5.0)], reference=r, measurement=0.4)
    jump = ours["y"][60] - ours["y"][59]
    assert jump == pytest.approx(5.0 * 0.7 + 1.0 * T * 1.6)


def test_without_integral_action_the_law_holds_at_once():
    """A bias would stay for ever, so there is none, after a new gain or after manual mode."""
    ours = run(PID(2.0, period=T), 100, changes=[(50, "kp", 5.0)], reference=1.0, measurement=0.4)
    np.testing.assert_allclose(ours["y"], np.r_[np.full(50, 1.2), np.full(50, 3.0)], rtol=1e-14)
    auto = np.r_[np.zeros(50), np.ones(50)]
    ours = run(PID(2.0, period=T), 100, auto=auto, manual=-1.0, reference=1.0, measurement=0.4)
    np.testing.assert_allclose(ours["y"][50:], 1.2, rtol=1e-14)


def test_units_of_gains():
    pid = PID(2.0, 1.0, 0.1, unit="N.m", input_unit="rad/s", limits=(-5, 5), rate_limit=2)
    units = {p.name: str(p.unit) for p in pid.parameters if p.unit}
    assert units["kp"] == "N.m.s/rad" and units["ki"] == "N.m/rad" and units["kd"] == "N.m.s2/rad"
    assert units["upper"] == "N.m" and units["rising"] == "N.m/s" and units["filter_time"] == "s"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs gains"),
        ({"kp": 1, "ti": 2}, "kp, ki, kd or k, ti, td; got kp, ti"),
        ({"ti": 2}, "standard form needs k in addition to ti"),
        ({"k": 1, "ti": 0}, "`ti` must be positive seconds, got 0.0; leave it out"),
        ({"k": 1, "td": -1}, "`td` is a time in seconds, 0 or positive"),
        ({"kp": 1, "limits": (2, -2)}, "lower <= upper"),
        ({"kp": 1, "limits": 3}, "`limits` is a pair"),
        ({"kp": 1, "rate_limit": -1}, "`rate_limit` is a positive change per second"),
        ({"kp": 1, "rate_limit": 0}, "`rate_limit` is a positive change per second"),
        ({"kp": 1, "tracking_time": -1}, "`tracking_time` is a time in seconds"),
        ({"kd": 1}, "give `filter_time`"),
        ({"kp": 1, "kd": 1, "filter_time": -1}, "`filter_time` is a time in seconds"),
        (
            {"kp": 1, "kd": 0.01, "method": "tustin", "period": 0.1},
            "rings if its filter_time, 0.001 s",
        ),
        ({"kp": 1, "method": "euler"}, "method is one of 'backward', 'tustin'"),
        ({"kp": 1, "anti_windup": "on"}, "anti_windup is one of"),
        ({"kp": [1, 2]}, "`kp` of a PID is one number"),
        ({"kp": 1, "b": np.nan}, "`b` of a PID is one number"),
    ],
)
def test_wrong_parameters_are_refused(arguments, message):
    with pytest.raises(DiagramError, match=message.replace("(", r"\(")):
        PID(**arguments)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [("lower", 9.0, "its limits are reversed"), ("rising", -1.0, "rates are 0 or positive"),
     ("filter_time", -1.0, "must be at least 0 s")],
)  # fmt: skip
def test_wrong_values_set_in_a_run_stop_it(name, value, message):
    pid = PID(1.0, 1.0, limits=(-1.0, 1.0), period=T)
    with pytest.raises(BlockError, match=message):
        run(pid, 10, changes=[(5, name, value)], reference=1.0, measurement=0.0)


PLACES, KP, KI, KD = [0.0, 1.0, 4.0], [2.0, 5.0, 1.0], [3.0, 0.5, 0.0], [0.1, 0.0, 0.4]


def scheduled(**options):
    return PID(KP, KI, KD, schedule=PLACES, filter_time=0.05, period=T, **options)


def test_scheduled_gains_lie_on_lines_between_places():
    place = np.linspace(-1.0, 6.0, 141)
    ours = run(scheduled(), 141, schedule=place, reference=0.0, measurement=-0.5)
    np.testing.assert_allclose(ours["proportional"], 0.5 * np.interp(place, PLACES, KP), rtol=1e-13)


@pytest.mark.parametrize("place", [-1.0, 0.0, 0.4, 1.0, 2.5, 3.9])
def test_at_one_place_it_is_the_controller_of_its_gains(place):
    rng = np.random.default_rng(2)
    signals = {"reference": rng.normal(size=200), "measurement": rng.normal(size=200)}
    gains = [float(np.interp(place, PLACES, table)) for table in (KP, KI, KD)]
    wanted = run(PID(*gains, filter_time=0.05, period=T), 200, **signals)
    ours = run(scheduled(), 200, schedule=place, **signals)
    for name, values in wanted.items():
        np.testing.assert_allclose(ours[name], values, rtol=1e-12, atol=1e-13)


def test_a_jump_of_the_schedule_has_no_bump():
    place = np.r_[np.zeros(50), np.full(50, 0.9)]
    ours = run(scheduled(b=0.7), 100, schedule=place, reference=1.0, measurement=0.4)
    slope = np.interp(place[1:], PLACES, KI) * T * 0.6
    np.testing.assert_allclose(np.diff(ours["y"]), slope, rtol=0, atol=1e-13)


@pytest.mark.parametrize("strength", [1.0, 2.0, 5.0, 10.0])
def test_a_schedule_makes_a_plant_of_any_gain_answer_alike(strength):
    """Gains that go as 1 / strength of the plant: one loop gain, so one step response."""

    def step_response(pid, schedule):
        d = Diagram("schedule", step=T)
        names = {"pid": pid, "r": Step(0.0, 1.0), "g": Constant(strength)}
        names |= {"plant": TransferFunction([strength], [1.0, 1.0])}
        for name, block in names.items():
            d.add(block, name=name)
        d.connect("r", "pid.reference")
        d.connect("plant", "pid.measurement")
        d.connect("pid.y", "plant")
        if schedule:
            d.connect("g", "pid.schedule")
        return simulate(d, 3.0)["plant"]

    strengths = np.linspace(1.0, 10.0, 19)
    pid = PID(3.0 / strengths, 6.0 / strengths, schedule=strengths, period=T)
    wanted = step_response(PID(3.0 / strength, 6.0 / strength, period=T), False)
    np.testing.assert_allclose(step_response(pid, True), wanted, rtol=0, atol=1e-12)
    # All strengths have one loop, that of 3 and 6 at strength 1.
    fixed = step_response(PID(3.0, 6.0, period=T), False)
    assert (np.abs(fixed - wanted).max() > 0.1) == (strength > 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kp": [1, 2], "schedule": [0, 1, 2]}, "`kp` has 2 values, the schedule 3 breakpoints"),
        ({"kp": [1, 2], "schedule": [1, 0]}, "`schedule` must rise"),
        ({"k": 1.0, "schedule": [0, 1]}, "not of the standard form"),
        ({"kp": [1, 2]}, "`kp` of a PID is one number"),
    ],
)
def test_wrong_schedules_are_refused(arguments, message):
    with pytest.raises(DiagramError, match=message):
        PID(**arguments)
