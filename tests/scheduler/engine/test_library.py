"""The C library: where it is, whether it belongs to the generated module, sizes of blocks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from biella import BiellaError, Diagram, _contract
from biella.blocks import Constant, StateSpace
from biella.scheduler.engine._library import kernel_sizes, library_path, load_library

pytestmark = pytest.mark.engine


def test_a_library_of_another_contract_is_refused(tmp_path, c_compiler):
    source = tmp_path / "other.c"
    source.write_text('const char *bl_contract(void) { return "0123456789abcdef"; }\n')
    other = tmp_path / "libother.so"
    subprocess.run(
        [*c_compiler.command, "-shared", "-fPIC", source, "-o", other], check=True, timeout=1800
    )
    message = (
        f"{re.escape(str(other))} and .*_contract.py were built from different headers "
        rf"\(digests 0123456789abcdef and {_contract.DIGEST}\).*scheduler/engine/build.py"
    )
    with pytest.raises(BiellaError, match=message):
        load_library(other)

    source.write_text("int nothing;\n")
    older = tmp_path / "libolder.so"
    subprocess.run(
        [*c_compiler.command, "-shared", "-fPIC", source, "-o", older], check=True, timeout=1800
    )
    with pytest.raises(BiellaError, match=r"digests unknown and"):
        load_library(older)


def test_a_library_that_the_environment_names_is_checked_too(tmp_path, c_compiler):
    source = tmp_path / "other.c"
    source.write_text('const char *bl_contract(void) { return "0123456789abcdef"; }\n')
    other = tmp_path / "libother.so"
    subprocess.run(
        [*c_compiler.command, "-shared", "-fPIC", source, "-o", other], check=True, timeout=1800
    )
    code = (
        "import biella\nd = biella.Diagram('d', step=1e-3)\n"
        "d.add(biella.blocks.Constant(1.0))\nbiella.simulate(d, until=1e-3)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "BIELLA_LIBRARY": str(other)},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode and "were built from different headers" in done.stderr


def test_a_checkout_that_was_not_built_says_how_to_build_it():
    code = (
        "import sys\n"
        "class Unbuilt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'biella._contract':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Unbuilt())\n"
        "import biella.scheduler.engine._library"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=1800
    )
    assert "BiellaError: the engine has not been built" in done.stderr
    assert "scheduler/engine/build.py" in done.stderr


def test_a_relative_name_of_a_library_is_that_of_a_file(monkeypatch, tmp_path):
    shutil.copy(library_path(), tmp_path / "engine.so")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BIELLA_LIBRARY", "engine.so")
    assert library_path().is_absolute()
    load_library(library_path())


def test_a_kernel_computes_the_sizes_of_a_block():
    sizes = kernel_sizes("delay", inputs=[3], outputs=[3], states=0, parameters=1, integers=[5])
    assert sizes == (1 + 5 * 3, 0)
    assert kernel_sizes("gain", inputs=[1], outputs=[1], states=0, parameters=1, integers=[]) == (
        0,
        0,
    )


def test_a_block_that_does_not_fit_its_kernel_is_reported():
    assert (
        kernel_sizes("delay", inputs=[3], outputs=[2], states=0, parameters=1, integers=[5]) is None
    )
    assert kernel_sizes("none", inputs=[], outputs=[], states=0, parameters=0, integers=[]) is None
    fitting = StateSpace([[0.0]], [[1.0]], [[1.0]], [[0.0]])
    block = fitting.copy_with(integers=[2], kernel="delay")
    d = Diagram("wrong", step=1e-3)
    d.connect(d.add(Constant(1.0)), d.add(block, name="plant"))
    with pytest.raises(BiellaError, match="`plant` does not fit its kernel `delay`"):
        d.compile()
