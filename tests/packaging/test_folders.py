"""The tree as a newcomer meets it: private modules by name, and folders that are not crowded."""

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOTS = ("blocks", "scheduler", "fmu", "src/biella")
FILES = {
    "scheduler/engine/build.py": "a script",
    "scheduler/engine/c_headers.py": "loaded by build.py before biella is installed",
    "scheduler/engine/contract.py": "loaded by build.py before biella is installed",
    "src/biella/demo/rig.py": "copied for the user by `biella demo`",
    "src/biella/studio/page/build.py": "a script, loaded before biella is installed",
}
"""Modules that are used as files, under their own names."""
MOST = 17
"""Entries of a folder, a ``.py`` with its ``.c`` and ``.h`` counted once."""
CROWDED = {
    "docs/reference": "a page for each family of blocks, generated",
    "examples": "numbered scripts, in the order in which they are read",
    "src/biella/studio": "a session, what it shows, and its server; families have folders",
    "blocks/multibody/elements": "an element or a constraint each; families have folders",
    "src/biella": "the public modules, links to the three folders, and what all of them share",
}


def read_public_modules() -> set[str]:
    """Return the paths of the modules that tests/test_public_api.py lists."""
    tree = ast.parse((ROOT / "tests" / "test_public_api.py").read_text())
    listed = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PUBLIC_MODULES"
    )
    found = set()
    for name in listed:
        path = name.removeprefix("biella.").replace(".", "/") + ".py"
        found.add(path if (ROOT / path).exists() else f"src/biella/{path}")
    return found


def test_a_module_is_public_or_has_an_underscore():
    modules = {
        path.relative_to(ROOT).as_posix()
        for root in ROOTS
        for path in (ROOT / root).rglob("*.py")
        if not path.name.startswith("_")
    }
    assert modules == read_public_modules() | set(FILES)


def list_files() -> list[str]:
    """Return the files of the checkout; those of a copy without git are all that are there."""
    made = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, timeout=1800
    )
    if made.returncode:
        pytest.skip("this is not a git checkout")
    return made.stdout.splitlines()


def test_no_folder_is_crowded():
    entries: dict[str, set[str]] = {}
    for name in list_files():
        parts = Path(name).parts
        for depth in range(1, len(parts)):
            stem = parts[depth]
            if depth == len(parts) - 1 and Path(stem).suffix in (".py", ".c", ".h"):
                stem = Path(stem).stem.removeprefix("_")
            entries.setdefault("/".join(parts[:depth]), set()).add(stem)
    roots = ("blocks", "scheduler", "fmu", "src", "benchmarks", "examples", "docs")
    first = {f: len(e) for f, e in entries.items() if f.split("/")[0] in roots}
    crowded = {f for f, n in first.items() if n > MOST and "pictures" not in f}
    assert crowded == set(CROWDED)
