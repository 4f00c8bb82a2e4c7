"""Imports run one way: blocks ← scheduler ← fmu, and none in a function hides a cycle."""

import ast
import os
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "biella"

# The contract with the C library is generated. These modules import nothing of the folders.
BASE = {"_contract", "_deprecation", "errors", "_lazy", "_services"}
# What the modules of a folder may import from biella, at their top or in a function.
ALLOWED = {
    "blocks": BASE | {"blocks"},
    "scheduler": BASE | {"blocks", "scheduler", "__version__"},
    "fmu": BASE | {"blocks", "scheduler", "fmu", "__version__"},
}

# Imports in a function that lead back to their own module.
HANDED_OVER = {
    ("biella.scheduler.compile.diagram._diagram", "biella.fmu.exporter._export"),
    ("biella.blocks.multibody.system._system", "biella.fmu.exporter._mechanism"),
    # What a Trigger has captured is a Result inside a Result.
    ("biella.scheduler.results.events._captures", "biella.scheduler.results._result"),
    # What a notebook shows of a Subsystem may contain others.
    ("biella.scheduler.compile.diagram._subsystem", "biella.scheduler.notebook._diagram"),
}

# Methods that hand over to a package built on theirs: the only imports that run against that.
UPWARD = {
    ("scheduler/compile/diagram/_diagram.py", "biella.fmu.exporter._export.export_fmu"),
    ("blocks/multibody/system/_system.py", "biella.fmu.exporter._mechanism.export_system"),
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
    at_top = list(iterate_imports(tree, inside_functions=False))
    for node in iterate_imports(tree, inside_functions=True):
        for name in imported_names(node, module):
            root, _, rest = name.partition(".")
            if root != "biella" or rest.split(".")[0] in ALLOWED[folder]:
                continue
            if node in at_top or (module.as_posix(), name) not in UPWARD:
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
        (
            "blocks/basic/math/_math.py",
            "from ....scheduler.compile.diagram._diagram import Diagram",
        ),
        ("blocks/basic/math/_math.py", "from .... import scheduler"),
        ("blocks/basic/math/_math.py", "from .... import Diagram"),
        ("blocks/control/_pid.py", "from ...fmu import export"),
        ("blocks/basic/math/_math.py", "import biella"),
        (
            "blocks/basic/math/_math.py",
            "try:\n    import biella.scheduler.compile.plan._plan\nexcept ImportError:\n    pass",
        ),
        ("scheduler/compile/diagram/_diagram.py", "class A:\n    from biella.fmu import export"),
        ("scheduler/compile/diagram/_diagram.py", "def f():\n    import blocks.math"),
        (
            "scheduler/compile/diagram/_diagram.py",
            "def f():\n    from ....fmu.exporter import _elf as elf",
        ),
        ("scheduler/binding/_check.py", "def f():\n    from ...fmu.importer._fmu import Fmu"),
        (
            "scheduler/compile/diagram/_diagram.py",
            "from ....fmu.exporter._export import export_fmu",
        ),
        (
            "blocks/bearings/_analysis.py",
            "def f():\n    from ...scheduler.compile.diagram._diagram import Diagram",
        ),
        ("fmu/exporter/_export.py", "from scheduler import plan"),
        ("cli.py", "from blocks import Gain"),
    ],
)
def test_an_import_the_wrong_way_is_seen(module, source):
    assert find_violations(Path(module), source) != []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("blocks/control/_pid.py", "from ..block import Block\nfrom ...errors import BlockError"),
        (
            "scheduler/compile/diagram/_diagram.py",
            "from ...blocks.block import Block\nfrom ..plan import _plan as plan",
        ),
        (
            "scheduler/compile/diagram/_diagram.py",
            "def f():\n    from ....fmu.exporter._export import export_fmu",
        ),
        ("fmu/exporter/_export.py", "from ..scheduler import plan\nimport biella.blocks"),
        ("cli.py", "from .fmu import export\nfrom . import simulate"),
    ],
)
def test_an_import_the_right_way_is_allowed(module, source):
    assert find_violations(Path(module), source) == []


def dotted(module):
    """Return the name by which a file is imported."""
    parts = ("biella", *module.with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_for_typing(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def collect_imports(tree, in_function=False):
    """Yield the import statements that run, and whether they do so in a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, in_function
        elif not is_for_typing(node):
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from collect_imports(node, in_function or inside)


def find_hidden_cycles(sources):
    """Return (module, imported) for each import in a function that leads back to its module."""
    names = {dotted(module): module for module in sources}
    at_top: dict[str, set[str]] = {name: set() for name in names}
    late: set[tuple[str, str]] = set()
    for name, module in names.items():
        for node, in_function in collect_imports(ast.parse(sources[module])):
            for asked in imported_names(node, module):
                found = asked if asked in names else asked.rpartition(".")[0]
                if found in names and found != name:
                    late.add((name, found)) if in_function else at_top[name].add(found)

    def reach(first):
        seen, waiting = {first}, [first]
        while waiting:
            new = at_top[waiting.pop()] - seen
            seen |= new
            waiting += new
        return seen

    return {(name, found) for name, found in late if name in reach(found)}


def test_no_import_in_a_function_hides_a_cycle():
    sources = {m: (PACKAGE / m).read_text(encoding="utf-8") for m in find_modules()}
    assert find_hidden_cycles(sources) == HANDED_OVER


def test_a_hidden_cycle_is_seen():
    sources = {
        Path("blocks/a.py"): "def f():\n    from .b import g",
        Path("blocks/b.py"): "from .c import h",
        Path("blocks/c.py"): "from . import a",
        Path("blocks/d.py"): "def f():\n    from .a import f",
        Path("blocks/e.py"): "if TYPE_CHECKING:\n    from .f import g",
        Path("blocks/f.py"): "def g():\n    from .e import h",
    }
    assert find_hidden_cycles(sources) == {("biella.blocks.a", "biella.blocks.b")}
