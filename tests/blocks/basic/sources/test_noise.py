"""Noise: its bits, its distribution, its spectrum."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import scipy.signal
import scipy.stats

from biella import Diagram, DiagramError, simulate
from biella.blocks.basic.sources._noise import Noise

pytestmark = pytest.mark.engine

MASK = 2**64 - 1


def mix(v: int) -> int:
    v = (v ^ v >> 30) * 0xBF58476D1CE4E5B9 & MASK
    v = (v ^ v >> 27) * 0x94D049BB133111EB & MASK
    return v ^ v >> 31


def uniform(seed: int, element: int, sample: int) -> float:
    """Return the number in (0, 1) that the block makes its sample from, with Python's integers."""
    key = int(np.float64(seed).view(np.uint64))
    stream = mix((key + (element + 1) * 0xD1342543DE82EF95) & MASK)
    bits = mix((stream + sample * 0x9E3779B97F4A7C15) & MASK)
    return ((bits >> 12) + 0.5) * 2.0**-52


def test_bits_are_the_same_everywhere(run_block: Any) -> None:
    y = run_block(Noise(1.0, seed=1), ticks=4)
    assert [float(v).hex() for v in y] == GOLDEN_NORMAL
    y = run_block(Noise(1.0, seed=1, distribution="uniform"), ticks=4)
    assert [float(v).hex() for v in y] == GOLDEN_UNIFORM


def test_tail_bits_are_the_same_everywhere(run_block: Any) -> None:
    # Beyond 1.44 standard deviations another branch computes, with the block's own logarithm.
    y = run_block(Noise(1.0, seed=1), ticks=3000)
    tail = y[np.abs(y) > 3.0][:4]
    assert [float(v).hex() for v in tail] == GOLDEN_TAIL


def test_samples_are_normal_quantiles_of_the_hash(run_block: Any) -> None:
    y = run_block(Noise(seed=123456789, width=3), ticks=2000)
    normal = NormalDist()
    oracle = [[normal.inv_cdf(uniform(123456789, k, n)) for k in range(3)] for n in range(2000)]
    # Python's is the same approximation with another logarithm: a few roundings apart.
    assert np.allclose(y, oracle, rtol=2e-15, atol=1e-16)


def unmix(v: int) -> int:
    v ^= v >> 31 ^ v >> 62
    v = v * pow(0x94D049BB133111EB, -1, 2**64) & MASK
    v ^= v >> 27 ^ v >> 54
    v = v * pow(0xBF58476D1CE4E5B9, -1, 2**64) & MASK
    return v ^ v >> 30 ^ v >> 60


def seed_for(k: int) -> float:
    """Return a seed whose first sample is made from (k + 1/2) / 2^52: the hash run backwards."""
    for low in range(4096):
        key = (unmix(unmix(k << 12 | low)) - 0xD1342543DE82EF95) & MASK
        seed = float(np.uint64(key).view(np.float64))
        if np.isfinite(seed):
            return seed
    raise AssertionError


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("k", [0, 1, 1000, 62_500, 63_000, 10**9, 2**48, 2**50, 2**51 - 1])
def test_all_the_way_into_the_tails(run_block: Any, k: int, mirrored: bool) -> None:
    # The rational functions change at p = 0.075 and at p = exp(-25), which is k = 62,546. scipy
    # computes the quantile in another way altogether.
    k = 2**52 - 1 - k if mirrored else k
    (y,) = run_block(Noise(), ticks=1, parameters={"seed": seed_for(k)})
    below = scipy.stats.norm.ppf((k + 0.5) * 2.0**-52)
    oracle = -scipy.stats.norm.ppf((2**52 - 0.5 - k) * 2.0**-52) if mirrored else below
    assert y == pytest.approx(oracle, rel=1e-14, abs=1e-30)


@pytest.fixture(scope="module")
def samples() -> Any:
    d = Diagram(step=1e-3)
    d.add(Noise([1.0, 2.0], mean=[0.0, 5.0], seed=7), name="noise")
    return simulate(d, 400.0, record=["noise"])["noise"]


def test_mean_and_deviation(samples: Any) -> None:
    # n = 400,001: the mean scatters by 1/√n = 0.0016 σ, the deviation by 1/√(2n); five of each.
    assert np.allclose(samples.mean(axis=0), [0.0, 5.0], atol=5 * 2.0 / np.sqrt(4e5))
    assert np.allclose(samples.std(axis=0), [1.0, 2.0], rtol=5 / np.sqrt(8e5))


def test_distribution(samples: Any) -> None:
    # A fixed seed makes this a fixed fact, not a chance.
    assert scipy.stats.kstest(samples[:, 0], "norm").pvalue > 0.01
    assert scipy.stats.kstest((samples[:, 1] - 5) / 2, "norm").pvalue > 0.01
    assert scipy.stats.kurtosis(samples[:, 0]) == pytest.approx(0.0, abs=5 * np.sqrt(24 / 4e5))


