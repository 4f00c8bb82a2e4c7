"""The errors and warnings of the package: one root each, all exported from `biella`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from ._renamed import renamed_name

if TYPE_CHECKING:
    from .scheduler.results._result import Result

__all__ = [
    "BiellaDeprecationWarning",
    "BiellaError",
    "BiellaWarning",
    "BindingError",
    "BlockError",
    "CouplingWarning",
    "DeviceError",
    "DiagramError",
    "FmuError",
    "FormulationError",
    "OverrunError",
    "PlanError",
    "ResultError",
    "UnitError",
    "UnknownSignalError",
]


class BiellaError(Exception):
    """Root of every error that this package raises on purpose."""


class BiellaWarning(UserWarning):
    """A condition that does not stop the run but is probably unintended."""


class CouplingWarning(BiellaWarning):
    """A coupling that does not use the requested method, or does not reach its tolerance."""


class BiellaDeprecationWarning(BiellaWarning, FutureWarning):
    """A name or spelling that a later release removes; the message names the replacement.

    It is not a `DeprecationWarning`, which Python hides outside of ``__main__``.
    """


class DiagramError(BiellaError):
    """A diagram that cannot be compiled: every problem found, in one report.

    Attributes
    ----------
    problems
        One sentence each, in the order of the diagram.
    """

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        if len(self.problems) == 1:
            super().__init__(self.problems[0])
        else:
            lines = "\n".join(f"  {n}. {text}" for n, text in enumerate(self.problems, 1))
            super().__init__(f"{len(self.problems)} problems in the diagram:\n{lines}")


class BlockError(BiellaError):
    """A block that stopped a run.

    Attributes
    ----------
    path, time, tick
        Path of the block, and time and tick of the failure.
    result
        Data recorded until then, if any.
    """

    def __init__(self, message: str, *, path: str = "", time: float = 0.0, tick: int = 0) -> None:
        super().__init__(message)
        self.path = path
        self.time = time
        self.tick = tick
        self.result: Result | None = None


class PlanError(BiellaError):
    """A plan file that is truncated, corrupt, or made for another version of the engine."""


class ResultError(BiellaError):
    """A result that cannot be read, written or compared."""


class UnknownSignalError(BiellaError, KeyError):
    """A signal that was not recorded."""

    def __str__(self) -> str:
        return str(self.args[0])


class UnitError(BiellaError, ValueError):
    """A unit that cannot be read, or an operation that has no meaning for its units."""


class FormulationError(BiellaError):
    """A method has no result here, such as accelerations with redundant constraints."""


class FmuError(BiellaError):
    """An FMU that cannot be made, read or run."""


class DeviceError(BiellaError):
    """A device is missing, does not respond or sends invalid data.

    Attributes
    ----------
    result
        If it ended a run: the data recorded until then.
    """

    result: Result | None = None


class BindingError(DeviceError):
    """A binding that does not fit its diagram or its devices: every problem found, in one report.

    Attributes
    ----------
    problems
        One sentence each, with the table and the key.
    """

    def __init__(self, problems: str | Sequence[str], name: str = "the binding") -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        if isinstance(problems, str):
            super().__init__(problems)
        elif len(self.problems) == 1:
            super().__init__(f"{name}: {self.problems[0]}")
        else:
            lines = "\n".join(f"  {n}. {text}" for n, text in enumerate(self.problems, 1))
            super().__init__(f"{len(self.problems)} problems in {name}:\n{lines}")


class OverrunError(BiellaError):
    """A real-time run that missed more deadlines than it may.

    Attributes
    ----------
    result
        Data recorded until then.
    """

    result: Result | None = None


def suggest(name: str, valid: Iterable[str]) -> str:
    """Return `` Did you mean …?`` for a name close to `name`, else an empty string."""
    names = list(valid)
    if new := renamed_name(name, names):
        return f" Since 0.2 it is `{new}`."
    known = {each.casefold(): each for each in reversed(names)}
    close = get_close_matches(name.casefold(), list(reversed(known)), n=2, cutoff=0.6)
    if not close:
        return ""
    return " Did you mean " + " or ".join(f"`{known[match]}`" for match in close) + "?"


def name_list(names: Iterable[str], limit: int = 12) -> str:
    """Return `names` as a readable list, cut after `limit`."""
    names = list(names)
    if not names:
        return "none"
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown}, … ({len(names)} in all)"
