"""Comparison of two results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import UnknownSignalError

from .conftest import T


class TestCompare:
    def test_equal(self, result: Result, tmp_path: Path) -> None:
        result.to_hdf5(tmp_path / "r.h5")
        report = result.compare(Result.from_hdf5(tmp_path / "r.h5"), rtol=0.0, atol=0.0)
        assert report
        assert "agree within rtol=0, atol=0" in str(report)
        assert report.notes == []

    def test_difference_is_measured(self) -> None:
        a = Result.from_arrays([0, 1, 2, 3], {"x": [1.0, 2.0, 4.0, 8.0]})
        b = Result.from_arrays([0, 1, 2, 3], {"x": [1.0, 2.0, 5.0, 10.0]})
        report = a.compare(b, rtol=0.0, atol=0.5)
        assert not report
        assert report["x"].max_abs == 2.0
        assert report["x"].max_rel == pytest.approx(0.2)
        assert report["x"].first_time == 2.0
        assert "t = 2 s" in str(report)
        assert a.compare(b, atol=2.0)
        assert a.compare(b, rtol=0.2, atol=0.0)
        assert not a.compare(b, rtol=0.19, atol=0.0)

    def test_vectors(self) -> None:
        a = Result.from_arrays([0, 1], {"v": [[1.0, 2.0], [3.0, 4.0]]})
        b = Result.from_arrays([0, 1], {"v": [[1.0, 2.0], [3.0, 4.5]]})
        assert a.compare(b)["v"].first_time == 1.0
        assert a.compare(b)["v"].max_abs == 0.5

    @pytest.mark.parametrize(
        ("x", "y", "equal"),
        [
            (np.nan, np.nan, True),
            (np.inf, np.inf, True),
            (np.inf, -np.inf, False),
            (np.nan, 1.0, False),
            (1.0, np.inf, False),
            (0.0, -0.0, True),
        ],
    )
    def test_special_numbers(self, x: float, y: float, equal: bool) -> None:
        a, b = (Result.from_arrays([0.0], {"x": [value]}) for value in (x, y))
        assert bool(a.compare(b)) is equal

    def test_missing_signals_are_a_difference_unless_named(self, result: Result) -> None:
        other = Result.from_arrays(T, {"pid.u": result["pid.u"], "new": T})
        report = result.compare(other)
        assert not report
        assert report.only_right == ("new",)
        assert "Only in the first: ref.y, encoder.speed" in str(report)
        assert result.compare(other, signals=["pid.u"])
        with pytest.raises(UnknownSignalError, match="ref"):
            result.compare(other, signals=["ref"])

    def test_other_times_are_reported(self) -> None:
        fine = np.arange(1001) * 1e-3
        coarse = np.nextafter(fine[::10], 2.0)  # another bit, as another step size gives
        a = Result.from_arrays(fine, {"x": fine})
        b = Result.from_arrays(coarse, {"x": coarse})
        report = a.compare(b)
        assert report and report.times == (101, 1001, 101)
        assert "Compared at the 101 common times of 1001 and 101." in str(report)
        assert b.compare(a) and b.compare(a).times == (101, 101, 1001)

    def test_no_common_time_is_not_equal(self) -> None:
        a = Result.from_arrays([0.0, 1.0], {"x": [0.0, 0.0]})
        b = Result.from_arrays([0.5, 1.5], {"x": [0.0, 0.0]})
        assert not a.compare(b)
        assert not a.compare(Result.from_arrays([], {"x": []}))

    def test_units_and_widths(self) -> None:
        def make(unit: str, values: object = (1.0,)) -> Result:
            return Result.from_arrays([0.0], {"x": np.array(values)}, units={"x": unit})

        assert make("N.m").compare(make("J"))
        assert "unit rpm against rad/s" in str(make("rpm").compare(make("rad/s")))
        assert not make("rpm").compare(make("rad/s"))
        assert "width 1 against 2" in str(make("N").compare(make("N", [[1.0, 1.0]])))
