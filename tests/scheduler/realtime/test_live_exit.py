"""Live runs and their process: forks, signals, Ctrl-C at a prompt."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from biella.scheduler.results._result import Result

SETUP = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import live_runs, os, time\n"
)


def run_script(text: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SETUP + text], capture_output=True, text=True, **options
    )


def test_a_forked_child_ends_by_itself_and_the_run_goes_on(tmp_path: Path) -> None:
    """The child has a copy of the run, but not its threads, and shares its file."""
    path = str(tmp_path / "log.h5")
    done = run_script(f"""
from biella import BiellaError, run_realtime
from biella.scheduler.results._recorder import Hdf5Recorder
run = run_realtime(live_runs.loop(), out={path!r})
live_runs.wait_until(lambda: run._recorder._written > 0)
child = os.fork()
if child == 0:
    for use in (run.wait, run.stop, lambda: run.latest("plant"), lambda: run.result,
                lambda: run.__setitem__("pid.kp", 3.0), lambda: run.override("plant", 1.0)):
        try:
            use()
            print("it was used")
        except BiellaError as error:
            assert f"continues in process {{os.getppid()}}" in str(error), error
    with run:
        pass
    assert not run.running and f"continues in process {{os.getppid()}}" in repr(run)
    sys.exit(7)
status = os.waitpid(child, 0)[1]
assert run.running
kept = run._recorder._written
live_runs.wait_until(lambda: run._recorder._written > kept)
run["pid.kp"] = 3.0
result = run.stop()
print(os.waitstatus_to_exitcode(status), result.length)
""")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    code, length = map(int, done.stdout.split())
    log = Result.from_hdf5(tmp_path / "log.h5")
    assert code == 7 and log.length == length
    assert log.t.tolist() == [pytest.approx(k * 1e-3) for k in range(length)]
    assert all(len(log[path]) == length for path in log)
    assert log.log is not None
    assert len(log.log.input_log) > 0 and log.log.ticks == length - 1
    assert list(tmp_path.iterdir()) == [tmp_path / "log.h5"]


def test_so_does_the_child_of_an_offline_recording(tmp_path: Path) -> None:
    done = run_script(f"""
import numpy as np
from biella.scheduler.results._recorder import Hdf5Recorder
from biella.scheduler.results._signals import Signal
r = Hdf5Recorder({str(tmp_path / "r.h5")!r}, [Signal(f"s{{k}}") for k in range(5)])
for k in range(100):
    r.append(np.full((100, 6), float(k)))
    if k % 10 == 5:
        r.flush()
    if k % 10 == 7:
        child = os.fork()
        if child == 0:
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
r.close()
""")
    assert (done.returncode, done.stderr) == (0, "")
    result = Result.from_hdf5(tmp_path / "r.h5")
    assert all((result[path] == [k // 100 for k in range(10_000)]).all() for path in result)


def read_until(terminal: int, words: str) -> str:
    seen = b""
    while words.encode() not in seen:
        seen += os.read(terminal, 4096)
    return seen.decode()


def press_ctrl_c(terminal: int, words: str) -> None:
    """Press Ctrl-C until words appear.

    Python looks for signals before it waits for a key and when one interrupts the wait: one that
    comes in between has no effect until the next.
    """
    seen = b""
    while words.encode() not in seen:
        if not seen:
            os.write(terminal, b"\x03")
        if select.select([terminal], [], [], 2.0)[0]:
            seen += os.read(terminal, 4096)
        else:
            seen = b""


def test_ctrl_c_at_a_prompt_ends_a_run() -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.environ["PYTHON_BASIC_REPL"] = "1"
        os.execv(sys.executable, [sys.executable, "-q", "-i", "-c", SETUP])
    try:
        os.write(terminal, b"from biella import run_realtime\n")
        os.write(terminal, b"run = run_realtime(live_runs.loop())\n")
        os.write(terminal, b"run.latest('plant') < 9 and 'it' + 'goes'\n")
        read_until(terminal, "'itgoes'")
        press_ctrl_c(terminal, "KeyboardInterrupt")
        os.write(terminal, b"'it ' + run.result.info['stopped']\n")
        assert "'it interrupted by Ctrl-C at t = " in read_until(terminal, "at t = ")
        # The action of Ctrl-C is Python's own again.
        os.write(terminal, b"import signal; run.wait() and None\n")
        os.write(terminal, b"'it ' + signal.getsignal(2).__name__\n")
        read_until(terminal, "'it default_int_handler'")
    finally:
        os.close(terminal)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_ctrl_c_during_an_offline_run_ends_live_runs_too() -> None:
    done = run_script("""
import signal, threading
from biella import run_realtime, simulate
run = run_realtime(live_runs.loop())
press = lambda: (time.sleep(0.2), os.kill(os.getpid(), signal.SIGINT))
threading.Thread(target=press).start()
result = simulate(live_runs.loop(), 1e9, record=["plant"], every=10**6, progress=False)
print(result.info["stopped"][:11], run.wait().info["stopped"][:21])
""")
    assert done.stdout == "interrupted interrupted by Ctrl-C\n", done.stderr


def test_under_nohup_a_run_goes_on_when_its_terminal_is_closed(tmp_path: Path) -> None:
    """An ignored SIGHUP stays ignored; SIGTERM still ends the run safely."""
    path = tmp_path / "log.h5"
    done = run_script(
        f"""
import signal
from biella import run_realtime
run = run_realtime(live_runs.loop(), out={str(path)!r})
run.latest("plant")
os.kill(os.getpid(), signal.SIGHUP)
tick = run.tick
live_runs.wait_until(lambda: run.tick > tick + 50)
print("goes on", flush=True)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(100)
""",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert done.stdout == "goes on\n", done.stderr
    assert done.returncode == 128 + signal.SIGTERM
    assert Result.from_hdf5(path).info["stopped"].startswith("ended by SIGTERM at t = ")
