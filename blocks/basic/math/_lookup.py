"""Tables: a function given by points."""

from __future__ import annotations

from typing import Any

from .... import _contract as contract
from ....errors import DiagramError
from ...core._block import NativeBlock
from ...core._ports import (
    INHERITED,
    SAMPLED,
    SWITCHING,
    Matrix,
    Numbers,
    Parameter,
    Port,
    parameter,
)
from ...core._vectors import require_choice, require_rising

_INTERPOLATIONS = {
    "linear": contract.LOOKUP_LINEAR,
    "nearest": contract.LOOKUP_NEAREST,
    "previous": contract.LOOKUP_PREVIOUS,
}
EXTRAPOLATIONS = {
    "hold": contract.LOOKUP_HOLD,
    "linear": contract.LOOKUP_EXTEND,
    "error": contract.LOOKUP_FAIL,
}


class Lookup1D(NativeBlock):
    """A function of one input, given by points: y = f(u).

    - linear: a straight line between points
    - nearest: the value of the nearest breakpoint; of the upper one half-way
    - previous: the value of the last breakpoint that is not above u

    The points may be changed after compilation, as parameters ``x_points`` and ``y_points``. Where
    changed breakpoints no longer rise, the lower of two values is taken.

    Parameters
    ----------
    x
        Breakpoints, strictly increasing, at least two.
    y
        One value for each: every element of u is looked up. Or one row for each: u is a number and
        the output a row.
    interpolation
        ``"linear"``, ``"nearest"`` or ``"previous"``; the last two jump, so they run at ticks only,
        unless `events` is true.
    extrapolation
        Beyond the ends: ``"hold"`` the end value, go on ``"linear"``, or stop the run with an
        ``"error"``.
    events
        Whether the instants at which u passes a breakpoint are located within a tick,
        where continuous states depend on y: no step is then integrated across a corner or a jump of
        the table.
    unit
        Unit of the output; the input takes any.
    """

    kernel = "lookup_1d"

    def __init__(
        self,
        x: Numbers,
        y: Numbers,
        *,
        interpolation: str = "linear",
        extrapolation: str = "hold",
        events: bool = False,
        unit: str | None = None,
    ) -> None:
        points = _breakpoints("x_points", "x", x)
        values = parameter("y_points", y, unit=unit, doc="values at the breakpoints")
        n = points.value.size
        if values.value.ndim not in (1, 2) or len(values.value) != n:
            raise DiagramError(
                f"`y` of a Lookup1D has shape {values.value.shape}; with {n} breakpoints it "
                f"must be ({n},) or ({n}, outputs)."
            )
        mode = require_choice("interpolation", interpolation, _INTERPOLATIONS)
        beyond = require_choice("extrapolation", extrapolation, EXTRAPOLATIONS)
        jumps = mode != contract.LOOKUP_LINEAR
        if jumps and extrapolation == "linear":
            raise DiagramError(
                f"`extrapolation='linear'` needs linear interpolation, not {interpolation!r}."
            )
        columns = values.value.size // n
        super().__init__(
            inputs=[Port("u", width="n" if columns == 1 else 1)],
            outputs=[Port("y", width="n" if columns == 1 else columns, unit=unit)],
            parameters=[points, values],
            integers=[n, columns, mode, beyond, int(events)],
            rate=INHERITED if not jumps else SWITCHING if events else SAMPLED,
        )
        self.note = f"its input left the table, {_span(points)}"


class Lookup2D(NativeBlock):
    """A function of two inputs, given on a grid: y = f(u1, u2), bilinear between points.

    The points may be changed after compilation, as parameters ``x_points``, ``y_points`` and
    ``table``. Inputs of width n are looked up element by element.

    Parameters
    ----------
    x, y
        Breakpoints of u1 and of u2, strictly increasing, at least two each.
    table
        ``table[i, j]`` is the value at ``x[i]``, ``y[j]``.
    extrapolation
        Beyond the ends: ``"hold"`` the end value, go on ``"linear"``, or stop the run with an
        ``"error"``.
    events
        Whether the instants at which u1 or u2 passes a breakpoint are located within a tick,
        where continuous states depend on y: no step is then integrated across a corner or a jump of
        the table.
    unit
        Unit of the output; the inputs take any.
    """

    kernel = "lookup_2d"

    def __init__(
        self,
        x: Numbers,
        y: Numbers,
        table: Matrix,
        *,
        extrapolation: str = "hold",
        events: bool = False,
        unit: str | None = None,
    ) -> None:
        rows, columns = _breakpoints("x_points", "x", x), _breakpoints("y_points", "y", y)
        values = parameter("table", table, unit=unit, doc="values on the grid")
        shape = (rows.value.size, columns.value.size)
        if values.value.shape != shape:
            raise DiagramError(
                f"`table` of a Lookup2D has shape {values.value.shape}; with {shape[0]} values "
                f"of x and {shape[1]} of y it must be {shape}."
            )
        super().__init__(
            inputs=[Port("u1", width="n"), Port("u2", width="n")],
            outputs=[Port("y", width="n", unit=unit)],
            parameters=[rows, columns, values],
            integers=[
                *shape,
                require_choice("extrapolation", extrapolation, EXTRAPOLATIONS),
                int(events),
            ],
        )
        self.note = f"an input left the table, {_span(rows)} and {_span(columns)}"


def _breakpoints(name: str, argument: str, value: Any) -> Parameter:
    points = parameter(name, value, doc="breakpoints")
    require_rising(argument, points)
    return points


def _span(points: Parameter) -> str:
    return f"[{points.value[0]:g}, {points.value[-1]:g}]"
