"""Every code block of the README and of docs/ runs.

The blocks of a page run one after the other, as in a notebook, in an empty folder that has a link
to the examples. A Python block whose first line is ``# name.py`` is also written to that file, and
a TOML block that begins with ``# name.toml`` to that one. Of shell blocks, commands of biella are
run. A block that is left out says so, and why, in its first line: ``# not run by the tests: …``.
What a page takes for granted, such as somebody's FMU, is made by a function here.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import types
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from biella import Diagram, cli
from biella.blocks import Expression, Integrator

ROOT = Path(__file__).parents[2]
FOLLOWED = set(ROOT.glob("docs/howto/add_*.md"))  # by tests/documents/test_extend_pages.py
LINKED = {"validation.md", "mistakes.md"}  # tested elsewhere


def is_generated(page: Path) -> bool:
    """Whether docs/reference.py writes the page, from docstrings."""
    by_hand = {"api.md", "blocks.md", "command_line.md", "platforms.md", "versioning.md"}
    return page.parent.name == "reference" and page.name not in by_hand


PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if page.name not in LINKED and page not in FOLLOWED and not is_generated(page)
)
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n]*)\n(?P<code>.*?)^(?P=indent)```$", re.S | re.M
)
LEFT_OUT = re.compile(r"# not run by the tests: \w.*")
INSTALLS = "python3 -m venv .venv && "  # tests/documents/test_documents.py and .ci/run see to these
LANGUAGES = {"python", "sh", "c", "math", "toml", "text", "csv"}


def blocks_of(page: str) -> list[tuple[str, str, int]]:
    """Return language, code and first line of each block."""
    text = (ROOT / page).read_text()
    return [
        (match["info"], match["code"], text.count("\n", 0, match.start()) + 2)
        for match in FENCE.finditer(text)
    ]


def make_engine_fmu() -> None:
    """Export a rotor: input `load`, output `speed`, parameters rotor.inertia, bearing.friction."""
    d = Diagram("engine", step=1e-3)
    law = Expression("(load - rub)/inertia", parameters={"inertia": 0.1}, unit="rad/s2")
    rotor = d.add(law, name="rotor")
    rub = Expression("friction*speed", parameters={"friction": 0.02}, unit="N.m")
    bearing = d.add(rub, name="bearing")
    speed = d.add(Integrator(), name="turning")
    d.connect(d.input("load", unit="N.m"), rotor["load"])
    d.connect(speed, bearing)
    d.connect(bearing, rotor["rub"])
    d.connect(rotor, speed)
    d.output("speed", speed)
    d.export_fmu("engine.fmu")


def prepare_import() -> None:
    make_engine_fmu()
    Path("load.csv").write_text("time,load\n0,0\n1,20\n5,20\n")


def prepare_couplings() -> None:
    for name, given, formula, unit in (
        ("motor", "speed", "5 - 0.2*speed", "N.m"),
        ("gearbox", "torque", "torque/0.1", "rad/s2"),
    ):
        d = Diagram(name, step=1e-3)
        law = d.add(Expression(formula, unit=unit), name="law")
        unit_in = "rad/s" if given == "speed" else "N.m"
        d.connect(d.input(given, unit=unit_in), law[given])
        if name == "motor":
            d.output("torque", law)
        else:
            speed = d.add(Integrator(), name="rotor")
            d.connect(law, speed)
            d.output("speed", speed)
        d.export_fmu(f"{name}.fmu")


def prepare_mechanisms() -> None:
    shutil.copy(ROOT / "tests" / "blocks" / "multibody" / "urdf" / "arm.urdf", "arm.urdf")


def prepare_devices() -> None:
    """Put the package of a vendor beside ours; tests/scheduler/devices has one that works."""
    for name in ("pymodbus", "serial", "asyncua"):  # bindings of the page are checked with them
        pytest.importorskip(name, reason=f"{name} is not installed")
    vendor = types.ModuleType("acme_daq")
    vendor.Card = object  # type: ignore[attr-defined]
    sys.modules["acme_daq"] = vendor


PREPARE = {
    "docs/guides/devices.md": prepare_devices,
    "docs/howto/use_fmu.md": prepare_import,
    "docs/guides/fmu_import.md": prepare_import,
    "docs/guides/co_simulation.md": prepare_couplings,
    "docs/guides/multibody.md": prepare_mechanisms,
}


def run_shell(code: str) -> None:
    for line in code.replace("\\\n", " ").splitlines():
        for command in re.split(r"; |&& ", line.partition(" #")[0]):
            words = shlex.split(command)
            if words:
                assert words[0] == "biella", f"not a command of biella: {command}"
                assert cli.main(words[1:]) == 0, command


def run_python(code: str, names: dict[str, object], page: str, line: int) -> None:
    if match := re.match(r"# (\w+\.py)\n", code):
        Path(match[1]).write_text(code)
    exec(compile("\n" * (line - 1) + code, page, "exec"), names)


@pytest.mark.engine
@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)])
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    PREPARE.get(page, lambda: None)()
    names: dict[str, object] = {"__name__": "document"}
    for language, code, line in blocks_of(page):
        if LEFT_OUT.match(code) or code.startswith(INSTALLS):
            continue
        if language == "python":
            run_python(code, names, page, line)
        elif language == "sh":
            run_shell(code)
        elif match := re.match(r"# (\w+\.toml)\n", code):
            Path(match[1]).write_text(code)
    plt.close("all")


def test_every_block_says_its_language():
    """So that none is passed over by a slip."""
    odd = [
        f"{page}:{line} {language!r}"
        for page in PAGES
        for language, code, line in blocks_of(page)
        if language not in LANGUAGES
    ]
    assert odd == []


def test_what_is_prepared_is_a_page():
    assert set(PREPARE) <= set(PAGES)
