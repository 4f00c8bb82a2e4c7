"""Comparing a run, in windows, with a shadow that takes half steps: `ErrorEstimate`."""

from __future__ import annotations

import contextlib
import ctypes
import math
import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...errors import BiellaWarning
from ..compile.plan._plan import Plan, PortInfo
from ..engine._engine import STOP, Instance
from ..engine._library import contract
from ..results._error_estimate import (
    LARGEST_ERROR,
    MOST_PARTS,
    PARTS,
    ErrorEstimate,
    Samples,
    estimate_errors,
)
from ..results._result import Result

_ORDERS = {
    "euler": 1,
    "heun": 2,
    "rk3": 3,
    "rk4": 4,
    "dopri5": 5,
    "backward_euler": 1,
    "trapezoidal": 2,
    "radau5": 5,
}
_INTERNAL = "multibody_internal"  # kernel of mechanisms with an internal solver
_MECHANISMS = ("multibody", _INTERNAL)
_RESIDUALS = ("closure", "closure_rate", "residual")  # of mechanisms: zero up to rounding
_FLAGS = ("converged", "iterations", "contact", "impacts", "thin_film")  # which jump
_MOTION = (None, "", "1", "m", "rad", "m/s", "rad/s", "J")  # units; forces jump with their inputs
_STILL = 1e-10  # m, rad, m/s, …: a mechanism that moves less is at rest
_ROUNDED = 1e-12  # of the potential energy: changes below are rounding
_ROWS = ("before", "after", "deviations", "halfway", "last", "end", "propagated")
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)

_COST = 0.018  # of the ticks of a run
_HALVES = 3  # ticks' worth of a tick with half steps, copies and comparisons included
_FEWEST, _MOST = 36, 120  # windows
_FOLLOWED = 12  # windows in which deviations are followed
_SHORTEST_FOLLOW = 8  # ticks
_LARGEST_WHOLE = 512  # ticks of a run that is repeated as a whole
_LARGEST_CONFIRMED = 100_000  # ticks of a run that is repeated as a whole before a warning
_CHUNK = 4096  # ticks between which a repetition can be interrupted
_SHORTEST_RUN = 8  # ticks
_SHOWN = 3  # signals in a warning
_TANGENT_EVERY = 40  # ticks between evaluations of the growth of a deviation
_MOST_GROWTHS = 1 << 20  # that are kept; the rest of a longer run is not followed
_TANGENT_COST = 0.75  # ticks' worth of one of them


def why_not(plan: Plan, ticks: int) -> str:
    """Return why the error of a run is not estimated; empty if it is."""
    lent = {number for number, block in plan.external.items() if block.can_be_lent}
    outside = sorted({*plan.external, *plan.python_blocks} - lent)
    if outside:
        names = ", ".join(f"`{plan.blocks[n].path}`" for n in outside)
        return f"not estimated: {names} cannot be repeated"
    if np.frombuffer(plan.sections["SOLV"], dtype="<f8")[contract.BL_CONTROL_RELATIVE] > 0.0:
        return "not estimated: the solver controls the error"
    if any(item["coupling_tolerance"] for item in plan.couplings):
        return "not estimated: communication steps vary with the error of the couplings"
    if not _integrators(plan):
        return "not estimated: nothing is integrated"
    if ticks < _SHORTEST_RUN:
        return f"not estimated: the run has fewer than {_SHORTEST_RUN} ticks"
    return ""


def _integrators(plan: Plan) -> set[int]:
    """Return the orders of the methods that integrate anything in a plan."""
    records = plan.block_records
    orders = {_ORDERS[plan.solver]} if records["x_count"].any() else set()
    integers = np.frombuffer(plan.sections["INTS"], dtype="<i4")
    internal = [kernel == _INTERNAL for kernel in plan.kernels]
    for record in records[internal]:
        implicit = integers[record["i_first"] + contract.MB_INTEGRATOR] == contract.MB_IMPLICIT
        orders.add(2 if implicit else 4)
    return orders


