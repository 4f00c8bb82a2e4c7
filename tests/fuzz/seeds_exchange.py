"""Seeds of the target for model exchange."""

from __future__ import annotations

from collections.abc import Iterator

# Calls as fuzz_exchange.c numbers them.
CALLS = 22
INSTANTIATE, FREE, SET_UP, ENTER, EXIT, EVENT, CONTINUE, STEP = range(8)
ENTER_EVENT, SET_TIME, SET_STATES, READ, GET, SET, ASK, TERMINATE, RESET = range(10, 19)
SAVE, RESTORE, SPOIL = range(19, 22)

# Calls of the instance of FMI 3.0 with clocks.
FIRST_CLOCKED = 88
(INSTANTIATE_3, ENTER_3, EXIT_3, UPDATE_3, CONTINUE_3, STEP_3, EVENT_3, TICK_3, SET_CLOCK_3, ASK_3,
 GET_3, SET_3, SAVE_3, RESTORE_3, END_3, FREE_3) = range(16)  # fmt: skip

Calls = list[tuple[int, ...]]


def scripts() -> Iterator[tuple[str, Calls]]:
    """Yield sequences of (call, instance, its further bytes…)."""
    for n in range(3):
        ready: Calls = [(INSTANTIATE, n, 0), (SET_UP, n, 3, 0), (ENTER, n), (EXIT, n)]
        begun: Calls = [*ready, (EVENT, n, 0), (CONTINUE, n)]
        steps: Calls = [
            call
            for size in (4, 7, 8, 10, 3, 200, 12, 40)
            for call in ((STEP, n, size | 2), (EVENT, n, 0), (CONTINUE, n), (READ, n, 1))
        ]
        reads: Calls = [(READ, n, how) for how in range(4)]
        ask: Calls = [(ASK, n, 20 + k, 18 + k, 101, 21 + k, k, 101) for k in range(6)]
        values: Calls = [(call, n, k, 108) for k in range(12) for call in (GET, SET)]
        saved: Calls = [(SAVE, n, 0), *steps, (RESTORE, n, 0), *steps, (SPOIL, n, 0)]
        yield f"steps-{n}", [*begun, *steps, *reads, (TERMINATE, n), *reads, (RESET, n), *ready[1:]]
        yield f"derivatives-{n}", [*ready[:3], *ask, *begun[3:], *ask, *steps[:8], *ask]
        yield f"values-{n}", [*ready[:3], *values, *begun[3:], *values, *steps, *values]
        yield f"states-{n}", [*begun, *saved, (SPOIL, n, 64, 0, 200, 3), *steps]
        odd: Calls = [(SET_STATES, n, 5, 250, 6, 7, 0), (SET_TIME, n, 5), (SET_TIME, n, 120)]
        yield f"odd-{n}", [*begun, *odd, *reads, (ENTER_EVENT, n), (EVENT, n, 255), (FREE, n)]


def clocked_scripts() -> Iterator[tuple[str, list[tuple[int, ...]]]]:
    """Yield sequences of (call, its further bytes…) of the instance with clocks."""
    ready = [(INSTANTIATE_3, 0), (ENTER_3, 0), (EXIT_3,)]
    begun = [*ready, (TICK_3, 0), (CONTINUE_3,)]
    steps = [call for _ in range(10) for call in ((STEP_3, 100), (TICK_3, 0), (CONTINUE_3,))]
    parts = [call for k in (5, 33, 200) for call in ((STEP_3, k), (EVENT_3,), (UPDATE_3, 0),
                                                     (CONTINUE_3,))]  # fmt: skip
    ask = [(ASK_3, what, reference) for what in range(8) for reference in (3, 14, *range(18, 24))]
    values = [(call, k, 120) for k in (0, 3, 4, 13, 14, 16) for call in (GET_3, SET_3)]
    activate = [(SET_CLOCK_3, k, v) for k in range(18, 24) for v in (0, 1, 0)]
    yield "clocks", [*begun, *steps, (SAVE_3, 0), *steps, (RESTORE_3,), *steps, (END_3, 0)]
    yield "clock-intervals", [*ready[:2], *ask, *values, (EXIT_3,), *ask[:16], *values]
    yield "clock-activations", [*ready, (UPDATE_3, 0), *activate, *ask, (UPDATE_3, 0), *parts]
    yield "clock-parts", [*begun, *parts, *values, *ask, (SAVE_3, 3, 0, 200, 9), *parts,
                          (RESTORE_3,), (END_3, 1), *ready[1:], (FREE_3,)]  # fmt: skip


def write_script(calls: Calls) -> bytes:
    """Return the bytes of a script."""
    return b"".join(bytes([CALLS * n + call, *rest]) for call, n, *rest in calls)


def write_clocked_script(calls: list[tuple[int, ...]]) -> bytes:
    """The same for the instance with clocks."""
    return b"".join(bytes([FIRST_CLOCKED + call, *rest]) for call, *rest in calls)
