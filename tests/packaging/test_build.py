"""The engine compiles with the system's compiler or with zig, in every way that pip installs."""

import ctypes
import importlib.util
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


@pytest.fixture
def package(tmp_path):
    """A package of two C files in linked folders, with a header between them."""
    root = tmp_path / "tiny"
    for folder in build.FOLDERS:
        (root / folder).mkdir(parents=True)
    (root / "blocks" / "deep").mkdir()
    (root / "scheduler" / "engine").mkdir()
    (root / "blocks" / "deep" / "twice.h").write_text("double twice(double x);\n")
    (root / "blocks" / "deep" / "twice.c").write_text(
        '#include "blocks/deep/twice.h"\ndouble twice(double x) { return 2.0 * x; }\n'
    )
    (root / "scheduler" / "engine" / "engine.c").write_text(
        '#include "blocks/deep/twice.h"\n'
        "#ifdef _WIN32\n__declspec(dllexport)\n#else\n"
        '__attribute__((visibility("default")))\n#endif\n'
        "double four_times(double x);\ndouble four_times(double x) { return twice(twice(x)); }\n"
    )
    package = root / "src" / "biella"
    package.mkdir(parents=True)
    for folder in build.FOLDERS:
        (package / folder).symlink_to(Path("..", "..", folder), target_is_directory=True)
    return package


@pytest.fixture
def no_compiler(tmp_path, monkeypatch):
    """A machine without a compiler, and without ziglang."""
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    return empty


def write_command(folder, name, script):
    command = folder / name
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    return command


def test_every_source_is_found_once():
    found = build.find_sources(PACKAGE)
    real = {path for folder in build.FOLDERS for path in (REPOSITORY / folder).rglob("*.c")}
    assert found, "the package holds no C source"
    assert found == sorted(found)
    assert {(PACKAGE / path).resolve() for path in found} == {path.resolve() for path in real}
    assert len(found) == len(real)


def test_sources_are_relative_and_sorted(package):
    assert build.find_sources(package) == [
        Path("blocks/deep/twice.c"),
        Path("scheduler/engine/engine.c"),
    ]


def test_a_link_that_was_not_checked_out_is_named(package):
    (package / "fmu").unlink()
    (package / "fmu").write_text("../../fmu")
    with pytest.raises(build.BuildError, match=r"no folder fmu\b.*core\.symlinks true"):
        build.find_sources(package)


def test_library_is_named_as_the_platform_does():
    names = [build.library_name(platform) for platform in ("linux", "darwin", "win32")]
    assert names == ["libbiella.so", "libbiella.dylib", "biella.dll"]


def test_cc_comes_first(no_compiler, monkeypatch):
    mine = write_command(no_compiler, "mine", "exit 0")
    monkeypatch.setenv("CC", "mine -m64")
    assert build.find_compiler().command == ("mine", "-m64")
    monkeypatch.setenv("CC", str(mine))
    assert build.find_compiler().command == (str(mine),)


def test_cc_that_does_not_exist_is_not_passed_over(no_compiler, monkeypatch):
    write_command(no_compiler, "gcc", "exit 0")
    monkeypatch.setenv("CC", "icx -fast")
    with pytest.raises(build.BuildError, match="CC is set to `icx -fast`, but there is no such"):
        build.find_compiler()


def test_the_first_compiler_that_works_is_taken(no_compiler):
    write_command(no_compiler, "cc", "echo 'math.h: no such file' >&2; exit 1")
    clang = write_command(no_compiler, "clang", "exit 0")
    assert build.find_compiler().command == (str(clang),)
    gcc = write_command(no_compiler, "gcc", "exit 0")
    assert build.find_compiler().command == (str(gcc),)


def test_without_any_compiler_the_error_teaches(no_compiler):
    cc = write_command(no_compiler, "cc", "echo 'math.h: no such file' >&2; exit 1")
    assert build.find_system_compiler() is None
    with pytest.raises(build.BuildError) as caught:
        build.find_compiler()
    message = str(caught.value)
    for part in (
        f"tried {cc}: ",
        "math.h: no such file",
        "tried gcc: not on PATH",
        "tried clang: not on PATH",
        "tried ziglang: not installed",
        "apt install gcc",
        "pip install ziglang",
        "set CC",
    ):
        assert part in message


@pytest.mark.usefixtures("c_compiler")
def test_library_computes_and_is_the_same_in_another_place(package, tmp_path):
    library = build.build(package)
    assert library == package / build.library_name()
    call = ctypes.CDLL(str(library)).four_times
    call.argtypes, call.restype = [ctypes.c_double], ctypes.c_double
    assert call(2.5) == 10.0

    moved = shutil.copytree(package.parents[1], tmp_path / "another place", symlinks=True)
    again = build.build(moved / "src" / "biella", tmp_path / "out" / library.name)
    assert again.read_bytes() == library.read_bytes()
    assert str(tmp_path).encode() not in library.read_bytes()


@pytest.mark.usefixtures("c_compiler")
def test_library_is_compiled_again_only_when_something_changed(package, tmp_path, monkeypatch):
    def compiled_anew():
        before = library.stat().st_ino
        build.build(package, stamps=tmp_path / "stamps")
        return library.stat().st_ino != before

    library = build.build(package, stamps=tmp_path / "stamps")
    assert not compiled_anew()
    header = package / "blocks" / "deep" / "twice.h"
    header.write_text(header.read_text() + "\n")
    assert compiled_anew()
    assert not compiled_anew()
    monkeypatch.setenv("BIELLA_CFLAGS", "-O1")
    assert compiled_anew()
    library.write_bytes(b"something else")
    assert compiled_anew()
    assert ctypes.CDLL(str(library)).four_times


@pytest.mark.usefixtures("c_compiler")
def test_error_in_a_source_carries_the_words_of_the_compiler(package):
    library = build.build(package)
    before = library.read_bytes()
    (package / "fmu" / "broken.c").write_text("int broken(void) { return nothing; }\n")
    with pytest.raises(build.BuildError, match=r"(?s)fmu/broken\.c.*failed:.*nothing"):
        build.build(package)
    assert library.read_bytes() == before


@pytest.mark.usefixtures("c_compiler")
def test_warning_is_an_error_only_when_asked(package, monkeypatch, capfd):
    (package / "fmu" / "narrow.c").write_text("int cut(double x);\nint cut(double x) { return x; }")
    build.build(package)
    assert "-Wconversion" in capfd.readouterr().err.replace("-Wfloat-conversion", "-Wconversion")
    monkeypatch.setenv("BIELLA_CFLAGS", "-Werror")
    with pytest.raises(build.BuildError, match=r"narrow\.c"):
        build.build(package)


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
