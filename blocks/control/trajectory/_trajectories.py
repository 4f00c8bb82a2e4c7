"""Motions to be followed: position, velocity, acceleration and jerk, that belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import DiagramError, name_list, suggest
from ...core._block import NativeBlock
from ...core._ports import CONTINUOUS, SAMPLED, Port, number, parameter
from ...core._units import parse_unit
from ...core._vectors import require_one_positive
from ._segments import LAWS, Array, make_s_curve, make_trapezoid, stretch

_DERIVATIVES = ("position", "velocity", "acceleration", "jerk")


class AbstractMotion(NativeBlock):
    """A motion over time from rest at one place to rest at another; it can also be triggered.

    ``duration`` is the duration in seconds.
    """

    kernel = "motion"
    can_be_sampled = True

    def __init__(
        self,
        rows: Array,
        before: float,
        to: float,
        *,
        jerk: bool,
        at: float,
        trigger: bool,
        unit: str | None,
    ) -> None:
        self.duration = float(rows[-1, 0] + rows[-1, 1])
        inputs, outputs = [], _outputs(unit, jerk)
        if trigger:
            if at:
                raise DiagramError(
                    "a motion begins at `at` or by a trigger: leave one of them out."
                )
            inputs = [Port("start", kind="boolean", doc="begins the motion where it rises")]
            outputs.append(Port("moving", kind="boolean", doc="whether it has not yet ended"))
        super().__init__(
            inputs=inputs,
            outputs=outputs,
            parameters=[
                parameter("at", at, unit="s", doc="when it begins", hidden=trigger),
                parameter("before", before, unit=unit, doc="where it begins", tunable=False),
                parameter("to", to, unit=unit, doc="where it ends", tunable=False),
                parameter(
                    "duration", self.duration, unit="s", doc="how long it takes", tunable=False
                ),
                parameter("segments", rows, tunable=False, hidden=True),
            ],
            rate=SAMPLED if trigger else CONTINUOUS,
            kernel="motion_triggered" if trigger else None,
            feedthrough=[(name, "start") for name in _first_moved(rows, jerk)]
            if trigger
            else False,
        )


class Trapezoid(AbstractMotion):
    """A motion with a trapezoidal velocity: the fastest with bounds of velocity and acceleration.

    Its jerk is not bounded, so it is not shown. ``duration`` is the duration in seconds.

    Parameters
    ----------
    to, before
        Final and initial position.
    velocity, acceleration
        Largest ones, per second and per second squared; positive.
    deceleration
        Largest one at the end; that of the beginning if not given.
    at
        When it begins, in seconds.
    trigger
        Adds an input ``start``: the motion begins when that becomes true, and each time again that
        it does so after the end, by the same distance further. It is sampled then.
    unit
        Unit of the position.
    """

    def __init__(
        self,
        to: float,
        velocity: float,
        acceleration: float,
        *,
        before: float = 0.0,
        deceleration: float | None = None,
        at: float = 0.0,
        trigger: bool = False,
        unit: str | None = None,
    ) -> None:
        distance = _distance(before, to)
        rows = make_trapezoid(
            distance,
            require_one_positive("velocity", velocity),
            require_one_positive("acceleration", acceleration),
            require_one_positive(
                "deceleration", acceleration if deceleration is None else deceleration
            ),
        )
        super().__init__(
            rows,
            before,
            to,
            jerk=False,
            at=at,
            trigger=trigger,
            unit=unit,
        )


class SCurve(AbstractMotion):
    """A motion with bounds of velocity, acceleration and jerk: the fastest of them.

    ``duration`` is the duration in seconds.

    Parameters
    ----------
    to, before
        Final and initial position.
    velocity, acceleration, jerk
        Largest ones, positive.
    at
        When it begins, in seconds.
    trigger
        Adds an input ``start``: the motion begins when that becomes true, and each time again that
        it does so after the end, by the same distance further. It is sampled then.
    unit
        Unit of the position.
    """

    def __init__(
        self,
        to: float,
        velocity: float,
        acceleration: float,
        jerk: float,
        *,
        before: float = 0.0,
        at: float = 0.0,
        trigger: bool = False,
        unit: str | None = None,
    ) -> None:
        distance = _distance(before, to)
        rows = make_s_curve(
            distance,
            require_one_positive("velocity", velocity),
            require_one_positive("acceleration", acceleration),
            require_one_positive("jerk", jerk),
        )
        super().__init__(
            rows,
            before,
            to,
            jerk=True,
            at=at,
            trigger=trigger,
            unit=unit,
        )


class CamLaw(AbstractMotion):
    """A motion by a cam law, over a given time. With s = (t - at) / duration from 0 to 1:

    - ``"cycloidal"``: s - sin(2π s) / (2π); acceleration without jumps, peak 2π lift / duration²
    - ``"modified sine"``: quarters and a half of sines; peak 5.53, the smallest peak torque
    - ``"modified trapezoid"``: constant, joined by sines; peak 4.89, the smallest acceleration
    - ``"3-4-5"``: 10 s³ - 15 s⁴ + 6 s⁵, which has the least ∫ jerk² dt; peak 5.77
    - ``"4-5-6-7"``: 35 s⁴ - 84 s⁵ + 70 s⁶ - 20 s⁷, whose jerk too starts and ends with 0; peak 7.51

    See `Cam` for a whole turn of laws over the angle of a shaft.

    Parameters
    ----------
    law
        One of these names.
    to, before
        Final and initial position.
    duration
        In seconds.
    at
        When it begins, in seconds.
    trigger
        Adds an input ``start``: the motion begins when that becomes true, and each time again that
        it does so after the end, by the same distance further. It is sampled then.
    unit
        Unit of the position.
    """

    def __init__(
        self,
        law: str,
        to: float,
        duration: float,
        *,
        before: float = 0.0,
        at: float = 0.0,
        trigger: bool = False,
        unit: str | None = None,
    ) -> None:
        rows = stretch(_law(law), require_one_positive("duration", duration), _distance(before, to))
        super().__init__(
            rows,
            before,
            to,
            jerk=True,
            at=at,
            trigger=trigger,
            unit=unit,
        )


class MinimumJerk(CamLaw):
    """The motion with the least ∫ jerk² dt over a given time: 10 s³ - 15 s⁴ + 6 s⁵.

    Parameters
    ----------
    to, before
        Final and initial position.
    duration
        In seconds.
    at
        When it begins, in seconds.
    trigger
        Adds an input ``start``: the motion begins when that becomes true, and each time again that
        it does so after the end, by the same distance further. It is sampled then.
    unit
        Unit of the position.
    """

    def __init__(
        self,
        to: float,
        duration: float,
        *,
        before: float = 0.0,
        at: float = 0.0,
        trigger: bool = False,
        unit: str | None = None,
    ) -> None:
        super().__init__(
            "3-4-5",
            to,
            duration,
            before=before,
            at=at,
            trigger=trigger,
            unit=unit,
        )


class Cam(NativeBlock):
    """A cam: position over the angle of a shaft, f(θ), and what follows from the shaft's motion::

        velocity = f' ω
        acceleration = f'' ω² + f' α
        jerk = f''' ω³ + 3 f'' ω α        (of a shaft whose α does not change)

    A turn is made of rises, returns and dwells by the laws of `CamLaw`. Segments that do not add up
    to a lift of 0 make an indexing cam: each turn starts at the end of the previous one.

    Parameters
    ----------
    segments
        ``(law, angle, lift)`` one after the other from θ = 0: law by its name, angle in rad, how
        far it goes; ``("dwell", angle)`` stands still. The angles make 2π together.
    before
        Position at θ = 0.
    unit
        Unit of the position.
    """

    kernel = "cam"

    def __init__(
        self,
        segments: Sequence[tuple[str | float, ...]],
        *,
        before: float = 0.0,
        unit: str | None = None,
    ) -> None:
        rows, begin, base = [], 0.0, number("before", before, finite=True)
        if not isinstance(segments, Sequence):
            raise DiagramError(f"`segments` of a Cam is a list of them, got {segments!r}.")
        for segment in segments:
            law, angle, lift = _segment(segment)
            rows.append(stretch(_law(law), angle, lift, begin, base))
            begin += angle
            base += lift
        if not abs(begin - 2 * np.pi) < 1e-9:
            raise DiagramError(
                f"the segments of a Cam make 2π rad together, not {begin:.10g}: "
                f"{'add' if begin < 2 * np.pi else 'take away'} "
                f"{np.degrees(abs(begin - 2 * np.pi)):.6g}°."
            )
        rise = base - before
        if abs(rise) < 1e-12 * max(abs(row[2:]).max() for part in rows for row in part):
            rise = 0.0
        super().__init__(
            inputs=[
                Port("angle", unit="rad", doc="of the shaft, over any number of turns"),
                Port("speed", unit="rad/s", default=0.0, doc="of the shaft"),
                Port("angular_acceleration", unit="rad/s2", default=0.0, doc="of the shaft"),
            ],
            outputs=_outputs(unit, True),
            parameters=[
                parameter("rise", rise, unit=unit, doc="rise per turn", tunable=False),
                parameter("segments", np.vstack(rows), tunable=False, hidden=True),
            ],
            feedthrough=[
                (output, name)
                for number, output in enumerate(_DERIVATIVES)
                for name in ("angle", "speed", "angular_acceleration")[: min(number + 1, 3)]
            ],
        )


def _first_moved(rows: Array, jerk: bool) -> list[str]:
    """Return which outputs jump where a motion begins."""
    _, _, _, _, c2, c3, *_, amplitude, w, phase = rows[0]
    jumps = {
        "acceleration": 2 * c2 - amplitude * w**2 * np.sin(phase),
        "jerk": 6 * c3 - amplitude * w**3 * np.cos(phase) if jerk else 0.0,
    }
    return [name for name, jump in jumps.items() if jump] + ["moving"]


def _outputs(unit: str | None, jerk: bool) -> list[Port]:
    made = []
    known, second = parse_unit(unit) if unit else None, parse_unit("s")
    for name in _DERIVATIVES[: 4 if jerk else 3]:
        made.append(Port(name, unit=known))
        known = known / second if known else None
    return made


def _distance(before: float, to: float) -> float:
    start, end = number("before", before, finite=True), number("to", to, finite=True)
    if start == end:
        raise DiagramError(f"a motion goes from `before` to another place, got {end:g} for both.")
    return end - start


def _law(name: Any) -> Array:
    if isinstance(name, str) and name == "dwell":
        return stretch(LAWS["3-4-5"](), 1.0, 0.0)
    if not isinstance(name, str) or name not in LAWS:
        raise DiagramError(
            f"there is no law {name!r}.{suggest(str(name), LAWS)} Laws: {name_list(LAWS)}."
        )
    return LAWS[name]()


def _segment(given: Any) -> tuple[str, float, float]:
    stands = (
        isinstance(given, Sequence) and given and isinstance(given[0], str) and given[0] == "dwell"
    )
    if not isinstance(given, Sequence) or len(given) != (2 if stands else 3):
        raise DiagramError(
            f"a segment of a Cam is (law, angle, lift) or ('dwell', angle), got {given!r}."
        )
    angle = require_one_positive("angle", given[1])
    return given[0], angle, 0.0 if len(given) == 2 else number("lift", given[2], finite=True)
