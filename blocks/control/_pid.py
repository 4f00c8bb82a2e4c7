"""PID: the controller of most loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, Literal

import numpy as np

from ... import _contract as contract
from ...errors import DiagramError
from ..core._block import NativeBlock
from ..core._ports import SAMPLED, Numbers, Parameter, Port, Same, number, parameter, periodic
from ..core._units import Unit, parse_unit
from ..core._vectors import make_record, require_choice, require_rising

Gains = float | Sequence[float] | np.ndarray[Any, np.dtype[np.float64]]
"""One gain, or one for each breakpoint of a schedule."""

_METHODS = {"backward": contract.PID_BACKWARD, "tustin": contract.PID_TUSTIN}
_ANTI_WINDUP = {
    "none": contract.PID_WINDS_UP,
    "clamping": contract.PID_CLAMPING,
    "back-calculation": contract.PID_BACK_CALCULATION,
}
_TERMS = ("proportional", "integral", "derivative")
_FILTER = 10.0
"""How much shorter than the derivative time the filter is, unless it is given."""


class PID(NativeBlock):
    """A PID controller with a sample time T. With reference r, measurement m and e = r - m::

        P = kp (b r - m)
        I = I[n-1] + ki T e                     (Tustin: ki T (e + e[n-1]) / 2)
        D = (tf D[n-1] + kd d) / (tf + T)       (Tustin: ((2 tf - T) D[n-1] + 2 kd d) / (2 tf + T))
        v = P + I + D + feedforward             d = c (r - r[n-1]) - (m - m[n-1])

    that is v = kp (b r - m) + ki / s (r - m) + kd s / (1 + tf s) (c r - m), with s replaced by
    (1 - 1/z) / T or by Tustin's 2 / T (z - 1) / (z + 1). In standard form kp = k, ki = k / ti and
    kd = k td. The derivative acts on the measurement alone with c = 0 and on the error with c = 1.
    y is v, limited in rate by `rate_limit` and then saturated to `limits`.

    Where y is not v, the integral term would wind up. ``"clamping"`` lets it go no further than
    where v meets the limit. ``"back-calculation"`` adds T / tracking_time (y - v) to it.

    While the input ``auto`` is false, y follows the input ``manual`` within the limits, and the
    integral term tracks it such that v = y: the transfer to automatic mode is bumpless. The
    transfer to manual mode is bumpless if ``manual`` has followed y, or if there is a rate limit.
    Gains may change during a run without a bump: the change of P due to a new kp or b is
    subtracted from I. Without integral action (ki = 0) there is no bumpless transfer, because I
    would keep the offset forever: y then follows the law above immediately.

    With a `schedule` the gains are lists, one value for each of its breakpoints, and the input
    ``schedule`` selects the gains by linear interpolation, held constant beyond the ends. Gains
    change without a bump, so the output does not jump when ``schedule`` does.

    Parameters
    ----------
    kp, ki, kd
        Parallel form. Negative ones act in reverse.
    k, ti, td
        Standard form, instead: gain, and integral and derivative times in seconds; `ti` is infinite
        without integral action.
    schedule
        Breakpoints of the gains, increasing: then kp, ki and kd are lists, or one number for all
        breakpoints.
    schedule_unit
        Unit of the input ``schedule``.
    filter_time
        tf in seconds. By default a tenth of the derivative time kd / kp, with a schedule of the
        longest; 0 without one.
    b, c
        Set-point weights.
    limits
        ``(lower, upper)`` of y; infinite ones do not limit.
    rate_limit
        Largest change of y per second: a number, or ``(falling, rising)``, both positive.
    anti_windup
        ``"clamping"``, ``"back-calculation"`` or ``"none"``.
    tracking_time
        Of back-calculation, in seconds; one below T counts as T. By default sqrt(ti td), or ti
        without a derivative.
    method
        ``"backward"`` or ``"tustin"``. Tustin's derivative needs tf >= T / 2: below, it would ring.
    initial
        Integral term at the start.
    unit, input_unit
        Of y, and of reference and measurement; the gains have their quotient.
    period, offset
        Sample time T in seconds; without one, that of the input, or every tick if it is continuous.
    """

    kernel = "pid"
    designs_with_period = True

    def __init__(
        self,
        kp: Gains | None = None,
        ki: Gains | None = None,
        kd: Gains | None = None,
        *,
        k: float | None = None,
        ti: float | None = None,
        td: float | None = None,
        filter_time: float | None = None,
        b: float = 1.0,
        c: float = 0.0,
        limits: tuple[float, float] | None = None,
        rate_limit: float | tuple[float, float] | None = None,
        anti_windup: Literal["clamping", "back-calculation", "none"] = "clamping",
        tracking_time: float | None = None,
        method: Literal["backward", "tustin"] = "backward",
        initial: float = 0.0,
        schedule: Numbers | None = None,
        unit: str | None = None,
        input_unit: str | None = None,
        schedule_unit: str | None = None,
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        of_output = parse_unit(unit) if unit else None
        of_input = parse_unit(input_unit) if input_unit else None
        standard = _choose_form({"kp": kp, "ki": ki, "kd": kd}, {"k": k, "ti": ti, "td": td})
        per = of_output / of_input if of_output and of_input else None
        table = [] if schedule is None else _schedule(schedule, schedule_unit, kp, ki, kd, per)
        if table and standard:
            raise DiagramError("a schedule is of kp, ki and kd, not of the standard form.")
        if table:
            gains = [
                replace(row, name=n, hidden=True, value=row.value[0])
                for n, row in zip(("kp", "ki", "kd"), table[1:], strict=True)
            ]
            rows = list(zip(*(row.value.tolist() for row in table[1:]), strict=True))
        else:
            gains = _standard(k, ti, td, per) if standard else _parallel(kp, ki, kd, per)
            rows = [tuple(float(g.value) for g in gains)]
        integral, derivative = _longest([_times(standard, *row) for row in rows])
        discretization = require_choice("method", method, _METHODS)
        filter_time = (
            _default_filter(derivative)
            if filter_time is None
            else number("filter_time", filter_time)
        )
        rate = periodic(period, offset, SAMPLED)
        _check_filter(filter_time, derivative, method == "tustin", rate.period)
        tracking_time = (
            _default_tracking(integral, derivative)
            if tracking_time is None
            else number("tracking_time", tracking_time)
        )
        if not tracking_time >= 0:
            raise DiagramError(
                f"`tracking_time` is a time in seconds, 0 or positive, got {tracking_time!r}."
            )
        lower, upper = _pair("limits", limits, (-np.inf, np.inf))
        if not lower <= upper:
            raise DiagramError(f"`limits` are (lower, upper) with lower <= upper, got {limits!r}.")
        rates = (rate_limit, rate_limit) if isinstance(rate_limit, Real) else rate_limit
        falling, rising = _pair("rate_limit", rates, (np.inf, np.inf))
        if not (falling > 0 and rising > 0):
            raise DiagramError(
                f"`rate_limit` is a positive change per second, or two, (falling, rising); "
                f"got {rate_limit!r}."
            )
        control: Any = of_output or Same("y")
        measured: Any = of_input or Same("u")
        slope = of_output / parse_unit("s") if of_output else None
        super().__init__(
            inputs=[
                Port("reference", unit=measured, doc="set point of the measurement"),
                Port("measurement", unit=measured, doc="controlled variable"),
                Port("auto", kind="boolean", default=1.0, doc="false: y follows `manual`"),
                Port("manual", unit=control, default=0.0, doc="y while not in automatic mode"),
                Port("feedforward", unit=control, default=0.0, doc="added to the three terms"),
                *([Port("schedule", unit=schedule_unit, doc="where gains are")] if table else []),
            ],
            outputs=[
                Port(
                    "y",
                    unit=control,
                    doc="control signal to the actuator",
                    limits=("lower", "upper"),
                ),
                Port("proportional", unit=control, doc="term P"),
                Port("integral", unit=control, doc="term I"),
                Port("derivative", unit=control, doc="term D"),
                Port("saturated", kind="boolean", doc="whether a limit or rate limit is active"),
            ],
            parameters=[
                *gains,
                _number(
                    "filter_time",
                    filter_time,
                    "s",
                    "time constant of the derivative's filter",
                    0.0,
                ),
                _number("b", b, "1", "weight of the reference in P"),
                _number("c", c, "1", "weight of the reference in D"),
                _number("lower", lower, of_output, "smallest y"),
                _number("upper", upper, of_output, "largest y"),
                _number("falling", falling, slope, "fastest fall of y per second", 0.0),
                _number("rising", rising, slope, "fastest rise of y per second", 0.0),
                _number(
                    "tracking_time", tracking_time, "s", "time constant of back-calculation", 0.0
                ),
                parameter(
                    "initial", initial, unit=of_output, doc="term I at the start", tunable=False
                ),
                *table,
            ],
            rate=rate,
            feedthrough=[
                *(
                    (output, name)
                    for output in ("y", "integral", "saturated")
                    for name in ("reference", "measurement", "auto", "manual", "feedforward")
                ),
                ("proportional", "reference"),
                ("proportional", "measurement"),
                ("derivative", "reference"),
                ("derivative", "measurement"),
                *((output, "schedule") for output in (*_TERMS, "saturated", "y") if table),
            ],
            integers=make_record(
                contract.PID_INTEGERS,
                {
                    contract.PID_FORM: contract.PID_STANDARD if standard else contract.PID_PARALLEL,
                    contract.PID_METHOD: discretization,
                    contract.PID_WINDUP: require_choice("anti_windup", anti_windup, _ANTI_WINDUP),
                    contract.PID_POINTS: len(rows) if table else 0,
                },
            ),
        )


def _choose_form(parallel: dict[str, Gains | None], standard: dict[str, float | None]) -> bool:
    """Return whether the gains are those of the standard form."""
    given = [[name for name, v in form.items() if v is not None] for form in (parallel, standard)]
    if given[0] and given[1]:
        raise DiagramError(
            f"PID takes kp, ki, kd or k, ti, td; got {', '.join(given[0] + given[1])}."
        )
    if not given[0] and not given[1]:
        raise DiagramError("PID needs gains: kp, ki, kd (parallel form) or k, ti, td (standard).")
    if given[1] and standard["k"] is None:
        raise DiagramError(f"PID in standard form needs k in addition to {', '.join(given[1])}.")
    return bool(given[1])


def _schedule(
    breakpoints: Any, unit: str | None, kp: Any, ki: Any, kd: Any, per: Unit | None
) -> list[Parameter]:
    """Return the table: breakpoints, and each gain at them."""
    made = [
        parameter(
            "schedule_breakpoints", breakpoints, unit=unit, doc="of the schedule", tunable=False
        )
    ]
    require_rising("schedule", made[0])
    count, second = made[0].value.size, parse_unit("s")
    units = (per, per / second if per else None, per * second if per else None)
    for name, gain, of_gain in zip(("kp", "ki", "kd"), (kp, ki, kd), units, strict=True):
        given = parameter(name, 0.0 if gain is None else gain).value
        if given.ndim > 1 or given.size not in (1, count):
            raise DiagramError(
                f"`{name}` has {given.size} values, the schedule {count} breakpoints: give one "
                f"for each."
            )
        filled = np.broadcast_to(given, count)
        made.append(
            parameter(f"schedule_{name}", filled, unit=of_gain, doc=f"{name} at each place")
        )
    return made


def _parallel(
    kp: Gains | None, ki: Gains | None, kd: Gains | None, per: Unit | None
) -> list[Parameter]:
    second = parse_unit("s")
    return [
        _gain("kp", 0.0 if kp is None else kp, per, "proportional gain"),
        _gain("ki", 0.0 if ki is None else ki, per / second if per else None, "integral gain"),
        _gain("kd", 0.0 if kd is None else kd, per * second if per else None, "derivative gain"),
    ]


def _standard(
    k: float | None, ti: float | None, td: float | None, per: Unit | None
) -> list[Parameter]:
    ti, td = np.inf if ti is None else number("ti", ti), number("td", 0.0 if td is None else td)
    if not ti > 0:
        raise DiagramError(
            f"`ti` must be positive seconds, got {ti!r}; leave it out for no integral action."
        )
    if not td >= 0:
        raise DiagramError(f"`td` is a time in seconds, 0 or positive, got {td!r}.")
    return [
        _gain("k", k, per, "gain"),
        _number("ti", ti, "s", "integral time"),
        _gain("td", td, parse_unit("s"), "derivative time"),
    ]


def _gain(name: str, value: Any, unit: Unit | None, doc: str) -> Parameter:
    made = parameter(name, value, unit=unit, doc=doc)
    if made.value.ndim:
        raise DiagramError(f"`{name}` of a PID is one number, got {value!r}.")
    return made


def _number(
    name: str, value: Any, unit: str | Unit | None, doc: str, minimum: float | None = None
) -> Parameter:
    """Make a parameter that may be infinite."""
    made = parameter(name, value, unit=unit, doc=doc, finite=False, minimum=minimum)
    if made.value.ndim or np.isnan(made.value):
        raise DiagramError(f"`{name}` of a PID is one number, got {value!r}.")
    return made


def _times(standard: bool, first: float, second: float, third: float) -> tuple[float, float]:
    """Return integral and derivative time in s; NaN for a missing one."""
    if standard:
        return second, third
    integral = np.inf if second == 0 else first / second if first else np.nan
    derivative = 0.0 if third == 0 else third / first if first else np.nan
    return abs(integral), abs(derivative)


def _longest(times: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the longest integral time that there is, and the longest derivative time."""
    integral, derivative = np.array(times).T
    there = integral[np.isfinite(integral)]
    return float(there.max()) if there.size else float(integral[0]), float(derivative.max())


