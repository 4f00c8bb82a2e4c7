"""Results as MDF4 files, written by asammdf."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._files import replacing
from ._signals import ResultError

if TYPE_CHECKING:
    from ._result import Result

_TYPES = {"boolean": np.uint8, "integer": np.int64, "enumeration": np.int64}


def load_asammdf() -> Any:
    """Return the module, or raise an error with the command to install it."""
    try:
        import asammdf
    except ImportError as error:
        raise ResultError(
            "MDF4 files need asammdf, which is not installed: pip install 'biella[mdf]'."
        ) from error
    return asammdf


def _list_events(asammdf: Any, result: Result) -> Any:
    """Return the located events as a channel of text."""
    texts = [f"{event.source}: {event.kind}".encode() for event in result.events]
    return asammdf.Signal(
        samples=np.array(texts), timestamps=result.events.times(), name="events", encoding="utf-8"
    )


def _name_values(names: Sequence[str]) -> dict[str, Any] | None:
    """Return the conversion from the values of an enumeration to their names."""
    if not names:
        return None
    found: dict[str, Any] = {}
    for n, name in enumerate(names):
        found |= {f"val_{n}": n + 1, f"text_{n}": name.encode()}
    return found


def write_mdf(result: Result, path: Path) -> None:
    """Write all signals of a result into one channel group, and its events into another."""
    asammdf = load_asammdf()
    if path.suffix.lower() != ".mf4":
        raise ResultError(f"an MDF4 file must have the extension .mf4, got `{path.name}`.")
    channels = []
    for signal in result.signals.values():
        columns = np.atleast_2d(result[signal.path].T)
        for name, column in zip(signal.element_names, columns, strict=True):
            channels.append(
                asammdf.Signal(
                    samples=column.astype(_TYPES.get(signal.kind, np.float64)),
                    timestamps=result.t,
                    name=name,
                    unit=signal.unit or "",
                    conversion=_name_values(signal.names),
                )
            )
    about = str(result.info.get("diagram") or "biella")
    with replacing(path) as temporary, asammdf.MDF(version="4.10") as mdf:
        mdf.header.comment = about
        mdf.append(channels, comment=about, common_timebase=True)
        if len(result.events):
            mdf.append([_list_events(asammdf, result)], comment="events")
        mdf.save(temporary, overwrite=True, compression=2)
