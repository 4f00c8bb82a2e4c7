"""Every example runs as a script, makes its picture, and compiles from the command line."""

from __future__ import annotations

import ast
import atexit
import math
import multiprocessing
import os
import re
import runpy
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from biella import simulate
from biella.cli import main

# A process that has imported what nearly all examples import, 0.7 s of processor time, and forks.
CONTEXT: Any = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
if os.name == "posix":
    CONTEXT.set_forkserver_preload(["matplotlib.pyplot", "biella.blocks.multibody", "biella.cli"])

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("[0-9][0-9]_*.py"))


def test_there_are_examples():
    assert EXAMPLES


def test_the_list_of_examples_says_what_they_are_and_what_they_write():
    text = (EXAMPLES[0].parent / "README.md").read_text()
    rows = dict(re.findall(r"^\| \[\w+\]\((\w+\.py)\) \| (.*) \|$", text, re.M))
    assert sorted(rows) == [path.name for path in EXAMPLES]
    for path in EXAMPLES:
        code = path.read_text()
        about = (ast.get_docstring(ast.parse(code)) or "").partition("\n\n")[0]
        sentence, _, written = rows[path.name].partition(" | ")
        assert sentence == " ".join(about.split())
        for name in re.findall(r"`([^`]+)`", written) or pytest.fail(path.name):
            assert f'"{name}"' in code


def run_script(script: Path, folder: Path, log: Path) -> None:
    """Run a script as Python does, with warnings as errors; in a process of its own."""
    os.chdir(folder)
    with log.open("w") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    sys.argv = [str(script)]
    sys.path.insert(0, str(script.parent))
    warnings.simplefilter("error")
    runpy.run_path(str(script), run_name="__main__")
    atexit._run_exitfuncs()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, tmp_path, monkeypatch, capsys):
    source = example.read_text()
    assert len(source.splitlines()) <= 90
    if "firmware.board" in source and not shutil.which(os.environ.get("CC", "cc")):
        pytest.skip("needs a C compiler, for the firmware")
    log = tmp_path / "log.txt"
    process = CONTEXT.Process(target=run_script, args=(example, tmp_path, log))
    process.start()
    process.join(timeout=290)
    process.kill()
    process.join(timeout=10)
    assert process.exitcode == 0, log.read_text()
    pictures = [p for p in tmp_path.iterdir() if p.suffix in (".png", ".svg", ".gif")]
    assert pictures and all(p.stat().st_size > 1000 for p in pictures)
    monkeypatch.chdir(tmp_path)
    assert main(["check", str(example)]) == 0, capsys.readouterr().err


def test_the_anti_lock_brake_stops_between_its_bounds():
    """From v₀ to v₁ at a constant friction μ takes (v₀² - v₁²) / 2 μ g: 56.7 m at the peak of the
    tire's curve, where exp(-c₂ s) = c₃ / c₁ c₂, and 89.0 m with a locked wheel."""
    m = runpy.run_path(str(EXAMPLES[0].parent / "25_anti_lock_brake.py"))
    c1, c2, c3 = m["C1"], m["C2"], m["C3"]
    s = math.log(c1 * c2 / c3) / c2
    peak = c1 * (1 - math.exp(-c2 * s)) - c3 * s
    best, locked = ((30.0**2 - 3.0**2) / (2 * mu * 9.81) for mu in (peak, c1 - c3))
    on, off = (simulate(m["diagram"](is_on), 20.0) for is_on in (True, False))
    assert best < on["place"][-1] < 1.2 * best
    assert on["slip"].max() < 0.6 and off["slip"].max() == pytest.approx(1.0)
    # Locked after 0.3 s of better friction, which saves at most 0.3 s · 30 m/s · (1 - μ₁/μ).
    assert locked - 0.3 * 30 * (1 - (c1 - c3) / peak) < off["place"][-1] < locked
    # Located thresholds: the step of the diagram does not matter. Tolerance 1e-8 over 3 s and 60 m.
    fine = simulate(m["diagram"](True, 1e-3), 20.0)
    assert fine["place"][3000] == pytest.approx(on["place"][1500], abs=1e-4)
