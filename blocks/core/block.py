"""What a block is: a description. Values and states live in the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...errors import DiagramError, name_list, suggest
from .ports import INHERITED, Parameter, Port, PortRef, Rate, Widths

Size = int | str | Callable[[Widths], int]
"""A number, a width symbol, or a function of the width symbols."""


class AbstractBlock:
    """A block: named ports, parameters, a rate, and which input reaches which output at once.

    Parameters
    ----------
    inputs, outputs
        The ports, in order.
    parameters
        What can be set after compilation.
    rate
        When the block runs.
    feedthrough
        ``True``: every output depends at once on every input; ``False``: none does; or the pairs
        ``(output, input)`` of names that do.
    """

    own_step: bool = False
    """Whether it takes steps of its own, such as an FMU."""
    takes_slopes: bool = False
    """Whether such a step follows inputs that change within it; if not, it gets their mean."""
    rate_ports: Mapping[int, int] = MappingProxyType({})
    """Inputs, by number, and the input that is the rate of each: within a step of its own the block
    integrates that rate, from the value that the input has at the start of the step."""
    can_roll_back: bool = True
    """Whether it can go back to the start of such a step."""
    takes_any_step: bool = True
    """Whether such a step may be shorter than the one before."""
    to_roll_back: str = ""
    """If it cannot: with what argument it could; empty if with none."""
    stiff: ClassVar[tuple[str, str] | None] = None
    """If it answers so stiffly that runs first look whether the steps fit: a number of it to nudge,
    and the output to watch."""
    gravity: npt.NDArray[np.float64] | None = None
    """Of a mechanism, as built: x, y, z in axes of the world, in m/s²."""
    shows_parameters: bool = False
    """Whether an output may have the name of a parameter, because it shows its value."""
    stays: str = ""
    """Why the block cannot leave in an FMU, and what to do instead; empty if it can."""

    def __init__(
        self,
        *,
        inputs: Sequence[Port] = (),
        outputs: Sequence[Port] = (),
        parameters: Sequence[Parameter] = (),
        rate: Rate = INHERITED,
        feedthrough: bool | Iterable[tuple[str, str]] = True,
    ) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.parameters = tuple(parameters)
        self.rate = rate
        self.input_index = _index(self.inputs, "input")
        self.output_index = _index(self.outputs, "output")
        if isinstance(feedthrough, bool):
            every = range(len(self.inputs)) if feedthrough else ()
            self.feedthrough = tuple(tuple(every) for _ in self.outputs)
        else:
            pairs = list(feedthrough)
            self.feedthrough = tuple(
                tuple(sorted({self.input_index[i] for o, i in pairs if o == port.name}))
                for port in self.outputs
            )
        self.note = ""
        for item in self.parameters:
            shown = item.name in self.output_index and not self.shows_parameters
            if item.name in self.input_index or shown:
                raise DiagramError(f"{self!r} has a port and a parameter called `{item.name}`.")

    def __getitem__(self, port: str) -> PortRef:
        if port not in self.input_index and port not in self.output_index:
            names = [*self.input_index, *self.output_index]
            raise DiagramError(
                f"{self} has no port `{port}`.{self.tell_missing(port) or suggest(port, names)} "
                f"Inputs: {name_list(self.input_index)}. Outputs: {name_list(self.output_index)}."
            )
        return PortRef(self, port)

    def tell_missing(self, port: str) -> str:
        """Return how the block can be made with a port that it lacks; empty if it cannot."""
        return ""

    def warn_of_step(self, step: float, solver: str) -> str:
        """Return why it would run badly with this step in s and this solver of the diagram, if so.

        Asked for each time a diagram is compiled, so it must be quick.
        """
        return ""

    def __repr__(self) -> str:
        return type(self).__name__


class NativeBlock(AbstractBlock):
    """A block whose operations are a C kernel of the engine.

    Parameters
    ----------
    states, memory
        How many continuous states and discrete values the kernel keeps. Without `memory`, the
        kernel computes it from `integers` and the widths of the ports.
    scratch
        How many values the kernel needs while it works, if it does not compute that as well.
    integers
        The kernel's integers: modes, sizes, programs; or a function of the width symbols.
    """

    kernel: ClassVar[str]
    smooth_memory: ClassVar[bool] = False
    """Whether every value of the memory is a state that a linearisation may vary; flags, counts
    and positions in a ring buffer are not."""
    memory_holds: bool = False
    """Whether the memory is only what was worked out at the start, and decisions, such as which
    limit is reached, that a linearisation leaves as they are."""

    def __init__(
        self,
        *,
        states: Size = 0,
        memory: Size | None = None,
        scratch: int = 0,
        integers: Sequence[int] | Callable[[Widths], Sequence[int]] = (),
        **declaration: Any,
    ) -> None:
        super().__init__(**declaration)
        self.states = states
        self.memory = memory
        self.scratch = scratch
        self.integers = integers


def size_of(size: Size, widths: Widths) -> int:
    """Evaluate a `Size` for given values of the width symbols."""
    if isinstance(size, int):
        return size
    if isinstance(size, str):
        return widths[size]
    return size(widths)


def _index(ports: Sequence[Port], side: str) -> dict[str, int]:
    index: dict[str, int] = {}
    for n, port in enumerate(ports):
        if port.name in index:
            raise DiagramError(f"two {side} ports are called `{port.name}`.")
        index[port.name] = n
    return index
