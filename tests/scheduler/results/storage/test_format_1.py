"""Result files of version 1; tests/test_files_of_0_1.py opens those that biella 0.1 wrote."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import ResultError

T, Y = np.arange(6.0), np.arange(6.0) ** 2


def write(path: Path, *, rows: int = 6, complete: bool = True) -> None:
    with h5py.File(path, "w", libver=("v110", "v110")) as file:
        file.attrs["biella_result"] = 1
        file.attrs["recording"] = "0123456789abcdef"
        file.create_dataset("time", data=T)
        dataset = file.create_dataset("signals/y", data=Y)
        capture = file.create_dataset("captures/trigger.u", data=np.stack([T, Y], axis=1))
        for each, name in ((dataset, "y"), (capture, "trigger.u")):
            about = {"path": name, "index": 0, "width": 1, "kind": "real", "sampled": False}
            for key, value in about.items():
                each.attrs[key] = value
        known = {"trigger.u": {"event": 3.0, "length": 6}}
        text = json.dumps({"info": {"step": 1.0}, "aliases": {"s": "y"}, "captures": known})
        file.create_dataset("about", data=np.array(text.encode(), dtype="S2000"))
        checksums = [zlib.crc32(values[:rows].data) for values in (T, Y)]
        file.create_dataset("checksums", data=np.array(checksums, dtype=np.uint32))
        file.create_dataset("rows", data=np.int64(rows))
        file.create_dataset("complete", data=np.int8(complete))


def test_a_file_is_read(tmp_path: Path) -> None:
    write(tmp_path / "r.h5")
    result = Result.from_hdf5(tmp_path / "r.h5")
    assert result["s"].tolist() == Y.tolist() and result.info == {"step": 1.0}
    assert result.read("y", slice(2, 4)).tolist() == [4.0, 9.0]
    assert result.log is None and len(result.events.log) == 0
    assert list(result.captures) == ["trigger.u"]


def test_rows_that_do_not_count_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / "r.h5", rows=4, complete=False)
    result = Result.from_hdf5(tmp_path / "r.h5")
    assert result.t.tolist() == [0, 1, 2, 3] and "not closed" in result.info["stopped"]


def test_a_changed_number_is_found(tmp_path: Path) -> None:
    write(tmp_path / "r.h5")
    with h5py.File(tmp_path / "r.h5", "r+") as file:
        file["signals/y"][2] = 7.0
    with pytest.raises(ResultError, match=r"rows 0 to 5 of `signals/y` do not match"):
        _ = Result.from_hdf5(tmp_path / "r.h5")["y"]


def test_more_rows_than_there_are(tmp_path: Path) -> None:
    write(tmp_path / "r.h5")
    with h5py.File(tmp_path / "r.h5", "r+") as file:
        file["rows"][()] = 7
    with pytest.raises(ResultError, match="7 rows are declared, and 6 are there"):
        Result.from_hdf5(tmp_path / "r.h5")


@pytest.mark.parametrize("version", [0, 3, 99])
def test_a_version_that_this_release_does_not_read(tmp_path: Path, version: int) -> None:
    write(tmp_path / "r.h5")
    with h5py.File(tmp_path / "r.h5", "r+") as file:
        file.attrs["biella_result"] = version
        file.attrs["biella"] = np.bytes_("7.5.0")
    with pytest.raises(
        ResultError, match=rf"version {version}, written by biella 7\.5\.0; this release, .* reads "
        r"versions 1 to 2"
    ):  # fmt: skip
        Result.from_hdf5(tmp_path / "r.h5")
