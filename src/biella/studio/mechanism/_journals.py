"""Journals in their bearings and pins in their holes: what a page draws beside a mechanism.

The offset of the journal from the middle of its bush, as a part of the clearance, is the orbit. The
thickness of the film follows from it: h(θ) = c - x cos θ - y sin θ, in axes of the bush.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...blocks.bearings import AbstractBearing
from ...blocks.multibody.elements.bearing._bearing import Bearing
from ...blocks.multibody.elements.clearance._clearance import ClearanceRevolute
from ...blocks.multibody.plant._plant import Plant
from ...blocks.multibody.system._system import System
from ...scheduler.compile._flatten import FlatDiagram

_OF_FILM = ("offset", "film", "pressure")
_OF_PLAY = ("offset", "gap", "normal_force", "contact", "angle")


def list_journal_outputs(system: System) -> list[str]:
    """Return the outputs of bearings and clearances in a system that are drawn."""
    found = []
    for element in system.elements:
        names = (
            _OF_FILM
            if isinstance(element, Bearing)
            else _OF_PLAY
            if isinstance(element, ClearanceRevolute)
            else ()
        )
        found += [f"{element.name}.{name}" for name in names]
    return found


def find_journals(
    flat: FlatDiagram | None, systems: Mapping[str, System], signals: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the journals whose offset is recorded, as plain data.

    Parameters
    ----------
    flat
        The diagram, if it is known: its bearings may be blocks.
    systems
        Mechanisms by the paths of their blocks.
    signals
        The recorded ones, by path.
    """
    found = [
        journal
        for path, system in systems.items()
        for element in system.elements
        for journal in _of_element(path, element)
    ]
    found += _of_blocks(flat) if flat is not None else []
    for journal in found:
        journal["signals"] = {
            what: path for what, path in journal["signals"].items() if path in signals
        }
    return [journal for journal in found if "offset" in journal["signals"]]


def _of_element(path: str, element: Any) -> Iterator[dict[str, Any]]:
    at = f"{path}.{element.name}"
    if isinstance(element, Bearing):
        yield _film(at, at, element.film, 1, {name: f"{at}.{name}" for name in _OF_FILM})
    elif isinstance(element, ClearanceRevolute):
        yield {
            "path": at,
            "kind": "clearance",
            "clearance": element.clearance,
            "parameter": f"{at}.clearance",
            "ends": 1,
            "round": element.wear is None,
            "signals": {name: f"{at}.{name}" for name in _OF_PLAY},
        }


def _of_blocks(flat: FlatDiagram) -> Iterator[dict[str, Any]]:
    for item in flat.blocks:
        block = item.block
        if not isinstance(block, AbstractBearing) or isinstance(block, Plant):
            continue
        source = item.sources[block.input_index["position"]]
        if source is None or source.block < 0:
            continue
        signals = {name: f"{item.path}.{name}" for name in ("film", "pressure")}
        signals["offset"] = flat.blocks[source.block].output_path(source.port)
        prefix = "" if item.bare else f"{item.path}."
        yield _film(item.path, prefix.removesuffix("."), block, block.ends, signals)


def _film(
    path: str, owner: str, film: AbstractBearing, ends: int, signals: dict[str, str]
) -> dict[str, Any]:
    return {
        "path": path,
        "kind": "film",
        "clearance": film.clearance,
        "parameter": f"{owner}.clearance" if owner else "clearance",
        "ends": ends,
        "round": not _has_shape(film),
        "signals": signals,
    }


def _has_shape(film: AbstractBearing) -> bool:
    """Return whether the bush is not round, so that its thickness needs more than an offset."""
    return any(item.name == "bush" for item in film.parameters)
