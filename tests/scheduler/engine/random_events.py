"""Random diagrams with discontinuities, for tests of what holds for every one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from biella import Diagram
from biella.blocks import (
    Abs,
    Backlash,
    Expression,
    Gain,
    Integrator,
    Pulse,
    RateLimiter,
    Relay,
    Saturation,
    Sine,
    StateMachine,
    Step,
    Sum,
    ZeroOrderHold,
)

STEP = 0.05
KINDS = ("relay", "saturation", "abs", "where", "floor", "step", "pulse", "sine", "held")
MEMORY = ("play", "rate", "machine", "sampled_machine")
"""Blocks that remember, beside `held`."""
SAMPLED = ("held", "sampled_machine")


@dataclass(frozen=True)
class Term:
    """What is added to the derivative of a state: a block that reads a state, or time."""

    kind: str
    state: int
    number: float
    gain: float


@dataclass(frozen=True)
class Words:
    """A diagram in words: for each state its start, its limits or reset, and its terms."""

    starts: tuple[float, ...]
    limited: tuple[bool, ...]
    resets: tuple[bool, ...]
    terms: tuple[tuple[Term, ...], ...]


@st.composite
def words(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS) -> Words:
    n = draw(st.integers(1, 3))
    number = st.integers(1, 97).map(lambda k: k / 100)
    sign = st.sampled_from((-1.0, 1.0))
    term = st.builds(
        lambda kind, state, value, gain, s: Term(kind, state, value, s * gain),
        st.sampled_from(kinds),
        st.integers(0, n - 1),
        number,
        number,
        sign,
    )
    flags = st.tuples(*[st.booleans()] * n)
    return Words(
        starts=draw(st.tuples(*[number] * n)),
        limited=draw(flags),
        resets=draw(flags),
        terms=draw(st.tuples(*[st.lists(term, min_size=1, max_size=3).map(tuple)] * n)),
    )


def make_machine(c: float, continuous: bool) -> StateMachine:
    """Return a machine that pushes x to and fro, counts its transitions and waits in between."""
    machine = StateMachine(
        inputs=["x"], outputs=["y"], data={"n": 0}, emits=["turn"], continuous=continuous
    )
    up = machine.state("up", y="1 + 0.1*n", during={"n": "n + 0.01"})
    down, rest = machine.state("down", y=-1), machine.state("rest", y=c)
    machine.transition(up, down, when=f"x > {c}", do={"n": "n + 1"}, emit="turn")
    machine.transition(down, rest, when=f"x < {-c}")
    machine.transition(rest, up, after=0.17 + c / 3)
    return machine


def block_of(term: Term) -> tuple[Any, bool]:
    """The block, and whether it reads a state."""
    c = term.number
    blocks = {
        "relay": (Relay(on=c, off=-c, high=-1.0, low=1.0), True),
        "saturation": (Saturation(-c, c), True),
        "abs": (Abs(), True),
        "where": (Expression(f"where(x > {c}, -1, 0.3 - x)"), True),
        "floor": (Expression(f"floor((t + {c}) / 0.37) % 3 - 1"), False),
        "step": (Step(at=c, to=-1.0), False),
        "pulse": (Pulse(period=0.1 + c, duty=0.4, delay=0.013), False),
        "sine": (Sine(frequency=c), False),
        "held": (ZeroOrderHold(), True),
        "play": (Backlash(0.4 * c), True),
        "rate": (RateLimiter(c, 1.3 * c), True),
        "machine": (make_machine(c, continuous=True), True),
        "sampled_machine": (make_machine(c, continuous=False), True),
    }
    return blocks[term.kind]


def build(w: Words, solver: str, step: float = STEP, **options: Any) -> Diagram:
    """Every state decays by itself, so that rounding does not grow."""
    d = Diagram("random", step, solver, **options)
    states = []
    for k, start in enumerate(w.starts):
        limits = (-0.8, 1.1) if w.limited[k] else None
        block = Integrator(start, limits=limits, reset="rising" if w.resets[k] else None)
        states.append(d.add(block, f"x{k}"))
    clock = d.add(Sine(frequency=0.83, phase=0.4), "clock")
    for k, x in enumerate(states):
        if w.resets[k]:
            d.connect(clock, x["reset"])
        total = d.add(Sum("+" * (1 + len(w.terms[k]))), f"sum{k}")
        d.connect(d.add(Gain(-0.5), f"decay{k}", u=x), total["u1"])
        for n, term in enumerate(w.terms[k]):
            discontinuous, reads = block_of(term)
            period = 4 * STEP if term.kind in SAMPLED else None
            source = d.add(discontinuous, f"f{k}_{n}", period=period)
            if reads:
                d.connect(states[term.state], source)
            force = source["y"]
            d.connect(d.add(Gain(term.gain), f"g{k}_{n}", u=force), total[f"u{n + 2}"])
        d.connect(total, x["u"] if w.resets[k] else x)
    return d
