"""ADC, scan list and DAC: their specifications, measured from their outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import signal

from biella import Diagram, DiagramError, simulate
from biella.blocks import (
    ADC,
    DAC,
    Counter,
    Expression,
    Gain,
    Mux,
    PythonBlock,
    Ramp,
    ScanList,
    Sine,
    UnitDelay,
)
from biella.blocks.authoring import AbstractBlock
from biella.blocks.core._ports import Port

pytestmark = pytest.mark.engine

Array = NDArray[np.float64]


class Follow(PythonBlock):
    """y = f(t) in volts."""

    def __init__(self, function: Callable[[float], Any]) -> None:
        self.function = function
        super().__init__(outputs=[Port("y", width=np.size(function(0.0)), unit="V")])

    def output(self, t: float, x: Any, u: Any) -> Any:
        return self.function(t)


def run(source: AbstractBlock, block: AbstractBlock, step: float, ticks: int) -> Any:
    d = Diagram(step=step)
    d.add(source, name="source")
    d.add(block, name="block")
    d.connect(source, block)
    return simulate(d, (ticks - 1) * step, record=["block.*"])


def fit_sine(y: Array, t: Array, frequency: float) -> tuple[float, float, Array]:
    """Return amplitude, phase and residual of the least-squares sine: IEEE 1241's test."""
    w = 2 * np.pi * frequency * t
    basis = np.column_stack([np.sin(w), np.cos(w), np.ones_like(t)])
    c = np.linalg.lstsq(basis, y, rcond=None)[0]
    return float(np.hypot(c[0], c[1])), float(np.arctan2(c[1], c[0])), y - basis @ c


def signal_to_noise(y: Array, t: Array, frequency: float) -> float:
    amplitude, _, residual = fit_sine(y, t, frequency)
    return float(10 * np.log10(0.5 * amplitude**2 / np.mean(residual**2)))


STEP, TICKS = 1e-5, 1 << 15
TONE = 1021 / (TICKS * STEP)  # a prime number of periods: every sample has a phase of its own


@pytest.mark.parametrize(
    "inl",
    [[0.0, 100.0, 0.0], [0.0, -100.0, 0.0], 60.0, [0.0, 30.0, -30.0, 0.0], [-50.0, 60.0]],
    ids=str,
)
def test_codes_change_where_inl_says(inl: Any) -> None:
    # Steeper than any real converter, up to 0.8 a code: transition c is at c - 1/2 + inl(c).
    codes = np.arange(256)
    given = np.linspace(0, 255, 257)
    curve = 4 * inl * (given / 255) * (1 - given / 255) if np.ndim(inl) == 0 else np.array(inl)
    places = np.interp(codes, np.linspace(0, 255, len(curve)), curve)
    transitions = codes - 0.5 + places
    result = run(Ramp(20.0, before=-10.0, unit="V"), ADC(8, inl=inl), 1e-4, 10001)
    passed = np.searchsorted(transitions, 256 * result.t, side="right") - 1
    off = np.abs(result["block.code"] - np.clip(passed, 0, 255))
    assert off.max() <= 1 and off.mean() < 1e-3  # on a transition, to rounding


@pytest.mark.parametrize("bits", [6, 8, 10, 12, 16, 20])
def test_effective_bits_are_the_bits(bits: int) -> None:
    # A full-scale sine through an ideal quantizer: SNR = 6.02 bits + 1.76 dB. Harmonics of few bits
    # are not white, hence the tolerance.
    q = 20.0 / 2**bits
    result = run(Sine(10.0 - q, TONE, unit="V"), ADC(bits), STEP, TICKS)
    snr = signal_to_noise(result["block.y"], result.t, TONE)
    assert (snr - 1.76) / 6.02 == pytest.approx(bits, abs=0.05)
    assert np.array_equal(result["block.y"], -10.0 + q * result["block.code"])
    assert not result["block.over"].any()


