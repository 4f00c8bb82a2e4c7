"""Fences marked ``math`` become pictures of their TeX, drawn once when the site is built.

Matplotlib's own TeX subset sets them, as outlines in the color of the text: no script, no font and
no network are needed to read them, and places that show Markdown set the same fence themselves.
"""

from __future__ import annotations

from html import escape
from typing import Any

from matplotlib import rc_context
from matplotlib.textpath import TextPath

SIZE = 17.0  # px
SEGMENTS = {1: "M", 2: "L", 3: "Q", 4: "C", 79: "Z"}


def on_config(config: Any) -> Any:
    """Register the fence."""
    fences = config["mdx_configs"].setdefault("pymdownx.superfences", {})
    fences["custom_fences"] = [{"name": "math", "class": "math", "format": draw}]
    return config


def draw(source: str, *_: Any, **__: Any) -> str:
    """Return SVG, a line for each line of TeX."""
    return "".join(f'<p class="equation">{outline(line)}</p>' for line in source.splitlines())


def outline(tex: str) -> str:
    """Return one line of TeX as SVG."""
    with rc_context({"mathtext.fontset": "stix"}):
        path = TextPath((0, 0), f"${tex}$", size=SIZE)
    box = path.get_extents()
    pieces = []
    for points, code in path.iter_segments(curves=True, simplify=False):
        numbers = " ".join(f"{value:.2f}" for value in points) if code != 79 else ""
        pieces.append(SEGMENTS[int(code)] + numbers)
    margin = 2.0
    width, height = box.width + 2 * margin, box.height + 2 * margin
    view = f"{box.x0 - margin:.1f} {-box.y1 - margin:.1f} {width:.1f} {height:.1f}"
    return (
        f'<svg role="img" aria-label="{escape(tex)}" viewBox="{view}" '
        f'width="{width:.1f}" height="{height:.1f}">'
        f'<path transform="scale(1 -1)" fill="currentColor" d="{"".join(pieces)}"/></svg>'
    )
