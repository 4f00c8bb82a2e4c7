"""What is recorded: the names, widths, units and kinds of signals, and how a name is found."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...blocks.core._ports import KINDS, Kind
from ...errors import ResultError as ResultError
from ...errors import UnknownSignalError as UnknownSignalError


@dataclass(frozen=True, slots=True)
class Signal:
    """One recorded output.

    Parameters
    ----------
    path
        Block path and port, such as ``sub.plant.speed``.
    width
        Number of elements.
    unit
        As declared on the port; None where it has none.
    kind
        ``real``, ``integer``, ``boolean`` or ``enumeration``.
    sampled
        Whether the value is held between ticks of a slower rate. Plots then draw steps.
    names
        Of an enumeration: the names of its values, from 1 on.
    """

    path: str
    width: int = 1
    unit: str | None = None
    kind: Kind = "real"
    sampled: bool = False
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ResultError(f"`{self.path}` has width {self.width}; it must be at least 1.")
        if self.kind not in KINDS:
            raise ResultError(
                f"`{self.path}` is of kind `{self.kind}`. Kinds are {', '.join(KINDS)}."
            )

    @property
    def holds_between_ticks(self) -> bool:
        """Whether the signal changes in steps."""
        return self.sampled or self.kind != "real"

    def format_value(self, value: float) -> str:
        """Return a value as text: a name, if it has one."""
        return format_value(value, self.names)

    @property
    def element_names(self) -> list[str]:
        """One name per element: ``speed``, or ``force[0], force[1], …``."""
        if self.width == 1:
            return [self.path]
        return [f"{self.path}[{i}]" for i in range(self.width)]


def format_value(value: float, names: Sequence[str] = ()) -> str:
    """Return a value as text: by name, if it is one of an enumeration with `names`."""
    if 1 <= value <= len(names) and value == int(value):
        return names[int(value) - 1]
    return f"{value:.6g}"


class SignalTable(Mapping[str, Signal]):
    """Signals by path, in recorded order, with the shorter names that they also answer to.

    A block with exactly one output is found by its block path (an alias), and an element of a
    vector as ``path[i]``.
    """

    def __init__(self, signals: Iterable[Signal], aliases: Mapping[str, str] | None = None) -> None:
        self._signals: dict[str, Signal] = {}
        for signal in signals:
            if signal.path in self._signals:
                raise ResultError(f"`{signal.path}` is recorded twice.")
            self._signals[signal.path] = signal
        # An alias of a signal that is not recorded leads nowhere, and a path wins over an alias.
        self.aliases = {
            name: path
            for name, path in (aliases or {}).items()
            if path in self._signals and name not in self._signals
        }

    def __getitem__(self, path: str) -> Signal:
        return self._signals[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._signals)

    def __len__(self) -> int:
        return len(self._signals)

    @property
    def total_width(self) -> int:
        """Number of elements of all signals together."""
        return sum(signal.width for signal in self._signals.values())

    def locate(self, name: str) -> tuple[Signal, int | None]:
        """Return the signal that `name` means, and the element if it names one.

        Raises
        ------
        UnknownSignalError
            With the nearest names and the list of valid ones.
        """
        if signal := self._find(name):
            return signal, None
        if match := re.fullmatch(r"(.+)\[(\d+)\]", name):
            signal, index = self._find(match[1]), int(match[2])
            if signal and index < signal.width:
                return signal, index
            if signal:
                raise UnknownSignalError(
                    f"`{name}` is out of range: `{signal.path}` has {signal.width} elements, "
                    f"[0] to [{signal.width - 1}]."
                )
        raise UnknownSignalError(self._unknown(name))

    def _find(self, name: str) -> Signal | None:
        return self._signals.get(self.aliases.get(name, name))

    def _unknown(self, name: str) -> str:
        text = f"`{name}` was not recorded."
        names = [*self._signals, *self.aliases]
        # Nearest by spelling, and every output of a block whose name was given.
        near = [path for path in names if path.startswith(f"{name}.")]
        near += [path for path in names if path.endswith(f".{name}")]
        near += difflib.get_close_matches(name, names, n=4, cutoff=0.55)
        near = list(dict.fromkeys(near))[:4]
        if near:
            text += f" Did you mean {' or '.join(f'`{path}`' for path in near)}?"
        return f"{text} {list_names(self._signals)}"


def list_names(paths: Iterable[str], limit: int = 30) -> str:
    """Return a sentence with the recorded names, shortened if they are many."""
    paths = list(paths)
    if not paths:
        return "Nothing was recorded."
    more = f", … and {len(paths) - limit} more" if len(paths) > limit else ""
    return f"Recorded: {', '.join(paths[:limit])}{more}."
