"""Gains of LQ tracking: two passes backwards in time, for constant or time-varying data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import DiagramError
from ..basic.dynamics._realization import check_matrices
from ..core._ports import Matrix, parameter
from ._design import check_weight

Array = npt.NDArray[np.float64]
Data = tuple[Array, Array, Array, Array, Array, Array]
Varying = Callable[[float], Matrix]

_TOLERANCE = 1e-10
"""Of S and g over an interval of a time-varying plant, relative to their largest values."""
_MOST_PARTS = 1 << 14


@dataclass(frozen=True, slots=True)
class TrackingData:
    """Plant dx/dt = A x + B u + w, y = C x, and weights, each constant or a function of time."""

    A: Any
    B: Any
    C: Any
    Q: Any
    R: Any
    drift: Any = None
    _known: dict[float, Data] = field(default_factory=dict)

    @property
    def varies(self) -> bool:
        """Whether any of it is a function of time."""
        return any(callable(item) for item in (self.A, self.B, self.C, self.Q, self.R, self.drift))

    def check(self, t: float) -> Data:
        """Return A, B, C, Q, R and w at a time.

        Raises
        ------
        DiagramError
            If one does not have its shape, is not finite, or is no weight.
        """
        try:
            found = self._read(t)
        except DiagramError as error:
            raise DiagramError(f"at t = {t:g} s: {error}" if self.varies else str(error)) from None
        first = self._known.setdefault(0.0, found)
        if any(one.shape != other.shape for one, other in zip(first, found, strict=True)):
            raise DiagramError(
                f"the matrices have other shapes at t = {t:g} s than before: A {found[0].shape}, "
                f"B {found[1].shape}, C {found[2].shape} after {first[0].shape}, "
                f"{first[1].shape}, {first[2].shape}."
            )
        return found

    def at(self, t: float) -> Data:
        """Return the same, after `check`, with no check but that it is finite."""
        found = list(self._known[0.0])
        for place, name in enumerate(("A", "B", "C", "Q", "R", "drift")):
            given = getattr(self, name)
            if not callable(given):
                continue
            value, shape = np.asarray(given(t), dtype=np.float64), found[place].shape
            if name in ("Q", "R") and value.ndim < 2:
                value = np.diag(np.broadcast_to(value, shape[0]))
            if value.size != found[place].size or not np.isfinite(value).all():
                return self.check(t)  # which raises
            found[place] = value.reshape(shape)
        a, b, c, q, r, w = found
        return a, b, c, q, r, w

    def _read(self, t: float) -> Data:
        def value(name: str) -> Any:
            given = getattr(self, name)
            if not callable(given):
                return given
            try:
                return given(t)
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                raise DiagramError(f"`{name}`, a function of t, failed: {error}.") from error

        a, b, c, _ = check_matrices(value("A"), value("B"), value("C"), None)
        q = check_weight("Q", value("Q"), len(c))
        r = check_weight("R", value("R"), b.shape[1], positive=True)
        w = np.zeros(len(a))
        if self.drift is not None:
            w = np.atleast_1d(parameter("drift", value("drift")).value)
            if w.shape != (len(a),):
                raise DiagramError(
                    f"`drift` has {len(a)} values, as many as A has rows; got shape {w.shape}."
                )
        return a, b, c, q, r, w

    def gain(self, t: float) -> Array:
        """Return R⁻¹ Bᵀ."""
        _, b, _, _, r, _ = self.at(t)
        return np.asarray(np.linalg.solve(r, b.T))


def solve_sampled(data: TrackingData, final: Array, begin: float, period: float, z: Array) -> Array:
    """Return [K, p] of each sample: Bellman's principle, from the last sample back."""
    c = data.at(begin + (len(z) - 1) * period)[2]
    S, g = c.T @ final @ c, c.T @ final @ z[-1]
    rows = []
    for k in range(len(z) - 2, -1, -1):
        a, b, c, q, r, w = data.check(begin + k * period) if data.varies else data.at(begin)
        curvature = r + b.T @ S @ b
        K = -np.linalg.solve(curvature, b.T @ S @ a)
        ahead = g - S @ w
        p = np.linalg.solve(curvature, b.T @ ahead)
        closed = a + b @ K
        rows.append(np.column_stack([K, p]))
        S, g = c.T @ q @ c + a.T @ S @ closed, c.T @ q @ z[k] + closed.T @ ahead
        S = 0.5 * (S + S.T)
    rows.reverse()
    rows.append(np.zeros_like(rows[0]))  # nothing is gained by acting at the last instant
    return np.stack(rows)


def solve_continuous(
    data: TrackingData, final: Array, times: Array, z: Array, grid: Array
) -> Array:
    """Return [K, p] and their rates of change at each point of the grid.

    x and λ = S x - g follow a linear system, Pontryagin's, driven by z and w; between corners of z
    its solution is an exponential, or for time-varying data that of Magnus' series to fourth order.
    Taken back over a step for any x at its end, it gives S and g at its beginning from those at its
    end.
    """
    c = data.at(float(times[-1]))[2]
    nodes = np.union1d(grid, times)
    if data.varies:
        for t in nodes:
            data.check(float(t))
    targets = np.stack([np.interp(nodes, times, column) for column in z.T], axis=1)
    flow = _Flow(data)
    S, g = c.T @ final @ c, c.T @ final @ z[-1]
    rows = {nodes[-1]: (S, g, targets[-1])}
    for k in range(len(nodes) - 2, -1, -1):
        span = nodes[k + 1] - nodes[k]
        slope = (targets[k + 1] - targets[k]) / span
        S, g = flow.go_back(S, g, targets[k + 1], slope, float(nodes[k + 1]), float(span))
        rows[nodes[k]] = (S, g, targets[k])
    first, last = float(grid[0]), float(grid[-1])
    h = 1e-6 * (last - first)
    # Functions of t may have no value outside the times of the reference.
    return np.array(
        [_row(data, float(t), *rows[t], max(t - h, first), min(t + h, last)) for t in grid]
    )


