"""HDF5 files that lead to other files: refused, because a result is a file of its own.

HDF5 can link to objects in other files, keep the numbers of a dataset in any file (also a pipe or a
device), and compose a dataset of parts of other files. A dataset may also declare a size that no
memory holds. biella writes none of these.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from ....errors import ResultError

if TYPE_CHECKING:
    import h5py

_LARGEST_RATIO = 1100  # of deflate, about
_ROOM = 1 << 26  # bytes: chunks that are declared and not yet written
_DEPTH = 4  # of groups; ours are 2
_MOST_GROUPS = 1000  # ours are some ten; groups may contain each other, each under many names
_CHECKED: dict[tuple[str, int, int, int], None] = {}
_KEPT = 64


def check_references(file: h5py.File, path: Path) -> None:
    """Raise an error if a file leads to others, or declares more than it can hold.

    Raises
    ------
    ResultError
        It names the object.
    """
    status = path.stat()
    key = str(path), status.st_ino, status.st_size, status.st_mtime_ns
    if key in _CHECKED:
        return
    _check_group(file, path, _LARGEST_RATIO * status.st_size + _ROOM, _DEPTH, count())
    if len(_CHECKED) >= _KEPT:
        with contextlib.suppress(KeyError, RuntimeError, StopIteration):  # of another thread
            _CHECKED.pop(next(iter(_CHECKED)))
    _CHECKED[key] = None


def _check_group(
    group: h5py.Group, path: Path, largest: int, depth: int, number: Iterator[int]
) -> None:
    import h5py

    if next(number) > _MOST_GROUPS:
        raise _error(path, "it has too many groups")

    for name in group:
        link = group.get(name, getlink=True)
        where = f"`{group.name.rstrip('/')}/{name}`"
        if not isinstance(link, h5py.HardLink):
            raise _error(path, f"{where} is a link, to `{link.path}` in another place or file")
        item = group[name]
        if isinstance(item, h5py.Group):
            if depth == 0:
                raise _error(path, f"{where} is a group within too many others")
            _check_group(item, path, largest, depth - 1, number)
        elif isinstance(item, h5py.Dataset):
            layout = item.id.get_create_plist()
            if layout.get_external_count() or layout.get_layout() == h5py.h5d.VIRTUAL:
                raise _error(path, f"the numbers of {where} are in other files")
            if item.size is not None and item.size * item.dtype.itemsize > largest:
                raise _error(path, f"{where} declares {item.shape} values, more than it can hold")


def _error(path: Path, what: str) -> ResultError:
    return ResultError(
        f"`{path}` is rejected: {what}. biella writes no such file; check where it comes from."
    )
