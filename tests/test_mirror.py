"""Tests mirror the tree: a module with behavior of its own has a test file of its name."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOTS = {"blocks": "blocks", "scheduler": "scheduler", "fmu": "fmu", "src/biella": ""}
GENERATED = {ROOT / "src" / "biella" / "_contract.py"}

ELSEWHERE = {
    "blocks/authoring.py": "test_public_api.py",
    "blocks/bearings/_bearings.py": "blocks/bearings/test_film.py",
    "blocks/external/_external_block.py": "fmu/importer/test_fmu.py",
    "blocks/multibody/_pendulum.py": "blocks/test_contract.py",
    "blocks/multibody/analysis/_equilibrium.py": "blocks/multibody/analysis/test_prescribed.py",
    "blocks/multibody/analysis/_given_pose.py": "blocks/multibody/plant/test_initial.py",
    "blocks/multibody/analysis/_joint_friction.py": (
        "blocks/multibody/elements/test_joint_friction.py"
    ),
    "blocks/multibody/analysis/_linear.py": "blocks/multibody/analysis/test_small_motions.py",
    "blocks/multibody/analysis/_manifold.py": "blocks/multibody/plant/test_initial.py",
    "blocks/multibody/analysis/_moving.py": "blocks/multibody/analysis/test_small_motions.py",
    "blocks/multibody/analysis/_pose.py": "blocks/multibody/plant/test_initial.py",
    "blocks/multibody/analysis/_reduced.py": "blocks/multibody/analysis/test_small_motions.py",
    "blocks/multibody/analysis/_report.py": "blocks/multibody/test_messages.py",
    "blocks/multibody/analysis/_stability.py": "blocks/multibody/kernel/steps/test_implicit.py",
    "blocks/multibody/drawing/": "blocks/multibody/drawing/test_picture.py",
    "blocks/multibody/elements/_table.py": "blocks/multibody/elements/test_outputs.py",
    "blocks/multibody/equations/": "blocks/multibody/reference_formulations/test_formulations.py",
    "blocks/multibody/joints/": "blocks/multibody/joints/test_table.py",
    "blocks/multibody/plant/_outputs.py": "blocks/multibody/elements/test_outputs.py",
    "blocks/multibody/plant/_state_names.py": "blocks/multibody/analysis/test_small_motions.py",
    "blocks/multibody/plant/_tables.py": "blocks/multibody/plant/test_plant.py",
    "blocks/multibody/reference_formulations/": (
        "blocks/multibody/reference_formulations/test_formulations.py"
    ),
    "blocks/multibody/urdf/": "blocks/multibody/test_urdf.py",
    "fmu/importer/_backend_python.py": "fmu/importer/test_fmu.py",
    "fmu/importer/_options.py": "fmu/importer/test_fmu.py",
    "fmu/importer/_worker.py": "fmu/importer/test_isolated.py",
    "scheduler/compile/coupling/_couplings.py": "scheduler/engine/test_coupling.py",
    "scheduler/compile/coupling/_power_pairs.py": "scheduler/engine/test_coupling.py",
    "scheduler/compile/diagram/_boundary.py": "scheduler/compile/diagram/test_diagram.py",
    "scheduler/realtime/_live_end.py": "scheduler/realtime/test_live.py",
    "scheduler/realtime/_live_setup.py": "scheduler/realtime/test_live.py",
    "scheduler/realtime/_live_threads.py": "scheduler/realtime/test_live.py",
    "scheduler/realtime/_start.py": "scheduler/realtime/test_live.py",
    "scheduler/realtime/_worker.py": "blocks/external/test_asynchronous.py",
    "scheduler/results/_coupling_report.py": "scheduler/engine/test_coupling.py",
    "src/biella/cli/": "test_cli.py",
    "src/biella/demo/": "test_demo.py",
    "src/biella/devices.py": "test_public_api.py",
    "src/biella/realtime.py": "test_public_api.py",
    "src/biella/results.py": "test_public_api.py",
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
