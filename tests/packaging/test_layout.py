"""Module-level imports run one way: blocks ← scheduler ← fmu."""

import ast
import os
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "biella"

# What the modules of a folder may import from biella while they are themselves imported.
# The contract with the C library is generated, and imports nothing of biella.
ALLOWED = {
    "blocks": {"errors", "_contract", "blocks"},
    "scheduler": {"errors", "_contract", "blocks", "scheduler"},
    "fmu": {"errors", "_contract", "blocks", "scheduler", "fmu"},
}


def find_modules():
    """Return the Python files below `PACKAGE`, through its links, relative to it."""
    return sorted(
        Path(root, name).relative_to(PACKAGE)
        for root, _, names in os.walk(PACKAGE, followlinks=True)
        for name in names
        if name.endswith(".py")
    )


def iterate_imports(tree, inside_functions):
    """Yield the import statements of a module, with or without those that run in a call."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif inside_functions or not isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
        ):
            yield from iterate_imports(node, inside_functions)


def imported_names(node, module):
    """Return the absolute dotted names that an import statement in file `module` asks for."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = node.module or ""
    if node.level:
        parents = ("biella", *module.parent.parts)
        base = ".".join([*parents[: len(parents) - node.level + 1], *([base] if base else [])])
    return [f"{base}.{alias.name}" for alias in node.names]


def find_violations(module, source):
    """Return a sentence for each import in `source` that runs against the direction."""
    tree = ast.parse(source)
    violations = []
    for node in iterate_imports(tree, inside_functions=True):
        for name in imported_names(node, module):
            if name.split(".")[0] in ALLOWED:
                violations.append(f"{module}:{node.lineno} imports bare {name}")
    folder = module.parts[0]
    if folder not in ALLOWED:
        return violations
    for node in iterate_imports(tree, inside_functions=False):
        for name in imported_names(node, module):
            root, _, rest = name.partition(".")
            if root == "biella" and rest.split(".")[0] not in ALLOWED[folder]:
                violations.append(f"{module}:{node.lineno} imports {name}")
    return violations


@pytest.mark.parametrize("module", find_modules(), ids=str)
def test_imports_run_one_way(module):
    assert find_violations(module, (PACKAGE / module).read_text(encoding="utf-8")) == []


def test_every_folder_is_walked():
    assert set(ALLOWED) <= {module.parts[0] for module in find_modules()}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("blocks/basic/math.py", "from ...scheduler.compile.diagram import Diagram"),
        ("blocks/basic/math.py", "from ... import scheduler"),
        ("blocks/basic/math.py", "from ... import Diagram"),
        ("blocks/control/pid.py", "from ...fmu import export"),
        ("blocks/basic/math.py", "import biella"),
        (
            "blocks/basic/math.py",
            "try:\n    import biella.scheduler.compile.plan\nexcept ImportError:\n    pass",
        ),
        ("scheduler/compile/diagram.py", "class A:\n    from biella.fmu import export"),
        ("scheduler/compile/diagram.py", "def f():\n    import blocks.math"),
        ("fmu/exporter/export.py", "from scheduler import plan"),
        ("cli.py", "from blocks import Gain"),
    ],
)
def test_an_import_the_wrong_way_is_seen(module, source):
    assert find_violations(Path(module), source) != []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("blocks/control/pid.py", "from ..block import Block\nfrom ...errors import BlockError"),
        ("scheduler/compile/diagram.py", "from ..blocks.block import Block\nfrom . import plan"),
        ("scheduler/compile/diagram.py", "def f():\n    from ..fmu.export import export"),
        ("fmu/exporter/export.py", "from ..scheduler import plan\nimport biella.blocks"),
        ("cli.py", "from .fmu import export\nfrom . import simulate"),
    ],
)
def test_an_import_the_right_way_is_allowed(module, source):
    assert find_violations(Path(module), source) == []
