"""What is public: where it is imported from, and what an import costs."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]

PUBLIC_PACKAGES = {
    "biella",
    "biella.blocks",
    "biella.blocks.bearings",
    "biella.blocks.control",
    "biella.blocks.daq",
    "biella.blocks.multibody",
    "biella.blocks.multibody.dual",
    "biella.blocks.multibody.reference_formulations",
    "biella.blocks.sensors",
    "biella.fmu",
    "biella.studio",
}
PUBLIC_MODULES = {
    "biella.blocks.authoring",
    "biella.blocks.multibody.mechanisms",
    "biella.blocks.sensors.presets",
    "biella.devices",
    "biella.errors",
    "biella.fmu.can",
    "biella.realtime",
    "biella.results",
    "biella.tolerances",
    "biella.udp_proxy",
}
"""Public modules that are not packages: they keep their names. docs/reference/api.md lists both."""
PUBLIC = PUBLIC_PACKAGES | PUBLIC_MODULES
LAZY = ("biella", "biella.blocks", "biella.fmu", "biella.studio")
GENERATORS = {"docs/reference.py", "docs/control_pictures.py"}
"""They write the documents, and look into the package for that."""
DOCUMENTS = [
    ROOT / "README.md",
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "docs").glob("*.py"),
    *(ROOT / "examples").rglob("*.py"),
    *(ROOT / "examples").rglob("*.md"),
]


def imports_of(code: str) -> list[tuple[str, str | None]]:
    """Return each (module of biella, imported name) of Python code."""
    found: list[tuple[str, str | None]] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "biella":
            found += [(node.module or "", item.name) for item in node.names]
        elif isinstance(node, ast.Import):
            found += [(i.name, None) for i in node.names if i.name.split(".")[0] == "biella"]
    return found


def is_public(module: str, name: str | None) -> bool:
    if name is not None and f"{module}.{name}" in PUBLIC:
        return True
    return module in PUBLIC and (
        name is None or name in importlib.import_module(module).__all__ or name == "__version__"
    )


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_documents_and_examples_import_public_names_only(path):
    if str(path.relative_to(ROOT)) in GENERATORS:
        return
    added = {"Square"} if path.name == "add_a_block.md" else set()  # what the page adds
    text = path.read_text()
    codes = [text] if path.suffix == ".py" else re.findall(r"```python\n(.*?)```", text, re.S)
    private = [
        f"{module}.{name}" for code in codes for module, name in imports_of(code)
        if not is_public(module, name) and name not in added
    ]  # fmt: skip
    assert private == []
    for module in re.findall(r"python -m (biella[\w.]*)", text):
        assert module in PUBLIC, module


def test_private_imports_are_found():
    code = "from biella.scheduler.run._simulate import simulate\nfrom biella.blocks import Gian\n"
    assert [is_public(*each) for each in imports_of(code)] == [False, False]
    assert is_public("biella.blocks", "Gain") and is_public("biella.blocks", "control")


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_resolves_and_is_listed(name):
    module = importlib.import_module(name)
    assert module.__doc__
    assert len(set(module.__all__)) == len(module.__all__)
    for each in module.__all__:
        assert getattr(module, each) is not None
        assert each in dir(module)
    if name not in PUBLIC_MODULES:
        assert module.__file__ is not None and module.__file__.endswith("__init__.py")


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_the_page_of_the_api_lists_every_public_module(name):
    assert f"`{name}`" in (ROOT / "docs" / "reference" / "api.md").read_text()


HEAVY = ("scipy", "networkx", "matplotlib", "h5py", "fmpy", "rich", "numpy", "ctypes")


def loaded_by(code: str) -> set[str]:
    script = f"import json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    made = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=300
    )
    return {name.partition(".")[0] for name in json.loads(made.stderr.splitlines()[-1])}


@pytest.mark.parametrize(
    "code",
    [
        "import biella",
        "import biella.cli\ntry: biella.cli.main(['--help'])\nexcept SystemExit: pass",
        "import biella.cli\ntry: biella.cli.main(['simulate', '--help'])\nexcept SystemExit: pass",
    ],
)
def test_an_import_and_the_help_load_no_heavy_packages(code):
    assert loaded_by(code) & set(HEAVY) == set()


def test_diagrams_and_blocks_load_neither_scipy_nor_plots():
    heavy = {"scipy", "matplotlib", "h5py", "fmpy", "rich"}
    used = loaded_by("from biella import Diagram, simulate\nfrom biella.blocks import Gain, PID")
    assert "numpy" in used and used & heavy == set()


def classes_of(module: ModuleType) -> list[type]:
    return [value for value in vars(module).values() if isinstance(value, type)]
