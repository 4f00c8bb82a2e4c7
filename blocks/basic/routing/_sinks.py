"""Sinks: blocks without outputs."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import DiagramError
from ...core._block import NativeBlock
from ...core._ports import SAMPLED, Port, Same


class Scope(NativeBlock):
    """Signals to be recorded, and drawn together in one picture.

    Parameters
    ----------
    n
        How many signals, each of any width, unit and kind.
    title
        Title of the figure.
    labels
        One for each signal, instead of its path.
    """

    kernel = "sink"

    def __init__(self, n: int = 1, *, title: str = "", labels: Sequence[str] | None = None) -> None:
        ports = _any_ports(n)
        if labels is not None and (isinstance(labels, str) or len(labels) != n):
            raise DiagramError(
                f"a Scope of {n} signals needs {n} labels in a list, got {labels!r}."
            )
        super().__init__(inputs=ports)
        self.title = title
        self.labels = None if labels is None else tuple(labels)


class Record(NativeBlock):
    """Signals to be recorded.

    Parameters
    ----------
    n
        How many, each of any width, unit and kind.
    """

    kernel = "sink"

    def __init__(self, n: int = 1) -> None:
        super().__init__(inputs=_any_ports(n))


class Terminator(NativeBlock):
    """Sink for an unused signal."""

    kernel = "sink"

    def __init__(self) -> None:
        super().__init__(inputs=[Port("u", "n", kind=Same())])


class Assertion(NativeBlock):
    """A condition that must hold: the run stops with an error where it does not.

    For a vector, the condition must hold for all elements. Data recorded until then are kept.

    Parameters
    ----------
    message
        The reason to give.
    """

    kernel = "assertion"

    def __init__(self, message: str = "an assertion failed.") -> None:
        super().__init__(
            inputs=[Port("condition", "n", kind="boolean", doc="condition that must hold")],
            rate=SAMPLED,
        )
        self.note = message


class Stop(NativeBlock):
    """An end of the run where its input is true, or any element of it: not an error.

    Parameters
    ----------
    message
        The reason to give.
    """

    kernel = "stop"

    def __init__(self, message: str = "") -> None:
        super().__init__(
            inputs=[Port("condition", "n", kind="boolean", doc="ends the run")],
            rate=SAMPLED,
        )
        self.note = message


def _any_ports(n: int) -> list[Port]:
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise DiagramError(f"`n` is a number of signals, at least 1, got {n!r}.")
    return [Port(f"u{k}", f"n{k}", kind=Same(f"u{k}")) for k in range(1, n + 1)]
