"""Write ``docs/gallery.md``: each example with the picture that it makes.

    python docs/gallery.py

Pictures are those of `docs/pictures` whose names an example has in its code. After a change of an
example, run it and copy its picture there.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent
GALLERY = DOCS / "gallery.md"
INTRO = """\
# Gallery of examples

Each example is a file of at most 90 lines. `biella studio examples/04_slider_crank.py` opens its \
`diagram()` in the browser, `python examples/04_slider_crank.py` writes its picture. \
`python docs/gallery.py` writes this page.

[![The studio: diagram, scopes and mechanism in the browser](pictures/studio.png)](guides/studio.md)
"""


def find_picture(example: Path) -> str:
    """Return the last picture of `docs/pictures` that an example writes."""
    names = re.findall(r"(\w+\.png)\b", example.read_text(encoding="utf-8"))
    there = [name for name in names if (DOCS / "pictures" / name).is_file()]
    if not there:
        raise SystemExit(f"no picture of {example.name} is in docs/pictures; it writes {names}")
    return there[-1]


def describe(example: Path) -> str:
    """Return the first paragraph of the docstring of an example."""
    about = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8"))) or ""
    return " ".join(about.partition("\n\n")[0].split())


def write_gallery() -> str:
    """Return the page."""
    entries = [INTRO]
    for example in sorted((DOCS.parent / "examples").glob("*.py")):
        target = f"../examples/{example.name}"
        entries.append(
            f"- [![{example.stem}](pictures/{find_picture(example)})]({target})\n"
            f"  [{example.stem}]({target})<br>\n  {describe(example)}\n"
        )
    return "\n".join(entries)


if __name__ == "__main__":
    GALLERY.write_text(write_gallery(), encoding="utf-8")
