"""The schedule of a plan as text."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.engine


def test_the_report_lists_blocks_in_execution_order(crossed):
    report = crossed.compile().report()
    lines = report.splitlines()
    order = [line.split()[1] for line in lines if line.strip() and line.split()[0].isdigit()]
    assert order == ["c", "pair", "k", "pair"]