@pytest.mark.parametrize("jitter", [2e-8, 2e-7])
@pytest.mark.parametrize("frequency", [TONE, TONE / 4])
def test_jitter_costs_as_much_as_the_slope_says(jitter: float, frequency: float) -> None:
    # SNR = -20 log10(2 pi f sigma). 32,768 samples tell a variance to 1/128, or 0.034 dB; five of
    # these. 24 bits, so that quantization is far below.
    adc = ADC(24, jitter=jitter, seed=5, period=STEP)
    result = run(Sine(9.0, frequency, unit="V"), adc, STEP, TICKS)
    later = slice(4, None)  # the history fills first
    snr = signal_to_noise(result["block.y"][later], result.t[later], frequency)
    assert snr == pytest.approx(-20 * np.log10(2 * np.pi * frequency * jitter), abs=0.2)


def test_jitter_is_of_the_input_at_another_time() -> None:
    # With a slope of 1 V/s the output tells the sampling times themselves.
    result = run(Ramp(1.0, unit="V"), ADC(32, jitter=1e-6, period=2e-5), STEP, 20_000)
    late = (result["block.y"] - result.t)[::2][4:]
    assert late.std() == pytest.approx(1e-6, rel=0.03)
    assert abs(late.mean()) < 4e-6 / np.sqrt(late.size) + 1e-8


def ramp_histogram(adc: ADC, bits: int, hits: int) -> tuple[Array, Array]:
    """Return DNL and INL of transitions in codes, from a slow ramp over the range: IEEE 1241."""
    codes = 2**bits
    ticks = hits * (codes + 2)
    result = run(
        Ramp(2.0 / (hits * codes * STEP), before=-1.0 - 2.0 / codes, unit="V"), adc, STEP, ticks
    )
    counts = np.bincount(result["block.code"].astype(int), minlength=codes)
    dnl = counts[1:-1] / hits - 1.0
    first = (counts[0] / hits) - 1.5  # of the transition into code 1, whose place is 1/2
    return dnl, np.concatenate([[first], first + np.cumsum(dnl)])


def test_dnl_and_inl_are_found_again_by_a_ramp() -> None:
    bits, hits = 8, 200
    curve = 1.5 * np.sin(np.linspace(0, 2 * np.pi, 33))
    dnl, inl = ramp_histogram(ADC(bits, (-1, 1), inl=curve, dnl=0.6, seed=2), bits, hits)
    given = np.interp(np.arange(1, 256), np.linspace(0, 255, 33), curve)
    # The curve itself adds up to 1.5 sin' = 0.037 a code to the DNL that was asked for.
    assert np.abs(dnl).max() < 0.6 + 0.037 + 2 / hits
    assert np.abs(dnl).max() > 0.4 and dnl.std() == pytest.approx(0.6 / np.sqrt(6), rel=0.15)
    assert np.abs(inl - given).max() < 0.3 + 2 / hits
    # Without DNL the curve itself is found, to the resolution of the ramp.
    dnl, inl = ramp_histogram(ADC(bits, (-1, 1), inl=curve), bits, hits)
    assert np.abs(inl - given).max() < 2 / hits


def test_inl_as_a_number_is_a_bow() -> None:
    _, inl = ramp_histogram(ADC(8, (-1, 1), inl=-2.0), 8, 200)
    x = np.arange(1, 256) / 255
    assert np.abs(inl + 2.0 * 4 * x * (1 - x)).max() < 2 / 200


def test_codes_never_go_back_however_wrong_the_steps() -> None:
    bits = 10
    adc = ADC(bits, (-1, 1), inl=3.0, dnl=0.95, seed=9)
    result = run(Ramp(2.5 / (65536 * STEP), before=-1.2, unit="V"), adc, STEP, 65536)
    code = result["block.code"]
    assert (np.diff(code) >= 0).all() and set(code) == set(range(2**bits))


def test_gain_and_offset_errors_and_saturation() -> None:
    adc = ADC(16, (-5, 5), gain_error=0.01, offset_error=0.05)
    result = run(Ramp(16.0 / (4096 * STEP), before=-8.0, unit="V"), adc, STEP, 4096)
    u = -8.0 + 16.0 / 4096 * np.arange(4096)
    y, over = result["block.y"], result["block.over"]
    inside = np.abs(u) < 4.9
    slope, zero = np.polyfit(u[inside], y[inside], 1)
    assert slope == pytest.approx(1.01, abs=1e-6) and zero == pytest.approx(0.05, abs=1e-5)
    assert y.min() == -5.0 and y.max() == 5.0 - 10 / 65536
    assert np.array_equal(
        over, (1.01 * u + 0.05 < -5 - 5 / 65536) | (1.01 * u + 0.05 >= 5 - 5 / 65536)
    )


