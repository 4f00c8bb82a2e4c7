"""Blocks with a sample time."""

from __future__ import annotations

from typing import Literal

from .... import _contract as contract
from ....errors import DiagramError, name_list
from ...core._block import NativeBlock
from ...core._ports import SAMPLED, Derived, Numbers, Parameter, Port, Same, Width, parameter
from ...core._state import make_initial, make_limits
from ...core._units import Unit, parse_unit
from ...core._vectors import make_record
from ._delay import check_samples

_METHODS = {
    "forward": contract.DISCRETE_INTEGRATOR_FORWARD,
    "backward": contract.DISCRETE_INTEGRATOR_BACKWARD,
    "trapezoidal": contract.DISCRETE_INTEGRATOR_TRAPEZOIDAL,
}


def _times_seconds(unit: Unit) -> Unit:
    return unit * parse_unit("s")


class UnitDelay(NativeBlock):
    """A delay of one sample: y[n] = u[n-1], y[0] = initial.

    Parameters
    ----------
    initial
        Output before the first sample.
    """

    kernel = "unit_delay"
    smooth_memory = True

    def __init__(self, initial: Numbers = 0.0) -> None:
        start, width = make_initial(initial, "output before the first sample")
        super().__init__(
            inputs=[Port("u", width=width, unit=Same(), kind=Same())],
            outputs=[Port("y", width=width, unit=Same(), kind=Same())],
            parameters=[start],
            rate=SAMPLED,
            feedthrough=False,
        )


class ZeroOrderHold(NativeBlock):
    """A sampler: y = u at each sample hit, held in between.

    Before its first hit, that is with an offset, it holds the value of u at the first tick.
    """

    kernel = "zero_order_hold"

    def __init__(self) -> None:
        super().__init__(
            inputs=[Port("u", width="n", unit=Same(), kind=Same())],
            outputs=[Port("y", width="n", unit=Same(), kind=Same())],
            rate=SAMPLED,
        )


class DiscreteIntegrator(NativeBlock):
    """An integrator with a sample time T. With x[0] = initial::

        forward       y = x                      x+ = x + gain T u
        backward      y = x + gain T u           x+ = y
        trapezoidal   y = x + gain T u / 2       x+ = y + gain T u / 2

    With limits, y and x are clipped to them, which prevents windup.

    Parameters
    ----------
    method
        ``"forward"`` (no feedthrough), ``"backward"`` or ``"trapezoidal"``.
    initial
        The state at the start: a number, or a vector, which fixes the width.
    gain
        Factor of u.
    limits
        ``(lower, upper)``, each a number or a vector; one that is infinite does not limit.
    """

    kernel = "discrete_integrator"
    smooth_memory = True

    def __init__(
        self,
        method: Literal["forward", "backward", "trapezoidal"] = "forward",
        initial: Numbers = 0.0,
        *,
        gain: float = 1.0,
        limits: tuple[Numbers, Numbers] | None = None,
    ) -> None:
        if method not in _METHODS:
            raise DiagramError(f"method is one of {name_list(_METHODS)}, not {method!r}.")
        factor = parameter("gain", gain, doc="factor of u")
        if factor.value.ndim:
            raise DiagramError(f"gain is one number, got {gain!r}. Put a Gain before the block.")
        start, width = make_initial(initial, "state at the start")
        bounds, width = make_limits(limits, width)
        super().__init__(
            inputs=[Port("u", width=width)],
            outputs=[Port("y", width=width, unit=Derived(_times_seconds, ("u",)))],
            parameters=[factor, start, *bounds],
            rate=SAMPLED,
            feedthrough=method != "forward",
            integers=make_record(
                contract.DISCRETE_INTEGRATOR_INTEGERS,
                {
                    contract.DISCRETE_INTEGRATOR_METHOD: _METHODS[method],
                    contract.DISCRETE_INTEGRATOR_INITIAL: start.value.size,
                    contract.DISCRETE_INTEGRATOR_LIMIT: bounds[0].value.size if bounds else 0,
                },
            ),
        )


class MovingAverage(NativeBlock):
    """The mean of the last samples: y[n] = (u[n] + u[n-1] + … + u[n-samples+1]) / samples.

    Parameters
    ----------
    samples
        How many: a whole number from 1. Each costs one addition per sample hit.
    initial
        Values before the start: a number, or a vector, which fixes the width. Without it the
        mean is over the samples that there are, until there are enough.
    """

    kernel = "moving_average"

    def __init__(self, samples: int, initial: Numbers | None = None) -> None:
        kept = check_samples("MovingAverage", samples) - 1
        parameters: list[Parameter] = []
        width: Width = "n"
        if initial is not None:
            start, width = make_initial(initial, "samples before the start")
            parameters.append(start)
        super().__init__(
            inputs=[Port("u", width=width, unit=Same())],
            outputs=[Port("y", width=width, unit=Same())],
            parameters=parameters,
            rate=SAMPLED,
            integers=[kept],
        )