def _default_filter(derivative: float) -> float:
    if np.isnan(derivative):
        raise DiagramError(
            "without kp there is no derivative time to derive the filter from: give `filter_time` "
            "in seconds."
        )
    return derivative / _FILTER


def _default_tracking(integral: float, derivative: float) -> float:
    if not np.isfinite(integral):
        return 0.0  # nothing to track, or no time to go by: within one sample
    return float(np.sqrt(integral * derivative)) if derivative > 0 else integral


def _check_filter(tf: float, derivative: float, tustin: bool, period: float) -> None:
    if not (np.isfinite(tf) and tf >= 0):
        raise DiagramError(f"`filter_time` is a time in seconds, 0 or positive, got {tf!r}.")
    if tustin and derivative != 0 and tf < 0.5 * period:
        raise DiagramError(
            f"a derivative by Tustin's method rings if its filter_time, {tf:g} s, is below half "
            f"the period, {0.5 * period:g} s: take a longer one, or method='backward'."
        )


def _pair(name: str, given: Any, default: tuple[float, float]) -> tuple[float, float]:
    if given is None:
        return default
    if not isinstance(given, Sequence | np.ndarray) or np.shape(given)[:1] != (2,):
        raise DiagramError(f"`{name}` is a pair of numbers, got {given!r}.")
    first, second = (_number(name, value, None, name).value for value in given)
    return float(first), float(second)
