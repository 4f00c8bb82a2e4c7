"""The input log in a result file: appended in parts, read back whole, its checksum checked."""

import zlib

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
            log.append_input_log(file, part, ticks)


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
    with pytest.raises(ValueError, match=r"input log of ticks 0 to 10 does not match its checksum"):
        _ = read(path).input_log


def test_the_ticks_of_a_changed_entry_are_named(path):
    write(path, (entries(5), 10), (entries(5, 5), 25), (entries(0), 30), (entries(5, 10), 40))
    with h5py.File(path, "r+") as file:
        changed = file["log/journal"][7]
        changed["tick"] ^= 1
        file["log/journal"][7] = changed
    with pytest.raises(ValueError, match=r"input log of ticks 10 to 25 does not match"):
        _ = read(path).input_log


def test_a_changed_count_of_ticks_is_noticed(path):
    write(path, (entries(5), 10))
    with h5py.File(path, "r+") as file:
        words = file["log/blocks"][0]
        words[3] += 1
        file["log/blocks"][0] = words
    with pytest.raises(ValueError, match="checksums of rows do not match"):
        read(path)


def test_a_changed_plan_is_noticed(path):
    write(path, (entries(5), 10))
    with h5py.File(path) as file:
        found = log.read_log(file, path, open_now, zlib.crc32(PLAN))
        assert found is not None and found.plan == PLAN
        with pytest.raises(ValueError, match="the plan does not match its checksum"):
            log.read_log(file, path, open_now, zlib.crc32(PLAN) ^ 1)


def test_ticks_beyond_32_bits(path):
    write(path, (entries(5), 2**31 - 1), (entries(5, 5), 2**31 + 5), (entries(0), 2**40 + 3))
    found = read(path)
    assert found.ticks == 2**40 + 3 and np.array_equal(found.input_log, entries(10))


def test_a_whole_log_is_copied(path, tmp_path):
    write(path, (entries(50), 7))
    other = tmp_path / "copy.h5"
    with h5py.File(other, "w") as file:
        log.create_log(file, PLAN)
        log.write_log(file, read(path))
    copied = read(other)
    assert copied.plan == PLAN and copied.ticks == 7
    assert np.array_equal(copied.input_log, entries(50))
