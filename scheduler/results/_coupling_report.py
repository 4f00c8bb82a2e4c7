"""Report of couplings after a run: iterations, estimated errors and suggested steps."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log2
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compile.coupling._coupling_options import ITERATED, CouplingWarning
from ..compile.plan._described import thaw
from ..engine._library import contract

if TYPE_CHECKING:
    from ..engine._engine import Instance

# The head of a coupling's memory and the arrays that follow it, as in engine.h.
HEAD = {
    "iterations": contract.BL_COUPLING_ITERATIONS,
    "residual": contract.BL_COUPLING_RESIDUAL,
    "failures": contract.BL_COUPLING_FAILURES,
    "steps": contract.BL_COUPLING_STEPS,
    "sweeps": contract.BL_COUPLING_SWEEPS,
    "estimates": contract.BL_COUPLING_ESTIMATES,
    "shortened": contract.BL_COUPLING_SHORTENED,
    "communication_step": contract.BL_COUPLING_SPAN,
    "communication_steps": contract.BL_COUPLING_COMMUNICATIONS,
    "rejected": contract.BL_COUPLING_REJECTED,
    "exceeded": contract.BL_COUPLING_EXCEEDED,
}
HEAD_SIZE = contract.BL_COUPLING_HEAD
ARRAYS = {
    "scale": contract.BL_COUPLED_SCALE,
    "error": contract.BL_COUPLED_ERROR,
    "error_sum": contract.BL_COUPLED_ERROR_SUM,
    "halved": contract.BL_COUPLED_HALVED,
    "quartered": contract.BL_COUPLED_QUARTERED,
    "limiting": contract.BL_COUPLED_LIMITING,
}
ARRAY_COUNT = contract.BL_COUPLED_ARRAYS
BOND = {
    "power": contract.BL_BOND_POWER,
    "passing": contract.BL_BOND_PASSING,
    "energy": contract.BL_BOND_ENERGY,
    "total": contract.BL_BOND_TOTAL,
    "passed": contract.BL_BOND_PASSED,
    "lowest": contract.BL_BOND_LOWEST,
    "highest": contract.BL_BOND_HIGHEST,
    "exchanged": contract.BL_BOND_EXCHANGED,
    "scale": contract.BL_BOND_SCALE,
}
BOND_SIZE = contract.BL_BOND_MEMORY
_CREATED_SHARE = 0.05
"""Of the energy that passes at once: what a coupling may create before a warning."""
_CREATED_PART = 2e-3
"""Of all energy that passes to and fro."""
_REST, _ROUNDED = 1e-15, 1e-9
"""Energies in J, and parts of an effort times its place, below which nothing has moved."""
_ROUNDING = 1e-13


def read_couplings(instance: Instance) -> list[dict[str, Any]]:
    """Return, as plain data, what each coupling of a run has counted and measured."""
    found = []
    for item in instance.plan.couplings:
        slot, n = item["slot"], item["elements"]
        head = instance.values[slot : slot + HEAD_SIZE]
        numbers = {name: float(head[at]) for name, at in HEAD.items()}
        table = instance.values[slot + HEAD_SIZE :]
        signals = []
        for signal in item["signals"]:
            at, width = signal["at"], signal["width"]
            sums = {
                name: table[k * n + at : k * n + at + width].tolist() for name, k in ARRAYS.items()
            }
            signals.append({**thaw(signal), **sums})
        bonds = [{**bond, **_read_bond(instance, bond)} for bond in item["bonds"]]
        found.append({**thaw(item), **numbers, "signals": signals, "bonds": bonds})
    return found


def _read_bond(instance: Instance, bond: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a bond in W and J."""
    slot, factor = bond["slot"], bond["factor"]
    return {name: factor * float(instance.values[slot + k]) for name, k in BOND.items()}


def warn_of_created_energy(instance: Instance) -> None:
    """Warn of couplings that created, or lost, a good part of the energy that passes."""
    for item in instance.plan.couplings:
        _warn_of_worst(
            instance, item["members"], item["method"], item["extrapolation"], item["bonds"]
        )
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for item in instance.plan.exchanges:
        groups.setdefault(tuple(item["members"]), []).append(item)
    for members, bonds in groups.items():
        _warn_of_worst(instance, members, "jacobi", 0, bonds)


