"""Data acquisition in whole diagrams: exported, in subsystems, through all of a chain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest

from biella import Diagram, DiagramError, Subsystem, simulate
from biella.blocks import (
    ADC,
    DAC,
    AntiAliasFilter,
    Constant,
    Decimator,
    Expression,
    Mux,
    PWMInput,
    PWMOutput,
    Scaling,
    ScanList,
    Selector,
    Sine,
    Trigger,
)

pytestmark = pytest.mark.engine


def chain() -> Diagram:
    """Return every block of the family, one behind the other."""
    d = Diagram("chain", step=1e-4)
    both = d.add(Mux(2))
    d.connect(d.add(Sine(5.0, 60.0, unit="V")), both["u1"])
    d.connect(d.add(Sine(3.0, 90.0, unit="V")), both["u2"])
    filter_ = d.add(AntiAliasFilter(400.0, 5, design="chebyshev"), name="filter")
    scan = d.add(ScanList(2, 5e-4, skew=1.3e-4, jitter=1e-5, inl=2.0, dnl=0.5), name="scan")
    fewer = d.add(Decimator(4), name="fewer")
    newtons = d.add(Scaling(10.0, 2.0, unit="N"), name="newtons")
    scope = d.add(Trigger(10.0, pre=5, post=9, unit="N"), name="scope")
    first = d.add(Selector([0]))
    duty = d.add(Scaling(readings=[-100, 100], values=[0.0, 1.0], unit="1", reading_unit="N"))
    out, into = d.add(PWMOutput(170.0), name="out"), d.add(PWMInput(), name="in")
    volts = d.add(Scaling(10.0, unit="V", reading_unit="1"))
    dac = d.add(DAC(10, (0, 10), dnl=0.4), name="dac")
    links: list[tuple[Any, Any]] = [
        (both, filter_),
        (filter_, scan),
        (scan["y"], fewer),
        (fewer, newtons),
    ]
    links += [(newtons, scope["u"]), (newtons, first), (first, duty), (duty, out), (out, into)]
    links += [(into["duty"], volts), (volts, dac)]
    for source, target in links:
        d.connect(source, target)
    d.output("level", dac["y"])
    d.output("ready", scope["ready"])
    return d


def test_the_chain_gives_the_same_in_an_fmu(tmp_path: Path) -> None:
    d = chain()
    here = simulate(d, 0.2)
    d.export_fmu(tmp_path / "chain.fmu")
    there = fmpy.simulate_fmu(
        str(tmp_path / "chain.fmu"), stop_time=0.2, output_interval=1e-4, output=["level", "ready"]
    )
    assert there["level"].size == here.length and np.ptp(here["level"]) > 1.0
    # FMPy keeps a value after each step; the outputs at its end are those of the next tick.
    assert np.array_equal(there["level"], here["level"])
    assert np.array_equal(there["ready"], here["ready"])


def test_a_run_in_two_parts_is_one_run() -> None:
    whole = simulate(chain(), 0.2)
    first = simulate(chain(), 0.0777)
    second = simulate(chain(), 0.2, checkpoint=first.checkpoint)
    assert np.array_equal(second["dac.y"], whole["dac.y"][777:])
    expected, found = whole.capture("scope"), second.capture("scope")
    assert np.array_equal(found["u"], expected["u"])
    assert found.t == pytest.approx(expected.t, abs=1e-12)


def test_rates_are_those_of_the_instruments() -> None:
    rates = {block.path: block.rate for block in chain().compile().blocks}
    # A scan lasts 0.13 ms, so it shows at the second tick.
    assert rates["scan"] == "0.0001 s"
    assert rates["fewer"] == "0.0005 s + 0.0002 s"
    assert rates["newtons"] == rates["scope"] == "0.002 s + 0.0002 s"


def test_a_converter_stands_still_with_its_subsystem() -> None:
    inner = Diagram()
    u = inner.input("u", unit="V")
    adc = inner.add(ADC(24, jitter=1e-6, period=1e-3))
    inner.connect(u, adc)
    inner.output("y", adc["y"])
    d = Diagram(step=1e-4)
    part = d.add(Subsystem(inner, enable=True), name="part")
    ramp = d.add(Expression("10*t", unit="V"))
    d.connect(ramp, part["u"])
    d.connect(d.add(Expression("t < 0.02 or t > 0.03", kind="boolean")), part["enable"])
    result = simulate(d, 0.05)
    y = result["part.y"]
    still = (result.t > 0.0205) & (result.t < 0.0295)
    assert np.ptp(y[still]) == 0.0 and y[-1] == pytest.approx(0.5, abs=0.02)


def test_a_period_in_a_triggered_subsystem_is_refused() -> None:
    inner = Diagram()
    u = inner.input("u", unit="V")
    adc = inner.add(ADC(16, jitter=1e-6, period=1e-3), name="adc")
    inner.connect(u, adc)
    inner.output("y", adc["y"])
    d = Diagram(step=1e-4)
    part = d.add(Subsystem(inner, trigger="rising"), name="part")
    d.connect(d.add(Constant(1.0, unit="V")), part["u"])
    d.connect(d.add(Sine()), part["trigger"])
    with pytest.raises(DiagramError, match="cannot have its own period"):
        d.compile()
