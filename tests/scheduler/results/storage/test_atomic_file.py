"""A file whose changes take effect together, whatever ends the process or the disk.

The writes of a recording are noted one by one. A kill leaves any prefix of them, the last one torn;
a loss of power leaves those before the last wait for the disk, and any subset of the others. From
each such file the normal reader must give the rows of a commit, and none older than the last that
had returned.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from biella.scheduler.realtime.log._log_recorder import Hdf5LogRecorder
from biella.scheduler.realtime.loop._pace import ENTRY
from biella.scheduler.results._recorder import Hdf5Recorder
from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import ResultError, Signal
from biella.scheduler.results.storage._atomic_file import PAGE, AtomicFile, read_record

SIGNALS = [Signal("a"), Signal("v", 3)]
BLOCK = 50
SECTOR = 512
Operation = tuple[str, int, bytes]


def rows_of(first: int, last: int) -> np.ndarray:
    return np.arange(first, last)[:, None] + np.arange(5) / 8.0


class Noted:
    """What reaches the disk, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.operations: list[Operation] = []
        self.done: list[tuple[int, int]] = []  # operations and rows of each commit that returned
        plain = os.pwrite, os.ftruncate, os.fsync

        def pwrite(handle: int, data: bytes, start: int) -> int:
            self.operations.append(("write", start, bytes(data)))
            return plain[0](handle, data, start)

        def ftruncate(handle: int, size: int) -> None:
            self.operations.append(("truncate", size, b""))
            plain[1](handle, size)

        def fsync(handle: int) -> None:
            self.operations.append(("sync", 0, b""))
            plain[2](handle)

        monkeypatch.setattr(os, "pwrite", pwrite)
        monkeypatch.setattr(os, "ftruncate", ftruncate)
        monkeypatch.setattr(os, "fsync", fsync)

    def record(self, path: Path, sync: bool) -> None:
        recorder = Hdf5LogRecorder(path, SIGNALS, plan=b"plan", age=1e9, sync=sync)
        self.done.append((len(self.operations), 0))
        for k in range(8):
            entries = np.zeros(3, dtype=ENTRY)
            entries["tick"] = k
            recorder.note_reached(BLOCK * (k + 1), 0.0, 1.0)
            recorder.append_input_log(entries, BLOCK * (k + 1))
            recorder.take(rows_of(BLOCK * k, BLOCK * (k + 1)))
            recorder.flush()
            self.done.append((len(self.operations), BLOCK * (k + 1)))
        recorder.close()


def apply(image: bytearray, operation: Operation) -> None:
    kind, start, data = operation
    if kind == "write":
        image.extend(bytes(max(0, start + len(data) - len(image))))
        image[start : start + len(data)] = data
    elif kind == "truncate":
        del image[start:]
        image.extend(bytes(start - len(image)))


def check(path: Path, image: bytearray, least: int) -> int:
    """Read a file that is left; return its rows."""
    path.write_bytes(image)
    found = Result.from_hdf5(path)
    assert found.length >= least and found.length % BLOCK == 0
    expected = rows_of(0, found.length)
    assert np.array_equal(found.t, expected[:, 0]) and np.array_equal(found["a"], expected[:, 1])
    assert np.array_equal(found["v"], expected[:, 2:])
    assert found.log is not None and found.log.ticks == found.length
    assert len(found.log.input_log) == 3 * found.length // BLOCK
    return found.length


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Noted]:
    monkeypatch.setattr("biella.scheduler.results._result_file._PAUSE", 0.0)
    yield Noted(monkeypatch)


def test_a_kill_between_any_two_writes_and_within_each(noted: Noted, tmp_path: Path) -> None:
    noted.record(tmp_path / "log.h5", sync=False)
    image, draw, found = bytearray(), random.Random(1), set()
    for n, operation in enumerate(noted.operations):
        returned = [rows for count, rows in noted.done if count <= n]
        if returned:
            found.add(check(tmp_path / "left.h5", image, returned[-1]))
            if operation[0] == "write" and len(operation[2]) > 1:
                torn = bytearray(image)
                size = draw.randrange(1, len(operation[2]))
                apply(torn, (operation[0], operation[1], operation[2][:size]))
                found.add(check(tmp_path / "left.h5", torn, returned[-1]))
        apply(image, operation)
    found.add(check(tmp_path / "left.h5", image, 8 * BLOCK))
    assert found == {BLOCK * k for k in range(9)}
    assert image == (tmp_path / "log.h5").read_bytes()


