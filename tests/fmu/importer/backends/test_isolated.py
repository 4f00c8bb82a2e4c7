"""FMUs in a process of their own."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time

import pytest
from specimen import TROUBLE, make_specimen

from biella import BlockError, Diagram, Fmu, simulate
from biella.fmu.importer._archive import sweep

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
