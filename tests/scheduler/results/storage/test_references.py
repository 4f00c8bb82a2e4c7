"""Result files that lead HDF5 to other files, or to more memory than there is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from biella import Diagram, Result, ResultError, simulate
from biella.blocks import Sine

SECRET = np.arange(11.0) + 1000.0


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("references") / "r.h5"
    d = Diagram("r", step=0.01)
    d.add(Sine(frequency=1.0), name="s")
    simulate(d, 0.1).to_hdf5(path)
    return path


def external_link(file, folder):
    with h5py.File(folder / "other.h5", "w") as other:
        other["y"] = SECRET
    file["signals/s.y"] = h5py.ExternalLink(str(folder / "other.h5"), "/y")


def external_storage(file, folder):
    (folder / "secret.bin").write_bytes(SECRET.tobytes())
    file.create_dataset("signals/s.y", (11,), "f8", external=[(str(folder / "secret.bin"), 0, 88)])


def virtual_dataset(file, folder):
    with h5py.File(folder / "other.h5", "w") as other:
        other["y"] = SECRET
    layout = h5py.VirtualLayout((11,), "f8")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "y", (11,))
    file.create_virtual_dataset("signals/s.y", layout)


def soft_link(file, folder):
    file["signals/s.y"] = h5py.SoftLink("/time")


def loop(file, folder):
    file.create_group("signals/a")
    file["signals/a/b"] = file["signals"]
    file["signals/s.y"] = np.zeros(11)


def many_groups(file, folder):
    """Two levels with 200 names for one group: 40,000 to go through, in a small file."""
    below = file.create_group("signals/a")
    for _ in range(2):
        above = file["signals"].create_group(f"b{below.name.count('b')}{len(file['signals'])}")
        for k in range(200):
            above[f"{k}"] = below
        below = above
    file["signals/s.y"] = np.zeros(11)


def oversize(file, folder):
    file.create_dataset("signals/s.y", (1 << 45,), "f8", chunks=(1 << 10,))


ATTACKS = {
    external_link: "`/signals/s.y` is a link",
    external_storage: "the numbers of `/signals/s.y` are in other files",
    virtual_dataset: "the numbers of `/signals/s.y` are in other files",
    soft_link: "`/signals/s.y` is a link",
    loop: "is a group within too many others",
    many_groups: "too many groups",
    oversize: "more than it can hold",
}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_a_result_that_leads_elsewhere_is_rejected(original, tmp_path, attack):
    path = Path(shutil.copy(original, tmp_path / "r.h5"))
    with h5py.File(path, "r+") as file:
        del file["signals/s.y"]
        attack(file, tmp_path)
    with pytest.raises(ResultError, match=f"is rejected: .*{ATTACKS[attack]}"):
        Result.from_hdf5(path)


@pytest.mark.skipif(os.name == "nt", reason="needs named pipes")
def test_a_pipe_in_the_place_of_numbers_does_not_hang(original, tmp_path):
    path = Path(shutil.copy(original, tmp_path / "r.h5"))
    os.mkfifo(tmp_path / "pipe")
    with h5py.File(path, "r+") as file:
        del file["time"]
        file.create_dataset("time", (11,), "f8", external=[(str(tmp_path / "pipe"), 0, 88)])
    with pytest.raises(ResultError, match="the numbers of `/time` are in other files"):
        Result.from_hdf5(path)


def test_a_file_that_changed_after_it_was_checked_is_checked_again(original, tmp_path):
    path = Path(shutil.copy(original, tmp_path / "r.h5"))
    result = Result.from_hdf5(path)
    before = result["s.y"].copy()
    with h5py.File(path, "r+") as file:
        del file["signals/s.y"]
        external_storage(file, tmp_path)
    with pytest.raises(ResultError, match="are in other files"):
        result.read("s.y", slice(0, 5))
        assert np.array_equal(before, Result.from_hdf5(path)["s.y"])
