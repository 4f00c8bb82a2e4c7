"""Incremental encoder."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _contract as contract
from ...errors import DiagramError
from ..basic.dynamics._delay import check_samples
from ..basic.sources._noise import make_seed
from ..core._block import NativeBlock
from ..core._ports import SAMPLED, Parameter, Port, Widths, number, parameter, periodic
from ..core._vectors import make_record, require_choice

METHODS = {
    "count": contract.ENCODER_BY_COUNT,
    "period": contract.ENCODER_BY_PERIOD,
    "both": contract.ENCODER_BY_BOTH,
}
_OUTPUTS = ("counts", "angle", "speed", "a", "b", "index")
_MOST_COUNTS = 2**31 - 1
_MOST_SAMPLES = 10_000_000
_LARGEST_EDGE_ERROR = 0.45


class Encoder(NativeBlock):
    """An incremental encoder: counts, A, B and index signals, and speed by one of three methods.

    counts[n] is the number of the last edge at or below the shaft: all edges that passed within a
    sample are counted, at any speed. Between samples the shaft is taken to turn evenly; that times
    the edges. With p = 2π / counts and T the window:

    - ``"count"``: p · (counts in the window) / T; within p / T of the mean speed of the window.
    - ``"period"``: p / (time between the last two edges).
    - ``"both"``: p · (edges between two edges) / (time between them), the last edges of this
      sample and of one window ago. No error at constant speed but that of the clock.

    A clock of f Hz adds at most a part 1 / (f Δt - 1), where Δt is the time between the edges
    used. While no edge comes (with ``"both"``, in a whole window), the last two methods give at
    most p / (time waited).

    Parameters
    ----------
    counts
        Counts per revolution after decoding: 4096 for 1024 lines decoded fourfold.
    decoding
        Counts of each line: 1, 2 or 4.
    method
        Speed estimation: ``"count"``, ``"period"`` or ``"both"``.
    window
        Samples over which ``"count"`` and ``"both"`` take the speed.
    clock
        Of the timer that times edges, in Hz; if not given it does not round.
    timeout
        Without an edge for so long, in s, the speed by ``"period"`` and ``"both"`` is 0.
    direction
        Without it there is one channel only: counts go up whichever way the shaft turns.
    zero
        Angle of the index, where counts are 0, in rad.
    eccentricity, eccentric_at
        The disc is seen at shaft + eccentricity · sin(shaft - eccentric_at), both in rad.
    edge_error
        How far single edges are off at most, by chance and the same in each turn, in parts of a
        count.
    fastest
        Counts per second that the electronics follow: in faster samples, counts are lost.
    latency
        In s, a multiple of the sample time.
    seed
        Chooses the errors of the edges. If not given, it is derived from the block's path in the
        top diagram: each encoder has its own.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    """

    kernel = "encoder"
    designs_with_period = True

    def __init__(
        self,
        counts: int,
        *,
        decoding: int = 4,
        method: str = "count",
        window: int = 1,
        clock: float | None = None,
        timeout: float = 1.0,
        direction: bool = True,
        zero: float = 0.0,
        eccentricity: float = 0.0,
        eccentric_at: float = 0.0,
        edge_error: float = 0.0,
        fastest: float = math.inf,
        latency: float = 0.0,
        seed: int | None = None,
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        _check_counts(counts, decoding)
        by = require_choice("`method` of an Encoder", method, METHODS)
        window = check_samples("`window` of an Encoder", window)
        latency, edge_error = number("latency", latency), number("edge_error", edge_error)
        if not (math.isfinite(latency) and latency >= 0):
            raise DiagramError(f"`latency` of an Encoder is 0 or above, in s; got {latency!r}.")
        if not 0 <= edge_error <= _LARGEST_EDGE_ERROR:
            raise DiagramError(
                f"`edge_error` of an Encoder is a part of a count from 0 to "
                f"{_LARGEST_EDGE_ERROR:g}, so that edges stay in order; got {edge_error!r}."
            )

        def late(widths: Widths) -> int:
            return _whole_samples(latency, widths.step)

        at_once = ("stuck",) if latency else ("shaft", "dropout", "stuck")
        moving = [name for name in _OUTPUTS if direction or name != "b"]
        super().__init__(
            inputs=[
                Port("shaft", unit="rad", doc="angle of the shaft"),
                Port("dropout", kind="boolean", default=0.0, doc="while true, no edges come"),
                Port("stuck", kind="boolean", default=0.0, doc="while true, no output moves"),
            ],
            outputs=[
                Port("counts", unit="count", kind="integer", doc="counted so far"),
                Port("angle", unit="rad", doc="of the last edge counted"),
                Port("speed", unit="rad/s", doc="by the method chosen"),
                Port("a", kind="boolean", doc="channel A, a quarter of a line before B"),
                Port("b", kind="boolean", doc="channel B"),
                Port("index", kind="boolean", doc="on the index, or past it since the last sample"),
            ],
            parameters=[
                *_make_parameters(zero, eccentricity, eccentric_at, edge_error),
                make_seed(seed),
                _positive("clock", clock, 0.0, "Hz", "of the timer; 0 for one that does not round"),
                _positive("timeout", timeout, 0.0, "s", "without an edge, the speed is 0"),
                _positive("fastest", fastest, 0.0, "count/s", "that the electronics follow"),
            ],
            rate=periodic(period, offset, SAMPLED),
            feedthrough=[(output, name) for output in moving for name in at_once],
            integers=lambda widths: make_record(
                contract.ENCODER_INTEGERS,
                {
                    contract.ENCODER_COUNTS: counts,
                    contract.ENCODER_DECODING: decoding,
                    contract.ENCODER_METHOD: by,
                    contract.ENCODER_WINDOW: window,
                    contract.ENCODER_LATENCY: late(widths),
                    contract.ENCODER_BLIND: int(not direction),
                },
            ),
        )


def _check_counts(counts: Any, decoding: Any) -> None:
    if not isinstance(decoding, int | np.integer) or decoding not in (1, 2, 4):
        raise DiagramError(
            f"`decoding` of an Encoder is 1, 2 or 4 counts of a line, got {decoding!r}."
        )
    whole = isinstance(counts, int | np.integer) and not isinstance(counts, bool)
    if not whole or not 1 <= counts <= _MOST_COUNTS:
        raise DiagramError(
            f"`counts` of an Encoder is a whole number from 1 to 2^31 - 1, got {counts!r}."
        )
    if counts % decoding:
        near = max(1, round(counts / decoding)) * decoding
        raise DiagramError(
            f"`counts` of an Encoder is a multiple of its decoding, {decoding}: {counts} is not, "
            f"{near} is."
        )


def _make_parameters(
    zero: float, eccentricity: float, eccentric_at: float, edge_error: float
) -> list[Parameter]:
    return [
        parameter("zero", zero, unit="rad", doc="angle of the index"),
        parameter("eccentricity", eccentricity, unit="rad", doc="of the disc", tunable=False),
        parameter("eccentric_at", eccentric_at, unit="rad", doc="its angle", tunable=False),
        parameter(
            "edge_error",
            edge_error,
            doc="largest, of single edges, in parts of a count",
            tunable=False,
        ),
    ]


def _positive(name: str, value: float | None, none: float, unit: str, doc: str) -> Parameter:
    given = none if value is None else number(name, value)
    if value is not None and not given > 0:
        raise DiagramError(f"`{name}` of an Encoder is above 0, in {unit}; got {value!r}.")
    return parameter(name, given, unit=unit, doc=doc, finite=False, tunable=False)


def _whole_samples(latency: float, step: float) -> int:
    samples = round(latency / step)
    if abs(latency - samples * step) > 1e-6 * step:
        below = math.floor(latency / step)
        raise DiagramError(
            f"an Encoder's latency of {latency:g} s is not a multiple of its sample time, {step:g} "
            f"s. {below * step:g} s and {(below + 1) * step:g} s are."
        )
    if samples > _MOST_SAMPLES:
        raise DiagramError(
            f"an Encoder's latency is at most {_MOST_SAMPLES} samples, {_MOST_SAMPLES * step:g} s; "
            f"got {latency:g} s."
        )
    return samples
