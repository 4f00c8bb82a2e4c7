"""Results: names, files, plots, comparison."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biella.errors import BiellaError
from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import ResultError, Signal, SignalTable, UnknownSignalError

from .conftest import T


class TestNames:
    def test_shapes(self, result: Result) -> None:
        assert result["pid.u"].shape == (101,)
        assert result["sub.plant.force"].shape == (101, 3)
        assert result.t.shape == (101,)

    def test_is_a_mapping_in_recorded_order(self, result: Result) -> None:
        assert list(result) == result.paths
        assert len(result) == 5
        assert dict(result.items()).keys() == set(result.paths)
        assert result.get("nothing") is None
        assert result == result and len({result}) == 1

    def test_alias_and_element(self, result: Result) -> None:
        assert np.array_equal(result["ref"], result["ref.y"])
        assert np.array_equal(result["sub.plant.force[2]"], 3 * T)
        assert np.array_equal(result["pid.u[0]"], result["pid.u"])
        assert "ref" in result and "sub.plant.force[1]" in result
        assert "lost" not in result and "sub.plant.force[3]" not in result

    def test_a_path_wins_over_an_alias(self) -> None:
        table = SignalTable([Signal("a"), Signal("b.y")], {"a": "b.y"})
        assert table.locate("a")[0].path == "a"

    def test_units(self, result: Result) -> None:
        assert result.units["pid.u"] == "N.m"
        assert result.units["pid.saturated"] is None

    def test_arrays_are_read_only(self, result: Result) -> None:
        with pytest.raises(ValueError, match="read-only"):
            result["pid.u"][0] = 1.0

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("encoder.sped", r"`encoder.sped` was not recorded. Did you mean `encoder.speed`\?"),
            ("pid", "Did you mean `pid.u` or `pid.saturated`"),
            ("force", "Did you mean `sub.plant.force`"),
            ("zzz", r"not recorded. Recorded: ref.y, encoder.speed, pid.u, .*force\."),
            ("sub.plant.force[3]", r"has 3 elements, \[0\] to \[2\]"),
        ],
    )
    def test_unknown_name_teaches(self, result: Result, name: str, message: str) -> None:
        with pytest.raises(UnknownSignalError, match=message) as caught:
            result[name]
        assert isinstance(caught.value, KeyError)
        assert isinstance(caught.value, BiellaError)

    def test_many_names_are_cut(self) -> None:
        many = Result.from_arrays([0.0], {f"s{i}": [0.0] for i in range(100)})
        with pytest.raises(UnknownSignalError, match="s29, … and 70 more"):
            many["zzz"]

    def test_bad_tables(self) -> None:
        with pytest.raises(ResultError, match="`a` is recorded twice"):
            SignalTable([Signal("a"), Signal("a")])
        with pytest.raises(ResultError, match=r"`a` has shape \(2,\); with 3 times"):
            Result.from_arrays([0, 1, 2], {"a": [1, 2]})
        with pytest.raises(ResultError, match="kind `text`"):
            Signal("a", kind="text")  # type: ignore[arg-type]
        with pytest.raises(ResultError, match="width 0"):
            Signal("a", 0)

    def test_repr(self, result: Result) -> None:
        text = repr(result)
        assert text.startswith("Result of 'loop': 5 signals, 101 times, t = 0 to 1 s\n")
        assert "  sub.plant.force  N         real     3" in text
        assert len(text.splitlines()) == 7
        assert "<td>pid.u</td><td>N.m</td>" in result._repr_html_()
        result.info["stopped"] = "<Ctrl-C>"
        assert "stopped: <Ctrl-C>" in repr(result)
        assert "&lt;Ctrl-C&gt;" in result._repr_html_()

    def test_empty(self, tmp_path: Path) -> None:
        signals: dict[str | Signal, Any] = {"a": [], Signal("v", 2): np.empty((0, 2))}
        empty = Result.from_arrays([], signals)
        assert empty["v"].shape == (0, 2)
        assert "0 times" in repr(empty)
        empty.to_csv(tmp_path / "e.csv")
        empty.to_hdf5(tmp_path / "e.h5")
        assert Result.from_hdf5(tmp_path / "e.h5")["v"].shape == (0, 2)
        assert empty.plot() is not None
        assert repr(Result.from_arrays([0.0], {})) == "Result: 0 signals, 1 times, t = 0 to 0 s"


class TestCsv:
    def test_header_and_values(self, result: Result, tmp_path: Path) -> None:
        result.to_csv(tmp_path / "r.csv")
        with (tmp_path / "r.csv").open(encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        assert header[:4] == [
            "time [s]",
            "ref.y [rad/s]",
            "encoder.speed [rad·s^-1]",
            "pid.u [N.m]",
        ]
        assert header[5:] == [f"sub.plant.force[{i}] [N]" for i in range(3)]
        numbers = np.array(rows, dtype=float)
        assert np.array_equal(numbers[:, 0], T)
        assert np.array_equal(numbers[:, 3], result["pid.u"])
        assert np.array_equal(numbers[:, 5:], result["sub.plant.force"])
        assert rows[50][4] in ("0", "1")

    def test_a_comma_in_a_name_is_quoted(self, tmp_path: Path) -> None:
        Result.from_arrays([0.0], {"f(a,b)": [1.0]}).to_csv(tmp_path / "r.csv")
        assert (tmp_path / "r.csv").read_bytes() == b'time [s],"f(a,b)"\n0.0,1.0\n'

    def test_missing_folder(self, result: Result, tmp_path: Path) -> None:
        with pytest.raises(ResultError, match="there is no folder"):
            result.to_csv(tmp_path / "no" / "r.csv")

    @pytest.mark.parametrize("method", ["to_csv", "to_hdf5"])
    def test_full_disk_changes_nothing(self, tmp_path: Path, method: str) -> None:
        target = tmp_path / "r.out"
        getattr(Result.from_arrays([0.0], {"s": [1.0]}), method)(target)
        earlier = target.read_bytes()
        script = f"""
import resource, numpy as np
from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import ResultError
r = Result.from_arrays(np.arange(200_000.0), {{f"s{{i}}": np.arange(200_000.0) for i in range(5)}})
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
try:
    r.{method}({str(target)!r})
except ResultError as error:
    print(error)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert "larger than the system allows. The file is unchanged." in done.stdout
        assert target.read_bytes() == earlier
        assert list(tmp_path.iterdir()) == [target]


class TestPandas:
    def test_frame(self, result: Result) -> None:
        pytest.importorskip("pandas")
        frame = result.to_pandas()
        assert list(frame.columns[-3:]) == [f"sub.plant.force[{i}]" for i in range(3)]
        assert frame.index.name == "time"
        assert np.array_equal(frame["pid.u"], result["pid.u"])
        assert frame.attrs["units"]["pid.u"] == "N.m"

    def test_without_pandas(self, result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(ResultError, match=r"pip install 'biella\[pandas\]'"):
            result.to_pandas()


def test_heavy_libraries_wait_until_needed() -> None:
    script = (
        "import sys, biella.scheduler.results._recorder, biella.scheduler.run._progress; "
        "print([m for m in ('matplotlib', 'h5py', 'rich', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
