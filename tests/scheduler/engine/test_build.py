"""The engine compiles with the compiler of the system or with zig, again only when needed."""

import ctypes
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from biella.scheduler.engine import build
from biella.scheduler.engine._library import library_path

REPOSITORY = Path(__file__).parents[3]


PACKAGE = REPOSITORY / "src" / "biella"


@pytest.fixture(autouse=True)
def plain_flags(monkeypatch):
    """The flags that users get, whatever the run itself was started with."""
    monkeypatch.delenv("BIELLA_CFLAGS", raising=False)


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
def test_only_what_has_changed_is_compiled_again(package, tmp_path, monkeypatch):
    objects = tmp_path / "objects"
    compiled: list[str] = []
    made: list[tuple[float, list[str]]] = []
    run = build._run

    def count(compiler, arguments, cwd):
        compiled.extend(Path(name).name for name in arguments if name.endswith(".c"))
        run(compiler, arguments, cwd)

    def build_again(package=package, **options):
        compiled.clear()
        library = build.build(package, objects=objects, **options)
        four_times = ctypes.CDLL(shutil.copy(library, tmp_path / f"{len(made)}.so")).four_times
        four_times.restype, four_times.argtypes = ctypes.c_double, [ctypes.c_double]
        made.append((four_times(1.0), sorted(name for name in compiled if name != "try.c")))
        return library.read_bytes()

    monkeypatch.setattr(build, "_run", count)
    first = build_again()
    assert build_again() == first
    twice = package / "blocks" / "deep" / "twice.c"
    twice.write_text(twice.read_text().replace("2.0", "3.0"))
    build_again()
    header = twice.with_suffix(".h")
    header.write_text("/* new */\n" + header.read_text())
    build_again()
    build_again(flags=["-DOTHER"])
    build_again()
    other = tmp_path / "other"
    shutil.copytree(package.parents[1], other, symlinks=True)
    build_again(other / "src" / "biella")
    both = ["engine.c", "twice.c"]
    assert [list(row) for row in made] == [
        [4.0, both], [4.0, []], [9.0, ["twice.c"]], [9.0, both], [9.0, both], [9.0, []], [9.0, []]
    ]  # fmt: skip
    assert build.build(package).read_bytes() == build_again()


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


@pytest.mark.skipif(sys.platform != "linux", reason="the flags are those of Linux")
@pytest.mark.skipif("BIELLA_LIBRARY" in os.environ, reason="a library with other flags")
def test_the_engine_is_hardened():
    """Bound at loading, read-only afterwards, no executable stack, checked copies and frames."""
    content = library_path().read_bytes()
    assert b"__stack_chk_fail" in content
    assert b"__memcpy_chk" in content or platform.libc_ver()[0] != "glibc"
    if shutil.which("readelf") is None:
        pytest.skip("needs readelf")
    command = ["readelf", "--wide", "--dynamic", "--segments", str(library_path())]
    lines = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=240
    ).stdout.splitlines()
    assert any("BIND_NOW" in line or "NOW" in line.split()[-1:] for line in lines)
    assert any("GNU_RELRO" in line for line in lines)
    [stack] = [line for line in lines if "GNU_STACK" in line]
    assert "RWE" not in stack and " RW " in stack


def test_sanitizers_and_debuggers_get_no_fortification(package, monkeypatch):
    """It hides overruns from AddressSanitizer, and warns without an optimizer."""
    seen = []
    monkeypatch.setattr(build, "_run", lambda compiler, arguments, cwd: seen.append(arguments))
    monkeypatch.setattr(shutil, "copy", lambda *_: None)
    monkeypatch.setattr(os, "replace", lambda *_: None)
    compiler = build.Compiler(("cc",), "linux")
    for flags, fortified in (([], True), (["-fsanitize=address"], False), (["-O0"], False)):
        seen.clear()
        build.build(package, package / "out.so", compiler=compiler, flags=flags)
        assert ("-D_FORTIFY_SOURCE=2" in seen[0]) == fortified
