"""Damaged result files: an error that names the file, never a hang, never other numbers."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from biella import Diagram, run_realtime
from biella.blocks import Constant, Gain, Integrator, Relay, Trigger
from biella.cli import main
from biella.scheduler.realtime.log._log_recorder import Hdf5LogRecorder
from biella.scheduler.realtime.loop._pace import ENTRY
from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import ResultError, Signal
from biella.scheduler.results.storage._atomic_file import AtomicFile

CASES = 150


def diagram() -> Diagram:
    """With a vector, events and a capture."""
    d = Diagram("d", step=1e-3)
    d.connect(d.add(Constant([1.0, 2.0], unit="N"), name="c"), d.add(Gain(2.0), name="k"))
    x = d.add(Integrator(0.055), "x")
    relay = d.add(Relay(0.1, -0.1, -1.0, 1.0), "relay", u=x)
    d.connect(relay, x)
    d.connect(x, d.add(Trigger(0.05, pre=5, post=5), name="trigger"))
    return d


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a run that has ended, with entries in its input log."""
    path = tmp_path_factory.mktemp("closed") / "log.h5"
    run_realtime(diagram(), clock="free", until=5.0, out=path, parameters={"k.k": 3.0}).wait()
    return path


KILLED = """
import os, signal, sys
import numpy as np
from biella.scheduler.realtime.log._log_recorder import Hdf5LogRecorder
from biella.scheduler.realtime.loop._pace import ENTRY
from biella.scheduler.results._signals import Signal
r = Hdf5LogRecorder(sys.argv[1], [Signal("k.y"), Signal("v", 3)], plan=b"plan")
for k in range(8):
    r.append(np.arange(2500.0 * k, 2500.0 * (k + 1))[:, None] + np.arange(5.0) / 8)
    r.append_input_log(np.zeros(100, dtype=ENTRY), 2500 * (k + 1))
    r.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a run whose process was killed."""
    path = tmp_path_factory.mktemp("killed") / "log.h5"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], timeout=300)
    assert done.returncode == -signal.SIGKILL
    return path


def read_all(path: Path) -> dict[str, np.ndarray]:
    """Return all that the reader gives, words as bytes."""
    result = Result.from_hdf5(path)
    assert result.log is not None
    about = {key: value for key, value in result.info.items() if key not in ("stopped", "lost")}
    captures = {
        name: [capture.t.tolist(), *(capture[key].tolist() for key in capture)]
        for name, capture in result.captures.items()
        if isinstance(capture, Result)
    }
    texts = [about, result.units, result.signals.aliases, result.log.ticks, captures]
    texts += [result.events.kinds, result.events.total, result.events.blocks]
    return {
        "time": result.t,
        "journal": result.log.input_log,
        "events": result.events.log,
        "plan": np.frombuffer(result.log.plan, np.uint8),
        "texts": np.frombuffer(repr(texts).encode(), np.uint8),
        **{name: result[name] for name in result},
    }


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(
        one[key].tobytes() == other[key].tobytes() for key in one
    )


def truncate(data: bytearray, place: int) -> bytes:
    return bytes(data[:place])


def flip(data: bytearray, place: int) -> bytes:
    data[place] ^= 1 << place % 8
    return bytes(data)


def blank(data: bytearray, place: int) -> bytes:
    data[place : place + 4096] = bytes(len(data[place : place + 4096]))
    return bytes(data)


def flip_early(data: bytearray, place: int) -> bytes:
    """Most metadata is at the start."""
    return flip(data, place % 20_000)


@pytest.mark.parametrize("damage", [truncate, flip, blank, flip_early])
def test_a_damaged_log_gives_its_numbers_or_an_error(
    closed: Path, tmp_path: Path, damage: Callable[[bytearray, int], bytes]
) -> None:
    data, whole = closed.read_bytes(), read_all(closed)
    assert len(whole["journal"]) and len(whole["time"]) == 5001 and len(whole["events"]) > 10
    assert b"'trigger': [[" in whole["texts"].tobytes()  # what was captured
    errors, draw = 0, random.Random(1)
    for _ in range(CASES):
        (tmp_path / "log.h5").write_bytes(damage(bytearray(data), draw.randrange(len(data))))
        try:
            found = read_all(tmp_path / "log.h5")
        except ResultError as error:
            errors += 1
            assert "log.h5" in str(error)
        else:
            assert same(found, whole)
    assert errors == CASES if damage is truncate else errors > 0


