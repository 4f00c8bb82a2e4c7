"""Names of blocks in the list of blocks lead to their details."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).resolve().parents[1] / "reference"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Link the first cell of each row of docs/reference/blocks.md."""
    if page.file.src_uri != "reference/blocks.md":
        return markdown
    place = {
        name: f"{path.name}#{name.lower()}"
        for path in REFERENCE.glob("*.md")
        for name in re.findall(r"^## (\w+)$", path.read_text(encoding="utf-8"), re.M)
    }

    def link(match: re.Match[str]) -> str:
        where = place.get(match[1])
        return f"| [`{match[1]}`]({where}) |" if where else match[0]

    return re.sub(r"^\| `(\w+)` \|", link, markdown, flags=re.M)
