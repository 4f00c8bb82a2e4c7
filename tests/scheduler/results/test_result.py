"""Results: names, files, plots, comparison."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from biella.blocks import Playback
from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import ResultError, Signal

from .conftest import T


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
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
        )
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
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.strip() == "[]", done.stderr


class TestNamesOfEnumerations:
    def result(self) -> Result:
        signal = Signal("heater.state", kind="enumeration", names=("off", "on"))
        values = {signal: [1.0, 2.0, 3.0], Signal("T"): [0.5, 1.5, 2.5]}
        return Result.from_arrays([0.0, 1.0, 2.0], values)

    def test_csv_has_numbers_and_their_names_in_the_heading(self, tmp_path: Path) -> None:
        self.result().to_csv(tmp_path / "run.csv")
        lines = (tmp_path / "run.csv").read_text().splitlines()
        assert lines[0] == "time [s],heater.state [1=off; 2=on],T"
        assert lines[1:] == ["0.0,1,0.5", "1.0,2,1.5", "2.0,3,2.5"]

    def test_such_a_file_is_played_back(self, tmp_path: Path) -> None:
        self.result().to_csv(tmp_path / "run.csv")
        block = Playback.from_file(tmp_path / "run.csv", "heater.state")
        assert block.outputs[0].unit is None
        assert block.parameters[1].value.tolist() == [1, 2, 3]

    def test_pandas_has_numbers_and_their_names_beside(self) -> None:
        pytest.importorskip("pandas")
        frame = self.result().to_pandas()
        assert frame["heater.state"].tolist() == [1, 2, 3]
        assert frame.attrs["names"] == {"heater.state": ("off", "on")}

    def test_the_table_has_the_last_name(self) -> None:
        signal = Signal("heater.state", kind="enumeration", names=("off", "on"))
        result = Result.from_arrays([0.0], {signal: [2]})
        assert repr(result).splitlines()[-1].split()[-1] == "on"
        assert repr(self.result()).splitlines()[2].split()[-1] == "3"
        assert signal.format_value(float("nan")) == "nan"
        assert signal.format_value(1.5) == "1.5"
