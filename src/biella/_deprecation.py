"""Deprecated names, supported for one minor release; see docs/reference/versioning.md."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, cast

from ._renamed import RENAMED_OPTIONS, RENAMED_PUBLIC
from .errors import BiellaDeprecationWarning

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

REMOVAL = "0.3"
"""The release that removes names deprecated in this one."""


def warn_deprecated(old: str, new: str, *, stacklevel: int = 2) -> None:
    """Warn that `old` is deprecated and name the replacement.

    Parameters
    ----------
    stacklevel
        As of `warnings.warn`, counted from the caller of this function.
    """
    warnings.warn(
        f"{old} is deprecated and will be removed in {REMOVAL}: use {new}.",
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


def renamed_attribute(module: str, name: str) -> Any:
    """Return the object under the new name of `name`, with a warning; for ``__getattr__``."""
    new = RENAMED_PUBLIC.get(module, {}).get(name)
    if new is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warn_deprecated(f"`{module}.{name}`", f"`{module}.{new}`", stacklevel=3)
    return getattr(importlib.import_module(module), new)


def renamed_keywords(**renamed: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Accept keywords under their old names, with a warning: ``@renamed_keywords(old="new")``."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for old, new in renamed.items():
                if old in kwargs and new not in kwargs:
                    where = function.__qualname__
                    warn_deprecated(f"`{old}=` of {where}", f"`{new}=`", stacklevel=2)
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate


def renamed_value(what: str, value: T, renamed: Mapping[str, str]) -> T:
    """Return the new name of an option value, with a warning if `value` is an old one."""
    new = renamed.get(value) if isinstance(value, str) else None
    if new is None:
        return value
    warn_deprecated(f"`{what}={value!r}`", f"`{what}={new!r}`", stacklevel=3)
    return cast(T, new)


def renamed_options(arguments: Sequence[str], warn: Callable[[str], None]) -> list[str]:
    """Return a command line with old option names replaced by the new ones."""
    found = []
    for argument in arguments:
        option, equals, value = argument.partition("=")
        new = RENAMED_OPTIONS.get(option)
        if new is not None:
            warn(f"{option} is deprecated and will be removed in {REMOVAL}: use {new}.")
        found.append((new or option) + equals + value)
    return found