def _row(
    data: TrackingData, t: float, S: Array, g: Array, target: Array, before: float, after: float
) -> list[Array]:
    """Return [K, p] = R⁻¹ Bᵀ [-S, g] and its rate of change."""
    a, b, c, q, _, w = data.at(t)
    gain = data.gain(t)
    dS = -(S @ a + a.T @ S - S @ b @ gain @ S + c.T @ q @ c)
    dg = -((a - b @ gain @ S).T @ g + c.T @ q @ target - S @ w)
    rate = np.column_stack([-gain @ dS, gain @ dg])
    if callable(data.B) or callable(data.R):
        change = (data.gain(after) - data.gain(before)) / (after - before)
        rate = rate + np.column_stack([-change @ S, change @ g])
    return [np.column_stack([-gain @ S, gain @ g]), rate]


class _Flow:
    """The way of x, λ, z, dz/dt and 1 backwards in time."""

    def __init__(self, data: TrackingData) -> None:
        self.data = data
        self.known: dict[float, Array] = {}
        self.fast = 0.0

    def rate(self, t: float) -> Array:
        """Return the matrix of the linear system at a time."""
        a, b, c, q, r, w = self.data.at(t)
        n, m = len(a), len(c)
        rate = np.zeros((2 * n + 2 * m + 1, 2 * n + 2 * m + 1))
        rate[:n, : 2 * n] = np.hstack([a, -b @ np.linalg.solve(r, b.T)])
        rate[:n, -1] = w
        rate[n : 2 * n, : 2 * n + m] = np.hstack([-c.T @ q @ c, -a.T, c.T @ q])
        rate[2 * n : 2 * n + m, 2 * n + m : -1] = np.eye(m)
        return rate

    def go_back(
        self, S: Array, g: Array, z: Array, slope: Array, end: float, span: float
    ) -> tuple[Array, Array]:
        """Return S and g a span of time earlier."""
        # Long steps are divided: modes that decay in one direction of time grow in the other.
        fast = self._fastest(end)
        count = max(1, int(np.ceil(fast * span)))
        found = self._steps(S, g, z, slope, end, span, count)
        while self.data.varies:
            before, count = found, 2 * count
            if count > _MOST_PARTS:
                raise DiagramError(
                    f"the gains before t = {end:g} s do not converge: functions of t must be "
                    f"continuous between the times of the reference; give a time where one jumps."
                )
            found = self._steps(S, g, z, slope, end, span, count)
            # Halving the parts leaves a sixteenth of the error.
            if all(
                np.abs(new - old).max() <= 15.0 * _TOLERANCE * max(1.0, float(np.abs(new).max()))
                for new, old in zip(found, before, strict=True)
            ):
                break
        return found

    def _fastest(self, t: float) -> float:
        if self.data.varies or not self.known:
            self.fast = float(np.abs(np.linalg.eigvals(self.rate(t))).max())
        return self.fast

    def _steps(
        self, S: Array, g: Array, z: Array, slope: Array, end: float, span: float, count: int
    ) -> tuple[Array, Array]:
        n, h = len(S), span / count
        for number in range(count):
            back = self._back(end - number * h, h)
            driven = back[: 2 * n, 2 * n :] @ np.concatenate([z - number * h * slope, slope, [1.0]])
            x = back[:n, :n] + back[:n, n : 2 * n] @ S
            costate = back[n : 2 * n, :n] + back[n : 2 * n, n : 2 * n] @ S
            x_free = driven[:n] - back[:n, n : 2 * n] @ g
            costate_free = driven[n:] - back[n : 2 * n, n : 2 * n] @ g
            quotient = np.linalg.solve(x.T, costate.T)
            S = 0.5 * np.asarray(quotient + quotient.T)
            g = S @ x_free - costate_free
        return S, g

    def _back(self, end: float, h: float) -> Array:
        """Return the transition matrix from `end` to a time h earlier."""
        if not self.data.varies:
            h = float(f"{h:.12e}")  # evenly spaced times differ by rounding: one exponential
            if h not in self.known:
                self.known[h] = _exponential(-h * self.rate(end))
            return self.known[h]
        # Magnus' series to fourth order, from the two points of Gauss.
        middle, off = end - 0.5 * h, h * np.sqrt(3.0) / 6.0
        late, early = self.rate(middle + off), self.rate(middle - off)
        series = -0.5 * h * (late + early)
        series -= np.sqrt(3.0) / 12.0 * h * h * (late @ early - early @ late)
        return _exponential(series)


def _exponential(matrix: Array) -> Array:
    """Return the exponential of a small matrix: Padé's approximant of order 6, and squares.

    That of scipy wakes the threads of its BLAS in each call, which takes most of the time here.
    """
    order = 6
    size = float(np.abs(matrix).sum(axis=0).max())
    squares = max(0, int(np.ceil(np.log2(2.0 * size)))) if size > 0.0 else 0
    scaled = matrix / 2.0**squares
    power = numerator = denominator = np.eye(len(matrix))
    factor = 1.0
    for k in range(1, order + 1):
        factor *= (order - k + 1) / (k * (2 * order - k + 1))
        power = scaled @ power
        numerator = numerator + factor * power
        denominator = denominator + (-1) ** k * factor * power
    found = np.linalg.solve(denominator, numerator)
    for _ in range(squares):
        found = found @ found
    return np.asarray(found)
