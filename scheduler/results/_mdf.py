"""Results as MDF4 files, written by asammdf."""

from __future__ import annotations

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


def write_mdf(result: Result, path: Path) -> None:
    """Write all signals of a result into one channel group."""
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
                )
            )
    about = str(result.info.get("diagram") or "biella")
    with replacing(path) as temporary, asammdf.MDF(version="4.10") as mdf:
        mdf.header.comment = about
        mdf.append(channels, comment=about, common_timebase=True)
        mdf.save(temporary, overwrite=True, compression=2)
