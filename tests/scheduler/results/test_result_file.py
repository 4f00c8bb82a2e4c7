"""Results in HDF5 files."""

from __future__ import annotations

import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from biella.scheduler.results import _result_file
from biella.scheduler.results._recorder import Hdf5Recorder
from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import ResultError, Signal

from .conftest import T


class TestHdf5:
    def test_round_trip_is_lossless(self, result: Result, tmp_path: Path) -> None:
        result.to_hdf5(tmp_path / "r.h5")
        again = Result.from_hdf5(tmp_path / "r.h5")
        assert list(again.signals.values()) == list(result.signals.values())
        assert again.signals.aliases == {"ref": "ref.y"}
        assert again.info == result.info
        assert np.array_equal(again.t, T)
        for path in result:
            assert np.array_equal(again[path], result[path])

    @settings(max_examples=50)
    @given(
        arrays(np.float64, st.tuples(st.integers(0, 5), st.integers(1, 3))),
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8),
    )
    @example(np.zeros((2, 1)), ".")
    def test_any_numbers_and_names(
        self, tmp_path_factory: pytest.TempPathFactory, values: np.ndarray, name: str
    ) -> None:
        file = tmp_path_factory.mktemp("any") / "r.h5"
        before = Result.from_arrays(np.arange(len(values)), {name: values}, units={name: "µm"})
        before.to_hdf5(file)
        after = Result.from_hdf5(file)
        assert after.paths == [name]
        assert after[name].tobytes() == np.ascontiguousarray(before[name]).tobytes()
        assert after.units == {name: "µm"}

    def test_plain_tools_can_read_it(self, result: Result, tmp_path: Path) -> None:
        result.to_hdf5(tmp_path / "r.h5")
        with h5py.File(tmp_path / "r.h5", "r") as file:
            assert file["signals/pid.u"].attrs["unit"] == "N.m"
            assert np.array_equal(file["time"], T)
            for index, (path, signal) in enumerate(result.signals.items()):
                known = dict(file[f"signals/{path}"].attrs)
                assert (known["path"], known["index"]) == (path, index)
                about = (known["width"], known["kind"], known["sampled"], known.get("unit"))
                assert about == (signal.width, signal.kind, signal.sampled, signal.unit)

    @pytest.mark.parametrize("good_after", [1, 9, 10])
    def test_a_file_that_is_being_written_is_read_again_nine_times(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, good_after: int
    ) -> None:
        recorder = Hdf5Recorder(tmp_path / "r.h5", [Signal("y")])
        recorder.append(np.ones((3, 2)))
        written = recorder.path.read_bytes()
        copy, pauses = tmp_path / "copy.h5", []
        copy.write_bytes(written[:200])

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == good_after:
                copy.write_bytes(written)

        monkeypatch.setattr(time, "sleep", pause)
        monkeypatch.setattr(_result_file, "is_closed", lambda path: False)
        if good_after < 10:
            assert Result.from_hdf5(copy).length == 3
        else:
            with pytest.raises(ResultError, match="is truncated or damaged"):
                Result.from_hdf5(copy)
        assert len(pauses) == min(good_after, 9)
        recorder.close()

    def test_only_the_asked_signal_is_read(self, result: Result, tmp_path: Path) -> None:
        result.to_hdf5(tmp_path / "r.h5")
        lazy = Result.from_hdf5(tmp_path / "r.h5")
        with h5py.File(tmp_path / "r.h5", "r+") as file:
            del file["signals/ref.y"]
        assert np.array_equal(lazy["pid.u"], result["pid.u"])
        assert lazy.read("pid.u", slice(10, 12)).tolist() == result["pid.u"][10:12].tolist()

    def test_a_held_signal_is_not_read_twice(self, result: Result, tmp_path: Path) -> None:
        result.to_hdf5(tmp_path / "r.h5")
        lazy = Result.from_hdf5(tmp_path / "r.h5")
        assert lazy["pid.u"] is not None
        held = lazy["pid.u"]
        assert lazy["pid.u"] is held

    def test_a_replaced_file_is_noticed(self, result: Result, tmp_path: Path) -> None:
        result.to_hdf5(tmp_path / "r.h5")
        lazy = Result.from_hdf5(tmp_path / "r.h5")
        lazy.to_hdf5(tmp_path / "r.h5")
        assert np.array_equal(lazy["pid.u"], result["pid.u"])
        result.to_hdf5(tmp_path / "r.h5")
        with pytest.raises(ResultError, match="replaced by another recording"):
            lazy["ref"]

    def test_foreign_files(self, tmp_path: Path) -> None:
        with pytest.raises(ResultError, match="There is no file"):
            Result.from_hdf5(tmp_path / "none.h5")
        (tmp_path / "text.h5").write_text("hello")
        with pytest.raises(ResultError, match="not a readable HDF5 file"):
            Result.from_hdf5(tmp_path / "text.h5")
        with h5py.File(tmp_path / "other.h5", "w", libver=("v110", "v110")) as file:
            file["x"] = 1
        with pytest.raises(ResultError, match="but not a biella result"):
            Result.from_hdf5(tmp_path / "other.h5")
