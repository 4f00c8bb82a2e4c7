"""A result in a notebook: its signals with ranges and small curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...blocks.core.notebook._html import Markup, card, paragraph, table
from ...blocks.core.notebook._sketch import sparkline
from ...errors import BiellaError
from ..results._signals import Signal

if TYPE_CHECKING:
    from ..results._result import Result

Array = NDArray[np.float64]

SHOWN = 20
"""Signals of the table."""
READ = 400_000
"""Rows up to which all samples are read; of longer recordings, parts of `_PART` rows."""

_BINS = 120
_PART = 1000
_ELEMENTS = 64  # of a vector: only narrower ones have a curve
_HEAD = ("signal", "unit", "kind", "least", "most", "last", "")


def show_result(result: Result, headline: str, closing: str) -> str:
    """Return a result as HTML, with the lines that its text has around the table."""
    rows = [_row(result, signal) for signal in list(result.signals.values())[:SHOWN]]
    title, _, about = headline.partition(": ")
    parts = f" Curves and ranges are of {_BINS} parts of {_PART} rows."
    note = parts if result.length > READ else ""
    return card(
        title,
        f"· {about}" if about else "",
        table(_HEAD, rows, numbers=(3, 4, 5), total=len(rows)),
        paragraph(closing.strip() + note),
    )


def _row(result: Result, signal: Signal) -> tuple[object, ...]:
    kind = signal.kind if signal.width == 1 else f"{signal.kind} × {signal.width}"
    first = (signal.path, signal.unit or "", kind)
    if not result.length or signal.width > _ELEMENTS:
        return *first, "", "", "", ""
    try:
        low, high = _find_bins(result, signal)
        last = result.read(signal.path, slice(result.length - 1, result.length)).ravel()
    except BiellaError:  # the file is damaged, or no longer there
        return *first, "", "", "", "cannot be read"
    finite = np.isfinite(low) & np.isfinite(high)
    shown = (
        signal.format_value(low[finite].min()) if finite.any() else "",
        signal.format_value(high[finite].max()) if finite.any() else "",
        signal.format_value(float(last[0])) if last.size == 1 else "",
    )
    curve = sparkline(low, high) if finite.any() else Markup("")
    return *first, *shown, curve


def _find_bins(result: Result, signal: Signal) -> tuple[Array, Array]:
    """Return the smallest and the largest value in each bin of rows, over all elements."""
    count = result.length
    if count <= READ:
        values = result.read(signal.path).reshape(count, -1)
        starts = np.unique(np.linspace(0, count, min(count, _BINS), endpoint=False).astype(int))
        low = np.fmin.reduceat(values.min(axis=1, initial=np.inf), starts)
        return low, np.fmax.reduceat(values.max(axis=1, initial=-np.inf), starts)
    begins = np.linspace(0, count - _PART, _BINS).astype(int)
    parts = [result.read(signal.path, slice(b, b + _PART)) for b in begins.tolist()]
    ranges = [(np.fmin.reduce(part, axis=None), np.fmax.reduce(part, axis=None)) for part in parts]
    low, high = np.array(ranges).T
    return low, high
