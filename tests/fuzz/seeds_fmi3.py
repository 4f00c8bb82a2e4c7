"""Seeds of the target for FMI 3.0, and the plan with arrays that it instantiates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from biella import Diagram
from biella.blocks import (
    Convert,
    DiscreteIntegrator,
    Gain,
    Integrator,
    Relay,
    Selector,
    StateSpace,
    UnitDelay,
    ZeroOrderHold,
)
from biella.fmu.exporter._clocks import find_clock_rates
from biella.fmu.exporter._types import INTEGERS, plan_types, with_types
from biella.fmu.exporter._variables import choose_local, list_variables
from biella.scheduler.compile.plan._plan import Plan

# Calls as fuzz_fmi3.c numbers them.
CALLS = 24
INSTANTIATE, FREE, ENTER, EXIT, EVENT_MODE, STEP_MODE, UPDATE, TERMINATE, RESET = range(9)
REFUSED, LOG, DO_STEP, GET_REAL, GET_INTEGER, GET_BOOLEAN, SET_REAL, SET_INTEGER = range(9, 17)
SET_BOOLEAN, SAVE, RESTORE, FREE_OR_SERIALIZE, SPOIL_OR_DESERIALIZE, ASK, TIME = range(17, 24)

# Calls of the instance with clocks; the first is word CALLS * INSTANCES.
CLOCKED, INSTANCES, REFUSED_CALLS = 5, 6, 232
SET_CLOCK, GET_CLOCK, GET_INTERVAL, GET_SHIFT, GET_INTERVAL_FRACTION = range(100, 105)
GET_SHIFT_FRACTION, SET_INTERVAL, TICK = range(105, 108)
# What an instance is made with, and what an intermediate update does.
WITH_UPDATES = 16
READ, WRITE, DIFFERENTIATE, WRONG_CALLS, RETURN_EARLY, NAME_TIME, ODD_TIME = (
    1 << k for k in range(7)
)

Calls = list[tuple[int, ...]]


def arrays() -> Plan:
    """A diagram with arrays of one and two dimensions, a local one, and variables of all types.

    The last two inputs feed outputs of each type of integer.
    """
    d = Diagram("arrays", step=1e-3)
    block = d.add(StateSpace(-np.eye(2), np.ones((2, 3)), np.eye(2), np.ones((2, 3))), name="ss")
    d.connect(d.input("u", width=3), block)
    d.connect(d.input("flags", width=2, kind="boolean"), d.add(Selector([1, 0]), "flag"))
    d.output("y", block)
    d.output("f", d["flag"])
    types = {"v": "Float32", "w": "Float32"}
    d.output("w", d.add(Gain(1e38), "k", u=d.input("v", width=2)))
    number = d.input("number", kind="integer", width=2)
    for n, type_ in enumerate(name for name in INTEGERS if name != "Int64"):
        name = type_.lower()
        given = d.input(name, kind="integer") if n % 2 else number
        d.output(f"{name}_out", d.add(Convert("integer"), f"c{n}", u=given))
        types |= {f"{name}_out": type_} | ({name: type_} if n % 2 else {})
    plan = d.compile()
    local = choose_local(plan, ["ss.y", "flag.y"])
    variables = with_types(list_variables(plan, local), types)
    found = [(v.reference, v.size) for v in variables if v.shape]
    return plan_types(plan.with_variables(local, found), variables)


def clocked() -> Plan:
    """A diagram with two rates as clocks, one of them shifted, a state and located events.

    Its variables have the references 0 to 12, time 13, the clocks 14 and 15.
    """
    d = Diagram("clocked", step=1e-3)
    u = d.input("u")
    held = d.add(ZeroOrderHold(), "held", u=u, period=2e-3)
    total = d.add(DiscreteIntegrator(), "total", u=held, period=3e-3, offset=1e-3)
    delayed = d.add(UnitDelay(), "delayed", u=total, period=2e-3)
    state = d.add(Integrator(), "state")
    relay = d.add(Relay(on=1e-3, off=-1e-3, high=-3.0, low=3.0), "relay", u=state)
    d.connect(relay, state)
    d.output("held", held)
    d.output("delayed", delayed)
    d.output("x", state)
    plan = d.compile()
    return plan.with_clocks(find_clock_rates(plan))


def scripts() -> Iterator[tuple[str, Calls]]:
    """Yield sequences of (call, instance, its further bytes…)."""

    def ready(n: int) -> Calls:
        return [(INSTANTIATE, n, 0), (ENTER, n, 0, 0, 0), (EXIT, n), (STEP_MODE, n)]

    def reads(n: int) -> Calls:
        return [(call, n, 3, 0, 1, 2) for call in (GET_REAL, GET_INTEGER, GET_BOOLEAN)]

    steps: Calls = [(DO_STEP, n, how) for how in (1, 2, 150, 245) for n in (0, 2, 3, 4)]
    all_ready = [call for n in range(5) for call in ready(n)]
    writes: Calls = [
        (call, n, 1, k, 9)
        for n in (0, 2)
        for k in range(6)
        for call in (SET_REAL, SET_INTEGER, SET_BOOLEAN)
    ]
    yield "life", [*ready(0), *steps, *reads(0), (TERMINATE, 0), (RESET, 0), *ready(0)[1:], *steps]
    yield "values", [*ready(0)[:2], *ready(2), *writes, *reads(0), (EXIT, 0), *writes, *steps]
    yield "arrays", [*ready(2), (SET_REAL, 2, 129, 3, 0, 9, 9, 9), (GET_REAL, 2, 130, 8, 0, 5),
                     (GET_REAL, 2, 129, 6, 9), (ASK, 2, 5, *[5, 0, 1] * 4, 2, 3, 9)]  # fmt: skip
    # References from 48 on are of another type: see get_and_set in fuzz_fmi3.c.
    typed: Calls = [
        (SET_REAL, 2, 134, 2, 53, 120, 90), (GET_REAL, 2, 134, 2, 64),
        (SET_REAL, 2, 134, 2, 53, 220, 250), (GET_REAL, 2, 134, 2, 64),
        (SET_REAL, 2, 1, 153, 90), (GET_REAL, 2, 1, 164),
        (SET_REAL, 2, 1, 250, 101), (SET_REAL, 2, 1, 250, 252), (GET_INTEGER, 2, 1, 119),
        (SET_INTEGER, 2, 1, 203, 99), (GET_INTEGER, 2, 1, 218),
    ]  # fmt: skip
    numbers = ((102, 103), (99, 101), (249, 100))
    outputs = ((GET_REAL, 123), (GET_REAL, 216), (GET_INTEGER, 165), (GET_BOOLEAN, 114))
    for first, second in numbers:
        typed.append((SET_INTEGER, 2, 134, 2, 7, first, second))
        typed += [(call, 2, 134, 2, word) for call, word in outputs]
    yield "types", [*ready(2), *typed, (SAVE, 2, 0), *typed]
    yield "events", [*ready(4), *[(DO_STEP, 4, k) for k in (130, 1, 7, 180, 7, 7)],
                     (EVENT_MODE, 4), (SET_REAL, 4, 1, 0, 120), (UPDATE, 4, 0), (STEP_MODE, 4),
                     *[(DO_STEP, 4, 7)] * 6]  # fmt: skip
    yield "states", [*all_ready, (SAVE, 0, 0), (SAVE, 4, 1), *steps, (RESTORE, 0, 0),
                     (RESTORE, 4, 1), (RESTORE, 2, 0), (FREE_OR_SERIALIZE, 0, 0, 0),
                     (SPOIL_OR_DESERIALIZE, 0, 0, 2), (SPOIL_OR_DESERIALIZE, 0, 1, 1, 0, 9, 200),
                     (SPOIL_OR_DESERIALIZE, 0, 0, 3), (RESTORE, 0, 3), (RESTORE, 0, 2),
                     (FREE_OR_SERIALIZE, 0, 1, 0)]  # fmt: skip
    odd: Calls = [(INSTANTIATE, 0, k) for k in range(1, 15)]
    yield "odd", [*odd, (FREE, 0), *ready(0), (REFUSED, 0, 0), (LOG, 0, 3), (TIME, 0)]
    clocks = (0, 14, 15)
    ask_clocks: Calls = [
        (call, CLOCKED, 1, k) for call in range(GET_CLOCK, SET_INTERVAL + 1) for k in clocks
    ]
    opened: Calls = [(INSTANTIATE, CLOCKED, 0), (ENTER, CLOCKED, 0, 0, 0)]
    tick, step = (TICK, CLOCKED, 0), (DO_STEP, CLOCKED, 1)
    run: Calls = [call for _ in range(8) for call in (step, tick)]
    yield "clocks", [*opened, (EXIT, CLOCKED), tick, *run, (SAVE, CLOCKED, 0), *run,
                     (RESTORE, CLOCKED, 0), *run]  # fmt: skip
    yield "intervals", [*opened, *ask_clocks, (EXIT, CLOCKED), *ask_clocks]
    activate: Calls = [(SET_CLOCK, CLOCKED, 1, k, v) for k in clocks for v in (0, 1, 1, 0)]
    yield "activations", [*opened, (EXIT, CLOCKED), (UPDATE, CLOCKED, 0), *activate,
                          *ask_clocks, (STEP_MODE, CLOCKED)]  # fmt: skip
    yield "missed-ticks", [*opened, (EXIT, CLOCKED), tick, *[(DO_STEP, CLOCKED, 7)] * 2]
    refused = [(call, (call - SET_CLOCK) % 2, 1, 14, 1) for call in range(SET_CLOCK, TICK + 1)]
    yield "clocks-odd", [*opened, (SET_CLOCK, CLOCKED, 2, 14, 15, 1, 1), (GET_CLOCK, CLOCKED, 254),
                         (GET_INTERVAL, CLOCKED, 254), (GET_SHIFT, CLOCKED, 255),
                         (SET_REAL, CLOCKED, 1, 0, 120), *ready(0), *ready(1),
                         *refused]  # fmt: skip
    for n in (2, 3, 4):
        how = [0, READ, WRITE, DIFFERENTIATE, WRONG_CALLS, RETURN_EARLY,
               RETURN_EARLY | NAME_TIME, RETURN_EARLY | NAME_TIME | ODD_TIME]  # fmt: skip
        more = {READ: (0, 1, 3), WRITE: (0, 1, 0, 120), DIFFERENTIATE: (3,), how[6]: (2,),
                how[7]: (7,)}  # fmt: skip
        update: Calls = [(DO_STEP, n, 3, k, *more.get(k, ()), 0, 0) for k in how]
        yield f"updates-{n}", [(INSTANTIATE, n, WITH_UPDATES), *ready(n)[1:], *update]
    ask: Calls = [(ASK, n, 5 + 64 * k, *[1, 0, 1] * 4, 1, 1, 9) for n in (0, 3) for k in range(4)]
    yield "derivatives", [*ready(0)[:2], *ready(3), *ask, (EXIT, 0), *steps, *ask]


def write_script(calls: Calls) -> bytes:
    """Return a sequence of calls as fuzz_fmi3.c reads it."""

    def number(call: int, n: int) -> int:
        if call < CALLS:
            return call + CALLS * n
        first = CALLS * INSTANCES if n == CLOCKED else REFUSED_CALLS
        return next(
            word
            for word in range(first, 256)
            if (word - CALLS * INSTANCES) % 8 == call - SET_CLOCK
            and (n == CLOCKED or word % INSTANCES == n)
        )

    return b"".join(bytes([number(call, n), *rest]) for call, n, *rest in calls)
