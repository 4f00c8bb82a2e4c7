"""Random state machines: nested and parallel states, history, events, guards, actions."""

from __future__ import annotations

import random
from typing import Any

from biella.blocks import Port, StateMachine
from biella.blocks.machines._checks import find_problems

GUARDS = (
    "a > {k}",
    "a < {k}",
    "b",
    "not b",
    "n % 3 == {i}",
    "x + a > {k}",
    "elapsed > {p}",
    "a > {k} and not b",
)
AFTER: list[float | str] = [0.1, 0.3, 0.6, "limit/5"]
VALUES = ("{k}", "x + 1", "a*2", "n + 1", "x - y", "where(b, a, {k})", "elapsed", "limit + x")


def make_machine(seed: int) -> StateMachine:
    """Return a machine that passes the static checks; the same for the same seed."""
    for attempt in range(1000):
        machine = draw_machine(random.Random(1000 * seed + attempt))
        if not find_problems(machine.chart, list(machine.transitions)):
            return machine
    raise AssertionError("no valid machine was drawn")


def draw_machine(rng: random.Random) -> StateMachine:
    """Return a machine that may have unreachable states."""
    machine = StateMachine(
        inputs=["a", Port("b", kind="boolean")],
        outputs=["x", "y"],
        data={"n": 0, "flag": False, "r": 0.5},
        events={"go": "rising", "halt": rng.choice(["falling", "either"])},
        emits=["done"],
        local_events=["ping"],
        parameters={"limit": 1.5},
        initial={"y": 0.25},
    )
    states: list = []

    def text(pattern: str) -> str:
        return pattern.format(
            k=rng.randint(-3, 3), i=rng.randint(0, 2), p=rng.choice([0.2, 0.5, 0.7])
        )

    def actions(owned: list[str]) -> dict[str, str]:
        names = rng.sample(owned, k=min(len(owned), rng.randint(0, 2)))
        return {name: text(rng.choice(VALUES)) for name in names}

    def fill(parent, depth: int, owned: list[str], pulses: list[str]) -> None:
        for k in range(rng.randint(2, 3)):
            parallel = depth < 2 and rng.random() < 0.25
            options: dict[str, Any] = {
                "entry": actions(owned),
                "during": actions(owned),
                "exit": actions(owned),
                "emit": [name for name in pulses if rng.random() < 0.15],
            }
            if parallel:
                state = parent.parallel(f"p{k}", **options)
                states.append((state, owned, pulses))
                halves = [owned[::2], owned[1::2]]
                sides = [pulses, []]
                for r in range(2):
                    region = state.state(f"r{r}")
                    fill(region, depth + 2, halves[r], sides[r])
                continue
            nested = depth < 3 and rng.random() < 0.4
            if nested:
                options["history"] = rng.choice([None, "shallow", "deep"])
            state = parent.state(f"s{k}", **options)
            states.append((state, owned, pulses))
            if nested:
                fill(state, depth + 1, owned, pulses)

    fill(machine, 0, ["x", "y", "n", "flag", "r"], ["done", "ping"])
    for state, *_ in states:  # from each to its next sibling, so that most are reached
        beside = state.parent.children
        following = beside[(beside.index(state) + 1) % len(beside)]
        if not following.is_region:
            machine.transition(state, following, on="go", when="a > 0", priority=9)
    for state, owned, pulses in states:
        for priority in range(1, rng.randint(2, 5)):
            target = rng.choice(states)[0]
            around = [one for one in state.ancestors() if one.is_parallel]
            if rng.random() < 0.1:
                target = None
            elif any(
                one.contains(target) and region_of(one, state) is not region_of(one, target)
                for one in around
            ):
                continue
            kind = rng.random()
            machine.transition(
                state,
                target,
                when=text(rng.choice(GUARDS)) if kind < 0.7 else "a >= r",
                after=rng.choice(AFTER) if kind > 0.6 else None,
                on=rng.choice([None, None, "go", "halt", "ping"]),
                do=actions(owned),
                emit=[name for name in pulses if rng.random() < 0.1],
                priority=priority,
            )
    return machine


def region_of(parallel, inside):
    """Return the region of a parallel state around a state."""
    return next(one for one in (inside, *inside.ancestors()) if one.parent is parallel)
