"""Names and spellings that are kept for one minor release; see docs/reference/versioning.md."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from .errors import BiellaDeprecationWarning

P = ParamSpec("P")
R = TypeVar("R")

REMOVAL = "0.3"
"""The release that removes what this one deprecates."""


def warn_deprecated(old: str, new: str, *, stacklevel: int = 2) -> None:
    """Warn that `old` is deprecated, and say what to write instead.

    Parameters
    ----------
    stacklevel
        As of `warnings.warn`, counted from the caller of this function.
    """
    warnings.warn(
        f"{old} is deprecated and will be removed in {REMOVAL}: write {new}.",
        BiellaDeprecationWarning,
        stacklevel=stacklevel + 1,
    )


def deprecated_alias(function: Callable[P, R], old: str, new: str) -> Callable[P, R]:
    """Return `function` under its old name: each call warns."""

    @functools.wraps(function)
    def alias(*args: P.args, **kwargs: P.kwargs) -> R:
        warn_deprecated(f"`{old}`", f"`{new}`", stacklevel=2)
        return function(*args, **kwargs)

    alias.__name__ = alias.__qualname__ = old.rpartition(".")[2]
    alias.__doc__ = f"Deprecated name of `{new}`."
    return alias
