"""Comparing, deciding, and remembering decisions. Booleans are 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Literal

from .... import _contract as contract
from ....errors import DiagramError, suggest
from ...core._block import NativeBlock
from ...core._ports import SAMPLED, SWITCHING, Numbers, Port, Same, parameter

Comparison = Literal["<", "<=", "==", "!=", ">=", ">"]
Operator = Literal["and", "or", "not", "nand", "nor", "xor"]
Event = Literal["rising", "falling", "either"]

_COMPARISONS: dict[Comparison, int] = {
    "<": contract.COMPARE_LESS,
    "<=": contract.COMPARE_LESS_EQUAL,
    "==": contract.COMPARE_EQUAL,
    "!=": contract.COMPARE_NOT_EQUAL,
    ">=": contract.COMPARE_GREATER_EQUAL,
    ">": contract.COMPARE_GREATER,
}
_OPERATORS: dict[Operator, tuple[int, int]] = {
    # condition on the inputs, and whether it is negated
    "and": (contract.LOGIC_ALL, 0),
    "or": (contract.LOGIC_ANY, 0),
    "xor": (contract.LOGIC_ODD, 0),
    "nand": (contract.LOGIC_ALL, 1),
    "nor": (contract.LOGIC_ANY, 1),
    "not": (contract.LOGIC_ALL, 1),
}
_EDGES = {
    "rising": contract.LOGIC_RISING,
    "falling": contract.LOGIC_FALLING,
    "either": contract.LOGIC_EITHER,
}
_EVENTS = {**_EDGES, "level": contract.LOGIC_LEVEL}
_LARGEST = 2**53


class Compare(NativeBlock):
    """A comparison: y = (u1 op u2), or y = (u op threshold), element by element.

    Its output jumps, so it changes at ticks only.

    Parameters
    ----------
    op
        ``"<"``, ``"<="``, ``"=="``, ``"!="``, ``">="`` or ``">"``.
    threshold
        A number, or a vector with one for each element, in the unit of the input. Without one the
        block has two inputs.
    """

    kernel = "compare"

    def __init__(self, op: Comparison, threshold: Numbers | None = None) -> None:
        _check_choice("op", op, tuple(_COMPARISONS))
        if threshold is None:
            inputs = [Port("u1", "n", Same()), Port("u2", "n", Same())]
            limits = []
        else:
            limits = [parameter("threshold", threshold, doc="compared with the input")]
            value = limits[0].value
            if value.ndim > 1:
                raise DiagramError(
                    f"threshold is a number or a vector, not of shape {value.shape}."
                )
            inputs = [Port("u", value.size if value.ndim else "n")]
        super().__init__(
            inputs=inputs,
            outputs=[Port("y", inputs[0].width, kind="boolean")],
            parameters=limits,
            rate=SWITCHING,
            integers=[_COMPARISONS[op]],
        )


class Logic(NativeBlock):
    """A logical operation on booleans: y = u1 op u2 …, element by element.

    ``"xor"`` is true if an odd number of the inputs is.

    Parameters
    ----------
    op
        ``"and"``, ``"or"``, ``"not"``, ``"nand"``, ``"nor"`` or ``"xor"``.
    n
        Number of inputs; by default 2, and 1 for ``"not"``.
    """

    kernel = "logic"

    def __init__(self, op: Operator, n: int | None = None) -> None:
        _check_choice("op", op, tuple(_OPERATORS))
        n = (1 if op == "not" else 2) if n is None else _count("n", n)
        if op == "not" and n != 1:
            raise DiagramError(f"'not' has one input, got n={n}. Use 'nand' or 'nor'.")
        super().__init__(
            inputs=[Port(f"u{k}", "n", kind="boolean") for k in range(1, n + 1)],
            outputs=[Port("y", "n", kind="boolean")],
            integers=_OPERATORS[op],
        )


class Switch(NativeBlock):
    """A switch: y = on_true if condition, else on_false.

    It is continuous if its data are; the switching itself happens where the condition changes, at
    ticks.
    """

    kernel = "switch"

    def __init__(self) -> None:
        super().__init__(
            inputs=[
                Port("on_true", "n", Same(), Same(), doc="output while the condition holds"),
                Port("condition", kind="boolean", doc="which of the two is passed on"),
                Port("on_false", "n", Same(), Same(), doc="output otherwise"),
            ],
            outputs=[Port("y", "n", Same(), Same())],
        )


class MultiportSwitch(NativeBlock):
    """A switch with many ways: y = u1 if selector is 1, u2 if it is 2, ….

    A selector below 1 takes the first input, one beyond n the last.

    Parameters
    ----------
    n
        Number of data inputs.
    """

    kernel = "multiport_switch"

    def __init__(self, n: int = 2) -> None:
        super().__init__(
            inputs=[
                Port("selector", kind="integer", doc="number of the input to pass on, from 1"),
                *(Port(f"u{k}", "n", Same(), Same()) for k in range(1, _count("n", n) + 1)),
            ],
            outputs=[Port("y", "n", Same(), Same())],
        )


class Edge(NativeBlock):
    """An edge: y[n] is true if u changed from u[n-1] to u[n].

    At the first sample there is none.

    Parameters
    ----------
    edge
        ``"rising"``: from false to true; ``"falling"``; or ``"either"``.
    """

    kernel = "edge"

    def __init__(self, edge: Event = "rising") -> None:
        _check_choice("edge", edge, tuple(_EDGES))
        super().__init__(
            inputs=[Port("u", "n", kind="boolean")],
            outputs=[Port("y", "n", kind="boolean")],
            rate=SAMPLED,
            integers=[_EVENTS[edge]],
        )


class Counter(NativeBlock):
    """A counter: y[n] = y[n-1] + step at an event, y[n] = initial while reset is true.

    An event at a sample is counted at that sample. All values are integers; others are rounded.

    Parameters
    ----------
    initial
        Count before the first event, and while reset.
    edge
        Events to count: ``"rising"``, ``"falling"`` or ``"either"`` edges of the input, or
        ``"level"``, every sample at which it is true.
    step
        Increment of an event; negative to count down.
    lower, upper
        Limits of the count.
    wrap
        Whether the count wraps around between `upper` and `lower` instead of saturating.
    """

    kernel = "counter"

    def __init__(
        self,
        initial: int = 0,
        *,
        edge: Literal["rising", "falling", "either", "level"] = "rising",
        step: int = 1,
        lower: int = -_LARGEST,
        upper: int = _LARGEST,
        wrap: bool = False,
    ) -> None:
        _check_choice("edge", edge, tuple(_EVENTS))
        for name, value in {
            "initial": initial,
            "step": step,
            "lower": lower,
            "upper": upper,
        }.items():
            if not isinstance(value, Integral) or abs(value) > _LARGEST:
                raise DiagramError(
                    f"`{name}` of a Counter is a whole number, at most 2^53, got {value!r}."
                )
        if not lower <= initial <= upper:
            raise DiagramError(
                f"a Counter needs lower ≤ initial ≤ upper, got {lower}, {initial}, {upper}."
            )
        super().__init__(
            inputs=[
                Port("u", kind="boolean", doc="signal whose events are counted"),
                Port("reset", kind="boolean", default=0.0, doc="back to the initial count"),
            ],
            outputs=[Port("y", kind="integer", doc="the count", limits=("lower", "upper"))],
            parameters=[
                parameter("initial", initial, doc="count before the first event"),
                parameter("step", step, doc="increment of an event"),
                parameter("lower", lower, doc="smallest count"),
                parameter("upper", upper, doc="largest count"),
            ],
            rate=SAMPLED,
            integers=[_EVENTS[edge], int(bool(wrap))],
        )


class SampleHold(NativeBlock):
    """Sample and hold: y[n] = u[n] where it samples, else y[n-1]; initial before.

    Parameters
    ----------
    initial
        Output before the first sample was taken: a number, or a vector.
    edge
        When it samples: while the input ``sample`` is true, ``"level"``; or at its ``"rising"``,
        ``"falling"`` or ``"either"`` edges.
    """

    kernel = "sample_hold"

    def __init__(
        self,
        initial: Numbers = 0.0,
        *,
        edge: Literal["level", "rising", "falling", "either"] = "level",
    ) -> None:
        _check_choice("edge", edge, tuple(_EVENTS))
        start = parameter("initial", initial, doc="output before the first sample", tunable=False)
        width = start.value.size if start.value.ndim else "n"
        super().__init__(
            inputs=[
                Port("u", width, Same(), Same()),
                Port("sample", kind="boolean", doc="when to take the input"),
            ],
            outputs=[Port("y", width, Same(), Same())],
            parameters=[start],
            rate=SWITCHING,
            integers=[_EVENTS[edge]],
        )


class Latch(NativeBlock):
    """A latch: y is true from set on until reset, element by element.

    Parameters
    ----------
    initial
        Output before the first set or reset.
    priority
        Input with priority while both are true: ``"reset"`` or ``"set"``.
    """

    kernel = "latch"

    def __init__(
        self, initial: bool = False, *, priority: Literal["reset", "set"] = "reset"
    ) -> None:
        _check_choice("priority", priority, ("reset", "set"))
        super().__init__(
            inputs=[
                Port("set", "n", kind="boolean", doc="makes the output true"),
                Port("reset", "n", kind="boolean", default=0.0, doc="makes the output false"),
            ],
            outputs=[Port("y", "n", kind="boolean")],
            parameters=[
                parameter("initial", bool(initial), doc="output at the start", tunable=False)
            ],
            rate=SWITCHING,
            integers=[int(priority == "set")],
        )


def _check_choice(name: str, given: object, valid: Sequence[str]) -> None:
    if given not in valid:
        shown = ", ".join(repr(one) for one in valid)
        raise DiagramError(
            f"`{name}` is one of {shown}, not {given!r}.{suggest(str(given), valid)}"
        )


def _count(name: str, given: object) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise DiagramError(f"`{name}` is a number of inputs, at least 1, got {given!r}.")
    return given
