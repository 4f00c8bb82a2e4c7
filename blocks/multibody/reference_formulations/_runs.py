"""Fixed-step runs of a system with any method."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ....errors import DiagramError, FormulationError
from ...core._vectors import require_choice
from ..equations._assembly import assemble, consistent_velocity
from ..equations._euler_parameters import EulerModel
from ..equations._model import AbstractModel, Equations, Model
from ..equations._planar import PlanarModel
from ..equations._projections import project_position, project_velocity
from ..system._rotations import Array
from . import _augmented_lagrangian as augmented_lagrangian
from . import _baumgarte as baumgarte
from . import _index3 as index3
from . import _kkt as kkt
from . import _null_space as null_space
from . import _partitioning as partitioning
from . import _penalty as penalty
from . import _qtz as qtz
from . import _udwadia_kalaba as udwadia_kalaba
from ._natural import NaturalModel

if TYPE_CHECKING:
    from ..system._system import System

Method = Callable[..., tuple[Array, Array]]
Coordinates = Literal["natural", "euler"]
Integrator = Literal["semi-implicit", "position-first", "explicit", "rk4"]
Projection = Literal["none", "position", "both", "partition"]

METHODS: dict[str, Method] = {
    "kkt": kkt.accelerations,
    "baumgarte": baumgarte.accelerations,
    "penalty": penalty.accelerations,
    "augmented lagrangian": augmented_lagrangian.accelerations,
    "partitioning lu": partial(partitioning.accelerations, by="lu"),
    "partitioning gauss-jordan": partial(partitioning.accelerations, by="gauss-jordan"),
    "partitioning qr": partial(partitioning.accelerations, by="qr"),
    "null space svd": partial(null_space.accelerations, by="svd"),
    "null space qr": partial(null_space.accelerations, by="qr"),
    "udwadia-kalaba svd": partial(udwadia_kalaba.accelerations, by="svd"),
    "udwadia-kalaba greville": partial(udwadia_kalaba.accelerations, by="greville"),
    "udwadia-kalaba varga": partial(udwadia_kalaba.accelerations, by="varga"),
    "udwadia-kalaba householder": partial(udwadia_kalaba.accelerations, by="householder"),
    "udwadia-kalaba gram-schmidt": partial(udwadia_kalaba.accelerations, by="gram-schmidt"),
    "qtz": qtz.accelerations,
}
"""Every method by name: ``accelerations(model, t, q, v, memory, **options) -> (q̈, λ)``."""

INDEX_3 = "augmented lagrangian index 3"
QTZ_INDEPENDENT = "qtz independent"
STEPPERS: dict[str, Callable[..., tuple[Array, Array]]] = {
    INDEX_3: index3.step,
    QTZ_INDEPENDENT: qtz.independent_step,
}
"""Methods that are their own integrator: ``step(model, t, q, v, memory, h, **options)``."""

LIMIT = 0.1
"""A run fails where |Φ| exceeds this: a joint is 0.1 m off, or a unit vector 5 % too long."""


def make_model(system: System, coordinates: Coordinates = "natural") -> AbstractModel:
    """Return the equations of a system; a planar system has separate coordinates."""
    require_choice("coordinates", coordinates, ("natural", "euler"))
    if system.planar:
        return PlanarModel(system)
    return NaturalModel(system) if coordinates == "natural" else EulerModel(system)


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a run gave; arrays have one row for each step, the start among them.

    Attributes
    ----------
    times, q, v
        In s; coordinates and their rates.
    markers
        Positions in m by ``body.marker``.
    residual, rate_residual
        The largest |Φ| and |Φ̇| at each time.
    energy
        Energy balance in J: kinetic energy plus that of gravity, less the work that all other
        applied forces, drivers and moving markers have done since the start. It is constant for an
        exact solution, whatever drives the mechanism.
    cpu
        Processor time in s of the stepping alone.
    stable, reason
        Whether it reached its end with |Φ| within `LIMIT`, and what happened if not.
    memory
        Data stored by the method.
    """

    times: Array
    q: Array
    v: Array
    markers: dict[str, Array]
    residual: Array
    rate_residual: Array
    energy: Array
    cpu: float
    stable: bool
    reason: str
    memory: dict[str, Any]

    @property
    def error(self) -> float:
        """Return the largest |Φ| of the run."""
        return float(self.residual.max())

    @property
    def drift(self) -> float:
        """Return the energy error in J: the largest change of the energy balance."""
        return float(np.abs(self.energy - self.energy[0]).max())


