"""Optimal tracking of a reference that is known in advance, with a quadratic cost."""

from __future__ import annotations

import numpy as np

from ... import _contract as contract
from ...errors import DiagramError
from ..core._block import NativeBlock
from ..core._ports import CONTINUOUS, Matrix, Numbers, Port, number, parameter, periodic
from ..core._vectors import make_record, require_whole
from ._design import check_weight
from ._tracking_design import TrackingData, Varying, solve_continuous, solve_sampled

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

    A, B, C, Q, R may be functions of t in s, as of a plant linearized along a motion; the two
    equations are then integrated backwards with error control [A.4].

    Parameters
    ----------
    A, B, C
        Matrices of the plant, or functions of t that return them.
    times
        Of the reference, in seconds, rising. With a period: of the first row only, one number.
    reference
        z: for each time a row of as many values as C has rows; on straight lines between them.
    Q, R
        Weights of the error and of the input: a number, the diagonal, the matrix, or a function of
        t that returns one of these.
    final
        F, in the same ways but constant; 0 if not given.
    drift
        w of a plant dx/dt = A x + B u + w, or x[n+1] = A x + B u + w with a period, such as weight:
        a vector or a function of t.
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
        A: Matrix | Varying,
        B: Matrix | Varying,
        C: Matrix | Varying,
        times: Numbers,
        reference: Matrix,
        *,
        Q: Matrix | Varying,
        R: Matrix | Varying,
        final: Matrix = 0.0,
        drift: Numbers | Varying | None = None,
        points: int = 501,
        unit: str | None = None,
        period: float | None = None,
    ) -> None:
        given = np.atleast_1d(parameter("times", times).value)
        data = TrackingData(A, B, C, Q, R, drift)
        a, b, c, *_ = data.check(float(given.flat[0]))
        last = check_weight("final", final, len(c))
        z = parameter("reference", reference).value
        z = z.reshape(-1, 1) if z.ndim < 2 and len(c) == 1 else z
        if z.ndim != 2 or len(z) < 2 or z.shape[1] != len(c):
            raise DiagramError(
                f"`reference` has a row for each of at least two times, with {len(c)} values, as "
                f"many as C has rows; got shape {z.shape}."
            )
        if period is None:
            points = require_whole("points", points, 2, _MOST_POINTS)
            if given.shape != (len(z),) or not (np.diff(given) > 0).all():
                raise DiagramError(
                    f"`times` are {len(z)} rising numbers, one for each row of the reference; got "
                    f"{given.size} numbers{'' if given.size != len(z) else ' that do not rise'}."
                )
            grid = np.linspace(given[0], given[-1], points)
            table = solve_continuous(data, last, given, z, grid)
            step = float(grid[1] - grid[0])
        else:
            if given.shape != (1,):
                raise DiagramError(
                    "with a period `times` is the time of the first row alone; the others follow."
                )
            step = number("period", period)
            table = solve_sampled(data, last, float(given[0]), step, z)
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
