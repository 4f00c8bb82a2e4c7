"""The contract between Python and C: what is generated, and that both sides agree on it."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from biella import _contract
from biella.blocks.basic.math._function import FUNCTIONS
from biella.blocks.core.formula._formula import _NUMBERS
from biella.scheduler.engine import build, c_headers
from biella.scheduler.engine._library import library_path, load_library

pytestmark = pytest.mark.engine

PACKAGE = Path(_contract.__file__).parent
STRUCTURES = sorted(
    (
        kind
        for kind in vars(_contract).values()
        if isinstance(kind, type) and issubclass(kind, ctypes.Structure)
        if kind is not ctypes.Structure
    ),
    key=lambda kind: kind.__name__,
)
EXECUTABLE = "prog.exe" if os.name == "nt" else "prog"


def run_c(tmp_path, compiler, text):
    """Compile a program against the headers, and return what it prints."""
    (tmp_path / "prog.c").write_text(text)
    command = [*compiler.command, "-std=c11", "-D_GNU_SOURCE", f"-I{PACKAGE}"]
    program = tmp_path / EXECUTABLE
    subprocess.run(
        [*command, str(tmp_path / "prog.c"), "-o", str(program)], check=True, timeout=300
    )
    return subprocess.run(
        [str(program)], check=True, capture_output=True, text=True, env={}, timeout=300
    ).stdout


def include_all():
    names = [path.as_posix() for path in build.find_sources(PACKAGE, ".h")]
    lines = ["#include <inttypes.h>", "#include <stddef.h>", "#include <stdio.h>"]
    return "\n".join([*lines, *(f'#include "{name}"' for name in names)])


def test_structures_have_the_layout_of_c(tmp_path, c_compiler):
    """Size of each, offset and size of each member: a member that was moved or retyped shows."""
    assert len(STRUCTURES) >= 15
    prints, expected = [], []
    for kind in STRUCTURES:
        name = kind.__name__ if kind is not _contract.bl_device else "struct bl_device"
        prints.append(f'printf("{name} %zu\\n", sizeof({name}));')
        expected.append(f"{name} {ctypes.sizeof(kind)}")
        for member, *_ in kind._fields_:
            place = f"offsetof({name}, {member}), sizeof((({name} *)0)->{member})"
            prints.append(f'printf("{name}.{member} %zu %zu\\n", {place});')
            field = getattr(kind, member)
            expected.append(f"{name}.{member} {field.offset} {field.size}")
    text = f"{include_all()}\nint main(void) {{\n{chr(10).join(prints)}\nreturn 0;\n}}\n"
    assert run_c(tmp_path, c_compiler, text).splitlines() == expected


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed")
@pytest.mark.parametrize("tag", build.WHEEL_TARGETS)
def test_structures_have_this_layout_on_other_platforms(tmp_path, tag):
    """Python is the same there: of types whose size does not depend on the platform."""
    compiler = build.find_zig_compiler(*build.WHEEL_TARGETS[tag])
    assert compiler is not None
    # Of the others, some need what Windows does not have.
    headers = sorted({str(kind.__doc__) for kind in STRUCTURES})
    lines = ["#include <stddef.h>", *(f'#include "{name}"' for name in headers)]
    for kind in STRUCTURES:
        name = kind.__name__ if kind is not _contract.bl_device else "struct bl_device"
        lines.append(f'_Static_assert(sizeof({name}) == {ctypes.sizeof(kind)}, "{name}");')
        for member, *_ in kind._fields_:
            place = f"offsetof({name}, {member}) == {getattr(kind, member).offset}"
            lines.append(f'_Static_assert({place}, "{name}.{member}");')
    source = tmp_path / "layout.c"
    command = [*compiler.command, "-std=c11", "-D_GNU_SOURCE", f"-I{PACKAGE}", "-c"]
    for more, fails in ([], False), (['_Static_assert(sizeof(bl_pace) == 8, "wrong");'], True):
        source.write_text("\n".join([*lines, *more]) + "\n")
        done = subprocess.run(
            [*command, str(source), "-o", str(tmp_path / "layout.o")],
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert (done.returncode != 0) == fails, done.stderr


def find_shared() -> dict[str, list[str]]:
    """Return the constants that ``.c`` files share with Python, by file."""
    found = c_headers.Headers()
    c_headers.read_shared_enums(PACKAGE, build.find_sources(PACKAGE), found)
    shared: dict[str, list[str]] = {}
    for enum in found.enums:
        shared.setdefault(enum.file, []).extend(enum.names)
    return shared


def test_constants_have_the_values_of_c(tmp_path, c_compiler):
    shared = {name for names in find_shared().values() for name in names}
    names = [
        name for name, value in vars(_contract).items()
        if isinstance(value, int | float) and not isinstance(value, bool) and name[0] != "_"
        if name not in shared
    ]  # fmt: skip
    assert len(names) > 600
    prints = "\n".join(f'printf("{name} %.17g\\n", (double)({name}));' for name in names)
    text = f"{include_all()}\nint main(void) {{\n{prints}\nreturn 0;\n}}\n"
    found = dict(line.split() for line in run_c(tmp_path, c_compiler, text).splitlines())
    assert {name: float(value) for name, value in found.items()} == {
        name: getattr(_contract, name) for name in names
    }


def check_shared(tmp_path, compiler, file, values):
    """Compile a source with an assertion on each of its constants."""
    lines = [f'_Static_assert({name} == {value}, "{name}");' for name, value in values.items()]
    (tmp_path / "shared.c").write_text("\n".join([f'#include "{file}"', *lines]) + "\n")
    command = [*compiler.command, "-std=c11", "-D_GNU_SOURCE", f"-I{PACKAGE}", "-fsyntax-only"]
    return subprocess.run(
        [*command, tmp_path / "shared.c"], capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("file", find_shared())
def test_constants_of_a_source_have_the_values_of_c(tmp_path, c_compiler, file):
    values = {name: getattr(_contract, name) for name in find_shared()[file]}
    done = check_shared(tmp_path, c_compiler, file, values)
    assert done.returncode == 0, done.stderr
    wrong = next(iter(values))
    done = check_shared(tmp_path, c_compiler, file, values | {wrong: values[wrong] + 1})
    assert done.returncode and wrong in done.stderr


def test_every_exported_function_is_declared_and_there():
    """In the headers as counted by their lines, in the module, and in the library."""
    headers = build.find_sources(PACKAGE, ".h")
    text = "".join((PACKAGE / name).read_text(encoding="utf-8") for name in headers)
    exported = re.findall(r"^BL_API [^;]*?\b(bl_\w+)\(", text, re.MULTILINE)
    assert sorted(exported) == sorted(_contract.FUNCTIONS) and len(exported) > 90
    sources = build.find_sources(PACKAGE)
    hidden = [
        name for name in sources if re.search(r"^BL_API ", (PACKAGE / name).read_text(), re.M)
    ]
    assert hidden == [], "what is exported is declared in a header"
    library = load_library(library_path())
    assert all(hasattr(library, name) for name in exported)


def test_the_module_is_the_one_of_these_headers():
    """A header that was changed after the last build is reported here."""
    generated = build.generate(PACKAGE)
    rebuild = "the headers have changed: run python scheduler/engine/build.py"
    assert build.contract_path(PACKAGE).read_text(encoding="utf-8") == generated.module, rebuild
    assert generated.digest == _contract.DIGEST


@pytest.mark.parametrize(
    "change",
    [
        ("int64_t parameters, signals,", "int64_t signals, parameters,"),
        ("BL_REAL, BL_INTEGER,", "BL_INTEGER, BL_REAL,"),
        ("BL_API double bl_step(const bl_engine *e);", "BL_API float bl_step(const bl_engine *e);"),
        ("#define BL_PLAN_VERSION 2", "#define BL_PLAN_VERSION 3"),
    ],
)
def test_a_changed_header_changes_the_digest(tmp_path, change):
    package = copy_package(tmp_path)
    header = package / "scheduler" / "engine" / "biella.h"
    text = header.read_text(encoding="utf-8")
    assert change[0] in text
    header.write_text("/* A comment\n * alone */\n" + text, encoding="utf-8")
    assert build.generate(package).digest == _contract.DIGEST
    header.write_text(text.replace(*change), encoding="utf-8")
    assert build.generate(package).digest != _contract.DIGEST


def test_a_changed_enum_of_a_source_changes_the_digest(tmp_path):
    package = copy_package(tmp_path)
    source = package / "scheduler" / "engine" / "plan.c"
    text = source.read_text(encoding="utf-8")
    old, new = "LOOP_BODY, LOOP_BODY_COUNT,", "LOOP_BODY_COUNT, LOOP_BODY,"
    assert old in text
    source.write_text("/* A comment\n * alone */\n" + text, encoding="utf-8")
    assert build.generate(package).digest == _contract.DIGEST
    source.write_text(text.replace(old, new), encoding="utf-8")
    assert build.generate(package).digest != _contract.DIGEST


def copy_package(tmp_path):
    package = tmp_path / "package"
    for name in [*build.find_sources(PACKAGE), *build.find_sources(PACKAGE, ".h")]:
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE / name, package / name)
    return package


def test_every_number_of_a_function_and_of_an_opcode_has_a_name():
    """A function or an opcode that C gains is given a name in Python too."""
    single = dict(FUNCTIONS)
    pairs = [single.pop(name) for name in ("atan2", "hypot", "pow", "mod")]
    assert sorted(pairs) == list(range(_contract.FUNCTION_PAIR_COUNT))
    assert sorted(single.values()) == list(range(_contract.FUNCTION_COUNT))
    assert sorted(_NUMBERS.values()) == list(range(_contract.BL_FORMULA_OPCODES))


# -- the registry of kernels


TABLE = """const bl_kernel bl_kernels_mine[] = {
    {.name = "mine", .check = c},
    {.name = 0},
};
"""


def test_a_file_of_kernels_is_registered_by_being_there(tmp_path):
    package = copy_package(tmp_path)
    (package / "blocks" / "basic" / "mine.c").write_text(TABLE)
    header = build.generate(package).headers["generated/kernels.h"]
    assert "extern const bl_kernel bl_kernels_mine[];\n" in header
    assert "    bl_kernels_mine,\n" in header


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TABLE.replace(" = {", " =\n{"), r"basic/mine.c:1: a table of kernels begins with"),
        ("\nstatic " + TABLE, r"basic/mine.c:2: a table of kernels begins with"),
        (TABLE.replace('"mine"', '"gain"'), r"`gain` is defined in blocks/basic/\w+/\w+.c:\d+ too"),
        (TABLE.replace("_mine", "_math"), r"`bl_kernels_math` is defined in"),
    ],
)
def test_a_table_that_would_be_missed_is_refused(tmp_path, text, message):
    package = copy_package(tmp_path)
    (package / "blocks" / "basic" / "mine.c").write_text(text)
    with pytest.raises(build.BuildError, match=message):
        build.generate(package)
