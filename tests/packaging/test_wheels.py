"""The engine compiles with the system's compiler or with zig, in every way that pip installs."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from biella.scheduler.engine import build

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "src" / "biella"
PROJECT = ("pyproject.toml", "README.md", "LICENSE", ".gitignore", "src", *build.FOLDERS)


@pytest.fixture(autouse=True)
def plain_flags(monkeypatch):
    """The flags that users get, whatever the run itself was started with."""
    monkeypatch.delenv("BIELLA_CFLAGS", raising=False)


@pytest.fixture
def checkout(tmp_path):
    """A clean copy of what the build reads, links kept as links."""
    copy = tmp_path / "checkout"
    copy.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", *build.LIBRARY_NAMES.values(), "libbiella.so")
    for name in PROJECT:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, copy / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(source, copy / name)
    return copy


@pytest.mark.parametrize("compiler", ["system", "none"])
@pytest.mark.parametrize("kind", ["wheel", "editable"])
def test_zig_is_required_only_without_a_compiler(kind, compiler, tmp_path):
    if compiler == "system" and build.find_system_compiler() is None:
        pytest.skip("needs a C compiler")
    code = f"from hatchling.build import *; print(get_requires_for_build_{kind}())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        env=build_environment(tmp_path, compiler),
        capture_output=True,
        text=True,
        check=True,
        timeout=1800,
    )
    required = eval(done.stdout)
    assert (build.ZIG_REQUIREMENT in required) == (compiler == "none")
    assert not any("zig" in name for name in required) or compiler == "none"


def build_environment(tmp_path, compiler):
    """Return the environment of a machine with the system's compiler, or with none."""
    environment = {name: value for name, value in os.environ.items() if name != "CC"}
    if compiler == "none":
        empty = tmp_path / "empty"
        empty.mkdir(exist_ok=True)
        environment["PATH"] = str(empty)
    return environment


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def pip_wheel(source, folder, environment):
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", folder, source, env=environment)
    (wheel,) = Path(folder).glob("*.whl")
    return wheel


def load_after_install(tmp_path, *arguments, environment=None):
    """Install into a fresh environment, load the engine there, and return its path."""
    fresh = tmp_path / "venv"
    run(sys.executable, "-m", "venv", fresh)
    python = fresh / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "pip", "install", "--no-deps", *arguments, env=environment)
    code = (
        "import ctypes, importlib.util, pathlib; "
        "package = pathlib.Path(importlib.util.find_spec('biella').origin).parent; "
        f"library = package / {build.library_name()!r}; "
        "ctypes.CDLL(str(library)); print(library)"
    )
    return Path(run(python, "-c", code, cwd=tmp_path).strip())


def list_wheel(wheel):
    with zipfile.ZipFile(wheel) as opened:
        return opened.namelist()


def check_wheel(wheel):
    """The wheel is for any Python on this platform and holds each file of the package once."""
    name, version, python, abi, platform = wheel.stem.split("-")
    assert (name, python, abi) == ("biella", "py3", "none")
    assert platform != "any"
    names = list_wheel(wheel)
    assert [name for name, count in Counter(names).items() if count > 1] == []

    expected = {f"biella/{build.library_name()}"}
    for root, folders, files in os.walk(PACKAGE, followlinks=True):
        folders[:] = [folder for folder in folders if folder != "__pycache__"]
        expected.update(f"biella/{Path(root, f).relative_to(PACKAGE).as_posix()}" for f in files)
    metadata = f"biella-{version}.dist-info/"
    assert {name for name in names if not name.startswith(metadata)} == expected
    assert any(name.endswith(".c") for name in names)
    assert not any(part.startswith("test") for name in names for part in name.split("/"))


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["system", "none"])
def test_wheel(compiler, checkout, tmp_path):
    wheel = pip_wheel(checkout, tmp_path / "dist", build_environment(tmp_path, compiler))
    check_wheel(wheel)
    library = load_after_install(tmp_path, wheel)
    assert "site-packages" in library.parts
    # Zig links with LLD, whose name is in the library; the system's compiler leaves its own.
    if sys.platform == "linux":
        assert (b"LLD" in library.read_bytes() or b"zig" in library.read_bytes()) == (
            compiler == "none"
        )


@pytest.mark.slow
def test_wheel_is_reproducible(checkout, tmp_path):
    environment = build_environment(tmp_path, "system")
    other = shutil.copytree(checkout, tmp_path / "other", symlinks=True)
    first = pip_wheel(checkout, tmp_path / "dist", environment)
    second = pip_wheel(other, tmp_path / "again", environment)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["system", "none"])
def test_editable_install(compiler, checkout, tmp_path):
    environment = build_environment(tmp_path, compiler)
    library = load_after_install(tmp_path, "-e", checkout, environment=environment)
    assert library == checkout / "src" / "biella" / build.library_name()


