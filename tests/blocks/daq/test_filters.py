"""Anti-alias filters and decimation: gains measured from their outputs, against scipy's."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import signal

from biella import Diagram, DiagramError, linearize, simulate
from biella.blocks import AntiAliasFilter, Decimator, Gain, Mux, Sine, Step
from biella.errors import BiellaWarning, BlockError

pytestmark = pytest.mark.engine

DESIGNS = ("butterworth", "bessel", "chebyshev", "chebyshev2", "elliptic")


def measure_gain(block: AntiAliasFilter, frequency: float) -> complex:
    """Return the gain for a sine, from whole periods after the transient."""
    step = 1 / (200 * max(frequency, 100.0))
    d = Diagram(step=step)
    source = d.add(Sine(1.0, frequency, unit="V"))
    d.add(block, name="filter")
    d.connect(source, block)
    settled = 20 / np.abs(block.poles.real).min()  # exp(-20) = 2e-9
    result = simulate(d, settled + 3 / frequency, record=["filter"])
    count = round(3 / frequency / step)
    t, y = result.t[-count:], result["filter"][-count:]
    w = 2 * np.pi * frequency * t
    c = np.linalg.lstsq(np.column_stack([np.sin(w), np.cos(w)]), y, rcond=None)[0]
    return complex(c[0], c[1])


@pytest.mark.parametrize("order", [1, 2, 5, 8])
@pytest.mark.parametrize("design", DESIGNS)
def test_gain_is_that_of_the_design(design: str, order: int) -> None:
    block = AntiAliasFilter(100.0, order, design=design, ripple=1.0, attenuation=50.0)
    for frequency in (30.0, 100.0, 260.0):
        expected = block.response(frequency)[0]
        assert measure_gain(block, frequency) == pytest.approx(expected, abs=2e-5)


def level(block: AntiAliasFilter, frequency: float) -> float:
    return float(20 * np.log10(abs(measure_gain(block, frequency))))


@pytest.mark.parametrize("design", ["butterworth", "bessel"])
@pytest.mark.parametrize("order", [2, 4, 7])
def test_three_decibels_at_the_cutoff(design: str, order: int) -> None:
    block = AntiAliasFilter(100.0, order, design=design)
    assert level(block, 100.0) == pytest.approx(-3.0103, abs=0.01)
    assert level(block, 5.0) == pytest.approx(0.0, abs=0.03)


def test_pass_and_stop_bands_keep_their_promises() -> None:
    # Butterworth falls by 6.02 dB an octave and pole.
    butterworth = AntiAliasFilter(100.0, 4)
    assert level(butterworth, 800.0) - level(butterworth, 1600.0) == pytest.approx(24.08, abs=0.05)
    assert level(AntiAliasFilter(100.0, 5, design="chebyshev", ripple=1.0), 100.0) == pytest.approx(
        -1.0, abs=0.01
    )
    flat_stop = AntiAliasFilter(100.0, 5, design="chebyshev2", attenuation=40.0)
    assert level(flat_stop, 100.0) == pytest.approx(-40.0, abs=0.1)
    elliptic = AntiAliasFilter(100.0, 6, design="elliptic", ripple=0.5, attenuation=60.0)
    assert all(level(elliptic, f) > -0.51 for f in (20.0, 60.0, 90.0, 100.0))
    assert all(level(elliptic, f) < -59.9 for f in (145.0, 200.0, 400.0))


def test_poles_of_high_orders_are_kept() -> None:
    d = Diagram(step=1e-5)
    u = d.input("u", unit="V")
    block = d.add(AntiAliasFilter(1000.0, 20), name="filter")
    d.connect(u, block)
    d.output("y", block)
    found = np.linalg.eigvals(linearize(d).A)
    for pole in block.poles:
        assert np.abs(found - pole).min() < 1e-9 * abs(pole)


def test_channels_are_filtered_apart() -> None:
    d = Diagram(step=1e-5)
    both = d.add(Mux(2))
    d.connect(d.add(Step(0.0, 1.0)), both["u1"])
    d.connect(d.add(Step(0.005, 2.0)), both["u2"])
    block = d.add(AntiAliasFilter(300.0, 3), name="filter")
    d.connect(both, block)
    y = simulate(d, 0.02, record=["filter"])["filter"]
    assert np.allclose(2 * y[:1500, 0], y[500:2000, 1], atol=1e-9)


@pytest.mark.parametrize("solver", ["euler", "heun", "rk3", "rk4", "dopri5"])
@pytest.mark.parametrize("design", ["butterworth", "elliptic"])
def test_a_step_too_large_is_warned_of_and_one_below_it_holds(solver: str, design: str) -> None:
    block = AntiAliasFilter(1000.0, design=design)
    told = block.warn_of_step(1e-3, solver)
    limit = float(re.search(r"up to (\S+) s, or an implicit", told)[1])  # type: ignore[index]

    def last(step: float) -> float:
        d = Diagram(step=step, solver=solver)
        d.add(block, name="filter")
        d.connect(d.add(Step(0.0)), block)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BiellaWarning)
            try:
                y = simulate(d, 3000 * step, record=["filter"])["filter"]
            except BlockError:  # it grew beyond all numbers
                return float("inf")
            return float(np.abs(y[-100:]).max())

    assert last(0.95 * limit) < 1.3
    assert last(1.06 * limit) > 10.0
    d = Diagram(step=1e-3, solver=solver)
    d.connect(d.add(Sine()), d.add(AntiAliasFilter(1000.0)))
    with pytest.warns(BiellaWarning, match=r"too fast for steps of 0\.001 s with"):
        d.compile()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        d.compile(solver="trapezoidal")


@pytest.mark.parametrize("options", [{}, {"filter": "cic", "stages": 4}, {"taps": 31}])
def test_decimation_is_filtering_and_leaving_out(options: Any, run_block: Any) -> None:
    u = np.random.default_rng(3).normal(size=(1000, 2))
    block = Decimator(5, **options)
    taps = block.parameters[0].value
    y = run_block(block, u)
    expected = signal.lfilter(taps, 1.0, u, axis=0)[::5]
    assert np.allclose(y[::5], expected, rtol=0, atol=1e-14)
    assert np.array_equal(y, np.repeat(y[::5], 5, axis=0))


def test_cic_is_a_chain_of_sums() -> None:
    # |H| = |sin(pi f R) / (R sin(pi f))|^N, the response of N integrators and N combs.
    taps = Decimator(8, "cic", stages=3).parameters[0].value
    f = np.linspace(0.01, 0.49, 50)
    _, h = signal.freqz(taps, worN=2 * np.pi * f)
    expected = np.abs(np.sin(np.pi * f * 8) / (8 * np.sin(np.pi * f))) ** 3
    assert np.allclose(np.abs(h), expected, rtol=1e-9, atol=1e-12)


def tone_after_decimation(frequency: float, **options: Any) -> float:
    """Return the level in dB of a sine at 1 kHz samples that were 10 kHz samples before."""
    d = Diagram(step=1e-4)
    block = d.add(Decimator(10, **options), name="decimator")
    d.connect(d.add(Sine(1.0, frequency)), block)
    y = simulate(d, 2.2, record=["decimator"])["decimator"][2000:22000:10]
    power = np.abs(np.fft.rfft(y * signal.windows.hann(y.size))) / (y.size / 4)
    return float(20 * np.log10(power.max() + 1e-12))


def test_what_would_fold_is_suppressed() -> None:
    # 930 Hz folds to 70 Hz at 1 kHz; without a filter it comes whole. firwin's Hamming window
    # promises some 53 dB in the stop band.
    assert tone_after_decimation(930.0, filter="none") == pytest.approx(0.0, abs=0.1)
    assert tone_after_decimation(930.0) < -50
    assert tone_after_decimation(70.0) == pytest.approx(0.0, abs=0.05)
    # A CIC of three stages: 20 log10 |sin(pi f R) / (R sin(pi f))|^3 = -66.5 dB there.
    expected = 60 * np.log10(np.sin(0.93 * np.pi) / (10 * np.sin(0.093 * np.pi)))
    assert tone_after_decimation(930.0, filter="cic") == pytest.approx(expected, abs=0.1)


def test_blocks_behind_run_at_the_lower_rate() -> None:
    d = Diagram(step=1e-4)
    decimator = d.add(Decimator(4, period=5e-4), name="decimator")
    d.connect(d.add(Sine(1.0, 30.0)), decimator)
    second = d.add(Decimator(2, "none"), name="second")
    d.connect(decimator, second)
    d.connect(second, d.add(Gain(2.0), name="gain"))
    rates = {block.path: block.rate for block in d.compile().blocks}
    assert (rates["decimator"], rates["second"], rates["gain"]) == (
        "0.0005 s",
        "0.002 s",
        "0.004 s",
    )
    result = simulate(d, 0.1)
    assert np.array_equal(result["gain"][::40], 2 * result["decimator"][::40])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AntiAliasFilter(-100.0), "positive number, in Hz; got -100"),
        (lambda: AntiAliasFilter(100.0, 0), "whole number from 1 to 20, got 0"),
        (lambda: AntiAliasFilter(100.0, design="brick"), "one of 'butterworth', 'bessel'"),
        (lambda: AntiAliasFilter(100.0, design="chebyshev", ripple=0), "above 0 dB"),
        (lambda: AntiAliasFilter(100.0, design="elliptic", attenuation=0.1), "below its atten"),
        (lambda: Decimator(1), "whole number from 2"),
        (lambda: Decimator(4, "iir"), "one of 'fir', 'cic', 'none'"),
        (lambda: Decimator(4, cutoff=1.5), "above 0 and up to 1"),
        (lambda: Decimator(4, "cic", stages=0), "from 1 to 8"),
    ],
)
def test_wrong_parameters_say_what_is_possible(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        make()
