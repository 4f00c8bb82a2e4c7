"""Linear systems: state spaces, transfer functions and digital filters.

scipy.signal realises what is given as polynomials or as poles and zeros; the engine runs that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import DiagramError
from .block import NativeBlock, size_of
from .ports import CONTINUOUS, SAMPLED, Parameter, Port, Rate, parameter, periodic
from .state import make_initial

Matrix = npt.NDArray[np.float64]
Roots = npt.NDArray[np.complex128]


class Realisation(NamedTuple):
    """Matrices of a state space."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix


class AbstractStateSpace(NativeBlock):
    """Ports, parameters and sizes of a state space, continuous or discrete."""

    def __init__(
        self, system: Realisation, initial: Any, rate: Rate, unit: str | None, tunable: bool
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
        super().__init__(
            inputs=[Port("u", width=system.B.shape[1])],
            outputs=[Port("y", width=len(system.C), unit=unit)],
            parameters=[*matrices, start],
            rate=rate,
            feedthrough=direct,
            states=states if continuous else 0,
            memory=0 if continuous else 2 * states,
            integers=[int(direct)],
        )


class StateSpace(AbstractStateSpace):
    """A linear system: dx/dt = A x + B u, y = C x + D u, x(0) = initial.

    Parameters
    ----------
    A, B, C, D
        Matrices; a vector B is one column, a vector C one row. Without D, or with D = 0, u does not
        reach y at once, and D cannot be set later.
    initial
        The state at the start: a number for all, or a vector.
    unit
        Of the output.
    """

    kernel = "state_space"

    def __init__(
        self, A: Any, B: Any, C: Any, D: Any = None, initial: Any = 0.0, *, unit: str | None = None
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
        The degree of `num` must not exceed that of `den`; if it is the same, u reaches y at once.
    unit
        Of the output.
    """

    kernel = "state_space"

    def __init__(self, num: Any, den: Any, *, unit: str | None = None) -> None:
        numerator, denominator = check_polynomials("TransferFunction", "s", num, den)
        system = scale(realise(numerator, denominator))
        super().__init__(system, 0.0, CONTINUOUS, unit, False)


class ZeroPole(AbstractStateSpace):
    """A transfer function by its zeros and poles, starting from rest::

        y(s) = gain (s - z1) (s - z2) … / ((s - p1) (s - p2) …) u(s)

    It runs as a chain of systems of first and second order, whose accuracy does not suffer from
    many or repeated poles as that of polynomials does. The matrices of the chain are the parameters
    ``A, B, C, D``; `zeros`, `poles` and `gain` are fixed.

    Parameters
    ----------
    zeros, poles
        In rad/s; complex ones in conjugate pairs. There must not be more zeros than poles; if there
        are as many, u reaches y at once.
    gain
        Factor in front.
    unit
        Of the output.
    """

    kernel = "state_space"

    def __init__(
        self, zeros: Any, poles: Any, gain: float = 1.0, *, unit: str | None = None
    ) -> None:
        system = scale(realise_chain(*_check_roots(zeros, poles, gain)))
        super().__init__(system, 0.0, CONTINUOUS, unit, False)


class DiscreteStateSpace(AbstractStateSpace):
    """A linear system with a sample time: x[n+1] = A x[n] + B u[n], y[n] = C x[n] + D u[n].

    Parameters
    ----------
    A, B, C, D
        Matrices; a vector B is one column, a vector C one row. Without D, or with D = 0, u does not
        reach y at once, and D cannot be set later.
    initial
        The state at the start: a number for all, or a vector.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    unit
        Of the output.
    """

    kernel = "discrete_state_space"

    def __init__(
        self,
        A: Any,
        B: Any,
        C: Any,
        D: Any = None,
        initial: Any = 0.0,
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
        Coefficients. The degree of `num` must not exceed that of `den`; if it is the same, u
        reaches y at once.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    unit
        Of the output.
    """

    kernel = "discrete_transfer_function"

    def __init__(
        self,
        num: Any,
        den: Any,
        *,
        period: float | None = None,
        offset: float = 0.0,
        unit: str | None = None,
    ) -> None:
        numerator, denominator = check_polynomials("DiscreteTransferFunction", "z", num, den)
        order = denominator.size - 1
        super().__init__(
            inputs=[Port("u", width="n")],
            outputs=[Port("y", width="n", unit=unit)],
            parameters=[
                parameter("num", numerator, doc="numerator, from the highest power of z"),
                parameter("den", denominator, doc="denominator, from the highest power of z"),
            ],
            rate=periodic(period, offset, SAMPLED),
            feedthrough=numerator.size == denominator.size,
            memory=lambda widths: order * widths["n"],
            integers=[numerator.size],
        )


class FIR(NativeBlock):
    """A filter of finite impulse response: y[n] = c0 u[n] + c1 u[n-1] + c2 u[n-2] + ….

    Parameters
    ----------
    coefficients
        c0, c1, …, as scipy.signal.firwin gives them. If c0 is zero, u does not reach y at once, and
        c0 stays zero whatever is set later.
    initial
        What u was before the start: a number, or a vector, which fixes the width.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    unit
        Of the output.
    """

    kernel = "fir"

    def __init__(
        self,
        coefficients: Any,
        initial: Any = 0.0,
        *,
        period: float | None = None,
        offset: float = 0.0,
        unit: str | None = None,
    ) -> None:
        taps = parameter("coefficients", coefficients, doc="impulse response")
        if taps.value.ndim != 1:
            raise DiagramError(
                f"FIR wants its coefficients as a list, not of shape {taps.value.shape}."
            )
        start, width = make_initial(initial, "input before the start")
        kept = taps.value.size - 1
        direct = bool(taps.value[0] != 0)
        super().__init__(
            inputs=[Port("u", width=width)],
            outputs=[Port("y", width=width, unit=unit)],
            parameters=[taps, start],
            rate=periodic(period, offset, SAMPLED),
            feedthrough=direct,
            memory=lambda widths: 1 + kept * size_of(width, widths),
            integers=[taps.value.size, int(direct), start.value.size],
        )


def check_matrices(A: Any, B: Any, C: Any, D: Any) -> Realisation:
    """Return four matrices whose shapes fit, or raise a `DiagramError` that says which does not."""
    a = np.atleast_2d(parameter("A", A).value)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise DiagramError(f"A must be square, got shape {a.shape}.")
    n = len(a)
    b = parameter("B", B).value
    b = b.reshape(-1, 1) if b.ndim < 2 else b
    c = np.atleast_2d(parameter("C", C).value)
    if b.ndim != 2 or len(b) != n:
        raise DiagramError(f"B needs {n} rows, as many as A, got shape {b.shape}.")
    if c.ndim != 2 or c.shape[1] != n:
        raise DiagramError(f"C needs {n} columns, as many as A, got shape {c.shape}.")
    d = np.zeros((len(c), b.shape[1])) if D is None else parameter("D", D).value
    d = d.reshape(len(c), b.shape[1]) if d.size == len(c) * b.shape[1] and d.ndim < 2 else d
    if d.shape != (len(c), b.shape[1]):
        raise DiagramError(
            f"D must have shape {(len(c), b.shape[1])}: a row for each output, a column for each "
            f"input; got shape {d.shape}."
        )
    return Realisation(a, b, c, d)


def check_polynomials(block: str, variable: str, num: Any, den: Any) -> tuple[Matrix, Matrix]:
    """Return numerator and denominator without leading zeros, if their quotient is proper."""
    found = []
    for name, given in (("num", num), ("den", den)):
        coefficients = np.atleast_1d(parameter(name, given).value)
        if coefficients.ndim != 1:
            raise DiagramError(
                f"{block}: `{name}` is one list of coefficients, not of shape {coefficients.shape}."
            )
        trimmed = np.trim_zeros(coefficients, "f")
        if not trimmed.size:
            raise DiagramError(f"{block}: `{name}` is zero.")
        found.append(trimmed)
    numerator, denominator = found
    if denominator.size == 1:
        raise DiagramError(
            f"{block}: `den` has no {variable}, so this is a gain: use "
            f"Gain({numerator[-1] / denominator[0]:g})."
            if numerator.size == 1
            else f"{block}: `den` has no {variable}. " + _improper(variable, numerator, denominator)
        )
    if numerator.size > denominator.size:
        raise DiagramError(f"{block}: " + _improper(variable, numerator, denominator))
    return numerator, denominator


def _improper(variable: str, numerator: Matrix, denominator: Matrix) -> str:
    advice = (
        "Add fast poles to `den`, or use a Derivative with its filter."
        if variable == "s"
        else "It would need future samples: add a power of z to `den`."
    )
    return (
        f"it is improper: `num` has degree {numerator.size - 1} in {variable}, `den` only "
        f"{denominator.size - 1}. {advice}"
    )


def _check_roots(zeros: Any, poles: Any, gain: float) -> tuple[Roots, Roots, float]:
    found = []
    for name, given in (("zeros", zeros), ("poles", poles)):
        try:
            roots = np.atleast_1d(np.asarray(given, dtype=np.complex128))
        except (TypeError, ValueError):
            raise DiagramError(f"ZeroPole: `{name}` wants numbers, got {given!r}.") from None
        if roots.ndim != 1 or not np.isfinite(roots).all():
            raise DiagramError(f"ZeroPole: `{name}` is a list of finite numbers, got {given!r}.")
        if not np.array_equal(np.sort_complex(roots), np.sort_complex(roots.conj())):
            raise DiagramError(
                f"ZeroPole: complex `{name}` come in conjugate pairs, such as -1+2j with -1-2j; "
                f"got {given!r}."
            )
        found.append(roots)
    if not found[1].size:
        raise DiagramError("ZeroPole: without poles this is a gain: use Gain.")
    if found[0].size > found[1].size:
        raise DiagramError(
            f"ZeroPole: it is improper: {found[0].size} zeros, but only {found[1].size} poles. "
            f"Add fast poles, or use a Derivative with its filter."
        )
    factor = parameter("gain", gain).value
    if factor.ndim:
        raise DiagramError(f"ZeroPole: gain is one number, got {gain!r}.")
    return found[0], found[1], float(factor)


def realise(numerator: Matrix, denominator: Matrix) -> Realisation:
    """Return the controllable form of a proper transfer function."""
    from scipy import signal  # slow to import, and only designs need it

    return Realisation(
        *(np.asarray(m, dtype=np.float64) for m in signal.tf2ss(numerator, denominator))
    )


def realise_chain(zeros: Roots, poles: Roots, gain: float) -> Realisation:
    """Return a chain of systems of first and second order with these zeros and poles."""
    chain: Realisation | None = None
    for section_zeros, section_poles in pair_roots(zeros, poles):
        part = scale(realise(_polynomial(section_zeros), _polynomial(section_poles)))
        chain = part if chain is None else _connect(chain, part)
    assert chain is not None
    return chain._replace(C=gain * chain.C, D=gain * chain.D)


def pair_roots(zeros: Roots, poles: Roots) -> list[tuple[list[complex], list[complex]]]:
    """Return sections of one or two poles, each with no more zeros than poles, all of them real.

    scipy.signal.zpk2sos does this for digital filters, but for analog ones fails on some lists.
    """
    pole_pairs, real_poles = _split_roots(poles)
    zero_pairs, real_zeros = _split_roots(zeros)
    real_pairs = [real_poles[k : k + 2] for k in range(0, len(real_poles), 2)]
    sections: list[tuple[list[complex], list[complex]]] = [
        ([], section) for section in (*pole_pairs, *real_pairs)
    ]
    # Pairs first: they fit only where no zero is yet. Each goes to the poles nearest in size.
    for group in (*zero_pairs, *([zero] for zero in real_zeros)):
        open_ones = [s for s in sections if len(s[0]) + len(group) <= len(s[1])]
        size = abs(group[0])
        min(open_ones, key=lambda s: abs(size - abs(s[1][0])))[0].extend(group)
    return sections


def _split_roots(roots: Roots) -> tuple[list[list[complex]], list[complex]]:
    """Return conjugate pairs, and real roots in order."""
    pairs = [[complex(r), complex(r.conjugate())] for r in roots if r.imag > 0]
    return pairs, [complex(r) for r in np.sort(roots[roots.imag == 0].real)]


def _polynomial(roots: list[complex]) -> Matrix:
    return np.atleast_1d(np.poly(roots)).real.astype(np.float64)


def _connect(first: Realisation, second: Realisation) -> Realisation:
    """Return two systems in series."""
    return Realisation(
        np.block(
            [
                [first.A, np.zeros((len(first.A), len(second.A)))],
                [second.B @ first.C, second.A],
            ]
        ),
        np.vstack([first.B, second.B @ first.D]),
        np.hstack([second.D @ first.C, second.C]),
        second.D @ first.D,
    )


def scale(system: Realisation) -> Realisation:
    """Scale the states by powers of two so that A, and B against C, have entries of like size."""
    from scipy import linalg

    _, (factors, _) = linalg.matrix_balance(system.A, permute=False, separate=True)
    a = system.A * factors / factors[:, np.newaxis]
    b, c = system.B / factors[:, np.newaxis], system.C * factors
    sizes = np.abs(c).max(), np.abs(b).max()
    even = 2.0 ** np.round(0.5 * np.log2(sizes[0] / sizes[1])) if all(sizes) else 1.0
    return Realisation(a, b * even, c / even, system.D)
