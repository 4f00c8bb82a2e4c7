"""Where the Jacobian of the continuous states may have entries: section JPAT of a plan.

Dependences are followed from the states through the blocks that minor steps evaluate, element by
element where a block declares which elements it reads, else port by port.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._flatten import FlatDiagram
from .._order import Order, find_minor_blocks
from .._port_types import PortTypes
from .._rates import Ticks

Reach = list[frozenset[int]]
"""Of each element of a signal, the states that it depends on within a step."""

_NOTHING: frozenset[int] = frozenset()
_FULL = 0.8
"""Part of the entries from which on the matrix is treated as full."""


def find_pattern(
    flat: FlatDiagram,
    ports: PortTypes,
    rates: Sequence[Ticks],
    order: Order,
    states: Sequence[tuple[int, int]],
) -> Any:
    """Return the section: firsts of the columns, then the rows of each; empty for a full matrix.

    Parameters
    ----------
    states
        Of each block, its first state and their number.
    """
    return _Finder(flat, ports, rates, order, states).find()


class _Finder:
    def __init__(
        self,
        flat: FlatDiagram,
        ports: PortTypes,
        rates: Sequence[Ticks],
        order: Order,
        states: Sequence[tuple[int, int]],
    ) -> None:
        self.flat, self.ports, self.order, self.states = flat, ports, order, states
        self.owners = [n for n, (_, count) in enumerate(states) if count]
        self.minor = find_minor_blocks(flat, rates, set(self.owners), order.loops)
        self.reach: dict[tuple[int, int], Reach] = {}
        self.whole: dict[tuple[int, int], frozenset[int]] = {}

    def find(self) -> Any:
        for kind, index in self.order.entries:
            if kind == "call" and index in self.minor:
                self._follow(index)
            elif kind == "loop" and self.minor & set(self.order.loops[index].body):
                self._follow_loop(self.order.loops[index].body)
        rows = [row for number in self.owners for row in self._derivatives(number)]
        count = len(rows)
        entries = sum(len(row) for row in rows)
        if entries > _FULL * count * count:
            return np.array([], dtype="<i4")
        row_numbers = np.repeat(np.arange(count), [len(row) for row in rows])
        columns = np.fromiter((c for row in rows for c in row), dtype=np.int64, count=entries)
        arranged = np.lexsort((row_numbers, columns))
        firsts = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(columns, minlength=count), out=firsts[1:])
        return np.concatenate([firsts, row_numbers[arranged]]).astype("<i4")

    def _source(self, number: int, port: int) -> tuple[int, int] | None:
        source = self.flat.blocks[number].sources[port]
        if source is None or (source.block, source.port) not in self.reach:
            return None  # constant within a step
        return source.block, source.port

    def _element(self, number: int, port: int, element: int) -> frozenset[int]:
        source = self._source(number, port)
        if source is None:
            return _NOTHING
        found = self.reach[source]
        return found[element if len(found) > 1 else 0]

    def _all(self, number: int, inputs: Sequence[int]) -> frozenset[int]:
        """Return all that the elements of these inputs depend on."""
        parts = []
        for port in inputs:
            source = self._source(number, port)
            if source is not None:
                if source not in self.whole:
                    self.whole[source] = _NOTHING.union(*self.reach[source])
                parts.append(self.whole[source])
        return _NOTHING.union(*parts) if len(parts) != 1 else parts[0]

    def _is_elementwise(self, number: int) -> bool:
        """Return whether the block acts element by element, on as many states as elements."""
        if not self.flat.blocks[number].block.elementwise:
            return False
        count = self.states[number][1]
        return all(count in (0, port.width or 1) for port in self.ports.outputs[number])

    def _follow(self, number: int) -> None:
        """Find what the outputs of a block depend on, from what its inputs do."""
        block = self.flat.blocks[number].block
        first, count = self.states[number]
        own = frozenset(range(first, first + count))
        inputs = [port.width or 1 for port in self.ports.inputs[number]]
        for output, port in enumerate(self.ports.outputs[number]):
            width, feeding = port.width or 1, block.feedthrough[output]
            reach: Reach = []
            if self._is_elementwise(number):
                for k in range(width):
                    parts = [self._element(number, n, k) for n in feeding]
                    reach.append(frozenset({first + k} if count else ()).union(*parts))
            else:
                shared: frozenset[int] | None = None
                for k in range(width):
                    read = block.find_read_elements(output, k, inputs)
                    if read is None:
                        shared = own | self._all(number, feeding) if shared is None else shared
                        reach.append(shared)
                    else:
                        reach.append(own.union(*(self._element(number, n, i) for n, i in read)))
            self.reach[number, output] = reach
            self.whole.pop((number, output), None)

    def _follow_loop(self, body: Sequence[int]) -> None:
        """Let every output of a loop depend on all that enters it."""
        parts = []
        for number in body:
            first, count = self.states[number]
            parts.append(frozenset(range(first, first + count)))
            parts.append(self._all(number, range(len(self.flat.blocks[number].sources))))
        shared = _NOTHING.union(*parts)
        for number in body:
            for output, port in enumerate(self.ports.outputs[number]):
                self.reach[number, output] = [shared] * (port.width or 1)
                self.whole[number, output] = shared

    def _derivatives(self, number: int) -> list[frozenset[int]]:
        """Return what the derivative of each state of a block depends on, itself included."""
        first, count = self.states[number]
        inputs = range(len(self.flat.blocks[number].sources))
        if self._is_elementwise(number):
            return [
                frozenset({first + k}).union(*(self._element(number, n, k) for n in inputs))
                for k in range(count)
            ]
        return [frozenset(range(first, first + count)) | self._all(number, inputs)] * count
