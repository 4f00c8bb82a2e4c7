"""Measured wake-ups: quantiles, histograms, threads that take turns."""

from __future__ import annotations

import numpy as np
import pytest

from biella.scheduler.host import _latency as wakeups
from biella.scheduler.host import _system_info as machine
from biella.scheduler.host._doctor import draw_histogram
from biella.scheduler.host._latency import (
    EDGES_US,
    QUANTILES,
    Variant,
    count_bins,
    list_variants,
    measure,
    summarize,
)
from biella.scheduler.host._privileges import Grant, Privileges


def test_quantiles_are_measured_values():
    shuffled = np.random.default_rng(1).permutation(np.arange(1, 1001)) * 1000
    assert summarize(shuffled) == {
        "min": 1.0,
        "median": 500.0,
        "p99": 990.0,
        "p99.9": 999.0,
        "max": 1000.0,
    }
    # Of few, a far quantile is the worst.
    few = {"min": 1.0, "median": 5.0, "p99": 10.0, "p99.9": 10.0, "max": 10.0}
    assert summarize(np.arange(1, 11) * 1000) == few
    assert summarize(np.array([7000])) == dict.fromkeys(QUANTILES, 7.0)


def test_a_histogram_counts_each_once_and_an_edge_to_the_bin_above():
    lateness = np.array([0, 999, 1000, 1999, 2000, 50_000, 10**9])
    counts = count_bins(lateness)
    assert len(counts) == len(EDGES_US) + 1 and sum(counts) == lateness.size
    assert counts[:3] == [2, 2, 1] and counts[-1] == 1
    assert counts[EDGES_US.index(50.0) + 1] == 1
    lines = draw_histogram(Variant("plain", Privileges(), turns=[lateness[:5]]))
    assert [line.split()[:5] for line in lines] == [
        ["0", "–", "1", "µs", "2"],
        ["1", "–", "2", "µs", "2"],
        ["2", "–", "5", "µs", "1"],
    ]
    assert lines[0].count("█") == 30 > lines[2].count("█") > 0


def test_variants_take_turns_and_those_refused_take_no_part(monkeypatch):
    calls = []

    def wait(variant, period_ns, ticks):
        refused = [Grant("priority", False, "no")]
        variant.grants = refused if variant.name == "refused" else []
        if ticks:
            calls.append((variant.name, period_ns, ticks))
        return np.zeros(ticks, np.int64)

    monkeypatch.setattr(wakeups, "_wait", wait)
    variants = [Variant(name, Privileges()) for name in ("a", "refused", "b")]
    measure(variants, 1000, 0.6)
    assert calls == [("a", 1_000_000, 200), ("b", 1_000_000, 200)] * 3
    assert [v.lateness_ns.size for v in variants] == [600, 0, 600]


@pytest.mark.engine
def test_no_thread_wakes_before_its_deadline():
    variants = list_variants(machine.choose_processor(), 2000)
    measure(variants, 2000, 0.05)
    assert [v.name for v in variants if v.turns][:2] == ["plain", "exact timers"]
    for variant in variants:
        if variant.turns:
            assert variant.lateness_ns.size == 100
            assert variant.lateness_ns.min() >= 0
