"""State estimation from measurements."""

from __future__ import annotations

from typing import Any, Literal, Self, cast

import numpy as np
import numpy.typing as npt

from ... import _contract as contract
from ...errors import DiagramError
from ..basic.dynamics._realization import Realization, check_matrices
from ..core._block import NativeBlock
from ..core._ports import CONTINUOUS, SAMPLED, Matrix, Numbers, Parameter, Port, parameter, periodic
from ..core._vectors import make_record, require_choice
from ._design import Model, check_weight, dlqe, drive, lqe

_FORMS = ("prediction", "update")


class KalmanFilter(NativeBlock):
    """A Kalman filter: the state of a plant, estimated from its measurements.

    Sampled, for x[n+1] = A x + B u + w and y = C x + D u + v, with white noises w and v of the
    covariances Q and R::

        innovation = y - C x̂[n|n-1] - D u
        x̂[n|n] = x̂[n|n-1] + L innovation,  x̂[n+1|n] = A x̂[n|n] + B u

    L is the steady gain of `dlqe`; or, with `covariance`, that which is best at each sample, from
    P[n+1|n] = A P[n|n] Aᵀ + Q. Continuous, for dx/dt = A x + B u + w with densities Q and R and the
    steady gain of `lqe`::

        dx̂/dt = A x̂ + B u + L (y - C x̂ - D u)

    The attribute ``design`` of a filter with a steady gain is the result of `dlqe` or `lqe`. All
    matrices are fixed in a run.

    Parameters
    ----------
    A, B, C, D
        Matrices of the plant. Without B the block has no input ``control``. For a model of
        `linearize` use ``KalmanFilter.of(model, Q, R)``.
    Q, R
        Of the noises: a number for all, the diagonal, or the matrix. R is positive definite.
    G
        How w enters the state, as G w; by default each state has its own.
    form
        Output of a sampled filter: ``"update"``, x̂[n|n], which includes the newest measurement, or
        ``"prediction"``, x̂[n|n-1], without direct feedthrough.
    initial
        x̂ at the start: a number for all, or a vector.
    covariance
        P of the estimate at the start: a number, the diagonal, or the matrix. Makes the gain vary,
        and adds an output ``covariance``, row by row.
    continuous
        Whether the plant and the filter are. The form does not matter then.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    """

    kernel = "kalman_filter"
    smooth_memory = True
    designs_with_period = True

    def __init__(
        self,
        A: Matrix,
        B: Matrix | None,
        C: Matrix,
        D: Matrix | None = None,
        *,
        Q: Matrix,
        R: Matrix,
        G: Matrix | None = None,
        form: Literal["update", "prediction"] = "update",
        initial: Numbers = 0.0,
        covariance: Matrix | None = None,
        continuous: bool = False,
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        steered = B is not None
        rows = len(np.atleast_2d(np.asarray(A)))
        system = check_matrices(A, np.zeros(rows) if B is None else B, C, D)
        states, measured = len(system.A), len(system.C)
        updated = bool(require_choice("form", form, _FORMS)) and not continuous
        direct = steered and bool(system.D.any())
        if covariance is not None and continuous:
            raise DiagramError("a filter with a varying gain is sampled: leave out `continuous`.")
        if continuous and (period is not None or offset):
            raise DiagramError("a continuous filter has no period: leave one of them out.")
        if covariance is None:
            self.design = (lqe if continuous else dlqe)(
                system.A,
                system.C,
                cast(npt.ArrayLike, Q),
                cast(npt.ArrayLike, R),
                cast(npt.ArrayLike | None, G),
            )
            filtering = [_fixed("L", self.design.L, "gain of the innovation")]
        else:
            filtering = _varying(system, Q, R, G, covariance)
        start = parameter("initial", initial).value
        if start.ndim > 1 or start.size not in (1, states):
            raise DiagramError(f"`initial` is a number or {states} numbers, got {initial!r}.")
        kernel = "kalman_bucy" if continuous else None
        inputs = [Port("measurement", measured, doc="y")]
        outputs = [
            Port("state", states, doc="the estimate x̂"),
            Port("innovation", measured, doc="measurement minus its prediction"),
        ]
        if steered:
            inputs.append(Port("control", system.B.shape[1], doc="u, as it acts on the plant"))
        if covariance is not None:
            outputs.append(Port("covariance", states * states, doc="P of the estimate's error"))
        shown = ["innovation"] + ["state"] * updated
        acting = ["measurement"] + ["control"] * direct
        super().__init__(
            inputs=inputs,
            outputs=outputs,
            parameters=[
                *_describe(system, steered, direct),
                *filtering,
                _fixed("initial", np.broadcast_to(start, states), "estimate at the start"),
            ],
            rate=CONTINUOUS if continuous else periodic(period, offset, SAMPLED),
            feedthrough=[(output, name) for output in shown for name in acting],
            states=states if continuous else 0,
            integers=make_record(
                contract.OBSERVER_INTEGERS,
                {
                    contract.OBSERVER_UPDATED: int(updated),
                    contract.OBSERVER_DIRECT: int(direct),
                },
            ),
            kernel="kalman_varying" if covariance is not None else kernel,
        )

    @classmethod
    def of(cls, model: Model, Q: Matrix, R: Matrix, **options: Any) -> Self:
        """Return the filter of a model of `linearize`, sampled or continuous as the model is."""
        if model.dt is None:
            options["continuous"] = True
        else:
            options.setdefault("period", model.dt)
        A, B, C, D = (np.asarray(one, float) for one in (model.A, model.B, model.C, model.D))
        return cls(A, B, C, D, Q=Q, R=R, **options)


def _fixed(name: str, value: Any, doc: str, hidden: bool = False) -> Parameter:
    return parameter(name, value, doc=doc, tunable=False, hidden=hidden)


def _describe(system: Realization, steered: bool, direct: bool) -> list[Parameter]:
    chosen = {"A": True, "B": steered, "C": True, "D": direct}
    return [
        _fixed(name, matrix, f"matrix {name} of the plant")
        for name, matrix in zip("ABCD", system, strict=True)
        if chosen[name]
    ]


def _varying(system: Realization, Q: Any, R: Any, G: Any, covariance: Any) -> list[Parameter]:
    """Return what a filter with a varying gain needs; W R Wᵀ = 1 makes measurements independent."""
    from scipy.linalg import solve_triangular

    states, measured = len(system.A), len(system.C)
    driven = drive(Q, G, states)
    root = np.linalg.cholesky(check_weight("R", R, measured, positive=True))
    white = solve_triangular(root, np.eye(measured), lower=True)
    return [
        _fixed("white", white, "", hidden=True),
        _fixed("seen", white @ system.C, "", hidden=True),
        _fixed("Q", driven, "covariance of the process noise"),
        _fixed(
            "initial_covariance", check_weight("covariance", covariance, states), "P at the start"
        ),
    ]
