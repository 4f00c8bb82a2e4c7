"""The relay auto-tuner: the cycle it makes, what it reads from it, and loops with its gains."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq
from scipy.signal import tf2ss

from biella import Diagram, DiagramError, simulate
from biella.blocks import (
    PID,
    Constant,
    Noise,
    RelayTuner,
    Step,
    Sum,
    TransferFunction,
    TransportDelay,
)

pytestmark = pytest.mark.engine

LAG3 = ([1.0], [1.0, 3.0, 3.0, 1.0])  # 1 / (s + 1)³: Ku = 8, Pu = 2π / √3
FIFTH = ([2.0], np.poly([-1.0, -1.0, -1.0, -2.0, -2.0]).tolist())


def tune(tuner, plant, until=40.0, step=1e-3, noise=0.0, start=1.0, control=0.0, reference=0.0):
    """Run a plant under the relay and return the result."""
    d = Diagram("tuning", step=step)
    d.add(tuner, name="tuner")
    d.add(plant, name="plant")
    d.add(Constant(reference), name="reference")
    d.add(Constant(control), name="control")
    d.add(Step(start, kind="boolean"), name="start")
    d.add(Noise(noise, seed=3), name="noise", period=step)
    d.add(Sum("++"), name="measured")
    d.connect("reference", "tuner.reference")
    d.connect("start", "tuner.start")
    d.connect("control", "tuner.control")
    d.connect("plant", "measured.u1")
    d.connect("noise", "measured.u2")
    d.connect("measured", "tuner.measurement")
    d.connect("tuner.y", "plant")
    return simulate(d, until)


def last(result, name):
    return float(result[f"tuner.{name}"][-1])


def exact_cycle(num, den, d, eps):
    """Return period and half swing of the limit cycle under a relay, from the states at its turns.

    Half a period h apart the states are opposite: x(h) = -x(0) = e^{Ah} x(0) + ∫ e^{As} B d ds, and
    there the output is -eps at a turn upwards (Åström and Hägglund, PID Controllers, 1995).
    """
    A, B, C, _ = tf2ss(num, den)
    n, c = len(A), C.ravel()

    def start(h):
        big = expm(np.block([[A, B], [np.zeros((1, n + 1))]]) * h)
        return np.linalg.solve(np.eye(n) + big[:n, :n], -big[:n, n] * d)

    def off(h):
        return float(c @ start(h)) + eps

    hs = np.linspace(0.2, 8.0, 400)
    passes = np.flatnonzero(np.diff(np.sign([off(h) for h in hs])))
    h = brentq(off, hs[passes[-1]], hs[passes[-1] + 1])  # the slowest is the stable one
    times = np.linspace(0, h, 400)
    y = []
    for t in times:
        big = expm(np.block([[A, B], [np.zeros((1, n + 1))]]) * t)
        y.append(float(c @ (big[:n, :n] @ start(h) + big[:n, n] * d)))
    return 2 * h, float(np.abs(y).max())


@pytest.mark.parametrize("eps", [0.0, 0.02])
@pytest.mark.parametrize("plant", [LAG3, FIFTH], ids=["third", "fifth"])
def test_cycle_is_that_of_the_exact_theory(plant, eps):
    # Turns wait for a sample, 1 ms: 3e-4 of a period of some seconds, and less of the swing.
    d = 0.5
    numerator, denominator = plant
    period, half = exact_cycle(numerator, denominator, d, eps)
    result = tune(RelayTuner(d, eps, tolerance=0.005), TransferFunction(*plant), until=60.0)
    assert last(result, "done") == 1.0
    assert last(result, "pu") == pytest.approx(period, rel=2e-3)
    assert last(result, "ku") == pytest.approx(
        4 * d / (np.pi * np.sqrt(half**2 - eps**2)), rel=5e-3
    )


def test_ultimate_gain_and_period_of_a_triple_lag():
    # 1 / (s + 1)³: phase -180° at √3 rad/s, gain there 1/8. The describing function leaves out what
    # 1/27 of the third harmonic adds: a few percent.
    result = tune(RelayTuner(1.0, tolerance=0.005), TransferFunction(*LAG3))
    assert last(result, "ku") == pytest.approx(8.0, rel=0.05)
    assert last(result, "pu") == pytest.approx(2 * np.pi / np.sqrt(3), rel=0.03)


def test_a_plant_with_delay():
    # e^{-s} / (s + 1): ω + arctan ω = π gives ω = 2.029, Ku = √(1 + ω²) = 2.262. Far from a sine:
    # after a turn the delay lets y go on to a = 1 - 1/e, and from there it is back at 0 after
    # ln(1 + a), so half a period is 1 + ln(2 - 1/e).
    d = Diagram("delay", step=1e-3)
    d.add(RelayTuner(1.0, tolerance=0.005), name="tuner")
    d.add(TransferFunction([1.0], [1.0, 1.0]), name="plant")
    d.add(TransportDelay(1.0), name="late")
    d.add(Constant(0.0), name="zero")
    d.add(Step(0.5, kind="boolean"), name="start")
    d.connect("zero", "tuner.reference")
    d.connect("start", "tuner.start")
    d.connect("tuner.y", "late")
    d.connect("late", "plant")
    d.connect("plant", "tuner.measurement")
    result = simulate(d, 40.0)
    half = 1 - np.exp(-1.0)
    assert last(result, "ku") == pytest.approx(4 / (np.pi * half), rel=3e-3)
    assert last(result, "pu") == pytest.approx(2 * np.log(2 * np.e - 1), rel=3e-3)


def test_relay_and_bypass():
    result = tune(
        RelayTuner(0.5, 0.05), TransferFunction(*LAG3), control=0.3, reference=0.3, until=60.0
    )
    t, y, runs = result.t, result["tuner.y"], result["tuner.running"] > 0
    assert not runs[t < 1.0 - 1e-9].any() and runs[t.searchsorted(1.0 - 1e-9)]
    assert set(np.round(y[runs], 12)) == {-0.2, 0.8}
    assert np.all(y[~runs] == 0.3)
    assert (np.diff(result["tuner.done"]) >= 0).all() and result["tuner.done"][-1] == 1.0
    # It turns where the error passes the hysteresis, and nowhere else.
    error = 0.3 - result["measured"]
    turns = np.flatnonzero(np.diff(y[runs])) + 1
    assert np.all(np.abs(error[runs][turns]) > 0.05)
    assert np.all(np.sign(error[runs][turns]) == np.sign(y[runs][turns] - 0.3))


def test_noise_below_the_hysteresis_does_little():
    clean = tune(RelayTuner(0.5, 0.05, tolerance=0.05), TransferFunction(*LAG3), until=80.0)
    noisy = tune(
        RelayTuner(0.5, 0.05, tolerance=0.05), TransferFunction(*LAG3), noise=0.003, until=80.0
    )
    assert last(noisy, "done") == 1.0
    assert last(noisy, "ku") == pytest.approx(last(clean, "ku"), rel=0.1)
    assert last(noisy, "pu") == pytest.approx(last(clean, "pu"), rel=0.1)


def test_a_plant_that_answers_the_other_way():
    straight = tune(RelayTuner(0.5, 0.01), TransferFunction(*LAG3))
    other = tune(RelayTuner(-0.5, 0.01), TransferFunction([-1.0], LAG3[1]))
    for name in ("ku", "kp", "ki", "kd"):
        assert last(other, name) == pytest.approx(-last(straight, name), rel=1e-9)
    assert last(other, "pu") == pytest.approx(last(straight, "pu"), rel=1e-9)


@pytest.mark.parametrize(
    ("rule", "kp", "ti", "td"),
    [
        ("ziegler-nichols", 0.6, 0.5, 0.125),
        ("ziegler-nichols pi", 0.45, 0.8333, 0.0),
        ("tyreus-luyben", 0.4545, 2.2, 0.1587),
        ("tyreus-luyben pi", 0.3125, 2.2, 0.0),
    ],
)
def test_gains_follow_the_rule_and_hold_the_plant(rule, kp, ti, td):
    result = tune(RelayTuner(0.5, 0.01, rule=rule), TransferFunction(*LAG3))
    ku, pu = last(result, "ku"), last(result, "pu")
    gains = [last(result, name) for name in ("kp", "ki", "kd")]
    assert gains == pytest.approx([kp * ku, kp * ku / (ti * pu), kp * ku * td * pu], rel=1e-3)
    d = Diagram("tuned", step=1e-3)
    d.add(PID(*gains, period=1e-3), name="pid")
    d.add(TransferFunction(*LAG3), name="plant")
    d.add(Step(0.0, 1.0), name="reference")
    d.connect("reference", "pid.reference")
    d.connect("plant", "pid.measurement")
    d.connect("pid.y", "plant")
    y = simulate(d, 60.0)["plant"]
    assert y[-1] == pytest.approx(1.0, abs=0.02)
    assert y.max() < (1.8 if rule.startswith("ziegler") else 1.4)


def test_breaking_off_and_starting_again():
    d = Diagram("again", step=1e-3)
    d.add(RelayTuner(0.5, 0.01, cycles=2), name="tuner")
    d.add(TransferFunction(*LAG3), name="plant")
    d.add(Constant(0.0), name="zero")
    start = d.input("start", kind="boolean")
    d.connect("zero", "tuner.reference")
    d.connect("plant", "tuner.measurement")
    d.connect("tuner.y", "plant")
    d.connect(start, "tuner.start")
    with d.compile().instantiate() as run:

        def go(started, seconds):
            run.set("start", started)
            run.run(round(seconds * 1000))
            return [float(run.get(f"tuner.{name}")) for name in ("running", "done", "ku")]

        assert go(1.0, 3.0) == [1.0, 0.0, 0.0]
        assert go(0.0, 1.0) == [0.0, 0.0, 0.0]
        running, done, first = go(1.0, 30.0)
        assert (running, done) == (0.0, 1.0) and first > 0
        assert go(0.0, 1.0) == [0.0, 1.0, first]  # kept until the next start
        assert go(1.0, 1.0) == [1.0, 0.0, 0.0]
        assert go(1.0, 30.0)[2] == pytest.approx(first, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"amplitude": 0.0}, "other than 0"),
        ({"amplitude": 1.0, "hysteresis": -1.0}, "0 or above"),
        ({"amplitude": 1.0, "cycles": 0}, "`cycles` is a whole number from 1"),
        ({"amplitude": 1.0, "tolerance": 0.0}, "one positive number"),
        ({"amplitude": 1.0, "rule": "mine"}, "rule is one of 'ziegler-nichols'"),
    ],
)
def test_wrong_parameters_are_refused(arguments, message):
    with pytest.raises(DiagramError, match=message):
        RelayTuner(**arguments)
