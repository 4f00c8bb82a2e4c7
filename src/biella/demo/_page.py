"""The report of the demo: one HTML file that shows the figures and files of its folder."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --faint: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 66rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: 0.2rem } h2 { font-size: 1.2rem; margin-top: 2.2rem }
img { max-width: 100%; background: white; border: 1px solid var(--line); border-radius: 4px }
table { border-collapse: collapse } td, th { padding: 0.25rem 1rem 0.25rem 0; text-align: left }
td.number { text-align: right; font-variant-numeric: tabular-nums }
tr { border-bottom: 1px solid var(--line) } code { background: var(--faint); padding: 0 0.2em }
.note { opacity: 0.75 } pre { background: var(--faint); padding: 0.6em; overflow-x: auto }
"""


@dataclass(frozen=True)
class Picture:
    """A picture of the page, with what it shows."""

    file: str
    title: str
    text: str


Row = tuple[str, str, str]
"""Quantity, value and meaning."""


def write_page(
    path: Path,
    title: str,
    intro: str,
    rows: Sequence[Row],
    pictures: Sequence[Picture],
    files: Sequence[tuple[str, str]],
    commands: Sequence[tuple[str, str]],
) -> None:
    """Write the page; `files` are names beside it, `commands` run in its folder."""
    escape = html.escape
    table = "\n".join(
        f'<tr><td>{escape(name)}</td><td class="number">{escape(value)}</td>'
        f'<td class="note">{escape(note)}</td></tr>'
        for name, value, note in rows
    )
    shown = "\n".join(
        f"<h2>{escape(p.title)}</h2>\n<p>{escape(p.text)}</p>\n"
        f'<a href="{escape(p.file)}"><img src="{escape(p.file)}" alt="{escape(p.title)}"></a>'
        for p in pictures
    )
    listed = "\n".join(
        f'<li><a href="{escape(name)}"><code>{escape(name)}</code></a>: {escape(text)}</li>'
        for name, text in files
    )
    typed = "\n".join(f"{escape(line)}  # {escape(text)}" for line, text in commands)
    path.write_text(
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        f"<p>{escape(intro)}</p>\n<table>\n{table}\n</table>\n{shown}\n"
        f"<h2>Files</h2>\n<ul>\n{listed}\n</ul>\n"
        f"<h2>Go on</h2>\n<p>In this folder:</p>\n<pre>{typed}</pre>\n</body>\n</html>\n",
        encoding="utf-8",
    )
