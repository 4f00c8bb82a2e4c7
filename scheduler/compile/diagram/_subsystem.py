"""`Subsystem`: a diagram used as a block."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from ....blocks.core._block import AbstractBlock, NativeBlock
from ....blocks.core._ports import INHERITED, Kind, Port, Same, parameter
from ....errors import DiagramError

if TYPE_CHECKING:
    from ._diagram import Diagram

Edge = Literal["rising", "falling", "either", "level"]
EDGES: tuple[Edge, ...] = ("rising", "falling", "either", "level")


class Subsystem(AbstractBlock):
    """A diagram as a block, to any depth.

    Its ports are the diagram's inputs and outputs. It is flattened when the outer diagram is
    compiled, so it costs nothing at run time and introduces no algebraic loop. Blocks inside are
    addressed as ``subsystem.block.port``.

    Whether a conditional subsystem runs is decided at ticks. Blocks with a period hit on the clock
    of the whole diagram; but at the first tick at which the subsystem runs, and at a restart, all
    blocks inside compute their outputs. The first tick is not an edge. While an enclosing subsystem
    does not run, a conditional subsystem is suspended as well: edges are ignored.

    Parameters
    ----------
    diagram
        What is inside. Its step and solver are those of the outer diagram.
    enable
        Adds a boolean input ``enable``: while it is false, the blocks inside do not run and
        states are held.
    trigger
        Adds an input ``trigger``: the inside runs only at ticks where that signal rises through
        zero, falls, or either. Nothing inside may have continuous states or its own period.
    reset
        Adds an input ``reset``: the inside starts again at such an edge, or while the signal is
        positive (``"level"``).
    outputs
        What an enabled or triggered subsystem shows while it does not run: ``"held"`` values or
        ``"reset"``, that is `initial`.
    states
        For `enable`: whether states are ``"held"`` or ``"reset"`` when it is enabled again.
    initial
        Value of the outputs before the first run, and while they are reset.
    """

    def __init__(
        self,
        diagram: Diagram,
        *,
        enable: bool = False,
        trigger: Edge | None = None,
        reset: Edge | None = None,
        outputs: Literal["held", "reset"] = "held",
        states: Literal["held", "reset"] = "held",
        initial: float = 0.0,
    ) -> None:
        if bool(enable) + (trigger is not None) + (reset is not None) > 1:
            raise DiagramError(
                "a Subsystem accepts only one of enable, trigger and reset; nest two "
                "subsystems to combine them."
            )
        for option, edge in (("trigger", trigger), ("reset", reset)):
            if edge is not None and edge not in EDGES:
                raise DiagramError(f"{option} is one of {', '.join(EDGES)}, not {edge!r}.")
        if trigger == "level":
            raise DiagramError("trigger='level' is an enabled subsystem: use enable=True.")
        if outputs not in ("held", "reset") or states not in ("held", "reset"):
            raise DiagramError("outputs and states must each be 'held' or 'reset'.")
        self.diagram = diagram
        self.control: str | None = (
            "enable" if enable else "trigger" if trigger else "reset" if reset else None
        )
        self.edge: Edge = trigger or reset or "level"
        self.outputs_reset = outputs == "reset"
        self.states_reset = states == "reset"
        self.initial = float(initial)
        inports = diagram.inports
        if self.control in inports:
            raise DiagramError(
                f"the name `{self.control}` is reserved for the control input: rename the "
                f"input of the inner diagram."
            )
        ports = [replace(port.port, name=name) for name, port in inports.items()]
        self.buses = {name: port.bus for name, port in inports.items() if port.bus}
        """Types of the inputs that are buses."""
        if self.control:
            kind: Kind | Same = "boolean" if enable else Same("control")
            ports.append(Port(self.control, kind=kind, doc="runs or restarts the subsystem"))
        super().__init__(
            inputs=ports,
            # Widths, units and kinds are found when the diagram is flattened.
            outputs=[Port(name, width=f"out {name}") for name in diagram.outports],
            rate=INHERITED,
        )

    def __repr__(self) -> str:
        control = f", {self.control}" if self.control else ""
        return f"Subsystem({self.diagram!r}{control})"

    def _repr_html_(self) -> str:
        from ...notebook._diagram import show_subsystem

        return show_subsystem(self)

    def describe_missing_port(self, port: str) -> str:
        output, _, element = port.partition(".")
        if element and output in self.output_index:
            return f" Connect a BusSelector({element!r}) to `{output}`, if that is a bus."
        return ""

    def refuse_period(self) -> str:
        return "a Subsystem has no period: set the period of the blocks inside, or use trigger=…."


class HeldOutput(NativeBlock):
    """An output of a conditional subsystem.

    y = u while the subsystem runs, else the last such value, or `initial` if it is reset.
    """

    kernel = "held_output"
    elementwise = True
    memory_holds = True

    def __init__(self, initial: float, reset: bool) -> None:
        super().__init__(
            inputs=[
                Port("u", width="n", unit=Same(), kind=Same()),
                Port("active", doc="the guard's own flag", default=0.0),
            ],
            outputs=[Port("y", width="n", unit=Same(), kind=Same())],
            parameters=[
                parameter("initial", initial, doc="value before the first run", tunable=False)
            ],
            integers=[int(reset)],
        )
