"""The pages ``docs/howto/add_*.md`` are followed, step by step, in a copy of the project.

A page is a sequence of fenced blocks, performed in order:

- A block whose first line is the name of a file, as a comment (``# blocks/basic/math/_square.py``,
  ``/* blocks/basic/math/square.c */``), is written to that file of the copy.
- A ``diff`` block has the name of a file in its first line (``# blocks/__init__.py``). The lines
  that begin with a blank or a minus sign must stand in that file exactly once, next to each other.
  They are replaced by those that begin with a blank or a plus sign.
- The commands of an ``sh`` block run in the copy, each with exit code 0. ``python`` is this
  interpreter, ``pip install`` installs without dependencies into a folder of the copy.
- A ``text`` block is what the commands before it printed.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from biella.scheduler.engine.build import FOLDERS, LIBRARY_NAMES

ROOT = Path(__file__).parents[2]
PAGES = sorted(page.name for page in (ROOT / "docs" / "howto").glob("add_*.md"))
BUILD = "python scheduler/engine/build.py --flags=-Werror"
"""As the pages have it: with other flags everything would be compiled again."""
COPIED = (*FOLDERS, "src", "tests", "docs", "pyproject.toml", "README.md", "LICENSE")
FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.S | re.M)
NAMED = re.compile(r"(?:# |/\* )(?P<path>[\w./]+\.\w+)(?: \*/)?\n")


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A copy of the project with its object files; one for all processes of a test run."""
    folder = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        folder = folder.parent
    copy = folder / "compiled" / "project"
    with (folder / "compiled.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not copy.is_dir():
            copy_project(copy)
            run(BUILD, copy)
    return copy


@pytest.fixture
def project(compiled: Path, tmp_path: Path) -> Path:
    """A copy of the project; what a page adds or changes is compiled, and nothing else."""
    copy = tmp_path / "project"
    copy_project(copy)
    shutil.copytree(compiled / "build", copy / "build")
    return copy


def copy_project(copy: Path) -> None:
    made = ("libbiella.so", *LIBRARY_NAMES.values(), "_contract.py")
    ignored = shutil.ignore_patterns("__pycache__", *made)
    copy.mkdir(parents=True)
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, copy / name)


def patch(path: Path, change: str) -> None:
    """Apply the lines of a ``diff`` block to a file."""
    lines = change.splitlines()
    assert all(line[:1] in (" ", "+", "-") for line in lines), change
    old = "".join(f"{line[1:]}\n" for line in lines if line[0] != "+")
    new = "".join(f"{line[1:]}\n" for line in lines if line[0] != "-")
    text = path.read_text(encoding="utf-8")
    found = len(re.findall(f"(?=\n{re.escape(old)})", f"\n{text}"))
    assert found == 1, f"{path.name} has these lines {found} times:\n{old}"
    path.write_text(f"\n{text}".replace(f"\n{old}", f"\n{new}")[1:], encoding="utf-8")


def run(command: str, project: Path) -> str:
    """Run a command of a page in the copy, and return what it prints."""
    words = shlex.split(command)
    packages = project / "installed"
    if words[:2] == ["pip", "install"]:
        options = ["--quiet", "--no-deps", "--no-build-isolation", "--target", str(packages)]
        words = [sys.executable, "-m", "pip", "install", *options, *words[2:]]
    elif words[0] == "python":
        words[0] = sys.executable
    # With bytecode: each command would compile the modules of the copy again.
    left_out = ("BIELLA_LIBRARY", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment["PYTHONPATH"] = os.pathsep.join([str(project / "src"), str(packages)])
    # Not optimized: a page compiles the whole engine, for a few ticks.
    environment |= {"BIELLA_CFLAGS": "-O0"}
    environment |= {"MPLBACKEND": "Agg", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        words, cwd=project, env=environment, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def follow(page: Path, project: Path) -> list[str]:
    """Perform the steps of a page; return the commands that were run."""
    commands: list[str] = []
    printed = ""
    for block in FENCE.finditer(page.read_text(encoding="utf-8")):
        language, code = block["language"], block["code"]
        named = NAMED.match(code)
        if language == "sh":
            printed = "".join(run(command, project) for command in code.splitlines())
            commands += code.splitlines()
        elif language == "text":
            assert printed == code, f"{page.name}: {commands[-1]} printed\n{printed}"
        elif language == "diff":
            assert named is not None, f"{page.name}: a diff names its file in its first line"
            patch(project / named["path"], code[named.end() :])
        else:
            assert named is not None, f"{page.name}: this block names no file\n{code}"
            path = project / named["path"]
            path.parent.mkdir(exist_ok=True)
            assert not path.exists(), f"{page.name}: {named['path']} exists"
            path.write_text(code, encoding="utf-8")
    return commands


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("c_compiler")
@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_followed(page: str, project: Path) -> None:
    text = (ROOT / "docs" / "howto" / page).read_text(encoding="utf-8")
    assert text.count("engine/build.py") == text.count(BUILD), f"{page}: compile by {BUILD}"
    if BUILD not in text:
        run(BUILD, project)
    assert follow(ROOT / "docs" / "howto" / page, project)
    where = "import biella; print(biella.__file__)"
    assert Path(run(f'python -c "{where}"', project).strip()).is_relative_to(project)


def test_there_are_pages() -> None:
    assert {"add_a_block.md", "add_a_device_driver.md"} <= set(PAGES)


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("```python\nprint(1)\n```\n", "names no file"),
        ("```python\n# there.py\n```\n", r"there\.py exists"),
        ("```diff\n# there.py\n x = 1\n+y = 2\n```\n", "has these lines 2 times"),
        ("```diff\n# there.py\n z = 1\n+y = 2\n```\n", "has these lines 0 times"),
        ('```sh\npython -c "exit(3)"\n```\n', "exit"),
        ('```sh\npython -c "print(3)"\n```\n```text\n4\n```\n', "printed"),
    ],
)
def test_a_page_that_cannot_be_followed_is_named(page: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(page)
    (tmp_path / "there.py").write_text("x = 1\nx = 1\n")
    with pytest.raises(AssertionError, match=problem):
        follow(tmp_path / "page.md", tmp_path)
