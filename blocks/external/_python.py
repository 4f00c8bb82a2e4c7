"""Blocks written in Python, which the engine calls back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...errors import DiagramError
from ..core._block import DECLARED, AbstractBlock, Size
from ..core._ports import CONTINUOUS, INHERITED, SAMPLED, Numbers, Port, periodic


class PythonBlock(AbstractBlock):
    """A block whose operations are Python methods.

    Subclass it and define ``output``; for a block with continuous states also ``derivative``, for a
    block with discrete state ``update``::

        class Lag(PythonBlock):
            def __init__(self, tau):
                super().__init__(inputs=["u"], outputs=["y"], state=[0.0], feedthrough=False)
                self.tau = tau

            def output(self, t, x, u):
                return x[0]

            def derivative(self, t, x, u):
                return (u - x[0]) / self.tau

    ``u`` is a number if the block has one input of width 1, an array if it has one vector input,
    and a tuple of these in the order of the ports if it has several. The same applies to the
    return value of ``output``.
    ``x`` is the state as an array. Change nothing on ``self`` in these methods: a state that is not
    declared cannot be saved and restored.

    Parameters
    ----------
    inputs, outputs
        Ports, or just their names.
    state
        First value of the state; continuous if ``derivative`` is defined, else discrete.
    period, offset
        Sample time in seconds; without one the block is continuous, or sampled like its inputs if
        it has discrete state.
    feedthrough
        Direct feedthrough from inputs to outputs; see `AbstractBlock`.
    """

    can_be_sampled = True
    export_blocker = (
        "it is written in Python, and an FMU runs without. Write it as an Expression or with "
        "native blocks; a source may be named in inputs=[…]"
    )
    integers: Sequence[int] = ()
    free_rate = CONTINUOUS  # the methods may use t
    smooth_memory = True

    def __init__(
        self,
        *,
        inputs: Sequence[str | Port] = (),
        outputs: Sequence[str | Port] = (),
        state: Numbers = (),
        period: float | None = None,
        offset: float = 0.0,
        feedthrough: bool | Iterable[tuple[str, str]] = True,
    ) -> None:
        name = type(self).__name__
        continuous, discrete = hasattr(self, "derivative"), hasattr(self, "update")
        if continuous and discrete:
            raise DiagramError(
                f"{name} defines both derivative and update. Make two blocks: one continuous, one "
                f"discrete."
            )
        if continuous and period is not None:
            raise DiagramError(f"{name} has continuous states and cannot have a period.")
        self.initial_state = np.array(state, dtype=np.float64).ravel()
        if self.initial_state.size and not (continuous or discrete):
            raise DiagramError(f"{name} has a state, but neither derivative nor update changes it.")
        if outputs and not hasattr(self, "output"):
            raise DiagramError(f"{name} has outputs, but no method output(self, t, x, u).")
        self.is_continuous = continuous
        size = self.initial_state.size
        self.states: Size = size if continuous else 0
        self.memory: Size = 0 if continuous else size
        self.kernel = "python" + ("_continuous" if continuous else "_discrete" if discrete else "")
        super().__init__(
            inputs=[_port(port) for port in inputs],
            outputs=[_port(port) for port in outputs],
            rate=periodic(period, offset, SAMPLED if discrete else self.free_rate),
            feedthrough=feedthrough,
        )

    def is_fixed(self, name: str) -> bool:
        """Whether an attribute cannot be assigned; methods may read the others."""
        return name in DECLARED


class FunctionBlock(PythonBlock):
    """A Python block made from a plain function by `python_block`."""

    def __init__(self, function: Callable[..., Any], takes_time: bool, **declaration: Any) -> None:
        self.function = function
        self.takes_time = takes_time
        self.unpacks = len(declaration["inputs"]) != 1
        if not takes_time and declaration["inputs"]:
            self.free_rate = INHERITED
        super().__init__(**declaration)

    def __str__(self) -> str:
        return self.function.__name__

    def output(self, t: float, x: Any, u: Any) -> Any:
        arguments = u if self.unpacks else (u,)
        return self.function(t, *arguments) if self.takes_time else self.function(*arguments)


def python_block(
    *,
    outputs: Sequence[str | Port] | str = "y",
    inputs: Sequence[str | Port] | None = None,
    period: float | None = None,
    offset: float = 0.0,
    feedthrough: bool | Iterable[tuple[str, str]] = True,
) -> Callable[[Callable[..., object]], Callable[[], FunctionBlock]]:
    """Make a block from a function of its inputs.

    The function's arguments are the input ports; a first argument ``t`` is the time. Calling the
    decorated name makes a new block::

        @python_block(outputs=["force"])
        def friction(speed):
            return -0.3 * math.tanh(speed / 0.01)

        d.add(friction(), name="friction")
    """

    def decorate(function: Callable[..., object]) -> Callable[[], FunctionBlock]:
        names = list(inspect.signature(function).parameters)
        takes_time = names[:1] == ["t"]
        ports = list(inputs) if inputs is not None else names[takes_time:]
        listed = [outputs] if isinstance(outputs, str) else list(outputs)

        def make() -> FunctionBlock:
            return FunctionBlock(
                function,
                takes_time,
                inputs=ports,
                outputs=listed,
                period=period,
                offset=offset,
                feedthrough=feedthrough,
            )

        make.__name__ = function.__name__
        make.__doc__ = function.__doc__
        return make

    return decorate


def _port(port: str | Port) -> Port:
    return Port(port) if isinstance(port, str) else port
