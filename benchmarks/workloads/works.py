"""The two diagrams that every participant of `diagram.py` runs, in numbers and in words.

PID loop: 16 elementary blocks, all continuous, four states.

    ref        Step       1 from t = 0
    err        Sum        ref - x
    kp         Gain       KP * err
    ki         Gain       KI * err
    i          Integrator of ki, from 0
    kd         Gain       KD * err
    lag        Sum        kd - d
    n          Gain       N * lag               n is the filtered derivative KD s N / (s + N)
    d          Integrator of n, from 0
    pid        Sum        kp + i + n
    sat        Saturation of pid to [-LIMIT, LIMIT]
    force      Sum        sat - damping - stiffness
    v          Integrator of force, from 0
    x          Integrator of v, from 0          the output
    damping    Gain       C * v
    stiffness  Gain       K * x

The numbers put the actuator in saturation for the first part of the run and leave a slow mode that
is still moving at 10 s, so that the final output remembers the whole run and the comparison of
final outputs means something.

Line: a constant 1 through (gain 1/2, integrator from 1) a hundred times. The integrators start
from 1 and not from 0 so that no participant is slowed down by subnormal numbers. The output is
sum((t/2)^k / k!, k = 0..100), which is exp(t/2) to the last digit.

Only the standard library is used here: peers import this from their own environment.
"""

import math

STEP = 1e-3
"""Step of the integrator, seconds. Classical RK4 everywhere."""

PID_SECONDS = 10.0
PID_BLOCKS = 16
PID = {
    "KP": 6.0,
    "KI": 1.0,
    "KD": 1.5,
    "N": 100.0,
    "LIMIT": 4.0,
    "C": 0.4,
    "K": 2.0,
}

LINE_SECONDS = 1.0
LINE_PAIRS = 100
LINE_BLOCKS = 2 * LINE_PAIRS + 1
LINE_GAIN = 0.5
LINE_START = 1.0

SECONDS = {"pid": PID_SECONDS, "line": LINE_SECONDS}
BLOCKS = {"pid": PID_BLOCKS, "line": LINE_BLOCKS}


def line_output(seconds: float) -> float:
    """Exact output of the line at the end of `seconds`, see above."""
    return math.exp(LINE_GAIN * seconds)


def ticks(seconds: float) -> int:
    """Number of steps in a run of `seconds`."""
    return round(seconds / STEP)
