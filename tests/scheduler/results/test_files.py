"""Output files: only recordings of biella are replaced, and not before there is a new one."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from biella import Diagram, run_realtime, simulate
from biella.blocks import Constant, Gain
from biella.cli import main
from biella.scheduler.binding._bind import check_binding
from biella.scheduler.realtime.log._replay import replay
from biella.scheduler.results._recorder import Hdf5Recorder
from biella.scheduler.results._result import Result
from biella.scheduler.results._signals import ResultError, Signal
from biella.scheduler.results.storage._atomic_file import AtomicFile

SIGNALS = [Signal("y")]
DIAGRAM = """
from biella import Diagram
from biella.blocks import Constant, Gain

def diagram():
    d = Diagram("d", step=1e-3)
    d.connect(d.add(Constant(1.0), name="c"), d.add(Gain(2.0), name="k"))
    return d
"""


def diagram() -> Diagram:
    d = Diagram("d", step=1e-3)
    d.connect(d.add(Constant(1.0), name="c"), d.add(Gain(2.0), name="k"))
    return d


def rows(count: int, first: int = 0) -> np.ndarray:
    times = np.arange(first, first + count, dtype=float)
    return np.stack([times, times**2], axis=1)


def make_text(path: Path) -> None:
    path.write_text("my notes")


def make_other_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["mine"] = np.arange(3)


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_device(path: Path) -> None:
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 3))  # as /dev/null
    except OSError:
        pytest.skip("needs the right to make a device node")


@pytest.fixture(params=[make_text, make_other_hdf5, make_pipe, make_folder, make_device])
def foreign(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Something of the user's."""
    path = tmp_path / "mine.h5"
    request.param(path)
    return path


def look(path: Path) -> object:
    """Return what must not change."""
    about = path.stat()
    content = path.read_bytes() if path.is_file() else b""
    there = sorted(item for item in path.parent.iterdir() if item.name != "__pycache__")
    return about.st_mode, about.st_ino, about.st_rdev, content, there


