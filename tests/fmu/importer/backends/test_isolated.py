"""FMUs in a process of their own."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from specimen import TROUBLE, make_specimen

from biella import BlockError, Diagram, Fmu, FmuError, simulate
from biella.fmu.importer._archive import sweep
from biella.fmu.importer.backends._isolated import (
    DONE,
    FAILED,
    REPLY,
    STOPPED,
    IsolatedSession,
    Isolation,
    _open_life,
    pack_texts,
    unpack_texts,
)

from ..runs import fail

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("segfault", "the FMU `specimen.fmu` crashed: its process was terminated by SIGSEGV"),
        ("abort", "its process was terminated by SIGABRT"),
        ("exit", "exited its process with code 3"),
        ("hang", "did not respond within 1 s, and its process was terminated"),
        ("error", "fmi2DoStep returned fmi2Error at t = 0.05; its last messages"),
    ],
)
def test_an_isolated_fmu_cannot_take_the_run_with_it(specimen, tmp_path, trouble, message):
    timeout = 1.0 if trouble == "hang" else None
    error, _, good = fail(specimen, trouble, tmp_path, isolate=True, timeout=timeout)
    with pytest.raises(BlockError, match=message):
        raise error
    assert error.result.t[-1] == pytest.approx(0.05)
    assert error.result["bad.y"][0] == 1.0
    assert good == ["terminate", "free"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize("pidfd", [True, False])
def test_the_end_of_the_process_is_seen_although_a_child_holds_its_pipe(
    specimen, tmp_path, monkeypatch, pidfd
):
    """The child ends when the diary is gone; after 30 s it gives up, which closes the pipe."""
    if not pidfd:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    diary = tmp_path / "diary"
    diary.touch()
    d = Diagram("orphan", step=0.01)
    given = {"trouble": TROUBLE["orphan"], "at": 0.05, "diary": str(diary)}
    d.add(Fmu(specimen, isolate=True, parameters=given), name="bad")
    with pytest.raises(BlockError, match="its process was terminated by SIGABRT"):
        simulate(d, 0.1)
    found = diary.read_text()
    diary.unlink()
    assert "gave up" not in found
    for _ in range(300):  # the child uses the folder, until it sees that the diary is gone
        sweep()
        if not list(tmp_path.glob("biella-fmu-*")):
            break
        time.sleep(0.1)


LONG_RUN = """
import signal, sys
from biella import Diagram, Fmu, simulate
signal.signal(signal.SIGINT, signal.default_int_handler)
d = Diagram("long", step=1e-4)
d.add(Fmu(sys.argv[1], isolate=True, parameters={"diary": sys.argv[2]}), name="f")
result = simulate(d, 1e4, every=10**6, progress=False)
print(result.info["stopped"], "after", result.info["ticks"], "ticks")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of POSIX")
def test_ctrl_c_in_a_terminal_does_not_end_an_isolated_fmu(tmp_path):
    """A terminal sends SIGINT to all processes in front; the FMU's must not be one of them."""
    import pty

    specimen = make_specimen(tmp_path / "s.fmu", flags=("-DCOMMITS",))  # which notes its steps
    diary, said = tmp_path / "diary", b""
    child, terminal = pty.fork()
    if child == 0:
        command = [sys.executable, "-c", LONG_RUN, str(specimen), str(diary)]
        os.execv(sys.executable, command)
    try:
        # The run defers Ctrl-C only once it steps; before, it ends with a traceback.
        while not (diary.exists() and "step" in diary.read_text()):
            if os.waitpid(child, os.WNOHANG)[0]:
                raise AssertionError(os.read(terminal, 10000).decode())
            time.sleep(0.01)
        os.write(terminal, b"\x03")
        with contextlib.suppress(OSError):  # which is how a terminal ends
            while part := os.read(terminal, 1000):
                said += part
        os.waitpid(child, 0)
    finally:
        os.close(terminal)
    assert re.search(rb"interrupted at t = [\d.e-]+ s after \d+ ticks", said), said.decode()


# -- what a process may send that an FMU has taken over


@pytest.fixture
def imposter():
    """Return a session whose process runs a script instead of the worker."""
    started: list[Any] = []

    def start(script: str, timeout: float | None = None) -> Any:
        session: Any = IsolatedSession.__new__(IsolatedSession)
        session.process = subprocess.Popen(
            [sys.executable, "-c", f"import os, time\n{script}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(session)
        session._life, session._listener = _open_life(session.process), None
        session._in_call = session._told = False
        how = Isolation("engine", timeout)
        session.block = SimpleNamespace(external_name="the FMU `bad.fmu`", how=how)
        return session

    yield start
    for session in started:
        session.process.kill()
        session.process.wait(60)
        session.process.stdin.close()
        session.process.stdout.close()
        if session._life is not None:
            os.close(session._life)


def reply(outcome: int, size: int) -> str:
    return f"os.write(1, {REPLY.pack(outcome, size)!r})"


LATE = "did not respond within 0.5 s, and its process was terminated"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes cannot be selected")
def test_a_process_that_reads_no_request_is_ended_after_its_time(imposter):
    """The request is larger than the pipe: without an end, the write would last 20 s."""
    session = imposter("time.sleep(20)", 0.5)
    with pytest.raises(FmuError, match=LATE):
        session._call(b"R", payload=bytes(1 << 20))


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_child_that_holds_the_pipe_does_not_answer_after_the_time(imposter):
    script = f"os.fork() or (time.sleep(3), {reply(DONE, 0)}, os._exit(0))\ntime.sleep(20)"
    with pytest.raises(FmuError, match=LATE):
        imposter(script, 0.5)._call(b"A")


@pytest.mark.parametrize(
    ("op", "outcome", "size"),
    [(b"A", FAILED, 1 << 24), (b"A", STOPPED, 1 << 24), (b"A", DONE, -1), (b"R", STOPPED, 0)],
)
def test_answers_that_no_worker_gives_end_the_process(imposter, op, outcome, size):
    session = imposter(f"{reply(outcome, size)}\nos.write(1, b'x' * 60000)\ntime.sleep(20)")
    with pytest.raises(FmuError, match=r"has written to the pipe of its process"):
        session._call(op)


def test_outputs_of_another_size_are_an_error(imposter):
    session = imposter(f"{reply(DONE, 7)}\nos.write(1, bytes(7))\ntime.sleep(20)")
    session.values = SimpleNamespace(output_count=1)
    session._present = lambda: b""
    with pytest.raises(FmuError, match="sent an answer of 7 bytes"):
        session.output(0.0)


def test_texts_of_other_sizes_are_an_error():
    texts = [b"ab", None, b"", b"c"]
    message = pack_texts(texts)
    assert unpack_texts(message, 4) == texts
    huge = np.array([1 << 62, 1 << 62], dtype="<i8").tobytes()  # their sum is negative in 64 bits
    for wrong in (message[:-1], message + b"d", message[:20], b"", huge):
        with pytest.raises(FmuError, match="have other sizes than announced"):
            unpack_texts(wrong, 2 if wrong is huge else 4)
