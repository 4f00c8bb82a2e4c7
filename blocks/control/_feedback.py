"""Feedback of a measured or estimated state."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DiagramError
from ..core._block import NativeBlock
from ..core._ports import INHERITED, SAMPLED, Matrix, Numbers, Parameter, Port, number, parameter


class StateFeedback(NativeBlock):
    """State feedback, with integral action if there is `Ki`: y = -K x + N r - Ki ξ::

        ξ[n+1] = ξ[n] + T (r - measurement)

    Gains come from `lqr` or `dlqr`; with integral action from those of the plant that
    `add_integral` makes: ``K, Ki = gains[:, :n], gains[:, n:]``. Where a limit cuts y off,
    T / tracking_time of the excess is subtracted from ξ to prevent windup.

    Parameters
    ----------
    K
        A row for each output, a column for each state; a vector is one row.
    Ki
        A column for each integral; adds the inputs ``reference`` and ``measurement``. Fixed in a
        run.
    N
        A column for each reference; adds the input ``reference``.
    limits
        ``(lower, upper)`` of y, each a number, or a vector with one for each output.
    tracking_time
        In seconds; one below T counts as T, that is: y leaves a limit as soon as it can.
    unit
        Unit of y.
    """

    kernel = "state_feedback"
    smooth_memory = True

    def __init__(
        self,
        K: Matrix,
        Ki: Matrix | None = None,
        *,
        N: Matrix | None = None,
        limits: tuple[Numbers, Numbers] | None = None,
        tracking_time: float = 0.0,
        unit: str | None = None,
    ) -> None:
        gain = _rows("K", K, None)
        outputs = len(gain)
        integral = None if Ki is None else _rows("Ki", Ki, outputs)
        forward = None if N is None else _rows("N", N, outputs)
        parameters = [parameter("K", gain, doc="gain of the state")]
        inputs = [Port("state", gain.shape[1], doc="x, or its estimate")]
        given = [m for m in (integral, forward) if m is not None]
        if given:
            references = given[0].shape[1]
            if given[-1].shape[1] != references:
                raise DiagramError(
                    f"Ki and N need a column for each reference; they have {references} and "
                    f"{given[-1].shape[1]}."
                )
            inputs.append(Port("reference", references, doc="r"))
            zero = np.zeros((outputs, references))
            straight = zero if forward is None else forward
            parameters.append(
                parameter("N", straight, doc="gain of the reference", hidden=forward is None)
            )
        if integral is not None:
            inputs.append(Port("measurement", integral.shape[1], doc="signal that tracks r"))
            parameters += [
                parameter("Ki", integral, doc="gain of the integral", tunable=False),
                parameter("inverse", np.linalg.pinv(integral), tunable=False, hidden=True),
            ]
        tracking_time = number("tracking_time", tracking_time)
        if not tracking_time >= 0:
            raise DiagramError(
                f"`tracking_time` is a time in seconds, 0 or positive, got {tracking_time!r}."
            )
        time = parameter("tracking_time", tracking_time, unit="s", doc="of the anti-windup")
        # Without N there is no feedthrough from the reference, and N cannot be set later.
        names = ["state"] + ["reference"] * (forward is not None)
        super().__init__(
            inputs=inputs,
            outputs=[Port("y", outputs, unit=unit, doc="to the plant")],
            parameters=[*parameters, *_limits(limits, outputs, unit), time],
            rate=INHERITED if integral is None else SAMPLED,
            feedthrough=[("y", name) for name in names],
        )


def _rows(name: str, value: Any, rows: int | None) -> Any:
    made = parameter(name, value).value
    if made.ndim < 2:  # one row, unless several are needed: then one column
        made = made.reshape(-1, 1) if rows not in (None, 1) else made.reshape(1, -1)
    if made.ndim != 2 or rows not in (None, len(made)):
        raise DiagramError(
            f"`{name}` is a matrix with {rows or 'a row for each output'}"
            f"{' rows, as many as K has' if rows else ''}; got shape {made.shape}."
        )
    return made


def _limits(limits: Any, outputs: int, unit: str | None) -> list[Parameter]:
    try:
        lower, upper = (-np.inf, np.inf) if limits is None else limits
    except (TypeError, ValueError):
        raise DiagramError(f"`limits` are (lower, upper), got {limits!r}.") from None
    made = []
    for name, value in (("lower", lower), ("upper", upper)):
        given = parameter(name, value, finite=False).value
        if given.ndim > 1 or given.size not in (1, outputs) or np.isnan(given).any():
            raise DiagramError(
                f"`limits` are two numbers, or vectors of {outputs} numbers, got {limits!r}."
            )
        made.append(np.broadcast_to(given, outputs))
    if (made[0] > made[1]).any():
        raise DiagramError(f"`limits` are (lower, upper) with lower <= upper, got {limits!r}.")
    return [
        parameter("lower", made[0], unit=unit, finite=False, doc="smallest y"),
        parameter("upper", made[1], unit=unit, finite=False, doc="largest y"),
    ]
