"""Captures of triggers in results and in their files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks import Expression, Sine, Trigger
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


def test_without_an_event_the_reason_is_reported() -> None:
    result = run(Trigger(5.0))
    with pytest.raises(ResultError, match="has no capture: its event did not occur"):
        result.capture("trigger")
    with pytest.raises(ResultError, match=r"there is no Trigger `scope`.* Triggers: trigger"):
        result.capture("scope")
    late = run(Trigger(0.0, pre=0, post=2000))
    with pytest.raises(ResultError, match="were missing"):
        late.capture("trigger")


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
