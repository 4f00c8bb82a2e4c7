"""Result files of version 1, which biella 0.1 wrote: how they are read.

Datasets ``time`` and ``signals/<path>`` with the attributes ``path, index, width, unit, kind,
sampled``; ``captures/<path>`` with the same ones; ``about``, a JSON text; ``rows``, how many rows
count; ``complete``, whether the file was closed in order; ``checksums``, the CRC-32 of the rows of
time and of each signal by its index, valid if the file is complete.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._signals import Signal

if TYPE_CHECKING:
    import h5py


@dataclass(frozen=True)
class Description:
    """What a file holds, without the numbers.

    Attributes
    ----------
    length
        Number of rows; after a kill the datasets may be longer.
    checksums
        Of time and of each signal; empty if the file is not complete.
    """

    length: int
    signals: list[Signal]
    aliases: dict[str, str]
    info: dict[str, object]
    is_complete: bool
    checksums: list[int]


def read_description(file: h5py.File) -> Description:
    """Read what a file holds, without the numbers."""
    length = int(file["rows"][()])
    if not 0 <= length <= len(file["time"]):
        raise ValueError(f"{length} rows are declared, and {len(file['time'])} are there")
    text = json.loads(file["about"][()])
    is_complete = bool(file["complete"][()])
    checksums = file["checksums"][()].tolist() if is_complete and "checksums" in file else []
    signals = [_read_signal(dataset) for dataset in _sorted(file, "signals")]
    return Description(length, signals, text["aliases"], text["info"], is_complete, checksums)


def read_captures(file: h5py.File) -> list[tuple[Signal, NDArray[np.float64], object]]:
    """Return for each Trigger its signal, time and samples, and what is known, None if nothing."""
    known = json.loads(file["about"][()]).get("captures", {})
    signals = [(_read_signal(dataset), dataset[:]) for dataset in _sorted(file, "captures")]
    return [(signal, rows, known.get(signal.path)) for signal, rows in signals]


def _sorted(file: h5py.File, group: str) -> list[h5py.Dataset]:
    datasets = list(file[group].values()) if group in file else []
    return sorted(datasets, key=lambda dataset: int(dataset.attrs["index"]))


def _read_signal(dataset: h5py.Dataset) -> Signal:
    about = dict(dataset.attrs)
    unit = about.get("unit")
    return Signal(
        str(about["path"]),
        int(about["width"]),
        None if unit is None else str(unit),
        str(about["kind"]),  # type: ignore[arg-type]
        bool(about["sampled"]),
        tuple(str(name) for name in about.get("names", ())),
    )