@pytest.mark.parametrize("damage", [truncate, flip, flip_early])
def test_so_does_the_damaged_log_of_a_killed_run(
    killed: Path,
    tmp_path: Path,
    damage: Callable[[bytearray, int], bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("biella.scheduler.results._result_file._PAUSE", 0.0)
    data, whole = killed.read_bytes(), read_all(killed)
    assert len(whole["time"]) == 20_000 and len(whole["journal"]) == 800
    errors, draw = 0, random.Random(2)
    for _ in range(CASES // 4):
        (tmp_path / "log.h5").write_bytes(damage(bytearray(data), draw.randrange(len(data))))
        try:
            found = read_all(tmp_path / "log.h5")
        except ResultError as error:
            errors += 1
            assert "log.h5" in str(error)
        else:
            assert same(found, whole)
    assert errors > 0


def test_a_wrong_number_is_found_and_its_rows_are_named(tmp_path: Path) -> None:
    """By the checksum of its block: HDF5 has none for it. Other rows can be read."""
    copy = tmp_path / "r.h5"
    recorder = Hdf5LogRecorder(copy, [Signal("k.y"), Signal("c.y")], plan=b"plan")
    for k in range(10):
        recorder.append(0.5 * np.arange(100.0 * k, 100.0 * (k + 1))[:, None] + np.zeros(3))
        recorder.flush()
    recorder.close()
    with h5py.File(copy, "r+") as file:
        file["signals/k.y"][250] = 7.0
    result = Result.from_hdf5(copy)
    assert result["c.y"].tolist() == result.t.tolist() == (0.5 * np.arange(1000)).tolist()
    words = r"rows 200 to 299 of `signals/k\.y` \(t = 100 to 149\.5 s\) do not match their checksum"
    with pytest.raises(ResultError, match=words):
        result["k.y"]
    assert result.read("k.y", slice(0, 200)).tolist() == result.t[:200].tolist()
    assert result.read("k.y", slice(300, 1000)).tolist() == result.t[300:].tolist()
    with pytest.raises(ResultError, match=words):
        result.read("k.y", slice(299, 300))


def test_a_input_log_that_is_written_again_after_an_error_is_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Hdf5LogRecorder(tmp_path / "log.h5", [Signal("y")], plan=b"plan")
    entries = np.zeros(6, dtype=ENTRY)
    entries["tick"] = np.arange(6)
    recorder.append_input_log(entries[:2], 2)
    recorder.flush()
    recorder.append_input_log(entries[2:4], 4)

    def fail(file: AtomicFile) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(AtomicFile, "commit", fail)
    recorder.flush()
    monkeypatch.undo()
    recorder.append_input_log(entries[4:], 6)
    recorder.close()
    log = Result.from_hdf5(tmp_path / "log.h5").log
    assert log is not None and log.ticks == 6
    assert np.array_equal(log.input_log, entries)


def test_other_programs_read_the_log_of_a_killed_run(killed: Path) -> None:
    with h5py.File(killed, "r") as file:
        assert len(file["time"]) == len(file["signals/v"]) == 20_000


def test_a_truncated_log_is_not_replayed(
    killed: Path, closed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.py").write_text(
        "from biella import Diagram\ndef diagram():\n    return Diagram('d', step=1e-3)\n"
    )
    for path in (killed, closed):
        (tmp_path / "log.h5").write_bytes(path.read_bytes()[:200_000])
        assert main(["replay", str(tmp_path / "log.h5"), str(tmp_path / "d.py")]) == 1
        assert "log.h5` cannot be read: it is truncated or damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a readable HDF5 file"),
        (b"time,y\n0,1\n", "not a readable HDF5 file"),
        (b"\x89HDF\r\n\x1a\n", "truncated or damaged"),
        (b"\x89HDF\r\n\x1a\n\x03" + bytes(1000), "truncated or damaged"),
        (b"\x89HDF\r\n\x1a\n\x03\x08\x08\x05" + bytes(1000), "truncated or damaged"),
    ],
)
def test_what_is_no_result_at_all(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "r.h5").write_bytes(content)
    with pytest.raises(ResultError, match=words):
        Result.from_hdf5(tmp_path / "r.h5")
    with pytest.raises(ResultError, match="There is no file"):
        Result.from_hdf5(tmp_path / "none.h5")
    with pytest.raises(ResultError, match="cannot be read"):
        Result.from_hdf5(tmp_path)
