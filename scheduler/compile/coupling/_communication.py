"""Which blocks exchange signals in adaptive communication steps: ``communication.c`` runs them."""

from __future__ import annotations

import warnings
from collections.abc import Set
from typing import Any

from ._coupling_options import CouplingWarning


def find_groups(
    successors: dict[int, dict[int, Any]], wanting: Set[int], reading: Set[int], first: int
) -> dict[int, int]:
    """Return the nodes with adaptive communication steps, with the number of their group.

    A group contains all nodes that depend on each other, also in one direction only, so that the
    inputs of the later ones are known within the tick. Nodes that read nothing that changes within
    it have nothing to adapt to.

    Parameters
    ----------
    successors
        For each node those that read its signals.
    wanting, reading
        Nodes with a coupling tolerance, and with inputs that change within a tick.
    first
        How many groups there are already.
    """
    if not wanting:
        return {}

    import networkx as nx

    groups: dict[int, int] = {}
    for part in sorted(nx.weakly_connected_components(nx.DiGraph(successors)), key=min):
        if part & wanting and part & reading:
            first += 1
            groups |= dict.fromkeys(part, first)
    return groups


def report_fixed_steps(names: str, is_explicit: bool, problems: list[str]) -> None:
    """Report blocks that cannot take steps of different lengths: an error after `couple`."""
    why = (
        f"{names} cannot take steps of different lengths (FMUs without "
        f"canHandleVariableCommunicationStepSize)"
    )
    if is_explicit:
        problems.append(
            f"{why}, so that coupling_tolerance cannot be used: remove it from couple(…), and "
            f"choose the base step with estimate_error."
        )
    else:
        warnings.warn(
            f"{why}: the communication step is the base step, and coupling_tolerance has no "
            f"effect.",
            CouplingWarning,
            stacklevel=13,
        )


def report_no_coupling() -> None:
    """Warn that nothing is coupled whose communication steps could be adapted."""
    warnings.warn(
        "coupling_tolerance has no effect: the diagram has no coupled blocks with an internal "
        "solver (FMUs, mechanisms with mode='internal') that read continuous signals. Remove it.",
        CouplingWarning,
        stacklevel=11,
    )
