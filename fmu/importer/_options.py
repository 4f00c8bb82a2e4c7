"""How an FMU is to run, whatever runs it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """How an FMU is to run."""

    name: str
    period: float | None
    substeps: int
    tolerance: float
    categories: list[str]
    logging: bool
    event_mode: bool = False
    """FMI 3.0: events are handled in event mode."""