def test_a_loss_of_power_at_any_time(noted: Noted, tmp_path: Path) -> None:
    """With sync: each write that was not waited for is there in part, or not at all."""
    noted.record(tmp_path / "log.h5", sync=True)
    draw = random.Random(2)
    image, pending = bytearray(), list[Operation]()
    first = noted.done[0][0]
    for n, operation in enumerate(noted.operations):
        if operation[0] == "sync":
            for each in pending:
                apply(image, each)
            pending.clear()
            continue
        pending.append(operation)
        if n < first:
            continue
        least = max(rows for count, rows in noted.done if count <= n)
        left = bytearray(image)
        for kind, start, data in pending:
            if kind == "truncate":
                if draw.random() < 0.5:
                    apply(left, (kind, start, data))
                continue
            for at in range(0, len(data), SECTOR):
                if draw.random() < 0.5:
                    apply(left, (kind, start + at, data[at : at + SECTOR]))
        # What reports how far the run has come is not waited for, and may be torn in one slot.
        check(tmp_path / "left.h5", left, least)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_disk_that_fails_at_any_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """From the n-th write on, for each n: the run goes on, and what is on the disk is readable."""
    plain_write, plain_truncate = os.pwrite, os.ftruncate
    state = {"left": 10**9}

    def refuse() -> None:
        state["left"] -= 1
        if state["left"] < 0:
            raise OSError(number, os.strerror(number))

    def pwrite(handle: int, data: bytes, start: int) -> int:
        refuse()
        return plain_write(handle, data, start)

    def ftruncate(handle: int, size: int) -> None:
        refuse()
        plain_truncate(handle, size)

    monkeypatch.setattr(os, "pwrite", pwrite)
    monkeypatch.setattr(os, "ftruncate", ftruncate)
    monkeypatch.setattr("biella.scheduler.results._result_file._PAUSE", 0.0)
    kept = set()
    for n in range(0, 60, 3):
        state["left"] = 10**9
        path = tmp_path / f"{n}.h5"
        recorder = Hdf5LogRecorder(path, SIGNALS, plan=b"plan", age=1e9)
        recorder.take(rows_of(0, 10))
        state["left"] = n
        for k in range(1, 8):
            recorder.append_input_log(np.zeros(0, dtype=ENTRY), 10 * (k + 1))
            recorder.take(rows_of(10 * k, 10 * (k + 1)))
            recorder.flush()
        recorder.settle()
        rows = recorder.rows_kept
        result = recorder.close()
        assert rows + recorder.rows_dropped == 80 and result.length == rows
        if recorder.rows_dropped:
            assert "Cannot write" in recorder.trouble
        found = Result.from_hdf5(path)
        assert np.array_equal(found.t, np.arange(rows)) and np.array_equal(
            found["a"], found.t + 1 / 8
        )
        kept.add(rows)
    assert len(kept) > 3


def test_a_disk_that_fails_once_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = os.pwrite
    for n in range(25):
        path = tmp_path / f"{n}.h5"
        recorder = Hdf5LogRecorder(path, SIGNALS, plan=b"plan", age=1e9)
        recorder.take(rows_of(0, 10))
        left = [n]

        def pwrite(handle: int, data: bytes, start: int, left: list[int] = left) -> int:
            left[0] -= 1
            if left[0] == -1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return plain(handle, data, start)

        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", pwrite)
            for k in range(1, 4):
                recorder.take(rows_of(10 * k, 10 * (k + 1)))
                recorder.flush()
        recorder.close()
        assert recorder.rows_dropped == 0
        assert np.array_equal(Result.from_hdf5(path)["v"], rows_of(0, 40)[:, 2:])


def test_a_folder_that_is_removed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    recorder = Hdf5LogRecorder(tmp_path / "disk" / "log.h5", SIGNALS, plan=b"plan")
    recorder.take(rows_of(0, 10))
    for file in (tmp_path / "disk").iterdir():
        file.unlink()
    (tmp_path / "disk").rmdir()
    recorder.take(rows_of(10, 20))
    result = recorder.close()
    with pytest.raises(ResultError, match="There is no file"):
        _ = result.t