def _warn_of_worst(
    instance: Instance,
    members: Sequence[str],
    method: str,
    extrapolation: int,
    bonds: Sequence[Mapping[str, Any]],
) -> None:
    worst: tuple[float, Mapping[str, Any], dict[str, float]] | None = None
    for bond in bonds:
        found = _read_bond(instance, bond)
        created, at_once = abs(found["energy"]), found["highest"] - found["lowest"]
        if not at_once > max(_REST, _ROUNDED * found["scale"]):
            continue  # nothing moves: these are errors of rounding
        if not created > max(_CREATED_SHARE * at_once, _CREATED_PART * found["exchanged"]):
            continue
        if worst is None or created > worst[0]:
            worst = created, bond, found
    if worst is None:
        return
    created, bond, found = worst
    at_once = found["highest"] - found["lowest"]
    what = "created" if found["energy"] > 0 else "lost"
    cause = "held" if extrapolation == 0 else "extrapolated"
    if method in ITERATED:
        cause, remedy = "interpolated", "Use a smaller step"
        remedy += " or extrapolation=1." if extrapolation == 0 else "."
    elif extrapolation == 0:
        remedy = "Use extrapolation=1, a smaller step, or method='newton'."
    else:
        remedy = "Use a smaller step or method='newton'."
    warnings.warn(
        f"the coupling of {', '.join(f'`{m}`' for m in members)} {what} {created:.3g} J, "
        f"{100 * created / at_once:.3g} % of the energy that it transfers at a time "
        f"({at_once:.3g} J, at `{bond['effort']}` and `{bond['flow']}`): inputs are {cause} over a "
        f"step ({method}, extrapolation {extrapolation}), so the two sides see different powers. "
        f"{remedy}",
        CouplingWarning,
        stacklevel=4,
    )


def warn_of_failures(couplings: Sequence[dict[str, Any]]) -> None:
    """Warn of couplings whose iteration did not converge in some steps."""
    for item in couplings:
        if item["failures"]:
            steps = item["communication_steps"] or item["steps"]
            warnings.warn(
                f"the coupling of {', '.join(f'`{m}`' for m in item['members'])} did not converge "
                f"to {item['tolerance']:g} within {item['limit']} iterations in "
                f"{item['failures']:.0f} of {steps:.0f} steps. Use a smaller step, more "
                f"iterations, or method='newton'.",
                CouplingWarning,
                stacklevel=4,
            )


def warn_of_exceeded(couplings: Sequence[dict[str, Any]], stacklevel: int = 4) -> None:
    """Warn of couplings whose communication steps were not as exact as their tolerance."""
    for item in couplings:
        if not item["exceeded"] or not item["coupling_tolerance"]:
            continue
        signal = _find_limiting(item)
        if item["rolls_back"]:
            why = (
                f"a base step has at most {item['divisions']} communication steps. Use a smaller "
                f"base step, more halvings, or a larger tolerance"
            )
        else:
            why = (
                "a block cannot be rolled back, so that the next step is shortened, but none is "
                "repeated. Use a smaller base step, or FMUs with canGetAndSetFMUstate"
            )
        warnings.warn(
            f"the inputs in the coupling of {', '.join(f'`{m}`' for m in item['members'])} exceed "
            f"coupling_tolerance = {item['coupling_tolerance']:g} in {item['exceeded']:.0f} of "
            f"{item['steps']:.0f} base steps"
            f"{'' if signal is None else f', mostly because of `{signal}`'}: {why}.",
            CouplingWarning,
            stacklevel=stacklevel,
        )


def _find_limiting(item: Mapping[str, Any]) -> str | None:
    """Return the signal that most often limited the communication step."""
    counts = {signal["source"]: max(signal["limiting"], default=0.0) for signal in item["signals"]}
    found = max(counts, key=lambda name: counts[name], default=None)
    return found if found is not None and counts[found] > 0.0 else None


@dataclass(frozen=True, slots=True)
class ConnectionReport:
    """How wrong a signal between coupled blocks is.

    Attributes
    ----------
    source, readers
        The output, and the inputs that it feeds.
    relative_error
        The errors of all steps added up, relative to the largest value of the signal.
    order
        At which the error falls with the step, as observed; None if it is all rounding.
    step
        The step in seconds with which `relative_error` would reach the tolerance.
    """

    source: str
    readers: tuple[str, ...]
    relative_error: float
    order: float | None
    step: float


