"""State spaces from matrices, polynomials, or zeros and poles."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ....errors import DiagramError
from ...core._ports import parameter

Matrix = npt.NDArray[np.float64]
Roots = npt.NDArray[np.complex128]


class Realization(NamedTuple):
    """Matrices of a state-space model."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix


def check_matrices(A: Any, B: Any, C: Any, D: Any) -> Realization:
    """Return the four matrices; raise a `DiagramError` that names one of the wrong shape."""
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
    return Realization(a, b, c, d)


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


def check_roots(zeros: Any, poles: Any, gain: float) -> tuple[Roots, Roots, float]:
    found = []
    for name, given in (("zeros", zeros), ("poles", poles)):
        try:
            roots = np.atleast_1d(np.asarray(given, dtype=np.complex128))
        except (TypeError, ValueError):
            raise DiagramError(f"ZeroPole: `{name}` requires numbers, got {given!r}.") from None
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


def realize(numerator: Matrix, denominator: Matrix) -> Realization:
    """Return the controllable form of a proper transfer function.

    Written out, because scipy.signal.tf2ss takes small leading coefficients for mistakes and drops
    them.
    """
    order = denominator.size - 1
    a = denominator[1:] / denominator[0]
    padded = np.zeros(order + 1)
    padded[order + 1 - numerator.size :] = numerator / denominator[0]
    return Realization(
        np.vstack([-a, np.eye(order - 1, order)]),
        np.eye(order, 1),
        (padded[1:] - padded[0] * a)[np.newaxis],
        padded[:1, np.newaxis],
    )


def realize_chain(zeros: Roots, poles: Roots, gain: float) -> Realization:
    """Return a chain of systems of first and second order with these zeros and poles."""
    chain: Realization | None = None
    for section_zeros, section_poles in pair_roots(zeros, poles):
        part = scale(realize(_polynomial(section_zeros), _polynomial(section_poles)))
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


def _connect(first: Realization, second: Realization) -> Realization:
    """Return two systems in series."""
    return Realization(
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


def scale(system: Realization) -> Realization:
    """Scale the states by powers of two so that A, and B against C, have entries of like size."""
    from scipy import linalg

    _, (factors, _) = linalg.matrix_balance(system.A, permute=False, separate=True)
    a = system.A * factors / factors[:, np.newaxis]
    b, c = system.B / factors[:, np.newaxis], system.C * factors
    sizes = np.abs(c).max(), np.abs(b).max()
    even = 2.0 ** np.round(0.5 * np.log2(sizes[0] / sizes[1])) if all(sizes) else 1.0
    return Realization(a, b * even, c / even, system.D)
