"""A linear model in a notebook: its matrices and its poles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...blocks.core.notebook._html import card, count_of, fold, table

if TYPE_CHECKING:
    from ..run._linear_model import LinearModel

_MOST = 24  # rows and columns of the matrices
_POLES = 200  # states up to which the poles are computed


def show_linear_model(model: LinearModel) -> str:
    """Return a linear model as HTML."""
    kind = "continuous" if model.dt is None else f"discrete, period {model.dt:g} s"
    sizes = ("states", "inputs", "outputs")
    counts = [count_of(len(getattr(model, what)), what[:-1]) for what in sizes]
    facts = [kind, *counts, f"at t = {model.operating_point.time:g} s"]
    return card(
        "Linear model",
        "· " + " · ".join(facts),
        _show_poles(model),
        fold("matrices", _show_matrices(model), is_open=len(model.states) <= 8),
        fold("operating point", _show_point(model)),
    )


def _show_matrices(model: LinearModel) -> str:
    """Return ``A B / C D`` as one table."""
    columns = (*model.states, *model.inputs)
    if max(len(columns), len(model.states) + len(model.outputs)) > _MOST:
        return f"<p>Larger than {_MOST} × {_MOST}: see .A, .B, .C and .D.</p>"
    step = "d/dt " if model.dt is None else "next "
    rows = [(step + name, model.A[n], model.B[n]) for n, name in enumerate(model.states)]
    rows += [(name, model.C[n], model.D[n]) for n, name in enumerate(model.outputs)]
    cells = [(name, *(f"{v:.5g}" for v in (*left, *right))) for name, left, right in rows]
    return table(("", *columns), cells, numbers=range(1, len(columns) + 1))


def _show_poles(model: LinearModel) -> str:
    """Return the poles, slowest first, with frequency and damping of each."""
    if not 0 < len(model.states) <= _POLES:
        return ""
    poles = model.poles()
    if not np.isfinite(poles).all():
        return ""
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = poles if model.dt is None else np.log(poles) / model.dt
    rows = []
    order = np.argsort(np.abs(rates), kind="stable")
    for pole, rate in zip(poles[order], rates[order], strict=True):
        if pole.imag < 0:  # its partner is listed
            continue
        size = abs(rate)
        damping = -rate.real / size if 0 < size < math.inf else math.nan
        pair = f" ± {pole.imag:.5g}j" if pole.imag else ""
        stable = pole.real < 0 if model.dt is None else abs(pole) < 1
        told = "stable" if stable else "integrating" if _is_at_limit(model, pole) else "unstable"
        frequency = f"{size / (2 * math.pi):.4g}" if 0 < size < math.inf else ""
        shown = "" if math.isnan(damping) else f"{damping:.3g}"
        rows.append((f"{pole.real:.5g}{pair}", frequency, shown, told))
    title = "poles in rad/s" if model.dt is None else "poles in z"
    body = table((title, "Hz", "damping", ""), rows, numbers=(0, 1, 2))
    return fold(count_of(len(poles), "pole"), body, is_open=len(rows) <= 12)


def _is_at_limit(model: LinearModel, pole: complex) -> bool:
    return abs(pole) < 1e-9 if model.dt is None else abs(pole - 1) < 1e-9


def _show_point(model: LinearModel) -> str:
    point = model.operating_point
    rows = [
        (kind, name, f"{value:.6g}")
        for kind, values in (
            ("state", point.states), ("input", point.inputs), ("output", point.outputs)
        )
        for name, value in values.items()
    ]  # fmt: skip
    return table(("", "name", "value"), rows, numbers=(2,))
