"""The specimen, and a temporary folder that an FMU must leave empty."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path

import pytest
from specimen import make_specimen


@pytest.fixture(scope="module")
def specimen(tmp_path_factory):
    return make_specimen(tmp_path_factory.mktemp("specimen") / "specimen.fmu")


@pytest.fixture(autouse=True)
def pyfmi_is_there(monkeypatch):
    """PyFMI, or a double of it that other processes find too."""
    if importlib.util.find_spec("pyfmi") is None:
        monkeypatch.syspath_prepend(str(Path(__file__).with_name("doubles")))
        yield
        sys.modules.pop("pyfmi", None)
    else:
        yield


@pytest.fixture(autouse=True)
def no_folder_is_left(tmp_path, monkeypatch):
    """Every test unpacks below a folder of its own, which must be empty afterwards."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    yield
    assert list(tmp_path.glob("biella-fmu-*")) == []
