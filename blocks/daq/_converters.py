"""Converters between volts and codes: ADC, scan list, DAC."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import _contract as contract
from ...errors import DiagramError
from ..basic.sources._noise import make_seed
from ..core._block import NativeBlock
from ..core._ports import (
    SAMPLED,
    Numbers,
    Parameter,
    Port,
    Rate,
    Width,
    Widths,
    number,
    parameter,
    periodic,
)
from ..core._vectors import make_record, require_whole

_MOST_BITS = 32
_HISTORY = 4  # rows that the cubic between ticks takes
_MOST_ROWS = _MOST_INPUTS = 1_000_000


def _codes(bits: int) -> tuple[float, float]:
    """Return the smallest and the largest code."""
    return (0.0, 2.0**bits - 1.0)


class AbstractADC(NativeBlock):
    """Ports, parameters and memory of a converter that may sample between ticks."""

    kernel = "adc"
    designs_with_period = True

    def __init__(
        self,
        bits: int,
        *,
        width: Width,
        channels: Callable[[Widths], Sequence[int]],
        count: Width,
        last: int,
        skew: float,
        jitter: float,
        characteristic: list[Parameter],
        unit: str,
        period: float | None,
        offset: float,
    ) -> None:
        timing = [
            parameter("skew", skew, unit="s", doc="from channel to channel", tunable=False),
            parameter(
                "jitter",
                jitter,
                unit="s",
                doc="standard deviation of sampling times",
                # Without jitter and skew the block stores no history of u to sample from.
                tunable=number("jitter", jitter) > 0 or number("skew", skew) > 0,
            ),
        ]
        for item in timing:
            if item.value.ndim or item.value < 0:
                raise DiagramError(
                    f"`{item.name}` is a time of 0 s or more, got {item.value.tolist()}."
                )
        between = skew > 0 or jitter > 0
        if between and period is None:
            raise DiagramError(
                "a converter with skew or jitter samples between the ticks: give it a `period`."
            )
        rate = periodic(period, offset, SAMPLED)
        cycle = rate.period
        if skew and last * skew >= cycle:
            raise DiagramError(
                f"a scan of {last + 1} channels that are {skew:g} s apart takes {last * skew:g} s, "
                f"not less than the period, {cycle:g} s. The skew may be up to, but not including, "
                f"{cycle / last:g} s."
            )

        def latency(step: float) -> int:
            """Ticks from the start of a scan to the first tick that is not before its end."""
            return math.ceil(last * skew / step - 1e-7)

        def integers(widths: Widths) -> list[int]:
            step, period, first, late, rows = widths.step, 1, 0, 0, 0
            if between:
                if jitter > 0.25 * step:
                    raise DiagramError(
                        f"a jitter of {jitter:g} s is more than a quarter of the step, {step:g} s: "
                        f"samples would lie beyond the ticks around them. Use a step of at least "
                        f"{4 * jitter:g} s."
                    )
                late = latency(step)
                if late > _MOST_ROWS:
                    raise DiagramError(
                        f"a scan lasts {late} ticks; at most {_MOST_ROWS} are possible. Use a "
                        f"larger step, or a smaller skew."
                    )
                first = round(offset / step) + late
                period, rows = round(cycle / step), late + _HISTORY
            head = make_record(
                contract.ADC_CHANNELS,
                {
                    contract.ADC_BITS: bits,
                    contract.ADC_POINTS: points,
                    contract.ADC_PERIOD: period,
                    contract.ADC_FIRST: first,
                    contract.ADC_LATENCY: late,
                    contract.ADC_ROWS: rows,
                },
            )
            return [*head, *channels(widths)]

        def when_scans_end(step: float) -> Rate:
            return periodic(cycle, (offset + latency(step) * step) % cycle)

        points = characteristic[-1].value.size
        super().__init__(
            inputs=[Port("u", width, unit)],
            outputs=[
                Port("y", count, unit, doc="value of the code"),
                Port(
                    "code",
                    count,
                    "count",
                    kind="integer",
                    doc="from 0 to 2^bits - 1",
                    limits=_codes(bits),
                ),
                Port("over", count, kind="boolean", doc="whether u was out of range"),
            ],
            parameters=[*characteristic, *timing],
            integers=integers,
            rate=Rate("every_tick", outputs=when_scans_end) if between else rate,
        )


class ADC(AbstractADC):
    """An analog-to-digital converter: y = lower + q code, q = (upper - lower) / 2^bits.

    With v = (1 + gain_error) u + offset_error, code is the number of transitions passed by v::

        code = floor((v - lower) / q + 1/2), from 0 to 2^bits - 1

    if all steps are equal. INL moves the transition into each code by inl(code) q, and DNL by a
    random offset per code, drawn with `seed`, within ± dnl q / 2, so that no step error exceeds it.

    With jitter, u is sampled at t + jitter w[n], w standard normal, independent for each element of
    u. The engine computes u at ticks only: the block samples u at every tick and interpolates
    around t with the cubic through the four newest values. For a sine of frequency f
    the error of this is about (2 pi f step)^3 / 4 of its slope. A jump has no slope: put an anti-
    alias filter before the converter, as on a rig.

    Parameters
    ----------
    bits
        From 1 to 32.
    range
        The pair (lower, upper) in `unit`. The largest output is upper - q.
    gain_error, offset_error
        A fraction, and in `unit`.
    inl
        In codes: a number for a bow, 0 at both ends and `inl` in the middle; or a list of values
        evenly spread from the first code to the last. With 2^bits values it is one for each.
    dnl
        In codes, from 0 to below 1: no step is further from 1 than this.
    jitter
        Standard deviation of the sampling times in s, at most a quarter of the step.
    seed
        Chooses jitter and DNL. If not given, it is derived from the block's path in the top
        diagram: each converter has its own.
    unit
        Unit of u and y.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    """

    def __init__(
        self,
        bits: int = 16,
        range: Sequence[float] = (-10.0, 10.0),
        *,
        gain_error: float = 0.0,
        offset_error: float = 0.0,
        inl: Numbers = 0.0,
        dnl: float = 0.0,
        jitter: float = 0.0,
        seed: int | None = None,
        unit: str = "V",
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        super().__init__(
            bits,
            width="n",
            count="n",
            channels=lambda widths: list(np.arange(widths["n"])),
            last=0,
            skew=0.0,
            jitter=jitter,
            characteristic=_characteristic(
                bits, range, gain_error, offset_error, inl, dnl, seed, unit
            ),
            unit=unit,
            period=period,
            offset=offset,
        )


class ScanList(AbstractADC):
    """Several channels through one ADC: channel k is sampled at start of the scan + k · skew.

    y[k] is channel ``channels[k]``, converted as by an `ADC` of the same characteristic. All change
    together, at the first tick at which the last one has been sampled; blocks behind that
    inherit their rate run there. So a scan shows with the delay that it has.

    Times between ticks are exact: the block keeps u of every tick of a scan, and between them
    follows the cubic through the four nearest. For a sine of frequency f its error is at most
    (2 pi f step)^4 / 24 of the amplitude. With ``skew=0`` all channels are sampled simultaneously.

    Parameters
    ----------
    channels
        Places in u, in the order of sampling, each as often as wanted; or their number.
    skew
        From a channel to the next, in s. A scan must end before the next one starts.
    bits, range, gain_error, offset_error, inl, dnl, jitter, seed
        As of an `ADC`.
    inputs
        Width of u; by default just enough.
    unit
        Unit of u and y.
    period, offset
        Seconds from scan to scan, and of the first one's start.
    """

    def __init__(
        self,
        channels: int | Sequence[int],
        period: float,
        *,
        skew: float = 0.0,
        bits: int = 16,
        range: Sequence[float] = (-10.0, 10.0),
        gain_error: float = 0.0,
        offset_error: float = 0.0,
        inl: Numbers = 0.0,
        dnl: float = 0.0,
        jitter: float = 0.0,
        seed: int | None = None,
        inputs: int | None = None,
        unit: str = "V",
        offset: float = 0.0,
    ) -> None:
        order = _channels(channels)
        width = (
            max(order) + 1 if inputs is None else require_whole("inputs", inputs, 1, _MOST_INPUTS)
        )
        if width <= max(order):
            raise DiagramError(
                f"channel {max(order)} is not among {width} inputs, which are 0 to {width - 1}."
            )
        super().__init__(
            bits,
            width=width,
            count=len(order),
            channels=lambda widths: order,
            last=len(order) - 1,
            skew=skew,
            jitter=jitter,
            characteristic=_characteristic(
                bits, range, gain_error, offset_error, inl, dnl, seed, unit
            ),
            unit=unit,
            period=period,
            offset=offset,
        )


class DAC(NativeBlock):
    """A digital-to-analog converter, held between samples.

    With q = (upper - lower) / 2^bits::

        code = round((u - lower) / q), from 0 to 2^bits - 1
        y    = (1 + gain_error) (lower + q (code + inl(code) + dnl(code))) + offset_error

    where dnl(code) is a number for each code, chosen by `seed`, within ± dnl / 2.

    Parameters
    ----------
    bits, range, gain_error, offset_error, inl, dnl, seed
        As of an `ADC`.
    from_code
        Whether the input is the code itself, port ``code_in`` in counts, rather than volts.
    unit
        Unit of u and y.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    """

    kernel = "dac"
    designs_with_period = True

    def __init__(
        self,
        bits: int = 16,
        range: Sequence[float] = (-10.0, 10.0),
        *,
        gain_error: float = 0.0,
        offset_error: float = 0.0,
        inl: Numbers = 0.0,
        dnl: float = 0.0,
        seed: int | None = None,
        from_code: bool = False,
        unit: str = "V",
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        characteristic = _characteristic(
            bits, range, gain_error, offset_error, inl, dnl, seed, unit
        )
        asked = (
            Port("code_in", "n", "count", kind="integer", doc="code to convert")
            if from_code
            else Port("u", "n", unit, doc="commanded output")
        )
        super().__init__(
            inputs=[asked],
            outputs=[
                Port("y", "n", unit, doc="output signal"),
                Port(
                    "code",
                    "n",
                    "count",
                    kind="integer",
                    doc="from 0 to 2^bits - 1",
                    limits=_codes(bits),
                ),
            ],
            parameters=characteristic,
            integers=[bits, characteristic[-1].value.size, int(bool(from_code))],
            rate=periodic(period, offset, SAMPLED),
        )


def _characteristic(
    bits: int,
    range: Sequence[float],
    gain_error: float,
    offset_error: float,
    inl: Any,
    dnl: float,
    seed: int | None,
    unit: str,
) -> list[Parameter]:
    """Return the parameters of a converter in the order of the kernel, each checked."""
    bits = require_whole("bits", bits, 1, _MOST_BITS)
    ends = parameter("range", range).value
    if ends.shape != (2,) or not ends[0] < ends[1]:
        raise DiagramError(
            f"`range` is a pair (lower, upper) with lower < upper, such as (-10, 10); "
            f"got {range!r}."
        )
    dnl = number("dnl", dnl)
    errors = [
        parameter("gain_error", gain_error, doc="fraction"),
        parameter("offset_error", offset_error, unit=unit, doc="added after the gain"),
    ]
    for item in errors:
        if item.value.ndim:
            raise DiagramError(f"`{item.name}` is one number, got {item.value.tolist()}.")
    if errors[0].value <= -1:
        raise DiagramError(f"`gain_error` is a fraction above -1, got {gain_error!r}.")
    curve = _make_inl(inl, bits)
    steepest = float(np.abs(np.diff(curve)).max() * (curve.size - 1) / (2**bits - 1))
    if not 0 <= dnl < 1 or (steepest and dnl + steepest >= 1):
        raise DiagramError(
            f"`dnl` is from 0 to below 1, in codes, so that codes stay in order; got {dnl!r}"
            + (f" with an INL that changes by up to {steepest:g} a code." if steepest else ".")
        )
    return [
        parameter("lower", ends[0], unit=unit, doc="lower end of the range", tunable=False),
        parameter("upper", ends[1], unit=unit, doc="upper end of the range", tunable=False),
        *errors,
        make_seed(seed, "chooses jitter and DNL"),
        parameter("dnl", dnl, doc="largest error of a step, in codes", tunable=False),
        parameter("inl", curve, doc="evenly spread over the codes, in codes", tunable=False),
    ]


def _make_inl(inl: Any, bits: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return INL at evenly spread codes: two zeros for none, a parabola for a number."""
    given = parameter("inl", inl).value
    if given.ndim == 0:
        if given == 0:
            return np.zeros(2)
        x = np.linspace(0.0, 1.0, min(2**bits, 257))
        return 4.0 * float(given) * x * (1.0 - x)
    if given.ndim > 1 or not 2 <= given.size <= 2**bits:
        raise DiagramError(
            f"`inl` is a number, or a list of 2 to {2**bits} values for {bits} bits, not of shape "
            f"{given.shape}."
        )
    return given


def _channels(channels: int | Sequence[int]) -> list[int]:
    order: list[Any] = []
    if isinstance(channels, Sequence) or np.ndim(channels) == 1:
        order = list(channels)  # type: ignore[arg-type]
    elif isinstance(channels, int | np.integer) and not isinstance(channels, bool):
        order = list(range(require_whole("channels", channels, 1, _MOST_INPUTS)))
    whole = all(isinstance(c, int | np.integer) and not isinstance(c, bool) for c in order)
    if not order or not whole or min(order) < 0:
        raise DiagramError(
            f"`channels` is a number from 1, or a list of places in u from 0, got {channels!r}."
        )
    return [int(c) for c in order]
