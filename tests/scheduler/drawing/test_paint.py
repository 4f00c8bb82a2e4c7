"""Words of a drawing."""

from __future__ import annotations

import pytest

from biella.scheduler.drawing._paint import describe_rate


@pytest.mark.parametrize(
    ("rate", "words"),
    [("continuous", "continuous"), ("0.001 s", "1 ms"), ("2.5e-05 s + 1e-05 s", "25 µs + 10 µs"),
     ("2 s", "2 s"), ("5e-09 s", "5 ns")],
)  # fmt: skip
def test_rates_in_words(rate: str, words: str) -> None:
    assert describe_rate(rate) == words
