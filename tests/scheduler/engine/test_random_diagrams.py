"""Random diagrams against a direct numpy evaluation, and against themselves in another shape.

The evaluation below knows nothing of orders, plans or rates of inherited blocks: it asks each node
for its value, which asks those that feed it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biella import Diagram, Subsystem, simulate
from biella.blocks import (
    Abs,
    Constant,
    Demux,
    Gain,
    Integrator,
    MinMax,
    Mux,
    Selector,
    Sum,
    UnitDelay,
)

pytestmark = pytest.mark.engine

STEP, TICKS = 0.125, 20
EXAMPLES = settings(deadline=None, derandomize=True, database=None)
COUNTS = pytest.mark.parametrize("count", [30, pytest.param(150, marks=pytest.mark.slow)])

Signal = tuple[int, int]
"""(node, output)."""


@dataclass(frozen=True)
class Node:
    """A block in words: what it is, its numbers, what feeds it, when it runs."""

    kind: str
    value: Any = None
    sources: tuple[Signal, ...] = ()
    period: int | None = None
    offset: int = 0
    widths: tuple[int, ...] = (1,)

    def hits(self, tick: int) -> bool:
        return tick >= self.offset and (tick - self.offset) % (self.period or 1) == 0

    @property
    def ports(self) -> list[str]:
        if self.kind == "demux":
            return [f"y{n}" for n in range(1, len(self.widths) + 1)]
        return ["y"]


# Drawing one.


def numbers(count: int) -> st.SearchStrategy[list[float]]:
    """Tenths between -0.9 and 0.9: nothing grows fast."""
    tenth = st.integers(-9, 9).map(lambda n: n / 10)
    return st.lists(tenth, min_size=count, max_size=count)


@st.composite
def diagrams(draw: st.DrawFn) -> list[Node]:
    """Nodes fed by earlier ones, where feedthrough; delays and integrators close loops."""
    nodes: list[Node] = [Node("constant", draw(numbers(w := draw(st.integers(1, 4)))), widths=(w,))]

    def signals(width: int | None = None) -> list[Signal]:
        return [
            (n, k)
            for n, node in enumerate(nodes)
            for k, w in enumerate(node.widths)
            if width in (None, w)
        ]

    def width_of(signal: Signal) -> int:
        return nodes[signal[0]].widths[signal[1]]

    stateless = ("gain", "vector", "matrix", "sum", "largest", "demux", "mux", "selector", "abs")
    for _ in range(draw(st.integers(2, 14))):
        kind = draw(st.sampled_from(("constant", "delay", "integrator", *stateless)))
        period = draw(st.none() | st.integers(1, 5)) if kind in (*stateless, "delay") else None
        offset = draw(st.integers(0, period - 1)) if period else 0
        if kind in ("constant", "delay", "integrator"):
            width = draw(st.integers(1, 4))
            nodes.append(Node(kind, draw(numbers(width)), (), period, offset, (width,)))
            continue
        source = draw(st.sampled_from(signals()))
        width = width_of(source)
        sources: tuple[Signal, ...] = (source,)
        value: Any = None
        widths: tuple[int, ...] = (width,)
        if kind == "gain":
            value = draw(numbers(1))[0]
        elif kind == "vector":
            value = draw(numbers(width))
        elif kind == "matrix":
            rows = draw(st.integers(1, 4))
            value = [[v / 2 for v in draw(numbers(width))] for _ in range(rows)]
            widths = (rows,)
        elif kind in ("sum", "largest"):
            least = int(kind == "largest")  # a single input would give its largest element
            others = draw(st.lists(st.sampled_from(signals(width)), min_size=least, max_size=2))
            sources = (source, *others)
            value = "".join(draw(st.sampled_from("+-")) for _ in sources) if kind == "sum" else None
        elif kind == "demux":
            cut = draw(st.integers(1, width))
            widths = (cut, width - cut) if cut < width else (width,)
        elif kind == "mux":
            sources = (source, draw(st.sampled_from(signals())))
            widths = (width + width_of(sources[1]),)
        elif kind == "selector":
            value = draw(st.lists(st.integers(0, width - 1), min_size=1, max_size=4))
            widths = (len(value),)
        nodes.append(Node(kind, value, sources, period, offset, widths))
    for n, node in enumerate(nodes):
        if node.kind in ("delay", "integrator"):
            nodes[n] = replace(node, sources=(draw(st.sampled_from(signals(node.widths[0]))),))
    return [_inherit(nodes, node) for node in nodes]


def _inherit(nodes: list[Node], node: Node) -> Node:
    """A delay without a period runs like what feeds it: easily told only for some."""
    if node.kind == "delay" and node.period is None:
        source = nodes[node.sources[0][0]]
        if source.kind not in ("integrator", "constant") and source.period is None:
            return replace(node, period=1)
    return node


# Evaluating it directly.


def holds(node: Node) -> bool:
    """Whether it gives the same value between its hits."""
    return node.kind == "delay" or node.period is not None


@dataclass
class Interpreter:
    """Tick by tick: outputs, then updates, then one step of the solver."""

    nodes: list[Node]
    solver: str
    held: dict[int, list[np.ndarray]] = field(default_factory=dict)

    def run(self) -> list[list[list[np.ndarray]]]:
        state = {
            n: np.array(node.value)
            for n, node in enumerate(self.nodes)
            if node.kind in ("delay", "integrator")
        }
        rows = []
        for tick in range(TICKS + 1):
            now = self.evaluate(state, tick)
            rows.append(now)
            self.held = {n: now[n] for n, node in enumerate(self.nodes) if holds(node)}
            after = dict(state)
            for n, node in enumerate(self.nodes):
                if node.kind == "delay" and self.rate_of(node).hits(tick):
                    ((source, port),) = node.sources
                    after[n] = now[source][port]
            self.integrate(state, after)
            state = after
        return rows

    def rate_of(self, node: Node) -> Node:
        """A delay without a period has that of its source, or runs at every tick."""
        if node.kind == "delay" and node.period is None:
            return self.nodes[node.sources[0][0]]
        return node

    def evaluate(self, state: dict[int, np.ndarray], tick: int | None) -> list[list[np.ndarray]]:
        """Values of all outputs at `tick`, or between ticks if it is None."""
        known: dict[int, list[np.ndarray]] = {}

        def value(n: int) -> list[np.ndarray]:
            if n not in known:
                node = self.nodes[n]
                due = tick is not None and (tick == 0 or self.rate_of(node).hits(tick))
                known[n] = self.held[n] if holds(node) and not due else compute(n, node)
            return known[n]

        def compute(n: int, node: Node) -> list[np.ndarray]:
            if node.kind == "constant":
                return [np.array(node.value)]
            if node.kind in ("delay", "integrator"):
                return [state[n]]
            u = [value(source)[port] for source, port in node.sources]
            if node.kind in ("gain", "vector"):
                return [np.array(node.value) * u[0]]
            if node.kind == "matrix":
                return [np.array(node.value) @ u[0]]
            if node.kind == "sum":
                signed = (v if s == "+" else -v for s, v in zip(node.value, u, strict=True))
                return [sum(signed, np.zeros(()))]
            if node.kind == "largest":
                return [np.max(u, axis=0)]
            if node.kind == "mux":
                return [np.concatenate(u)]
            if node.kind == "demux":
                return np.split(u[0], np.cumsum(node.widths)[:-1])
            if node.kind == "selector":
                return [u[0][node.value]]
            return [np.abs(u[0])]

        return [value(n) for n in range(len(self.nodes))]

    def integrate(self, state: dict[int, np.ndarray], after: dict[int, np.ndarray]) -> None:
        integrators = [n for n, node in enumerate(self.nodes) if node.kind == "integrator"]

        def state_derivatives(
            offset: float, last: dict[int, np.ndarray] | None
        ) -> dict[int, np.ndarray]:
            stage = dict(state)
            if last is not None:
                stage.update({n: state[n] + offset * last[n] for n in integrators})
            now = self.evaluate(stage, None)
            return {
                n: now[source][port] for n in integrators for source, port in self.nodes[n].sources
            }

        k1 = state_derivatives(0.0, None)
        if self.solver == "euler":
            after.update({n: state[n] + STEP * k1[n] for n in integrators})
            return
        k2 = state_derivatives(STEP / 2, k1)
        k3 = state_derivatives(STEP / 2, k2)
        k4 = state_derivatives(STEP, k3)
        for n in integrators:
            after[n] = state[n] + STEP / 6 * (k1[n] + 2 * k2[n] + 2 * k3[n] + k4[n])


# Building it.


def make_block(node: Node) -> Any:
    if node.kind in ("gain", "vector", "matrix"):
        return Gain(node.value)
    if node.kind == "sum":
        return Sum(node.value)
    if node.kind == "largest":
        return MinMax("max", len(node.sources))
    if node.kind == "mux":
        return Mux(2)
    if node.kind == "demux":
        return Demux(node.widths)
    if node.kind == "selector":
        return Selector(node.value)
    if node.kind == "delay":
        return UnitDelay(node.value)
    if node.kind == "constant":
        return Constant(node.value)
    if node.kind == "integrator":
        return Integrator(node.value)
    return Abs()


Scope = tuple[str, ...]


class Builder:
    """The nodes as a diagram, each in the subsystem that `places` says."""

    def __init__(
        self,
        nodes: list[Node],
        order: list[int] | None = None,
        names: dict[int, str] | None = None,
        places: list[Scope] | None = None,
    ) -> None:
        self.nodes = nodes
        self.order = order or list(range(len(nodes)))
        self.names = names or {n: f"n{n}" for n in self.order}
        self.places = places or [()] * len(nodes)
        self.blocks = [make_block(node) for node in nodes]
        self.imports: dict[Scope, list[Signal]] = {}
        self.exports: dict[Scope, list[Signal]] = {}
        for n in self.order:
            for signal in nodes[n].sources:
                self.route(signal, self.places[signal[0]], self.places[n])

    def route(self, signal: Signal, start: Scope, end: Scope) -> None:
        """Note every border that a wire crosses."""
        common = 0
        while common < min(len(start), len(end)) and start[common] == end[common]:
            common += 1
        for scope, table in ((start, self.exports), (end, self.imports)):
            for depth in range(common + 1, len(scope) + 1):
                crossed = table.setdefault(scope[:depth], [])
                if signal not in crossed:
                    crossed.append(signal)

    def build(self, solver: str) -> Diagram:
        return self.build_scope((), solver)

    def build_scope(self, scope: Scope, solver: str) -> Diagram:
        d = Diagram("random", step=STEP, solver=solver)
        inports = {
            signal: d.input(f"in_{signal[0]}_{signal[1]}", width=self.width(signal))
            for signal in self.imports.get(scope, [])
        }
        members = [n for n in self.order if self.places[n] == scope]
        for n in members:
            node = self.nodes[n]
            rate: dict[str, Any] = {}
            if node.period is not None:
                rate = {"period": node.period * STEP, "offset": node.offset * STEP}
            d.add(self.blocks[n], name=self.names[n], **rate)
        inner = sorted({
            place[: len(scope) + 1]
            for place in self.places
            if place[: len(scope)] == scope and len(place) > len(scope)
        })  # fmt: skip
        subsystems = {
            child: d.add(Subsystem(self.build_scope(child, solver)), name=child[-1])
            for child in inner
        }

        def end(signal: Signal) -> Any:
            place = self.places[signal[0]]
            if place == scope:
                return self.blocks[signal[0]][self.nodes[signal[0]].ports[signal[1]]]
            if signal in inports:
                return inports[signal]
            return subsystems[place[: len(scope) + 1]][f"out_{signal[0]}_{signal[1]}"]

        for n in members:
            inputs = [port.name for port in self.blocks[n].inputs]
            for name, signal in zip(inputs, self.nodes[n].sources, strict=True):
                d.connect(end(signal), self.blocks[n][name])
        for child, block in subsystems.items():
            for signal in self.imports.get(child, []):
                d.connect(end(signal), block[f"in_{signal[0]}_{signal[1]}"])
        for signal in self.exports.get(scope, []):
            d.output(f"out_{signal[0]}_{signal[1]}", end(signal))
        return d

    def width(self, signal: Signal) -> int:
        return self.nodes[signal[0]].widths[signal[1]]

    def simulate(self, solver: str) -> dict[Signal, np.ndarray]:
        result = simulate(self.build(solver), TICKS * STEP)
        return {
            (n, k): result[".".join((*self.places[n], self.names[n], port))]
            for n, node in enumerate(self.nodes)
            for k, port in enumerate(node.ports)
        }


def assert_same_bits(a: dict[Signal, np.ndarray], b: dict[Signal, np.ndarray]) -> None:
    for signal, values in a.items():
        assert values.tobytes() == b[signal].tobytes(), signal


# The properties.


@pytest.mark.filterwarnings("ignore:the estimated error")  # steps are coarse on purpose
@pytest.mark.parametrize("solver", ["euler", "rk4"])
@COUNTS
def test_a_diagram_is_what_its_blocks_say(solver, count):
    @settings(EXAMPLES, max_examples=count)
    @given(nodes=diagrams())
    def check(nodes):
        got = Builder(nodes).simulate(solver)
        rows = Interpreter(nodes, solver).run()
        # A sum may cancel what is large: errors are relative to the largest value around.
        largest = max(1.0, *(np.abs(v).max() for row in rows for outputs in row for v in outputs))
        for (n, k), values in got.items():
            exact = np.array([row[n][k] for row in rows]).reshape(values.shape)
            assert np.allclose(values, exact, rtol=0, atol=1e-12 * largest), (n, k)

    check()


@COUNTS
def test_the_order_of_adding_blocks_does_not_matter(count):
    @settings(EXAMPLES, max_examples=count)
    @given(nodes=diagrams(), data=st.data())
    def check(nodes, data):
        order = data.draw(st.permutations(range(len(nodes))))
        assert_same_bits(Builder(nodes).simulate("rk4"), Builder(nodes, order).simulate("rk4"))

    check()


@COUNTS
def test_names_do_not_matter(count):
    @settings(EXAMPLES, max_examples=count)
    @given(nodes=diagrams(), data=st.data())
    def check(nodes, data):
        order = data.draw(st.permutations(range(len(nodes))))
        names = {n: f"{'zyxwvutsrqponml'[k]} {n}" for k, n in enumerate(order)}
        renamed = Builder(nodes, names=names)
        assert_same_bits(Builder(nodes).simulate("rk4"), renamed.simulate("rk4"))

    check()


@COUNTS
def test_subsystems_do_not_matter(count):
    """Any part in any of four subsystems, two of them inside another; wires cross all borders."""

    @settings(EXAMPLES, max_examples=count)
    @given(nodes=diagrams(), data=st.data())
    def check(nodes, data):
        scopes: list[Scope] = [(), ("a",), ("a", "b"), ("a", "b", "c"), ("d",)]
        places = [data.draw(st.sampled_from(scopes)) for _ in nodes]
        assert_same_bits(
            Builder(nodes).simulate("rk4"), Builder(nodes, places=places).simulate("rk4")
        )

    check()


@COUNTS
def test_a_run_in_parts_is_the_run_in_one(count):
    @settings(EXAMPLES, max_examples=count)
    @given(nodes=diagrams())
    def check(nodes):
        d = Builder(nodes).build("rk4")
        whole = simulate(d, TICKS * STEP)
        cuts = [0, 7, 8, TICKS]
        checkpoint = None
        for begin, end in pairwise(cuts):
            part = simulate(d, end * STEP, checkpoint=checkpoint)
            checkpoint = part.checkpoint
            for path in whole:
                assert np.array_equal(part[path], whole[path][begin : end + 1])

    check()
