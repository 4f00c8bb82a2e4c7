"""Trigger: what is captured around an event, and when the event was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella import Diagram, DiagramError, simulate
from biella.blocks import ADC, Expression, Mux, Sine, Trigger
from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import ResultError

pytestmark = pytest.mark.engine

STEP = 1e-4


def run(
    trigger: Trigger, formula: str = "sin(2*pi*50*t)", until: float = 0.1, **options: Any
) -> Any:
    d = Diagram("scope", step=STEP)
    d.add(trigger, name="trigger")
    source = d.add(Expression(formula, unit="V"), name="source")
    d.connect(source, trigger["u"])
    if "arm" in options:
        d.connect(d.add(Expression(options["arm"], kind="boolean")), trigger["arm"])
    return simulate(d, until)


@pytest.mark.parametrize(
    ("event", "level", "at"),
    [
        # The sine of 20 ms period, ready for an event from 2 ms on.
        ("rising", 0.3, 0.02 + np.arcsin(0.3) / (100 * np.pi)),
        ("falling", 0.3, 0.01 - np.arcsin(0.3) / (100 * np.pi)),
        ("leave", (-0.8, 0.8), np.arcsin(0.8) / (100 * np.pi)),
        ("enter", (-0.8, 0.8), 0.01 - np.arcsin(0.8) / (100 * np.pi)),
    ],
)
def test_an_edge_is_found_between_samples(event: str, level: Any, at: float) -> None:
    result = run(Trigger(level, event, pre=20, post=30, unit="V"))
    record = result.capture("trigger")
    # A line between two samples is off by at most h^2 |u''| / (8 |u'|), 0.53 µs at 0.8.
    assert record.info["trigger_time"] == pytest.approx(at, abs=5.4e-7)
    assert record["u"].shape == (50,) and record.units["u"] == "V"
    # The sample at the place `pre` is the first from the event on.
    assert record.t[19] < at <= record.t[20]
    assert np.allclose(record["u"], np.sin(100 * np.pi * record.t), atol=1e-12)
    ready = result.t[np.argmax(result["trigger.ready"])]
    assert ready == pytest.approx(record.t[-1] + STEP)
    assert result["trigger.time"][-1] == record.info["trigger_time"]
    assert result.t[np.argmax(result["trigger.triggered"])] == pytest.approx(record.t[20] + STEP)


def test_a_level_needs_no_edge() -> None:
    record = run(Trigger(0.1, "above", pre=0, post=5), "1 + 0*t").capture("trigger")
    assert record.t[0] == 0.0 and record.info["trigger_time"] == 0.0
    record = run(Trigger(-0.5, "below", pre=7, post=5)).capture("trigger")
    assert record["u"][7] < -0.5 <= record["u"][6]


def test_hysteresis_passes_over_noise() -> None:
    shaky = "t + 0.004*sin(2*pi*900*t)"
    assert run(Trigger(0.03, pre=0, post=9), shaky).capture("trigger").info["trigger_time"] < 0.03
    swings = "0.05*sin(2*pi*100*t) + (1.0 if t > 0.05 else 0.0)*sin(2*pi*100*t)"
    strict = run(Trigger(0.0, pre=0, post=9, hysteresis=0.2), swings).capture("trigger")
    assert strict.info["trigger_time"] == pytest.approx(0.06, abs=1e-6)


def test_pre_trigger_samples_come_first() -> None:
    # The edge at 0.02 s comes before 300 samples are there; that at 0.04 s is taken.
    record = run(Trigger(0.0, pre=300, post=10), "sin(2*pi*50*t - 0.01)").capture("trigger")
    assert record.info["trigger_time"] == pytest.approx(0.04 + 0.01 / (100 * np.pi), abs=1e-7)


def test_disarming_forgets_and_arming_waits_again() -> None:
    trigger = Trigger(0.5, pre=10, post=20)
    result = run(trigger, arm="t < 0.05 or t > 0.06")
    record = result.capture("trigger")
    assert record.t[0] > 0.06
    assert not result["trigger.ready"][np.abs(result.t - 0.055) < 0.004].any()


def test_several_channels_behind_an_adc_at_its_rate() -> None:
    d = Diagram("scope", step=STEP)
    both = d.add(Mux(2))
    d.connect(d.add(Sine(1.0, 50.0, unit="V")), both["u1"])
    d.connect(d.add(Sine(2.0, 50.0, unit="V")), both["u2"])
    adc = d.add(ADC(16, period=5e-4), name="adc")
    trigger = d.add(Trigger(1.0, source=1, pre=8, post=8, unit="V"), name="trigger")
    d.connect(both, adc)
    d.connect(adc["y"], trigger["u"])
    record = simulate(d, 0.1).capture("trigger")
    assert record["u"].shape == (16, 2)
    assert np.allclose(np.diff(record.t), 5e-4)
    expected = np.sin(100 * np.pi * record.t)[:, np.newaxis] * [1.0, 2.0]
    assert np.abs(record["u"] - expected).max() <= 10 / 2**16
    assert record["u"][7, 1] < 1.0 <= record["u"][8, 1]


def test_without_an_event_the_reason_is_reported() -> None:
    result = run(Trigger(5.0))
    with pytest.raises(ResultError, match="has no capture: its event did not occur"):
        result.capture("trigger")
    with pytest.raises(ResultError, match=r"there is no Trigger `scope`.* Triggers: trigger"):
        result.capture("scope")
    late = run(Trigger(0.0, pre=0, post=2000))
    with pytest.raises(ResultError, match="were missing"):
        late.capture("trigger")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Trigger(1.0, "sideways"), "one of 'above', 'below'"),
        (lambda: Trigger((1.0, 0.0), "leave"), "lower < upper"),
        (lambda: Trigger(1.0, "enter"), "a pair"),
        (lambda: Trigger([1.0, 2.0]), "one number"),
        (lambda: Trigger(1.0, hysteresis=-0.1), "0 or more"),
        (lambda: Trigger(1.0, pre=-1), "from 0 to 10000000, got -1"),
        (lambda: Trigger(1.0, post=0), "from 1 to 10000000, got 0"),
        (lambda: run(Trigger(1.0, source=2)), "source 2 is not among the 1 elements"),
    ],
)
def test_wrong_parameters_say_what_is_possible(make: Any, message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        make()


@pytest.mark.parametrize("how", ["streamed", "saved", "saved again"])
def test_records_are_kept_in_the_file(how: str, tmp_path: Any) -> None:
    def diagram() -> Diagram:
        d = Diagram("rig", step=1e-3)
        wave = d.add(Sine([1.0, 2.0], 5.0, unit="V"))
        for name, level in (("scope", 0.5), ("deaf", 9.0)):
            d.connect(wave, d.add(Trigger(level, pre=5, post=20, unit="V"), name=name)["u"])
        return d

    wanted = simulate(diagram(), 0.3)
    path = tmp_path / "run.h5"
    if how == "streamed":
        simulate(diagram(), 0.3, out=path)
    else:
        wanted.to_hdf5(path)
    found = Result.from_hdf5(path)
    if how == "saved again":
        found.to_hdf5(tmp_path / "again.h5")
        found = Result.from_hdf5(tmp_path / "again.h5")
    record, expected = found.capture("scope"), wanted.capture("scope")
    assert np.array_equal(record.t, expected.t) and np.array_equal(record["u"], expected["u"])
    assert record.info == expected.info and record.units == {"u": "V"}
    with pytest.raises(ResultError, match="`deaf` has no capture: its event did not occur"):
        found.capture("deaf")
    with pytest.raises(ResultError, match=r"no Trigger `x` in this run\. Triggers: scope, deaf"):
        found.capture("x")
