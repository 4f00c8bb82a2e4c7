"""Controllers, sensors and data acquisition: the time of one block and tick.

    python benchmarks/instruments.py [--quick] [--json FILE]

Each diagram has many copies of one block, all fed by the same sources; the time of those alone is
taken off. Blocks run at every tick, outputs and updates included. Times are the processor's, the
least of many runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from table import Row, parse_arguments, print_rows, within, write_json
from turns import Entrant, take_turns, timed

try:
    from biella import Diagram
except ModuleNotFoundError as error:
    if error.name != "biella":
        raise
    sys.exit("biella is not installed in this environment: run `pip install .` first.")

from biella.blocks import (
    ADC,
    DAC,
    PID,
    Accelerometer,
    AntiAliasFilter,
    Cam,
    CamLaw,
    Decimator,
    Encoder,
    KalmanFilter,
    LeadLag,
    LoadCell,
    LQTracking,
    Notch,
    ProximityPair,
    Pulse,
    PWMInput,
    PWMOutput,
    RelayTuner,
    Scaling,
    ScanList,
    SCurve,
    Sensor,
    Sine,
    StateFeedback,
    Tachometer,
    TorqueMeter,
    Trapezoid,
    Trigger,
)
from biella.blocks.authoring import AbstractBlock
from biella.blocks.core._units import Unit
from biella.blocks.sensors import presets

STEP = 1e-3
COPIES = 100
LIMIT = 100.0  # ns
TICKS = 2000

A = np.array([[1.0, STEP, 0, 0], [0, 1, -STEP, 0], [0, 0, 1, STEP], [0, 0, 20 * STEP, 1]])
B = np.array([[0.0], [STEP], [0.0], [2 * STEP]])
C = np.eye(4)[[0, 2]]
TURN = [("modified sine", 2.0, 0.03), ("dwell", 1.0), ("cycloidal", 2 * np.pi - 3.0, -0.03)]

CASES: dict[str, Callable[[], AbstractBlock]] = {
    # controllers, observers, motions
    "PID": lambda: PID(2.0, 5.0, 0.1, limits=(-9, 9), rate_limit=1e4, period=STEP),
    "PID, standard form, Tustin": lambda: PID(k=2, ti=1, td=0.1, method="tustin", period=STEP),
    "PID, scheduled": lambda: PID([2, 3], 5.0, 0.1, schedule=[-1, 1], period=STEP),
    "relay auto-tuner": lambda: RelayTuner(1.0, 0.1),
    "state feedback, 4 states, integral": lambda: StateFeedback([1, 2, 3, 4], [5]),
    "Kalman filter, 4 states": lambda: KalmanFilter(A, B, C, Q=1e-4, R=1e-2, period=STEP),
    "Kalman filter, 2 states, varying": lambda: KalmanFilter(
        A[:2, :2], B[:2], [1, 0], Q=1e-4, R=1e-2, covariance=1.0, period=STEP
    ),
    "LQ tracking, 4 states": lambda: LQTracking(A, B, C, [0, 9], np.eye(2), Q=1, R=1),
    "lead": lambda: LeadLag(3.0, 30.0, period=STEP),
    "notch": lambda: Notch(20.0, 4.0, period=STEP),
    "trapezoid": lambda: Trapezoid(1e6, 1e3, 1.0),
    "S-curve": lambda: SCurve(1e6, 1e3, 1.0, 1e-2),
    "cam law, modified sine": lambda: CamLaw("modified sine", 1.0, 1e4),
    "cam": lambda: Cam(TURN),
    # data acquisition
    "ADC, 16 bits": lambda: ADC(16, period=STEP),
    "ADC, INL and DNL": lambda: ADC(16, inl=2.0, dnl=0.5, period=STEP),
    "ADC, jitter": lambda: ADC(16, jitter=1e-5, period=STEP),
    "scan of 4 channels in 10 ticks": lambda: ScanList(4, 10 * STEP, skew=1.1 * STEP),
    "DAC": lambda: DAC(16, period=STEP),
    "anti-alias filter, order 4, rk4": lambda: AntiAliasFilter(20.0),
    "decimation by 10, 201 coefficients": lambda: Decimator(10, period=STEP),
    "tachometer, 60 pulses": lambda: Tachometer(60, average=60, period=STEP),
    "trigger": lambda: Trigger(50.0, pre=100, post=100),
    "calibration of 20 points": lambda: Scaling(readings=np.arange(20), values=np.arange(20) ** 2),
    "PWM out": lambda: PWMOutput(170.0),
    "PWM in": lambda: PWMInput(),
    # sensors
    "sensor, ideal": lambda: Sensor(),
    "torque meter": lambda: TorqueMeter(presets.TORQUE_METER),
    "load cell, 1 axis": lambda: LoadCell(presets.LOAD_CELL),
    "accelerometer, 1 axis": lambda: Accelerometer(presets.ACCELEROMETER, [1.0, 0.0, 0.0]),
    "accelerometer, 3 axes": lambda: Accelerometer(presets.ACCELEROMETER),
    "proximity pair": lambda: ProximityPair(presets.PROXIMITY_PROBE),
    "encoder, by count": lambda: Encoder(4096, period=STEP),
    "encoder, by both, clock": lambda: Encoder(4096, method="both", clock=1e7),
    "encoder, by both, real disc": lambda: Encoder(**presets.OPTICAL_ENCODER, method="both"),
}


SAMPLED = ("relay auto-tuner", "state feedback, 4 states, integral", "trigger")
"""Cases that are added with a period of one step."""


def build(make: Callable[[], AbstractBlock], copies: int, period: float | None) -> Diagram:
    """Make a diagram with copies of a block, or with what feeds them alone."""
    d = Diagram("instruments", step=STEP)
    blocks = [d.add(make(), period=period) for _ in range(copies)]
    for port in make().inputs:
        width = port.width if isinstance(port.width, int) else 1
        if port.kind == "boolean":
            source: AbstractBlock = Pulse(0.05, kind="boolean")
        else:
            unit = str(port.unit) if isinstance(port.unit, Unit) else None
            source = Sine(np.linspace(1.0, 0.5, width), 2.0, unit=unit)
        d.add(source)
        for block in blocks:
            d.connect(source, block[port.name])
    if not d.blocks:
        d.add(Sine())
    return d


def time_blocks(quick: bool) -> dict[str, float]:
    """Give the time of a block and tick in ns."""
    entrants = []
    for name, make in CASES.items():
        period = STEP if name in SAMPLED else None
        for label, copies in ((name, COPIES), (f"{name} without", 0)):
            instance = build(make, copies, period).compile().instantiate()
            instance.run(2)
            run = timed(lambda instance=instance: instance.run(TICKS), time.process_time)
            entrants.append(Entrant(label, run, TICKS * STEP, repeats=2))
    take_turns(entrants, rounds=10 if quick else 40)
    best = {entrant.name: entrant.best for entrant in entrants}
    scale = 1e9 / (TICKS * COPIES)
    return {name: (best[name] - best[f"{name} without"]) * scale for name in CASES}


def main() -> None:
    """Time all and print the table."""
    arguments = parse_arguments("Controllers, sensors and data acquisition: one block and tick.")
    rows: list[Row] = [
        within(name, taken, LIMIT, "ns") for name, taken in time_blocks(arguments.quick).items()
    ]
    print_rows("Instruments, one block and tick", rows)
    if arguments.json:
        write_json(arguments.json, rows)


if __name__ == "__main__":
    main()
