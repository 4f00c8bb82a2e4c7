"""Recordings that a device is replayed from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ....blocks.basic.sources._playback import read_samples
from ....blocks.core._units import UnitError, equivalent, parse_unit
from ....errors import BiellaError, DeviceError
from ...results._result import Result

if TYPE_CHECKING:
    from ...binding._rig import Channel

_SLACK = 1e-6  # of a step: a time so little after a tick is that tick


def read_recording(
    source: Path | Result, channels: Sequence[Channel], step: float, start: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return from which tick on each row holds, and the rows.

    Parameters
    ----------
    source
        A CSV or HDF5 file, as for `Playback.from_file`, or a result.
    channels
        Each is the signal that its option ``signal`` names, else that of its own name.
    step, start
        Of the run, in seconds. Of rows that fall into one step, the last one counts.
    """
    columns = []
    times: npt.NDArray[np.float64] = np.empty(0)
    for channel in channels:
        times, values = _read_channel(source, channel)
        columns.append(values)
    rows = np.ascontiguousarray(np.hstack(columns), dtype=np.float64)
    if not len(rows) or not np.isfinite(rows).all() or not np.isfinite(times).all():
        raise DeviceError(f"{_name(source)} has no rows to replay, or some that are not finite.")
    if (np.diff(times) < 0).any():
        raise DeviceError(f"the times of {_name(source)} are not increasing.")
    ticks = np.ceil((times - start) / step - _SLACK)
    if np.abs(ticks).max() > 2**53:
        raise DeviceError(f"the times of {_name(source)} span too many steps of {step:g} s.")
    last_of_tick = np.append(np.diff(ticks) > 0, True)
    return ticks[last_of_tick].astype(np.int64), np.ascontiguousarray(rows[last_of_tick])


def _read_channel(source: Path | Result, channel: Channel) -> tuple[Any, Any]:
    name = channel.options.get("signal") or channel.name
    try:
        if isinstance(source, Result):
            signal = source.signals.locate(name)[0]
            times, values, unit = source.t, source[name], signal.unit
        else:
            times, values, unit = read_samples(source, name)
    except (BiellaError, OSError, ValueError) as error:
        raise DeviceError(f"{_name(source)} cannot be replayed: {error}") from error
    values = values.reshape(len(times), -1)
    if values.shape[1] != channel.width:
        raise DeviceError(
            f"`{name}` of {_name(source)} has {values.shape[1]} values, but its channel "
            f"{channel.width}."
        )
    _check_unit(source, name, unit, channel)
    return times, values


def _check_unit(source: Path | Result, name: str, unit: str | None, channel: Channel) -> None:
    """A channel without a scale means what was recorded."""
    if unit is None or channel.unit is None or channel.scale != 1.0:
        return
    try:
        recorded = parse_unit(unit)
    except UnitError:
        return  # of another tool, which names units as it likes
    if not equivalent(recorded, channel.unit):
        raise DeviceError(
            f"`{name}` of {_name(source)} is in {unit}, but its channel in {channel.unit}: set "
            f"unit and scale of the channel."
        )


def _name(source: Path | Result) -> str:
    return "the result" if isinstance(source, Result) else f"`{source}`"