def test_samples_and_elements_are_independent(samples: Any) -> None:
    a, b = (samples - samples.mean(axis=0)).T / samples.std(axis=0)[:, None]
    n = len(a)
    for lag in (1, 2, 3, 10, 1000):
        assert abs(np.mean(a[lag:] * a[:-lag])) < 5 / np.sqrt(n)
    for lag in (0, 1, 2, 10):
        assert abs(np.mean(a[lag:] * b[: n - lag])) < 5 / np.sqrt(n)
    assert abs(np.mean(a**2 * b**2) - 1) < 5 * np.sqrt(8 / n)


def test_seeds_are_independent(run_block: Any) -> None:
    y = np.array([run_block(Noise(seed=seed), ticks=20_000) for seed in (0, 1, 2, 2**52)])
    correlation = np.corrcoef(y) - np.eye(4)
    assert np.abs(correlation).max() < 5 / np.sqrt(20_000)


def test_density_is_two_sided(run_block: Any) -> None:
    """The spectrum of the held signal, seen at a much finer step, is `density` below its band."""
    density, period, step = 0.02, 0.01, 0.001
    y = run_block(Noise(density=density, seed=3), step=step, ticks=1_000_000, period=period)
    assert y.std() == pytest.approx(np.sqrt(density / period), rel=0.02)
    frequency, measured = scipy.signal.welch(
        y, 1 / step, nperseg=4096, return_onesided=False, detrend=False
    )
    # A hold of T seconds shapes the spectrum by sinc²(f T); to 40 Hz it is above one half. 487
    # averages scatter by 6% (Hann windows overlapping by half): over many lines, less.
    expected = density * np.sinc(frequency * period) ** 2
    band = np.abs(frequency) < 40
    ratio = measured[band] / expected[band]
    assert np.abs(ratio - 1).max() < 0.3
    for low in (0, 10, 20, 30):
        part = (np.abs(frequency[band]) >= low) & (np.abs(frequency[band]) < low + 10)
        assert ratio[part].mean() == pytest.approx(1.0, abs=0.04)


def test_is_held_over_its_period(run_block: Any) -> None:
    fast = run_block(Noise(seed=5), ticks=20)
    slow = run_block(Noise(seed=5), ticks=100, period=0.05)
    assert np.array_equal(slow, np.repeat(fast, 5))


def test_uniform(run_block: Any) -> None:
    y = run_block(Noise(2.0, mean=1.0, seed=9, distribution="uniform"), ticks=50_000)
    assert scipy.stats.kstest(y, "uniform", (1 - 2 * 3**0.5, 4 * 3**0.5)).pvalue > 0.01
    assert y[0] == pytest.approx(1 + 2 * 12**0.5 * (uniform(9, 0, 0) - 0.5), rel=1e-15)


def test_goes_on_from_a_checkpoint() -> None:
    d = Diagram(step=0.01)
    d.add(Noise(seed=4), name="noise")
    whole = simulate(d, 1.0)["noise"]
    first = simulate(d, 0.5)
    second = simulate(d, 1.0, checkpoint=first.checkpoint)
    assert np.array_equal(second["noise"], whole[50:])


def test_seed_and_deviation_are_settable(run_block: Any) -> None:
    y = run_block(Noise(1.0, seed=1), ticks=10, parameters={"seed": 2, "std": 3.0})
    assert np.array_equal(y, run_block(Noise(3.0, seed=2), ticks=10))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Noise(1.0, density=1.0), "`std` or `density`, not both"),
        (lambda: Noise(-1.0), "`std` must not be negative"),
        (lambda: Noise(seed=1.5), "`seed` is a whole number"),  # type: ignore[arg-type]
        (lambda: Noise(seed=-1), "`seed` is a whole number"),
        (lambda: Noise([1.0, 2.0], width=3), "`width` is 3, but there are 2 values"),
        (lambda: Noise(distribution="pink"), "distribution is one of 'normal', 'uniform'"),
    ],
)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        make()


# Taken from this engine on x86-64 with gcc; a platform where they differ rounds differently.
GOLDEN_NORMAL = [
    "0x1.5ac69498a3391p-2",
    "0x1.2a7b21089ee91p-1",
    "0x1.983d70f409c5cp-3",
    "0x1.4e8f6046ca933p+0",
]
GOLDEN_UNIFORM = [
    "0x1.d63b3a09b80d1p-2",
    "0x1.86460488306d7p-1",
    "0x1.183b65cebba6fp-2",
    "0x1.6699fed49412fp+0",
]
GOLDEN_TAIL = [
    "0x1.8fd645e0410b9p+1",
    "0x1.8733c5138b15dp+1",
    "-0x1.c1f59a5d937afp+1",
    "-0x1.81722bdb6c4acp+1",
]