def run(
    what: System | AbstractModel,
    method: str = "augmented lagrangian",
    *,
    step: float,
    until: float,
    coordinates: Coordinates = "natural",
    integrator: Integrator = "semi-implicit",
    projection: Projection = "none",
    options: Mapping[str, Any] | None = None,
    markers: Sequence[str] = (),
    start: tuple[Array, Array] | None = None,
) -> Run:
    """Run a system at a fixed step.

    Parameters
    ----------
    what
        A system, or a model of one.
    method
        A key of `METHODS`, or `INDEX_3` or `QTZ_INDEPENDENT`, which have their own integrators.
    step, until
        In s.
    coordinates
        Of the model of a spatial system.
    integrator
        ``"semi-implicit"``: v ← v + h q̈, q ← q + h v. ``"position-first"``: q ← q + h v, then v
        with q̈ at the new q; alike without projections, but see below. ``"explicit"``
        [P 3.59-3.60]: q ← q + h v + ½ h² q̈ with the old v. ``"rk4"``.
    projection
        After each step: none, positions, positions and velocities, or the dependent coordinates of
        a partition.
    options
        Of the method.
    markers
        To record, as ``body.marker``.
    start
        q and v to start from as they are; assembled and consistent ones if not given.

    Notes
    -----
    A point on a circle at ω has q̈ across v, so that v + h q̈ is longer than v by ½ h² ω² of it.
    The
    next steps of a semi-implicit run take that back, but not if velocities are projected in
    between: it gains speed as dω/dt = ½ h ω³ and runs away in finite time. Position first loses
    speed at that rate.
    """
    require_choice("method", method, (*METHODS, *STEPPERS))
    require_choice("integrator", integrator, tuple(_STEPS))
    require_choice("projection", projection, ("none", "position", "both", "partition"))
    if not step > 0 or not until >= step:
        raise DiagramError(f"a run needs step > 0 and until ≥ step, got {step!r} and {until!r}.")
    model = what if isinstance(what, AbstractModel) else make_model(what, coordinates)
    model.reset()
    if start is None:
        q = assemble(model)
        v, _ = consistent_velocity(model, 0.0, q)
    else:
        q, v = start[0].copy(), start[1].copy()
    memory: dict[str, Any] = {}
    chosen = partial({**METHODS, **STEPPERS}[method], **dict(options or {}))
    stepping = _Stepping(model, chosen, memory, projection in ("position", "both"), step)
    advance = _own_step if method in STEPPERS else _STEPS[integrator]
    steps = round(until / step)
    qs, vs = np.zeros((2, steps + 1, model.n))
    qs[0], vs[0] = q, v
    done, reason, began = 0, "", time.process_time()
    with np.errstate(all="ignore"):
        for k in range(steps):
            t = k * step
            try:
                q, v = advance(stepping, t, q, v)
                if projection == "partition":
                    q, v = partitioning.correct(model, t + step, q, v, memory)
                elif projection == "both":
                    v = project_velocity(model, t + step, q, v)
            except (FormulationError, np.linalg.LinAlgError, ValueError) as error:
                reason = f"t = {t:g} s: {error}"
                break
            if not (np.isfinite(q).all() and np.isfinite(v).all() and np.abs(q).max() < 1e6):
                reason = f"t = {t:g} s: it left all bounds"
                break
            done = k + 1
            qs[done], vs[done] = q, v
        cpu = time.process_time() - began
        return _rate(model, step, qs[: done + 1], vs[: done + 1], markers, cpu, reason, memory)