@dataclass(frozen=True, slots=True)
class CouplingReport:
    """What the couplings of a run have done; print it for a table.

    Attributes
    ----------
    connections
        Estimated errors, largest first; empty without ``estimate_error``.
    limiting
        The connection with the largest error, if it is above the tolerance.
    suggested_step
        The largest step in seconds with which all connections would keep the tolerance.
    solver, together
        What advances the continuous states of the diagram, and the blocks that have them: between
        these there is no coupling error, only that of the solver.
    """

    couplings: tuple[dict[str, Any], ...]
    connections: tuple[ConnectionReport, ...]
    tolerance: float
    step: float
    solver: str = ""
    together: tuple[str, ...] = ()

    @property
    def limiting(self) -> ConnectionReport | None:
        if self.connections and self.connections[0].relative_error > self.tolerance:
            return self.connections[0]
        return None

    @property
    def suggested_step(self) -> float | None:
        return min((c.step for c in self.connections), default=None)

    def __str__(self) -> str:
        lines = []
        if self.together:
            lines.append(
                f"{', '.join(self.together)}: as one, with all that is computed in between, in "
                f"minor steps of {self.solver}, {self.step:g} s"
            )
        if not self.couplings:
            lines.append(
                "No block with an internal solver is coupled, or all are by jacobi with "
                "extrapolation 0: run with estimate_error=1 to estimate the error of these."
            )
            return "\n".join(lines)
        for item in self.couplings:
            lines.append(
                f"{' + '.join(item['members'])}: {item['method']}, extrapolation "
                f"{item['extrapolation']}, "
                f"{item['steps']:.0f} steps"
            )
            if item["method"] in ITERATED and item["steps"]:
                lines[-1] += (
                    f", {item['sweeps'] / item['steps']:.2f} iterations each, "
                    f"{item['failures']:.0f} not converged to {item['tolerance']:g}"
                )
                if item["shortened"]:
                    lines[-1] += f", {item['shortened']:.0f} divided"
            if item.get("communication_steps"):  # files of earlier versions have none
                lines.append(_describe_communication(item))
            for bond in item["bonds"]:
                lines.append(
                    f"  power bond {bond['name']} ({bond['effort']} · {bond['flow']}): "
                    f"{bond['energy']:.3g} J created or lost, {bond['total']:.3g} J exchanged "
                    f"wrongly"
                )
        lines.append("")
        if not self.connections:
            if any(item.get("communication_steps") for item in self.couplings):
                return "\n".join(lines[:-1])
            return "\n".join(
                [*lines, "To estimate the errors of connections, run with estimate_error=1."]
            )
        rows = [("connection", "error", "order", f"step for {self.tolerance:g}")]
        for c in self.connections:
            order = "rounding" if c.order is None else f"{c.order:.1f}"
            name = f"{c.source} → {', '.join(c.readers)}"
            rows.append((name, f"{c.relative_error:.1e}", order, f"{c.step:.2g} s"))
        widths = [max(len(row[n]) for row in rows) for n in range(4)]
        lines += [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        lines.append("")
        if self.limiting is None:
            lines.append(
                f"All connections are within {self.tolerance:g} with a step of {self.step:g} s."
            )
        else:
            lines.append(
                f"{self.limiting.source} → {', '.join(self.limiting.readers)} limits the accuracy; "
                f"a step of {self.suggested_step:.2g} s would keep {self.tolerance:g}."
            )
        return "\n".join(lines)


def _describe_communication(item: Mapping[str, Any]) -> str:
    tolerance = item["coupling_tolerance"]
    wanted = f" for a tolerance of {tolerance:g}" if tolerance else ", as others need"
    line = (
        f"  {item['communication_steps']:.0f} communication steps{wanted}, "
        f"{item['rejected']:.0f} rejected, "
        f"{item['sweeps']:.0f} steps of each member; above the tolerance in "
        f"{item['exceeded']:.0f} base steps"
    )
    signal = _find_limiting(item)
    return line if signal is None else f"{line}; mostly limited by {signal}"


def report_couplings(
    couplings: Sequence[dict[str, Any]],
    step: float,
    tolerance: float,
    solver: str = "",
    together: Sequence[str] = (),
) -> CouplingReport:
    """Return the report of a run with this base step."""
    connections = [
        _rate(item, signal, step, tolerance)
        for item in couplings
        if item["estimates"]
        for signal in item["signals"]
    ]
    connections.sort(key=lambda c: -c.relative_error)
    return CouplingReport(
        tuple(couplings), tuple(connections), tolerance, step, solver, tuple(together)
    )


def _rate(
    item: dict[str, Any], signal: dict[str, Any], step: float, tolerance: float
) -> ConnectionReport:
    """Add up the errors of the steps: they fall with the order p of the method, each with p + 1."""
    names = ("scale", "error_sum", "halved", "quartered")
    sums = {name: np.array(signal[name]) for name in names}
    total = sums["error_sum"] * item["steps"] / item["estimates"]
    scale = float(sums["scale"].max()) or 1.0
    error = float(total.max()) / scale
    halved, quartered = float(sums["halved"].sum()), float(sums["quartered"].sum())
    order: float | None = None
    nominal = float(max(item["extrapolation"] + 1, 2 if item["method"] in ITERATED else 1))
    if quartered > (_ROUNDING * scale) ** 2 * item["estimates"]:
        order = log2(halved / quartered) / 2
    used = nominal if order is None or not isfinite(order) or order < 0.5 else order
    own = step * item["period"]
    fitting = own * (tolerance / error) ** (1.0 / used) if error > 0.0 else float("inf")
    return ConnectionReport(signal["source"], tuple(signal["readers"]), error, order, fitting)
