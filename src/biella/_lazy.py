"""Public names of a package that are imported when they are first used (PEP 562).

``import biella`` and ``biella --help`` then load neither SciPy nor the blocks. A package lists its
names three times: in ``__all__``, in a ``TYPE_CHECKING`` block for type checkers and editors, and
in the table given to `attach`. tests/test_public_api.py compares the three.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from ._deprecation import renamed_attribute, warn_deprecated

# NumPy and SciPy import in circles: two threads that are the first to import them may each see a
# module of the other half-made. No module that a lazy name leads to may use a lazy name when it is
# imported; otherwise this lock and that of the module could wait for each other.
_importing = threading.RLock()


def attach(
    package: str,
    table: Mapping[str, Sequence[str]],
    moved: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of `package`.

    Parameters
    ----------
    table
        Names by the module, relative to `package`, that defines them.
    moved
        Names by the public module that has them now; using them here is deprecated.
    """
    homes = {name: module for module, names in table.items() for name in names}
    new_homes = {name: module for module, names in (moved or {}).items() for name in names}

    def get(name: str) -> object:
        if name in homes:
            with _importing:
                value = getattr(importlib.import_module(homes[name], package), name)
            setattr(sys.modules[package], name, value)
            return value
        if name in new_homes:
            new = new_homes[name]
            warn_deprecated(f"`{package}.{name}`", f"`from {new} import {name}`", stacklevel=2)
            with _importing:
                return getattr(importlib.import_module(new), name)
        return cast(object, renamed_attribute(package, name))

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, listed
