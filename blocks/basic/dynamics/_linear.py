"""Linear systems: state spaces, transfer functions and digital filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .... import _contract as contract
from ....errors import DiagramError
from ...core._block import NativeBlock
from ...core._ports import (
    CONTINUOUS,
    SAMPLED,
    Matrix,
    Numbers,
    Parameter,
    Port,
    Rate,
    parameter,
    periodic,
)
from ...core._state import make_initial
from ...core._stiffness import warn_of_poles
from ...core._vectors import make_record
from ._realization import (
    Realization,
    check_matrices,
    check_polynomials,
    check_roots,
    realize,
    realize_chain,
    scale,
)


class AbstractStateSpace(NativeBlock):
    """Ports, parameters and sizes of a state space, continuous or discrete."""

    def __init__(
        self,
        system: Realization,
        initial: Any,
        rate: Rate,
        unit: str | None,
        tunable: bool,
        *,
        kernel: str | None = None,
    ) -> None:
        states = len(system.A)
        start, _ = make_initial(initial, "state at the start")
        if start.value.ndim and start.value.size != states:
            raise DiagramError(
                f"`initial` has {start.value.size} values, but there are {states} states."
            )
        start = parameter(
            "initial", np.broadcast_to(start.value, states), doc=start.doc, tunable=False
        )
        direct = bool(system.D.any())
        # Without feedthrough there is no D to set: it would need another order of execution.
        matrices: list[Parameter] = [
            parameter(name, matrix, doc=f"matrix {name} of the state space", tunable=tunable)
            for name, matrix in zip("ABCD", system, strict=True)
            if name != "D" or direct
        ]
        continuous = rate is CONTINUOUS
        integers = {contract.STATE_SPACE_DIRECT: int(direct)}
        if not continuous:
            integers[contract.STATE_SPACE_STATES] = states
        super().__init__(
            inputs=[Port("u", width=system.B.shape[1])],
            outputs=[Port("y", width=len(system.C), unit=unit)],
            parameters=[*matrices, start],
            rate=rate,
            feedthrough=direct,
            states=states if continuous else 0,
            integers=make_record(
                contract.STATE_SPACE_INTEGERS
                if continuous
                else contract.DISCRETE_STATE_SPACE_INTEGERS,
                integers,
            ),
            kernel=kernel,
        )
        self._poles = (
            np.linalg.eigvals(system.A).astype(np.complex128) if continuous and states else None
        )

    def warn_of_step(self, step: float, solver: str) -> str:
        return "" if self._poles is None else warn_of_poles(self._poles, step, solver)


class StateSpace(AbstractStateSpace):
    """A linear system: dx/dt = A x + B u, y = C x + D u, x(0) = initial.

    Parameters
    ----------
    A, B, C, D
        Matrices; a vector B is one column, a vector C one row. Without D, or with D = 0, there
        is no direct feedthrough from u to y, and D cannot be set later.
    initial
        The state at the start: a number for all, or a vector.
    unit
        Unit of the output.
    """

    kernel = "state_space"

    def __init__(
        self,
        A: Matrix,
        B: Matrix,
        C: Matrix,
        D: Matrix | None = None,
        initial: Numbers = 0.0,
        *,
        unit: str | None = None,
    ) -> None:
        super().__init__(check_matrices(A, B, C, D), initial, CONTINUOUS, unit, True)


class TransferFunction(AbstractStateSpace):
    """A transfer function: y(s) = num(s) / den(s) u(s), starting from rest.

    It runs as a state space in controllable form, scaled so that no entry is far from the others.
    Its matrices are the parameters ``A, B, C, D``; `num` and `den` are fixed.

    Parameters
    ----------
    num, den
        Coefficients from the highest power of s, ``TransferFunction([1], [1, 0.2, 1])``.
        The degree of `num` must not exceed that of `den`; if equal, there is direct feedthrough.
    unit
        Unit of the output.
    """

    kernel = "state_space"

    def __init__(self, num: Numbers, den: Numbers, *, unit: str | None = None) -> None:
        numerator, denominator = check_polynomials("TransferFunction", "s", num, den)
        system = scale(realize(numerator, denominator))
        super().__init__(system, 0.0, CONTINUOUS, unit, False)


Roots = complex | Sequence[complex] | npt.NDArray[np.complex128]
"""Zeros or poles."""


class ZeroPole(AbstractStateSpace):
    """A transfer function by its zeros and poles, starting from rest::

        y(s) = gain (s - z1) (s - z2) … / ((s - p1) (s - p2) …) u(s)

    It runs as a chain of systems of first and second order, whose accuracy does not suffer from
    many or repeated poles as that of polynomials does. The matrices of the chain are the parameters
    ``A, B, C, D``; `zeros`, `poles` and `gain` are fixed.

    Parameters
    ----------
    zeros, poles
        In rad/s; complex ones in conjugate pairs. There must not be more zeros than poles; with
        equal numbers there is direct feedthrough.
    gain
        Factor in front.
    unit
        Unit of the output.
    """

    kernel = "state_space"

    def __init__(
        self,
        zeros: Roots,
        poles: Roots,
        gain: float = 1.0,
        *,
        unit: str | None = None,
    ) -> None:
        system = scale(realize_chain(*check_roots(zeros, poles, gain)))
        super().__init__(system, 0.0, CONTINUOUS, unit, False)


class DiscreteStateSpace(AbstractStateSpace):
    """A linear system with a sample time: x[n+1] = A x[n] + B u[n], y[n] = C x[n] + D u[n].

    Parameters
    ----------
    A, B, C, D
        Matrices; a vector B is one column, a vector C one row. Without D, or with D = 0, there
        is no direct feedthrough from u to y, and D cannot be set later.
    initial
        The state at the start: a number for all, or a vector.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    unit
        Unit of the output.
    """

    kernel = "discrete_state_space"
    smooth_memory = True
    designs_with_period = True

    def __init__(
        self,
        A: Matrix,
        B: Matrix,
        C: Matrix,
        D: Matrix | None = None,
        initial: Numbers = 0.0,
        *,
        period: float | None = None,
        offset: float = 0.0,
        unit: str | None = None,
    ) -> None:
        rate = periodic(period, offset, SAMPLED)
        super().__init__(check_matrices(A, B, C, D), initial, rate, unit, True)


class DiscreteTransferFunction(NativeBlock):
    """A transfer function in z, starting from rest, for each element of u::

        y(z) = num(z) / den(z) u(z)

    `num` and `den` are polynomials in z, from the highest power, as scipy.signal.dlti takes them:
    ``DiscreteTransferFunction([1], [1, -0.5])`` is y[n] = 0.5 y[n-1] + u[n-1]. For coefficients
    meant for scipy.signal.lfilter (powers of 1/z), which `scipy.signal.butter` and the like give,
    make both equally long by zeros at the end; then they are the same in z.

    Parameters
    ----------
    num, den
        Coefficients. The degree of `num` must not exceed that of `den`; if equal, there is
        direct feedthrough.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    unit
        Unit of the output.
    """

    kernel = "discrete_transfer_function"
    smooth_memory = True
    designs_with_period = True

    def __init__(
        self,
        num: Numbers,
        den: Numbers,
        *,
        period: float | None = None,
        offset: float = 0.0,
        unit: str | None = None,
    ) -> None:
        numerator, denominator = check_polynomials("DiscreteTransferFunction", "z", num, den)
        super().__init__(
            inputs=[Port("u", width="n")],
            outputs=[Port("y", width="n", unit=unit)],
            parameters=[
                parameter("num", numerator, doc="numerator, from the highest power of z"),
                parameter("den", denominator, doc="denominator, from the highest power of z"),
            ],
            rate=periodic(period, offset, SAMPLED),
            feedthrough=numerator.size == denominator.size,
            integers=[numerator.size],
        )


class FIR(NativeBlock):
    """A filter of finite impulse response: y[n] = c0 u[n] + c1 u[n-1] + c2 u[n-2] + ….

    Parameters
    ----------
    coefficients
        c0, c1, …, as scipy.signal.firwin gives them. If c0 is zero, there is no direct
        feedthrough, and c0 stays zero whatever is set later.
    initial
        Values of u before the start: a number, or a vector, which fixes the width.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    unit
        Unit of the output.
    """

    kernel = "fir"
    designs_with_period = True

    def __init__(
        self,
        coefficients: Numbers,
        initial: Numbers = 0.0,
        *,
        period: float | None = None,
        offset: float = 0.0,
        unit: str | None = None,
    ) -> None:
        taps = parameter("coefficients", coefficients, doc="impulse response")
        if taps.value.ndim != 1:
            raise DiagramError(
                f"FIR needs its coefficients as a list, got shape {taps.value.shape}."
            )
        start, width = make_initial(initial, "input before the start")
        direct = bool(taps.value[0] != 0)
        super().__init__(
            inputs=[Port("u", width=width)],
            outputs=[Port("y", width=width, unit=unit)],
            parameters=[taps, start],
            rate=periodic(period, offset, SAMPLED),
            feedthrough=direct,
            integers=make_record(
                contract.FIR_INTEGERS,
                {
                    contract.FIR_TAPS: taps.value.size,
                    contract.FIR_DIRECT: int(direct),
                    contract.FIR_INITIAL: start.value.size,
                },
            ),
        )
