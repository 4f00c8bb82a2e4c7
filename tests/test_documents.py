"""What the README and the guides say is true."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import biella.blocks
from biella import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks_of(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


@pytest.mark.engine
def test_the_user_code_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, mechanism = blocks_of("python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 25
    exec(code, {})
    exec(mechanism, {})
    assert (tmp_path / "speed.png").exists() and (tmp_path / "speed.fmu").exists()
    assert "shaft speed" in capsys.readouterr().out


@pytest.mark.engine
def test_the_main_job_of_the_readme_draws_its_picture(tmp_path, monkeypatch):
    run_it, test_it = blocks_of("sh")
    command = run_it.strip().rsplit("&& .venv/bin/biella ", 1)[1]
    arguments = [
        str(ROOT / part) if part.startswith("examples/") else part for part in shlex.split(command)
    ]
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 0
    assert (tmp_path / "first_loop.png").stat().st_size > 10_000
    assert "pytest" in test_it


def test_links_and_pictures_of_the_documents_exist():
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"


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
