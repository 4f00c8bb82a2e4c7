"""Lets the tests of this folder import the modules beside them, and spares them what none looks at.

FMPy checks each name of a variable with a parser that takes milliseconds, so a name is checked
once. Pictures of a diagram are drawn only for the tests of what an FMU shows to people.
"""

from __future__ import annotations

import copy
import re
import sys
from pathlib import Path

import fmpy.validation
import pytest

from biella import Diagram
from biella.fmu.exporter import _export
from biella.fmu.exporter._documentation import Pictures, draw_pictures

sys.path.insert(0, str(Path(__file__).parent))
# What the co-simulation benchmark couples is coupled as FMUs here.
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

DRAWN = {
    "test_commands.py", "test_description3.py", "test_documentation.py", "test_export.py",
    "test_mechanism.py", "test_terminal_export.py",
}  # fmt: skip
"""Files of tests whose FMUs have their pictures. Those of `test_description3.py` are of all
examples."""


@pytest.fixture(scope="session")
def small_picture() -> Pictures:
    """A picture of nothing, as an FMU has it whose diagram is too large to be drawn."""
    return Pictures("", draw_pictures(Diagram("small")).png)


@pytest.fixture(autouse=True)
def few_pictures(request, small_picture, monkeypatch):
    if request.path.name not in DRAWN:
        monkeypatch.setattr(_export, "draw_pictures", lambda *diagram: small_picture)


check_names = fmpy.validation._validate_variable_names
_legal: set[str] = set()


def check_new_names(description: fmpy.model_description.ModelDescription) -> list[str]:
    """Check names as FMPy does, but once those that differ in numbers only.

    For its grammar one row of digits is as good as another.
    """
    if description.variableNamingConvention == "flat":
        return check_names(description)
    forms = {re.sub("[0-9]+", "1", v.name): v for v in description.modelVariables}
    fresh = copy.copy(description)
    fresh.modelVariables = [v for form, v in forms.items() if form not in _legal]
    if fresh.modelVariables and check_names(fresh):
        return check_names(description)
    _legal.update(forms)
    return []


fmpy.validation._validate_variable_names = check_new_names
