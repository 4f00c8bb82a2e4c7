"""Recordings that a device is replayed from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...blocks.playback import read_samples
from ...errors import BiellaError, DeviceError

_SLACK = 1e-6  # of a step: a time so little after a tick is that tick


def read_recording(
    path: Path, signals: Sequence[tuple[str, int]], step: float, start: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return from which tick on each row holds, and the rows.

    Parameters
    ----------
    path
        A CSV or HDF5 file, as `Playback.from_file` reads it.
    signals
        Names in the file, and how many values each must have.
    step, start
        Of the run, in seconds. Of rows that fall into one step, the last one counts.
    """
    columns = []
    times: npt.NDArray[np.float64] = np.empty(0)
    for name, width in signals:
        try:
            times, values, _ = read_samples(path, name)
        except (BiellaError, OSError) as error:
            raise DeviceError(f"`{path}` cannot be replayed: {error}") from error
        values = values.reshape(len(times), -1)
        if values.shape[1] != width:
            raise DeviceError(
                f"`{name}` of `{path}` has {values.shape[1]} values, but its channel {width}."
            )
        columns.append(values)
    rows = np.ascontiguousarray(np.hstack(columns), dtype=np.float64)
    if not len(rows) or not np.isfinite(rows).all() or not np.isfinite(times).all():
        raise DeviceError(f"`{path}` has no rows to replay, or values that are not finite.")
    ticks = np.ceil((times - start) / step - _SLACK).astype(np.int64)
    if (np.diff(times) <= 0).any():
        raise DeviceError(f"the times of `{path}` do not rise.")
    last_of_tick = np.append(np.diff(ticks) > 0, True)
    return ticks[last_of_tick], np.ascontiguousarray(rows[last_of_tick])
