"""A clone without symbolic links: wheels and archives are built, editable installs refused."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from biella.scheduler.engine import build

REPOSITORY = Path(__file__).parents[2]
PROJECT = ("pyproject.toml", "README.md", "LICENSE", ".gitignore", "src", *build.FOLDERS)


def run(*command: object, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "BIELLA_CFLAGS"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What git makes of the project where ``core.symlinks`` is false, as it is on Windows."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    origin = tmp_path / "origin"
    origin.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", *build.LIBRARY_NAMES.values(), "libbiella.so")
    for name in PROJECT:
        if (REPOSITORY / name).is_dir():
            shutil.copytree(REPOSITORY / name, origin / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(REPOSITORY / name, origin / name)
    run("git", "init", "--quiet", cwd=origin)
    run("git", "add", "--all", cwd=origin)
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    run("git", *author, "commit", "--quiet", "--no-verify", "--message", "All", cwd=origin)
    run("git", "clone", "--quiet", "-c", "core.symlinks=false", origin, "clone", cwd=tmp_path)
    links = [tmp_path / "clone" / "src" / "biella" / folder for folder in build.FOLDERS]
    assert [link.read_text() for link in links] == [f"../../{name}" for name in build.FOLDERS]
    return tmp_path / "clone"


def call_hatchling(call: str, cwd: Path) -> str:
    return run(sys.executable, "-c", f"from hatchling.build import *; print({call})", cwd=cwd)


def expected_files(clone: Path) -> set[str]:
    """Return the files of the package in a clone without links, relative to the package."""
    package, links = clone / "src" / "biella", set(build.FOLDERS)
    folders = [(package, package), *((clone / name, clone) for name in links)]
    return {
        path.relative_to(base).as_posix()
        for folder, base in folders
        for path in folder.rglob("*")
        if path.is_file()
    } - links


def test_a_source_archive_has_the_files(clone: Path, tmp_path: Path) -> None:
    name = call_hatchling(f"build_sdist({str(tmp_path)!r})", clone).strip()
    prefix = f"{name.removesuffix('.tar.gz')}/src/biella/"
    with tarfile.open(tmp_path / name) as archive:
        names = [member.name for member in archive.getmembers()]
    assert len(names) == len(set(names))
    inside = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
    assert inside == expected_files(clone)


def test_an_editable_install_is_refused_with_the_remedy(clone: Path, tmp_path: Path) -> None:
    code = f"from hatchling.build import *; build_editable({str(tmp_path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=clone, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 1
    message = done.stderr.splitlines()[-1]
    assert "text files instead (blocks, scheduler, fmu)" in message
    # The remedy that it names is one.
    remedy = "git config core.symlinks true && git checkout -- src/biella"
    assert f"`{remedy}`" in message
    run("sh", "-c", remedy, cwd=clone)
    assert all((clone / "src" / "biella" / folder).is_symlink() for folder in build.FOLDERS)


def test_a_link_that_leads_nowhere_is_named(clone: Path) -> None:
    (clone / "src" / "biella" / "fmu").write_text("elsewhere")
    code = "from hatchling.build import *; build_wheel('.')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=clone, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 1
    assert "biella/fmu must be a symbolic link to the folder" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_wheel_is_built_and_runs(clone: Path, tmp_path: Path) -> None:
    expected = expected_files(clone)
    name = call_hatchling(f"build_wheel({str(tmp_path)!r})", clone).split()[-1]
    with zipfile.ZipFile(tmp_path / name) as wheel:
        names = wheel.namelist()
        wheel.extractall(tmp_path / "installed")
    assert len(names) == len(set(names))
    inside = {name.removeprefix("biella/") for name in names if name.startswith("biella/")}
    assert expected < inside
    assert inside - expected <= {build.library_name(), "_contract.py"}, "what the build makes"
    code = (
        "import biella; from biella.blocks import Constant, Gain; "
        "d = biella.Diagram('d', step=1e-3); d.add(Constant(3.0), name='c'); "
        "d.add(Gain(2.0), name='g'); d.connect('c', 'g'); "
        "print(biella.__file__, biella.simulate(d, until=0.01)['g'][-1])"
    )
    file, value = run(sys.executable, "-c", code, cwd=tmp_path / "installed").split()
    assert Path(file).is_relative_to(tmp_path / "installed") and float(value) == 6.0