class TestForeignFiles:
    def test_no_run_replaces_it(self, foreign: Path) -> None:
        before = look(foreign)
        with pytest.raises(ResultError, match=r"mine\.h5.*not replaced"):
            Hdf5Recorder(foreign, SIGNALS)
        with pytest.raises(ResultError, match=r"mine\.h5.*not replaced"):
            simulate(diagram(), 0.01, out=foreign)
        with pytest.raises(ResultError, match=r"mine\.h5.*not replaced"):
            run_realtime(diagram(), 0.01, out=foreign)
        with pytest.raises(ResultError, match=r"mine\.h5.*not replaced"):
            simulate(diagram(), 0.01).to_hdf5(foreign)
        assert look(foreign) == before

    @pytest.mark.parametrize("option", ["--log", "--out"])
    def test_nor_does_the_command_line(
        self, foreign: Path, option: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        (tmp_path / "d.py").write_text(DIAGRAM)
        before = look(foreign)
        command = "run-realtime" if option == "--log" else "simulate"
        run = [command, str(tmp_path / "d.py"), "--until", "0.01", option, str(foreign)]
        assert main(run) == 1
        assert "not replaced" in capsys.readouterr().err
        assert look(foreign) == before

    def test_a_binding_that_names_it_has_a_problem(
        self, foreign: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        (tmp_path / "d.py").write_text(DIAGRAM)
        (tmp_path / "rig.toml").write_text(f"[run]\nout = {str(foreign)!r}\n")
        before = look(foreign)
        check = check_binding(diagram(), tmp_path / "rig.toml")
        assert len(check.problems) == 1
        assert check.problems[0].startswith("[run] out: ") and "not replaced" in check.problems[0]
        assert main(["bind", str(tmp_path / "d.py"), str(tmp_path / "rig.toml")]) == 1
        assert "not replaced" in capsys.readouterr().err
        assert look(foreign) == before
        # A file that is given instead is what counts.
        other = tmp_path / "other.h5"
        run = run_realtime(diagram(), 0.01, bind=tmp_path / "rig.toml", out=other, clock="free")
        assert run.wait().length == 11 == Result.from_hdf5(other).length


def test_a_file_of_another_kind_replaces_no_device(tmp_path: Path) -> None:
    path = tmp_path / "device"
    make_device(path)
    before = look(path)
    with pytest.raises(ResultError, match="not a regular file"):
        simulate(diagram(), 0.01).to_csv(path)
    assert look(path) == before


def test_an_empty_file_is_nothing_to_lose(tmp_path: Path) -> None:
    (tmp_path / "r.h5").touch()
    assert simulate(diagram(), 0.01, out=tmp_path / "r.h5").length == 11


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "r.h5").symlink_to(tmp_path / "data" / "run.h5")
    for until in (0.01, 0.02):
        simulate(diagram(), until, out=tmp_path / "r.h5")
    assert (tmp_path / "r.h5").is_symlink()
    assert Result.from_hdf5(tmp_path / "data" / "run.h5").length == 21


def test_a_log_is_not_replaced_by_its_own_replay(tmp_path: Path) -> None:
    run_realtime(diagram(), 0.02, clock="free", out=tmp_path / "log.h5").wait()
    before = (tmp_path / "log.h5").read_bytes()
    with pytest.raises(ResultError, match="is the log that is replayed"):
        replay(tmp_path / "log.h5", out=tmp_path / "log.h5")
    assert (tmp_path / "log.h5").read_bytes() == before


class TestEarlierRecording:
    def test_it_is_replaced_when_the_new_one_has_rows_on_the_disk(self, tmp_path: Path) -> None:
        path = tmp_path / "r.h5"
        first = Hdf5Recorder(path, SIGNALS)
        assert first.path == path
        first.append(rows(3))
        first.close()
        second = Hdf5Recorder(path, SIGNALS)
        assert second.path == tmp_path / "r.new.h5"
        assert Result.from_hdf5(path).length == 3
        second.append(rows(5))
        assert second.path == path
        assert Result.from_hdf5(path).length == 5
        second.append(rows(5, 5))
        assert second.close()["y"].tolist() == [k**2 for k in range(10)]
        assert Result.from_hdf5(path).length == 10
        assert list(tmp_path.iterdir()) == [path]

    def test_a_run_without_a_row_leaves_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "r.h5"
        with Hdf5Recorder(path, SIGNALS) as first:
            first.append(rows(3))
        second = Hdf5Recorder(path, SIGNALS)

        def refuse(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(AtomicFile, "commit", refuse)
        with pytest.raises(
            ResultError, match=r"no row was recorded. `.*r\.h5` still contains the earlier"
        ):
            second.append(rows(5))
        assert second.close().length == 0
        assert Result.from_hdf5(path)["y"].tolist() == [0, 1, 4]

    def test_the_name_beside_it_may_be_taken(self, tmp_path: Path) -> None:
        Hdf5Recorder(tmp_path / "r.h5", SIGNALS).close()
        (tmp_path / "r.new.h5").write_text("mine")
        with pytest.raises(ResultError, match=r"r\.new\.h5.*not replaced"):
            Hdf5Recorder(tmp_path / "r.h5", SIGNALS)
        (tmp_path / "r.new.h5").unlink()
        Hdf5Recorder(tmp_path / "r.h5", SIGNALS).close()


RECORD = """
import sys
import numpy as np
from biella.scheduler.results._recorder import Hdf5Recorder
from biella.scheduler.results._signals import Signal
r = Hdf5Recorder(sys.argv[1], [Signal("y")])
r.append(np.zeros((4, 2)))
r.flush()
print("records", flush=True)
sys.stdin.readline()
r.close()
"""

FORK = """
import os
if os.fork() == 0:
    print("waits", flush=True)
    sys.stdin.read()
    os._exit(0)
"""


class TestLock:
    def test_two_runs_of_a_process(self, tmp_path: Path) -> None:
        path = tmp_path / "r.h5"
        first = Hdf5Recorder(path, SIGNALS)
        first.append(rows(3))
        for _ in range(2):
            with pytest.raises(ResultError, match="another run of this process is recording to it"):
                Hdf5Recorder(path, SIGNALS)
            with pytest.raises(ResultError, match="another run of this process"):
                Result.from_arrays([0.0], {"y": [1.0]}).to_hdf5(path)
        assert first.close().length == 3 == Result.from_hdf5(path).length
        Hdf5Recorder(path, SIGNALS).close()
        assert list(tmp_path.iterdir()) == [path]

    @pytest.mark.parametrize("killed", [True, False])
    def test_two_processes(self, tmp_path: Path, killed: bool) -> None:
        path = tmp_path / "r.h5"
        process = subprocess.Popen(
            [sys.executable, "-c", RECORD, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "records\n"
            with pytest.raises(ResultError, match=rf"another run \(process {process.pid}\)"):
                simulate(diagram(), 0.01, out=path)
            if killed:
                process.send_signal(signal.SIGKILL)
            process.communicate("end\n", timeout=300)
        finally:
            process.kill()
            process.wait(60)
        assert Result.from_hdf5(path).length == 4
        assert simulate(diagram(), 0.01, out=path).length == 11
        assert list(tmp_path.iterdir()) == [path]

    def test_a_recorder_that_is_forgotten_lets_go(self, tmp_path: Path) -> None:
        recorder = Hdf5Recorder(tmp_path / "r.h5", SIGNALS)
        recorder.append(rows(3))
        del recorder
        Hdf5Recorder(tmp_path / "r.h5", SIGNALS).close()

    def test_a_recording_beside_an_earlier_one_is_locked_too(self, tmp_path: Path) -> None:
        Hdf5Recorder(tmp_path / "r.h5", SIGNALS).close()
        first = Hdf5Recorder(tmp_path / "r.h5", SIGNALS)
        with pytest.raises(ResultError, match=r"r\.new\.h5.*another run of this process"):
            Hdf5Recorder(tmp_path / "r.new.h5", SIGNALS)
        first.append(rows(3))
        first.flush()
        second = Hdf5Recorder(tmp_path / "r.new.h5", SIGNALS)
        with pytest.raises(ResultError, match=r"another run of this process"):
            Hdf5Recorder(tmp_path / "r.h5", SIGNALS)
        assert (first.close().length, second.close().length) == (3, 0)
        assert sorted(tmp_path.iterdir()) == [tmp_path / "r.h5", tmp_path / "r.new.h5"]

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
    def test_a_forked_child_does_not_keep_the_lock_of_a_killed_process(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "r.h5"
        script = RECORD.replace('print("records", flush=True)', FORK)
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            assert process.stdout.readline() == "waits\n"
            with pytest.raises(ResultError, match=rf"another run \(process {process.pid}\)"):
                simulate(diagram(), 0.01, out=path)
            process.kill()
            process.wait(60)
            assert simulate(diagram(), 0.01, out=path).length == 11
        finally:
            process.kill()
            process.stdin.close()  # ends the child
            process.stdout.read()
            process.stdout.close()

    def test_a_lock_file_that_another_user_left_does_not_matter(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lock = tmp_path / ".r.h5.lock"
        lock.write_text("1")
        plain = os.open

        def refuse(path: str | Path, flags: int, *mode: int) -> int:
            if Path(path) == lock and flags & os.O_RDWR:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return plain(path, flags, *mode)

        monkeypatch.setattr(os, "open", refuse)
        assert simulate(diagram(), 0.01, out=tmp_path / "r.h5").length == 11
