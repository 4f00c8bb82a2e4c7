"""The tests themselves: each ends, wherever it hangs; inherited signal actions do not matter."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HANGS = """
import os, signal, time
import h5py, numpy as np, pytest

@pytest.mark.timeout(4)  # faulthandler acts 2 s later: also a busy machine ends it in time
def test_in_python():
    time.sleep(10_000)

@pytest.mark.timeout(1)
def test_in_c(tmp_path):
    # HDF5 reads the missing metadata of a truncated file for ever, in SWMR mode.
    with h5py.File(tmp_path / "f.h5", "w", libver="v110") as file:
        for name in "abcdefgh":
            file.create_dataset(name, shape=(1000,), maxshape=(None,), chunks=(10,))[:] = 1.0
    os.truncate(tmp_path / "f.h5", 3000)
    with h5py.File(tmp_path / "f.h5", "r", libver="v110", swmr=True) as file:
        print([file[name][:] for name in "abcdefgh"])

def test_after():
    pass
"""

SIGNALS = """
import signal, subprocess, sys

def test_default():
    for name in ("SIGINT", "SIGHUP", "SIGTERM", "SIGCHLD", "SIGUSR1"):
        number = getattr(signal, name)
        expected = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
        assert signal.getsignal(number) is expected, name
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()

def test_a_child_has_them_too():
    child = "import os, signal; os.kill(os.getpid(), signal.SIGHUP)"
    assert subprocess.run([sys.executable, "-c", child]).returncode == -signal.SIGHUP
"""


def ignore_all() -> None:
    """Do as nohup, services and supervisors do, and more."""
    for name in ("SIGINT", "SIGHUP", "SIGTERM", "SIGCHLD", "SIGUSR1", "SIGALRM", "SIGPIPE"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    blocked = {signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, blocked)


def run_tests(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run tests in a process that has inherited everything unusual."""
    shutil.copy(Path(__file__).parent / "conftest.py", folder)
    (folder / "pytest.ini").write_text("[pytest]\ntimeout = 300\nmarkers =\n    slow\n    soak\n")
    (folder / "test_it.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=ignore_all,
        timeout=300,
    )


def test_inherited_signal_actions_do_not_matter(tmp_path: Path) -> None:
    done = run_tests(tmp_path, SIGNALS)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("options", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_a_test_that_hangs_is_ended(tmp_path: Path, options: list[str]) -> None:
    done = run_tests(tmp_path, HANGS, *options)
    assert done.returncode == 1
    assert "in test_in_c" in done.stderr, done.stdout + done.stderr
    if options:
        assert "Timeout (>4.0s) from pytest-timeout" in done.stdout
        assert "crashed while running 'test_it.py::test_in_c'" in done.stdout
        assert "2 failed, 1 passed" in done.stdout
