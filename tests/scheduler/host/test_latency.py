"""Measured lateness: shares of deadlines missed, at one rate and at others."""

from __future__ import annotations

import numpy as np
import pytest

from biella.scheduler.host._latency import (
    share_late,
)


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
