"""Optimal tracking of a reference that is known in advance, with a quadratic cost."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ... import _contract as contract
from ...errors import DiagramError
from ..basic.dynamics._realization import check_matrices
from ..core._block import NativeBlock
from ..core._ports import CONTINUOUS, Matrix, Numbers, Port, parameter, periodic
from ..core._vectors import make_record, require_whole
from ._design import check_weight

Array = npt.NDArray[np.float64]

_MOST_POINTS = 1_000_000


class LQTracking(NativeBlock):
    """LQ tracking: u = K(t) x + p(t) such that C x follows a reference z(t) known in advance.

    For dx/dt = A x + B u it minimizes, with e = z - C x,

        J = e(tf)ᵀ F e(tf) + ∫ (eᵀ Q e + uᵀ R u) dt

    K = -R⁻¹ Bᵀ S and p = R⁻¹ Bᵀ g, from two passes backwards in time: dS/dt + S A + Aᵀ S -
    S B R⁻¹ Bᵀ S + Cᵀ Q C = 0 with S(tf) = Cᵀ F C, and dg/dt + (A + B K)ᵀ g + Cᵀ Q z = 0 with
    g(tf) = Cᵀ F z(tf). They are solved when the block is made; the block has tables of K and p and
    joins their points by cubics with the right slopes.

    With a period, A and B are those of the sampled plant x[n+1] = A x + B u, and it minimizes
    J = e[N]ᵀ F e[N] + Σ (eᵀ Q e + uᵀ R u), exactly; z has a row for each sample. Before the first
    and after the last time K and p are held constant.

    Parameters
    ----------
    A, B, C
        Matrices of the plant.
    times
        Of the reference, in seconds, rising. With a period: of the first row only, one number.
    reference
        z: for each time a row of as many values as C has rows; on straight lines between them.
    Q, R
        Weights of the error and of the input: a number, the diagonal, or the matrix.
    final
        F, in the same ways; 0 if not given.
    points
        Number of points of the tables, evenly spaced from the first to the last time.
    unit
        Unit of y.
    period
        Sample time in seconds; without one the block and the plant are continuous.
    """

    kernel = "lq_tracking"
    designs_with_period = True

    def __init__(
        self,
        A: Matrix,
        B: Matrix,
        C: Matrix,
        times: Numbers,
        reference: Matrix,
        *,
        Q: Matrix,
        R: Matrix,
        final: Matrix = 0.0,
        points: int = 501,
        unit: str | None = None,
        period: float | None = None,
    ) -> None:
        a, b, c, _ = check_matrices(A, B, C, None)
        weights = (
            check_weight("Q", Q, len(c)),
            check_weight("R", R, b.shape[1], positive=True),
            check_weight("final", final, len(c)),
        )
        z = parameter("reference", reference).value
        z = z.reshape(-1, 1) if z.ndim < 2 and len(c) == 1 else z
        if z.ndim != 2 or len(z) < 2 or z.shape[1] != len(c):
            raise DiagramError(
                f"`reference` has a row for each of at least two times, with {len(c)} values, as "
                f"many as C has rows; got shape {z.shape}."
            )
        given = np.atleast_1d(parameter("times", times).value)
        if period is None:
            points = require_whole("points", points, 2, _MOST_POINTS)
            if given.shape != (len(z),) or not (np.diff(given) > 0).all():
                raise DiagramError(
                    f"`times` are {len(z)} rising numbers, one for each row of the reference; got "
                    f"{given.size} numbers{'' if given.size != len(z) else ' that do not rise'}."
                )
            grid = np.linspace(given[0], given[-1], points)
            table = _solve_continuous(a, b, c, weights, given, z, grid)
            step = float(grid[1] - grid[0])
        else:
            if given.shape != (1,):
                raise DiagramError(
                    "with a period `times` is the time of the first row alone; the others follow."
                )
            table, step = _solve_sampled(a, b, c, weights, z), period
        self.table = table
        super().__init__(
            inputs=[Port("state", len(a), doc="x, or its estimate")],
            outputs=[Port("y", b.shape[1], unit=unit, doc="u, to the plant")],
            parameters=[
                parameter("begin", given[0], unit="s", doc="first time of the tables"),
                parameter("interval", step, unit="s", doc="between two rows", tunable=False),
                parameter("table", table, tunable=False, hidden=True),
            ],
            rate=periodic(period, 0.0, CONTINUOUS),
            integers=make_record(
                contract.TRACKING_INTEGERS,
                {
                    contract.TRACKING_ROWS: len(table),
                    contract.TRACKING_SLOPES: int(period is None),
                },
            ),
        )


def _solve_sampled(a: Array, b: Array, c: Array, weights: tuple[Array, ...], z: Array) -> Array:
    """Return [K, p] of each sample: Bellman's principle, from the last sample back."""
    q, r, f = weights
    S, g = c.T @ f @ c, c.T @ f @ z[-1]
    rows = []
    for target in z[-2::-1]:
        curvature = r + b.T @ S @ b
        K = -np.linalg.solve(curvature, b.T @ S @ a)
        p = np.linalg.solve(curvature, b.T @ g)
        closed = a + b @ K
        rows.append(np.column_stack([K, p]))
        S, g = c.T @ q @ c + a.T @ S @ closed, c.T @ q @ target + closed.T @ g
        S = 0.5 * (S + S.T)
    rows.reverse()
    rows.append(np.zeros_like(rows[0]))  # nothing is gained by acting at the last instant
    return np.stack(rows)


