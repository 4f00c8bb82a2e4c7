"""State machines: what one costs in a tick in which no transition is taken.

The machine has 10 states and 20 transitions, each with a guard of one comparison; two of them leave
the active state. The same diagram runs with and without it, in turns; the difference is the cost
of the machine: guards, outputs, and the call of the block, for its output and its update.
"""

from __future__ import annotations

import time

from table import Row, figure, within
from turns import Entrant, take_turns, timed

from biella import Diagram
from biella.blocks import Sine, StateMachine

STEP = 1e-3
TICKS = 100_000
STATES, LARGEST = 10, 50.0


def build_machine(guards: str) -> StateMachine:
    """Make a ring of states with transitions to both neighbors, which are never taken."""
    machine = StateMachine(inputs=["u"], outputs=["y"])
    states = [machine.state(f"s{k}", y=k) for k in range(STATES)]
    for k, state in enumerate(states):
        machine.transition(state, states[(k + 1) % STATES], when=f"u > {2 + k}{guards}", priority=1)
        machine.transition(state, states[k - 1], when=f"u < {-2 - k}{guards}", priority=2)
    return machine


def build_diagram(machine: StateMachine | None) -> Diagram:
    """Make a sine and, behind it, the machine."""
    d = Diagram("machine", step=STEP)
    source = d.add(Sine(), name="u")
    if machine is not None:
        d.add(machine, "machine", u=source)
    return d


def enter(diagram: Diagram) -> Entrant:
    """Return the engine on a diagram."""
    instance = diagram.compile().instantiate()

    def run() -> tuple[float, float | None]:
        instance.reset()
        return timed(lambda: instance.run(TICKS), time.process_time)()

    return Entrant(diagram.name, run, TICKS * STEP, repeats=3)


def measure(rounds: int) -> list[Row]:
    """Measure; times of one tick in ns."""
    plain = enter(build_diagram(None))
    simple, timed_guards = (
        enter(build_diagram(build_machine(text))) for text in ("", " and t > 0")
    )
    take_turns([plain, simple, timed_guards], rounds)
    without, one, other = (entrant.best / TICKS * 1e9 for entrant in (plain, simple, timed_guards))
    return [
        figure("the diagram without a machine", without, "ns/tick"),
        within(
            f"{STATES} states, {2 * STATES} transitions, none taken", one - without, LARGEST, "ns"
        ),
        figure("the same, each guard two comparisons", other - without, "ns"),
    ]
