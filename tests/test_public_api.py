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

import biella
import biella.blocks
import biella.results
from biella import BiellaDeprecationWarning, BiellaError, BiellaWarning, Diagram, Plan
from biella._deprecation import REMOVAL, deprecated_alias
from biella._lazy import attach

ROOT = Path(__file__).parents[1]

PUBLIC_PACKAGES = {
    "biella",
    "biella.blocks",
    "biella.blocks.bearings",
    "biella.blocks.control",
    "biella.blocks.daq",
    "biella.blocks.multibody",
    "biella.blocks.multibody.reference_formulations",
    "biella.blocks.sensors",
    "biella.fmu",
}
PUBLIC_MODULES = {
    "biella.blocks.authoring",
    "biella.blocks.multibody.mechanisms",
    "biella.blocks.sensors.presets",
    "biella.devices",
    "biella.errors",
    "biella.realtime",
    "biella.results",
    "biella.udp_proxy",
}
"""Public modules that are no packages: they keep their names. docs/reference/api.md lists both."""
PUBLIC = PUBLIC_PACKAGES | PUBLIC_MODULES
LAZY = ("biella", "biella.blocks", "biella.fmu")
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


HEAVY = ("scipy", "networkx", "matplotlib", "h5py", "fmpy", "rich", "numpy", "ctypes")


def loaded_by(code: str) -> set[str]:
    script = f"import json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    made = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
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


def test_all_errors_and_warnings_are_exported_and_have_one_root():
    own = [c for c in classes_of(biella.errors) if issubclass(c, Exception)]
    assert {c.__name__ for c in own} <= set(biella.__all__)
    for each in own:
        assert issubclass(each, BiellaWarning if issubclass(each, Warning) else BiellaError), each
        assert getattr(biella, each.__name__) is each
    assert issubclass(biella.CouplingWarning, BiellaWarning)


def test_no_public_error_is_defined_elsewhere():
    """Except for how one family of devices refuses."""
    pattern = re.compile(r"^class (\w+)\((.*(?:Error|Warning)\b.*)\):", re.M)
    elsewhere = {
        name
        for folder in ("blocks", "scheduler", "fmu", "src/biella/cli", "src/biella/demo")
        for path in (ROOT / folder).rglob("*.py")
        for name, _ in pattern.findall(path.read_text())
        if not name.startswith("_")
    }
    # The build runs before biella is installed: its errors are not those of a run.
    assert elsewhere == {"BuildError", "ContractError", "HeaderError", "Refused"}


def test_a_deprecated_alias_warns_where_it_is_called_and_passes_all_on():
    def new(a: int, *, b: int = 1) -> int:
        return 10 * a + b

    old = deprecated_alias(new, "package.old", "package.new")
    with pytest.warns(BiellaDeprecationWarning) as caught:
        assert old(2, b=3) == 23
    (warning,) = caught
    assert str(warning.message) == (
        f"`package.old` is deprecated and will be removed in {REMOVAL}: use `package.new`."
    )
    assert warning.filename == __file__
    assert old.__name__ == "old" and "package.new" in (old.__doc__ or "")


def test_deprecations_are_shown_by_default():
    """Python hides a DeprecationWarning outside of ``__main__``; users must see ours."""
    code = "from biella._deprecation import warn_deprecated\nwarn_deprecated('`a`', '`b`')"
    made = subprocess.run([sys.executable, "-c", f"import types\n{code}"], capture_output=True)
    assert b"BiellaDeprecationWarning: `a` is deprecated" in made.stderr
    assert not issubclass(BiellaDeprecationWarning, DeprecationWarning)


def test_a_moved_name_is_found_with_a_warning_where_it_is_used():
    with pytest.warns(
        BiellaDeprecationWarning, match=r"from biella.blocks.authoring import Na"
    ) as w:
        block = biella.blocks.NativeBlock  # type: ignore[attr-defined]
    assert block is importlib.import_module("biella.blocks.authoring").NativeBlock
    assert w[0].filename == __file__
    assert "NativeBlock" not in dir(biella.blocks)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'biella' has no attribute 'simulat'"):
        _ = biella.simulat  # type: ignore[attr-defined]
    get, listed = attach(biella.results.__name__, {".scheduler.results.result": ("Result",)})
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        get("nothing")
    assert "Result" in listed()


@pytest.mark.engine
def test_old_names_of_runs_still_work_with_a_warning():
    d = Diagram("clock", start_time=2.0)
    with pytest.warns(BiellaDeprecationWarning, match=r"use `Diagram\(start_time=…\)`"):
        assert Diagram("old", start=2.0).start_time == 2.0
    with pytest.warns(BiellaDeprecationWarning, match=r"use `Diagram.start_time`"):
        assert d.start == 2.0
    d.add(biella.blocks.Constant(1.0), name="one")
    plan = d.compile()
    assert isinstance(plan, Plan)
    with (
        pytest.warns(BiellaDeprecationWarning, match=r"use `Plan.instantiate`"),
        plan.start() as instance,
    ):
        assert instance.time == 2.0
    with pytest.warns(BiellaDeprecationWarning, match=r"use `biella.run_realtime`"):
        result = biella.start(d, until=2.01, clock="free").wait()
    assert result.t[0] == 2.0


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
