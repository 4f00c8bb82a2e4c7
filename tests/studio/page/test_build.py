"""The build of the page: when it is done again, and what is left when it fails."""

import gzip
import importlib.util
import os
import re
from pathlib import Path

import pytest

import biella.studio

LOCATION = Path(biella.studio.__file__).parent / "page" / "build.py"


@pytest.fixture(scope="module")
def page():
    if not LOCATION.exists():
        pytest.skip("the sources of the page are not in wheels")
    spec = importlib.util.spec_from_file_location("biella_page_build", LOCATION)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def sources(tmp_path):
    folder = tmp_path / "page"
    (folder / "src").mkdir(parents=True)
    (folder / "index.html").write_text("<p>studio\n")
    (folder / "src" / "main.ts").write_text("export {};\n")
    return folder


def write_built(page, sources, output):
    output.mkdir()
    (output / "index.html").write_text("old")
    (output / ".stamp").write_text(page.compute_stamp(sources))


def stand_in(tools, monkeypatch, npm, node="echo v22.1.0"):
    """Put commands on the path that do as npm and node might."""
    tools.mkdir()
    for name, text in (("node", node), ("npm", npm)):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")


def test_a_page_is_built_again_only_when_its_sources_change(page, sources, tmp_path):
    output = tmp_path / "static"
    assert not page.is_built(output, sources)
    write_built(page, sources, output)
    assert page.is_built(output, sources)
    assert page.build(output, sources) == output  # at once, without npm
    (sources / "src" / "main.ts").write_text("export const a = 1;\n")
    assert not page.is_built(output, sources)


def test_a_moved_or_renamed_source_is_a_change_and_line_ends_are_none(page, sources):
    before = page.compute_stamp(sources)
    (sources / "src" / "main.ts").write_bytes(b"export {};\r\n")
    assert page.compute_stamp(sources) == before
    (sources / "node_modules").mkdir()
    (sources / "node_modules" / "x.js").write_text("x")
    assert page.compute_stamp(sources) == before
    (sources / "src" / "main.ts").rename(sources / "main.ts")
    assert page.compute_stamp(sources) != before


def test_without_npm_the_page_that_is_there_stays(page, sources, tmp_path, monkeypatch):
    output = tmp_path / "static"
    write_built(page, sources, output)
    (sources / "index.html").write_text("new")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(page.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(page.PageError, match="no npm, and no node of version"):
        page.build(output, sources)
    assert (output / "index.html").read_text() == "old"


@pytest.mark.skipif(os.name == "nt", reason="the stand-in of npm is a shell script")
def test_when_the_registry_fails_its_words_are_said(page, sources, tmp_path, monkeypatch):
    tools = tmp_path / "tools"
    stand_in(tools, monkeypatch, "echo no such host >&2; exit 7")
    with pytest.raises(page.PageError, match=r"npm ci .* failed:\nno such host"):
        page.build(tmp_path / "static", sources)
    assert not (tmp_path / "static").exists()
    (tools / "node").write_text("#!/bin/sh\necho v18.20.0\n")
    assert not page.has_npm()


@pytest.mark.skipif(os.name == "nt", reason="the stand-in of node is a shell script")
def test_a_folder_that_cannot_be_written_is_an_error_of_the_page(
    page, sources, tmp_path, monkeypatch
):
    """So that the wheel is built without the page."""
    built = 'mkdir -p "$BIELLA_PAGE_OUT"; echo page > "$BIELLA_PAGE_OUT/index.html"'
    stand_in(tmp_path / "tools", monkeypatch, "exit 0", f"echo v22.1.0\n{built}")
    blocked = tmp_path / "a file"
    blocked.write_text("")
    with pytest.raises(page.PageError, match="cannot be written to"):
        page.build(blocked / "static", sources)


def test_the_lock_file_names_no_hosts(page):
    text = (LOCATION.parent / "package-lock.json").read_text()
    assert '"lockfileVersion": 3' in text
    assert '"resolved"' not in text and "://registry" not in text


@pytest.mark.slow
def test_types_and_unit_tests_of_the_page(page):
    if not page.has_npm():
        pytest.skip("needs npm")
    printed = page.check()
    passed = re.search(r"pass (\d+)", printed)
    assert passed and int(passed[1]) > 40 and "fail 0" in printed


@pytest.mark.slow
def test_the_page_is_small(page, tmp_path):
    """400 KB compressed, promised; 3-D graphics are loaded only where there is a mechanism."""
    if not page.has_npm():
        pytest.skip("needs npm")
    built = page.build(tmp_path / "static")
    sizes = {
        path.name: len(gzip.compress(path.read_bytes()))
        for path in built.rglob("*")
        if path.suffix in (".html", ".js", ".css")
    }
    assert sum(sizes.values()) < 400_000 and {"index.js", "scene.js"} <= set(sizes)
    script = (built / "assets" / "index.js").read_text()
    assert "/home/" not in script and "node_modules" not in script
