"""FMUs in a process of their own."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import time

import pytest
from specimen import TROUBLE, make_specimen

from biella import (
    BlockError,
    Diagram,
    Fmu,
    simulate,
)

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def specimen(tmp_path_factory):
    return make_specimen(tmp_path_factory.mktemp("specimen") / "specimen.fmu")


@pytest.fixture(autouse=True)
def no_folder_is_left(tmp_path, monkeypatch):
    """Every test unpacks below a folder of its own, which must be empty afterwards."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    yield
    assert list(tmp_path.glob("biella-fmu-*")) == []


def fail(specimen, trouble, tmp_path, **options):
    """Run a specimen into trouble at 0.05 s beside a healthy one; return error and diaries."""
    d = Diagram("trouble", step=0.01)
    diaries = [tmp_path / "bad", tmp_path / "good"]
    bad = {"trouble": TROUBLE[trouble], "at": 0.05, "diary": str(diaries[0])}
    d.add(Fmu(specimen, instance_name="culprit", parameters=bad, **options), name="bad")
    d.add(Fmu(specimen, parameters={"diary": str(diaries[1])}), name="good")
    with pytest.raises(BlockError) as caught:
        simulate(d, 0.1)
    texts = [path.read_text().split()[-2:] if path.exists() else [] for path in diaries]
    return caught.value, *texts


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("segfault", "the FMU `specimen.fmu` crashed: its process was ended by SIGSEGV"),
        ("abort", "its process was ended by SIGABRT"),
        ("exit", "ended its own process with exit code 3"),
        ("hang", "did not answer within 1 s, so its process was ended"),
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
def test_ctrl_c_in_a_terminal_does_not_end_an_isolated_fmu(specimen, tmp_path):
    """A terminal sends SIGINT to all processes in front; the FMU's must not be one of them."""
    import pty

    diary, said = tmp_path / "diary", b""
    child, terminal = pty.fork()
    if child == 0:
        command = [sys.executable, "-c", LONG_RUN, str(specimen), str(diary)]
        os.execv(sys.executable, command)
    try:
        while not (diary.exists() and "exit" in diary.read_text()):  # the run has begun
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
