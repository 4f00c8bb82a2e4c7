"""The chain of all sensors: each number of its data sheet, measured from its output."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.signal
import scipy.stats

from biella import Diagram, DiagramError, simulate
from biella.blocks import Constant, Instrument, Sensor, Step, TorqueMeter
from biella.blocks.sensors import presets

pytestmark = pytest.mark.engine

RATE = 10e3
STEP = 1 / RATE
GOLDEN = "a3567273525d2894"


def low_pass(bandwidth: float, order: int, damping: float = math.sqrt(0.5)) -> Any:
    """Return numerator and denominator of the low-pass in s, from its definition."""
    if order == 1:
        w = 2 * np.pi * bandwidth
        return [w], [1.0, w]
    # |H(2π bandwidth)|² = 1/2, solved for the natural frequency with numpy's roots.
    ratio = np.roots([1.0, 4 * damping**2 - 2, -1.0])
    w = 2 * np.pi * bandwidth / math.sqrt(ratio.real.max())
    return [w**2], [1.0, 2 * damping * w, w**2]


def response(system: Any, frequency: Any) -> Any:
    shape = np.shape(frequency)
    return scipy.signal.freqs(*system, 2 * np.pi * np.ravel(frequency))[1].reshape(shape)


def amplitude(y: Any, frequency: float, step: float) -> complex:
    """Return the complex amplitude of whole periods of a sine."""
    t = np.arange(len(y)) * step
    return complex(2 * np.mean(y * np.exp(-2j * np.pi * frequency * t)))


# Bandwidth


@pytest.mark.parametrize(
    ("order", "damping"), [(1, math.sqrt(0.5)), (2, math.sqrt(0.5)), (2, 0.2), (2, 30.0)]
)
def test_response_is_3_db_down_at_the_bandwidth(measure: Any, order: int, damping: float) -> None:
    bandwidth = 100.0
    sensor = Instrument(bandwidth=bandwidth, order=order, damping=damping)
    system = low_pass(bandwidth, order, damping)
    for frequency in (10.0, 50.0, 100.0, 200.0):
        t = np.arange(round(1.0 * RATE)) * STEP
        y = measure(Sensor(sensor), step=STEP, u=np.sin(2 * np.pi * frequency * t))["y"]
        half = len(y) // 2  # the start has died away: e^(-0.2 · 2π · 100 · 0.5) is 1e-27
        seen = amplitude(y[half:], frequency, STEP) * 1j
        # An input straight between samples has sinc²(f / rate) of the sine: 0.9987 at 200 Hz; and
        # images near the sample rate, which the low-pass takes away.
        assert seen == pytest.approx(complex(response(system, frequency)), abs=2e-3)
        if frequency == bandwidth:
            assert 20 * np.log10(abs(seen)) == pytest.approx(-3.01, abs=0.01)


@pytest.mark.parametrize(
    ("order", "bandwidth"), [(1, 3.0), (1, 3e3), (2, 30.0), (2, 4e5), (1, 4e7)]
)
def test_low_pass_is_that_of_scipy(measure: Any, order: int, bandwidth: float) -> None:
    """To rounding, first-order-hold equivalents of scipy's, far above the sample rate too."""
    u = np.random.default_rng(1).normal(size=300)
    y = measure(Sensor(Instrument(bandwidth=bandwidth, order=order)), step=STEP, u=u)["y"]
    a, b, c, d, _ = scipy.signal.cont2discrete(
        scipy.signal.tf2ss(*low_pass(bandwidth, order)), STEP, method="foh"
    )
    x0 = np.linalg.solve(np.eye(order) - a, b * u[0])[:, 0]  # settled at the first value
    _, expected, _ = scipy.signal.dlsim((a, b, c, d, STEP), u, x0=x0)
    assert y == pytest.approx(expected[:, 0], abs=1e-9)


def test_starts_settled(measure: Any) -> None:
    y = measure(TorqueMeter(replace(presets.TORQUE_METER, noise=0, drift=0)), torque=[30] * 9)
    assert y["y"] == pytest.approx(y["y"][0], rel=1e-12)


# Noise


