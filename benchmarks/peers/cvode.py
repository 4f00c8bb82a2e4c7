"""SUNDIALS CVODE, from the package scikit-sundae: as it is used in Python, and called from C."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from workloads.baseline import FLAGS
from workloads.initial_value_problems import Problem

LIBRARIES = (
    "core", "nvecserial", "sunmatrixdense", "sunmatrixband", "sunlinsoldense", "sunlinsolband",
    "cvode",
)  # fmt: skip
"""Parts of SUNDIALS in the order in which they need each other."""

Counted = tuple[Any, int, int]
"""The states at the end, evaluations and factorizations."""


def _package() -> Path | None:
    found = importlib.util.find_spec("sksundae")
    return Path(found.origin).parent if found and found.origin else None


def is_installed() -> bool:
    """Return whether scikit-sundae can be imported."""
    return _package() is not None


def build_function(problem: Problem) -> Callable[[float, float], Counted] | None:
    """Compile CVODE's driver with the problem; None where the package or a compiler is missing.

    The function takes the relative and the absolute tolerance.
    """
    package, compiler = _package(), os.environ.get("CC") or shutil.which("cc")
    if package is None or compiler is None:
        return None
    if 'SUNDIALS_INT_TYPE = "int"' not in (package / "py_config.pxi").read_text():
        return None
    folder = package.parent / "scikit_sundae.libs"
    for part in LIBRARIES:
        for file in folder.glob(f"libsundials_{part}-*.so*"):
            ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL)
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "problem.c"
        source.write_text(problem.c_source(), encoding="utf-8")
        target = Path(scratch) / "cvode_c.so"
        driver = Path(__file__).parents[1] / "workloads" / "cvode_c.c"
        command = [*compiler.split(), *FLAGS, str(driver), str(source), "-lm", "-o", str(target)]
        subprocess.run(command, check=True)
        run = ctypes.CDLL(str(target)).run_cvode
    run.argtypes = [
        ctypes.c_int, ctypes.c_void_p, ctypes.c_double, ctypes.c_double, ctypes.c_double,
        ctypes.c_int, ctypes.c_void_p,
    ]  # fmt: skip

    def solve(relative: float, absolute: float) -> Counted:
        x = np.array(problem.start, dtype=float)
        counts = np.zeros(2, dtype=np.int64)
        status = run(
            len(x), x.ctypes.data, problem.end, relative, absolute, problem.stiff,
            counts.ctypes.data,
        )  # fmt: skip
        if status < 0:
            return np.full(len(x), np.nan), int(counts[0]), int(counts[1])
        return x, int(counts[0]), int(counts[1])

    return solve


def solve_in_python(problem: Problem) -> Callable[[float, float], Any]:
    """Return CVODE as Python users call it: the right-hand side is a Python function."""
    from sksundae.cvode import CVODE

    made = problem.function()

    def slope(t: float, x: Any, dx: Any) -> None:
        dx[:] = made(t, x)

    def solve(relative: float, absolute: float) -> Any:
        solver = CVODE(
            slope,
            method="BDF" if problem.stiff else "Adams",
            rtol=relative,
            atol=absolute,
            max_num_steps=10_000_000,
        )
        result = solver.solve(np.array([0.0, problem.end]), np.array(problem.start, dtype=float))
        return result.y[-1] if result.success else np.full(len(problem.start), np.nan)

    return solve
