"""Filters around a converter: analog anti-alias filters, and decimation."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import DiagramError
from ..basic.dynamics._realization import pair_roots, realize, scale
from ..core._block import NativeBlock
from ..core._ports import (
    CONTINUOUS,
    SAMPLED,
    Numbers,
    Port,
    Rate,
    Same,
    number,
    parameter,
    periodic,
)
from ..core._stiffness import MULTIRATE_FIFTH, MULTIRATE_RK4
from ..core._vectors import require_choice, require_one_positive, require_whole

_SECTION = 9
_MOST_ORDER = 20
_MOST_TAPS = 1_000_000
# Stability functions of the explicit solvers: polynomials of pole · step, by increasing powers.
_SERIES = [1.0, 1.0, 1 / 2, 1 / 6, 1 / 24]
_GROWTH = {
    "euler": _SERIES[:2],
    "heun": _SERIES[:3],
    "rk3": _SERIES[:4],
    "rk4": _SERIES,
    MULTIRATE_RK4: [*_SERIES, MULTIRATE_FIFTH],
    "dopri5": [*_SERIES, 1 / 120, 1 / 600],
}


class AntiAliasFilter(NativeBlock):
    """An analog low-pass, for each element of u: y(s) = H(s) u(s), starting from rest.

    scipy.signal designs the zeros and poles; they run as a chain of sections of second order, each
    a state space. The design is fixed: the sections are not parameters to set.

    - butterworth: flat; -3 dB at the cutoff
    - bessel: least change of shape; -3 dB at the cutoff
    - chebyshev: ripple up to the cutoff, where the gain is -ripple dB
    - chebyshev2: flat, and -attenuation dB from the cutoff on
    - elliptic: ripple up to the cutoff, and steepest to -attenuation dB

    Parameters
    ----------
    cutoff
        In Hz.
    order
        Number of poles, from 1 to 20.
    design
        ``"butterworth"``, ``"bessel"``, ``"chebyshev"``, ``"chebyshev2"`` or ``"elliptic"``.
    ripple
        Ripple of the pass band in dB, for chebyshev and elliptic.
    attenuation
        Attenuation of the stop band in dB, for chebyshev2 and elliptic.
    """

    kernel = "sections"

    def __init__(
        self,
        cutoff: float,
        order: int = 4,
        *,
        design: str = "butterworth",
        ripple: float = 0.5,
        attenuation: float = 60.0,
    ) -> None:
        zeros, poles, gain = _design(cutoff, order, design, ripple, attenuation)
        self.zeros, self.poles, self.gain = zeros, poles, gain
        sections, direct = _sections(zeros, poles, gain)
        super().__init__(
            inputs=[Port("u", "n", Same())],
            outputs=[Port("y", "n", Same())],
            parameters=[parameter("sections", sections, doc="state spaces", hidden=True)],
            states=lambda widths: order * widths["n"],
            integers=[order, int(direct)],
            feedthrough=direct,
            rate=CONTINUOUS,
        )

    def response(self, frequencies: Numbers) -> npt.NDArray[np.complex128]:
        """Return the complex gain of the design at frequencies in Hz."""
        from scipy import signal

        omega = 2 * np.pi * np.atleast_1d(np.asarray(frequencies, dtype=np.float64))
        _, h = signal.freqs_zpk(self.zeros, self.poles, self.gain, omega)
        return np.asarray(h, dtype=np.complex128)

    def warn_of_step(self, step: float, solver: str) -> str:
        """Return a warning if a pole is too fast for an explicit solver; empty otherwise."""
        growth = _GROWTH.get(solver, [])

        def stable(h: float) -> bool:
            modes = np.polynomial.polynomial.polyval(self.poles * h, growth)
            return bool((np.abs(modes) <= 1).all())

        if not growth or stable(step):
            return ""
        low, high = 0.0, step
        for _ in range(20):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if stable(middle) else (low, middle)
        return (
            f"its poles, up to {np.abs(self.poles).max() / (2 * np.pi):.3g} Hz, are too fast for "
            f"steps of {step:g} s with {solver}, which would grow without end. Take steps of up to "
            f"{low:.2g} s, or an implicit solver, such as trapezoidal."
        )


class Decimator(NativeBlock):
    """A low-pass and every R-th sample of it: y[m] = sum over k of c[k] u[m R - k].

    Blocks behind it that inherit their rate run where y changes. The filter takes away what would
    fold into the lower band; its delay is (number of coefficients - 1) / 2 samples of u.

    - fir: scipy.signal.firwin with a Hamming window, of `taps` coefficients, -6 dB at `cutoff`
    - cic: `stages` sums over R samples each, as a sigma-delta converter has them; run as the filter
      of finite response that it is, so nothing overflows
    - none: every R-th sample, whatever folds

    Parameters
    ----------
    factor
        R, a whole number from 2.
    filter
        ``"fir"``, ``"cic"``, ``"none"``, or a list of coefficients.
    taps
        For fir; by default 20 R + 1.
    cutoff
        For fir: as a part of the new Nyquist frequency, above 0 and up to 1.
    stages
        For cic, from 1 to 8.
    period, offset
        Sample time of u in seconds; without one, that of the input, or every tick if it is
        continuous.
    """

    kernel = "decimator"
    designs_with_period = True

    def __init__(
        self,
        factor: int,
        filter: str | Numbers = "fir",
        *,
        taps: int | None = None,
        cutoff: float = 0.8,
        stages: int = 3,
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        factor = require_whole("factor", factor, 2, _MOST_TAPS // 20)
        coefficients = parameter(
            "coefficients",
            _decimation_filter(factor, filter, taps, cutoff, stages),
            doc="impulse response",
        )
        length = coefficients.value.size
        runs = periodic(period, offset, SAMPLED)
        super().__init__(
            inputs=[Port("u", "n", Same())],
            outputs=[Port("y", "n", Same())],
            parameters=[coefficients],
            integers=[factor, length],
            rate=Rate(runs.kind, runs.period, runs.offset, outputs=factor),
        )


def _design(
    cutoff: float, order: int, design: str, ripple: float, attenuation: float
) -> tuple[npt.NDArray[np.complex128], npt.NDArray[np.complex128], float]:
    from scipy import signal

    order = require_whole("order", order, 1, _MOST_ORDER)
    cutoff = require_one_positive("cutoff", cutoff, "Hz")
    ripple, attenuation = number("ripple", ripple), number("attenuation", attenuation)
    designs = ("butterworth", "bessel", "chebyshev", "chebyshev2", "elliptic")
    kind = require_choice("design", design, designs)
    if design in ("chebyshev", "elliptic") and not 0 < ripple < np.inf:
        raise DiagramError(f"`ripple` is above 0 dB, such as 0.5, got {ripple!r}.")
    if design in ("chebyshev2", "elliptic") and not 0 < attenuation < np.inf:
        raise DiagramError(f"`attenuation` is above 0 dB, such as 60, got {attenuation!r}.")
    if design == "elliptic" and not ripple < attenuation:
        raise DiagramError(
            f"an elliptic filter needs a ripple below its attenuation, got {ripple:g} and "
            f"{attenuation:g} dB."
        )
    edge = 2 * np.pi * cutoff
    make = {
        0: lambda: signal.butter(order, edge, analog=True, output="zpk"),
        1: lambda: signal.bessel(order, edge, analog=True, output="zpk", norm="mag"),
        2: lambda: signal.cheby1(order, ripple, edge, analog=True, output="zpk"),
        3: lambda: signal.cheby2(order, attenuation, edge, analog=True, output="zpk"),
        4: lambda: signal.ellip(order, ripple, attenuation, edge, analog=True, output="zpk"),
    }
    zeros, poles, gain = make[kind]()
    return _paired(zeros), _paired(poles), float(gain)


def _paired(roots: Any) -> npt.NDArray[np.complex128]:
    """Make conjugate pairs equal to the last bit, and almost real ones real."""
    roots = np.asarray(roots, dtype=np.complex128)
    real = roots[np.abs(roots.imag) <= 1e-9 * np.abs(roots)].real
    above = roots[roots.imag > 1e-9 * np.abs(roots)]
    return np.concatenate([above, above.conj(), real.astype(np.complex128)])


def _sections(
    zeros: npt.NDArray[np.complex128], poles: npt.NDArray[np.complex128], gain: float
) -> tuple[npt.NDArray[np.float64], bool]:
    """Return nine numbers per section, with equal gains, and whether there is feedthrough."""
    pairs = sorted(pair_roots(zeros, poles), key=lambda pair: -len(pair[1]))
    # Each section has a gain of 1 at 0 Hz, so that no signal between two of them is far from u.
    rows, product = [], 1.0
    for section_zeros, section_poles in pairs:
        numerator = np.atleast_1d(np.poly(section_zeros)).real.astype(np.float64)
        denominator = np.atleast_1d(np.poly(section_poles)).real.astype(np.float64)
        level = denominator[-1] / numerator[-1]
        product *= level
        system = scale(realize(numerator * level, denominator))
        row = np.zeros(_SECTION)
        n = len(system.A)
        row[:4].reshape(2, 2)[:n, :n] = system.A
        row[4 : 4 + n], row[6 : 6 + n], row[8] = system.B[:, 0], system.C[0], system.D[0, 0]
        rows.append(row)
    rest = gain / product
    rows[-1][6:9] *= rest
    return np.concatenate(rows), all(row[8] != 0 for row in rows)


def _decimation_filter(
    factor: int, filter: Any, taps: int | None, cutoff: float, stages: int
) -> Any:
    from scipy import signal

    if not isinstance(filter, str):
        coefficients = parameter("coefficients", filter).value
        if coefficients.ndim != 1 or coefficients.size > _MOST_TAPS:
            raise DiagramError(
                f"`filter` is a list of up to {_MOST_TAPS} coefficients, not of shape "
                f"{coefficients.shape}."
            )
        return coefficients
    require_choice("filter", filter, ("fir", "cic", "none"))
    if filter == "none":
        return [1.0]
    if filter == "cic":
        stages = require_whole("stages", stages, 1, 8)
        response = np.ones(1)
        for _ in range(stages):
            response = np.convolve(response, np.full(factor, 1.0 / factor))
        return response
    count = 20 * factor + 1 if taps is None else require_whole("taps", taps, 1, _MOST_TAPS)
    cutoff = number("cutoff", cutoff)
    if not 0 < cutoff <= 1:
        raise DiagramError(
            f"`cutoff` is a part of the new Nyquist frequency, above 0 and up to 1, got {cutoff!r}."
        )
    return signal.firwin(count, cutoff / factor)
