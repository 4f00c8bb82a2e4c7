"""A relay that finds the gains of a PID."""

from __future__ import annotations

from ...errors import DiagramError
from ..core._block import NativeBlock
from ..core._ports import SAMPLED, Port, Same, number, parameter
from ..core._units import parse_unit
from ..core._vectors import require_choice, require_one_positive, require_whole

RULES = {
    "ziegler-nichols": (0.6, 0.5, 0.125),
    "ziegler-nichols pi": (0.45, 1 / 1.2, 0.0),
    "tyreus-luyben": (1 / 2.2, 2.2, 1 / 6.3),
    "tyreus-luyben pi": (1 / 3.2, 2.2, 0.0),
}
"""kp over Ku, and integral and derivative time over Pu."""
_MOST_CYCLES = 1000


class RelayTuner(NativeBlock):
    """A relay auto-tuner: it makes a loop oscillate and computes PID gains from the limit cycle.

    It sits between a controller and the plant. While ``start`` is false, y is ``control``. When it
    becomes true, y = bias ± amplitude, where the bias is the value of ``control`` at that instant:
    + while the reference is above the measurement, - while it is below. The sign switches when the
    error passes the hysteresis ε. The loop then oscillates near its ultimate frequency. When
    `cycles` consecutive cycles agree, with period Pu and amplitude a of the measurement, the
    relay's describing function gives the ultimate gain of a proportional controller::

        Ku = 4 amplitude / (π √(a² - ε²))

    and y is ``control`` again. The describing function includes the first harmonic only: Ku and Pu
    are accurate to a few percent if the plant attenuates the third one.

    Rules for kp, ti = kp / ki and td = kd / kp:

    - ``"ziegler-nichols"``: 0.6 Ku, Pu / 2, Pu / 8; fast, with a quarter of each swing left
    - ``"ziegler-nichols pi"``: 0.45 Ku, Pu / 1.2
    - ``"tyreus-luyben"``: Ku / 2.2, 2.2 Pu, Pu / 6.3; calmer
    - ``"tyreus-luyben pi"``: Ku / 3.2, 2.2 Pu

    Tuning is aborted if ``start`` becomes false before it is done.

    K. J. Åström and T. Hägglund, Automatica 20 (1984) 645-651.

    Parameters
    ----------
    amplitude
        Amplitude of the relay, in the unit of y; negative for a plant with negative gain.
    hysteresis
        ε, in the unit of the measurement; larger than its noise.
    cycles
        Number of consecutive cycles that must agree.
    tolerance
        Largest relative difference of period and amplitude between two cycles.
    rule
        One of those above.
    unit, input_unit
        Unit of y, and unit of reference and measurement.
    """

    kernel = "relay_tuner"

    def __init__(
        self,
        amplitude: float,
        hysteresis: float = 0.0,
        *,
        cycles: int = 3,
        tolerance: float = 0.05,
        rule: str = "ziegler-nichols",
        unit: str | None = None,
        input_unit: str | None = None,
    ) -> None:
        of_output = parse_unit(unit) if unit else None
        of_input = parse_unit(input_unit) if input_unit else None
        size, slack = number("amplitude", amplitude, finite=True), number("hysteresis", hysteresis)
        if size == 0:
            raise DiagramError("`amplitude` of a RelayTuner is a number other than 0, got 0.")
        if not 0 <= slack < float("inf"):
            raise DiagramError(f"`hysteresis` is 0 or above, got {hysteresis!r}.")
        chosen = list(RULES.values())[require_choice("rule", rule, list(RULES))]
        control, measured = of_output or Same("y"), of_input or Same("u")
        per = of_output / of_input if of_output and of_input else None
        second = parse_unit("s")
        inputs = ("reference", "measurement", "start", "control")
        super().__init__(
            inputs=[
                Port("reference", unit=measured, doc="set point of the measurement"),
                Port("measurement", unit=measured, doc="controlled variable"),
                Port("start", kind="boolean", doc="starts tuning when it becomes true"),
                Port("control", unit=control, default=0.0, doc="y while it does not tune"),
            ],
            outputs=[
                Port("y", unit=control, doc="control signal to the plant"),
                Port("running", kind="boolean", doc="whether it tunes"),
                Port("done", kind="boolean", doc="whether the gains are available"),
                Port("ku", unit=per, doc="ultimate gain"),
                Port("pu", unit="s", doc="ultimate period"),
                Port("kp", unit=per, doc="by the rule"),
                Port("ki", unit=per / second if per else None, doc="by the rule"),
                Port("kd", unit=per * second if per else None, doc="by the rule"),
            ],
            parameters=[
                parameter("amplitude", size, unit=of_output, doc="of the relay"),
                parameter("hysteresis", slack, unit=of_input, doc="of the relay"),
                parameter(
                    "tolerance",
                    require_one_positive("tolerance", tolerance),
                    doc="of periods and swings that agree",
                ),
                *(
                    parameter(f"rule_{name}", value, hidden=True)
                    for name, value in zip(("kp", "ti", "td"), chosen, strict=True)
                ),
            ],
            rate=SAMPLED,
            feedthrough=[
                *(("y", name) for name in inputs),
                ("running", "start"),
                *((name, "start") for name in ("done", "ku", "pu", "kp", "ki", "kd")),
            ],
            integers=[require_whole("cycles", cycles, 1, _MOST_CYCLES)],
        )
