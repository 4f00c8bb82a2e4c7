"""FMUs that PyFMI runs: through PyFMI itself, or through the double in ``doubles/``."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest
from specimen import TROUBLE, make_fmi3

from biella import BlockError, Diagram, Fmu
from biella.errors import FmuError

from ..runs import alone

pytestmark = pytest.mark.engine


def test_without_pyfmi_the_message_says_where_it_is(specimen, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyfmi", None)
    with pytest.raises(FmuError, match=r"requires PyFMI, which is not installed.*conda-forge"):
        Fmu(specimen, backend="pyfmi")


def test_it_gives_the_bits_of_the_engine(specimen):
    given = {"k": 3.0, "x": 0.25, "n": 7}
    runs = [alone(specimen, parameters=given, backend=b, substeps=2) for b in ("engine", "pyfmi")]
    for signal in ("f.y", "f.m", "f.c", "f.q"):
        assert np.array_equal(runs[0][signal], runs[1][signal])


def test_discard_without_termination_is_an_error(specimen):
    trouble = {"trouble": TROUBLE["discard"], "at": 0.05}
    with pytest.raises(BlockError, match="do_step of PyFMI returned 2"):
        alone(specimen, parameters=trouble, backend="pyfmi")


def test_an_error_is_an_error(specimen):
    trouble = {"trouble": TROUBLE["error"], "at": 0.05}
    with pytest.raises(BlockError, match=r"the FMU `specimen.fmu`: do_step of PyFMI returned 3"):
        alone(specimen, parameters=trouble, backend="pyfmi")


def test_after_an_error_it_is_not_terminated(specimen, tmp_path):
    diary = tmp_path / "diary"
    trouble = {"trouble": TROUBLE["error"], "at": 0.05, "diary": str(diary)}
    with pytest.raises(BlockError, match="do_step of PyFMI returned 3"):
        alone(specimen, parameters=trouble, backend="pyfmi")
    gc.collect()  # PyFMI frees the instance with its object
    assert "terminate" not in diary.read_text().split()


def test_tunable_parameters_are_followed(specimen):
    d = Diagram("tuned", step=0.01)
    d.add(Fmu(specimen, backend="pyfmi"), name="f")
    with d.compile().instantiate() as instance:
        instance.run(2)
        before = instance.get("f.y")
        instance.set("f.k", 10.0)
        instance.run(1)
        assert instance.get("f.y") - before == pytest.approx(0.5 * 8.0, abs=0.01)


def test_fmi3_is_refused_by_name(tmp_path):
    path = make_fmi3(tmp_path / "three.fmu")
    with pytest.raises(FmuError, match=r"FMUs of FMI 1.0 and 2.0, and the FMU `three.fmu` is not"):
        Fmu(path, backend="pyfmi", inputs=[], outputs=[])
