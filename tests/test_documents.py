"""What the README and the guides say is true."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import biella.blocks

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks_of(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


@pytest.mark.engine
def test_the_user_code_of_the_readme_makes_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = blocks_of("python")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 25
    exec(code, {})
    assert (tmp_path / "speed.png").exists() and (tmp_path / "speed.fmu").exists()
    assert "shaft speed" in capsys.readouterr().out


def test_the_main_job_of_the_readme_is_the_demo():
    """tests/test_demo.py runs it; .ci/run runs the line itself, in a fresh clone."""
    run_it, test_it = blocks_of("sh")[:2]
    command = run_it.strip().rsplit("&& .venv/bin/biella ", 1)[1]
    assert shlex.split(command) == ["demo"]
    assert "pytest" in test_it


def test_links_and_pictures_of_the_documents_exist():
    for document in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_up_to_date_and_has_every_block(reference):
    files = reference.write_reference()
    kept = {f"reference/{path.name}" for path in (ROOT / "docs" / "reference").iterdir()}
    assert kept | {"reference.md"} == set(files), "run: python docs/reference.py"
    for path, content in files.items():
        assert (ROOT / "docs" / path).read_text() == content, "run: python docs/reference.py"
    text = "".join(files.values())
    for name, block in reference.exported().items():
        assert f"\n## {name}\n" in text
        assert inspect.cleandoc(block.__doc__).partition("\n")[0].rstrip(":") in text
    for name in ("Diagram", "simulate", "Result", "System", "System.revolute", "Result.plot"):
        assert f"# {name}\n\n```py\n{name}(" in files["reference/python.md"]
    drawn = {path.stem for path in (ROOT / "docs" / "pictures" / "reference").glob("*.png")}
    assert drawn == set(re.findall(r"pictures/reference/(\w+)\.png", text))
    without = set(reference.exported()) - drawn
    assert without == {
        "Assertion", "Outside", "RealTime", "Record", "Scope", "Stop", "Terminator"
    }  # fmt: skip


@pytest.mark.engine
def test_pictures_of_the_reference_are_drawn_by_running_the_block(reference):
    block = biella.blocks.Saturation(-1.0, 2.0)
    picture = np.asarray(reference.draw("Saturation", block).convert("RGB"), dtype=int)
    kept = np.asarray(
        Image.open(ROOT / "docs/pictures/reference/Saturation.png").convert("RGB"), dtype=int
    )
    assert picture.shape == kept.shape
    # Fonts may differ from machine to machine; the curve does not.
    assert (np.abs(picture - kept).max(axis=2) > 60).mean() < 0.02


def test_lists_and_tables_stand_apart():
    """Markdown of the site wants an empty line before them; others do without."""
    joined = []
    for document in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = re.sub(r"^( *)```.*?^\1```$", "", document.read_text(), flags=re.S | re.M)
        lines = text.splitlines()
        for before, line in itertools.pairwise(lines):
            for start in (r"[-*] ", r"1\. ", r"\|"):
                plain = before.strip() and not re.match(rf"\s*(?:{start})|\s|#", before)
                if re.match(start, line) and plain:
                    joined.append(f"{document.name}: {line[:60]}")
    assert joined == []


def test_every_block_is_in_the_list_of_blocks():
    text = (ROOT / "docs" / "blocks.md").read_text()
    missing = [
        name
        for name in biella.blocks.__all__
        if isinstance(getattr(biella.blocks, name), type)
        and issubclass(getattr(biella.blocks, name), biella.blocks.NativeBlock)
        and name != "NativeBlock"
        and f"`{name}`" not in text
    ]
    assert missing == []