def test_a_record_is_applied_only_if_it_is_whole(tmp_path: Path) -> None:
    file = AtomicFile(tmp_path / "f")
    file.write(b"a" * 3 * PAGE)
    file.commit()
    file.seek(PAGE - 2)
    file.write(b"bbbb")
    assert (tmp_path / "f").read_bytes() == b"a" * 3 * PAGE  # not before the commit
    file.seek(PAGE - 4)
    assert file.read(8) == b"aabbbbaa"  # but HDF5 reads what it wrote
    file._write_record([0, 1])
    with (tmp_path / "f").open("rb") as left:
        record = read_record(left)
        assert record is not None and record[1] == 3 * PAGE
        assert record[0][0].endswith(b"abb") and record[0][1].startswith(b"bba")
    data = (tmp_path / "f").read_bytes()
    for place in range(3 * PAGE, len(data), 101):
        flipped = bytearray(data)
        flipped[place] ^= 4
        (tmp_path / "g").write_bytes(flipped)
        with (tmp_path / "g").open("rb") as left:
            assert read_record(left) is None
    file.commit()
    assert (tmp_path / "f").read_bytes() == b"a" * (PAGE - 2) + b"bbbb" + b"a" * (2 * PAGE - 2)
    file.close()


def test_a_place_that_is_overwritten_is_not_undone_by_a_commit(tmp_path: Path) -> None:
    file = AtomicFile(tmp_path / "f")
    file.write(b"a" * 2 * PAGE)
    file.commit()
    file.seek(0)
    file.write(b"b")
    file.overwrite(PAGE - 1, b"cc")
    assert (tmp_path / "f").read_bytes()[PAGE - 2 : PAGE + 2] == b"acca"
    file.commit()
    assert (tmp_path / "f").read_bytes()[PAGE - 2 : PAGE + 2] == b"acca"
    file.close()


def test_a_simulation_that_fails_to_write_says_what_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Hdf5Recorder(tmp_path / "r.h5", SIGNALS)
    recorder.append(rows_of(0, 10))

    def refuse(handle: int, data: bytes, start: int) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "pwrite", refuse)
    recorder.append(rows_of(10, 20))
    with pytest.raises(ResultError, match=r"no permission to write.*10 rows, to t = 9 s, are in"):
        recorder.close()
    assert recorder.close().length == 10 == Result.from_hdf5(tmp_path / "r.h5").length


def test_a_kill_after_a_disk_that_fails_within_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record whose pages are not all in place stays whole until they are."""
    plain_write, plain_truncate = os.pwrite, os.ftruncate
    path = tmp_path / "f"
    file = AtomicFile(path)
    file.write(b"a" * 5 * PAGE)
    file.commit()
    for number in (0, 2):  # two places
        file.seek(number * PAGE)
        file.write(b"b")
    places: list[int] = []
    images: list[bytes] = []

    def fail_at_second_page(handle: int, data: bytes, start: int) -> int:
        places.append(start)
        if start == 2 * PAGE:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return plain_write(handle, data, start)

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", fail_at_second_page)
        file.commit()  # the record is in effect
    assert places == [5 * PAGE, 0, 2 * PAGE]

    def pwrite(handle: int, data: bytes, start: int) -> int:
        plain_write(handle, bytes(data)[: len(data) // 2], start)
        images.append(path.read_bytes())
        done = plain_write(handle, data, start)
        images.append(path.read_bytes())
        return done

    def ftruncate(handle: int, size: int) -> None:
        plain_truncate(handle, size)
        images.append(path.read_bytes())

    monkeypatch.setattr(os, "pwrite", pwrite)
    monkeypatch.setattr(os, "ftruncate", ftruncate)
    for number in (0, 2):
        file.seek(number * PAGE + 1)
        file.write(b"c")
    file.seek(5 * PAGE)
    file.write(b"d" * PAGE)
    file.commit()
    file.close()
    assert len(images) > 4
    states = []
    for image in images:
        (tmp_path / "g").write_bytes(image)
        with (tmp_path / "g").open("rb") as left:
            record = read_record(left)
        pages = record[0] if record else {}
        heads = [pages.get(k, image[k * PAGE : (k + 1) * PAGE])[:2] for k in (0, 2)]
        assert heads[0] == heads[1]
        states.append(heads[0])
    assert states == sorted(states) and set(states) == {b"ba", b"bc"}