class Sampler:
    """Runs an instance as `Instance.run` does, and compares it with a shadow."""

    def __init__(self, instance: Instance, ticks: int, whole: bool = False) -> None:
        self._instance, self._ticks = instance, ticks
        self.shadow = Instance(instance.plan, is_shadow=True)
        self._place_windows(ticks, whole)
        self._mechanisms = [
            number for number, kernel in enumerate(instance.plan.kernels) if kernel in _MECHANISMS
        ]
        width = instance.layout.signals + instance.layout.states
        width += contract.BL_ENERGY_FIELDS * len(self._mechanisms)
        self._rows = {
            name: np.full((self.count if n < 3 else self.followed, width), np.nan)
            for n, name in enumerate(_ROWS)
        }
        double = ctypes.POINTER(ctypes.c_double)
        pointers: Any = {n: rows.ctypes.data_as(double) for n, rows in self._rows.items()}
        self._estimate = contract.bl_estimate(
            shadow=self.shadow.handle,
            starts=self._starts.ctypes.data_as(ctypes.POINTER(ctypes.c_int64)),
            window_count=self.count,
            parts=PARTS,
            burst=self.burst,
            follow=self.follow,
            follow_every=self.every,
            energy_count=len(self._mechanisms),
            **pointers,
        )
        self._tangent: Instance | None = None
        if self.every and instance.layout.states:
            self._propagate_tangent(ticks)

    def _propagate_tangent(self, ticks: int) -> None:
        """Have the growth of a deviation measured over the whole run."""
        self._tangent = Instance(self._instance.plan, is_shadow=True)
        self._growths = np.zeros(min(ticks // (2 * _TANGENT_EVERY) + 1, _MOST_GROWTHS))
        self._tangent_work = np.zeros(contract.BL_TANGENT_VECTORS * self._instance.layout.states)
        double = ctypes.POINTER(ctypes.c_double)
        estimate = self._estimate
        estimate.tangent = self._tangent.handle
        estimate.tangent_every = _TANGENT_EVERY
        estimate.tangent_next = self._instance.tick
        estimate.tangent_work = self._tangent_work.ctypes.data_as(double)
        estimate.growths = self._growths.ctypes.data_as(double)
        estimate.growth_capacity = self._growths.size

    def _place_windows(self, ticks: int, whole: bool) -> None:
        self.burst, self.follow, self.every, self.followed = 1, 2, 0, 0
        if whole or ticks <= _LARGEST_WHOLE:
            self.burst = max(1, ticks // _MOST)
            self.count = ticks // self.burst
            self._starts = self._instance.tick + self.burst * np.arange(self.count)
            return
        budget = _COST * ticks
        windows = min(max(int(0.5 * budget / _HALVES), _FEWEST), _MOST)
        self.followed = _FOLLOWED
        self.every = windows // self.followed
        self.count = self.every * self.followed
        spacing = ticks / self.count
        left = int((budget - _HALVES * self.count) / self.followed)
        self.follow = min(max(left, _SHORTEST_FOLLOW), int(spacing) - 1)
        places = np.arange(self.count)
        free = spacing - 1.0 - np.where(places % self.every == 0, self.follow, 0)
        starts = places * spacing + free * ((places + 1) * _GOLDEN % 1.0)
        self._starts = self._instance.tick + starts.astype(np.int64)

    def run(self, ticks: int, record: contract.bl_record | None) -> tuple[int, bool]:
        """Run `ticks` ticks; return how many were done and whether a Stop block ended the run."""
        instance, done = self._instance, ctypes.c_int64()
        status = instance.call(
            instance.library.bl_run_estimated,
            ticks,
            None if record is None else ctypes.byref(record),
            ctypes.byref(self._estimate),
            ctypes.byref(done),
        )
        instance.check(status)
        return done.value, status == STOP

    @property
    def failures(self) -> int:
        """Number of windows that the shadow did not complete."""
        return int(self._estimate.failures)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shadow.close()
        if self._tangent is not None:
            self._tangent.close()

    def _find_growths(self) -> NDArray[np.float64]:
        """Return the logarithm of growth after each step; nothing if most were too long."""
        count, unresolved = self._estimate.growth_count, self._estimate.unresolved
        if self._tangent is None or 2 * unresolved > count:
            return np.zeros(0)
        return self._growths[:count].copy()

    def finish(self) -> Samples:
        """Return the samples so far."""
        plan, layout = self._instance.plan, self._instance.layout
        signals, count = layout.signals, layout.signals + layout.states
        rows, references = _add_energies(self._rows, count)
        width = references.size
        groups = np.full(width, len(plan.blocks))
        is_state = (np.arange(width) >= signals) & (np.arange(width) < count)
        columns, not_judged, floors = {}, {}, np.zeros(width)
        firsts, counts = (plan.block_records[name].tolist() for name in ("x_first", "x_count"))
        blocks = zip(plan.blocks, plan.kernels, firsts, counts, strict=True)
        for number, (block, kernel, x_first, x_count) in enumerate(blocks):
            if x_count:
                groups[signals + x_first : signals + x_first + x_count] = number
            for port in block.outputs:
                first = port.slot - layout.parameters
                place = slice(first, first + port.width)
                groups[place] = number
                reason = _why_not_judged(port, kernel, x_count > 0)
                if reason:
                    not_judged[port.path] = reason
                    continue
                columns[port.path] = place
                if kernel in _MECHANISMS:
                    is_state[place] |= kernel == _INTERNAL
                    floors[place] = _STILL
        groups[count:] = self._mechanisms
        judged = is_state.copy()
        judged[count:] = True
        for place in columns.values():
            judged[place] = True
        references[~judged] = math.inf
        not_judged |= self.list_excluded_events()
        visited = self._estimate.window
        followed = -(-visited // self.every) if self.every else 0
        return Samples(
            **rows,
            spacing=self._ticks / self.count,
            follow=self.follow,
            every=self.every,
            order=min(_integrators(plan)),
            step=plan.step,
            columns=columns,
            energies={plan.blocks[n].path: count + k for k, n in enumerate(self._mechanisms)},
            references=references,
            floors=floors,
            groups=groups,
            is_state=is_state,
            not_judged=not_judged,
            cost=(_HALVES * self.burst * visited + self.follow * followed) / self._ticks
            + _TANGENT_COST * self._estimate.tangent_point / self._ticks,
            growths=self._find_growths(),
            growth_every=2 * _TANGENT_EVERY,
            starts=self._starts - self._starts[0],
        )

    def list_excluded_events(self) -> dict[str, str]:
        """Return the FMUs whose events may have ended windows, with the reason."""
        plan, failures = self._instance.plan, self.failures
        lost = f"{failures} of {self.count} windows" if self.every else "the rest of the run"
        return {
            plan.blocks[n].path: f"its events, and with them {lost}: it cannot save its state"
            for n, block in plan.external.items()
            if failures and not block.can_save
        }


def _add_energies(
    rows: dict[str, NDArray[np.float64]], count: int
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.float64]]:
    """Add up the energies of mechanisms, behind `count` columns; return what errors refer to."""
    kinetic, potential = (
        {name: values[:, count + n :: contract.BL_ENERGY_FIELDS] for name, values in rows.items()}
        for n in (contract.BL_ENERGY_KINETIC, contract.BL_ENERGY_POTENTIAL)
    )
    if rows["before"].shape[1] == count:
        return rows, np.full(count, math.nan)
    total = {
        name: np.hstack([values[:, :count], kinetic[name] + potential[name]])
        for name, values in rows.items()
    }
    references = np.full(total["before"].shape[1], math.nan)
    done = ~np.isnan(rows["deviations"][:, 0])
    if done.any():
        moving = np.vstack([kinetic[name][done] for name in ("before", "after")]).max(axis=0)
        stored = np.ptp(np.vstack([potential[name][done] for name in ("before", "after")]), axis=0)
        largest = np.abs(np.vstack([potential["before"][done], potential["after"][done]])).max(
            axis=0
        )
        size = np.maximum(moving, stored)
        references[count:] = np.where(
            size > np.maximum(_STILL**2, _ROUNDED * largest), size, math.inf
        )
    return total, references


def _why_not_judged(port: PortInfo, kernel: str, has_states: bool) -> str:
    """Return why the error of an output is not judged; empty if it is."""
    if port.kind != "real":
        return "not a real number"
    if kernel != _INTERNAL and port.sampled:
        return "sampled, or constant between events"
    if kernel in _MECHANISMS and port.path.rpartition(".")[2] in _RESIDUALS:
        return "zero up to rounding"
    if kernel in _MECHANISMS and port.path.rpartition(".")[2] in _FLAGS:
        return "a flag or a count, which jumps"
    if kernel in _MECHANISMS and not _is_motion(port):
        return "a force or an acceleration, which jumps with the loads"
    if kernel != _INTERNAL and not has_states:
        return "follows from other signals"
    return ""


def _is_motion(port: PortInfo) -> bool:
    """Return whether an output of a mechanism depends on its states, and not on accelerations."""
    return port.unit in _MOTION


def confirm_errors(
    result: Result, plan: Plan, ticks: int, start: Callable[[Instance], None]
) -> None:
    """Repeat a run as a whole if its samples suggest a large error: a warning must be true.

    `start` brings an instance to the start of the run.
    """
    samples = result.error_samples
    if samples is None or not samples.every or ticks > _LARGEST_CONFIRMED:
        return
    if not samples.may_grow() and (
        samples.is_surely_small() or estimate_errors(samples, result).largest <= LARGEST_ERROR
    ):
        return
    if not all(block.can_be_repeated for block in plan.external.values()):
        return
    with contextlib.suppress(KeyboardInterrupt), Instance(plan) as instance:
        start(instance)
        with Sampler(instance, ticks, whole=True) as sampler:
            left, stopped = result.info["ticks"], False
            while left > 0 and not stopped:
                done, stopped = sampler.run(min(left, _CHUNK), None)
                left -= done
            if not sampler.failures:
                result.error_samples = sampler.finish()


def warn_of_errors(result: Result, plan: Plan, stacklevel: int) -> None:
    """Warn if an error exceeds 1e-3 of the range of its signal, or of the energy."""
    samples = result.error_samples
    if samples is None or samples.is_surely_small():
        return
    estimate = result.error_estimate
    if estimate is None or estimate.largest <= LARGEST_ERROR:
        return
    worst = sorted(estimate.signals.items(), key=lambda item: -item[1])
    found = [(f"`{path}` is {error:.1g} of its range", error) for path, error in worst]
    found += [
        (f"the energy of `{path}` is {error:.1g} of its size", error)
        for path, error in estimate.energy.items()
    ]
    shown = [text for text, error in found if error > LARGEST_ERROR]
    more = len(shown) - _SHOWN
    text = "the estimated error of " + "; of ".join(shown[:_SHOWN])
    text += f"; {more} more exceed {LARGEST_ERROR:g}" * (more > 0)
    warnings.warn(f"{text}: {_remedy(estimate, plan)}.", BiellaWarning, stacklevel=stacklevel + 1)


def _remedy(estimate: ErrorEstimate, plan: Plan) -> str:
    if estimate.sensitive:
        return (
            f"the run is sensitive, deviations grow by a factor of 10 in "
            f"{math.log(10.0) / estimate.growth:.2g} s; compare runs with different steps before "
            "relying on single values"
        )
    is_enough = estimate.step > plan.step / MOST_PARTS
    remedies = [f"step={estimate.step:.3g} would suffice"] if is_enough else []
    if plan.block_records["x_count"].any():
        remedies.append("solver='dopri5', tolerance=1e-6")
    return ", or ".join(remedies) or "no fixed step is likely to suffice"
