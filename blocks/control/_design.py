"""Design by Riccati equations: regulators, estimators, and both together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, overload

import numpy as np
import numpy.typing as npt

from ...errors import DiagramError, name_list, suggest
from ..basic.dynamics._linear import DiscreteStateSpace, StateSpace
from ..core._ports import parameter

Array = npt.NDArray[np.float64]

_ALONE = 1e-8
"""Relative tolerance below which a mode counts as uncontrollable (PBH test)."""
_SCALING = (
    "The matrices may be badly scaled: use units in which states and inputs have like sizes, and "
    "weights that differ less."
)


class Model(Protocol):
    """A state space: a `LinearModel` of `linearize`, or ``scipy.signal.StateSpace``.

    It is discrete if ``dt`` is a period in seconds, continuous if ``dt`` is None.
    """

    @property
    def A(self) -> npt.ArrayLike: ...
    @property
    def B(self) -> npt.ArrayLike: ...
    @property
    def C(self) -> npt.ArrayLike: ...
    @property
    def D(self) -> npt.ArrayLike: ...
    @property
    def dt(self) -> float | None: ...


class Regulator(NamedTuple):
    """State feedback u = -K x that minimizes a quadratic cost.

    Attributes
    ----------
    K
        Gain matrix: a row for each input, a column for each state.
    S
        Solution of the Riccati equation: the cost-to-go from x is xᵀ S x.
    poles
        Poles of the closed loop, in rad/s, or in the z-plane.
    """

    K: Array
    S: Array
    poles: npt.NDArray[np.inexact[Any]]


class Estimator(NamedTuple):
    """The steady Kalman filter of a plant.

    Attributes
    ----------
    L
        A row for each state, a column for each measurement: the effect of a unit innovation on the
        rate of the estimate; if sampled, on the estimate of the same instant, before prediction.
    P
        Covariance of the error of the estimate; if sampled, before the measurement.
    poles
        Poles of the estimation error, in rad/s, or in the z-plane.
    """

    L: Array
    P: Array
    poles: npt.NDArray[np.inexact[Any]]


@overload
def lqr(
    A: npt.ArrayLike,
    B: npt.ArrayLike,
    Q: npt.ArrayLike,
    R: npt.ArrayLike,
    N: npt.ArrayLike | None = None,
) -> Regulator: ...
@overload
def lqr(
    model: Model, Q: npt.ArrayLike, R: npt.ArrayLike, N: npt.ArrayLike | None = None
) -> Regulator: ...
def lqr(*plant: Model | npt.ArrayLike | None, **weights: Model | npt.ArrayLike | None) -> Regulator:
    """Return u = -K x for dx/dt = A x + B u with the least ∫ xᵀ Q x + uᵀ R u + 2 xᵀ N u dt.

    ``lqr(A, B, Q, R, N=None)``, or ``lqr(model, Q, R, N=None)`` with a continuous model of
    `linearize`. All may be given by keyword.

    Raises
    ------
    DiagramError
        If no stable loop has the least cost: a mode that B does not reach and that does not decay,
        or one on the border of stability that costs nothing. The message names the mode.
    """
    return _regulate("lqr", plant, weights, sampled=False)


@overload
def dlqr(
    A: npt.ArrayLike,
    B: npt.ArrayLike,
    Q: npt.ArrayLike,
    R: npt.ArrayLike,
    N: npt.ArrayLike | None = None,
) -> Regulator: ...
@overload
def dlqr(
    model: Model, Q: npt.ArrayLike, R: npt.ArrayLike, N: npt.ArrayLike | None = None
) -> Regulator: ...
def dlqr(
    *plant: Model | npt.ArrayLike | None, **weights: Model | npt.ArrayLike | None
) -> Regulator:
    """Return u[n] = -K x[n] for x[n+1] = A x[n] + B u[n] with the least Σ xᵀQx + uᵀRu + 2 xᵀNu.

    ``dlqr(A, B, Q, R, N=None)``, or ``dlqr(model, Q, R, N=None)`` with a model of `linearize` for a
    period. All may be given by keyword. Raises as `lqr` does.
    """
    return _regulate("dlqr", plant, weights, sampled=True)


@overload
def lqe(
    A: npt.ArrayLike,
    C: npt.ArrayLike,
    Q: npt.ArrayLike,
    R: npt.ArrayLike,
    G: npt.ArrayLike | None = None,
) -> Estimator: ...
@overload
def lqe(
    model: Model, Q: npt.ArrayLike, R: npt.ArrayLike, G: npt.ArrayLike | None = None
) -> Estimator: ...
def lqe(*plant: Model | npt.ArrayLike | None, **weights: Model | npt.ArrayLike | None) -> Estimator:
    """Return the Kalman-Bucy filter of dx/dt = A x + B u + G w, y = C x + D u + v.

    ``lqe(A, C, Q, R, G=None)`` or ``lqe(model, Q, R, G=None)``: `Q` and `R` are the two-sided
    densities of the white noises w and v; G is the identity if not given. All may be given by
    keyword.

    Raises
    ------
    DiagramError
        If no stable filter exists: C does not see a mode that does not decay, or no noise drives
        one that neither grows nor decays.
    """
    return _estimate("lqe", plant, weights, sampled=False)


@overload
def dlqe(
    A: npt.ArrayLike,
    C: npt.ArrayLike,
    Q: npt.ArrayLike,
    R: npt.ArrayLike,
    G: npt.ArrayLike | None = None,
) -> Estimator: ...
@overload
def dlqe(
    model: Model, Q: npt.ArrayLike, R: npt.ArrayLike, G: npt.ArrayLike | None = None
) -> Estimator: ...
def dlqe(
    *plant: Model | npt.ArrayLike | None, **weights: Model | npt.ArrayLike | None
) -> Estimator:
    """Return the steady Kalman filter of x[n+1] = A x[n] + B u[n] + G w[n], y = C x + D u + v.

    ``dlqe(A, C, Q, R, G=None)`` or ``dlqe(model, Q, R, G=None)``: `Q` and `R` are the covariances
    of w and v; G is the identity if not given. All may be given by keyword. Raises as `lqe` does.
    """
    return _estimate("dlqe", plant, weights, sampled=True)


@dataclass(frozen=True, slots=True, eq=False)
class LQG:
    """A regulator on the estimate of a Kalman filter: what `lqg` gives.

    Attributes
    ----------
    model
        The plant.
    regulator, estimator
        Its two halves.
    """

    model: Model
    regulator: Regulator
    estimator: Estimator

    def block(
        self, *, unit: str | None = None, offset: float = 0.0
    ) -> StateSpace | DiscreteStateSpace:
        """Return the controller as one block, from the measurements to the inputs of the plant.

        A sampled controller has direct feedthrough from y to u. It has no output limits: if the
        actuator saturates, wire a `KalmanFilter`, whose input is the saturated signal, and a
        `StateFeedback`.
        """
        A, B, C, D = (
            np.atleast_2d(m) for m in (self.model.A, self.model.B, self.model.C, self.model.D)
        )
        K, L = self.regulator.K, self.estimator.L
        size = len(A)
        if not _is_sampled(self.model):
            # dx̂/dt = A x̂ + B u + L (y - C x̂ - D u), u = -K x̂
            return StateSpace(A - B @ K - L @ (C - D @ K), L, -K, unit=unit)
        # x̂[n|n] = x̂ + L (y - C x̂ - D u) and u = -K x̂[n|n]: with D, two coupled equations.
        step = np.linalg.inv(np.eye(size) - L @ D @ K)
        now, seen = step @ (np.eye(size) - L @ C), step @ L
        ahead = A - B @ K
        return DiscreteStateSpace(
            ahead @ now, ahead @ seen, -K @ now, -K @ seen,
            period=self.model.dt, offset=offset, unit=unit,
        )  # fmt: skip


def lqg(
    model: Model,
    Q: npt.ArrayLike,
    R: npt.ArrayLike,
    process: npt.ArrayLike,
    noise: npt.ArrayLike,
    *,
    G: npt.ArrayLike | None = None,
) -> LQG:
    """Return the regulator with the least mean cost for a plant whose state is not measured.

    Parameters
    ----------
    model
        Model of `linearize`, or any state space with A, B, C, D and dt: continuous if dt is None.
    Q, R
        Weights of state and input, as in `lqr` and `dlqr`.
    process, noise
        Densities, or covariances if sampled, of the process noise and of the noise of its
        measurements, as in `lqe` and `dlqe`.
    G
        Input matrix of the process noise; the identity by default.
    """
    if _is_sampled(model):
        return LQG(model, dlqr(model, Q, R), dlqe(model, process, noise, G=G))
    return LQG(model, lqr(model, Q, R), lqe(model, process, noise, G=G))


def add_integral(
    A: npt.ArrayLike, B: npt.ArrayLike, C: npt.ArrayLike, period: float | None = None
) -> tuple[Array, Array]:
    """Return A and B of a plant with ξ, the integral of r - C x, after its states, for r = 0.

    ``lqr`` of these gives the gains [K, Ki] of a `StateFeedback` with integral action. With a
    period, A and B are those of the sampled plant and ξ[n+1] = ξ[n] + period (r - C x[n]).
    """
    a, b = _plant("add_integral", A, B)
    c = _matrix("C", C)
    if c.shape[1] != len(a):
        raise DiagramError(f"C needs {len(a)} columns, as many as A, got shape {c.shape}.")
    size, count = len(a), len(c)
    full = np.zeros((size + count, size + count))
    full[:size, :size] = a
    full[size:, :size] = -c if period is None else -period * c
    if period is not None:
        full[size:, size:] = np.eye(count)
    return full, np.vstack([b, np.zeros((count, b.shape[1]))])


def _regulate(
    name: str, plant: tuple[Any, ...], weights: Mapping[str, Any], sampled: bool
) -> Regulator:
    A, B, Q, R, N = _read_arguments(name, ("A", "B", "Q", "R", "N"), plant, weights, sampled)
    a, b = _plant(name, A, B)
    states, inputs = len(b), b.shape[1]
    q, r = check_weight("Q", Q, states, False), check_weight("R", R, inputs, True)
    s = np.zeros((states, inputs)) if N is None else _matrix("N", N)
    if s.shape != (states, inputs):
        raise DiagramError(
            f"N needs shape {(states, inputs)}: a row for each state, a column for each input; "
            f"got shape {s.shape}."
        )
    # With N the least cost at a state is xᵀ (Q - N R⁻¹ Nᵀ) x, with the input that N asks for.
    bare = q - s @ np.linalg.solve(r, s.T)
    _require_positive("Q - N R⁻¹ Nᵀ" if N is not None else "Q", bare, False)
    asked = a - b @ np.linalg.solve(r, s.T)

    def explain() -> None:
        _check_reach(a, b, sampled, _out_of_reach)
        _check_border(asked.T, bare, sampled, _costs_nothing)

    S = _solve(name, sampled, (a, b, q, r, s), explain)
    if sampled:
        K = np.linalg.solve(r + b.T @ S @ b, b.T @ S @ a + s.T)
    else:
        K = np.linalg.solve(r, b.T @ S + s.T)
    poles: npt.NDArray[Any] = np.linalg.eigvals(a - b @ K)
    _require_stable(name, a, poles, sampled, explain)
    return Regulator(np.asarray(K, np.float64), S, poles)


def _estimate(
    name: str, plant: tuple[Any, ...], weights: Mapping[str, Any], sampled: bool
) -> Estimator:
    A, C, Q, R, G = _read_arguments(name, ("A", "C", "Q", "R", "G"), plant, weights, sampled)
    a, c = _matrix("A", A), _matrix("C", C)
    if a.shape[0] != a.shape[1] or c.shape[1] != len(a):
        raise DiagramError(
            f"{name} needs a square A and a C with as many columns; got shapes {a.shape} and "
            f"{c.shape}."
        )
    driven = drive(Q, G, len(a))
    r = check_weight("R", R, len(c), True)
    poles: npt.NDArray[Any]

    def explain() -> None:
        _check_reach(a.T, c.T, sampled, _out_of_sight)
        _check_border(a, driven, sampled, _undisturbed)

    P = _solve(name, sampled, (a.T, c.T, driven, r, None), explain)
    if sampled:
        L = np.linalg.solve(c @ P @ c.T + r, c @ P).T
        poles = np.linalg.eigvals(a - a @ L @ c)
    else:
        L = np.linalg.solve(r, c @ P).T
        poles = np.linalg.eigvals(a - L @ c)
    _require_stable(name, a, poles, sampled, explain)
    return Estimator(np.asarray(L, np.float64), P, poles)


def _read_arguments(
    name: str,
    names: tuple[str, str, str, str, str],
    given: tuple[Any, ...],
    named: Mapping[str, Any],
    sampled: bool,
) -> tuple[Any, ...]:
    """Return the matrices that a design works on, from themselves or from a model.

    `names` are A, B or C, two weights, and one that may be left out.
    """
    first, second, *_ = names
    of_model = "model" in named or (bool(given) and hasattr(given[0], "A"))
    known = ("model", *names[2:]) if of_model else names
    usage = (
        f"{name}({', '.join(names[:4])}, {names[4]}=None), or {name}(model, Q, R, {names[4]}=None) "
        f"with a model of `linearize`"
    )
    for word in named:
        if word not in known:
            hint = suggest(word, known) or f" It has: {name_list(known)}."
            raise DiagramError(f"{name} has no argument `{word}` here.{hint} Write {usage}.")
    if len(given) > len(known):
        raise DiagramError(f"{name} takes {usage}; got {len(given)} arguments.")
    found = dict(zip(known, given, strict=False))
    if twice := [word for word in named if word in found]:
        raise DiagramError(f"{name} got `{twice[0]}` twice: by position and by keyword.")
    found.update(named)
    if missing := [word for word in known[:-1] if found.get(word) is None]:
        raise DiagramError(f"{name} lacks {name_list(missing)}: write {usage}.")
    if not of_model:
        return tuple(found.get(word) for word in names)
    model = found["model"]
    if not (hasattr(model, "A") and hasattr(model, second)):
        raise DiagramError(f"{name} needs a model with {first} and {second}, got {model!r}.")
    if _is_sampled(model) != sampled:
        raise DiagramError(
            f"{name} needs a {'sampled' if sampled else 'continuous'} model; this one is "
            + (
                "continuous: linearize with period=…, or use "
                if sampled
                else "sampled: linearize without a period, or use "
            )
            + (name[1:] if sampled else f"d{name}")
            + "."
        )
    return (model.A, getattr(model, second), *(found.get(word) for word in names[2:]))


def _is_sampled(model: Any) -> bool:
    """Whether a state space is discrete; python-control has ``dt = 0`` for continuous ones."""
    return getattr(model, "dt", None) not in (None, 0)


def _matrix(name: str, value: Any) -> Array:
    made = np.atleast_2d(parameter(name, value).value)
    if made.ndim != 2:
        raise DiagramError(f"{name} is a matrix, not of shape {made.shape}.")
    return made


def _plant(name: str, A: Any, B: Any) -> tuple[Array, Array]:
    a, b = _matrix("A", A), parameter("B", B).value
    b = b.reshape(-1, 1) if b.ndim < 2 else b
    if a.shape[0] != a.shape[1] or b.ndim != 2 or len(b) != len(a):
        raise DiagramError(
            f"{name} needs a square A and a B with as many rows; got shapes {a.shape} and "
            f"{b.shape}."
        )
    return a, b


def check_weight(name: str, value: Any, size: int, positive: bool = False) -> Array:
    """Return a symmetric matrix from a number, the diagonal, or the matrix."""
    made = parameter(name, value).value
    if made.ndim < 2:
        if made.ndim and made.size != size:
            raise DiagramError(f"{name} has {made.size} values on its diagonal, needs {size}.")
        made = np.diag(np.broadcast_to(made, size).astype(np.float64))
    if made.shape != (size, size):
        raise DiagramError(f"{name} must have shape {(size, size)}, got {made.shape}.")
    if not np.allclose(made, made.T, rtol=1e-9, atol=1e-12 * np.abs(made).max()):
        raise DiagramError(f"{name} must be symmetric.")
    made = 0.5 * (made + made.T)
    _require_positive(name, made, positive)
    return made


def drive(Q: Any, G: Any, states: int) -> Array:
    """Return G Q Gᵀ: what noise of covariance Q does to the states. G is the identity if None."""
    g = np.eye(states) if G is None else parameter("G", G).value
    g = g.reshape(-1, 1) if g.ndim < 2 else g
    if g.ndim != 2 or len(g) != states:
        raise DiagramError(f"G needs {states} rows, as many as A, got shape {g.shape}.")
    made: Array = g @ check_weight("Q", Q, g.shape[1]) @ g.T
    return made


def _require_positive(name: str, matrix: Array, strictly: bool) -> None:
    values = np.linalg.eigvalsh(matrix)
    smallest, slack = float(values[0]), 1e-12 * float(np.abs(values).max())
    if strictly and not smallest > slack:
        raise DiagramError(
            f"{name} must be positive definite: its smallest eigenvalue is {smallest:g}. Every "
            f"direction needs a positive weight, however small."
        )
    if smallest < -slack:
        raise DiagramError(
            f"{name} must not be negative in any direction: its smallest eigenvalue is "
            f"{smallest:g}."
        )


def _growth(values: npt.NDArray[Any], sampled: bool) -> Array:
    """Return how far outside of stability each eigenvalue is; 0 is the border."""
    return np.abs(values) - 1.0 if sampled else np.real(values)


def _border(a: Array, sampled: bool) -> float:
    """Return how far from the border rounding can put an eigenvalue that lies on it."""
    return 1e-8 * max(1.0 if sampled else 0.0, float(np.linalg.norm(a)))


def _solve(
    name: str, sampled: bool, matrices: tuple[Any, ...], explain: Callable[[], None]
) -> Array:
    """Return the stabilizing solution of a Riccati equation, or raise with the reason."""
    from scipy.linalg import solve_continuous_are, solve_discrete_are

    *given, cross = matrices
    try:
        solution = (solve_discrete_are if sampled else solve_continuous_are)(*given, s=cross)
    except (np.linalg.LinAlgError, ValueError) as error:
        explain()
        raise DiagramError(
            f"{name}: the Riccati equation was not solved ({error}). {_SCALING}"
        ) from None
    return np.asarray(solution, dtype=np.float64)


def _require_stable(
    name: str, a: Array, poles: npt.NDArray[Any], sampled: bool, explain: Callable[[], None]
) -> None:
    growth = _growth(poles, sampled)
    if growth.max() < -_border(a, sampled):
        return
    explain()
    if not growth.max() < 0:
        worst = complex(poles[np.argmax(growth)])
        raise DiagramError(
            f"{name}: the design is not stable, with a pole at {_show(worst)}. {_SCALING}"
        )


def _check_reach(a: Array, b: Array, sampled: bool, complain: Callable[[str], str]) -> None:
    """Raise if an undamped or unstable mode of a is not controllable from b."""
    values = np.linalg.eigvals(a)
    for value, growth in zip(values, _growth(values, sampled), strict=True):
        if growth >= -_border(a, sampled):
            _check_mode(a, b, value, sampled, complain)


def _check_border(a: Array, weight: Array, sampled: bool, complain: Callable[[str], str]) -> None:
    """Raise if a mode of a on the stability boundary is not excited through `weight`."""
    values = np.linalg.eigvals(a)
    for value, growth in zip(values, _growth(values, sampled), strict=True):
        if abs(growth) <= _border(a, sampled):
            _check_mode(a, weight, value, sampled, complain)


def _check_mode(
    a: Array, b: Array, value: complex, sampled: bool, complain: Callable[[str], str]
) -> None:
    """Raise if [s - a, b] loses rank (Popov-Belevitch-Hautus test): mode s is uncontrollable."""
    size = _size(a)
    pencil = np.hstack([value * np.eye(len(a)) - a, b * size / _size(b)])
    left, singular, _ = np.linalg.svd(pencil)
    if singular[-1] <= _ALONE * size:
        raise DiagramError(complain(_name_mode(value, left[:, -1], sampled)))


def _size(matrix: Array) -> float:
    return float(np.linalg.norm(matrix)) or 1.0


def _show(value: complex) -> str:
    imaginary = f"{value.imag:+.4g}j" if abs(value.imag) > 1e-6 * abs(value) else ""
    return f"{value.real:.4g}{imaginary}"


def _name_mode(value: complex, shape: npt.NDArray[Any], sampled: bool) -> str:
    """Return a label of a mode: its eigenvalue and the states of largest participation."""
    parts = np.abs(shape) / np.abs(shape).max()
    states = [str(k + 1) for k in np.flatnonzero(parts > 0.1)]
    where = "states " + ", ".join(states) if len(states) > 1 else f"state {states[0]}"
    return f"the mode {'z' if sampled else 's'} = {_show(value)} (mainly {where})"


def _out_of_reach(mode: str) -> str:
    return (
        f"no input reaches {mode}, which does not decay by itself, so no feedback makes the loop "
        f"stable. Add an actuator that moves it, or leave it out of the model."
    )


def _costs_nothing(mode: str) -> str:
    return (
        f"{mode} lies on the border of stability and costs nothing in Q, so the least cost is to "
        f"leave it there: the Riccati equation has no stabilizing solution. Give it some weight."
    )


def _out_of_sight(mode: str) -> str:
    return (
        f"no measurement shows {mode}, which does not decay by itself, so its estimate would never "
        f"settle. Measure something that it moves, or leave it out of the model."
    )


def _undisturbed(mode: str) -> str:
    return (
        f"{mode} lies on the border of stability and no noise drives it, so the filter would end "
        f"by not correcting it: the Riccati equation has no stabilizing solution. Give it some "
        f"noise."
    )
