"""FMUs that PyFMI runs."""

from __future__ import annotations

import sys

import pytest

from biella import (
    Fmu,
)
from biella.errors import FmuError

pytestmark = pytest.mark.engine


def test_without_pyfmi_the_message_says_where_it_is(specimen, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyfmi", None)
    with pytest.raises(FmuError, match=r"requires PyFMI, which is not installed.*conda-forge"):
        Fmu(specimen, backend="pyfmi")
