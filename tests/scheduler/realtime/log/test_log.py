"""The input log in a result file: appended in parts, read back whole, its checksum checked."""

import h5py
import numpy as np
import pytest

from biella.scheduler.realtime.log import _log as log
from biella.scheduler.realtime.loop._pace import ENTRY

PLAN = bytes(range(256))


def entries(count, first=0):
    made = np.zeros(count, ENTRY)
    for n, name in enumerate(ENTRY.names or ()):
        made[name] = (np.arange(first, first + count) + n) % 100
    return made


def open_now(path, read):
    with h5py.File(path) as file:
        return read(file)


def read(path):
    with h5py.File(path) as file:
        return log.read_log(file, path, open_now)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.h5"


def write(path, *parts):
    with h5py.File(path, "w") as file:
        log.create_log(file, PLAN)
        for part, ticks in parts:
            log.append_input_log(file, path, part, ticks)


def test_parts_are_read_back_as_one(path):
    write(path, (entries(3), 10), (entries(0), 20), (entries(20_000, 3), 30))
    found = read(path)
    assert found.plan == PLAN and found.ticks == 30
    assert found.input_log.dtype == ENTRY
    assert np.array_equal(found.input_log, entries(20_003))
    assert found.input_log is found.input_log, "it is read once"


def test_a_file_without_a_log_has_none(path):
    h5py.File(path, "w").close()
    assert read(path) is None


def test_an_empty_log_is_a_log(path):
    write(path)
    found = read(path)
    assert found.ticks == 0 and len(found.input_log) == 0


def test_a_changed_entry_is_noticed(path):
    write(path, (entries(5), 10))
    with h5py.File(path, "r+") as file:
        changed = file["log/journal"][2]
        changed["value"] += 1.0
        file["log/journal"][2] = changed
    with pytest.raises(ValueError, match="checksum"):
        _ = read(path).input_log


def test_what_a_failed_write_left_behind_is_not_counted(path):
    """The journal had grown, but its count had not: the next part takes the place."""
    write(path, (entries(4), 10))
    with h5py.File(path, "r+") as file:
        file["log/journal"].resize(9, axis=0)
        file["log/checksum"][()] = 12345, 9
    assert np.array_equal(read(path).input_log, entries(4))
    with h5py.File(path, "r+") as file:
        log.append_input_log(file, path, entries(3, 4), 20)
    found = read(path)
    assert found.ticks == 20 and np.array_equal(found.input_log, entries(7))


def test_a_whole_log_is_copied(path, tmp_path):
    write(path, (entries(50), 7))
    other = tmp_path / "copy.h5"
    with h5py.File(other, "w") as file:
        log.write_log(file, other, read(path))
    copied = read(other)
    assert copied.plan == PLAN and copied.ticks == 7
    assert np.array_equal(copied.input_log, entries(50))
