"""Builds `workloads/diagram_c.c` with the system's C compiler and gives its functions."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from workloads.works import LINE_GAIN, LINE_PAIRS, LINE_START, PID, STEP, ticks

# Those of the engine, so that what is compared is the design and not the compiler's options.
FLAGS = ["-std=c11", "-O2", "-ffp-contract=off", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror"]


Baseline = Callable[[float], float]
"""Runs the simulated seconds that it is given; returns the final output."""


def build_baselines() -> dict[str, dict[str, Baseline]]:
    """Compile the C; give the baselines of each work by name."""
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None:
        sys.exit("The C baselines need a C compiler: install one as `cc`, or name it in CC.")
    parameters = PID | {
        "LINE_PAIRS": LINE_PAIRS,
        "LINE_GAIN": LINE_GAIN,
        "LINE_START": LINE_START,
    }
    definitions = [f"-D{name}={value!r}" for name, value in parameters.items()]
    source = Path(__file__).with_name("diagram_c.c")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "diagram_c.so"
        subprocess.run(
            [*compiler.split(), *FLAGS, *definitions, str(source), "-o", str(target)], check=True
        )
        library = ctypes.CDLL(str(target))

    def bind(name: str) -> Baseline:
        function = getattr(library, name)
        function.argtypes, function.restype = [ctypes.c_long, ctypes.c_double], ctypes.c_double
        return lambda seconds: function(ticks(seconds), STEP)

    return {
        "pid": {"written out": bind("pid_written_out"), "table": bind("pid_table")},
        "line": {"table": bind("line_table")},
    }
