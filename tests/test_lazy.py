"""Names that are imported when they are first used."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import biella
import biella.blocks
import biella.results
from biella._lazy import attach

LAZY = ("biella", "biella.blocks", "biella.fmu")


@pytest.mark.parametrize("name", LAZY)
def test_the_three_lists_of_a_lazy_package_agree(name):
    """`__all__`, the imports for type checkers, and the table of `attach`."""
    module = importlib.import_module(name)
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text())
    (branch,) = (node for node in tree.body if isinstance(node, ast.If))
    checked = {
        ("." * node.level + (node.module or ""), item.name, item.asname == item.name)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for item in node.names
    }
    (assignment,) = branch.orelse
    assert isinstance(assignment, ast.Assign) and isinstance(assignment.value, ast.Call)
    table = ast.literal_eval(assignment.value.args[1])
    assert {(home, each) for home, names in table.items() for each in names} == {
        (home, each) for home, each, _ in checked
    }
    # A name that is kept, but deprecated, is exported as `name as name` instead of in `__all__`.
    assert {each for _, each, aliased in checked if not aliased} == set(module.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'biella' has no attribute 'simulat'"):
        _ = biella.simulat  # type: ignore[attr-defined]
    get, listed = attach(biella.results.__name__, {".scheduler.results.result": ("Result",)})
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        get("nothing")
    assert "Result" in listed()


def test_a_diagram_without_loops_and_couplings_needs_no_graph_library():
    """Every command and every FMU in a process of its own starts with what is imported."""
    code = """
import sys
from biella import Diagram, simulate
from biella.blocks import Gain, Integrator, Step
d = Diagram("loop", step=1e-3, solver="rk4")
speed = d.add(Integrator(), "speed")
d.connect(d.add(Gain(-2.0), "gain", u=speed), speed)
simulate(d, 0.1)
import biella.fmu.importer.backends._worker
heavy = {"networkx", "scipy", "matplotlib", "h5py", "fmpy"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_threads_may_use_lazy_names_first():
    code = """
import sys, threading
sys.setswitchinterval(1e-6)
import biella
names, failures, barrier = biella.__all__, [], threading.Barrier(8)
def use(first):
    barrier.wait()
    try:
        for name in names[first:] + names[:first]:
            getattr(biella, name)
    except ImportError as error:
        failures.append(error)
threads = [threading.Thread(target=use, args=(3 * k,)) for k in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not failures, failures
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
