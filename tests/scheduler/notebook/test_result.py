"""Results in notebooks."""

import re

import numpy as np
import pytest

from biella import Result
from biella.scheduler.notebook import _result
from biella.scheduler.results._signals import Signal


def cells(html, path):
    row = re.findall(rf"<tr><td>{re.escape(path)}</td>.*?</tr>", html)[0]
    return re.findall(r"<td[^>]*>(.*?)</td>", row)


def test_each_signal_has_its_range_its_last_value_and_a_curve():
    t = np.linspace(0.0, 1.0, 1001)
    x = np.sin(9 * t)
    r = Result.from_arrays(t, {"x": x, "f": np.stack([t, -t], 1)}, info={"diagram": "<b>"})
    made = r._repr_html_()
    assert "Result of &#x27;&lt;b&gt;&#x27;" in made and "1001 times" in made
    *_, least, most, last, curve = cells(made, "x")
    assert float(least) == pytest.approx(x.min(), rel=1e-5)
    assert float(most) == pytest.approx(x.max(), rel=1e-5)
    assert float(last) == pytest.approx(x[-1], rel=1e-5) and curve.startswith("<svg")
    assert cells(made, "f")[2:6] == ["real × 2", "-1", "1", ""]


def test_no_peak_is_lost_in_the_bins():
    values = np.zeros(100_003)
    values[77_777] = 5.0
    low, high = _result._find_bins(
        Result.from_arrays(np.arange(100_003.0), {"x": values}), Signal("x")
    )
    assert len(low) == 120 and high.max() == 5.0 and low.max() == 0.0


def test_a_long_recording_is_read_in_parts(monkeypatch):
    monkeypatch.setattr(_result, "READ", 10_000)
    monkeypatch.setattr(_result, "_PART", 10)
    r = Result.from_arrays(np.arange(20_000.0), {"x": np.arange(20_000.0)})
    read, total = r.read, []

    def count(name, rows=slice(None)):
        found = read(name, rows)
        total.append(len(found))
        return found

    monkeypatch.setattr(r, "read", count)
    made = r._repr_html_()
    assert sum(total) == 120 * 10 + 1 and "120 parts of 10 rows" in made
    assert cells(made, "x")[3:6] == ["0", "19999", "19999"]


def test_enumerations_and_odd_values():
    state = Signal("state", kind="enumeration", names=("off", "<on>"))
    r = Result.from_arrays([0.0, 1.0], {state: [1.0, 2.0], Signal("bad"): [np.nan, np.nan]})
    made = r._repr_html_()
    assert cells(made, "state")[3:6] == ["off", "&lt;on&gt;", "&lt;on&gt;"]
    assert cells(made, "bad")[3:5] == ["", ""]


def test_empty_results_and_many_signals():
    assert "0 times" in Result.from_arrays([], {"x": []})._repr_html_()
    many = Result.from_arrays([0.0], {f"x{n}": [1.0] for n in range(30)})
    assert "… and 10 more" in many._repr_html_()


def test_a_file_that_is_gone_is_told_and_not_raised(tmp_path):
    path = tmp_path / "a.h5"
    Result.from_arrays([0.0, 1.0], {"x": [1.0, 2.0]}).to_hdf5(path)
    r = Result.from_hdf5(path)
    assert r.t.size == 2
    made = _result.show_result(r, "Result: x", "")
    assert "<svg" in made
    path.unlink()
    assert "cannot be read" in _result.show_result(r, "Result: x", "")
