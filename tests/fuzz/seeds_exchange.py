"""Seeds of the target for model exchange."""

from __future__ import annotations

from collections.abc import Iterator

# Calls as fuzz_exchange.c numbers them.
CALLS = 22
INSTANTIATE, FREE, SET_UP, ENTER, EXIT, EVENT, CONTINUE, STEP = range(8)
ENTER_EVENT, SET_TIME, SET_STATES, READ, GET, SET, ASK, TERMINATE, RESET = range(10, 19)
SAVE, RESTORE, SPOIL = range(19, 22)

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


def write_script(calls: Calls) -> bytes:
    """Return the bytes of a script."""
    return b"".join(bytes([CALLS * n + call, *rest]) for call, n, *rest in calls)
