"""The documentation builds as a site: strictly, and so that it is read without a network."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("material") is None,
    reason='mkdocs-material is not installed: pip install ".[docs]"',
)


def build(config: Path, target: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config)]
    return subprocess.run(
        [*command, "-d", str(target)],
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    done = build(ROOT / "docs" / "site" / "mkdocs.yml", target)
    # Pages, links and anchors that do not exist are warnings, and those are errors.
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def test_every_page_is_there(site):
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        assert (site / (name if name.stem != "README" else name.with_stem("index"))).is_file()


def test_no_page_fetches_anything(site):
    for page in site.rglob("*.html"):
        text = page.read_text()
        fetched = re.findall(
            r'<(?:script|img|iframe|source)\b[^>]*\bsrc="?((?:https?:)?//[^">\s]+)', text
        )
        fetched += re.findall(r'<link\b[^>]*\bhref="?((?:https?:)?//[^">\s]+)', text)
        assert fetched == [], page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//|@import", sheet.read_text()), sheet.name


def test_equations_are_drawn_and_files_outside_are_shown(site):
    films = (site / "explanation" / "films.html").read_text()
    assert 'class="equation"><svg role="img" aria-label="\\dfrac' in films
    example = (site / "source" / "examples" / "01_first_loop.py.html").read_text()
    assert "DiscreteIntegrator" in example
    assert "First loop: the speed of a motor" in (site / "gallery.html").read_text()
    assert 'href="source/examples/01_first_loop.py.html"' in (site / "first_hour.html").read_text()
    assert 'href="control.html#pid"' in (site / "reference" / "blocks.html").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[nowhere](nowhere.md)", "nowhere.md"),
        ("[no such part](page.md#part)", "#part"),
        ("[no such file](../examples/99_nothing.py)", "99_nothing.py"),
    ],
)
def test_a_dead_link_is_an_error(text, said, tmp_path):
    """The configuration of the site, over one page: what the tests above rely on."""
    docs = tmp_path / "docs"
    (docs / "site").mkdir(parents=True)
    kept = (ROOT / "docs" / "site" / "mkdocs.yml").read_text().partition("\nnav:")[0]
    (docs / "site" / "mkdocs.yml").write_text(kept + "\nnav: [README.md, page.md]\n")
    for hook in (ROOT / "docs" / "site").glob("*.py"):
        (docs / "site" / hook.name).write_text(hook.read_text())
    (tmp_path / "examples").mkdir()
    (docs / "README.md").write_text("# home\n")
    (docs / "page.md").write_text(f"# page\n\n{text}\n")
    done = build(docs / "site" / "mkdocs.yml", tmp_path / "built")
    assert done.returncode != 0
    assert said in done.stdout + done.stderr
