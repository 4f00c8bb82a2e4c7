"""HTML for notebooks: tables, folded parts, pictures on paper, lists of problems.

What is made here is self-contained, takes its text color from the notebook, and draws its lines in
half-transparent gray: it is readable on light and on dark pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

SHOWN = 50
"""Rows of a table, unless more are asked for."""

_LONGEST = 120  # characters of a cell
_STYLE = """
.biella-out{font:13px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;max-width:100%}
.biella-out p{margin:.35em 0}
.biella-out .head b{font-size:1.08em}
.biella-out .soft{opacity:.7}
.biella-out .wide{overflow-x:auto;max-width:100%}
.biella-out .wide table{border-collapse:collapse;border:0;margin:.35em 0;font-size:12px;
 font-variant-numeric:tabular-nums;white-space:nowrap}
.biella-out .wide table th,.biella-out .wide table td{text-align:left;vertical-align:middle;
 padding:3px 16px 3px 4px;border:0;border-bottom:1px solid rgba(128,128,128,.28)}
.biella-out .wide table th{font-weight:600;opacity:.75}
.biella-out .wide table .number{text-align:right}
.biella-out .wide table td.failed{color:#d6404a}
.biella-out .paper{display:inline-block;max-width:100%;max-height:640px;overflow:auto;
 background:#fff;border:1px solid rgba(128,128,128,.28);border-radius:6px;line-height:0}
.biella-out .paper svg,.biella-out .paper img{max-width:100%;min-width:var(--least,0);height:auto}
.biella-out .problems{border-left:3px solid #d6404a;padding:.2em .9em;margin:.5em 0}
.biella-out .problems ul{margin:.2em 0;padding-left:1.2em}
.biella-out code{font-size:.95em;background:rgba(128,128,128,.16);color:inherit;padding:0 .25em;
 border-radius:3px}
.biella-out details{margin:.35em 0}
.biella-out summary{cursor:pointer}
.biella-out .swatch{display:inline-block;width:.75em;height:.75em;border-radius:2px;
 margin:0 .35em 0 0;vertical-align:-.05em}
.biella-out .dot{margin-right:1.2em;white-space:nowrap}
"""


class Markup(str):
    """Text that is HTML already; all other text is escaped."""

    __slots__ = ()


def write(text: object) -> str:
    """Return text as HTML."""
    return text if isinstance(text, Markup) else escape(str(text))


def card(title: str, about: str, *parts: str) -> str:
    """Return a whole output: a bold title, what is said after it, and parts below."""
    head = f'<p class="head"><b>{write(title)}</b> {write(about)}</p>'
    body = "".join(part for part in parts if part)
    return f'<div class="biella-out"><style>{_STYLE}</style>{head}{body}</div>'


def paragraph(text: str, kind: str = "soft") -> str:
    """Return a paragraph; nothing for an empty text."""
    return f'<p class="{kind}">{write(text)}</p>' if text else ""


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    total: int | None = None,
    numbers: Sequence[int] = (),
    shown: int = SHOWN,
) -> str:
    """Return a table; nothing without rows.

    Parameters
    ----------
    total
        Number of all rows, if `rows` has only the first; a line below has the number of the rest.
    numbers
        Columns that are aligned to the right.
    shown
        Most rows.
    """
    listed = list(rows)
    if not listed:
        return ""
    total = len(listed) if total is None else total
    listed = listed[:shown]

    def line(cells: Sequence[object], tag: str) -> str:
        made = []
        for column, cell in enumerate(cells):
            kind = ' class="number"' if column in numbers else ""
            made.append(f"<{tag}{kind}>{_fit(cell)}</{tag}>")
        return f"<tr>{''.join(made)}</tr>"

    body = "".join(line(row, "td") for row in listed)
    more = paragraph(f"… and {total - len(listed)} more") if total > len(listed) else ""
    heading = f"<thead>{line(head, 'th')}</thead>"
    return f'<div class="wide"><table>{heading}<tbody>{body}</tbody></table></div>{more}'


def _fit(cell: object) -> str:
    if isinstance(cell, Markup):
        return cell
    text = str(cell)
    if len(text) <= _LONGEST:
        return escape(text)
    return f'<span title="{escape(text[:2000])}">{escape(text[: _LONGEST - 1])}…</span>'


def fold(title: str, body: str, *, is_open: bool = False) -> str:
    """Return a part that opens by a click; nothing if it is empty."""
    if not body:
        return ""
    return f"<details{' open' if is_open else ''}><summary>{write(title)}</summary>{body}</details>"


def on_paper(picture: str, least: float = 0.0) -> str:
    """Return a picture that was made for white paper, on white also in a dark notebook.

    It shrinks to the width of the notebook, down to `least` points; beyond that it is scrolled.
    """
    size = f' style="--least:{least:.0f}pt"' if least else ""
    return f'<div><div class="paper"{size}>{picture}</div></div>'


def list_problems(problems: Sequence[str], shown: int = 20) -> str:
    """Return problems as a list; nothing without any."""
    if not problems:
        return ""
    count = f"{len(problems)} problem{'s' * (len(problems) != 1)}"
    items = "".join(f"<li>{mark_names(text)}</li>" for text in problems[:shown])
    more = len(problems) - shown
    items += f"<li>… and {more} more</li>" if more > 0 else ""
    return f'<div class="problems"><p><b>{count}</b></p><ul>{items}</ul></div>'


def mark_names(text: str) -> Markup:
    """Return a text as HTML, with names in backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text)))


def swatch(color: str, text: str) -> Markup:
    """Return a text with a sample of its color before it."""
    return Markup(
        f'<span class="dot"><span class="swatch" style="background:{escape(color)}"></span>'
        f"{escape(text)}</span>"
    )


def count_of(number: int, what: str, plural: str | None = None) -> str:
    """Return ``1 block``, ``2 blocks``."""
    return f"{number} {what if number == 1 else plural or what + 's'}"
