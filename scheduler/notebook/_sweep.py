"""A sweep in a notebook: its cases and values, and a plot of numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...blocks.core.notebook._html import SHOWN, card, count_of, swatch, table
from ...blocks.core.notebook._sketch import COLORS, curves
from ..results._result import Result

if TYPE_CHECKING:
    from ..run._sweep import Sweep

_POINTS = 2000


def describe_sweep(sweep: Sweep[Any]) -> str:
    """Return a sweep in one line."""
    return f"Sweep({', '.join(_list_facts(sweep))})"


def show_sweep(sweep: Sweep[Any]) -> str:
    """Return a sweep as HTML."""
    paths = _list_paths(sweep)
    rows = []
    for number, (case, value) in enumerate(sweep):
        if number == SHOWN:
            break
        told = describe_value(value)
        if number in sweep.failures:
            told = f"failed: {sweep.failures[number]}"
        rows.append((*(describe_value(case.get(path, "")) for path in paths), told))
    first = next((value for value in sweep.values if value is not None), None)
    what = "result" if isinstance(first, Result) else "value"
    listed = table((*paths, what), rows, total=len(sweep), numbers=range(len(paths)))
    return card("Sweep", "· " + " · ".join(_list_facts(sweep)), _draw(sweep, paths), listed)


def _list_facts(sweep: Sweep[Any]) -> list[str]:
    paths = _list_paths(sweep)
    grid = " × ".join(map(str, sweep.shape))
    facts = [count_of(len(sweep), "run")]
    facts += [f"grid {grid}"] if len(sweep.shape) > 1 else []
    facts += [f"of {', '.join(paths[:4])}{', …' if len(paths) > 4 else ''}"] if paths else []
    return facts + ([f"{len(sweep.failures)} failed"] if sweep.failures else [])


def _list_paths(sweep: Sweep[Any]) -> list[str]:
    return list(dict.fromkeys(path for case in sweep.cases for path in case))


def describe_value(value: Any) -> str:
    """Return a value of a case, or what was measured, in a few words."""
    if isinstance(value, Result):
        return f"{count_of(len(value), 'signal')}, {value.length} times"
    if value is None:
        return "–"
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return str(value)
    if array.ndim == 0:
        return f"{float(array):.6g}"
    shown = ", ".join(f"{item:.4g}" for item in array.ravel()[:4])
    return f"[{shown}{', …' if array.size > 4 else ''}]"


def _draw(sweep: Sweep[Any], paths: list[str]) -> str:
    """Return the measured numbers over the last parameter that varies; nothing for others."""
    if len(sweep.shape) > 2 or not paths or not 1 < len(sweep) <= _POINTS:
        return ""
    try:
        values = np.array([math.nan if value is None else _number(value) for value in sweep.values])
        over = np.array([_number(case[paths[-1]]) for case in sweep.cases])
    except (TypeError, ValueError, KeyError):
        return ""
    if len(sweep.shape) == 1 and len(paths) > 1:  # a list of cases varies several at once
        return ""
    if len(sweep.shape) == 1:
        order = np.argsort(over, kind="stable")
        return curves(over[order], [("", values[order])], paths[-1], "value")
    outer, inner = sweep.shape
    names = [describe_value(sweep.cases[n * inner][paths[0]]) for n in range(outer)]
    chosen = np.unique(np.linspace(0, outer - 1, min(outer, len(COLORS))).round().astype(int))
    table_of = values.reshape(outer, inner)
    lines = [(f"{paths[0]} = {names[n]}", table_of[n]) for n in chosen]
    named = (swatch(COLORS[n], name) for n, (name, _) in enumerate(lines))
    return f"{curves(over[:inner], lines, paths[-1], 'value')}<p>{''.join(named)}</p>"


def _number(value: Any) -> float:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim:
        raise ValueError("not a single number")
    return float(array)