def _rate(
    model: AbstractModel,
    step: float,
    qs: Array,
    vs: Array,
    markers: Sequence[str],
    cpu: float,
    reason: str,
    memory: dict[str, Any],
) -> Run:
    """Measure a run after it, so that no measuring is in its time."""
    model.reset()
    times: Array = np.arange(len(qs), dtype=np.float64) * step
    residual, rate, energy, power = np.zeros((4, len(qs)))
    for k, (t, q, v) in enumerate(zip(times, qs, vs, strict=True)):
        e = model.evaluate(float(t), q, v)
        residual[k] = np.abs(e.phi).max(initial=0.0)
        rate[k] = np.abs(e.rate).max(initial=0.0)
        energy[k], power[k] = model.energy(q, v), e.power + _driving_power(e)
    # Simpson over pairs of steps would ask for an even count: the trapezium with its end correction
    # from differences is of the same order, and takes any.
    work = np.concatenate([[0.0], np.cumsum(0.5 * step * (power[1:] + power[:-1]))])
    if len(qs) > 2:
        slope = np.gradient(power, step, edge_order=2)
        work -= step**2 / 12.0 * (slope - slope[0])
    far = np.flatnonzero(residual > LIMIT)
    if not reason and far.size:
        reason = f"t = {times[far[0]]:g} s: |Φ| exceeds {LIMIT:g}"
    recorded = {
        path: np.array([model.marker(path, float(t), q) for t, q in zip(times, qs, strict=True)])
        for path in markers
    }
    return Run(
        times, qs, vs, recorded, residual, rate, energy - work, cpu, not reason, reason, memory
    )


def _driving_power(e: Equations) -> float:
    """Return λ · Φ_t in W, the power of drivers and of markers that joints make bodies follow.

    λ is the one of least norm: where rows are redundant λ is not unique, but λ · Φ_t is.
    """
    if not e.phi_t.any():
        return 0.0
    n, m = e.mass.shape[0], e.jacobian.shape[0]
    scale = float(np.abs(np.diag(e.mass)).mean())
    matrix = np.zeros((n + m, n + m))
    matrix[:n, :n] = e.mass
    matrix[n:, :n] = scale * e.jacobian
    matrix[:n, n:] = matrix[n:, :n].T
    right = np.concatenate([e.force, scale * e.gamma])
    try:
        solution = np.linalg.lstsq(matrix, right, rcond=1e-12)[0]
    except np.linalg.LinAlgError:  # of a run that went to infinity
        return float("nan")
    return float(scale * solution[n:] @ e.phi_t)


@dataclass(frozen=True, slots=True, eq=False)
class _Stepping:
    """What all integrators step: q̈ of a method, and how positions are closed, if at all."""

    model: Model
    method: Method
    memory: dict[str, Any]
    closes: bool
    h: float

    def accelerate(self, t: float, q: Array, v: Array) -> Array:
        return self.method(self.model, t, q, v, self.memory)[0]

    def close(self, t: float, q: Array, v: Array) -> Array:
        return project_position(self.model, t, q, v) if self.closes else q


def _semi_implicit(s: _Stepping, t: float, q: Array, v: Array) -> tuple[Array, Array]:
    v = v + s.h * s.accelerate(t, q, v)
    return s.close(t + s.h, q + s.h * v, v), v


def _position_first(s: _Stepping, t: float, q: Array, v: Array) -> tuple[Array, Array]:
    q = s.close(t + s.h, q + s.h * v, v)
    return q, v + s.h * s.accelerate(t + s.h, q, v)


def _explicit(s: _Stepping, t: float, q: Array, v: Array) -> tuple[Array, Array]:
    qdd = s.accelerate(t, q, v)
    return s.close(t + s.h, q + s.h * v + 0.5 * s.h * s.h * qdd, v), v + s.h * qdd


def _rk4(s: _Stepping, t: float, q: Array, v: Array) -> tuple[Array, Array]:
    h = s.h
    a1 = s.accelerate(t, q, v)
    v2 = v + 0.5 * h * a1
    a2 = s.accelerate(t + 0.5 * h, q + 0.5 * h * v, v2)
    v3 = v + 0.5 * h * a2
    a3 = s.accelerate(t + 0.5 * h, q + 0.5 * h * v2, v3)
    v4 = v + h * a3
    a4 = s.accelerate(t + h, q + h * v3, v4)
    return (
        s.close(t + h, q + h / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4), v4),
        v + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4),
    )


def _own_step(s: _Stepping, t: float, q: Array, v: Array) -> tuple[Array, Array]:
    q, v = s.method(s.model, t, q, v, s.memory, s.h)
    return s.close(t + s.h, q, v), v


_STEPS = {
    "semi-implicit": _semi_implicit,
    "position-first": _position_first,
    "explicit": _explicit,
    "rk4": _rk4,
}
