"""Signals of a run: a process may fork while another thread registers what it watches."""

import subprocess
from pathlib import Path

import pytest

import biella

HERE = Path(__file__).parent
PACKAGE = Path(biella.__file__).parent
SOURCES = ["scheduler/realtime/safety/signals.c", "scheduler/realtime/loop/clock.c"]

pytestmark = pytest.mark.engine


def test_a_child_that_is_forked_during_a_registration_can_register(c_compiler, tmp_path):
    program = tmp_path / "forks"
    options = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-pthread", f"-I{PACKAGE}"]
    sources = [HERE / "forks.c", *(PACKAGE / source for source in SOURCES)]
    command = [*c_compiler.command, *options, *sources, "-o", program, "-lm"]
    subprocess.run(command, check=True, timeout=300)
    done = subprocess.run([program], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "0\n"