def test_halfway_and_zero() -> None:
    result = run(Ramp(1.0, before=0.0, unit="V"), ADC(4, (-8, 8)), 0.25, 8)
    assert result["block.code"].tolist() == [8, 8, 9, 9, 9, 9, 10, 10]


class TestScan:
    """Channels, skew and time."""

    def scan(self, step: float, **options: Any) -> tuple[Any, ScanList]:
        d = Diagram(step=step)
        tone = d.add(Sine(5.0, 200.0, unit="V"))
        both = d.add(Mux(3))
        block = ScanList(3, 1e-3, bits=24, **options)
        d.add(block, name="scan")
        for k in (1, 2, 3):
            d.connect(tone, both[f"u{k}"])
        d.connect(both, block)
        return simulate(d, 1.0, record=["scan.y"]), block

    @pytest.mark.parametrize("skew", [0.0, 5e-5, 1.37e-4, 3.1e-4])
    def test_skew_is_found_by_cross_correlation(self, skew: float) -> None:
        # The same sine on all channels: channel k lags by k skew. The peak of the correlation of
        # two sampled sines lies at the phase of their cross spectrum at that frequency.
        result, _ = self.scan(5e-5, skew=skew)
        y = result["scan.y"][40::20][:960]  # 192 whole periods of the tone
        spectra = np.fft.rfft(y, axis=0)
        line = round(200.0 * 960 * 1e-3)
        for k in (1, 2):
            cross = spectra[line, k] * spectra[line, 0].conjugate()
            assert np.angle(cross) / (2 * np.pi * 200.0) == pytest.approx(k * skew, abs=2e-8)
        if skew == 3.1e-4:  # and in time, interpolated 100 times: 10 µs apart
            fine = signal.resample(y, 96_000, axis=0)
            lags = signal.correlation_lags(96_000, 96_000)
            near = np.abs(lags) < 200
            found = signal.correlate(fine[:, 0], fine[:, 1])[near].argmax()
            assert lags[near][found] * 1e-5 == pytest.approx(skew, abs=1e-5)

    def test_a_scan_shows_when_it_has_ended(self) -> None:
        # 2 x 0.31 ms after the start, so at the first tick from 0.62 ms on.
        result, _ = self.scan(5e-5, skew=3.1e-4)
        changes = np.flatnonzero(np.diff(result["scan.y"][:, 1])) + 1
        assert changes[0] == 13 and set(np.diff(changes)) == {20}

    def test_between_ticks_it_is_right_to_fourth_order(self) -> None:
        errors = []
        for step in (1e-4, 5e-5):
            result, _ = self.scan(step, skew=1.25e-4)
            late = int(np.ceil(2.5e-4 / step - 1e-6))
            y = result["scan.y"][late :: round(1e-3 / step)][5:900]
            starts = 1e-3 * np.arange(5, 5 + len(y))
            times = starts[:, np.newaxis] + 1.25e-4 * np.arange(3)
            errors.append(np.abs(y - 5.0 * np.sin(2 * np.pi * 200.0 * times)).max())
        # (2 pi f h)^4 of the amplitude over 24 to 42, as the four ticks lie.
        assert errors[0] < 5.0 * (2 * np.pi * 200 * 1e-4) ** 4 / 23
        assert errors[1] < errors[0] / 12

    def test_blocks_behind_run_where_scans_end(self) -> None:
        d = Diagram(step=1e-4)
        scan = d.add(ScanList([1, 0], 1e-3, skew=2.5e-4), name="scan")
        ramp, both = d.add(Ramp(1.0, unit="V")), d.add(Mux(2))
        d.connect(ramp, both["u1"])
        d.connect(ramp, both["u2"])
        d.connect(both, scan)
        behind = d.add(UnitDelay([0.0, 0.0]), name="behind")
        d.connect(scan["y"], behind)
        d.connect(behind, d.add(Gain(1.0), name="end"))
        result = simulate(d, 5e-3)
        changes = np.flatnonzero(np.diff(result["behind"][:, 0])) + 1
        assert set(changes % 10) == {3}
        behind_rate = next(b.rate for b in d.compile().blocks if b.path == "behind")
        assert behind_rate == "0.001 s + 0.0003 s"

    def test_channels_in_any_order_and_twice(self) -> None:
        source = Follow(lambda t: [1.0, 2.0, 3.0])
        result = run(source, ScanList([2, 0, 2], 1e-3, inputs=3, bits=24, skew=1e-4), 1e-4, 50)
        assert np.abs(result["block.y"][-1] - [3.0, 1.0, 3.0]).max() < 2e-6


