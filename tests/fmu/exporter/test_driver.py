"""The FMU in the hands of a master in C: no Python in sight, on Linux and on Windows."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from biella.fmu.exporter._platforms import TARGETS
from biella.scheduler.engine.build import find_system_compiler, find_zig_compiler

from .conftest import OUTPUTS, STEPS, Exported, make_crank, run_engine

SOURCE = Path(__file__).with_name("driver.c")
Rows = list[list[float]]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = find_system_compiler()
    if compiler is None:
        pytest.skip("there is no C compiler")
    program = tmp_path_factory.mktemp("driver") / "driver"
    command = [*compiler.command, "-std=gnu11", "-Wall", "-Werror", str(SOURCE), "-ldl"]
    subprocess.run([*command, "-o", str(program)], check=True, timeout=300)
    return program


def drive(
    program: list[str],
    fmu: Exported,
    mode: str,
    *more: str,
    library: str | None = None,
    resources: str | None = None,
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
) -> Rows:
    """Run the driver without any of this process's environment; return what it prints."""
    references = [str(fmu.references[name]) for name in ("ref", *OUTPUTS)]
    where = resources or (fmu.folder / "resources").as_uri()
    arguments = [mode, library or str(fmu.library), fmu.description.guid, where, str(STEPS)]
    done = subprocess.run(
        [*program, *arguments, *references, *more],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment or {},
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def test_two_instances_in_turn_give_the_bits_of_the_engine(
    driver: Path, crank: Exported, expected: Rows
) -> None:
    rows = drive([str(driver)], crank, "two")
    assert rows[0::2] == expected
    assert rows[1::2] == run_engine(shift=5)


def test_without_a_resource_location(driver: Path, crank: Exported, expected: Rows) -> None:
    assert drive([str(driver)], crank, "two", resources="-")[0::2] == expected


def test_a_serialized_state_goes_on_in_a_fresh_process(
    driver: Path, crank: Exported, expected: Rows, tmp_path: Path
) -> None:
    kept = str(tmp_path / "state")
    assert drive([str(driver)], crank, "save", kept) == expected
    assert drive([str(driver)], crank, "load", kept) == expected[STEPS // 2 :]


@pytest.mark.slow
def test_the_windows_binary_under_wine(
    tmp_path: Path, unpack: Callable[[Path], Exported], expected: Rows
) -> None:
    """The only difference allowed is that of the C libraries: within 1e-12."""
    wine = shutil.which("wine64") or shutil.which("wine")
    if wine is None:
        pytest.skip("wine is not installed")
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("ziglang is not installed")
    path = make_crank().export_fmu(tmp_path / "c.fmu", inputs=["ref"], platforms=["win64"])
    fmu = unpack(path)
    compiler = find_zig_compiler(*TARGETS["win64"])
    assert compiler is not None
    program = tmp_path / "driver.exe"
    subprocess.run(
        [*compiler.command, "-std=gnu11", "-O1", str(SOURCE), "-o", str(program)],
        check=True,
        timeout=300,
    )
    environment = {
        "WINEPREFIX": str(tmp_path / "wine"),
        "WINEDEBUG": "-all",
        "LC_ALL": "C.UTF-8",  # of file names
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
    }
    folder = fmu.folder.rename(tmp_path / "Łódź and Zürich")
    library = next((folder / "binaries" / "win64").iterdir()).relative_to(folder)
    encoded = (folder / "resources").as_uri().removeprefix("file://")
    for resources in ("resources", f"file:///Z:{encoded}", f"file:/Z:{encoded}/", "-"):
        rows = drive(
            [wine, str(program)],
            fmu,
            "two",
            library=str(library).replace("/", "\\"),
            resources=resources,
            environment=environment,
            folder=folder,
        )
        np.testing.assert_allclose(rows[0::2], expected, rtol=1e-12, atol=1e-12)