@pytest.mark.slow
def test_sdist_becomes_the_same_wheel(checkout, tmp_path):
    code = f"from hatchling.build import build_sdist; build_sdist({str(tmp_path / 'dist')!r})"
    run(sys.executable, "-c", code, cwd=checkout)
    (archive,) = (tmp_path / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        members = opened.getmembers()
    assert all(member.isfile() for member in members)
    assert max(Counter(member.name for member in members).values()) == 1

    environment = build_environment(tmp_path, "system")
    wheel = pip_wheel(archive, tmp_path / "wheels", environment)
    check_wheel(wheel)
    direct = pip_wheel(checkout, tmp_path / "direct", environment)
    assert list_wheel(wheel) == list_wheel(direct)
    load_after_install(tmp_path, archive, environment=environment)


@pytest.mark.slow
def test_two_builds_give_the_same_bytes(checkout, tmp_path):
    """From other folders, with other times of files, umask, time zone and time of the build."""
    other = tmp_path / "somewhere" / "else, with a longer name"
    other.parent.mkdir()
    shutil.copytree(checkout, other, symlinks=True)
    for root, _, names in os.walk(other):
        for name in names:
            os.utime(Path(root, name), (1e9, 1e9), follow_symlinks=False)
    found = []
    for folder, zone, umask in ((checkout, "UTC", 0o022), (other, "Asia/Tokyo", 0o077)):
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        command += ["--no-build-isolation", "--wheel-dir", str(tmp_path / zone), str(folder)]
        environment = {**os.environ, "TZ": zone, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        subprocess.run(command, env=environment, check=True, umask=umask, timeout=1200)
        [wheel] = (tmp_path / zone).glob("*.whl")
        found.append(wheel)
    first, second = (zipfile.ZipFile(wheel) for wheel in found)
    assert first.namelist() == second.namelist()
    for name in first.namelist():
        assert first.read(name) == second.read(name), name
    assert found[0].read_bytes() == found[1].read_bytes()


# --- for other platforms ---


def test_wheels_of_other_platforms_name_what_they_need(monkeypatch, tmp_path):
    with pytest.raises(build.BuildError, match=r"no wheels for `win32`.*win_amd64, macosx"):
        build.build_for_wheel(PACKAGE, "win32", tmp_path)
    monkeypatch.setattr(build, "find_zig_compiler", lambda *_: None)
    with pytest.raises(build.BuildError, match="win_amd64 needs ziglang: pip install ziglang"):
        build.build_for_wheel(PACKAGE, "win_amd64", tmp_path)
    assert list(tmp_path.iterdir()) == []


START = {"win32": b"MZ", "darwin": b"\xcf\xfa\xed\xfe"}
"""First bytes of libraries: of PE, and of Mach-O with 64 bits."""


@pytest.mark.slow
@pytest.mark.parametrize("tag", build.WHEEL_TARGETS)
def test_a_wheel_for_another_platform(tag, checkout, tmp_path):
    """The same files as in one for this platform, but for the engine."""
    environment = build_environment(tmp_path, "system") | {"BIELLA_WHEEL": tag}
    wheel = pip_wheel(checkout, tmp_path / "dist", environment)
    assert wheel.stem.endswith(f"-py3-none-{tag}")
    platform = build.WHEEL_TARGETS[tag][1]
    names, library = set(list_wheel(wheel)), f"biella/{build.library_name(platform)}"
    native = list_wheel(
        pip_wheel(checkout, tmp_path / "native", build_environment(tmp_path, "system"))
    )
    assert names ^ set(native) == {library, f"biella/{build.library_name()}"}
    with zipfile.ZipFile(wheel) as opened:
        engine = opened.read(library)
        assert opened.read("biella/_contract.py").decode() == build.generate(PACKAGE).module
        (about,) = (name for name in names if name.endswith(".dist-info/WHEEL"))
        assert f"Tag: py3-none-{tag}" in opened.read(about).decode()
        assert "Root-Is-Purelib: false" in opened.read(about).decode()
    assert engine.startswith(START[platform])
    if platform == "win32":
        check_under_wine(engine, tmp_path)


CALLER = """
#include <stdio.h>
#include <string.h>
#include <windows.h>
typedef int (*opener)(const void *, size_t, void **, char *, size_t);
int main(void) {
    char message[512] = "";
    void *engine = NULL;
    const HMODULE library = LoadLibraryA("biella.dll");
    if (!library) return printf("error %lu\\n", GetLastError()), 1;
    const opener open = (opener)(void *)GetProcAddress(library, "bl_open");
    const int status = open("no plan at all", 14, &engine, message, sizeof message);
    printf("%d %d %s\\n", status < 0, engine == NULL, message);
    return 0;
}
"""


def check_under_wine(engine, folder):
    """The library loads, and refuses what is no plan, where there is wine."""
    wine = shutil.which("wine64") or shutil.which("wine") or "/usr/lib/wine/wine64"
    if not Path(wine).exists():
        return
    compiler = build.find_zig_compiler(*build.WHEEL_TARGETS["win_amd64"])
    if compiler is None:  # it was in the environment of the build only
        return
    (folder / "biella.dll").write_bytes(engine)
    (folder / "caller.c").write_text(CALLER)
    run(*compiler.command, "-O1", "caller.c", "-o", "caller.exe", cwd=folder)
    environment = {**os.environ, "WINEPREFIX": str(folder / "wine"), "WINEDEBUG": "-all"}
    said = run(wine, "caller.exe", cwd=folder, env=environment, timeout=600)
    assert said.startswith("1 1 ") and len(said) > 20
