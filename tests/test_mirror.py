"""Tests mirror the tree: a module with behavior of its own has a test file of its name."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOTS = {"blocks": "blocks", "scheduler": "scheduler", "fmu": "fmu", "src/biella": ""}
GENERATED = {ROOT / "src" / "biella" / "_contract.py"}

ELSEWHERE = {
    "blocks/authoring.py": "test_public_api.py",
    "blocks/external/_external_block.py": "fmu/importer/test_fmu.py",
    "blocks/multibody/_pendulum.py": "blocks/test_contract.py",
    "blocks/multibody/adams/_builder.py": "blocks/multibody/adams/test_build.py",
    "blocks/multibody/adams/_commands.py": "blocks/multibody/adams/test_language.py",
    "blocks/multibody/adams/_items.py": "blocks/multibody/adams/test_model.py",
    "blocks/multibody/adams/_objects.py": "blocks/multibody/adams/test_model.py",
    "blocks/multibody/cards/_derivatives.py": "blocks/multibody/cards/test_read.py",
    "blocks/multibody/elements/clearance/_numbers.py": (
        "blocks/multibody/elements/clearance/test_clearance.py"
    ),
    "blocks/multibody/drawing/_contact_rose.py": (
        "blocks/multibody/analysis/test_contact_statistics.py"
    ),
    "blocks/multibody/elements/_function_constraint.py": (
        "blocks/multibody/elements/test_formula_constraint.py"
    ),
    "blocks/multibody/equations/_rolling.py": "blocks/multibody/elements/test_rolling.py",
    "blocks/multibody/joints/": "blocks/multibody/joints/test_table.py",
    "blocks/multibody/reference_formulations/_kkt.py": (
        "blocks/multibody/reference_formulations/test_formulations.py"
    ),
    "blocks/multibody/reference_formulations/_null_space.py": (
        "blocks/multibody/reference_formulations/test_formulations.py"
    ),
    "blocks/control/_tracking_design.py": "blocks/control/test_tracking.py",
    "blocks/core/_exports.py": "fmu/standards/test_reference.py",
    "blocks/core/_terminals.py": "scheduler/compile/diagram/test_terminals.py",
    "blocks/multibody/elements/_load_methods.py": "blocks/multibody/elements/test_load.py",
    "blocks/multibody/elements/formula/_read_problems.py": (
        "blocks/multibody/elements/formula/test_reads.py"
    ),
    "blocks/multibody/system/_problems.py": "blocks/multibody/cards/test_file.py",
    "blocks/multibody/urdf/_element.py": "blocks/multibody/urdf/test_file.py",
    "fmu/_run_file.py": "fmu/test_commands.py",
    "fmu/importer/_engine_fmu.py": "fmu/importer/test_host.py",
    "fmu/importer/backends/_called.py": "fmu/importer/test_fmu.py",
    "fmu/importer/backends/_sandbox.py": "fmu/importer/backends/test_strict.py",
    "fmu/importer/_options.py": "fmu/importer/test_fmu.py",
    "scheduler/compile/diagram/_boundary.py": "scheduler/compile/diagram/test_diagram.py",
    "src/biella/cli/_mechanisms.py": "blocks/multibody/reference_formulations/test_comparison.py",
    "src/biella/cli/_watching.py": "scheduler/realtime/test_watch.py",
    "src/biella/devices.py": "test_public_api.py",
    "src/biella/realtime.py": "test_public_api.py",
    "src/biella/results.py": "test_public_api.py",
    "src/biella/studio/_open.py": "studio/test_comparison.py",
    "src/biella/studio/edit/_reader.py": "studio/edit/test_editor.py",
    "src/biella/studio/edit/_rewrite.py": "studio/edit/test_editor.py",
    "src/biella/studio/edit/_source.py": "studio/edit/test_editor.py",
    "src/biella/studio/edit/_structure.py": "studio/edit/test_editor.py",
    "src/biella/tolerances.py": "test_public_api.py",
    "src/biella/udp_proxy.py": "scheduler/devices/virtual/test_udp_proxy.py",
}
"""Modules, or whole folders, that are tested under another name, and where in tests/."""

OWN_FOLDERS = {"fmu/slave"}
"""Folders of tests without a folder in the package: an exported FMU, driven through FMI."""


def find_modules() -> dict[str, Path]:
    """Return each module below the package, and the test file that its name asks for."""
    found = {}
    for root, place in ROOTS.items():
        for path in sorted((ROOT / root).rglob("*.py")):
            if path.name.startswith("__") or path in GENERATED:
                continue
            folder = ROOT / "tests" / place / path.parent.relative_to(ROOT / root)
            name = path.stem.removeprefix("_")
            found[path.relative_to(ROOT).as_posix()] = folder / f"test_{name}.py"
    return found


MODULES = find_modules()


def exception(module: str) -> str | None:
    """Return the entry of `ELSEWHERE` for a module: its own, or that of a folder around it."""
    entries = [module, *(f"{folder.as_posix()}/" for folder in Path(module).parents)]
    return next((entry for entry in entries if entry in ELSEWHERE), None)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_has_a_test_file_of_its_name(module):
    if not MODULES[module].exists():
        wanted = MODULES[module].relative_to(ROOT)
        assert exception(module), f"add {wanted}, or say in ELSEWHERE where {module} is tested"


@pytest.mark.parametrize("entry", ELSEWHERE)
def test_no_exception_is_out_of_date(entry):
    """The module is there, has no test file of its name, and the tests named are there."""
    covered = [m for m in MODULES if m == entry or (entry.endswith("/") and m.startswith(entry))]
    assert covered, "no such module"
    assert not all(MODULES[m].exists() for m in covered), "has a test file of its name"
    assert (ROOT / "tests" / ELSEWHERE[entry]).exists(), ELSEWHERE[entry]


def test_every_folder_of_tests_has_its_folder_in_the_package():
    strange = [
        folder.relative_to(ROOT / "tests").as_posix()
        for place in ("blocks", "scheduler", "fmu")
        for folder in (ROOT / "tests" / place).rglob("*")
        if folder.is_dir()
        and folder.name != "__pycache__"
        and any(folder.glob("test_*.py"))
        and not (ROOT / folder.relative_to(ROOT / "tests")).is_dir()
    ]
    assert sorted(strange) == sorted(OWN_FOLDERS)
