"""Files outside docs/ that pages link to become pages of the site.

In the repository a link such as ``../examples/04_slider_crank.py`` opens the file. Here each such
file gets a page ``source/…`` that shows it, so that the site has all it speaks of and needs no
server. A link to the folder of examples leads to their gallery.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
LINK = re.compile(r"\]\((?P<target>(?:\.\./)+[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
LANGUAGES = {".py": "python", ".c": "c", ".h": "c", ".toml": "toml", ".md": "markdown"}
EXAMPLES = "gallery.md"


def outside(page: str, target: str) -> str | None:
    """Return the path from the root of what `target` on `page` leads to, or None inside docs/."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    return None if path.startswith("docs/") else path


def page_of(path: str) -> str:
    """Return the page of the site that shows a file of the repository."""
    return EXAMPLES if path == "examples" else f"source/{path}.md"


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each example, and for each file that is linked to."""
    wanted = {f"examples/{path.name}" for path in (ROOT / "examples").glob("*.py")}
    for page in files.documentation_pages():
        for match in LINK.finditer(page.content_string):
            path = outside(page.src_uri, match["target"])
            if path is not None and path != "examples":
                if not (ROOT / path).is_file():
                    raise PluginError(f"{page.src_uri} links to {match['target']}: no such file")
                wanted.add(path)
    for path in sorted(wanted):
        content = show(path)
        aside = InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, page_of(path), content=content, inclusion=aside))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links out of docs/ into links to these pages."""

    def turn(match: re.Match[str]) -> str:
        path = outside(page.file.src_uri, match["target"])
        if path is None:
            return match[0]
        here = posixpath.dirname(page.file.src_uri)
        return f"]({posixpath.relpath(page_of(path), here or '.')})"

    return LINK.sub(turn, markdown)


def show(path: str) -> str:
    """Return a page with the text of a file."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return f"# {path}\n\n````{LANGUAGES.get(Path(path).suffix, 'text')}\n{text}````\n"