def _solve_continuous(
    a: Array, b: Array, c: Array, weights: tuple[Array, ...], times: Array, z: Array, grid: Array
) -> Array:
    """Return [K, p] and their rates of change at each point of the grid.

    x and λ = S x - g follow a linear system, Pontryagin's, driven by z; between corners of z its
    solution is an exponential. Taken back over a step for any x at its end, it gives S and g at its
    beginning from those at its end.
    """
    q, r, f = weights
    gain = np.linalg.solve(r, b.T)  # R⁻¹ Bᵀ
    nodes = np.union1d(grid, times)
    targets = np.stack([np.interp(nodes, times, column) for column in z.T], axis=1)
    flow = _Flow(a, b @ gain, c, q)
    S, g = c.T @ f @ c, c.T @ f @ z[-1]
    rows = {nodes[-1]: (S, g, targets[-1])}
    for k in range(len(nodes) - 2, -1, -1):
        span = nodes[k + 1] - nodes[k]
        slope = (targets[k + 1] - targets[k]) / span
        S, g = flow.go_back(S, g, targets[k + 1], slope, span)
        rows[nodes[k]] = (S, g, targets[k])
    table = []
    for S, g, target in (rows[t] for t in grid):
        dS = -(S @ a + a.T @ S - S @ b @ gain @ S + c.T @ q @ c)
        dg = -((a - b @ gain @ S).T @ g + c.T @ q @ target)
        table.append([np.column_stack([-gain @ m, gain @ v]) for m, v in ((S, g), (dS, dg))])
    return np.array(table)


class _Flow:
    """The way of x, λ, z and dz/dt backwards in time."""

    def __init__(self, a: Array, push: Array, c: Array, q: Array) -> None:
        n, m = len(a), len(c)
        self.n = n
        self.rate = np.zeros((2 * n + 2 * m, 2 * n + 2 * m))
        self.rate[:n, : 2 * n] = np.hstack([a, -push])
        self.rate[n : 2 * n, : 2 * n + m] = np.hstack([-c.T @ q @ c, -a.T, c.T @ q])
        self.rate[2 * n : 2 * n + m, 2 * n + m :] = np.eye(m)
        self.fast = float(np.abs(np.linalg.eigvals(self.rate)).max())
        self.known: dict[float, Array] = {}

    def go_back(
        self, S: Array, g: Array, z: Array, slope: Array, span: float
    ) -> tuple[Array, Array]:
        """Return S and g a span of time earlier."""
        from scipy.linalg import expm

        n = self.n
        # Long steps are divided: modes that decay in one direction of time grow in the other.
        count = max(1, int(np.ceil(self.fast * span)))
        h = float(f"{span / count:.12e}")  # evenly spaced times differ by rounding: one exponential
        if h not in self.known:
            self.known[h] = expm(-h * self.rate)
        back = self.known[h]
        for number in range(count):
            driven = back[: 2 * n, 2 * n :] @ np.concatenate([z - number * h * slope, slope])
            x = back[:n, :n] + back[:n, n : 2 * n] @ S
            costate = back[n : 2 * n, :n] + back[n : 2 * n, n : 2 * n] @ S
            x_free = driven[:n] - back[:n, n : 2 * n] @ g
            costate_free = driven[n:] - back[n : 2 * n, n : 2 * n] @ g
            quotient = np.linalg.solve(x.T, costate.T)
            S = 0.5 * np.asarray(quotient + quotient.T)
            g = S @ x_free - costate_free
        return S, g
