"""Base classes of blocks. A block is a description; values and states are in the engine."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from ...errors import DiagramError, name_list, suggest
from ._construction import complete_construction
from ._description import Documentation, describe_block
from ._ports import INHERITED, Parameter, Port, PortRef, Rate, Widths
from ._terminals import TerminalRef

Size = int | str | Callable[[Widths], int]
"""A number, a width symbol, or a function of the width symbols."""

DECLARED = frozenset(
    {"inputs", "outputs", "parameters", "rate", "feedthrough", "input_index", "output_index"}
    | {"kernel", "states", "memory", "scratch", "integers", "initial_state", "is_continuous"}
)
"""Attributes that a compiled diagram takes over; they are fixed once a block is made."""


class AbstractBlock:
    """A block: named ports, parameters, a rate, and the direct feedthrough from inputs to outputs.

    A block is fixed once it is made: assigning one of its attributes raises, because nothing would
    read the new value.

    Parameters
    ----------
    inputs, outputs
        The ports, in order.
    parameters
        Parameters that can be set after compilation.
    rate
        When the block runs, unless `Diagram.add` gives it a period.
    feedthrough
        ``True``: every output depends directly on every input; ``False``: none does; or the pairs
        ``(output, input)`` of names with direct feedthrough.
    """

    has_internal_solver: bool = False
    """Whether it has an internal solver, such as an FMU."""
    takes_input_derivatives: bool = False
    """Whether such a step follows inputs that change within it; if not, it gets their mean."""
    rate_ports: Mapping[int, int] = MappingProxyType({})
    """Inputs, by number, and the input that is the rate of each: within an internal step the block
    integrates that rate, from the value that the input has at the start of the step."""
    can_roll_back: bool = True
    """Whether it can go back to the start of such a step."""
    can_repeat_states: bool = True
    """Whether a step of its continuous states can be repeated."""
    takes_any_step: bool = True
    """Whether such a step may be shorter than the one before."""
    stiff: ClassVar[tuple[str, str] | None] = None
    """For a stiff block, whose step size is checked at the start of a run: the parameter to perturb
    and the output to observe."""
    gravity: npt.NDArray[np.float64] | None = None
    """Of a mechanism, as built: x, y, z in axes of the world, in m/s²."""
    state_names: Sequence[str] = ()
    """Names of its continuous states, where they are more than numbers; with a minus where the
    engine keeps the negative value."""
    shows_parameters: bool = False
    """Whether an output may have the name of a parameter, because it shows its value."""
    export_blocker: str = ""
    """Why the block cannot leave in an FMU, and what to do instead; empty if it can."""
    designs_with_period: ClassVar[bool] = False
    """Whether the constructor takes the period, because the block's numbers depend on it."""
    can_be_sampled: ClassVar[bool] = False
    """Whether a block that runs continuously or at every tick may have a period instead."""
    elementwise: bool = False
    """Whether element k of each output, and of the derivative of its state, depends on element k of
    inputs and state only. An input of width 1 acts on all elements."""
    piecewise_constant: ClassVar[bool] = False
    """Whether its outputs change in jumps only, also where it runs continuously."""
    held_outputs: frozenset[str] = frozenset()
    """Outputs that change in jumps only, of a block whose other outputs do not."""
    caches: ClassVar[frozenset[str]] = frozenset()
    """Attributes that are computed when they are first needed."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = complete_construction(cls.__init__)  # type: ignore[method-assign]
        cls.__doc__ = Documentation(cls.__doc__)  # type: ignore[assignment]

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
                raise DiagramError(f"{self} has a port and a parameter called `{item.name}`.")

    def __getitem__(self, port: str) -> PortRef:
        if port not in self.input_index and port not in self.output_index:
            names = [*self.input_index, *self.output_index]
            if isinstance(port, str):
                hint = self.describe_missing_port(port) or suggest(port, names)
            else:
                hint = " Ports are selected by name."
            raise DiagramError(
                f"{self} has no port `{port}`.{hint} "
                f"Inputs: {name_list(self.input_index)}. Outputs: {name_list(self.output_index)}."
            )
        return PortRef(self, port)

    def terminal(self, name: str) -> TerminalRef:
        """Return a terminal, such as one of an FMU, for `Diagram.connect`.

        Raises
        ------
        DiagramError
            If the block has no terminal of this name; within a terminal, ``"outer.inner"``.
        """
        raise DiagramError(f"{self} has no terminals: only FMUs may have them.")

    def find_problems(self) -> Sequence[str]:
        """Return what is wrong with the block itself, for the compiler; nothing if it is fine."""
        return ()

    def describe_missing_port(self, port: str) -> str:
        """Return how the block can be made with a port that it lacks; empty if it cannot."""
        return ""

    def find_read_elements(
        self, output: int, element: int, widths: Sequence[int]
    ) -> Iterable[tuple[int, int]] | None:
        """Return the elements of inputs, as (port, element), that an element of an output reads.

        ``None`` for all elements of the inputs with direct feedthrough. `widths` are those of the
        inputs. Implicit solvers find the pattern of their Jacobian from it.
        """
        return None

    def warn_of_step(self, step: float, solver: str) -> str:
        """Return why it would run badly with this step in s and this solver of the diagram, if so.

        `solver` is empty where the solver chooses its steps by a tolerance.
        Asked once for each diagram that is compiled, after that, so it must be quick.
        """
        return ""

    def warn_of_connections(self, connected: Collection[str]) -> str:
        """Return why it would not use an input although it is connected, if so.

        `connected` has the names of the inputs that are. Asked like `warn_of_step`.
        """
        return ""

    def refuse_period(self) -> str:
        """Return why `Diagram.add` cannot give the block a period, and what to do; empty if so."""
        name = type(self).__name__
        if self.designs_with_period:
            return f"the block computes with its period. Give it to {name}(…, period=…)."
        if getattr(self, "states", 0) != 0:
            return (
                "it has continuous states. Use its discrete counterpart, or sample its output "
                "with a ZeroOrderHold."
            )
        if self.has_internal_solver:
            return "it has an internal solver, whose period is set where the block is made."
        if self.can_be_sampled:
            return ""
        if self.rate.kind == "constant":
            return "it is constant."
        if self.rate.kind in ("continuous", "every_tick", "timed"):
            words = "is continuous" if self.rate.kind == "continuous" else "runs at every tick"
            return f"it {words}. Sample its output with a ZeroOrderHold."
        return ""

    def describe(self) -> str:
        """Return the block's ports, parameters and default rate as a text of a few lines."""
        return describe_block(self)

    def copy_with(self, **declared: object) -> Self:
        """Return a copy in which some attributes are different."""
        made = copy.copy(self)
        vars(made).update(declared)
        return made

    def is_fixed(self, name: str) -> bool:
        """Whether an attribute cannot be assigned after construction."""
        return name not in self.caches

    def __setattr__(self, name: str, value: Any) -> None:
        if "_complete" in vars(self) and self.is_fixed(name):
            raise DiagramError(self._explain_fixed(name))
        object.__setattr__(self, name, value)

    def _explain_fixed(self, name: str) -> str:
        kind = type(self).__name__
        if name in ("rate", "period", "offset"):
            place = f"{kind}(…, period=…)" if self.designs_with_period else "d.add(…, period=…)"
            return f"the rate of {kind} cannot be assigned: give the period to {place}."
        if any(item.name == name for item in self.parameters):
            return (
                f"`{name}` of {kind} cannot be assigned: make a new block, {kind}({name}=…), or "
                f"set it for a run, simulate(…, parameters={{'<name of the block>.{name}': …}})."
            )
        return (
            f"`{name}` of {kind} cannot be assigned: a block is read when it is made. "
            f"Make a new {kind}(…)."
        )

    def __str__(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        name = str(self)
        if name != type(self).__name__:
            return name
        return f"{name}({getattr(self, '_arguments', '')})"


class NativeBlock(AbstractBlock):
    """A block whose operations are a C kernel of the engine.

    Parameters
    ----------
    states
        How many continuous states the kernel has.
    integers
        The kernel's integers: modes, sizes, programs; or a function of the width symbols. From
        them and the widths of the ports the kernel computes the size of its discrete state.
    kernel
        Name of the C kernel, if not that of the class.
    inputs, outputs, parameters, rate, feedthrough
        As in `AbstractBlock`.
    """

    kernel: str
    smooth_memory: ClassVar[bool] = False
    """Whether every value of the memory is a state that a linearization may vary; flags, counts
    and positions in a ring buffer are not."""
    memory_holds: bool = False
    """Whether the memory is only what was worked out at the start, and decisions, such as which
    limit is reached, that a linearization leaves as they are."""
    memory_is_mode: ClassVar[bool] = False
    """Whether the memory is the mode of a discontinuity, which a linearization keeps where the
    events of the block are located."""

    def __init__(
        self,
        *,
        states: Size = 0,
        integers: Sequence[int] | Callable[[Widths], Sequence[int]] = (),
        kernel: str | None = None,
        inputs: Sequence[Port] = (),
        outputs: Sequence[Port] = (),
        parameters: Sequence[Parameter] = (),
        rate: Rate = INHERITED,
        feedthrough: bool | Iterable[tuple[str, str]] = True,
    ) -> None:
        super().__init__(
            inputs=inputs,
            outputs=outputs,
            parameters=parameters,
            rate=rate,
            feedthrough=feedthrough,
        )
        if kernel is not None:
            self.kernel = kernel
        self.states = states
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
