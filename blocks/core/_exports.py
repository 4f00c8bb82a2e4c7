"""What an export of an FMU is asked for, in the types of diagrams and mechanisms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Members = Sequence[str] | Mapping[str, str]
"""Names of variables, or variables by the names of members."""
Terminals = bool | Mapping[str, Members | tuple[str, Members]]
"""What ``export_fmu(terminals=…)`` accepts: members by the names of terminals, if there is more to
say with the matching rule before them; True: those that names suggest; False: none."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A reference experiment that goes into an FMU, for ``export_fmu(reference=…)``.

    Parameters
    ----------
    until
        End time in seconds.
    name, description
        For users.
    step
        Communication step of the run in seconds; by default the base step of the diagram.
    inputs
        CSV file of stimuli: times, and a column for each input that is driven. Others keep their
        start values.
    parameters
        Values of parameters by name, where they are not those of the FMU.
    tolerance
        Largest deviation of an output, relative to its largest magnitude in the reference.
    results
        CSV file of reference results, such as measurements. By default the exported FMU is run.
    """

    until: float
    name: str = "reference"
    description: str = ""
    step: float | None = None
    inputs: str | Path | None = None
    parameters: Mapping[str, float | bool | str] = field(default_factory=dict)
    tolerance: float = 1e-6
    results: str | Path | None = None
