"""Signal chain of all sensors, from the measured quantity to the output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _contract as contract
from ...errors import DiagramError
from ..basic.sources._noise import make_seed
from ..core._block import NativeBlock
from ..core._ports import (
    SAMPLED,
    Matrix,
    Numbers,
    Parameter,
    Port,
    Widths,
    number,
    parameter,
    periodic,
)
from ..core._units import Unit, parse_unit
from ..core._vectors import make_record, require_choice, require_rising

Array = npt.NDArray[np.float64]

_BUTTERWORTH = math.sqrt(0.5)
_MOST_SAMPLES = 10_000_000
"""Doubles that the kernel keeps for a block and for each channel."""


@dataclass(frozen=True, slots=True)
class Instrument:
    """Data-sheet properties of an instrument; the defaults describe an ideal one.

    Numbers may be vectors with one value for each channel. Full scale, hysteresis and nonlinearity
    refer to the measured quantity; everything from `gain` on is in the unit of the output.

    Parameters
    ----------
    gain
        Output over quantity.
    unit
        Unit of the output; if not given, that of the quantity.
    offset
        Output at zero: an accelerometer's bias.
    full_scale
        Full scale of the quantity. Hysteresis and nonlinearity are fractions of it.
    nonlinearity
        Deviation from the straight line as a fraction of full scale (0.1 % is 1e-3), as a function
        of s, the fraction of full scale. A number: the largest deviation of a cubic that is exact
        at 0 and at both ends.
        A list: coefficients of a polynomial in s, the highest power first. Rows of (s, deviation):
        a table with linear interpolation.
    hysteresis
        Width of the loop in the middle of a full cycle, as a fraction of full scale.
    bandwidth
        Frequency of -3 dB in Hz; no low-pass if not given.
    order, damping
        Order of the low-pass: 1, or 2 with a damping ratio, that of Butterworth if not given.
    noise
        One-sided density in the unit of the output per √Hz, before the low-pass. Without a
        bandwidth it fills the band up to half the sample rate.
    drift, random_walk
        Drift of the offset per s, and random walk of the offset per √s.
    resolution
        Step of the output; 0 for none.
    limits
        Lowest and highest output.
    latency
        In s: none, or at least the sample time.
    dropout_value, stuck_value
        Output while the fault is active; the last value if not given.
    """

    gain: Numbers = 1.0
    unit: str | None = None
    offset: Numbers = 0.0
    full_scale: Numbers | None = None
    nonlinearity: Matrix = 0.0
    hysteresis: Numbers = 0.0
    bandwidth: Numbers | None = None
    order: int = 1
    damping: Numbers = _BUTTERWORTH
    noise: Numbers = 0.0
    drift: Numbers = 0.0
    random_walk: Numbers = 0.0
    resolution: Numbers = 0.0
    limits: tuple[Numbers, Numbers] = (-math.inf, math.inf)
    latency: float = 0.0
    dropout_value: Numbers | None = None
    stuck_value: Numbers | None = None

    def __post_init__(self) -> None:
        _require("gain", self.gain, lambda v: v != 0.0, "a number other than 0")
        object.__setattr__(self, "latency", number("latency", self.latency))
        for name in ("hysteresis", "noise", "random_walk", "resolution", "latency"):
            _require(name, getattr(self, name), lambda v: v >= 0.0, "0 or above")
        for name in ("offset", "drift"):
            _require(name, getattr(self, name), lambda v: v == v, "a number")
        _require("damping", self.damping, lambda v: v > 0.0, "a ratio above 0")
        if self.bandwidth is not None:
            _require(
                "bandwidth",
                self.bandwidth,
                lambda v: v > 0.0,
                "a frequency in Hz above 0, or None for no low-pass",
            )
        if self.order not in (1, 2):
            raise DiagramError(f"`order` of an Instrument is 1 or 2, got {self.order!r}.")
        _check_limits(self.limits)
        curve = self.curve
        if self.full_scale is not None:
            _require("full_scale", self.full_scale, lambda v: v > 0.0, "above 0")
        elif curve.size or np.any(np.asarray(self.hysteresis) != 0.0):
            raise DiagramError(
                "`nonlinearity` and `hysteresis` of an Instrument are parts of full scale: give "
                "`full_scale` too, in the unit of the measured quantity."
            )

    @property
    def curve(self) -> Array:
        """The nonlinearity: polynomial coefficients, rows of a table, or an empty array."""
        given = parameter("nonlinearity", self.nonlinearity).value
        if given.ndim == 0:
            # s - s³ is at most 2 / √27, at s = 1 / √3.
            top = float(given) * math.sqrt(27.0) / 2.0
            return np.array([-top, 0.0, top, 0.0]) if top else np.empty(0)
        if given.ndim == 2 and given.shape[1] == 2:
            require_rising("nonlinearity[:, 0]", parameter("s", given[:, 0]))
        elif given.ndim != 1:
            raise DiagramError(
                f"`nonlinearity` of an Instrument is a number, a list of coefficients or rows of "
                f"(part of full scale, deviation); got an array of shape {given.shape}."
            )
        return given

    def ideal(self) -> Instrument:
        """Return an instrument with the same gain, offset and unit, and no other property."""
        return Instrument(gain=self.gain, unit=self.unit, offset=self.offset)


def _require(name: str, value: Any, holds: Any, what: str) -> None:
    made = parameter(name, value)
    if made.value.ndim > 1 or not all(holds(float(v)) for v in np.atleast_1d(made.value)):
        raise DiagramError(f"`{name}` of an Instrument is {what}; got {value!r}.")


def _check_limits(limits: Any) -> None:
    try:
        lower, upper = (np.asarray(limit, dtype=np.float64) for limit in limits)
        rises = bool(np.all(lower < upper))
    except (TypeError, ValueError):
        rises = False
    if not rises:
        raise DiagramError(
            f"`limits` of an Instrument are (lowest, highest) output, the lowest first and below "
            f"the highest; got {limits!r}."
        )


def read_unit(unit: str | Unit | None) -> Unit | None:
    """Return a unit from its name."""
    return unit if unit is None or isinstance(unit, Unit) else parse_unit(unit)


class AbstractSensor(NativeBlock):
    """Base of sensors: their own input ports, `dropout` and `stuck`, and one output ``y``.

    Parameters
    ----------
    instrument
        Signal chain of the sensor.
    measures
        Ports of the measured quantities.
    channels
        Number of channels.
    quantity
        Unit at the input of the signal chain.
    seed
        Seed of the noise and the random walk.
    faults
        Whether fault signals are for ``"all"`` channels or for ``"each"``.
    own_parameters, own_integers
        Parameters and integers of the kernel.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    """

    kernel = "sensor"
    designs_with_period = True

    def __init__(
        self,
        instrument: Instrument | None,
        measures: Sequence[Port],
        channels: int,
        quantity: Unit | None,
        *,
        seed: int | None,
        faults: str,
        own_parameters: Sequence[Parameter] = (),
        own_integers: Sequence[int] = (),
        period: float | None,
        offset: float,
    ) -> None:
        self.instrument = chain = _check_instrument(type(self).__name__, instrument)
        wide = channels if require_choice("`faults`", faults, ("all", "each")) else 1
        curve = chain.curve
        integers = {
            contract.INSTRUMENT_ORDER: 0 if chain.bandwidth is None else chain.order,
            contract.INSTRUMENT_TABLE: int(curve.ndim == 2),
            contract.INSTRUMENT_CURVE: len(curve),
            contract.INSTRUMENT_DROPOUT_HOLDS: int(chain.dropout_value is None),
            contract.INSTRUMENT_STUCK_HOLDS: int(chain.stuck_value is None),
        }
        own = list(own_integers)
        unit = quantity if chain.unit is None else read_unit(chain.unit)
        fault_ports = [
            Port("dropout", wide, kind="boolean", default=0.0, doc="true while the signal is lost"),
            Port("stuck", wide, kind="boolean", default=0.0, doc="true while it does not move"),
        ]
        at_once = [] if chain.latency else [port.name for port in measures]
        super().__init__(
            inputs=[*measures, *fault_ports],
            outputs=[Port("y", channels, unit=unit, doc="output of the instrument")],
            parameters=[
                *_make_numbers(chain, channels, seed, quantity, unit),
                *([parameter("curve", curve.T, doc="", hidden=True)] if curve.size else []),
                *own_parameters,
            ],
            rate=periodic(period, offset, SAMPLED),
            feedthrough=[("y", name) for name in (*at_once, "dropout", "stuck")],
            integers=lambda widths: [
                *make_record(
                    contract.INSTRUMENT_INTEGERS,
                    {**integers, contract.INSTRUMENT_ROOM: _room(chain, widths)},
                ),
                *own,
            ],
        )


def _check_instrument(sensor: str, instrument: Instrument | None) -> Instrument:
    if instrument is None:
        return Instrument()
    if not isinstance(instrument, Instrument):
        raise DiagramError(
            f"{sensor} takes an Instrument, such as Instrument(gain=0.1, unit='V', bandwidth=1e3), "
            f"or one of biella.blocks.sensors.presets; got {instrument!r}."
        )
    return instrument


def _room(chain: Instrument, widths: Widths) -> int:
    """How many samples are on their way."""
    latency, step = float(chain.latency), widths.step
    if latency == 0.0:
        return 0
    if latency < step * (1 - 1e-9):
        raise DiagramError(
            f"a latency of {latency:g} s is shorter than the sample time, {step:g} s. Use 0, at "
            f"least {step:g} s, or a shorter sample time."
        )
    if latency / step > _MOST_SAMPLES:
        raise DiagramError(
            f"a latency of {latency:g} s keeps {latency / step:.3g} samples at a sample time of "
            f"{step:g} s; at most {_MOST_SAMPLES} fit."
        )
    return math.ceil(latency / step * (1 - 1e-9)) + 1


def _make_numbers(
    chain: Instrument, channels: int, seed: int | None, quantity: Unit | None, unit: Unit | None
) -> list[Parameter]:
    hertz, second = parse_unit("Hz"), parse_unit("s")
    ratio = unit / quantity if unit is not None and quantity is not None else None
    rate = None if unit is None else unit / second
    lower, upper = chain.limits

    def make(
        name: str, value: Any, doc: str, unit: Unit | None = None, *, tunable: bool = True
    ) -> Parameter:
        # A parameter that is not in use has a placeholder value.
        given = parameter(name, 1.0 if value is None else value, finite=False).value
        if given.ndim and given.shape != (channels,):
            raise DiagramError(
                f"`{name}` has {given.size} values, but there are {channels} channels: give one "
                f"for each, or a number for all."
            )
        filled = np.broadcast_to(given, (channels,)) if channels > 1 else given.reshape(())
        return parameter(
            name, filled, unit=unit, doc=doc, tunable=tunable, hidden=value is None, finite=False
        )

    damping = chain.damping if chain.bandwidth is not None and chain.order == 2 else None
    return [
        make_seed(seed),
        parameter("latency", chain.latency, unit="s", tunable=False, hidden=True),
        make("gain", chain.gain, "output over quantity", ratio),
        make("offset", chain.offset, "output at zero", unit),
        make("full_scale", chain.full_scale, "of the quantity", quantity),
        make("hysteresis", chain.hysteresis, "width of the loop over full scale"),
        make("bandwidth", chain.bandwidth, "where it is 3 dB down", hertz, tunable=False),
        make("damping", damping, "of the low-pass", tunable=False),
        make("noise", chain.noise, "one-sided density, in the unit of y per √Hz"),
        make("drift", chain.drift, "of the offset in time", rate),
        make("random_walk", chain.random_walk, "of the offset, in the unit of y per √s"),
        make("resolution", chain.resolution, "step of the output; 0 for none", unit),
        make("lower", lower, "lowest output", unit),
        make("upper", upper, "highest output", unit),
        make("dropout_value", chain.dropout_value, "while dropped out", unit),
        make("stuck_value", chain.stuck_value, "while stuck", unit),
    ]