def expected_spectrum(density: float, system: Any, segment: int) -> Any:
    """Return what Welch's method gives on average for samples of noise behind a low-pass.

    The samples' spectrum is that of the noise with all that aliases; a window smears it.
    """
    frequency = np.fft.rfftfreq(16 * segment, STEP)
    spectrum = np.full_like(frequency, density**2)
    if system is not None:
        images = np.abs(frequency[:, None] + RATE * np.arange(-300, 301))
        spectrum *= np.sum(np.abs(response(system, images)) ** 2, axis=1)
    covariance = np.fft.irfft(spectrum)[:segment] * RATE / 2
    window = scipy.signal.get_window("hann", segment)
    shared = scipy.signal.correlate(window, window)[segment - 1 :] / np.sum(window**2)
    return 2 * STEP * (2 * np.fft.fft(covariance * shared).real - covariance[0])[: segment // 2 + 1]


@pytest.mark.parametrize(
    ("bandwidth", "order", "damping"),
    [
        (None, 1, 0.7),
        (300.0, 1, 0.7),
        (300.0, 2, math.sqrt(0.5)),
        (500.0, 2, 0.1),
        (2e4, 2, 0.7),
        (1.0, 2, 78.0),
    ],
)
def test_spectrum_of_noise(
    measure: Any, bandwidth: float | None, order: int, damping: float
) -> None:
    density, segment, segments = 2e-3, 256, 2000
    sensor = Instrument(noise=density, bandwidth=bandwidth, order=order, damping=damping)
    u = np.zeros(segment * segments)
    y = measure(Sensor(sensor, seed=5), step=STEP, u=u)["y"]
    _, seen = scipy.signal.welch(y, RATE, "hann", segment, 0, detrend=False)
    system = None if bandwidth is None else low_pass(bandwidth, order, damping)
    ratio = (seen / expected_spectrum(density, system, segment))[2:-2]
    # Segments that do not overlap: χ² of 2 · 2000 degrees of freedom at each line, within a band
    # that one of 10⁴ lines leaves.
    low, high = scipy.stats.chi2.ppf([5e-5, 1 - 5e-5], 2 * segments) / (2 * segments)
    assert ratio.min() > low and ratio.max() < high
    # All lines together: 1 / √(2000 · 125) is 0.2 %.
    assert ratio.mean() == pytest.approx(1.0, abs=0.008)


@pytest.mark.parametrize(("order", "equivalent"), [(1, np.pi / 2), (2, np.pi / 2 / math.sqrt(2))])
@pytest.mark.parametrize("bandwidth", [500.0, 1e5])
def test_deviation_of_noise_is_that_of_its_band(
    measure: Any, order: int, equivalent: float, bandwidth: float
) -> None:
    """density · √(noise bandwidth), also for a band far above the sample rate: samples alias."""
    sensor = Instrument(noise=1e-3, bandwidth=bandwidth, order=order)
    y = measure(Sensor(sensor, channels=8), step=STEP, u=np.zeros((50_000, 8)))["y"]
    # 400,000 samples, the narrow band's correlated over about 7: √(7 / 800,000) is 0.3 %.
    assert y.std() == pytest.approx(1e-3 * math.sqrt(equivalent * bandwidth), rel=0.015)
    assert abs(np.corrcoef(y.T) - np.eye(8)).max() < 5 * math.sqrt(7 / 50_000)
    assert y[0].std() > 0.0  # it has been noisy before the first sample


@pytest.mark.parametrize("bandwidth", [0.01, 1.0, 20.0])
def test_noise_far_below_the_sample_rate(measure: Any, bandwidth: float) -> None:
    """White noise integrated twice: second differences of variance 2/3 h³ and correlation 1/4."""
    sensor = Instrument(noise=1.0, bandwidth=bandwidth, order=2)
    y = measure(Sensor(sensor, channels=16), step=STEP, u=np.zeros((5000, 16)))["y"]
    second = np.diff(y, 2, axis=0)
    intensity = (2 * np.pi * bandwidth) ** 4 / 2
    # 80,000 samples scatter by 0.5 %; the low-pass differs from a double integrator by ω h = 1.3 %
    # at 20 Hz.
    assert np.mean(second**2) == pytest.approx(2 / 3 * intensity * STEP**3, rel=0.04)
    assert np.mean(second[1:] * second[:-1]) / np.mean(second**2) == pytest.approx(0.25, abs=0.02)


def test_noise_does_not_depend_on_the_sample_time(measure: Any) -> None:
    sensor = Instrument(noise=1e-3, bandwidth=100.0)
    found = [
        measure(Sensor(sensor, channels=8), step=step, u=np.zeros((round(20 / step), 8)))["y"].std()
        for step in (1e-4, 1e-3, 5e-3)
    ]
    assert found == pytest.approx([1e-3 * math.sqrt(np.pi / 2 * 100)] * 3, rel=0.03)


def test_seeds_and_samples(measure: Any) -> None:
    u, sensor = np.zeros(1000), Instrument(noise=1.0, random_walk=1.0)
    one, same, other = (measure(Sensor(sensor, seed=s), u=u)["y"] for s in (1, 1, 2))
    assert np.array_equal(one, same)
    assert abs(np.corrcoef(np.diff(one), np.diff(other))[0, 1]) < 0.15


def test_drift_and_random_walk(measure: Any) -> None:
    u = np.full((1001, 64), 2.0)
    drift = measure(Sensor(Instrument(drift=-0.5), channels=64), step=0.01, u=u)["y"]
    t = np.arange(1001) * 0.01
    assert drift == pytest.approx(np.tile(2.0 - 0.5 * t[:, None], 64), abs=1e-12)
    walk = measure(Sensor(Instrument(random_walk=0.3), channels=64), step=0.01, u=u)["y"] - 2.0
    assert np.all(walk[0] == 0.0)
    for n in (100, 400, 1000):  # variance grows as random_walk² t: χ² of 64 degrees of freedom
        low, high = scipy.stats.chi2.ppf([1e-3, 1 - 1e-3], 64) / 64
        assert low < np.mean(walk[n] ** 2) / (0.3**2 * t[n]) < high


def test_noise_and_random_walk_are_independent(measure: Any) -> None:
    # Differences of noise of deviation 1 and of a walk with steps of 1: 2 + 1, and 5 if both were
    # one sequence.
    sensor = Instrument(noise=math.sqrt(2 * STEP), random_walk=1 / math.sqrt(STEP))
    y = measure(Sensor(sensor), step=STEP, u=np.zeros(50_000))["y"]
    assert np.var(np.diff(y)) == pytest.approx(3.0, rel=0.05)


# Straight line, hysteresis, limits, steps


def sweep(full_scale: float, cycles: int = 3, samples: int = 800) -> Any:
    """Return cycles between both ends of full scale, from 0."""
    return full_scale * scipy.signal.sawtooth(
        2 * np.pi * (np.arange(cycles * samples) / samples + 0.25), 0.5
    )


def test_gain_and_offset(measure: Any) -> None:
    sensor = Sensor(Instrument(gain=-0.1, offset=2.5, unit="V"), "N.m")
    assert measure(sensor, u=[0.0, 10.0, -20.0])["y"] == pytest.approx([2.5, 1.5, 4.5])
    changed = measure(sensor, u=[0.0, 10.0], parameters={"gain": 1.0, "offset": 0.0})["y"]
    assert changed == pytest.approx([0.0, 10.0])


def test_nonlinearity_is_the_largest_deviation(measure: Any) -> None:
    u = np.linspace(-50.0, 50.0, 2001)
    y = measure(Sensor(Instrument(gain=0.2, full_scale=50.0, nonlinearity=3e-3)), u=u)["y"]
    deviation = (y / 0.2 - u) / 50.0
    assert np.abs(deviation).max() == pytest.approx(3e-3, rel=1e-5)
    assert deviation[[0, 1000, 2000]] == pytest.approx(0.0, abs=1e-15)


def test_nonlinearity_by_polynomial_and_table(measure: Any) -> None:
    u = np.linspace(-5.0, 5.0, 301)
    y = measure(Sensor(Instrument(full_scale=4.0, nonlinearity=[0.01, 0.0, 0.02])), u=u)["y"]
    assert y - u == pytest.approx(4.0 * np.polyval([0.01, 0.0, 0.02], u / 4.0), abs=1e-14)
    table = np.array([(-1.0, 0.01), (-0.2, 0.0), (0.5, -0.03), (1.0, 0.0)])
    y = measure(Sensor(Instrument(full_scale=4.0, nonlinearity=table)), u=u)["y"]
    assert y - u == pytest.approx(4.0 * np.interp(u / 4.0, *table.T), abs=1e-14)


def test_width_and_area_of_the_hysteresis_loop(measure: Any) -> None:
    full_scale, width = 20.0, 5e-3
    u = sweep(full_scale)
    y = measure(Sensor(Instrument(full_scale=full_scale, hysteresis=width)), u=u)["y"]
    cycle = slice(1000, 1801)  # from the upper end to the upper end, without the first rise
    down, up = np.split((y[cycle] - u[cycle])[:-1], 2)
    loop = (down[1:] - up[:0:-1]) / full_scale  # at the same u
    assert loop.max() == pytest.approx(width, rel=1e-9)
    assert loop[len(loop) // 2] == pytest.approx(width, rel=1e-9)
    # It opens over half of full scale from either end: width · (2 - 1/2) of full scale squared.
    area = -np.trapezoid(y[cycle], u[cycle]) / full_scale**2
    assert abs(area) == pytest.approx(1.5 * width, rel=1e-4)


def test_hysteresis_does_not_depend_on_the_rate_and_spares_small_cycles(measure: Any) -> None:
    sensor = Instrument(full_scale=1.0, hysteresis=0.01)
    fast, slow = (measure(Sensor(sensor), u=sweep(1.0, 1, n))["y"] for n in (80, 800))
    assert slow[::10] == pytest.approx(fast, abs=1e-14)
    small = 0.2 * sweep(1.0)
    y = measure(Sensor(sensor), u=small)["y"]
    assert y == pytest.approx(small * (1 - 0.5 * 0.01 * 4), abs=1e-15)  # a line through both ways


@pytest.fixture(scope="module")
def white() -> Any:
    """Noise of deviation 1 in 64 channels: without a low-pass, density² / (2 step)."""
    d = Diagram(step=1e-3)
    sensor = d.add(Sensor(Instrument(noise=math.sqrt(2e-3)), channels=64, seed=9), name="sensor")
    d.connect(d.add(Constant(np.zeros(64))), sensor["u"])
    return simulate(d, 30.0, record=["sensor"])["sensor"]


def test_noise_is_normal_out_to_its_tails(white: Any) -> None:
    # Two million samples by layers under the bell: all bins from -5 to 5, and what is beyond.
    w = white.ravel()
    edges = np.concatenate([[-np.inf], np.linspace(-5, 5, 401), [np.inf]])
    expected = np.diff(scipy.stats.norm.cdf(edges)) * w.size
    counted, _ = np.histogram(w, edges)
    few = expected < 5
    off = (counted - expected)[~few] ** 2 / expected[~few]
    assert 0.001 < scipy.stats.chi2.sf(off.sum(), (~few).sum()) < 0.999
    assert abs(counted[few].sum() - expected[few].sum()) < 5 * math.sqrt(expected[few].sum())
    # Within wide bins, of a fifth of a deviation, the layers' corners show more.
    wide = counted[1:-1].reshape(-1, 8).sum(axis=1), expected[1:-1].reshape(-1, 8).sum(axis=1)
    assert np.abs((wide[0] - wide[1]) / np.sqrt(wide[1])).max() < 4
    # Beyond the last layer, 3.2137, another way of drawing begins: nothing is missing around there.
    beyond = np.abs(w[np.abs(w) > 3.1])
    tail = scipy.stats.truncnorm(3.1, np.inf)
    assert scipy.stats.kstest(beyond, tail.cdf).pvalue > 0.01
    assert abs((w**4).mean() - 3) < 5 * math.sqrt(96 / w.size)


def test_channels_and_samples_are_independent(white: Any) -> None:
    n = len(white)
    assert np.abs(np.corrcoef(white.T) - np.eye(64)).max() < 5 / math.sqrt(n)
    for lag in (1, 2, 3):
        assert abs((white[lag:] * white[:-lag]).mean()) < 5 / math.sqrt(white.size)
        assert abs((white[:, lag:] * white[:, :-lag]).mean()) < 5 / math.sqrt(white.size)


def test_noise_has_the_same_bits_everywhere(white: Any) -> None:
    # Two million of them, by all ways of drawing.
    assert hashlib.sha256(white.astype("<f8").tobytes()).hexdigest()[:16] == GOLDEN


def test_saturation_and_resolution(measure: Any) -> None:
    u = np.linspace(-3.0, 3.0, 5001)
    sensor = Instrument(gain=2.0, limits=(-4.0, 5.0), resolution=0.05)
    y = measure(Sensor(sensor), u=u)["y"]
    assert (y.min(), y.max()) == pytest.approx((-4.0, 5.0))
    steps = np.unique(np.round(np.diff(y), 9))
    assert steps == pytest.approx([0.0, 0.05])
    inside = (2 * u > -4.0) & (2 * u < 5.0)
    error = (y - 2 * u)[inside]
    assert np.abs(error).max() <= 0.025 + 1e-12
    assert error.std() == pytest.approx(0.05 / math.sqrt(12), rel=0.01)


def test_rounding_does_not_lead_beyond_the_limits(measure: Any) -> None:
    u = np.linspace(-30.0, 30.0, 301)
    y = measure(Sensor(Instrument(limits=(-6.0, 10.0), resolution=4.0)), u=u)["y"]
    assert np.unique(y).tolist() == [-6.0, -4.0, 0.0, 4.0, 8.0, 10.0]


# Latency


@pytest.mark.parametrize("samples", [1, 3, 40])
def test_latency_by_cross_correlation(measure: Any, samples: int) -> None:
    u = np.random.default_rng(2).normal(size=4000)
    y = measure(Sensor(Instrument(latency=samples * STEP)), step=STEP, u=u)["y"]
    correlation = scipy.signal.correlate(y, u)
    lags = scipy.signal.correlation_lags(len(y), len(u))
    assert lags[np.argmax(correlation)] == samples
    assert y[samples:] == pytest.approx(u[:-samples], abs=0)
    assert np.all(y[:samples] == 0.0)


def test_latency_between_samples(measure: Any) -> None:
    t = np.arange(2000) * STEP
    y = measure(Sensor(Instrument(latency=2.3 * STEP)), step=STEP, u=np.sin(2 * np.pi * 50 * t))[
        "y"
    ]
    phase = np.angle(amplitude(y[1000:], 50.0, STEP) * 1j)
    # A straight line between samples 0.0314 rad apart is off by at most 0.0314² / 8 of the sine.
    assert -phase / (2 * np.pi * 50) == pytest.approx(2.3 * STEP, rel=1e-3)


def test_latency_adds_to_that_of_the_low_pass(measure: Any) -> None:
    u = np.random.default_rng(3).normal(size=500)
    prompt = measure(Sensor(Instrument(bandwidth=800.0)), step=STEP, u=u)["y"]
    late = measure(Sensor(Instrument(bandwidth=800.0, latency=5 * STEP)), step=STEP, u=u)["y"]
    assert np.array_equal(late[5:], prompt[:-5])


# Faults


def test_dropout_holds_or_falls_back(measure: Any) -> None:
    u, lost = np.arange(10.0), np.isin(np.arange(10), (3, 4, 7))
    y = measure(Sensor(), u=u, dropout=lost)["y"]
    assert y.tolist() == [0, 1, 2, 2, 2, 5, 6, 6, 8, 9]
    y = measure(Sensor(Instrument(dropout_value=-1.0)), u=u, dropout=lost)["y"]
    assert y.tolist() == [0, 1, 2, -1, -1, 5, 6, -1, 8, 9]


def test_stuck_at(measure: Any) -> None:
    u, on = np.arange(6.0), [0, 0, 1, 1, 0, 0]
    assert measure(Sensor(), u=u, stuck=on)["y"].tolist() == [0, 1, 1, 1, 4, 5]
    at = Instrument(stuck_value=9.0)
    assert measure(Sensor(at), u=u, stuck=on)["y"].tolist() == [0, 1, 9, 9, 4, 5]
    both = measure(Sensor(at), u=u, stuck=on, dropout=[0, 1, 1, 1, 1, 0])["y"]
    assert both.tolist() == [0, 0, 9, 9, 9, 5]


def test_faults_of_single_channels_and_from_the_start(measure: Any) -> None:
    u = np.column_stack([np.arange(1.0, 5.0), np.arange(1.0, 5.0)])
    lost = [[1, 0], [1, 0], [0, 1], [0, 1]]
    sensor = Sensor(Instrument(offset=0.5), channels=2, faults="each")
    y = measure(sensor, u=u, dropout=lost)["y"]
    assert y.tolist() == [[0.5, 1.5], [0.5, 2.5], [3.5, 2.5], [4.5, 2.5]]


def test_sensor_goes_on_behind_a_fault(measure: Any) -> None:
    u = np.where(np.arange(400) < 100, 0.0, 1.0)
    lost = (np.arange(400) >= 50) & (np.arange(400) < 300)
    plain = measure(Sensor(Instrument(bandwidth=1.0)), u=u)["y"]
    faulty = measure(Sensor(Instrument(bandwidth=1.0)), u=u, dropout=lost)["y"]
    assert np.array_equal(faulty[300:], plain[300:])


# In a diagram


def test_units_reach_the_output() -> None:
    d = Diagram(step=1e-3)
    meter = d.add(TorqueMeter(presets.TORQUE_METER), name="meter")
    d.connect(d.add(Constant(1.0, unit="N.m")), meter)
    plan = d.compile()
    (info,) = [block for block in plan.blocks if block.path == "meter"]
    assert [port.unit for port in info.outputs] == ["V"]
    wrong = Diagram(step=1e-3)
    meter = wrong.add(TorqueMeter(), name="meter")
    wrong.connect(wrong.add(Constant(1.0, unit="N")), meter)
    with pytest.raises(DiagramError, match=r"N\.m"):
        wrong.compile()


def test_a_latency_breaks_a_loop() -> None:
    d = Diagram(step=1e-3)
    sensor = d.add(Sensor(Instrument(gain=0.5, latency=2e-3, offset=1.0)), name="sensor")
    d.connect(sensor, sensor["u"])
    y = simulate(d, 0.006, record=["sensor"])["sensor"]
    assert y.tolist() == [1, 1, 1.5, 1.5, 1.75, 1.75, 1.875]


def test_runs_at_its_period() -> None:
    d = Diagram(step=1e-3)
    sensor = d.add(Sensor(Instrument(), period=5e-3), name="sensor")
    d.connect(d.add(Step(at=0.007, to=1.0)), sensor)
    assert simulate(d, 0.012, record=["sensor"])["sensor"].tolist() == [0.0] * 10 + [1.0] * 3


def test_ideal_keeps_the_scale_only() -> None:
    ideal = presets.TORQUE_METER.ideal()
    assert ideal == Instrument(gain=0.1, unit="V")


MISTAKES = [
    (lambda: Instrument(bandwidth=-5.0), "`bandwidth` .* above 0, or None"),
    (lambda: Instrument(bandwidth=0.0), "`bandwidth` .* above 0, or None"),
    (lambda: Instrument(order=3), "`order` .* is 1 or 2"),
    (lambda: Instrument(damping=0.0), "`damping` .* above 0"),
    (lambda: Instrument(noise=-1.0), "`noise` .* 0 or above"),
    (lambda: Instrument(resolution=-1.0), "`resolution` .* 0 or above"),
    (lambda: Instrument(latency=-1.0), "`latency` .* 0 or above"),
    (lambda: Instrument(gain=0.0), "`gain` .* other than 0"),
    (lambda: Instrument(noise=math.nan), "`noise` must be finite"),
    (lambda: Instrument(limits=(1.0, -1.0)), r"lowest first .* got \(1.0, -1.0\)"),
    (lambda: Instrument(limits=5.0), "`limits` .* lowest first"),  # type: ignore[arg-type]
    (lambda: Instrument(hysteresis=0.1), "give `full_scale` too"),
    (lambda: Instrument(nonlinearity=0.1), "give `full_scale` too"),
    (lambda: Instrument(full_scale=-1.0), "`full_scale` .* above 0"),
    (lambda: Instrument(full_scale=1.0, nonlinearity=np.zeros((2, 3))), r"shape \(2, 3\)"),
    (lambda: Instrument(full_scale=1.0, nonlinearity=[(0, 0), (0, 1)]), "must rise"),
    (lambda: Sensor(Instrument(gain=[1.0, 2.0]), channels=3), "2 values, .* 3 channels"),
    (lambda: Sensor(channels=0), "`channels` is a whole number from 1"),
    (lambda: Sensor(seed=-1), "`seed` is a whole number"),
    (lambda: Sensor(faults="some"), "'all', 'each'"),
    (lambda: Sensor(0.1), "Sensor takes an Instrument"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "message"), MISTAKES)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        make()


def test_latency_shorter_than_a_sample_is_refused(measure: Any) -> None:
    with pytest.raises(DiagramError, match=r"Use 0, at least 0\.001 s"):
        measure(Sensor(Instrument(latency=1e-4)), step=1e-3, u=[0.0, 1.0])
