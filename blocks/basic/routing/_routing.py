"""Routing: vectors from parts, parts from vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral

from ....errors import DiagramError
from ...core._block import NativeBlock
from ...core._ports import Derived, Port, Same, Widths
from ...core._units import Unit, equivalent


class Mux(NativeBlock):
    """A vector from parts: y = [u1, u2, …].

    The output has a unit if all inputs have the same.

    Parameters
    ----------
    inputs
        How many, each of any width; or a list of their widths.
    """

    kernel = "mux"

    def __init__(self, inputs: int | Sequence[int] = 2) -> None:
        widths = _widths("inputs", inputs)
        open_width = isinstance(inputs, int)
        ports = [
            Port(f"u{k}", f"n{k}" if open_width else width, kind=Same())
            for k, width in enumerate(widths, 1)
        ]

        def total(known: Widths) -> int:
            return sum(known[f"n{k}"] for k in range(1, len(ports) + 1))

        super().__init__(
            inputs=ports,
            outputs=[
                Port(
                    "y",
                    total if open_width else sum(widths),
                    Derived(_shared_unit, tuple(port.name for port in ports)),
                    Same(),
                )
            ],
        )

    def find_read_elements(
        self, output: int, element: int, widths: Sequence[int]
    ) -> list[tuple[int, int]]:
        """Return the one element that it passes on."""
        for port, width in enumerate(widths):
            if element < width:
                return [(port, element)]
            element -= width
        return []


class Demux(NativeBlock):
    """Parts of a vector: [y1, y2, …] = u.

    Parameters
    ----------
    outputs
        How many, each of width 1; or a list of their widths.
    """

    kernel = "demux"

    def __init__(self, outputs: int | Sequence[int] = 2) -> None:
        widths = _widths("outputs", outputs)
        super().__init__(
            inputs=[Port("u", sum(widths), Same(), Same())],
            outputs=[Port(f"y{k}", width, Same(), Same()) for k, width in enumerate(widths, 1)],
        )
        self._firsts = [sum(widths[:k]) for k in range(len(widths))]

    def find_read_elements(
        self, output: int, element: int, widths: Sequence[int]
    ) -> list[tuple[int, int]]:
        """Return the one element that it passes on."""
        return [(0, self._firsts[output] + element)]


class Selector(NativeBlock):
    """Elements of a vector: y[k] = u[indices[k]].

    Parameters
    ----------
    indices
        One, or a list, from 0; negative ones count from the end. Any order, also repeated.
    """

    kernel = "selector"

    def __init__(self, indices: int | Sequence[int]) -> None:
        chosen = _as_list(indices)
        if not chosen or not all(_is_whole(index) for index in chosen):
            raise DiagramError(f"`indices` are whole numbers such as [0, 2], got {indices!r}.")

        def find(widths: Widths) -> list[int]:
            width = widths["n"]
            for index in chosen:
                if not -width <= index < width:
                    raise DiagramError(
                        f"a Selector takes element {index}, but its input has {width}, "
                        f"numbered from 0 to {width - 1}."
                    )
            return [int(index) % width for index in chosen]

        super().__init__(
            inputs=[Port("u", "n", Same(), Same())],
            outputs=[Port("y", len(chosen), Same(), Same())],
            integers=find,
        )
        self._chosen = [int(index) for index in chosen]

    def find_read_elements(
        self, output: int, element: int, widths: Sequence[int]
    ) -> list[tuple[int, int]]:
        """Return the one element that it passes on."""
        return [(0, self._chosen[element] % widths[0])]


def _shared_unit(first: Unit, *others: Unit) -> Unit | None:
    return first if all(equivalent(first, unit) for unit in others) else None


def _widths(name: str, given: int | Sequence[int]) -> list[int]:
    widths = [1] * given if isinstance(given, int) else _as_list(given)
    if not widths or not all(_is_whole(width) and width >= 1 for width in widths):
        raise DiagramError(
            f"`{name}` is a number, at least 1, or a list of widths such as [1, 3], got {given!r}."
        )
    return [int(width) for width in widths]


def _as_list(given: object) -> list[int]:
    return list(given) if isinstance(given, Iterable) else [given]  # type: ignore[list-item]


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
