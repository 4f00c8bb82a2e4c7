"""FMUs that PyFMI runs."""

from __future__ import annotations

import sys
import tempfile

import pytest
from specimen import make_specimen

from biella import (
    Fmu,
)
from biella.errors import FmuError

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


def test_without_pyfmi_the_message_says_where_it_is(specimen, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyfmi", None)
    with pytest.raises(FmuError, match=r"needs PyFMI, which is not installed.*conda-forge"):
        Fmu(specimen, backend="pyfmi")