def test_dac_gives_what_its_code_stands_for() -> None:
    result = run(Ramp(1.0, before=-6.0, unit="V"), DAC(8, (-5, 5)), 0.01, 1200)
    u = -6.0 + 0.01 * np.arange(1200)
    q = 10 / 256
    expected = np.clip(np.floor((u + 5) / q + 0.5), 0, 255)
    assert np.array_equal(result["block.code"], expected)
    assert np.array_equal(result["block.y"], -5 + q * expected)


def test_dac_errors_are_as_asked() -> None:
    d = Diagram(step=1e-3)
    ramp = d.add(Ramp(1.0, before=-5.0, unit="V"))
    dac = d.add(DAC(8, (-5, 5), gain_error=0.02, offset_error=0.1, dnl=0.5, seed=3), name="dac")
    d.connect(ramp, dac)
    result = simulate(d, 10.0)
    _, where = np.unique(result["dac.code"], return_index=True)
    level = (result["dac.y"][where] - 0.1) / 1.02
    steps = np.diff(level) / (10 / 256) - 1
    assert np.abs(steps).max() <= 0.5 + 1e-9 and steps.std() == pytest.approx(
        0.5 / np.sqrt(6), rel=0.15
    )


def test_dac_takes_codes() -> None:
    d = Diagram(step=1e-3)
    always = d.add(Expression("t >= 0", kind="boolean"))
    count = d.add(Counter(edge="level", upper=300), name="count")
    dac = d.add(DAC(8, (0, 2.56), from_code=True), name="dac")
    d.connect(always, count["u"])
    d.connect(count, dac)
    result = simulate(d, 0.3)
    assert np.allclose(result["dac.y"], 0.01 * np.minimum(result["count"], 255), atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ADC(0), "whole number from 1 to 32, got 0"),
        (lambda: ADC(8.5), "whole number from 1 to 32"),  # type: ignore[arg-type]
        (lambda: ADC(8, (10, -10)), r"lower < upper, such as \(-10, 10\)"),
        (lambda: ADC(8, (1, 1)), "lower < upper"),
        (lambda: ADC(8, dnl=1.0), "from 0 to below 1"),
        (lambda: ADC(8, inl=[0, 60, 0, 60], dnl=0.5), "changes by up to 0.7"),
        (lambda: ADC(2, inl=[0, 1, 2, 3, 4]), "2 to 4 values for 2 bits"),
        (lambda: ADC(8, gain_error=-1.0), "above -1"),
        (lambda: ADC(8, jitter=-1e-9, period=1e-3), "0 s or more"),
        (lambda: ADC(8, jitter=1e-9), "give it a `period`"),
        (lambda: ADC(8, seed=-1), "whole number from 0"),
        (lambda: DAC(33), "from 1 to 32"),
        (lambda: ScanList([], 1e-3), "a number from 1, or a list of places"),
        (lambda: ScanList([0, 2], 1e-3, inputs=2), "channel 2 is not among 2 inputs"),
        (lambda: ScanList(5, 1e-3, skew=2.5e-4), "up to, but not including, 0.00025 s"),
    ],
)
def test_wrong_parameters_say_what_is_possible(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        make()


def test_jitter_beyond_a_quarter_of_the_step_is_refused() -> None:
    with pytest.raises(DiagramError, match=r"Use a step of at least 4e-06 s"):
        run(Sine(unit="V"), ADC(8, jitter=1e-6, period=3e-6), 1e-6, 10)


def test_a_period_between_ticks_is_refused_as_any_other() -> None:
    with pytest.raises(DiagramError, match="not an integer multiple of the step"):
        run(Sine(unit="V"), ADC(8, jitter=1e-6, period=2.5e-4), 1e-4, 10)
