"""Smallest and largest values that an FMU declares by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu

from biella import BiellaError, Diagram
from biella.blocks import (
    ADC,
    PID,
    Chirp,
    Constant,
    Counter,
    Derivative,
    Integrator,
    Pulse,
    Quantizer,
    RateLimiter,
    Saturation,
    Sine,
)


def list_ranges(diagram: Diagram, path: Path, **options: Any) -> dict[str, tuple[Any, Any]]:
    diagram.export_fmu(path, sources=False, **options)
    assert validate_fmu(str(path)) == []
    variables = fmpy.read_model_description(str(path)).modelVariables
    return {
        v.name: (v.min and float(v.min), v.max and float(v.max))
        for v in variables
        if v.min is not None or v.max is not None
    }


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_parameters_with_a_range(tmp_path: Path, version: str) -> None:
    d = Diagram("ranges", step=1e-3)
    u = d.input("u")
    d.add(Quantizer(0.1), "steps", u=u)
    d.add(RateLimiter(2.0, np.inf), "rate", u=u)
    d.add(Derivative(0.01), "slope", u=u)
    d.add(Pulse(0.2, 0.5), "pulse")
    d.add(Chirp(1.0, 10.0, 5.0), "linear")
    d.add(Chirp(1.0, 10.0, 5.0, method="logarithmic"), "sweep")
    d.output("y", d["steps"])
    found = list_ranges(d, tmp_path / "x.fmu", version=version)
    assert found == {
        "steps.interval": (0.0, None),
        "rate.rising": (0.0, None),
        "rate.falling": (0.0, None),
        "slope.filter_time": (0.0, None),
        "pulse.period": (0.0, None),
        "pulse.duty": (0.0, 1.0),
        "linear.duration": (0.0, None),
        "sweep.duration": (0.0, None),
        "sweep.f0": (0.0, None),
        "sweep.f1": (0.0, None),
    }


def make_limited() -> Diagram:
    d = Diagram("limited", step=1e-3)
    u = d.add(Sine(amplitude=3.0, frequency=7.0), "u")
    limit = d.add(Saturation(-1.0, 2.0), "limit", u=u)
    pair = d.add(Saturation([-1.0, -4.0], [2.0, 1.0]), "pair")
    d.connect(d.add(Constant([9.0, -9.0]), "far"), pair)
    pid = d.add(PID(kp=9.0, limits=(-5.0, np.inf), period=2e-3), "pid", reference=u)
    d.connect(d.add(Integrator(0.0), "x", u=limit), pid["measurement"])
    adc = d.add(ADC(8, range=(-4.0, 4.0), period=2e-3), "adc", u=u)
    pulse = d.add(Pulse(4e-3, 0.5, kind="boolean"), "pulse")
    count = d.add(Counter(lower=0, upper=5), "count", u=pulse)
    outputs: dict[str, Any] = {
        "limit_": limit, "pair_": pair, "pid_": pid["y"], "code": adc["code"], "count_": count
    }  # fmt: skip
    for name, port in outputs.items():
        d.output(name, port)
    return d


OUTPUTS: dict[str, tuple[Any, Any]] = {
    "limit_": (-1.0, 2.0),
    "pair_": (-4.0, 2.0),
    "pid_": (-5.0, None),
    "code": (0.0, 255.0),
    "count_": (0.0, 5.0),
}


def test_outputs_with_a_range_that_a_tool_cannot_change(tmp_path: Path) -> None:
    d = make_limited()
    found = list_ranges(d, tmp_path / "x.fmu", version="3.0", parameters=[])
    assert found == OUTPUTS
    # The code of a converter is limited by its bits, which are no parameter.
    shown = list_ranges(d, tmp_path / "y.fmu", version="3.0")
    assert {name for name in shown if name in OUTPUTS} == {"code"}
    # Where only one end is a parameter of the FMU, the other one is declared.
    one = list_ranges(d, tmp_path / "z.fmu", version="3.0", parameters=["limit.upper"])
    assert one["limit_"] == (-1.0, None)
    local = list_ranges(d, tmp_path / "l.fmu", version="3.0", parameters=[], local=["limit*"])
    assert local["limit_"] == (-1.0, 2.0)
    own = list_ranges(
        d, tmp_path / "o.fmu", version="3.0", parameters=[], limits={"limit_": (-9.0, 9.0)}
    )
    assert own["limit_"] == (-9.0, 9.0)


@pytest.mark.parametrize("kind", ["me", "both"])
def test_outputs_have_none_in_model_exchange(tmp_path: Path, kind: str) -> None:
    """While the tool integrates, modes are kept, and an output passes its limit by a little."""
    found = list_ranges(make_limited(), tmp_path / "x.fmu", kind=kind, parameters=[])
    assert found == {}


def test_outputs_stay_within_their_ranges(tmp_path: Path) -> None:
    """Exactly, whatever the communication step is."""
    path = make_limited().export_fmu(
        tmp_path / "x.fmu", version="3.0", parameters=[], sources=False
    )
    for step in (1e-3, 3.7e-4, 2.9e-3):
        run = fmpy.simulate_fmu(str(path), stop_time=0.5, output_interval=step, step_size=step)
        for name, (low, high) in OUTPUTS.items():
            values = run[name]
            assert low is None or values.min() >= low, name
            assert high is None or values.max() <= high, name
        assert run["limit_"].max() == 2.0 and run["limit_"].min() == -1.0


def test_a_value_outside_the_range_is_an_error(tmp_path: Path) -> None:
    d = Diagram("wrong", step=1e-3)
    d.output("y", d.add(Pulse(0.2, 0.5), "pulse"))
    with pytest.raises(BiellaError, match=r"`pulse.duty` is 2, outside its range from 0 to 1"):
        d.export_fmu(tmp_path / "x.fmu", parameters={"pulse.duty": 2.0})
    assert not (tmp_path / "x.fmu").exists()
