"""The benchmark of versions of FMI runs, and all participants compute the same."""

from __future__ import annotations

import pytest
from studies import fmi_versions

pytestmark = pytest.mark.engine


def test_all_participants_follow_the_recursion(tmp_path):
    """x += h (u - x) with u = t; every participant has a time."""
    times = fmi_versions.measure(tmp_path, 300, 1)
    assert len(times) == 4 and all(seconds > 0 for seconds in times.values())
    x = 0.0
    for k in range(300):
        x += fmi_versions.STEP * (k * fmi_versions.STEP - x)
    made = fmi_versions.make_fmus(tmp_path)
    for version in ("2.0", "3.0"):
        assert fmi_versions.enter(made[version], 300)()[1] == pytest.approx(x, rel=1e-12)
