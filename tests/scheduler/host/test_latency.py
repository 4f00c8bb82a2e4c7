"""Measured lateness: shares of deadlines missed, at one rate and at others."""

from __future__ import annotations

import numpy as np
import pytest

from biella import BiellaError
from biella.scheduler.host._latency import (
    EDGES_US,
    Variant,
    count_bins,
    list_shares,
    list_variants,
    measure,
    share_late,
    summarize,
)
from biella.scheduler.host._privileges import Privileges


def stalled(period_ns, stall_ns=4_000_000, every_ns=100_000_000, total_ns=10**9):
    """Return the lateness of deadlines on a machine that stands still for 4 ms in each 100 ms."""
    deadlines = np.arange(0, total_ns, period_ns)
    return np.maximum(0, stall_ns - deadlines % every_ns)


def test_shares_of_one_rate_predict_those_of_others():
    """By the closed form: late by more than a during stall - a of each 100 ms, at any rate."""
    for rate in (500, 1000, 5000):
        measured = stalled(100_000)
        exact = max(0.0, 4e-3 - 0.5 / rate) / 0.1
        # Up to one deadline more or less in each stall of either.
        assert share_late(measured, rate) == pytest.approx(exact, abs=1e-3 + 1e-12)
        own = stalled(1_000_000_000 // rate)
        assert share_late(own, rate) == pytest.approx(exact, abs=10 / rate + 1e-12)
    assert share_late(np.array([0, 600_000]), 1000, load=0.5) == 0.5
    assert share_late(np.array([0, 600_000]), 1000, load=0.3) == 0.0


def test_quantiles_are_values_that_were_measured():
    """The smallest value that at least the share q does not exceed."""
    late = np.arange(1, 1001) * 1000
    assert summarize(np.random.default_rng(1).permutation(late)) == {
        "min": 1.0, "median": 500.0, "p99": 990.0, "p99.9": 999.0, "max": 1000.0,
    }  # fmt: skip
    assert set(summarize(np.array([7000])).values()) == {7.0}


def test_every_wake_up_is_in_one_bin():
    assert EDGES_US[:4] == (1, 2, 5, 10) and EDGES_US[-1] == 500_000
    late = np.array([0, 999, 1000, 1999, 2000, 499_999_999, 500_000_000, 10**10])
    counts = count_bins(late)
    assert len(counts) == len(EDGES_US) + 1 and sum(counts) == late.size
    assert counts[:3] == [2, 2, 1] and counts[-2:] == [1, 2]


def test_all_variants_are_listed_within_the_range_of_rates():
    variants = list_variants(cpu=0, rate=1000)
    assert variants[0].name == "plain" and not variants[0].privileges.exact_timers
    assert len({variant.name for variant in variants}) == len(variants)
    assert list_variants(0, 1e6)[-1].spin_ns == 250  # a quarter of the period at most
    for rate in (0.5, 2e6):
        with pytest.raises(BiellaError, match="1 Hz to 1 MHz"):
            list_variants(0, rate)


def test_shares_fall_with_the_rate():
    late = {"a": np.array([0, 40_000, 400_000, 4_000_000])}
    shares = [found["a"] for found in list_shares(late, load=0.5).values()]
    assert shares == sorted(shares) and shares[0] == 0.0 and shares[-1] == 0.75


@pytest.mark.engine
def test_a_measurement_has_as_many_wake_ups_as_deadlines():
    plain = Variant("plain", Privileges(exact_timers=False))
    measure([plain], rate=2000, seconds=0.1)
    assert plain.lateness_ns.size == 200 and plain.refusals == []
    assert np.all(plain.lateness_ns >= 0)
    with pytest.raises(BiellaError, match="--seconds"):
        measure([plain], rate=2000, seconds=0)
