"""An FMU's sources: one C file that compiles clean everywhere and links beside others like it."""

from __future__ import annotations

import importlib.util
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fmi3_calls import OK, Instance3, Unpacked3
from lxml import etree

from .conftest import OUTPUTS, STEPS, TICKS, Exported, make_crank, reference, run_engine

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
STRICT = ["-std=c11", "-ffp-contract=off", *WARNINGS]

PROGRAM = Path(__file__).with_name("linked.c")


def source_of(fmu: Exported) -> Path:
    return fmu.folder / "sources" / "controlled_crank.c"


def need(compiler: str) -> str:
    found = shutil.which(compiler)
    if found is None:
        pytest.skip(f"{compiler} is not installed")
    return found


@pytest.fixture(scope="module")
def compiled(crank: Exported, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The object file, of functions with a prefix."""
    made = tmp_path_factory.mktemp("compiled") / "one_.o"
    prefix = "-DFMI2_FUNCTION_PREFIX=one_"
    command = [need("gcc"), "-O0", *STRICT, prefix, "-c", str(source_of(crank)), "-o", str(made)]
    subprocess.run(command, check=True, timeout=1800)
    return made


def list_symbols(compiled: Path, *which: str) -> list[str]:
    command = [need("nm"), *which, str(compiled)]
    printed = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=1800
    ).stdout
    return [line.split()[-1] for line in printed.splitlines()]


@pytest.mark.parametrize(
    ("compiler", "prefix"),
    [
        ("gcc", []),  # with a prefix, as strict: the fixture `compiled`
        ("clang", ["-DFMI2_FUNCTION_PREFIX=my_"]),
        pytest.param("clang", [], marks=pytest.mark.slow),
    ],
    ids=["gcc-plain", "clang-prefix", "clang-plain"],
)
def test_it_compiles_clean(crank: Exported, compiler: str, prefix: list[str]) -> None:
    command = [need(compiler), *STRICT, *prefix, "-fsyntax-only", str(source_of(crank))]
    subprocess.run(command, check=True, timeout=1800)


def test_only_fmi_functions_are_seen_from_outside(compiled: Path) -> None:
    names = list_symbols(compiled, "--extern-only", "--defined-only")
    assert len(names) == 44  # all functions of FMI 2.0
    assert [name for name in names if not re.match("one_fmi2[A-Z]", name)] == []


def test_no_file_is_opened(compiled: Path) -> None:
    """For a target without a file system: nothing of the kind is even asked of the linker."""
    undefined = set(list_symbols(compiled, "--undefined-only"))
    assert {"malloc", "sin"} <= undefined
    assert not {"fopen", "dladdr", "clock_gettime", "pthread_create", "nanosleep"} & undefined


def test_two_fmus_link_into_one_program(
    crank: Exported, compiled: Path, unpack: Callable[[Path], Exported], tmp_path: Path
) -> None:
    other = unpack(make_crank(6.0).export_fmu(tmp_path / "other.fmu", inputs=["ref"]))
    gcc = need("gcc")
    command = [gcc, "-std=c11", "-O0", "-DFMI2_FUNCTION_PREFIX=two_", "-c", str(source_of(other))]
    subprocess.run([*command, "-o", "two_.o"], check=True, cwd=tmp_path, timeout=1800)
    references = [str(crank.references[name]) for name in OUTPUTS]
    given = {
        "INPUT": str(crank.references["ref"]),
        "REFERENCES": ",".join(references),
        "STEPS": str(STEPS),
        "GUID_ONE": f'"{crank.description.guid}"',
        "GUID_TWO": f'"{other.description.guid}"',
    }
    defined = [f"-D{name}={value}" for name, value in given.items()]
    command = [gcc, "-std=c11", "-Wall", "-Werror", *defined, str(PROGRAM)]
    subprocess.run(
        [*command, str(compiled), "two_.o", "-lm", "-o", "both"],
        check=True,
        cwd=tmp_path,
        timeout=1800,
    )
    printed = subprocess.run(
        [tmp_path / "both"], capture_output=True, text=True, cwd="/", env={}, timeout=1800
    )
    assert printed.returncode == 0
    rows = [[float(word) for word in line.split()] for line in printed.stdout.splitlines()]
    assert rows[0::2] == run_engine()
    assert rows[1::2] == run_engine(gain=6.0)


def test_the_build_description_fits_its_schema(crank: Exported) -> None:
    import fmpy

    schema = Path(fmpy.__file__).parent / "schema" / "fmi3" / "fmi3BuildDescription.xsd"
    tree = etree.parse(crank.folder / "sources" / "buildDescription.xml")
    etree.XMLSchema(file=str(schema)).assertValid(tree)
    named = [element.get("name") for element in tree.iter("SourceFile")]
    assert named == [source_of(crank).name]


@pytest.fixture(scope="module")
def crank3(
    tmp_path_factory: pytest.TempPathFactory, unpack: Callable[[Path], Exported]
) -> Exported:
    """The same as an FMI 3.0 FMU."""
    path = tmp_path_factory.mktemp("crank3") / "crank.fmu"
    return unpack(make_crank().export_fmu(path, inputs=["ref"], version="3.0"))


@pytest.mark.parametrize(
    ("compiler", "prefix"),
    [
        ("gcc", ["-DFMI3_FUNCTION_PREFIX=my_"]),
        ("clang", []),
        # The two other pairs, of what the default tests have done.
        pytest.param("gcc", [], marks=pytest.mark.slow),
        pytest.param("clang", ["-DFMI3_FUNCTION_PREFIX=my_"], marks=pytest.mark.slow),
    ],
    ids=["gcc-prefix", "clang-plain", "gcc-plain", "clang-prefix"],
)
def test_sources_of_fmi_3_compile_clean(
    crank3: Exported, compiler: str, prefix: list[str], tmp_path: Path
) -> None:
    command = [need(compiler), "-O0", *STRICT, *prefix, "-c", str(source_of(crank3))]
    subprocess.run([*command, "-o", "x.o"], check=True, cwd=tmp_path, timeout=1800)
    names = list_symbols(tmp_path / "x.o", "--extern-only", "--defined-only")
    assert len(names) == 75  # all functions of FMI 3.0
    start = "my_fmi3[A-Z]" if prefix else "fmi3[A-Z]"
    assert [name for name in names if not re.match(start, name)] == []


@pytest.mark.parametrize("level", ["-O1", pytest.param("-O2", marks=pytest.mark.slow)])
def test_sources_of_fmi_3_give_the_bits_of_the_engine(
    crank3: Exported, level: str, tmp_path: Path
) -> None:
    """Compiled as its build description says, without its resources.

    Optimized: some warnings need that.
    """
    tree = etree.parse(crank3.folder / "sources" / "buildDescription.xml")
    assert tree.getroot().get("fmiVersion") == "3.0"
    (configuration,) = tree.iter("BuildConfiguration")
    assert configuration.get("modelIdentifier") == "controlled_crank"
    files = [element.get("name") for element in tree.iter("SourceFile")]
    made = tmp_path / "made.so"
    command = [need("gcc"), level, *STRICT, "-fPIC", "-shared"]
    subprocess.run(
        [*command, *files, "-lm", "-o", str(made)],
        check=True,
        cwd=crank3.folder / "sources",
        timeout=1800,
    )
    fmu = Unpacked3(crank3.path, tmp_path / "unpacked")
    one = Instance3(fmu, library=made, where=None).start()
    rows = []
    for n in range(STEPS):
        one.set("ref", reference(n))
        assert one.step((n + 1) * TICKS * 1e-3 - one.time)[0] == OK
        rows.append(one.get("speed", "torque", "place"))
    assert rows == run_engine()


def test_sources_may_stay_at_home(tmp_path: Path, unpack: Callable[[Path], Exported]) -> None:
    fmu = unpack(make_crank().export_fmu(tmp_path / "x.fmu", inputs=["ref"], sources=False))
    assert not (fmu.folder / "sources").exists()
    assert fmu.description.buildConfigurations == []


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="not on x86-64")
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_nothing_is_fused_even_without_the_option(
    crank: Exported, compiler: str, tmp_path: Path
) -> None:
    """A build that does not say -ffp-contract=off, as FMPy's, rounds as the engine does."""

    def count(*options: str) -> int:
        command = [need(compiler), "-std=gnu11", "-O2", "-mfma", *options, "-c"]
        subprocess.run(
            [*command, str(source_of(crank)), "-o", "x.o"], check=True, cwd=tmp_path, timeout=1800
        )
        listing = subprocess.run(
            [need("objdump"), "-d", "x.o"],
            check=True,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=1800,
        )
        return len(re.findall(r"\bvfn?m(?:add|sub)", listing.stdout))

    # gcc 12 makes one vfmsubadd with the option too.
    assert count() == count("-ffp-contract=off") <= 1


@pytest.mark.slow
@pytest.mark.parametrize("target", ["x86_64-linux-gnu.2.17", "x86_64-windows-gnu", "x86_64-macos"])
def test_zig_compiles_it_clean(crank: Exported, target: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("ziglang is not installed")
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target, "-O2", *STRICT]
    subprocess.run(
        [*command, "-c", str(source_of(crank)), "-o", "x.o"], check=True, cwd=tmp_path, timeout=1800
    )
